"""The policy of the posterior mean as a file of plain arrays, for NumPy alone.

`layout` is JSON: where the numbers of an observation are (bases/layout.py); `counts` how many values each counted
one has. Then either a table: `actions` (H, S), H being 1 where periods are alike, S the values of all counted
numbers together, the last one running fastest. Or features: `low` and `high` (m,) of the measured numbers, `waves`
(m, f) and `scale` (f,) of their cosines, or `centres` (f - 1, m) and `width` of radial functions, which follow a
1; `weights` (A, d), `first_action`, and whether the features are `crossed` with what is counted.
docs/interoperability.md has a reader.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.bases import Fourier, Observed, Radial
from rlsvi.bases.fourier import frequencies
from rlsvi.bases.layout import Layout
from rlsvi.bases.observed import CROSSED
from rlsvi.bases.radial import centres_of
from rlsvi.core.files import whole_file

MOST = 1_000_000  # cells of a table


def export(agent: Any, path: str | os.PathLike[str]) -> None:
    """Write the policy, all of it or nothing."""
    task = agent._task
    if task is None or agent.steps == 0:
        raise RuntimeError("this agent has learned nothing yet: call learn first")
    if isinstance(agent, BoundedRLSVI) and task.states is None:
        layout, arrays = _features(agent) if not agent.lookup().table else _counted(agent)
    elif task.states is not None:
        layout = Layout(["counted", [task.first_state], []], [], [], [task.states])
        arrays = {"actions": _numbered(agent, max(task.horizon, 1), task.first_state, task.states)}
    else:
        raise ValueError(
            f"{type(agent).__name__} can be exported where observations are numbered (Discrete), BoundedRLSVI "
            "also with a table, Fourier or radial features: save the agent instead, and load it by rlsvi.load"
        )
    whole = {"layout": json.dumps(layout.tree), "counts": np.array(layout.counts, dtype=np.int64), **arrays}
    with whole_file(Path(path)) as file:
        np.savez(file, **whole)


def _numbered(agent: Any, periods: int, first: int, states: int) -> Any:
    """The action of every period and state, as the agent itself says."""
    if periods * states > MOST:
        raise ValueError(f"a table of {periods} x {states} actions is too large to export: more than {MOST:,}")
    actions = [[agent.predict(first + s, h, deterministic=True)[0] for s in range(states)] for h in range(periods)]
    return np.array(actions, dtype=np.int64)


def _counted(agent: BoundedRLSVI) -> tuple[Layout, dict[str, Any]]:
    """A table over several counted numbers."""
    learner, task = agent._learner, agent._task
    assert learner is not None
    assert task is not None
    assert isinstance(agent._problem_basis, Observed)
    layout, theta = agent._problem_basis.layout, agent._weights(True, False)
    actions = np.full((1, int(np.prod(layout.counts))), task.first_action, dtype=np.int64)  # of what is unknown
    for x, legal, Q in zip(learner.history.x, learner.history.legal, theta.T, strict=False):
        cell = np.ravel_multi_index(tuple(x.astype(np.int64)), tuple(layout.counts))
        actions[0, cell] = task.first_action + int(np.argmax(np.where(legal, Q, -np.inf)))
    return layout, {"actions": actions}


def _features(agent: BoundedRLSVI) -> tuple[Layout, dict[str, Any]]:
    """The weights, and all that the features are made of."""
    learner, task = agent._learner, agent._task
    assert learner is not None
    assert task is not None
    basis = learner.lookup.basis
    if not isinstance(basis, Observed) or (
        basis.layout.measured and not isinstance(basis.basis, Fourier | Radial)
    ):
        shown = basis.basis if isinstance(basis, Observed) else basis
        raise ValueError(
            f"the basis {shown!r} cannot be exported, only a table, bases.Fourier() or Radial(): save the agent "
            "instead, and load it by rlsvi.load"
        )
    layout, ranges = basis.layout, learner.lookup.ranges
    count, made = _functions(layout.measured, basis.basis)
    crossed = count * float(np.prod([float(k) for k in layout.counts])) <= CROSSED or not layout.counts
    if not (layout.measured or crossed):
        made = {"waves": np.zeros((0, 0)), "scale": np.ones(0)}
    arrays = {"low": ranges.low, "high": ranges.high, **made, "crossed": crossed}
    return layout, arrays | {"weights": agent._weights(True, False), "first_action": task.first_action}


def _functions(measured: int, basis: Any) -> tuple[int, dict[str, Any]]:
    """How many functions of the measured numbers there are, and their arrays; of none of them a 1."""
    if not measured:
        return 1, {"waves": np.zeros((0, 1)), "scale": np.ones(1)}
    if isinstance(basis, Radial):
        centres, apart = centres_of(measured, basis.features, basis.seed)
        return len(centres) + 1, {"centres": centres, "width": basis.width or apart}
    waves, size = frequencies(measured, basis.order, basis.features, basis.together)
    return len(size), {"waves": waves, "scale": size**-basis.smoothness}
