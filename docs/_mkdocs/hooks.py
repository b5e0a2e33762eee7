"""What the site needs beyond Markdown: mathematics as MathML, the changelog, and all exports in the reference."""

import re
from pathlib import Path
from typing import Any

import rlsvi
from rlsvi._lazy import exports_of

ROOT = Path(__file__).parents[2]
EXPORTS = {  # by page: the module that offers what is described there, and the package that exports it
    "reference/agents.md": ("rlsvi", "rlsvi.agents"),
    "reference/bases.md": ("rlsvi.bases", "rlsvi.bases"),
    "reference/envs.md": ("rlsvi.envs", "rlsvi.envs"),
    "reference/problems.md": ("rlsvi.problems", None),
}
CODE_OR_MATH = re.compile(r"(```.*?^```|`[^`\n]*`)|\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL | re.MULTILINE)


def mathml(found: re.Match[str]) -> str:
    """A formula as MathML; code stays as it is."""
    code, display, inline = found.groups()
    if code:
        return code
    from latex2mathml.converter import convert

    return str(convert(display or inline, display="block" if display else "inline"))


def with_all_exports(markdown: str, page: str) -> str:
    """A page of the reference, with all that is exported and has no place of its own there at the end."""
    module, package = EXPORTS.get(page, (None, None))
    if module is None:
        return markdown
    names = rlsvi.problems.__all__ if package is None else sorted(exports_of(package))
    described = set(re.findall(r"^::: (?:\S*\.)?(\w+)$", markdown, flags=re.MULTILINE))
    more = [f"\n::: {module}.{name}\n" for name in names if name not in described]
    return markdown + "".join(["\n## More\n", *more] if more else [])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The Markdown of a page, before it is rendered."""
    if page.file.src_uri == "changelog.md":
        markdown = (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
    markdown = with_all_exports(markdown, page.file.src_uri)
    return CODE_OR_MATH.sub(mathml, markdown) if page.file.src_uri.startswith("concepts/") else markdown
