"""What the reproduction found that the paper does not say: findings.md as HTML, each finding folded."""

import re
from html import escape
from importlib.resources import files

from rlsvi.paper.report.elements import table


def findings_section() -> str:
    """All findings."""
    source = files("rlsvi.paper.report").joinpath("findings.md").read_text("utf-8")
    _, *parts = re.split(r"^## ", source, flags=re.MULTILINE)
    return f"""<section id="findings" aria-labelledby="title-findings">
<h2 id="title-findings">What was found that the paper does not say</h2>
{"".join(_finding(i, *part.split(chr(10), 1)) for i, part in enumerate(parts, 1))}
</section>"""


def _finding(number: int, title: str, body: str) -> str:
    return f"""<details class="finding" id="finding-{number}">
<summary><span class="words">{inline(title)}</span></summary>
<div class="behind">{blocks(body)}</div>
</details>
"""


def blocks(markdown: str) -> str:
    """Paragraphs, lists with a dash and tables, which blank lines separate."""
    return "\n".join(map(_block, re.split(r"\n\s*\n", markdown.strip())))


def _block(source: str) -> str:
    if source.startswith("|"):
        rows = [re.split(r" ?\| ?", line.strip().strip("|").strip()) for line in source.splitlines()]
        return table([[inline(cell) for cell in row] for row in [rows[0], *rows[2:]]])
    if source.startswith("- "):
        items = re.split(r"^- ", source, flags=re.MULTILINE)[1:]
        return f"<ul>{''.join(f'<li>{inline(item)}</li>' for item in items)}</ul>"
    return f"<p>{inline(source)}</p>"


def inline(source: str) -> str:
    """Code, links, emphasis and characters after a backslash; all else is as it stands."""
    parts = re.split(r"`([^`]*)`", source)
    return "".join(f"<code>{escape(part)}</code>" if i % 2 else _prose(part) for i, part in enumerate(parts))


def _prose(source: str) -> str:
    """Links to other pages of the documentation, which do not come with the report, are left as words."""
    html = re.sub(r"\\([\\*_\[\]])", lambda found: f"&#{ord(found[1])};", escape(source))
    html = re.sub(r"\[([^\]]+)\]\((https://[^)\s]+)\)", r'<a href="\2">\1</a>', html)
    html = re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", html)
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html, flags=re.DOTALL)
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", html, flags=re.DOTALL)
