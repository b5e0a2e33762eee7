"""Steps of the proofs of section 5 and appendix G that can be computed.

Each is a claim of its own; those that do not hold are listed in docs/errata.md.
"""

import math
from collections.abc import Callable
from functools import partial, wraps
from itertools import pairwise, product
from typing import Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.core.regression import Posterior
from rlsvi_paper.claim import Claim, Verdict, computed, exactly
from rlsvi_paper.theory.bounds import theorem_parameters
from rlsvi_paper.theory.optimism import crossings, density_crossings

of_section = partial(computed, where="section 5", kind="proof")
LOW, HIGH = 1.0, 1.0  # prior weights of the rewards -1 and 0
S, H = 5, 5


def step_that_holds(words: str, where: str) -> Callable[[Callable[[], bool]], Claim]:
    """Declare a step that needs no words of its own: the function says whether it holds in all cases tried."""
    told = {True: "holds in all cases tried", False: "fails in some cases"}
    return lambda step: computed(words, where, kind="proof")(
        wraps(step)(lambda: exactly(holds := step(), told[holds]))
    )


def _parameters(states: int = S, horizon: int = H) -> tuple[float, float]:
    """The theorem's σ and λσ²."""
    lam, sigma = theorem_parameters(states, horizon)
    return sigma, lam * sigma**2


@step_that_holds("The posterior of a table has a closed form", "section 5")
def closed_form() -> bool:
    """A regression gives the posterior of a table: variance σ² / (n + λσ²), and its mean by the same n + λσ²."""
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
    return off < 1e-12


def _counts(most: int) -> tuple[Floats, Floats]:
    """All numbers of visits up to `most`, and of the rewards -1 among them."""
    pairs = np.array([(n, k) for n in range(1, most + 1) for k in range(n + 1)], dtype=np.float64)
    return pairs[:, 0], pairs[:, 1]


@of_section("The empirical mean reward is at least the posterior mean")
def empirical_above_posterior() -> Verdict:
    """For all data of at most 30 visits."""
    n, lows = _counts(30)
    posterior = -(lows + LOW) / (n + LOW + HIGH)
    below = int((-lows / n < posterior - 1e-15).sum())
    needed = bool((-lows / (n + _parameters()[1]) >= posterior).all())
    return exactly(
        below == 0,
        f"it is below for {below} of {len(n)} data, wherever the share of −1 is above the prior's; RLSVI's mean, "
        f"which the proof needs above it, {'is so for all' if needed else 'fails too'}",
    )


def _biases(n: Floats, lows: Floats, V: float, states: int, horizon: int) -> tuple[Floats, Floats]:
    """bᴿ and bᴾ, for a next value V whatever the next state, a prior weight of 1 a state."""
    ridge = _parameters(states, horizon)[1]
    rewards = -lows / (n + ridge) + (lows + LOW) / (n + LOW + HIGH)
    return rewards, n * V / (n + ridge) - V


@of_section("The bias terms bᴿ and bᴾ are optimistic")
def biases_are_optimistic() -> Verdict:
    """Not negative for all data of at most 30 visits and next values of either sign."""
    n, lows = _counts(30)
    rewards, below = _biases(n, lows, -1.0, S, H)
    _, above = _biases(n, lows, 0.5, S, H)
    return exactly(
        bool((rewards >= 0).all() and (below >= 0).all() and (above >= 0).all()),
        f"for a next value of −1 they are at least {rewards.min():.3f} and {below.min():.3f}; for one of .5, as "
        f"samples may have, bᴾ goes down to {above.min():.3f}",
    )


@of_section("Up to Õ the biases are α₁ᴿ / (n + 1ᵀαᴾ) and H 1ᵀαᴾ / (n + 1ᵀαᴾ)")
def biases_are_small() -> Verdict:
    """The largest ratio for any n does not double from H = 5 to 20."""
    ratios = {}
    n = np.logspace(0, 8, 801)
    for horizon in (5, 10, 20):
        rewards, transitions = _biases(n, n, -float(horizon), S, horizon)
        first, second = rewards * (n + S) / LOW, transitions * (n + S) / (horizon * S)
        ratios[horizon] = float(first.max()), float(second.max())
    few, many = ratios[5][0], ratios[20][0]
    words = f"bᴿ is up to {few:,.0f} times as large at H = 5 and {many:,.0f} times at H = 20"
    table = [(f"{h}", f"{first:,.0f}", f"{second:,.0f}") for h, (first, second) in ratios.items()]
    found = exactly(many <= 2 * few, f"{words}: of the order λσ² / (n + λσ²)")
    return found._replace(table=(("H (S = 5, all rewards −1)", "bᴿ, times", "bᴾ, times"), *table))


@step_that_holds("The noise w is about H / √(n + H² 1ᵀαᴿ + 1ᵀαᴾ)", "section 5")
def noise_is_small() -> bool:
    """The standard deviation of w is at most √2 times H / √(n + H² 1ᵀαᴿ + 1ᵀαᴾ), for any n, at three sizes."""
    n = np.append(0.0, np.logspace(0, 8, 801))
    largest = 0.0
    for states, horizon in ((5, 5), (5, 20), (50, 20)):
        sigma, ridge = _parameters(states, horizon)
        ours = sigma / np.sqrt(n + ridge)
        ratio = ours / (horizon / np.sqrt(n + horizon**2 * (LOW + HIGH) + states))
        largest = max(largest, float(ratio.max()))
    return largest <= 2**0.5


@step_that_holds("αᵀ1 ≥ 2 is violated at most twice", "section 5")
def violated_twice() -> bool:
    """The posterior's sum of weights is below 2 before at most two visits, whatever the prior's."""
    return all(sum(total + n < 2 for n in range(10)) <= 2 for total in np.logspace(-6, 1, 701))


@step_that_holds("The inductive step: E[Q*] is at most RLSVI’s mean of the true next value", "section 5")
def inductive_step() -> bool:
    """For random data and next values V* ≤ 0, as the prior has them, R̄ + P̄V* ≤ n (R̂ + P̂V*) / (n + λσ²)."""
    rng = np.random.default_rng(0)
    ridge, least = _parameters()[1], math.inf
    for _ in range(2000):
        into = rng.poisson(np.exp(rng.uniform(-2, 4)), size=S).astype(np.float64)
        n = into.sum()
        lows, V = rng.binomial(int(n), rng.uniform()), -rng.uniform(0, H - 1, size=S)
        gap = (into @ V - lows) / (n + ridge) + (lows + LOW) / (n + LOW + HIGH) - (into + 1) @ V / (n + S)
        least = min(least, float(gap))
    return least >= 0


@step_that_holds("The concentration error vanishes", "section 5")
def vanishing() -> bool:
    """The concentration error vanishes: a hundred times as many data of one MDP leave at most a fifth of it,
    twice.
    """
    rng = np.random.default_rng(0)
    states, actions, horizon, samples = 3, 2, 4, 400
    (sigma, ridge), at = _parameters(states, horizon), np.arange(states)
    P = rng.dirichlet(np.ones(states), size=(horizon, states, actions))
    low = rng.beta(LOW, HIGH, (horizon, states, actions))
    found = []
    for n in (100, 10_000, 1_000_000):
        into, lows = rng.multinomial(n, P).astype(np.float64), rng.binomial(n, low)
        reward, onward = -(lows + LOW) / (n + LOW + HIGH), (into + 1) / (n + states)
        V, value = np.zeros((samples, states)), np.zeros((samples, states))
        for h in reversed(range(horizon)):
            noise = rng.standard_normal((samples, states, actions)) * sigma / np.sqrt(n + ridge)
            Q = (np.einsum("say,ny->nsa", into[h], V) - lows[h]) / (n + ridge) + noise
            mu, V = Q.argmax(axis=2), Q.max(axis=2)
            value = reward[h, at, mu] + np.einsum("nsy,ny->ns", onward[h, at, mu], value)
        found.append(float(np.abs(V - value).mean()))
    return all(later <= 0.2 * sooner for sooner, later in pairwise(found))


@step_that_holds("The concentration error is the sum of biases and noise", "section 5")
def concentration() -> bool:
    """The concentration error is the sum of biases and noise over the way, to 1e-12; and a policy's mean value
    is its value in the mean MDP, within 4.5 standard errors of sampled MDPs.
    """
    rng = np.random.default_rng(0)
    states, actions, horizon, draws = 3, 2, 4, 20_000
    into = rng.poisson(2.0, size=(horizon, states, actions, states)).astype(np.float64)
    n = into.sum(axis=3)
    lows = rng.binomial(n.astype(np.int64), 0.5)
    sigma, ridge = _parameters(states, horizon)
    reward, onward = -(lows + LOW) / (n + LOW + HIGH), (into + 1) / (n + states)[..., None]
    V, value, drawn = np.zeros(states), np.zeros(states), np.zeros((draws, states))
    parts, at = np.zeros(states), np.arange(states)  # the sum of biases and noise from a state on
    for h in reversed(range(horizon)):
        noise = rng.standard_normal((states, actions)) * sigma / np.sqrt(n[h] + ridge)
        Q = (into[h] @ V - lows[h]) / (n[h] + ridge) + noise
        bias = (into[h] @ V - lows[h]) / (n[h] + ridge) - reward[h] - onward[h] @ V
        mu = Q.argmax(axis=1)
        P = rng.standard_gamma(into[h, at, mu] + 1, size=(draws, states, states))
        R = -rng.beta(lows[h, at, mu] + LOW, (n - lows)[h, at, mu] + HIGH, size=(draws, states))
        drawn = R + np.einsum("nsy,ny->ns", P / P.sum(axis=2, keepdims=True), drawn)
        value = reward[h, at, mu] + onward[h, at, mu] @ value
        parts = (bias + noise)[at, mu] + onward[h, at, mu] @ parts
        V = Q[at, mu]
    off = float(np.abs(V - value - parts).max())
    errors = float((np.abs(drawn.mean(axis=0) - value) / (drawn.std(axis=0) / draws**0.5)).max())
    return off < 1e-12 and errors < 4.5


# ---- Appendix G before its calculus ------------------------------------------------------------------------


of_appendix = partial(computed, where="appendix G", kind="proof")
POINTS, RANGE = 8, 10  # of the discrete variables: so many equally likely integers below that


@step_that_holds("Four conditions of optimism are equivalent", "appendix G")
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


@step_that_holds("Conditional means of Gammas are shares of shapes", "appendix G")
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
    below, above = (crossings(edge * x / 2, edge * x / 2) for x in (0.9, 1.1))
    words = f"for α = β they cross {below} times below α + β = {edge:.4f} and {above} above"
    return exactly(below == 1, words)


@of_appendix("For CDFs that cross at most once it is enough that the densities cross at most twice")
def two_crossings_suffice() -> Verdict:
    """So it is for weights from .02 to 9."""
    most = {}
    for weights, name in (((0.02, 0.05, 0.3, 0.9), "below 1"), ((1.0, 1.2, 2.0, 9.0), "of at least 1")):
        pairs = [(a, b) for a in weights for b in weights if density_crossings(a, b) <= 2]
        most[name] = max(crossings(a, b) for a, b in pairs)
    told = " and ".join(f"up to {count} times for weights {name}" for name, count in most.items())
    return exactly(max(most.values()) <= 1, f"where the densities cross at most twice the CDFs cross {told}")


@of_appendix("The cases of the proof piece together to all α, β > 0 with α + β ≥ 1")
def cases_cover() -> Verdict:
    """Every pair of a grid belongs to one."""
    grid = np.linspace(0.05, 3.0, 60)
    left = [(a, b) for a in grid for b in grid if a + b >= 1 and a <= 1 and b <= 1]  # in none of them
    x = np.linspace(0.01, 0.99, 99)
    h = [float(((a - 1) / x**2 + (b - 1) / (1 - x) ** 2 - (a + b)).max()) for a, b in left]
    single = all(crossings(a, b, points=301) == 1 for a, b in left[::7])
    words = f"no case has α ≤ 1 and β ≤ 1, as {len(left)} pairs of a grid have; there h is at most {max(h):.2f}"
    return exactly(not left, f"{words}, and the CDFs cross {'once' if single else 'more than once'}")


# ---- The calculus of appendix G, region by region ------------------------------------------------------------
#
# A = α − 1 and B = β − 1 throughout, c = A + B + 2; the final region is A > B > 0, AB ≤ 1/9.


CONSTANT = 0.5 * math.log(2 * math.pi)
SLACK = 1e-12


@of_appendix("For α > 1, β ≤ 1, g = l′_N − l′_B has no root, as g(x_K) ≤ 0")
def special_case() -> Verdict:
    """The function g is below 0 on a grid of α, β and x, and the lines for g(x_K) agree, up to a positive
    factor, and are not positive on a grid of A and C.
    """
    x = np.linspace(0.001, 0.999, 999)
    grid = product((1.001, 1.01, 1.1, 1.5, 3.0, 10.0), (0.1, 0.5, 0.9, 1.0))
    most = max(float((a - (a + b) * x + (b - 1) / (1 - x) - (a - 1) / x).max()) for a, b in grid)
    A, C = np.meshgrid(np.logspace(-3, 2, 51), np.logspace(-3, -1e-9, 51))
    K = np.sqrt(A / C)
    first = (A + 1) - (A - C + 2) * K / (1 + K) - C * (1 + K) - A * (1 + K) / K
    last = -(A**2) / C - 2 * A**1.5 / C**0.5 - 2 * A - A / C
    same = bool(np.allclose(first * K * (1 + K), last, rtol=1e-9))
    words = f"g reaches {most:.2f}, and g(x_K) {first.max():.2f}: the root of g′ leaves out a term"
    return exactly(same and most < 0 and first.max() <= 0, f"{words}, and the last line √(A/C) − √(AC)")


@step_that_holds("h has no root for AB ≥ 1/9", "appendix G")
def convex_case() -> bool:
    """For AB ≥ 1/9 the function h is not negative at its minimum on the border, and its closed form is right."""
    A = np.logspace(-3, 3, 601)
    B = 1 / (9 * A)
    x = (A / B) ** (1 / 3) / (1 + (A / B) ** (1 / 3))
    h = A / x**2 + B / (1 - x) ** 2 - (A + B + 2)
    formula = 3 * (A ** (2 / 3) * B ** (1 / 3) + A ** (1 / 3) * B ** (2 / 3)) - 2
    off = float((np.abs(h - formula) / (A + B + 2)).max())
    return off < 1e-9 and float(formula.min()) > -1e-9


def _region() -> tuple[Any, Any]:
    """A and B over the final region."""
    A, share = np.meshgrid(np.logspace(-6, 6, 601), np.linspace(1e-4, 1.0, 200))
    return A, share * np.minimum(A, 1 / (9 * A))


def _f(A: Floats, B: Floats) -> tuple[Floats, Floats]:
    """f₁ and f₂: how far the Beta's log density is above the normal's largest at x_1 and x_2, at least."""
    c = A + B + 2
    base = np.log1p(A) + CONSTANT - 0.5 * np.log(c)
    first, second = np.sqrt(A / c), np.sqrt(B / c)
    rest = (B + 2) / (c * (1 + first))  # 1 - first
    return base + A * np.log(first) + B * np.log(rest), base + A * np.log1p(-second) + B * np.log(second)


@step_that_holds("B(α, β) ≤ 1/α", "appendix G")
def beta_function() -> bool:
    """In the final region B(α, β) ≤ 1/α, on a grid."""
    from scipy.special import betaln

    A, B = (part[:, :451] for part in _region())  # up to A = 1000, where betaln is exact enough
    return float((betaln(1 + A, 1 + B) + np.log1p(A)).max()) <= SLACK


@step_that_holds("x₁ < x₂, and h > 0 outside of them", "appendix G")
def outside() -> bool:
    """In the final region x₁ < x₂, and h > 0 outside of [x₁, x₂], on a grid of the region and of x."""
    A, B = (part[::10, 150:450:10].ravel() for part in _region())
    c = A + B + 2
    x1, x2 = np.sqrt(A / c), 1 - np.sqrt(B / c)
    share = np.linspace(0.01, 1.0, 100)[:, None]
    least = min(float(((A / x**2 + B / (1 - x) ** 2) / c - 1).min()) for x in (share * x1, 1 - share * (1 - x2)))
    return bool((x1 < x2).all()) and least > 0


@step_that_holds("f₁ and f₂ are positive", "appendix G")
def final_region() -> bool:
    """The functions f₁ and f₂ are positive on a grid of the region, and the bounds g̃ᵢ(1/3) are above .01."""
    bounds = (float(part) for part in _tilde(np.array(1 / 3)))
    return all(float(part.min()) > 0 for part in _f(*_region())) and min(bounds) > 0.01


@of_appendix("df₁/dB ≤ 0, by a chain of inequalities")
def falls_1() -> Verdict:
    """Each of them holds on a grid of the final region."""
    A, B = _region()
    c = A + B + 2
    u, root = np.sqrt(A / c), np.sqrt(c) - np.sqrt(A)
    lines = [
        (B * np.sqrt(A) / root - A - 1) / (2 * c) + np.log1p(-u),
        (np.sqrt(B) / 3 / root - A - 1) / (2 * c) - u,
        (np.sqrt(B / (B + 2)) / 3 - A - 1) / (2 * c) - u,
        -A / (2 * c) - u,
        np.zeros_like(A),
    ]
    wrong = [i + 1 for i, (low, high) in enumerate(pairwise(lines)) if (low > high + SLACK).any()]
    words = f"of its four inequalities number {', '.join(map(str, wrong)) or 'none'} fails, as √c − √A ≤ √(B + 2)"
    return exactly(not wrong, f"{words}; df₁/dB itself is at most {lines[0].max():.2f}, and f₁ falls")


@step_that_holds("df₂/dB ≤ 0", "appendix G")
def falls_2() -> bool:
    """The form of df₂/dB, its fall in A and its bound at A = 0 hold on a grid of the final region."""
    A, B = _region()

    def printed(A: Any, B: Any) -> Any:
        c = A + B + 2
        return (1 - A * np.sqrt(c / B)) / (2 * c) + 0.5 * np.log(B / c)

    middle = slice(150, 451)
    a, b = A[:, middle], B[:, middle]
    step = 1e-4 * b
    numeric = (_f(a, b + step)[1] - _f(a, b - step)[1]) / (2 * step)
    off = float((np.abs(numeric - printed(a, b)) / (1 + np.abs(numeric))).max())
    c = A + B + 2
    mixed = -1 / (2 * c**2) - (1 - A / (2 * c)) / (2 * np.sqrt(B * c)) - 1 / (2 * c)
    b0 = np.logspace(-9, 3, 200)
    at_zero = printed(0.0, b0) - 0.5 * (1 / (b0 + 2) + b0 / (b0 + 2) - 1)
    signs = float(mixed.max()) < 0 and float(at_zero.max()) <= SLACK and float(printed(A, B).max()) <= 0
    return off < 1e-5 and signs


@of_appendix("f₁ and f₂ are least at the largest possible B = 1/(9A)")
def least_on_the_border() -> Verdict:
    """That is in the final region for every A of it."""
    small = np.logspace(-6, math.log10(1 / 3), 200)[:-1]
    beyond = float((1 / (9 * small) / small).min())
    border = float(min(part.min() for part in _f(small, small)))
    words = f"for A < 1/3 the largest B is A; nothing breaks, as fᵢ(A, A) is at least {border:.2f} there"
    return exactly(beyond <= 1, words)


def _tilde(A: Any) -> tuple[Any, Any]:
    """The lower bounds g̃₁ and g̃₂."""
    first = np.log1p(A) + A / 2 * np.log(A) - (1 + A) / 2 * np.log(A + 3) - np.sqrt(A) / (9 * A) + CONSTANT
    second = np.log1p(A) - 1 / 3 - 1 / (2 * math.e) - 2 / 3 * np.log(A + 7 / 3) + CONSTANT
    return first, second


@step_that_holds("gᵢ ≥ g̃ᵢ, which increases", "appendix G")
def lower_bounds() -> bool:
    """For A ≥ 1/3, gᵢ ≥ g̃ᵢ and g̃ᵢ increases: the steps, the derivatives and their signs hold on a grid."""
    A = np.logspace(math.log10(1 / 3), 6, 4000)
    B = 1 / (9 * A)
    (g1, g2), (low1, low2) = _f(A, B), _tilde(A)
    step1 = np.log1p(A) + A / 2 * np.log(A) - (1 + A) / 2 * np.log(A + 3) + CONSTANT
    step1 = step1 + B * np.log1p(-np.sqrt(A / (A + 2)))
    step2 = np.log1p(A) - 1 / 3 + 0.5 * B * np.log(B) - 2 / 3 * np.log(A + 7 / 3) + CONSTANT
    slope1 = 1 / (A + 1) + 1 / (A + 3) + 0.5 * np.log(A / (A + 3)) + 1 / (18 * A**1.5)
    bend1 = -1 / (A + 1) ** 2 - 1 / (A + 3) ** 2 + 1.5 / (A * (A + 3)) - 1 / (12 * A**2.5)
    slope2 = (A + 5) / ((A + 1) * (3 * A + 7))
    chains = [(g1, step1), (step1, low1), (g2, step2), (step2, low2)]
    kept = min(float((high - low).min()) for high, low in chains)
    rising = min(float(slope1.min()), float(slope2.min()))
    off = max(
        float(np.abs(np.diff(low) / np.diff(A) - 0.5 * (slope[1:] + slope[:-1])).max())
        for low, slope in ((low1, slope1), (low2, slope2))
    )
    return kept >= -1e-9 and rising >= -SLACK and float(bend1.max()) <= 0 and off < 1e-4
