"""Algorithms 1 and 2 as the paper prints them, in plain NumPy: what the engine is measured against.

Every episode builds A and b from all past episodes. Theta is sampled with the Cholesky factor of the precision:
inverting it, as printed, gives a covariance that is not positive definite at the paper's own scale.
"""

import numpy as np


class PseudoCode:
    """RLSVI on a finite problem, Phi of shape (H, S, A, K)."""

    def __init__(self, Phi, lam, sigma, seed, episodes):
        self.Phi, self.lam, self.sigma = Phi, lam, sigma
        self.rng = np.random.default_rng(seed)
        self.H, _, _, self.K = Phi.shape
        self.s = np.empty((episodes, self.H + 1), dtype=np.int64)
        self.a = np.empty((episodes, self.H), dtype=np.int64)
        self.r = np.empty((episodes, self.H + 1))
        self.l = 0

    def plan(self):
        """Algorithm 1."""
        theta = np.zeros((self.H, self.K))
        if self.l == 0:
            return theta
        s, a, r = self.s[: self.l], self.a[: self.l], self.r[: self.l]
        for h in reversed(range(self.H)):
            A = self.Phi[h, s[:, h], a[:, h]]
            if h == self.H - 1:
                b = r[:, h] + r[:, h + 1]
            else:
                b = r[:, h] + (self.Phi[h + 1] @ theta[h + 1]).max(axis=1)[s[:, h + 1]]
            L = np.linalg.cholesky(A.T @ A / self.sigma**2 + self.lam * np.eye(self.K))
            w = np.linalg.solve(L, A.T @ b / self.sigma**2) + self.rng.standard_normal(self.K)
            theta[h] = np.linalg.solve(L.T, w)
        return theta

    def episode(self, table):
        """Algorithm 2, one turn of its loop, on the arrays of a FiniteMDP."""
        theta = self.plan()
        s, now = 0, self.l
        for h in range(self.H):
            q = self.Phi[h, s] @ theta[h]
            a = self.rng.choice(np.flatnonzero(q == q.max()))
            row = slice(*table.indptr[s * table.actions + a :][:2])
            self.s[now, h], self.a[now, h], self.r[now, h] = s, a, 0.0
            s = self.rng.choice(table.successor[row], p=table.probability[row])
        self.s[now, -1], self.r[now, -1] = s, table.terminal[s]
        self.l += 1
        return self.r[now].sum()
