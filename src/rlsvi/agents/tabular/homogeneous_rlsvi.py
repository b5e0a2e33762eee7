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

import numpy as np

from rlsvi.agents.contract import plan
from rlsvi.agents.tabular.table import TabularAgent, TabularMind, best_values
from rlsvi.core.checks import finite, ridge_of, shaped
from rlsvi.core.compile import Floats, Words
from rlsvi.core.random import normal

SIGMA, RIDGE, MEAN = range(3)  # indices of mind.numbers


class HomogeneousRLSVIMind(TabularMind):
    """The mind of HomogeneousRLSVI."""


@dataclass(kw_only=True, repr=False, eq=False)
class HomogeneousRLSVI(TabularAgent):
    """RLSVI with a table, for transitions, rewards and legal actions that do not depend on the period.

    Parameters
    ----------
    lam, sigma, horizon, seed : as for RLSVI.
    prior_mean : prior mean of all values, a number.

    The last step must not pay an additional r_H. All this is checked where the problem is a FiniteMDP.
    """

    _samples = True
    _samples_first = False
    homogeneous = True
    mind_class = HomogeneousRLSVIMind

    lam: float = 1.0
    sigma: float = 0.1
    prior_mean: float = 0.0

    def numbers(self, horizon: int, states: int, actions: int, weights: int) -> Floats:
        """Return the parameters of the planner, after checking them."""
        mean = shaped("prior_mean", finite("prior_mean", self.prior_mean), ())
        ridge = ridge_of(self.lam, self.sigma)
        return np.array([float(self.sigma), ridge, float(mean)])


@plan.register(HomogeneousRLSVIMind)
def homogeneous_rlsvi(mind: HomogeneousRLSVIMind, sampled: bool, stream: Words) -> bool:
    """Draw values given the data of all periods, or use their mean. Return False if a value is not finite."""
    counts, plan, numbers = mind.counts, mind.plan, mind.numbers
    H, S, A = plan.Q.shape
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                n, y = counts.visits[0, s, a], counts.reward[0, s, a]
                if h + 1 == H:
                    n, y = n + counts.visits[1, s, a], y + counts.reward[1, s, a]
                else:
                    for following in range(S):
                        y += counts.into[0, s, a, following] * plan.V[h + 1, following]
                precision = n + numbers[RIDGE]
                Q = (y + numbers[RIDGE] * numbers[MEAN]) / precision
                if sampled:
                    Q += numbers[SIGMA] / math.sqrt(precision) * normal(stream)
                plan.Q[h, s, a] = Q
        if not best_values(mind, h):
            return False
    return True
