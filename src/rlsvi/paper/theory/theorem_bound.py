"""Theorem 1 and its controls: whether regret / √(H³SAT) is bounded, and how regret scales in S."""

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, at_least, at_most, claim, worst_of
from rlsvi.paper.results import having
from rlsvi.paper.theory import prior_regret as prior
from rlsvi.paper.theory.prior_regret import THEOREM, Size
from rlsvi.study.statistics import Interval, bootstrap, paired_ratio, percentiles
from rlsvi.theory import proof_bound, regret_shape, theorem_parameters

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
    """Over the bound of the proof, which has this shape and its logarithms, regret is at most 1 at every size and
    every T from 10 episodes on, and past the burn-in of SAλσ² episodes, over the last factor of four of T, it
    does not grow at any size.
    """
    rows: list[Part] = []
    for size in prior.sizes_of(frame, THEOREM):
        largest, rise = over_proof(frame, size)
        lam, sigma = theorem_parameters(size[0], size[2])
        burn_in = f"{size[0] * size[1] * lam * sigma**2:,.0f}"
        below = at_most(largest, 1.0, f"at {named(size)} regret is up to {largest} of the proof's bound")
        grows = at_most(rise, 1.0, f"at {named(size)} its share of the proof's bound is multiplied by {rise}")
        rows.append((below, (named(size), burn_in, f"{largest}", f"{rise}")))
        rows.append((grows, rows[-1][1]))
    found = worst_of(("size", "SAλσ²", "largest share of the bound", "times, over the last factor of four"), rows)
    exponents = [(f"exponent of {name} in it", "", f"{power}", "") for name, power in _peaks(frame).items()]
    kept = (found.table[0], *found.table[1::2])
    return found._replace(table=(*kept, ("largest regret / √(H³SAT):", "", "", ""), *exponents))


def over_proof(frame: pl.DataFrame, size: Size) -> tuple[Interval, Interval]:
    """Regret over the proof's bound with a constant of 1, of means over MDPs: the largest, and how it grows.

    The second is what it is multiplied by over the last factor of four of T.
    """
    at, regret = prior.curves_of(frame, THEOREM, size)
    bound = proof_bound(*size, at * size[2])
    share = (regret / bound)[:, at >= 10]
    largest = bootstrap(lambda drawn: float(drawn.mean()), share[:, int(share.mean(axis=0).argmax())])
    rise = bound[-1] / bound[prior.quarter(at)]
    grown = paired_ratio(regret[:, -1], regret[:, prior.quarter(at)])
    return largest, Interval(*(float(x / rise) for x in grown))


def _peaks(frame: pl.DataFrame) -> dict[str, Interval]:
    """Exponents of S, A and H in the largest regret / √(H³SAT) over T, which is that of a transient."""
    sizes = prior.sizes_of(frame, THEOREM)
    found = [shares(frame, size)[1] for size in sizes]
    rng = np.random.default_rng(0)
    peaks = np.array([share.mean(axis=0).max() for share in found])
    return _powers(sizes, peaks, np.stack([_drawn(share, rng).max(axis=1) for share in found]))


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
def controls(frame: pl.DataFrame) -> Verdict:
    """It says so to two regrets that are linear in T by construction, random play's and that of LSVI with ε =
    .1: the ratio grows over the last factor of four of T, at every size.
    """
    rows: list[Part] = []
    tried = [*prior.CONTROLS.items(), (prior.FALLING, prior.HALVED), ("UCBVI", 1.0)]
    for agent, scale in tried:
        for size in prior.sizes_of(frame, agent):
            rise = prior.growth(frame, agent, size, scale)
            share = paired_ratio(prior.final(frame, agent, size, scale), _ours(frame, agent, size))
            verdict = at_least(rise, 1.0, f"{agent} at {named(size)}: the ratio is multiplied by {rise}")
            row = agent, named(size), f"{rise.value:.2f}", f"{share}"
            rows.append((verdict if agent in prior.CONTROLS else None, row))
    return worst_of(("agent", "size", "times, over the last factor of four", "of RLSVI's regret"), rows)


def _ours(frame: pl.DataFrame, agent: str, size: Size) -> Floats:
    """RLSVI's regret at the theorem's parameters, on the MDPs that another agent has met."""
    S, A, H = size
    met = having(frame, agent=agent, states=S, actions=A, horizon=H)["seed"].unique()
    return prior.final(frame.filter(pl.col("seed").is_in(met.implode())), THEOREM, size)


@in_section("The proof arrives at 2SAH + Σ K log(T + K) + H√(SAHT log T), up to a constant", kind="proof")
def as_the_proof_says(frame: pl.DataFrame) -> Verdict:
    """With the constant 1, at every size and every T from 10 episodes on."""
    found = {size: over_proof(frame, size)[0] for size in prior.sizes_of(frame, THEOREM)}
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
    """Over UCRL2's, both at their theory's parameters, RLSVI's regret does not grow with S. UCBVI is told beside
    it and not compared, as its regret is still almost linear.
    """
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
