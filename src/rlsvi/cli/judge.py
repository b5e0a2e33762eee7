"""`rlsvi judge`: what a saved agent is worth, by a log."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.environment import EnvArgs, ImportOption, StepsOption, environment_option, loaded, remembered
from rlsvi.cli.errors import report_errors
from rlsvi.cli.names import columns_of

if TYPE_CHECKING:
    from rlsvi.agents.agent import Agent
    from rlsvi.envs.description import Made


def judge(
    file: Annotated[Path, typer.Argument(metavar="POLICY", help="The file of a saved agent.")],
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A Parquet or CSV file, or a folder of such files.")],
    gamma: Annotated[float, typer.Option(help="The discount, from 0 to 1.")] = 1.0,
    horizon: Annotated[
        int | None,
        typer.Option(help="The number of steps whose rewards count.", show_default="the environment's or agent's"),
    ] = None,
    level: Annotated[float, typer.Option(help="The probability of the intervals.")] = 0.95,
    per_period: Annotated[
        bool | None,
        typer.Option(
            "--per-period/--pooled",
            help="Whether each period has a regression of its own.",
            show_default="as the environment says",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="As for `rlsvi fit`: another name of a column; can be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides the draws from the posterior.")] = 0,
    env: Annotated[
        str | None, environment_option(help="The id of the environment that the log comes from, if there is one.")
    ] = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    modules: ImportOption = None,
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
    with report_errors(lambda: "there is no result"):
        agent = loaded(file, modules)
        made = _environment(file, agent, env, env_arg, max_episode_steps)
        import rlsvi

        world, columns = made.make() if made is not None else None, columns_of(column)
        options: Any = {"gamma": gamma, "horizon": horizon, "per_period": per_period, "level": level, "seed": seed}
        found = rlsvi.value_of(agent, log, world, columns=columns, **options)
        print(json.dumps(found.summary(), indent=1) if as_json else found)


def _environment(
    file: Path, agent: "Agent", env: str | None, pairs: list[str] | None, max_episode_steps: int | None
) -> "Made | None":
    """The environment that is named, or that of the file if it runs no code of others, or none."""
    known = agent.environment is not None and agent.environment.is_own
    if env is not None or known:
        return remembered(file, agent, env, pairs, max_episode_steps)
    if pairs or max_episode_steps:
        raise ValueError(
            f"--env-arg and --max-episode-steps need --env: {file} names none that can be made without it"
        )
    return None
