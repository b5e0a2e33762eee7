"""The swing-up of a cart and pole: the function that the jobs of its figure call, and the agents it knows.

lambda, sigma and the bounds of the agents set by hand were chosen at height .5, with repeat=4, on two seeds that
are not reported. They have the default basis and the same ridge, lambda sigma^2: only their noise differs.
"""

from collections.abc import Callable
from typing import Any

import gymnasium

from rlsvi.agents import BoundedRLSVI, EpsilonGreedy
from rlsvi.agents.agent import Agent
from rlsvi.agents.default import agent_for
from rlsvi.envs.swing_up import SwingUpEnv
from rlsvi.paper.chain.experiments import seeds_of

LAM, SIGMA, BOUNDS = 0.01, 1.0, (-10.0, 100.0)
STILL = 1e-6  # a standard deviation that is no noise
LAST = 3  # the last third of the episodes is told apart
DEFAULT, NOISY, DITHERING, GREEDY = "default agent", "RLSVI, σ = 1", "ε-greedy, ε = .1", "greedy"


def without_noise(seed: int) -> BoundedRLSVI:
    """The agent with sigma = 1, but that it acts on the posterior mean."""
    return BoundedRLSVI(lam=LAM * (SIGMA / STILL) ** 2, sigma=STILL, bounds=BOUNDS, seed=seed)


def dithering(seed: int) -> Agent:
    """The same, but a tenth of its decisions are random."""
    agent = without_noise(seed)
    agent.explore = EpsilonGreedy(0.1)
    return agent


SWINGERS: dict[str, Callable[[int], Agent]] = {
    DEFAULT: lambda seed: agent_for(SwingUpEnv(), seed=seed),
    NOISY: lambda seed: BoundedRLSVI(lam=LAM, sigma=SIGMA, bounds=BOUNDS, seed=seed),
    DITHERING: dithering,
    GREEDY: without_noise,
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
    """The share of episodes with the pole up in some step, the mean of such steps, and mean returns.

    late : the mean return of the last third of the episodes.
    """
    env = Watched(SwingUpEnv(height, push_cost))
    SWINGERS[agent](seeds_of(seed)[1]).learn(env, episodes=episodes, progress=False)
    late = env.returns[-max(1, episodes // LAST) :]
    return {
        "rewarded": sum(up > 0 for up in env.up) / episodes,
        "up": sum(env.up) / episodes,
        "score": sum(env.returns) / episodes,
        "late": sum(late) / len(late),
    }
