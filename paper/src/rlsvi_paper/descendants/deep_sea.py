"""DeepSea: episodes to learn against its size.

Uniform play finds the treasure once in 2^N episodes, on average. Dithering needs at least about as many: once its
greedy actions avoid the cost of moving right, only random ones lead to the treasure.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import LSVI, PSRL, RLSVI, EnsembleRLSVI, EpsilonGreedy
from rlsvi.agents.agent import Agent
from rlsvi.core.compile import Floats
from rlsvi.simulate.finite import History
from rlsvi.study.experiment import Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import bootstrap, median, power_law
from rlsvi_paper.chain.learning import until_learned
from rlsvi_paper.claim import (
    Part,
    Parts,
    Verdict,
    Verdicts,
    all_of,
    at_least,
    at_most,
    choice,
    claim,
    share_of,
    worst_of,
)
from rlsvi_paper.degrees import hardly_any, most, much
from rlsvi_paper.drawing import LOGARITHMIC, Picture, labelled, legend, panels, runs, ticks_at
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, having, rows_where, seeds_of, times_as_much

# lam and sigma by whether the sea is stochastic, chosen at N = 10
CHOSEN = {False: (10.0, 0.001), True: (1.0, 0.3)}
RHO = 1e-4  # the variance of the noise of agnostic functions
TABLE, COHERENT, AGNOSTIC = "RLSVI, table", "RLSVI, coherent, K = N", "RLSVI, agnostic, K = N"
PLAIN, ENSEMBLE = "RLSVI, table, λ = 1, σ = .1", "ensemble of 20, table"
POSTERIOR, DITHERING, DITHERING_MORE = "PSRL", "ε-greedy, ε = .1", "ε-greedy, ε = .5"
TIME = {False: "episodes until the tenth treasure", True: "episodes until the tenth good policy"}
LEARNING = TABLE, PLAIN, COHERENT, AGNOSTIC, ENSEMBLE
LEARNED_SIZE, UNLEARNED_SIZE = 4, 20  # the sizes up to which dithering is to learn, and from which on it is not


class Diver(NamedTuple):
    """An agent, given lam, sigma and its seed, RLSVI unless told otherwise, and the basis it uses."""

    agent: Callable[[float, float, int], Agent] = lambda lam, sigma, seed: RLSVI(lam=lam, sigma=sigma, seed=seed)
    features: bool = False
    rho: float | None = None


DIVERS = {
    TABLE: Diver(),
    PLAIN: Diver(lambda lam, sigma, seed: RLSVI(lam=1.0, sigma=0.1, seed=seed)),
    COHERENT: Diver(features=True),
    AGNOSTIC: Diver(features=True, rho=RHO),
    ENSEMBLE: Diver(lambda lam, sigma, seed: EnsembleRLSVI(members=20, lam=lam, sigma=sigma, seed=seed)),
    POSTERIOR: Diver(lambda lam, sigma, seed: PSRL(alpha_P=0.01, reward_range=(-0.01, 1.0), seed=seed)),
    DITHERING: Diver(lambda lam, sigma, seed: LSVI(lam=1.0, explore=EpsilonGreedy(0.1), seed=seed)),
    DITHERING_MORE: Diver(lambda lam, sigma, seed: LSVI(lam=1.0, explore=EpsilonGreedy(0.5), seed=seed)),
}


def jobs(sizes: list[int], stochastic: list[int], short: list[int], limit: int, seeds: int) -> list[Job]:
    """Learning times in still and in stochastic seas.

    Agnostic functions, whose runs are long, are drawn up to N = 50. PSRL keeps every successor of every state: it
    plays at the smallest size alone, a few episodes, and in a still sea, for its rewards are bounded.

    Parameters
    ----------
    short
        The sizes of dithering, which learns in small seas alone. With ε = .5 they go up to N = 20: in
        larger seas even the optimal policy would hardly find ten treasures within the limit.
    """
    plan = [
        *((agent, N, False, limit) for agent in LEARNING for N in sizes if agent != AGNOSTIC or N <= 50),
        *((agent, N, True, limit) for agent in LEARNING if agent != PLAIN for N in stochastic),
        *((DITHERING, N, False, limit) for N in short),
        *((DITHERING_MORE, N, False, limit) for N in short if N <= UNLEARNED_SIZE),
        (POSTERIOR, sizes[0], False, limit // 25),
    ]
    return [
        Job.of(
            treasure_time,
            seconds(agent, N),
            agent=agent,
            size=N,
            stochastic=random,
            lam=CHOSEN[random][0],
            sigma=CHOSEN[random][1],
            limit=longest,
            seed=seed,
        )
        for (agent, N, random, longest), seed in product(plan, range(seeds))
    ]


def seconds(agent: str, size: int) -> float:
    """About how long a run takes, for progress bars."""
    return 8.0 if agent == POSTERIOR else 2e-6 * size**3 * (size / 10 if agent in (COHERENT, AGNOSTIC) else 1.0)


@experiment
def treasure_time(
    *, agent: str, size: int, stochastic: bool, limit: int, seed: int, lam: float, sigma: float
) -> Playing:
    """Episodes until the tenth that is worth half of the optimum or more, infinite if not within `limit`.

    In a still sea these are the episodes that find the treasure, whatever the policy: one that dithers can be
    worth less than half of the optimum though it is optimal otherwise. In a stochastic sea, where rewards are
    noisy, an episode is worth what its policy is.
    """
    problem_seed, agent_seed = seeds_of(seed)
    diver = DIVERS[agent]
    basis: dict[str, Any] = {"features": size, "rho": diver.rho} if diver.features else {}
    problem = problems.deep_sea(size, stochastic=stochastic, seed=problem_seed, **basis)
    player, best = diver.agent(lam, sigma, agent_seed), float(problem.solution.V[0, 0])

    def good(history: History) -> Any:
        return (history.regret if stochastic else history.realised) <= 0.5 * best

    return {"time": (yield from until_learned(player, problem, limit, good, regret=stochastic))}


def times_of(frame: pl.DataFrame, agent: str, stochastic: bool = False) -> dict[Any, Floats]:
    """The learning times of an agent, by the size."""
    return cells(having(frame, agent=agent, stochastic=stochastic), "size")


@claim(
    "RLSVI learns in a time that is polynomial in N, where uniform play takes 2ᴺ episodes to the first treasure",
    "section 7; Osband et al. (2019)",
    rows_where(agent=TABLE, stochastic=False),
    kind="ours",
)
def polynomial(frame: pl.DataFrame) -> Verdicts:
    """With a table, the median learning time is below 2ᴺ at every size, and the exponent of a power law in N is at
    most 3.
    """
    found, rows = times_of(frame, TABLE), list[Part]()
    for N, times in found.items():
        row = (f"{N}", f"{median(times):.0f}", f"{2.0**N:.2g}")
        rows.append((at_most(bootstrap(median, times), 2.0**N, f"{row[1]} episodes at N = {N}"), row))
    yield worst_of(("N", "episodes", "2ᴺ"), rows)
    exponent = power_law(list(found), list(found.values()))
    yield at_most(exponent, choice("an exponent of", 3.0, 2.0, 4.0), f"N to the power {exponent}")


def compared(frame: pl.DataFrame, agent: str, factor: float, words: str) -> Parts:
    """The median learning time of an agent as a multiple of that of RLSVI with a table, at every size."""
    theirs, ours = times_of(frame, agent), times_of(frame, TABLE)
    for N in theirs:
        share = times_as_much(theirs[N], ours[N], "median", frame["limit"][0])
        row = (f"{N}", f"{median(ours[N]):.0f}", f"{median(theirs[N]):.0f}", f"{share}")
        yield at_most(share, factor, f"at N = {N}, {words} takes {share} times as long"), row


@claim(
    "An ensemble of 20 members approximates posterior sampling well enough",
    "section 7; Lu and Van Roy (2017), Osband et al. (2019)",
    kind="ours",
    table=("N", "RLSVI, table", "an ensemble", "times as long"),
)
def ensembles(frame: pl.DataFrame) -> Parts:
    """Its median learning time is at most twice that of exact RLSVI at every size."""
    return compared(frame, ENSEMBLE, much(), "an ensemble")


@claim(
    "A coherent basis of N functions learns faster than a table",
    "section 6.1.1",
    kind="ours",
    table=("N", "RLSVI, table", "a coherent basis", "times as long"),
)
def coherent(frame: pl.DataFrame) -> Parts:
    """Its median learning time is lower at every size."""
    return compared(frame, COHERENT, 1.0, "a coherent basis")


@claim(
    "Dithering does not find the treasure of a deep sea, though it does that of a small one",
    "section 7; Osband et al. (2019)",
    rows_where(agent=DITHERING),
    kind="ours",
)
def dithering(frame: pl.DataFrame) -> Verdict:
    """With ε = .1, at most a tenth of the runs with N of 20 or more find ten treasures within the limit, and at
    least half of those with N of 4 or less.
    """
    found = {N: np.isfinite(times) for N, times in times_of(frame, DITHERING).items()}
    far, many = share_of(np.concatenate([learned for N, learned in found.items() if N >= UNLEARNED_SIZE]))
    near, few = share_of(np.concatenate([learned for N, learned in found.items() if N <= LEARNED_SIZE]))
    words = f"{many} runs learn within {frame['limit'][0]:,} episodes if N ≥ {UNLEARNED_SIZE}"
    verdict = all_of(at_most(far, hardly_any(), words), at_least(near, most(), f"{few} if N ≤ {LEARNED_SIZE}"))
    rows = [(f"{N}", share_of(learned)[1]) for N, learned in found.items()]
    return verdict._replace(table=(("N", "runs that learn"), *rows))


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times against the size, in still and in stochastic seas; in a still one with 2^N."""
    figure, both = panels(2, height=5.2)
    limit = float(frame["limit"].to_numpy().max())
    at = np.linspace(3, np.log2(limit), 50)
    both[0].plot(at, 2.0**at, "--", color=INK, linewidth=1, label="$2^N$")
    for axes, stochastic in zip(both, (False, True), strict=True):
        for index, agent in enumerate((*LEARNING, DITHERING_MORE, DITHERING, POSTERIOR)):
            mine = having(frame, agent=agent, stochastic=stochastic)
            if len(mine):
                runs(axes, cells(mine, "size"), float(mine["limit"].to_numpy().max()), agent, index)
        title = "stochastic" if stochastic else "deterministic"
        labelled(axes, "size N", TIME[stochastic], title, **LOGARITHMIC, ylim=(8, 1.5 * limit))
        ticks_at(axes, having(frame, stochastic=stochastic)["size"].unique().sort().to_list())
        legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    return figure


FIGURE = Figure.of(
    __name__,
    title="DeepSea at scale",
    where="section 7",
    caption=(
        "Episodes until the tenth that finds the treasure (λ = 10, σ = .001) or, in a stochastic sea, whose "
        "policy is worth half of the optimum (λ = 1, σ = .3). Dots are runs, triangles runs that did not learn "
        "within the limit (for PSRL, a 25th of it), lines medians, and thin dashes what uniform play takes to "
        "its first treasure, on average."
    ),
    quick={
        "sizes": [10, 20, 30],
        "stochastic": [10, 15],
        "short": [3, 4, 5, 6, 10, 20],
        "limit": 4000,
        "seeds": 5,
    },
    paper={
        "sizes": [10, 20, 50, 100],
        "stochastic": [10, 20, 30],
        "short": [3, 4, 5, 6, 7, 8, 10, 15, 20, 25],
        "limit": 5000,
        "seeds": 20,
    },
)
