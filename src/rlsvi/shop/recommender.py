"""A shop that learns: products for the slots of visits, rewards for the products, all stored in a database."""

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from rlsvi.core.checks import flag, shown, whole
from rlsvi.shop import replies
from rlsvi.shop.catalogue import added, removed
from rlsvi.shop.events import Event, Events, StoreError, Writer
from rlsvi.shop.follower import Follower
from rlsvi.shop.ids import check_names, name_of
from rlsvi.shop.model.draws import Draws
from rlsvi.shop.replies import Visit, stored_name
from rlsvi.shop.requests import (
    Close,
    Feedback,
    ProductRequest,
    Recommend,
    RequestError,
    ShopRequest,
    a_list,
    an_instance,
)
from rlsvi.shop.samples import NotReady, SampleFile, ServedDraws, sample_of, with_catalogue
from rlsvi.shop.settings import LearningSettings, ShopSettings, settings_of

Id = str | int
LATE = 120.0  # seconds without a step after which the learner is late
OFTEN = 3  # failures of the learner in a row
REFUSED = 10.0  # seconds after a transaction failed in which the shop counts as one that cannot store
WRITTEN = 1.0  # seconds after a transaction in which no other one is needed to know that writing is possible


class Recommender:
    """RLSVI for a shop (section 6.3 of the paper): what a customer saw and liked influences what comes next.

    Every call is one transaction in the shop's database: when it returns, it is stored. Nothing else is kept, so
    that any number of processes may serve the same shop.

    Parameters
    ----------
    settings : the shop's settings: a `ShopSettings`, the path of a file shop.toml, or None for `options` alone.
    learning : whether this process learns. If not, it takes the samples that `rlsvi learn-shop` writes. It may
        also be the section of the settings of this name, such as `learning={"draws": 32}`, if `settings` is None:
        then this process learns. One that does not learn needs `ShopSettings(learning={...})` for it.
    every : number of visits that end in this process between two samples. If None, 3% of the visits learned from
        or, if they are fewer, of those that `learning.remember` allows. `learn` draws one at any time.
    options : settings by name, such as `slots=3`, instead of `settings`.

    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> shop = Recommender(database=f"sqlite:///{folder.name}/shop.db", slots=2)
    >>> shop.add("tea"), shop.add("coffee"), shop.add("cocoa")
    (None, None, None)
    >>> product = shop.recommend("ann")
    >>> shop.feedback("ann", product, 1.0)
    >>> len({product, shop.recommend("ann")})
    2
    >>> shop.close("ann")
    >>> shop.stop()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        settings: ShopSettings | str | os.PathLike[str] | None = None,
        *,
        learning: bool | Mapping[str, Any] | LearningSettings = True,
        every: int | None = None,
        **options: Any,
    ) -> None:
        if isinstance(learning, Mapping | LearningSettings):
            options, learning = {**options, "learning": learning}, True
        self.settings = settings_of(settings, options)
        self.every, learns = None if every is None else whole("every", every, 1), flag("learning", learning)
        self.sample: ServedDraws | None = None
        self._lock = threading.RLock()
        self._renewing = threading.Lock()  # taken before the other one
        self._catalogue = 0  # the last event that changed the catalogue that is served
        self._ended = 0  # visits that ended here since the last sample
        self._written = self._refused = -math.inf  # when a transaction was last committed, and last failed
        self._reason: StoreError | None = None  # why it failed
        self._due = True  # whether there is another reason for new samples
        self.events = Events(self.settings.database, sync=self.settings.sync)
        self._file = SampleFile(self.settings, self.events)
        try:
            check_names(self.events.catalogue(), self.settings.ids)
            self._follower = Follower(self.settings, self.events) if learns else None
        except BaseException:
            self.events.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Recommender of {self.settings.slots} slots, {self.events!r}>"

    def stop(self) -> None:
        """Close the database. A process that learns saves what it has learned, so that it starts quickly again.

        It may be called again, and does nothing then.
        """
        with self._lock:
            try:
                if self._follower is not None:
                    self._follower.stop()
            finally:
                self.events.close()

    # ---- visits -------------------------------------------------------------------------------------------

    def recommend(
        self,
        visit: Id,
        context: Mapping[str, Any] | None = None,
        *,
        among: Iterable[Id] | None = None,
        count: int | None = None,
        slot: int | None = None,
    ) -> Any:
        """Return a product for the next slot of a visit, which is opened if it is new.

        Parameters
        ----------
        visit : the visit, a string or an integer.
        context : what is known of the customer, by the names of the settings; with the first slot.
        among : the products to choose from. If None, all that are offered.
        count : return a list of so many products, for as many slots; fewer if no more slots or products are left.
        slot : the slot to fill, from 0. If it is filled already, what it was filled with is returned again.
        """
        asked = Recommend.of(
            visit=_plain(visit),
            context=_plain_values(context),
            among=None if among is None else [_plain(each) for each in a_list("among", among, "products")],
            count=_plain(count),
            slot=_plain(slot),
        )
        _, products = self._result(asked)
        return products[0] if count is None else products

    def feedback(self, visit: Id, product: Id, reward: float) -> None:
        """Store the reward of a product that was recommended. The same answer may be repeated, and counts once."""
        self._result(Feedback.of(visit=_plain(visit), product=_plain(product), reward=_plain(reward)))

    def close(self, visit: Id) -> None:
        """End a visit, so that it is learned from. Slots without an answer teach nothing."""
        self._result(Close.of(visit=_plain(visit)))

    def handle(self, requests: Sequence[ShopRequest]) -> list[Any]:
        """Answer several requests in one transaction: for each its result, or the exception that it raises."""
        requests = a_list("requests", requests, "Recommend, Feedback and Close")
        for request in requests:
            an_instance("requests", request, (Recommend, Feedback, Close), "Recommend, Feedback or Close")
        try:
            if any(isinstance(request, Recommend) for request in requests):
                self._find_samples()
            with self._lock:
                self._learn_if_due()
                return self._handled(requests)
        except StoreError as error:
            self._refused, self._reason = time.monotonic(), error
            return [error] * len(requests)

    def _handled(self, requests: Sequence[ShopRequest]) -> list[Any]:
        with self.events.writing() as transaction:
            self._follow_catalogue(transaction)
            found = transaction.visits({str(request.visit) for request in requests})  # type: ignore[attr-defined]
            visits = {name: Visit(events) for name, events in found.items()}
            new: list[Event] = []
            results = [self._reply(request, visits, new) for request in requests]
            if new:
                transaction.append(new)
        if new:
            self._written, self._reason = time.monotonic(), None
        self._ended += sum(self._has_ended(visits[name]) for name in {event.visit for event in new})
        return results

    def _reply(self, request: ShopRequest, visits: dict[str, Visit], new: list[Event]) -> Any:
        """Return the result of a request, and append its events to those that are new."""
        visit = visits.setdefault(str(request.visit), Visit([]))  # type: ignore[attr-defined]
        result: Any = None
        try:
            stored_name("visit", request.visit, self.settings)  # type: ignore[attr-defined]
            if isinstance(request, Recommend):
                slot, products, events = replies.recommend(request, visit, self._ready(), self.settings)
                result = slot, [self.product_id(product) for product in products]
            elif isinstance(request, Feedback):
                events = replies.feedback(request, visit, self.settings)
            else:
                events = replies.close(request, visit)  # type: ignore[arg-type]
        except Exception as error:
            return error
        for event in events:
            visit.take(event)
        new += events
        return result

    def _result(self, request: ShopRequest) -> Any:
        result = self.handle([request])[0]
        if isinstance(result, Exception):
            raise result
        return result

    def _has_ended(self, visit: Visit) -> bool:
        return visit.closed or len(visit.rewards) == self.settings.slots

    # ---- products -----------------------------------------------------------------------------------------

    @property
    def products(self) -> list[Id]:
        """The products that are offered, in the order in which they were added."""
        current = self.events.catalogue().items()
        return [self.product_id(product) for product, event in current if event.kind == "added"]

    def add(self, product: Id, features: Mapping[str, Any] | None = None) -> None:
        """Offer a product from now on, with features by the names of the settings, or change its features."""
        self._offer([ProductRequest.of(product=_plain(product), features=_plain_values(features))])

    def add_all(self, products: Mapping[Id, Mapping[str, Any] | None]) -> None:
        """Offer several products: all of them, or none if one is refused."""
        example = "a dictionary of products and their features, such as {'tea': {'price': 3}, 'water': None}"
        an_instance("products", products, Mapping, example)
        asked = []
        for product, features in products.items():
            try:
                asked.append(ProductRequest.of(product=_plain(product), features=_plain_values(features)))
            except RequestError as error:
                raise RequestError(f"products, at {shown(product)}: {error}") from None
        self._offer(asked)

    def _offer(self, asked: list[ProductRequest]) -> None:
        self._change(lambda catalogue: added(asked, catalogue, self.settings))

    def remove(self, product: Id) -> None:
        """Stop offering a product. What was learned of it is kept."""
        name = stored_name("product", _plain(product), self.settings)
        self._change(lambda catalogue: removed(name, catalogue))

    def described_products(self) -> list[dict[str, Any]]:
        """Return every product, also those removed, with its features and what is known of its reward."""
        found, sample = [], self.sample
        for name, event in self.events.catalogue().items():
            value, spread = (None, None) if sample is None else sample.value_of(name)
            offered, features = event.kind == "added", event.features or {}
            found.append(
                {
                    "product": self.product_id(name),
                    "features": features,
                    "offered": offered,
                    "value": value,
                    "spread": spread,
                }
            )
        return found

    def product_id(self, name: str) -> Id:
        """Return a product's id as the shop's settings have it, from its text."""
        an_instance("name", name, str, "the text of a product")
        try:
            return name_of(name, self.settings.ids)
        except ValueError as error:
            raise RequestError(str(error)) from None

    def _change(self, events_of: Callable[[dict[str, Event]], list[Event]]) -> None:
        """Append the events that change the catalogue."""
        with self._lock:
            with self.events.writing() as transaction:
                events = events_of(transaction.catalogue())
                transaction.append(events)
            self._due = self._due or bool(events)

    # ---- learning -----------------------------------------------------------------------------------------

    def learn(self) -> None:
        """Take all new events, and draw new samples of the posterior; see `every`."""
        if self._follower is None:
            raise RuntimeError("this process does not learn: the learner does, or set learning=True")
        with self._lock:
            self._follower.catch_up()
            self._use(*self._follower.refresh())
            self._ended, self._due = 0, False

    def renew(self) -> bool:
        """Take the samples of the learner if they are newer than those in use; return whether they are.

        Samples of another database, or of customers or products with other features, are left where they are.
        """
        with self._renewing:
            newer = self._file.newer()
            if newer is None:
                return False
            try:
                self._use(*newer)
            except BaseException:
                self._file.again()
                raise
            return True

    def health(self) -> dict[str, Any]:
        """Return what is served, or raise an error if the shop cannot answer, store or learn."""
        self._find_samples()
        last, sample, now = self.events.last(), self._ready(), time.time()
        if self._reason is not None and time.monotonic() - self._refused < REFUSED:
            raise self._reason
        if time.monotonic() - self._written >= WRITTEN:
            self.events.check_writing()
            self._written = time.monotonic()
        at, failures, failure = (now, 0, "") if self._follower is not None else self.events.learner_state()
        if failures >= OFTEN:
            raise NotReady(
                f"the learner has failed {failures} times in a row ({failure}), and its log says why: "
                f"the samples are {max(0.0, now - sample.at):.0f} seconds old"
            )
        age = None if at is None else max(0.0, now - at)
        return {
            "events": last,
            "sample": sample.last,
            "sampled_at": sample.at,
            "products": int(sample.offered.sum()),
            "slots": self.settings.slots,
            "learner": "late" if age is None or age > LATE else "ok",
            "learner_age": age,
        }

    def _find_samples(self) -> None:
        """Without samples, look for the learner's, so that all processes can answer as soon as there are some."""
        if self.sample is None and self._follower is None:
            with contextlib.suppress(Exception):  # whoever calls `renew` is told
                self.renew()

    def _learn_if_due(self) -> None:
        if self._follower is None:
            return
        known = min(self._follower.learner.visits, self.settings.learning.remember)
        if self._due or self._ended >= (self.every or 1 + 0.03 * known):
            self.learn()

    def _use(self, draws: Draws, header: dict[str, Any]) -> None:
        """Serve with these samples from now on."""
        catalogue = self.events.catalogue()
        sample = sample_of(draws, header, catalogue, self.settings.product)
        with self._lock:
            self.sample, self._catalogue = sample, _last(catalogue)

    def _follow_catalogue(self, transaction: Writer) -> None:
        """Offer what was added and no longer what was removed, by any process, before this transaction."""
        if self.sample is not None and transaction.changed() != self._catalogue:
            catalogue = transaction.catalogue()
            self.sample = with_catalogue(self.sample, catalogue, self.settings.product)
            self._catalogue = _last(catalogue)

    def _ready(self) -> ServedDraws:
        if self.sample is None:
            raise NotReady(self._file.why)
        return self.sample


def _last(catalogue: Mapping[str, Event]) -> int:
    return max((event.id for event in catalogue.values()), default=0)


def _plain(value: Any) -> Any:
    """Return a number of NumPy as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _plain_values(features: Any) -> Any:
    """Return features with numbers of Python; what are no features, a request refuses."""
    return {name: _plain(value) for name, value in features.items()} if isinstance(features, Mapping) else features
