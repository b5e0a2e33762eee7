"""Efficient exploration on a chain of 50 states: regret over 2000 and over a million episodes."""

from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.chain.experiments import regret_curve
from rlsvi.paper.chain.learning import expected_first_reward, learning_jobs, seconds, success
from rlsvi.paper.claim import Verdict, Verdicts, at_least, between, claim, exactly
from rlsvi.paper.drawing import Picture, curves, labelled, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import having, learning_curves
from rlsvi.study.job import Job
from rlsvi.study.means import ratio_of_medians
from rlsvi.study.statistics import bootstrap, median, proportion

N, K = 50, 10
RLSVI: dict[str, Any] = {"agent": "RLSVI", "lam": 1.0, "sigma": 0.1}
EPSILON: dict[str, Any] = {"agent": "epsilon-greedy", "epsilon": 0.1}
OTHERS: list[dict[str, Any]] = [{"agent": "epsilon-greedy", "epsilon": epsilon} for epsilon in (0.01, 0.9)]
OTHERS += [{"agent": "Boltzmann", "eta": eta} for eta in (0.01, 1.0, 100.0)]


def jobs(episodes: int, seeds: int) -> list[Job]:
    """Both agents for all episodes, other ways to dither for 2000, and RLSVI with a table."""
    curve = [(settings, episodes, seed) for settings in (RLSVI, EPSILON) for seed in range(seeds)]
    curve += [(settings, 2000, 0) for settings in OTHERS]
    return [
        Job.of(regret_curve, seconds(N, K, 2 * count), length=N, features=K, episodes=count, seed=seed, **settings)
        for settings, count, seed in curve
    ] + learning_jobs([N], [None], seeds, 20_000)


def _runs(frame: pl.DataFrame, **settings: object) -> pl.DataFrame:
    """The last row of each run with these settings."""
    return having(frame, **settings).filter(pl.col("episode") == pl.col("episodes")).sort("seed")


@claim("RLSVI consistently learns the optimal policy in roughly 500 episodes", "section 6.1.1", headline=True)
def learns(frame: pl.DataFrame) -> Verdicts:
    """Most seeds get ten rewards; the median of the episodes until 95% of the regret of the first 2000 is paid
    is within a factor of two of 500.
    """
    found = _runs(frame, **RLSVI)
    tenth = found["time"].to_numpy()
    share = proportion(int(np.isfinite(tenth).sum()), len(tenth))
    paid = bootstrap(median, np.array([_paid(frame, seed) for seed in found["seed"]]))
    words = f"{np.isfinite(tenth).sum()} of {len(tenth)} seeds get ten rewards"
    yield between(paid, 250, 1000, f"95% of the regret of 2000 episodes is paid after {paid} episodes")
    yield at_least(share, 0.5, f"{words}, after {bootstrap(median, tenth)} episodes")


def _paid(frame: pl.DataFrame, seed: int) -> float:
    """The episode by which 95% of the regret of the first 2000 was paid."""
    episode, regret = _first_2000(frame, seed)
    return float(episode[np.searchsorted(regret, 0.95 * regret[-1])])


@claim("In this setting any choice of ε or of the temperature η is equivalent", "section 6.1.1, footnote")
def equivalent(frame: pl.DataFrame) -> Verdict:
    """Their expected regret after 2000 episodes is the same to rounding."""
    chosen = [having(frame, **settings, seed=0, episode=2000) for settings in (EPSILON, *OTHERS)]
    regret = np.concatenate([rows["regret"].to_numpy() for rows in chosen])
    spread = float((regret.max() - regret.min()) / regret.max())
    choices = f"{len(OTHERS) + 1} choices (ε from .01 to .9, η from .01 to 100)"
    return exactly(spread < 1e-9, f"regret after 2000 episodes, of {choices}, differs by {spread:.1g}")


@claim("RLSVI essentially maintains the optimal policy once it discovers the rewarding state", "section 6.1.1")
def maintains(frame: pl.DataFrame) -> Verdict:
    """Most seeds lose at most a tenth of the attainable reward from the tenth reward to episode 2000."""
    found = _runs(frame, **RLSVI)
    lost = np.array([_lost(frame, run["seed"], run["time"], run["best"]) for run in found.iter_rows(named=True)])
    keep = proportion(int((lost <= 0.1).sum()), len(lost))
    last, count = int(found["last_mistake"].to_numpy().max()), int(found["episodes"][0])
    return at_least(
        keep,
        0.5,
        f"a share of {keep} of the seeds (median loss {np.median(lost):.2g}); the last episode whose policy is "
        f"not optimal is {last:,} of {count:,}",
    )


def _lost(frame: pl.DataFrame, seed: int, time: float, best: float) -> float:
    if not time < 2000:
        return 1.0
    episode, regret = _first_2000(frame, seed)
    at = int(np.searchsorted(episode, time))
    return float((regret[-1] - regret[at]) / max((episode[-1] - episode[at]) * best, 1e-300))


def _first_2000(frame: pl.DataFrame, seed: int) -> tuple[Floats, Floats]:
    at, regret = learning_curves(frame.filter(pl.col("episode") <= 2000), agent="RLSVI", seed=seed)
    return at, regret[0]


@claim("RLSVI exploits the generalisation of the basis functions to learn much faster", "section 6.1.1")
def generalises(frame: pl.DataFrame) -> Verdict:
    """Ten rewards come at least twice as fast as for RLSVI with a table."""
    basis = _runs(frame, **RLSVI)["time"].to_numpy()
    table = frame.filter(pl.col("limit").is_not_null())["time"].to_numpy()
    faster = ratio_of_medians(table, basis)
    ours, theirs = bootstrap(median, basis), bootstrap(median, table)
    words = f"ten rewards after {ours} episodes, with a table after {theirs}"
    return at_least(faster, 2.0, f"{words}: {faster} times as fast")


@claim(
    "RLSVI explores efficiently what would take any dithering strategy at least 10¹⁵ episodes",
    "sections 6 and 6.1.1",
    headline=True,
)
def beats_dithering(frame: pl.DataFrame) -> Verdicts:
    """The exact expectation of dithering's first reward, 2ᴺ⁻¹/p*, is at least 10¹⁵ episodes, and at least a
    million times the time to RLSVI's tenth.
    """
    expected = expected_first_reward(N)
    faster = bootstrap(lambda times: expected / median(times), _runs(frame, **RLSVI)["time"].to_numpy())
    yield exactly(expected >= 1e15, f"dithering takes {expected:.3g} episodes to its first reward")
    yield at_least(faster, 1e6, f"{faster} times as long as RLSVI to its tenth")


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative expected regret of the first 2000 episodes and of all."""
    count = int(frame["episodes"].drop_nulls().to_numpy().max())
    figure, both = panels(2 if count > 2000 else 1, 3.8)
    for axes, end in zip(both, (2000, count), strict=False):
        for i, settings in enumerate((RLSVI, EPSILON)):
            at, regret = learning_curves(frame.filter(pl.col("episode") <= end), **settings)
            even = np.searchsorted(at, np.linspace(at[0], at[-1], 600))  # over all episodes
            few = np.unique(np.linspace(0, len(at) - 1, 500).astype(int) if end == 2000 else even)
            curves(axes, at[few], regret[:, few], str(settings["agent"]), i)
        limits = {"xlim": (0, end), "ylim": (0, 1.25 * success(N) * min(end, 2000))}
        key, title = "upper left" if end > 2000 else "best", f"first {end:,} episodes"
        labelled(axes, "episode", "cumulative expected regret", title, key, **limits)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Efficient exploration on a 50-chain",
    where="section 6.1.1, figure 2",
    caption=(
        "Cumulative expected regret of RLSVI (K = 10 coherent basis functions, λ = 1, σ = .1) and of LSVI with "
        "epsilon-greedy exploration: medians with bootstrap bands, and every run. Expected regret is V* minus the "
        "exact value of the policy played."
    ),
    quick={"episodes": 2000, "seeds": 5},
    paper={"episodes": 1_000_000, "seeds": 5},
)
