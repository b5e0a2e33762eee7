"""The swing-up of a cart and pole: the function that the jobs of its figure call, and the agents it knows.

The agents set by hand have the default basis, the same ridge, lambda sigma^2, and hold an action for four steps:
only their noise and random actions differ. The ridge and the bounds were chosen for RLSVI, at height .5 on two
seeds that are not reported; `benchmarks.swing_up_settings` shows how sigma and epsilon were chosen.
"""

from collections.abc import Callable
from typing import Any

import gymnasium

from rlsvi.agents import BoundedRLSVI, EpsilonGreedy
from rlsvi.agents.agent import Agent
from rlsvi.agents.default import agent_for
from rlsvi.envs.swing_up import SwingUpEnv
from rlsvi.paper.chain.experiments import seeds_of

RIDGE, BOUNDS, REPEAT = 0.01, (-10.0, 100.0), 4
SIGMA, EPSILON = 1.0, 0.2
STILL = 1e-6  # a standard deviation that is no noise
LAST = 3  # the last third of the episodes is reported separately
DEFAULT, NOISY, DITHERING, GREEDY = "default agent", "RLSVI, σ = 1", "ε-greedy, ε = .2", "greedy"


def noisy(seed: int, sigma: float = SIGMA) -> BoundedRLSVI:
    """RLSVI with noise of a given size."""
    return BoundedRLSVI(lam=RIDGE / sigma**2, sigma=sigma, bounds=BOUNDS, repeat=REPEAT, seed=seed)


def dithering(seed: int, epsilon: float = EPSILON) -> BoundedRLSVI:
    """The same on its posterior mean, with a share of random decisions."""
    agent = noisy(seed, STILL)
    agent.explore = EpsilonGreedy(epsilon)
    return agent


SWINGERS: dict[str, Callable[[int], Agent]] = {
    DEFAULT: lambda seed: agent_for(SwingUpEnv(), seed=seed),
    NOISY: noisy,
    DITHERING: dithering,
    GREEDY: lambda seed: noisy(seed, STILL),
}


class Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that counts, for every episode, the return and the steps with the pole up."""

    def __init__(self, env: SwingUpEnv) -> None:
        super().__init__(env)
        self.returns, self.up = list[float](), list[int]()

    def reset(self, **options: Any) -> Any:
        """Begin an episode."""
        self.returns.append(0.0)
        self.up.append(0)
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        """Act, and count."""
        found = self.env.step(action)
        self.returns[-1] += float(found[1])
        self.up[-1] += float(found[1]) > 0  # a push costs less than the pole pays
        return found


def swung(*, agent: str, height: float, push_cost: float, episodes: int, seed: int) -> dict[str, float]:
    """What an agent of the figure finds."""
    return found_by(SWINGERS[agent](seeds_of(seed)[1]), height, push_cost, episodes)


def found_by(agent: Agent, height: float, push_cost: float, episodes: int) -> dict[str, float]:
    """The share of episodes with the pole up in some step, the mean of such steps, and mean returns.

    late : the mean return of the last third of the episodes.
    """
    env = Watched(SwingUpEnv(height, push_cost))
    agent.learn(env, episodes=episodes, progress=False)
    late = env.returns[-max(1, episodes // LAST) :]
    return {
        "rewarded": sum(up > 0 for up in env.up) / episodes,
        "up": sum(env.up) / episodes,
        "score": sum(env.returns) / episodes,
        "late": sum(late) / len(late),
    }
