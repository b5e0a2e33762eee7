"""The common part of agents with a known number of periods: value iteration by regression on all episodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.arguments import checked_basis, weights_shaped
from rlsvi.agents.bound import restored_features
from rlsvi.agents.finite.learner import FiniteLearner, new_mind
from rlsvi.agents.finite.value_iteration import Prior, PriorOfNoise
from rlsvi.agents.noise import Noise, noise_of
from rlsvi.agents.progress import is_checked, is_explored
from rlsvi.agents.task import Task
from rlsvi.bases import Basis, Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed


@dataclass(kw_only=True, repr=False, eq=False)
class FiniteHorizonAgent(Agent):
    """Value iteration by regression over a known number of periods, the base of RLSVI and LSVI."""

    lam: float = 1.0
    basis: Basis | None = None
    horizon: int | None = None
    prior_mean: float | Floats = 0.0
    reward_offset: float = 0.0
    seed: Seed = None

    fused = True
    concurrent = True

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        noise_of(*self.parameters())
        finite("prior_mean", self.prior_mean)
        checked_basis(self.basis)

    def notice(self) -> None:
        """Warn if there was never a reward and hardly anything new is found any more."""
        if not getattr(self._learner, "keeps_data", False) or not is_checked(self.episodes):
            return
        memory = self._learner.mind.memory
        if memory.squares.any():
            return
        met = np.arange(memory.into_count.shape[1]) < memory.sums[:, None]
        if is_explored(memory.into_count[met], self.episodes):
            more = "try a smaller lam= or a larger sigma=" if self.samples else "try rlsvi.RLSVI, which explores"
            self._miss_reward(self.remedy or more)

    def parameters(self) -> tuple[float, Noise]:
        """Return the lam and sigma in use."""
        return self.lam, self.sigma

    def prior(self, task: Task, features: Features) -> Prior:
        """Return the prior of the weights."""
        mean = weights_shaped(self.prior_mean, (task.horizon, features.blocks, features.dim))
        lam, sigma = self.parameters()
        ridge, known, shape, scale = noise_of(lam, sigma)
        return (PriorOfNoise if shape > 0.0 else Prior)(mean, float(lam), ridge, known, shape, scale)

    def new_learner(self, task: Task, example: Any) -> Any:
        """Return a learner without experience."""
        return self.learner_of(task, self.features(task, example))

    def restored_learner(self, task: Task, file: Archive) -> Any:
        """Return the learner stored in a file, after checking all its arrays."""
        learner = self.learner_of(task, read_features(self, task, file))
        learner.restore(file)
        return learner

    def learner_of(self, task: Task, features: Features) -> Any:
        """Return a learner with these features and without experience."""
        return FiniteLearner(task, new_mind(task, features, self.prior(task, features)), features)


def read_features(agent: Agent, task: Task, file: Archive, of: str = "factor.U", dimensions: int = 4) -> Features:
    """Return the features that the agent in a file was trained with, after checking the shapes of its arrays.

    of : the name of an array (H, B, d, ..), and its number of dimensions.
    """
    H, B, d, *square = file.shape(of, dimensions)
    if H != max(task.horizon, 1) or min(B, d) < 1 or square not in ([], [d]):
        raise ArchiveError(f"is damaged: {of} with {H} x {B} blocks of {d} weights is not that of {task}")
    if file.shape("rows", 2) != (H, task.states or 0):
        raise ArchiveError(f"is damaged: its rows are not those of {task}")
    if file.shape("memory.block", 2) != (H, file.shape("memory.sum_head", 2)[1] * task.actions):
        raise ArchiveError(f"is damaged: its memory is not that of {task}")
    return restored_features(agent, task, B, d)
