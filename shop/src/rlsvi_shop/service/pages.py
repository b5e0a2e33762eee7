"""The pages of a shop, to watch it and of all its requests: each is a document that loads nothing else."""

import json
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from rlsvi.html import document, style_of

HEADERS = {
    "Cache-Control": "no-store",
    # Beside the document's own policy: in nobody else's frame, and the script cannot make HTML of texts.
    "Content-Security-Policy": "frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null"}


@cache
def watch_page() -> str:
    """Return the page at /, which shows what /statistics returns."""
    folder = files("rlsvi_shop.service")
    body, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "js"))
    return document("The shop", body, style_of("rlsvi_shop.service", "page.css"), script, live=True)


def reference_page(openapi: dict[str, Any]) -> str:
    """Return the page at /docs: all requests of an OpenAPI document."""
    about = openapi["info"]
    requests = [(method, path, each) for path, some in openapi["paths"].items() for method, each in some.items()]
    sections = "\n".join(_request(*each) for each in requests)
    body = f"""<h1>{escape(about["title"])}</h1>
{"".join(f"<p>{_text(part)}</p>" for part in about["description"].split(chr(10) * 2))}
<p>The same as JSON, for programs: <a href="openapi.json">openapi.json</a>. <a href="./">Watch the shop</a>.
Version {escape(about["version"])}.</p>
{sections}"""
    return document(
        f"{escape(about['title'])}: all requests", body, style_of("rlsvi_shop.service", "reference.css")
    )


def _request(method: str, path: str, about: dict[str, Any]) -> str:
    name = f"{method.upper()} {path}"
    parts = [f"<h2><b>{method.upper()}</b> {escape(path)}</h2>", f"<p>{_text(about.get('description', ''))}</p>"]
    parts += [
        f"<p><code>{escape(each['name'])}</code>: in the {each['in']}</p>" for each in about.get("parameters", [])
    ]
    if "requestBody" in about:
        parts.append(_fields(_json_of(about["requestBody"])["schema"]))
    answer = _json_of(about["responses"].get("200", {})).get("example")
    if answer is not None:
        parts.append(f'<p class="muted">Answer, for example</p><pre>{escape(json.dumps(answer))}</pre>')
    errors = {code: each["description"] for code, each in about["responses"].items() if code != "200"}
    parts.append("".join(f"<p><code>{code}</code> {_text(why)}</p>" for code, why in errors.items()))
    return f'<section aria-label="{escape(name)}">{"".join(parts)}</section>'


def _fields(schema: dict[str, Any]) -> str:
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in _rows(schema, ""))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Field", "Type", "Meaning"))
    return f'<p class="muted">Body</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _rows(schema: dict[str, Any], before: str) -> Iterator[tuple[str, str, str]]:
    for name, each in schema.get("properties", {}).items():
        needed = "" if name in schema.get("required", ()) else "Optional."
        words = " ".join(filter(None, (_text(each.get("description", "")), needed)))
        yield f"<code>{escape(before + name)}</code>", escape(_type(each)), words
        yield from _rows(each.get("items", {}), f"{before}{name}[].")


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"] if each.get("type") != "null"))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_type(inner)} by name" if isinstance(inner, dict) else "object"
    limit = f", at most {schema['maxLength']} characters" if "maxLength" in schema else ""
    return TYPES.get(kind, str(kind)) + limit


def _json_of(content: dict[str, Any]) -> dict[str, Any]:
    return content.get("content", {}).get("application/json", {})  # type: ignore[no-any-return]


def _text(words: str) -> str:
    """Return a text of the document as HTML: what stands between backquotes is code."""
    parts = escape(" ".join(words.split())).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
