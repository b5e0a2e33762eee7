"""Observations that no features can be made of, and what to do about them."""

from typing import Any

from gymnasium import spaces

SERVED = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
KINDS = "Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these"


def refuse_unserved(space: Any) -> None:
    """Raise an error if a space has a part that is neither numbers nor counted; it names the part and a remedy."""
    found = _first(space, ())
    if found is None:
        return
    path, part = found
    where = "observation" + "".join(f"[{key!r}]" for key in path)
    raise ValueError(
        f"observations cannot be learned from: {where} is {type(part).__name__}, only {KINDS} become numbers. "
        f"{_remedy(space, path, part)}, or give a basis such as bases.StateFeatures(function)"
    )


def _first(space: Any, path: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any] | None:
    """Return the first part that cannot be served, and the keys that lead to it."""
    if isinstance(space, SERVED):
        return None
    if isinstance(space, spaces.Dict | spaces.Tuple):
        items = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return next((found for key, part in items if (found := _first(part, (*path, key)))), None)
    return path, space


def _remedy(space: Any, path: tuple[Any, ...], part: Any) -> str:
    """Return how to wrap the environment: drop a key, flatten, or turn the observation into numbers."""
    if isinstance(space, spaces.Dict):
        kept = [key for key, each in space.spaces.items() if _first(each, ()) is None]
        if kept:
            keep = f"gymnasium.wrappers.FilterObservation(env, {kept!r})"
            return f"If it does not matter, drop {path[0]!r} by {keep}; if it does, {_numbers(part)}"
    remedy = _numbers(part)
    return remedy[0].upper() + remedy[1:]


def _numbers(part: Any) -> str:
    """Return how to turn a part into numbers."""
    if isinstance(part, spaces.Text | spaces.OneOf):
        return "flatten all to numbers by gymnasium.wrappers.FlattenObservation(env)"
    return (
        "turn the observation into a fixed number of numbers by "
        "gymnasium.wrappers.TransformObservation(env, function, gymnasium.spaces.Box(..))"
    )
