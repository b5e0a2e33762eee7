"""Appendix G before its calculus: equivalences of optimism, Gammas and the coupling, crossings and their cases.

Steps that do not hold are claims, the others functions that say whether they do.
"""

import math
from functools import partial

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, computed, exactly
from rlsvi.theory import crossings, density_crossings

of_appendix = partial(computed, where="appendix G", kind="proof")
POINTS, RANGE = 8, 10  # of the discrete variables: so many equally likely integers below that


def equivalences() -> bool:
    """Four conditions, and −Y dominating −X in the second order, agree for all of some pairs of discrete
    variables.
    """
    rng = np.random.default_rng(0)
    optimistic, apart = 0, 0
    for i in range(100):
        Y = rng.integers(RANGE, size=POINTS).astype(np.float64)
        moved = rng.integers(RANGE, size=POINTS) if i % 2 else np.clip(Y + rng.integers(-1, 3, size=POINTS), 0, 12)
        X = moved.astype(np.float64)
        found = [_max(rng, X, Y), _tails(X, Y), _coupled(X, Y), _convex(rng, X, Y), _second_order(-Y, -X)]
        optimistic += found[1]
        apart += len(set(found)) > 1
    return apart == 0 and 0 < optimistic < 100


def _max(rng: np.random.Generator, X: Floats, Y: Floats) -> bool:
    """1: E[max(X, Z)] ≥ E[max(Y, Z)], for constants Z and random ones."""
    Zs = [np.array([z]) for z in range(-1, 13)] + [rng.integers(-1, 13, size=5) for _ in range(10)]
    return all(np.maximum.outer(X, Z).mean() >= np.maximum.outer(Y, Z).mean() - 1e-12 for Z in Zs)


def _tails(X: Floats, Y: Floats) -> bool:
    """2: the integral of P(X >= s) - P(Y >= s) from any alpha on, a sum as both are whole numbers."""
    s = np.arange(1, 14)
    gap = (X >= s[:, None]).mean(axis=1) - (Y >= s[:, None]).mean(axis=1)
    return bool((np.cumsum(gap[::-1]) >= -1e-12).all())


def _coupled(X: Floats, Y: Floats) -> bool:
    """3: X = Y + A + W, that is, a joint law with E[X | Y] >= Y, where A = E[X | Y] - Y."""
    from scipy.optimize import linprog

    n = len(X)
    marginals = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    rises = np.zeros((n, n * n))  # minus E[X - Y; Y = y], for each value y of Y
    for i, y in enumerate(Y):
        rises[int(np.flatnonzero(y == Y)[0]), i * n : (i + 1) * n] = y - X
    found = linprog(np.zeros(n * n), rises, np.zeros(n), marginals, np.full(2 * n, 1 / n), method="highs")
    return bool(found.status == 0)


def _convex(rng: np.random.Generator, X: Floats, Y: Floats) -> bool:
    """4: E[u(X)] >= E[u(Y)] for ramps u, sums of them and exponentials."""
    kinks = np.arange(-1, 13)
    ramps = [np.maximum(Z[:, None] - kinks, 0.0).mean(axis=0) for Z in (X, Y)]
    weights = np.vstack([np.eye(len(kinks)), rng.exponential(size=(10, len(kinks)))])
    smooth = all(np.exp(c * X).mean() >= np.exp(c * Y).mean() - 1e-9 for c in (0.1, 1.0))
    return bool((weights @ ramps[0] >= weights @ ramps[1] - 1e-9).all()) and smooth


def _second_order(X: Floats, Y: Floats) -> bool:
    """Whether X dominates Y in the second order: the integral of F_X up to any point is at most that of F_Y."""
    s = np.arange(-14, 14)
    below = [np.cumsum((Z <= s[:, None]).mean(axis=1)) for Z in (X, Y)]
    return bool((below[0] <= below[1] + 1e-12).all())


def gammas() -> bool:
    """For independent Gammas of shapes k₁ and k₂ the mean share of the first is k₁ / (k₁ + k₂), by quadrature."""
    from scipy.special import roots_jacobi

    off = 0.0
    for k1, k2 in ((0.3, 2.0), (1.0, 1.0), (4.5, 0.7), (20.0, 35.0)):
        x, weights = roots_jacobi(12, k2 - 1, k1 - 1)
        off = max(off, abs(float(weights @ (0.5 * (1 + x)) / weights.sum()) - k1 / (k1 + k2)))
    return off < 1e-12


@of_appendix("The coupling of Gammas by α⁰ and α¹ gives E[ỹ | y] = E[y]", otherwise="misprint")
def coupling() -> Verdict:
    """Its line after (a) is an identity."""
    v = np.linspace(0.2, 0.9, 8)
    low, high = v[0], v[-1]
    printed = (low * (v - low) + high * (high - v)) / (high - low)
    exchanged = (low * (high - v) + high * (v - low)) / (high - low)
    off, fixed = float(np.abs(printed - v).max()), float(np.abs(exchanged - v).max())
    words = f"as printed the coefficients of γ differ from v by up to {off:.2f}"
    corrected = f"with α⁰ and α¹ exchanged by {fixed:.0e}, and then E[ỹ | y] is y, not E[y]"
    return exactly(off < 1e-12, f"{words}; {corrected}")


@of_appendix("For any α, β > 0 the normal single crossing dominates the Beta")
def any_weights() -> Verdict:
    """The CDFs cross once for α = β, however small."""
    from scipy.optimize import brentq
    from scipy.special import betaln

    def denser(total: float) -> float:
        beta = (total - 2) * math.log(0.5) - float(betaln(total / 2, total / 2))
        return 0.5 * math.log(total / (2 * math.pi)) - beta

    edge = float(brentq(denser, 0.05, 1.0))
    below, above = (len(crossings(edge * x / 2, edge * x / 2).places) for x in (0.9, 1.1))
    words = f"for α = β they cross {below} times below α + β = {edge:.4f} and {above} above"
    return exactly(below == 1, words)


@of_appendix("For CDFs that cross at most once it is enough that the densities cross at most twice")
def two_crossings_suffice() -> Verdict:
    """So it is for weights from .02 to 9."""
    most = {}
    for weights, name in (((0.02, 0.05, 0.3, 0.9), "below 1"), ((1.0, 1.2, 2.0, 9.0), "of at least 1")):
        pairs = [(a, b) for a in weights for b in weights if density_crossings(a, b) <= 2]
        most[name] = max(len(crossings(a, b).places) for a, b in pairs)
    told = " and ".join(f"up to {count} times for weights {name}" for name, count in most.items())
    return exactly(max(most.values()) <= 1, f"where the densities cross at most twice the CDFs cross {told}")


@of_appendix("The cases of the proof piece together to all α, β > 0 with α + β ≥ 1")
def cases_cover() -> Verdict:
    """Every pair of a grid belongs to one."""
    grid = np.linspace(0.05, 3.0, 60)
    left = [(a, b) for a in grid for b in grid if a + b >= 1 and a <= 1 and b <= 1]  # in none of them
    x = np.linspace(0.01, 0.99, 99)
    h = [float(((a - 1) / x**2 + (b - 1) / (1 - x) ** 2 - (a + b)).max()) for a, b in left]
    single = all(crossings(a, b, points=301).single for a, b in left[::7])
    words = f"no case has α ≤ 1 and β ≤ 1, as {len(left)} pairs of a grid have; there h is at most {max(h):.2f}"
    return exactly(not left, f"{words}, and the CDFs cross {'once' if single else 'more than once'}")
