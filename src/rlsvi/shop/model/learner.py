"""From the events of a shop, in order, to samples of the posterior."""

import time
from typing import Any

from rlsvi.core.checks import finite
from rlsvi.shop.events import Event
from rlsvi.shop.model.chains import Chains
from rlsvi.shop.model.draws import Draws
from rlsvi.shop.model.fingerprints import schema
from rlsvi.shop.model.histories import OpenVisit
from rlsvi.shop.model.sizes import Sizes
from rlsvi.shop.settings import ShopSettings


class ShopLearner:
    """Takes events in the order of their numbers; `refresh` turns what they say into new samples.

    A visit is learned from when it is complete, that is when all its slots are filled and answered, or when it is
    closed. Answers that come later are not learned from. When a visit is closed, products without an answer have
    the reward `reward.unanswered` of the settings; they teach nothing if that is None. The samples depend on the
    settings, on the order of events, and on when `refresh` was called between them, and on nothing else.

    Attributes
    ----------
    last, last_at : the number of the last event taken, and its time.
    open : the visits that are going on, by name; `open[name].at` is the latest time of their events.
    products : the number of each product, in the order in which they were added.
    ignored : events that are not learned from: answers that came after their visit had ended, and what cannot be,
        such as a slot beyond the number of slots in the settings.
    """

    def __init__(self, settings: ShopSettings) -> None:
        self.settings = settings
        sizes = Sizes(settings.slots, settings.customer.width, settings.product.width, settings.learning.history)
        self.chains = Chains(sizes, settings.learning, settings.reward.unit)
        self.products: dict[str, int] = {}
        self.open: dict[str, OpenVisit] = {}
        self.last = self.ignored = self.refreshed_at = 0
        self.refreshed_event = 0
        self.last_at = 0.0

    def take(self, event: Event) -> None:
        """Take the next event. A wrong one is refused with a ValueError, and changes nothing."""
        if event.id <= self.last:
            raise ValueError(
                f"event {event.id} comes after event {self.last}: events are taken in order of their id"
            )
        taking = {
            "added": self._added,
            "removed": self._removed,
            "recommended": self._recommended,
            "answered": self._answered,
            "closed": self._closed,
        }
        if event.kind not in taking:
            raise ValueError(f"event {event.id} is of an unknown kind, {event.kind!r:.80}")
        taking[event.kind](event)
        self.last, self.last_at = event.id, event.at

    @property
    def visits(self) -> int:
        """The number of visits learned from."""
        return self.chains.statistics.visits

    @property
    def due(self) -> bool:
        """Whether visits have grown by 3% of those remembered since the last refresh, or products were added."""
        enough = 0.03 * min(self.refreshed_at, self.settings.learning.remember)
        return self.fresh > enough or self.chains.weight.shape[2] < len(self.products)

    @property
    def fresh(self) -> int:
        """The number of visits that the newest samples do not know."""
        return self.visits - self.refreshed_at

    def refresh(self) -> Draws:
        """Return new samples of the posterior, given all events taken so far."""
        draws = self.chains.refresh()
        self.refreshed_at, self.refreshed_event = self.chains.statistics.visits, self.last
        return draws

    def header(self) -> dict[str, Any]:
        """Return what a file of the newest samples says about them."""
        return {
            "event": self.refreshed_event,
            "products": list(self.products)[: self.chains.weight.shape[2]],
            "features": schema(self.settings),
            "ids": self.settings.ids,
            "seed": self.settings.learning.seed,
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
        z = self.settings.product.encode_stored(event.features)
        if event.product not in self.products:
            self.products[event.product] = self.chains.add_product(z)
        a = self.products[event.product]
        self.chains.products.offered[a], self.chains.products.new_z[a] = True, z

    def _removed(self, event: Event) -> None:
        a = self.products.get(event.product)
        if a is None:
            self.ignored += 1
        else:
            self.chains.products.offered[a] = False

    def _recommended(self, event: Event) -> None:
        a, visit = self.products.get(event.product), self.open.get(event.visit)
        filled = len(visit.product) if visit else 0
        if a is None or event.slot != filled or filled >= self.settings.slots or (visit and a in visit.product):
            self.ignored += 1
            return
        if visit is None:
            customer = self.settings.customer.encode_stored(event.features).tolist()
            visit = self.open[event.visit] = OpenVisit(customer, event.at)
        visit.show(a)
        visit.at = max(visit.at, event.at)  # the clock may have been set back

    def _answered(self, event: Event) -> None:
        reward = float(finite(f"reward of event {event.id}", event.reward))
        a, visit = self.products.get(event.product), self.open.get(event.visit)
        if visit is None or a not in visit.product or visit.x[visit.product.index(a)] != 0:
            self.ignored += 1
            return
        visit.answer(visit.product.index(a), reward, self._liked(reward))
        visit.at = max(visit.at, event.at)
        if len(visit.product) == min(self.settings.slots, len(self.products)) and visit.answered:
            self._end(event.visit)

    def _closed(self, event: Event) -> None:
        visit, unanswered = self.open.get(event.visit), self.settings.reward.unanswered
        if visit is None:
            return
        if unanswered is not None:
            visit.settle(unanswered, self._liked(unanswered))
        self._end(event.visit)

    def _liked(self, reward: float) -> bool:
        return reward > self.settings.reward.liked_above

    def _end(self, name: str) -> None:
        self.chains.learn(self.open.pop(name))
