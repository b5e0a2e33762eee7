"""What stationary RLSVI and LSVI share: one value function, learned from the latest transitions."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

from rlsvi.agents.agent import Agent
from rlsvi.agents.arguments import checked_basis, weights_shaped
from rlsvi.agents.contract import DivergenceWarning, diverged
from rlsvi.agents.noise import noise_of
from rlsvi.agents.stationary.features import BoundFeatures, bound_features
from rlsvi.agents.stationary.learner import StationaryLearner, mind_of
from rlsvi.agents.stationary.mind import DIVERGED, EXCESS, explained_target
from rlsvi.agents.stationary.ring import Ring, empty_ring, read_ring
from rlsvi.agents.stationary.sweeps import Model
from rlsvi.agents.task import Task, check_setting, endless_task_of, setting_of
from rlsvi.bases import Basis, Tabular
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite, positive, shaped, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed

Form = Literal["literal", "afterstate"]


@dataclass(kw_only=True, repr=False, eq=False)
class StationaryAgent(Agent):
    """Regression of one value function. StationaryRLSVI and StationaryLSVI say how."""

    lam: float = 1.0
    gamma: float = 0.99
    basis: Basis | None = None
    form: Form = "literal"
    memory: int | None = 100_000
    regressions: int = 1
    prior_mean: float | Floats = 0.0
    diverged_above: float = 1000.0
    seed: Seed = None

    broken = staticmethod(diverged)
    needs_horizon = False
    _warned = False

    def check(self) -> None:
        """Check the arguments; an error names the argument and the remedy."""
        noise_of(self.lam, self.sigma)
        gamma = shaped("gamma", finite("gamma", self.gamma), ())
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must lie in [0, 1], got {self.gamma!r}")
        finite("prior_mean", self.prior_mean)
        if self.form not in ("literal", "afterstate"):
            raise ValueError(f'form must be "literal" or "afterstate", got {self.form!r}')
        if self.memory is not None:
            whole("memory", self.memory, 1)
        whole("regressions", self.regressions, 1)
        positive("diverged_above", self.diverged_above)
        checked_basis(self.basis)

    @property
    def setting(self) -> dict[str, Any]:
        """What it has learned by, as far as it was told: of Tetris height, width, pieces and game_over."""
        return dict(self._setting) if self.episodes > 0 else {}

    @property
    def excess(self) -> float:
        """The largest target of the last episode, in multiples of what rewards, prior and discount explain."""
        return float(self._learner.mind.watch[EXCESS]) if self._learner else 0.0

    @property
    def diverged(self) -> bool:
        """Whether `excess` was ever larger than `diverged_above`."""
        return bool(self._learner.mind.watch[DIVERGED]) if self._learner else False

    def task_of(self, env: Any) -> Task:
        """The task that an environment sets, whose episodes may be of any length."""
        return endless_task_of(env)

    def take_on(self, task: Task, env: Any = None, setting: dict[str, Any] | None = None) -> None:
        """Take on a task, or check that it is the one learned so far; `setting` is what else is known of it."""
        offered = setting_of(env) if setting is None else setting
        if self.steps == 0:
            self._setting = offered
        else:
            check_setting(self._setting, offered)
        super().take_on(task, env)

    def prepare(self, task: Task, setting: dict[str, Any], example: Any) -> StationaryLearner:
        """Take on a task with observations like `example`, for a fused loop."""
        self.take_on(task, None, setting)
        if self._learner is None:
            self._learner = self.new_learner(task, task.checked(example))
        self._learner.look(0, example, None)
        learner: StationaryLearner = self._learner
        return learner

    def new_learner(self, task: Task, example: Any) -> StationaryLearner:
        """A learner that has seen nothing."""
        features = self._bind(task, example)
        self._setting = {**features.setting, **self._setting}
        ring = empty_ring(
            task.actions, features.blocks, features.units, features.dtype, features.known, self.memory
        )
        return self._learner_of(task, ring, features)

    def restored_learner(self, task: Task, file: Archive) -> StationaryLearner:
        """The learner that a file holds, after checking every array of it."""
        ring = read_ring(file, task.actions, self.memory, self.form == "afterstate")
        learner = self._learner_of(task, ring, None)
        mind = learner.mind
        for name in ("theta", "counters", "watch"):
            part = getattr(mind, name)
            part[...] = file.take(name, part.shape, part.dtype)
        self._warned = bool(mind.watch[DIVERGED])
        if mind.counters[0] < 1 or mind.ring.size[0] > mind.counters[1]:
            raise ArchiveError("is damaged: its episodes and what was learned do not fit together")
        return learner

    def _learner_of(self, task: Task, ring: Ring, features: BoundFeatures | None) -> StationaryLearner:
        mean = weights_shaped(self.prior_mean, (1, len(ring.gram), len(ring.units)))[0]
        model = Model(mean, *noise_of(self.lam, self.sigma), float(self.gamma))
        mind = mind_of(ring, model, task.actions, self.diverged_above)
        return StationaryLearner(task, mind, self.regressions, lambda example: self._bind(task, example), features)

    def _bind(self, task: Task, example: Any) -> BoundFeatures:
        features = bound_features(self.basis or Tabular(), task, self.form == "afterstate", example)
        check_setting(self._setting, features.setting)
        return features

    def notice(self) -> None:
        """Warn, once, of targets that rewards, the prior and the discount cannot explain."""
        if self.diverged and not self._warned:
            self._warned = True
            explained = explained_target(self._learner.mind)
            warnings.warn(
                f"the values diverge: a target of size {self.excess * explained:.3g} in episode "
                f"{self.episodes - 1}, where rewards, prior and discount explain {explained:.3g}; use a smaller "
                "gamma, features of a smaller scale, a larger lam, or fewer features",
                DivergenceWarning,
                stacklevel=5,
            )
