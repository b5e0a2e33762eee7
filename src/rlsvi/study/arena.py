"""What a comparison is played in: a problem whose solution is known, or any Gymnasium environment."""

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import gymnasium
import numpy as np
from gymnasium.utils import EzPickle
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from rlsvi.core.checks import shown
from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.mdp import FiniteMDP, from_gymnasium
from rlsvi.problems import Problem

Env = gymnasium.Env[Any, Any]
Arenas = Problem | Env | str | Callable[..., Any]
PLAIN = TimeLimit, OrderEnforcing, PassiveEnvChecker  # wrappers that change neither observations nor rewards
TABLES = "gymnasium.envs.toy_text.", "rlsvi.envs."  # where environments are as their tables say
VALUES = bool, int, float, str, tuple, list, dict, np.ndarray, np.generic, gymnasium.Space
WANTED = "a Problem, a Gymnasium environment or its id, or a function of the seed that returns one"


class Arena(NamedTuple):
    """One problem of a comparison.

    make : returns a new environment, in which agents can be stepped, to be closed; if the environment was drawn
        by a function, it is that one, and make is called once.
    problem : the finite MDP of that environment, with its exact solution; None if it is not known.
    """

    name: str
    make: Callable[[], Env]
    problem: Problem | None


def arena_of(given: Any, seed: int) -> Arena:
    """Return what agents with this seed play, given what a user calls a problem."""
    drawn = called_with_seed(given, seed) if callable(given) else given
    if isinstance(drawn, Problem):
        return Arena(drawn.name, partial(FiniteMDPEnv, drawn.mdp), drawn)
    if isinstance(drawn, str):
        with closing(_made(drawn)) as env:
            return Arena(_name(env), partial(_made, drawn), table_of(env))
    if not isinstance(drawn, gymnasium.Env):
        raise TypeError(f"problem must be {WANTED}, got {shown(drawn)}")
    if drawn is not given:
        _check_new(drawn)
        return Arena(_name(drawn), lambda: drawn, table_of(drawn))
    _copied(drawn).close()  # raises an error if it cannot be copied
    return Arena(_name(drawn), partial(_copied, drawn), table_of(drawn))


_drawn: WeakValueDictionary[int, Env] = WeakValueDictionary()


def _check_new(env: Env) -> None:
    """Raise an error if a function has returned the same environment before: runs would share it."""
    if _drawn.get(id(env)) is env:
        raise TypeError(
            "problem is a function that has returned the same environment twice: let it make a new one at every "
            "call, or pass the environment itself, of which every run plays a copy"
        )
    _drawn[id(env)] = env


def _copied(env: Env) -> Env:
    """Return a copy of an environment, which itself is never played."""
    remedy = "pass a function that makes it instead, such as lambda: gymnasium.make(..)"
    try:
        copied = copy.deepcopy(env)
    except Exception as error:
        raise TypeError(
            f"problem is an environment that cannot be copied for each run ({error}): {remedy}"
        ) from error
    for one, other in zip(_layers(env), _layers(copied), strict=True):
        if changed := _changed(one, other) if isinstance(one, EzPickle) else []:
            raise TypeError(
                f"problem is an environment that is copied by its constructor ({type(one).__name__} is an "
                f"EzPickle), so copies would not have its {', '.join(changed)}: {remedy}"
            )
    return copied


def _layers(env: Env) -> Iterator[Env]:
    """Yield an environment and those that it wraps."""
    yield env
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        yield env


def _changed(env: Env, made: Env) -> list[str]:
    """Return the attributes with plain values that an environment has otherwise than one that was just made.

    Those that are None there, as they are set by reset, do not count.
    """
    values = {name: value for name, value in vars(made).items() if isinstance(value, VALUES)}
    return sorted(name for name, value in values.items() if not _same(vars(env).get(name), value))


def _same(one: Any, other: Any) -> bool:
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True


def called_with_seed(function: Callable[..., Any], seed: int) -> Any:
    """Call a function with the seed, as `seed` or as its first argument, or without if it requires none."""
    takes = inspect.signature(function).parameters
    if "seed" in takes:
        return function(seed=seed)
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    needs = any(it.kind in positional and it.default is it.empty for it in takes.values())
    return function(seed) if needs or any(it.kind is it.VAR_POSITIONAL for it in takes.values()) else function()


def table_of(env: Env) -> Problem | None:
    """Return the finite MDP behind an environment, if it is certain that the environment behaves accordingly."""
    inner, limits = env, []
    while isinstance(inner, gymnasium.Wrapper):
        if type(inner) not in PLAIN:
            return None
        if isinstance(inner, TimeLimit):
            limits.append(inner._max_episode_steps)
        inner = inner.env
    if not type(inner).__module__.startswith(TABLES):
        return None
    mdp = getattr(inner, "mdp", None)
    if isinstance(mdp, FiniteMDP):
        whole = getattr(inner, "horizon", None) == mdp.horizon == min([mdp.horizon, *limits])
        return Problem(mdp) if whole else None
    try:
        return Problem(from_gymnasium(inner, min(limits))) if limits else None
    except ValueError:  # there is no table, or it is not all there is
        return None


def _made(id: str) -> Env:
    try:
        return gymnasium.make(id)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"problem is {shown(id)}, which Gymnasium cannot make: {error!s:.500}") from error


def _name(env: Env) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
