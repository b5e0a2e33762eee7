"""The two databases that a shop may use: a file of SQLite, or a server of PostgreSQL.

Both serialise those who write, among all processes: event numbers become visible in their order, and nobody
appends to a visit that someone else is looking at. A connection is in autocommit mode: transactions begin and end
by statements written out.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from rlsvi.core.files import fcntl, lock
from rlsvi.shop.store_errors import StoreError

PATIENCE = 30  # seconds to wait for other writers
WRITING, LEARNING = 0x726C737669_01, 0x726C737669_02  # numbers of locks in PostgreSQL
TAKEN = "another learner already works for {}: end it before you start this one"


class SqliteFile:
    """A file of SQLite in WAL mode: readers and one writer do not disturb one another.

    Writers queue at a lock file beside the database. SQLite's own lock, which is taken too, would let them sleep
    and try again.
    """

    def __init__(self, url: sa.URL, sync: bool) -> None:
        self.path = Path(str(url.database))
        self.name = str(self.path)
        if not os.path.isdir(self.path.parent):
            raise StoreError(f"there is no folder {self.path.parent} that this user can open: create it")
        self.engine = sa.create_engine(
            url,
            paramstyle="named",
            isolation_level="AUTOCOMMIT",
            poolclass=sa.NullPool,
            connect_args={"timeout": PATIENCE},
        )
        level = "FULL" if sync else "NORMAL"

        @sa.event.listens_for(self.engine, "connect")
        def _prepared(connection: Any, record: Any) -> None:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL").close()
            connection.execute(f"PRAGMA synchronous = {level}").close()

        self._queue = self._locked_file("writing")
        self._place: os.stat_result | None = None

    def begin(self, cursor: Any) -> None:
        """Begin a transaction that writes."""
        self._place = self._place or self.path.stat()
        cursor.execute("BEGIN IMMEDIATE")

    def commit(self, cursor: Any) -> None:
        """Commit the transaction."""
        cursor.execute("COMMIT")

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Context manager to wait for one's turn among the processes that write."""
        if self._place is not None and not self._in_place():
            raise StoreError(f"the shop's database {self.name} was removed or replaced: start the service again")
        if fcntl is not None:
            fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            if fcntl is not None:
                fcntl.flock(self._queue, fcntl.LOCK_UN)

    def _in_place(self) -> bool:
        """Return whether the file is the one that was opened: SQLite itself would go on writing a removed one."""
        try:
            return os.path.samestat(os.stat(self.name), cast(os.stat_result, self._place))
        except OSError:
            return False

    def insert(self, cursor: Any, statement: str, rows: list[dict[str, Any]]) -> list[int]:
        """Insert rows, and return the numbers they got: consecutive ones, since nobody else writes."""
        cursor.executemany(statement, rows)
        last = cursor.execute("SELECT last_insert_rowid()").fetchone()[0]
        return list(range(last - len(rows) + 1, last + 1))

    @contextlib.contextmanager
    def learner_lock(self) -> Iterator[Any]:
        """Context manager to be the only learner; yields a function that tells whether this is still so."""
        descriptor = self._locked_file("learner")
        try:
            if lock(descriptor) is False:
                raise StoreError(TAKEN.format(self.name))
            yield lambda: True
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the file."""
        self.engine.dispose()
        os.close(self._queue)

    def _locked_file(self, purpose: str) -> int:
        path = self.path.with_name(f"{self.path.name}.{purpose}")
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be opened ({error.strerror}): let this user write its folder"
            ) from None


class PostgresServer:
    """A server of PostgreSQL. Writers queue at an advisory lock, which a transaction holds until it ends."""

    def __init__(self, url: sa.URL) -> None:
        self.name = url.render_as_string(hide_password=True)
        settings = f"-c lock_timeout={PATIENCE}s -c idle_in_transaction_session_timeout={2 * PATIENCE}s"
        options = f"{url.query.get('options', '')} {settings}".strip()
        alive = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "connect_timeout": 10}
        try:
            self.engine = sa.create_engine(
                url.difference_update_query(["options"]),
                isolation_level="AUTOCOMMIT",
                poolclass=sa.NullPool,
                connect_args={**alive, "options": options},
            )
        except ModuleNotFoundError:
            raise StoreError('PostgreSQL needs psycopg: pip install "rlsvi[serve,postgres]"') from None

    def begin(self, cursor: Any) -> None:
        """Begin a transaction that writes, when it is its turn."""
        cursor.execute(
            f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({WRITING})", prepare=False
        )

    def commit(self, cursor: Any) -> None:
        """Commit the transaction. A connection that is lost meanwhile does not tell whether it was committed."""
        try:
            cursor.execute("COMMIT")
        except Exception as error:
            if not cursor.connection.closed:
                raise
            raise StoreError(
                f"the connection to {self.name} was lost in the end: it is not known whether the events were "
                "written; ask again, none is written twice"
            ) from error
        if cursor.statusmessage != "COMMIT":  # PostgreSQL rolls back what had an error, and says only this
            raise StoreError(f"the server of {self.name} has rolled back the transaction: try again")

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Context manager: the server keeps the queue."""
        yield

    def insert(self, cursor: Any, statement: str, rows: list[dict[str, Any]]) -> list[int]:
        """Insert rows, and return the numbers they got."""
        if len(rows) == 1:  # the usual case; a pipeline of one would cost more
            return [cursor.execute(statement, rows[0]).fetchone()[0]]
        cursor.executemany(statement, rows, returning=True)
        numbers = [cursor.fetchone()[0]]
        while cursor.nextset():
            numbers.append(cursor.fetchone()[0])
        return numbers

    @contextlib.contextmanager
    def learner_lock(self) -> Iterator[Any]:
        """Context manager to be the only learner; yields a function that tells whether this is still so.

        The lock belongs to a connection: the server frees it when the connection ends, and when it restarts.
        """
        connection = self.engine.raw_connection()
        driver: Any = connection.driver_connection
        try:
            if not driver.execute(f"SELECT pg_try_advisory_lock({LEARNING})").fetchone()[0]:
                raise StoreError(TAKEN.format(self.name))
            yield lambda: _answers(driver)
            _answers(driver, f"SELECT pg_advisory_unlock({LEARNING})")  # the server takes a moment to see the end
        finally:
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _answers(connection: Any, question: str = "SELECT 1") -> bool:
    """Return whether a connection is alive."""
    try:
        connection.execute(question)
    except Exception:
        return False
    return True
