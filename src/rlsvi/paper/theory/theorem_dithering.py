"""Dithering is provably inefficient: what it loses on the chain of Example 1 and on copies, where RLSVI learns."""

import math
from itertools import product

import polars as pl
from matplotlib.axes import Axes

from rlsvi.core.compile import Floats
from rlsvi.paper.chain.learning import dithering_bound, expected_first_reward
from rlsvi.paper.claim import Part, Verdict, at_least, claim, mean_se, worst_of
from rlsvi.paper.drawing import LOGARITHMIC, labelled, legend, ticks_at
from rlsvi.paper.results import cells, having, rows_with
from rlsvi.paper.theory import prior_regret as prior
from rlsvi.paper.theory.chain_copies import copied_regret
from rlsvi.paper.theory.conjecture_fits import left_out
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK, LINES
from rlsvi.study.statistics import mean, power_laws

OURS = "RLSVI", 0.01  # at the scale σ² of the paper's chain, λ = 1
DITHERERS = {prior.FALLING: prior.HALVED, prior.DITHERING: 0.1}  # the episode in which ε is 1/2, and ε
NAMES = {prior.FALLING: "LSVI, falling ε", prior.DITHERING: "LSVI, ε = .1"}
COPIES = (1, 2)
EXPECTED = 10  # times the episodes that random play takes to the first reward, on average
LONG = 10_000  # episodes of RLSVI on chains that dithering cannot learn
DRAWN = 10  # times as many seeds: the time to a first reward is geometric
on_chains = rows_with("copies")


def chain_jobs(lengths: list[int], longer: list[int], seeds: int) -> list[Job]:
    """Dithering and RLSVI on the chain and its copies, and RLSVI alone on longer chains."""
    found = []
    for copies, N in product(COPIES, [*lengths, *longer]):
        limit = LONG if N in longer else math.ceil(EXPECTED * expected_first_reward(N))
        agents = {OURS[0]: OURS[1], **({} if N in longer else DITHERERS)}
        for agent, scale in agents.items():
            size = {"length": N, "copies": copies, "limit": limit}
            cost, count = 1e-6 * limit * N * copies**2, seeds if agent == OURS[0] else DRAWN * seeds
            for seed in range(count):
                found.append(Job.of(copied_regret, cost, agent=agent, scale=scale, **size, seed=seed))
    return found


def losses(frame: pl.DataFrame, agent: str, copies: int) -> dict[int, Floats]:
    """What an agent loses on chains of each length, in every run."""
    return cells(having(frame, agent=agent, copies=copies), "length", value="lost")


@claim(
    "RLSVI can be provably efficient, in contrast to dithering approaches, which are provably inefficient",
    "section 5",
    on_chains,
    headline=True,
)
def dithering(frame: pl.DataFrame) -> Verdict:
    """On the chain of Example 1, and with two copies of its states and actions, LSVI with ε = .1 and with ε = 100
    / (100 + l) in episode l loses at least the 2ᴺ⁻¹ − 1 that is proved, on average, at every length N; a power of
    N predicts what RLSVI with a table loses at lengths left out better than an exponential does.
    """
    rows: list[Part] = []
    powers: list[float] = []
    for copies in COPIES:
        times = ", doubled" if copies > 1 else ""
        for agent in DITHERERS:
            for N, lost in reversed(losses(frame, agent, copies).items()):
                share = mean(lost / (dithering_bound(N) - 1))
                words = f"{NAMES[agent]} loses {share} times 2ᴺ⁻¹ − 1 at N = {N}{times}"
                rows.append((at_least(share, 1.0, words), (NAMES[agent], f"{copies}", f"{N}", mean_se(lost))))
        ours = losses(frame, OURS[0], copies)
        less, (power,) = left_out(ours), power_laws([[N] for N in ours], list(ours.values()))
        words = f"for RLSVI a power of N has an error lower by {less}{times}"
        powers.append(power.value)
        rows.append((at_least(less, 0.0, words), ("RLSVI: power of N", f"{copies}", "", f"{power}")))
        rows.extend((None, ("RLSVI", f"{copies}", f"{N}", mean_se(lost))) for N, lost in ours.items())
    found = worst_of(("agent", "copies", "N", "loses"), rows)
    return found.told("", f"; RLSVI loses N to the power {powers[0]:.1f}")


def draw_chains(axes: Axes, frame: pl.DataFrame) -> None:
    """What agents lose on the chain, over its length, with the bound for dithering."""
    for i, agent in enumerate((OURS[0], *DITHERERS)):
        for copies, dashes in zip(COPIES, LINES, strict=False):
            found = losses(frame, agent, copies)
            label = NAMES.get(agent, agent) if copies == 1 else None
            lost = [values.mean() for values in found.values()]
            axes.plot(list(found), lost, color=COLOURS[i], linestyle=dashes, linewidth=2, label=label)
    at = sorted(losses(frame, prior.DITHERING, 1))
    axes.plot(at, [dithering_bound(N) - 1 for N in at], "--", color=INK, linewidth=1, label="$2^{N-1} - 1$")
    title = "the chain, and with two copies of all"
    labelled(axes, "chain length N", "regret", title, **LOGARITHMIC)
    ticks_at(axes, sorted(losses(frame, OURS[0], 1)))
    axes.set_ylim(top=20 * axes.get_ylim()[1])
    legend(axes, loc="upper left")
