"""When a recommender learns, and which customers it remembers and forgets.

There are two locks. `_lock` is held for short operations: recommending, recording answers, publishing a sample.
`_learning` is held while the posterior is changed or written: learning, forgetting, saving. A thread that holds
`_lock` never waits for `_learning`, so customers are served while a sample is drawn or a file is written.
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
    """Set the baseline before the first customer."""
    set_base(shop._mind.base, shop._recent, _rate(shop), shop.myopic)


def learn(shop: "Recommender") -> None:
    """Draw a new sample while the current one stays in use, then switch to it. The caller holds `_learning`.

    If this fails, the current sample stays in use and no answer is lost. Some answers may then already be part of
    the factors, where the next sample would have added them anyway.
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
        offered = shop._mind.offered  # it may have changed in the meantime
        shop._mind, shop._spare = fresh._replace(offered=offered), before._replace(offered=offered)
        shop._since -= since
        with contextlib.suppress(OSError):  # of the journal: trimming is then left to a later customer
            trim(shop)


def make_room(shop: "Recommender", rows: int) -> None:
    """Make room to remember one more customer with `rows` rows. The caller holds `_lock`.

    If memory is short, the older half of the customers is forgotten. This happens before the change that needs the
    room is logged, so that the journal contains both changes in the right order.
    """
    most = room_for(shop.remember, shop.products, shop.slots)
    size = grown(shop._gone, shop._count, rows, most)
    while size != _room(shop) and shop._count and shop.bytes + visits_bytes(*size) > shop.memory:
        if shop._replaying or not if_free(shop, lambda shop: forget(shop, (shop._count + 1) // 2)):
            break  # a sample is being drawn: use more memory until `give_back`
        size = grown(shop._gone, shop._count, rows, most)
    _resize(shop, size)


def give_back(shop: "Recommender", wanted: int) -> bool:
    """Free `wanted` bytes by remembering fewer customers; return whether it succeeded. The caller holds `_lock`.

    Room for `remember` customers without contexts is always kept. If the rest is not enough, nothing is freed.
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
    """Append a visit to those remembered; there must be room. The caller holds `_lock`."""
    append(shop._gone, shop._count, one)
    shop._recent[shop.customers % len(shop._recent)] = recent_answers(one, shop.slots)
    shop._count += 1
    shop.customers += 1
    shop._since += 1


def trim(shop: "Recommender") -> None:
    """Forget the oldest customers if more than `remember` are stored. The caller holds both locks."""
    if shop._count > shop.remember and not shop._replaying:
        forget(shop, shop._count - shop.remember + shop.remember // 10)  # a tenth at once: the rest is moved


def forget(shop: "Recommender", oldest: int) -> None:
    """Fix the targets of the `oldest` customers at their present values. The caller holds both locks.

    Room for more than `remember` customers is released once it is no longer needed.
    """
    _take_in(shop, shop._gone, oldest)
    shop._log("forget", oldest)
    freeze(shop._mind, shop._gone, oldest, shop.clip, shop.myopic, shop._zero, shop._work.Q)
    drop(shop._gone, shop._count, oldest)
    shop._count, shop._taken = shop._count - oldest, shop._taken - oldest
    shop._forgot = shop._forgot or oldest > 0
    _resize(shop, given_back(shop._gone, shop._count, room_for(shop.remember, shop.products, shop.slots)))


def if_free(shop: "Recommender", do: Callable[["Recommender"], None]) -> bool:
    """Call `do`, unless another thread is learning or saving. Return whether it was called."""
    free: bool = shop._learning.acquire(blocking=False)
    if free:
        try:
            do(shop)
        finally:
            shop._learning.release()
    return free


def _take_in(shop: "Recommender", visits: Visits, count: int) -> None:
    """Add the answers of the first `count` visits to the factors."""
    while shop._taken < count:
        if not take_in(shop._mind, visits, shop._taken, shop._work.phi):
            raise FactorError("a factor is no longer finite: load the last saved file")
        shop._taken += 1


def _rate(shop: "Recommender") -> float:
    return -1.0 if shop.baseline == "recent" else float(shop.baseline)
