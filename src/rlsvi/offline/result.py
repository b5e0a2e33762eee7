"""The result of judging a policy by a log."""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.html import html_table
from rlsvi.study.statistics import Interval

FITTED, WEIGHTED, ROBUST = "fitted Q evaluation", "weighted importance sampling", "doubly robust"


class OfflineValue(NamedTuple):
    """Estimates of the value of a policy, each with its interval, from a log of other policies."""

    estimates: dict[str, Interval]
    absent: dict[str, str]  # why an estimate is missing
    level: float  # of the intervals
    gamma: float
    horizon: int | None  # the number of steps whose rewards count; None: all
    episodes: int
    steps: int
    effective: float | None  # the effective number of episodes of importance sampling; None without propensities
    untried: float  # the share of the policy's actions never tried in the same state; with features, never at all

    @property
    def fitted(self) -> Interval | None:
        """The value by fitted Q evaluation; None if it has diverged, which only features can."""
        return self.estimates.get(FITTED)

    @property
    def weighted(self) -> Interval | None:
        """The value by weighted importance sampling, if there is one."""
        return self.estimates.get(WEIGHTED)

    @property
    def robust(self) -> Interval | None:
        """The doubly robust value, if there is one."""
        return self.estimates.get(ROBUST)

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values, with None for an end that is not known."""
        estimates = {
            name.replace(" ", "_"): {end: v if np.isfinite(v) else None for end, v in found._asdict().items()}
            for name, found in self.estimates.items()
        }
        absent = {name.replace(" ", "_"): why for name, why in self.absent.items()}
        others = {name: v for name, v in self._asdict().items() if name not in ("estimates", "absent")}
        return {"estimates": estimates, "absent": absent, **others}

    @property
    def meaning(self) -> str:
        """What is estimated, in words."""
        rewards = "rewards" if self.gamma == 1 else f"rewards discounted by {self.gamma:g}"
        steps = "all steps" if self.horizon is None else f"at most {self.horizon} steps"
        return f"expected sum of {rewards} in {steps} of an episode that begins as those of the log"

    @property
    def notes(self) -> list[str]:
        """What is to be kept in mind."""
        found = [f"log: {self.episodes} episodes, {self.steps} steps"]
        if self.effective is not None:
            found.append(f"effective number of episodes: {self.effective:.1f}")
        if self.untried > 0:
            found.append(f"{self.untried:.1%} of the policy's actions were never tried")
        return found

    def rows(self) -> list[tuple[str, str, str]]:
        """Return a line for each estimator: its name, the value, and the interval, or why there is none."""
        found = []
        for name, interval in self.estimates.items():
            value, _, ends = str(interval).partition(" (")
            found.append((name, value, ends.rstrip(")")))
        return found + [(name, "", f"none: {why}") for name, why in self.absent.items()]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}: {interval}" for name, interval in self.estimates.items())
        return f"OfflineValue({values})"

    def __str__(self) -> str:
        header = "", "value", f"{100 * self.level:.4g}% interval"
        lines = [header, *self.rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(2)]
        table = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}".rstrip() for a, b, c in lines]
        return "\n".join([self.meaning, *table, *self.notes])

    def _repr_html_(self) -> str:
        header = "", "value", f"{100 * self.level:.4g}% interval"
        return html_table("Value", self.rows(), header, f"{self.meaning}; {'; '.join(self.notes)}")
