"""Names of products and visits: strings or integers outside, text in the database."""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from rlsvi.core.checks import shown

Ids = Literal["string", "integer"]
LONGEST = 200  # characters of a name


def text_of(what: str, name: Any, ids: Ids) -> str:
    """Return the text that the database holds for the name of a product or visit.

    what : what the name is of, for the message of the ValueError that a wrong name raises: "product" or "visit".
    """
    if ids == "integer":
        if isinstance(name, bool) or not isinstance(name, int | np.integer) or not -(2**63) <= name < 2**63:
            raise ValueError(f"{what} must be an integer of 64 bits, since ids = 'integer', got {shown(name)}")
        return str(int(name))
    if not isinstance(name, str):
        raise ValueError(f"{what} must be a string, since ids = 'string', got {shown(name)}")
    if not 0 < len(name) <= LONGEST:
        raise ValueError(f"{what} must have 1 to {LONGEST} characters, got {len(name)}")
    if not name.isprintable():
        odd = "control characters, line breaks or special spaces"
        raise ValueError(f"{what} must not have {odd}, got {shown(name)}")
    return str(name)


def name_of(text: str, ids: Ids) -> str | int:
    """Return the name of a product or visit that the database holds as a text."""
    if ids == "string":
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"the database has the name {shown(text)}, which is no integer: set ids = 'string'"
        ) from None


def check_names(products: Iterable[str], ids: Ids) -> None:
    """Raise a ValueError if the database has products, given as texts, that the setting `ids` cannot name."""
    for text in products:
        if text != str(name_of(text, ids)):
            raise ValueError(f"the database has the product {shown(text)}, no plain integer: set ids = 'string'")
