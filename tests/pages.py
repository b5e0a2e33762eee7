"""The code on the pages of the documentation."""

import re
from pathlib import Path

HOUSE = Path(__file__).parents[1]


def blocks(page, kind="python"):
    """The code blocks of a page, as they stand."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (HOUSE / page).read_text(), flags=re.DOTALL | re.MULTILINE)
