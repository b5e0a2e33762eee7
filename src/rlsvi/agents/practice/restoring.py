"""Reading what the practice agent has learned from a file, with all checks."""

from dataclasses import replace
from typing import Any

import numpy as np

from rlsvi.agents.practice.episodes import read_episodes
from rlsvi.agents.practice.history import read_history
from rlsvi.agents.practice.learner import PLANNED, REPEAT, SCALED, BoundedLearner, Planning
from rlsvi.agents.practice.log_learner import LogLearner
from rlsvi.agents.practice.lookup import Lookup
from rlsvi.agents.task import Task
from rlsvi.bases import Fourier, Observed, Radial, Waves
from rlsvi.bases.fourier import chosen, count
from rlsvi.bases.scaling import Ranges
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import fits, positive, whole

MANY = 2**14  # features that any basis may make of a row before their number is known
COPIES = 4  # matrices per action: the sums, their copy while learning, and two factors


def check_size(task: Task, dim: int) -> None:
    """Raise an error if there are too many features."""
    fits(
        f"the sums and factors of {dim} features of {task.actions} actions",
        COPIES * task.actions * dim**2,
        "use fewer features, such as basis=bases.Waves(features=100), or list fewer actions and offer them by "
        "gymnasium.wrappers.TransformAction",
    )


def read_learner(task: Task, lookup: Lookup, planning: Planning, file: Archive) -> BoundedLearner:
    """Return the learner stored in a file, given the features that the agent begins with."""
    return (_from_log if "log.sums" in file else _from_history)(task, lookup, planning, file)


def _from_history(task: Task, lookup: Lookup, planning: Planning, file: Archive) -> BoundedLearner:
    """Return what was learned from experience, all of which is in the file."""
    history = (read_history if lookup.table else read_episodes)(file, task.actions)
    (N, width), A = history.x.shape, task.actions
    dim = N if lookup.table else file.shape("sums", 3)[2]
    held = file.take("sums", (A, N) if lookup.table else (A, dim, dim))
    if isinstance(lookup.basis, Observed) and width != lookup.basis.layout.size:
        raise ArchiveError("is damaged: its history is not one of such observations")
    learner = BoundedLearner(task, lookup, width, planning)
    learner.history = history
    _read_features(learner, file, dim)
    if not lookup.table and learner.lookup.features(history.x[:1]).shape[1] != dim:
        raise ArchiveError("is damaged: its sums do not fit its features")
    learner.build()
    assert learner.regression is not None
    sums = learner.regression.sums
    if not np.allclose(held, sums):
        raise ArchiveError("is damaged: its sums do not fit its observations")
    sums[:] = held  # equal up to rounding before, and now bit for bit
    if "start" in file and not lookup.table:
        if learner.counters[SCALED] <= learner.counters[PLANNED]:
            raise ArchiveError("is damaged: its plan does not fit its features")
        rows, _ = file.shape("start", 2)  # episodes that came after the features changed have none yet
        learner.start = file.take("start", (min(rows, N), task.actions))
    if "theta" in file:
        _, d = file.shape("theta", 2)
        if d > learner.regression.dim:
            raise ArchiveError("is damaged: its weights do not fit its observations")
        if not lookup.table and learner.start is None and d != learner.regression.dim:
            raise ArchiveError("is damaged: its weights do not fit its features")
        learner.theta = file.take("theta", (task.actions, d))
    return learner


def _from_log(task: Task, lookup: Lookup, planning: Planning, file: Archive) -> LogLearner:
    """Return what was learned from a log in chunks, of which only sums are in the file."""
    if lookup.table or not isinstance(lookup.basis, Observed):
        raise ArchiveError("is damaged: a log in chunks is learned with features")
    layout = lookup.basis.layout
    dim = file.shape("log.sums", 3)[2]
    if file.shape("log.sums", 3) != (task.actions, dim, dim):
        raise ArchiveError(f"is damaged: its sums are not those of {task}")
    learner = LogLearner(task, lookup, layout.size, planning)
    _read_features(learner, file, dim)
    example = np.concatenate([learner.lookup.ranges.low, np.zeros(len(layout.counts))])
    if learner.lookup.features(example[None]).shape[1] != dim:
        raise ArchiveError("is damaged: its sums do not fit its features")
    check_size(task, dim)
    learner.read(file, dim)
    return learner


def _read_features(learner: BoundedLearner, file: Archive, dim: int) -> None:
    """Read the scaling and the waves of `dim` features, and the counters."""
    lookup = learner.lookup
    lookup.ranges = _read_ranges(lookup.ranges, file)
    if lookup.waves is not None:
        features, length = file.take("waves", (2,))
        whole("features", int(features), 1, lookup.waves.features)
        learner.lookup = lookup.with_waves(int(features), positive("length", float(length)))
    if isinstance(lookup.basis, Observed) and not lookup.table and lookup.basis.layout.measured:
        _check_number(learner.lookup.waves or lookup.basis.basis, lookup.basis.layout.measured, dim)
    learner.counters[:] = file.take_within("counters", (7,), np.int64, 0, 2**62)
    whole("repeat", int(learner.counters[REPEAT]), 1, 2**16)


def _check_number(basis: Any, numbers: int, dim: int) -> None:
    """Raise an error if a basis makes more than `dim` features of so many numbers, before it makes them all."""
    made, most = 0, max(dim, MANY)
    if isinstance(basis, Fourier) and basis.together is not None:
        made = count(numbers, *chosen(numbers, basis.order, basis.features, basis.together))
    elif isinstance(basis, Waves) or (isinstance(basis, Radial) and 3**numbers >= basis.features):
        made = basis.features
    elif getattr(basis, "features", 0) > most:  # as many as it makes within a smaller budget, or more
        made = replace(basis, features=most).rows(np.zeros((1, numbers))).shape[1]
    if made > dim:
        raise ArchiveError(f"is damaged: it has weights of {dim} features, its basis has more")


def _read_ranges(begun: Ranges, file: Archive) -> Ranges:
    """Read the ranges from a file and check that they fit the observations."""
    low, high = (file.take(f"ranges.{end}", begun.low.shape) for end in ("low", "high"))
    if not ((low < high) & np.isfinite(high - low)).all():
        raise ArchiveError("is damaged: its ranges do not fit the observations")
    return begun._replace(low=low, high=high)
