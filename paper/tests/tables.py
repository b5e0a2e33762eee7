"""Tables in the shape of a figure's results, made of formulas instead of runs."""

import math

import extension_tables
import polars as pl
import recsys_tables
import tetris_tables
import theory_tables
from tetris_tables import noise

from rlsvi_paper import FIGURES, figure_called
from rlsvi_paper.chain.learning import success

__all__ = ["ALL", "censored", "curve", "figure", "noise", "table"]
ALL = tuple(FIGURES)
MARKS = (1, 10, *range(25, 2001, 25))


def figure(name):
    return figure_called(name)


def curve(settings, regret=None, **others):
    """A run of regret_curve: `regret` is a function of the episode, all of it before episode 400 if not given."""
    regret = regret or (lambda episode: 0.37 * min(episode, 400))
    marks = sorted({*(mark for mark in MARKS if mark < settings["episodes"]), settings["episodes"]})
    found = {"reward": 0.0, "time": 400.0, "last_mistake": 600, **others}
    best = success(settings["length"])
    return [{"episode": mark, "regret": float(regret(mark)), **found, "best": best} for mark in marks]


DEFAULTS = {
    "learning_time": lambda s: {"time": 100.0, **({"misfit": s["rho"]} if "rho" in s else {})},
    "first_reward": lambda s: {"time": 100.0, "regret": 100.0, "uneven": 1e-15},
    "first_reward_of_policy_gradient": lambda s: {"time": 100.0, "regret": 100.0, "uneven": 0.0, "gradient": 0.0},
    "regret_curve": curve,
    "noisy_deep_sea": lambda s: {"total": 50.0, "stuck": 0.0},
    **tetris_tables.found(),
    **recsys_tables.found(),
    **extension_tables.found(),
    **theory_tables.found(),
}


def table(figure, *, seeds=None, scale="quick", **found):
    """All results of a figure: by the name of a job's function, what it finds for settings, one row or more."""
    columns, length = {}, 0  # polars is much slower with rows
    for job in figure.plan(scale, seeds):
        name = job.function.partition(":")[2]
        brought = found.get(name, DEFAULTS[name])(job.settings)
        rows = brought if isinstance(brought, list) else [brought]
        several = {key: [value] * len(rows) for key, value in job.settings.items()}
        for key, values in (several | {key: [row[key] for row in rows] for key in rows[0]}).items():
            column = columns.setdefault(key, [])
            column += [None] * (length - len(column))
            column += values
        length += len(rows)
    return pl.DataFrame({key: [*it, *[None] * (length - len(it))] for key, it in columns.items()}, strict=False)


def censored(figure, **options):
    """Nobody ever learned anything."""
    never = math.inf
    return table(
        figure,
        learning_time=lambda s: {"time": never, **({"misfit": s["rho"]} if "rho" in s else {})},
        first_reward=lambda s: {"time": never, "regret": 1e4, "uneven": 1e-15},
        first_reward_of_policy_gradient=lambda s: {"time": never, "regret": 1e4, "uneven": 0.0, "gradient": 0.0},
        regret_curve=lambda s: curve(s, lambda e: 0.37 * e, time=never, last_mistake=s["episodes"]),
        noisy_deep_sea=lambda s: {"total": 500.0, "stuck": 1.0},
        learning_games=lambda s: tetris_tables.games(s, 0.0),
        policies=lambda s: tetris_tables.players(s, 0.0),
        reading_run=tetris_tables.reading(0.0, 0.0),
        recommending=recsys_tables.found(lambda agent: (1.8, 1.8))["recommending"],
        optimism_cases=theory_tables.optimism(gap=-1.0)["optimism_cases"],
        prior_regret=theory_tables.learned(
            **dict.fromkeys(["theorem", *theory_tables.SCALES], theory_tables.never)
        )["prior_regret"],
        copied_time=lambda s: {"time": never},
        **options,
    )
