"""Theorem 1 put to the test: regret against sqrt(H^3 S A T), and tabula rasa algorithms beside RLSVI."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Claim, Verdict, all_of, at_most, between
from rlsvi.paper.drawing import labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.prior_drawn import (
    SCALES,
    THEOREM,
    Size,
    curves_of,
    final,
    mean_of,
    prior_jobs,
    ratio_of,
    sizes_of,
    tuned,
)
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK, LINES
from rlsvi.study.statistics import Interval, bootstrap, line
from rlsvi.theory import proof_bound, regret_shape

SIZES: list[Size] = [
    (2, 2, 2),
    (3, 2, 3),
    (5, 2, 3),
    (3, 3, 5),
    (5, 3, 5),
    (5, 5, 5),
    (10, 3, 5),
    (5, 3, 10),
    (10, 3, 10),
]
COMPARED: list[Size] = [(3, 3, 5), (5, 3, 5), (10, 3, 5)]
BOUND = 2.0  # what stands for the constant and the logarithms of the theorem


def jobs(sizes: list[Size], compared: list[Size], episodes: int, seeds: int) -> list[Job]:
    """RLSVI as the theorem has it at all sizes, the others at some."""
    found = prior_jobs(THEOREM, 1.0, sizes, episodes, seeds)
    for agent, scales in SCALES.items():
        for scale in scales:
            found += prior_jobs(agent, scale, compared, episodes, seeds)
    return found


def named(size: Size) -> str:
    """A size in words."""
    return "S{}A{}H{}".format(*size)


def shares(frame: pl.DataFrame, size: Size) -> tuple[Floats, Floats, Floats]:
    """Episodes, and regret at the theorem's parameters as a share of the shape and of the proof's bound."""
    at, regret = curves_of(frame, THEOREM, size)
    at, regret = at[at >= 10], regret[:, at >= 10]
    T = at * size[2]
    return at, regret / regret_shape(*size, T), regret / proof_bound(*size, T)


def bounded(frame: pl.DataFrame) -> Verdict:
    """The largest regret / sqrt(H^3 S A T) over T at each size, of the mean over MDPs."""
    verdicts, told = [], []
    for size in sizes_of(frame, THEOREM):
        at, share, _ = shares(frame, size)
        worst = int(share.mean(axis=0).argmax())
        highest = mean_of(share[:, worst])
        verdicts.append(at_most(highest, BOUND, ""))
        told.append(f"{named(size)} {highest} at episode {at[worst]:,.0f}, {share[:, -1].mean():.2f} in the end")
    return all_of(*verdicts)._replace(measured=f"the largest ratio over T: {'; '.join(told)}")


def as_the_proof_says(frame: pl.DataFrame) -> Verdict:
    """The largest share of the proof's bound over T."""
    found = {}
    for size in sizes_of(frame, THEOREM):
        _, _, share = shares(frame, size)
        found[size] = mean_of(share[:, int(share.mean(axis=0).argmax())])
    worst = max(found, key=lambda size: found[size].high)
    return at_most(
        found[worst],
        1.0,
        f"of {len(found)} sizes the regret is at most {found[worst]} of it, at {named(worst)}",
    )


def better_scaling(frame: pl.DataFrame) -> Verdict:
    """The exponent of S in RLSVI's regret over UCRL2's, both at their theory's parameters."""
    sizes = sizes_of(frame, "UCRL2")
    S = np.log([size[0] for size in sizes])
    ours, theirs = ([final(frame, agent, size) for size in sizes] for agent in (THEOREM, "UCRL2"))
    stacked = [np.stack(pair) for pair in zip(ours, theirs, strict=True)]

    def exponent(drawn: list[Floats]) -> float:
        pairs = zip(stacked, drawn, strict=True)
        ratio = [part[0][i.astype(int)].mean() / part[1][i.astype(int)].mean() for part, i in pairs]
        return float(line(S, np.log(ratio))[0]) if min(ratio) > 0 and np.isfinite(ratio).all() else np.inf

    found: Interval = bootstrap(exponent, [np.arange(float(len(values))) for values in ours])
    each = ", ".join(
        f"{named(size)} {a.mean():,.0f} and {b.mean():,.0f}"
        for size, a, b in zip(sizes, ours, theirs, strict=True)
    )
    return at_most(
        found,
        0.0,
        f"RLSVI's regret over UCRL2's grows as S to the power {found}, the bounds say -1/2; their regret: {each}",
    )


def near_psrl(frame: pl.DataFrame) -> Verdict:
    """RLSVI's regret over PSRL's, each at its best parameters."""
    verdicts = []
    for size in sizes_of(frame, "PSRL"):
        ours, best = tuned(frame, "RLSVI", size)
        share = ratio_of(ours, final(frame, "PSRL", size))
        verdicts.append(between(share, 0.5, 2.0, f"{named(size)} {share}, sigma^2 = {best:g}"))
    decided = all_of(*verdicts)
    return decided._replace(measured=f"RLSVI's regret over PSRL's, lambda = 1: {decided.measured}")


def efficient(frame: pl.DataFrame) -> Verdict:
    """Regret an episode over the second half at the best scale, as a share of that of the first ten."""
    size = sorted(sizes_of(frame, "PSRL"))[len(sizes_of(frame, "PSRL")) // 2]
    verdicts = []
    for agent in ("PSRL", "Gaussian PSRL", "UCRL2", "UCBVI"):
        regret, best = tuned(frame, agent, size)
        at, curve = curves_of(frame, agent, size, best)
        middle, early = (int(np.searchsorted(at, x)) for x in (at[-1] / 2, 10))
        late = (curve[:, -1] - curve[:, middle]) / (at[-1] - at[middle])
        share = ratio_of(late, curve[:, early] / at[early])
        theory = final(frame, agent, size)
        told = f"{agent} {share}, regret {regret.mean():,.0f} at scale {best:g} and {theory.mean():,.0f} at 1"
        verdicts.append(at_most(share, 0.2, told))
    ours, theirs = tuned(frame, "RLSVI", size)[0].mean(), final(frame, THEOREM, size).mean()
    decided = all_of(*verdicts)
    words = f"{named(size)}: {decided.measured}; RLSVI {ours:,.0f} tuned and {theirs:,.0f} as the theorem has it"
    return decided._replace(measured=words)


def draw(frame: pl.DataFrame) -> Picture:
    """Regret over its bound at all sizes, and the regret of all agents at one."""
    figure, (left, right) = panels(2, 4.4)
    for i, size in enumerate(sizes_of(frame, THEOREM)):
        at, share, _ = shares(frame, size)
        colour, dashes = COLOURS[i % len(COLOURS)], LINES[i // len(COLOURS)]
        left.plot(at, share.mean(axis=0), color=colour, linestyle=dashes, linewidth=2, label=named(size))
    left.set_xscale("log")
    left.set_ylim(bottom=0)
    labelled(left, "episodes", "regret / sqrt(H^3 S A T)", "RLSVI, the theorem's parameters")
    legend(left, ncols=2)
    sizes = sorted(sizes_of(frame, "PSRL"))
    size = sizes[len(sizes) // 2]
    at, regret = curves_of(frame, THEOREM, size)
    right.plot(at, regret.mean(axis=0), color=INK, linewidth=2, label=THEOREM)
    for i, agent in enumerate(SCALES):
        _, best = tuned(frame, agent, size)
        for scale, line_style in {best: "-", 1.0: (0, (1, 1.5))}.items():
            if scale in SCALES[agent]:
                at, regret = curves_of(frame, agent, size, scale)
                label = f"{agent}, {scale:g}" if agent != "PSRL" else agent
                right.plot(
                    at, regret.mean(axis=0), color=COLOURS[i], linestyle=line_style, linewidth=2, label=label
                )
    right.set_xscale("log")
    right.set_yscale("log")
    labelled(right, "episodes", "regret", f"{named(size)}: best scales, and 1 (dotted)")
    legend(right, loc="upper left")
    return figure


FIGURE = Figure(
    name="theorem",
    title="Theorem 1: regret on MDPs of its prior",
    where="section 5",
    caption=(
        "Regret on MDPs drawn from the prior of Theorem 1 (all weights 1), mean over MDPs. Left: at the theorem's "
        "lambda and sigma over sqrt(H^3 S A T), for several numbers of states S, actions A and horizons H; it "
        "rises while RLSVI's prior outweighs the data, some S A lambda sigma^2 episodes. Right: RLSVI and tabula "
        "rasa algorithms at the scales of their theory (dotted) and at the best of some; the scale of RLSVI is "
        "sigma^2, with lambda = 1."
    ),
    sizes={
        "quick": {"sizes": SIZES, "compared": COMPARED[:2], "episodes": 5_000, "seeds": 5},
        "paper": {"sizes": SIZES, "compared": COMPARED, "episodes": 100_000, "seeds": 10},
    },
    jobs=jobs,
    claims=[
        Claim(
            "Theorem 1: the expected regret is at most O~(sqrt(H^3 S A T))",
            "section 5",
            f"the mean of regret / sqrt(H^3 S A T) is at most {BOUND:g} at every size from 10 episodes on",
            bounded,
        ),
        Claim(
            "The proof: at most 2SAH + sum K log(T + K) + H sqrt(SAHT log T), up to a constant",
            "section 5",
            "with the constant 1, at every size and every T from 10 episodes on",
            as_the_proof_says,
        ),
        Claim(
            "These scalings better those of optimistic algorithms, O~(sqrt(H^3 S^2 A T))",
            "section 5",
            "over UCRL2's, both at their theory's parameters, RLSVI's regret does not grow with S",
            better_scaling,
        ),
        Claim(
            "RLSVI bears a close connection to PSRL",
            "section 4",
            "at its best sigma, of some, its regret is within a factor of two of PSRL's at every size",
            near_psrl,
        ),
        Claim(
            "There are intelligent exploration schemes for tabula rasa learning that are provably efficient",
            "section 3",
            "each of PSRL, Gaussian PSRL, UCRL2 and UCBVI loses an episode, at the best of some scales, over the "
            "second half at most a fifth of what it loses over the first ten",
            efficient,
        ),
    ],
    draw=draw,
)
