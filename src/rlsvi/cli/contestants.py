"""The agents and problems that `rlsvi compare` knows by name, and those that users name as module:thing."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from rlsvi.cli.named import check_arguments, found_in_module, imported_module, is_in_module, look_here_too
from rlsvi.core.checks import instead

AGENTS = {  # the class of each, and what it does
    "default": ("agent_for", "the agent that suits the problem, as `rlsvi train` uses it"),
    "rlsvi": ("RLSVI", "sample a plausible value function each episode and act greedily on it"),
    "lsvi-greedy": ("LSVI", "least-squares value iteration, greedy"),
    "lsvi-epsilon": ("LSVI", "least-squares value iteration, a random action with probability --epsilon"),
    "lsvi-boltzmann": ("LSVI", "least-squares value iteration, actions in proportion to exp(Q / --eta)"),
    "incremental": ("IncrementalRLSVI", "RLSVI at a constant cost; forgets --nu of the past in an episode"),
    "ensemble": ("EnsembleRLSVI", "RLSVI that keeps --members value functions, and picks one for each episode"),
    "psrl": ("PSRL", "posterior sampling of the whole MDP, with a table; rewards lie in --reward-range"),
    "gaussian-psrl": ("GaussianPSRL", "posterior sampling with Gaussian values instead, with a table"),
    "ucrl2": ("UCRL2", "optimism in confidence sets of MDPs, with a table"),
    "ucbvi": ("UCBVI", "optimism by a bonus for what is rarely seen, with a table"),
    "lsvi-ucb": ("LSVIUCB", "optimism by a bonus for linear features, whose 2-norm must be at most 1"),
    "bandit": ("ContextualBandit", "linear Thompson sampling of the next reward alone, in each period"),
    "optimal": ("OptimalPolicy", "the optimal policy, which knows the problem"),
    "myopic": ("OptimalPolicy", "the best policy that looks one step ahead, and knows the problem"),
}
PROBLEMS = {  # what it is, and its main arguments
    "chain": ("the paper's chain: one reward, at the far end", ("length", "features", "rho")),
    "deep-sea": ("bsuite's DeepSea: one treasure in an N x N grid", ("size", "stochastic")),
    "river-swim": ("swim against the current (psrl is better at it than rlsvi)", ("states", "horizon")),
    "recommendation": ("the paper's recommendation engine: J of N products to a customer", ("products", "slots")),
    "dirichlet": ("an MDP drawn from the prior of Theorem 1", ("states", "actions", "horizon")),
}
TOY_TEXT = "any environment of Gymnasium by its id, such as FrozenLake-v1 or CartPole-v1; with its own arguments"
USUAL, ANYWHERE = "rlsvi,lsvi-epsilon", "default"


def agent_named(name: str, settings: dict[str, Any]) -> Any:
    """The agent of a name, made with those of the settings that it takes, or what module:thing means."""
    import rlsvi

    if is_in_module(name):
        return found_in_module(name, "--agents")
    if name not in AGENTS:
        there = "`rlsvi list` shows all; an agent of your own is module:name"
        raise ValueError(f"unknown agent {name!r} in --agents: {instead(name, AGENTS, there)}")
    if name == "default":
        return rlsvi.agent_for
    given = settings | {"planned": settings["episodes"], "myopic": name == "myopic"}
    if name == "lsvi-epsilon":
        given["explore"] = rlsvi.EpsilonGreedy(settings["epsilon"])
    if name == "lsvi-boltzmann":
        given["explore"] = rlsvi.Boltzmann(settings["eta"])
    kind = getattr(rlsvi, AGENTS[name][0])
    return kind(**{key: given[key] for key in inspect.signature(kind).parameters if key in given})


def problem_named(name: str, options: dict[str, Any]) -> Any:
    """The problem of a name with its arguments, in a form that `rlsvi.compare` takes."""
    if name in PROBLEMS:
        return _called(_maker(name), options, name)
    if is_in_module(name) and not is_registered(name):
        found = found_in_module(name, "PROBLEM")
        if callable(found):
            return _called(found, options, name)
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


def _maker(name: str) -> Callable[..., Any]:
    from rlsvi import problems

    made: Callable[..., Any] = getattr(problems, name.replace("-", "_"))
    return made


def _called(function: Callable[..., Any], options: dict[str, Any], name: str) -> Callable[..., Any]:
    check_arguments(function, options, name, ("seed",))
    return partial(function, **options) if options else function


def _environment(id: str, options: dict[str, Any]) -> Any:
    """An environment of Gymnasium; a horizon among its arguments is that of its table, if it has one."""
    import gymnasium

    from rlsvi import problems
    from rlsvi.envs.making import like_id

    if ":" in id:
        look_here_too()
    try:
        if "horizon" in options:
            return problems.gymnasium(id, **options)
        gymnasium.make(id, **options).close()
    except (gymnasium.error.Error, ImportError) as error:
        if isinstance(error, gymnasium.error.UnregisteredEnv):
            there = f"there are {', '.join(PROBLEMS)}, module:name, or {TOY_TEXT} (Gymnasium says: {error})"
            raise ValueError(f"unknown problem {id!r}: {like_id(id, there, PROBLEMS)}") from error
        raise ValueError(f"cannot make the problem {id}: {error}") from error
    return partial(gymnasium.make, id, **options) if options else id


def is_solved(problem: Any) -> bool:
    """Whether the solution of a problem is known."""
    from rlsvi.study.compare import arena_of

    arena = arena_of(problem, 0)
    if callable(problem):
        arena.make().close()
    return arena.problem is not None


def defaults(problem: str) -> dict[str, Any]:
    """The main arguments of a problem, as they are if left out."""
    if problem not in PROBLEMS:
        return {}
    parameters = inspect.signature(_maker(problem)).parameters
    return {name: parameters[name].default for name in PROBLEMS[problem][1]}
