"""The share of the gap between random play and the rule that our agent closes, greedily and while it learns.

    python -m benchmarks.practice.shares                  the problems from operations, ten seeds
    python -m benchmarks.practice.shares --tasks Pricing --seeds 100-104

0 is what random play earns and 1 what the rule earns. Greedy: 100 fresh episodes of the posterior mean. Learning:
the mean return of all episodes up to there. Every seed is a file in the folder, and what is there is not measured
again.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import rlsvi
from benchmarks.practice.__main__ import seeds_of
from benchmarks.practice.evaluation import EPISODES, play
from benchmarks.practice.operations import OPERATIONS, RULES
from rlsvi.core.files import write_file


def measured(task, seed):
    """What is earned greedily, and on average in learning, at every point: {episodes: (greedy, learning)}."""
    env, envs, returns, found = task.make(), [task.make() for _ in range(EPISODES)], [], {}
    agent = rlsvi.agent_for(env, seed=seed)
    for point in task.points:
        agent.learn(env, episodes=point - agent.episodes, on_episode=lambda _, total: returns.append(total))
        fresh = play(envs, lambda seen, state, mask: agent.predict(seen, state, deterministic=True))
        found[point] = float(fresh.mean()), float(np.mean(returns))
    return found


def share(task, earned):
    """Returns as shares of the gap."""
    return (np.asarray(earned) - task.random) / (RULES[task.name] - task.random)


def lines(task, runs):
    """The lines of the table for one task, given the results of all seeds."""
    for point in task.points:
        shares = share(task, [run[point] for run in runs])  # (seeds, 2)
        cells = [f"{np.median(each):.2f} ({each.min():.2f})" for each in shares.T]
        yield f"| {task.name} | {point} | {' | '.join(cells)} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.practice.shares",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tasks", nargs="+", choices=OPERATIONS, default=list(OPERATIONS), metavar="TASK")
    parser.add_argument("--seeds", type=seeds_of, default="10", help="how many, 10; or from which to which, 4-9")
    parser.add_argument("--out", type=Path, default=Path("out/shares"), metavar="DIR")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    print("| task | episodes | greedy: median (worst) | learning: median (worst) |\n|---|---:|---:|---:|")
    for name in options.tasks:
        runs = []
        for seed in options.seeds:
            path = options.out / f"{name}.{seed}.json"
            if not path.exists():
                write_file(path, json.dumps(measured(OPERATIONS[name], seed)).encode())
            runs.append({int(point): pair for point, pair in json.loads(path.read_text()).items()})
        print("\n".join(lines(OPERATIONS[name], runs)), flush=True)


if __name__ == "__main__":
    main()
