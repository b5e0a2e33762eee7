"""The agents that play the suite, by name, and two simple ones to compare with."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from rlsvi import agents
from rlsvi.agents.agent import Agent
from rlsvi.core.checks import instead
from rlsvi.core.compile import Floats

SIMPLE = {"default": "agent_for", "random": "RandomPlay", "q-learning": "QLearning"}


def player(name: str) -> Any:
    """Return the class, or the function of `env` and `seed`, that makes the agent of a name.

    A name is one of SIMPLE, an agent that this library exports, or module:name.
    """
    module, colon, thing = name.partition(":")
    if colon:
        return getattr(import_module(module), thing)
    if name == "default":
        return agents.agent_for
    kind = globals()[SIMPLE[name]] if name in SIMPLE else getattr(agents, name, None)
    if name in SIMPLE or (isinstance(kind, type) and issubclass(kind, Agent)):
        return kind
    there = (
        f"there are {', '.join(SIMPLE)}, the agents of this library by their classes, such as DiscountedPSRL, and "
        "module:name of your own"
    )
    kinds = [each for each, kind in vars(agents).items() if isinstance(kind, type) and issubclass(kind, Agent)]
    raise ValueError(f"unknown agent {name!r} in --agents: {instead(name, [*SIMPLE, *kinds], there)}")


class RandomPlay:
    """Every action with the same probability."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def learn(self, env: Any, episodes: int) -> None:
        """Play."""
        for _ in range(episodes):
            played(env, lambda observation: int(self.rng.integers(env.action_space.n)))


class QLearning:
    """Tabular Q-learning (Watkins 1989): a row for each observation that was seen, epsilon-greedy.

    Values begin at 0. The discount is 0.99, epsilon 0.05, and the learning rate of the n-th visit n^-0.6, at
    least 0.02.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tables: dict[bytes, tuple[Floats, Floats]] = {}

    def learn(self, env: Any, episodes: int) -> None:
        """Play, and learn from every step."""
        for _ in range(episodes):
            played(env, lambda observation: self._act(observation, env.action_space.n), self._update)

    def _row(self, observation: Any, actions: int) -> tuple[Floats, Floats]:
        """Return the values of an observation, and the number of visits."""
        return self.tables.setdefault(observation.tobytes(), (np.zeros(actions), np.zeros(actions)))

    def _act(self, observation: Any, actions: int) -> int:
        Q, _ = self._row(observation, actions)
        if self.rng.random() < 0.05:
            return int(self.rng.integers(actions))
        return int(self.rng.choice(np.flatnonzero(Q == Q.max())))

    def _update(self, observation: Any, action: int, reward: float, following: Any) -> None:
        Q, visits = self.tables[observation.tobytes()]
        visits[action] += 1
        later = 0.0 if following is None else self._row(following, len(Q))[0].max()
        Q[action] += max(visits[action] ** -0.6, 0.02) * (reward + 0.99 * later - Q[action])


def played(
    env: Any,
    act: Callable[[Any], int],
    update: Callable[[Any, int, float, Any], None] = lambda observation, action, reward, following: None,
) -> None:
    """Play an episode; `update` is told each step, and None as the observation that follows the last one."""
    observation, _ = env.reset()
    over = False
    while not over:
        action = act(observation)
        following, reward, terminated, truncated, _ = env.step(action)
        update(observation, action, reward, None if terminated else following)
        observation, over = following, terminated or truncated
