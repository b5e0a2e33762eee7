"""The agent with its defaults on Gymnasium's own environments, over seeds. One core.

    python -m benchmarks.practice [CartPole-v1 ..] [--seeds 10] [--out DIR]

After each number of training episodes the policy of the posterior mean plays fresh episodes, from seeds that
training never used. For toy-text environments the exact optimum, of the same time limit, stands beside it.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

import rlsvi

FRESH = 10**6  # seeds of the environment in evaluation; training draws its own
TASKS = {
    # name: (id, arguments, episodes after which to evaluate, the threshold)
    "CartPole-v1": ("CartPole-v1", {}, (10, 20, 50), 475.0),
    "MountainCar-v0": ("MountainCar-v0", {}, (25, 50, 100), -115.0),
    "Acrobot-v1": ("Acrobot-v1", {}, (25, 50, 100), -110.0),
    "FrozenLake-4x4": ("FrozenLake-v1", {"map_name": "4x4"}, (500, 1000), None),
    "FrozenLake-8x8": ("FrozenLake-v1", {"map_name": "8x8"}, (1000, 2000), None),
    "Taxi": ("Taxi-v4", {}, (200, 500), None),
    "CliffWalking-v1": ("CliffWalking-v1", {"max_episode_steps": 200}, (20, 50), None),
}


def evaluate(agent, env, episodes):
    """Returns of the posterior mean's policy."""
    returns = []
    for i in range(episodes):
        observation, info = env.reset(seed=FRESH + i)
        total, done = 0.0, False
        while not done:
            action, _ = agent.predict(observation, deterministic=True, action_mask=info.get("action_mask"))
            observation, reward, terminated, truncated, info = env.step(action)
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    return np.array(returns)


def exact(env, agent):
    """The optimum and the value of the posterior mean's policy, by exact dynamic programming; or {}."""
    if getattr(env.unwrapped, "P", None) is None:
        return {}
    mdp = rlsvi.mdp.from_gymnasium(env)
    actions = np.zeros((mdp.horizon, mdp.states), dtype=np.int64)
    for s in range(int(env.observation_space.n)):
        actions[:, s] = agent.predict(s, deterministic=True)[0]
    optimum = float(mdp.start @ rlsvi.mdp.backward_induction(mdp).V[0])
    return {"optimum": optimum, "exact": float(mdp.start @ rlsvi.mdp.evaluate(mdp, actions)[0])}


def run(name, seed, episodes):
    """One seed: a row for each evaluation."""
    id, arguments, points, threshold = TASKS[name]
    env, rows, spent, wall, learned = gym.make(id, **arguments), [], 0.0, 0.0, 0
    agent = rlsvi.agent_for(env, seed=seed)
    for point in points:
        begin, clock = time.process_time(), time.perf_counter()
        agent.learn(env, episodes=point - learned)
        learned, spent, wall = point, spent + time.process_time() - begin, wall + time.perf_counter() - clock
        returns = evaluate(agent, env, episodes)
        row = {"task": name, "seed": seed, "episodes": point, "steps": agent.steps}
        row |= {"mean": returns.mean(), "worst": returns.min(), "cpu_s": spent, "wall_s": wall}
        rows.append(row | {"threshold": threshold} | exact(env, agent))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)}; none: all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluate", type=int, default=100, help="fresh episodes")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    unknown = set(options.tasks) - set(TASKS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(TASKS)}")
    rows = [
        row
        for name in options.tasks or TASKS
        for seed in range(options.seeds)
        for row in run(name, seed, options.evaluate)
    ]
    for name, point in dict.fromkeys((row["task"], row["episodes"]) for row in rows):
        means = [row["mean"] for row in rows if (row["task"], row["episodes"]) == (name, point)]
        print(f"{name:16} {point:5} episodes: median {np.median(means):8.2f}, least {min(means):8.2f}")
    options.out.mkdir(parents=True, exist_ok=True)
    result = {"machine": platform.machine(), "python": platform.python_version(), "rows": rows}
    (options.out / "practice.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
