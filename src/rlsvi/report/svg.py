"""Drawings of matplotlib as parts of a page: no size, name or colour of their own, and nothing that can run."""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SPACE, LINKS = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "image"}
PARTS = {"g", "defs", "symbol", "use", "clipPath", "mask", "marker", "pattern"}
DRAWN = SHAPES | PARTS | {"linearGradient", "radialGradient", "stop"}
# Ink and black follow the page's text, the grid and white its background; the blue is dim on a dark one.
COLOURS = {
    "#222222": "currentColor",
    "#000000": "currentColor",
    "#d9d9d9": "var(--grid)",
    "#ffffff": "var(--paper)",
    "#0072b2": "var(--blue)",
}


def inlined(source: bytes, name: str, label: str) -> str:
    """The drawing as an element of an HTML page, its ids prefixed with `name`, read out as `label`."""
    if b"<!ENTITY" in source:
        raise ValueError("it defines entities")
    try:
        tree = ElementTree.fromstring(source)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is no XML: {error}") from error
    if tree.tag != f"{SPACE}svg" or "viewBox" not in tree.attrib:
        raise ValueError("it is no SVG with a viewBox")
    heading = f"label-{name}"
    root = Element("svg", {"viewBox": tree.attrib["viewBox"], "role": "img", "aria-labelledby": heading})
    title = ElementTree.SubElement(root, "title", {"id": heading})
    title.text = label
    root.extend(_clean(part, f"{name}.") for part in tree if _drawn(part))
    return ElementTree.tostring(root, encoding="unicode")


def _drawn(element: Element) -> bool:
    return element.tag.startswith(SPACE) and element.tag.removeprefix(SPACE) in DRAWN


def _clean(element: Element, prefix: str) -> Element:
    """A copy with only what is drawn."""
    found = {key.removeprefix(LINKS): _value(key, text, prefix) for key, text in element.attrib.items()}
    copy = Element(element.tag.removeprefix(SPACE), {key: text for key, text in found.items() if text is not None})
    copy.text, copy.tail = element.text, element.tail
    copy.extend(_clean(part, prefix) for part in element if _drawn(part))
    return copy


def _value(key: str, text: str, prefix: str) -> str | None:
    """An attribute as the page may have it; None if it may not."""
    key = key.removeprefix(LINKS)
    if key == "id":
        return prefix + text
    if key == "href":
        if text.startswith("#"):
            return f"#{prefix}{text[1:]}"
        return text if text.startswith("data:image/png;base64,") else None
    outside = re.search(r"url\(\s*(?!#)|javascript:|expression\(|@import|\\", text, re.IGNORECASE)
    if outside or not re.fullmatch(r"[\w-]+", key) or key.lower().startswith("on") or key in ("class", "src"):
        return None
    text = re.sub(r"url\(\s*#", f"url(#{prefix}", text)
    if key == "style":  # text can be enlarged as a whole, on a small screen
        text = re.sub(r"(\bfont(?:-size)?:[^;]*?)([\d.]+px)", r"\1calc(\2 * var(--zoom))", text)
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: COLOURS.get(found[0].lower(), found[0]), text, flags=re.I)
