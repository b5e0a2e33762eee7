"""A recommender to and from a file: arguments, arrays, random streams and the customers who are open."""

import os
from pathlib import Path
from typing import Any

import numpy as np

import rlsvi
from rlsvi.agents import archive
from rlsvi.agents.archive import ArchiveError
from rlsvi.core.checks import whole
from rlsvi.core.regression import Factor
from rlsvi.shop.asked import moment, named
from rlsvi.shop.journal import Journal, beside, changes, new_name, replay
from rlsvi.shop.mind import Mind, Visits
from rlsvi.shop.recommender import Recommender
from rlsvi.shop.size import RECENT, shapes, visits_bytes
from rlsvi.shop.visits import NEVER, Open, new_visits, resized

COUNTS = ("customers", "count", "taken", "since", "changes")


def save(shop: Recommender, path: str | os.PathLike[str]) -> None:
    """Write a recommender to a file, all of it or nothing; customers are served meanwhile."""
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


def keep(shop: Recommender, path: str | os.PathLike[str] | None, sync: bool) -> None:
    """Save it, and begin a journal beside the file; where that fails, the journal there was goes on."""
    old = shop._journal
    if old is not None and path is not None and old.saved == Path(path).absolute():
        save(shop, path)
        old.sync = sync
        return
    with shop._learning, shop._lock:
        if path is None:
            _end(shop)
            return
        journal = Journal(Path(path).absolute(), shop._name or new_name(), sync)
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


def _end(shop: Recommender) -> None:
    """No journal any more."""
    if shop._journal is not None:
        shop._journal.close()
        shop._journal = None


def _snapshot(shop: Recommender) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays; those that may change while `_learning` is held are copies."""
    gone = resized(shop._gone, shop._count, shop._count, int(shop._gone.first[shop._count]))
    arrays: dict[str, Any] = {"streams": shop._streams.copy(), "recent": shop._recent.copy()}
    arrays |= shop._mind.factor._asdict() | shop._mind._asdict()
    for name in ("factor", "right"):  # the second is worked out anew with every sample
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


def load(path: str | os.PathLike[str]) -> Recommender:
    """Read a recommender from a file, and make the changes in its journal."""
    shop = Recommender.__new__(Recommender)
    try:
        header, arrays = archive.read(path, lambda header: _settled(shop, header))
        _fill(shop, header, arrays)
    except ArchiveError as error:
        text = str(error)
        raise ArchiveError(text if text.startswith(str(path)) else f"{path} {text}") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ArchiveError(f"{path} is not a saved recommender that this program knows: {error!r}") from error
    if beside(path).exists():
        replay(shop, beside(path))
    return shop


def _settled(shop: Recommender, header: dict[str, Any]) -> None:
    """The arguments, checked before any array is read."""
    if header["agent"] != "Recommender":
        raise ArchiveError(f"holds an agent, {header['agent']}: rlsvi.load reads it")
    try:
        shop._settle(header["arguments"])
    except ValueError as error:
        raise ArchiveError(f"is refused: {error}") from error


def _fill(shop: Recommender, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The rest of it; its arrays are those read, for there may be no room for two of each."""
    N, J = shop.products, shop.slots
    sizes = shapes(N, J, pooled=shop.pooled, sketch=shop.sketch)
    parts = {name: _array(arrays, name, shape, np.float64) for name, shape in sizes.items() if name != "right"}
    factor = Factor(parts.pop("U"), parts.pop("inv"))
    for name, kind in {"sign": np.float64, "place": np.int32, "constant": np.int32, "offered": np.bool_}.items():
        parts[name] = _array(arrays, name, (N,), kind)
    for name in ("place", "constant"):
        _within(name, parts[name], 0, sizes["U"][-1] - 1)
    mind = Mind(factor, np.zeros(sizes["right"]), **parts)
    shop._begin(mind, _array(arrays, "streams", (2, 4), np.uint64))
    shop._recent = _array(arrays, "recent", (RECENT, J), np.int32)
    shop.customers, shop._count, shop._taken, shop._since, shop._changes = (
        whole(name, header[name], 0) for name in COUNTS
    )
    room, rows = (whole("room", size, 0) for size in header["room"])
    if shop._taken > shop._count or not shop._count <= room or visits_bytes(room, rows) > 2 * shop.memory:
        raise ArchiveError("is damaged: its customers cannot be so many")
    shop._forgot, shop._name = bool(header["forgot"]), header["name"]
    gone = _visits(Visits(**{name: arrays[f"gone.{name}"] for name in Visits._fields}), shop._count, N, J)
    shop._gone = resized(gone, shop._count, room, rows)
    for name, touched, given, *columns in header["open"]:
        if not 0 <= given <= N:
            raise ArchiveError("is damaged: an open customer in it makes no sense")
        visit, length = new_visits(1, given + J), len(columns[0])
        visit.first[1], visit.given[0] = length, given
        for array, column in zip(visit[2:], columns, strict=True):
            array[:length] = column
        shop._open[named(name)] = Open(_visits(visit, 1, N, J), [moment("touched", touched)])
    shop._open_bytes = sum(customer.bytes for customer in shop._open.values())


def _array(arrays: dict[str, Any], name: str, shape: tuple[int, ...], kind: Any) -> Any:
    found = arrays[name]
    if found.shape != shape or found.dtype != kind or not all(np.isfinite(part).all() for part in found):
        raise ArchiveError(
            f"is damaged: {name} is {found.dtype}{found.shape}, expected finite {np.dtype(kind)}{shape}"
        )
    return found


def _within(name: str, array: Any, least: int, most: int) -> None:
    if array.size and not least <= array.min() <= array.max() <= most:
        raise ArchiveError(f"is damaged: {name} points outside of {least}..{most}")


def _visits(visits: Visits, count: int, products: int, slots: int) -> Visits:
    """Visits whose rows point nowhere outside."""
    rows = int(visits.first[count])
    lengths = np.diff(visits.first[: count + 1]) - visits.given[:count]
    _within("a customer's slots", lengths, 0, slots)
    _within("what was known of a customer", visits.given[:count], 0, products)
    sizes = [visits.first.size - 1, visits.given.size, *(part.size for part in visits[2:])]
    kinds = [part.dtype for part in visits]
    wrong = kinds != [np.int64] + 4 * [np.int32] or visits.first[0] != 0
    if wrong or any(size < least for size, least in zip(sizes, (count, count, rows, rows, rows), strict=True)):
        raise ArchiveError("is damaged: its customers do not fit together")
    for part, least, most in zip(visits[2:], (0, -1, 0), (products - 1, 1, NEVER), strict=True):
        _within("a customer's row", part[:rows], least, most)
    return visits
