"""`rlsvi evaluate`: what a saved agent is worth."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rlsvi.cli.environment import EnvArgs, EnvOption, ImportOption, StepsOption, loaded, remembered
from rlsvi.cli.errors import report_errors


def evaluate(
    file: Annotated[Path, typer.Argument(help="The file of a saved agent.")],
    episodes: Annotated[int, typer.Option(min=1, help="Number of fresh episodes.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Decides where the episodes begin and what happens.")] = 0,
    sample: Annotated[bool, typer.Option("--sample", help="Play on posterior samples, as in learning.")] = False,
    env: EnvOption = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    modules: ImportOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, with all returns.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> None:
    """Play fresh episodes with a saved agent, on its posterior mean, without learning.

    Prints the mean return with its standard error and 95% interval (Student's), and the smallest and the largest
    return. The file remembers the environment. An environment of a third party is made only if you name it again
    with --env, because that imports its code. So is an agent of your own, with --import.

    Example: rlsvi evaluate cartpole.rlsvi --episodes 200 --seed 1

    Example: rlsvi evaluate mine.rlsvi --env my_envs:Mine-v0 --json

    Example: rlsvi evaluate mine.rlsvi --import my_agents
    """
    with report_errors(lambda: "there is no result"):
        agent = loaded(file, modules)
        made = remembered(file, agent, env, env_arg, max_episode_steps)
        world = made.make()
        import rlsvi

        found = rlsvi.evaluate(agent, world, episodes, seed=seed, deterministic=not sample, progress=not quiet)
        world.close()
        if as_json:
            about = {"environment": made._asdict(), "seed": seed, "learned_from_steps": agent.steps}
            print(json.dumps({**about, **found.summary(), "returns": found.returns.tolist()}, indent=1))
        else:
            print(f"{made}: {found}")
