"""The part of a saved file that stationary agents have of their own: the ring, theta and what was noticed."""

from typing import Any

import numpy as np

from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.noise import noise_of
from rlsvi.agents.stationary.agent import StationaryAgent
from rlsvi.agents.stationary.learner import KEPT, StationaryLearner, prior_mean_of
from rlsvi.agents.stationary.ring import FOREVER, Ring, empty_ring, pairs_of, resized
from rlsvi.agents.stationary.sweeps import Model, new_work


def learned_parts(agent: StationaryAgent) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of what was learned."""
    header: dict[str, Any] = {
        "episodes": agent.episodes,
        "longest": agent._longest,
        "diverged": agent.diverged,
        "excess": agent.excess,
    }
    arrays: dict[str, Any] = {}
    if agent._learner is not None and agent.episodes > 0:
        ring = agent._learner.ring
        ring = resized(ring, max(int(ring.size[0]), 1), max(pairs_of(ring), 1))
        arrays = {f"ring.{name}": array for name, array in ring._asdict().items()}
        arrays["theta"] = agent._learner.theta
        header["features"] = [len(ring.gram), len(ring.units)]
        header["setting"] = agent.setting
    return header, arrays


def restore(agent: StationaryAgent, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Give an agent what it had learned, after checking that it fits together and points nowhere outside."""
    agent.episodes, agent._longest = int(header["episodes"]), int(header["longest"])
    agent.diverged, agent.excess = bool(header["diverged"]), float(header["excess"])
    if agent.episodes < 0 or (agent.episodes > 0) != ("features" in header):
        raise ArchiveError("is damaged: its episodes and what was learned do not fit together")
    if "features" not in header:
        return
    agent._setting = header.get("setting", {})  # older files do not tell
    if not isinstance(agent._setting, dict):
        raise ArchiveError("is damaged: its setting must be names and values")
    (blocks, dim), task = header["features"], agent._task
    if task is None:
        raise ArchiveError("is damaged: it holds what was learned, but not of which task")
    ring = Ring(**{name: arrays[f"ring.{name}"] for name in Ring._fields})
    check_ring(ring, task.actions, blocks, dim, agent)
    mean = prior_mean_of(agent.prior_mean, (blocks, dim))
    if arrays["theta"].shape != mean.shape or arrays["theta"].dtype != np.float64:
        raise ArchiveError("is damaged: theta does not fit the features")
    if not all(np.isfinite(array).all() for array in (ring.x, ring.next_x, ring.reward, arrays["theta"])):
        raise ArchiveError("is damaged: it holds numbers that are not finite")
    model = Model(mean, *noise_of(agent.lam, agent.sigma), float(agent.gamma))
    work = new_work(ring, task.actions)
    agent._learner = StationaryLearner(None, task.actions, model, ring, work, np.array(arrays["theta"], order="C"))


def check_ring(ring: Ring, actions: int, blocks: int, dim: int, agent: StationaryAgent) -> None:
    """Refuse a ring whose arrays do not fit together."""
    dtype = ring.x.dtype
    if dtype not in (*KEPT, np.dtype(np.float64)) or dim < 1 or blocks < 1:
        raise ArchiveError(f"is damaged: features cannot be {dtype}")
    size, pairs, known = len(ring.x), ring.next_x.shape[1], agent.form == "afterstate"
    if size < 1 or pairs < 1:
        raise ArchiveError("is damaged: its ring has no room")
    expected = empty_ring(actions, blocks, np.ones(dim), dtype, known, agent.memory, 1)
    for name, wanted in expected._asdict().items():
        array, shape = getattr(ring, name), list(wanted.shape)
        if name in ("x", "block", "reward", "start", "following"):
            shape[0] = size
        elif name in ("next_x", "next_block"):
            shape[-1] = pairs
        if array.dtype != wanted.dtype or list(array.shape) != shape or not array.flags.c_contiguous:
            raise ArchiveError(f"is damaged: ring.{name} is {array.dtype}{array.shape}, expected {wanted.dtype}")
    held = int(ring.size[0])
    counts = ring.following[:held].astype(np.int64)
    if (
        int(ring.limit[0]) != (FOREVER if agent.memory is None else agent.memory)
        or not 0 <= held <= min(size, int(ring.limit[0]))
        or ring.first[0] != 0
        or ((counts < 0) | (counts > actions)).any()
        or (ring.start[:held] != np.cumsum(counts) - counts).any()
        or ring.head[0] != counts.sum()
        or counts.sum() > pairs
    ):
        raise ArchiveError("is damaged: an index in it points outside its tables")
    for array in (ring.block, ring.next_block):
        if array.min() < 0 or array.max() >= blocks:
            raise ArchiveError("is damaged: an index in it points outside its tables")
    if not (np.isfinite(ring.units).all() and np.isfinite(ring.gram).all() and np.isfinite(ring.low).all()):
        raise ArchiveError("is damaged: it holds numbers that are not finite")
