"""An environment of the behaviour suite as one of Gymnasium, which logs what its score is computed from."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from rlsvi.paper.bsuite.package import arguments_of, imported

LOGGED = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)  # times powers of 10


class BehaviourEnv(gymnasium.Env[Any, Any]):
    """A setting of an experiment, such as "deep_sea/0".

    `rows` has a row for each of the episodes that the suite logs: 1 to 10, 12, 14, 17, 20, 25, 30, .., as scores
    may depend on them; `log` adds one for the last episode. An episode that ends by its time limit terminates, as
    the suite defines it: the time is part of the observation, or the limit part of the task.

    The suite draws most of its random numbers without a seed. Here `reset(seed=..)` determines all that follow;
    what a setting fixes (the rewards of a bandit's arms, which action is right) stays as it is.
    """

    def __init__(self, bsuite_id: str) -> None:
        self.inner = imported().load(bsuite_id.partition("/")[0], arguments_of(bsuite_id))
        seen, actions = self.inner.observation_spec(), self.inner.action_spec()
        low, high = getattr(seen, "minimum", -np.inf), getattr(seen, "maximum", np.inf)
        kind: Any = np.dtype(seen.dtype)
        low, high = (np.full(seen.shape, bound, dtype=kind) for bound in (low, high))
        self.observation_space = Box(low, high, dtype=kind.type)
        self.action_space = Discrete(int(actions.num_values))
        self.episodes, self.steps, self.total = 0, 0, 0.0
        self.rows: list[dict[str, float]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        if seed is not None:
            self._seed(np.random.SeedSequence(seed))
        return self._seen(self.inner.reset()), {}

    def _seed(self, sequence: np.random.SeedSequence) -> None:
        """Replace the generators of the environment and of those that wrap it, each by one of its own."""
        layer = self.inner
        while layer is not None:
            if "_rng" in vars(layer):
                layer._rng = np.random.RandomState(sequence.spawn(1)[0].generate_state(4))
            layer = vars(layer).get("_env")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the last one of an episode is logged."""
        time = self.inner.step(int(action))
        reward, over = float(time.reward), bool(time.last())
        self.steps, self.total = self.steps + 1, self.total + reward
        if over:
            self.episodes += 1
            if is_logged(self.episodes):
                self.log()
        ended = over and not time.discount
        return self._seen(time), reward, ended, over and not ended, {}

    def _seen(self, time: Any) -> Any:
        return np.asarray(time.observation, dtype=self.observation_space.dtype)

    def log(self) -> None:
        """Add a row of all episodes so far, unless there is one."""
        if not self.rows or self.rows[-1]["episode"] < self.episodes:
            told = {name: float(value) for name, value in self.inner.bsuite_info().items()}
            counted = {"episode": self.episodes, "steps": self.steps, "total_return": self.total}
            self.rows.append(counted | told)


def is_logged(episode: int) -> bool:
    """Return whether the suite logs an episode."""
    power = 10 ** (len(str(episode)) - 1)
    return any(episode == power * ratio for ratio in LOGGED)
