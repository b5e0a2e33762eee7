"""What agents lose on the recommendation engine: at first, in the end and in between, on every instance."""

from functools import partial

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import claim
from rlsvi.paper.recommendation.experiments import LAST, LIKES
from rlsvi.paper.results import learning_curves, rows_with
from rlsvi.study.statistics import Interval, paired_ratio

of_agents, of_instances = rows_with("agent"), rows_with("best")
of_play = partial(claim, where="section 6.3", rows=of_agents)
of_problems = partial(claim, where="section 6.3", rows=of_instances)


def curves_of(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> tuple[Floats, Floats]:
    """The episodes of a curve, and the loss up to them on every instance, (instances, points)."""
    return learning_curves(frame, loss, agent=agent, coding=coding)


def final(frame: pl.DataFrame, agent: str, coding: str = LIKES) -> Floats:
    """Regret of all episodes, on every instance."""
    return curves_of(frame, agent, coding)[1][:, -1]


def rates(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> tuple[Floats, Floats]:
    """Loss an episode between two points of the curve, on every instance, and the episodes in their middle."""
    at, total = curves_of(frame, agent, coding, loss)
    ends = np.concatenate([[0.0], at])
    steps = np.diff(ends)
    return (ends[:-1] + ends[1:]) / 2, np.diff(np.pad(total, ((0, 0), (1, 0))), axis=1) / steps


def at_first(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> Floats:
    """Loss an episode over the first twelfth (100 of 1200), on every instance."""
    at, total = curves_of(frame, agent, coding, loss)
    i = max(len(at) // 12, 1) - 1
    return np.asarray(total[:, i] / at[i])


def at_the_end(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> Floats:
    """Loss an episode over the last 100 (or the last twelfth of fewer), on every instance."""
    at, total = curves_of(frame, agent, coding, loss)
    last = min(LAST, at[-1] / 12)
    i = max(int(np.searchsorted(at, at[-1] - last + 1e-9)) - 1, 0)
    i = i if at[i] <= at[-1] - last + 1e-9 else 0
    return np.asarray((total[:, -1] - total[:, i]) / (at[-1] - at[i]))


def remaining(frame: pl.DataFrame, agent: str, loss: str = "regret") -> Interval:
    """Loss an episode at the end as a share of that at first."""
    return paired_ratio(at_the_end(frame, agent, loss=loss), at_first(frame, agent, loss=loss))
