"""Gaussian PSRL: the posterior mean of the MDP, with normal noise as wide as the proof of Theorem 1 requires.

The proof of Lemma 2 (section 5): the noise of rewards is dominated by N(0, 1) over its weight of evidence, that
of transitions by N(0, H^2) over its own. Instead of sampling an MDP, sample values:

    for l = 0, 1, ..
        for h = H-1, .., 0, every (s, a)
            mean  = E[R | data] + E[P | data]' V_{h+1}
            Q_h(s, a) ~ N(mean, scale^2 (1 / (1'alpha_R + n) + H^2 / (1'alpha_P + n)))
            V_h = max_a Q_h
        act greedily on Q for an episode

Here 1 stands for the width of `reward_range`. By Lemma 1, Q is stochastically optimistic for the posterior. The
Gaussian PSRL of Osband and Van Roy (2017) is of the same kind: the estimated MDP, and normal noise on every value,
with a variance that falls as 1 / n and grows as the square of the reward still attainable. It differs in that
periods share one P and one R, and that noise is drawn once for a pair (s, a) and used in all periods. In their
program the noise of transitions is multiplied by the H - h - 1 periods left; here by H, as in the proof, and it is
drawn for every (h, s, a). RLSVI with a table is the same with one weight of evidence, shrunk towards zero instead
of the prior mean.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlsvi.agents.tabular.psrl import RewardPrior, mean_reward, next_value, reward_prior, state_weights
from rlsvi.agents.tabular.table import TabularAgent, TabularMind, value_of
from rlsvi.core.checks import positive
from rlsvi.core.compile import Floats, Words
from rlsvi.core.random import normal


@dataclass(kw_only=True, repr=False, eq=False)
class GaussianPSRL(TabularAgent):
    """PSRL with normal instead of Dirichlet noise, with a table.

    Parameters
    ----------
    scale
        Factor of the standard deviation. The proof requires 1; smaller values work best.
    alpha_P, alpha_R, reward_range, horizon, seed
        As for PSRL.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> from rlsvi_paper.agents import GaussianPSRL
    >>> agent = GaussianPSRL(scale=0.3, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 100).predict(0, deterministic=True)
    (1, 1)
    """

    _fused = True
    _samples = True

    reward_range: tuple[float, float] = (0.0, 1.0)
    scale: float = 1.0
    alpha_P: float | Floats = 1.0
    alpha_R: float | tuple[float, float] = 1.0

    def _rule(self, H: int, S: int, A: int) -> "GaussianPSRLRule":
        reward, alpha = reward_prior(self.reward_range, self.alpha_R), state_weights(self.alpha_P, S)
        scale, evidence = positive("scale", self.scale), float(alpha[:-1].sum())
        return GaussianPSRLRule(reward, alpha, np.zeros(len(alpha)), scale, evidence)


class GaussianPSRLRule(NamedTuple):
    """The prior of an MDP, as in PSRL, and the scale of the noise."""

    reward: RewardPrior
    alpha: Floats  # (S + 1,)
    p: Floats  # (S + 1,) work array
    scale: float
    evidence: float  # 1'alpha_P


@value_of.register(GaussianPSRLRule)
def gaussian_psrl(
    rule: GaussianPSRLRule, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words
) -> float:
    """Draw a value around the posterior mean, or return that mean."""
    counts, plan, reward = mind.counts, mind.plan, rule.reward
    if not counts.legal[h, s, a]:
        return -np.inf
    H, n = plan.Q.shape[0], counts.visits[h, s, a]
    Q = mean_reward(reward, n, counts.reward[h, s, a], False, stream)
    variance = 1.0 / (reward.weight_low + reward.weight_high + n)
    if h + 1 < H:
        Q += next_value(rule.alpha, counts.into[h, s, a], plan.V[h + 1], rule.p, False, stream)
        variance += H * H / (rule.evidence + n)
    if sampled:
        Q += rule.scale * (reward.high - reward.low) * math.sqrt(variance) * normal(stream)
    return Q
