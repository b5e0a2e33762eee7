"""Checkpoints: a long job that is killed goes on where it was, and ends as if nothing had happened."""

import pytest

import jobs
from rlsvi.study.checkpoint import checkpoint, checkpoint_in
from rlsvi.study.executors import processes
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import SweepError, sweep


def test_there_is_none_outside_of_a_sweep_nor_without_its_store(tmp_path):
    assert checkpoint() is None
    with checkpoint_in(str(tmp_path / "gone" / "unfinished" / "name")):
        assert checkpoint() is None
    with checkpoint_in(str(tmp_path / "unfinished" / "name")):
        assert checkpoint() == tmp_path / "unfinished" / "name"
        assert checkpoint().is_dir()
    assert checkpoint() is None


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", processes(1)], ids=["serial", "processes"])
def test_a_job_that_fails_goes_on_and_what_it_kept_is_then_removed(tmp_path, executor):
    store, job = Store(tmp_path / "store"), Job.of(jobs.counted, to=3)
    for count in (1, 2):
        with pytest.raises(SweepError, match=f"stopped at {count}"):
            sweep([job], store, executor)
        assert (store.unfinished(job) / "count").read_text() == str(count)
    assert sweep([job], store, executor)["count"].to_list() == [3]
    assert not store.unfinished(job).exists()


def test_redo_begins_anew(tmp_path):
    store, job = Store(tmp_path), Job.of(jobs.counted, to=3)
    for _ in range(2):
        with pytest.raises(SweepError, match="stopped at 1"):
            sweep([job], store, "serial", redo=True)


def test_jobs_that_do_not_ask_leave_no_folder(tmp_path):
    sweep([Job.of(jobs.picky, i=1, bad=2)], tmp_path, "serial")
    assert not (tmp_path / "unfinished").exists()
