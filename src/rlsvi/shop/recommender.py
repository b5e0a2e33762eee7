"""A recommender service: any number of concurrent customers, who may answer in any order, late or never."""

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
    """RLSVI for recommendations (section 6.3), with one customer per episode, for use in a service.

    By default there is one regression for every product and slot, as in the paper. This takes about 8 J N^3 bytes,
    and is refused if it exceeds `memory`. `pooled`, `sketch` or both reduce the size.

    Parameters
    ----------
    products, slots : N, the number of products, and J, the largest number of products shown to one customer.
    lam, sigma : prior precision of the weights and standard deviation of the noise, as for RLSVI.
    pooled : use one regression for all slots of a product, on values relative to a baseline for each slot.
    sketch : hash answers into this many positions with random signs, instead of one position per product.
    every : number of customers between two samples. If None, 1 while that is cheap, then as many as keep the work
        for samples near ten million numbers per customer. "later": only on `learn`, so that no answer waits.
    baseline : expected likes per slot, from which values are measured: "recent" for the rates of the last 200
        customers in each slot, or a number. 0 gives the paper's prior mean.
    clip : limit the value of the remaining slots to between 0 and their number.
    myopic : value only the next answer, as a linear bandit does.
    remember : maximum number of customers whose targets are recomputed with every sample. Earlier ones keep
        the targets they had, measured from the current baseline like all others.
    memory : maximum number of bytes of all arrays. Close to the limit, fewer customers are remembered and no new
        ones are admitted.
    seed : determines all randomness.

    Methods may be called from several threads. While one thread draws a sample with `learn` or writes a file with
    `save`, only other calls of `learn` and `save` have to wait.
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
        """Store the arguments after validating them."""
        for name, value in settled(given).items():
            setattr(self, name, value)
        self._form = Form(self.products, self.slots, self.pooled, self.sketch)

    def _begin(self, mind: Mind, streams: Any) -> None:
        """Start without any customers."""
        self._mind, self._streams = mind, streams
        self._spare = mind._replace(
            weight=np.zeros_like(mind.weight), bias=np.zeros_like(mind.bias), base=np.zeros_like(mind.base)
        )
        self._scratch, self._work = new_scratch(mind), new_scratch(mind)  # for recommending, and for learning
        self._zero, self._all = np.zeros(self.slots + 1), np.ones(self.products, dtype=np.bool_)
        room = room_for(min(63, self.remember), self.products, self.slots)
        self._gone = new_visits(*room)  # the customers remembered
        self._count = self._taken = 0  # their number, and how many of them are in the factors
        self._forgot = False  # whether any customers were forgotten
        self._recent = np.zeros((RECENT, self.slots), dtype=np.int32)
        self._open: dict[Customer, Open] = {}
        self._open_bytes = 0
        self.customers = 0  # who have left
        self._since = 0  # number of these since the last sample
        self._changes = 0  # number of changes in the journal
        self._name: str | None = None  # name of the journal
        self._locks()

    def _locks(self) -> None:
        self._lock, self._learning = threading.RLock(), threading.Lock()
        self._journal: Any = None
        self._clock, self._replaying = time.time, False

    def __getstate__(self) -> dict[str, Any]:
        """A copy has its own locks and no journal. Do not copy while other threads call its methods."""
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
        """The customers whose visits are open, in order of arrival."""
        with self._lock:
            return list(self._open)

    @property
    def bytes(self) -> int:
        """The memory that the arrays use now, including open customers and spare room."""
        gone = visits_bytes(self._gone.given.size, self._gone.product.size)
        return fixed_bytes(self._form) + gone + self._open_bytes

    @property
    def due(self) -> bool:
        """Whether enough customers have left since the last sample that a new one is due."""
        with self._lock:
            if isinstance(self.every, int):
                return self._since >= self.every
            given = int(self._gone.given[: self._count].sum())
            cost = numbers_of_a_sample(self._form, given, int(self._gone.first[self._count]) - given)
            return self._since > 0 and self._since * SHARE >= cost

    def arguments(self) -> dict[str, Any]:
        """The constructor arguments, except the seed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def recommend(
        self, customer: Customer, context: ArrayLike | None = None, *, among: Iterable[int] | None = None
    ) -> int:
        """Return a product for the customer's next slot that is new to them; open a visit if there is none.

        context : products the customer is known to like (1) or dislike (-1), shape (N,); only with the first slot.
        among : the products to choose from in this call. If None, all that are offered.

        Earlier recommendations need not have been answered. The product is chosen with the newest sample.
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
        """Record the answer to a product shown. The visit is learned from after its last answer or on `close`."""
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
        """End a visit and learn from the answers given. The name can be used for a new visit afterwards.

        A slot without an answer contributes nothing, but the slots after it do. If the customer left early, the
        last slot is valued as if the visit had continued: leaving is not held against the product.
        """
        name = named(customer)
        with self._lock, uninterrupted():
            visitor = self._visitor(name)
            make_room(self, len(visitor.rows))
            self._log("close", name)
            self._leave(name, visitor)

    def expire(self, idle: float, now: float | None = None) -> list[Customer]:
        """Close the visits of all customers inactive for more than `idle` seconds, and return their names."""
        limit = (self._clock() if now is None else moment("now", now)) - positive("idle", idle)
        with self._lock, uninterrupted():
            gone = [customer for customer, visitor in self._open.items() if visitor.touched[0] < limit]
            for customer in gone:
                self.close(customer)
        return gone

    def offer(self, products: Iterable[int] | None) -> None:
        """Offer only these products from now on, or all if None. Future values count only products on offer."""
        mask = self._all.copy() if products is None else mask_of("products", products, self.products)
        if not mask.any():
            raise ValueError("products must be at least one: a shop that offers nothing cannot recommend")
        with self._lock, uninterrupted():
            self._log("offer", np.flatnonzero(mask).tolist())
            self._mind, self._spare = (mind._replace(offered=mask) for mind in (self._mind, self._spare))

    def learn(self) -> None:
        """Draw a new sample from the posterior. This happens automatically every `every` customers.

        Other threads are served with the previous sample meanwhile. If drawing fails, that sample stays in use.
        """
        with self._learning, uninterrupted():
            learn(self)

    def values(self, customer: Customer) -> Floats:
        """Return the value of every product in the customer's next slot, according to the newest sample.

        Products that the customer knows and products that are not offered have value NaN.
        """
        name = named(customer)
        with self._lock:
            visitor = self._visitor(name)
            self._chosen(name, visitor, self._all, self._streams[0].copy())
            Q: Floats = self._scratch.Q + self._mind.base[visitor.shown]
            Q[visitor.rows], Q[~self._mind.offered] = np.nan, np.nan
            return Q

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the complete state to a file, including open customers. If this fails, no file changes."""
        saving.save(self, path)

    def keep(self, path: str | os.PathLike[str] | None, *, sync: bool = False) -> None:
        """Save to a file, and from now on log every change to a journal beside it before the change is applied.

        `load(path)` then recovers everything if the process dies, and with `sync` also if the machine fails, at
        the cost of waiting for the disk. Each `save(path)` starts a new journal. None stops logging. All calls
        wait while the file is written. If writing fails, a previous journal stays in use.
        """
        saving.keep(self, path, flag("sync", sync))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Recommender":
        """Read a recommender from a file and its journal, if any. No code is run; it continues bit for bit."""
        shop = Recommender.__new__(Recommender)
        saving.load(shop, path)
        return shop

    def _visitor(self, name: Customer) -> Open:
        visitor = self._open.get(name)
        if visitor is None:
            raise LookupError(f"customer {name!r} is unknown, or was closed: recommend({name!r}) opens a visit")
        return visitor

    def _let_in(self, name: Customer, visitor: Open) -> None:
        """Make sure there is memory for a new customer, or raise an error."""
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
        with contextlib.suppress(OSError):  # of the journal: a sample is then still due, and no change failed
            if self.every != "later" and self.due:
                if_free(self, learn)
            if self._count > self.remember:
                if_free(self, trim)

    def _log(self, verb: str, *told: Any) -> float:
        """Log a change before it is applied, and return its time."""
        now = self._clock()
        if self._journal is not None:
            self._journal.write([self._changes + 1, now, verb, *told])
            self._changes += 1
        return now
