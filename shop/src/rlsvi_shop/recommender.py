"""A shop that learns: products for the slots of visits, rewards for the products, all stored in a database."""

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rlsvi.core.checks import flag, shown, whole
from rlsvi.core.compile import Bools
from rlsvi_shop.catalogue import additions
from rlsvi_shop.events import Event, Events, StoreError
from rlsvi_shop.follower import SNAPSHOT, Follower, is_behind
from rlsvi_shop.model.draws import Draws, choose, draw_of, order_of
from rlsvi_shop.requests import (
    Close,
    Conflict,
    Feedback,
    NotFound,
    NotReady,
    ProductRequest,
    Recommend,
    RequestError,
    VisitRequest,
    check_features,
    check_names,
    check_type,
    list_of,
    name_of,
    plain,
    text_of,
)
from rlsvi_shop.samples import SampleFile, ServedDraws, first_samples, sample_of, with_catalogue
from rlsvi_shop.settings import LearningSettings, ShopSettings

Id = str | int
LATE_SECONDS = 120.0  # seconds without a step after which the learner is late
MOST_FAILURES = 3  # failures of the learner in a row
REFUSED = 10.0  # seconds after a transaction failed in which the shop counts as one that cannot store
WRITTEN = 1.0  # seconds after a transaction in which no other one is needed to know that writing is possible
log = logging.getLogger("rlsvi_shop")


class Recommender(contextlib.AbstractContextManager["Recommender"]):
    """RLSVI for a shop (section 6.3 of the paper): what a customer saw and liked influences what comes next.

    Every call is one transaction in the shop's database: when it returns, it is stored. Nothing else is kept, so
    that any number of processes may serve the same shop.

    Parameters
    ----------
    settings
        The shop's settings: a `ShopSettings`, the path of a file shop.toml, or None for `options` alone.
    learning
        Whether this process learns. If not, it takes the samples that `rlsvi learn-shop` writes, and chooses at
        random until there are some. It may also be the section of the settings of this name, such as
        `learning={"draws": 32}`, if `settings` is None: then this process learns. One that does not learn needs
        `ShopSettings(learning={...})` for it.
    every
        Number of visits that end between two samples. If None, 3% of the visits learned from or, if they are
        fewer, of those that `learning.remember` allows. `learn` draws one at any time.
    options
        Settings by name, such as `slots=3`, instead of `settings`.

    Examples
    --------
    >>> from rlsvi_shop import Recommender
    >>> shop = Recommender(database="sqlite:///shop.db", slots=2)
    >>> shop.add_all({"tea": None, "coffee": None, "cocoa": None})
    >>> product = shop.recommend("ann")
    >>> shop.feedback("ann", product, 1.0)
    >>> shop.recommend("ann") == product
    False
    >>> shop.close("ann")
    >>> shop.stop()
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
        if settings is not None and options:
            raise TypeError(f"give settings, or options such as {next(iter(options))}, not both")
        if settings is None:
            settings = ShopSettings(**options)
        self.settings = settings if isinstance(settings, ShopSettings) else ShopSettings.from_toml(settings)
        self.every = None if every is None else whole("every", every, 1)
        learns = flag("learning", learning)
        self.sample: ServedDraws | None = None
        self._lock = threading.RLock()
        self._renewing = threading.Lock()  # taken before the other one
        self._catalogue = 0  # the last event that changed the catalogue that is served
        self._written = self._refused = -math.inf  # when a transaction was last committed, and last failed
        self._reason: StoreError | None = None  # why it failed
        self._due = True  # whether the samples in use are not the learner's newest
        self.events = Events(self.settings.database, sync=self.settings.sync)
        self._file = SampleFile(self.settings, self.events)
        try:
            check_names(self.events.catalogue(), self.settings.ids)
            self._follower = Follower(self.settings, self.events) if learns else None
            if self._follower is not None and self._follower.samples is not None:
                self._use(*self._follower.samples)
                self._due = False
        except BaseException:
            self.events.close()
            raise

    def __exit__(self, *error: object) -> None:
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
        visit
            The visit, a string or an integer.
        context
            What is known of the customer, by the names of the settings; with the first slot.
        among
            The products to choose from. If None, all that are offered.
        count
            Return a list of this many products, for as many slots; fewer if no more slots or products are left.
        slot
            The slot to fill, from 0. If it is filled already, what it was filled with is returned again.

        Returns
        -------
        str, int or list
            The product, or the list of them if `count` is given.
        """
        among = None if among is None else list_of("among", among, "products")
        asked = Recommend.of(visit=visit, context=context, among=among, count=count, slot=slot)
        _, products = self._answer(asked)
        return products[0] if count is None else products

    def feedback(self, visit: Id, product: Id, reward: float | None, *, correct: bool = False) -> None:
        """Store the reward of a product that was recommended. The same answer may be repeated, and counts once.

        A reward that was wrong is corrected by `correct=True`, also after the visit has ended: the learner then
        learns as if the new one had been told in the first place, as long as the visit is among the latest
        `learning.remember`. Samples know it when the next ones are drawn, see `every`; `learn` draws them at once.
        All rewards stay in the table of events.

        Parameters
        ----------
        visit
            The visit.
        product
            The product.
        reward
            The reward; None, with `correct=True`, withdraws the one that was told.
        correct
            Whether it replaces the reward that was told before.
        """
        self._answer(Feedback.of(visit=visit, product=product, reward=reward, correct=correct))

    def close(self, visit: Id) -> None:
        """End a visit, so that it is learned from. Slots without an answer teach nothing.

        Parameters
        ----------
        visit
            The visit.
        """
        self._answer(Close.of(visit=visit))

    def handle(self, requests: Sequence[VisitRequest]) -> list[Any]:
        """Answer several requests in one transaction: for each its result, or the exception that it raises.

        Parameters
        ----------
        requests
            The requests.

        Returns
        -------
        list
            One result or exception for each.
        """
        requests = list_of("requests", requests, "Recommend, Feedback and Close")
        for request in requests:
            check_type("requests", request, (Recommend, Feedback, Close), "Recommend, Feedback or Close")
        try:
            if any(isinstance(request, Recommend) for request in requests):
                self._find_samples()
            with self._lock:
                if self._follower is not None:
                    self._follower.catch_up()
                    learner = self._follower.learner
                    enough = self.every or 1 + 0.03 * min(learner.refreshed_at, self.settings.learning.remember)
                    if self._due or self._follower.changed or learner.fresh >= enough:
                        self.learn()
                return self._store_answers(requests)
        except StoreError as error:
            self._refused, self._reason = time.monotonic(), error
            return [error] * len(requests)

    def _answer(self, request: VisitRequest) -> Any:
        (result,) = self.handle([request])
        if isinstance(result, Exception):
            raise result
        return result

    def _store_answers(self, requests: Sequence[VisitRequest]) -> list[Any]:
        new: list[Event] = []
        with self.events.writing() as transaction:
            # What any process has added before this transaction is offered, and what it removed no longer is.
            if self.sample is not None and transaction.changed() != self._catalogue:
                catalogue = transaction.catalogue()
                self._serve(with_catalogue(self.sample, catalogue, self.settings.product), catalogue)
            found = transaction.visits({str(request.visit) for request in requests})
            visits = {name: Visit(events) for name, events in found.items()}
            results = [self._result(request, visits[str(request.visit)], new) for request in requests]
            if new:
                transaction.append(new)
        if new:
            self._written, self._reason = time.monotonic(), None
        return results

    def _result(self, request: VisitRequest, visit: "Visit", new: list[Event]) -> Any:
        """Return the result of a request or its exception, and append its events to those that are new."""
        result: Any = None
        try:
            text_of("visit", request.visit, self.settings.ids)
            if isinstance(request, Recommend):
                slot, products, events = _recommend(request, visit, self._ready(), self.settings)
                result = slot, [self.product_id(product) for product in products]
            elif isinstance(request, Feedback):
                events = _feedback(request, visit, self.settings)
            elif not visit.shown:
                raise NotFound(f"visit {str(request.visit)!r} is unknown: recommend opens a visit")
            else:
                events = [] if visit.closed else [Event("closed", visit=str(request.visit))]
        except Exception as error:
            return error
        for event in events:
            visit.take(event)
        new += events
        return result

    # ---- products -----------------------------------------------------------------------------------------

    @property
    def products(self) -> list[Id]:
        """The products that are offered, in the order in which they were added."""
        catalogue = self.events.catalogue()
        return [self.product_id(name) for name, event in catalogue.items() if event.kind == "added"]

    def add(self, product: Id, features: Mapping[str, Any] | None = None) -> None:
        """Offer a product from now on, with features by the names of the settings, or change its features.

        Parameters
        ----------
        product
            The product, a string or an integer.
        features
            Its features, by the names of the settings.
        """
        self._offer([ProductRequest.of(product=product, features=features)])

    def add_all(self, products: Mapping[Id, Mapping[str, Any] | None]) -> None:
        """Offer several products: all of them, or none if one is refused.

        Parameters
        ----------
        products
            The features of each product, or None for one that has none.
        """
        check_type(
            "products",
            products,
            Mapping,
            "a dictionary of products and their features, such as {'tea': {'price': 3}, 'water': None}",
        )
        asked = []
        for product, features in products.items():
            try:
                asked.append(ProductRequest.of(product=product, features=features))
            except RequestError as error:
                raise RequestError(f"products, at {shown(product)}: {error}") from None
        self._offer(asked)

    def _offer(self, asked: list[ProductRequest]) -> None:
        with self._lock, self.events.writing() as transaction:
            transaction.append(additions(asked, transaction.catalogue(), self.settings))

    def remove(self, product: Id) -> None:
        """Stop offering a product. What was learned of it is kept.

        Parameters
        ----------
        product
            The product.
        """
        name = text_of("product", plain(product), self.settings.ids)
        with self._lock, self.events.writing() as transaction:
            known = transaction.catalogue().get(name)
            if known is None:
                raise NotFound(f"product {name!r} is unknown: it was never added")
            if known.kind != "removed":
                transaction.append([Event("removed", product=name)])

    def described_products(self) -> list[dict[str, Any]]:
        """Return every product, also those removed, with its features and what is known of its reward."""
        found, sample = [], self.sample
        for name, event in self.events.catalogue().items():
            value, spread = (None, None) if sample is None else sample.value_of(name)
            found.append(
                {
                    "product": self.product_id(name),
                    "features": event.features or {},
                    "offered": event.kind == "added",
                    "value": value,
                    "spread": spread,
                }
            )
        return found

    def product_id(self, name: str) -> Id:
        """Return a product's id as the shop's settings have it, from its text."""
        check_type("name", name, str, "the text of a product")
        return name_of(name, self.settings.ids)

    # ---- learning -----------------------------------------------------------------------------------------

    def learn(self) -> None:
        """Take all new events, and draw new samples of the posterior; see `every`.

        They are also written to a file, so that the shop goes on with them when it is started again.
        """
        if self._follower is None:
            raise RuntimeError("this process does not learn: the learner does, or set learning=True")
        with self._lock:
            self._follower.catch_up()
            self._due = True  # until they are in use
            found = self._follower.refresh()
            self._use(*found)
            self._due = False
            try:
                self._follower.write(*found)
                self._follower.save(after=SNAPSHOT)
            except (StoreError, OSError) as error:
                log.warning("samples not written", extra={"why": str(error)})

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
        at, failures, failure = self.learner_state()
        age = None if at is None else max(0.0, now - at)
        state = state_of_learner(age, failures, sample.behind, self.settings)
        if state == "failing":
            seconds = max(0.0, now - sample.at)
            old = f"the samples are {seconds:.0f} seconds old" if sample.drawn else "no samples yet"
            raise NotReady(
                f"the learner has failed {failures} times in a row ({failure}), and its log says why: {old}"
            )
        return {
            "events": last,
            "sample": sample.last,
            "sampled_at": sample.at if sample.drawn else None,
            "products": int(sample.draws.offered.sum()),
            "slots": self.settings.slots,
            "learner": state,
            "learner_age": age,
        }

    def learner_state(self) -> tuple[float | None, int, str]:
        """Return when the learner worked last, how often it has failed since then, and the last failure."""
        return self.events.learner_state() if self._follower is None else (time.time(), 0, "")

    def _find_samples(self) -> None:
        """Without samples, look for the learner's, and choose at random as long as there are none."""
        if self._follower is None and (self.sample is None or not self.sample.drawn):
            with contextlib.suppress(Exception):  # whoever calls `renew` is told
                self.renew()
            with self._renewing:
                if self.sample is None and not self._file.why:
                    catalogue = self.events.catalogue()
                    self._serve(first_samples(self.settings, catalogue), catalogue)

    def _use(self, draws: Draws, header: dict[str, Any]) -> None:
        catalogue = self.events.catalogue()
        self._serve(sample_of(draws, header, catalogue, self.settings.product), catalogue)

    def _serve(self, sample: ServedDraws, catalogue: Mapping[str, Event]) -> None:
        with self._lock:
            self.sample, self._catalogue = sample, max((event.id for event in catalogue.values()), default=0)

    def _ready(self) -> ServedDraws:
        if self.sample is None or (self._file.why and not self.sample.drawn):
            raise NotReady(self._file.why or "there are no samples to recommend with yet: ask for a product")
        return self.sample


def state_of_learner(age: float | None, failures: int, behind: float, settings: ShopSettings) -> str:
    """Return how a learner does: "failing", "late", "behind" or "ok".

    Parameters
    ----------
    age
        The seconds since it worked last; None: it never did.
    failures
        How often it has failed since then.
    behind
        How far behind the samples are, see `ServedDraws`.
    """
    if failures >= MOST_FAILURES:
        return "failing"
    if age is None or age > LATE_SECONDS:
        return "late"
    return "behind" if is_behind(behind, settings) else "ok"


# ---- the result of a request and its new events, given what has happened in its visit -----------------------


class Visit:
    """What has happened in a visit."""

    def __init__(self, events: list[Event]) -> None:
        self.shown: list[str] = []
        self.rewards: dict[str, float] = {}  # those that count now
        self.first: dict[str, float] = {}  # and as they were told first
        self.corrections: dict[str, int] = {}  # how often each was corrected
        self.context: dict[str, Any] = {}
        self.agreeing: list[float] | None = None  # how far samples agree with what was shown; []: not known
        self.closed = False
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Add an event to what has happened."""
        if event.kind == "recommended":
            if not self.shown:
                self.context = event.features or {}
            self.shown.append(event.product)
            self.agreeing = event.agreeing or []
        elif event.kind == "answered":
            if event.reward is None:
                self.rewards.pop(event.product, None)
            else:
                self.rewards[event.product] = event.reward
                self.first.setdefault(event.product, event.reward)
            self.corrections[event.product] = event.correction
        elif event.kind == "closed":
            self.closed = True


def _recommend(
    asked: Recommend, visit: Visit, sample: ServedDraws, settings: ShopSettings
) -> tuple[int, list[str], list[Event]]:
    """Return the first slot, the products for it and the slots after it, and the events that are new."""
    name, filled, count = str(asked.visit), len(visit.shown), asked.count or 1
    context = None if asked.context is None else check_features("context", settings.customer, asked.context)
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
    allowed = _allowed(asked, visit, sample, settings)
    if not allowed.any():
        what = "product" if asked.among is None else "product of among"
        raise Conflict(f"no {what} is offered that visit {name!r} has not seen: close it")
    customer = settings.customer.encode_stored(stored)
    known = [each for each in visit.shown if each in visit.rewards and each in sample.place]  # in order of slots
    answered = [sample.place[each] for each in known]
    liked = [1.0 if visit.rewards[each] > settings.reward.liked_above else -1.0 for each in known]
    seed = settings.learning.seed
    draw, order = draw_of(name, sample.draws, seed), order_of(name, seed)
    among = None if asked.among is None else [str(product) for product in asked.among]
    events: list[Event] = []
    agreeing = visit.agreeing
    for slot in range(first, min(first + count, settings.slots, first + int(allowed.sum()))):
        # Each slot has another order of products that are equally good, so that each of them has its full chance.
        place, propensity, explored, agreeing = choose(
            sample.draws, draw, customer, answered, liked, allowed, order ^ slot, slot, agreeing
        )
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
                features=None if slot else stored,
                among=among,
                agreeing=agreeing if settings.slots > 1 else None,  # otherwise nothing needs it
            )
        )
    return first, [event.product for event in events], events


def _allowed(asked: Recommend, visit: Visit, sample: ServedDraws, settings: ShopSettings) -> Bools:
    if asked.among is None:
        allowed = sample.draws.offered.copy()
    else:
        allowed = np.zeros(len(sample.names), dtype=np.bool_)
        for product in asked.among:
            name = text_of("among", product, settings.ids)
            place = sample.place.get(name)
            if place is None:
                raise NotFound(f"product {name!r} of among is unknown: add it first, or leave it out")
            allowed[place] = sample.draws.offered[place]
    allowed[[sample.place[product] for product in visit.shown if product in sample.place]] = False
    return allowed


def _feedback(asked: Feedback, visit: Visit, settings: ShopSettings) -> list[Event]:
    """Return the event of an answer or of its correction, or nothing if the same one is stored already."""
    name, product = str(asked.visit), text_of("product", asked.product, settings.ids)
    if asked.reward is None and not asked.correct:
        raise RequestError("reward must be a number: to withdraw one that was told, set correct to true")
    reward = None if asked.reward is None else float(asked.reward)
    if reward is not None:
        try:
            settings.reward.check(reward)
        except ValueError as error:
            raise RequestError(f"reward {error}: see low and high in [reward] of the settings") from None
    if product not in visit.shown:
        raise NotFound(f"product {product!r} was not recommended in visit {name!r}")
    stored = visit.first.get(product)
    if asked.correct:
        if stored is None:
            raise NotFound(f"product {product!r} of visit {name!r} has no reward to correct: leave out correct")
        if visit.rewards.get(product) == reward:
            return []
        return [Event("answered", name, product, reward=reward, correction=visit.corrections[product] + 1)]
    if stored is not None:
        if stored == reward:
            return []
        raise Conflict(
            f"product {product!r} of visit {name!r} has the reward {stored:g} already: it is kept, unless you set "
            "correct to true"
        )
    if visit.closed:
        raise Conflict(f"visit {name!r} is closed: answers that come later than idle seconds are not stored")
    return [Event("answered", visit=name, product=product, reward=reward)]
