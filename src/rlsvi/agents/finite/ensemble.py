"""Ensemble sampling: RLSVI with a fixed number of value functions, one of which is picked for each episode.

Lu and Van Roy (2017) for bandits, Osband et al. (2019) for value functions, with the randomized prior functions of
Osband et al. (2018). Instead of sampling a value function in every episode, M of them are kept. Each is fitted to
the same data with its own noise, which is drawn once and then fixed:

    for every member m                                                            (before the first episode)
        theta0_mh ~ N(prior_mean, prior_scale^2 I / lam) for all h
    for l = 0, 1, ..
        pick a member m uniformly                                                 (plan)
        for h = H-1, .., 0
            theta_mh minimises  sum_i (r_i + V_m,h+1(s_i') + w_im - phi_i . theta)^2 + ridge |theta - theta0_mh|^2
        play an episode greedily on it
        for every new transition i and every member m                             (learn)
            w_im ~ N(0, sigma^2)

with ridge = lam sigma^2. The solution is theta_mh = P^-1 (A'b + sum_i phi_i w_im + ridge theta0_mh), where all
members share P = ridge I + A'A, and the sums of noise are kept for each member. A transition therefore costs
O(d^2 + M d), and an episode one value iteration, as for RLSVI.

If the data do not depend on the noise, and prior_scale = 1, theta_mh is distributed exactly as RLSVI's sample,
N(P^-1 y, sigma^2 P^-1). With few members they do depend on it: an action that no member finds promising is not
tried. As M grows, this is RLSVI. As for RLSVI, the weights of the first episode are the prior mean.

The other kind of ensemble, with random weights instead of noise, is in ensemble_weights.py.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.agents.finite.agent import FiniteHorizonAgent, read_features
from rlsvi.agents.finite.bootstrap import bootstrap_mind
from rlsvi.agents.finite.ensemble_mind import EnsembleMind
from rlsvi.agents.finite.ensemble_weights import WeightedLearner, WeightedMind
from rlsvi.agents.finite.learner import FiniteLearner, new_mind
from rlsvi.agents.task import Task
from rlsvi.bases import Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite, fits, one_of, positive, shaped, shown, whole

TARGETS, WEIGHTS = "targets", "weights"


@dataclass(kw_only=True, repr=False, eq=False)
class EnsembleRLSVI(FiniteHorizonAgent):
    """RLSVI with a fixed number of value functions, one of which is picked uniformly for each episode.

    Parameters
    ----------
    lam, basis, horizon, prior_mean, reward_offset, seed : as for RLSVI.
    sigma : standard deviation of the noise of a target, a number > 0. If perturb="weights", it matters only
        through lam sigma^2, the number of transitions that the prior counts for.
    members : the number of value functions. More are closer to RLSVI, which samples a new one for each episode.
    perturb : how members differ besides their priors. "targets": each adds its own normal noise to every target.
        "weights": each gives its own weight to every transition, drawn from Exp(1), as in BootstrapRLSVI. Nothing
        is then assumed about the noise, and the regression is computed anew in every episode.
    prior_scale : standard deviation of the members' prior draws, in units of RLSVI's prior, >= 0. 0: all members
        start from the prior mean, and differ only in what they make of the data.

    The posterior mean, on which `predict(deterministic=True)` acts, has no noise and is that of RLSVI.
    """

    sigma: float = 0.1
    members: int = 20
    perturb: str = TARGETS
    prior_scale: float = 1.0

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        positive("sigma", self.sigma)
        whole("members", self.members, 1)
        one_of("perturb", self.perturb, (TARGETS, WEIGHTS))
        if float(shaped("prior_scale", finite("prior_scale", self.prior_scale), ())) < 0:
            raise ValueError(f"prior_scale must be at least 0, got {shown(self.prior_scale)}")
        super().check()

    @property
    def members_in_use(self) -> int:
        """The number of members that it plans with: after it has learned, setting `members` does not change it."""
        return self._learner.mind.keys.size - 1 if self.steps > 0 else self.members

    def restored_learner(self, task: Task, file: Archive) -> Any:
        """Return the learner stored in a file, after checking all its arrays."""
        if file.shape("keys", 1) != (self.members + 1,):
            raise ArchiveError(f"is damaged: it does not have the keys of {self.members} members")
        features, M = read_features(self, task, file, "memory.reward", 3), self.members
        weighted, sizes = self.perturb == WEIGHTS, (task.horizon, features.blocks, M, features.dim)
        if (file.shape("weights", 3)[2:] if weighted else file.shape("noise", 4)) != ((M,) if weighted else sizes):
            raise ArchiveError(f"is damaged: it does not have the noise of {M} members")
        learner = self.learner_of(task, features)
        learner.restore(file)
        return learner

    def learner_of(self, task: Task, features: Features) -> Any:
        """Return a learner with these features and without experience."""
        H, B, M, d = task.horizon, features.blocks, int(self.members), features.dim
        numbers = H * M * (16 if self.perturb == WEIGHTS else B * d)
        fits(f"members={M} of {H} x {B * d} weights", numbers, "use fewer members, or fewer features")
        prior, keys = self.prior(task, features), np.zeros(M + 1, np.uint64)
        spread = float(self.prior_scale) / math.sqrt(self.lam)
        if self.perturb == WEIGHTS:
            start = bootstrap_mind(task, features, prior, spread)
            weights = np.zeros((*start.outcomes.link.shape, M))
            return WeightedLearner(task, WeightedMind(*start, weights, keys, np.zeros(4, np.uint64)), features)
        noise, begun = np.zeros((H, B, M, d)), np.zeros(H, np.int64)
        mind = EnsembleMind(*new_mind(task, features, prior), noise, keys, begun, spread)
        return EnsembleLearner(task, mind, features)


class EnsembleLearner(FiniteLearner):
    """A learner that also stores the sums of every member's noise."""

    mind: Any

    def state(self) -> dict[str, Any]:
        """Return the memory without unused room, the factors, and the noise of the members."""
        return super().state() | {"noise": self.mind.noise, "keys": self.mind.keys}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        super().restore(file)
        memory, noise = self.mind.memory, file.take("noise", self.mind.noise.shape)
        if noise[~memory.alive].any():
            raise ArchiveError("is damaged: its members have noise where nothing was learned")
        keys = file.take("keys", self.mind.keys.shape, np.uint64)
        self.mind = self.mind._replace(noise=noise, keys=keys, begun=memory.lives.copy())
