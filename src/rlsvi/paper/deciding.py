"""How many seeds a figure needs: twice as many, again and again, until its claims are decided.

A claim is open as long as the interval that decides it reaches across its criterion. Four times the runs halve an
interval, as a rule. Where they do not, where a claim's runs do not grow with the seeds, and where only larger
problems could tell, more seeds are not worth their time.

Each round looks at the claims again and stops when they are decided, so that chance decides somewhat more often
than in the 5% of a single look.
"""

from typing import NamedTuple

import polars as pl

from rlsvi.core.checks import positive
from rlsvi.paper.claim import Claim, Outcome, Verdict
from rlsvi.paper.figure import FEWEST, Figure
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval

MINUTES = 30.0  # of computing for a figure, unless told otherwise
MOST = 200_000  # jobs of a figure, since a store keeps a file for each


class Look(NamedTuple):
    """What was seen of a claim in one round: its runs, and the interval where they are enough for one."""

    rows: int
    interval: Interval | None


class Deciding:
    """The search for the number of seeds of one figure.

    minutes : what all its jobs together may take, in minutes of computing.
    times : the runs of the scale are taken so many times.
    open : the claims that are not decided, and why, after each round.
    """

    def __init__(self, figure: Figure, scale: str, minutes: float = MINUTES) -> None:
        self.figure, self.scale, self.minutes = figure, scale, positive("budget", minutes)
        self.times = 1
        self.open: list[tuple[Claim, str]] = []
        self._rounds: list[list[Look]] = []

    @property
    def seeds(self) -> int:
        """The number of seeds now."""
        return self.times * int(self.figure.sizes[self.scale]["seeds"])

    def plan(self) -> list[Job]:
        """The jobs with these seeds."""
        return self.figure.plan(self.scale, times=self.times)

    def goes_on(self, frame: pl.DataFrame, verdicts: list[Verdict], seconds: float) -> bool:
        """Double the seeds and return True, if this could decide an open claim and the budget allows it.

        frame, verdicts : the results of the present plan, and what they say.
        seconds : what the jobs of the present plan took.
        """
        parts = [claim.rows(frame) for claim in self.figure.claims]
        self._rounds.append([_look(*it) for it in zip(parts, verdicts, strict=True)])
        left = [i for i, verdict in enumerate(verdicts) if verdict.outcome is Outcome.INCONCLUSIVE]
        why = {i: self._beyond_seeds(i, parts[i]) for i in left}
        more = not all(why.values())
        expensive = self._too_much(seconds) if more else ""
        self.open = [(self.figure.claims[i], why[i] or expensive or "more seeds may decide it") for i in left]
        if more and not expensive:
            self.times *= 2
            return True
        return False

    def _beyond_seeds(self, i: int, rows: pl.DataFrame) -> str:
        """Why more seeds would not decide an open claim; empty if they may."""
        claim, looks = self.figure.claims[i], [looks[i] for looks in self._rounds]
        now = looks[-1].interval
        enough = rows["seed"].n_unique() >= FEWEST
        if enough and now is None:
            return "no number of runs decides it"
        if enough and self.scale != "paper" and claim.judge(rows).outcome is Outcome.NOT_REPRODUCED:
            return (
                "it is not reproduced in runs smaller than the paper's, and larger ones might: use --scale paper"
            )
        if len(looks) > 1 and looks[-1].rows == looks[-2].rows:
            return "the number of its runs does not depend on the seeds"
        before = looks[-3].interval if len(looks) > 2 else None
        if now is not None and before is not None and not narrower(now, before):
            return f"more seeds do not settle it: four times as many did not narrow its interval, {now}"
        return ""

    def _too_much(self, seconds: float) -> str:
        """Why the budget ends the search before twice the seeds; empty if it does not."""
        now, doubled = self.plan(), self.figure.plan(self.scale, times=2 * self.times)
        if len(doubled) > MOST:
            return f"budget: {2 * self.seeds} seeds are {len(doubled):,} jobs, and {MOST:,} is the most"
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


def _look(rows: pl.DataFrame, verdict: Verdict) -> Look:
    enough = rows["seed"].n_unique() >= FEWEST  # fewer give intervals that are too short to compare with
    return Look(rows.height, verdict.interval if enough else None)
