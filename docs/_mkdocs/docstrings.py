"""What a docstring says of `lam, sigma` together is shown for each of them, with its own type and default."""

import re
from typing import Any

from griffe import Extension, Object

TOGETHER = re.compile(r"^(\w+(?:, \w+)+)\n((?: {4}.*(?:\n|$))+)", re.MULTILINE)


def one_each(found: re.Match[str]) -> str:
    """Parameters that share a description, as one entry each."""
    return "".join(f"{name}\n{found[2].rstrip()}\n" for name in found[1].split(", "))


class Docstrings(Extension):
    """Rewrites every docstring when its object has been read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one."""
        if obj.docstring is not None:
            obj.docstring.value = TOGETHER.sub(one_each, obj.docstring.value)
