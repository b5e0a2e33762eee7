"""Events as rows of the table, and back."""

import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlsvi.core.checks import shown
from rlsvi.shop.event import KINDS, Event

OF_PRODUCTS = ("added", "removed")
WHOLE, NUMBER, FLAG = (int, np.integer), (int, float, np.integer, np.floating), (bool, np.bool_)
TYPES: dict[str, Any] = {
    **dict.fromkeys(("kind", "visit", "product"), str),
    **dict.fromkeys(("slot", "sample", "id"), WHOLE),
    **dict.fromkeys(("reward", "propensity", "at"), NUMBER),
    **{"explored": FLAG, "features": dict, "among": list},
}
OPTIONAL = {name for name, default in Event._field_defaults.items() if default is None}


def row_of(event: Event) -> dict[str, Any]:
    """Return the row of an event, after checking that the event is complete."""
    if not isinstance(event, Event):
        raise ValueError(f"events must be a list of Event, got {shown(event)}")
    for name, value in zip(Event._fields, event, strict=True):
        if not (_storable(name, value) or (value is None and name in OPTIONAL)):
            raise ValueError(f"{name} of an event must be {_wanted(name)}, got {shown(value)}")
    kind, visit, product, slot, reward, propensity, explored, sample, features, at, _, among = event
    if bool(visit) is (kind in OF_PRODUCTS) or bool(product) is (kind == "closed"):
        raise ValueError(f"{event!r:.300} must name a visit, a product or both, as its kind has them")
    if (reward is None) is (kind == "answered") or (reward is not None and not math.isfinite(reward)):
        raise ValueError(f"{event!r:.300} must have a finite reward if it is an answer, and none otherwise")
    return {
        "kind": kind,
        "visit": visit,
        "product": product,
        "slot": None if slot is None else int(slot),
        "reward": None if reward is None else float(reward),
        "propensity": None if propensity is None else float(propensity),
        "explored": None if explored is None else bool(explored),
        "sample": None if sample is None else int(sample),
        "features": _written("features", features),
        "among": _written("among", among),
        "at": float(at) or time.time(),
    }


def storable_text(value: Any) -> bool:
    """Return whether a value is a text that a database can hold."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value))


def _storable(name: str, value: Any) -> bool:
    if not isinstance(value, TYPES[name]):
        return False
    value = value.item() if isinstance(value, np.generic) else value  # a float32 would overflow below
    if TYPES[name] is str:
        return storable_text(value) and (name != "kind" or value in KINDS)
    if TYPES[name] is WHOLE:
        return bool(-(2**63) <= value < 2**63)
    return TYPES[name] is not NUMBER or bool(abs(value) <= sys.float_info.max)


def _wanted(name: str) -> str:
    words: dict[Any, str] = {
        WHOLE: "a whole number of 64 bits",
        NUMBER: "a finite number",
        str: "a text",
        list: "a list of products",
    }
    words |= {FLAG: "True or False", dict: "a dictionary"}
    return f"one of {', '.join(KINDS)}" if name == "kind" else words[TYPES[name]]


def _written(name: str, value: Any) -> str | None:
    try:
        return None if value is None else json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} of an event must be what JSON can hold, got {shown(value)}: {error}") from None


def event_of(row: Sequence[Any]) -> Event:
    """Return the event of a row, whose columns are in the order of an Event's attributes."""
    kind, visit, product, slot, reward, propensity, explored, sample, features, at, number, among = row
    explored = None if explored is None else bool(explored)  # SQLite has 0 and 1
    features, among = _read(features), _read(among)
    return Event(kind, visit, product, slot, reward, propensity, explored, sample, features, at, number, among)


def _read(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) else text  # PostgreSQL has read it already
