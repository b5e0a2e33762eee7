"""The tables of a shop's database, and the statements on them, compiled once for SQLite or PostgreSQL."""

from functools import cache
from typing import Any

import sqlalchemy as sa

from rlsvi.shop.event import Event

VERSION = 1  # of the tables; a database of a later one is refused
BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # an INTEGER of SQLite has 64 bits, and may count itself

metadata = sa.MetaData()
schema = sa.Table("shop_schema", metadata, sa.Column("version", sa.Integer, nullable=False))
events = sa.Table(
    "events",
    metadata,
    sa.Column("id", BIG, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("visit", sa.Text, nullable=False),
    sa.Column("product", sa.Text, nullable=False),
    sa.Column("slot", sa.Integer),
    sa.Column("reward", sa.Double),
    sa.Column("propensity", sa.Double),
    sa.Column("explored", sa.Boolean),
    sa.Column("sample", BIG),
    sa.Column("features", sa.JSON),
    sa.Column("among", sa.JSON),
    sa.CheckConstraint("kind IN ('added', 'removed', 'recommended', 'answered', 'closed')", name="events_kind"),
    sqlite_autoincrement=True,
)
OF_VISITS, OF_CATALOGUE = events.c.visit != "", events.c.visit == ""
sa.Index(
    "events_once",
    events.c.visit,
    events.c.kind,
    events.c.product,
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
    sa.Column("id", BIG, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary),
)

ROW = [events.c[name] for name in Event._fields]  # a row, in the order of an Event
WRITTEN = [name for name in Event._fields if name != "id"]


class Statements:
    """The statements as texts with named parameters, for the cursor of a dialect's driver."""

    def __init__(self, dialect: Any) -> None:
        self._dialect = dialect
        inserted = {name: sa.bindparam(name, type_=events.c[name].type) for name in WRITTEN}
        everything = sa.select(*ROW).order_by(events.c.id)
        self.insert = self._text(sa.insert(events).values(inserted))
        self.last = self._text(sa.select(sa.func.max(events.c.id)))
        later = events.c.id > sa.bindparam("id", type_=BIG)
        self.since = self._text(everything.where(later).suffix_with(sa.text("LIMIT :limit")))
        self.catalogue = self._text(everything.where(sa.literal_column("visit = ''"), later))
        self.changed = self._text(sa.select(sa.func.max(events.c.id)).where(sa.literal_column("visit = ''")))
        newest = sa.select(sa.func.max(draws.c.id)).scalar_subquery()
        others = sa.and_(draws.c.id == newest, draws.c.id != sa.bindparam("id"))
        self.newest_draws = self._text(sa.select(draws).where(others))
        following = sa.select(sa.text("coalesce(max(id), 0) + 1")).select_from(draws).scalar_subquery()
        body: dict[str, Any] = {"id": following, "body": sa.bindparam("body")}
        self.put_draws = self._text(sa.insert(draws).values(body))
        order = draws.c.id.desc()
        kept = sa.select(draws.c.id).order_by(order).suffix_with(sa.text("LIMIT 3")).scalar_subquery()
        self.trim_draws = self._text(sa.delete(draws).where(draws.c.id.not_in(kept)))
        self.learner = self._text(sa.select(identity.c.learner_at, identity.c.failures, identity.c.failure))
        now = sa.bindparam("at", type_=sa.Double)
        self.learned = self._text(sa.update(identity).values(learner_at=now, failures=sa.literal_column("0")))
        failures = sa.func.coalesce(identity.c.failures, sa.literal_column("0")) + sa.literal_column("1")
        why = sa.bindparam("failure", type_=sa.Text)
        self.failed = self._text(sa.update(identity).values(failures=failures, failure=why))
        self.written = self._text(sa.update(identity).values(written_at=now))
        self.visits = cache(self._visits)

    def _visits(self, count: int) -> str:
        """Return the statement that selects the events of `count` visits, named v0, v1 and so on."""
        names = [sa.bindparam(f"v{i}", type_=sa.Text) for i in range(count)]
        # The condition of the index is repeated as it stands there: only so does SQLite know that it may use it.
        where = sa.and_(sa.literal_column("visit <> ''"), events.c.visit.in_(names))
        return self._text(sa.select(*ROW).where(where).order_by(events.c.id))

    def _text(self, statement: Any) -> str:
        return str(statement.compile(dialect=self._dialect))
