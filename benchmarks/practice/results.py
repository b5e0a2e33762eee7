"""One file for each task, learner and seed, there whole or not at all: a benchmark goes on where it was.

What failed leaves a text with the error instead; it is tried again the next time.
"""

import json
import platform
import re
import traceback
import warnings
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from benchmarks.practice import ours, q_learning, rivals
from benchmarks.practice.box import BOX
from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.evaluation import EPISODES, Record, Run
from benchmarks.practice.reported import REPORTED
from benchmarks.practice.task import RIVAL_SEEDS
from rlsvi.core.files import write_file

TASKS = CHOSEN | BOX | REPORTED
# Learners by the name of the command line: what tables call them, and their setting.
LEARNERS = {
    "ours": ("RLSVI (ours)", ours.SETTING),
    "q-learning": ("Q-learning", q_learning.SETTING),
    "dqn": ("DQN", "default"),
    "dqn-tuned": ("DQN", "tuned"),
    "ppo": ("PPO", "default"),
    "ppo-tuned": ("PPO", "tuned"),
    "sac-tuned": ("SAC", "tuned"),
    "td3-tuned": ("TD3", "tuned"),
}
PACKAGES = (
    "rlsvi",
    "numpy",
    "gymnasium",
    "stable-baselines3",
    "torch",
    "minigrid",
    "MinAtar",
    "gym-classics",
    "mo-gymnasium",
    "highway-env",
    "mujoco",
    "flappy-bird-gymnasium",
    "nasim",
    "mobile-env",
    "gym-invmgmt",
    "gymnasium-2048",
)


def path_of(folder, task, learner, seed):
    """Where a result is."""
    return folder / f"{task}.{learner}.{seed}.json"


def takes_part(task, learner):
    """Whether a learner is measured on a task: tuned settings are published for some only."""
    return learner == "ours" or learner in TASKS[task].steps


def seeds_of(task, learner):
    """The seeds that a learner is measured with on a task, unless others are asked for."""
    return range(TASKS[task].seeds if learner == "ours" else min(TASKS[task].seeds, RIVAL_SEEDS))


def measure(folder, task, learner, seed, quick=False):
    """Measure one learner with one seed on one task, write the result, and return it."""
    path = path_of(folder, task, learner, seed)
    failed = path.with_suffix(".failed.txt")
    try:
        result = measured(
            shortened(TASKS[task]) if quick else TASKS[task], learner, seed, 3 if quick else EPISODES
        )
    except Exception:
        write_file(failed, traceback.format_exc().encode())
        raise
    write_file(path, json.dumps(result | {"quick": quick}).encode())
    failed.unlink(missing_ok=True)
    return result


def measured(task, learner, seed, episodes):
    """What one learner with one seed does on one task, with the warnings it gave."""
    record, agent = Record(task, *LEARNERS[learner], seed, episodes), None
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        if learner == "ours":
            agent = type(ours.learn(task, seed, record)).__name__
        elif learner == "q-learning":
            q_learning.learn(task, seed, record)
        else:
            rivals.learn(task, learner, seed, record)
    told = {str(warning.message) for warning in given if issubclass(warning.category, UserWarning)}
    told = sorted(text for text in told if "WARN:" not in text)  # Gymnasium's own remarks on environments
    result = {"rows": record.rows, "training": record.training, "agent": agent, "warnings": told}
    return result | {"budget": task.steps.get(learner), "machine": machine()}


def shortened(task):
    """A task to try the benchmark itself with: hardly any learning."""
    return replace(task, points=(1, 2), asked=(), worst=(), steps=dict.fromkeys(task.steps, 200))


def read(folder):
    """The runs in a folder, seed by seed: {(task, learner): {seed: Run}}. Old ones have no returns of training."""
    found = {}
    for task in TASKS:
        for learner in LEARNERS:
            for path in folder.glob(f"{task}.{learner}.*.json"):
                held = json.loads(path.read_text())
                run = Run(held["rows"], held.get("training"))
                found.setdefault((task, learner), {})[run.rows[0]["seed"]] = run
    return found


def notes(folder):
    """What our agent was on each task, what it warned of, and what failed: {task: {text, ..}}.

    Of warnings that differ in numbers alone, the first is told, with the number of seeds that had such a warning.
    """
    found = {}
    for task in TASKS:
        warned, paths = {}, sorted(folder.glob(f"{task}.ours.*.json"))
        for path in paths:
            held = json.loads(path.read_text())
            found.setdefault(task, set()).update([held["agent"]] if held.get("agent") else [])
            for kind, text in {without_numbers(text): text for text in held.get("warnings", [])}.items():
                warned.setdefault(kind, []).append(text)
        for texts in warned.values():
            found[task].add(f"warned with {len(texts)} of {len(paths)} seeds: {texts[0]}")
        for path in folder.glob(f"{task}.*.failed.txt"):
            found.setdefault(task, set()).add(f"failed: {path.read_text().strip().splitlines()[-1]}")
    return found


def without_numbers(text):
    """What a message says, whatever its numbers are."""
    return re.sub(r"-?\d[\d.]*", "0", text)


def machine():
    """Where this was measured, and with what."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {"machine": platform.machine(), "python": platform.python_version(), "threads": 1} | packages
