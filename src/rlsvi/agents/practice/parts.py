"""Actions of many parts: values are sums over the parts, so that no combination is ever listed.

An action a = (a_1, .., a_k) chooses one of n_p values of each part p. Its weights are

    w(a) = u + sum_p v_p(a_p)            u ~ N(0, ALIKE / ridge), v_p(j) ~ N(0, (1 - ALIKE) / (k ridge))

The prior variance of w(a) is 1 / ridge whatever k is, and two actions that have m parts in common have the
correlation ALIKE + (1 - ALIKE) m / k. With one part this is the prior of `FeatureRegression`. Written as weights
of values, theta_pj = u / k + v_p(j), the best action has the best value of each part,

    V(s) = max_a phi(s) . w(a) = sum_p max_j phi(s) . theta_pj

The mean of v_p over its values cannot be told from u. The regression is therefore on C = 1 + sum_p (n_p - 1)
blocks of d features: u with all these means, and contrasts between the values of each part, orthonormal and with
the mean 0. An action has a code c of C numbers, and its features are all products of c and phi(s). The posterior
is exact, and its precision a matrix of C d rows.
"""

import math

import numpy as np

from rlsvi.agents.practice.regression import ALIKE, FeatureRegression
from rlsvi.core.checks import fits
from rlsvi.core.compile import Floats, Longs
from rlsvi.core.machine import ROWS
from rlsvi.core.regression import cholesky, solve_triangular
from rlsvi.envs.actions import starts_of

MOST_WEIGHTS = 8192  # of which a precision takes half a gigabyte, and its factor seconds
USUAL_WEIGHTS = 1500  # up to which a plan takes less than a second
FEWEST_WAVES = 8  # waves
AT_ONCE = 2**22  # numbers of rows of features that are multiplied at once


def blocks_of(parts: tuple[int, ...]) -> int:
    """Return the number of blocks of weights, given how many values each part has."""
    return 1 + sum(parts) - len(parts)


def codes_of(parts: tuple[int, ...]) -> Floats:
    """Return the code of every value of every part, (P, C); that of an action is the sum of those of its values.

    The first number is 1 / k; the others are orthonormal contrasts within the part (Helmert's).
    """
    codes = np.zeros((sum(parts), blocks_of(parts)))
    codes[:, 0] = 1 / len(parts)
    column = 1
    for start, n in zip(starts_of(parts).tolist(), parts, strict=True):
        for i in range(1, n):
            size = math.sqrt(i * (i + 1))
            codes[start : start + i, column], codes[start + i, column] = 1 / size, -i / size
            column += 1
    return codes


class PartsRegression(FeatureRegression):
    """Weights (P, d) of the values of all parts, with one joint precision. `sums` (C, d, C, d) is X'X."""

    def __init__(self, parts: tuple[int, ...], dim: int) -> None:
        super().__init__(0, dim)
        self.parts, self._codes = parts, codes_of(parts)
        C, k = blocks_of(parts), len(parts)
        self.sums = np.zeros((C, dim, C, dim))
        self._prior = np.full(C, k / (1 - ALIKE))  # precision of each block, where the ridge is 1
        self._prior[0] = 1 / (ALIKE + (1 - ALIKE) / k * sum(1 / n for n in parts))
        self._joint_factor: Floats = np.zeros((0, 0))

    @property
    def drawn(self) -> tuple[int, int]:
        """The shape of the normal variates of a sample: one row per block."""
        return len(self.sums), self.dim

    def add(self, row: Longs, action: Longs, count: Floats) -> None:
        """Add transitions from these states with these actions (T, k)."""
        size = self._codes.shape[1] * self.dim
        total = self.sums.reshape(size, size)
        block = row // ROWS
        for b in np.unique(block):
            its = np.flatnonzero(block == b)
            for here in np.array_split(its, 1 + len(its) * size // AT_ONCE):
                phi, code = self._phi[b][row[here] - b * ROWS], self._codes[action[here]].sum(axis=1)
                x = (code[:, :, None] * phi[:, None, :]).reshape(len(here), size)
                total += x.T @ (x * count[here, None])

    def factor(self, ridge: float) -> None:
        """Compute the Cholesky factor of P."""
        self._ridge, size = ridge, self._codes.shape[1] * self.dim
        precision = self.sums.reshape(size, size).copy()
        precision[np.diag_indices(size)] += ridge * np.repeat(self._prior, self.dim)
        self._joint_factor = cholesky(precision)

    def solve(self, y: Floats) -> Floats:
        """Return the posterior mean, given the products of features and targets of every value (P, d)."""
        left = (self._codes.T @ y).ravel()
        return self.shape(solve_triangular(self._joint_factor, left).reshape(self.drawn))

    def penalty(self, theta: Floats) -> float:
        """Return the prior's penalty on weights."""
        of_all = np.repeat(1 / np.array(self.parts), self.parts) @ theta
        blocks = np.concatenate([of_all[None], self._codes[:, 1:].T @ theta])
        return self._ridge * float(self._prior @ (blocks**2).sum(axis=1))

    def shape(self, z: Floats) -> Floats:
        """Return the weights (P, d) of the blocks L^-T z, where P = L L'."""
        shaped: Floats = self._codes @ solve_triangular(self._joint_factor, z.ravel(), "T").reshape(z.shape)
        return shaped


def usual_features(parts: tuple[int, ...]) -> int:
    """Return up to how many features plans are quick."""
    return USUAL_WEIGHTS // blocks_of(parts)


def check_weights(parts: tuple[int, ...], dim: int, copies: int) -> None:
    """Raise an error if there are too many weights, of whose joint precision `copies` are kept."""
    weights = blocks_of(parts) * dim
    remedy = (
        "use fewer features, such as basis=bases.Waves(features=10), or list those actions to choose among, in "
        "which parts that matter less are fixed, as rlsvi.envs.Discretized(env, choices=[..])"
    )
    what = f"{dim} features of {len(parts)} parts of actions with {sum(parts)} values"
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"{what} have {weights} weights, but at most {MOST_WEIGHTS} can be learned jointly: {remedy}"
        )
    fits(f"the sums and factors of {what}", copies * weights**2, remedy)
