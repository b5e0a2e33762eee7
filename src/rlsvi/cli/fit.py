"""`rlsvi fit`: an agent that learns from a log, saved to a file."""

import json
import sys
from inspect import isclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rlsvi.cli.environment import EnvArgs, StepsOption, environment_option, named
from rlsvi.cli.errors import report_errors
from rlsvi.cli.names import (
    agent_class,
    agent_named,
    arguments_of,
    columns_of,
    found_in_module,
    is_in_module,
    made_agent,
)
from rlsvi.core.checks import hint
from rlsvi.core.files import check_folder


def fit(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A Parquet or CSV file, or a folder of such files.")],
    agent: Annotated[
        str,
        typer.Option(help="As for `rlsvi compare`: default, psrl, .., or my_module:MyAgent; or a class, as PSRL."),
    ] = "default",
    agent_arg: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument of the agent, such as horizon=20; can be repeated."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to save the agent.")] = Path("policy.rlsvi"),
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Another name of a column, such as reward=r; can be repeated."
            " Several columns: observation=position,speed.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that is random.")] = 0,
    chunk: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Read this many rows at a time, such as 65536, if the log does not fit into memory;"
            " for BoundedRLSVI, which is then the default, and with --env.",
        ),
    ] = None,
    executor: Annotated[
        str | None, typer.Option(help="Compute chunks on Ray: ray, or the address of a cluster, HOST:PORT.")
    ] = None,
    env: Annotated[
        str | None, environment_option(help="The id of the environment that the log comes from, if there is one.")
    ] = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> None:
    """Let an agent learn from a log of transitions, and save it.

    The columns of the log are episode, step, observation, action, reward, next_observation and terminated;
    truncated, mask, next_mask and propensity are optional. An observation of several numbers is a list, or has a
    column for each: observation_0, observation_1, and so on, as in a CSV file. `rlsvi.record` writes such logs.

    With --env, states and actions are those of the environment, and `rlsvi evaluate` and `rlsvi watch` need
    nothing else, unless the agent is your own: then also --import my_module. Without --env, states and actions
    are those that occur in the log.

    Example: rlsvi fit log.parquet --env CartPole-v1 --out policy.rlsvi

    Example: rlsvi fit visits.parquet --agent RLSVI --agent-arg horizon=20 --column reward=clicks

    Example: rlsvi fit large_folder --env CartPole-v1 --chunk 65536
    """
    with report_errors(lambda: f"{out} was not written"):
        check_folder(out)
        from rlsvi.offline.replay import replay_of

        made = named(env, env_arg, max_episode_steps) if env is not None else None
        world, columns = made.make() if made else None, columns_of(column)
        arguments = arguments_of(agent_arg, "--agent-arg", "horizon=20")
        if chunk is None and executor is None:
            replay = replay_of(log, world, columns)
            found = agent_named(agent, {"episodes": replay.log.episodes}, "--agent")
            learner = made_agent(found, agent, replay, seed, arguments)
            if not callable(getattr(learner, "fit", None)):
                raise ValueError(f"--agent {agent} cannot learn from a log: it has no method fit")
            learner.fit(replay, progress=not quiet)
        else:
            if executor not in (None, "ray", "auto") and ":" not in executor:
                near = hint(executor, ("ray", "auto"))
                raise ValueError(f"--executor must be ray, auto or HOST:PORT of a cluster, got {executor!r}{near}")
            learner = made_agent(_found_for_chunks(agent, world), agent, world, seed, arguments)
            learner.fit(log, world, columns=columns, progress=not quiet, chunk=chunk, executor=executor)
        learner.environment = made
        learner.save(out)
        told_of = {"agent": repr(learner), "episodes": learner.episodes, "steps": learner.steps, "file": str(out)}
        if as_json:
            print(json.dumps(told_of, indent=1))
        else:
            print(f"{learner!r} has learned from {learner.episodes} episodes, {learner.steps} steps")
            print(f"agent: {out}", file=sys.stderr)


def _found_for_chunks(name: str, env: Any) -> Any:
    """The class of an agent that reads a log in chunks."""
    import rlsvi

    if env is None:
        raise ValueError("--chunk and --executor need --env: rows that are not yet read say nothing of states")
    found = found_in_module(name, "--agent") if is_in_module(name) else agent_class(name, "--agent")
    found = rlsvi.BoundedRLSVI if name == "default" else found
    if not (isclass(found) and issubclass(found, rlsvi.BoundedRLSVI)):
        raise ValueError(f"--chunk and --executor are for --agent BoundedRLSVI and classes made of it, not {name}")
    return found
