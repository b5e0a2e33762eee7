"""A comparison, by the very lines that the page shows."""

import io
from typing import TYPE_CHECKING, Any

from rlsvi.cli.tour.guide import Guide

if TYPE_CHECKING:
    from rlsvi.study.runs import Runs


def compared(code: str, guide: Guide) -> tuple["Runs", bytes]:
    """Run all lines but the last, which plots; the runs, and their plot as SVG."""
    names: dict[str, Any] = {}
    exec(code.rpartition("\n")[0], names)
    runs: Runs = names["runs"]
    file = io.BytesIO()
    runs.plot().figure.canvas.print_figure(file, format="svg")
    return runs, file.getvalue()
