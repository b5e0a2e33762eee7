"""Machine code on disk: right with many processes, with damaged files, and where nothing can be written."""

import importlib
import os
import subprocess
import sys
import textwrap
import time
import types
from typing import NamedTuple

import numba
import numpy as np
import pytest

from rlsvi.core import cache
from rlsvi.core.compile import compiled
from rlsvi.simulate import finite


def start(code, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONWARNINGS": "default", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.split(), err


# ---- many processes ---------------------------------------------------------------------------------------

ROUNDS = 5
AT_ONCE = """
    import sys, time
    from pathlib import Path
    folder, me, value = Path(sys.argv[1]), sys.argv[2], eval(sys.argv[3])
    sys.path.insert(0, str(folder))
    import functions
    for i, function in enumerate(functions.every):
        (folder / f"round {i} {me}").touch()
        while len(list(folder.glob(f"round {i} *"))) < 4:
            time.sleep(0.001)
        assert function(value) == value * 2 + i, (i, value)
"""
READ_BACK = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import functions
    for i, function in enumerate(functions.every):
        for value in (2, 1.5, 2 + 1j):
            assert function(value) == value * 2 + i, (i, value)
        print(sum(function.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_processes_that_compile_at_once_leave_right_code(tmp_path):
    """The same and different signatures of one function, saved by four processes at about the same moment."""
    code = "from rlsvi.core.compile import compiled\nevery = []\n"
    for i in range(ROUNDS):
        code += f"@compiled\ndef f{i}(x):\n    return x * 2 + {i}\nevery.append(f{i})\n"
    (tmp_path / "functions.py").write_text(code)
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    values = ("2", "2", "1.5", "2 + 1j")
    for process in [start(AT_ONCE, tmp_path, me, value, **place) for me, value in enumerate(values)]:
        finish(process)
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert len(files) == 3 * ROUNDS
    hits, _ = finish(start(READ_BACK, tmp_path, **place))
    assert hits == ["3"] * ROUNDS


# ---- one process ------------------------------------------------------------------------------------------


def plus_three(x):
    return x + 3


def times_four(x):
    return x * 4


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that compiled code goes to."""
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def hits(function, value, wanted):
    """Call a function as a new process would; how often its code came from disk."""
    fresh = compiled(function)
    assert fresh(value) == wanted
    return sum(fresh.stats.cache_hits.values())


def test_code_is_loaded_the_second_time(folder):
    assert [hits(plus_three, 1, 4) for _ in range(3)] == [0, 1, 1]
    assert [hits(plus_three, 0.5, 3.5) for _ in range(2)] == [0, 1]
    assert [hits(times_four, 1, 4) for _ in range(2)] == [0, 1]
    assert hits(plus_three, 1, 4) == 1
    assert len(files(folder)) == 3


def flipped(where):
    def damage(content):
        content = bytearray(content)
        content[where] ^= 1
        return bytes(content)

    return damage


DAMAGE = {
    "empty": lambda content: b"",
    "short": lambda content: content[:20],
    "only a checksum": lambda content: content[: cache.CHECKSUM],
    "cut": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "longer": lambda content: content + b"\0",
    "first bit": flipped(0),
    "a bit of the pickle": flipped(cache.CHECKSUM),
    "a bit inside": flipped(5000),
    "last bit": flipped(-1),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_compiled_again_and_replaced(folder, damage):
    assert hits(plus_three, 1, 4) == 0
    (path,) = files(folder)
    broken = damage(path.read_bytes())
    path.write_bytes(broken)
    assert hits(plus_three, 1, 4) == 0
    assert files(folder) == [path]
    assert path.read_bytes() != broken
    assert hits(plus_three, 1, 4) == 1


def test_code_under_the_name_of_other_code_is_not_run(folder):
    hits(plus_three, 1, 4)
    (one,) = files(folder)
    hits(plus_three, 0.5, 3.5)
    (other,) = set(files(folder)) - {one}
    other.write_bytes(one.read_bytes())
    assert hits(plus_three, 0.5, 3.5) == 0
    assert hits(plus_three, 0.5, 3.5) == 1


# ---- what code is made of -----------------------------------------------------------------------------------

SOURCES = """
    from typing import NamedTuple
    from rlsvi.core.compile import compiled
    from rlsvi.core.compile import generic
    from helpers import plus
    import helpers

    FACTOR = 3

    class Kind(NamedTuple):
        x: float

    @generic
    def value(kind): ...

    @value.register(Kind)
    def kind_value(kind):
        return kind.x * 2

    @compiled
    def entry(kind):
        "Return a number."
        return plus(value(kind)) * FACTOR + helpers.MORE
"""
HELPERS = """
    from rlsvi.core.compile import compiled

    MORE = 5

    @compiled
    def plus(x):
        return inner(x) + 1

    @compiled
    def inner(x):
        return x
"""
EDITS = {
    "nothing": ("", "", "", True),
    "a docstring": ("sources", "Return a number.", "Return another number.", True),
    "a comment and a line": ("sources", "FACTOR = 3", "FACTOR = 3  # as before\n\n", True),
    "another function": ("helpers", "MORE = 5", "MORE = 5\nLESS = 4\ndef unused():\n    return 7\n", True),
    "the function": ("sources", "* FACTOR + helpers", "* FACTOR - helpers", False),
    "a constant": ("sources", "FACTOR = 3", "FACTOR = 4", False),
    "a constant of another file": ("helpers", "MORE = 5", "MORE = 6", False),
    "a function it calls": ("helpers", "inner(x) + 1", "inner(x) + 2", False),
    "a function that this one calls": ("helpers", "return x\n", "return -x\n", False),
    "an implementation": ("sources", "kind.x * 2", "kind.x * 3", False),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_code_is_compiled_again_if_and_only_if_what_it_reaches_has_changed(edit, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    texts = {"sources": textwrap.dedent(SOURCES), "helpers": textwrap.dedent(HELPERS)}

    def loaded_from_disk():
        for name, text in texts.items():
            monkeypatch.delitem(sys.modules, name, raising=False)
            (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        module = importlib.import_module("sources")
        value = module.entry(module.Kind(2.0))
        assert value == module.entry.py_func(module.Kind(2.0))
        return sum(module.entry.stats.cache_hits.values())

    assert [loaded_from_disk() for _ in range(2)] == [0, 1]
    name, old, new, is_kept = edit
    if name:
        assert old in texts[name]
        texts[name] = texts[name].replace(old, new)
    assert loaded_from_disk() == is_kept


def test_what_code_is_made_of_holds_no_address():
    """An address changes from process to process, and the code would be compiled in each of them."""
    met = []

    def note(value):
        met.append(repr(value))
        return met[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "repr", note, raising=False)
        for name, function in vars(finite).items():
            if hasattr(function, "py_func"):
                cache.made_of(function.py_func, ())
                assert not [text for text in met if " at 0x" in text], name
    assert len(met) > 100


class Here:
    class Pair(NamedTuple):
        x: float
        y: float


class There:
    class Pair(NamedTuple):
        y: float
        x: float


def the_x(pair):
    return pair.x


def test_types_that_only_print_alike_do_not_share_code(folder):
    assert hits(the_x, Here.Pair(1.0, 2.0), 1.0) == 0
    assert hits(the_x, There.Pair(1.0, 2.0), 2.0) == 0
    assert hits(the_x, There.Pair(1.0, 2.0), 2.0) == 1


def test_functions_of_one_name_line_and_byte_code_do_not_share_code(folder):
    double, treble = (lambda x: 2 * x), (lambda x: 3 * x)
    assert [hits(double, 7, 14) for _ in range(2)] == [0, 1]
    assert [hits(treble, 7, 21) for _ in range(2)] == [0, 1]
    assert hits(double, 7, 14) == 1


OTHERS = {
    "Numba": (numba, "__version__"),
    "NumPy": (np, "__version__"),
    "a setting": (numba.config, "BOUNDSCHECK"),
}


@pytest.mark.parametrize("what", OTHERS.values(), ids=OTHERS.keys())
def test_another_version_or_setting_has_code_of_its_own(folder, monkeypatch, what):
    hits(plus_three, 1, 4)
    with monkeypatch.context() as other:
        other.setattr(*what, "1")
        assert [hits(plus_three, 1, 4) for _ in range(2)] == [0, 1]
    assert hits(plus_three, 1, 4) == 1  # not disturbed
    assert len(files(folder)) == 2


def test_another_processor_has_code_of_its_own(folder):
    fresh = compiled(plus_three)
    fresh(1)
    signature, codegen = fresh.signatures[0], fresh.targetctx.codegen()
    kept, key = fresh._cache._cache_file, fresh._cache._index_key(signature, codegen)
    assert codegen.magic_tuple() == key[1]
    for i in range(3):
        processor = tuple("another" if i == j else word for j, word in enumerate(key[1]))
        assert kept.path((key[0], processor, key[2])) != kept.path(key)


# ---- old files --------------------------------------------------------------------------------------------


def test_unused_code_goes_and_nothing_else(folder):
    compiled(plus_three)(1)
    (mine,) = files(folder)
    old = [f"{mine.name.partition('.py')[0]}.py311.{'0' * 32}.nbc"]
    old.append(f"{old[0]}.0123456789abcdef")
    fresh = [old[0].replace("0", "1")]
    kept = ["test_cache.plus_three.cpython.pyc", old[0].replace("three", "three_more")]
    old, fresh = [[name.replace("py311", mine.name.split(".")[2]) for name in names] for names in (old, fresh)]
    for name in old + fresh + kept:
        path = mine.with_name(name)
        path.write_bytes(b"")
        age = 0 if name in fresh else 2 * cache.UNUSED
        os.utime(path, (time.time() - age,) * 2)
    compiled(plus_three)(0.5)
    left = {path.name for path in files(folder)}
    assert left >= {mine.name, *fresh, *kept}
    assert not left & set(old)
    assert len(left) == 2 + len(fresh) + len(kept)


def test_code_that_is_loaded_is_in_use(folder):
    hits(plus_three, 1, 4)
    (path,) = files(folder)
    os.utime(path, (0, 0))
    hits(plus_three, 1, 4)
    assert time.time() - path.stat().st_mtime < cache.UNUSED / 2


def test_flush_forgets_the_code(folder):
    fresh = compiled(plus_three)
    fresh(1)
    hits(times_four, 1, 4)
    fresh._cache.flush()
    assert hits(plus_three, 1, 4) == 0
    assert hits(times_four, 1, 4) == 1


# ---- no room ----------------------------------------------------------------------------------------------

USE = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import functions
    print(functions.double(21), functions.treble(14), sum(functions.double.stats.cache_hits.values()))
"""
FUNCTIONS = """
    from rlsvi.core.compile import compiled
    double, treble = compiled(lambda x: 2 * x), compiled(lambda x: 3 * x)
"""


@pytest.mark.slow
@pytest.mark.parametrize("room", ["package", "user", None])
def test_where_nothing_can_be_written_code_goes_elsewhere_or_is_not_kept(tmp_path, room):
    """A folder that is a file stands for one that cannot be written to, by whomever."""
    package, user = tmp_path / "package", tmp_path / "user"
    package.mkdir()
    (package / "functions.py").write_text(textwrap.dedent(FUNCTIONS))
    if room != "package":
        (package / "__pycache__").write_text("")
    if room != "user":
        user.write_text("")
    nowhere = package / "functions.py" / "cache"
    place = {"NUMBA_CACHE_DIR": str(nowhere), "HOME": str(user), "XDG_CACHE_HOME": str(user / "cache")}
    for hit in (0, 1) if room else (0,):
        out, err = finish(start(USE, package, **place))
        assert out == ["42", "42", str(hit)]
        assert err.count("UserWarning: compiled code is not kept") == (room is None)
    kept = list(tmp_path.rglob("*.nbc"))
    assert len(kept) == (2 if room else 0)
    assert all(path.is_relative_to(tmp_path / room) for path in kept)


FULL = """
    import resource, sys
    sys.path.insert(0, sys.argv[1])
    import functions
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))  # a write stops half-way
    print(functions.double(21))
"""


def test_a_full_disk_costs_a_warning(tmp_path):
    pytest.importorskip("resource")
    (tmp_path / "functions.py").write_text(textwrap.dedent(FUNCTIONS))
    folder = tmp_path / "cache"
    out, err = finish(start(FULL, tmp_path, NUMBA_CACHE_DIR=str(folder)))
    assert out == ["42"]
    assert err.count("UserWarning: compiled code could not be saved: File too large") == 1
    assert not files(folder)


def test_a_folder_that_is_gone_costs_a_warning(folder):
    fresh = compiled(plus_three)
    (place,) = folder.iterdir()
    place.rmdir()
    place.write_text("in the way")
    with pytest.warns(UserWarning, match="compiled code could not be saved"):
        assert fresh(1) == 4
    place.unlink()
    assert [hits(plus_three, 1, 4) for _ in range(2)] == [0, 1]


def test_a_sound_file_that_makes_no_sense_is_compiled_again(folder):
    fresh = compiled(plus_three)
    fresh(1)
    key = fresh._cache._index_key(fresh.signatures[0], fresh.targetctx.codegen())
    fresh._cache._cache_file.save(key, ("not", "code"))
    with pytest.warns(UserWarning, match="compiled code could not be loaded"):
        assert hits(plus_three, 1, 4) == 0
    assert hits(plus_three, 1, 4) == 1


def test_code_of_types_that_have_moved_is_compiled_again_in_silence(folder, monkeypatch):
    """After an upgrade, code on disk may refer to a module that is no longer there."""
    monkeypatch.setitem(sys.modules, "moved_away", types.ModuleType("moved_away"))
    kind = type("Kind", (), {"__module__": "moved_away"})
    sys.modules["moved_away"].Kind = kind
    fresh = compiled(plus_three)
    fresh(1)
    key = fresh._cache._index_key(fresh.signatures[0], fresh.targetctx.codegen())
    fresh._cache._cache_file.save(key, kind())
    monkeypatch.delitem(sys.modules, "moved_away")
    assert [hits(plus_three, 1, 4) for _ in range(2)] == [0, 1]


# ---- another Numba ----------------------------------------------------------------------------------------

ANOTHER = """
    import builtins, sys, warnings
    import numba

    def without(name, variables=None, *more, usual=builtins.__import__):
        if name.startswith("numba.core") and (variables or {}).get("__name__") == "rlsvi.core.cache":
            raise ImportError(name)
        return usual(name, variables, *more)

    builtins.__import__ = without
    sys.path.insert(0, sys.argv[1])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import functions
        assert (functions.double(21), functions.treble(14)) == (42, 42)
    (warning,) = told
    assert f"this version of Numba ({numba.__version__})" in str(warning.message)
    print(sum(functions.double.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_a_numba_without_these_parts_costs_one_warning_and_its_own_cache_is_used(tmp_path):
    lines = (
        textwrap.dedent(FUNCTIONS).replace("double, treble", "double").replace(", compiled", "\ntreble = compiled")
    )
    (tmp_path / "functions.py").write_text(lines)  # Numba mistakes two functions of one line for each other
    place = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert [finish(start(ANOTHER, tmp_path, **place))[0] for _ in range(2)] == [["0"], ["1"]]


def refuse(*_):
    raise TypeError("takes 3 arguments")


CHANGED = {
    "no pickling": (cache, "dumps", None),
    "other methods": (cache, "NumbaCache", object),
    "another constructor": (cache._Cache, "__init__", refuse),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED.keys())
def test_a_numba_that_works_in_another_way_costs_one_warning(change, folder, monkeypatch):
    monkeypatch.setattr(*change)
    cache._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="its own cache of compiled code is used") as told:
        assert hits(plus_three, 1, 4) == 0
    assert len(told) == 1
    assert hits(plus_three, 1, 4) == 1  # and no second warning, which would be an error
    assert {path.suffix for path in files(folder)} == {".nbi", ".nbc"}
    cache._warn_once.cache_clear()
