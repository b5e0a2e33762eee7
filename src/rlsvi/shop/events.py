"""The events of a shop in its database: the only durable state, and an analyst's table."""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import sqlalchemy as sa

from rlsvi.core.checks import flag, shown, whole
from rlsvi.shop.databases import PostgresServer, SqliteFile
from rlsvi.shop.event import Event
from rlsvi.shop.known_products import KnownProducts
from rlsvi.shop.requests import RequestError, a_list, an_instance
from rlsvi.shop.rows import event_of, row_of, storable_text
from rlsvi.shop.settings import checked_url, sqlite_file
from rlsvi.shop.store_errors import StoreError, explained
from rlsvi.shop.tables import VERSION, Statements, identity, metadata, schema

MOST = 256  # visits of one query
LARGEST = 2**63 - 1  # that a database can count
NONE = "{}: name the settings of a shop that was served, or import events first"


class Events:
    """The table of events, for one process and all its threads.

    url : "sqlite:///shop.db", or "postgresql+psycopg://user@host/shop".
    sync : SQLite: whether events survive a loss of power as soon as they are committed.
    create : whether tables are created where there are none; if not, such a database is refused.

    `shop` is a name that this database has and no other: files of the learner tell by it what they belong to.

    Whatever the database cannot do raises a StoreError; nothing of the transaction is then written.
    """

    def __init__(self, url: str, sync: bool = False, create: bool = True) -> None:
        found, file, sync = checked_url(url), sqlite_file(url), flag("sync", sync)
        if not flag("create", create) and file is not None and not file.exists():
            raise StoreError(NONE.format(f"there is no database {file}"))
        self._database: Any = SqliteFile(found, sync) if found.drivername == "sqlite" else PostgresServer(found)
        self._statements = Statements(self._database.engine.dialect)
        self._errors: Any = self._database.engine.dialect.loaded_dbapi.Error
        self._turn, self._process = threading.Lock(), os.getpid()
        self._products = KnownProducts()
        self._idle: list[Any] = []  # connections; a pool of SQLAlchemy takes longer than a transaction
        try:
            self._create(create)
            self.shop = self._identity()
        except BaseException:
            self.close()
            raise

    def _create(self, create: bool) -> None:
        """Create the tables if there are none, and look at the version of those that are there."""
        with self._told("open"), self._database.turn(), self._database.engine.connect() as connection:
            self._database.begin(connection.connection.cursor())
            names = sa.inspect(connection).get_table_names()
            if schema.name in names:
                self._check(connection.execute(sa.select(schema.c.version)).scalar())
                if all(column["name"] != "among" for column in sa.inspect(connection).get_columns("events")):
                    connection.execute(sa.text("ALTER TABLE events ADD COLUMN among JSON"))  # of an early 0.2.0
            elif {"events", "draws"} & set(names):
                raise StoreError(f"{self._database.name} has tables of another program: use another database")
            elif not create:
                raise StoreError(NONE.format(f"{self._database.name} has no events of a shop"))
            else:
                metadata.create_all(connection)
                connection.execute(sa.insert(schema).values(version=VERSION))
            connection.connection.cursor().execute("COMMIT")

    def _check(self, version: Any) -> None:
        if version != VERSION:
            raise StoreError(
                f"the tables of {self._database.name} have version {version}, and this rlsvi knows version "
                f"{VERSION}: install the rlsvi that they were last used with, or a later one"
            )

    def _identity(self) -> str:
        """Return the name of this database, which is drawn when the database is opened for the first time."""
        with self._told("open"), self._database.turn(), self._database.engine.connect() as connection:
            self._database.begin(connection.connection.cursor())
            if not sa.inspect(connection).has_table(identity.name):
                identity.create(connection)
            known = {column["name"] for column in sa.inspect(connection).get_columns(identity.name)}
            for column in identity.columns:  # that an earlier version did not have
                if column.name not in known:
                    kind = column.type.compile(self._database.engine.dialect)
                    connection.execute(sa.text(f"ALTER TABLE {identity.name} ADD COLUMN {column.name} {kind}"))
            shop = connection.execute(sa.select(identity.c.id)).scalar()
            if shop is None:
                shop = uuid.uuid4().hex
                connection.execute(sa.insert(identity).values(id=shop))
            connection.connection.cursor().execute("COMMIT")
        return str(shop)

    # ---- writing ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator["Writer"]:
        """Context manager of a transaction; only one runs at a time, among all processes.

        It is committed at the end, and rolled back if anything is raised; also after an error of the database that
        was caught.
        """
        with self._turn, self._database.turn(), self._cursor("write", self._database.begin) as cursor:
            writer = Writer(cursor, self._database, self._statements, self._products)
            yield writer
            writer.check()
            self._database.commit(cursor)

    def put_draws(self, body: bytes) -> None:
        """Keep draws, which get the next number; only the newest few are kept."""
        an_instance("body", body, bytes, "bytes, as the file of samples has them")
        with self._cursor("keep draws", lambda cursor: cursor.execute("BEGIN")) as cursor:
            cursor.execute(self._statements.put_draws, {"body": body})
            cursor.execute(self._statements.trim_draws)
            cursor.execute("COMMIT")

    def learned(self) -> None:
        """Note that the learner works."""
        self._note(self._statements.learned, at=time.time())

    def learner_failed(self, why: str) -> None:
        """Note that the learner has failed once more."""
        self._note(self._statements.failed, failure=why)

    def check_writing(self) -> None:
        """Raise a StoreError if nothing can be written now."""
        self._note(self._statements.written, at=time.time())

    def _note(self, statement: str, **values: Any) -> None:
        with self._turn, self._database.turn(), self._cursor("write", self._database.begin) as cursor:
            cursor.execute(statement, values)
            self._database.commit(cursor)

    # ---- reading ------------------------------------------------------------------------------------------

    def since(self, number: int, limit: int) -> list[Event]:
        """Return the first `limit` events after the one of this number, in order."""
        asked = {"id": whole("number", number, 0, LARGEST), "limit": whole("limit", limit, 0, LARGEST)}
        return [event_of(row) for row in self._rows(self._statements.since, asked)]

    def last(self) -> int:
        """Return the number of the last event, 0 if there is none."""
        return self._rows(self._statements.last, {})[0][0] or 0

    def catalogue(self) -> dict[str, Event]:
        """Return the last event, "added" or "removed", of every product, in the order of their first addition."""
        return self._products.current(lambda last: self._rows(self._statements.catalogue, {"id": last}))

    def learner_at(self) -> float | None:
        """Return when the learner noted last that it works, in seconds since 1970; None if it never did."""
        return self.learner_state()[0]

    def learner_state(self) -> tuple[float | None, int, str]:
        """Return when the learner worked last, how often it has failed since then, and the last failure."""
        rows = self._rows(self._statements.learner, {}) or [(None, None, None)]
        at, failures, failure = rows[0]
        return at, failures or 0, failure or ""

    def newest_draws(self, known: int) -> tuple[int, bytes] | None:
        """Return the newest draws and their number, None if there are none but those of number `known`."""
        rows = self._rows(self._statements.newest_draws, {"id": whole("known", known, 0, LARGEST)})
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Context manager of a connection for SELECTs from the tables of `rlsvi.shop.tables`, for statistics."""
        with self._told("read"), self._database.engine.connect() as connection:
            yield connection

    # ---- the rest -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def learner_lock(self) -> Iterator[Any]:
        """Context manager to be the only learner of this database; a StoreError if there is another.

        It yields a function that returns whether this is still so. A restart of PostgreSQL frees the lock: the
        function takes it again if nobody else has, and raises a StoreError while the server does not answer.
        The end of a process, however sudden, frees it too.
        """
        with self._told("lock"), self._database.learner_lock() as held:

            def still() -> bool:
                with self._told("lock"):
                    return bool(held())

            yield still

    def close(self) -> None:
        """Close the database. It may be called again."""
        self._close_idle()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- connections --------------------------------------------------------------------------------------

    def _rows(self, statement: str, parameters: dict[str, Any]) -> list[Any]:
        with self._cursor("read", lambda cursor: cursor.execute(statement, parameters)) as cursor:
            return cursor.fetchall()  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def _cursor(self, what: str, first: Callable[[Any], Any]) -> Iterator[Any]:
        """Context manager of a cursor that has executed its first statement; rolled back if anything is raised."""
        if os.getpid() != self._process:
            raise StoreError("the process has forked since Events was opened: open it in the process that uses it")
        with self._told(what):
            connection, cursor = self._started(first)
            try:
                yield cursor
            except BaseException:
                self._rolled_back(connection)
                raise
            cursor.close()
            self._idle.append(connection)

    def _started(self, first: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return a connection, and a cursor after its first statement.

        A connection that was lost since its last use (the database was restarted) is replaced by a new one.
        """
        for again in (True, False):
            connection = self._connection()
            try:
                cursor = connection.cursor()
                first(cursor)
                return connection, cursor
            except BaseException:
                lost = getattr(connection.driver_connection, "closed", False)  # only PostgreSQL's may be
                self._rolled_back(connection)
                if not (lost and again):
                    raise
            self._close_idle()  # they are lost too
        raise AssertionError

    def _connection(self) -> Any:
        """Return an idle connection, or else a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._database.engine.raw_connection()

    def _rolled_back(self, connection: Any) -> None:
        """Roll back, and keep the connection; or close it if that fails too."""
        try:
            connection.rollback()
            self._idle.append(connection)
        except Exception:
            connection.invalidate()

    def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Context manager that tells errors of the database in plain English."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise explained(error.orig, self._database.name, what) from error
        except self._errors as error:
            raise explained(error, self._database.name, what) from error


class Writer:
    """A transaction that writes: what is read in it stays so until it ends."""

    def __init__(self, cursor: Any, database: Any, statements: Statements, products: KnownProducts) -> None:
        self._cursor, self._database, self._statements = cursor, database, statements
        self._products, self._failed, self._written = products, False, False

    def visits(self, names: Iterable[str]) -> dict[str, list[Event]]:
        """Return the events of each of these visits, in order."""
        asked = list(dict.fromkeys(self._name(name) for name in a_list("names", names, "visits")))
        found: dict[str, list[Event]] = {name: [] for name in asked}
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
        rows = [row_of(event) for event in a_list("events", events, "Event")]
        self._written = True
        return self._tried(self._database.insert, self._cursor, self._statements.insert, rows) if rows else []

    def last(self) -> int:
        """Return the number of the last event, 0 if there is none."""
        return self._rows(self._statements.last, {})[0][0] or 0

    def changed(self) -> int:
        """Return the number of the last event that changed the catalogue, 0 if there is none."""
        return self._cursor.execute(self._statements.changed).fetchone()[0] or 0

    def catalogue(self) -> dict[str, Event]:
        """Return the last event, "added" or "removed", of every product, in the order of their first addition."""
        asked = self._statements.catalogue
        return self._products.current(lambda last: self._rows(asked, {"id": last}), keep=not self._written)

    def check(self) -> None:
        """Raise an error if a statement has failed: the database may have undone what came before it."""
        if self._failed:
            raise StoreError("a statement of this transaction has failed before: nothing of it is written")

    def _name(self, name: Any) -> str:
        if not storable_text(name):
            raise RequestError(f"names must be texts, got {shown(name)}")
        return str(name)

    def _rows(self, statement: str, parameters: dict[str, Any]) -> Any:
        return self._tried(self._cursor.execute, statement, parameters).fetchall()

    def _tried(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self.check()
        self._failed = True
        done = call(*arguments)
        self._failed = False
        return done
