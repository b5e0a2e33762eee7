"""Customers as rows: those who are gone, one after another, and those who are here."""

from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Ints
from rlsvi.shop.mind import Visits

NEVER = np.iinfo(np.int32).max  # when an answer came that did not


def new_visits(room: int, rows: int) -> Visits:
    """Nobody yet."""
    part = [np.zeros(rows, dtype=np.int32) for _ in range(3)]
    return Visits(np.zeros(room + 1, dtype=np.int64), np.zeros(room, dtype=np.int32), *part)


def appended(visits: Visits, count: int, one: Visits) -> Visits:
    """With the one visit of `one` after `count` others; in arrays twice as large where they were full."""
    begin, rows = int(visits.first[count]), int(one.first[1])
    room = visits.given.size if count < visits.given.size else max(1, 2 * count)
    length = visits.product.size if begin + rows <= visits.product.size else 2 * (begin + rows)
    if (room, length) != (visits.given.size, visits.product.size):
        visits = _part(visits, 0, count, room, length)
    visits.first[count + 1] = begin + rows
    visits.given[count] = one.given[0]
    for name in ("product", "answer", "when"):
        getattr(visits, name)[begin : begin + rows] = getattr(one, name)[:rows]
    return visits


def dropped(visits: Visits, count: int, oldest: int) -> Visits:
    """Without the `oldest` first of them."""
    return _part(visits, oldest, count, visits.given.size, visits.product.size)


def trimmed(visits: Visits, count: int) -> Visits:
    """Without room for more."""
    return _part(visits, 0, count, count, int(visits.first[count]))


def _part(visits: Visits, start: int, stop: int, room: int, length: int) -> Visits:
    """Visits start .. stop - 1, in arrays of other sizes."""
    into = new_visits(room, length)
    begin, end = int(visits.first[start]), int(visits.first[stop])
    into.first[: stop - start + 1] = visits.first[start : stop + 1] - begin
    into.given[: stop - start] = visits.given[start:stop]
    for name in ("product", "answer", "when"):
        getattr(into, name)[: end - begin] = getattr(visits, name)[begin:end]
    return into


class Open(NamedTuple):
    """A customer who is here: one visit, with room for all her slots."""

    visit: Visits
    touched: list[float]  # (1) when she was last heard of

    @property
    def shown(self) -> int:
        """How many slots were filled."""
        return int(self.visit.first[1] - self.visit.given[0])

    @property
    def rows(self) -> Ints:
        """The products she knows: those known before, then those shown."""
        return self.visit.product[: self.visit.first[1]]


def opened(slots: int, context: Ints, now: float) -> Open:
    """A new customer; context (N,) has 1 and -1 for what she is known to like and dislike."""
    (known,) = np.nonzero(context)
    visit = new_visits(1, len(known) + slots)
    visit.first[1] = visit.given[0] = len(known)
    visit.product[: len(known)], visit.answer[: len(known)] = known, context[known]
    return Open(visit, [now])


def show(customer: Open, product: int, now: float) -> None:
    """Fill her next slot."""
    visit, row = customer.visit, int(customer.visit.first[1])
    visit.product[row], visit.answer[row], visit.when[row] = product, 0, NEVER
    visit.first[1] = row + 1
    customer.touched[0] = now


def answered(customer: Open, product: int, liked: bool, now: float) -> None:
    """Her answer to a product she was shown."""
    (row,) = np.flatnonzero(customer.rows == product)
    customer.visit.answer[row] = 1 if liked else -1
    customer.visit.when[row] = customer.shown
    customer.touched[0] = now


def complete(customer: Open, slots: int, products: int) -> bool:
    """Whether all slots are filled, as far as there are products for them, and answered."""
    possible = min(slots, products - int(customer.visit.given[0]))
    return customer.shown == possible and bool((customer.visit.answer[: customer.visit.first[1]] != 0).all())
