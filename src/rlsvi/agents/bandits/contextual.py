"""The linear contextual bandit of appendix E: RLSVI without the value of the next state.

for l = 0, 1, ..
    for h = 0, .., H-1: theta_h ~ the posterior of r_h = Phi_h(s, a) theta_h + noise       (its Algorithm 7)
    in period h take an action of argmax_a (Phi_h theta_h)(s_h, a)

Without a next state, the order in which weights are sampled does not matter. A block is therefore sampled only
when an action needs it, from its own random stream. The cost of a step is that of the blocks it touches, and
learning takes one rank-one update, independent of the number of episodes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.arguments import checked_basis, weights_shaped
from rlsvi.agents.bandits.contextual_mind import ContextualMind, new_draw, sampled_values
from rlsvi.agents.bound import restored_features
from rlsvi.agents.contract import Place
from rlsvi.agents.learner import MindLearner
from rlsvi.agents.mind import new_counters, no_features
from rlsvi.agents.task import Task, endless_task_of, task_of
from rlsvi.bases import Basis, Features, Tabular
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite, flag, ridge_of, shown
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed
from rlsvi.core.regression import Factor, prior_factor


@dataclass(kw_only=True, repr=False, eq=False)
class ContextualBandit(Agent):
    """Thompson sampling for a linear model of the reward, with one model per period or one for all periods.

    Parameters
    ----------
    lam, sigma : prior precision of the weights and noise of a reward, as for RLSVI; both > 0.
    pooled : one regression for all periods, instead of one per period. No horizon is needed then.
    basis, horizon, prior_mean, reward_offset, seed : as for RLSVI; prior_mean may have shape (weights,), or
        (H, weights) unless pooled.

    Like RLSVI, it plays the first episode with the prior mean.
    """

    lam: float = 1.0
    sigma: float = 0.1
    pooled: bool = False
    basis: Basis | None = None
    horizon: int | None = None
    prior_mean: float | Floats = 0.0
    reward_offset: float = 0.0
    seed: Seed = None

    fused = True
    needs_horizon = None  # only if not pooled

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        ridge_of(self.lam, self.sigma)
        finite("prior_mean", self.prior_mean)
        checked_basis(self.basis)
        flag("pooled", self.pooled)

    def task_of(self, env: Any) -> Task:
        """Return the task that an environment poses; a pooled bandit needs no horizon."""
        try:
            return task_of(env, self.horizon)
        except ValueError:
            if not self.pooled or self.horizon is not None:
                raise
            return endless_task_of(env)

    def features(self, task: Task, example: Any) -> Features:
        """Return the agent's basis, the problem's, or a table, bound to the task."""
        if task.states is None and isinstance(self.basis or self._problem_basis or Tabular(), Tabular):
            raise ValueError(
                f"a table needs observations that are numbered 0..S-1 (a Discrete space), not {shown(example)}: "
                f"pass basis=rlsvi.bases.Recommendation() for histories of recommendations, or bases.StateFeatures"
            )
        return super().features(task, example)

    def new_learner(self, task: Task, example: Any) -> "ContextualLearner":
        """Return a learner without experience."""
        return self._learner_of(task, self.features(task, example))

    def restored_learner(self, task: Task, file: Archive) -> "ContextualLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        P, B, d = file.shape("reward", 3)
        if P != (1 if self.pooled else task.horizon) or min(P, B, d) < 1:
            raise ArchiveError(f"is damaged: regressions of shape {(P, B, d)} are not those of {task}")
        arrays = {"U": file.take("factor.U", (P, B, d, d)), "inv": file.take("factor.inv", (P, B, d))}
        arrays |= {name: file.take(name, (P, B, d)) for name in ("reward", "error")}
        learner = self._learner_of(task, restored_features(self, task, B, d, counted=False))
        factor = Factor(arrays.pop("U"), arrays.pop("inv"))
        counters = file.take_within("counters", (2,), np.int64, 0, 2**62)
        learner.mind = learner.mind._replace(factor=factor, counters=counters, **arrays)
        return learner

    def _learner_of(self, task: Task, features: Features) -> "ContextualLearner":
        shape = (1 if self.pooled else task.horizon), features.blocks, features.dim
        mind = ContextualMind(
            features=features.table or no_features(features.dim),
            factor=prior_factor(shape[:2], features.dim, ridge_of(self.lam, self.sigma)),
            reward=np.zeros(shape),
            error=np.zeros(shape),
            mean=weights_shaped(self.prior_mean, shape),
            lam=float(self.lam),
            sigma=float(self.sigma),
            sample=new_draw(*shape),
            x=np.empty(features.dim),
            counters=new_counters(),
        )
        return ContextualLearner(task, mind, features)


class ContextualLearner(MindLearner):
    """Regressions of the reward."""

    mind: ContextualMind

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the features of an observation."""
        place = super().look(h, observation, mask)
        block, phi = self.features.at(h, place.observation)
        return place._replace(block=block, x=np.array(phi, dtype=np.float64))

    def another_plan(self) -> ContextualMind:
        """Return the mind with arrays for one more sample."""
        return self.mind._replace(sample=new_draw(*self.mind.reward.shape))

    def values(self, plan: ContextualMind, place: Place) -> Floats:
        """Return Q = phi . theta_h of a sample."""
        Q = np.empty(self.task.actions)
        sampled_values(plan, place.h, place.block, place.x, Q, np.empty(4, np.uint64))
        return Q

    def state(self) -> dict[str, Any]:
        """Return the regressions."""
        mind = self.mind
        arrays = {"factor.U": mind.factor.U, "factor.inv": mind.factor.inv, "counters": mind.counters}
        return arrays | {"reward": mind.reward, "error": mind.error}
