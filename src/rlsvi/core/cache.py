"""A cache of machine code on disk: one file per compiled signature, shared by all processes, without an index.

Numba numbers the files of a function and lists them in an index that every process rewrites; if two processes save
at once, one may load the code of the other. It also dates code by the function's own file, although machine code
contains functions of other files. Here a file is named after everything that determines its code: the byte code of
every function that the signature reaches, the constants these use, versions and settings. Stale code is therefore
never run, an edit compiles again only what it changes, and a docstring or a comment changes nothing. Processes,
machines and versions can share a folder without a lock, also over a network. Files that are missing, truncated or
damaged are compiled again, and a failure to save only causes a warning.

The files are pickles, trusted like the sources beside them: whoever can write to the folder can run code as you.

This replaces a part of Numba that is not public. If that part changes, Numba's own cache is used.
"""

import glob
import hashlib
import os
import pickle
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np

from rlsvi.core.files import write_file

NumbaCache: Any = object
dumps: Any = None
with suppress(ImportError, AttributeError):  # not public in Numba
    from numba.core.caching import FunctionCache as NumbaCache
    from numba.core.serialize import dumps
SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML")
UNUSED = 7 * 24 * 3600.0  # seconds after which unused code is removed
CHECKSUM = 32  # bytes


def keep_on_disk(dispatcher: Any) -> None:
    """Make a compiled function load and save its machine code."""
    try:
        if dumps is None or not hasattr(dispatcher, "_cache"):
            raise AttributeError("it has no such cache")
        dispatcher._cache = _Cache(dispatcher.py_func)
    except (OSError, RuntimeError):
        warnings.warn("compiled code is not kept: no folder for it; NUMBA_CACHE_DIR names one", stacklevel=1)
    except (AttributeError, TypeError) as error:
        _warn_once(
            f"this version of Numba ({numba.__version__}) is newer than this package knows ({error}): its own "
            "cache of compiled code is used. Remove it (*.nbi, *.nbc) whenever you change sources of this package"
        )
        with suppress(Exception):  # it dates code by the function's own file alone
            dispatcher.enable_caching()


def is_kept(dispatcher: Any) -> bool:
    """Return whether machine code of a compiled function is on disk, perhaps of an earlier version of it."""
    files = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    return isinstance(files, _Files) and any(files.all())


@cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=3)


class _Cache(NumbaCache):  # type: ignore[misc]
    """Numba's cache with our files, which never makes a run fail."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        if not all(hasattr(NumbaCache, name) for name in ("_index_key", "load_overload", "save_overload")):
            raise AttributeError("its cache works in another way")
        without_line = re.sub(r"-\d+(?=\.py\d+)", "", self._impl.filename_base)
        self._cache_file = _Files(Path(self._cache_path), without_line)

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return (*super()._index_key(signature, codegen), made_of(self._py_func, signature))

    def load_overload(self, *arguments: Any) -> Any:
        with _at_most_a_warning("loaded"):
            return super().load_overload(*arguments)

    def save_overload(self, *arguments: Any) -> None:
        with _at_most_a_warning("saved"):
            super().save_overload(*arguments)


class _Files:
    """The files of one function: a checksum, then the pickled key and code."""

    def __init__(self, folder: Path, function: str) -> None:
        self.folder, self.function = folder, function

    def path(self, key: Any) -> Path:
        """Return the file for a key, which covers signature, processor, code, versions and settings."""
        settings = [getattr(numba.config, name, None) for name in SETTINGS]
        digest = hashlib.sha256(repr((numba.__version__, np.__version__, settings, key)).encode()).hexdigest()
        return self.folder / f"{self.function}.{digest[:32]}.nbc"

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
        try:
            found, code = pickle.loads(content[CHECKSUM:])
        except (ImportError, AttributeError):  # of a version whose types were in another module
            return None
        return code if found == key else None  # different types may print alike

    def save(self, key: Any, code: Any) -> None:
        """Write the file of a key atomically, and remove what has not been used for a week."""
        path, content = self.path(key), dumps((key, code))
        write_file(path, _checksum(path, content) + content)
        for other in self.all():
            with suppress(OSError):
                if time.time() - other.stat().st_mtime > UNUSED:
                    other.unlink()

    def all(self) -> Iterator[Path]:
        """Return the files of all versions and signatures."""
        return self.folder.glob(f"{glob.escape(self.function)}.*.nbc*")

    def flush(self) -> None:
        """Remove the code of all versions and signatures."""
        for path in self.all():
            with suppress(OSError):
                path.unlink()


def made_of(function: Any, signature: Any) -> str:
    """Return a digest of everything in this package that determines the machine code of a signature.

    It follows the names that byte code refers to. A generic function (core/compile.py) contributes the
    implementations for the named tuples that occur in the signature or are made by the functions reached.
    """
    found: dict[str, str] = {"compiler": _compiler()}
    kinds: dict[type, None] = dict.fromkeys(_kinds(signature))
    generics: dict[Any, None] = {}
    todo, reached = [function], set()

    def meet(name: str, value: Any, names: set[str]) -> None:
        """Note a value that a function refers to under `name`."""
        value = getattr(value, "py_func", value)
        if isinstance(value, FunctionType):
            if hasattr(value, "implementation"):
                generics[value] = None
            elif value.__module__.partition(".")[0] not in _FOREIGN:
                todo.append(value)
        elif isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] not in _FOREIGN:
                for attribute in names & vars(value).keys():
                    meet(attribute, getattr(value, attribute), names)
        elif isinstance(value, type):
            if hasattr(value, "_fields"):
                kinds[value] = None
            found[f"{value.__module__}.{value.__qualname__}"] = repr(getattr(value, "_fields", ""))
        elif isinstance(value, np.ndarray):
            found[name] = f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        elif isinstance(value, tuple):
            for i, part in enumerate(value):
                meet(f"{name}.{i}", part, names)
        elif isinstance(value, BuiltinFunctionType | np.ufunc):
            found[name] = value.__name__
        elif not isinstance(value, _IMMATERIAL):
            found[name] = repr(value)

    while todo:
        while todo:
            each = todo.pop()
            if each in reached:
                continue
            reached.add(each)
            code, place = each.__code__, f"{each.__module__}.{each.__qualname__}"
            number = len(reached) if "<" in place else 0  # several functions may be called <lambda>
            found[f"{place} {number}"] = _byte_code(code, each.__doc__) + repr(each.__defaults__)
            names, cells = _names(code), each.__closure__ or ()
            for name in sorted(names & each.__globals__.keys()):
                meet(f"{each.__module__}.{name}", each.__globals__[name], names)
            for name, cell in zip(code.co_freevars, cells, strict=True):
                meet(f"{place}.{name}", cell.cell_contents, names)
        for each in generics:
            todo += [one for kind in kinds if (one := each.implementation(kind)) not in (*reached, None)]
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


_IMMATERIAL = (TypeVar, ParamSpec)
_FOREIGN = {"numpy", "numba", "math", "builtins", "typing"}  # their versions are part of a file's name


def _kinds(typ: Any) -> Iterator[type]:
    """Return the classes of the named tuples in a Numba type, or in a tuple of types."""
    if hasattr(typ, "instance_class"):
        yield typ.instance_class
    for part in typ if isinstance(typ, tuple) else getattr(typ, "types", ()):
        yield from _kinds(part)


@cache
def _byte_code(code: CodeType, docstring: str | None) -> str:
    """Return what a function does, without its docstring, its comments and the numbers of its lines."""
    consts = [_byte_code(each, None) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    if docstring is not None and code.co_consts[:1] == (docstring,):
        consts[0] = "docstring"
    return repr((code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars, code.co_flags))


@cache
def _names(code: CodeType) -> set[str]:
    """Return the names that a function refers to, and those within it."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner)


@cache
def _compiler() -> str:
    """Return a digest of the file that says how functions are compiled."""
    return hashlib.sha256(Path(__file__).with_name("compile.py").read_bytes()).hexdigest()


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
