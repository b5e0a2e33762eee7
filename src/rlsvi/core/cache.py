"""A cache of machine code on disk: one file per compiled signature, shared by all processes, without an index.

Numba numbers the files of a function and lists them in an index that every process rewrites; if two processes save
at once, one may load the code of the other. Here a file is named after everything that determines its code, so
processes, machines and versions can share a folder without a lock, also over a network. Files that are missing,
truncated or damaged are compiled again, and a failure to save only causes a warning.

The files are pickles, trusted like the sources beside them: whoever can write to the folder can run code as you.

This replaces a part of Numba that is not public. If that part changes, Numba's own cache is used.
"""

import hashlib
import os
import pickle
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import numba
import numpy as np

from rlsvi.core.files import write_file

NumbaCache: Any = object
dumps: Any = None
with suppress(ImportError, AttributeError):  # not public in Numba
    from numba.core.caching import FunctionCache as NumbaCache
    from numba.core.serialize import dumps
SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML")
UNUSED = 24 * 3600.0  # seconds after which unused code of other sources is removed
CHECKSUM = 32  # bytes


def keep_on_disk(dispatcher: Any, stamp: str) -> None:
    """Make a compiled function load and save its machine code; `stamp` identifies the sources."""
    try:
        if dumps is None or not hasattr(dispatcher, "_cache"):
            raise AttributeError("it has no such cache")
        dispatcher._cache = _Cache(dispatcher.py_func, stamp)
    except (OSError, RuntimeError):
        warnings.warn("compiled code is not kept: no folder for it; NUMBA_CACHE_DIR names one", stacklevel=1)
    except (AttributeError, TypeError) as error:
        _use_numbas_own(dispatcher, str(error))


def is_kept(dispatcher: Any) -> bool:
    """Return whether machine code of a compiled function, made from these sources, is on disk."""
    files = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    return isinstance(files, _Files) and any(files.folder.glob(f"{files.function}.{files.stamp[:12]}.*"))


def _use_numbas_own(dispatcher: Any, why: str) -> None:
    """Use Numba's own cache, which dates code by the function's own file alone."""
    _warn_once(
        f"this version of Numba ({numba.__version__}) is newer than this package knows ({why}): its own cache of "
        "compiled code is used. Remove it (*.nbi, *.nbc) whenever you change sources of this package"
    )
    with suppress(Exception):
        dispatcher.enable_caching()


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=3)


class _Cache(NumbaCache):  # type: ignore[misc]
    """Numba's cache with our files, which never makes a run fail."""

    def __init__(self, function: Any, stamp: str) -> None:
        super().__init__(function)
        if not all(hasattr(NumbaCache, name) for name in ("_index_key", "load_overload", "save_overload")):
            raise AttributeError("its cache works in another way")
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base, stamp)

    def _index_key(self, *arguments: Any) -> Any:
        return (*super()._index_key(*arguments), _constants(self._py_func.__code__))  # Numba omits them

    def load_overload(self, *arguments: Any) -> Any:
        with _at_most_a_warning("loaded"):
            return super().load_overload(*arguments)

    def save_overload(self, *arguments: Any) -> None:
        with _at_most_a_warning("saved"):
            super().save_overload(*arguments)


class _Files:
    """The files of one function: a checksum, then the pickled key and code."""

    def __init__(self, folder: Path, function: str, stamp: str) -> None:
        self.folder, self.function, self.stamp = folder, function, stamp

    def path(self, key: Any) -> Path:
        """Return the file for a key, which covers signature, processor, sources, versions and settings."""
        settings = [getattr(numba.config, name, None) for name in SETTINGS]
        made_of = repr((self.stamp, numba.__version__, np.__version__, settings, key))
        digest = hashlib.sha256(made_of.encode()).hexdigest()
        return self.folder / f"{self.function}.{self.stamp[:12]}.{digest[:32]}.nbc"

    def load(self, key: Any) -> Any:
        """Return the code for a key, or None if there is none or it is invalid."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if content[:CHECKSUM] != _checksum(path, content[CHECKSUM:]):
            return None
        with suppress(OSError):
            os.utime(path)
        found, code = pickle.loads(content[CHECKSUM:])
        return code if found == key else None  # different types may print alike

    def save(self, key: Any, code: Any) -> None:
        """Write the file of a key atomically."""
        path, content = self.path(key), dumps((key, code))
        write_file(path, _checksum(path, content) + content)
        self.remove_stale()

    def remove_stale(self) -> None:
        """Remove files of other sources, of Numba and of killed writers that are a day old.

        A process that still needs them compiles them again.
        """
        name = self.function.rpartition("-")[0]  # without its line number
        for path in self.folder.glob(f"{name}-*.nb[ci]*"):
            kept = f".{self.stamp[:12]}." in path.name and path.suffix == ".nbc"
            with suppress(OSError):
                if not kept and time.time() - path.stat().st_mtime > UNUSED:
                    path.unlink()

    def flush(self) -> None:
        """Remove the code of these sources."""
        for path in self.folder.glob(f"{self.function}.{self.stamp[:12]}.*"):
            with suppress(OSError):
                path.unlink()


def _constants(code: CodeType) -> str:
    """Return what distinguishes functions of the same byte code: `x + 1` and `x + 2`, or `x.y` and `x.z`."""
    inner = [_constants(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return repr((inner, code.co_names))


def _checksum(path: Path, content: bytes) -> bytes:
    """Return a checksum of name and content, since a file under a wrong name is as bad as a damaged one."""
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()


@contextmanager
def _at_most_a_warning(done: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        reason = error.strerror if isinstance(error, OSError) else repr(error)
        warnings.warn(f"compiled code could not be {done}: {reason}", stacklevel=1)
