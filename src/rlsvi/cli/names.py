"""What the user names on the command line: agents and problems of the library, things of a module, and arguments.

Agents and problems are read from the source of the library, where each of them is defined once: importing them
would load Numba, which takes longer than to list them. Of other modules, only what the user names is imported.

Agents of other packages
------------------------
Your package can offer its own agents by name. Declare them as entry points in its `pyproject.toml`:

    [project.entry-points."rlsvi.agents"]
    my-agent = "my_package:MyAgent"

`MyAgent` is an agent, a class of agents, or a function of `env` and `seed` that makes one, as for `rlsvi.compare`.
When the package is installed, `rlsvi list` shows my-agent, and `rlsvi train`, `compare`, `fit` and `bsuite` take
it by this name. It is imported only when you name it. `rlsvi doctor` tells whether it can be.
"""

import ast
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from rlsvi._lazy import exports_of, source_of
from rlsvi.core.checks import instead

Arguments = dict[str, Any]
SHORT_NAMES = {  # of classes, shorter than their own in lower case with hyphens, which are understood too
    "IncrementalRLSVI": "incremental",
    "EnsembleRLSVI": "ensemble",
    "LSVIUCB": "lsvi-ucb",
    "ContextualBandit": "bandit",
    "OptimalPolicy": "optimal",
}
VARIANTS: dict[str, tuple[str, str, Callable[[Arguments], Arguments]]] = {  # class, what it does, its arguments
    "default": ("agent_for", "The agent that suits the problem, as `rlsvi train` uses it", lambda given: {}),
    "lsvi-greedy": ("LSVI", "Least-squares value iteration, greedy", lambda given: {}),
    "lsvi-epsilon": (
        "LSVI",
        "Least-squares value iteration, a random action with probability --epsilon",
        lambda given: {"explore": _exported("EpsilonGreedy")(given.get("epsilon", 0.1))},
    ),
    "lsvi-boltzmann": (
        "LSVI",
        "Least-squares value iteration, actions in proportion to exp(Q / --eta)",
        lambda given: {"explore": _exported("Boltzmann")(given.get("eta", 0.1))},
    ),
    "myopic": (
        "OptimalPolicy",
        "The best policy that looks one step ahead, and knows the problem",
        lambda given: {"myopic": True},
    ),
}
ANY_ENVIRONMENT = "any environment of Gymnasium, such as FrozenLake-v1 or CartPole-v1; with its own arguments"


def agents() -> dict[str, str]:
    """Return the names of all agents, and what they do: those of this library, and of other packages."""
    others = {it.name: f"Of the package {package_of(it)}: {it.value}" for it in agents_of_packages()}
    return others | own_agents()


@cache
def own_agents() -> dict[str, str]:
    """Return the agents of this library: variants, and the classes that `rlsvi.agents` exports."""
    found = {name: what for name, (_, what, _) in VARIANTS.items()}
    for kind, home in sorted(exports_of("rlsvi.agents").items()):
        if (node := _agent_class(kind, home)) is not None:
            found[SHORT_NAMES.get(kind, _hyphened(kind))] = _summary(node)
    return found


@cache
def problems() -> dict[str, tuple[str, list[str]]]:
    """Return the names of all problems, what they are and their arguments: public functions of `rlsvi.problems`.

    A function that requires an argument is no problem but a way to make one.
    """
    found = {}
    for node in source_of("rlsvi.problems").body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            takes = node.args
            names = [it.arg for it in (*takes.args, *takes.kwonlyargs) if it.arg != "seed"]
            if len(takes.args) == len(takes.defaults) and None not in takes.kw_defaults:
                found[_hyphened(node.name)] = _summary(node), names
    return found


def _agent_class(name: str, module: str) -> ast.ClassDef | None:
    """Return the definition of a class, if it is that of an agent: it derives from Agent, directly or not."""
    body = _source(module).body
    node = next((it for it in body if isinstance(it, ast.ClassDef) and it.name == name), None)
    for base in node.bases if node else ():
        kind = ast.unparse(base).partition("[")[0]
        imports = [it for it in body if isinstance(it, ast.ImportFrom) and kind in [a.name for a in it.names]]
        home = str(imports[0].module) if imports else module
        if kind == "Agent" or (home.startswith("rlsvi.") and _agent_class(kind, home) is not None):
            return node
    return None


_source = cache(source_of)


def _hyphened(name: str) -> str:
    """Return the name of a class or function in lower case with hyphens: IncrementalRLSVI is incremental-rlsvi."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower()


def _summary(node: ast.ClassDef | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0].removesuffix(".")


def _exported(name: str) -> Any:
    import rlsvi

    return getattr(rlsvi, name)


def agent_class(name: str, option: str = "--agents") -> Any:
    """Return the class of an agent by any of its names, or the function that makes the default.

    Of another package, it is what that package offers by this name. Names of this library come first.
    """
    if name in VARIANTS:
        return _exported(VARIANTS[name][0])
    for kind, home in exports_of("rlsvi.agents").items():
        if (
            name
            and name in (kind, SHORT_NAMES.get(kind), _hyphened(kind))
            and _agent_class(kind, home) is not None
        ):
            return _exported(kind)
    if any(entry.name == name for entry in agents_of_packages()):
        return load_entry_point(name, option)
    there = "`rlsvi list` shows all; an agent of your own is module:name"
    raise ValueError(f"unknown agent {name!r} in {option}: {instead(name, agents(), there)}")


def agent_named(name: str, given: Arguments, option: str = "--agents") -> Any:
    """Return the agent of a name, made with those arguments that it takes, or what module:thing means."""
    from rlsvi.agents.agent import Agent

    if is_in_module(name):
        return found_in_module(name, option)
    kind = agent_class(name, option)
    if not callable(kind) or isinstance(kind, Agent):
        return kind
    made = isinstance(kind, type) and issubclass(kind, Agent)
    given = given | ({"planned": given["episodes"]} if made else {})
    given |= VARIANTS[name][2](given) if name in VARIANTS else {}
    takes = {key: given[key] for key in inspect.signature(kind).parameters if key in given}
    if made:
        return kind(**takes)
    return partial(kind, **takes) if takes else kind


def made_agent(
    found: Any, name: str, env: Any, seed: int, arguments: Arguments, options: tuple[str, ...] = ()
) -> Any:
    """Return a new agent of what the user has named, made in the same way as for a comparison.

    options : those of the arguments that have an option of their own; the others were given by --agent-arg.
    """
    from rlsvi.agents.agent import Agent
    from rlsvi.study.compare import check_agents, make_agent

    check_agents({name: found})
    is_agent = isinstance(found, Agent) or not callable(found)
    seed, arguments = arguments.get("seed", seed), {k: v for k, v in arguments.items() if k != "seed"}
    takes = inspect.signature(type(found) if is_agent else found).parameters
    there = f"it takes {', '.join(takes)}"
    for argument in arguments if not any(it.kind is it.VAR_KEYWORD for it in takes.values()) else ():
        if argument not in takes:
            option = f"--{argument}" if argument in options else f"--agent-arg {argument}"
            raise ValueError(f"{option} does not go with {name}: {instead(argument, takes, there)}")
    try:
        if is_agent:
            return found.clone(seed=seed, **arguments)
        return make_agent(name, partial(found, **arguments) if arguments else found, env, seed)
    except TypeError as error:
        if not re.search("unexpected keyword argument|has no argument", str(error)):
            raise
        raise ValueError(f"--agent-arg does not go with {name}: {error}") from None


# ---- Agents of other packages: see above -------------------------------------------------------------------


def agents_of_packages() -> list[EntryPoint]:
    """Return what other packages offer as agents, in the order of names. Nothing is imported."""
    return sorted(entry_points(group="rlsvi.agents"), key=lambda entry: (entry.name, entry.value))


def is_of_others(name: str) -> bool:
    """Whether a name is that of an agent of the user or of another package."""
    offered = any(entry.name == name for entry in agents_of_packages())
    return is_in_module(name) or (offered and name not in own_agents())


def load_entry_point(name: str, option: str) -> Any:
    """Return what a package offers as an agent by this name, or raise an error that names the package."""
    found = [entry for entry in agents_of_packages() if entry.name == name]
    if len(found) > 1:
        packages, values = (" and ".join(map(each, found)) for each in (package_of, lambda entry: entry.value))
        raise ValueError(f"{option} names {name}, which {packages} offer: write one of {values}")
    said = f"{option} names {name}, which the package {package_of(found[0])} offers as {found[0].value}"
    remedy = "update or reinstall the package, or leave this agent out"
    try:
        thing = found[0].load()
    except Exception as error:  # of any kind: it is code of others
        raise ValueError(f"{said}, but it cannot be imported: {_told(error)}; {remedy}") from error
    makes = callable(thing) and not isinstance(thing, type)
    if not (makes or callable(getattr(thing, "learn", None))):
        raise ValueError(f"{said}, but that is no agent: it has no method learn; {remedy}")
    return thing


def package_of(entry: EntryPoint) -> str:
    """Return the name of the package that declares an entry point."""
    return entry.dist.name if entry.dist else "of unknown name"


def _told(error: Exception) -> str:
    """Return what an error of a module says, and where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error} ({type(error).__name__} in {Path(last.filename).name}, line {last.lineno})"


def problem_named(name: str, options: dict[str, Any]) -> Any:
    """The problem of a name with its arguments, in a form that `rlsvi.compare` takes."""
    if name in problems():
        return _with_arguments(problem_maker(name), options, name)
    if is_in_module(name) and not is_registered(name):
        found = found_in_module(name, "PROBLEM")
        if callable(found):
            return _with_arguments(found, options, name)
        if options:
            raise ValueError(
                f"--problem-arg goes with a function that makes a problem, {name} is a problem already"
            )
        return found
    return _environment(name, options)


def is_registered(name: str) -> bool:
    """Whether importing the module of module:id registers an environment of that id."""
    import gymnasium

    imported_module(name, "PROBLEM")
    return name.partition(":")[2] in gymnasium.registry


def problem_maker(name: str) -> Callable[..., Any]:
    """Return the function that makes a problem of the library."""
    from rlsvi import problems

    made: Callable[..., Any] = getattr(problems, name.replace("-", "_"))
    return made


def _with_arguments(function: Callable[..., Any], options: dict[str, Any], name: str) -> Callable[..., Any]:
    check_arguments(function, options, name, ("seed",))
    return partial(function, **options) if options else function


def _environment(id: str, options: dict[str, Any]) -> Any:
    """An environment of Gymnasium; a horizon among its arguments is that of its table, if it has one."""
    import gymnasium

    from rlsvi import problems as made_by_name
    from rlsvi.envs.description import like_id

    if ":" in id:
        look_here_too()
    try:
        if "horizon" in options:
            return made_by_name.gymnasium(id, **options)
        gymnasium.make(id, **options).close()
    except (gymnasium.error.Error, ImportError) as error:
        if isinstance(error, gymnasium.error.UnregisteredEnv):
            there = (
                f"there are {', '.join(problems())}, module:name, or {ANY_ENVIRONMENT} (Gymnasium says: {error})"
            )
            raise ValueError(f"unknown problem {id!r}: {like_id(id, there, problems())}") from error
        raise ValueError(f"cannot make the problem {id}: {error}") from error
    return partial(gymnasium.make, id, **options) if options else id


# ---- Things of a module, and arguments ---------------------------------------------------------------------


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
    from rlsvi.offline.log import OPTIONAL, REQUIRED

    for name in given:
        if name not in (known := (*REQUIRED, *OPTIONAL)):
            raise ValueError(f"--column {name}=.. is no column of a log: {instead(name, known)}")
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
        here = sorted(path.stem for path in Path.cwd().glob("*.py"))
        near = instead(module, here, f"run the command where {module}.py is")
        raise ValueError(f"{option} names {name}, but there is no module {error.name}: {near}") from error
    except Exception as error:
        raise ValueError(f"{option} names {name}, which cannot be imported: {_told(error)}") from error


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
