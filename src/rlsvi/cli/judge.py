"""`rlsvi judge`: what a saved agent is worth, by a log."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rlsvi.cli.environment import EnvArgs, StepsOption, environment_option, loaded, named
from rlsvi.cli.errors import told
from rlsvi.cli.named import arguments_of


def judge(
    file: Annotated[Path, typer.Argument(metavar="POLICY", help="The file of a saved agent.")],
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A Parquet file, or a folder of such files.")],
    gamma: Annotated[float, typer.Option(help="The discount, from 0 to 1.")] = 1.0,
    horizon: Annotated[
        int | None,
        typer.Option(help="The number of steps whose rewards count.", show_default="the environment's or agent's"),
    ] = None,
    level: Annotated[float, typer.Option(help="The probability of the intervals.")] = 0.95,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="Another name of a column, such as reward=r; can be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides the draws from the posterior.")] = 0,
    env: Annotated[
        str | None, environment_option(help="The id of the environment that the log comes from, if there is one.")
    ] = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Estimate what a saved agent is worth from a log of other policies, without playing.

    Prints the expected return of an episode on the agent's posterior mean, by fitted Q evaluation, and by weighted
    importance sampling and the doubly robust estimate if the log has the column propensity. The environment is
    that of the agent's file, if it belongs to Gymnasium or to this library. Otherwise name it with --env, or
    states and actions are those that occur in the log.

    Example: rlsvi judge policy.rlsvi log.parquet

    Example: rlsvi judge policy.rlsvi visits.parquet --horizon 20 --column reward=clicks --json
    """
    with told(lambda: "there is no result"):
        agent = loaded(file)
        made = named(env, env_arg, max_episode_steps) if env is not None else agent.environment
        if made is not None and env is None and not made.is_own:
            made = None
        import rlsvi

        names = {name: str(text) for name, text in arguments_of(column, "--column", "reward=r").items()}
        world = made.make() if made is not None else None
        found = rlsvi.value_of(
            agent, log, world, columns=names, gamma=gamma, horizon=horizon, level=level, seed=seed
        )
        print(json.dumps(found.summary(), indent=1) if as_json else found)
