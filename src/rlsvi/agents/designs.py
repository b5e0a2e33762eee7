"""The regression of per-action blocks on the features of states, all at once in matrix products.

A design holds Phi, the features of N distinct states, and the precision P of the weights of all actions: that of
the prior, and for every action the sum of phi phi' over its transitions. The prior correlation of the weights of
two actions, for the same feature, is `alike`; with A actions of d features P is (A d, A d). With one weight a
state Phi is I, P is diagonal, and actions are not alike.
"""

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from rlsvi.core.compile import Floats, Longs
from rlsvi.core.regression import FactorError


class Table:
    """One weight a state and action: weights (A, N)."""

    def __init__(self, actions: int) -> None:
        self.counts = np.zeros((actions, 0))
        self._ridge = 1.0

    @property
    def dim(self) -> int:
        """Weights of an action."""
        return self.counts.shape[1]

    def extend(self, rows: Floats) -> None:
        """More states, that have been met in no transition."""
        self.counts = np.pad(self.counts, ((0, 0), (0, len(rows))))

    def add(self, row: Longs, action: Longs, count: Floats) -> None:
        """Transitions of these states and actions."""
        np.add.at(self.counts, (action, row), count)

    def factor(self, ridge: float) -> None:
        """P = ridge + counts."""
        self._ridge = ridge

    def values(self, theta: Floats) -> Floats:
        """Phi theta_a of all states, (N, A)."""
        return theta.T

    def fit(self, sums: Floats, mean: Floats) -> Floats:
        """The posterior mean, from the sums of the targets of every state and action (N, A)."""
        fitted: Floats = (sums.T + self._ridge * mean) / (self._ridge + self.counts)
        return fitted

    def penalty(self, away: Floats) -> float:
        """What the prior says against weights so far away from its mean."""
        return self._ridge * float((away**2).sum())

    def shape(self, z: Floats) -> Floats:
        """L_a^-T z_a for P_a = L_a L_a'."""
        shaped: Floats = z / np.sqrt(self._ridge + self.counts)
        return shaped


class Dense:
    """d features a state: weights (A, d)."""

    def __init__(self, actions: int, dim: int, alike: float = 0.0) -> None:
        self.alike = alike
        self._phi, self._n = np.zeros((64, dim)), 0
        self.gram = np.zeros((actions, dim, dim))
        self._prior: Floats = np.zeros((actions, actions))
        self._factor: Floats = np.zeros((0, 0))

    @property
    def dim(self) -> int:
        """Weights of an action."""
        return self.gram.shape[1]

    @property
    def phi(self) -> Floats:
        """The features of the states, (N, d)."""
        return self._phi[: self._n]

    def extend(self, rows: Floats) -> None:
        """More states, that have been met in no transition."""
        if self._n + len(rows) > len(self._phi):
            room = np.empty((len(rows) + self._n + self._n // 2, self.dim))
            room[: self._n] = self.phi
            self._phi = room
        self._phi[self._n : self._n + len(rows)] = rows
        self._n += len(rows)

    def add(self, row: Longs, action: Longs, count: Floats) -> None:
        """Transitions of these states and actions: a product of matrices an action."""
        for a in np.unique(action):
            its = action == a
            x = self.phi[row[its]]
            self.gram[a] += x.T @ (x * count[its, None])

    def factor(self, ridge: float) -> None:
        """The Cholesky factor of P, over the weights of all actions where their priors are alike."""
        A, d = self.gram.shape[:2]
        prior = np.asarray(
            ridge * np.linalg.inv(np.full((A, A), self.alike) + (1 - self.alike) * np.eye(A)), dtype=np.float64
        )
        self._prior = prior
        P = np.kron(prior, np.eye(d))
        for a in range(A):
            P[a * d : (a + 1) * d, a * d : (a + 1) * d] += self.gram[a]
        try:
            self._factor = np.asarray(np.linalg.cholesky(P), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise FactorError(
                "the precision matrix is not positive definite: features are too large or too much alike for this "
                "lam; scale them down, or use a larger lam"
            ) from None

    def values(self, theta: Floats) -> Floats:
        """Phi theta_a of all states, (N, A)."""
        return self.phi @ theta.T

    def fit(self, sums: Floats, mean: Floats) -> Floats:
        """The posterior mean, from the sums of the targets of every state and action (N, A)."""
        y = (self.phi.T @ sums).T + self._prior @ mean
        fitted: Floats = cho_solve((self._factor, True), y.ravel(), check_finite=False).reshape(y.shape)
        return fitted

    def penalty(self, away: Floats) -> float:
        """What the prior says against weights so far away from its mean."""
        return float((away * (self._prior @ away)).sum())

    def shape(self, z: Floats) -> Floats:
        """L^-T z for P = L L'."""
        shaped: Floats = solve_triangular(self._factor, z.ravel(), lower=True, trans="T").reshape(z.shape)
        return shaped


Design = Table | Dense
