"""Customers as rows of arrays: those who have left, stored one after another, and those who are present."""

from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Ints
from rlsvi.shop.mind import Visits
from rlsvi.shop.size import visits_bytes

NEVER = np.iinfo(np.int32).max  # time of an answer that has not come


def new_visits(room: int, rows: int) -> Visits:
    """Return empty arrays for `room` customers and `rows` rows."""
    part = [np.zeros(rows, dtype=np.int32) for _ in range(3)]
    return Visits(np.zeros(room + 1, dtype=np.int64), np.zeros(room, dtype=np.int32), *part)


def grown(visits: Visits, count: int, rows: int, most: tuple[int, int]) -> tuple[int, int]:
    """Return the room for customers and rows after adding a customer with `rows` rows; full arrays double.

    The result exceeds `most` only where necessary.
    """
    need = count + 1, int(visits.first[count]) + rows
    have = visits.given.size, visits.product.size
    room, length = (
        old if new <= old else min(2 * new, limit) if new <= limit else new + new // 2
        for new, old, limit in zip(need, have, most, strict=True)
    )
    return room, length


def given_back(visits: Visits, count: int, most: tuple[int, int]) -> tuple[int, int]:
    """Return the room for customers and rows, reduced to `most` if `count` customers fit into that."""
    need = count, int(visits.first[count])
    have = visits.given.size, visits.product.size
    room, length = (min(old, top) if used <= top else old for used, old, top in zip(need, have, most, strict=True))
    return room, length


def append(visits: Visits, count: int, one: Visits) -> None:
    """Append the single visit in `one` after `count` others; there must be room."""
    begin, rows = int(visits.first[count]), int(one.first[1])
    visits.first[count + 1] = begin + rows
    visits.given[count] = one.given[0]
    for to, of in zip(visits[2:], one[2:], strict=True):
        to[begin : begin + rows] = of[:rows]


def drop(visits: Visits, count: int, oldest: int) -> None:
    """Remove the `oldest` first visits by moving the others to the front."""
    begin, end = int(visits.first[oldest]), int(visits.first[count])
    visits.first[: count - oldest + 1] = visits.first[oldest : count + 1] - begin
    visits.given[: count - oldest] = visits.given[oldest:count]
    for part in visits[2:]:
        part[: end - begin] = part[begin:end]


def resized(visits: Visits, count: int, room: int, rows: int) -> Visits:
    """Return copies in arrays of other sizes."""
    into, end = new_visits(room, rows), int(visits.first[count])
    into.first[: count + 1], into.given[:count] = visits.first[: count + 1], visits.given[:count]
    for to, of in zip(into[2:], visits[2:], strict=True):
        to[:end] = of[:end]
    return into


def recent_answers(one: Visits, slots: int) -> Ints:
    """Return the answers in each slot, shape (J,): 1, -1, or 0."""
    found, shown = np.zeros(slots, dtype=np.int32), one.answer[one.given[0] : one.first[1]]
    found[: shown.size] = shown
    return found


class Open(NamedTuple):
    """A customer who is present: one visit, with room for all slots."""

    visit: Visits
    touched: list[float]  # (1) time of the last activity

    @property
    def shown(self) -> int:
        """The number of slots filled."""
        return int(self.visit.first[1] - self.visit.given[0])

    @property
    def bytes(self) -> int:
        """The memory that the arrays of this customer use."""
        return visits_bytes(1, self.visit.product.size)

    @property
    def rows(self) -> Ints:
        """The products the customer knows: those known before, then those shown."""
        return self.visit.product[: self.visit.first[1]]


def opened(slots: int, known: list[list[int]] | None) -> Open:
    """Return a new customer, with the products known to be liked and disliked, if any."""
    likes, dislikes = known or ([], [])
    count = len(likes) + len(dislikes)
    visit = new_visits(1, count + slots)
    visit.first[1] = visit.given[0] = count
    visit.product[:count], visit.answer[:count] = [*likes, *dislikes], [1] * len(likes) + [-1] * len(dislikes)
    return Open(visit, [0.0])


def show(customer: Open, product: int, now: float) -> None:
    """Fill the customer's next slot."""
    visit, row = customer.visit, int(customer.visit.first[1])
    visit.product[row], visit.answer[row], visit.when[row] = product, 0, NEVER
    visit.first[1] = row + 1
    customer.touched[0] = now


def answered(customer: Open, product: int, liked: bool, now: float) -> None:
    """Record the answer to a product the customer was shown."""
    (row,) = np.flatnonzero(customer.rows == product)
    customer.visit.answer[row] = 1 if liked else -1
    customer.visit.when[row] = customer.shown
    customer.touched[0] = now


def complete(customer: Open, slots: int, products: int) -> bool:
    """Return whether all slots, as far as there are products for them, are filled and answered."""
    possible = min(slots, products - int(customer.visit.given[0]))
    return customer.shown == possible and bool((customer.visit.answer[: customer.visit.first[1]] != 0).all())
