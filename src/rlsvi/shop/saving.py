"""A recommender to and from a file: arguments, arrays, random streams and the customers who are open."""

import math
import os
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rlsvi
from rlsvi.core import archive
from rlsvi.core.archive import ArchiveError
from rlsvi.core.checks import flag, whole
from rlsvi.core.machine import memory
from rlsvi.core.regression import Factor
from rlsvi.shop.asked import MOST, moment, named
from rlsvi.shop.journal import Journal, beside, changes, new_name, replay
from rlsvi.shop.mind import Mind, Visits
from rlsvi.shop.size import RECENT, fixed_bytes, shapes, visits_bytes
from rlsvi.shop.visits import NEVER, Open, new_visits, resized

if TYPE_CHECKING:
    from rlsvi.shop.recommender import Recommender

COUNTS = ("customers", "count", "taken", "since", "changes")


def save(shop: "Recommender", path: str | os.PathLike[str]) -> None:
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


def keep(shop: "Recommender", path: str | os.PathLike[str] | None, sync: bool) -> None:
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


def _end(shop: "Recommender") -> None:
    """No journal any more."""
    if shop._journal is not None:
        shop._journal.close()
        shop._journal = None


def _snapshot(shop: "Recommender") -> tuple[dict[str, Any], dict[str, Any]]:
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


def load(shop: "Recommender", path: str | os.PathLike[str]) -> None:
    """Fill a recommender that has nothing yet from a file, and make the changes in its journal."""
    try:
        with archive.opened(path) as file:
            limits = _settled(shop, file.header)
            _fill(shop, file.header, file.take_all(limits))
    except ArchiveError as error:
        text = str(error)
        raise ArchiveError(text if text.startswith(str(path)) else f"{path} {text}") from None
    except KeyError as error:
        raise ArchiveError(
            f"{path} is not a saved recommender that this program knows: it lacks {error}"
        ) from error
    except (TypeError, IndexError, AttributeError, ValueError, ArithmeticError, MemoryError) as error:
        raise ArchiveError(f"{path} is not a saved recommender that this program knows: {error!r}") from error
    if beside(path).exists():
        replay(shop, beside(path))


def _settled(shop: "Recommender", header: dict[str, Any]) -> dict[str, int]:
    """Check the header before any array is read; the most bytes that each array can have."""
    if header["agent"] != "Recommender":
        raise ArchiveError(f"holds an agent, {header['agent']!r:.80}: rlsvi.load reads it")
    if unknown := set(header["arguments"]) - ({*signature(type(shop)).parameters} - {"seed"}):
        raise ArchiveError(f"is refused: nothing is known of the argument {sorted(unknown)[0]!r:.80}")
    try:
        shop._settle(header["arguments"])
        counts = [whole(name, header[name], 0, 2**62) for name in COUNTS]
        room, rows = (whole("room", size, 0, MOST) for size in header["room"])
    except ValueError as error:
        raise ArchiveError(f"is refused: {error}") from error
    count, taken = counts[1:3]
    visits = visits_bytes(room, rows)
    if taken > count or count > room or visits > 2 * shop.memory:
        raise ArchiveError("is damaged: its customers cannot be so many")
    sizes = shapes(shop.products, shop.slots, pooled=shop.pooled, sketch=shop.sketch)
    need = fixed_bytes(shop.products, shop.slots, pooled=shop.pooled, sketch=shop.sketch) + visits
    if need > memory():
        raise ArchiveError(f"needs {need / 1e9:.3g} GB, more than this machine has ({memory() / 1e9:.3g} GB)")
    limits = {name: 8 * math.prod(shape) for name, shape in sizes.items() if name != "right"}
    limits |= dict.fromkeys(("sign", "place", "constant", "offered"), 8 * shop.products)
    limits |= {"streams": 64, "recent": 4 * RECENT * shop.slots}
    return limits | {f"gone.{name}": visits for name in Visits._fields}


def _fill(shop: "Recommender", header: dict[str, Any], arrays: dict[str, Any]) -> None:
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
    shop.customers, shop._count, shop._taken, shop._since, shop._changes = (header[name] for name in COUNTS)
    shop._forgot, shop._name = flag("forgot", header["forgot"]), header["name"]
    if not isinstance(shop._name, str | None):
        raise ArchiveError(f"is damaged: name is {shop._name!r:.80}")
    gone = _visits(Visits(**{name: arrays[f"gone.{name}"] for name in Visits._fields}), shop._count, N, J)
    shop._gone = resized(gone, shop._count, *header["room"])
    for number, customer in enumerate(header["open"]):
        try:
            name, touched, given, *columns = customer
            visit = _visit(whole("given", given, 0, N), columns, N, J)
            shop._open[named(name)] = Open(visit, [moment("touched", touched)])
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise ArchiveError(f"is damaged: open customer {number} makes no sense: {error}") from error
    shop._open_bytes = sum(customer.bytes for customer in shop._open.values())


def _visit(given: int, columns: list[list[int]], products: int, slots: int) -> Visits:
    """One customer's visit, from columns of plain numbers."""
    visit, length = new_visits(1, given + slots), len(columns[0])
    if (
        len(columns) != len(visit[2:])
        or any(len(column) != length for column in columns)
        or length > given + slots
    ):
        raise ValueError("its columns do not fit together")
    visit.first[1], visit.given[0] = length, given
    for array, column in zip(visit[2:], columns, strict=True):
        array[:length] = [whole("a number of it", value, -1, MOST) for value in column]
    return _visits(visit, 1, products, slots)


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
    if [part.dtype for part in visits] != [np.int64] + 4 * [np.int32] or any(part.ndim != 1 for part in visits):
        raise ArchiveError("is damaged: its customers are not whole numbers")
    if visits.first.size <= count or visits.first[0] != 0 or visits.given.size < count:
        raise ArchiveError("is damaged: its customers do not fit together")
    _within("what was known of a customer", visits.given[:count], 0, products)
    _within("a customer's rows", visits.first[: count + 1], 0, visits.product.size)
    rows = int(visits.first[count])
    _within("a customer's slots", np.diff(visits.first[: count + 1]) - visits.given[:count], 0, slots)
    if any(part.size < rows for part in visits[2:]):
        raise ArchiveError("is damaged: its customers do not fit together")
    for part, least, most in zip(visits[2:], (0, -1, 0), (products - 1, 1, NEVER), strict=True):
        _within("a customer's row", part[:rows], least, most)
    return visits
