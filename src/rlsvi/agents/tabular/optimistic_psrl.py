"""Optimistic PSRL: of several values drawn from the posterior for every pair, act on the highest.

The best of sampled set (BOSS) of Asmuth, Li, Littman, Nouri and Wingate (2009), which is also how Agrawal and Jia
(2017) sample pairs that were tried often; here for a finite horizon, where (h, s) takes the place of a state:

    for l = 0, 1, ..
        for h = H-1, .., 0, every (s, a)
            for j = 1, .., J: draw P_j and R_j from their posterior, as in PSRL
            Q_h(s, a) = max_j (R_j + P_j'V_{h+1}),  V_h = max_a Q_h
        act greedily on Q for an episode

In the words of the first paper, J models are merged into one MDP, in which an action also chooses its model. With
J = 1 this is PSRL; more samples are more optimistic, and explore longer. Models are drawn in every episode here,
in the papers after some pair has been tried a number of times.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlsvi.agents.tabular.psrl import RewardPrior, mean_reward, next_value, reward_prior, state_weights
from rlsvi.agents.tabular.table import TabularAgent, TabularMind, best_values, plan_values
from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats, Words


@dataclass(kw_only=True, repr=False, eq=False)
class OptimisticPSRL(TabularAgent):
    """PSRL that acts on the highest of several samples of every value: BOSS, Asmuth et al. (2009).

    Parameters
    ----------
    samples
        J, the number of samples of every value. 1 is PSRL; more explore longer.
    alpha_P, alpha_R, reward_range, horizon, seed
        As for PSRL.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.OptimisticPSRL(samples=5, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 100).predict(0, deterministic=True)
    (1, 1)
    """

    _samples = True

    reward_range: tuple[float, float] = (0.0, 1.0)
    samples: int = 5
    alpha_P: float | Floats = 1.0
    alpha_R: float | tuple[float, float] = 1.0

    def _rule(self, H: int, S: int, A: int) -> "OptimisticPSRLRule":
        prior = reward_prior(self.reward_range, self.alpha_R), state_weights(self.alpha_P, S)
        return OptimisticPSRLRule(*prior, p=np.zeros(S + 1), samples=whole("samples", self.samples, 1, 10**5))


class OptimisticPSRLRule(NamedTuple):
    """The prior of an MDP, as in PSRL, and the number of samples."""

    reward: RewardPrior
    alpha: Floats  # (S + 1,)
    p: Floats  # (S + 1,) work array
    samples: int


@plan_values.register(OptimisticPSRLRule)
def optimistic_psrl(rule: OptimisticPSRLRule, mind: TabularMind, sampled: bool, stream: Words) -> bool:
    """Solve the merged MDP, or the posterior mean. Return False if a value is not finite."""
    counts, plan = mind.counts, mind.plan
    H, S, A = plan.Q.shape
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                plan.Q[h, s, a] = -np.inf
                for _ in range(0 if not counts.legal[h, s, a] else rule.samples if sampled else 1):
                    n, total = counts.visits[h, s, a], counts.reward[h, s, a]
                    Q = mean_reward(rule.reward, n, total, sampled, stream)
                    if h + 1 < H:
                        Q += next_value(rule.alpha, counts.into[h, s, a], plan.V[h + 1], rule.p, sampled, stream)
                    plan.Q[h, s, a] = max(plan.Q[h, s, a], Q)
        if not best_values(mind, h):
            return False
    return True
