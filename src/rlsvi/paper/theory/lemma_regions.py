"""The calculus of appendix G, region by region: steps that do not hold as claims, all others in STEPS.

A = α − 1 and B = β − 1 throughout, c = A + B + 2; the final region is A > B > 0, AB ≤ 1/9.
"""

import math
from itertools import pairwise, product
from typing import Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, exactly
from rlsvi.paper.theory.lemma_appendix import equivalences, gammas, of_appendix

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


def beta_function() -> bool:
    """In the final region B(α, β) ≤ 1/α, on a grid."""
    from scipy.special import betaln

    A, B = (part[:, :451] for part in _region())  # up to A = 1000, where betaln is exact enough
    return float((betaln(1 + A, 1 + B) + np.log1p(A)).max()) <= SLACK


def outside() -> bool:
    """In the final region x₁ < x₂, and h > 0 outside of [x₁, x₂], on a grid of the region and of x."""
    A, B = (part[::10, 150:450:10].ravel() for part in _region())
    c = A + B + 2
    x1, x2 = np.sqrt(A / c), 1 - np.sqrt(B / c)
    share = np.linspace(0.01, 1.0, 100)[:, None]
    least = min(float(((A / x**2 + B / (1 - x) ** 2) / c - 1).min()) for x in (share * x1, 1 - share * (1 - x2)))
    return bool((x1 < x2).all()) and least > 0


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


STEPS = {
    "four conditions of optimism are equivalent": equivalences,
    "conditional means of Gammas": gammas,
    "h has no root for AB ≥ 1/9": convex_case,
    "B(α, β) ≤ 1/α": beta_function,
    "x₁ < x₂, and h > 0 outside of them": outside,
    "f₁ and f₂ are positive": final_region,
    "df₂/dB ≤ 0": falls_2,
    "gᵢ ≥ g̃ᵢ, which increases": lower_bounds,
}
