"""Sweeps: every job once, the same bits from all executors, and nothing lost whatever happens on the way."""

import errno
import importlib.util
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import cluster
import jobs
from rlsvi.study.executors import _ray_task, executor, processes, serial
from rlsvi.study.job import Done, Failed, Job
from rlsvi.study.store import DamagedFile, Store
from rlsvi.study.sweep import SweepError, sweep
from sweeper import jobs_of
from watch import HERE, PATIENCE, marked, python, started, until

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def lines(log, column=0):
    """Which jobs were begun, in their order, or with column 1 by which processes."""
    return [int(line.split()[column]) for line in log.read_text().splitlines()] if log.exists() else []


def data(frame):
    """The very bytes of a table of numbers."""
    return {
        name: (column.dtype, column.is_null().to_list(), column.fill_null(0).to_numpy().tobytes())
        for name, column in frame.to_dict().items()
    }


def files(store):
    return list(store.folder.glob("*.parquet"))


# ---- the same bits ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Real simulations, one after the other: the store and the table."""
    store = Store(tmp_path_factory.mktemp("serial"))
    return store, sweep(cluster.jobs_of(), store, "serial")


def assert_same_bits(store, reference):
    expected, table = reference
    assert data(store.frame(cluster.jobs_of())) == data(table)
    for job in cluster.jobs_of():
        found, kept = pl.read_parquet(store.path(job)), pl.read_parquet(expected.path(job))
        assert data(found) == data(kept)


def test_the_table_is_what_the_jobs_bring(reference):
    _, table = reference
    assert table.columns == ["length", "features", "seed", "episodes", "episode", "reward", "regret"]
    brought = [jobs.learn(**job.settings) for job in cluster.jobs_of()]
    for name in ("reward", "regret"):
        assert table[name].to_numpy().tobytes() == b"".join(one[name].tobytes() for one in brought)
    assert table["seed"].to_list()[::40] == [0, 1, 2, 3] * 3
    assert table["features"].to_list()[::160] == [None, 3, 4]
    assert table["regret"].max() > table["regret"].min() >= 0


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_give_the_same_bits(tmp_path, reference, workers):
    store = Store(tmp_path)
    assert data(sweep(cluster.jobs_of(), store, processes(workers))) == data(reference[1])
    assert_same_bits(store, reference)


@needs_ray
@pytest.mark.slow
def test_ray_gives_the_same_bits_from_its_own_cluster_and_from_one_it_joins(tmp_path, reference):
    with started(HERE / "cluster.py", tmp_path / "own", tmp_path / "joined") as process:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert until(lambda: not marked(process.mark), 60), "processes of Ray are left"
    assert_same_bits(Store(tmp_path / "own"), reference)
    assert_same_bits(Store(tmp_path / "joined"), reference)
    addresses = out.split()
    assert len(addresses) >= 3
    assert set(addresses) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def test_a_task_of_ray_finds_modules_where_the_sweep_does(tmp_path, monkeypatch):
    (tmp_path / "far_module_of_a_test.py").write_text("def f():\n    return {'a': 1}\n")
    job = Job("far_module_of_a_test:f", {})
    monkeypatch.setattr("rlsvi.study.job.version", lambda module: "same")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert isinstance(_ray_task(job, "same", sys.path), Failed)
    assert isinstance(_ray_task(job, "same", [*sys.path, str(tmp_path)]), Done)
    monkeypatch.delitem(sys.modules, "far_module_of_a_test")


@needs_ray
@pytest.mark.slow
def test_a_ray_address_that_does_not_answer_is_told(tmp_path):
    code = """
import socket, sys
from rlsvi.study.executors import executor
from rlsvi.study.sweep import sweep
from sweeper import jobs_of

with socket.socket() as mute, socket.socket() as closed:
    mute.bind(("127.0.0.1", 0))
    mute.listen()
    closed.bind(("127.0.0.1", 0))
    where = [f"{prefix}127.0.0.1:{closed.getsockname()[1]}" for prefix in ("", "ray://")]
    where += ["somewhere", "127.0.0.1:door", f"127.0.0.1:{mute.getsockname()[1]}"]
    for address in where:
        try:
            sweep(jobs_of("log", 1, 0), sys.argv[1], executor("ray", address=address))
        except ConnectionError as error:
            assert f"no Ray cluster answers at {address!r}: " in str(error), error
            print(error)
        else:
            raise AssertionError(address)
"""
    quick = {"RAY_py_gcs_connect_timeout_s": "1", "RAY_gcs_rpc_server_connect_timeout_s": "1"}
    out = python(code, tmp_path, RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", **quick)
    assert out.count("refused") == 2
    assert out.count("an address is HOST:PORT") == 2
    assert not list(tmp_path.glob("*.parquet"))


# ---- what is computed -------------------------------------------------------------------------------------


def test_what_is_there_is_not_computed_again(tmp_path, log):
    store, some, more = tmp_path / "store", jobs_of(log, 3, 0), jobs_of(log, 5, 0)
    sweep(some, store, "serial")
    assert lines(log) == [0, 1, 2]
    table = sweep(more[::-1], store, "serial")
    assert lines(log) == [0, 1, 2, 4, 3]
    assert table["i"].to_list()[::3] == [4, 3, 2, 1, 0]
    again = sweep(more[::-1], Store(store), "serial")
    assert lines(log) == [0, 1, 2, 4, 3]
    assert again.equals(table)
    sweep(some, store, "serial", redo=True)
    assert lines(log) == [0, 1, 2, 4, 3, 0, 1, 2]


def test_duplicates_are_computed_once(tmp_path, log):
    table = sweep([*jobs_of(log, 2, 0), *jobs_of(log, 2, 0)], tmp_path / "store", "serial")
    assert lines(log) == [0, 1]
    assert table["i"].to_list() == [0, 0, 0, 1, 1, 1]


def test_progress_is_told_once_a_job(tmp_path, log):
    told = []

    def advance(job, fresh):
        told.append((job.settings["i"], fresh))

    sweep(jobs_of(log, 2, 0), tmp_path / "store", "serial", advance=advance)
    assert told == [(0, True), (1, True)]
    told.clear()
    sweep(jobs_of(log, 4, 0), tmp_path / "store", processes(2), advance=advance)
    assert told[:2] == [(0, False), (1, False)]
    assert sorted(told[2:]) == [(2, True), (3, True)]


def test_an_executor_may_be_any_function(tmp_path, log):
    def backwards(todo):
        yield from reversed(list(serial(todo)))

    table = sweep(jobs_of(log, 3, 0), tmp_path / "store", backwards)
    assert table["i"].to_list()[::3] == [0, 1, 2]
    made = [(job, Done({"x": 0.5 * job.settings["i"]}, 0.0)) for job in jobs_of(log, 5, 0)]
    assert sweep(jobs_of(log, 5, 0)[3:], tmp_path / "store", lambda todo: made[3:])["x"].to_list() == [1.5, 2.0]


def test_failures_are_told_in_the_end_and_the_others_kept(tmp_path):
    some = [Job.of(jobs.picky, i=i, bad=bad) for i, bad in ((0, 0), (1, 0), (2, 2), (3, None))]
    told = []
    with pytest.raises(SweepError, match=r"2 of 4 jobs failed, the others are kept; the first: picky\(i=0, "):
        sweep(some, tmp_path, "serial", advance=lambda job, fresh: told.append(fresh))
    assert told == [True] * 4
    kept = sweep([some[1], some[3]], tmp_path, lambda todo: pytest.fail("they are there"))
    assert kept["half"].to_list() == [0.5, 1.5]
    with pytest.raises(SweepError, match=r"(?s)1 of 1.*picky\(i=2, bad=2\): Arithmetic.*Traceback.*in picky"):
        sweep([some[2]], tmp_path, processes(1))


@pytest.mark.slow
def test_a_worker_that_is_killed_fails_its_job_alone(tmp_path):
    some = [Job.of(jobs.mortal, i=i, flag=str(tmp_path / "flag") if i == 1 else None) for i in range(6)]
    with pytest.raises(SweepError, match=r"1 of 6 jobs failed.*mortal\(i=1.*its process died \(exit code -9\)"):
        sweep(some, tmp_path / "store", processes(2))
    assert len(files(Store(tmp_path / "store"))) == 5
    assert sweep(some, tmp_path / "store", processes(2))["half"].to_list() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]


def test_workers_refuse_to_compute_with_other_sources(tmp_path, monkeypatch):
    file = tmp_path / "edited_module_of_a_test.py"
    file.write_text("def f():\n    return {'a': 1}\n")
    monkeypatch.syspath_prepend(tmp_path)
    job = Job(f"{file.stem}:f", {})
    assert sweep([job], tmp_path / "store", processes(1))["a"].to_list() == [1]
    file.write_text("def f():\n    return {'a': 2}\n")
    with pytest.raises(SweepError, match="other sources"):
        sweep([job], tmp_path / "store", processes(1), redo=True)
    assert sweep([job], tmp_path / "store", "serial")["a"].to_list() == [1]
    monkeypatch.delitem(sys.modules, file.stem, raising=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "threads"}, "executor must be one of processes, serial, ray, gpu, got 'threads'"),
        ({"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        ({"workers": 1.5}, "workers must be a whole number"),
        ({"address": "auto"}, "goes with the executor 'ray', not 'processes'"),
    ],
)
def test_bad_executors_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        executor(**arguments)


def test_a_sweep_needs_jobs(tmp_path):
    with pytest.raises(ValueError, match="jobs must be at least one"):
        sweep([], tmp_path)


# ---- whatever happens -------------------------------------------------------------------------------------


def test_damaged_files_are_named_set_aside_and_computed_again(tmp_path, log):
    store, some = Store(tmp_path / "store"), jobs_of(log, 4, 0)
    table = sweep(some, store, "serial")
    flipped = bytearray(store.path(some[1]).read_bytes())
    flipped[100] ^= 4
    store.path(some[1]).write_bytes(flipped)
    os.truncate(store.path(some[2]), 50)
    os.replace(store.path(some[0]), store.path(some[3]))
    with pytest.warns(DamagedFile) as caught:
        again = sweep(some, store, "serial")
    assert [str(store.path(job)) in str(one.message) for job, one in zip(some[1:], caught, strict=True)] == [
        True
    ] * 3
    assert lines(log) == [0, 1, 2, 3, 0, 1, 2, 3]
    assert again.equals(table)
    assert len(list(store.folder.glob("*.damaged-*"))) == 3
    assert sweep(some, store, "serial").equals(table)


@pytest.mark.slow
@pytest.mark.parametrize("run", [serial, processes(2)], ids=["serial", "processes"])
def test_a_full_disk_ends_the_sweep_and_nothing_is_lost(tmp_path, log, monkeypatch, run):
    def fsync(descriptor, sync=os.fsync):
        if len(files(store)) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    store, some = Store(tmp_path / "store"), jobs_of(log, 6, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match=r"cannot write to .*\(No space left on device\); what is fin"):
            sweep(some, store, run)
    assert len(files(store)) == 3
    assert not list(store.folder.glob(".*"))
    done = {i for i in range(6) if store.path(some[i]).exists()}
    before = len(lines(log))
    assert sweep(some, store, run)["i"].to_list()[::3] == list(range(6))
    assert set(lines(log)[before:]) == set(range(6)) - done


@pytest.mark.slow
def test_killed_five_times_a_sweep_still_ends_as_if_never_interrupted(tmp_path, log):
    store, some, kills, moments = Store(tmp_path / "store"), jobs_of(log, 40, 0.08), 5, random.Random(0)
    for _ in range(kills):
        before = len(files(store))
        with started(HERE / "sweeper.py", store.folder, log, 40, 0.08) as process:
            assert until(lambda before=before: len(files(store)) > before, process=process), process.communicate()
            until(lambda: False, moments.uniform(0, 0.2))
            process.kill()
            assert process.wait() == -signal.SIGKILL
            assert until(lambda mark=process.mark: not marked(mark), 60), "workers outlive the sweep"
        sound = sum(store.read(job) is not None for job in some)  # a damaged one would warn, an error here
        assert sound == len(files(store))
        assert before < sound < len(some)
    table = sweep(some, store, processes(2))
    counts = Counter(lines(log))
    assert set(counts) == set(range(40))
    assert sum(counts.values()) <= 40 + kills * 3  # one a worker, and the one that is being written
    expected = sweep(jobs_of(tmp_path / "other", 40, 0), tmp_path / "uninterrupted", processes(2))
    assert data(table.drop("log", "seconds")) == data(expected.drop("log", "seconds"))


@pytest.mark.slow
def test_killed_in_the_middle_of_long_jobs_a_sweep_leaves_no_process(tmp_path, log):
    with started(HERE / "sweeper.py", tmp_path / "store", log, 2, 100) as process:
        assert until(lambda: len(lines(log)) == 2, process=process), process.communicate()
        assert len(marked(process.mark)) >= 3
        process.kill()
        process.wait()
        assert until(lambda: not marked(process.mark), 60)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["start", "middle"])
def test_ctrl_c_ends_a_sweep_at_once(tmp_path, log, moment):
    folder = tmp_path / "store"
    with started(HERE / "sweeper.py", folder, log, 200, 0.05) as process:
        come = (folder / "store.json").exists if moment == "start" else lambda: len(set(lines(log, 1))) == 2
        assert until(come, process=process), process.communicate()
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGINT
        assert moment == "start" or "Traceback" not in err  # nor do workers tell anything
        told = r"stopped: \d+ of 200 jobs are stored in .*: the same call goes on with the others\n"
        assert moment == "start" or re.fullmatch(told, err)
        assert until(lambda: not marked(process.mark), 60), "workers outlive the sweep"
    store = Store(folder)
    assert sum(store.read(job) is not None for job in jobs_of(log, 200, 0.05)) == len(files(store)) < 200
    assert not list(folder.glob(".*"))


def test_ctrl_c_waits_for_the_file_that_is_being_written(tmp_path, log):
    class Interrupted(Store):
        def write(self, job, done):
            signal.raise_signal(signal.SIGINT)
            super().write(job, done)

    def run(todo):
        try:
            yield from serial(todo)
        finally:
            closed.append(True)

    store, handler, closed = Interrupted(tmp_path / "store"), signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt) as stopped:
        sweep(jobs_of(log, 3, 0), store, run)
    assert stopped.value.__notes__ == [
        f"1 of 3 jobs are stored in {store.folder}: the same call goes on with the others"
    ]
    assert [store.read(job) is not None for job in jobs_of(log, 3, 0)] == [True, False, False]
    assert closed
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_sweep_may_run_in_any_thread(tmp_path, log):
    with ThreadPoolExecutor(1) as pool:
        table = pool.submit(sweep, jobs_of(log, 2, 0), tmp_path / "store", processes(1)).result()
    assert table["i"].to_list()[::3] == [0, 1]


@pytest.mark.slow
def test_two_sweeps_of_one_store_at_once_both_succeed(tmp_path, log):
    folder, some = tmp_path / "store", jobs_of(log, 20, 0.03)
    arguments, end = (HERE / "sweeper.py", folder, log, 20, 0.03), time.monotonic() + PATIENCE
    with started(*arguments) as one, started(*arguments) as other:
        assert until((folder / "store.json").exists, process=one), one.communicate()
        store = Store(folder)
        while None in (one.poll(), other.poll()):
            assert time.monotonic() < end, "they hang"
            for job in some:
                store.read(job)  # what is half written would warn, an error here
            time.sleep(0.02)
        for process in (one, other):
            _, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, err
    assert len(files(store)) == 20
    assert set(lines(log)) == set(range(20))
    assert len(lines(log)) <= 40
    expected = sweep(jobs_of(tmp_path / "other", 20, 0), tmp_path / "alone", "serial")
    assert data(store.frame(some).drop("log", "seconds")) == data(expected.drop("log", "seconds"))


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_what_to_do(tmp_path, log):
    script = tmp_path / "script.py"
    script.write_text(
        "from rlsvi.study.sweep import sweep\n"
        "from rlsvi.study.executors import processes\n"
        "from sweeper import jobs_of\n"
        f"sweep(jobs_of({str(log)!r}, 20, 0), {str(tmp_path / 'store')!r}, processes(2))\n"
    )
    with started(script) as process:
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert until(lambda: not marked(process.mark), 60)
    assert err.count("processes cannot start processes") <= 2
    assert "RuntimeError: a process could not start" in err.strip().splitlines()[-1]
    assert "call sweep or compare under if __name__ == '__main__':" in err.strip().splitlines()[-1]
    assert lines(log) == []
