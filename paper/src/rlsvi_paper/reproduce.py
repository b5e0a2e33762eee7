"""Compute figures: all their jobs first, then each figure's table, from which it is judged and drawn."""

import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rlsvi
from rlsvi.core.machine import cores
from rlsvi.study.executors import Executor
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import compute
from rlsvi_paper import figure_called
from rlsvi_paper.claim import Verdict
from rlsvi_paper.figure import Figure
from rlsvi_paper.folder import settle, write_table
from rlsvi_paper.progress import figure_bars

FORMAT = 2

Advance = Callable[[Job, bool], None]
Plans = Mapping[str, Sequence[Job]]


def reproduce(
    figures: Sequence[str | Figure],
    out: str | os.PathLike[str],
    *,
    scale: str = "quick",
    seeds: int | None = None,
    executor: str | Executor = "processes",
    redo: bool = False,
    progress: Callable[[Plans], AbstractContextManager[Advance]] = lambda plans: figure_bars(plans, show=False),
    judging: Callable[[str], None] = lambda name: None,
    command: str = "",
) -> dict[str, list[Verdict]]:
    """Compute figures of the paper, by name, or others, and judge what is claimed about them.

    For each figure, a picture (.svg, .png), its data (.parquet) and its verdicts with settings, versions and times
    (.json) are written to the folder `out`. Single jobs go to `out`/store, and are not computed again.

    Parameters
    ----------
    seeds
        Runs per setting. If None, those of the scale.
    progress
        Called with the jobs that are to be computed, by figure. In the context that it returns, a function is
        called with each finished job, and whether it was computed now.
    judging
        Called with the name of each figure before it is judged and drawn.
    """
    folder = Path(out)
    chosen = {it.name: it for it in (figure_called(it) if isinstance(it, str) else it for it in figures)}
    plans = {name: figure.plan(scale, seeds) for name, figure in chosen.items()}
    if not plans:
        raise ValueError("figures must be at least one figure")
    store = Store(folder / "store")
    given = f" --seeds {seeds}" if seeds is not None else ""
    about = {"scale": scale, "command": command or f"rlsvi paper {' '.join(chosen)} --scale {scale}{given}"}
    jobs = {job.name: job for plan in plans.values() for job in sorted(plan, key=lambda job: -job.cost)}
    with progress(plans) as advance:
        compute(jobs, store, executor, redo=redo, advance=advance)
    found: dict[str, list[Verdict]] = {}
    for name, plan in plans.items():
        judging(name)
        found[name] = finish(chosen[name], plan, store, folder, about)
    return found


def finish(
    figure: Figure, jobs: Sequence[Job], store: Store, folder: Path, about: dict[str, Any]
) -> list[Verdict]:
    """Write the table of a figure whose jobs are all in the store, then judge and draw the figure from it."""
    frame, seconds = store.gather(jobs)
    times = defaultdict[str, float](float)
    for job, took in zip(jobs, seconds, strict=True):
        times[job.function] += took
    others = {name: version(name) for name in ("numpy", "numba", "polars", "scipy")}
    entry: dict[str, Any] = {
        "format": FORMAT,
        "name": figure.name,
        **about,
        "jobs": len(jobs),
        "seconds": sum(seconds),
        "times": dict(times),
        "settings": _settings(jobs),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"rlsvi": rlsvi.__version__, "python": sys.version.split()[0], **others},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": cores()},
    }
    write_table(folder / f"{figure.name}.parquet", frame, entry["settings"])
    return settle(figure, folder, entry)


def _settings(jobs: Sequence[Job]) -> dict[str, list[Any]]:
    """The values that each setting takes, over all jobs."""
    names = dict.fromkeys(name for job in jobs for name in job.settings)
    values = {name: {job.settings[name] for job in jobs if name in job.settings} for name in names}
    return {name: sorted(it, key=lambda v: (v is None, isinstance(v, str), v)) for name, it in values.items()}
