"""The paper's headline claims, judged in a second process while the tour goes on."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlsvi.paper.report.records import ClaimRecord, read_figure

FIGURES = ("chain-regret", "chain-length", "recsys-boltzmann", "chain-lambda", "dithering")


@contextmanager
def judged(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Compute some figures at quick scale in a process of their own, which ends with the tour at the latest."""
    options = ["--executor", "serial", "--quiet", "--out", str(folder)]
    command = [sys.executable, "-P", "-m", "rlsvi", "paper", *FIGURES, *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def headlines(process: "subprocess.Popen[str]", folder: Path) -> tuple[list[ClaimRecord], str]:
    """The headline claims of the figures computed, once they are; and what went wrong, if anything did."""
    _, errors = process.communicate()
    if process.returncode != 0:
        last = errors.strip().rpartition("\n")[2].removeprefix("error: ")
        return [], last or f"exit code {process.returncode}"
    try:
        figures = [read_figure(folder / f"{name}.json") for name in FIGURES]
    except (ValueError, OSError) as error:
        return [], str(error)
    return [claim for figure in figures for claim in figure.claims if claim.headline], ""
