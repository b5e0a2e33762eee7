"""Export of the policy of the posterior mean as a file of plain arrays that needs only NumPy.

`layout` is JSON and says where the numbers of an observation are (bases/layout.py); `counts` is the number of
values of each discrete one. Then follows either a table: `actions` (H, S), where H is 1 if all periods are alike,
and S runs over the values of all discrete numbers, the last one fastest; or features: `low` and `high` (m,) of the
measured numbers, `waves` (m, f) and `scale` (f,) of their cosines, or a 1 followed by radial functions with
`centres` (f - 1, m) and `width`, or a 1, the numbers, and cosines with `waves`, `scale` and a `phase`, or of a
picture a 1, the squares of pixels times `single`, and sums of products of their pairs, `first` and `second` (P,),
each in the sum that `bin` (P,) says, times `scale`; `weights` (A, d), `first_action`, and whether the features are
`crossed` with the discrete numbers. The practice agent adds `held`, for how many steps each action is held.
docs/interoperability.md has a reader.
"""

import json
import os
from typing import Any

import numpy as np

from rlsvi.bases.layout import Layout
from rlsvi.core.archive import checked_target
from rlsvi.core.files import whole_file

MOST = 1_000_000  # the largest number of table cells


def export(agent: Any, path: str | os.PathLike[str]) -> None:
    """Write the policy, completely or not at all."""
    target, task = checked_target(path, "write"), agent._task
    if task is None or agent.steps == 0:
        raise RuntimeError("this agent has learned nothing yet: call learn first")
    if task.states is None and hasattr(agent._learner, "exported"):
        layout, arrays = agent._learner.exported(agent.plan(True))
    elif task.states is not None:
        layout = Layout(["counted", [task.first_state], []], [], [], [task.states])
        arrays = {"actions": _numbered(agent, max(task.horizon, 1), task.first_state, task.states)}
    else:
        raise ValueError(
            f"{type(agent).__name__} can be exported where observations are numbered (Discrete), BoundedRLSVI "
            "also with a table, Fourier, radial features, waves or pixel pairs: save the agent instead, and load "
            "it by rlsvi.load"
        )
    whole = {"layout": json.dumps(layout.tree), "counts": np.array(layout.counts, dtype=np.int64), **arrays}
    with whole_file(target) as file:
        np.savez(file, **whole)


def _numbered(agent: Any, periods: int, first: int, states: int) -> Any:
    """Return the agent's action in every period and state."""
    if periods * states > MOST:
        raise ValueError(f"a table of {periods} x {states} actions is too large to export: more than {MOST:,}")
    actions = [[agent.predict(first + s, h, deterministic=True)[0] for s in range(states)] for h in range(periods)]
    return np.array(actions, dtype=np.int64)
