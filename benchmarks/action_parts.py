"""Actions of 4,096 combinations: the share of the gap between random play and the best policy that is closed.

    python benchmarks/action_parts.py [--seeds 0 5] [--episodes 20 50] [--task lights pumps] [ARGUMENT=VALUE ..]

Lights: twelve switches, and three random numbers. A switch should be on where a linear function of the numbers,
its own one, is positive; the reward is the part of the switches that are right. The best policy earns 1 in every
step.

Pumps: twelve pumps fill three tanks, from which a tenth flows out in every step. The reward is minus the mean
distance of the levels to a half before the pumps are set, so that the effect of an action comes a step later, and
that of a pump depends on the other three of its tank. The best policy is found for a tank by dynamic programming.
"""

import argparse
import ast
import time
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, MultiBinary

import rlsvi

EVALUATED = 20  # episodes


class Lights(gym.Env[Any, Any]):
    """Switches that should be set by linear rules of three numbers."""

    best = 20.0

    def __init__(self, switches: int = 12) -> None:
        self.action_space, self.observation_space = MultiBinary(switches), Box(-1.0, 1.0, (3,), np.float64)
        self.rule = np.random.default_rng(7).normal(size=(switches, 3))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        super().reset(seed=seed)
        self.t, self.x = 0, self.np_random.uniform(-1, 1, 3)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        """Set the switches."""
        right = (self.rule @ self.x > 0) == action
        self.t, self.x = self.t + 1, self.np_random.uniform(-1, 1, 3)
        return self.x.copy(), float(right.mean()), False, self.t == 20, {}


class Pumps(gym.Env[Any, Any]):
    """Tanks whose levels should stay at a half."""

    flow = np.array([0.02, 0.04, 0.06, 0.08])  # of the four pumps of a tank
    length = 30

    def __init__(self) -> None:
        self.action_space, self.observation_space = MultiBinary(12), Box(0.0, 1.0, (3,), np.float64)

    @property
    def best(self) -> float:
        """The expected return of the best policy, for one tank, since all are alike."""
        levels = np.linspace(0, 1, 1001)
        following = [
            np.clip(levels + self.flow @ on - 0.1, 0, 1) for on in map(np.array, product([0, 1], repeat=4))
        ]
        V = np.zeros(len(levels))
        for _ in range(self.length):
            V = -np.abs(levels - 0.5) + np.max([np.interp(to, levels, V) for to in following], axis=0)
        return float(V.mean())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        super().reset(seed=seed)
        self.t, self.x = 0, self.np_random.uniform(0, 1, 3)
        return self.x.copy(), {}

    def step(self, action: Any) -> Any:
        """Set the pumps for a step."""
        reward = -float(np.abs(self.x - 0.5).mean())
        self.t, self.x = self.t + 1, np.clip(self.x + action.reshape(3, 4) @ self.flow - 0.1, 0, 1)
        return self.x.copy(), reward, False, self.t == self.length, {}


TASKS = {"lights": Lights, "pumps": Pumps}


def random_return(env: Any, episodes: int = 200) -> float:
    """Return the mean return of random play."""
    return float(rlsvi.record(env, None, episodes, seed=1)["reward"].sum() / episodes)


def main() -> None:
    """Print a line for each task and seed, and medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 5], help="the first, and the one after the last")
    parser.add_argument("--episodes", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("argument", nargs="*", help="of the agent, such as gamma=0.9")
    asked = parser.parse_args()
    given = {name: ast.literal_eval(value) for name, value in (each.split("=") for each in asked.argument)}
    for name in asked.task:
        env = TASKS[name]()
        chance, best, shares = random_return(env), env.best, []
        for seed in range(*asked.seeds):
            agent, row, begin = rlsvi.agent_for(env, seed=seed, **given), [], time.process_time()
            for episodes in asked.episodes:
                agent.learn(env, episodes - agent.episodes)
                row.append((rlsvi.evaluate(agent, env, EVALUATED).mean - chance) / (best - chance))
            while_learning = (agent._returns().mean() - chance) / (best - chance)
            shares.append([*row, while_learning])
            told = " ".join(f"{share:.2f}" for share in shares[-1])
            print(f"{name} seed {seed}: {told} ({time.process_time() - begin:.1f} s)", flush=True)
        medians = " ".join(f"{share:.2f}" for share in np.median(shares, axis=0))
        when = f"after {asked.episodes} episodes, and while learning"
        print(f"{name}, random {chance:.2f}, best {best:.2f}; median shares {when}: {medians}")


if __name__ == "__main__":
    main()
