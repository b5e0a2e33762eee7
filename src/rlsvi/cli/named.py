"""What the user names on the command line: things of a module, and arguments. Nothing else is imported."""

import ast
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from rlsvi.core.checks import instead

Arguments = dict[str, Any]


def arguments_of(pairs: list[str] | None, option: str = "--env-arg", example: str = "map_name=8x8") -> Arguments:
    """NAME=VALUE as arguments: true, false, null, numbers, lists and so on; what is none of these is text."""
    found: Arguments = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{option} takes NAME=VALUE, such as {example}, got {pair!r}")
        found[name] = value_of(text)
    return found


def columns_of(pairs: list[str] | None) -> Arguments:
    """NAME=COLUMN, or NAME=COLUMN,COLUMN,.. for an observation that has several."""
    given = {pair.partition("=")[0]: pair.partition("=")[2].split(",") for pair in pairs or []}
    arguments_of(pairs, "--column", "reward=r")  # raises an error if one is not of this form
    return {name: columns if len(columns) > 1 else columns[0] for name, columns in given.items()}


def value_of(text: str) -> Any:
    """A literal of JSON or Python, else the text as it stands."""
    try:
        return ast.literal_eval({"true": "True", "false": "False", "null": "None"}.get(text, text))
    except (ValueError, SyntaxError):
        return text


def look_here_too() -> None:
    """Let modules be imported from the current folder too, but not in place of others of the same name."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def is_in_module(name: str) -> bool:
    """Whether a name may be that of a thing in a module, as module:thing is; a Gymnasium id has a version."""
    module, colon, thing = name.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), thing))


def imported_module(name: str, option: str) -> ModuleType:
    """The module of module:thing; it is looked for in the current folder too."""
    module = name.partition(":")[0]
    look_here_too()
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{option} names {name}, which imports {error.name}: install it first") from error
        raise ValueError(
            f"{option} names {name}, but there is no module {error.name}: run the command where {module}.py is"
        ) from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
        raise ValueError(f"{option} names {name}, which cannot be imported: {error} ({where})") from error


def found_in_module(name: str, option: str) -> Any:
    """What module:thing means."""
    module, thing = imported_module(name, option), name.partition(":")[2]
    if not hasattr(module, thing):
        names = [each for each in vars(module) if not each.startswith("_")]
        near = instead(thing, names, "correct the name")
        raise ValueError(f"{option} names {name}, but {module.__file__} defines no {thing}: {near}")
    return getattr(module, thing)


def check_arguments(function: Callable[..., Any], given: Arguments, name: str, hidden: tuple[str, ...]) -> None:
    """Raise an error if a function does not take arguments given as --problem-arg."""
    takes = inspect.signature(function).parameters
    if any(it.kind is it.VAR_KEYWORD for it in takes.values()):
        return
    names = [key for key in takes if key not in hidden]
    for argument in given:
        if argument not in names:
            known = instead(argument, names, "" if names else "it takes none")
            raise ValueError(f"--problem-arg {argument} does not go with {name}: {known}")
