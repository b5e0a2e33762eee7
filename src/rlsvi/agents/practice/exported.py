"""The policy of the practice agent as plain arrays."""

from typing import Any

import numpy as np

from rlsvi.agents.practice.history import CountedHistory
from rlsvi.agents.practice.lookup import Lookup
from rlsvi.agents.task import Task
from rlsvi.bases import Fourier, Observed, Radial
from rlsvi.bases.fourier import frequencies
from rlsvi.bases.layout import Layout
from rlsvi.bases.observed import CROSSED
from rlsvi.bases.radial import centres_of
from rlsvi.core.compile import Floats

Policy = tuple[Layout, dict[str, Any]]  # where the numbers of an observation are, and arrays


def counted_policy(task: Task, lookup: Lookup, history: CountedHistory, theta: Floats) -> Policy:
    """A table over several counted numbers."""
    layout = lookup.basis.layout
    actions = np.full((1, int(np.prod(layout.counts))), task.first_action, dtype=np.int64)  # of what is unknown
    for x, legal, Q in zip(history.x, history.legal, theta.T, strict=False):
        cell = np.ravel_multi_index(tuple(x.astype(np.int64)), tuple(layout.counts))
        actions[0, cell] = task.first_action + int(np.argmax(np.where(legal, Q, -np.inf)))
    return layout, {"actions": actions}


def feature_policy(task: Task, lookup: Lookup, history: CountedHistory, theta: Floats) -> Policy:
    """The weights, and all that the features are made of."""
    basis = lookup.basis
    if not isinstance(basis, Observed) or (
        basis.layout.measured and not isinstance(basis.basis, Fourier | Radial)
    ):
        shown = basis.basis if isinstance(basis, Observed) else basis
        raise ValueError(
            f"the basis {shown!r} cannot be exported, only a table, bases.Fourier() or Radial(): save the agent "
            "instead, and load it by rlsvi.load"
        )
    layout, ranges = basis.layout, lookup.ranges
    count, made = _functions(layout.measured, basis.basis)
    crossed = count * float(np.prod([float(k) for k in layout.counts])) <= CROSSED or not layout.counts
    if not (layout.measured or crossed):
        made = {"waves": np.zeros((0, 0)), "scale": np.ones(0)}
    arrays = {"low": ranges.low, "high": ranges.high, **made, "crossed": crossed}
    return layout, arrays | {"weights": theta, "first_action": task.first_action}


def _functions(measured: int, basis: Any) -> tuple[int, dict[str, Any]]:
    """How many functions of the measured numbers there are, and their arrays; of none of them a 1."""
    if not measured:
        return 1, {"waves": np.zeros((0, 1)), "scale": np.ones(1)}
    if isinstance(basis, Radial):
        centres, apart = centres_of(measured, basis.features, basis.seed)
        return len(centres) + 1, {"centres": centres, "width": basis.width or apart}
    waves, size = frequencies(measured, basis.order, basis.features, basis.together)
    return len(size), {"waves": waves, "scale": size**-basis.smoothness}
