"""Agents fitted to logs of random play, and then played: `python -m benchmarks.random_logs --seeds 3`.

Each log consists of the first whole episodes of random play with at least so many steps.
"""

import argparse
import time

import gymnasium as gym
import polars as pl

import rlsvi

LOGS = {"CartPole-v1": 5_000, "MountainCar-v0": 20_000}  # steps
FRESH = 50  # episodes to play


def random_log(env, steps, seed):
    """The first episodes of random play with at least so many steps."""
    episodes = 16
    while (log := rlsvi.record(env, None, episodes, seed=seed)).height < steps:
        episodes *= 2
    last = int(log["episode"][steps - 1])
    return log.filter(pl.col("episode") <= last)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=LOGS)
    given = parser.parse_args()
    for name in [given.only] if given.only else LOGS:
        env = gym.make(name)
        for seed in range(given.seeds):
            log = random_log(env, LOGS[name], seed)
            begin = time.perf_counter()
            agent = rlsvi.agent_for(env, seed=seed).fit(log, env, progress=False)
            seconds = time.perf_counter() - begin
            found = rlsvi.evaluate(agent, env, FRESH, seed=seed, progress=False)
            ended = int(log["terminated"].sum())
            print(
                f"{name} seed {seed}: {agent.episodes} episodes ({ended} terminated), {agent.steps} steps, ",
                end="",
            )
            print(f"{seconds:.0f} s; {found}", flush=True)


if __name__ == "__main__":
    main()
