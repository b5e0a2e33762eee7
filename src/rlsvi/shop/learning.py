"""When a recommender learns, what it remembers and what it forgets.

Two locks. `_lock` is held for whatever is short: asking, answering, publishing a sample. `_learning` is held by
whoever changes or writes down the posterior: learning, forgetting, saving; who has `_lock` never waits for it. So
a sample may be drawn, or a file be written, in one thread while customers are served in others.
"""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rlsvi.core.regression import FactorError
from rlsvi.shop.mind import Visits
from rlsvi.shop.posterior import freeze, sample, set_base, take_in
from rlsvi.shop.size import room_for, visits_bytes
from rlsvi.shop.visits import append, drop, given_back, grown, recent_answers, resized

if TYPE_CHECKING:
    from rlsvi.shop.recommender import Recommender


def set_prior_base(shop: "Recommender") -> None:
    """The baseline before anybody came."""
    set_base(shop._mind.base, shop._recent, _rate(shop), shop.myopic)


def learn(shop: "Recommender") -> None:
    """Draw a new sample beside the one in use, then use it; `_learning` is held.

    Where it fails the one before stays in use, and no answer is lost; some may be in the factors already, where
    they would be put with the next sample.
    """
    with shop._lock:
        visits, count, since, before = shop._gone, shop._count, shop._since, shop._mind
        fresh = shop._spare._replace(offered=before.offered)
        set_base(fresh.base, shop._recent, _rate(shop), shop.myopic)
    _take_in(shop, visits, count)
    stream, flags = shop._streams[1].copy(), (shop.clip, shop.myopic)
    by = before if shop.pooled else fresh
    if not sample(fresh, by, visits, count, shop._forgot, shop.sigma, *flags, shop._work.Q, stream):
        raise FactorError(
            "the new sample is not finite: the one before stays in use, and no answer is lost; "
            "clip=True or a larger lam keep values within bounds"
        )
    with shop._lock:
        shop._log("learn")
        shop._streams[1] = stream
        offered = shop._mind.offered  # it may have changed meanwhile
        shop._mind, shop._spare = fresh._replace(offered=offered), before._replace(offered=offered)
        shop._since -= since
        with contextlib.suppress(OSError):  # of the journal: then it is done with a later customer
            trim(shop)


def make_room(shop: "Recommender", rows: int) -> None:
    """Have room to remember one more, of so many rows; `_lock` is held.

    Where memory is short, the older half is forgotten. It is done before the change that needs the room is written
    down, so that a journal has both in their order.
    """
    most = room_for(shop.remember, shop.products, shop.slots)
    size = grown(shop._gone, shop._count, rows, most)
    while size != _room(shop) and shop._count and shop.bytes + visits_bytes(*size) > shop.memory:
        if shop._replaying or not if_free(shop, lambda shop: forget(shop, (shop._count + 1) // 2)):
            break  # a sample is being drawn: more memory until `give_back`
        size = grown(shop._gone, shop._count, rows, most)
    _resize(shop, size)


def give_back(shop: "Recommender", wanted: int) -> bool:
    """Have so many bytes for a new customer by remembering fewer; whether it was done. `_lock` is held.

    No fewer than have their room by right, `remember` without contexts; nothing is done where that is not enough.
    """
    most = room_for(shop.remember, shop.products, shop.slots)
    least = visits_bytes(*map(min, _room(shop), most))
    if shop._replaying or shop.bytes - visits_bytes(*_room(shop)) + least + wanted > shop.memory:
        return False
    first = shop._gone.first[: shop._count + 1]
    oldest = max(0, shop._count - most[0], int(np.searchsorted(first, first[-1] - most[1])))
    return if_free(shop, lambda shop: forget(shop, oldest))


def _room(shop: "Recommender") -> tuple[int, int]:
    return shop._gone.given.size, shop._gone.product.size


def _resize(shop: "Recommender", size: tuple[int, int]) -> None:
    if size != _room(shop):
        shop._gone = resized(shop._gone, shop._count, *size)


def remember(shop: "Recommender", one: Visits) -> None:
    """Put a visit with those remembered, where there is room; `_lock` is held."""
    append(shop._gone, shop._count, one)
    shop._recent[shop.customers % len(shop._recent)] = recent_answers(one, shop.slots)
    shop._count += 1
    shop.customers += 1
    shop._since += 1


def trim(shop: "Recommender") -> None:
    """Forget the oldest if there are more than are to be remembered; both locks are held."""
    if shop._count > shop.remember and not shop._replaying:
        forget(shop, shop._count - shop.remember + shop.remember // 10)  # a tenth at once, for it moves the others


def forget(shop: "Recommender", oldest: int) -> None:
    """Let the `oldest` customers count from now on with their present targets; both locks are held.

    Room for more than are to be remembered is given back where it is no longer needed.
    """
    _take_in(shop, shop._gone, oldest)
    shop._log("forget", oldest)
    freeze(shop._mind, shop._gone, oldest, shop.clip, shop.myopic, shop._zero, shop._work.Q)
    drop(shop._gone, shop._count, oldest)
    shop._count, shop._taken = shop._count - oldest, shop._taken - oldest
    shop._forgot = shop._forgot or oldest > 0
    _resize(shop, given_back(shop._gone, shop._count, room_for(shop.remember, shop.products, shop.slots)))


def if_free(shop: "Recommender", do: Callable[["Recommender"], None]) -> bool:
    """Do it, unless somebody learns or saves; whether it was done."""
    free: bool = shop._learning.acquire(blocking=False)
    if free:
        try:
            do(shop)
        finally:
            shop._learning.release()
    return free


def _take_in(shop: "Recommender", visits: Visits, count: int) -> None:
    """Have the answers of the first `count` visits in the factors."""
    while shop._taken < count:
        if not take_in(shop._mind, visits, shop._taken, shop._work.phi):
            raise FactorError("a factor is no longer finite: load the last saved file")
        shop._taken += 1


def _rate(shop: "Recommender") -> float:
    return -1.0 if shop.baseline == "recent" else float(shop.baseline)
