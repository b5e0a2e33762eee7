"""Steps of the proofs of section 5 and appendix G that can be computed: each as a verdict, whatever the runs."""

import math

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.core.posterior import Posterior
from rlsvi.paper.claim import Verdict, exactly
from rlsvi.theory import crossings, theorem_parameters

LOW, HIGH = 1.0, 1.0  # prior weights of the rewards -1 and 0
S, H = 5, 5


def closed_form(frame: pl.DataFrame) -> Verdict:
    """The posterior of a table against the proof's formulas, by the regression that RLSVI makes."""
    rng = np.random.default_rng(0)
    lam, sigma = theorem_parameters(S, H)
    posterior, n, total = Posterior(1, S, lam, sigma), np.zeros(S), np.zeros(S)
    for s, target in zip(rng.integers(S, size=40), -rng.uniform(0, H, 40), strict=True):
        posterior.observe(0, np.eye(S)[s], float(target))
        n[s], total[s] = n[s] + 1, total[s] + target
    ridge = lam * sigma**2
    variance = np.array([posterior.variance(0, np.eye(S)[s]) for s in range(S)])
    off = max(
        float(np.abs(posterior.mean()[0] - total / (n + ridge)).max()),
        float(np.abs(variance - sigma**2 / (n + ridge)).max()),
    )
    return exactly(off < 1e-12, f"mean and variance of {S} weights after 40 targets agree to {off:.0e}")


def _counts(most: int) -> tuple[Floats, Floats]:
    """All numbers of visits up to `most`, and of the rewards -1 among them."""
    pairs = np.array([(n, k) for n in range(1, most + 1) for k in range(n + 1)], dtype=np.float64)
    return pairs[:, 0], pairs[:, 1]


def empirical_above_posterior(frame: pl.DataFrame) -> Verdict:
    """R-hat >= R-bar, and what the proof needs of it: theta-bar >= R-bar."""
    n, lows = _counts(30)
    posterior = -(lows + LOW) / (n + LOW + HIGH)
    lam, sigma = theorem_parameters(S, H)
    below = int((-lows / n < posterior - 1e-15).sum())
    needed = bool((-lows / (n + lam * sigma**2) >= posterior).all())
    return exactly(
        below == 0,
        f"the empirical mean is below the posterior's for {below} of {len(n)} data of at most 30 visits: wherever "
        f"the share of -1 is above the prior's; what the proof needs, RLSVI's mean above the posterior's, "
        f"{'holds for all' if needed else 'fails too'}",
    )


def _biases(n: Floats, lows: Floats, V: float, states: int, horizon: int) -> tuple[Floats, Floats]:
    """b^R and b^P, for a next value V whatever the next state, a prior weight of 1 a state."""
    lam, sigma = theorem_parameters(states, horizon)
    ridge = lam * sigma**2
    rewards = -lows / (n + ridge) + (lows + LOW) / (n + LOW + HIGH)
    return rewards, n * V / (n + ridge) - V


def biases_are_optimistic(frame: pl.DataFrame) -> Verdict:
    """The signs of b^R and b^P, for next values below and above 0."""
    n, lows = _counts(30)
    rewards, below = _biases(n, lows, -1.0, S, H)
    _, above = _biases(n, lows, 0.5, S, H)
    return exactly(
        bool((rewards >= 0).all() and (below >= 0).all() and (above >= 0).all()),
        f"b^R is at least {rewards.min():.3f} and b^P at least {below.min():.3f} for a next value of -1; for one "
        f"of .5, as samples may have, b^P goes down to {above.min():.3f}: shrinking towards 0 is then pessimistic",
    )


def biases_are_small(frame: pl.DataFrame) -> Verdict:
    """b^R and b^P as multiples of what the proof replaces them by, at their largest, for growing H."""
    ratios = {}
    n = np.logspace(0, 8, 801)
    for horizon in (5, 10, 20):
        rewards, transitions = _biases(n, n, -float(horizon), S, horizon)
        first, second = rewards * (n + S) / LOW, transitions * (n + S) / (horizon * S)
        ratios[horizon] = float(first.max()), float(second.max())
    told = "; ".join(f"H = {h}: {first:,.0f} and {second:,.0f}" for h, (first, second) in ratios.items())
    grows = ratios[20][0] > 2 * ratios[5][0]
    return exactly(
        not grows,
        f"S = {S}, always -1: b^R and b^P are up to so many times as large, {told}; they are of the order "
        f"lambda sigma^2 / (n + lambda sigma^2), which takes S A lambda sigma^2 episodes to fade",
    )


def gammas(frame: pl.DataFrame) -> Verdict:
    """E[g1 | g1 + g2 = s] against k1 s / (k1 + k2), by a Gauss-Jacobi rule for x^(k1-1) (s-x)^(k2-1)."""
    from scipy.special import roots_jacobi

    off = 0.0
    for k1, k2 in ((0.3, 2.0), (1.0, 1.0), (4.5, 0.7), (20.0, 35.0)):
        x, weights = roots_jacobi(12, k2 - 1, k1 - 1)
        off = max(off, abs(float(weights @ (0.5 * (1 + x)) / weights.sum()) - k1 / (k1 + k2)))
    return exactly(off < 1e-12, f"quadrature agrees to {off:.0e} for four pairs of shapes")


def coupling(frame: pl.DataFrame) -> Verdict:
    """The line of the proof after (a): as printed, and with alpha^0 and alpha^1 exchanged."""
    v = np.linspace(0.2, 0.9, 8)
    low, high = v[0], v[-1]
    printed = (low * (v - low) + high * (high - v)) / (high - low)
    exchanged = (low * (high - v) + high * (v - low)) / (high - low)
    off, fixed = float(np.abs(printed - v).max()), float(np.abs(exchanged - v).max())
    return exactly(
        off < 1e-12,
        f"as printed the coefficients of gamma differ from v by up to {off:.2f}; with alpha^0 and alpha^1 "
        f"exchanged by {fixed:.0e}, and then E[y~ | y] is y, not E[y]",
    )


def any_weights(frame: pl.DataFrame) -> Verdict:
    """The CDFs for equal weights just below and above where the densities at 1/2 are equal."""
    from scipy.optimize import brentq
    from scipy.special import betaln

    def denser(total: float) -> float:
        beta = (total - 2) * math.log(0.5) - float(betaln(total / 2, total / 2))
        return 0.5 * math.log(total / (2 * math.pi)) - beta

    edge = float(brentq(denser, 0.05, 1.0))
    below, above = (len(crossings(edge * x / 2, edge * x / 2).places) for x in (0.9, 1.1))
    return exactly(
        below == 1,
        f"for alpha = beta they cross {below} times below alpha + beta = {edge:.4f} and {above} above",
    )


def special_case(frame: pl.DataFrame) -> Verdict:
    """The largest g over alpha > 1, beta <= 1."""
    x = np.linspace(0.001, 0.999, 999)
    most, where = -math.inf, (0.0, 0.0)
    for a in (1.001, 1.01, 1.1, 1.5, 3.0, 10.0):
        for b in (0.1, 0.5, 0.9, 1.0):
            g = a - (a + b) * x + (b - 1) / (1 - x) - (a - 1) / x
            if g.max() > most:
                most, where = float(g.max()), (a, b)
    return exactly(
        most < 0,
        f"g reaches {most:.2f} at alpha = {where[0]:g}, beta = {where[1]:g}: the root of g' leaves out a term",
    )


def convex_case(frame: pl.DataFrame) -> Verdict:
    """The least h over (alpha - 1)(beta - 1) >= 1/9, on its border, against the closed form."""
    A = np.logspace(-3, 3, 601)
    B = 1 / (9 * A)
    x = (A / B) ** (1 / 3) / (1 + (A / B) ** (1 / 3))
    h = A / x**2 + B / (1 - x) ** 2 - (A + B + 2)
    formula = 3 * (A ** (2 / 3) * B ** (1 / 3) + A ** (1 / 3) * B ** (2 / 3)) - 2
    off = float((np.abs(h - formula) / (A + B + 2)).max())
    return exactly(
        off < 1e-9 and float(formula.min()) > -1e-9,
        f"on the border h is at least {formula.min():.0e}, where alpha = beta = 4/3; its closed form agrees "
        f"to {off:.0e}",
    )


def final_region(frame: pl.DataFrame) -> Verdict:
    """f_1 and f_2 over the final region, and the bounds the proof evaluates at 1/3."""
    A, share = np.meshgrid(np.logspace(-6, 6, 601), np.linspace(1e-4, 1.0, 200))
    B = share * np.minimum(A, 1 / (9 * A))
    c, constant = A + B + 2, 0.5 * math.log(2 * math.pi)
    base = np.log1p(A) + constant - 0.5 * np.log(c)
    first, second = np.sqrt(A / c), np.sqrt(B / c)
    rest = (B + 2) / (c * (1 + first))  # 1 - first
    f1 = base + A * np.log(first) + B * np.log(rest)
    f2 = base + A * np.log1p(-second) + B * np.log(second)
    g1 = math.log(4 / 3) - math.log(3) / 6 - 2 / 3 * math.log(10 / 3) - 3**0.5 / 9 + constant
    g2 = math.log(4 / 3) - 1 / 3 - 1 / (2 * math.e) - 2 / 3 * math.log(8 / 3) + constant
    least = float(min(f1.min(), f2.min()))
    return exactly(
        least > 0 and min(g1, g2) > 0.01,
        f"the bounds at 1/3 are {g1:.4f} and {g2:.4f}; f_1 and f_2 are at least {least:.3f} over the region",
    )
