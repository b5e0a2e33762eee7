"""The paper's experiments: one folder per topic, one file per figure with its settings, runs, claims and plot.

A figure is found by its file, which defines FIGURE; no list names it. The first line of the file says what the
figure shows, and `where`, in FIGURE, what place it has among the others of its topic.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium

from rlsvi.core.checks import instead, shown

if TYPE_CHECKING:
    from rlsvi_paper.figure import Figure

for _id, _settings in {
    "rlsvi/Tetris-v0": {},
    "rlsvi/MiniTetris-v0": {"height": 4, "width": 10, "pieces": "SZ"},
}.items():
    if _id not in gymnasium.registry:
        gymnasium.register(_id, "rlsvi_paper.tetris.environment:TetrisEnv", kwargs=_settings)

_TOPICS = ("chain", "tetris", "recommendation", "extensions", "descendants", "theory")  # the order of folders


def _find(topic: str) -> dict[str, str]:
    """The figures of a topic in the order of the paper, and what they show: read from files that are not run."""
    found = []
    for path in (Path(__file__).parent / topic).glob("*.py"):
        head, _, figure = path.read_text("utf-8").partition("\nFIGURE = ")
        if figure:
            words = head.partition("\n")[0].strip('"').removesuffix(".")
            where = re.search(r'\bwhere="(.*?)"', figure)
            place = re.findall(r"\d+|\b[A-Z]\b", where[1] if where else "")
            found.append(([it.zfill(3) for it in place], path.stem.replace("_", "-"), words))
    return {name: words for _, name, words in sorted(found)}  # sections come before appendices


TOPICS = {topic: _find(topic) for topic in _TOPICS}
FIGURES = {name: words for figures in TOPICS.values() for name, words in figures.items()}


def figure_called(name: str) -> "Figure":
    """Return a figure of the paper by its name.

    Parameters
    ----------
    name
        One of FIGURES.

    Returns
    -------
    Figure
        The figure: its jobs, its claims and its plot.

    Examples
    --------
    >>> import rlsvi_paper
    >>> rlsvi_paper.figure_called("chain-regret").name
    'chain-regret'
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a figure, got {shown(name)}")
    for topic, figures in TOPICS.items():
        if name in figures:
            found: Figure = import_module(f"rlsvi_paper.{topic}.{name.replace('-', '_')}").FIGURE
            return found
    raise ValueError(f"unknown figure {shown(name)}: {instead(name, FIGURES, '`rlsvi list` shows all')}")
