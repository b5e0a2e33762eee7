"""The common part of stationary RLSVI and LSVI: one value function, learned from the most recent transitions."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rlsvi.agents.contract import weights_shaped
from rlsvi.agents.discounted import DiscountedAgent
from rlsvi.agents.noise import Model, noise_of
from rlsvi.agents.progress import is_checked, is_no_wider
from rlsvi.agents.stationary.features import BoundFeatures, bound_features
from rlsvi.agents.stationary.learner import StationaryLearner
from rlsvi.agents.stationary.mind import new_mind
from rlsvi.agents.stationary.ring import FOREVER, Ring, empty_ring, read_ring
from rlsvi.agents.task import Task, check_setting, setting_of
from rlsvi.bases import Basis, Tabular
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import one_of, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed

Form = Literal["literal", "afterstate"]

MANY = 2**20  # actions that a small file may have, if its basis gives all of them the same weights


@dataclass(kw_only=True, repr=False, eq=False)
class StationaryAgent(DiscountedAgent):
    """Regression of one value function, the base of StationaryRLSVI and StationaryLSVI."""

    lam: float = 1.0
    gamma: float = 0.99
    basis: Basis | None = None
    form: Form = "literal"
    memory: int | None = 100_000
    regressions: int = 1
    prior_mean: float | Floats = 0.0
    diverged_above: float = 1000.0
    seed: Seed = None

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        super().check()
        one_of("form", self.form, ("literal", "afterstate"))
        if self.memory is not None:
            whole("memory", self.memory, 1, FOREVER)
        whole("regressions", self.regressions, 1, 2**31 - 1)

    def notice(self) -> None:
        """Warn about values that diverge, and if there was never a reward and nothing new is found any more."""
        super().notice()
        ring, steps = self._learner.mind.ring, self.steps
        if not is_checked(self.episodes) or ring.reach[0] > 0.0 or ring.size[0] < steps:  # some were dropped
            return
        x, block, before = ring.x[:steps], ring.block[:steps], steps // 2
        if np.isin(block[before:], block[:before]).all() and is_no_wider(x, before):
            more = "a smaller lam= or a larger sigma=" if self.samples else "rlsvi.StationaryRLSVI, which explores"
            self._miss_reward(self.remedy or f"try {more}")

    @property
    def setting(self) -> dict[str, Any]:
        """The setting it has learned in, as far as known: for Tetris, height, width, pieces and game_over."""
        return dict(self._setting) if self.episodes > 0 else {}

    def take_on(self, task: Task, env: Any = None, setting: dict[str, Any] | None = None) -> None:
        """Start a task, or check that it is the one learned so far; `setting` contains its other properties."""
        offered = setting_of(env) if setting is None else setting
        if self.steps == 0:
            self._setting = offered
        else:
            check_setting(self._setting, offered)
        super().take_on(task, env)

    def prepare(self, task: Task, setting: dict[str, Any], example: Any) -> StationaryLearner:
        """Start a task with observations like `example`, for a fused loop."""
        self.take_on(task, None, setting)
        if self._learner is None:
            self._learner = self.new_learner(task, task.checked(example))
        self._learner.look(0, example, None)
        learner: StationaryLearner = self._learner
        return learner

    def new_learner(self, task: Task, example: Any) -> StationaryLearner:
        """Return a learner without experience."""
        features = self._bind(task, example)
        self._setting = {**features.setting, **self._setting}
        ring = empty_ring(
            task.actions, features.blocks, features.units, features.dtype, features.known, self.memory
        )
        return self._learner_of(task, ring, features)

    def restored_learner(self, task: Task, file: Archive) -> StationaryLearner:
        """Return the learner stored in a file, after checking all its arrays."""
        ring = read_ring(file, task.actions, self.memory, self.form == "afterstate")
        if task.actions > max(len(ring.gram), ring.next_x.shape[1], MANY):
            raise ArchiveError(f"is damaged: its ring is not that of {task}")
        learner = self._learner_of(task, ring, None)
        mind = learner.mind
        for name in ("theta", "counters", "watch"):
            part = getattr(mind, name)
            part[...] = file.take(name, part.shape, part.dtype)
        if mind.counters[0] < 1 or mind.ring.size[0] > mind.counters[1]:
            raise ArchiveError("is damaged: its episodes and what was learned do not fit together")
        return learner

    def _learner_of(self, task: Task, ring: Ring, features: BoundFeatures | None) -> StationaryLearner:
        mean = weights_shaped(self.prior_mean, (1, len(ring.gram), len(ring.units)))[0]
        model = Model(mean, *noise_of(self.lam, self.sigma), float(self.gamma))
        mind = new_mind(ring, model, task.actions, self.diverged_above)
        return StationaryLearner(task, mind, self.regressions, lambda example: self._bind(task, example), features)

    def _bind(self, task: Task, example: Any) -> BoundFeatures:
        features = bound_features(self.basis or Tabular(), task, self.form == "afterstate", example)
        check_setting(self._setting, features.setting)
        return features
