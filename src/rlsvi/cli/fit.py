"""`rlsvi fit`: an agent that learns from a log, saved to a file."""

import json
import sys
from inspect import isclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.environment import EnvArgs, StepsOption, environment_option, named
from rlsvi.cli.errors import told
from rlsvi.cli.named import arguments_of, found_in_module
from rlsvi.core.files import check_folder

if TYPE_CHECKING:
    from rlsvi.logs.replay import Replay


def fit(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A Parquet file, or a folder of such files.")],
    agent: Annotated[
        str, typer.Option(help="default, a class of this library such as PSRL, or my_module:MyAgent.")
    ] = "default",
    agent_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument of the agent, such as horizon=20; can be repeated."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to save the agent.")] = Path("policy.rlsvi"),
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="Another name of a column, such as reward=r; can be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that is random.")] = 0,
    env: Annotated[
        str | None, environment_option(help="The id of the environment that the log comes from, if there is one.")
    ] = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> None:
    """Let an agent learn from a log of transitions, and save it.

    The columns of the log are episode, step, observation, action, reward, next_observation, terminated and
    truncated; mask, next_mask and propensity are optional. An observation of several numbers is a list, or has a
    column for each: observation_0, observation_1, and so on. `rlsvi.record` writes such logs.

    With --env, states and actions are those of the environment, and `rlsvi evaluate` and `rlsvi watch` need
    nothing else. Without it they are those that occur in the log.

    Example: rlsvi fit log.parquet --env CartPole-v1 --out policy.rlsvi

    Example: rlsvi fit visits.parquet --agent RLSVI --agent-arg horizon=20 --column reward=clicks
    """
    with told(lambda: f"{out} was not written"):
        check_folder(out)
        from rlsvi.logs.reading import replay_of

        made = named(env, env_arg, max_episode_steps) if env is not None else None
        names = {name: str(text) for name, text in arguments_of(column, "--column", "reward=r").items()}
        replay = replay_of(log, made.make() if made else None, names)
        learner = _agent(agent, replay, {"seed": seed, **arguments_of(agent_arg, "--agent-arg", "horizon=20")})
        learner.fit(replay, progress=not quiet)
        learner.environment = made
        learner.save(out)
        told_of = {"agent": repr(learner), "episodes": learner.episodes, "steps": learner.steps, "file": str(out)}
        if as_json:
            print(json.dumps(told_of, indent=1))
        else:
            print(f"{learner!r} has learned from {learner.episodes} episodes, {learner.steps} steps")
            print(f"agent: {out}", file=sys.stderr)


def _agent(name: str, replay: "Replay", arguments: dict[str, Any]) -> Any:
    """The agent that the user names; only the module that is named is imported."""
    import rlsvi

    if name == "default":
        return rlsvi.agent_for(replay, **arguments)
    found = found_in_module(name, "--agent") if ":" in name else getattr(rlsvi, name, None)
    if not (isclass(found) and callable(getattr(found, "fit", None))):
        raise ValueError(
            f"there is no agent {name!r}: name a class, such as PSRL or my_module:MyAgent, or default"
        )
    return found(**arguments)
