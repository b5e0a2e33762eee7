"""Time per step against the steps stored: `python -m benchmarks.growth --steps 100000`.

A task of 8 numbers and 4 actions that does nothing but move: all time is the agent's. The exponent is the slope of
the logarithm of the total time against the logarithm of the steps, over the last decade measured; 1 is linear.
"""

import argparse
import resource
import time

import gymnasium
import numpy as np

import rlsvi


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


def measure(steps, memory):
    """Return rows of (steps, seconds so far, seconds per step lately), at about three points a decade."""
    env, agent = Drift(), rlsvi.BoundedRLSVI(seed=0, memory=memory, repeat=1)
    points = [p for p in np.rint(10 ** np.arange(3, 7.01, 1 / 3)).astype(int) if p <= steps]
    rows, spent, before = [], 0.0, 0
    for point in points:
        begun = time.perf_counter()
        agent.learn(env, steps=int(point) - agent.steps, progress=False)
        lately = time.perf_counter() - begun
        spent += lately
        rows.append((agent.steps, spent, lately / max(1, agent.steps - before)))
        before = agent.steps
        print(f"{rows[-1][0]:>9,} steps {spent:9.1f} s {1e3 * rows[-1][2]:8.3f} ms per step", flush=True)
    return rows


def exponent(rows):
    """Return the slope of log time over the last decade."""
    n, spent = np.array([(row[0], row[1]) for row in rows if row[0] >= rows[-1][0] / 12]).T
    return float(np.polyfit(np.log(n), np.log(spent), 1)[0])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--memory", type=int, default=None)
    given = parser.parse_args()
    rows = measure(given.steps, given.memory)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"exponent {exponent(rows):.2f}, peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
