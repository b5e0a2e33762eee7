"""A script that fits a log on Ray: python fitting_on_ray.py CASE-OR-ADDRESS FOLDER. Prints digests of weights."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest.mock import patch

import rlsvi
from contract.environments import Drift
from rlsvi.agents.practice.bounded_rlsvi import BoundedLearner
from watch import MARK, marked

CHUNK = 40


class Features:
    """Five features. On Ray, the first to compute them writes a file, and then dies or waits, if told to."""

    def __init__(self, folder, then=""):
        self.file, self.then, self.begun = Path(folder) / "computing", then, os.getpid()

    def rows(self, x):
        if self.then and os.getpid() != self.begun and not self.file.exists():
            self.file.touch()
            if self.then == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(2)
        return rlsvi.bases.Polynomial(degree=1).rows(x)


FEW_SWEEPS = patch.object(BoundedLearner, "SWEEPS", 10)


@FEW_SWEEPS
def fitted(folder, then="", executor=None):
    agent = rlsvi.BoundedRLSVI(seed=0, basis=Features(folder, then))
    return agent.fit(f"{folder}/log.parquet", Drift(horizon=20), chunk=CHUNK, executor=executor)


def digest(agent):
    return hashlib.sha256(agent.planned.theta.tobytes() + agent._learner.regression.sums.tobytes()).hexdigest()


def on_workers(folder):
    """The same on 1 and 4 workers, and by another process that joins the last cluster by its address."""
    import ray

    from rlsvi.ray_cluster import connect_ray

    for workers in (1, 4):
        connect_ray(workers, None)
        print(digest(fitted(folder, executor="ray")), flush=True)
        if workers == 4:
            address = ray.get_runtime_context().gcs_address
            loopback = {**os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
            subprocess.run([sys.executable, __file__, address, folder], env=loopback, timeout=180, check=True)
        ray.shutdown()


def kill_head():
    """Kill the head of the cluster that this process has started."""
    for pid in marked(os.environ[MARK]):
        if Path(f"/proc/{pid}/comm").read_text().strip() in ("gcs_server", "raylet"):
            os.kill(pid, signal.SIGKILL)


@FEW_SWEEPS
def without_head(folder):
    """The head dies while features are computed."""

    def watch():
        while not (Path(folder) / "computing").exists():
            time.sleep(0.05)
        kill_head()

    threading.Thread(target=watch, daemon=True).start()
    agent = rlsvi.BoundedRLSVI(seed=0, basis=Features(folder, "wait"))
    try:
        agent.fit(f"{folder}/log.parquet", Drift(horizon=20), chunk=CHUNK, executor="ray")
    except ConnectionError as error:
        print(error)
    assert (agent.steps, agent._learner, agent._task) == (0, None, None)
    print(digest(agent.fit(f"{folder}/log.parquet", Drift(horizon=20), chunk=CHUNK)))


def main(case, folder):
    if case == "workers":
        on_workers(folder)
    elif case == "worker":
        print(digest(fitted(folder, "die", "ray")))
        assert (Path(folder) / "computing").exists()
    elif case == "head":
        without_head(folder)
    else:
        print(digest(fitted(folder, executor=case)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
