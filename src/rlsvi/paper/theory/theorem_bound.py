"""Theorem 1 and its controls: whether regret / √(H³SAT) is bounded, and how regret scales in S."""

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, Verdicts, at_least, at_most, claim, worst_of
from rlsvi.paper.theory import prior_regret as prior
from rlsvi.paper.theory.prior_regret import THEOREM, Size
from rlsvi.study.bootstrap import percentiles
from rlsvi.study.means import paired_ratio
from rlsvi.study.statistics import Interval, bootstrap
from rlsvi.theory import proof_bound, regret_shape

FEW = 2, 2  # actions and horizon of the sizes that differ in S alone: a burn-in that ends
DRAWS = 2000  # of the bootstrap
SCALED = (THEOREM, "UCRL2", "UCBVI", "PSRL")


def far(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the long runs."""
    return frame.filter(pl.col("episodes") == pl.col("episodes").max())


in_section = partial(claim, where="section 5", rows=far)


def named(size: Size) -> str:
    """A size in words."""
    return "S{}A{}H{}".format(*size)


def shares(frame: pl.DataFrame, size: Size, agent: str = THEOREM, scale: float = 1.0) -> tuple[Floats, Floats]:
    """Episodes from 10 on, and regret on every MDP as a share of the theorem's shape."""
    at, regret = prior.curves_of(frame, agent, size, scale)
    later = at >= 10
    return at[later], regret[:, later] / regret_shape(*size, at[later] * size[2])


@in_section("Theorem 1: the expected regret is at most Õ(√(H³SAT))", headline=True)
def bounded(frame: pl.DataFrame) -> Verdict:
    """Regret / √(H³SAT), of means over MDPs, does not grow over the last factor of four of T, at any size: it is
    past its peak.
    """
    rows = []
    for size in prior.sizes_of(frame, THEOREM):
        at, share = shares(frame, size)
        rise, worst = prior.growth(frame, THEOREM, size), int(share.mean(axis=0).argmax())
        cells = (named(size), f"{share[:, worst].mean():.2f}", f"{at[worst]:,.0f}", f"{rise}")
        words = f"at {named(size)} the ratio is multiplied by {rise} over the last factor of four"
        rows.append((at_most(rise, 1.0, words), cells))
    return worst_of(("size", "largest ratio", "at episode", "times, over the last factor of four"), rows)


@in_section("The shape of that bound in S, A and H is √(H³SA)")
def over_sizes(frame: pl.DataFrame) -> Verdict:
    """The largest regret / √(H³SAT) over T from 10 episodes on grows with none of S, A and H: its exponent in
    each is at most 0, over all sizes.
    """
    sizes = prior.sizes_of(frame, THEOREM)
    found = [shares(frame, size)[1] for size in sizes]
    rng = np.random.default_rng(0)
    drawn = [_drawn(share, rng) for share in found]
    peaks = np.array([share.mean(axis=0).max() for share in found])
    powers = _powers(sizes, peaks, np.stack([draws.max(axis=1) for draws in drawn]))
    ends = np.array([share.mean(axis=0)[-1] for share in found])
    last = _powers(sizes, ends, np.stack([draws[:, -1] for draws in drawn]))
    rows = [
        (
            at_most(power, 0.0, f"the peak grows as {name} to the power {power}"),
            (name, f"{power}", f"{last[name]}"),
        )
        for name, power in powers.items()
    ]
    decided = worst_of(("grows with", "largest ratio, to the power", "ratio at the last T, to the power"), rows)
    return decided.told("", f"; at {len(sizes)} sizes it is from {peaks.min():.2f} to {peaks.max():.2f}")


def _drawn(share: Floats, rng: np.random.Generator) -> Floats:
    """Means of curves over MDPs that are drawn again, (DRAWS, points); of one MDP they say nothing."""
    runs = len(share)
    times = rng.multinomial(runs, np.full(runs, 1 / runs), size=DRAWS)
    return np.asarray(times @ share / runs) if runs > 1 else np.full((DRAWS, share.shape[1]), np.nan)


def _powers(sizes: list[Size], values: Floats, drawn: Floats) -> dict[str, Interval]:
    """Exponents of S, A and H in values of each size, with those of draws, (sizes, DRAWS)."""
    X = np.column_stack([np.ones(len(sizes)), np.log(np.array(sizes, dtype=np.float64))])
    slopes, spread = (np.linalg.pinv(X)[1:] @ np.log(part) for part in (values, drawn))
    known = bool(np.isfinite(spread).all())
    return {
        name: percentiles(float(slope), draws, draws, 0.95) if known else Interval(float(slope), -np.inf, np.inf)
        for name, slope, draws in zip("SAH", slopes, spread, strict=True)
    }


@in_section("The rule for Theorem 1 can say no", kind="ours")
def controls(frame: pl.DataFrame) -> Verdicts:
    """It says so to two regrets that are linear in T by construction, random play's and that of LSVI with ε =
    .1: the ratio grows over the last factor of four of T, at every size.
    """
    for agent, scale in prior.CONTROLS.items():
        found = {size: prior.growth(frame, agent, size, scale) for size in prior.sizes_of(frame, agent)}
        least = min(found, key=lambda size: found[size].low)
        yield at_least(found[least], 1.0, f"{agent}: at least times {found[least]}, at {named(least)}")
    last = in_states_sizes(frame, "UCBVI")[-1]
    yield f"UCBVI, provably efficient: times {prior.growth(frame, 'UCBVI', last).value:.2f} at {named(last)}"


@in_section(
    "RLSVI can be provably efficient, in contrast to dithering approaches, which are provably inefficient",
    headline=True,
)
def dithering(frame: pl.DataFrame) -> Verdict:
    """On MDPs of the prior too the ratio grows over the last factor of four of T for LSVI with ε = 100 / (100 +
    l) in episode l, at every size tried; what is proved, and shown, of the chain is in the figure dithering.
    """
    rows = []
    for size in prior.sizes_of(frame, prior.FALLING):
        rise = prior.growth(frame, prior.FALLING, size, prior.HALVED)
        share = paired_ratio(
            prior.final(frame, prior.FALLING, size, prior.HALVED), prior.final(frame, THEOREM, size)
        )
        words = f"at {named(size)} the ratio is multiplied by {rise}, its regret is {share} of RLSVI's"
        rows.append((at_least(rise, 1.0, words), (named(size), f"{rise}", f"{share}")))
    return worst_of(("size", "times, over the last factor of four", "share of RLSVI's regret"), rows)


@in_section("The proof arrives at 2SAH + Σ K log(T + K) + H√(SAHT log T), up to a constant", kind="proof")
def as_the_proof_says(frame: pl.DataFrame) -> Verdict:
    """With the constant 1, at every size and every T from 10 episodes on."""
    found = {}
    for size in prior.sizes_of(frame, THEOREM):
        at, regret = prior.curves_of(frame, THEOREM, size)
        share = (regret / proof_bound(*size, at * size[2]))[:, at >= 10]
        found[size] = bootstrap(lambda drawn: float(drawn.mean()), share[:, int(share.mean(axis=0).argmax())])
    worst = max(found, key=lambda size: found[size].high)
    words = f"of {len(found)} sizes the regret is at most {found[worst]} of it, at {named(worst)}"
    return at_most(found[worst], 1.0, words)


def in_states_sizes(frame: pl.DataFrame, agent: str) -> list[Size]:
    """The sizes of an agent at few actions and periods, by their number of states."""
    return [size for size in prior.sizes_of(frame, agent) if size[1:] == FEW]


def in_states(frame: pl.DataFrame, agent: str) -> tuple[Floats, list[Floats]]:
    """The numbers of states at few actions and periods, and the regret on every MDP of each."""
    sizes = in_states_sizes(frame, agent)
    return np.array([float(size[0]) for size in sizes]), [prior.final(frame, agent, size) for size in sizes]


def exponent(states: Floats, regrets: list[Floats], others: list[Floats] | None = None) -> Interval:
    """The exponent of S in the mean regret over MDPs, or in its ratio to another's on the same MDPs.

    By least squares on logarithms, with the interval of a bootstrap over MDPs; no regret at all has no exponent.
    """
    x = np.log(states) - np.log(states).mean()
    rng = np.random.default_rng(0)
    every = [np.arange(len(values))[None] for values in regrets]
    drawn = [rng.integers(len(values), size=(DRAWS, len(values))) for values in regrets]

    def slopes(at: list[Any]) -> Floats:
        cells = [np.stack([v[i].mean(axis=1) for v, i in zip(c, at, strict=True)]) for c in (regrets, others) if c]
        known = np.min([part.min(axis=0) for part in cells], axis=0) > 0
        logs = [np.log(np.where(known, part, 1.0)) for part in cells]
        return np.where(known, x @ (logs[0] - (logs[1] if others else 0.0)) / (x @ x), np.inf)

    value, found = float(slopes(every)[0]), slopes(drawn)
    if min(len(values) for values in regrets) < 2 or not np.isfinite(value):
        return Interval(value, -np.inf, np.inf)
    return percentiles(value, np.where(np.isfinite(found), found, -np.inf), found, 0.95)


@in_section("These scalings better those of optimistic algorithms, Õ(√(H³S²AT))")
def better_scaling(frame: pl.DataFrame) -> Verdict:
    """Over UCRL2's, both at their theory's parameters, RLSVI's regret does not grow with S."""
    S, ours = in_states(frame, THEOREM)
    found = exponent(S, ours, in_states(frame, "UCRL2")[1])
    last = int(S[-1]), *FEW
    table = [
        (agent, f"{exponent(*in_states(frame, agent))}", f"{prior.growth(frame, agent, last).value:.2f}")
        for agent in SCALED
    ]
    headings = ("agent", "regret grows as S to the power", "regret / √T, over the last factor of four (2: linear)")
    words = f"RLSVI's regret over UCRL2's grows as S to the power {found}; the bounds say −1/2"
    return at_most(found, 0.0, words)._replace(table=(headings, *table))
