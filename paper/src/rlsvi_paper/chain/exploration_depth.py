"""When deep exploration is needed: RLSVI against the best tuned dithering over depth, rewards and features."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product, takewhile
from typing import Any

import numpy as np
import polars as pl

from rlsvi import bases, mdp
from rlsvi.agents import LSVI, RLSVI, Boltzmann, EpsilonGreedy, Greedy
from rlsvi.agents.explore import Explore
from rlsvi.bases import Basis
from rlsvi.core.compile import Floats
from rlsvi.problems import Problem
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.statistics import bootstrap
from rlsvi_paper.chain.learning import seconds
from rlsvi_paper.claim import Parts, Verdicts, all_of, at_least, at_most, choice, claim, share_of
from rlsvi_paper.degrees import about_factor, most, nearly_all
from rlsvi_paper.drawing import DOTS, DOTTED, Picture, labelled, legend, panels, style, ticks_at
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, chosen_by_the_others, having, paired_times, rows_where, seeds_of
from rlsvi_paper.schedules import falling

FIRST_SEED = 2000  # the pilots of docs/preregistration-depth.md had lower ones
BUDGETS = (125, 500, 2000)  # episodes after which a run is looked at
EASY_FACTOR = 16  # a budget that is so many times 2 to the depth is ample
DEEP = 12  # decisions: more than 2,000 random episodes find
HALF = 0.5  # a run succeeds if it earns so much of what can be earned beyond random play
PRIZE, COSTS, PENALTY = "0, and 1 at the end", "0, and 1 behind costs", "0, and −1 unless at the end"
# What is taken from the reward of the last state, and what all steps to the right cost together.
CODINGS = {PRIZE: (0.0, 0.0), COSTS: (0.0, 0.01), PENALTY: (1.0, 0.0)}
TABLE, COHERENT = "a table", "ten functions"


DITHERING: dict[str, Explore] = {
    "greedy": Greedy(),
    **{f"ε = {e}": EpsilonGreedy(e) for e in (0.01, 0.05, 0.2)},
    **{f"ε = {c} / ({c} + l)": EpsilonGreedy(falling(c, c)) for c in (1, 10, 100)},
    **{f"η = {eta}": Boltzmann(eta) for eta in (0.01, 0.1)},
    "η = 10 / (10 + l)": Boltzmann(falling(10, 10)),
}
FEATURES: dict[str, Callable[[Floats, int], Basis]] = {
    TABLE: lambda Q, seed: bases.Tabular(),
    COHERENT: lambda Q, seed: bases.coherent(Q, min(10, Q.size), seed=seed),
}


def jobs(depths: list[int], seeds: int) -> list[Job]:
    """RLSVI and every way to dither, on every chain with every kind of features."""
    return [
        Job.of(earned, seconds(D, 10, 4000), agent=agent, coding=coding, features=features, depth=D, seed=seed)
        for D, features, coding, agent in product(depths, FEATURES, CODINGS, ("RLSVI", *DITHERING))
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
    ]


@cache
def task_of(coding: str, depth: int) -> mdp.FiniteMDP:
    """The chain whose end is reached by `depth` steps to the right, with its rewards coded in one of the ways."""
    task, (less, cost) = mdp.chain(depth + 1), CODINGS[coding]
    right = np.repeat(np.arange(len(task.indptr) - 1), np.diff(task.indptr)) % 2
    paid = np.asarray(task.terminal_reward) - less
    return replace(task, terminal_reward=paid, reward=task.reward - cost / depth * right)


@experiment
def earned(*, agent: str, coding: str, features: str, depth: int, seed: int) -> Playing:
    """The share that a run earns of what the optimal policy earns beyond random play, for each budget.

    Both regress with the same ridge, λ = 1 and σ = .1; only their exploration differs.
    """
    problem_seed, agent_seed = seeds_of(seed)
    task = task_of(coding, depth)
    problem = Problem(task, FEATURES[features](mdp.backward_induction(task).Q, problem_seed))
    ours, theirs = RLSVI(lam=1.0, sigma=0.1, seed=agent_seed), LSVI(lam=0.01, seed=agent_seed)
    player = ours if agent == "RLSVI" else theirs.set_params(explore=DITHERING[agent])
    history = yield Play(player, problem, BUDGETS[-1])
    lost = np.cumsum(history.regret)[np.array(BUDGETS) - 1] / BUDGETS
    return {"episodes": np.array(BUDGETS), "share": 1.0 - lost / problem.random_regret}


def shares(frame: pl.DataFrame, **where: Any) -> Iterator[tuple[int, Floats, Floats]]:
    """By depth the shares of RLSVI and of dithering, which has for every seed the schedule best for the others."""
    found = cells(having(frame, **where).sort("seed"), "depth", "agent", value="share")
    for D in sorted({depth for depth, _ in found}):
        yield D, found[D, "RLSVI"], chosen_by_the_others(np.stack([found[D, name] for name in DITHERING]))


HEADINGS = "rewards", "features", "episodes", "decisions", "runs of dithering that succeed", "of RLSVI"
within_all = rows_where(episodes=BUDGETS[-1])


def _judged(frame: pl.DataFrame, cells: Iterable[tuple[str, str]], easy: bool) -> Parts:
    """How many runs succeed within ample episodes, or too few for random play; those of dithering are judged."""
    for (coding, features), L in product(cells, BUDGETS):
        for D, ours, theirs in shares(frame, coding=coding, features=features, episodes=L):
            if EASY_FACTOR * 2**D <= L if easy else 2**D >= L:
                (share, count), (_, told) = share_of(theirs >= HALF), share_of(ours >= HALF)
                words = f"{count} runs succeed within {L} episodes at D = {D} ({coding}; {features})"
                verdict = (at_least if easy else at_most)(share, most(), words)
                yield verdict, (coding, features, f"{L}", f"{D}", count, told)


@claim("Dithering is enough where few decisions in a row must be right", "section 3", kind="ours", table=HEADINGS)
def shallow(frame: pl.DataFrame) -> Parts:
    """With rewards 0 and 1, with and without costs, most runs of the best dithering succeed wherever the episodes
    are at least 16 times 2ᴰ: they earn half of what can be earned beyond random play.
    """
    return _judged(frame, product((PRIZE, COSTS), FEATURES), easy=True)


@claim(
    "Dithering is not enough where many must, if first values are not above what is paid",
    "section 3",
    kind="ours",
    table=HEADINGS,
)
def deep(frame: pl.DataFrame) -> Parts:
    """With rewards 0 and 1, and with a table also behind costs, at most half of the runs of the best dithering
    succeed wherever the episodes are at most 2ᴰ.
    """
    return _judged(frame, ((PRIZE, TABLE), (PRIZE, COHERENT), (COSTS, TABLE)), easy=False)


@claim(
    "With a table, first values above what is paid explore as deeply as RLSVI",
    "section 3",
    within_all,
    kind="ours",
    table=("decisions", "dithering earns", "RLSVI", "ratio"),
)
def optimism(frame: pl.DataFrame) -> Parts:
    """With rewards −1 and 0 and a table, most runs of the best dithering succeed and earn at least RLSVI's mean
    share over 1.1, at every depth within 2,000 episodes.
    """
    return _ratios(shares(frame, coding=PENALTY, features=TABLE))


@claim(
    "Where dithering is enough, RLSVI costs little",
    "section 3",
    within_all,
    kind="ours",
    table=("decisions", "RLSVI earns", "dithering", "ratio"),
)
def price(frame: pl.DataFrame) -> Parts:
    """Most runs of RLSVI, not tuned, succeed and earn at least the mean share of the best dithering over 1.1, with
    every coding and all features, at every depth up to 6 within 2,000 episodes.
    """
    for coding, features in product(CODINGS, FEATURES):
        found = shares(frame, coding=coding, features=features)
        yield from _ratios((D, theirs, ours) for D, ours, theirs in found if EASY_FACTOR * 2**D <= BUDGETS[-1])


def _ratios(found: Iterable[tuple[int, Floats, Floats]]) -> Parts:
    """Whether the second of two shares is about the first or more, and most runs succeed, at every depth."""
    for D, least, greatest in found:
        ratio = paired_times(greatest, least)
        row = f"{D}", f"{greatest.mean():.2f}", f"{least.mean():.2f}", f"{ratio}"
        (share, count), words = share_of(greatest >= HALF), f"{ratio} times as much at D = {D}"
        told = all_of(at_least(ratio, 1 / about_factor(), words), at_least(share, most(), f"{count} runs succeed"))
        yield told, row


@claim(
    "With features that generalise such values do not suffice, and RLSVI does",
    "section 3",
    within_all,
    kind="ours",
)
def generalisation(frame: pl.DataFrame) -> Verdicts:
    """With rewards −1 and 0 and ten functions, fewer than four of five runs of the best dithering succeed at
    depths of 12 or more within 2,000 episodes, and at least four of five of RLSVI's do. As preregistered, the
    interval that decides counts every run as independent, though runs at several depths share their seeds.
    """
    found = [it for it in shares(frame, coding=PENALTY, features=COHERENT) if it[0] >= DEEP]
    for judge, i, words in ((at_most, 2, "runs of dithering succeed"), (at_least, 1, "of RLSVI's")):
        succeed = np.stack([it[i] for it in found]) >= HALF
        (share, count), seeds = share_of(succeed.ravel()), bootstrap(np.mean, succeed.mean(axis=0))
        by = share if choice("interval", "over runs", "over seeds") == "over runs" else seeds
        yield judge(by, nearly_all(), f"{count} {words}, a share of {seeds} with an interval over seeds")


@claim(
    "RLSVI with one setting reaches every depth, with every coding and all features",
    "section 3",
    kind="ours",
    table=("rewards", "features", *(f"{who}, {L} episodes" for who in ("RLSVI", "dithering") for L in BUDGETS)),
)
def everywhere(frame: pl.DataFrame) -> Parts:
    """Most runs of RLSVI succeed within 2,000 episodes in every setting. The table has the last depth up to
    which most runs succeed.
    """
    for coding, features in product(CODINGS, FEATURES):
        where = {"coding": coding, "features": features}
        found = [list(zip(*shares(frame, **where, episodes=L), strict=True)) for L in BUDGETS]
        last = [f"{boundary(each[0], each[i])}" for i in (1, 2) for each in found]
        D, ours, _ = min(zip(*found[-1], strict=True), key=lambda it: np.mean(it[1] >= HALF))
        share, count = share_of(ours >= HALF)
        words = f"{count} runs succeed where fewest do, at D = {D} ({coding}; {features})"
        yield at_least(share, most(), words), (coding, features, *last)


def boundary(depths: Sequence[int], found: Sequence[Floats]) -> int:
    """The last depth up to which most runs succeed; 0 if there is none."""
    reached = takewhile(lambda it: np.mean(it[1] >= HALF) >= most(), zip(depths, found, strict=True))
    return max((D for D, _ in reached), default=0)


def draw(frame: pl.DataFrame) -> Picture:
    """Shares over depth, and the medians of dithering within fewer episodes."""
    figure, places = panels(3, 3.6, rows=2)
    for axes, (features, coding) in zip(places, product(FEATURES, CODINGS), strict=True):
        where = {"coding": coding, "features": features}
        for L in BUDGETS:
            depths, *both = zip(*shares(frame, **where, episodes=L), strict=True)
            for i, (name, found) in enumerate(zip(("RLSVI", "best dithering"), both, strict=True)):
                low, middle, high = np.quantile(found, (0.25, 0.5, 0.75), axis=1)
                if L == BUDGETS[-1]:
                    axes.plot(depths, middle, **style(i), **DOTS, label=name)
                    axes.fill_between(depths, low, high, color=style(i)["color"], alpha=0.2, linewidth=0)
                    axes.plot(depths, np.min(found, axis=1), color=style(i)["color"], linestyle=":", linewidth=1)
                elif i == 1:
                    axes.plot(depths, middle, color=style(i)["color"], linewidth=0.8)
        axes.axhline(HALF, **DOTTED)
        labelled(axes, "decisions in a row", "share earned", f"{coding}, {features}", ylim=(-0.05, 1.05))
        ticks_at(axes, depths)
    legend(places[2], loc="lower left")
    return figure


FIGURE = Figure.of(
    __name__,
    title="When deep exploration is needed",
    where="section 3, Example 1",
    caption=(
        "Share of what can be earned beyond random play within 2,000 episodes, against the number of decisions in "
        "a row that must be right, on the chain. Costs are .01 in all for the steps to the right. RLSVI has λ = 1 "
        "and σ = .1, dithering the best of ten schedules, chosen for each seed by the others. Medians, quartiles "
        "and the worst seed (dotted); thin lines are medians of dithering within 500 and 125 episodes."
    ),
    quick={"depths": [2, 6, 12], "seeds": 5},
    paper={"depths": [2, 4, 6, 8, 10, 12, 16, 20], "seeds": 24},
)
