"""All that an agent is, as its saved file tells it: no test of the contract looks at private attributes."""

import io
import json
import zipfile
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

OF_THE_FORMAT = ("format", "version", "rlsvi")  # header entries that say nothing of the agent


class Contents(NamedTuple):
    """What a file holds: JSON values, and arrays as (dtype, shape, bytes), by the names of their entries."""

    header: dict
    arrays: dict

    def without(self, *names):
        """The same without some arrays, and without their digests in the header."""
        declared = {name: each for name, each in self.header["arrays"].items() if name not in names}
        kept = {name: array for name, array in self.arrays.items() if name not in names}
        return self._replace(header={**self.header, "arrays": declared}, arrays=kept)


def entries_of(path):
    """The raw entries of a zip file by name, in order."""
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def array_of(data):
    """An array from the bytes of an .npy entry."""
    return np.load(io.BytesIO(data), allow_pickle=False)


def bytes_of(array):
    """The bytes of an .npy entry."""
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return out.getvalue()


def contents(path):
    """What a saved file holds, comparable by ==."""
    header, arrays = {}, {}
    for name, data in entries_of(path).items():
        if name.endswith(".json"):
            values = json.loads(data)
            header |= {key: value for key, value in values.items() if key not in OF_THE_FORMAT}
        else:
            array = array_of(data)
            arrays[name.removesuffix(".npy")] = (array.dtype.str, array.shape, array.tobytes())
    return Contents(header, arrays)


class Snapshot:
    """A saved file in memory. Equal bytes hold the same; only others have to be read."""

    def __init__(self, data):
        self.data = data

    @cached_property
    def contents(self):
        return contents(io.BytesIO(self.data))

    def __eq__(self, other):
        return self.data == other.data or self.contents == other.contents

    __hash__ = None


def everything(agent, folder):
    """The full comparable state of an agent (or a recommender), through a file in `folder`."""
    path = Path(folder) / "everything"
    agent.save(path)
    return Snapshot(path.read_bytes())


def difference(found, expected):
    """In words, where two snapshots (or contents) differ; empty if they are equal."""
    if found == expected:
        return ""
    found, expected = (one.contents if isinstance(one, Snapshot) else one for one in (found, expected))
    words = []
    for part in Contents._fields:
        one, other = getattr(found, part), getattr(expected, part)
        for name in sorted(set(one) | set(other)):
            if name not in one or name not in other:
                words.append(f"{part} {name!r} is only in {'the first' if name in one else 'the second'}")
            elif one[name] != other[name]:
                words.append(f"{part} {name!r}: {_shown(one[name])} is not {_shown(other[name])}")
    return "; ".join(words)


def assert_equal(found, expected):
    """Two snapshots must be equal, bit for bit."""
    words = difference(found, expected)
    assert not words, words


def _shown(value):
    if isinstance(value, tuple):
        kind, shape, data = value
        return f"{kind}{list(shape)}{np.frombuffer(data, kind).ravel()[:8].tolist()}"
    return f"{value!r:.100}"
