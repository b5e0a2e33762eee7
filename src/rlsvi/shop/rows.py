"""Events as rows of the table, and back."""

import json
import math
import time
from collections.abc import Sequence
from typing import Any

from rlsvi.shop.event import Event

OF_PRODUCTS = ("added", "removed")


def row_of(event: Event) -> dict[str, Any]:
    """Return the row of an event, after checking that the event is complete."""
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
        "features": None if features is None else json.dumps(features, allow_nan=False),
        "among": None if among is None else json.dumps(among),
        "at": float(at) or time.time(),
    }


def event_of(row: Sequence[Any]) -> Event:
    """Return the event of a row, whose columns are in the order of an Event's attributes."""
    kind, visit, product, slot, reward, propensity, explored, sample, features, at, number, among = row
    explored = None if explored is None else bool(explored)  # SQLite has 0 and 1
    features, among = _read(features), _read(among)
    return Event(kind, visit, product, slot, reward, propensity, explored, sample, features, at, number, among)


def _read(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) else text  # PostgreSQL has read it already
