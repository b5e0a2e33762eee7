"""Saving and loading of a recommender: arguments, arrays, random streams and open customers."""

import os
import uuid
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rlsvi
from rlsvi.core import archive
from rlsvi.core.archive import ArchiveError
from rlsvi.core.checks import flag, whole
from rlsvi.core.machine import memory
from rlsvi.core.regression import Factor
from rlsvi.shop.arguments import MOST, moment, named
from rlsvi.shop.journal import Journal, beside, changes, replay
from rlsvi.shop.mind import Mind, Visits
from rlsvi.shop.size import RECENT, fixed_bytes, shapes, visits_bytes
from rlsvi.shop.visits import NEVER, Open, new_visits, resized

if TYPE_CHECKING:
    from rlsvi.shop.recommender import Recommender

COUNTS = ("customers", "count", "taken", "since", "changes")


def save(shop: "Recommender", path: str | os.PathLike[str]) -> None:
    """Write a recommender to a file, completely or not at all. Customers are served meanwhile."""
    with shop._learning:
        with shop._lock:
            kept = shop._journal if shop._journal and shop._journal.saved == Path(path).absolute() else None
            if kept:
                kept.check()
            header, arrays = _snapshot(shop)
            end = kept.end if kept else 0
        archive.write(path, header, arrays)
        if kept:
            with shop._lock:
                kept.begin(end)


def keep(shop: "Recommender", path: str | os.PathLike[str] | None, sync: bool) -> None:
    """Save a recommender and start a journal beside the file. If this fails, the previous journal stays in use."""
    old = shop._journal
    if old is not None and path is not None and old.saved == Path(path).absolute():
        save(shop, path)
        old.sync = sync
        return
    with shop._learning, shop._lock:
        if path is None:
            _end(shop)
            return
        journal = Journal(Path(path).absolute(), shop._name or uuid.uuid4().hex, sync)
        try:
            if any(change[0] > shop._changes for change in changes(journal.path, journal.name)):
                raise ArchiveError(f"{journal.path} has changes that this recommender has not: load({path}) first")
            header, arrays = _snapshot(shop)
            archive.write(path, {**header, "name": journal.name}, arrays)
            journal.begin(journal.end)
        except BaseException:
            journal.close()
            raise
        _end(shop)
        shop._journal, shop._name = journal, journal.name


def _end(shop: "Recommender") -> None:
    """Stop logging to the journal."""
    if shop._journal is not None:
        shop._journal.close()
        shop._journal = None


def _snapshot(shop: "Recommender") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays, with copies of the arrays that may change while `_learning` is held."""
    gone = resized(shop._gone, shop._count, shop._count, int(shop._gone.first[shop._count]))
    arrays: dict[str, Any] = {"streams": shop._streams.copy(), "recent": shop._recent.copy()}
    arrays |= shop._mind.factor._asdict() | shop._mind._asdict()
    for name in ("factor", "right"):  # the second is computed anew with every sample
        del arrays[name]
    arrays |= {f"gone.{name}": array for name, array in gone._asdict().items()}
    header = {
        "rlsvi": rlsvi.__version__,
        "agent": "Recommender",
        "arguments": shop.arguments(),
        **{name: getattr(shop, name if name == "customers" else f"_{name}") for name in COUNTS},
        "forgot": shop._forgot,
        "name": shop._name,
        "room": [shop._gone.given.size, shop._gone.product.size],
        "open": [_plain(name, customer) for name, customer in shop._open.items()],
    }
    return header, arrays


def _plain(name: str | int, customer: Open) -> list[Any]:
    rows = int(customer.visit.first[1])
    columns = [array[:rows].tolist() for array in customer.visit[2:]]
    return [name, customer.touched[0], int(customer.visit.given[0]), *columns]


def load(shop: "Recommender", path: str | os.PathLike[str]) -> None:
    """Fill an empty recommender from a file, and apply the changes in its journal."""
    try:
        with archive.opened(path) as file:
            _settle(shop, file.header)
            _fill(shop, file)
    except (KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else repr(error)
        raise ArchiveError(f"{path} is not a saved recommender that this program knows: {why}") from error
    if beside(path).exists():
        replay(shop, beside(path))


def _settle(shop: "Recommender", header: dict[str, Any]) -> None:
    """Check the header, and that the arrays it announces fit in memory, before any array is read."""
    if header["agent"] != "Recommender":
        raise ArchiveError(f"holds an agent, {header['agent']!r:.80}: rlsvi.load reads it")
    if unknown := set(header["arguments"]) - {field.name for field in fields(shop)}:
        raise ArchiveError(f"is refused: nothing is known of the argument {sorted(unknown)[0]!r:.80}")
    try:
        shop._settle(header["arguments"])
        _, count, taken, *_ = (whole(name, header[name], 0, 2**62) for name in COUNTS)
        room, rows = (whole("room", size, 0, MOST) for size in header["room"])
    except ValueError as error:
        raise ArchiveError(f"is refused: {error}") from error
    visits = visits_bytes(room, rows)
    if taken > count or count > room or visits > 2 * shop.memory:
        raise ArchiveError("is damaged: its customers cannot be so many")
    need = fixed_bytes(shop._form) + visits
    if need > memory():
        raise ArchiveError(f"needs {need / 1e9:.3g} GB, more than this machine has ({memory() / 1e9:.3g} GB)")


def _fill(shop: "Recommender", file: archive.Archive) -> None:
    """Read the arrays and use them without copying, since there may not be memory for two of each."""
    N, J, header, sizes = shop.products, shop.slots, file.header, shapes(shop._form)
    parts = {name: file.take(name, shape) for name, shape in sizes.items() if name != "right"}
    for name in ("place", "constant"):
        parts[name] = file.take_within(name, (N,), np.int32, 0, shop._form.width - 1)
    parts |= {"sign": file.take("sign", (N,)), "offered": file.take("offered", (N,), np.bool_)}
    factor = Factor(parts.pop("U"), parts.pop("inv"))
    shop._begin(Mind(factor, np.zeros(sizes["right"]), **parts), file.take("streams", (2, 4), np.uint64))
    shop._recent = file.take("recent", (RECENT, J), np.int32)
    shop.customers, shop._count, shop._taken, shop._since, shop._changes = (header[name] for name in COUNTS)
    shop._forgot, shop._name = flag("forgot", header["forgot"]), header["name"]
    if not isinstance(shop._name, str | None):
        raise ArchiveError(f"is damaged: name is {shop._name!r:.80}")
    shop._gone = resized(_gone(file, shop._count, N, J), shop._count, *header["room"])
    for number, customer in enumerate(header["open"]):
        try:
            name, touched, given, *columns = customer
            visit = _visit(whole("given", given, 0, N), columns, N, J)
            shop._open[named(name)] = Open(visit, [moment("touched", touched)])
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise ArchiveError(f"is damaged: open customer {number} makes no sense: {error}") from error
    shop._open_bytes = sum(customer.bytes for customer in shop._open.values())


def _gone(file: archive.Archive, count: int, products: int, slots: int) -> Visits:
    """Read the customers remembered, with at most as many rows as the header announces."""
    (rows,) = file.shape("gone.product", 1)
    if rows > file.header["room"][1]:
        raise ArchiveError("is damaged: its customers cannot be so many")
    columns = [file.take(f"gone.{name}", (rows,), np.int32) for name in Visits._fields[2:]]
    first, given = file.take("gone.first", (count + 1,), np.int64), file.take("gone.given", (count,), np.int32)
    return _checked(Visits(first, given, *columns), count, products, slots)


def _visit(given: int, columns: list[list[int]], products: int, slots: int) -> Visits:
    """Return one customer's visit from columns of numbers."""
    visit, length = new_visits(1, given + slots), len(columns[0])
    if len(columns) != 3 or any(len(column) != length for column in columns) or length > given + slots:
        raise ValueError("its columns do not fit together")
    visit.first[1], visit.given[0] = length, given
    for array, column in zip(visit[2:], columns, strict=True):
        array[:length] = [whole("a number of it", value, -1, MOST) for value in column]
    return _checked(visit, 1, products, slots)


def _checked(visits: Visits, count: int, products: int, slots: int) -> Visits:
    """Return the visits after checking that all their indices are within bounds."""
    first, given = visits.first[: count + 1], visits.given[:count]
    if first[0] != 0:
        raise ArchiveError("is damaged: its customers do not fit together")
    _check_within("what was known of a customer", given, 0, products)
    _check_within("a customer's rows", first, 0, visits.product.size)
    _check_within("a customer's slots", np.diff(first) - given, 0, slots)
    for part, least, most in zip(visits[2:], (0, -1, 0), (products - 1, 1, NEVER), strict=True):
        _check_within("a customer's row", part[: first[-1]], least, most)
    return visits


def _check_within(name: str, array: Any, least: int, most: int) -> None:
    if array.size and not least <= array.min() <= array.max() <= most:
        raise ArchiveError(f"is damaged: {name} points outside of {least}..{most}")
