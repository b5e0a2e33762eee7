"""What a person looks at if an agent does not learn, and one sentence of advice."""

from dataclasses import dataclass

import numpy as np

from rlsvi.agents.no_progress import FIRST_EPISODES
from rlsvi.core.compile import Floats
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


def returns_in_words(returns: Floats, episodes: int) -> str:
    """Return the returns of the first episodes, of recent ones and the best, as far as they are known."""
    known, first, last = len(returns), returns[:FIRST_EPISODES], recent(returns)
    since = "" if known == episodes else f", in the last {known} episodes, the only ones known here"
    return (
        f"{first.mean():.4g} in the first {len(first)}, {last.mean():.4g} in the last {len(last)}, at best "
        f"{returns.max():.4g}{since}"
    )


def recent(returns: Floats) -> Floats:
    """Return the last quarter of all returns, at least one."""
    return returns[-max(1, len(returns) // 4) :]


def rise(before: Floats, after: Floats) -> bool:
    """Return whether returns are larger after than before, beyond their noise."""
    noise = np.sqrt(before.var() / len(before) + after.var() / len(after))
    return bool(after.mean() > before.mean() + noise)
