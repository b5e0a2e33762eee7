"""What a stop of the tour leaves for the page."""

from typing import NamedTuple


class Exhibit(NamedTuple):
    """A picture, a sentence on what it shows, and the lines that make it."""

    name: str
    title: str
    sentence: str
    code: str
    picture: bytes
    kind: str  # "image/gif" or "image/svg+xml"
    caption: str = ""
