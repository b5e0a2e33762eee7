"""The command `rlsvi`: all commands of this folder and of other packages."""

import inspect
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from shutil import get_terminal_size
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from rlsvi import cli
from rlsvi.cli.errors import quiet_pipes, report_errors
from rlsvi.cli.names import ANY_ENVIRONMENT, PROBLEMS, agents, offered
from rlsvi.core.checks import instead

# Panels, unless the terminal is so narrow that the names of options would be cut off in them.
PANELS: Literal["markdown"] | None = "markdown" if get_terminal_size().columns >= 60 else None


OTHER_PACKAGES = {  # commands of packages that may not be installed
    "paper": ("bsuite", "paper", "report", "tetris"),
    "shop": ("serve", "learn-shop", "judge-shop", "simulate-shop", "export-events", "import-events"),
}


class Commands(TyperGroup):
    """The commands; for an unknown one, the nearest is suggested."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            for package in (it for it, names in OTHER_PACKAGES.items() if args[0] in names):
                needed = f"the package rlsvi-{package}: pip install ./{package} in a clone of rlsvi"
                print(f"error: rlsvi {args[0]} needs {needed}", file=sys.stderr)
                raise typer.Exit(2)
            ctx.fail(f"there is no command {args[0]}: {instead(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=PANELS)

FIRST_COMMANDS = (
    "demo",
    "train",
    "fit",
    "judge",
    "evaluate",
    "watch",
    "compare",
    "bsuite",
    "paper",
    "report",
    "serve",
)


def commands() -> dict[str, Callable[..., None]]:
    """Return the commands of the files of this folder and of other packages.

    A file offers the function that has its name, or those that it lists as COMMANDS. A folder offers none, and is
    not imported: the tour loads much. Other packages offer functions as entry points of the group rlsvi.commands.
    In the help, the commands in FIRST_COMMANDS come first.
    """
    found = {}
    for module in (import_module(f"rlsvi.cli.{it.name}") for it in iter_modules(cli.__path__) if not it.ispkg):
        of_its_name = getattr(module, module.__name__.rpartition(".")[2], None)
        for command in getattr(module, "COMMANDS", (of_its_name,) if inspect.isfunction(of_its_name) else ()):
            found[command.__name__] = command
    for name, command in offered("rlsvi.commands", Callable).items():
        if name in found:
            print(f"warning: there is a command {name} already: that of a package is skipped", file=sys.stderr)
            continue
        found[name] = command
    ordered = [
        *(name for name in FIRST_COMMANDS if name in found),
        *(name for name in found if name not in FIRST_COMMANDS),
    ]
    return {name: found[name] for name in ordered}


for command in commands().values():
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        import rlsvi

        print(rlsvi.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Deep exploration with few episodes: randomized least-squares value iteration (RLSVI).

    Begin with: rlsvi train CartPole-v1 --episodes 20 --out cartpole.rlsvi
    """


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False) -> None:
    """List the agents and problems there are, and the figures if the package rlsvi-paper is installed.

    Agents of other packages are listed too, if these offer them by entry points of the group rlsvi.agents. An
    entry point of the group rlsvi.lists adds a list of its own: a dictionary of names and what they mean.

    Example: rlsvi list --json
    """
    tasks = {name: f"{what}; {takes}" for name, (what, takes) in PROBLEMS.items()}
    listed = {"agents": agents(), "problems": tasks | {"ENV-v0": ANY_ENVIRONMENT}}
    with report_errors(lambda: "not all was listed"):
        listed |= offered("rlsvi.lists", dict)
        if as_json:
            print(json.dumps(listed, indent=1))
            return
        for title, entries in listed.items():
            print(title)
            width = max(map(len, entries))
            for name, what in entries.items():
                print(f"  {name:<{width}}  {what}")


def main() -> None:
    """Run the command `rlsvi`."""
    with quiet_pipes():
        app(prog_name="rlsvi")
