"""What BoundedRLSVI has learned, to and from arrays. Features are worked out anew from the observations."""

from typing import Any

import numpy as np

from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.practice.history import END, History, Transitions
from rlsvi.agents.practice.learner import BoundedLearner
from rlsvi.agents.practice.regression import Dense
from rlsvi.bases.scaling import Ranges


def bounded_parts(agent: BoundedRLSVI) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of what was learned."""
    learner = agent._learner
    header = {"episodes": agent.episodes, "rescalings": agent.rescalings, "recoveries": agent.recoveries}
    if learner is None or learner.design is None:
        return header, {}
    history, ranges = learner.history, learner.lookup.ranges
    arrays: dict[str, Any] = {f"history.{name}": v for name, v in history.transitions._asdict().items()}
    arrays |= {"history.x": history.x, "history.legal": history.legal, "Q": learner.Q}
    arrays |= {"ranges.low": ranges.low, "ranges.high": ranges.high}
    arrays["design"] = learner.design.gram if isinstance(learner.design, Dense) else learner.design.counts
    if learner.theta is not None:
        arrays["theta"] = learner.theta
    return header, arrays


def restore_bounded(agent: BoundedRLSVI, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Give an agent what it had learned, after checking that it fits together and points nowhere outside."""
    agent.episodes = int(header["episodes"])
    if "history.x" not in arrays:
        return
    if agent._task is None:
        raise ArchiveError("is damaged: it holds what was learned, but not of which task")
    kept = Transitions(*(arrays[f"history.{name}"] for name in Transitions._fields))
    x, legal, Q = arrays["history.x"], arrays["history.legal"], arrays["Q"]
    _check(agent._task.actions, x, legal, Q, kept)
    learner = BoundedLearner(agent.lookup(), x.shape[1], agent.prior())
    learner.lookup.ranges = _ranges(learner.lookup.ranges, arrays["ranges.low"], arrays["ranges.high"])
    learner.history = History.of(x, legal, kept)
    if len(learner.history.x) != len(x) or len(learner.history.transitions.row) != len(kept.row):
        raise ArchiveError("is damaged: an observation or a transition is in it twice")
    learner.build()
    design, held = learner.design, arrays["design"]
    sums = design.gram if isinstance(design, Dense) else design.counts  # type: ignore[union-attr]
    theta = arrays.get("theta")
    fits = held.shape == sums.shape and held.dtype == np.float64 and np.allclose(held, sums)
    if theta is not None:
        fits &= theta.dtype == np.float64 and theta.ndim == 2 and len(theta) == agent._task.actions
        fits = fits and theta.shape[1] <= sums.shape[1] and bool(np.isfinite(theta).all())
    if not fits:
        raise ArchiveError("is damaged: its sums or weights do not fit its observations")
    sums[:] = held  # the same up to rounding, and now bit for bit
    learner.Q, learner.theta = Q, theta
    learner.rescalings, learner.recoveries = int(header["rescalings"]), int(header["recoveries"])
    agent._learner = learner


def _ranges(begun: Ranges, low: Any, high: Any) -> Ranges:
    """The ranges of a file, if they fit the observations."""
    fit = all(v.shape == begun.low.shape and v.dtype == np.float64 for v in (low, high))
    if not fit or not ((begun.least <= low) & (low < high) & (high <= begun.most) & np.isfinite(high - low)).all():
        raise ArchiveError("is damaged: its ranges do not fit the observations")
    return begun._replace(low=low, high=high)


def _check(actions: int, x: Any, legal: Any, Q: Any, kept: Transitions) -> None:
    """Refuse arrays that do not fit together."""
    N, T = len(x), len(kept.row)
    expected = [(x, np.float64, (N, *x.shape[1:])), (legal, np.bool_, (N, actions)), (Q, np.float64, (N, actions))]
    expected += [(v, np.int64 if i in (0, 1, 3) else np.float64, (T,)) for i, v in enumerate(kept)]
    if x.ndim != 2 or not N or not T or any(a.dtype != kind or a.shape != shape for a, kind, shape in expected):
        raise ArchiveError("is damaged: its observations and transitions do not fit together")
    if not all(np.isfinite(a).all() for a, _, _ in expected) or (kept.times < 1).any():
        raise ArchiveError("is damaged: it holds numbers that are not finite")
    for index, least, end in ((kept.row, 0, N), (kept.action, 0, actions), (kept.next, END, N)):
        if index.min() < least or index.max() >= end:
            raise ArchiveError("is damaged: an index in it points outside its tables")
