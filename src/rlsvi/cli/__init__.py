"""The command line: progress on stderr, results on stdout, exit code 0 only when it worked."""

import json
from typing import Annotated

import typer

from rlsvi.cli.compare import AGENTS, PROBLEMS, TOY_TEXT, compare
from rlsvi.cli.paper import paper, report
from rlsvi.cli.watch import watch
from rlsvi.paper import FIGURES

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command()(compare)
app.command()(paper)
app.command()(report)
app.command()(watch)


def _version(asked: bool) -> None:
    if asked:
        import rlsvi

        print(rlsvi.__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say and exit.")
    ] = False,
) -> None:
    """Deep exploration with few episodes: randomized least-squares value iteration (RLSVI)."""


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the agents, problems and figures there are."""
    problems = {name: what for name, (what, _) in PROBLEMS.items()} | {"ENV-v0": TOY_TEXT}
    if as_json:
        print(json.dumps({"agents": AGENTS, "problems": problems, "figures": FIGURES}, indent=1))
        return
    for title, entries in (("agents", AGENTS), ("problems", problems), ("figures", FIGURES)):
        print(title)
        for name, what in entries.items():
            print(f"  {name:<21}{what}")
