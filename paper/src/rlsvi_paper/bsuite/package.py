"""The experiments of the package bsuite, what it says of them, and their environments as those of Gymnasium."""

from importlib import import_module
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from rlsvi.core.checks import instead

EXPERIMENTS = (
    *("bandit", "mnist", "catch", "mountain_car", "cartpole"),
    *("bandit_noise", "mnist_noise", "catch_noise", "mountain_car_noise", "cartpole_noise"),
    *("bandit_scale", "mnist_scale", "catch_scale", "mountain_car_scale", "cartpole_scale"),
    *("deep_sea", "deep_sea_stochastic", "cartpole_swingup"),
    *("umbrella_length", "umbrella_distract", "discounting_chain"),
    *("memory_len", "memory_size"),
)
TAGS = {  # the abilities, and how many experiments test each
    "basic": 5,
    "noise": 8,
    "scale": 5,
    "exploration": 3,
    "credit_assignment": 7,
    "generalization": 10,
    "memory": 2,
}
ASKED_FOR = "its images are downloaded from the internet when it begins: name it in --experiments to run it"
LOGGED = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)  # times powers of 10
LEFT_OUT = {name: ASKED_FOR for name in EXPERIMENTS if name.startswith("mnist")}


def bsuite_module(module: str = "") -> Any:
    """Return a module of the package, or the package itself; an error says how to install it.

    Some of its modules change the style of all pictures when they are imported; here they do not.
    """
    from matplotlib import rc_context

    try:
        with rc_context():
            return import_module(f"bsuite.{module}" if module else "bsuite")
    except ModuleNotFoundError as error:
        missing = f'the behaviour suite needs {error.name}: pip install . "./paper[bsuite]" in a clone of rlsvi'
        raise RuntimeError(missing) from None


def package_version() -> str:
    """Return the version of the package that is installed."""
    bsuite_module()
    return version("bsuite")


def experiments_named(names: str | None) -> list[str]:
    """Return the experiments that a list separated by commas means; None means all but those left out."""
    if names is None:
        return [name for name in EXPERIMENTS if name not in LEFT_OUT]
    found = list(dict.fromkeys(name.strip() for name in names.split(",")))
    if unknown := [name for name in found if name not in EXPERIMENTS]:
        raise ValueError(f"unknown experiment {unknown[0]!r} in --experiments: {instead(unknown[0], EXPERIMENTS)}")
    return found


def ids_of(experiment: str, most: int | None = None) -> list[str]:
    """Return the settings of an experiment, such as catch/0; if only some are wanted, evenly spread over all."""
    ids = [each for each in bsuite_module("sweep").SWEEP if each.partition("/")[0] == experiment]
    if most is None or most >= len(ids):
        return ids
    places = np.linspace(0, len(ids) - 1, most).round().astype(int)
    return [ids[place] for place in places]


def number_of(bsuite_id: str) -> int:
    """Return the place of a setting among those of all experiments."""
    return int(bsuite_module("sweep").SWEEP.index(bsuite_id))


def arguments_of(bsuite_id: str) -> dict[str, Any]:
    """Return the arguments of the environment of a setting."""
    return dict(bsuite_module("sweep").SETTINGS[bsuite_id])


def episodes_of(experiment: str) -> int:
    """Return the number of episodes that a setting of an experiment is to be played for."""
    return int(bsuite_module("sweep").EPISODES[f"{experiment}/0"])


def tags_of(experiment: str) -> list[str]:
    """Return the abilities that an experiment is said to test."""
    tags = bsuite_module("sweep").TAGS
    return [tag for tag in TAGS if f"{experiment}/0" in tags[tag]]


class BehaviourEnv(gymnasium.Env[Any, Any]):
    """A setting of an experiment, such as "deep_sea/0".

    `rows` has a row for each of the episodes that the suite logs: 1 to 10, 12, 14, 17, 20, 25, 30, .., as scores
    may depend on them; `log` adds one for the last episode. An episode that ends by its time limit terminates, as
    the suite defines it: the time is part of the observation, or the limit part of the task.

    The suite draws most of its random numbers without a seed. Here `reset(seed=..)` determines all that follow;
    what a setting fixes (the rewards of a bandit's arms, which action is right) stays as it is.
    """

    def __init__(self, bsuite_id: str) -> None:
        self.inner = bsuite_module().load(bsuite_id.partition("/")[0], arguments_of(bsuite_id))
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
