"""Which environment the user means, from the command line or from the file of an agent."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsvi.cli.names import arguments_of, found_in_module, imported_module, is_in_module
from rlsvi.core.files import file_instead

if TYPE_CHECKING:
    from rlsvi.agents.agent import Agent
    from rlsvi.envs.description import Made

environment_option = partial(typer.Option, rich_help_panel="Environment")
EnvOption = Annotated[
    str | None,
    environment_option(help="The environment's id, if the file does not name it or names one of a third party."),
]
EnvArgs = Annotated[
    list[str] | None,
    environment_option(
        "--env-arg",
        metavar="NAME=VALUE",
        help="An argument of the environment, such as map_name=8x8; can be repeated.",
    ),
]
StepsOption = Annotated[
    int | None,
    environment_option(min=1, help="Cut episodes off after this many steps.", show_default="the environment's"),
]
ImportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--import", metavar="MODULE", help="A module that defines the class of the agent; can be repeated."
    ),
]


def named(
    id: str,
    pairs: list[str] | None,
    max_episode_steps: int | None,
    choices: int | None = None,
    option: str = "--env",
) -> "Made":
    """The environment that the user has named, in its newest version unless the id says which.

    The module of module:Env-v0, or of module:MyEnv, may be in the current folder.
    """
    import gymnasium

    from rlsvi.envs.description import Made, versioned

    if ":" in id:
        imported_module(id, option)
    id = versioned(id)
    own = is_in_module(id) and id.partition(":")[2] not in gymnasium.registry
    if own and not callable(found_in_module(id, option)):
        raise ValueError(f"{option} names {id}, which makes no environment: name a class or a function")
    return Made(id, arguments_of(pairs), max_episode_steps, choices)


def loaded(path: Path, modules: list[str] | None = None) -> "Agent":
    """The agent of a file, which has learned something; the user names the modules that its class needs."""
    from rlsvi import load

    for module in modules or []:
        imported_module(module, "--import")
    if not path.exists():
        remedy = "name the file of a saved agent, or train one with `rlsvi train CartPole-v1`"
        raise FileNotFoundError(f"there is no file {path}: {file_instead(path, remedy)}")
    agent: Agent = load(path)
    if agent.steps == 0:
        raise ValueError(f"{path} holds an agent that has learned nothing: train it first")
    return agent


def remembered(
    path: Path, agent: "Agent", env: str | None, pairs: list[str] | None, max_episode_steps: int | None
) -> "Made":
    """The environment of an agent's file, with what the user changes of it.

    A file must not run code of its own choice, and making an environment of a third party imports a module: the
    user has to name it.
    """
    made = agent.environment
    if made is None and env is None:
        raise ValueError(f"{path} does not tell in which environment its agent has learned: name it with --env ID")
    if env is not None:
        asked = named(env, pairs, max_episode_steps, made.choices if made else None)
        if made is None or made.id != asked.id:
            return asked
    assert made is not None
    if env is None and not made.is_own:
        raise ValueError(
            f"the agent of {path} learned in {made.id}, which belongs neither to Gymnasium nor to this library; "
            f"making it runs code of others. If you trust that code, name it with --env {made.id}"
        )
    steps = made.max_episode_steps if max_episode_steps is None else max_episode_steps
    return made._replace(arguments={**made.arguments, **arguments_of(pairs)}, max_episode_steps=steps)
