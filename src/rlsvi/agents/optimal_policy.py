"""Reference agents for a known MDP: its optimal policy, and the best policy that looks only one step ahead."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    Episode,
    MindLearner,
    Workspace,
    count,
    learn,
    new_counters,
    plan,
    remember,
    values,
)
from rlsvi.bases import Basis
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, optional
from rlsvi.core.compile import Floats, Longs, Words
from rlsvi.core.random import Seed
from rlsvi.envs.description import Made
from rlsvi.envs.task import Task
from rlsvi.mdp.finite import FiniteMDP, Table
from rlsvi.mdp.solve import backward_induction, myopic_values


def check_mdp(name: str, mdp: Any) -> None:
    """Raise an error if this is not an MDP."""
    if not isinstance(mdp, FiniteMDP):
        raise TypeError(f"{name} must be a FiniteMDP, such as problem.mdp, got {type(mdp).__name__}")


@dataclass(kw_only=True, repr=False, eq=False)
class OptimalPolicy(Agent):
    """The optimal policy by exact dynamic programming, with ties broken uniformly. `learn` only plays.

    Parameters
    ----------
    myopic
        Take the action with the highest expected immediate reward, the paper's optimal myopic policy.
    mdp
        The MDP that is played. If None, the problem's, or that of an environment of this package.
    seed
        Determines how ties are broken, and the environment's randomness.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/DeepSea-v0", size=10)
    >>> agent = rlsvi.OptimalPolicy(seed=0).learn(env, 1)
    >>> round(rlsvi.evaluate(agent, env, episodes=5).mean, 2)
    0.99
    """

    myopic: bool = False
    mdp: FiniteMDP | None = None
    seed: Seed = None

    _fused = True
    _takes_basis = False
    needs_states = True
    _samples = False
    _known = None  # the MDP that its values belong to
    _constraints: ClassVar[Constraints] = {"mdp": optional(check_mdp)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mdp is not None:
            self._adopt(self.mdp)

    def _adopt(self, mdp: FiniteMDP, basis: Basis | None = None) -> None:
        """Start an MDP, unless the agent was given its own."""
        self._solve(self._task_in(mdp), self.mdp or mdp)

    def _take_on(self, task: Task, env: Any = None) -> None:
        mdp = self.mdp or getattr(env.unwrapped, "mdp", None)
        if not isinstance(mdp, FiniteMDP):
            raise ValueError("the MDP behind env is not known: pass mdp= to the agent")
        self._solve(task, mdp)
        self.environment = Made.of(env)

    def _solve(self, task: Task, mdp: FiniteMDP) -> None:
        """Compute the values of an MDP that must match the task; as nothing is learned, the task may change."""
        known = self._task_in(mdp)
        if task[:3] != known[:3]:
            raise ValueError(f"mdp is {known}, not {task}: pass the mdp that is played, or leave mdp out")
        if mdp is not self._known:
            Q = myopic_values(mdp) if self.myopic else backward_induction(mdp).Q
            counters = new_counters() if self._learner is None else self._learner.counters
            self._forget_plans()
            self._learner, self._known, self._task = FixedLearner(task, FixedValues(Q, counters)), mdp, task
        self._task = task

    def restored_learner(self, task: Task, file: Archive) -> "FixedLearner":
        """Return the values stored in a file."""
        Q = file.take("Q", (task.horizon, task.states or 0, task.actions), finite=False)
        if np.isnan(Q).any() or not np.isfinite(Q.max(axis=2)).all():
            raise ArchiveError("is damaged: Q holds numbers that are not finite")
        return FixedLearner(task, FixedValues(Q, file.take_within("counters", (2,), np.int64, 0, 2**62)))

    def _can_predict(self) -> bool:
        return self._learner is not None


class FixedValues(NamedTuple):
    """Values that are known beforehand and never change."""

    Q: Floats  # (H, S, A)
    counters: Longs  # (2,) episodes and steps played


@plan.register(FixedValues)
def fixed_plan(mind: FixedValues, sampled: bool, stream: Words) -> bool:
    """Do nothing, since there is nothing to plan."""
    return True


@values.register(FixedValues)
def fixed_values(mind: FixedValues, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Look up the values."""
    for a in range(Q.size):
        Q[a] = mind.Q[h, s, a]


@learn.register(FixedValues)
def fixed_learn(mind: FixedValues, table: Table, T: int, work: Workspace) -> bool:
    """Count the episode."""
    return count(mind.counters, T)


@remember.register(FixedValues)
def fixed_remember(mind: FixedValues, episode: Episode, work: Workspace) -> bool:
    """Count the episode."""
    return count(mind.counters, episode.actions.size)


class FixedLearner(MindLearner):
    """A learner that counts what was played, and learns nothing."""

    saved = "Q", "counters"
    mind: FixedValues
