"""The command line: progress on stderr, results on stdout, exit code 0 only when it worked."""

import json
from shutil import get_terminal_size
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from rlsvi.cli.bsuite import bsuite
from rlsvi.cli.compare import AGENTS, PROBLEMS, TOY_TEXT, compare
from rlsvi.cli.demo import demo
from rlsvi.cli.errors import quiet_pipes, told
from rlsvi.cli.evaluate import evaluate
from rlsvi.cli.fit import fit
from rlsvi.cli.judge import judge
from rlsvi.cli.paper import paper, report
from rlsvi.cli.seeds import SeedsWithoutNumber
from rlsvi.cli.shop import export_events, import_events, judge_shop, learn_shop, serve, simulate_shop
from rlsvi.cli.train import train
from rlsvi.cli.watch import watch
from rlsvi.core.checks import instead
from rlsvi.paper import FIGURES

# Panels, unless the terminal is so narrow that the names of options would be cut off in them.
PANELS: Literal["markdown"] | None = "markdown" if get_terminal_size().columns >= 60 else None


class Commands(TyperGroup):
    """The commands; for an unknown one, the nearest is suggested."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"there is no command {args[0]}: {instead(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=PANELS)

LEARNING = (demo, train, fit, judge, evaluate, watch, compare, bsuite, paper, report)
SHOP = (serve, learn_shop, judge_shop, simulate_shop, export_events, import_events)
for command in (*LEARNING, *SHOP):
    app.command(cls=SeedsWithoutNumber if command is paper else None)(command)


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


def main() -> None:
    """Run the command `rlsvi`."""
    with quiet_pipes():
        app(prog_name="rlsvi")


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False) -> None:
    """List the agents, problems and figures there are."""
    agents = {name: what for name, (_, what) in AGENTS.items()}
    problems = {name: f"{what}; {', '.join(takes)}" for name, (what, takes) in PROBLEMS.items()}
    problems["ENV-v0"] = TOY_TEXT
    with told(lambda: "not all was listed"):
        if as_json:
            print(json.dumps({"agents": agents, "problems": problems, "figures": FIGURES}, indent=1))
            return
        for title, entries in (("agents", agents), ("problems", problems), ("figures", FIGURES)):
            print(title)
            for name, what in entries.items():
                print(f"  {name:<21}{what}")
