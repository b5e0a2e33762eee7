"""`rlsvi paper` and `rlsvi report`: the paper's figures, the verdicts on its claims, and a page of both."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.cli.names import found_in_module, is_in_module
from rlsvi.core.files import file_instead
from rlsvi_paper import FIGURES

if TYPE_CHECKING:
    from rlsvi_paper.figure import Figure


# ---- the commands --------------------------------------------------------------------------------------------

MARKS = {"reproduced": "green", "not reproduced": "red", "inconclusive": "yellow"}
KINDS = {
    "experiment": "what the paper says about its experiments and results",
    "proof": "steps of its proofs",
    "ours": "checks of our own",
}
_EXECUTOR = typer.Option(
    help="processes, gpu (cores and a graphics card: `pip install '.[cuda]'`), ray (on a cluster), or serial."
)


def paper(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Figures to reproduce, by default all: {', '.join(FIGURES)}; or module:name, a Figure "
            "of your own.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="quick: up to a minute a figure; or paper: its own sizes.")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Runs per setting.", show_default="as --scale has it")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes, by default one per core.")] = None,
    executor: Annotated[str, _EXECUTOR] = "processes",
    address: Annotated[str | None, typer.Option(help="HOST:PORT of a Ray cluster; else one is started.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="out/SCALE")] = None,
    resume: Annotated[bool, typer.Option(help="Keep finished jobs in the folder, or compute all anew.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Reproduce figures of the paper and judge its claims.

    Every claim gets a verdict: reproduced, not reproduced, or inconclusive when the runs are too few to tell.
    Any of them is a finding; the exit code is 0. Jobs that are finished are kept whatever happens: after
    Ctrl-C, or a crash, the same command goes on where it stopped.

    Example: rlsvi paper chain-regret chain-length --scale paper --seeds 20 --out results

    Example: rlsvi paper my_module:my_figure --out results
    """
    asked = list(dict.fromkeys(figures or FIGURES))
    out = out or Path("out") / scale
    again = "the same command" if resume else "the same command without --no-resume"
    with report_errors(lambda: f"finished jobs are kept in {out / 'store'}: {again} goes on from there"):
        from rlsvi.study.compare import warm_up
        from rlsvi.study.executors import executor as executor_called
        from rlsvi.study.store import Store
        from rlsvi_paper import figure_called
        from rlsvi_paper.progress import figure_bars
        from rlsvi_paper.reproduce import reproduce

        own = {name: figure_in_module(name) for name in asked if ":" in name}
        chosen_figures = {name: own.get(name) or figure_called(name) for name in asked}
        for figure in chosen_figures.values():
            figure.plan(scale, seeds)  # wrong arguments are refused before anything is written
        chosen = executor_called(executor, workers, address)
        Store(out / "store")
        warm_up()
        reproduce(
            [own.get(name, name) for name in asked],
            out,
            scale=scale,
            seeds=seeds,
            executor=chosen,
            redo=not resume,
            progress=lambda plans: figure_bars(plans, not quiet),
            judging=(lambda name: None) if quiet else _judging,
            command=shlex.join(["rlsvi", *sys.argv[1:]]),
        )
        entries = [json.loads((out / f"{it.name}.json").read_bytes()) for it in chosen_figures.values()]
        print(json.dumps(entries, indent=1)) if as_json else _print(entries)
        print(f"pictures and data: {out}; as a web page: rlsvi report {shlex.quote(str(out))}", file=sys.stderr)


def figure_in_module(name: str) -> "Figure":
    """The Figure that module:name means, which must not be taken for one of the paper's."""
    from rlsvi_paper.figure import Figure

    if not is_in_module(name):
        raise ValueError(f"unknown figure {name!r}: a figure of your own is module:name, without spaces or dashes")
    found = found_in_module(name, "FIGURES")
    if not isinstance(found, Figure):
        raise TypeError(f"{name} must be a rlsvi_paper.figure.Figure, got {found!r:.80}")
    if found.name in FIGURES or not re.fullmatch(r"[\w-]+", found.name, re.ASCII):
        raise ValueError(
            f"{name} is named {found.name!r}: give it a name of its own, of letters, digits, - and _, as its files"
        )
    return found


def report(
    folder: Annotated[Path, typer.Argument(help="Where `rlsvi paper` has written.")],
    markdown: Annotated[
        Path | None,
        typer.Option(help="Also write this page, its pictures beside it, and reproduce.md: the answer in short."),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Judge and draw all figures again.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress messages.")] = False,
) -> None:
    """Write one web page of figures and verdicts, FOLDER/report.html, that needs nothing else to be read.

    Nothing is computed. Figures are judged and drawn again from their tables where verdicts or pictures are
    missing, or where the claims have changed since.

    Example: rlsvi report out/paper

    Example: rlsvi report paper/results --anew
    """
    with report_errors(lambda: "the page was not written"):
        if not folder.is_dir():
            remedy = file_instead(folder, f"run `rlsvi paper --out {folder}` first")
            raise FileNotFoundError(f"there is no folder {folder}: {remedy}")
        from rlsvi.core.machine import cores
        from rlsvi_paper import figure_called
        from rlsvi_paper.folder import settle_again
        from rlsvi_paper.report import write_html, write_markdown

        judging = (lambda name: None) if quiet else _judging
        figures = [figure_called(name) for name in FIGURES if (folder / f"{name}.json").exists()]
        settle_again(figures, folder, judging, workers=cores(), anew=anew)
        print(write_html(folder, order=list(FIGURES)))
        if markdown is not None:
            print(write_markdown(folder, markdown, markdown.parent / "images", order=list(FIGURES)))


def _judging(name: str) -> None:
    print(f"judging and drawing {name}", file=sys.stderr)


def _print(entries: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    for entry in entries:
        title = f"{entry['name']}: {entry['title']} ({entry['seconds']:.0f} s of computing)"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
        table.add_column("verdict", no_wrap=True)
        table.add_column("claim")
        table.add_column("measured")
        for claim in entry["claims"]:
            told = f"{claim['outcome']} ({claim['why']})" if claim["why"] else claim["outcome"]
            verdict = Text(told, style=MARKS[claim["outcome"]])
            caveat = f"; but {claim['caveat']}" if claim["caveat"] else ""
            table.add_row(verdict, Text(claim["words"]), Text(claim["measured"] + caveat))
        Console().print(table)
    for kind, words in KINDS.items():
        found = [claim["outcome"] for entry in entries for claim in entry["claims"] if claim["kind"] == kind]
        if found:
            print(f"{words}: {', '.join(f'{found.count(mark)} {mark}' for mark in MARKS)}")
    from rlsvi_paper.report.records import REASONS

    whys = {claim["why"] for entry in entries for claim in entry["claims"]}
    print("".join(f"{why}: {REASONS[why]}\n" for why in REASONS if why in whys), end="")
