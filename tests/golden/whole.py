"""Cases of whole numbers."""

import numpy as np

import rlsvi
from rlsvi.core import random

from .driving import SEED
from .learned import streams_of

AGENTS = (
    *("RLSVI", "LSVI", "IncrementalRLSVI", "GradientRLSVI", "StationaryRLSVI", "StationaryLSVI", "BoundedRLSVI"),
    *("ContinualRLSVI", "ContinualLSVI", "ContextualBandit", "ThompsonSampling", "OptimalPolicy"),
    *("PSRL", "UCRL2", "UCBVI", "LSVIUCB", "EnsembleRLSVI"),
)


def raw_streams():
    root, found = np.random.SeedSequence(5), {}
    for name, seed in (("zero", 0), ("number", 2**40 + 7), ("sequence", root), ("spawned", root.spawn(2)[1])):
        state = random.stream(seed)
        found[f"{name}: bits"] = np.array([random.bits(state) for _ in range(500)], np.uint64)
        found[f"{name}: uniform"] = np.array([random.uniform(state) for _ in range(500)])
    random.reseed(state, np.uint64(123456789))
    found["reseeded"] = state
    found["reseeded bits"] = np.array([random.bits(state) for _ in range(99)], np.uint64)
    return found


def agent_streams():
    made = {name: getattr(rlsvi, name)(seed=SEED) for name in AGENTS}
    made["spawned"] = rlsvi.RLSVI(seed=np.random.SeedSequence(3).spawn(2)[1])
    return {name: streams_of(agent) for name, agent in made.items()}


WHOLE = {"raw-streams": raw_streams, "agent-streams": agent_streams}
