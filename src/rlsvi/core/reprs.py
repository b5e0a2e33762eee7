"""How objects are displayed: values on one line, and small tables for notebooks."""

import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np


def short(value: object) -> str:
    """Return the `repr` of a value on one line, abbreviating long arrays."""
    with np.printoptions(threshold=10, edgeitems=1):
        return re.sub(r"\n\s*", " ", repr(value))


def html_table(title: str, rows: Iterable[Iterable[object]], header: Sequence[str] = (), note: str = "") -> str:
    """Return a table with a caption: the title in bold, then the note. All text is escaped."""
    caption = (
        f"<caption style='caption-side: top; text-align: left'><b>{escape(title)}</b> {escape(note)}</caption>"
    )
    head = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    body = "".join(_row(cells, "td") for cells in rows)
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _row(cells: Iterable[object], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
