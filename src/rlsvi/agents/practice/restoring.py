"""Reading what the practice agent has learned from a file, with all checks."""

import numpy as np

from rlsvi.agents.practice.episodes import read_episodes
from rlsvi.agents.practice.history import read_history
from rlsvi.agents.practice.learner import REPEAT, BoundedLearner, Planning
from rlsvi.agents.practice.log_learner import LogLearner
from rlsvi.agents.practice.lookup import Lookup
from rlsvi.agents.task import Task
from rlsvi.bases import Observed
from rlsvi.bases.scaling import Ranges
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import fits, positive, whole

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
    N, width = history.x.shape
    learner = BoundedLearner(task, lookup, width, planning)
    learner.history = history
    _read_features(learner, file)
    learner.build()
    assert learner.regression is not None
    sums = learner.regression.sums
    held = file.take("sums", sums.shape)
    if not np.allclose(held, sums):
        raise ArchiveError("is damaged: its sums do not fit its observations")
    sums[:] = held  # equal up to rounding before, and now bit for bit
    if "start" in file:
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
    learner = LogLearner(task, lookup, layout.measured + len(layout.counts), planning)
    _read_features(learner, file)
    example = np.concatenate([learner.lookup.ranges.low, np.zeros(len(layout.counts))])
    dim = int(learner.lookup.features(example[None]).shape[1])
    check_size(task, dim)
    learner.read(file, dim)
    return learner


def _read_features(learner: BoundedLearner, file: Archive) -> None:
    """Read the scaling and the waves of the features, and the counters."""
    lookup = learner.lookup
    lookup.ranges = _read_ranges(lookup.ranges, file)
    if lookup.waves is not None:
        features, length = file.take("waves", (2,))
        whole("features", int(features), 1, lookup.waves.features)
        learner.lookup = lookup.with_waves(int(features), positive("length", float(length)))
    learner.counters[:] = file.take_within("counters", (7,), np.int64, 0, 2**62)
    whole("repeat", int(learner.counters[REPEAT]), 1, 2**16)


def _read_ranges(begun: Ranges, file: Archive) -> Ranges:
    """Read the ranges from a file and check that they fit the observations."""
    low, high = (file.take(f"ranges.{end}", begun.low.shape) for end in ("low", "high"))
    if not ((low < high) & np.isfinite(high - low)).all():
        raise ArchiveError("is damaged: its ranges do not fit the observations")
    return begun._replace(low=low, high=high)
