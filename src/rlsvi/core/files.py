"""Files that exist completely or not at all.

A file is written under a temporary name, which is locked while its writer runs. What a killed writer has left is
removed by the next one: at once if both run on the same machine and the lock is free, otherwise after a day.
"""

import contextlib
import hashlib
import os
import platform
import re
import time
import uuid
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None  # not available on Windows

DAY = 24 * 3600.0
PRIVATE = 0o600  # the mode of a file that only its owner may read
TEMPORARY = re.compile(r"\.(?P<target>.+)\.((?P<machine>[0-9a-f]{8})-)?[0-9a-f]{8}\.tmp")


@contextlib.contextmanager
def whole_file(path: Path, durable: bool = True, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file for writing, which gets its name only when it is complete and on disk.

    Until then, an existing file at `path` stays, even if the process or the machine dies. With durable=False
    nobody waits for the disk: if the machine dies soon after, the file may be damaged. The umask narrows the mode.
    """
    remove_left_over(path.parent, path.name)
    with _temporary(path, mode) as file:
        yield file
        file.flush()
        if durable:
            os.fsync(file.fileno())
        if fcntl is None:
            file.close()  # Windows cannot rename an open file; elsewhere it stays locked until it has its name
        os.replace(file.name, path)
    if durable:
        _sync(path.parent)


def write_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write `data` to a file that exists completely or not at all."""
    with whole_file(path, mode=mode) as file:
        file.write(data)


def check_folder(*paths: Path | None) -> None:
    """Check that files can be written there, before any work is done."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
        if path is not None and path.is_dir():
            raise IsADirectoryError(f"cannot write {path}: it is a folder, name a file in it")


def file_instead(path: Path, otherwise: str) -> str:
    """Return what to write for a file that is not there: the nearest one in its folder, or `otherwise`."""
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(each.name for each in path.parent.iterdir() if not each.name.startswith("."))
    near = get_close_matches(path.name, names, 1)
    return f"did you mean {path.with_name(near[0])}?" if near else otherwise


def remove_left_over(folder: Path, target: str | None = None) -> None:
    """Remove the temporary files of writers that have ended: of one target, or of all in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = TEMPORARY.fullmatch(entry.name)
            if found and target in (None, found["target"]):
                _remove_if_left(Path(entry.path), found["machine"] == machine())


def lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed. Return whether it succeeded, or None if locks are not supported."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@cache
def machine() -> str:
    """Return a name of this machine since its last boot. All its processes see locks, also in containers."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        name = platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:8]


@contextlib.contextmanager
def _temporary(path: Path, mode: int) -> Iterator[BinaryIO]:
    """Create a locked file beside `path`, which is removed in the end unless it was renamed."""
    while True:
        temporary = path.with_name(f".{path.name}.{machine()}-{uuid.uuid4().hex[:8]}.tmp")
        file = open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
        if lock(file.fileno()) is not False and _is_at(file.fileno(), temporary):
            break
        file.close()  # it was mistaken for a leftover in between
    try:
        with file:
            yield file
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file or folder still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove_if_left(path: Path, same_machine: bool) -> None:
    with contextlib.suppress(OSError), _opened(path) as descriptor:
        free = lock(descriptor)
        old = time.time() - os.fstat(descriptor).st_mtime > DAY
        if free is not False and (old or (free and same_machine)):
            path.unlink()


def _sync(folder: Path) -> None:
    """Sync the names in a folder to disk, if the system supports it."""
    with contextlib.suppress(OSError), _opened(folder) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
