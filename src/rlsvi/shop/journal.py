"""The journal: the changes to a recommender since it was saved, one per line, written before they are applied.

A line is [number, time, verb, ..]. The saved file records the number of the last change it contains, so that no
line is applied twice, and the name of its journal, so that no other journal is mistaken for it. A process that
dies leaves at most one incomplete line, for a change that was not applied.
"""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rlsvi.core.archive import ArchiveError
from rlsvi.core.files import fcntl, lock, whole_file
from rlsvi.shop.arguments import mask_of, moment
from rlsvi.shop.learning import forget, if_free

if TYPE_CHECKING:
    from rlsvi.shop.recommender import Recommender


def beside(path: str | os.PathLike[str]) -> Path:
    """Return the path of the journal that belongs to a saved file."""
    return Path(f"{os.fspath(path)}.journal")


class Journal:
    """A journal with a single writing process; with `sync`, each line is flushed to disk before it counts."""

    def __init__(self, saved: Path, name: str, sync: bool) -> None:
        self.saved, self.name, self.sync = saved, name, sync
        self.path = beside(saved)
        self._file, self._process = _own(self.path), os.getpid()

    def check(self) -> None:
        """Raise an error in a forked process, since parent and child would write the same line numbers."""
        if os.getpid() != self._process:
            text = f"{self.path} is kept by the process that this one was forked from: call keep(None) in this one"
            raise OSError(errno.EPERM, text)

    def write(self, change: list[Any]) -> None:
        """Append a line, or raise an error and append nothing."""
        self.check()
        line = _line(change)
        size = self.end
        try:
            if os.write(self._file, line) != len(line):
                raise OSError(errno.ENOSPC, "no space left")
            if self.sync:
                os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise type(error)(error.errno, f"cannot write to {self.path}: {error.strerror}") from error

    @property
    def end(self) -> int:
        """The file position of the next line."""
        return os.fstat(self._file).st_size

    def begin(self, at: int) -> None:
        """Replace this journal by a new one that contains its lines from position `at` on."""
        self.check()
        with open(self._file, "rb", closefd=False) as file:
            file.seek(at)
            kept = file.read()
        with contextlib.ExitStack() as failed:
            with whole_file(self.path) as file:
                file.write(_line(["journal", self.name]) + kept)
                file.flush()
                another = _handed_over(file)
                failed.callback(os.close, another)
            failed.pop_all()
        self.close()
        self._file = another

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


def changes(path: Path, name: str | None) -> Iterator[list[Any]]:
    """Yield the changes in the journal called `name`, ignoring an incomplete line at the end."""
    found: list[list[Any]] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            change = json.loads(line)
            if number > 1 and type(change[0]) is not int:
                raise ValueError("it has no number")
        except RecursionError:
            raise _damaged(path, number, "it is nested too deeply") from None
        except (ValueError, TypeError, LookupError) as error:
            raise _damaged(path, number, f"{error!r:.200}") from error
        if number == 1 and change != ["journal", name]:
            raise ArchiveError(f"{path} is the journal of another recommender: load that one, or move it away")
        if number > 2 and change[0] != found[-1][0] + 1:
            raise _damaged(path, number, "a line before it is missing")
        found.append(change)
    yield from found[1:]


def _damaged(path: Path, number: int, why: str) -> ArchiveError:
    """Return the error for an invalid line; its message says how much of the journal can be recovered."""
    return ArchiveError(
        f"{path} is damaged in line {number}: {why}; keep a copy, and cut it to its first {number - 1} lines to "
        f"load what happened before"
    )


def replay(shop: "Recommender", path: Path) -> None:
    """Apply the changes in the journal that a newly loaded recommender does not contain."""
    clock = shop._clock
    shop._replaying = True
    try:
        for line, change in enumerate(changes(path, shop._name), 2):
            if change[0] <= shop._changes:
                continue
            if change[0] != shop._changes + 1:
                text = f"it begins after change {shop._changes + 1}; move it away to load the file alone"
                raise ArchiveError(f"{path} is damaged: {text}")
            try:
                shop._clock = partial(moment, "time", change[1])
                _make(shop, *change[2:])
            except (ValueError, TypeError, LookupError, OverflowError) as error:
                raise _damaged(path, line, f"the change cannot be: {error!s:.200}") from error
            shop._changes = change[0]
    finally:
        shop._clock, shop._replaying = clock, False


def _make(shop: "Recommender", verb: str, *told: Any) -> None:
    match verb, told:
        case "recommend", (customer, product, None):
            shop.recommend(customer, among=[product])
        case "recommend", (customer, product, [likes, dislikes]):
            liked, disliked = (mask_of("context", known, shop.products) for known in (likes, dislikes))
            shop.recommend(customer, liked.astype(float) - disliked, among=[product])
        case "feedback", (customer, product, liked):
            shop.feedback(customer, product, liked)
        case "close", (customer,):
            shop.close(customer)
        case "offer", (products,):
            shop.offer(products)
        case "learn", ():
            shop.learn()
        case "forget", (int(oldest),) if 0 <= oldest <= shop._count:
            if_free(shop, lambda shop: forget(shop, oldest))
        case _:
            raise ValueError(f"nothing is known of {verb!r}")


def _line(change: list[Any]) -> bytes:
    return json.dumps(change, separators=(",", ":")).encode() + b"\n"


def _handed_over(file: BinaryIO) -> int:
    """Return a descriptor for appending to a new file that keeps the lock it was written under."""
    descriptor = os.dup(file.fileno())
    if fcntl is not None:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    return descriptor


def _own(path: Path) -> int:
    """Open a file for appending, unless another process holds it (where the system supports locks)."""
    file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_RDWR, 0o644)
    if lock(file) is False:
        os.close(file)
        raise OSError(errno.EAGAIN, f"{path} is written to by another process: one alone may keep a recommender")
    return file
