"""Compute figures: all their jobs first, then each figure's table, from which it is judged and drawn."""

import os
import platform
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rlsvi
from rlsvi.core.machine import cores
from rlsvi.paper import figure_called
from rlsvi.paper.claim import Verdict
from rlsvi.paper.figure import Figure
from rlsvi.paper.folder import settle, write_table
from rlsvi.study.executors import Executor
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import compute

FORMAT = 2


def reproduce(
    figures: Sequence[str | Figure],
    out: str | os.PathLike[str],
    *,
    scale: str = "quick",
    seeds: int | None = None,
    executor: str | Executor = "processes",
    redo: bool = False,
    advance: Callable[[Job, bool], None] = lambda job, fresh: None,
    judging: Callable[[str], None] = lambda name: None,
    command: str = "",
) -> dict[str, list[Verdict]]:
    """Compute figures of the paper, by name, or others, and judge what is claimed about them.

    For each figure, a picture (.svg, .png), its data (.parquet) and its verdicts with settings, versions and times
    (.json) are written to the folder `out`. Single jobs go to `out`/store, and are not computed again. When all
    are there, `judging` is called with the name of each figure before it is judged and drawn.
    """
    folder = Path(out)
    chosen = [figure_called(it) if isinstance(it, str) else it for it in figures]
    plans = {figure.name: figure.plan(scale, seeds) for figure in chosen}
    if not plans:
        raise ValueError("figures must be at least one figure")
    store = Store(folder / "store")
    jobs = {job.name: job for plan in plans.values() for job in sorted(plan, key=lambda job: -job.cost)}
    compute(jobs, store, executor, redo=redo, advance=advance)
    given = f" --seeds {seeds}" if seeds is not None else ""
    names = " ".join(figure.name for figure in chosen)
    about = {"scale": scale, "command": command or f"rlsvi paper {names} --scale {scale}{given}"}
    found = {}
    for figure in {it.name: it for it in chosen}.values():
        judging(figure.name)
        found[figure.name] = finish(figure, plans[figure.name], store, folder, about)
    return found


def finish(
    figure: Figure, jobs: Sequence[Job], store: Store, folder: Path, about: dict[str, Any]
) -> list[Verdict]:
    """Write the table of a figure whose jobs are all in the store, then judge and draw the figure from it."""
    frame, seconds = store.gather(jobs)
    others = {name: version(name) for name in ("numpy", "numba", "polars", "scipy")}
    entry: dict[str, Any] = {
        "format": FORMAT,
        "name": figure.name,
        **about,
        "jobs": len(jobs),
        "seconds": seconds,
        "settings": _settings(jobs),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"rlsvi": rlsvi.__version__, "python": sys.version.split()[0], **others},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": cores()},
    }
    write_table(folder / f"{figure.name}.parquet", frame, entry["settings"])
    return settle(figure, folder, entry)


def _settings(jobs: Sequence[Job]) -> dict[str, list[Any]]:
    """The values that each setting takes, over all jobs."""
    found: dict[str, dict[Any, None]] = {}
    for job in jobs:
        for name, value in job.settings.items():
            found.setdefault(name, {})[value] = None
    return {
        name: sorted(values, key=lambda v: (v is None, isinstance(v, str), v)) for name, values in found.items()
    }
