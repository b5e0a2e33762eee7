"""A recommender for a shop: any number of customers at once, who answer in any order, late or never."""

import os
import time
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import finite, positive, ridge_of, whole
from rlsvi.core.compile import Floats, Ints
from rlsvi.core.random import Seed, sequence, stream
from rlsvi.core.regression import FactorError
from rlsvi.shop.mind import choose, freeze, new_mind, new_scratch, sample, set_base, take_in
from rlsvi.shop.size import SHARE, bytes_needed, checked_size, numbers_of_a_sample
from rlsvi.shop.visits import Open, answered, appended, complete, dropped, new_visits, opened, show

Customer = str | int


class Recommender:
    """RLSVI for recommendations (section 6.3), one customer an episode, at the size of a shop.

    By default it has one regression for every product and slot, as the paper; that is about 8 J N^3 bytes, and
    refused where it is more than `memory`. What is smaller: `pooled`, `sketch`, or both.

    Parameters
    ----------
    products, slots : N, and J, how many of them a customer is shown at most.
    lam, sigma : prior precision of the weights and noise of a value, as for RLSVI.
    pooled : one regression for all slots of a product, on values over a baseline for each slot.
    sketch : answers are hashed into so many places with random signs, instead of one place a product.
    every : customers between two samples; None: 1 while that is cheap, and then so many that samples go through
        about ten million numbers a customer.
    baseline : likes a slot that values are measured from: "recent", the rates of the last 200 customers for each
        slot, or a number. 0 is the paper's prior mean.
    clip : hold the value of going on between 0 and the number of slots left.
    myopic : value the next answer alone: a linear bandit.
    remember : customers whose targets are learned anew with every sample; those before count as they last did.
    memory : bytes that it may take, at most.
    seed : decides all randomness.
    """

    def __init__(
        self,
        products: int,
        slots: int,
        *,
        lam: float = 1000.0,
        sigma: float = 1e-3**0.5,
        pooled: bool = False,
        sketch: int | None = None,
        every: int | None = None,
        baseline: str | float = "recent",
        clip: bool = True,
        myopic: bool = False,
        remember: int = 20_000,
        memory: float = 4e9,
        seed: Seed = None,
    ) -> None:
        size: dict[str, Any] = {"pooled": pooled, "sketch": sketch}
        checked_size(products, slots, **size, remember=remember, memory=positive("memory", memory))
        ridge = ridge_of(lam, sigma)
        if baseline != "recent":
            if isinstance(baseline, str) or not 0.0 <= float(finite("baseline", baseline)) <= 1.0:
                raise ValueError(f'baseline must be "recent" or a number from 0 to 1, got {baseline!r}')
            baseline = float(baseline)
        self.products, self.slots = int(products), int(slots)
        self.lam, self.sigma, self.pooled, self.sketch = float(lam), float(sigma), bool(pooled), sketch
        self.every = None if every is None else whole("every", every, 1)
        self.baseline, self.clip, self.myopic = baseline, bool(clip), bool(myopic)
        self.remember, self.memory = int(remember), float(memory)
        hashes, choice, posterior = sequence(seed).spawn(3)
        self._streams = np.stack([stream(choice), stream(posterior)])
        self._mind = new_mind(products, slots, **size, ridge=ridge, hashes=np.random.default_rng(hashes))
        self._scratch = new_scratch(self._mind)
        self._gone, self._count = new_visits(64, 64 * slots), 0  # customers remembered
        self._open: dict[Customer, Open] = {}
        self.customers = 0  # learned from
        self._since = 0  # of them, since the last sample
        self._set_base()

    def __repr__(self) -> str:
        return (
            f"<Recommender of {self.slots} out of {self.products} products, {self.customers} customers learned "
            f"from, {len(self._open)} open>"
        )

    @property
    def open(self) -> list[Customer]:
        """The customers who are here, in the order they came."""
        return list(self._open)

    @property
    def bytes(self) -> int:
        """The memory it takes at most, of what grows with products, slots and customers remembered."""
        form: dict[str, Any] = {"pooled": self.pooled, "sketch": self.sketch, "remember": self.remember}
        return bytes_needed(self.products, self.slots, **form)

    def arguments(self) -> dict[str, Any]:
        """What it was made with, but for the seed."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters if name != "seed"}

    def recommend(self, customer: Customer, context: ArrayLike | None = None) -> int:
        """A product for the customer's next slot, one she does not know; it opens her visit if there is none.

        context : what she is known to like (1) and dislike (-1) from elsewhere, (N,); only with her first slot.

        She need not have answered what came before. The product is chosen on the newest sample.
        """
        _named(customer)
        visitor = self._open.get(customer)
        if visitor is not None and context is not None:
            raise ValueError(f"context of customer {customer!r} must come with her first slot: leave it out now")
        if visitor is None:
            visitor = opened(self.slots, self._context(context), time.time())
        if visitor.shown == self.slots:
            raise ValueError(f"customer {customer!r} was shown {self.slots} products already: close({customer!r})")
        if len(visitor.rows) == self.products:
            raise ValueError(f"no product is left that customer {customer!r} does not know: close({customer!r})")
        a = choose(self._mind, visitor.visit, 0, visitor.shown, self._scratch, self._streams[0])
        if a < 0:
            raise FactorError("a value is not finite: load the last saved file")
        show(visitor, a, time.time())
        self._open[customer] = visitor
        return int(a)

    def feedback(self, customer: Customer, product: int, liked: bool) -> None:
        """Her answer to a product she was shown; with the last one, or on `close`, she is learned from."""
        visitor = self._visitor(customer)
        a = whole("product", product, 0)
        if a >= self.products:
            raise ValueError(f"product {a} is unknown: there are 0..{self.products - 1}")
        if not isinstance(liked, bool | np.bool_):
            raise ValueError(f"liked must be True or False, got {liked!r}")
        rows = np.flatnonzero(visitor.rows == a)
        if not rows.size or rows[0] < visitor.visit.given[0]:
            raise ValueError(f"product {a} was not recommended to customer {customer!r}: feedback is refused")
        if visitor.visit.answer[rows[0]] != 0:
            raise ValueError(f"customer {customer!r} has answered product {a} already: feedback is refused")
        answered(visitor, a, bool(liked), time.time())
        if complete(visitor, self.slots, self.products):
            self.close(customer)

    def close(self, customer: Customer) -> None:
        """She is gone: learn from her as far as she answered. Her name is then that of nobody, or of a new visit.

        A slot without an answer gives nothing to learn from, but the slots after it do. Where she left early, the
        value of her last slot is counted as if she had gone on: leaving is not held against the product.
        """
        visitor = self._visitor(customer)
        del self._open[customer]
        self._gone = appended(self._gone, self._count, visitor.visit)
        self._count += 1
        self.customers += 1
        self._since += 1
        if not take_in(self._mind, self._gone, self._count - 1, self._scratch):
            raise FactorError("a factor is no longer finite: load the last saved file")
        if self._due():
            self.learn()

    def expire(self, idle: float, now: float | None = None) -> list[Customer]:
        """Close all customers not heard of for more than `idle` seconds; who they were."""
        limit = (time.time() if now is None else now) - positive("idle", idle)
        gone = [customer for customer, visitor in self._open.items() if visitor.touched[0] < limit]
        for customer in gone:
            self.close(customer)
        return gone

    def learn(self) -> None:
        """Take a new sample from the posterior; done by itself every `every` customers."""
        self._set_base()
        self._since = 0
        flags, Q = (self.clip, self.myopic), self._scratch.Q
        if not sample(self._mind, self._gone, self._count, self.sigma, *flags, Q, self._streams[1]):
            raise FactorError("the sample is not finite: load the last saved file")
        if self._count > self.remember:
            oldest = self._count - self.remember + self.remember // 10  # a tenth at once, for it moves the others
            freeze(self._mind, self._gone, oldest, *flags, Q)
            self._gone, self._count = dropped(self._gone, self._count, oldest), self._count - oldest

    def values(self, customer: Customer) -> Floats:
        """What the newest sample holds every product to be worth in her next slot; NaN where she knows it."""
        visitor = self._visitor(customer)
        slot = min(visitor.shown, self.slots - 1)
        choose(self._mind, visitor.visit, 0, slot, self._scratch, self._streams[0].copy())
        Q: Floats = self._scratch.Q + self._mind.base[slot]
        Q[visitor.rows] = np.nan
        return Q

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to a file, open customers included, or nothing."""
        from rlsvi.shop.saving import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Recommender":
        """Read it from a file, which runs no code; it goes on bit for bit."""
        from rlsvi.shop.saving import load

        return load(path)

    def _due(self) -> bool:
        if self.every is not None:
            return self._since >= self.every
        form: dict[str, Any] = {"pooled": self.pooled, "sketch": self.sketch, "customers": self._count}
        return self._since * SHARE >= numbers_of_a_sample(self.products, self.slots, **form)

    def _set_base(self) -> None:
        rate = -1.0 if self.baseline == "recent" else float(self.baseline)
        set_base(self._mind.base, self._gone, self._count, rate, self.myopic)

    def _visitor(self, customer: Customer) -> Open:
        visitor = self._open.get(_named(customer))
        if visitor is None:
            raise LookupError(
                f"customer {customer!r} is unknown, or was closed: recommend({customer!r}) opens a visit"
            )
        return visitor

    def _context(self, context: ArrayLike | None) -> Ints:
        if context is None:
            return np.zeros(self.products, dtype=np.int32)
        given = finite("context", context)
        if given.shape != (self.products,) or not np.isin(given, (-1, 0, 1)).all():
            raise ValueError(
                f"context must be {self.products} numbers -1, 0 or 1, one a product, got {context!r:.80}"
            )
        return given.astype(np.int32)


def _named(customer: Any) -> Customer:
    if isinstance(customer, bool) or not isinstance(customer, str | int):
        raise ValueError(f"customer must be a string or a whole number, got {customer!r}")
    return customer
