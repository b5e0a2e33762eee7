"""Whole files: what killed writers leave is removed, and nothing that a living one needs."""

import os
import time

import pytest

import jobs
from rlsvi.core import files
from rlsvi.core.files import remove_left_over, whole_file, write_file
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import sweep
from watch import started, until

WRITER = """
import sys, time
from pathlib import Path
from rlsvi.core.files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def aged(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def killed_writer(path):
    with started("-c", WRITER, path) as process:
        assert process.stdout.readline() == "writing\n"
        process.kill()
        process.wait()


# ---- temporary files --------------------------------------------------------------------------------------


def test_what_a_killed_writer_left_is_removed_by_the_next_writer_of_the_file(tmp_path):
    killed_writer(tmp_path / "agent")
    assert len(names(tmp_path)) == 1
    write_file(tmp_path / "other", b"whole")
    assert len(names(tmp_path)) == 2  # not its business
    write_file(tmp_path / "agent", b"whole")
    assert names(tmp_path) == ["agent", "other"]


def test_what_a_living_writer_writes_is_left_alone_by_whoever_comes(tmp_path):
    target = tmp_path / "agent"
    with started("-c", WRITER, target) as process:
        assert process.stdout.readline() == "writing\n"
        (temporary,) = tmp_path.iterdir()
        aged(temporary, 10 * files.DAY)  # however slow it is
        write_file(target, b"mine")
        remove_left_over(tmp_path)
        assert names(tmp_path) == sorted([temporary.name, "agent"])
    assert target.read_bytes() == b"mine"


def test_two_writers_in_one_process_do_not_disturb_each_other(tmp_path):
    with whole_file(tmp_path / "a") as first:
        first.write(b"first")
        with whole_file(tmp_path / "a") as second:
            second.write(b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("name", [".a.12345678-12345678.tmp", ".a.12345678.tmp"])
def test_what_another_machine_or_version_left_goes_after_a_day(tmp_path, name):
    left = tmp_path / name
    left.write_bytes(b"half")
    write_file(tmp_path / "a", b"")
    assert left.exists()
    aged(left, files.DAY + 60)
    write_file(tmp_path / "a", b"")
    assert names(tmp_path) == ["a"]


def test_files_of_others_are_never_taken_for_left_over(tmp_path):
    mine = [".a.tmp", "a.12345678.tmp", ".a.notes.tmp", ".a.1234567.tmp", ".a.12345678.tmp.txt"]
    for name in mine:
        (tmp_path / name).touch()
        aged(tmp_path / name, 100 * files.DAY)
    remove_left_over(tmp_path)
    assert names(tmp_path) == sorted(mine)


def test_without_locks_only_what_is_old_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    left = tmp_path / f".a.{files.machine()}-12345678.tmp"
    left.touch()
    write_file(tmp_path / "a", b"whole")
    assert left.exists()
    aged(left, files.DAY + 60)
    write_file(tmp_path / "a", b"whole")
    assert names(tmp_path) == ["a"]


def test_many_writers_and_cleaners_lose_nothing(tmp_path):
    """Each writes its own file 60 times and clears the folder of all that is left over in between."""
    code = """
import sys
from pathlib import Path
from rlsvi.core.files import remove_left_over, write_file
folder, me = Path(sys.argv[1]), sys.argv[2]
for i in range(60):
    write_file(folder / me, str(i).encode())
    remove_left_over(folder)
"""
    with started("-c", code, tmp_path, "a") as one, started("-c", code, tmp_path, "b") as two:
        for process in (one, two):
            _, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "59"


# ---- stores ---------------------------------------------------------------------------------------------


def test_a_sweep_tidies_its_store(tmp_path):
    store = Store(tmp_path / "store")
    killed_writer(store.path(Job.of(jobs.picky, i=7, bad=0)))
    assert until(lambda: len(names(store.folder)) == 2)
    sweep([Job.of(jobs.picky, i=1, bad=2)], store, "serial")
    assert not list(store.folder.glob(".*.tmp"))
