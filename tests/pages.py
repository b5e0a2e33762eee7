"""The code on the pages of the documentation, to be executed."""

import re
from pathlib import Path

HOUSE = Path(__file__).parents[1]


def blocks(page, kind="python"):
    """The code blocks of a page, as they stand."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (HOUSE / page).read_text(), flags=re.DOTALL | re.MULTILINE)


def commands(page):
    """The rlsvi commands of a page, without the first word."""
    return re.findall(r"^rlsvi (.*)$", (HOUSE / page).read_text(), flags=re.MULTILINE)


def execute(page, names=None, skip=0):
    """Run the Python of a page from top to bottom, as one program; the names it leaves."""
    names = {} if names is None else names
    for block in blocks(page)[skip:]:
        exec(compile(block, page, "exec"), names)
    return names
