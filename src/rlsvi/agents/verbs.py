"""What all agents do alike: begin from a seed, learn for an amount, say what they were given."""

import inspect
import os
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from gymnasium import Env, Wrapper

from rlsvi.agents.task import checked_reward
from rlsvi.core.checks import whole
from rlsvi.core.compile import Words
from rlsvi.core.progress import bar
from rlsvi.core.random import Seed, sequence, stream
from rlsvi.envs.making import Made

OnEpisode = Callable[[Any, float], object]  # the agent, and the rewards of the episode it has just learned from

POSTERIOR, ACTION, EPISODE, PREDICT = range(4)  # an agent's random streams


def new_streams(seed: Seed) -> Words:
    """The random streams of an agent, (4, 4)."""
    root = sequence(seed)
    children = [np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i)) for i in range(4)]
    return np.stack([stream(child) for child in children])


class Verbs:
    """What may be asked of every agent, whatever it learns and however."""

    environment: Made | None = None  # which it has last learned in, if that can be told; a file remembers it

    def arguments(self) -> dict[str, Any]:
        """What the constructor was given."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def clone(self, **changes: Any) -> Self:
        """A new agent with the same arguments, except for `changes`, that has learned nothing."""
        return type(self)(**{**self.arguments(), **changes})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to a file, all of it or nothing; `rlsvi.load` reads it."""
        from rlsvi.agents.files import save

        save(self, path)  # type: ignore[arg-type]

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the policy of the posterior mean to a file that NumPy alone can use; docs/interoperability.md."""
        from rlsvi.agents.export import export

        export(self, path)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{type(self).__name__}({given})"


class Learning(Protocol):
    """An agent that counts what it has learned from, and can learn from one more episode."""

    _overshoot: int
    environment: Made | None

    @property
    def steps(self) -> int:
        """Steps learned from."""
        ...

    @property
    def episodes(self) -> int:
        """Episodes learned from."""
        ...

    def _episode(self, env: Env[Any, Any]) -> None: ...


def amount_of(episodes: int | None, steps: int | None) -> tuple[str, int]:
    """The unit and the amount to learn for, of which exactly one must be given."""
    if (episodes is None) == (steps is None):
        raise ValueError("give either episodes= or steps=, and only one of them")
    unit, amount = ("episodes", episodes) if steps is None else ("steps", steps)
    return unit, whole(unit, amount, 0)


class _Counted(Wrapper[Any, Any, Any, Any]):
    """An environment that adds up the rewards of an episode."""

    total = 0.0

    def step(self, action: Any) -> Any:
        """Take one step."""
        taken = self.env.step(action)
        self.total += checked_reward(taken[1])
        return taken


def learn_for(
    agent: Learning,
    env: Env[Any, Any],
    unit: str,
    amount: int,
    progress: bool,
    on_episode: OnEpisode | None = None,
) -> None:
    """Whole episodes, until the amount is reached; what exceeds it in steps counts for the next call."""
    begin, goal = getattr(agent, unit), amount - (agent._overshoot if unit == "steps" else 0)
    agent.environment, counted = Made.of(env), _Counted(env) if on_episode else None
    with bar(max(goal, 0), unit, progress) as advance:
        while getattr(agent, unit) < begin + goal:
            before = getattr(agent, unit)
            agent._episode(counted or env)
            advance(getattr(agent, unit) - before)
            if unit == "steps":
                agent._overshoot = 0
            if on_episode and counted:
                total, counted.total = counted.total, 0.0
                on_episode(agent, total)
    if unit == "steps":
        agent._overshoot = agent.steps - begin - goal
