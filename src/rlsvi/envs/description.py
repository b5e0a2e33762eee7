"""A description of an environment as plain data that a file can contain, how to create it again, and copies."""

import json
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple, Self

import gymnasium
import numpy as np
from gymnasium.envs.registration import (
    ENV_ID_RE,
    EnvSpec,
    find_highest_version,
    get_env_id,
    load_env_creator,
    parse_env_id,
)
from gymnasium.utils import EzPickle

from rlsvi.core.checks import instead
from rlsvi.envs.discretized import Discretized

OWN = ("gymnasium.envs.", "rlsvi.envs.", "rlsvi_paper.tetris.")  # code that may run because a file names it


class Made(NamedTuple):
    """The arguments of `gymnasium.make`, and the number of choices for a continuous action, if discretized.

    The id may also be module:name, where name is a class or a function of the module that makes the environment.
    """

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
        module, _, name = self.id.rpartition(":")
        spec = gymnasium.registry.get(name)
        try:
            if module and spec is None and hasattr(import_module(module), name):
                spec = EnvSpec(self.id, entry_point=self.id)
            env = gymnasium.make(self.id if name in gymnasium.registry or spec is None else spec, **options)
        except gymnasium.error.UnregisteredEnv as error:
            raise ValueError(f"there is no environment {self.id}: {like_id(self.id, str(error))}") from error
        except TypeError as error:
            unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
            if unknown is None or unknown[1] not in options or spec is None:
                raise
            entry: Any = spec.entry_point
            takes = signature(load_env_creator(entry) if isinstance(entry, str) else entry).parameters
            near = instead(unknown[1], takes, "" if takes else "it takes none")
            raise TypeError(f"the environment {self.id} has no argument {unknown[1]}: {near}") from error
        except (gymnasium.error.Error, ImportError) as error:
            raise ValueError(f"cannot make the environment {self.id!r}: {error}") from error
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


def versioned(id: str) -> str:
    """Return an id with the newest version of the environment, if it has none, as `gymnasium.make` does."""
    module, colon, name = id.rpartition(":")
    if name in gymnasium.registry or not ENV_ID_RE.fullmatch(name):
        return id
    space, bare, version = parse_env_id(name)
    newest = find_highest_version(space, bare) if version is None else None
    return id if newest is None else f"{module}{colon}{get_env_id(space, bare, newest)}"


def like_id(id: str, otherwise: str, others: Iterable[str] = ()) -> str:
    """Return which environment was probably meant, in its newest version, or `otherwise` if none is similar."""
    specs = sorted(gymnasium.registry.values(), key=lambda spec: spec.version or 0)
    newest = {(spec.namespace, spec.name): spec.id for spec in specs}
    return instead(id.rpartition(":")[2], [*others, *newest.values()], otherwise)


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


VALUES = bool, int, float, str, tuple, list, dict, np.ndarray, np.generic, gymnasium.Space


def copied_env(name: str, env: gymnasium.Env[Any, Any], remedy: str) -> gymnasium.Env[Any, Any]:
    """Return a copy of an environment, which shares nothing with it, or raise an error that names the argument."""
    try:
        copied = deepcopy(env)
    except Exception as error:  # of any kind: it is code of the user
        raise TypeError(f"{name} is an environment that cannot be copied ({error}): {remedy}") from error
    if copied.unwrapped is env.unwrapped:
        raise TypeError(f"{name} is an environment whose copies are itself: {remedy}")
    for one, other in zip(layers_of(env), layers_of(copied), strict=True):
        if changed := _changed(one, other) if isinstance(one, EzPickle) else []:
            raise TypeError(
                f"{name} is an environment that is copied by its constructor ({type(one).__name__} is an "
                f"EzPickle), so copies would not have its {', '.join(changed)}: {remedy}"
            )
    return copied


def layers_of(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """Yield an environment and those that it wraps."""
    yield env
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        yield env


def _changed(env: Any, made: Any) -> list[str]:
    """Return the attributes with plain values that differ between an environment and one that was just made.

    Those that are None in the new one, because reset sets them, do not count.
    """

    def same(one: Any, other: Any) -> bool:
        try:
            np.testing.assert_equal(one, other)
        except AssertionError:
            return False
        return True

    values = {name: value for name, value in vars(made).items() if isinstance(value, VALUES)}
    return sorted(name for name, value in values.items() if not same(vars(env).get(name), value))
