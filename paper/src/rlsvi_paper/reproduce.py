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

import polars as pl

import rlsvi
from rlsvi.core.checks import positive
from rlsvi.core.machine import cores
from rlsvi.study.executors import Executor
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval
from rlsvi.study.store import Store
from rlsvi.study.sweep import compute
from rlsvi_paper import figure_called
from rlsvi_paper.claim import Claim, Outcome, Verdict
from rlsvi_paper.figure import FEWEST_SEEDS, Figure
from rlsvi_paper.folder import add_to_entry, read_table, settle, write_table

FORMAT = 2
AUTO = "auto"  # as many seeds as decide the claims
MINUTES = 30.0  # of computing for a figure, while its seeds are searched for
MOST_JOBS = 200_000  # jobs of a figure, since a store keeps a file for each

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
    seeds
        Runs per setting. If None, those of the scale. If "auto", those of the scale first, then twice as many,
        until the claims are decided, more seeds would not help, or the budget is used up: see `SeedSearch`.
    budget
        With seeds="auto", the most minutes of computing for a figure, all its jobs together. If None, 30.
    progress
        Called with the jobs that are to be computed, by figure. In the context that it returns, a function is
        called with each finished job, and whether it was computed now.
    judging
        Called with the name of each figure before it is judged and drawn.
    """
    folder = Path(out)
    fixed = fixed_seeds(seeds, budget)
    chosen = {it.name: it for it in (figure_called(it) if isinstance(it, str) else it for it in figures)}
    plans = {name: figure.plan(scale, fixed) for name, figure in chosen.items()}
    if not plans:
        raise ValueError("figures must be at least one figure")
    minutes = MINUTES if budget is None else budget
    searches = {name: SeedSearch(it, scale, minutes) for name, it in chosen.items()} if seeds == AUTO else {}
    store = Store(folder / "store")
    given = f" --seeds {seeds}" if seeds is not None else ""
    names = " ".join(it if isinstance(it, str) else it.name for it in figures)
    about = {"scale": scale, "command": command or f"rlsvi paper {names} --scale {scale}{given}"}
    found: dict[str, list[Verdict]] = {}
    computed: set[str] = set()
    while plans:
        titles = {name: f"{name}, {searches[name].seeds} seeds" if name in searches else name for name in plans}
        fresh = {titles[name]: [job for job in plan if job.name not in computed] for name, plan in plans.items()}
        jobs = {job.name: job for plan in fresh.values() for job in sorted(plan, key=lambda job: -job.cost)}
        with progress(fresh) as advance:
            compute(jobs, store, executor, redo=redo, advance=advance)
        computed |= set(jobs)
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


def _goes_on(search: "SeedSearch", verdicts: list[Verdict], folder: Path) -> bool:
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


class SeedSearch:
    """The search for the seeds of a figure: twice as many, again and again, until its claims are decided.

    A claim is open as long as the interval that decides it reaches across its criterion. Four times the runs halve
    an interval, as a rule. Where they do not, where a claim's runs do not grow with the seeds, and where only
    larger problems could tell, more seeds are not worth their time. Each round looks at the claims again and stops
    when they are decided, so that chance decides somewhat more often than in the 5% of a single look.

    Parameters
    ----------
    minutes
        What all its jobs together may take, in minutes of computing.
    times
        The runs of the scale are taken so many times.
    open
        The claims that are not decided, and why, after each round.
    """

    def __init__(self, figure: Figure, scale: str, minutes: float) -> None:
        self.figure, self.scale, self.minutes = figure, scale, positive("budget", minutes)
        self.times = 1
        self.open: list[tuple[Claim, str]] = []
        self._looks: list[list[tuple[int, Interval | None]]] = [[] for _ in figure.claims]  # at each round

    @property
    def seeds(self) -> int:
        """The number of seeds now."""
        return self.times * int(self.figure.sizes[self.scale]["seeds"])

    def plan(self) -> list[Job]:
        """The jobs with these seeds."""
        return self.figure.plan(self.scale, times=self.times)

    def goes_on(self, frame: pl.DataFrame, verdicts: list[Verdict], seconds: float) -> bool:
        """Double the seeds and return True, if this could decide an open claim and the budget allows it.

        Parameters
        ----------
        frame, verdicts
            The results of the present plan, and what they say.
        seconds
            What the jobs of the present plan took.
        """
        why: dict[int, str] = {}
        for i, (claim, verdict) in enumerate(zip(self.figure.claims, verdicts, strict=True)):
            rows = claim.rows(frame)
            enough = (
                rows["seed"].n_unique() >= FEWEST_SEEDS
            )  # fewer give intervals that are too short to compare with
            self._looks[i].append((rows.height, verdict.interval if enough else None))
            if verdict.outcome is Outcome.INCONCLUSIVE:
                why[i] = self._beyond_seeds(claim, rows, enough, self._looks[i])
        more = not all(why.values())
        expensive = self._too_much(seconds) if more else ""
        self.open = [
            (self.figure.claims[i], reason or expensive or "more seeds may decide it") for i, reason in why.items()
        ]
        if more and not expensive:
            self.times *= 2
            return True
        return False

    def _beyond_seeds(
        self, claim: Claim, rows: pl.DataFrame, enough: bool, looks: list[tuple[int, Interval | None]]
    ) -> str:
        """Why more seeds would not decide an open claim; empty if they may."""
        now, before = looks[-1][1], looks[-3][1] if len(looks) > 2 else None
        if enough and now is None:
            return "no number of runs decides it"
        if enough and self.scale != "paper" and claim.judge(rows).outcome is Outcome.NOT_REPRODUCED:
            return (
                "it is not reproduced in runs smaller than the paper's, and larger ones might: use --scale paper"
            )
        if len(looks) > 1 and looks[-1][0] == looks[-2][0]:
            return "the number of its runs does not depend on the seeds"
        if now is not None and before is not None and not narrower(now, before):
            return f"more seeds do not settle it: four times as many did not narrow its interval, {now}"
        return ""

    def _too_much(self, seconds: float) -> str:
        """Why the budget ends the search before twice the seeds; empty if it does not."""
        now, doubled = self.plan(), self.figure.plan(self.scale, times=2 * self.times)
        if len(doubled) > MOST_JOBS:
            return f"budget: {2 * self.seeds} seeds are {len(doubled):,} jobs, and {MOST_JOBS:,} is the most"
        minutes = seconds / 60 * sum(job.cost for job in doubled) / sum(job.cost for job in now)
        if minutes <= self.minutes:
            return ""
        needed = f"{2 * self.seeds} seeds need about {minutes:,.1f} minutes of computing"
        return f"budget: {needed}, more than the {self.minutes:g} allowed"


def narrower(now: Interval, before: Interval) -> bool:
    """Whether an interval has become narrower; without bounds, whether an end has moved inward."""
    if now.bounded or before.bounded:
        return now.high - now.low < before.high - before.low
    return now.low > before.low or now.high < before.high
