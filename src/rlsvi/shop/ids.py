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
    found = _parsed(text, ids)
    if found is None:
        raise ValueError(f"the database has the name {shown(text)}, which is no integer: set ids = 'string'")
    return found


def asked_name(what: str, text: str, ids: Ids) -> str | int:
    """Return the name of a product or visit that a request gives as a text, in its path.

    An integer must be written as Python writes it: 1_0, 010 and the digits of other scripts are refused, with a
    ValueError.
    """
    found = _parsed(text, ids)
    if found is None:
        words = "must be an integer in plain digits, such as 10, since ids = 'integer'"
        raise ValueError(f"{what} {words}, got {shown(text)}")
    return found


def _parsed(text: str, ids: Ids) -> str | int | None:
    """Return the name that a text stands for, None if there must be an integer and there is none."""
    if ids == "string":
        return text
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def check_names(products: Iterable[str], ids: Ids) -> None:
    """Raise a ValueError if the database has products, given as texts, that the setting `ids` cannot name."""
    for text in products:
        name_of(text, ids)
