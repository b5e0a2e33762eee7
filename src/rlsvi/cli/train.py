"""`rlsvi train`: an agent for an environment of Gymnasium, saved to a file."""

import json
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
import typer

import rlsvi
from rlsvi.cli.environment import EnvArgs, ImportOption, StepsOption, environment_option, loaded, named
from rlsvi.cli.errors import report_errors
from rlsvi.cli.names import agent_named, arguments_of, made_agent
from rlsvi.core.checks import one_of
from rlsvi.core.files import check_folder
from rlsvi.progress import bar

if TYPE_CHECKING:
    from gymnasium import Env

    from rlsvi.callbacks import Callback
    from rlsvi.envs.description import Made
    from rlsvi.study.evaluation import Evaluation


# ---- What `rlsvi train` does while an agent learns: evaluate it, save it and write logs --------------------


def callbacks(
    made: "Made",
    out: Path,
    evaluate_every: int | None,
    keep_best: Path | None,
    checkpoint_every: int | None,
    csv: Path | None,
    tensorboard: Path | None,
) -> tuple[list["Callback"], list[dict[str, float]]]:
    """The callbacks that the options ask for, in their order, and where the evaluations will be listed."""
    from rlsvi.callbacks import CSV, Callback, Checkpoint, Evaluate, TensorBoard

    class KnowsItsEnvironment(Callback):
        """Checkpoints name the environment as the user does, with its module."""

        def begin(self, agent: Any, env: Any) -> None:
            agent.environment = made

    found: list[Callback] = [KnowsItsEnvironment()]
    results: list[dict[str, float]] = []
    if keep_best == out:
        raise ValueError(f"--keep-best and --out are both {out}: name two files")
    if evaluate_every is not None:
        evaluation = Evaluate(evaluate_every, keep_best=keep_best)
        results = evaluation.results
        found.append(evaluation)
    elif keep_best is not None:
        raise ValueError("--keep-best needs evaluations to choose by: give --evaluate-every too")
    if csv is not None:
        found.append(CSV(csv))
    if tensorboard is not None:
        found.append(TensorBoard(tensorboard))
    if checkpoint_every is not None:
        found.append(Checkpoint(checkpoint_every, out))
    return found, results


# ---- A learning curve: as blocks in the terminal, and as a picture -----------------------------------------


BLOCKS = " ▁▂▃▄▅▆▇█"


def chart(returns: list[float], width: int = 60, height: int = 6, what: str = "return of episodes") -> str:
    """Returns as columns of blocks, from the first episode on the left; a column is the mean of its episodes."""
    parts = np.array_split(np.asarray(returns, dtype=np.float64), min(max(width, 1), len(returns)))
    means = np.array([part.mean() for part in parts])
    least, most = float(means.min()), float(means.max())
    levels = np.full(len(means), 4 * height) if most == least else (means - least) / (most - least) * height * 8
    eighths = np.maximum(np.round(levels).astype(int), 1)
    lines = []
    for row in range(height - 1, -1, -1):
        label = {height - 1: f"{most:.4g}", 0: f"{least:.4g}"}.get(row, "")
        blocks = "".join(BLOCKS[min(max(k - 8 * row, 0), 8)] for k in eighths)
        lines.append(f"{label:>9} ┤{blocks}")
    each = f", a column is the mean of about {len(returns) / len(means):.3g}" if len(returns) > width else ""
    return "\n".join([*lines, f"{'':9} └ {what} 1 to {len(returns)}{each}"])


def picture(agent: Any, title: str, evaluation: "Evaluation | None", path: Path) -> None:
    """The learning curve, and what the policy is worth in the end."""
    from rlsvi.axes import COLOURS, INK
    from rlsvi.core.files import whole_file

    axes = agent.plot()
    if evaluation is not None:
        _, low, high = evaluation.interval
        label = f"posterior mean, {len(evaluation.returns)} fresh episodes: {evaluation.mean:.1f}"
        axes.axhline(evaluation.mean, color=COLOURS[1], linewidth=1.5, label=label)
        if np.isfinite(high - low):
            axes.axhspan(low, high, color=COLOURS[1], alpha=0.2, linewidth=0)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=9)
    with whole_file(path) as file:
        axes.figure.savefig(file, dpi=150, format="png")


T = TypeVar("T")
BASES = ("fourier", "polynomial", "radial", "tiles", "table")


_agent_option = partial(typer.Option, rich_help_panel="Agent")
_meanwhile = partial(typer.Option, rich_help_panel="While learning")


def train(
    env: Annotated[
        str, typer.Argument(metavar="ENV", help="A Gymnasium id, such as CartPole-v1; or module:MyEnv.")
    ],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to learn from.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that is random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Where to save the agent.", show_default="ENV.rlsvi")] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue with the agent in this file.")] = None,
    modules: ImportOption = None,
    evaluate: Annotated[int, typer.Option(min=0, help="Fresh episodes to play at the end; 0: none.")] = 100,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    choices: Annotated[
        int | None, environment_option(min=2, help="Offer this many values of each continuous action.")
    ] = None,
    agent: Annotated[
        str, _agent_option(help="As `rlsvi list` shows it, such as psrl; or my_module:MyAgent.")
    ] = "default",
    agent_arg: Annotated[
        list[str] | None,
        _agent_option(metavar="NAME=VALUE", help="An argument of the agent, such as horizon=20; can be repeated."),
    ] = None,
    gamma: Annotated[float | None, _agent_option(help="Discount factor.", show_default="the agent's")] = None,
    sigma: Annotated[
        float | None, _agent_option(help="Standard deviation of the noise in targets.", show_default="learned")
    ] = None,
    lam: Annotated[float | None, _agent_option(help="Prior precision.", show_default="the agent's")] = None,
    basis: Annotated[
        str | None,
        _agent_option(metavar="|".join(BASES), help="Features.", show_default="chosen for the environment"),
    ] = None,
    evaluate_every: Annotated[
        int | None, _meanwhile(min=1, metavar="N", help="Play 20 fresh episodes after every N episodes.")
    ] = None,
    keep_best: Annotated[
        Path | None, _meanwhile(metavar="FILE", help="Save the agent with the best of these evaluations here.")
    ] = None,
    checkpoint_every: Annotated[
        int | None, _meanwhile(min=1, metavar="N", help="Save the agent to --out after every N episodes.")
    ] = None,
    csv: Annotated[
        Path | None, _meanwhile(metavar="FILE", help="Write a line for every episode to this CSV file.")
    ] = None,
    tensorboard: Annotated[
        Path | None, _meanwhile(metavar="FOLDER", help="Write curves for TensorBoard to this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress bar and no learning curve.")
    ] = False,
) -> None:
    """Train an agent in any Gymnasium environment, and save it.

    The agent learns for --episodes episodes. Then you see its learning curve, and it plays --evaluate fresh
    episodes on its posterior mean, without exploring. The agent is saved to --out, and the curve beside it as a
    .png file. The agent's file remembers the environment, so `rlsvi evaluate FILE` and `rlsvi watch FILE` need
    nothing else, except that an environment of your own or of a third party is named again with --env.

    Ctrl-C ends training early and saves what has been learned so far; so does an error in the environment.
    Continue with --resume FILE. Nothing needs tuning: leave --gamma, --sigma, --lam and --basis out at first.

    Long runs: --checkpoint-every saves the agent to --out as it learns. If the process is killed, --resume
    continues exactly as if it had not been, and --csv and --tensorboard continue their logs. The agent that does
    best in the evaluations of --evaluate-every is saved to --keep-best. None of this changes what is learned.

    Actions are Discrete, MultiDiscrete, MultiBinary, or up to four bounded numbers, of which the agent tries a
    grid; --choices sets how many values of each. An environment of your own is my_envs:MyEnv, if my_envs.py in
    this folder defines the class or a function that makes it; or my_envs:Mine-v0, if it registers that id.

    --agent takes another agent: one of this library, or one of your own or of another package that derives from
    its class Agent.

    Example: rlsvi train CartPole-v1 --episodes 20 --out cartpole.rlsvi

    Example: rlsvi train FrozenLake-v1 --env-arg map_name=8x8 --env-arg is_slippery=false --episodes 500

    Example: rlsvi train Pendulum-v1 --episodes 50

    Example: rlsvi train FrozenLake-v1 --agent psrl --agent-arg horizon=100 --episodes 500

    Example: rlsvi train my_envs:MyEnv --env-arg size=5

    Example: rlsvi train Acrobot-v1 --evaluate-every 10 --keep-best best.rlsvi --checkpoint-every 10 --csv log.csv
    """
    target = out or Path(f"{env.replace(':', '-').replace('/', '-')}.rlsvi")
    with report_errors(lambda: "nothing was learned, nothing was written"):
        made = named(env, env_arg, max_episode_steps, choices, "ENV")
        if resume is not None and not (env_arg or max_episode_steps or choices):
            known = loaded(resume, modules).environment
            made = known if known is not None and known.id == made.id else made
        world = made.make()
        check_folder(target)
        curve = target.with_suffix(".png")
        if out is None and target.exists() and resume != target:
            raise FileExistsError(
                f"{target} exists already: name another file with --out, or continue with --resume {target}"
            )
        given = {"gamma": gamma, "sigma": sigma, "lam": lam, "basis": basis}
        options = evaluate_every, keep_best, checkpoint_every, csv, tensorboard
        wanted, evaluations = callbacks(made, target, *options)
        given = {name: value for name, value in given.items() if value is not None}
        own = arguments_of(agent_arg, "--agent-arg", "horizon=20")
        if resume is None:
            learner = _new_agent(world, agent, episodes, seed, given, own)
        elif given or own or agent != "default":
            changed = [*given, *(["agent-arg"] if own else []), *(["agent"] if agent != "default" else [])]
            raise ValueError(f"--{', --'.join(changed)} cannot be changed in an agent that has learned")
        else:
            learner = loaded(resume, modules)
        returns: list[float] = []
        evaluation, before = None, learner.steps
        _, failure = _attempted(lambda: _learn(learner, world, episodes, returns, wanted, not quiet))
        kept = learner.steps > before
        if kept:
            learner.environment = made
            learner.save(target)
        if failure is None and evaluate > 0:
            fresh = partial(rlsvi.evaluate, learner, world, evaluate, seed=seed, progress=not quiet)
            evaluation, failure = _attempted(fresh)
        if returns:
            picture(learner, f"{made}, seed {seed}", evaluation, curve)
            if not quiet:
                print(chart(returns), file=sys.stderr)
        if as_json:
            said = {"environment": made._asdict(), "agent": repr(learner), "episodes": learner.episodes}
            said |= {"steps": learner.steps, "file": str(target), "returns": returns, "evaluations": evaluations}
            said |= {"evaluation": evaluation.summary() if evaluation else None}
            print(json.dumps(said, indent=1))
        elif evaluation is not None:
            print(evaluation)
        if returns:
            print(f"agent: {target}\ncurve: {curve}", file=sys.stderr)
        world.close()
        if failure is not None:
            _end(failure, learner, target if kept else None)


def _attempted(do: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What `do` returns, or what stopped it."""
    try:
        return do(), None
    except (Exception, KeyboardInterrupt) as error:
        return None, error


def _new_agent(
    world: "Env[Any, Any]", name: str, episodes: int, seed: int, given: dict[str, Any], own: dict[str, Any]
) -> Any:
    """Return a new agent of a name, which must be one that can be saved."""
    from rlsvi.agents.agent import Agent

    if "basis" in given:
        basis = one_of("--basis", given["basis"], BASES)
        given["basis"] = getattr(rlsvi.bases, "Tabular" if basis == "table" else basis.capitalize())()
    if name == "default":
        try:
            return rlsvi.agent_for(world, **{"seed": seed, **given, **own})
        except TypeError as error:
            if "no argument gamma" not in str(error):
                raise
            raise ValueError(
                "the episodes of this environment have a known length, so its agent is RLSVI, which does not "
                "discount: leave --gamma out"
            ) from None
    found = agent_named(name, {"episodes": episodes}, "--agent")
    agent = made_agent(found, name, world, seed, {**given, **own}, tuple(given))
    if not isinstance(agent, Agent):
        raise ValueError(
            f"--agent {name} makes a {type(agent).__name__}, which cannot be saved: derive its class from "
            f"rlsvi.agents.agent.Agent, or let it learn without saving: rlsvi compare .. --agents {name}"
        )
    return agent


def _learn(
    agent: Any,
    world: "Env[Any, Any]",
    episodes: int,
    returns: list[float],
    callbacks: "list[Callback]",
    show: bool,
) -> None:
    """Learn, and append the return of each episode to `returns`; a bar also says how well it goes."""
    with bar(episodes, "episodes", show) as advance:

        def note(_: Any, value: float) -> None:
            returns.append(value)
            last = returns[-10:]
            advance(1, f"return {value:.4g}, mean of the last {len(last)}: {sum(last) / len(last):.4g}")

        agent.learn(world, episodes=episodes, progress=False, on_episode=[note, *callbacks])


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
