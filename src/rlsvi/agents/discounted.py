"""Common parts of agents with one discounted value function: validation of arguments, and a divergence warning."""

from functools import partial
from typing import Any, ClassVar

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import LINEAR, DivergenceWarning, diverged, warn
from rlsvi.core.checks import Constraints, fits, in_unit_interval, positive
from rlsvi.core.regression import noise_of
from rlsvi.envs.task import Task


class DiscountedAgent(Agent):
    """One value function for all periods. Its learner has a method `watched`, which tells whether it diverges."""

    gamma: float
    prior_mean: Any
    diverged_above: float

    needs_horizon = False
    _broken = staticmethod(diverged)
    _warned = False
    _constraints: ClassVar[Constraints] = {
        **LINEAR,
        "gamma": partial(in_unit_interval, closed=True),
        "diverged_above": positive,
    }

    def _check(self) -> None:
        noise_of(self.lam, self.sigma)

    def _check_room(self, task: Task) -> None:
        """Raise an error if what is learned of numbered states does not fit into memory."""
        if task.states is not None:
            fits(
                f"sums and factors of {task.states} states and {task.actions} actions",
                9 * task.states * task.actions,
                "use rlsvi.DiscountedPSRL, which stores only the states that it has seen",
            )

    @property
    def excess(self) -> float:
        """The largest recent target, as a multiple of what rewards, prior and discount explain."""
        return float(self._learner.watched()[0]) if self._learner else 0.0

    @property
    def diverged(self) -> bool:
        """Whether `excess` was ever larger than `diverged_above`."""
        return bool(self._learner.watched()[1]) if self._learner else False

    def _take_on(self, task: Task, env: Any = None) -> None:
        self._warned = self.diverged
        super()._take_on(task, env)

    def _notice(self) -> None:
        """Warn, once, about targets that rewards, prior and discount cannot explain."""
        if self.diverged and not self._warned:
            self._warned = True
            explained = self._learner.watched()[2]
            warn(
                f"the values diverge: a target of size {self.excess * explained:.3g} after {self.steps} steps, "
                f"where rewards, prior and discount explain {explained:.3g}; use a smaller gamma, features of a "
                "smaller scale, a larger lam, or fewer features",
                DivergenceWarning,
            )
