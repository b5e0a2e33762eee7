"""HTML: whole pages that load nothing else, and tables. Objects show themselves with it in notebooks."""

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

import numpy as np


def document(title: str, body: str, style: str, script: str = "", *, live: bool = False) -> str:
    """Return a self-contained file: browsers use its own style sheet and script, and load and run nothing else.

    With `live` its script may ask the server that the page came from.
    """
    hashes = [f"'sha256-{b64encode(sha256(it.encode()).digest()).decode()}'" for it in (style, script) if it]
    server = "connect-src 'self'; " if live else ""
    sources = f"default-src 'none'; style-src {'; script-src '.join(hashes)}; {server}img-src data:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{sources}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""


def style_of(package: str, name: str = "style.css") -> str:
    """Return a style sheet of a package, after the colours that all pages share."""
    sheets = files("rlsvi").joinpath("colours.css"), files(package).joinpath(name)
    return "".join(sheet.read_text("utf-8") for sheet in sheets)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> str:
    """Return a table of cells that are HTML already."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{caption}{f'<thead><tr>{top}</tr></thead>' if top else ''}<tbody>{body}</tbody></table>"


def html_table(title: str, rows: Iterable[Iterable[object]], header: Sequence[str] = (), note: str = "") -> str:
    """Return a table with a caption: the title in bold, then the note. All text is escaped."""
    text = f"<b>{escape(title)}</b> {escape(note)}"
    caption = f"<caption style='caption-side: top; text-align: left'>{text}</caption>"
    return table(map(escape, header), ([escape(str(cell)) for cell in row] for row in rows), caption)


def short(value: object) -> str:
    """Return the `repr` of a value on one line, abbreviating long arrays."""
    with np.printoptions(threshold=10, edgeitems=1):
        return re.sub(r"\n\s*", " ", repr(value))
