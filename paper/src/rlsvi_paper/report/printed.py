"""What the paper prints about its figures: axes, curves and settings; and what the figures here have instead.

The pictures are not in the text of the paper, so that axes and curves are as its text and captions describe them.
"""

import inspect
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from rlsvi.study.job import Job
from rlsvi_paper import figure_called
from rlsvi_paper.report.records import setting

SYMBOLS = {"N": "length", "K": "features", "λ": "lam", "σ": "sigma", "γ": "gamma", "episodes": "episodes"}
COLUMNS = (*SYMBOLS, "seeds")


@dataclass(frozen=True)
class Printed:
    """A figure of the paper.

    Parameters
    ----------
    number
        Of the figure.
    drawn
        Its axes and curves.
    settings
        What the paper states, by the columns of the table; the others it does not state.
    jobs
        The settings of our jobs that are meant by a column, where they have other names than usual.
    fixed
        What is no setting of a job here: a value, or the module and the name of a constant.
    only
        The settings of the jobs that count.
    """

    number: int
    drawn: str
    settings: Mapping[str, str]
    jobs: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)


def ours(name: str, scale: str) -> dict[str, str]:
    """The settings of RLSVI in the jobs of a figure at a scale, by the columns of the table that it has.

    Runs are counted for every setting; the least and the most are told.
    """
    printed, plan = PRINTED[name], figure_called(name).plan(scale)
    only = printed.only or {"agent": "RLSVI"}
    jobs = [job for job in plan if only.items() <= job.settings.items()] or plan
    settings = [_defaults(job) | dict(job.settings) for job in jobs]
    fixed = printed.fixed.items()
    found = {name: setting(resolve_name(f"rlsvi_paper.{it}")) if ":" in it else it for name, it in fixed}
    for symbol, usual in SYMBOLS.items():
        values = {it[key] for it in settings if (key := printed.jobs.get(symbol, usual)) in it}
        if values:
            found[symbol] = setting(sorted(values, key=lambda x: (x is None, x)))
    runs = Counter(tuple(sorted((k, repr(v)) for k, v in it.items() if k != "seed")) for it in settings)
    least, most = min(runs.values()), max(runs.values())
    each = {it["runs"] for it in settings if "runs" in it}
    found["seeds"] = f"{most}" if least == most else f"{least} to {most}"
    return found | ({"seeds": f"{found['seeds']} × {max(each)}"} if each else {})


def _defaults(job: Job) -> dict[str, Any]:
    """The settings that a job leaves as its function has them."""
    parameters = inspect.signature(resolve_name(job.function)).parameters.values()
    return {it.name: it.default for it in parameters if it.default is not inspect.Parameter.empty}


_REWARDS = "until ten rewards"
_CHAIN = {"λ": "1", "σ": ".1"}
_ENGINE = {"N": "10", "K": "110", "λ": ".2", "σ": "√.001", "episodes": "1200", "seeds": "100 × 10"}
_ENGINE_HERE = {
    "N": "recommendation.engine:PRODUCTS",
    "K": "110",
    "λ": "recommendation.engine:LAM",
    "σ": "recommendation.engine:SIGMA",
}
_TETRIS = {"N": "100,000", "K": "22", "λ": "1", "σ": "1", "γ": ".99"}
_TETRIS_HERE = {"K": "22", "λ": "1", "σ": "1"}
_TETRIS_JOBS = {"N": "memory", "episodes": "games"}
_PLAYED = {"sigma": 1.0, "unknown": 0.0}
PRINTED = {
    "chain-regret": Printed(
        2,
        "Regret over the first 2,000 and the first 10⁶ episodes, of RLSVI and an ε-greedy agent, five seeds.",
        {"N": "50", "K": "10", **_CHAIN, "episodes": "2000, 1,000,000", "seeds": "5"},
    ),
    "chain-length": Printed(
        3,
        "Means of five seeds, N up to 100, with the same two lines.",
        {"N": "to 100", "K": "10", "episodes": _REWARDS, "seeds": "5"},
        jobs={"episodes": "limit"},
    ),
    "chain-features": Printed(
        4,
        "Means of five seeds, with a local polynomial regression.",
        {"N": "50", "K": "varied, up to SA = 100", "episodes": _REWARDS, "seeds": "5"},
        jobs={"episodes": "limit"},
    ),
    "chain-scaling": Printed(
        5,
        "The same.",
        {"N": "to 100", "K": "10, and varied at N = 50", "episodes": _REWARDS, "seeds": "5"},
        jobs={"episodes": "limit"},
    ),
    "chain-agnostic": Printed(
        6,
        "One run for each ρ, from 0 to 1 in thousandths.",
        {"N": "20", "K": "20", **_CHAIN, "episodes": "10,000", "seeds": "1 for each ρ"},
        jobs={"episodes": "limit"},
    ),
    "tetris": Printed(
        7,
        "Learning curves, means of five seeds: RLSVI ends at about 4,500 rows, LSVI with a tuned ε-greedy "
        "schedule at about 3,500 (the text prints the two figures the other way round).",
        {**_TETRIS, "seeds": "5"},
        jobs=_TETRIS_JOBS,
        fixed=_TETRIS_HERE,
        only={**_PLAYED, "board": "20x10"},
    ),
    "recsys-boltzmann": Printed(
        8,
        "Cumulative regret of RLSVI, and of LSVI with Boltzmann exploration at the temperatures 10⁻⁴ to 10.",
        _ENGINE,
        fixed=_ENGINE_HERE,
    ),
    "recsys-myopic": Printed(
        9,
        "RLSVI, both bandits and the optimal myopic policy over customers; the text does not say what is drawn.",
        _ENGINE,
        fixed=_ENGINE_HERE,
    ),
    "chain-lambda": Printed(
        10,
        "The regret of the first 10,000 episodes.",
        {"N": "50", "K": "10", "λ": "varied", "σ": ".1", "episodes": "10,000"},
    ),
    "chain-sigma": Printed(
        11,
        "The regret of the first 10,000 episodes.",
        {"N": "50", "K": "10", "λ": "100", "σ": "varied", "episodes": "10,000"},
    ),
    "chain-features-many": Printed(
        12,
        "A local polynomial regression for each of several chain lengths.",
        {"N": "several", "K": "varied, beyond SA", "episodes": _REWARDS},
        jobs={"episodes": "limit"},
    ),
    "chain-quadratic": Printed(
        13,
        "Learning times with a quadratic regression for each K.",
        {"N": "varied", "K": "varied", "episodes": _REWARDS},
        jobs={"episodes": "limit"},
    ),
    "mini-tetris": Printed(
        14,
        "Learning curves of RLSVI, and of LSVI with a tuned ε-greedy schedule.",
        {},
        jobs=_TETRIS_JOBS,
        fixed=_TETRIS_HERE,
        only={**_PLAYED, "board": "mini"},
    ),
}
