"""A description of an environment as plain data that a file can contain, and how to create it again."""

import json
from typing import Any, NamedTuple, Self

import gymnasium

from rlsvi.envs.discretized import Discretized

OWN = ("gymnasium.envs.", "rlsvi.envs.")  # code that may run because a file names it


class Made(NamedTuple):
    """The arguments of `gymnasium.make`, and the number of choices for a continuous action, if discretized."""

    id: str
    arguments: dict[str, Any]
    max_episode_steps: int | None = None
    choices: int | None = None

    def make(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """Create the environment, or raise an error that says what is wrong."""
        options = dict(self.arguments)
        if self.max_episode_steps is not None:
            options["max_episode_steps"] = self.max_episode_steps
        if render_mode is not None:
            options["render_mode"] = render_mode
        try:
            env = gymnasium.make(self.id, **options)
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"cannot make the environment {self.id}: {error}") from error
        return env if self.choices is None else Discretized(env, self.choices)

    @property
    def is_own(self) -> bool:
        """Whether creating it runs only the code of Gymnasium and of this library."""
        spec = gymnasium.registry.get(self.id)
        return spec is not None and isinstance(spec.entry_point, str) and spec.entry_point.startswith(OWN)

    @classmethod
    def of(cls, env: gymnasium.Env[Any, Any]) -> Self | None:
        """Return how an environment was created; None if unknown, or with wrappers that a file cannot contain."""
        spec = env.spec
        if spec is None or not _is_json(spec.kwargs):
            return None
        arguments = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
        choices = None
        for wrapper in spec.additional_wrappers:
            given = (wrapper.kwargs or {}).get("choices")
            if wrapper.entry_point != f"{Discretized.__module__}:Discretized" or type(given) is not int:
                return None
            choices = given
        return cls(spec.id, arguments, spec.max_episode_steps, choices)

    @classmethod
    def read(cls, plain: Any) -> Self | None:
        """Return the description in a file, checked."""
        if plain is None:
            return None
        made = cls(*plain)
        numbers = made.max_episode_steps, made.choices
        fits = isinstance(made.id, str) and isinstance(made.arguments, dict)
        if not fits or any(n is not None and type(n) is not int for n in numbers):
            raise ValueError("what it says of its environment makes no sense")
        return made

    def __str__(self) -> str:
        given = self.arguments | {"max_episode_steps": self.max_episode_steps, "choices": self.choices}
        words = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        return f"{self.id} ({', '.join(words)})" if words else self.id


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False
