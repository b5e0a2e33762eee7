"""The catalogue as this process knows it: only the events that are new are read."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from rlsvi.shop.event import Event
from rlsvi.shop.rows import event_of


class KnownProducts:
    """The last event, "added" or "removed", of every product, up to the event of a number.

    Event numbers become visible in the order of commits, so what was read once need not be read again.
    """

    def __init__(self) -> None:
        self._lock, self._last, self._events = threading.Lock(), 0, dict[str, Event]()

    def current(self, rows_after: Callable[[int], Iterable[Any]], keep: bool = True) -> dict[str, Event]:
        """Return the catalogue now, products in the order of their first addition.

        Parameters
        ----------
        rows_after : returns the rows of the catalogue after the event of a number, in order.
        keep : whether to remember what is new. A transaction that has written does not: it may be rolled back.
        """
        with self._lock:
            last, found = self._last, self._events.copy()
        for event in map(event_of, rows_after(last)):
            found[event.product], last = event, event.id
        with self._lock:
            if keep and last > self._last:
                self._last, self._events = last, found.copy()
        return found
