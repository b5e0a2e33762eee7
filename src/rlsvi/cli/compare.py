"""`rlsvi compare`: agents side by side on one problem."""

import inspect
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.errors import told

if TYPE_CHECKING:
    from rlsvi.agents.agent import Agent
    from rlsvi.problems import Problem
    from rlsvi.study.runs import Runs

AGENTS = {  # the class of each, and what it does
    "rlsvi": ("RLSVI", "sample a plausible value function each episode and act greedily on it"),
    "lsvi-greedy": ("LSVI", "least-squares value iteration, greedy"),
    "lsvi-epsilon": ("LSVI", "least-squares value iteration, a random action with probability --epsilon"),
    "lsvi-boltzmann": ("LSVI", "least-squares value iteration, actions in proportion to exp(Q / --eta)"),
    "incremental": ("IncrementalRLSVI", "RLSVI at a constant cost; forgets --nu of the past in an episode"),
    "psrl": ("PSRL", "posterior sampling of the whole MDP, with a table; rewards lie in --reward-range"),
    "gaussian-psrl": ("GaussianPSRL", "posterior sampling with Gaussian values instead, with a table"),
    "ucrl2": ("UCRL2", "optimism in confidence sets of MDPs, with a table"),
    "ucbvi": ("UCBVI", "optimism by a bonus for what is rarely seen, with a table"),
    "lsvi-ucb": ("LSVIUCB", "optimism by a bonus for linear features, whose 2-norm must be at most 1"),
    "bandit": ("ContextualBandit", "linear Thompson sampling of the next reward alone, in each period"),
    "optimal": ("OptimalPolicy", "the optimal policy, which knows the problem"),
    "myopic": ("OptimalPolicy", "the best policy that looks one step ahead, and knows the problem"),
}
PROBLEMS = {
    "chain": ("the paper's chain: one reward, at the far end", ("length", "features", "rho")),
    "deep-sea": ("bsuite's DeepSea: one treasure in an N x N grid", ("size", "stochastic")),
    "river-swim": ("swim against the current (psrl is better at it than rlsvi)", ("states", "horizon")),
    "recommendation": ("the paper's recommendation engine: J of N products to a customer", ("products", "slots")),
    "dirichlet": ("an MDP drawn from the prior of Theorem 1", ("states", "actions", "horizon")),
}
TOY_TEXT = "a toy-text environment of Gymnasium by its id, such as FrozenLake-v1"


_chain = partial(typer.Option, rich_help_panel="Problem: chain")
_deep_sea = partial(typer.Option, rich_help_panel="Problem: deep-sea")
_recommendation = partial(typer.Option, rich_help_panel="Problem: recommendation")
_sized = partial(typer.Option, rich_help_panel="Problems: river-swim, dirichlet, Gymnasium")
_learning = partial(typer.Option, rich_help_panel="Agents")


def compare(
    problem: Annotated[str, typer.Argument(help=f"One of {', '.join(PROBLEMS)}; or {TOY_TEXT}.")],
    agents: Annotated[str, typer.Option(help=f"Separated by commas: {', '.join(AGENTS)}.")] = "rlsvi,lsvi-epsilon",
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of each run.")] = 2000,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each agent; every seed draws its own problem.")] = 20,
    length: Annotated[int | None, _chain(help="Number of states N; an episode has N - 1 steps.")] = None,
    features: Annotated[int | None, _chain(help="Learn with this many random features, not a table.")] = None,
    rho: Annotated[float | None, _chain(help="Noise in the features; without it they are coherent.")] = None,
    size: Annotated[int | None, _deep_sea(help="N, for N x N cells and N steps.")] = None,
    stochastic: Annotated[bool | None, _deep_sea("--stochastic", help="Add noise to moves and rewards.")] = None,
    products: Annotated[int | None, _recommendation(help="Number of products N.")] = None,
    slots: Annotated[int | None, _recommendation(help="Number of products shown to a customer, J.")] = None,
    states: Annotated[int | None, _sized(help="Number of states (river-swim, dirichlet).")] = None,
    actions: Annotated[int | None, _sized(help="Number of actions (dirichlet).")] = None,
    horizon: Annotated[int | None, _sized(help="Steps of an episode.")] = None,
    lam: Annotated[float, _learning("--lam", "--lambda", help="Prior precision (RLSVI) or ridge (LSVI).")] = 1.0,
    sigma: Annotated[float, _learning(help="Standard deviation of the noise in RLSVI's regression.")] = 0.1,
    nu: Annotated[float, _learning(help="Share of the past that incremental RLSVI forgets in an episode.")] = 0.01,
    scale: Annotated[
        float, _learning(help="Scale of bonuses and noise: gaussian-psrl, ucrl2, ucbvi, lsvi-ucb. In theory 1.")
    ] = 1.0,
    reward_range: Annotated[
        tuple[float, float], _learning(help="Least and largest reward, for the same agents and psrl.")
    ] = (0.0, 1.0),
    epsilon: Annotated[float, _learning(help="Probability of a random action (lsvi-epsilon).")] = 0.1,
    eta: Annotated[float, _learning(help="Temperature of Boltzmann exploration (lsvi-boltzmann).")] = 0.1,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of threads; by default one per core.")] = None,
    device: Annotated[
        str,
        typer.Option(help="cpu, or cuda: all seeds at once on a graphics card, from about a thousand seeds on."),
    ] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Folder for regret.png, summary.json, runs.parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> None:
    """Compare agents on a problem, over many seeds, on all cores.

    The table shows the expected regret of all episodes (its median over the seeds and a 95% bootstrap interval),
    the share of random play's regret that is left in the last tenth of the episodes, how many seeds got that below
    5% for good, and after how many episodes.

    Example: rlsvi compare chain --length 50 --features 10 --agents rlsvi,lsvi-boltzmann
    """
    given = dict(locals())
    options = {name: given[name] for _, takes in PROBLEMS.values() for name in takes if given[name] is not None}
    settings: dict[str, Any] = {"lam": lam, "sigma": sigma, "epsilon": epsilon, "eta": eta}
    settings |= {"nu": nu, "scale": scale, "reward_range": reward_range}
    with told(lambda: "nothing was written"):
        import rlsvi
        from rlsvi.core import card

        names = [name.strip() for name in agents.split(",")]
        patterns = {name: _agent(name, settings | {"episodes": episodes}) for name in names}
        if len(patterns) < len(names):
            raise ValueError(f"--agents names an agent twice: {agents}")
        if device not in ("cpu", "cuda"):
            raise ValueError(f"--device must be cpu or cuda, got {device!r}")
        if device == "cuda":
            card.cuda()  # raises an error if there is none
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        drawn = partial(_problem, problem, options)
        runs = rlsvi.compare(patterns, drawn, episodes, seeds, workers=workers, device=device, progress=not quiet)
        settings |= {"problem": problem, **_defaults(problem), **options, "agents": names}
        _show(runs, settings | {"episodes": episodes, "seeds": seeds, "rlsvi": rlsvi.__version__}, out, as_json)


def _problem(name: str, options: dict[str, Any], seed: int) -> "Problem":
    from gymnasium.error import Error

    from rlsvi import problems

    takes = PROBLEMS[name][1] if name in PROBLEMS else ("horizon",)
    for option in options:
        if option not in takes:
            raise ValueError(f"--{option} does not go with {name}, which takes --{', --'.join(takes)}")
    if name not in PROBLEMS:
        try:
            return problems.gymnasium(name, **options)
        except (Error, ImportError) as error:
            known = f"there are {', '.join(PROBLEMS)}, or {TOY_TEXT}"
            raise ValueError(f"unknown problem {name!r}: {known} (Gymnasium says: {error})") from error
    if name != "river-swim":
        options = {**options, "seed": seed}
    made: Problem = getattr(problems, name.replace("-", "_"))(**options)
    return made


def _defaults(problem: str) -> dict[str, Any]:
    """The options of a problem that were left at their defaults."""
    from rlsvi import problems

    if problem not in PROBLEMS:
        return {}
    parameters = inspect.signature(getattr(problems, problem.replace("-", "_"))).parameters
    return {name: parameters[name].default for name in PROBLEMS[problem][1]}


def _agent(name: str, settings: dict[str, Any]) -> "Agent":
    """The agent of a name, made with those of the settings that it takes."""
    import rlsvi

    if name not in AGENTS:
        raise ValueError(f"unknown agent {name!r} in --agents: there are {', '.join(AGENTS)}")
    given = settings | {"planned": settings["episodes"], "myopic": name == "myopic"}
    if name == "lsvi-epsilon":
        given["explore"] = rlsvi.EpsilonGreedy(settings["epsilon"])
    if name == "lsvi-boltzmann":
        given["explore"] = rlsvi.Boltzmann(settings["eta"])
    kind = getattr(rlsvi, AGENTS[name][0])
    made: Agent = kind(**{key: given[key] for key in inspect.signature(kind).parameters if key in given})
    return made


def _show(runs: "Runs", settings: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """The summary on stdout, and everything in the folder `out`."""
    result = {"settings": settings, "summary": runs.summary().to_dicts()}
    if as_json:
        print(json.dumps(result, indent=1))
    else:
        _print_table(runs)
    if out is not None:
        runs.frame.write_parquet(out / "runs.parquet")
        (out / "summary.json").write_text(json.dumps(result, indent=1) + "\n")
        runs.plot(out / "regret.png")
        print(f"picture: {out / 'regret.png'}", file=sys.stderr)
        print(f"numbers: {out / 'summary.json'}, {out / 'runs.parquet'}", file=sys.stderr)


def _print_table(runs: "Runs") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from rlsvi.study.runs import CAPTION, COLUMNS

    table = Table(title=runs.title, title_justify="left", caption=CAPTION, caption_justify="left", box=SIMPLE_HEAD)
    for i, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for cells in runs.cells():
        table.add_row(*cells)
    Console().print(table)
