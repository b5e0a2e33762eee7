"""The part of a saved file that GradientRLSVI has of its own: the ensemble, and all past transitions."""

from typing import Any

import numpy as np

from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.finite.gradient import GradientLearner, GradientRLSVI, Sparse, Transition
from rlsvi.core.compile import Floats, Longs

NAMES = ("theta", "start", "mass", "keys", "count", "key", "reward")


def gradient_parts(agent: GradientRLSVI, arrays: dict[str, Any]) -> dict[str, Any]:
    """The header of what was learned; its arrays are put to the others."""
    learner: Any = agent._learner
    if learner is None or learner.episodes == 0:
        return {}
    flat = [seen for past in learner.past for seen in past]
    arrays |= {name: getattr(learner, name) for name in ("theta", "start", "mass", "keys")}
    arrays["count"] = np.array([len(past) for past in learner.past])
    arrays["key"] = np.array([seen.key for seen in flat], np.uint64)
    arrays["reward"] = np.array([seen.reward for seen in flat])
    for name in ("phi", "following"):
        rows: list[Sparse] = [getattr(seen, name) for seen in flat]
        arrays[f"{name}.rows"] = np.array([len(row.start) - 1 for row in rows])
        arrays[f"{name}.sizes"] = np.concatenate([np.diff(row.start) for row in rows])
        arrays[f"{name}.index"] = np.concatenate([row.weight for row in rows])
        arrays[f"{name}.value"] = np.concatenate([row.value for row in rows])
    return {"features": [learner.features.blocks, learner.features.dim], "episodes": learner.episodes}


def restore_gradient(
    agent: GradientRLSVI, learner: GradientLearner, header: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Give an agent what it had learned, after checking that it fits together."""
    for name in ("theta", "start", "mass", "keys"):
        expected, array = getattr(learner, name), arrays[name]
        if array.shape != expected.shape or array.dtype != expected.dtype or not np.isfinite(array).all():
            raise ArchiveError(f"is damaged: {name} is not what it must be")
        expected[:] = array
    counts, keys, rewards = arrays["count"], arrays["key"], arrays["reward"]
    phi, following = (_rows(arrays, name, len(keys), learner.theta.shape[2]) for name in ("phi", "following"))
    if counts.shape != (learner.horizon,) or (counts < 0).any() or counts.sum() != len(keys) or (
        rewards.shape != keys.shape or not np.isfinite(rewards).all() or any(len(row.start) != 2 for row in phi)
    ):  # fmt: skip
        raise ArchiveError("is damaged: its transitions do not fit together")
    seen = [Transition(int(k), float(r), x, y) for k, r, x, y in zip(keys, rewards, phi, following, strict=True)]
    ends = np.cumsum(counts)
    learner.past = [seen[end - count : end] for end, count in zip(ends, counts, strict=True)]
    for h, past in enumerate(learner.past):
        for one in past:
            learner.touching[h, one.phi.weight] += 1.0
    learner.episodes, learner._begun = int(header["episodes"]), True
    agent._learner = learner  # type: ignore[assignment]


def _rows(arrays: dict[str, Any], name: str, many: int, weights: int) -> list[Sparse]:
    rows: Longs = arrays[f"{name}.rows"]
    sizes: Longs = arrays[f"{name}.sizes"]
    index: Longs = arrays[f"{name}.index"]
    value: Floats = arrays[f"{name}.value"]
    if (
        len(rows) != many or (rows < 0).any() or rows.sum() != len(sizes) or (sizes < 0).any()
        or sizes.sum() != len(index) or index.shape != value.shape or not np.isfinite(value).all()
        or (index.size and not 0 <= index.min() <= index.max() < weights)
    ):  # fmt: skip
        raise ArchiveError(f"is damaged: {name} points outside its tables")
    found, row, entry = [], 0, 0
    for n in rows:
        start = np.concatenate([[0], np.cumsum(sizes[row : row + n])]).astype(np.int64)
        part = slice(entry, entry + int(start[-1]))
        found.append(Sparse(start, index[part].astype(np.int64), value[part].astype(np.float64)))
        row, entry = row + int(n), part.stop
    return found
