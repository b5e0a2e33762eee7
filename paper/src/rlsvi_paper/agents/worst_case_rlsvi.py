"""RLSVI with a table, and noise large enough for a bound of the regret in every MDP, not only on average.

Russo (2019), "Worst-Case Regret Bounds for Exploration via Randomized Value Functions", for rewards in [0, 1]:

    for k = 1, 2, ..
        beta_k = 1/2 S H^3 log(2 H S A k)
        for h = H-1, .., 0, every (s, a), tried n times
            y = the sum of r_i + V_{h+1}(s_i') over these n transitions
            Q_h(s, a) ~ N(y / (n + 1), beta_k / (n + 1)),   V_h = max_a Q_h
        act greedily on Q for an episode

With `clip`, as in Agrawal, Chen and Jiang (2021), "Improved Worst-Case Regret Bounds for Randomized Least-Squares
Value Iteration" (arXiv 2010.12163), there is no noise where its variance is too large, but optimism:

    Q_h(s, a) = H - h, the largest return, if n <= alpha_k = 4 log(40 S A T / delta) S H^3 log(2 H S A k)

where T = K H for K episodes. Rewards in [low, high] are learned from as (r - low) / (high - low), so that a pair
that was not tried has the lowest return for its mean, where Russo has 0.

Which constants these are. beta_k is Russo's, and the regret that he proves is O(H^3 S^(3/2) sqrt(A K)) up to
logarithms. The second paper has the same variance, written as beta_k / (2 (n + 1)) with twice this beta_k, and
O(H^2 S sqrt(A T)). Its bound, and that pairs rarely tried have the largest return, are certain here; the constants
4 and 40 in alpha_k are from memory, and no copy of the paper could be consulted. `scale` multiplies the standard
deviation of the noise, and alpha_k by its square, so that the noise where clipping ends does not depend on it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from rlsvi.agents.contract import EPISODES
from rlsvi.agents.tabular.table import TabularAgent, TabularMind, best_values, plan_values, probability, range_of
from rlsvi.core.checks import flag, positive, whole
from rlsvi.core.compile import Words
from rlsvi.core.elementary import log
from rlsvi.core.random import normal


@dataclass(kw_only=True, repr=False, eq=False)
class WorstCaseRLSVI(TabularAgent):
    """RLSVI with a table whose regret is bounded in every MDP: Russo (2019), or clipped, Agrawal et al. (2021).

    Parameters
    ----------
    scale
        Factor of the standard deviation of the noise. The theory requires 1; much smaller values work best.
    clip
        Give pairs that were rarely tried the largest return instead of noise.
    delta
        With `clip`, the probability that the regret exceeds its bound is at most this.
    planned
        With `clip`, the number of episodes that will be played, for T = planned H in the logarithm.
    reward_range
        (low, high), the bounds of all rewards. As episodes may end early, it is extended to contain 0.
    horizon, seed
        As for RLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> from rlsvi_paper.agents import WorstCaseRLSVI
    >>> agent = WorstCaseRLSVI(scale=0.02, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 100).predict(0, deterministic=True)
    (1, 1)
    """

    _fused = True
    _samples = True

    reward_range: tuple[float, float] = (0.0, 1.0)
    scale: float = 1.0
    clip: bool = False
    delta: float = 0.05
    planned: int = 100_000

    def _rule(self, H: int, S: int, A: int) -> "WorstCaseRLSVIRule":
        low, high = range_of(self.reward_range, with_zero=True)
        steps, scale = whole("planned", self.planned, 1, 2**62) * H, positive("scale", self.scale)
        beta = 0.5 * S * H**3 * (scale * scale)
        alpha = 8.0 * log(40 * S * A * steps / probability("delta", self.delta))
        return WorstCaseRLSVIRule(low, high, 2.0 * H * S * A, beta, alpha if flag("clip", self.clip) else 0.0)


class WorstCaseRLSVIRule(NamedTuple):
    """The bounds of rewards, and what beta_k and alpha_k are made of."""

    low: float
    high: float
    pairs: float  # 2 H S A
    beta: float  # 1/2 S H^3, times the scale
    alpha: float  # alpha_k in units of beta_k, or 0 without clipping


@plan_values.register(WorstCaseRLSVIRule)
def worst_case_rlsvi(rule: WorstCaseRLSVIRule, mind: TabularMind, sampled: bool, stream: Words) -> bool:
    """Draw values, or use their mean, without noise and clipping. Return False if a value is not finite."""
    counts, plan = mind.counts, mind.plan
    H, S, A = plan.Q.shape
    beta = rule.beta * log(rule.pairs * (counts.counters[EPISODES] + 1))
    spread = (rule.high - rule.low) * math.sqrt(beta)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                n = counts.visits[h, s, a]
                if sampled and rule.alpha > 0.0 and n <= rule.alpha * beta:
                    plan.Q[h, s, a] = (H - h) * rule.high
                    continue
                y = counts.reward[h, s, a] + (H - h) * rule.low
                for following in range(S):
                    y += counts.into[h, s, a, following] * plan.V[h + 1, following]
                Q = y / (n + 1.0)
                if sampled:
                    Q += spread / math.sqrt(n + 1.0) * normal(stream)
                plan.Q[h, s, a] = Q
        if not best_values(mind, h):
            return False
    return True
