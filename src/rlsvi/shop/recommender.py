"""A recommender for a shop: any number of customers at once, who answer in any order, late or never."""

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import KW_ONLY, InitVar, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import flag, positive, ridge_of
from rlsvi.core.compile import Floats
from rlsvi.core.interrupts import uninterrupted
from rlsvi.core.random import Seed, sequence, stream
from rlsvi.core.regression import FactorError
from rlsvi.shop import saving
from rlsvi.shop.arguments import Customer, context_of, mask_of, moment, named, product_of, settled
from rlsvi.shop.learning import give_back, if_free, learn, make_room, remember, set_prior_base, trim
from rlsvi.shop.mind import Mind, choose, new_mind, new_scratch
from rlsvi.shop.size import RECENT, SHARE, Form, fixed_bytes, numbers_of_a_sample, room_for, visits_bytes
from rlsvi.shop.visits import Open, answered, complete, new_visits, opened, show


@dataclass(eq=False, repr=False)
class Recommender:
    """RLSVI for recommendations (section 6.3), one customer per episode, at the size of a shop.

    By default it has one regression for every product and slot, as the paper; that is about 8 J N^3 bytes, and
    refused where it is more than `memory`. What is smaller: `pooled`, `sketch`, or both.

    Parameters
    ----------
    products, slots : N, and J, how many of them a customer is shown at most.
    lam, sigma : prior precision of the weights and noise of a value, as for RLSVI.
    pooled : one regression for all slots of a product, on values over a baseline for each slot.
    sketch : answers are hashed into so many places with random signs, instead of one place a product.
    every : customers between two samples; None: 1 while that is cheap, and then so many that samples go through
        about ten million numbers a customer; "later": only when `learn` is called, so that no answer waits for it.
    baseline : likes a slot that values are measured from: "recent", the rates of the last 200 customers for each
        slot, or a number. 0 is the paper's prior mean.
    clip : hold the value of going on between 0 and the number of slots left.
    myopic : value the next answer alone: a linear bandit.
    remember : customers whose targets are learned anew with every sample, at most; those before them keep the
        targets they had, and are measured from the baseline of the day as all others.
    memory : bytes that its arrays may take, at most. Where they would take more, fewer customers are remembered
        and no new ones are let in.
    seed : decides all randomness.

    Several threads may call it. A sample that one of them draws with `learn`, or a file it writes with `save`,
    holds up nobody but another `learn` or `save`.
    """

    products: int
    slots: int
    _: KW_ONLY
    lam: float = 10_000.0
    sigma: float = 1e-3**0.5
    pooled: bool = False
    sketch: int | None = None
    every: int | str | None = None
    baseline: str | float = "recent"
    clip: bool = True
    myopic: bool = False
    remember: int = 20_000
    memory: float = 4e9
    seed: InitVar[Seed] = None

    def __post_init__(self, seed: Seed) -> None:
        self._settle(self.arguments())
        hashes, choice, posterior = sequence(seed).spawn(3)
        mind = new_mind(self._form, ridge_of(self.lam, self.sigma), np.random.default_rng(hashes))
        self._begin(mind, np.stack([stream(choice), stream(posterior)]))
        set_prior_base(self)

    def _settle(self, given: dict[str, Any]) -> None:
        """Take on the arguments, once all are checked."""
        for name, value in settled(given).items():
            setattr(self, name, value)
        self._form = Form(self.products, self.slots, self.pooled, self.sketch)

    def _begin(self, mind: Mind, streams: Any) -> None:
        """Nobody came yet."""
        self._mind, self._streams = mind, streams
        self._spare = mind._replace(
            weight=np.zeros_like(mind.weight), bias=np.zeros_like(mind.bias), base=np.zeros_like(mind.base)
        )
        self._scratch, self._work = new_scratch(mind), new_scratch(mind)  # for those who ask, and to learn
        self._zero, self._all = np.zeros(self.slots + 1), np.ones(self.products, dtype=np.bool_)
        room = room_for(min(63, self.remember), self.products, self.slots)
        self._gone = new_visits(*room)  # customers remembered
        self._count = self._taken = 0  # how many they are, and how many of them are in the factors
        self._forgot = False  # whether there were others
        self._recent = np.zeros((RECENT, self.slots), dtype=np.int32)
        self._open: dict[Customer, Open] = {}
        self._open_bytes = 0
        self.customers = 0  # who came and went
        self._since = 0  # of them, since the last sample
        self._changes = 0  # in the journal
        self._name: str | None = None  # of it
        self._locks()

    def _locks(self) -> None:
        self._lock, self._learning = threading.RLock(), threading.Lock()
        self._journal: Any = None
        self._clock, self._replaying = time.time, False

    def __getstate__(self) -> dict[str, Any]:
        """A copy has locks of its own and no journal; make none while other threads call."""
        alone = ("_lock", "_learning", "_journal", "_clock")
        return {name: value for name, value in self.__dict__.items() if name not in alone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._locks()

    def __repr__(self) -> str:
        return (
            f"<Recommender of {self.slots} out of {self.products} products, {self.customers} customers learned "
            f"from, {len(self._open)} open>"
        )

    @property
    def open(self) -> list[Customer]:
        """The customers who are here, in the order they came."""
        with self._lock:
            return list(self._open)

    @property
    def bytes(self) -> int:
        """The memory its arrays take now, customers who are open and room for more included."""
        gone = visits_bytes(self._gone.given.size, self._gone.product.size)
        return fixed_bytes(self._form) + gone + self._open_bytes

    @property
    def due(self) -> bool:
        """Whether so many customers have left since the last sample that there should be a new one."""
        with self._lock:
            if isinstance(self.every, int):
                return self._since >= self.every
            given = int(self._gone.given[: self._count].sum())
            cost = numbers_of_a_sample(self._form, given, int(self._gone.first[self._count]) - given)
            return self._since > 0 and self._since * SHARE >= cost

    def arguments(self) -> dict[str, Any]:
        """What it was made with, but for the seed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def recommend(
        self, customer: Customer, context: ArrayLike | None = None, *, among: Iterable[int] | None = None
    ) -> int:
        """A product for the customer's next slot, one she does not know; it opens her visit if there is none.

        context : what she is known to like (1) and dislike (-1) from elsewhere, (N,); only with her first slot.
        among : the products to choose from, this time; None: all that are offered.

        She need not have answered what came before. The product is chosen on the newest sample.
        """
        name, known = named(customer), None if context is None else context_of(context, self.products)
        mask = self._all if among is None else mask_of("among", among, self.products)
        with self._lock, uninterrupted():
            visitor = self._open.get(name)
            if visitor is not None and context is not None:
                raise ValueError(f"context of customer {name!r} must come with her first slot: leave it out now")
            visitor = visitor or opened(self.slots, known)
            words = self._streams[0].copy()
            a = self._chosen(name, visitor, mask, words)
            if name not in self._open:
                self._let_in(name, visitor)
            show(visitor, a, self._log("recommend", name, a, known))
            self._streams[0] = words
            if name not in self._open:
                self._open[name] = visitor
                self._open_bytes += visitor.bytes
            return a

    def feedback(self, customer: Customer, product: int, liked: bool) -> None:
        """Her answer to a product she was shown; with the last one, or on `close`, she is learned from."""
        name = named(customer)
        with self._lock, uninterrupted():
            visitor, a = self._visitor(name), product_of(product, self.products)
            flag("liked", liked)
            rows = np.flatnonzero(visitor.rows == a)
            if not rows.size or rows[0] < visitor.visit.given[0]:
                raise ValueError(f"product {a} was not recommended to customer {name!r}: feedback is refused")
            if visitor.visit.answer[rows[0]] != 0:
                raise ValueError(f"customer {name!r} has answered product {a} already: feedback is refused")
            make_room(self, len(visitor.rows))
            answered(visitor, a, bool(liked), self._log("feedback", name, a, bool(liked)))
            if complete(visitor, self.slots, self.products):
                self._leave(name, visitor)

    def close(self, customer: Customer) -> None:
        """She is gone: learn from her as far as she answered. Her name is then that of nobody, or of a new visit.

        A slot without an answer gives nothing to learn from, but the slots after it do. Where she left early, the
        value of her last slot is counted as if she had gone on: leaving is not held against the product.
        """
        name = named(customer)
        with self._lock, uninterrupted():
            visitor = self._visitor(name)
            make_room(self, len(visitor.rows))
            self._log("close", name)
            self._leave(name, visitor)

    def expire(self, idle: float, now: float | None = None) -> list[Customer]:
        """Close all customers not heard of for more than `idle` seconds; who they were."""
        limit = (self._clock() if now is None else moment("now", now)) - positive("idle", idle)
        with self._lock, uninterrupted():
            gone = [customer for customer, visitor in self._open.items() if visitor.touched[0] < limit]
            for customer in gone:
                self.close(customer)
        return gone

    def offer(self, products: Iterable[int] | None) -> None:
        """From now on there are these products alone, None: all. Values to come are those of what is offered."""
        mask = self._all.copy() if products is None else mask_of("products", products, self.products)
        if not mask.any():
            raise ValueError("products must be at least one: a shop that offers nothing cannot recommend")
        with self._lock, uninterrupted():
            self._log("offer", np.flatnonzero(mask).tolist())
            self._mind, self._spare = (mind._replace(offered=mask) for mind in (self._mind, self._spare))

    def learn(self) -> None:
        """Take a new sample from the posterior; done by itself every `every` customers.

        Others may ask and answer meanwhile, and are served by the sample before. If it fails, that stays in use.
        """
        with self._learning, uninterrupted():
            learn(self)

    def values(self, customer: Customer) -> Floats:
        """What the newest sample holds every product to be worth in her next slot; NaN where she knows it.

        NaN also for products that are not offered.
        """
        name = named(customer)
        with self._lock:
            visitor = self._visitor(name)
            self._chosen(name, visitor, self._all, self._streams[0].copy())
            Q: Floats = self._scratch.Q + self._mind.base[visitor.shown]
            Q[visitor.rows], Q[~self._mind.offered] = np.nan, np.nan
            return Q

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to a file, open customers included, or nothing."""
        saving.save(self, path)

    def keep(self, path: str | os.PathLike[str] | None, *, sync: bool = False) -> None:
        """Save it, and from now on write every change to a journal beside the file before it is made.

        `load(path)` then loses nothing, whenever the process died; with `sync` also if the machine did, at the
        cost of waiting for the disk. Each `save(path)` begins the journal anew. None: no longer. Everybody waits
        while the file is written; if it cannot be, a journal there was before goes on.
        """
        saving.keep(self, path, flag("sync", sync))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Recommender":
        """Read it from a file, and its journal if there is one, which runs no code; it goes on bit for bit."""
        shop = Recommender.__new__(Recommender)
        saving.load(shop, path)
        return shop

    def _visitor(self, name: Customer) -> Open:
        visitor = self._open.get(name)
        if visitor is None:
            raise LookupError(f"customer {name!r} is unknown, or was closed: recommend({name!r}) opens a visit")
        return visitor

    def _let_in(self, name: Customer, visitor: Open) -> None:
        """Have memory for a new customer, or refuse her."""
        if self.bytes + visitor.bytes > self.memory and not give_back(self, visitor.bytes):
            raise MemoryError(
                f"customer {name!r} does not fit in memory = {self.memory:g} bytes beside {len(self._open)} "
                f"others: close or expire some, remember fewer, or ask again when no sample is drawn or saved"
            )

    def _chosen(self, name: Customer, visitor: Open, among: Any, words: Any) -> int:
        if visitor.shown == self.slots:
            raise ValueError(f"customer {name!r} was shown {self.slots} products already: close({name!r})")
        a = int(choose(self._mind, visitor.visit, 0, visitor.shown, among, self._scratch, words))
        if a == -1:
            what = "product" if among is self._all else "product of `among`"
            raise ValueError(f"no {what} is left that customer {name!r} does not know: close({name!r})")
        if a < 0:
            raise FactorError("a value is not finite: load the last saved file")
        return a

    def _leave(self, name: Customer, visitor: Open) -> None:
        remember(self, visitor.visit)
        del self._open[name]
        self._open_bytes -= visitor.bytes
        if self._replaying:
            return
        with contextlib.suppress(OSError):  # of the journal: then it is still due, and no change failed
            if self.every != "later" and self.due:
                if_free(self, learn)
            if self._count > self.remember:
                if_free(self, trim)

    def _log(self, verb: str, *told: Any) -> float:
        """Write a change down before it is made; when that was."""
        now = self._clock()
        if self._journal is not None:
            self._journal.write([self._changes + 1, now, verb, *told])
            self._changes += 1
        return now
