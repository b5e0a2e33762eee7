"""A transaction that writes the events of a shop."""

from collections.abc import Callable, Iterable
from typing import Any

from rlsvi.shop.event import Event
from rlsvi.shop.rows import event_of, row_of
from rlsvi.shop.store_errors import StoreError
from rlsvi.shop.tables import Statements

MOST = 256  # visits of one query


class Writer:
    """A transaction that writes: what is read in it stays so until it ends."""

    def __init__(self, cursor: Any, database: Any, statements: Statements) -> None:
        self._cursor, self._database, self._statements = cursor, database, statements
        self._failed = False

    def visits(self, names: Iterable[str]) -> dict[str, list[Event]]:
        """Return the events of each of these visits, in order."""
        found: dict[str, list[Event]] = {name: [] for name in names}
        asked = list(found)
        for start in range(0, len(asked), MOST):
            some = asked[start : start + MOST]
            count = 1 << (len(some) - 1).bit_length()  # the next power of two, so that statements are few
            padded = some + some[-1:] * (count - len(some))
            asking = {f"v{i}": name for i, name in enumerate(padded)}
            for row in self._rows(self._statements.visits(count), asking):
                found[row[1]].append(event_of(row))
        return found

    def append(self, events: Iterable[Event]) -> list[int]:
        """Append events, and return their numbers. An event whose time is 0 happens now."""
        rows = [row_of(event) for event in events]
        return self._tried(self._database.insert, self._cursor, self._statements.insert, rows) if rows else []

    def last(self) -> int:
        """Return the number of the last event, 0 if there is none."""
        return self._rows(self._statements.last, {})[0][0] or 0

    def changed(self) -> int:
        """Return the number of the last event that changed the catalogue, 0 if there is none."""
        return self._cursor.execute(self._statements.changed).fetchone()[0] or 0

    def catalogue(self) -> dict[str, Event]:
        """Return the last event, "added" or "removed", of every product, in the order of their first addition."""
        return by_product(self._rows(self._statements.catalogue, {}))

    def check(self) -> None:
        """Raise an error if a statement has failed: the database may have undone what came before it."""
        if self._failed:
            raise StoreError("a statement of this transaction has failed before: nothing of it is written")

    def _rows(self, statement: str, parameters: dict[str, Any]) -> Any:
        return self._tried(self._cursor.execute, statement, parameters).fetchall()

    def _tried(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self.check()
        self._failed = True
        done = call(*arguments)
        self._failed = False
        return done


def by_product(rows: Iterable[Any]) -> dict[str, Event]:
    """Return the last event of every product, from rows in order."""
    return {event.product: event for event in map(event_of, rows)}
