"""What the site needs beyond Markdown.

Mathematics as MathML, the changelog, the notebooks, all exports in the reference, and what the search finds.
"""

import json
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
RESEARCH = "Reproduction"  # the section of the navigation that the search leaves out, but for its reference
# By page or folder: guides are found first.
BOOST = {"changelog.md": 0.01, "examples": 0.5, "reference": 0.02, "shop-quality.md": 0.1}
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


def search_settings(page: str, sections: list[str]) -> dict[str, Any]:
    """What the search plugin of the theme reads in the head of a page, given the sections that the page is in."""
    if RESEARCH in sections and not page.startswith("reference/"):
        return {"search": {"exclude": True}}
    return {"search": {"boost": BOOST.get(page.partition("/")[0], 1)}}


def notebook_page(notebook: dict[str, Any], name: str) -> str:
    """A notebook as Markdown: its texts, its code and the outputs stored in it, and a link to its file."""
    link = f"[Download this notebook]({name}){{ download }}"
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            shown = {
                kind: "".join(it) for kind, it in output.get("data", {"text/plain": output.get("text")}).items()
            }
            if "text/html" in shown:
                parts.append(f'<div class="output">\n{shown["text/html"]}\n</div>')
            elif "image/png" in shown:
                parts.append(
                    f'<img alt="What this code draws" src="data:image/png;base64,{shown["image/png"].strip()}">'
                )
            else:
                parts.append(f"```text\n{shown['text/plain'].rstrip()}\n```")
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n{link}\n{rest}"


def on_files(files: Any, config: Any) -> Any:
    """The files of the site, with the notebooks: a page of each, and the file to download."""
    from mkdocs.structure.files import File

    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        page = notebook_page(json.loads(path.read_text()), path.name)
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
        files.append(File.generated(config, f"examples/{path.stem}.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The Markdown of a page, before it is rendered."""
    path = page.file.src_uri
    page.meta |= search_settings(path, [section.title for section in page.ancestors])
    if path == "changelog.md":
        markdown = (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
    if path.startswith(("gallery/", "examples/")):
        page.meta["hide"] = ["toc"]  # their programs need the room
    markdown = with_all_exports(markdown, path)
    # The folder of the notebooks is beside docs/, not in it.
    markdown = re.sub(r"\]\(\.\./((?:\.\./)*examples/\w+)\.ipynb", r"](\1.md", markdown)
    return CODE_OR_MATH.sub(mathml, markdown) if path.startswith(("concepts/", "examples/")) else markdown
