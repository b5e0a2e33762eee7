"""`rlsvi compare`: agents side by side on one problem."""

import inspect
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.cli.names import (
    PROBLEMS,
    agent_class,
    agent_named,
    arguments_of,
    is_in_module,
    is_of_others,
    problem_maker,
    problem_named,
)
from rlsvi.core.checks import instead, one_of

if TYPE_CHECKING:
    from rlsvi.study.runs import Runs


FUSED, STEPPED = (2000, 20), (50, 10)  # episodes and seeds, if none are given
USUAL_AGENTS = {True: "rlsvi,lsvi-epsilon", False: "default"}  # where the problem is solved, and elsewhere
EXECUTORS = ("threads", "processes", "serial", "ray")
_learning = partial(typer.Option, rich_help_panel="Agents")


def _either(many: int, few: int) -> str:
    return f"{many}; or {few}, if no agent has a compiled loop there"


def compare(
    context: typer.Context,
    problem: Annotated[
        str,
        typer.Argument(
            help=f"{', '.join(PROBLEMS)}; a Gymnasium id, such as CartPole-v1; or module:name, where name "
            "is a problem, an environment, or a function that makes one."
        ),
    ],
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agents",
            "--agent",
            help="Separated by commas, or repeated: rlsvi, psrl, ucbvi, .., as `rlsvi list` shows them; or "
            "module:name, where name is an agent, a class, or a function of env and seed.",
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
    agent_arg: Annotated[
        list[str] | None,
        _learning(
            metavar="NAME=VALUE",
            help="Another argument, of all agents that take it, such as delta=0.1; can be repeated.",
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
    with report_errors(lambda: "nothing was written"):
        import rlsvi
        from rlsvi.core import card
        from rlsvi.study.compare import draw_problem

        options = arguments_of(problem_arg, "--problem-arg", "length=50")
        drawn = problem_named(problem, options)
        first = draw_problem(drawn, 0)
        if callable(drawn):
            first.make().close()  # every run makes its own
        solved = first.problem is not None
        names = [name.strip() for name in ",".join(agents or [USUAL_AGENTS[solved]]).split(",")]
        usual = FUSED if solved and not all(is_of_others(name) for name in names) else STEPPED
        episodes, seeds = episodes or usual[0], seeds or usual[1]
        if len(set(names)) < len(names):
            raise ValueError(f"--agents names an agent twice: {', '.join(names)}")
        own = arguments_of(agent_arg, "--agent-arg", "delta=0.1")
        _check_agent_arguments(own, names)
        source = context.get_parameter_source  # agents have their own defaults, which may differ
        said = {key: value for key, value in settings.items() if getattr(source(key), "name", "") != "DEFAULT"}
        given = said | {"episodes": episodes} | own
        compared = {name: agent_named(name, given) for name in names}
        one_of("--executor", executor, EXECUTORS)
        if one_of("--device", device, ("cpu", "cuda")) == "cuda":
            card.cuda()  # raises an error if there is none
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        how: dict[str, Any] = {"workers": workers, "device": device, "progress": not quiet}
        how |= {} if executor == "threads" else {"executor": executor}
        runs = rlsvi.compare(compared, drawn, episodes, seeds, **how)
        takes = inspect.signature(problem_maker(problem)).parameters if problem in PROBLEMS else {}
        usually = {key: it.default for key, it in takes.items() if key != "seed" and it.default is not it.empty}
        settings |= {"problem": problem, "problem_args": usually | options, "agents": names}
        settings |= {"agent_args": own} if own else {}
        _show(runs, settings | {"episodes": episodes, "seeds": seeds, "rlsvi": rlsvi.__version__}, out, as_json)


def _check_agent_arguments(given: dict[str, Any], names: list[str]) -> None:
    """Raise an error if none of the agents takes an argument given as --agent-arg."""
    takes = [
        key
        for name in names
        if given and not is_in_module(name) and name != "default"
        for key in inspect.signature(agent_class(name)).parameters
    ]
    for argument in given:
        if argument not in takes:
            raise ValueError(f"--agent-arg {argument} is taken by none of the agents: {instead(argument, takes)}")


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
