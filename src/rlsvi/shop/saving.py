"""A recommender to and from a file: arguments, arrays, random streams and the customers who are open."""

import os
from typing import Any

import numpy as np

import rlsvi
from rlsvi.agents import archive
from rlsvi.agents.archive import ArchiveError
from rlsvi.core.checks import whole
from rlsvi.core.regression import Factor
from rlsvi.shop.mind import Mind, Visits
from rlsvi.shop.recommender import Recommender
from rlsvi.shop.size import checked_size
from rlsvi.shop.visits import NEVER, Open, new_visits, trimmed

LEARNED = ("frozen", "weight", "bias", "base", "place", "sign", "constant")


def save(shop: Recommender, path: str | os.PathLike[str]) -> None:
    """Write a recommender to a file, all of it or nothing."""
    gone = trimmed(shop._gone, shop._count)
    arrays: dict[str, Any] = {"streams": shop._streams, "U": shop._mind.factor.U, "inv": shop._mind.factor.inv}
    arrays |= {name: getattr(shop._mind, name) for name in LEARNED}
    arrays |= {f"gone.{name}": array for name, array in gone._asdict().items()}
    header = {
        "rlsvi": rlsvi.__version__,
        "agent": "Recommender",
        "arguments": shop.arguments(),
        "customers": shop.customers,
        "remembered": shop._count,
        "since": shop._since,
        "open": [_plain(name, customer) for name, customer in shop._open.items()],
    }
    archive.write(path, header, arrays)


def _plain(name: str | int, customer: Open) -> list[Any]:
    rows = int(customer.visit.first[1])
    columns = [array[:rows].tolist() for array in customer.visit[2:]]
    return [name, customer.touched[0], int(customer.visit.given[0]), *columns]


def load(path: str | os.PathLike[str]) -> Recommender:
    """Read a recommender from a file."""
    header, arrays = archive.read(path)
    try:
        if header["agent"] != "Recommender":
            raise ArchiveError(f"holds an agent, {header['agent']}: rlsvi.load reads it")
        return _recommender(header, arrays)
    except ArchiveError as error:
        raise ArchiveError(f"{path} {error}") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ArchiveError(f"{path} is not a saved recommender that this program knows: {error!r}") from error


def _recommender(header: dict[str, Any], arrays: dict[str, Any]) -> Recommender:
    """The recommender; its arrays are those read, for there may be no room for two of each."""
    arguments = header["arguments"]
    form = {name: arguments[name] for name in ("pooled", "sketch", "remember", "memory")}
    checked_size(arguments["products"], arguments["slots"], **form)
    shop = Recommender(**{**arguments, "seed": 0})
    model = shop._mind
    parts = {name: _array(arrays, name, getattr(model, name)) for name in LEARNED}
    N, d = shop.products, model.weight.shape[1]
    for name, most in (("place", d), ("constant", d)):
        _within(name, parts[name], 0, most - 1)
    factor = Factor(_array(arrays, "U", model.factor.U), _array(arrays, "inv", model.factor.inv))
    shop._mind = Mind(factor, model.right, **parts)
    shop._streams = _array(arrays, "streams", shop._streams)
    shop.customers, shop._count, shop._since = (
        whole(name, header[name], 0) for name in ("customers", "remembered", "since")
    )
    gone = Visits(**{name: arrays[f"gone.{name}"] for name in Visits._fields})
    shop._gone = _visits(gone, shop._count, N, shop.slots)
    for name, touched, given, *columns in header["open"]:
        if not 0 <= given <= N or not isinstance(name, str | int):
            raise ArchiveError("is damaged: an open customer in it makes no sense")
        visit = new_visits(1, given + shop.slots)
        rows = len(columns[0])
        visit.first[1], visit.given[0] = rows, given
        for array, column in zip(visit[2:], columns, strict=True):
            array[:rows] = column
        shop._open[name] = Open(_visits(visit, 1, N, shop.slots), [float(touched)])
    return shop


def _array(arrays: dict[str, Any], name: str, like: Any) -> Any:
    found = arrays[name]
    if found.shape != like.shape or found.dtype != like.dtype or not np.isfinite(found).all():
        raise ArchiveError(
            f"is damaged: {name} is {found.dtype}{found.shape}, expected finite {like.dtype}{like.shape}"
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
