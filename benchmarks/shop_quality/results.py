"""One file for each world, policy and seed, there whole or not at all: a benchmark goes on where it was."""

import json
import platform
import time
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from benchmarks.shop_quality.policies import POLICIES
from benchmarks.shop_quality.visits import play
from benchmarks.shop_quality.worlds import Shop
from rlsvi.core.files import write_file

PARTS = 20  # of a run; a file holds the mean of each
LAST_PARTS = PARTS // 5
PACKAGES = ("rlsvi", "numpy", "mabwiser", "vowpalwabbit")


def path_of(folder, world, policy, seed):
    """Where a result is."""
    return folder / f"{world.name}.{policy}.{seed}.json"


def measure(folder, world, policy, seed):
    """Serve all customers of one instance, write the result, and return it."""
    shop = Shop(world, seed)
    began = time.process_time()
    expected = play(shop, POLICIES[policy](shop))
    result = {
        "world": world.name,
        "policy": policy,
        "seed": seed,
        "customers": world.customers,
        "reward": [float(part.mean()) for part in np.array_split(expected, PARTS)],
        "cpu_seconds": round(time.process_time() - began, 2),
        "machine": machine(),
    }
    write_file(path_of(folder, world, policy, seed), json.dumps(result, indent=1).encode())
    return result


def finished(folder, world, policy, seed):
    """Whether the result is there, for this number of customers."""
    path = path_of(folder, world, policy, seed)
    return path.exists() and json.loads(path.read_text())["customers"] == world.customers


def read(folder):
    """All results of a folder: {(world, policy): {seed: result}}."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text())
        found.setdefault((result["world"], result["policy"]), {})[result["seed"]] = result
    return found


def curves(results, world, policy, seeds=None):
    """The means of all parts of a run, (seeds, PARTS), in order of the seeds."""
    by_seed = results.get((world, policy), {})
    return np.array([by_seed[seed]["reward"] for seed in sorted(by_seed) if seeds is None or seed in seeds])


def machine():
    """Where this was measured, and with what."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {"machine": platform.machine(), "python": platform.python_version()} | packages
