"""Time and memory against the steps learned from: `python -m benchmarks.growth --steps 100000 --cores 1 2`.

A task of 8 numbers and 4 actions that does nothing but move: nearly all time is the agent's. Every setting has a
process of its own. The exponent is the slope of the logarithm of the total time against the logarithm of the
steps, over the last decade measured; 1 is linear. At the end the same plan is made on one core and on all of them
in turn, and the fastest of each is told: on a machine that has other work too, this is the fairer comparison.
"""

import argparse
import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import gymnasium
import numpy as np

import rlsvi
from rlsvi.core.machine import cores
from rlsvi.core.random import stream

COLUMNS = ("cores", "memory", "steps", "steps kept", "seconds", "of CPU", "CPU ms per step", "peak MiB")
TURNS = 5  # plans by which one core and several are compared


class Drift(gymnasium.Env):
    """Eight numbers that an action pushes about; the reward is to be near 0. Episodes have 200 steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (8,), np.float64)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        """Begin anywhere."""
        super().reset(seed=seed)
        self.x, self.t = self.np_random.normal(size=8), 0
        return self.x.copy(), {}

    def step(self, action):
        """Push one pair of numbers, and let all decay."""
        self.x = 0.95 * self.x + 0.3 * self.np_random.normal(size=8)
        self.x[2 * action : 2 * action + 2] -= 0.3 * np.sign(self.x[2 * action : 2 * action + 2])
        self.t += 1
        return self.x.copy(), float(-(self.x**2).mean()), False, self.t >= 200, {}


def measure(steps, memory, threads):
    """Print rows of the table at about three points a decade, and then the exponents and the speed of plans."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    agent = rlsvi.BoundedRLSVI(seed=0, memory=memory, repeat=1)
    agent.learn(Drift(), steps=10, progress=False)  # compiled code is loaded
    env, agent = Drift(), agent.clone()
    points, rows, before = np.rint(10 ** np.arange(3, 7.01, 1 / 3)).astype(int), [], (0, 0.0)
    began = time.perf_counter(), time.process_time()
    for point in points[points <= steps]:
        agent.learn(env, steps=int(point) - agent.steps, progress=False)
        wall, spent = time.perf_counter() - began[0], time.process_time() - began[1]
        lately = 1e3 * (spent - before[1]) / (agent.steps - before[0])
        rows.append((agent.steps, wall, spent))
        kept = len(agent._learner.history.last)
        shown = threads, memory or "all", f"{agent.steps:,}", f"{kept:,}", f"{wall:.1f}", f"{spent:.1f}"
        print(*shown, f"{lately:.2f}", f"{peak():.0f}", sep=" | ", flush=True)
        before = agent.steps, spent
    told = f"exponent {exponent(rows)}; {turns(agent._learner)}"
    return f"{threads} of {cores()} cores, memory {memory or 'all'}: {told}"


def peak():
    """Return the largest memory of this process so far, in MiB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (2**20 if sys.platform == "darwin" else 2**10)


def exponent(rows):
    """Return the slopes of log time and of log CPU time over the last decade."""
    n, *times = np.log([row for row in rows if row[0] >= rows[-1][0] / 12]).T
    wall, spent = (np.polyfit(n, spent, 1)[0] if len(n) > 1 else np.nan for spent in times)
    return f"{wall:.2f}, of CPU time {spent:.2f}"


def turns(learner):
    """Return the time of a plan on one core and on all of them, in turn, and whether they agree bit for bit."""
    found, fastest = {}, {}
    for threads in TURNS * [1, cores()]:
        os.environ["OMP_NUM_THREADS"] = str(threads)
        learner.counters[4] = 0  # not planned yet
        began = time.perf_counter()
        found[threads] = learner.plan(True, stream(0)).theta
        fastest[threads] = min(time.perf_counter() - began, fastest.get(threads, np.inf))
    same = "the same" if np.array_equal(found[1], found[cores()]) else "OTHER"
    return f"a plan takes {fastest[1]:.2f} s on one core, {fastest[cores()]:.2f} s on {cores()}, with {same} bits"


def main():
    """Measure in one process after the other, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--memory", type=int, nargs="*", default=[0], help="most steps to keep; 0: all")
    parser.add_argument("--cores", type=int, nargs="*", default=[cores()])
    given = parser.parse_args()
    print(*COLUMNS, sep=" | ")
    print(*["---"] * len(COLUMNS), sep=" | ", flush=True)
    told = []
    for memory in given.memory:
        for threads in given.cores:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                told.append(pool.submit(measure, given.steps, memory or None, threads).result())
    print("", *told, sep="\n")


if __name__ == "__main__":
    main()
