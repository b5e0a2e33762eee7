"""Efficient exploration on a chain of 50 states: regret over 2000 and over a million episodes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.statistics import bootstrap, median
from rlsvi_paper.chain.learning import (
    MOST_EPISODES,
    expected_first_reward,
    learning_jobs,
    regret_curve,
    seconds,
    success,
)
from rlsvi_paper.claim import (
    Row,
    Verdict,
    Verdicts,
    all_of,
    at_least,
    choice,
    claim,
    computed,
    exactly,
    in_readings,
    printed,
    share_of,
)
from rlsvi_paper.degrees import little, much, nearly_all
from rlsvi_paper.drawing import Picture, curves, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import having, learning_curves, times_as_much
from rlsvi_paper.schedules import SCHEDULES


def stays_low(found: pl.DataFrame, episode: Floats, regret: Floats) -> Floats:
    """The last episode from which on 100 lose over 5% of what random play loses, which earns next to nothing."""
    ends = np.minimum(np.searchsorted(episode, episode + 100.0), len(episode) - 1)
    high = regret[:, ends] - regret > 5.0 * found["best"].to_numpy()[:, None]
    return np.asarray(episode[len(episode) - 1 - high[:, ::-1].argmax(axis=1)])


N, K = 50, 10
FIRST_EPISODES = 2000  # episodes
POINTS = 200  # of a curve
RLSVI: dict[str, Any] = {"agent": "RLSVI", "lam": 1.0, "sigma": 0.1}
EPSILON: dict[str, Any] = {"agent": "epsilon 0.1"}
LEARNED: dict[str, Callable[..., Floats]] = {
    **{
        f"{share:.0%} of the regret is paid": lambda found, episode, regret, share=share: episode[
            (regret >= share * regret[:, -1:]).argmax(axis=1)
        ]
        for share in (0.95, 0.93, 0.97)
    },
    "the last policy that is not optimal is played": lambda found, *_: found["last_mistake"].to_numpy() + 0.0,
    "the regret of 100 episodes stays below 5% of random play's, as in README.md,": stays_low,
}
BASES = {False: "all periods at once (appendix C)", True: "each period on its own (section 6.1.1)"}


def jobs(episodes: int, long: int, seeds: int) -> list[Job]:
    """RLSVI for 2000 episodes with the basis drawn in both ways, other ways to dither, and RLSVI with a table.

    Parameters
    ----------
    episodes, long
        RLSVI and epsilon-greedy are also run for so many episodes with so many seeds.
    """
    first = min(episodes, FIRST_EPISODES)
    curve: list[tuple[dict[str, Any], bool, int, int]] = [
        *((settings, False, episodes, seed) for settings in (RLSVI, EPSILON) for seed in range(long)),
        *((RLSVI, per_period, first, seed) for per_period in BASES for seed in range(seeds)),
        *(({"agent": name}, False, first, 0) for name in SCHEDULES),
    ]
    found = [_run(*it) for it in curve] + learning_jobs([N], [None], seeds, 20_000)
    return list({job.name: job for job in found}.values())


def _run(settings: dict[str, Any], per_period: bool, episodes: int, seed: int) -> Job:
    size: dict[str, Any] = {"length": N, "features": K, "episodes": episodes, "points": POINTS, "seed": seed}
    return Job.of(regret_curve, seconds(N, K, 2 * episodes), **size, per_period=per_period, **settings)


def first_runs(frame: pl.DataFrame, per_period: bool = False) -> pl.DataFrame:
    """The last row of each run of RLSVI over the first episodes, of at most 2000."""
    chosen = having(frame, **RLSVI, per_period=per_period, episodes=_first(frame))
    return chosen.filter(pl.col("episode") == pl.col("episodes")).sort("seed")


def first_curves(frame: pl.DataFrame, per_period: bool = False) -> tuple[Floats, Floats]:
    """The episodes of these runs, and the regret up to them, (seeds, points)."""
    return learning_curves(frame, **RLSVI, per_period=per_period, episodes=_first(frame))


def _first(frame: pl.DataFrame) -> int:
    return int(frame["episodes"].drop_nulls().to_numpy().min())


@claim("RLSVI consistently learns the optimal policy in roughly 500 episodes", "section 6.1.1")
def learns(frame: pl.DataFrame) -> Verdict:
    """At least four of five seeds get ten rewards; and 500 lies in the 95% prediction interval of the mean over
    five runs, as many as the paper has, of the episodes until 95% of the regret of the first 2000 is paid. The
    basis is that of appendix C; that of section 6.1.1 is another reading.
    """
    numbers = "seeds with ten rewards", "episodes to the tenth", "to 95% of the regret"
    found = {words: _learned(frame, per_period) for per_period, words in BASES.items()}
    return in_readings(("basis drawn for", *numbers, "verdict"), found)


def _learned(frame: pl.DataFrame, per_period: bool) -> tuple[Verdict, Row]:
    found, when = first_runs(frame, per_period), choice("learned when", *LEARNED)
    tenth, learned = found["time"].to_numpy(), LEARNED[when](found, *first_curves(frame, per_period))
    after, ten = bootstrap(median, learned), bootstrap(median, tenth)
    share, count = share_of(np.isfinite(tenth))
    verdict = all_of(
        printed(learned, 5, 500.0, f"{when} after {after} of 2000 episodes"),
        at_least(share, nearly_all(), f"{count} seeds get ten rewards, after {ten} episodes"),
    )
    return verdict, (count, f"{ten}", f"{after}")


@claim("In this setting any choice of ε or of the temperature η is equivalent", "section 6.1.1, footnote")
def equivalent(frame: pl.DataFrame) -> Verdict:
    """Their expected regret after 2000 episodes is the same to rounding."""
    last = having(frame, seed=0, episode=_first(frame), episodes=_first(frame))
    regret = last.filter(pl.col("agent").is_in(list(SCHEDULES)))["regret"].to_numpy()
    spread = float((regret.max() - regret.min()) / regret.max())
    choices = f"{len(regret)} choices (ε from .01 to .2, η from .0001 to 10, and both falling)"
    return exactly(spread < 1e-9, f"regret after 2000 episodes, of {choices}, differs by {spread:.1g}")


@claim("RLSVI essentially maintains the optimal policy once it discovers the rewarding state", "section 6.1.1")
def maintains(frame: pl.DataFrame) -> Verdict:
    """At least four of five seeds lose at most 1/11 of the attainable reward from the tenth reward to episode
    2000, so that it is within a factor of 1.1.
    """
    found, (episode, regret) = first_runs(frame), first_curves(frame)
    lost = lost_after(found["time"].to_numpy(), found["best"].to_numpy(), episode, regret)
    keep, _ = share_of(lost <= little())
    longest = having(frame, **RLSVI).filter(pl.col("episodes") == pl.col("episodes").max())
    last, count = int(longest["last_mistake"].to_numpy().max()), int(longest["episodes"][0])
    return at_least(
        keep,
        nearly_all(),
        f"a share of {keep} of the seeds (median loss {np.median(lost):.2g}); the last episode whose policy is "
        f"not optimal is {last:,} of {count:,}",
    )


def lost_after(time: Floats, best: Floats, episode: Floats, regret: Floats) -> Floats:
    """The share of the attainable reward that runs lose from their tenth reward on; all if there is none."""
    lost = np.ones(len(time))
    for i in np.flatnonzero(time < episode[-1]):
        at = int(np.searchsorted(episode, time[i]))
        left = max((episode[-1] - episode[at]) * best[i], 1e-300)
        lost[i] = (regret[i, -1] - regret[i, at]) / left
    return lost


@claim("RLSVI exploits the generalisation of the basis functions to learn much faster", "section 6.1.1")
def generalises(frame: pl.DataFrame) -> Verdict:
    """Ten rewards come at least twice as fast as for RLSVI with a table."""
    basis = first_runs(frame)["time"].to_numpy()
    table = frame.filter(pl.col("limit").is_not_null())["time"].to_numpy()
    faster = times_as_much(table, basis, "median", MOST_EPISODES)
    ours, theirs = bootstrap(median, basis), bootstrap(median, table)
    words = f"ten rewards after {ours} episodes, with a table after {theirs}"
    return at_least(faster, much(), f"{words}: {faster} times as fast")


@claim(
    "RLSVI explores efficiently what would take any dithering strategy at least 10¹⁵ episodes",
    "section 6.1.1",
)
def beats_dithering(frame: pl.DataFrame) -> Verdicts:
    """The exact expectation of dithering's first reward, 2ᴺ⁻¹/p*, is at least 10¹⁵ episodes, and at least a
    million times the time to the tenth of RLSVI's median seed.
    """
    expected, seed = expected_first_reward(N), choice("RLSVI's seed, the", "median", "worst")
    time_of = median if seed == "median" else max
    faster = bootstrap(lambda times: expected / time_of(times), first_runs(frame)["time"].to_numpy())
    yield exactly(expected >= 1e15, f"dithering takes {expected:.3g} episodes to its first reward")
    yield at_least(
        faster, choice("times as long,", 1e6, 1e3, 1e9), f"{faster} times as long as RLSVI to its tenth"
    )


@computed(
    "UCRL's state-of-the-art upper bounds for H = 15, S = 6, A = 2, ε = δ = 1 only kick in after more than 10¹⁰ "
    "suboptimal episodes",
    "section 6.1.1",
)
def ucrl_kicks_in_late() -> Verdict:
    """By the bound of Dann and Brunskill (2015) for UCFH, a UCRL for fixed horizons, so many episodes may be worse
    by more than ε, with two successors of each state and action, the fewest that it allows.
    """
    fewest, most = (fixed_horizon_bound(15, 6, 2, successors) for successors in (2, 6))
    return exactly(fewest > 1e10, f"{fewest:.2g} episodes with two successors a pair, {most:.2g} with six")


def fixed_horizon_bound(H: int, S: int, A: int, C: int, epsilon: float = 1.0, delta: float = 1.0) -> float:
    """Bound the number of episodes of UCFH, a UCRL for fixed horizons, that are worse by more than epsilon.

    By Dann and Brunskill (2015) there are at most 6 |S x A| m E_max, with probability 1 - delta. There m is the
    number of visits that make a state and action known, and E_max = log2(H / w) log2 |S|, where w = epsilon /
    (4 H |S|).

    Parameters
    ----------
    C
        The largest number of successors of a state and action, from 2 to S.
    """
    visits = 512 * math.log2(math.log2(H)) ** 2 * (C * H**2 / epsilon**2)
    visits *= math.log2(8 * H**2 * S**2 / epsilon) ** 2
    visits *= math.log(6 * S * A * C * math.log2(4 * S**2 * H**2 / epsilon) ** 2 / delta)
    return 6 * S * A * visits * math.log2(4 * H**2 * S / epsilon) * math.log2(S)


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative expected regret of the first 2000 episodes, with both bases, and of all."""
    count = int(frame["episodes"].drop_nulls().to_numpy().max())
    figure, both = panels(2 if count > FIRST_EPISODES else 1, 3.8)
    for i, (per_period, words) in enumerate(BASES.items()):
        curves(both[0], *first_curves(frame, per_period), f"RLSVI, basis drawn for {words}", 2 * i)
    curves(both[0], *learning_curves(frame, **EPSILON, episodes=_first(frame)), "epsilon-greedy", 1)
    for i, settings in enumerate((RLSVI, EPSILON)):
        if count > FIRST_EPISODES:
            curves(both[1], *learning_curves(frame, **settings, episodes=count), str(settings["agent"]), i)
    for axes, end in zip(both, (_first(frame), count), strict=False):
        limits = {"xlim": (0, end), "ylim": (0, 1.25 * success(N) * min(end, FIRST_EPISODES))}
        labelled(axes, "episode", "cumulative expected regret", f"first {end:,} episodes", "upper left", **limits)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Efficient exploration on a 50-chain",
    where="section 6.1.1, figure 2",
    caption=(
        "Cumulative expected regret of RLSVI (K = 10 coherent basis functions, λ = 1, σ = .1) and of LSVI with "
        "epsilon-greedy exploration: medians with bootstrap bands, and the first 20 runs. At the paper's scale "
        "RLSVI has 200 seeds with each basis for 2000 episodes, and five for a million."
    ),
    quick={"episodes": 2000, "long": 5, "seeds": 5},
    paper={"episodes": 1_000_000, "long": 5, "seeds": 200},
)
