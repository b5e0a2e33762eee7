"""`rlsvi compare`: agents side by side on one problem."""

import inspect
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.errors import told
from rlsvi.cli.named import (
    arguments_of,
    check_arguments,
    found_in_module,
    imported_module,
    is_in_module,
    look_here_too,
)
from rlsvi.core.checks import instead

if TYPE_CHECKING:
    from rlsvi.study.runs import Runs


# ---- The agents and problems that `rlsvi compare` knows by name, and those that users name as module:thing ----


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
    from rlsvi.study.compare import draw_problem

    drawn = draw_problem(problem, 0)
    if callable(problem):
        drawn.make().close()
    return drawn.problem is not None


def defaults(problem: str) -> dict[str, Any]:
    """The main arguments of a problem, as they are if left out."""
    if problem not in PROBLEMS:
        return {}
    parameters = inspect.signature(_maker(problem)).parameters
    return {name: parameters[name].default for name in PROBLEMS[problem][1]}


FUSED, STEPPED = (2000, 20), (50, 10)  # episodes and seeds, if none are given
EXECUTORS = ("threads", "processes", "serial", "ray")
_learning = partial(typer.Option, rich_help_panel="Agents")


def _either(many: int, few: int) -> str:
    return f"{many}; or {few}, if no agent has a compiled loop there"


def compare(
    problem: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(PROBLEMS)}; a Gymnasium id, such as CartPole-v1; or module:name, where name "
            "is a problem, an environment, or a function that makes one."
        ),
    ],
    agents: Annotated[
        str | None,
        typer.Option(
            help=f"Separated by commas: {', '.join(AGENTS)}; or module:name, where name is an agent, a class, or "
            "a function of env and seed.",
            show_default="rlsvi,lsvi-epsilon; or default, if the problem is not a finite one",
        ),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Episodes of each run.", show_default=_either(FUSED[0], STEPPED[0]))
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Runs of each agent; every seed draws its own problem.",
            show_default=_either(FUSED[1], STEPPED[1]),
        ),
    ] = None,
    problem_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--problem-arg",
            "-p",
            metavar="NAME=VALUE",
            help="An argument of the problem, such as length=50; can be repeated. `rlsvi list` shows them.",
        ),
    ] = None,
    lam: Annotated[float, _learning("--lam", "--lambda", help="Prior precision (RLSVI) or ridge (LSVI).")] = 1.0,
    sigma: Annotated[float, _learning(help="Standard deviation of the noise in RLSVI's regression.")] = 0.1,
    nu: Annotated[float, _learning(help="Share of the past that incremental RLSVI forgets in an episode.")] = 0.01,
    members: Annotated[int, _learning(min=1, help="Number of value functions of the ensemble.")] = 20,
    scale: Annotated[
        float, _learning(help="Scale of bonuses and noise: gaussian-psrl, ucrl2, ucbvi, lsvi-ucb. In theory 1.")
    ] = 1.0,
    reward_range: Annotated[
        tuple[float, float], _learning(help="Least and largest reward, for the same agents and psrl.")
    ] = (0.0, 1.0),
    epsilon: Annotated[float, _learning(help="Probability of a random action (lsvi-epsilon).")] = 0.1,
    eta: Annotated[float, _learning(help="Temperature of Boltzmann exploration (lsvi-boltzmann).")] = 0.1,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of threads or processes; by default one per core.")
    ] = None,
    executor: Annotated[
        str,
        typer.Option(help="threads; processes, faster for agents without a compiled loop; or ray."),
    ] = "threads",
    device: Annotated[
        str,
        typer.Option(help="cpu, or cuda: all seeds at once on a graphics card, from about a thousand seeds on."),
    ] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Folder for a picture, summary.json and runs.parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> None:
    """Compare agents on a problem, over many seeds, on all cores.

    If the problem is a finite one, the table shows the expected regret of all episodes (its median over the seeds
    and a 95% bootstrap interval), the share of random play's regret that is left in the last tenth of the
    episodes, how many seeds got that below 5% for good, and after how many episodes. Otherwise it shows returns.

    Agents without a compiled loop for the problem, as all are on CartPole-v1, are stepped through the environment,
    which takes longer.

    Modules that you name are looked for in the current folder too; nothing else is imported.

    Example: rlsvi compare chain -p length=50 -p features=10 --agents rlsvi,lsvi-boltzmann

    Example: rlsvi compare CartPole-v1 --agents default,my_module:MyAgent --episodes 50 --seeds 10

    Example: rlsvi compare my_module:two_rooms --problem-arg doors=2
    """
    settings: dict[str, Any] = {"lam": lam, "sigma": sigma, "epsilon": epsilon, "eta": eta}
    settings |= {"nu": nu, "members": members, "scale": scale, "reward_range": reward_range}
    with told(lambda: "nothing was written"):
        import rlsvi
        from rlsvi.core import card

        options = arguments_of(problem_arg, "--problem-arg", "length=50")
        drawn = problem_named(problem, options)
        solved = is_solved(drawn)
        names = [
            name.strip() for name in ((USUAL if solved else ANYWHERE) if agents is None else agents).split(",")
        ]
        usual = FUSED if solved and not all(is_in_module(name) for name in names) else STEPPED
        episodes, seeds = episodes or usual[0], seeds or usual[1]
        entered = {name: agent_named(name, settings | {"episodes": episodes}) for name in names}
        if len(entered) < len(names):
            raise ValueError(f"--agents names an agent twice: {agents}")
        if device not in ("cpu", "cuda"):
            raise ValueError(f"--device must be cpu or cuda, got {device!r}")
        if device == "cuda":
            card.cuda()  # raises an error if there is none
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        if executor not in EXECUTORS:
            raise ValueError(f"--executor must be one of {', '.join(EXECUTORS)}, got {executor!r}")
        spread = {} if executor == "threads" else {"executor": executor}
        how: dict[str, Any] = {"workers": workers, "device": device, "progress": not quiet, **spread}
        runs = rlsvi.compare(entered, drawn, episodes, seeds, **how)
        settings |= {"problem": problem, "problem_args": defaults(problem) | options, "agents": names}
        _show(runs, settings | {"episodes": episodes, "seeds": seeds, "rlsvi": rlsvi.__version__}, out, as_json)


def _show(runs: "Runs", settings: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """Everything in the folder `out`, and then the summary on stdout, which may not be able to show it."""
    result = {"settings": settings, "summary": runs.summary().to_dicts()}
    if out is not None:
        runs.frame.write_parquet(out / "runs.parquet")
        (out / "summary.json").write_text(json.dumps(result, indent=1) + "\n")
        picture = out / ("regret.png" if runs.exact else "returns.png")
        runs.plot(picture)
    print(json.dumps(result, indent=1) if as_json else runs)
    if out is not None:
        print(f"picture: {picture}", file=sys.stderr)
        print(f"numbers: {out / 'summary.json'}, {out / 'runs.parquet'}", file=sys.stderr)
