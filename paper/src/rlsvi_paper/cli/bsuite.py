"""`rlsvi bsuite`: an agent in the experiments of the behaviour suite."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.cli.names import agents_of_packages, found_in_module, is_of_others, load_entry_point

if TYPE_CHECKING:
    from rlsvi_paper.bsuite.scores import Score

QUICK = {"settings": 3, "share": 0.02}


def bsuite(
    experiments: Annotated[
        str | None,
        typer.Option(
            help="Separated by commas, such as deep_sea,catch.", show_default="all but those that need downloads"
        ),
    ] = None,
    agents: Annotated[
        str,
        typer.Option(
            "--agents",
            "--agent",
            help="Separated by commas: default, random, q-learning, an agent of this library by its class, one "
            "of another package as `rlsvi list` shows it, or module:name, where name is a class or a function of "
            "env and seed.",
        ),
    ] = "default",
    settings: Annotated[
        int | None,
        typer.Option(min=1, help="Settings of each experiment, at most.", show_default="all, 17 to 23"),
    ] = None,
    episodes_share: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Part of the episodes that the suite asks for.", show_default="1"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The same as --settings 3 --episodes-share 0.02: a look.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Determines all randomness.")] = 0,
    workers: Annotated[
        int | None, typer.Option("--workers", "--jobs", min=1, help="Processes, by default one per core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("out/bsuite"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bars.")] = False,
) -> None:
    """Run experiments of the behaviour suite (bsuite), each of which tests one ability of an agent.

    Environments, settings and scores are those of the package bsuite: pip install . "./paper[bsuite]". An
    agent has one setting for all experiments. The whole suite takes hours; settings that are finished are kept
    whatever happens, and the same command goes on where it stopped.

    DIR/summary.md has the table of scores and all that was not run, DIR/radar.svg and .png the radar plot, and
    DIR/scores.json the numbers.

    Example: rlsvi bsuite --quick --agents default,random

    Example: rlsvi bsuite --experiments deep_sea,catch --episodes-share 0.1 --out results/bsuite
    """
    with report_errors(
        lambda: f"finished settings are kept in {out / 'store'}: the same command goes on from there"
    ):
        from rlsvi_paper.bsuite.package import experiments_named
        from rlsvi_paper.bsuite.runs import plan, play
        from rlsvi_paper.bsuite.scores import as_dict
        from rlsvi_paper.progress import figure_bars

        if quick and (settings is not None or episodes_share is not None):
            raise ValueError("--quick stands for --settings and --episodes-share: leave it or them out")
        share = 1.0 if episodes_share is None else episodes_share
        how: dict[str, Any] = QUICK if quick else {"settings": settings, "share": share}
        names = list(dict.fromkeys(_in_module(name.strip()) for name in agents.split(",")))
        chosen = experiments_named(experiments)
        plans = {name: plan(name, chosen, seed=seed, **how) for name in names}
        of_agents = {agent: [job for jobs in its.values() for job in jobs] for agent, its in plans.items()}
        said = {"command": shlex.join(["rlsvi", *sys.argv[1:]]), "seed": seed, **how}
        with figure_bars(plans[names[0]] if len(names) == 1 else of_agents, not quiet) as advance:
            scores = play(plans, out, workers=workers, advance=advance, settings=said)
        print(json.dumps(as_dict(scores, said), indent=1)) if as_json else _print(scores)
        files = ("summary.md", "radar.svg", "radar.png", "scores.json")
        print(f"in {out}: {', '.join(files)}", file=sys.stderr)


def _in_module(name: str) -> str:
    """Return module:name for an agent of another package, and other names as they are."""
    if ":" in name:
        found_in_module(name, "--agents")  # raises an error with a remedy
    elif is_of_others(name):
        load_entry_point(name, "--agents")  # likewise
        return next(entry.value for entry in agents_of_packages() if entry.name == name)
    return name


def _print(scores: "list[Score]") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from rlsvi_paper.bsuite.scores import PARTIAL, is_partial, not_run, table, tag_table

    for head, rows in (table(scores), tag_table(scores)):
        shown = Table(box=SIMPLE_HEAD)
        for i, column in enumerate(head):
            shown.add_column(column, justify="right" if i else "left", no_wrap=True)
        for row in rows:
            shown.add_row(*row)
        Console().print(shown)
    if is_partial(scores):
        print(PARTIAL)
    for why, names in not_run(scores).items():
        print(f"not run: {', '.join(names)} ({why})")
