"""Damaged, foreign and hostile copies of a saved file, each drawn from a seed."""

import hashlib
import io
import json
import zipfile
import zlib

import numpy as np

from contract.state import array_of, bytes_of, entries_of

HOSTILE = [
    *(float("inf"), float("-inf"), float("nan"), 10**12, 10**40, 2**31, 2**63, -1, 0, 1.5, 1e308, -(2**31)),
    *(None, True, "", "1", "os.system", "\0", [], [[]], [1] * 50, {}, {"type": "Trap"}, {"array": "nowhere"}),
    *({"type": "RLSVI"}, [None, None, None, None, None], [[[[[1]]]]], "RLSVI", "PSRL"),
]
RAW = [b"", b"null", b"[]", b"3", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b'{"format": "other"}']
RAW += [b'{"format": "rlsvi agent"}', b'{"format": "rlsvi agent", "version": ' + b"9" * 5000 + b"}"]


def zipped(entries):
    """A zip file of entries [(name, bytes)], whose checksums are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in entries:
            if name in file.namelist():
                name = f"{name} "  # zipfile warns of a second one
            file.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def flipped(data, rng, first=0, last=None):
    """One bit is another."""
    at = int(rng.integers(first, len(data) if last is None else last))
    return data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]


def paths_of(value, path=()):
    """The ways to all parts of a JSON value."""
    if path:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from paths_of(part, (*path, key))


def replaced(header, path, value):
    """A JSON value with another part; Ellipsis: without it."""
    copy = json.loads(json.dumps(header))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


def relisted(header, entries):
    """The bytes of a header that lists the arrays that there are, as the writer of a hostile file would see to.

    An entry that is no array without objects is listed as it was.
    """
    listed = {}
    for name, data in entries.items():
        stem = name.removesuffix(".npy")
        if stem == name or data is None:
            continue
        try:
            array = np.ascontiguousarray(array_of(data))
        except ValueError:
            listed[stem] = header["arrays"].get(stem)
        else:
            listed[stem] = [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    return json.dumps({**header, "arrays": listed}).encode()


class Damage:
    """Draws damaged copies of a file; `foreign` are the entries of other agents' files."""

    def __init__(self, path, foreign):
        self.data, self.entries, self.foreign = path.read_bytes(), entries_of(path), foreign
        self.arrays = [name for name in self.entries if name.endswith(".npy")]
        self.header_name = next(name for name in self.entries if name.endswith(".json"))
        self.header = json.loads(self.entries[self.header_name])
        self.paths = list(paths_of(self.header))
        self.directory = self.data.index(b"PK\x01\x02")
        self.consistent = False  # whether the header lists arrays as they are after the damage
        self.kinds = [kind for name, kind in sorted(vars(Damage).items()) if name.startswith("_by_")]

    def copy(self, number):
        """The kind and the bytes of the damaged copy of this number."""
        rng = np.random.default_rng([17, number])
        kind = self.kinds[number % len(self.kinds)]
        self.consistent = number // len(self.kinds) % 2 == 1
        return kind.__name__.removeprefix("_by_"), kind(self, rng)

    def _with(self, **changes):
        """A file with other entries by name; None leaves one out."""
        entries = {**self.entries, **changes.pop("entries", {})}
        if self.consistent and entries[self.header_name] == self.entries[self.header_name]:
            entries[self.header_name] = relisted(self.header, entries)
        return zipped([(name, data) for name, data in entries.items() if data is not None])

    def _pick(self, rng):
        return self.arrays[int(rng.integers(len(self.arrays)))]

    def _by_bit(self, rng):
        return flipped(self.data, rng)

    def _by_bit_in_directory(self, rng):
        return flipped(self.data, rng, self.directory)

    def _by_bit_in_directory_too(self, rng):
        return flipped(flipped(self.data, rng, self.directory), rng, self.directory)

    def _by_bit_in_local_header(self, rng):
        starts = [i for i in range(self.directory) if self.data[i : i + 4] == b"PK\x03\x04"]
        first = starts[int(rng.integers(len(starts)))]
        return flipped(self.data, rng, first, first + 50)

    def _by_truncation(self, rng):
        return self.data[: int(rng.integers(len(self.data)))]

    def _by_noise(self, rng):
        first, size = int(rng.integers(len(self.data))), int(rng.integers(1, 40))
        return self.data[:first] + rng.bytes(size) + self.data[first + size :]

    def _by_removal(self, rng):
        return self._with(entries={self._pick(rng): None})

    def _by_renaming(self, rng):
        name, data = self._pick(rng), None
        stem = name.removesuffix(".npy")
        at = int(rng.integers(len(stem)))
        new = stem[:at] + chr(ord(stem[at]) ^ (1 << int(rng.integers(5)))) + stem[at + 1 :] + ".npy"
        return self._with(entries={name: data, new.replace("\0", "0"): self.entries[name]})

    def _by_swap(self, rng):
        one, other = self._pick(rng), self._pick(rng)
        return self._with(entries={one: self.entries[other], other: self.entries[one]})

    def _by_second_copy(self, rng):
        name = self._pick(rng)
        return zipped([*self.entries.items(), (f"more.{name}", self.entries[name])])

    def _by_foreign_entry(self, rng):
        name, data = self.foreign[int(rng.integers(len(self.foreign)))]
        return self._with(entries={name: data})

    def _by_foreign_array(self, rng):
        return self._with(entries={self._pick(rng): self.foreign[int(rng.integers(len(self.foreign)))][1]})

    def _by_other_shape(self, rng):
        name = self._pick(rng)
        array = array_of(self.entries[name])
        more = np.concatenate([array.ravel(), array.ravel()])
        others = [more, array.ravel()[:-1], array[None], array.ravel()[0] if array.size else more[None], array.T]
        others += [np.asfortranarray(np.stack([array, array])), np.empty((0, *array.shape), array.dtype)]
        return self._with(entries={name: bytes_of(others[int(rng.integers(len(others)))])})

    def _by_other_type(self, rng):
        name = self._pick(rng)
        kinds = ["f4", "f8", "c16", "i1", "i8", "u8", "?", "S3", "U2", "M8[s]", ">f8", ">i4", "f8,i4"]
        with np.errstate(all="ignore"):
            array = np.zeros(array_of(self.entries[name]).shape, kinds[int(rng.integers(len(kinds)))])
        return self._with(entries={name: bytes_of(array)})

    def _by_numbers_not_finite(self, rng):
        name = self._pick(rng)
        array = array_of(self.entries[name]).copy()
        if array.size:
            bad = [np.nan, np.inf, -np.inf, 1e308] if array.dtype.kind == "f" else [0, 1]
            array.ravel()[int(rng.integers(array.size))] = bad[int(rng.integers(len(bad)))]
        return self._with(entries={name: bytes_of(array)})

    def _by_array_header(self, rng):
        self.consistent = False
        name = self._pick(rng)
        return self._with(entries={name: flipped(self.entries[name], rng, 0, 128)})

    def _by_claim_to_be_huge(self, rng):
        self.consistent = False
        name = self._pick(rng)
        shape = str(array_of(self.entries[name]).shape).encode()
        huge = [b"(1000000000000,)", b"(4000000000, 4000000000)", b"(-1,)", b"(2147483648,)"][int(rng.integers(4))]
        data = self.entries[name].replace(shape + b", }", huge + b", }")
        room = len(data) - len(self.entries[name])  # taken from the blanks that fill the header
        return self._with(entries={name: data.replace(b" " * (room + 1) + b"\n", b" \n", 1)})

    def _by_header_value(self, rng):
        path = self.paths[int(rng.integers(len(self.paths)))]
        value = HOSTILE[int(rng.integers(len(HOSTILE)))]
        return self._with(entries={self.header_name: json.dumps(replaced(self.header, path, value)).encode()})

    def _by_header_value_too(self, rng):
        return self._by_header_value(rng)

    def _by_header_removal(self, rng):
        path = self.paths[int(rng.integers(len(self.paths)))]
        return self._with(entries={self.header_name: json.dumps(replaced(self.header, path, ...)).encode()})

    def _by_raw_header(self, rng):
        return self._with(entries={self.header_name: RAW[int(rng.integers(len(RAW)))]})


def with_header(path, **changes):
    """The bytes of a file with other header values."""
    entries = entries_of(path)
    name = next(name for name in entries if name.endswith(".json"))
    entries[name] = json.dumps({**json.loads(entries[name]), **changes}).encode()
    return zipped(list(entries.items()))


def bomb(path, name, size=2**30):
    """The bytes of a file with an entry of about 1 MB that expands to an array of `size` bytes, all zero."""
    block = bytes(2**20)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (size // 8,)})
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = squeeze.compress(head.getvalue()) + squeeze.flush(zlib.Z_FULL_FLUSH)
    zeros = squeeze.compress(block) + squeeze.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(head.getvalue())
    for _ in range(size // len(block)):
        checksum = zlib.crc32(block, checksum)
    data += zeros * (size // len(block)) + squeeze.flush(zlib.Z_FINISH)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for entry, content in entries_of(path).items():
            if entry != name:
                file.writestr(zipfile.ZipInfo(entry), content)
        info = zipfile.ZipInfo(name)
        file.writestr(info, data)  # stored; the directory then says that it is compressed, and how large it is
        info.compress_type, info.file_size, info.CRC = zipfile.ZIP_DEFLATED, size + len(head.getvalue()), checksum
    return out.getvalue()
