"""Compute figures: all their jobs first, then each figure's table, from which it is judged and drawn."""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rlsvi
from rlsvi.core.checks import positive
from rlsvi.core.machine import cores
from rlsvi.paper import figure_called
from rlsvi.paper.claim import Verdict
from rlsvi.paper.deciding import MINUTES, Deciding
from rlsvi.paper.figure import Figure
from rlsvi.paper.folder import add_to_entry, read_table, settle, write_table
from rlsvi.study.executors import Executor
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import compute

FORMAT = 2
AUTO = "auto"  # as many seeds as decide the claims


Advance = Callable[[Job, bool], None]
Plans = Mapping[str, Sequence[Job]]


@contextmanager
def unshown(plans: Plans) -> Iterator[Advance]:
    """Show no progress."""
    yield lambda job, fresh: None


def reproduce(
    figures: Sequence[str | Figure],
    out: str | os.PathLike[str],
    *,
    scale: str = "quick",
    seeds: int | str | None = None,
    budget: float | None = None,
    executor: str | Executor = "processes",
    redo: bool = False,
    progress: Callable[[Plans], AbstractContextManager[Advance]] = unshown,
    judging: Callable[[str], None] = lambda name: None,
    command: str = "",
) -> dict[str, list[Verdict]]:
    """Compute figures of the paper, by name, or others, and judge what is claimed about them.

    For each figure, a picture (.svg, .png), its data (.parquet) and its verdicts with settings, versions and times
    (.json) are written to the folder `out`. Single jobs go to `out`/store, and are not computed again.

    Parameters
    ----------
    seeds : runs per setting. If None, those of the scale. If "auto", those of the scale first, then twice as many,
        until the claims are decided, more seeds would not help, or the budget is used up: see `deciding`.
    budget : with seeds="auto", the most minutes of computing for a figure, all its jobs together. If None, 30.
    progress : called with the jobs that are to be computed, by figure. In the context that it returns, a function
        is called with each finished job, and whether it was computed now.
    judging : called with the name of each figure before it is judged and drawn.
    """
    folder = Path(out)
    fixed = fixed_seeds(seeds, budget)
    chosen = {it.name: it for it in (figure_called(it) if isinstance(it, str) else it for it in figures)}
    plans = {name: figure.plan(scale, fixed) for name, figure in chosen.items()}
    if not plans:
        raise ValueError("figures must be at least one figure")
    minutes = MINUTES if budget is None else budget
    searches = {name: Deciding(it, scale, minutes) for name, it in chosen.items()} if seeds == AUTO else {}
    store = Store(folder / "store")
    given = f" --seeds {seeds}" if seeds is not None else ""
    names = " ".join(it if isinstance(it, str) else it.name for it in figures)
    about = {"scale": scale, "command": command or f"rlsvi paper {names} --scale {scale}{given}"}
    found: dict[str, list[Verdict]] = {}
    computed: set[str] = set()
    while plans:
        shown = {_title(name, searches.get(name)): plan for name, plan in plans.items()}
        computed |= _compute(shown, computed, store, executor, redo, progress)
        for name, plan in plans.items():
            judging(name)
            found[name] = finish(chosen[name], plan, store, folder, about)
        going = [name for name in plans if name in searches and _goes_on(searches[name], found[name], folder)]
        plans = {name: searches[name].plan() for name in going}
    return found


def fixed_seeds(seeds: int | str | None, budget: float | None) -> int | None:
    """Return the number of seeds, None for those of the scale, at least at first; refuse a budget for a number."""
    if budget is not None and seeds != AUTO:
        raise ValueError(f"budget goes with seeds={AUTO!r}, which takes as many as decide; got seeds={seeds!r}")
    if budget is not None:
        positive("budget", budget)
    if isinstance(seeds, str) and seeds != AUTO:
        raise ValueError(f"seeds must be a whole number of at least 1, or {AUTO!r}, got {seeds!r:.80}")
    return None if isinstance(seeds, str) else seeds


def _title(name: str, search: Deciding | None) -> str:
    return name if search is None else f"{name}, {search.seeds} seeds"


def _compute(
    plans: Plans,
    computed: set[str],
    store: Store,
    executor: str | Executor,
    redo: bool,
    progress: Callable[[Plans], AbstractContextManager[Advance]],
) -> set[str]:
    """Compute the jobs of plans, but those that are computed; return their names. The largest begin."""
    fresh = {name: [job for job in plan if job.name not in computed] for name, plan in plans.items()}
    jobs = {job.name: job for plan in fresh.values() for job in sorted(plan, key=lambda job: -job.cost)}
    with progress(fresh) as advance:
        compute(jobs, store, executor, redo=redo, advance=advance)
    return set(jobs)


def _goes_on(search: Deciding, verdicts: list[Verdict], folder: Path) -> bool:
    """Whether a figure that was just finished is to have more seeds; note beside it what is open, and why."""
    name, seeds = search.figure.name, search.seeds
    seconds = json.loads((folder / f"{name}.json").read_bytes())["seconds"]
    more = search.goes_on(read_table(folder / f"{name}.parquet"), verdicts, seconds)
    left = [{"words": claim.words, "where": claim.where, "why": why} for claim, why in search.open]
    add_to_entry(folder, name, deciding={"seeds": seeds, "budget": search.minutes, "open": left})
    return more


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
