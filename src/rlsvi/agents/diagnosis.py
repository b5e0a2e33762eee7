"""What a person looks at if an agent does not learn, and one sentence of advice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlsvi.agents.no_progress import FIRST
from rlsvi.html import html_table


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The state of an agent in words: `print` shows all of it, and notebooks show a table."""

    title: str
    facts: dict[str, str]  # what was looked at, and what was found
    advice: str

    def __str__(self) -> str:
        width = max(map(len, self.facts), default=0)
        lines = [f"  {name:<{width}}  {text}" for name, text in self.facts.items()]
        return "\n".join([self.title, *lines, f"Advice: {self.advice}"])

    def __repr__(self) -> str:
        return f"Diagnosis({self.advice!r})"

    def _repr_html_(self) -> str:
        return html_table(self.title, [*self.facts.items(), ("advice", self.advice)])


def returns_in_words(returns: Sequence[float], episodes: int) -> str:
    """Return the returns of the first episodes, of recent ones and the best, as far as they are known."""
    known, recent = np.asarray(returns), recent_returns(returns)
    since = "" if len(known) == episodes else f", in the last {len(known)} episodes, the only ones known here"
    first = known[:FIRST]
    return (
        f"{first.mean():.4g} in the first {len(first)}, {recent.mean():.4g} in the last {len(recent)}, at best "
        f"{known.max():.4g}{since}"
    )


def recent_returns(returns: Sequence[float]) -> np.ndarray:
    """Return the last quarter of all returns, at least one."""
    known = np.asarray(returns, dtype=np.float64)
    return known[-max(1, len(known) // 4) :]


def have_risen(returns: Sequence[float]) -> bool:
    """Return whether recent returns are larger than those of the first episodes, beyond their noise."""
    first, recent = np.asarray(returns)[:FIRST], recent_returns(returns)
    noise = np.sqrt(first.var() / len(first) + recent.var() / len(recent))
    return bool(recent.mean() > first.mean() + noise)
