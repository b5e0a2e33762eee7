"""Least squares: a line, and local polynomials as in the paper's figures."""

from typing import Any

import numpy as np

from rlsvi.core.checks import shaped, whole
from rlsvi.core.compile import Floats
from rlsvi.study.bootstrap import finished

MEDIANS = "give the medians of cells in which most runs finished"


def line(x: Any, y: Any) -> tuple[float, float]:
    """Return the slope and intercept of the least-squares line."""
    at, values = _pairs(x, y)
    if len(np.unique(at)) < 2:
        raise ValueError("x must hold at least two different numbers: a line needs two points")
    away = at - at.mean()
    slope = away @ values / (away @ away)
    return float(slope), float(values.mean() - slope * at.mean())


def r_squared(y: Any, fitted: Any) -> float:
    """Return the fraction of the variance of y that a fit explains; negative if it is worse than the mean."""
    values, guesses = _pairs(y, fitted, ("y", "fitted"))
    total = np.square(values - values.mean()).sum()
    if total == 0:
        raise ValueError("y must vary: there is no variance to explain")
    return float(1 - np.square(values - guesses).sum() / total)


def local_polynomial(x: Any, y: Any, at: Any, *, span: float = 0.75, degree: int = 2) -> Floats:
    """Fit a local polynomial regression (Cleveland's loess) and evaluate it at every point of `at`.

    At each point a polynomial is fitted to the nearest fraction `span` of the data, by least squares with tricube
    weights (1 - (d / h)^3)^3, where d is the distance and h the largest of these. There are no robust iterations.
    """
    where, values = _pairs(x, y)
    points = finished("at", np.atleast_1d(at))
    whole("degree", degree, 0)
    if not 0 < span <= 1:
        raise ValueError(f"span must lie in (0, 1], the share of the data used around each point, got {span!r}")
    if (points < where.min()).any() or (points > where.max()).any():
        raise ValueError(f"at must lie within x, {where.min():g} to {where.max():g}: beyond there are no data")
    count = min(max(int(np.floor(span * len(where) + 1e-9)), 1), len(where))
    return np.array([_local(where, values, point, count, degree) for point in points])


def _local(x: Floats, y: Floats, point: float, count: int, degree: int) -> float:
    """Return the value at `point` of the polynomial fitted to the `count` nearest data."""
    distance = np.abs(x - point)
    width = np.partition(distance, count - 1)[count - 1]
    near = distance < width
    if len(np.unique(x[near])) <= degree:
        raise ValueError(
            f"too few points: a polynomial of degree {degree} needs more than {degree} different x nearer to "
            f"{point:g} than the farthest in its span; add data, widen span or lower degree"
        )
    scaled = (x[near] - point) / width
    root = (1 - np.abs(scaled) ** 3) ** 1.5  # the square root of the weight
    design = scaled[:, None] ** np.arange(degree + 1)
    weights = np.linalg.lstsq(root[:, None] * design, root * y[near], rcond=None)[0]
    return float(weights[0])


def _pairs(x: Any, y: Any, names: tuple[str, str] = ("x", "y")) -> tuple[Floats, Floats]:
    """Return both as finite arrays of the same length."""
    at = finished(names[0], x, MEDIANS)
    return at, shaped(names[1], finished(names[1], y, MEDIANS), at.shape)
