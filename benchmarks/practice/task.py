"""What the benchmark needs to know of an environment: how to make it, when it is solved, how long to learn.

Ours is evaluated after the given numbers of episodes. The rivals are budgeted in steps and evaluated ten times on
the way, at even distances; they stop at the first evaluation that meets the first threshold, but not before they
have played as many episodes as ours is asked for. Ours goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

Grid = tuple[tuple[float, float, int], ...]  # of each number of an observation: low, high, bins


@dataclass(frozen=True)
class Task:
    """An environment to learn.

    name : as in tables and in the names of files.
    make : makes the environment.
    thresholds : what solves it, given the optimum (None where it is not known); the rivals stop at the first.
    points : episodes after which ours is evaluated.
    random : mean return of 100 episodes of uniformly random actions (`python -m benchmarks.practice random`).
    why : why this task is in its list, and where its threshold comes from.
    asked : episodes by which the median over seeds should reach each of the thresholds; 0 or absent: not asked.
    worst : what no seed should be below then, for each of the thresholds; None or absent: not asked.
    seeds : how many ours is measured with by default; the rivals have at most RIVAL_SEEDS.
    steps : budgets of the rivals; a learner that is not in there does not take part.
    grid : bins for Q-learning, where observations are measured.
    shown_from : the least return that is drawn, where some policies are far worse; None: all.
    """

    name: str
    make: Callable[[], Any]
    thresholds: Callable[[Any], tuple[float, ...]]
    points: tuple[int, ...]
    random: float
    why: str
    asked: tuple[int, ...] = ()
    worst: tuple[float | None, ...] = ()
    seeds: int = 10
    steps: dict[str, int] = field(default_factory=dict)
    grid: Grid = ()
    shown_from: float | None = None

    @property
    def compared(self) -> int:
        """Episodes over which returns while learning are compared with those of the rivals."""
        return max(self.asked, default=0) or self.points[-1]


RIVAL_SEEDS = 5


def budgets(q_learning: int = 0, **others: int) -> dict[str, int]:
    """Steps a learner; 0: it does not take part. `dqn_tuned` stands for the learner dqn-tuned."""
    steps = {"q-learning": q_learning} | {name.replace("_", "-"): count for name, count in others.items()}
    return {name: count for name, count in steps.items() if count}


def made(id: str, **arguments: Any) -> Callable[[], Any]:
    """How to make an environment of Gymnasium's registry."""
    return lambda: gym.make(id, **arguments)


def by_name(*tasks: Task) -> dict[str, Task]:
    """Tasks by their names, which also name files."""
    return {task.name: task for task in tasks}
