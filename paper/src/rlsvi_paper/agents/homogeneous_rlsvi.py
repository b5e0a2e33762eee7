"""RLSVI with a table for problems whose periods are alike: every period learns from the transitions of all.

Algorithm 1 fits theta_h to the transitions of period h alone. If transitions and rewards do not depend on the
period, a transition (s_i, a_i, r_i, s_i') counts in every period h, with the target r_i + V_{h+1}(s_i'):

    for l = 0, 1, ..
        for h = H-1, .., 0, every (s, a)
            y = the sum of r_i + V_{h+1}(s_i') over the n transitions from (s, a), whatever their period
            Q_h(s, a) ~ N((y + ridge prior_mean) / (n + ridge), sigma^2 / (n + ridge)),   ridge = lam sigma^2
            V_h = max_a Q_h
        act greedily on Q for an episode

In period H-1, where no state follows, y is the sum of the rewards alone. For the same reason, transitions observed
in period H-1 are left out in all other periods. Noise is drawn anew for every period, as in Algorithm 1. As for
RLSVI, the values of the first episode are the prior mean.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from rlsvi.agents.tabular.table import TabularAgent, TabularMind, value_of
from rlsvi.core.checks import number, ridge_of
from rlsvi.core.compile import Words
from rlsvi.core.random import normal


@dataclass(kw_only=True, repr=False, eq=False)
class HomogeneousRLSVI(TabularAgent):
    """RLSVI with a table, for transitions, rewards and legal actions that do not depend on the period.

    The last step must not pay an additional r_H. All this is checked where the problem is a FiniteMDP.

    Parameters
    ----------
    lam, sigma, horizon, seed
        As for RLSVI.
    prior_mean
        Prior mean of all values, a number.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> from rlsvi_paper.agents import HomogeneousRLSVI
    >>> agent = HomogeneousRLSVI(sigma=0.1, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/DeepSea-v0", size=5), 100).episodes
    100
    """

    _fused = True
    _samples = True
    _samples_first = False
    homogeneous = True

    lam: float = 1.0
    sigma: float = 0.1
    prior_mean: float = 0.0

    def _rule(self, H: int, S: int, A: int) -> "HomogeneousRLSVIRule":
        mean, ridge = number("prior_mean", self.prior_mean), ridge_of(self.lam, self.sigma)
        return HomogeneousRLSVIRule(float(self.sigma), ridge, mean)


class HomogeneousRLSVIRule(NamedTuple):
    """The prior and the noise."""

    sigma: float
    ridge: float  # lam sigma^2
    mean: float


@value_of.register(HomogeneousRLSVIRule)
def homogeneous_rlsvi(
    rule: HomogeneousRLSVIRule, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words
) -> float:
    """Draw a value given the data of all periods, or return the mean."""
    counts, plan = mind.counts, mind.plan
    n, y = counts.visits[0, s, a], counts.reward[0, s, a]
    if h + 1 == plan.Q.shape[0]:
        n, y = n + counts.visits[1, s, a], y + counts.reward[1, s, a]
    else:
        for following in range(plan.Q.shape[1]):
            y += counts.into[0, s, a, following] * plan.V[h + 1, following]
    precision = n + rule.ridge
    Q: float = (y + rule.ridge * rule.mean) / precision
    if sampled:
        Q += rule.sigma / math.sqrt(precision) * normal(stream)
    return Q
