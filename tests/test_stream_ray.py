"""Logs in chunks on Ray, on this machine only: the same bits on all clusters, and what dies on the way."""

import importlib.util

import pytest

import rlsvi
from contract.environments import Drift
from fitting_on_ray import digest, fitted
from watch import HERE, PATIENCE, marked, started, until

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.slow,
]


@pytest.fixture
def folder(tmp_path):
    rlsvi.record(Drift(horizon=20), None, 20, seed=4, path=tmp_path / "log.parquet")
    return tmp_path


def run(case, folder):
    """Run a case of fitting_on_ray.py in a process of its own; the lines it prints."""
    with started(HERE / "fitting_on_ray.py", case, folder) as process:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err[-3000:]
        assert until(lambda: not marked(process.mark), 60), "processes of Ray are left"
    return out.splitlines()


def test_the_same_weights_in_this_process_on_1_and_4_workers_and_where_it_joins(folder):
    assert run("workers", folder) == 3 * [digest(fitted(folder))]


def test_a_worker_that_dies_is_replaced(folder):
    assert run("worker", folder)[-1] == digest(fitted(folder))  # after what Ray says about it


def test_without_its_head_the_cluster_is_lost_and_the_agent_is_as_before(folder):
    told, again = run("head", folder)[-2:]
    assert "the Ray cluster was lost while it computed from the log" in told
    assert again == digest(fitted(folder))
