"""Four Cholesky factors at once.

A small factor spends its time waiting, since each column needs the square root and division of the one before.
Four factors are therefore computed together, element by element, so that the others advance while one waits. They
are independent: a result does not depend on the other three.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.core.cholesky import HUGE
from rlsvi.core.compile import ONE, Floats, Longs, compiled, unsigned
from rlsvi.core.regression import Factor

LANES = 4
WIDEST = 32  # columns; a larger X would not stay in the nearest cache


class Lanes(NamedTuple):
    """The indices of four factors, and a work array."""

    place: Longs  # (4, 2) their first two indices
    X: Floats  # (d, d, 4); empty for factors that are too wide


def new_lanes(d: int) -> Lanes:
    """Return a work array for factors of d columns."""
    width = d if d <= WIDEST else 0
    return Lanes(np.zeros((LANES, 2), np.int64), np.zeros((width, width, LANES)))


@compiled
def regularise_four(factor: Factor, lanes: Lanes, by: float, amount: float) -> bool:
    """P <- by P + amount I for the four factors of `lanes`. Returns False if one of them becomes invalid.

    They are the triangles of sqrt(by) R above sqrt(amount) I, by Householder reflections. Column j consists of the
    diagonal of R, the root of `amount`, and what earlier reflections have put into the rows k < j of X. It is
    reflected onto the diagonal, with signs chosen to avoid cancellation and keep the diagonal positive.
    For fewer than four factors, repeat one of them: all are read before any is written.
    """
    place, X = lanes.place, lanes.X
    U0, inv0 = factor.U[place[0, 0], place[0, 1]], factor.inv[place[0, 0], place[0, 1]]
    U1, inv1 = factor.U[place[1, 0], place[1, 1]], factor.inv[place[1, 0], place[1, 1]]
    U2, inv2 = factor.U[place[2, 0], place[2, 1]], factor.inv[place[2, 0], place[2, 1]]
    U3, inv3 = factor.U[place[3, 0], place[3, 1]], factor.inv[place[3, 0], place[3, 1]]
    d, root, a, fine = unsigned(X.shape[0]), math.sqrt(by), math.sqrt(amount), True
    for j in range(d):
        r0, r1, r2, r3 = root * U0[j, j], root * U1[j, j], root * U2[j, j], root * U3[j, j]
        s0, s1, s2, s3 = r0 * r0 + amount, r1 * r1 + amount, r2 * r2 + amount, r3 * r3 + amount
        for k in range(j):
            x0, x1, x2, x3 = X[k, j, 0], X[k, j, 1], X[k, j, 2], X[k, j, 3]
            s0, s1, s2, s3 = s0 + x0 * x0, s1 + x1 * x1, s2 + x2 * x2, s3 + x3 * x3
        s0, s1, s2, s3 = math.sqrt(s0), math.sqrt(s1), math.sqrt(s2), math.sqrt(s3)
        fine = fine and 0.0 < s0 < HUGE and 0.0 < s1 < HUGE and 0.0 < s2 < HUGE and 0.0 < s3 < HUGE
        U0[j, j], U1[j, j], U2[j, j], U3[j, j] = s0, s1, s2, s3
        r0, r1, r2, r3 = r0 + s0, r1 + s1, r2 + s2, r3 + s3
        s0, s1, s2, s3 = 1.0 / (s0 * r0), 1.0 / (s1 * r1), 1.0 / (s2 * r2), 1.0 / (s3 * r3)
        inv0[j], inv1[j], inv2[j], inv3[j] = s0 * r0, s1 * r1, s2 * r2, s3 * r3
        for i in range(j + ONE, d):
            u0, u1, u2, u3 = root * U0[j, i], root * U1[j, i], root * U2[j, i], root * U3[j, i]
            p0, p1, p2, p3 = u0 * r0, u1 * r1, u2 * r2, u3 * r3
            for k in range(j):
                x0, x1, x2, x3 = X[k, j, 0], X[k, j, 1], X[k, j, 2], X[k, j, 3]
                z0, z1, z2, z3 = X[k, i, 0], X[k, i, 1], X[k, i, 2], X[k, i, 3]
                p0, p1, p2, p3 = p0 + x0 * z0, p1 + x1 * z1, p2 + x2 * z2, p3 + x3 * z3
            p0, p1, p2, p3 = p0 * s0, p1 * s1, p2 * s2, p3 * s3
            u0, u1, u2, u3 = p0 * r0 - u0, p1 * r1 - u1, p2 * r2 - u2, p3 * r3 - u3
            U0[j, i], U1[j, i], U2[j, i], U3[j, i] = u0, u1, u2, u3
            for k in range(j):
                x0, x1, x2, x3 = X[k, j, 0], X[k, j, 1], X[k, j, 2], X[k, j, 3]
                z0, z1, z2, z3 = X[k, i, 0], X[k, i, 1], X[k, i, 2], X[k, i, 3]
                z0, z1, z2, z3 = z0 - p0 * x0, z1 - p1 * x1, z2 - p2 * x2, z3 - p3 * x3
                X[k, i, 0], X[k, i, 1], X[k, i, 2], X[k, i, 3] = z0, z1, z2, z3
            p0, p1, p2, p3 = -a * p0, -a * p1, -a * p2, -a * p3
            X[j, i, 0], X[j, i, 1], X[j, i, 2], X[j, i, 3] = p0, p1, p2, p3
    return fine
