"""From the events of a shop, in order, to samples of the posterior."""

import time
from typing import Any


from rlsvi.core.checks import finite
from rlsvi.shop.chains import Chains
from rlsvi.shop.draws import Draws
from rlsvi.shop.event import Event
from rlsvi.shop.histories import OpenVisit
from rlsvi.shop.sizes import Sizes


class ShopLearner:
    """Takes events in the order of their numbers; `refresh` turns what they say into new samples.

    A visit is learned from when it is complete, that is all its slots are filled and answered, or when it is closed.
    Answers that come later are not learned from. The samples depend on the settings, the order of events, and
    between which of them `refresh` was called, and on nothing else.

    Attributes
    ----------
    last : the number of the last event taken.
    open : the visits that are going on, by name; `open[name].at` is the time of the last event.
    products : the number of each product, in the order in which they were added.
    late : answers that came after their visit had ended.
    """

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        learning = settings.learning
        sizes = Sizes(settings.slots, settings.customer.width, settings.product.width, learning.history)
        self.chains = Chains(
            sizes,
            draws=learning.draws,
            exploration=learning.exploration,
            remember=learning.remember,
            seed=learning.seed,
            lam=learning.lam,
            sigma=learning.sigma,
            unit=settings.reward.unit,
        )
        self.products: dict[str, int] = {}
        self.open: dict[str, OpenVisit] = {}
        self.last = self.late = self.refreshed_at = 0
        self.refreshed_event = 0

    def take(self, event: Event) -> None:
        """Take the next event. A wrong one is refused with a ValueError, and changes nothing."""
        if event.id <= self.last:
            raise ValueError(
                f"event {event.id} comes after event {self.last}: events are taken in order of their id"
            )
        try:
            {
                "added": self._added,
                "removed": self._removed,
                "recommended": self._recommended,
                "answered": self._answered,
                "closed": self._closed,
            }[event.kind](event)
        except KeyError:
            raise ValueError(f"event {event.id} is of an unknown kind {event.kind!r:.80}") from None
        self.last = event.id

    @property
    def visits(self) -> int:
        """The number of visits learned from."""
        return self.chains.learned

    @property
    def due(self) -> bool:
        """Whether the data have grown by 3% since the last refresh, or products were added."""
        fresh = self.chains.learned - self.refreshed_at
        return fresh > 0.03 * self.refreshed_at or self.chains.weight.shape[2] < len(self.products)

    def refresh(self) -> Draws:
        """Return new samples of the posterior, given all events taken so far."""
        draws = self.chains.refresh()
        self.refreshed_at, self.refreshed_event = self.chains.learned, self.last
        return draws

    def header(self) -> dict[str, Any]:
        """Return what a file of the newest samples says about them."""
        return {
            "event": self.refreshed_event,
            "products": list(self.products)[: self.chains.weight.shape[2]],
            "ids": self.settings.ids,
            "seed": self.chains.seed,
            "visits": self.refreshed_at,
            "ridge": self.chains.ridges.own,
            "shared_ridge": self.chains.ridges.shared,
            "sigma": self.chains.sigma,
            "at": time.time(),
        }

    def idle(self, before: float) -> list[str]:
        """Return the visits whose last event came before a time, in seconds since 1970."""
        return [name for name, visit in self.open.items() if visit.at < before]

    def _added(self, event: Event) -> None:
        z = encoded(self.settings.product, event)
        a = self.products.get(event.product)
        if a is None:
            self.products[event.product] = self.chains.add_product(z)
        else:
            self.chains.offered[a] = True

    def _removed(self, event: Event) -> None:
        self.chains.offered[self._product(event)] = False

    def _recommended(self, event: Event) -> None:
        a, visit = self._product(event), self.open.get(event.visit)
        if visit is None and event.slot != 0:
            return  # the visit was complete: all products that there were had been shown
        if visit is None:
            visit = OpenVisit(encoded(self.settings.customer, event).tolist(), event.at)
        if event.slot != len(visit.product) or event.slot >= self.settings.slots or a in visit.product:
            raise ValueError(
                f"event {event.id} shows product {event.product!r:.80} in slot {event.slot} of visit "
                f"{event.visit!r:.80}, which has {len(visit.product)} of {self.settings.slots} slots filled"
            )
        visit.show(a)
        visit.at = event.at
        self.open[event.visit] = visit

    def _answered(self, event: Event) -> None:
        a, visit = self._product(event), self.open.get(event.visit)
        reward = float(finite("reward", event.reward))
        if visit is None:
            self.late += 1
            return
        if a not in visit.product or visit.x[visit.product.index(a)] != 0:
            raise ValueError(
                f"event {event.id} answers product {event.product!r:.80}, which visit {event.visit!r:.80} was not "
                f"shown or has answered before"
            )
        visit.answer(visit.product.index(a), reward, reward > self.settings.reward.liked_above)
        visit.at = event.at
        if len(visit.product) == min(self.settings.slots, len(self.products)) and visit.answered:
            self._end(event.visit)

    def _closed(self, event: Event) -> None:
        if event.visit in self.open:
            self._end(event.visit)

    def _end(self, name: str) -> None:
        self.chains.learn(self.open.pop(name))

    def _product(self, event: Event) -> int:
        if event.product not in self.products:
            raise ValueError(f"event {event.id} names product {event.product!r:.80}, which was never added")
        return self.products[event.product]


def encoded(encoder: Any, event: Event) -> Any:
    """Return the features of a customer or product as numbers, checked."""
    numbers = finite(f"features of event {event.id}", encoder.encode(event.features or {}))
    if numbers.shape != (encoder.width,):
        raise ValueError(f"features of event {event.id} must be {encoder.width} numbers, got {numbers.shape}")
    return numbers
