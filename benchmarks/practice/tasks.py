"""The environments, when each is solved, and how long each learner may learn.

Ours is evaluated after the given numbers of episodes. The rivals are budgeted in steps and evaluated ten times on
the way, at even distances; they stop at the first evaluation that meets the threshold, ours goes on.

What the tuned settings of DQN and PPO were published with (rl-baselines3-zoo) is their budget here too, except
for DQN on Acrobot (40 of 100 thousand steps), PPO on MountainCar and Acrobot (a tenth of a million) and on
Pendulum (40 of 100 thousand). The default settings get less, 10 to 50 thousand steps: all of it has to fit into
hours on one core. That is several times what ours needs on CartPole, MountainCar and Acrobot; on toy-text tasks
it is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

import rlsvi
from rlsvi.envs import Discretized

TAXI = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"
SMALL = 1e-6

Grid = tuple[tuple[float, float, int], ...]  # of each number of an observation: low, high, bins


@dataclass(frozen=True)
class Task:
    """An environment to learn.

    thresholds : what solves it, of the optimum (None where nobody knows it); the rivals stop at the first.
    points : episodes after which ours is evaluated.
    steps : budgets of the rivals; a learner that is not in there does not take part.
    grid : bins for Q-learning, where observations are measured.
    shown_from : the least return that is drawn, where some policies are far worse; None: all.
    """

    name: str
    make: Callable[[], Any]
    thresholds: Callable[[Any], tuple[float, ...]]
    points: tuple[int, ...]
    steps: dict[str, int]
    grid: Grid = ()
    shown_from: float | None = None


def budgets(q_learning: int, dqn: int, ppo: int, dqn_tuned: int = 0, ppo_tuned: int = 0) -> dict[str, int]:
    """Steps a learner; 0: no tuned setting was published."""
    steps = {"q-learning": q_learning, "dqn": dqn, "dqn-tuned": dqn_tuned, "ppo": ppo, "ppo-tuned": ppo_tuned}
    return {name: count for name, count in steps.items() if count}


def made(id: str, **arguments: Any) -> Callable[[], Any]:
    """How to make an environment."""
    return lambda: gym.make(id, **arguments)


TASKS = {
    task.name: task
    for task in (
        Task(
            "CartPole-v1",
            made("CartPole-v1"),
            lambda _: (475.0,),
            (5, 10, 15, 20, 30, 50),
            budgets(150_000, 30_000, 50_000, 50_000, 100_000),
            ((-2.4, 2.4, 3), (-3.0, 3.0, 5), (-0.21, 0.21, 10), (-3.0, 3.0, 10)),
        ),
        Task(
            "MountainCar-v0",
            made("MountainCar-v0"),
            lambda _: (-115.0, -110.0),
            (10, 25, 50, 75, 100),
            budgets(200_000, 20_000, 20_000, 120_000, 100_000),
            ((-1.2, 0.6, 24), (-0.07, 0.07, 24)),
        ),
        Task(
            "Acrobot-v1",
            made("Acrobot-v1"),
            lambda _: (-110.0, -95.0),
            (10, 25, 50, 75, 100),
            budgets(80_000, 20_000, 30_000, 40_000, 100_000),
            ((-1, 1, 5), (-1, 1, 5), (-1, 1, 5), (-1, 1, 5), (-6.3, 6.3, 7), (-12.6, 12.6, 7)),
        ),
        Task(
            "FrozenLake-4x4",
            made("FrozenLake-v1", map_name="4x4"),
            lambda optimum: (0.95 * optimum,),
            (100, 250, 500, 1000),
            budgets(100_000, 10_000, 10_000),
        ),
        Task(
            "FrozenLake-8x8",
            made("FrozenLake-v1", map_name="8x8"),
            lambda optimum: (0.95 * optimum,),
            (250, 500, 1000, 2000),
            budgets(200_000, 10_000, 10_000),
        ),
        Task(
            TAXI,
            made(TAXI),
            lambda optimum: (optimum - SMALL,),
            (100, 200, 500, 1000, 2000),
            budgets(200_000, 10_000, 10_000),
            shown_from=-250.0,
        ),
        Task(
            "CliffWalking-v1",
            made("CliffWalking-v1", max_episode_steps=200),
            lambda optimum: (optimum - SMALL,),
            (10, 20, 50, 100, 200),
            budgets(30_000, 10_000, 10_000),
        ),
        Task(
            "Blackjack-v1",
            made("Blackjack-v1"),
            lambda optimum: (optimum - 0.01,),
            (500, 2000, 5000, 20000),
            budgets(100_000, 10_000, 10_000),
        ),
        Task(
            "Pendulum-v1",
            lambda: Discretized(gym.make("Pendulum-v1"), 5),
            lambda _: (-200.0,),
            (10, 25, 50, 100),
            budgets(150_000, 20_000, 20_000, ppo_tuned=40_000),
            ((-1, 1, 15), (-1, 1, 15), (-8, 8, 15)),
        ),
        Task(
            "DeepSea-20",
            made("rlsvi/DeepSea-v0", size=20),
            lambda optimum: (optimum - SMALL,),
            (50, 100, 200, 400),
            budgets(100_000, 10_000, 10_000),
        ),
    )
}

rlsvi.envs.register()
