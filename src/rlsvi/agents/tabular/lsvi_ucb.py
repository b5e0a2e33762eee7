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

import numpy as np

from rlsvi.agents.contract import plan
from rlsvi.agents.tabular.table import (
    LinearFeatures,
    TabularAgent,
    TabularMind,
    best_values,
    linear_of,
    probability,
    range_of,
)
from rlsvi.agents.task import Task
from rlsvi.bases import Basis
from rlsvi.core.checks import positive, whole
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.elementary import log
from rlsvi.core.regression import solve, solve_lower

TOP, BETA = range(2)  # indices of mind.numbers


class LSVIUCBMind(TabularMind):
    """The mind of LSVIUCB."""


@dataclass(kw_only=True, repr=False, eq=False)
class LSVIUCB(TabularAgent):
    """Optimistic least-squares value iteration for finitely many states.

    Parameters
    ----------
    lam : the ridge, > 0.
    scale : the constant of beta, > 0, which the theory does not specify.
    delta : the probability that values are not optimistic throughout is at most this.
    planned : the number of episodes that will be played, for T = planned H in the logarithm.
    basis : how states and actions map to weights, with 2-norm at most 1. If None, the problem's own, or a table.
    reward_range : (low, high), the bounds of all rewards. As episodes may end early, it is extended to contain 0.
    horizon, seed : as for RLSVI.
    """

    _samples = False
    _takes_basis = True
    mind_class = LSVIUCBMind

    reward_range: tuple[float, float] = (0.0, 1.0)
    lam: float = 1.0
    scale: float = 1.0
    delta: float = 0.05
    planned: int = 100_000
    basis: Basis | None = None

    def numbers(self, horizon: int, states: int, actions: int, weights: int) -> Floats:
        """Return the parameters of the planner, after checking them."""
        low, high = range_of(self.reward_range, with_zero=True)
        steps = whole("planned", self.planned, 1, 2**62) * horizon
        root = math.sqrt(log(2 * weights * steps / probability("delta", self.delta)))
        return np.array([high, positive("scale", self.scale) * weights * horizon * (high - low) * root])

    def _check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        positive("lam", self.lam)
        super()._check()

    def linear(self, task: Task) -> LinearFeatures:
        """Return features and their factors; features with a norm above 1 are refused."""
        features = self._features(task, 0)
        assert features.table is not None
        longest = float(np.sqrt((features.table.phi**2).sum(axis=-1).max()))
        if longest > 1 + 1e-9:
            raise ValueError(
                f"basis has features of 2-norm {longest:.3g}, where the bonus of LSVI-UCB needs at most 1: divide "
                "all of them by that number"
            )
        return linear_of(task.horizon, *features.table, features.blocks, float(self.lam))


@plan.register(LSVIUCBMind)
def lsvi_ucb(mind: LSVIUCBMind, sampled: bool, stream: Words) -> bool:
    """Optimistic least-squares value iteration. Returns False if a value is not finite."""
    plan, linear, numbers = mind.plan, mind.linear, mind.numbers
    H, S, A = plan.Q.shape
    theta, x = linear.theta, linear.x
    for h in range(H - 1, -1, -1):
        regress(mind, h)
        for s in range(S):
            for a in range(A):
                b, phi = linear.block[s, a], linear.phi[h if linear.phi.shape[0] > 1 else 0, s, a]
                Q, square = 0.0, 0.0
                for k in range(x.size):
                    Q += phi[k] * theta[b, k]
                    x[k] = phi[k]
                solve_lower(linear.U[h, b], linear.inv[h, b], x)
                for k in range(x.size):
                    square += x[k] * x[k]
                plan.Q[h, s, a] = min(Q + numbers[BETA] * math.sqrt(square), (H - h) * numbers[TOP])
        if not best_values(mind, h):
            return False
    return True


@compiled
def regress(mind: TabularMind, h: int) -> None:
    """theta <- w_h, from the counts of period h."""
    counts, plan, linear = mind.counts, mind.plan, mind.linear
    _, S, A = plan.Q.shape
    theta = linear.theta
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[b, k] = 0.0
    for s in range(S):
        for a in range(A):
            if counts.visits[h, s, a] > 0.0:
                target = counts.reward[h, s, a]
                for y in range(S):
                    target += counts.into[h, s, a, y] * plan.V[h + 1, y]
                b, phi = linear.block[s, a], linear.phi[h if linear.phi.shape[0] > 1 else 0, s, a]
                for k in range(phi.size):
                    theta[b, k] += phi[k] * target
    for b in range(theta.shape[0]):
        solve(linear.U[h, b], linear.inv[h, b], theta[b])
