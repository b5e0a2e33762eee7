"""A self-contained HTML document: browsers use its own style sheet and script, and load and run nothing else."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files


def document(title: str, body: str, style: str, script: str = "", *, live: bool = False) -> str:
    """Return the whole file. With `live` its script may ask the server that the page came from."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(style, script, live)}">
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
    own = files(package).joinpath(name)
    return "".join(file.read_text("utf-8") for file in (files("rlsvi.paper.report").joinpath("colours.css"), own))


def _policy(style: str, script: str, live: bool) -> str:
    sources = "; script-src ".join(_hash(source) for source in (style, script) if source)
    server = "connect-src 'self'; " if live else ""
    return f"default-src 'none'; style-src {sources}; {server}img-src data:; base-uri 'none'; form-action 'none'"


def _hash(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"
