"""The two databases that a shop may use: a file of SQLite, or a server of PostgreSQL.

Both serialise those who write, among all processes: event numbers become visible in their order, and nobody
appends to a visit that someone else is looking at. A connection is in autocommit mode: transactions begin and end
by statements written out.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from rlsvi.core.files import fcntl, lock
from rlsvi.shop.store_errors import InDoubt, StoreError

PATIENCE = 30  # seconds to wait for other writers
PAUSE = 0.0005  # seconds until a writer looks again whether it is its turn
WRITING, LEARNING = 0x726C737669_01, 0x726C737669_02  # numbers of locks in PostgreSQL
TAKEN = "another learner already works for {}: end it before you start this one"


class SqliteFile:
    """A file of SQLite in WAL mode: readers and one writer do not disturb one another.

    Writers wait at a lock file beside the database, and look at it every half millisecond. SQLite's own lock,
    which is taken too, would let them sleep for up to a tenth of a second at a time.
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
        self._wait()
        try:
            yield
        finally:
            if fcntl is not None:
                fcntl.flock(self._queue, fcntl.LOCK_UN)

    def _wait(self) -> None:
        """Wait for the lock of the queue, but not for ever: its owner may be stopped or hang."""
        end = time.monotonic() + PATIENCE
        while lock(self._queue) is False:
            if time.monotonic() > end:
                raise StoreError(
                    f"the shop's database {self.name} could not write: another process has kept its turn to write "
                    f"for {PATIENCE:g} seconds: look for one that is stopped or hangs (it holds the lock of "
                    f"{self._beside('writing')})"
                )
            time.sleep(PAUSE)

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
        descriptor, path = self._locked_file("learner"), self._beside("learner")
        try:
            if lock(descriptor) is False:
                raise StoreError(TAKEN.format(self.name))
            yield lambda: path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the file."""
        self.engine.dispose()
        queue, self._queue = self._queue, -1
        if queue >= 0:
            os.close(queue)

    def _beside(self, purpose: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{purpose}")

    def _locked_file(self, purpose: str) -> int:
        path = self._beside(purpose)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
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
            needs = 'PostgreSQL needs psycopg: pip install ".[serve,postgres]" in a clone of rlsvi'
            raise StoreError(needs) from None

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
            raise InDoubt(
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

        The lock belongs to a connection: the server frees it when the connection ends, and when it restarts. Then
        the function takes it again with another connection, unless somebody else has it.
        """
        holding = _Holding(self.engine)
        try:
            if not holding.taken():
                raise StoreError(TAKEN.format(self.name))
            yield holding.still
        finally:
            holding.end()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


class _Holding:
    """A connection to PostgreSQL that holds the lock of the learner."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine, self._connection = engine, engine.raw_connection()

    def taken(self) -> bool:
        """Take the lock, and return whether nobody else had it."""
        return bool(self._asked(f"SELECT pg_try_advisory_lock({LEARNING})"))

    def still(self) -> bool:
        """Return whether the lock is held: still, or again after the connection was lost."""
        try:
            return bool(self._asked("SELECT true"))
        except Exception:
            if self._connection.is_valid:
                self._connection.invalidate()
            self._connection = self._engine.raw_connection()
            return self.taken()

    def end(self) -> None:
        """Free the lock now: the server would take a moment to see that the connection has ended."""
        with contextlib.suppress(Exception):
            self._asked(f"SELECT pg_advisory_unlock({LEARNING})")
        self._connection.close()

    def _asked(self, question: str) -> Any:
        driver: Any = self._connection.driver_connection
        return driver.execute(question).fetchone()[0]
