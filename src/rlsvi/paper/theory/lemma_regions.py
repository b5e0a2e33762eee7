"""The calculus of appendix G, region by region: each printed step that can be computed as a verdict.

A = alpha - 1 and B = beta - 1 throughout, c = A + B + 2; the final region is A > B > 0, A B <= 1/9.
"""

import math
from itertools import pairwise, product
from typing import Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, computed, exactly

CONSTANT = 0.5 * math.log(2 * math.pi)
SLACK = 1e-12


@computed("For alpha > 1, beta <= 1, g = l_N' - l_B' has no root", "appendix G")
def special_case() -> Verdict:
    """The function g is below 0 on a grid of alpha, beta and x."""
    x = np.linspace(0.001, 0.999, 999)
    found = {}
    for a, b in product((1.001, 1.01, 1.1, 1.5, 3.0, 10.0), (0.1, 0.5, 0.9, 1.0)):
        found[a, b] = float((a - (a + b) * x + (b - 1) / (1 - x) - (a - 1) / x).max())
    where = max(found, key=lambda pair: found[pair])
    most = found[where]
    words = f"g reaches {most:.2f} at alpha = {where[0]:g}, beta = {where[1]:g}"
    return exactly(most < 0, f"{words}: the root of g' leaves out a term")


@computed("There g(x_K) = .. = -A^2/C - 2 A^(3/2) C^(-1/2) - 2 A - A/C <= 0", "appendix G")
def special_maximum() -> Verdict:
    """The lines agree, up to a positive factor, and are not positive on a grid of A and C."""
    A, C = np.meshgrid(np.logspace(-3, 2, 51), np.logspace(-3, -1e-9, 51))
    K = np.sqrt(A / C)
    first = (A + 1) - (A - C + 2) * K / (1 + K) - C * (1 + K) - A * (1 + K) / K
    second = -A * K**2 - A * K - A - C * (K**3 + K**2 + K) - K**2 + K
    last = -(A**2) / C - 2 * A**1.5 / C**0.5 - 2 * A - A / C
    size = A * (1 + K) ** 2 + (1 + K) * (1 + K)
    same = float((np.abs(first * K * (1 + K) - second) / size).max())
    words = f"the second line is K (1 + K) times the first, to {same:.0e}, which leaves the sign"
    rest = f"the last differs from it by (A/C)^(1/2) - (AC)^(1/2), and g(x_K) is up to {first.max():.2f}"
    holds = bool((np.abs(second - last) <= 1e-9 * size).all() and (second <= 0).all())
    return exactly(holds, f"{words}; {rest}")


@computed("For (alpha - 1)(beta - 1) >= 1/9, alpha, beta > 1, h = l_N'' - l_B'' has no root", "appendix G")
def convex_case() -> Verdict:
    """The function h is not negative at its minimum on the border of the region, and its closed form is right."""
    A = np.logspace(-3, 3, 601)
    B = 1 / (9 * A)
    x = (A / B) ** (1 / 3) / (1 + (A / B) ** (1 / 3))
    h = A / x**2 + B / (1 - x) ** 2 - (A + B + 2)
    formula = 3 * (A ** (2 / 3) * B ** (1 / 3) + A ** (1 / 3) * B ** (2 / 3)) - 2
    off = float((np.abs(h - formula) / (A + B + 2)).max())
    words = f"on the border h is at least {formula.min():.0e}, where alpha = beta = 4/3"
    closed = off < 1e-9 and float(formula.min()) > -1e-9
    return exactly(closed, f"{words}; its closed form agrees to {off:.0e}")


def _region() -> tuple[Any, Any]:
    """A and B over the final region."""
    A, share = np.meshgrid(np.logspace(-6, 6, 601), np.linspace(1e-4, 1.0, 200))
    return A, share * np.minimum(A, 1 / (9 * A))


def _f(A: Floats, B: Floats) -> tuple[Floats, Floats]:
    """f_1 and f_2: how far the Beta's log density is above the normal's largest at x_1 and x_2, at least."""
    c = A + B + 2
    base = np.log1p(A) + CONSTANT - 0.5 * np.log(c)
    first, second = np.sqrt(A / c), np.sqrt(B / c)
    rest = (B + 2) / (c * (1 + first))  # 1 - first
    return base + A * np.log(first) + B * np.log(rest), base + A * np.log1p(-second) + B * np.log(second)


@computed("In the final region B(alpha, beta) <= 1 / alpha, and l_B >= l~_B", "appendix G")
def beta_function() -> Verdict:
    """On a grid of the region."""
    from scipy.special import betaln

    A, B = (part[:, :451] for part in _region())  # up to A = 1000, where betaln is exact enough
    excess = betaln(1 + A, 1 + B) + np.log1p(A)
    loose = float(np.exp(-excess.min()))
    words = f"over the final region alpha B(alpha, beta) is at most {np.exp(excess.max()):.6f}"
    return exactly(float(excess.max()) <= SLACK, f"{words}; the bound is too large by up to {loose:.2f} times")


@computed("In the final region x_1 < x_2, and h > 0 outside of [x_1, x_2]", "appendix G")
def outside() -> Verdict:
    """On a grid of the region and of x."""
    A, B = (part[::10, 150:450:10].ravel() for part in _region())
    c = A + B + 2
    x1, x2 = np.sqrt(A / c), 1 - np.sqrt(B / c)
    share = np.linspace(0.01, 1.0, 100)[:, None]
    least = min(float(((A / x**2 + B / (1 - x) ** 2) / c - 1).min()) for x in (share * x1, 1 - share * (1 - x2)))
    words = f"x_1 < x_2 for {len(A)} pairs of the region, and outside of them h is at least {least:.1e}"
    return exactly(bool((x1 < x2).all()) and least > 0, f"{words} of alpha + beta")


@computed(
    "In the final region the bounds g~_i(1/3) are above .01, and the Beta's density is above the normal's where "
    "it must be",
    "appendix G",
)
def final_region() -> Verdict:
    """The functions f_1 and f_2 are positive on a grid of the region."""
    least = float(min(part.min() for part in _f(*_region())))
    g1, g2 = (float(part) for part in _tilde(np.array(1 / 3)))
    words = f"the bounds at 1/3 are {g1:.4f} and {g2:.4f}; f_1 and f_2 are at least {least:.3f} over the region"
    return exactly(least > 0 and min(g1, g2) > 0.01, words)


@computed("df_1/dB <= 0, by a chain of inequalities", "appendix G")
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
    share = float((lines[1] > lines[2] + SLACK).mean())
    return exactly(
        not wrong,
        f"of its four inequalities number {', '.join(map(str, wrong)) or 'none'} fails (the second in "
        f"{share:.2f} of the region: sqrt(A+B+2) - sqrt(A) is at most sqrt(B+2), not at least); df_1/dB itself "
        f"is at most {lines[0].max():.1e}, and f_1 falls",
    )


@computed("df_2/dB <= 0, as it falls in A and is not positive at A = 0", "appendix G")
def falls_2() -> Verdict:
    """Its form, its fall and its bound hold on a grid of the final region."""
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
    return exactly(
        off < 1e-5 and signs,
        f"the printed form agrees with differences of f_2 to {off:.0e}, falls in A (by at least "
        f"{-mixed.max():.1e}), keeps its bound at A = 0, and is at most {printed(A, B).max():.1e}",
    )


@computed("f_1 and f_2 are least at the largest possible B = 1 / (9 A)", "appendix G")
def least_on_the_border() -> Verdict:
    """That is in the final region for every A of it."""
    small, large = np.logspace(-6, math.log10(1 / 3), 200)[:-1], np.logspace(math.log10(1 / 3), 6, 200)
    beyond = float((1 / (9 * small) / small).min())
    border = float(min(part.min() for part in _f(small, small)))
    above = float(min(part.min() for part in _f(large, 1 / (9 * large))))
    return exactly(
        beyond <= 1,
        f"for A >= 1/3 it does, with f_i at least {above:.3f}; for A < 1/3 the largest B is A, not 1 / (9 A), "
        f"which is outside, and the proof goes on with A >= 1/3 alone; f_i(A, A) is at least {border:.3f} "
        "there, so nothing breaks",
    )


def _tilde(A: Any) -> tuple[Any, Any]:
    """The lower bounds g~_1 and g~_2."""
    first = np.log1p(A) + A / 2 * np.log(A) - (1 + A) / 2 * np.log(A + 3) - np.sqrt(A) / (9 * A) + CONSTANT
    second = np.log1p(A) - 1 / 3 - 1 / (2 * math.e) - 2 / 3 * np.log(A + 7 / 3) + CONSTANT
    return first, second


@computed("For A >= 1/3, g_i >= g~_i and g~_i increases", "appendix G")
def lower_bounds() -> Verdict:
    """The steps, the derivatives and their signs hold on a grid."""
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
    return exactly(
        kept >= -1e-9 and rising >= -SLACK and float(bend1.max()) <= 0 and off < 1e-4,
        f"the steps leave at least {kept:.0e}; the derivatives agree with differences to {off:.0e} and are at "
        f"least {rising:.0e}, that of g~_1 falling throughout (by at least {-bend1.max():.0e})",
    )
