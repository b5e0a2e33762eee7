"""The events of a shop in its database: the only durable state, and an analyst's table."""

import contextlib
import json
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import sqlalchemy as sa

from rlsvi.core.checks import flag, shown, whole
from rlsvi.core.files import PRIVATE, fcntl, lock
from rlsvi_shop.requests import RequestError, check_type, list_of, plain
from rlsvi_shop.settings import database_url, sqlite_file

Kind = Literal["added", "removed", "recommended", "answered", "closed"]
KINDS: tuple[str, ...] = get_args(Kind)


class Event(NamedTuple):
    """One event. Columns that a kind of event does not have are None, or "" for `visit` and `product`.

    Attributes
    ----------
    kind
        "added" or "removed" (a product), "recommended", "answered" or "closed" (a visit).
    visit
        The visit of a customer.
    product
        The product.
    slot
        Recommended: the slot that the product fills, from 0.
    reward
        Answered: the reward. None, which only a correction has, withdraws the answer.
    propensity
        Recommended: the probability of this product, given the earlier ones of the visit; None if it is not known.
    explored
        Recommended: whether the posterior mean would have chosen another product; None if several are its best.
    sample
        Recommended: the last event that the draws had learned from.
    features
        Added: the features of the product; recommended in slot 0: the context of the customer.
    at
        Seconds since 1970.
    id
        The number of the event, in the order in which events were committed; 0 until then.
    among
        Recommended: the products that the request allowed; None: all that were offered.
    correction
        Answered: 0 for the first answer to a product, 1, 2 and so on for those that replace the one before.
    agreeing
        Recommended: for each posterior draw, how likely it would have shown all that the visit was shown so far,
        relative to the likeliest; None if it is not known, or visits have one slot.

    Examples
    --------
    >>> from rlsvi_shop import Event
    >>> Event(kind="answered", visit="ann", product="tea", reward=1.0).slot is None
    True
    """

    kind: Kind
    visit: str = ""
    product: str = ""
    slot: int | None = None
    reward: float | None = None
    propensity: float | None = None
    explored: bool | None = None
    sample: int | None = None
    features: dict[str, Any] | None = None
    at: float = 0.0
    id: int = 0
    among: list[str] | None = None
    correction: int = 0
    agreeing: list[float] | None = None


# ---- events as rows of the table, and back -------------------------------------------------------------------


def storable_text(value: Any) -> bool:
    """Return whether a value is a text that a database can hold."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value))


class _Column(NamedTuple):
    """What a column holds: the classes of a value, how it is written, what is said of another one, its limits."""

    types: Any
    convert: Callable[[Any], Any]
    words: str
    fits: Callable[[Any], bool] = lambda value: True


TEXT = _Column(str, str, "a text", storable_text)
LIST = _Column(list, partial(json.dumps, allow_nan=False), "a list of products")
COLUMNS = {
    **dict.fromkeys(("visit", "product"), TEXT),
    **dict.fromkeys(
        ("slot", "sample", "id", "correction"),
        _Column((int, np.integer), int, "a whole number of 64 bits", lambda value: -(2**63) <= value < 2**63),
    ),
    **dict.fromkeys(
        ("reward", "propensity", "at"),
        _Column(
            (int, float, np.integer, np.floating),
            float,
            "a finite number",
            lambda value: abs(value) <= sys.float_info.max,
        ),
    ),
    **{
        "kind": TEXT._replace(words=f"one of {', '.join(KINDS)}", fits=KINDS.__contains__),
        "explored": _Column((bool, np.bool_), bool, "True or False"),
        "features": _Column(dict, partial(json.dumps, allow_nan=False), "a dictionary"),
        "among": LIST,
        "agreeing": LIST._replace(
            words="a list of numbers from 0 to 1",
            fits=lambda value: all(type(each) in (int, float) and 0 <= each <= 1 for each in value),
        ),
    },
}
OPTIONAL = {name for name, default in Event._field_defaults.items() if default is None}


def row_of(event: Event) -> dict[str, Any]:
    """Return the row of an event, after checking that the event is complete."""
    if not isinstance(event, Event):
        raise ValueError(f"events must be a list of Event, got {shown(event)}")
    row: dict[str, Any] = {}
    for name, value in zip(Event._fields, event, strict=True):
        column = COLUMNS[name]
        if value is None and name in OPTIONAL:
            row[name] = None
            continue
        if not isinstance(value, column.types) or not column.fits(plain(value)):  # a float32 would overflow there
            raise ValueError(f"{name} of an event must be {column.words}, got {shown(value)}")
        try:
            row[name] = column.convert(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{name} of an event must be what JSON can hold, got {shown(value)}: {error}"
            ) from None
    kind, reward = event.kind, event.reward
    if bool(event.visit) is (kind in ("added", "removed")) or bool(event.product) is (kind == "closed"):
        raise ValueError(f"{event!r:.300} must name a visit, a product or both, as its kind has them")
    if (reward is None) is (kind == "answered") and not (kind == "answered" and event.correction):
        raise ValueError(f"{event!r:.300} must have a finite reward if it is an answer, and none otherwise")
    if event.correction < 0 or (event.correction and kind != "answered"):
        raise ValueError(f"{event!r:.300} must have a correction of 0, or of 1, 2, .. if it is a later answer")
    row["at"] = row["at"] or time.time()
    del row["id"]  # the database counts
    return row


def event_of(row: Sequence[Any]) -> Event:
    """Return the event of a row, whose columns are in the order of an Event's attributes."""
    event = Event._make(row)
    return event._replace(
        explored=None if event.explored is None else bool(event.explored),  # SQLite has 0 and 1
        features=_read_json(event.features),
        among=_read_json(event.among),
        agreeing=_read_json(event.agreeing),
    )


def _read_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value  # PostgreSQL has read it already


class CatalogueCache:
    """The catalogue as this process knows it: the last event, "added" or "removed", of every product.

    Event numbers become visible in the order of commits, so what was read once need not be read again.
    """

    def __init__(self) -> None:
        self._lock, self._last, self._events = threading.Lock(), 0, dict[str, Event]()

    def current(self, rows_after: Callable[[int], Iterable[Any]], keep: bool = True) -> dict[str, Event]:
        """Return the catalogue now, products in the order of their first addition.

        Parameters
        ----------
        rows_after
            Returns the rows of the catalogue after the event of a number, in order.
        keep
            Whether to remember what is new. A transaction that has written does not: it may be rolled back.
        """
        with self._lock:
            last, found = self._last, self._events.copy()
        for event in map(event_of, rows_after(last)):
            found[event.product], last = event, event.id
        with self._lock:
            if keep and last > self._last:
                self._last, self._events = last, found.copy()
        return found


# ---- what a database says when it fails, in plain English and with a remedy ----------------------------------


class StoreError(RuntimeError):
    """The shop's database could not do what was asked; nothing of it was written.

    Examples
    --------
    >>> from rlsvi_shop import Recommender, StoreError
    >>> try:
    ...     shop = Recommender(database="sqlite:////nowhere/shop.db")
    ... except StoreError:
    ...     print("there is no such folder")
    there is no such folder
    """

    reason = ""  # in general words, without names of this shop
    for_client = (
        "the database does not answer: nothing was stored, ask again"  # to a client, who need not know more
    )


class InDoubt(StoreError):
    """The connection was lost while a transaction was being committed: it may have been written."""

    for_client = (
        "the connection to the database was lost: the request may have been stored; send it again, which is safe: "
        "nothing counts twice (in a request to recommend, name the slot)"
    )


SQLITE = {  # by the beginning of SQLite's own words, in small letters
    "database or disk is full": "the disk is full: free some space",
    "attempt to write a readonly database": "it is read-only: let this user write the file and its folder",
    "unable to open database file": "it cannot be opened: let this user write the file and its folder",
    "file is not a database": "it is not a SQLite database: name another file",
    "database disk image is malformed": "it is damaged: restore a copy",
    "database is locked": "another program keeps it locked: end that program, or wait for it",
    "disk i/o error": "the disk does not read or write: check it, and that it is not full",
    "no such table": "its tables have been removed: restore a copy",
    "unique constraint failed": "it already has an event of this kind, visit and product",
}
POSTGRES = {  # by SQLSTATE, or the beginning of it
    "53100": "the disk of the server is full: free some space",
    "53300": "the server has too many connections: raise max_connections, or use fewer workers",
    "25006": "the server is read-only: connect to the primary server",
    "23505": "it already has an event of this kind, visit and product",
    "42501": "the user lacks a permission: GRANT it, or make the user the owner of the tables",
    "42P01": "its tables have been removed: restore a copy",
    "55P03": "another process kept its turn to write for too long: look for one that is stopped",
    "57": "the server is shutting down or starting: try again soon",
    "08": "the connection was lost: try again soon",
}
CONNECTING = {  # by words of PostgreSQL, which sends no SQLSTATE before there is a connection
    "does not exist": "the server has no such database or user: use createdb, createuser or another URL",
    "authentication failed": "the server refuses the user or the password: check the URL and PGPASSWORD",
    "pg_hba.conf": "the server refuses this user from this machine: check its file pg_hba.conf",
    "too many clients": "the server has too many connections: raise max_connections, or use fewer workers",
    "": "the server does not answer: check that it runs and the URL, then try again",
}


def store_error(error: Any, database: str, what: str) -> StoreError:
    """Return the error that tells what failed on which database, why, and what to do."""
    words = str(error).strip().partition("\n")[0] or type(error).__name__
    state = getattr(error, "sqlstate", None) or ""
    reasons = [reason for start, reason in POSTGRES.items() if state.startswith(start)]
    reasons += [reason for start, reason in SQLITE.items() if words.lower().startswith(start)]
    if type(error).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError":
        reasons += [reason for part, reason in CONNECTING.items() if part in words]
    reason = reasons[0] if reasons else "see the words of the database"
    found = StoreError(f"the shop's database {database} could not {what}: {reason} ({words})")
    found.reason = reason
    return found


# ---- the tables of a shop's database, and the statements on them ----------------------------------------------


VERSION = 1  # of the tables; a database of a later one is refused
# an INTEGER of SQLite has 64 bits, and may count itself
BIG_INTEGER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

metadata = sa.MetaData()
schema = sa.Table("shop_schema", metadata, sa.Column("version", sa.Integer, nullable=False))
events = sa.Table(
    "events",
    metadata,
    sa.Column("id", BIG_INTEGER, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("visit", sa.Text, nullable=False),
    sa.Column("product", sa.Text, nullable=False),
    sa.Column("slot", sa.Integer),
    sa.Column("reward", sa.Double),
    sa.Column("propensity", sa.Double),
    sa.Column("explored", sa.Boolean),
    sa.Column("sample", BIG_INTEGER),
    sa.Column("features", sa.JSON),
    sa.Column("among", sa.JSON),
    sa.Column("correction", sa.Integer, nullable=False, server_default="0"),
    sa.Column("agreeing", sa.JSON),
    sa.CheckConstraint("kind IN ('added', 'removed', 'recommended', 'answered', 'closed')", name="events_kind"),
    sqlite_autoincrement=True,
)
OF_VISITS, OF_CATALOGUE = events.c.visit != "", events.c.visit == ""
ONCE = sa.Index(
    "events_once_each",
    events.c.visit,
    events.c.kind,
    events.c.product,
    events.c.correction,
    unique=True,
    sqlite_where=OF_VISITS,
    postgresql_where=OF_VISITS,
)
sa.Index("events_catalogue", events.c.id, sqlite_where=OF_CATALOGUE, postgresql_where=OF_CATALOGUE)
identity = sa.Table(  # one row: a name of the database that no other has, and how its learner and its writers do
    "shop_identity",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("learner_at", sa.Double),  # when it worked last
    sa.Column("failures", sa.Integer),  # of the learner since then
    sa.Column("failure", sa.Text),  # the class of the last one
    sa.Column("written_at", sa.Double),  # by a look whether writing is possible
)
draws = sa.Table(  # the newest few samples, numbered in the order in which they were written
    "draws",
    metadata,
    sa.Column("id", BIG_INTEGER, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary),
)

ROW = ", ".join(Event._fields)  # a row, in the order of an Event
NEW = [name for name in Event._fields if name != "id"]
INSERT = f"INSERT INTO events ({', '.join(NEW)}) VALUES (:{', :'.join(NEW)})"
LAST_EVENT = "SELECT max(id) FROM events"
CHANGED = "SELECT max(id) FROM events WHERE visit = ''"
SINCE = f"SELECT {ROW} FROM events WHERE id > :id ORDER BY id LIMIT :limit"
CATALOGUE = f"SELECT {ROW} FROM events WHERE visit = '' AND id > :id ORDER BY id"
NEWEST_DRAWS = "SELECT id, body FROM draws WHERE id = (SELECT max(id) FROM draws) AND id <> :id"
PUT_DRAWS = "INSERT INTO draws (id, body) VALUES ((SELECT coalesce(max(id), 0) + 1 FROM draws), :body)"
TRIM_DRAWS = "DELETE FROM draws WHERE id NOT IN (SELECT id FROM draws ORDER BY id DESC LIMIT 3)"
LEARNER = "SELECT learner_at, failures, failure FROM shop_identity"
LEARNED = "UPDATE shop_identity SET learner_at = :at, failures = 0"
FAILED = "UPDATE shop_identity SET failures = coalesce(failures, 0) + 1, failure = :failure"
WRITTEN = "UPDATE shop_identity SET written_at = :at"


@cache
def _select_visits(count: int) -> str:
    names = ", ".join(f":v{i}" for i in range(count))
    # The condition is written exactly as in the index, because SQLite uses the index only then.
    return f"SELECT {ROW} FROM events WHERE visit <> '' AND visit IN ({names}) ORDER BY id"


# ---- the two databases that a shop may use: a file of SQLite, or a server of PostgreSQL ----------------------
#
# Both serialise those who write, among all processes: event numbers become visible in their order, and nobody
# appends to a visit that someone else is looking at. A connection is in autocommit mode: transactions begin and
# end by statements written out.


PATIENCE = 30  # seconds to wait for other writers
PAUSE = 0.0005  # seconds until a writer looks again whether it is its turn
WRITING, LEARNING = 0x726C737669_01, 0x726C737669_02  # numbers of locks in PostgreSQL
TAKE_LEARNING, FREE_LEARNING = (
    f"SELECT pg_{what}({LEARNING})" for what in ("try_advisory_lock", "advisory_unlock")
)
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
            isolation_level="AUTOCOMMIT",
            poolclass=sa.NullPool,
            connect_args={"timeout": PATIENCE},
        )
        level = "FULL" if sync else "NORMAL"

        @sa.event.listens_for(self.engine, "connect")
        def prepare(connection: Any, record: Any) -> None:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL").close()
            connection.execute(f"PRAGMA synchronous = {level}").close()

        with contextlib.suppress(OSError):  # SQLite gives the files beside the database the same mode
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        self._queue = self._open_lock("writing")
        self._place: os.stat_result | None = None

    sql = staticmethod(str)  # the driver has statements as they are

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
        try:  # SQLite itself would go on writing to a file that was removed
            there = self._place is None or os.path.samestat(os.stat(self.name), self._place)
        except OSError:
            there = False
        if not there:
            raise StoreError(f"the shop's database {self.name} was removed or replaced: start the service again")
        end = time.monotonic() + PATIENCE
        while lock(self._queue) is False:
            if time.monotonic() > end:  # its owner may be stopped or hang
                raise StoreError(
                    f"the shop's database {self.name} could not write: another process has kept its turn to write "
                    f"for {PATIENCE:g} seconds: look for one that is stopped or hangs (it holds the lock of "
                    f"{self._beside('writing')})"
                )
            time.sleep(PAUSE)
        try:
            yield
        finally:
            if fcntl is not None:
                fcntl.flock(self._queue, fcntl.LOCK_UN)

    def insert(self, cursor: Any, rows: list[dict[str, Any]]) -> list[int]:
        """Insert rows, and return the numbers they got: consecutive ones, since nobody else writes."""
        cursor.executemany(INSERT, rows)
        last = cursor.execute("SELECT last_insert_rowid()").fetchone()[0]
        return list(range(last - len(rows) + 1, last + 1))

    @contextlib.contextmanager
    def learner_lock(self) -> Iterator[Any]:
        """Context manager to be the only learner; yields a function that tells whether this is still so."""
        descriptor, path = self._open_lock("learner"), self._beside("learner")
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

    def _open_lock(self, purpose: str) -> int:
        path = self._beside(purpose)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), PRIVATE)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be opened ({error.strerror}): let this user write its folder"
            ) from None


class PostgresServer:
    """A server of PostgreSQL. Writers queue at an advisory lock, which a transaction holds until it ends."""

    turn = contextlib.nullcontext  # nobody waits here: the server keeps the queue

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
            raise StoreError(
                'PostgreSQL needs psycopg: pip install . "./shop[postgres]" in a clone of rlsvi'
            ) from None

    @staticmethod
    @cache
    def sql(statement: str) -> str:
        """Return a statement as the driver has it."""
        return re.sub(r":(\w+)", r"%(\1)s", statement)

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

    def insert(self, cursor: Any, rows: list[dict[str, Any]]) -> list[int]:
        """Insert rows, and return the numbers they got."""
        statement = self.sql(f"{INSERT} RETURNING id")
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
        connection: Any = self.engine.raw_connection()

        def ask(question: str) -> bool:
            return bool(connection.driver_connection.execute(question).fetchone()[0])

        def is_held() -> bool:
            nonlocal connection
            try:
                return ask("SELECT true")
            except Exception:
                if connection.is_valid:
                    connection.invalidate()
                connection = self.engine.raw_connection()
                return ask(TAKE_LEARNING)

        try:
            if not ask(TAKE_LEARNING):
                raise StoreError(TAKEN.format(self.name))
            yield is_held
        finally:
            with contextlib.suppress(Exception):  # the server would take a moment to see that the connection ended
                ask(FREE_LEARNING)
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


MOST_VISITS = 256  # visits of one query
LARGEST_COUNT = 2**63 - 1  # that a database can count
NONE = "{}: name the settings of a shop that was served, or import events first"


class Events(contextlib.AbstractContextManager["Events"]):
    """The table of events, for one process and all its threads.

    `shop` is a name that this database has and no other: files of the learner tell by it what they belong to.

    Whatever the database cannot do raises a StoreError; nothing of the transaction is then written.

    Parameters
    ----------
    url
        "sqlite:///shop.db", or "postgresql+psycopg://user@host/shop".
    sync
        SQLite: whether events survive a loss of power as soon as they are committed.
    create
        Whether tables are created where there are none; if not, such a database is refused.

    Examples
    --------
    >>> from rlsvi_shop import Events, Recommender
    >>> shop = Recommender(database="sqlite:///shop.db")
    >>> shop.add("tea")
    >>> shop.stop()
    >>> events = Events("sqlite:///shop.db")
    >>> [event.kind for event in events.since(0, limit=10)]
    ['added']
    >>> events.close()
    """

    def __init__(self, url: str, sync: bool = False, create: bool = True) -> None:
        found, file, sync = database_url(url), sqlite_file(url), flag("sync", sync)
        if not flag("create", create) and file is not None and not file.exists():
            raise StoreError(NONE.format(f"there is no database {file}"))
        self._database: Any = SqliteFile(found, sync) if found.drivername == "sqlite" else PostgresServer(found)
        self._errors: Any = self._database.engine.dialect.loaded_dbapi.Error
        self._turn, self._process = threading.Lock(), os.getpid()
        self._products = CatalogueCache()
        self._idle: list[Any] = []  # connections; a pool of SQLAlchemy takes longer than a transaction
        try:
            self.shop = self._open(create)
        except BaseException:
            self.close()
            raise

    def _open(self, create: bool) -> str:
        """Return the name of this database, after creating the tables and columns that it lacks.

        Earlier versions had no corrections, no column `among` or `agreeing`, or no name of the database, which is
        drawn then.
        """
        with self._plain_errors("open"), self._database.turn(), self._database.engine.connect() as connection:
            cursor = connection.connection.cursor()
            self._database.begin(cursor)
            names = sa.inspect(connection).get_table_names()
            if schema.name in names:
                version = connection.execute(sa.select(schema.c.version)).scalar()
                if version != VERSION:
                    raise StoreError(
                        f"the tables of {self._database.name} have version {version}, and this rlsvi knows "
                        f"version {VERSION}: install the rlsvi that they were last used with, or a later one"
                    )
                if identity.name not in names:
                    identity.create(connection)
            elif {"events", "draws"} & set(names):
                raise StoreError(f"{self._database.name} has tables of another program: use another database")
            elif not create:
                raise StoreError(NONE.format(f"{self._database.name} has no events of a shop"))
            else:
                metadata.create_all(connection)
                connection.execute(sa.insert(schema).values(version=VERSION))
            for table in (events, identity):
                known = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
                for column in table.columns:
                    if column.name not in known:
                        words = sa.schema.CreateColumn(column).compile(dialect=self._database.engine.dialect)
                        connection.execute(sa.text(f"ALTER TABLE {table.name} ADD COLUMN {words}"))
                        if column is events.c.correction:
                            ONCE.create(connection)
                            connection.execute(sa.text("DROP INDEX IF EXISTS events_once"))
            shop = connection.execute(sa.select(identity.c.id)).scalar()
            if shop is None:
                shop = uuid.uuid4().hex
                connection.execute(sa.insert(identity).values(id=shop))
            cursor.execute("COMMIT")
        return str(shop)

    # ---- writing ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator["Writer"]:
        """Context manager of a transaction; only one runs at a time, among all processes.

        It is committed at the end, and rolled back if anything is raised; also after an error of the database that
        was caught.

        Returns
        -------
        Iterator
            A context manager whose value writes events.
        """
        with self._turn, self._database.turn(), self._cursor("write", self._database.begin) as cursor:
            writer = Writer(cursor, self._database, self._products)
            yield writer
            writer.check()
            self._database.commit(cursor)

    def put_draws(self, body: bytes) -> None:
        """Keep draws, which get the next number; only the newest few are kept."""
        check_type("body", body, bytes, "bytes, as the file of samples has them")
        with self._cursor("keep draws", lambda cursor: cursor.execute("BEGIN")) as cursor:
            cursor.execute(self._database.sql(PUT_DRAWS), {"body": body})
            cursor.execute(TRIM_DRAWS)
            cursor.execute("COMMIT")

    def note_learner(self) -> None:
        """Note that the learner works."""
        self._note(LEARNED, at=time.time())

    def note_failure(self, why: str) -> None:
        """Note that the learner has failed once more."""
        self._note(FAILED, failure=why)

    def check_writing(self) -> None:
        """Raise a StoreError if nothing can be written now."""
        self._note(WRITTEN, at=time.time())

    def _note(self, statement: str, **values: Any) -> None:
        with self._turn, self._database.turn(), self._cursor("write", self._database.begin) as cursor:
            cursor.execute(self._database.sql(statement), values)
            self._database.commit(cursor)

    # ---- reading ------------------------------------------------------------------------------------------

    def since(self, number: int, limit: int) -> list[Event]:
        """Return the first `limit` events after the one of this number, in order.

        Parameters
        ----------
        number
            The number of an event; 0 for all.
        limit
            The most events to return.

        Returns
        -------
        list
            The events.
        """
        asked = {"id": whole("number", number, 0, LARGEST_COUNT), "limit": whole("limit", limit, 0, LARGEST_COUNT)}
        return [event_of(row) for row in self._rows(SINCE, asked)]

    def last(self) -> int:
        """Return the number of the last event, 0 if there is none.

        Returns
        -------
        int
            The number.
        """
        return self._rows(LAST_EVENT, {})[0][0] or 0

    def catalogue(self) -> dict[str, Event]:
        """Return the last event, "added" or "removed", of every product, in the order of their first addition.

        Returns
        -------
        dict
            The events by product.
        """
        return self._products.current(lambda last: self._rows(CATALOGUE, {"id": last}))

    def learner_state(self) -> tuple[float | None, int, str]:
        """Return when the learner worked last, how often it has failed since then, and the last failure.

        The time is in seconds since 1970, None if it never worked.
        """
        at, failures, failure = (self._rows(LEARNER, {}) or [(None, None, None)])[0]
        return at, failures or 0, failure or ""

    def newest_draws(self, known: int) -> tuple[int, bytes] | None:
        """Return the newest draws and their number, None if there are none but those of number `known`."""
        rows = self._rows(NEWEST_DRAWS, {"id": whole("known", known, 0, LARGEST_COUNT)})
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Context manager of a connection for SELECTs from the tables of `rlsvi_shop.events`, for statistics."""
        with self._plain_errors("read"), self._database.engine.connect() as connection:
            yield connection

    # ---- the rest -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def learner_lock(self) -> Iterator[Any]:
        """Context manager to be the only learner of this database; a StoreError if there is another.

        It yields a function that returns whether this is still so. A restart of PostgreSQL frees the lock: the
        function takes it again if nobody else has, and raises a StoreError while the server does not answer.
        The end of a process, however sudden, frees it too.
        """
        with self._plain_errors("lock"), self._database.learner_lock() as held:

            def still() -> bool:
                with self._plain_errors("lock"):
                    return bool(held())

            yield still

    def close(self) -> None:
        """Close the database. It may be called again."""
        self._close_idle()
        self._database.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- connections --------------------------------------------------------------------------------------

    def _rows(self, statement: str, parameters: dict[str, Any]) -> list[Any]:
        statement = self._database.sql(statement)
        with self._cursor("read", lambda cursor: cursor.execute(statement, parameters)) as cursor:
            return cursor.fetchall()  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def _cursor(self, what: str, first: Callable[[Any], Any]) -> Iterator[Any]:
        """Context manager of a cursor that has executed its first statement; rolled back if anything is raised."""
        if os.getpid() != self._process:
            raise StoreError("the process has forked since Events was opened: open it in the process that uses it")
        with self._plain_errors(what):
            connection, cursor = self._start(first)
            try:
                yield cursor
            except BaseException:
                self._roll_back(connection)
                raise
            cursor.close()
            self._idle.append(connection)

    def _start(self, first: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return a connection, and a cursor after its first statement.

        A connection that was lost since its last use (the database was restarted) is replaced by a new one.
        """
        for again in (True, False):
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._database.engine.raw_connection()
            try:
                cursor = connection.cursor()
                first(cursor)
                return connection, cursor
            except BaseException:
                lost = getattr(connection.driver_connection, "closed", False)  # only PostgreSQL's may be
                self._roll_back(connection)
                if not (lost and again):
                    raise
            self._close_idle()  # they are lost too
        raise AssertionError

    def _roll_back(self, connection: Any) -> None:
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
    def _plain_errors(self, what: str) -> Iterator[None]:
        """Context manager that tells errors of the database in plain English."""
        try:
            yield
        except (sa.exc.DBAPIError, self._errors) as error:
            raise store_error(getattr(error, "orig", error), self._database.name, what) from error


class Writer:
    """A transaction that writes: what is read in it stays so until it ends."""

    def __init__(self, cursor: Any, database: Any, products: CatalogueCache) -> None:
        self._cursor, self._database, self._products = cursor, database, products
        self._failed = self._written = False

    def visits(self, names: Iterable[str]) -> dict[str, list[Event]]:
        """Return the events of each of these visits, in order."""
        given = list_of("names", names, "visits")
        for name in given:
            if not storable_text(name):
                raise RequestError(f"names must be texts, got {shown(name)}")
        found: dict[str, list[Event]] = {str(name): [] for name in given}
        asked = list(found)
        for start in range(0, len(asked), MOST_VISITS):
            some = asked[start : start + MOST_VISITS]
            count = 1 << (len(some) - 1).bit_length()  # the next power of two, so that statements are few
            padded = some + some[-1:] * (count - len(some))
            asking = {f"v{i}": name for i, name in enumerate(padded)}
            for row in self._rows(_select_visits(count), asking):
                found[row[1]].append(event_of(row))
        return found

    def append(self, events: Iterable[Event]) -> list[int]:
        """Append events, and return their numbers. An event whose time is 0 happens now."""
        rows = [row_of(event) for event in list_of("events", events, "Event")]
        self._written = True
        return self._attempt(self._database.insert, self._cursor, rows) if rows else []

    def last(self) -> int:
        """Return the number of the last event, 0 if there is none."""
        return self._rows(LAST_EVENT, {})[0][0] or 0

    def changed(self) -> int:
        """Return the number of the last event that changed the catalogue, 0 if there is none."""
        return self._cursor.execute(CHANGED).fetchone()[0] or 0

    def catalogue(self) -> dict[str, Event]:
        """Return the last event, "added" or "removed", of every product, in the order of their first addition."""
        return self._products.current(lambda last: self._rows(CATALOGUE, {"id": last}), keep=not self._written)

    def check(self) -> None:
        """Raise an error if a statement has failed: the database may have undone what came before it."""
        if self._failed:
            raise StoreError("a statement of this transaction has failed before: nothing of it is written")

    def _rows(self, statement: str, parameters: dict[str, Any]) -> Any:
        return self._attempt(self._cursor.execute, self._database.sql(statement), parameters).fetchall()

    def _attempt(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self.check()
        self._failed = True
        done = call(*arguments)
        self._failed = False
        return done
