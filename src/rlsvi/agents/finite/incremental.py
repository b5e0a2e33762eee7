"""Incremental RLSVI (appendix F): summary statistics, updated with the last episode only.

for l = 0, 1, ..
    sample theta_lh from N(theta-bar_lh, Sigma_lh) for all h, where theta-bar_lh = Sigma_lh y_lh    (plan)
    play an episode greedily on it
    for h = 0, .., H-1
        Sigma_l+1,h^-1 = (1 - nu_l) Sigma_lh^-1 + phi' phi / sigma^2                             (forget, add_step)
        y_l+1,h = (1 - nu_l) y_lh + (r_lh + max_a (Phi_h+1 theta_l,h+1)(s_l,h+1, a)) phi' / sigma^2

A target is computed once, from the value function its episode was played with, and never updated. The cost of an
episode is therefore constant, and no states are stored. As everywhere, Sigma^-1 and y are stored times sigma^2. In
this form the prior is forgotten too, and the variance of unvisited features grows without bound. By default, nu_l
lam I is therefore added to Sigma_l+1,h^-1, and nu_l lam prior_mean to y_l+1,h: the data are forgotten, but the
prior is kept. As for RLSVI, the weights of the first episode are the prior mean.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.agents.contract import EPISODES
from rlsvi.agents.explore import Schedule, scheduled
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.finite.incremental_mind import IncrementalMind
from rlsvi.agents.finite.learner import FiniteLearner, new_mind
from rlsvi.agents.noise import Noise
from rlsvi.agents.task import Task
from rlsvi.bases import Features
from rlsvi.core.batched_cholesky import new_lanes
from rlsvi.core.checks import flag, shown
from rlsvi.core.compile import Floats


@dataclass(kw_only=True, repr=False, eq=False)
class IncrementalRLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration at a constant cost per episode.

    It is cheaper than RLSVI but less data-efficient: what is learned about later periods does not change the
    targets of earlier ones.

    Parameters
    ----------
    lam, sigma, basis, horizon, prior_mean, reward_offset, seed : as for RLSVI.
    nu : the fraction of the past that is forgotten per episode, in [0, 1): a number, or a function of the episode
        such as Linear or Exponential. 0 forgets nothing.
    keep_prior : forget only the data. False: forget the prior too, as in the paper.
    """

    sigma: Noise = 0.1
    nu: Schedule = 0.01
    keep_prior: bool = True

    concurrent = False  # targets are computed with the value function that an episode was played with

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        super().check()
        flag("keep_prior", self.keep_prior)
        self.step_sizes(0, 1)

    def step_sizes(self, first: int, episodes: int) -> Floats:
        """Return nu_l in `episodes` episodes from `first` on."""
        values = scheduled("nu", self.nu, first, episodes)
        if not ((values >= 0) & (values < 1)).all():
            raise ValueError(f"nu must lie in [0, 1), got {shown(self.nu)}")
        return values

    def learner_of(self, task: Task, features: Features) -> Any:
        """Return a learner with these features and without experience."""
        finite = new_mind(task, features, self.prior(task, features))
        if not self.keep_prior:  # the variance of all blocks changes
            finite.memory.alive[:] = True
            finite.memory.lives[:] = features.blocks
            finite.memory.live[:] = np.arange(features.blocks)
        mind = IncrementalMind(*finite, new_lanes(features.dim), self.keep_prior, np.empty(0), 0)
        return IncrementalLearner(task, mind, features, self)


class IncrementalLearner(FiniteLearner):
    """A learner that stores sums of targets, each computed once, and no states."""

    keeps_data = False

    def __init__(self, task: Task, mind: Any, features: Features, agent: IncrementalRLSVI) -> None:
        super().__init__(task, mind, features)
        self.agent = agent

    def mind_for(self, episodes: int) -> Any:
        """Return the mind with the step sizes of the next episodes."""
        first = int(self.counters[EPISODES])
        mind: Any = self.mind
        return mind._replace(nu=self.agent.step_sizes(first, episodes), first=first)
