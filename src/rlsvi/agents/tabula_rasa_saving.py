"""The part of a saved file that tabula rasa agents have of their own: counts, plan and factors."""

from typing import Any

import numpy as np

from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.tabular.agent import TabulaRasaAgent

KEPT = {"counts": None, "plan": ("Q", "V", "visits", "due"), "linear": ("U", "inv")}


def counted_parts(agent: TabulaRasaAgent) -> dict[str, Any]:
    """The arrays of what was learned."""
    if agent._known is None:
        return {}
    return {f"{part}.{name}": array for part, name, array in _arrays(agent)}


def restore_counts(agent: TabulaRasaAgent, arrays: dict[str, Any]) -> None:
    """Give an agent what it had learned, after checking that it fits together."""
    if agent._task is None:
        return
    agent._known = agent.blank(agent._task)
    for part, name, array in _arrays(agent):
        found = arrays[f"{part}.{name}"]
        if found.shape != array.shape or found.dtype != array.dtype:
            raise ArchiveError(f"is damaged: {part}.{name} is {found.dtype}{found.shape}, not {array.shape}")
        if np.isnan(found).any():
            raise ArchiveError("is damaged: it holds numbers that are not finite")
        array[:] = found
    counts = agent._known.counts
    if (counts.into.sum(axis=3) != counts.visits).any() or counts.visits.sum() != counts.steps[0]:
        raise ArchiveError("is damaged: its counts do not add up")


def _arrays(agent: TabulaRasaAgent) -> list[tuple[str, str, Any]]:
    found = []
    for part, names in KEPT.items():
        fields = getattr(agent._known, part)._asdict()
        found += [(part, name, fields[name]) for name in names or fields]
    return found
