"""Observations with added numbers that mean nothing: what they cost the default agent, and which it leaves out.

python -m benchmarks.noise CartPole-v1 --numbers 3 --episodes 50 --seeds 0 5
"""

import argparse
import json
from time import process_time
from typing import Any

import gymnasium as gym
import numpy as np

import rlsvi


class Noise(gym.ObservationWrapper[Any, Any, Any]):
    """An environment whose observations have `numbers` more normal variates at their end."""

    def __init__(self, env: gym.Env[Any, Any], numbers: int) -> None:
        super().__init__(env)
        old: Any = env.observation_space
        more = np.full(numbers, np.inf, old.dtype)
        low, high = np.concatenate([old.low, -more]), np.concatenate([old.high, more])
        self.observation_space = gym.spaces.Box(low, high, dtype=old.dtype)
        self.numbers, self.source = numbers, np.random.default_rng(0)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """Begin an episode; its noise depends on the seed."""
        if seed is not None:
            self.source = np.random.default_rng([seed, 1])
        return super().reset(seed=seed, options=options)

    def observation(self, observation: Any) -> Any:
        """Return an observation with noise."""
        return np.append(observation, self.source.normal(size=self.numbers)).astype(observation.dtype)


def run(task: str, numbers: int, episodes: int, seed: int) -> dict[str, Any]:
    """Learn one task, and return what was earned while learning and afterwards, and what was relevant when."""
    env = gym.make(task)
    if numbers:
        env = Noise(env, numbers)
    returns: list[float] = []
    relevant: list[tuple[int, str]] = []

    def note(agent: Any, total: float) -> None:
        returns.append(total)
        kept = "".join("01"[one] for one in getattr(getattr(agent, "acting", agent), "relevant", ()))
        if not relevant or relevant[-1][1] != kept:
            relevant.append((len(returns), kept))

    begin = process_time()
    agent = rlsvi.agent_for(env, seed=seed)
    agent.learn(env, episodes, on_episode=note, progress=False)
    seconds = process_time() - begin
    return {
        "task": task,
        "numbers": numbers,
        "seed": seed,
        "greedy": rlsvi.evaluate(agent, env, 20, seed=10_000 + seed).mean,
        "training": float(np.mean(returns)),
        "seconds": round(seconds, 1),
        "relevant": relevant,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--numbers", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 5), metavar=("FIRST", "END"))
    given = parser.parse_args()
    for seed in range(*given.seeds):
        print(json.dumps(run(given.task, given.numbers, given.episodes, seed)), flush=True)
