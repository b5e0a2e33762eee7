"""RLSVI: sample a statistically plausible value function, act greedily on it for an episode, learn.

Algorithm 2 of the paper, with Algorithm 1 in value_iteration.py:

    for l = 0, 1, ..
        compute theta_l0, .., theta_l,H-1 by Algorithm 1            (plan)
        observe s_l0
        for h = 0, .., H-1
            sample a_lh from argmax_a (Phi_h theta_lh)(s_lh, a)     (act, ties broken uniformly)
            observe r_lh and s_l,h+1
        observe r_lH                                                (paid with the last step)
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlsvi.agents.evidence import settled
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.noise import ByEvidence, Noise
from rlsvi.agents.task import Task
from rlsvi.core.archive import Archive
from rlsvi.core.checks import ridge_of


@dataclass(kw_only=True, repr=False, eq=False)
class RLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration.

    Parameters
    ----------
    lam : prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma : standard deviation of the noise of a target r + V, > 0; larger values explore longer.
        InverseGamma(shape, scale) is a prior over its square, one for each period; the prior of the weights is
        then N(prior_mean, sigma^2 I / lam). ByEvidence() estimates lam and sigma from the data during learning.
    basis : how states and actions map to weights. If None, the problem's own, or a table.
    horizon : number of periods H. If None, that of the environment.
    prior_mean : prior mean of the weights: a number, (weights,) or (H, weights).
    reward_offset : added to every reward before learning; -1 turns rewards {0, 1} into {-1, 0}.
    seed : determines all randomness, including the environment's.

    In the first episode there are no data and the weights are the prior mean (the paper's footnote 1).
    """

    sigma: Noise | ByEvidence = 0.1

    found: Any = field(default=None, init=False)  # lam, sigma and the number of episodes at that time

    def parameters(self) -> tuple[float, Noise]:
        """Return the lam and sigma in use."""
        if not isinstance(self.sigma, ByEvidence):
            return self.lam, self.sigma
        return self.found[:2] if self.found else (self.lam, float(self.sigma.sigma))

    def diagnostics(self) -> dict[str, float]:
        """Return the noise: the sigma of the last plan, as the mean over periods."""
        return {"noise": float(self._learner.mind.values.sigma.mean())}

    def settle(self) -> None:
        """Update lam and sigma if they are due; calling it again has no effect."""
        due = isinstance(self.sigma, ByEvidence) and self.sigma.due(self.episodes)
        if due and (self.found is None or self.found[2] != self.episodes):
            lam, sigma, mind = settled(self._learner, *self.parameters())  # type: ignore[arg-type]
            self._learner.mind, self.found = mind, (lam, sigma, self.episodes)

    def mind_for(self, episodes: int) -> tuple[Any, int]:
        """Return the mind for the fused loop, and for how many `episodes` its lam and sigma are valid."""
        if isinstance(self.sigma, ByEvidence):
            following = int(self.sigma.first)
            while following <= self.episodes:
                following *= 2
            episodes = min(episodes, following - self.episodes)
        return super().mind_for(episodes)

    def state(self) -> dict[str, Any]:
        """Return all arrays that a file must contain."""
        return super().state() | ({} if self.found is None else {"found": np.array(self.found, np.float64)})

    def restored_learner(self, task: Task, file: Archive) -> Any:
        """Return the learner stored in a file, after checking all its arrays."""
        if isinstance(self.sigma, ByEvidence) and "found" in file:
            lam, sigma, at = (float(number) for number in file.take("found", (3,)))
            ridge_of(lam, sigma)
            self.found = lam, sigma, int(min(at, 2.0**61))
        return super().restored_learner(task, file)
