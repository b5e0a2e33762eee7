"""What the prior of the weights adds to the uncertainty of fitted Q evaluation with features.

The ridge stands for rows that were not seen, whose outcomes could have been any. At features x, such rows move
Q(s, a) by ridge x' P^-1 theta, where theta is a draw from the prior. So Q is uncertain by ridge |P^-1 x| times the
scale of a weight: nothing where there are many rows, and the whole scale where there are none. The scale is such
that an action without rows is as uncertain as the largest return of the log. In one period all observations are
equally lucky, as in a table: otherwise the errors of many of them would average out. Periods are independent.
"""

from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from rlsvi.core.compile import Floats
from rlsvi.offline.question import Question


def doubts(features: Any, factors: Any) -> Floats:
    """Return ridge |P^-1 x| of every row of a sparse matrix of features, (N,)."""
    d = factors.dim
    x, block = features.data.reshape(-1, d), features.indices[::d] // d
    row = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr) // d)
    squares = np.zeros(len(block))
    for b in np.unique(block).tolist():
        mine = np.flatnonzero(block == b)
        factor = factors.blocks.get(b)
        solved = x[mine] if factor is None else factors.ridge * cho_solve(factor, x[mine].T).T
        squares[mine] = np.square(solved).sum(axis=1)
    found: Floats = np.sqrt(np.bincount(row, weights=squares, minlength=features.shape[0]))
    return found


def scales(question: Question, features: Any) -> Floats:
    """Return the scale of a weight in each period, (H,), or once: the largest return over the norm of features."""
    log, gamma, periods = question.log, question.gamma, max(question.horizon, 1)
    largest, rest = np.zeros(periods), np.zeros(log.steps)
    goes_on = np.ones(log.steps)
    goes_on[log.start[1:] - 1] = 0.0
    longest = int(np.diff(log.start).max())
    for steps in range(1, longest + 1 if not question.horizon else min(periods, longest) + 1):
        rest = log.reward + gamma * goes_on * np.roll(rest, -1)  # of the next `steps` rewards
        largest[: max(periods - steps + 1, 1)] = np.abs(rest).max()
    size = np.square(features.data).sum() / features.shape[0]
    found: Floats = largest / np.sqrt(size if size > 0 else 1.0)
    return found
