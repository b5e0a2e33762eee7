"""Arguments as JSON: plain values as they are, arrays stored separately, and dataclasses that a file may name."""

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T", bound=type)
_KINDS: dict[str, Any] = {}


def storable(cls: T) -> T:
    """Allow files to contain instances of a dataclass: reading one calls its constructor, which validates it."""
    _KINDS[cls.__name__] = cls
    return cls


def to_plain(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """Return `value` as JSON, adding its arrays to `arrays`. Raises TypeError if a file cannot contain it."""
    if isinstance(value, np.ndarray):
        arrays[f"argument.{name}"] = value
        return {"array": f"argument.{name}"}
    if isinstance(value, np.random.SeedSequence):
        entropy = np.asarray(value.entropy, dtype=object).tolist()
        return {"type": "SeedSequence", "entropy": entropy, "spawn_key": [int(key) for key in value.spawn_key]}
    if _KINDS.get(type(value).__name__) is type(value):
        parts = {f.name: to_plain(f"{name}.{f.name}", getattr(value, f.name), arrays) for f in fields(value)}
        return {"type": type(value).__name__, **parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [to_plain(f"{name}.{i}", part, arrays) for i, part in enumerate(value)]
    if isinstance(value, np.number):
        return value.item()
    raise TypeError(f"{name} is {value!r}, which a file cannot hold")


def from_plain(plain: Any, read: Any) -> Any:
    """Return the argument of `to_plain`; `read(name)` returns an array."""
    if isinstance(plain, list):
        return [from_plain(part, read) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return read(plain["array"])
    parts = {name: from_plain(part, read) for name, part in plain.items() if name != "type"}
    if plain["type"] == "SeedSequence":
        return np.random.SeedSequence(parts["entropy"], spawn_key=tuple(parts["spawn_key"]))
    kind = _KINDS[plain["type"]]
    if lacks := {f.name for f in fields(kind)} ^ set(parts):
        raise ValueError(f"{plain['type']} is not what it was: {', '.join(sorted(lacks))} differ")
    return kind(**parts)
