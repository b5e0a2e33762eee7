"""One file for each task, learner and seed, there whole or not at all: a benchmark goes on where it was."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version

from benchmarks.practice import ours, q_learning, rivals
from benchmarks.practice.record import Record
from benchmarks.practice.tasks import TASKS
from rlsvi.core.files import write_file

# Learners by the name of the command line: what tables call them, and their setting.
LEARNERS = {
    "ours": ("RLSVI (ours)", ours.SETTING),
    "q-learning": ("Q-learning", q_learning.SETTING),
    "dqn": ("DQN", "default"),
    "dqn-tuned": ("DQN", "tuned"),
    "ppo": ("PPO", "default"),
    "ppo-tuned": ("PPO", "tuned"),
}


def path_of(folder, task, learner, seed):
    """Where a result is."""
    return folder / f"{task}.{learner}.{seed}.json"


def takes_part(task, learner):
    """Whether a learner is measured on a task: tuned settings are published for some only."""
    return learner == "ours" or learner in TASKS[task].steps


def measure(folder, task, learner, seed):
    """Measure one learner with one seed on one task, write the result, and return it."""
    record = Record(TASKS[task], *LEARNERS[learner], seed)
    if learner == "ours":
        ours.learn(TASKS[task], seed, record)
    elif learner == "q-learning":
        q_learning.learn(TASKS[task], seed, record)
    else:
        rivals.learn(TASKS[task], learner, seed, record)
    result = {"rows": record.rows, "budget": TASKS[task].steps.get(learner), "machine": machine()}
    write_file(path_of(folder, task, learner, seed), json.dumps(result, indent=1).encode())
    return result


def read(folder):
    """The rows of all results in a folder, seed by seed: {(task, learner): {seed: rows}}."""
    found = {}
    for task in TASKS:
        for learner in LEARNERS:
            for path in folder.glob(f"{task}.{learner}.*.json"):
                rows = json.loads(path.read_text())["rows"]
                found.setdefault((task, learner), {})[rows[0]["seed"]] = rows
    return found


def machine():
    """Where this was measured, and with what."""
    packages = {}
    for name in ("rlsvi", "numpy", "gymnasium", "stable-baselines3", "torch"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {"machine": platform.machine(), "python": platform.python_version(), "threads": 1} | packages
