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

import numpy as np

from rlsvi.agents.contract import plan
from rlsvi.agents.tabular.psrl import ALPHA_HIGH, ALPHA_LOW, HIGH, LOW, mean_reward, next_value
from rlsvi.agents.tabular.table import TabularAgent, TabularMind, best_values, range_of
from rlsvi.core.checks import positive
from rlsvi.core.compile import Floats, Words
from rlsvi.core.random import normal
from rlsvi.mdp.examples import weights_of

SCALE, ALPHA_P = 5, 6  # indices of mind.numbers, after those of PSRL


class GaussianPSRLMind(TabularMind):
    """The mind of GaussianPSRL."""


@dataclass(kw_only=True, repr=False, eq=False)
class GaussianPSRL(TabularAgent):
    """PSRL with normal instead of Dirichlet noise, with a table.

    Parameters
    ----------
    scale : factor of the standard deviation. The proof requires 1; smaller values work best.
    alpha_P, alpha_R, reward_range, horizon, seed : as for PSRL.
    """

    _samples = True
    mind_class = GaussianPSRLMind

    reward_range: tuple[float, float] = (0.0, 1.0)
    scale: float = 1.0
    alpha_P: float | Floats = 1.0
    alpha_R: float | tuple[float, float] = 1.0

    def numbers(self, horizon: int, states: int, actions: int, weights: int) -> Floats:
        """Return the parameters of the planner, after checking them."""
        rewards = *range_of(self.reward_range), *weights_of("alpha_R", self.alpha_R, 2)
        return np.array([*rewards, 0.0, positive("scale", self.scale), self.prior_weights(states).sum()])


@plan.register(GaussianPSRLMind)
def gaussian_psrl(mind: GaussianPSRLMind, sampled: bool, stream: Words) -> bool:
    """Draw values around the posterior mean, or use that mean. Return False if a value is not finite."""
    counts, plan, numbers = mind.counts, mind.plan, mind.numbers
    H, S, A = plan.Q.shape
    width, alpha_R = numbers[HIGH] - numbers[LOW], numbers[ALPHA_LOW] + numbers[ALPHA_HIGH]
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                if counts.legal[h, s, a]:
                    n = counts.visits[h, s, a]
                    Q = mean_reward(numbers, n, counts.reward[h, s, a], False, stream)
                    variance = 1.0 / (alpha_R + n)
                    if h + 1 < H:
                        Q += next_value(mind.alpha, counts.into[h, s, a], plan.V[h + 1], plan.p, False, stream)
                        variance += H * H / (numbers[ALPHA_P] + n)
                    if sampled:
                        Q += numbers[SCALE] * width * math.sqrt(variance) * normal(stream)
                    plan.Q[h, s, a] = Q
        if not best_values(mind, h):
            return False
    return True
