"""The store: files that are there whole or not at all, and are not believed when they have changed."""

import errno
import json
import os
import platform
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import jobs
from rlsvi.core import files
from rlsvi.study.job import Done, Job
from rlsvi.study.store import DamagedFile, Store
from watch import python

DONE = Done({"row": np.arange(3), "x": np.array([0.1, -0.0, np.nan]), "word": np.array(["a", "", "ü"])}, 1.5)


def job_of(i, **settings):
    return Job.of(jobs.noted, i=i, **settings)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def written(store):
    store.write(job_of(1), DONE)
    return store


def names(store):
    return sorted(path.name for path in store.folder.iterdir())


# ---- what is kept -----------------------------------------------------------------------------------------


def test_what_was_written_is_read_bit_for_bit(written):
    frame, seconds = written.read(job_of(1))
    assert seconds == 1.5
    assert frame.schema == {"i": pl.Int64, "row": pl.Int64, "x": pl.Float64, "word": pl.String}
    assert frame["i"].to_list() == [1, 1, 1]
    assert frame["x"].to_numpy().tobytes() == DONE.columns["x"].tobytes()
    assert frame["word"].to_list() == ["a", "", "ü"]


def test_what_is_not_there_is_none(store):
    assert store.read(job_of(1)) is None
    assert names(store) == ["store.json"]


def test_polars_alone_reads_one_file_or_all(store):
    for i in range(3):
        store.write(job_of(i, lam=0.5, basis="coherent", fast=True), DONE)
    together = pl.read_parquet(store.folder / "*.parquet").sort("i", maintain_order=True)
    assert together.columns == ["i", "lam", "basis", "fast", "row", "x", "word"]
    assert together["i"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    one = pl.read_parquet(store.path(job_of(1, lam=0.5, basis="coherent", fast=True)))
    assert one.equals(together.filter(pl.col("i") == 1))


def test_a_file_says_what_computed_it(written):
    job = job_of(1)
    what = json.loads(pl.read_parquet_metadata(written.path(job))["rlsvi"])
    known = {"name": job.name, "function": "jobs:noted", "version": job.version, "seconds": 1.5}
    assert what == {**known, "machine": platform.machine(), "polars": pl.__version__}


def test_settings_of_all_types_come_back_as_columns(store):
    settings = {"whole": -(2**63), "real": 0.1, "text": "x", "truth": False, "none": None}
    store.write(job_of(1, **settings), DONE)
    frame, _ = store.read(job_of(1, **settings))
    assert frame.row(0, named=True).items() >= settings.items()


def test_tables_of_other_settings_join_with_settings_first(store):
    mixed = [job_of(2), job_of(0, features=None), job_of(1, features=3, lam=1), job_of(3, lam=0.5)]
    for job in mixed:
        store.write(job, DONE)
    frame, seconds = store.gather(mixed)
    assert frame.columns == ["i", "features", "lam", "row", "x", "word"]
    assert frame.select("i", "features", "lam").rows()[::3] == [
        (2, None, None),
        (0, None, None),
        (1, 3, 1.0),
        (3, None, 0.5),
    ]
    assert seconds == [1.5] * 4
    assert store.frame(mixed[::-1])["i"].to_list()[::3] == [3, 1, 0, 2]


def test_a_table_needs_all_results(written):
    with pytest.raises(LookupError, match=r"1 of 2 jobs have no results in .*, such as noted\(i=2\)"):
        written.frame([job_of(1), job_of(2)])
    assert written.missing([job_of(1), job_of(2)])[0].name == job_of(2).name


def test_a_table_may_have_no_rows(store):
    store.write(job_of(1), Done({"x": np.empty(0)}, 0.0))
    assert store.frame([job_of(1)]).shape == (0, 2)


# ---- damage -----------------------------------------------------------------------------------------------


def assert_noticed(store, job, data):
    """`data` in the place of the job's file is not believed, named and set aside."""
    path = store.path(job)
    path.write_bytes(data)
    before = set(store.folder.iterdir())
    with pytest.warns(DamagedFile, match=re.escape(str(path))) as caught:
        assert store.read(job) is None
    aside = set(store.folder.iterdir()) - before
    assert not path.exists()
    assert len(aside) == 1
    assert aside.pop().read_bytes() == data
    assert len(caught) == 1
    for file in set(store.folder.iterdir()) - before:
        assert file.name in str(caught[0].message)
        file.unlink()


def test_a_flipped_bit_is_noticed_wherever_it_is(written):
    """One bit, drawn at random, in every byte of the file."""
    whole = written.path(job_of(1)).read_bytes()
    bits = np.random.default_rng(0).integers(8, size=len(whole))
    for place, bit in enumerate(bits):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        assert_noticed(written, job_of(1), bytes(damaged))
    written.path(job_of(1)).write_bytes(whole)
    assert written.read(job_of(1)) is not None


@pytest.mark.parametrize("keep", [0, 1, 4, 71, 0.5, 0.9, -65, -8, -1])
def test_a_truncated_file_is_noticed(written, keep):
    whole = written.path(job_of(1)).read_bytes()
    assert_noticed(written, job_of(1), whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])


def test_other_damage_is_noticed(written):
    whole = written.path(job_of(1)).read_bytes()
    unsealed = re.sub(rb"sha256:[0-9a-f]{64}", b"sha256:" + b"0" * 64, whole)
    for data in (whole + b"\0", whole[1:], whole + whole, bytes(len(whole)), unsealed, b"sha256:"):
        assert_noticed(written, job_of(1), data)


def test_a_sound_file_of_another_job_is_noticed(written):
    written.write(job_of(2), DONE)
    assert_noticed(written, job_of(1), written.path(job_of(2)).read_bytes())
    assert written.read(job_of(2)) is not None


def test_a_sound_parquet_file_of_somebody_else_is_noticed(written, tmp_path):
    pl.DataFrame({"x": [1.0]}).write_parquet(tmp_path / "foreign")
    assert_noticed(written, job_of(1), (tmp_path / "foreign").read_bytes())


def test_two_processes_may_set_the_same_file_aside(written, monkeypatch):
    def gone(source, target):
        os.unlink(source)
        raise FileNotFoundError

    written.path(job_of(1)).write_bytes(b"")
    monkeypatch.setattr(os, "replace", gone)
    assert written.read(job_of(1)) is None


def test_a_sound_file_that_another_process_has_just_written_is_not_set_aside(written, monkeypatch):
    path = written.path(job_of(1))
    sound, replace, moved = path.read_bytes(), os.replace, []

    def faster(source, target):
        if not moved:  # between our reading and our renaming
            path.write_bytes(sound)
        moved.append(target)
        replace(source, target)

    path.write_bytes(sound[:-1])
    monkeypatch.setattr(os, "replace", faster)
    assert written.read(job_of(1)) is not None
    assert path.read_bytes() == sound
    assert not list(written.folder.glob("*damaged*"))


# ---- writing ----------------------------------------------------------------------------------------------


def test_a_file_is_synced_before_it_gets_its_name_and_the_folder_after(store, monkeypatch):
    events = []

    def fsync(descriptor, sync=os.fsync):
        target = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        events.append(("synced", target.suffix, target.stat().st_size if target.is_file() else None))
        sync(descriptor)

    def replace(source, target, move=os.replace):
        events.append(("named", Path(target).suffix, Path(source).stat().st_size))
        move(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    store.write(job_of(1), DONE)
    size = store.path(job_of(1)).stat().st_size
    assert events == [("synced", ".tmp", size), ("named", ".parquet", size), ("synced", "", None)]


def test_killed_at_any_moment_of_writing_the_file_is_the_old_one_or_the_new_one(tmp_path):
    code = """
import builtins, os, signal, sys
from pathlib import Path
from rlsvi.core import files

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

class Torn:
    def __init__(self, path, mode, **options):
        self.file = builtins.open(path, mode, buffering=0)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass
    def fileno(self):
        return self.file.fileno()
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        die()

path = Path(sys.argv[1])
moments = {"write": (files, "open", Torn), "sync": (os, "fsync", die), "name": (os, "replace", die),
           "folder": (files, "_sync", die)}
for moment, patch in moments.items():
    path.write_bytes(b"old" * 1000)
    if (child := os.fork()) == 0:
        setattr(*patch)
        files.write_file(path, b"new" * 2000)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert path.read_bytes() == (b"new" * 2000 if moment == "folder" else b"old" * 1000), moment
    assert [p.name for p in path.parent.glob("*.parquet")] == [path.name]
    assert len(list(path.parent.iterdir())) == 1 + (moment != "folder")
    files.write_file(path, b"newer")
    assert [p.name for p in path.parent.iterdir()] == [path.name]
"""
    python(code, tmp_path / "a.parquet")


def full(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_told_and_nothing_is_lost(written, monkeypatch):
    before = names(written), written.path(job_of(1)).read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    for i in (1, 2):
        with pytest.raises(OSError, match=r"cannot write to .*store \(No space left on device\); what is fin"):
            written.write(job_of(i), DONE)
    assert (names(written), written.path(job_of(1)).read_bytes()) == before


def test_a_write_that_really_fails_is_told_and_nothing_is_lost(tmp_path):
    code = """
import errno, resource, sys
import numpy as np
from rlsvi.study.job import Done, Job
from rlsvi.study.store import Store
store = Store(sys.argv[1])
small, large = (Job("jobs:noted", {"i": i}) for i in range(2))
store.write(small, Done({"x": np.zeros(1)}, 0.0))
names = sorted(store.folder.iterdir())
noise = np.random.default_rng(0).random(100_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    store.write(large, Done({"x": noise}, 0.0))
except OSError as error:
    assert error.errno == errno.EFBIG and f"cannot write to {store.folder} (File too large)" in str(error)
else:
    raise AssertionError
assert sorted(store.folder.iterdir()) == names
assert store.read(small) is not None and store.read(large) is None
"""
    python(code, tmp_path / "store")


@pytest.mark.parametrize("below", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_told(tmp_path, below):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot write to .*file.* choose another folder"):
        Store(tmp_path / below)


def test_a_folder_that_cannot_be_written_to_is_told(written, monkeypatch):
    def denied(path, mode, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(files, "open", denied, raising=False)
    with pytest.raises(PermissionError, match=r"cannot write to .*store \(Permission denied\)"):
        written.write(job_of(2), DONE)
    with pytest.raises(PermissionError, match=r"cannot write to .*new \(Permission denied\)"):
        Store(written.folder / "new")
    assert Store(written.folder).read(job_of(1)) is not None  # reading needs no right to write


# ---- stores -----------------------------------------------------------------------------------------------


def test_a_store_is_opened_again(written):
    assert Store(str(written.folder)).read(job_of(1)) is not None
    assert repr(written) == f"Store({str(written.folder)!r})"
    assert json.loads((written.folder / "store.json").read_text()) == {"store": "rlsvi", "format": 1}


def test_a_store_of_another_format_is_refused(written):
    (written.folder / "store.json").write_text('{"store": "rlsvi", "format": 2}')
    with pytest.raises(ValueError, match=r"store of format 2, and this version .* reads and writes format 1"):
        Store(written.folder)
    assert written.path(job_of(1)).exists()


@pytest.mark.parametrize("label", ["", "{", "[]", "7", "{}", '{"store": "rlsvi"}', "\udcff"])
def test_a_label_that_says_nothing_is_refused(written, label):
    (written.folder / "store.json").write_bytes(label.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"store\.json cannot be read"):
        Store(written.folder)


def test_a_folder_of_other_parquet_files_is_not_taken_for_a_store(tmp_path):
    pl.DataFrame({"x": [1.0]}).write_parquet(tmp_path / "mine.parquet")
    with pytest.raises(ValueError, match="holds Parquet files but is no store: choose another folder"):
        Store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.parquet"]
