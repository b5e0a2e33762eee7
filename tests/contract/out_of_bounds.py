"""Crafted index arrays, and the ordinary use of every agent, where every access to an array is checked.

Each integer array of each file gets values that point elsewhere. Such a file must be refused, or whatever is then
done with the agent must stay within all arrays: an access out of bounds is an IndexError here. `make test` runs it
as plain Python (NUMBA_DISABLE_JIT=1), `make bounds` with the compiled code (NUMBA_BOUNDSCHECK=1).
"""

import contextlib
import os
from functools import partial

import numpy as np
import pytest

from contract.cases import BY_NAME
from contract.damage import zipped
from contract.interrupts import interrupted_after
from contract.state import array_of, bytes_of, entries_of

CHECKED = "1" in (os.environ.get("NUMBA_BOUNDSCHECK"), os.environ.get("NUMBA_DISABLE_JIT"))
assert CHECKED, "run it by test_bounds.py or `make bounds`"
FILES = BY_NAME
CLEAR = (ValueError, TypeError, RuntimeError, ArithmeticError)


def _crafted(array):
    """Other values for an array of indices, counts or flags, each at one of three places and everywhere."""
    if array.dtype.kind == "b":
        yield ~array
        for i in range(min(array.size, 4)):
            changed = array.copy()
            changed.ravel()[i] ^= True
            yield changed
        return
    limits, places = np.iinfo(array.dtype), (0, array.size // 2, array.size - 1)
    values = (-1, -2, array.size, 10**4, limits.max, limits.min, int(array.max()) + 1, int(array.min()) - 1, 0, 1)
    for number, value in enumerate(values):
        if limits.min <= value <= limits.max:
            changed = array.copy()
            changed.ravel()[places[number % 3]] = value
            yield changed
            yield np.full_like(array, value)
    yield array.ravel()[::-1].reshape(array.shape).copy()


def _is_index(name, array):
    return array.dtype.kind in "ib" or (array.dtype.kind == "u" and "stream" not in name and "world" not in name)


def _files(path):
    """All crafted copies, as (what was done, bytes)."""
    entries = entries_of(path)
    for name, data in entries.items():
        array = array_of(data) if name.endswith(".npy") else np.empty(0)
        if array.size and _is_index(name, array):
            for number, changed in enumerate(_crafted(array)):
                yield f"{name} {number}", zipped(list({**entries, name: bytes_of(changed)}.items()))


def _used(case, agent):
    """Whatever may be done with it."""
    with contextlib.suppress(CLEAR):
        case.go_on(agent)
    with contextlib.suppress(CLEAR):
        if getattr(case, "fused", False):
            case.simulate(agent, 3)


@pytest.mark.parametrize("name", FILES)
def test_the_ordinary_way_stays_in_bounds(name):
    case = FILES[name]
    agent = case.learned(12)
    case.go_on(agent)
    if getattr(case, "fused", False):
        fused = case.make()
        case.simulate(fused, 50)
        case.go_on(fused)


@pytest.mark.parametrize("name", FILES)
def test_a_crafted_index_is_refused_or_stays_in_bounds(name, tmp_path):
    case, path, bad = FILES[name], tmp_path / "agent", []
    case.learned(3).save(path)
    files = list(_files(path))
    for what, data in files:
        path.write_bytes(data)
        try:
            agent = case.load(path)
        except ValueError:
            continue
        except Exception as error:  # whatever it is, it is not clear
            bad.append(f"{what}: load raised {type(error).__name__}: {error!s:.100}")
            continue
        try:
            endless = interrupted_after(5.0, partial(_used, case, agent), of_processor=True)
            bad += [f"{what}: it learns without end"] if endless else []
        except Exception as error:
            bad.append(f"{what}: {type(error).__name__}: {error!s:.100}")
    assert not bad, f"{len(bad)} of {len(files)} did harm:\n" + "\n".join(bad[:12])
