"""What is measured at the points of training, and the clocks, which stand still meanwhile."""

import time

from benchmarks.practice.evaluation import play
from benchmarks.practice.exact import Exact

EPISODES = 100


class Record:
    """Rows of one learner with one seed on one task.

    Call `start` when training begins, so that imports and compiling are not counted, and `at` at every point.
    """

    def __init__(self, task, learner, setting, seed, episodes=EPISODES):
        self.task, self.learner, self.setting, self.seed = task, learner, setting, seed
        self.envs = [task.make() for _ in range(episodes)]
        self.exact = Exact(self.envs[0])
        self.thresholds = task.thresholds(self.exact.optimum)
        self.rows = []
        self.wall = self.cpu = 0.0

    def start(self):
        """Let the clocks run."""
        self.begun = time.perf_counter(), time.process_time()

    def at(self, policy, episodes, steps):
        """Evaluate a policy that was learned from so much, and tell whether it meets the first threshold."""
        self.wall += time.perf_counter() - self.begun[0]
        self.cpu += time.process_time() - self.begun[1]
        returns = play(self.envs, policy)
        row = {"task": self.task.name, "learner": self.learner, "setting": self.setting, "seed": self.seed}
        row |= {"episodes": int(episodes), "steps": int(steps)}
        row |= {"mean": float(returns.mean()), "worst": float(returns.min())}
        row |= {"exact": self.exact.value(lambda batch: policy(batch, None, None)[0])}
        row |= {"optimum": self.exact.optimum, "thresholds": list(self.thresholds)}
        self.rows.append(row | {"wall_s": self.wall, "cpu_s": self.cpu})
        met = score(row) >= self.thresholds[0]
        self.start()
        return met


def score(row):
    """The return that counts: the expected one where it can be computed, else the mean of the fresh episodes."""
    return row["mean"] if row["exact"] is None else row["exact"]
