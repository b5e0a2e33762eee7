"""The optimal policy of a known MDP as an agent, and the best that looks no further than one step: yardsticks."""

from typing import Any

from rlsvi.agents.bandits.agent import OneStepAgent, Step
from rlsvi.agents.task import Task, task_of
from rlsvi.core.compile import Floats, Longs, Words
from rlsvi.core.random import Seed
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.solve import backward_induction, myopic_values


class OptimalPolicy(OneStepAgent):
    """The optimal policy, by exact dynamic programming, ties broken fairly. `learn` plays, and learns nothing.

    Parameters
    ----------
    myopic : take the action of the highest expected reward of the step alone, the paper's optimal myopic policy.
    mdp : the MDP that is played; None: the problem's, or the one that an environment of this package has.
    seed : breaks ties, and decides the environment's randomness.
    """

    samples = False

    def __init__(self, *, myopic: bool = False, mdp: FiniteMDP | None = None, seed: Seed = None) -> None:
        self.myopic, self.mdp, self.seed = myopic, mdp, seed
        self._start()
        if mdp is not None and not isinstance(mdp, FiniteMDP):
            raise TypeError(f"mdp must be a FiniteMDP, such as problem.mdp, got {type(mdp).__name__}")
        self._known: FiniteMDP | None = None
        if mdp is not None:
            self.adopt(mdp)

    def adopt(self, mdp: FiniteMDP) -> Floats:
        """Take on an MDP, unless the agent was given one of its own; the values to act on, (H, S, A)."""
        task = Task(mdp.table.horizon, mdp.table.actions, mdp.table.states)
        if self.mdp is not None and self._known is self.mdp:
            if self._task is not None and self._task[:3] != task[:3]:
                raise ValueError(f"mdp is {self._task}, not {task}: leave mdp out to take the problem's")
        elif mdp is not self._known:
            self._mind = myopic_values(mdp) if self.myopic else backward_induction(mdp).Q
            self._known, self._task = mdp, task
            self._forget_plans()
        values: Floats = self._mind
        return values

    def _task_of(self, env: Any) -> Task:
        task, mdp = task_of(env, None), self.mdp or getattr(env.unwrapped, "mdp", None)
        if not isinstance(mdp, FiniteMDP):
            raise ValueError("the MDP behind env is not known: pass mdp= to the agent")
        known = Task(mdp.table.horizon, mdp.table.actions, mdp.table.states)
        if task[:3] != known[:3]:
            raise ValueError(f"env sets {task}, but mdp is {known}: pass the mdp that env plays")
        self.adopt(mdp)
        self._task = task
        return task

    def _new_plan(self) -> bool:
        return True

    def _plan(self, plan: bool, sampled: bool, stream: Words) -> None:
        pass

    def _values(self, plan: bool, step: Step) -> Floats:
        values: Floats = self._mind[step.h, step.observation]
        return values

    def _learn(self, steps: list[Step], actions: Longs, rewards: Floats) -> None:
        pass
