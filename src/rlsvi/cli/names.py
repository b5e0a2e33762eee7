"""What the user names on the command line: agents and problems of the library, things of a module, and arguments.

Nothing is imported to list them, as that takes longer than the list. Other packages offer agents by entry points
of the group rlsvi.agents (docs/how-to/own-agent.md), which are imported only when the user names them.
"""

import ast
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from rlsvi.core.checks import instead, shown

Arguments = dict[str, Any]
AGENTS = {  # what each name stands for in `rlsvi`, and what it does
    "default": ("agent_for", "The agent that suits the problem, as `rlsvi train` uses it"),
    "rlsvi": (
        "RLSVI",
        "Randomized least-squares value iteration: it acts on a sampled value function",
    ),
    "lsvi": ("LSVI", "Least-squares value iteration with greedy, epsilon-greedy or Boltzmann exploration"),
    "lsvi-greedy": ("LSVI", "Least-squares value iteration, greedy"),
    "lsvi-epsilon": ("LSVI", "Least-squares value iteration, a random action with probability --epsilon"),
    "lsvi-boltzmann": ("LSVI", "Least-squares value iteration, actions in proportion to exp(Q / --eta)"),
    "bounded-rlsvi": (
        "BoundedRLSVI",
        "RLSVI on features, with defaults that work",
    ),
    "discounted-psrl": ("DiscountedPSRL", "Posterior sampling with discounting, where states appear as they come"),
    "table-or-features": (
        "TableOrFeatures",
        "discounted-psrl where observations recur, else bounded-rlsvi",
    ),
    "stationary-rlsvi": (
        "StationaryRLSVI",
        "RLSVI without a fixed number of periods",
    ),
    "stationary-lsvi": ("StationaryLSVI", "LSVI without a fixed number of periods"),
    "continual-rlsvi": (
        "ContinualRLSVI",
        "RLSVI for discounted problems without end",
    ),
    "continual-lsvi": ("ContinualLSVI", "LSVI for discounted problems without end"),
    "incremental": ("IncrementalRLSVI", "RLSVI at a constant cost per episode"),
    "ensemble": (
        "EnsembleRLSVI",
        "RLSVI with a fixed number of value functions, one of which plays an episode",
    ),
    "bootstrap-rlsvi": ("BootstrapRLSVI", "RLSVI with randomly weighted transitions instead of normal noise"),
    "gradient-rlsvi": ("GradientRLSVI", "RLSVI by stochastic gradients, for very many features"),
    "psrl": ("PSRL", "Posterior sampling: an episode acts optimally in a sampled MDP, with a table"),
    "ucrl2": ("UCRL2", "Optimism over L1 confidence sets of MDPs, with a table"),
    "ucbvi": ("UCBVI", "Upper confidence bound value iteration, with a bonus for what is rarely seen"),
    "lsvi-ucb": ("LSVIUCB", "Optimistic least-squares value iteration for finitely many states"),
    "bandit": ("ContextualBandit", "Thompson sampling for a linear model of the reward"),
    "thompson-sampling": (
        "ThompsonSampling",
        "Bernoulli Thompson sampling over the actions, whatever the state",
    ),
    "optimal": ("OptimalPolicy", "The optimal policy by exact dynamic programming; it only plays"),
    "myopic": ("OptimalPolicy", "The best policy that looks one step ahead, and knows the problem"),
}
PROBLEMS = {  # what each function of `rlsvi.problems` makes, and its arguments but the seed
    "chain": (
        "The paper's chain with a basis of features, or a table",
        "length, features, rho, scale, rho_is, per_period, deterministic",
    ),
    "deep-sea": ("The DeepSea of bsuite with a basis of features, or a table", "size, features, rho, stochastic"),
    "river-swim": ("A river to swim up, with a table (PSRL is better at it than RLSVI)", "states, horizon"),
    "dirichlet": ("An MDP drawn from the prior of Theorem 1, with a table", "states, actions, horizon"),
    "recommendation": ("The paper's recommendation engine with its own basis", "products, slots"),
    "grid": (
        "A grid of N x N cells, with a table: one reward, in the corner opposite to the start",
        "size, slip, horizon",
    ),
}
ANY_ENVIRONMENT = "any environment of Gymnasium, such as FrozenLake-v1 or CartPole-v1; with its own arguments"


def agents() -> dict[str, str]:
    """Return the names of all agents, and what they do: those of this library, and of other packages."""
    others = {it.name: f"Of the package {package_of(it)}: {it.value}" for it in agents_of_packages()}
    return others | {name: what for name, (_, what) in AGENTS.items()}


def agent_class(name: str, option: str = "--agents") -> Any:
    """Return the class of an agent by any of its names, or the function that makes the default.

    The name may also be that of the class, or that in lower case with hyphens. Of another package, it is what that
    package offers by this name. Names of this library come first.
    """
    for known, (kind, _) in AGENTS.items():
        if name in (known, kind, re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower()):
            import rlsvi

            return getattr(rlsvi, kind)
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
    given |= _variant(name, given)
    takes = {key: given[key] for key in inspect.signature(kind).parameters if key in given}
    if made:
        return kind(**takes)
    return partial(kind, **takes) if takes else kind


def _variant(name: str, given: Arguments) -> Arguments:
    """Return the arguments by which the agent of a name differs from others of its class."""
    import rlsvi

    if name == "lsvi-epsilon":
        return {"explore": rlsvi.EpsilonGreedy(given.get("epsilon", 0.1))}
    if name == "lsvi-boltzmann":
        return {"explore": rlsvi.Boltzmann(given.get("eta", 0.1))}
    return {"myopic": True} if name == "myopic" else {}


def made_agent(
    found: Any, name: str, env: Any, seed: int, arguments: Arguments, options: tuple[str, ...] = ()
) -> Any:
    """Return a new agent of what the user has named, made in the same way as for a comparison.

    Parameters
    ----------
    options
        Those of the arguments that have an option of their own; the others were given by --agent-arg.
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


# ---- Agents of other packages -------------------------------------------------------------------


def agents_of_packages() -> list[EntryPoint]:
    """Return what other packages offer as agents, in the order of names. Nothing is imported."""
    return sorted(entry_points(group="rlsvi.agents"), key=lambda entry: (entry.name, entry.value))


def offered(group: str, kind: Any) -> dict[str, Any]:
    """Return what packages offer in a group of entry points, by name. What cannot be used is named and skipped."""
    found: dict[str, Any] = {}
    for entry in sorted(entry_points(group=group)):
        try:
            thing = entry.load()
            if not isinstance(thing, kind):
                raise TypeError(f"{entry.value} is {shown(thing)}")
            if entry.name in found:
                raise ValueError("another package offers the same name")
        except (Exception, SystemExit) as error:  # of any kind: it is code of others
            said = f"warning: {package_of(entry)} offers {entry.name} in {group}, which is skipped: {error}"
            print(said, file=sys.stderr)
            continue
        found[entry.name] = thing
    return found


def is_of_others(name: str) -> bool:
    """Whether a name is that of an agent of the user or of another package."""
    offered = any(entry.name == name for entry in agents_of_packages())
    return is_in_module(name) or (offered and name not in AGENTS)


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


def problem_named(name: str, options: Arguments) -> Any:
    """Return the problem of a name with its arguments, in a form that `rlsvi.compare` takes."""
    import gymnasium

    if name in PROBLEMS:
        return _with_arguments(problem_maker(name), options, name)
    if is_in_module(name):
        imported_module(name, "PROBLEM")  # which may register environments
    if not is_in_module(name) or name.partition(":")[2] in gymnasium.registry:
        return _environment(name, options)
    found = found_in_module(name, "PROBLEM")
    if callable(found):
        return _with_arguments(found, options, name)
    if options:
        raise ValueError(f"--problem-arg goes with a function that makes a problem, {name} is a problem already")
    return found


def problem_maker(name: str) -> Callable[..., Any]:
    """Return the function that makes a problem of the library."""
    from rlsvi import problems

    made: Callable[..., Any] = getattr(problems, name.replace("-", "_"))
    return made


def _with_arguments(function: Callable[..., Any], options: Arguments, name: str) -> Callable[..., Any]:
    """Return a function with arguments given as --problem-arg, which it must take."""
    takes = inspect.signature(function).parameters
    names = [key for key in takes if key != "seed"]
    for argument in options if not any(it.kind is it.VAR_KEYWORD for it in takes.values()) else ():
        if argument not in names:
            known = instead(argument, names, "" if names else "it takes none")
            raise ValueError(f"--problem-arg {argument} does not go with {name}: {known}")
    return partial(function, **options) if options else function


def _environment(id: str, options: Arguments) -> Any:
    """Return an environment of Gymnasium; a horizon among its arguments is that of its table, if it has one."""
    import gymnasium

    from rlsvi import problems
    from rlsvi.envs.description import like_id

    if ":" in id:
        look_here_too()
    try:
        if "horizon" in options:
            return problems.gymnasium(id, **options)
        gymnasium.make(id, **options).close()
    except (gymnasium.error.Error, ImportError) as error:
        if isinstance(error, gymnasium.error.UnregisteredEnv):
            there = f"there are {', '.join(PROBLEMS)}, module:name, or {ANY_ENVIRONMENT} (Gymnasium says: {error})"
            raise ValueError(f"unknown problem {id!r}: {like_id(id, there, PROBLEMS)}") from error
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
