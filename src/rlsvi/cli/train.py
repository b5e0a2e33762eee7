"""`rlsvi train`: an agent for an environment of Gymnasium, saved to a file."""

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.curve import chart, picture
from rlsvi.cli.environment import EnvArgs, StepsOption, check_folder, loaded, named
from rlsvi.cli.errors import told

if TYPE_CHECKING:
    from gymnasium import Env

    from rlsvi.envs.making import Made
    from rlsvi.study.evaluation import Evaluation


class NamedBasis(StrEnum):
    """Bases that can be named."""

    fourier = "fourier"
    polynomial = "polynomial"
    radial = "radial"
    tiles = "tiles"
    table = "table"


def train(
    env: Annotated[str, typer.Argument(metavar="ENV", help="A Gymnasium id: CartPole-v1, or module:Env-v0.")],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to learn from.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Decides all randomness.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The agent's file; the curve lies beside it.", show_default="ENV.rlsvi")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the agent of this file, instead of a new one.")
    ] = None,
    evaluate: Annotated[
        int, typer.Option(min=0, help="Fresh episodes to play on the posterior mean in the end; 0: none.")
    ] = 100,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    choices: Annotated[
        int | None,
        typer.Option(min=2, help="Continuous actions: offer so many values of each number. Pendulum-v1: 5."),
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="Discount.", show_default="the agent's")] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise of a target.", show_default="learned from the data")
    ] = None,
    lam: Annotated[float | None, typer.Option(help="Prior precision.", show_default="the agent's")] = None,
    basis: Annotated[
        NamedBasis | None, typer.Option(help="Features of observations.", show_default="by the environment")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no curve in the terminal.")] = False,
) -> None:
    """Train an agent in any Gymnasium environment, and save it.

    It learns for --episodes episodes, shows the learning curve, and then plays --evaluate fresh episodes on its
    posterior mean, without exploring. Written are the agent (--out) and the curve (the same name, .png); the file
    remembers the environment, so that `rlsvi evaluate FILE` and `rlsvi watch FILE` need no more.

    Ctrl-C ends training early; what was learned until then is saved, as it is when the environment fails. Go on
    with --resume FILE. Nothing needs tuning: leave --gamma, --sigma, --lam and --basis out at first.

    Actions must be Discrete, or be made so by --choices. An environment of your own in my_envs.py of this folder,
    registered there as Mine-v0, is my_envs:Mine-v0.

    Example: rlsvi train CartPole-v1 --episodes 20 --out cartpole.rlsvi

    Example: rlsvi train FrozenLake-v1 --env-arg map_name=8x8 --env-arg is_slippery=false --episodes 500

    Example: rlsvi train Pendulum-v1 --choices 5 --episodes 50
    """
    target = out or Path(f"{env.replace(':', '-').replace('/', '-')}.rlsvi")
    with told(lambda: "nothing was learned, nothing was written"):
        check_folder(target)
        curve = target.with_suffix(".png")
        if out is None and target.exists() and resume != target:
            raise FileExistsError(f"there is a file {target}: name one by --out, or go on by --resume {target}")
        made = named(env, env_arg, max_episode_steps, choices)
        if resume is not None and not (env_arg or max_episode_steps or choices):
            made = _remembered(resume, made)
        given = {"gamma": gamma, "sigma": sigma, "lam": lam, "basis": basis}
        world = made.make()
        agent = _agent(world, seed, {k: v for k, v in given.items() if v is not None}, resume)
        returns: list[float] = []
        evaluation, before = None, agent.steps
        failure = _learn(agent, world, episodes, returns, not quiet)
        kept = agent.steps > before
        if kept:
            agent.environment = made
            agent.save(target)
        if failure is None and evaluate > 0:
            evaluation, failure = _evaluated(agent, world, evaluate, seed, not quiet)
        if returns:
            picture(returns, f"{made}, seed {seed}", evaluation, curve)
        _tell(returns, evaluation, made, agent, target, as_json, quiet)
        world.close()
        if failure is not None:
            _end(failure, agent, target if kept else None)


def _remembered(resume: Path, made: "Made") -> "Made":
    """The environment as the agent of a file knew it, if it is of the same name; else the one asked for."""
    known: Made | None = loaded(resume).environment
    return known if known is not None and known.id == made.id else made


def _evaluated(
    agent: Any, world: "Env[Any, Any]", episodes: int, seed: int, show: bool
) -> tuple["Evaluation | None", BaseException | None]:
    """What the policy is worth; or what kept it from being found out."""
    import rlsvi

    try:
        return rlsvi.evaluate(agent, world, episodes, seed=seed, progress=show), None
    except (Exception, KeyboardInterrupt) as error:
        return None, error


def _agent(world: "Env[Any, Any]", seed: int, given: dict[str, Any], resume: Path | None) -> Any:
    """A new agent, or that of a file."""
    from gymnasium.spaces import Box

    import rlsvi

    if isinstance(world.action_space, Box):
        raise ValueError(
            f"the actions {world.action_space} are continuous: offer so many values of each number by --choices 5"
        )
    if resume is not None:
        if given:
            raise ValueError(f"--{', --'.join(given)} cannot be changed in an agent that has learned: leave out")
        return loaded(resume)
    if "basis" in given:
        kinds = {"fourier": "Fourier", "polynomial": "Polynomial", "radial": "Radial", "tiles": "Tiles"}
        given["basis"] = getattr(rlsvi.bases, kinds.get(given["basis"].value, "Tabular"))()
    try:
        return rlsvi.agent_for(world, seed=seed, **given)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise ValueError(
            "this environment says how many periods an episode has, and its agent is RLSVI, which does not "
            "discount: leave --gamma out"
        ) from None


def _learn(
    agent: Any, world: "Env[Any, Any]", episodes: int, returns: list[float], show: bool
) -> BaseException | None:
    """Learn; what stopped it, if anything did."""
    with _progress(episodes, show) as tell:

        def note(_: Any, value: float) -> None:
            returns.append(value)
            tell(returns)

        try:
            agent.learn(world, episodes=episodes, on_episode=note)
        except (Exception, KeyboardInterrupt) as error:
            return error
    return None


@contextmanager
def _progress(total: int, show: bool) -> Iterator[Any]:
    """A bar that also says how well it goes."""
    if not show:
        yield lambda returns: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    words = TextColumn("{task.description}"), TextColumn("{task.fields[level]}")
    columns = words[0], BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), words[1]
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task("episodes", total=total, level="")

        def tell(returns: list[float]) -> None:
            last = returns[-10:]
            level = f"return {last[-1]:.4g}, mean of the last {len(last)}: {sum(last) / len(last):.4g}"
            display.update(task, advance=1, level=level)

        yield tell


def _tell(
    returns: list[float],
    evaluation: "Evaluation | None",
    made: "Made",
    agent: Any,
    target: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """The curve on stderr; the result, and nothing else, on stdout."""
    if returns and not quiet:
        print(chart(returns), file=sys.stderr)
    found = evaluation.summary() if evaluation else None
    if as_json:
        said = {"environment": made._asdict(), "agent": repr(agent), "episodes": agent.episodes}
        said |= {"steps": agent.steps, "file": str(target), "returns": returns, "evaluation": found}
        print(json.dumps(said, indent=1))
    elif evaluation is not None:
        print(evaluation)
    if returns:
        print(f"agent: {target}\ncurve: {target.with_suffix('.png')}", file=sys.stderr)


def _end(failure: BaseException, agent: Any, target: Path | None) -> None:
    """Say what stopped it, and where what was learned is."""
    many = f"{agent.episodes} episode{'s' * (agent.episodes != 1)} ({agent.steps} steps)"
    kept = f"what was learned in {many} is in {target}" if target else "nothing was learned, nothing was written"
    if isinstance(failure, KeyboardInterrupt):
        print(f"stopped; {kept}", file=sys.stderr)
        raise typer.Exit(130)
    last = traceback.extract_tb(failure.__traceback__)[-1]
    ours = Path(__file__).parents[1] in Path(last.filename).parents
    where = "" if ours else f" ({type(failure).__name__} in {Path(last.filename).name}, line {last.lineno})"
    print(f"error: {failure}{where}; {kept}", file=sys.stderr)
    raise typer.Exit(2)
