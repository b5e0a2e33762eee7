"""Theorem 1 put to the test: regret against √(H³SAT), and tabula rasa algorithms beside RLSVI."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.paper.claim import Verdict, at_most, between, claim, claims_in, worst_of
from rlsvi.paper.drawing import LOGARITHMIC, Picture, labelled, legend, panels, style, ticks_at
from rlsvi.paper.figure import Figure
from rlsvi.paper.theory import prior_regret as prior
from rlsvi.paper.theory import theorem_bound, theorem_dithering
from rlsvi.paper.theory.prior_regret import Size
from rlsvi.paper.theory.theorem_bound import FEW, SCALED, far, in_states, named, shares
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK, LINES
from rlsvi.study.statistics import paired_ratio

SIZES = [(3, 2, 3), (5, 2, 3), (3, 3, 3), (3, 8, 3), (10, 3, 3), (3, 2, 5), (3, 3, 5), (5, 3, 5), (5, 2, 8)]
STATES = [2, 3, 4, 6, 8, 12]
COMPARED = [(3, 3, 5), (5, 3, 5), (10, 3, 5)]


def jobs(
    sizes: list[Size],
    states: list[int],
    compared: list[Size],
    episodes: int,
    long: int,
    chains: list[int],
    longer: list[int],
    more: int,
    seeds: int,
) -> list[Job]:
    """Long runs of RLSVI as the theorem has it and of controls, and of optimists over states; others at some.

    more : times as many seeds for RLSVI and UCRL2 over states, whose ratio is judged.
    chains, longer : lengths of chains, and those of RLSVI alone: see theorem_dithering.
    """
    found = prior.prior_jobs(prior.THEOREM, 1.0, sizes, long, seeds)
    for agent, scale in prior.CONTROLS.items():
        found += prior.prior_jobs(agent, scale, sizes, long, seeds)
    found += prior.prior_jobs(prior.FALLING, prior.HALVED, sizes[:3], long, seeds)
    for agent in SCALED:
        many = more * seeds if agent in (prior.THEOREM, "UCRL2") else seeds
        found += prior.prior_jobs(agent, 1.0, [(S, *FEW) for S in states], long, many)
    found += theorem_dithering.chain_jobs(chains, longer, seeds)
    for agent, scales in {prior.THEOREM: (1.0,), **prior.SCALES}.items():
        for scale in scales:
            found += prior.prior_jobs(agent, scale, compared, episodes, seeds)
    return found


def near(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the shorter runs, of all agents at all scales."""
    return frame.filter(pl.col("episodes") == pl.col("episodes").min())


@claim("RLSVI bears a close connection to PSRL", "section 4", near)
def near_psrl(frame: pl.DataFrame) -> Verdict:
    """At its best σ, of some, its regret is within a factor of two of PSRL's at every size."""
    rows = []
    for size in prior.sizes_of(frame, "PSRL"):
        ours, best = prior.tuned(frame, "RLSVI", size)
        share = paired_ratio(ours, prior.final(frame, "PSRL", size))
        words = f"at {named(size)} RLSVI's regret is {share} times PSRL's"
        rows.append((between(share, 0.5, 2.0, words), (named(size), prior.told_scale("RLSVI", best), f"{share}")))
    return worst_of(("size", "best σ², λ = 1", "RLSVI's regret over PSRL's"), rows)


@claim(
    "There are intelligent exploration schemes for tabula rasa learning that are provably efficient",
    "section 3",
    near,
)
def efficient(frame: pl.DataFrame) -> Verdict:
    """Each of PSRL, Gaussian PSRL, UCRL2 and UCBVI loses an episode, at the best of some scales, over the
    second half at most a fifth of what it loses over the first ten.
    """
    size, rows = _middle_size(frame), []
    for agent in ("PSRL", "Gaussian PSRL", "UCRL2", "UCBVI"):
        regret, best = prior.tuned(frame, agent, size)
        at, curve = prior.curves_of(frame, agent, size, best)
        middle, early = (int(np.searchsorted(at, x)) for x in (at[-1] / 2, 10))
        late = (curve[:, -1] - curve[:, middle]) / (at[-1] - at[middle])
        share = paired_ratio(late, curve[:, early] / at[early])
        at_best, at_one = (f"{values.mean():,.0f}" for values in (regret, prior.final(frame, agent, size)))
        cells = (agent, prior.told_scale(agent, best), at_best, at_one, f"{share}")
        rows.append((at_most(share, 0.2, f"at {named(size)} {agent} loses in the end {share} of that"), cells))
    ours, best = prior.tuned(frame, "RLSVI", size)
    theirs = f"{prior.final(frame, prior.THEOREM, size).mean():,.0f}"
    remark = ("RLSVI", prior.told_scale("RLSVI", best), f"{ours.mean():,.0f}", theirs, "")
    headings = ("agent", "best scale", "regret there", "regret as its theory has it", "share lost in the end")
    return worst_of(headings, [*rows, (None, remark)])


def _middle_size(frame: pl.DataFrame) -> Size:
    sizes = prior.sizes_of(frame, "PSRL")
    return sizes[len(sizes) // 2]


def draw(frame: pl.DataFrame) -> Picture:
    """Regret over its bound with the controls, over states, of all agents at one size, and on the chain."""
    figure, (first, second, third, fourth) = panels(2, 4.4, rows=2)
    _ratios(first, far(frame))
    _states(second, far(frame))
    _agents(third, near(frame))
    theorem_dithering.draw_chains(fourth, theorem_dithering.on_chains(frame))
    return figure


def _ratios(axes: Axes, frame: pl.DataFrame) -> None:
    for i, size in enumerate(prior.sizes_of(frame, prior.RANDOM)):
        at, share = shares(frame, size)
        colour, dashes = COLOURS[i % len(COLOURS)], LINES[i // len(COLOURS)]
        axes.plot(at, share.mean(axis=0), color=colour, linestyle=dashes, linewidth=2, label=named(size))
    thin = {**prior.CONTROLS, prior.FALLING: prior.HALVED}
    for (agent, scale), dashes in zip(thin.items(), LINES[1:], strict=True):
        for i, size in enumerate(prior.sizes_of(frame, agent)):
            at, share = shares(frame, size, agent, scale)
            label = agent if i == 0 else None
            axes.plot(at, share.mean(axis=0), color=INK, linestyle=dashes, linewidth=0.7, label=label)
    labelled(axes, "episodes", "regret / √(H³SAT)", "RLSVI, the theorem's parameters", **LOGARITHMIC)
    axes.set_ylim(top=10 * axes.get_ylim()[1])
    legend(axes, ncols=2)


def _states(axes: Axes, frame: pl.DataFrame) -> None:
    for i, agent in enumerate(SCALED):
        S, regrets = in_states(frame, agent)
        mean = np.array([values.mean() for values in regrets])
        error = np.array([values.std() / max(len(values) - 1, 1) ** 0.5 for values in regrets])
        axes.errorbar(S, mean, error, **style(i), label=agent)
    regret, title = f"regret of {frame['episodes'][0]:,} episodes", "A = {}, H = {}".format(*FEW)
    labelled(axes, "states S", regret, title, **LOGARITHMIC)
    ticks_at(axes, S)
    axes.set_ylim(top=10 * axes.get_ylim()[1])
    legend(axes)


def _agents(axes: Axes, frame: pl.DataFrame) -> None:
    size = _middle_size(frame)
    at, regret = prior.curves_of(frame, prior.THEOREM, size)
    axes.plot(at, regret.mean(axis=0), color=INK, linewidth=2, label=prior.THEOREM)
    for i, agent in enumerate(prior.SCALES):
        _, best = prior.tuned(frame, agent, size)
        for scale, dashes in {best: "-", 1.0: (0, (1, 1.5))}.items():
            if scale in prior.SCALES[agent]:
                at, regret = prior.curves_of(frame, agent, size, scale)
                label = f"{agent}, {scale:g}" if agent != "PSRL" else agent
                axes.plot(at, regret.mean(axis=0), color=COLOURS[i], linestyle=dashes, linewidth=2, label=label)
    title = f"{named(size)}: best scales, and 1 (dotted)"
    labelled(axes, "episodes", "regret", title, "upper left", **LOGARITHMIC)


FIGURE = Figure.of(
    __name__,
    title="Theorem 1: regret on MDPs of its prior",
    where="section 5",
    caption=(
        "Regret on MDPs drawn from the prior of Theorem 1, mean over MDPs: over √(H³SAT) at the theorem's λ and"
        " σ, where it rises while the prior outweighs the data and then falls, while that of random play and of"
        " LSVI with a constant ε, which is linear, rises for ever. Beside it regret against S as each "
        "agent's theory has it; below RLSVI (its scale is σ²) and tabula rasa algorithms at the best of some "
        "scales and at 1 (dotted), and what RLSVI and dithering lose on the chain of Example 1."
    ),
    quick={
        "sizes": SIZES[:4],
        "states": STATES[:5],
        "compared": COMPARED[:2],
        "episodes": 5_000,
        "long": 100_000,
        "chains": [3, 5, 7],
        "longer": [12, 16],
        "more": 2,
        "seeds": 5,
    },
    paper={
        "sizes": SIZES,
        "states": STATES,
        "compared": COMPARED,
        "episodes": 100_000,
        "long": 400_000,
        "chains": [3, 5, 7, 9, 11],
        "longer": [16, 24, 32, 48],
        "more": 20,
        "seeds": 10,
    },
    claims=[*claims_in(theorem_bound, theorem_dithering), near_psrl, efficient],
)
