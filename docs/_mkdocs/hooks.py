"""What the site needs beyond Markdown: mathematics as MathML, and the changelog of the repository."""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

ROOT = Path(__file__).parents[2]
CODE_OR_MATH = re.compile(r"(```.*?^```|`[^`\n]*`)|\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL | re.MULTILINE)


def mathml(found: re.Match[str]) -> str:
    """A formula as MathML; code stays as it is."""
    code, display, inline = found.groups()
    if code:
        return code
    return convert(display or inline, display="block" if display else "inline")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The Markdown of a page, before it is rendered."""
    if page.file.src_uri == "changelog.md":
        markdown = (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
    return CODE_OR_MATH.sub(mathml, markdown) if page.file.src_uri.startswith("concepts/") else markdown
