"""What a shop replies to one request, given the events of its visit: pure functions that return new events."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlsvi.core.compile import Bools
from rlsvi.shop.events import Event
from rlsvi.shop.features import Encoder
from rlsvi.shop.ids import text_of
from rlsvi.shop.model.draws import choose, draw_of
from rlsvi.shop.requests import Close, Conflict, Feedback, NotFound, Recommend, RequestError
from rlsvi.shop.samples import ServedDraws
from rlsvi.shop.settings import ShopSettings


class Visit:
    """What has happened in a visit."""

    def __init__(self, events: list[Event]) -> None:
        self.shown: list[str] = []
        self.rewards: dict[str, float] = {}
        self.context: dict[str, Any] = {}
        self.closed = False
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Add an event to what has happened."""
        if event.kind == "recommended":
            if not self.shown:
                self.context = event.features or {}
            self.shown.append(event.product)
        elif event.kind == "answered":
            self.rewards[event.product] = event.reward or 0.0
        elif event.kind == "closed":
            self.closed = True


def recommend(
    asked: Recommend, visit: Visit, sample: ServedDraws, settings: ShopSettings
) -> tuple[int, list[str], list[Event]]:
    """Return the first slot, the products for it and the slots after it, and the events that are new."""
    name, filled, count = str(asked.visit), len(visit.shown), asked.count or 1
    context = None if asked.context is None else checked_features("context", settings.customer, asked.context)
    first = filled if asked.slot is None else asked.slot
    if filled and context is not None and context != visit.context:
        raise Conflict(f"context of visit {name!r} differs from that of its first slot: leave it out now")
    if first < filled:
        return first, visit.shown[first : first + count], []
    if visit.closed:
        raise Conflict(f"visit {name!r} is closed: name a new visit")
    if first >= settings.slots:
        raise Conflict(f"visit {name!r} was shown {filled} products, and slots = {settings.slots}: close it")
    if first > filled:
        raise Conflict(f"slot {first} of visit {name!r} cannot be filled before slot {filled}")
    stored = visit.context if filled else context or {}
    allowed = allowed_of(asked, visit, sample, settings)
    if not allowed.any():
        what = "product" if asked.among is None else "product of among"
        raise Conflict(f"no {what} is offered that visit {name!r} has not seen: close it")
    customer = settings.customer.encode_stored(stored)
    known, answers = answers_of(visit, sample, settings.reward.liked_above)
    draw = draw_of(name, sample.draws, settings.learning.seed)
    events: list[Event] = []
    for slot in range(first, min(first + count, settings.slots, first + int(allowed.sum()))):
        place, propensity, explored = choose(sample.draws, draw, customer, known, answers, allowed)
        allowed[place] = False
        events.append(
            Event(
                "recommended",
                visit=name,
                product=sample.names[place],
                slot=slot,
                propensity=propensity,
                explored=explored,
                sample=sample.last,
                features=stored if slot == 0 else None,
                among=None if asked.among is None else [str(product) for product in asked.among],
            )
        )
    return first, [event.product for event in events], events


def answers_of(visit: Visit, sample: ServedDraws, liked_above: float) -> tuple[list[int], list[float]]:
    """Return the products that a visit has answered, by number, and whether they were liked, 1 or -1."""
    known = [product for product in visit.rewards if product in sample.place]
    liked = [1.0 if visit.rewards[product] > liked_above else -1.0 for product in known]
    return [sample.place[product] for product in known], liked


def allowed_of(asked: Recommend, visit: Visit, sample: ServedDraws, settings: ShopSettings) -> Bools:
    """Return which products may be shown: offered, asked for, and new to the visit."""
    if asked.among is None:
        allowed = sample.offered.copy()
    else:
        allowed = np.zeros(len(sample.names), dtype=np.bool_)
        for product in asked.among:
            name = stored_name("among", product, settings)
            place = sample.place.get(name)
            if place is None:
                raise NotFound(f"product {name!r} of among is unknown: add it first, or leave it out")
            allowed[place] = sample.offered[place]
    for product in visit.shown:
        if product in sample.place:
            allowed[sample.place[product]] = False
    return allowed


def feedback(asked: Feedback, visit: Visit, settings: ShopSettings) -> list[Event]:
    """Return the event of an answer, or nothing if the same answer is stored already."""
    name, product = str(asked.visit), stored_name("product", asked.product, settings)
    reward = float(asked.reward)
    if product not in visit.shown:
        raise NotFound(f"product {product!r} was not recommended in visit {name!r}")
    if product in visit.rewards:
        if visit.rewards[product] == reward:
            return []
        stored = visit.rewards[product]
        raise Conflict(f"product {product!r} of visit {name!r} has the reward {stored:g} already: it is kept")
    if visit.closed:
        raise Conflict(f"visit {name!r} is closed: answers that come later than idle seconds are not stored")
    return [Event("answered", visit=name, product=product, reward=reward)]


def close(asked: Close, visit: Visit) -> list[Event]:
    """Return the event that ends a visit, or nothing if it has ended."""
    name = str(asked.visit)
    if not visit.shown:
        raise NotFound(f"visit {name!r} is unknown: recommend opens a visit")
    return [] if visit.closed else [Event("closed", visit=name)]


def stored_name(field: str, name: str | int, settings: ShopSettings) -> str:
    """Return the id of a product or visit as it is stored."""
    try:
        return text_of(field, name, settings.ids)
    except ValueError as error:
        raise RequestError(str(error)) from None


def checked_features(field: str, encoder: Encoder, features: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return features as they are stored."""
    try:
        return dict(encoder.checked(features))
    except ValueError as error:
        raise RequestError(f"{field}: {error}") from None
