"""LSVI-UCB: least-squares value iteration with an upper confidence bonus, for linear features.

Jin, Yang, Wang and Jordan (2020), Algorithm 1:

    for k = 1, 2, ..
        for h = H-1, .., 0
            P_h = sum of phi phi' over the past of period h, + lam I
            w_h = P_h^-1 sum of phi (r + max_a Q_{h+1}(s', a))
            Q_h(., .) = min(w_h . phi + beta sqrt(phi' P_h^-1 phi), largest possible return)
        act greedily on Q for an episode

with beta = scale d H sqrt(log(2 d T / delta)), times the width of `reward_range`. RLSVI samples instead of adding
a bonus. The theory requires |phi(s, a)| <= 1, which is checked.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.contract import check_basis, restored_features
from rlsvi.agents.tabular.table import (
    TabularAgent,
    TabularMind,
    begin_period,
    learn_step,
    probability,
    range_of,
    value_of,
)
from rlsvi.bases import Basis
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, optional, positive, whole
from rlsvi.core.compile import Floats, Words
from rlsvi.core.elementary import log
from rlsvi.core.regression import Factor, prior_factor, rank_one, solve, solve_lower
from rlsvi.envs.task import Task


@dataclass(kw_only=True, repr=False, eq=False)
class LSVIUCB(TabularAgent):
    """Optimistic least-squares value iteration for finitely many states.

    Parameters
    ----------
    lam
        The ridge, > 0.
    scale
        The constant of beta, > 0, which the theory does not specify.
    delta
        The probability that values are not optimistic throughout is at most this.
    planned
        The number of episodes that will be played, for T = planned H in the logarithm.
    basis
        How states and actions map to weights, with 2-norm at most 1. If None, the problem's own, or a table.
    reward_range
        (low, high), the bounds of all rewards. As episodes may end early, it is extended to contain 0.
    horizon, seed
        As for RLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.LSVIUCB(scale=0.01, planned=100, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 100).predict(0, deterministic=True)
    (1, 1)
    """

    _samples = False
    _takes_basis = True

    reward_range: tuple[float, float] = (0.0, 1.0)
    lam: float = 1.0
    scale: float = 1.0
    delta: float = 0.05
    planned: int = 100_000
    basis: Basis | None = None

    _constraints: ClassVar[Constraints] = {"basis": optional(check_basis), "lam": positive}

    def _check(self) -> None:
        self._beta(1, 1)

    def _beta(self, weights: int, horizon: int) -> float:
        """Return beta, after checking what it is made of."""
        low, high = range_of(self.reward_range, with_zero=True)
        steps = whole("planned", self.planned, 1, 2**62) * horizon
        root = math.sqrt(log(2 * weights * steps / probability("delta", self.delta)))
        return positive("scale", self.scale) * weights * horizon * (high - low) * root

    def _rule(self, H: int, S: int, A: int) -> "LSVIUCBRule":
        features = self._features(Task(H, A, S), 0)
        assert features.table is not None
        longest = float(np.sqrt((features.table.phi**2).sum(axis=-1).max()))
        if longest > 1 + 1e-9:
            raise ValueError(
                f"basis has features of 2-norm {longest:.3g}, where the bonus of LSVI-UCB needs at most 1: divide "
                "all of them by that number"
            )
        B, d = features.blocks, features.dim
        factor, top = prior_factor((H, B), d, float(self.lam)), range_of(self.reward_range, with_zero=True)[1]
        return LSVIUCBRule(features.table, factor, np.zeros((B, d)), np.zeros(d), top, self._beta(B * d, H))

    def _check_features(self, task: Task, file: Archive) -> None:
        """Raise an error if the features are others than those in a file."""
        _, B, d, _ = shape = file.shape("linear.U", 4)
        if shape != (task.horizon, B, d, d):
            raise ArchiveError(f"is damaged: its counts are not those of {task}")
        restored_features(self, task, B, d)


class LSVIUCBRule(NamedTuple):
    """The features, the regression of every period, and the bounds of its values."""

    features: FeatureTable
    factor: Factor  # of P_h: (H, B, d, d) and (H, B, d)
    theta: Floats  # (B, d) w_h of one period at a time
    x: Floats  # (d,) work array
    top: float  # the largest reward
    beta: float


@learn_step.register(LSVIUCBRule)
def add_features(rule: LSVIUCBRule, mind: TabularMind, h: int, s: int, a: int) -> bool:
    """P_h += phi phi'. Returns False if the factor failed."""
    phi, b = rule.features.phi, rule.features.block[s, a]
    for k in range(rule.x.size):
        rule.x[k] = phi[h if phi.shape[0] > 1 else 0, s, a, k]
    return rank_one(rule.factor.U[h, b], rule.factor.inv[h, b], rule.x)


@value_of.register(LSVIUCBRule)
def lsvi_ucb(rule: LSVIUCBRule, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words) -> float:
    """Return an optimistic value: the regression's, with a bonus."""
    x, features, H = rule.x, rule.features, mind.plan.Q.shape[0]
    b, phi = features.block[s, a], features.phi[h if features.phi.shape[0] > 1 else 0, s, a]
    Q, square = 0.0, 0.0
    for k in range(x.size):
        Q += phi[k] * rule.theta[b, k]
        x[k] = phi[k]
    solve_lower(rule.factor.U[h, b], rule.factor.inv[h, b], x)
    for k in range(x.size):
        square += x[k] * x[k]
    return float(min(Q + rule.beta * math.sqrt(square), (H - h) * rule.top))


@begin_period.register(LSVIUCBRule)
def regress(rule: LSVIUCBRule, mind: TabularMind, h: int) -> None:
    """theta <- w_h, from the counts of period h."""
    counts, plan, theta, features = mind.counts, mind.plan, rule.theta, rule.features
    _, S, A = plan.Q.shape
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[b, k] = 0.0
    for s in range(S):
        for a in range(A):
            if counts.visits[h, s, a] > 0.0:
                target = counts.reward[h, s, a]
                for y in range(S):
                    target += counts.into[h, s, a, y] * plan.V[h + 1, y]
                b, phi = features.block[s, a], features.phi[h if features.phi.shape[0] > 1 else 0, s, a]
                for k in range(phi.size):
                    theta[b, k] += phi[k] * target
    for b in range(theta.shape[0]):
        solve(rule.factor.U[h, b], rule.factor.inv[h, b], theta[b])
