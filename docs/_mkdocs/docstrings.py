"""Docstrings as Markdown: parameters become a list, and the asterisk of V* stays an asterisk."""

import re
from typing import Any

from griffe import Extension, Object

PARAMETER = re.compile(r"^([a-zA-Z_][\w, ]*) : ", re.MULTILINE)
SPECIAL = re.compile(r"(`[^`]*`)|([*\[\]])")


def markdown(text: str) -> str:
    """The text of a docstring as Markdown."""
    return "\n\n".join(paragraph(part) for part in text.split("\n\n"))


def paragraph(text: str) -> str:
    """One paragraph of it. An indented one is code."""
    if text.startswith("    "):
        return text
    text = SPECIAL.sub(lambda found: found[1] or "\\" + found[2], text)
    text = re.sub(r"^(\w+)\n-+\n", r"**\1**\n\n", text)
    return PARAMETER.sub(r"\n- `\1`: ", text).lstrip("\n")


class Docstrings(Extension):
    """Rewrites every docstring when its object has been read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
