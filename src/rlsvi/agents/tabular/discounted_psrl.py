"""Posterior sampling of a discounted model, for tables whose states appear as they come.

for l = 0, 1, ..
    draw chances and rewards of all cells (s, a)                                     (sparse_model.py)
        an unseen outcome, worth more than the best return met so far, has weight alpha
        an untried cell is all unseen outcome
    V(s) = max_a E[r + gamma V(s')], starting from the last V
    until the end of the episode
        sample a_t from argmax_a E[r + gamma V(s')], observe r_t and s_t+1
        count the outcome of (s_t, a_t), and draw this cell anew
        update V where that matters, backwards from s_t                              (a bounded number of states)

What happens in an episode changes the rest of it, so a state that turns out to be a dead end is not tried again
until the next episode. The posterior mean uses the counts alone, and avoids cells that were not tried.
"""

from dataclasses import dataclass
from typing import Any

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import diverged
from rlsvi.agents.progress import FIRST, is_checked, is_explored, warn_if_behind
from rlsvi.agents.tabular.observations import vector_or_bytes
from rlsvi.agents.tabular.sparse_learner import SparseLearner, TablePlanning
from rlsvi.agents.tabular.sparse_model import ALPHA
from rlsvi.agents.task import Task
from rlsvi.bases import Observed, of
from rlsvi.bases.layout import Layout, layout_of
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import in_unit_interval, positive, whole
from rlsvi.core.random import Seed

REMEDY = "try another gamma= or optimism="
FEATURES = ", or features, since few observations recur: rlsvi.BoundedRLSVI()"


@dataclass(kw_only=True, repr=False, eq=False)
class DiscountedPSRL(Agent):
    """Posterior sampling for reinforcement learning with discounting, where states appear as they come.

    Observations may be of any kind: numbered, arrays, pictures, text, or tuples and dictionaries of these. Equal
    observations are one state. Each step is learned from at once. `alpha`, the weight of outcomes not seen yet,
    follows the evidence: where nothing is random it falls, and only what was never tried is tried.

    Parameters
    ----------
    gamma : discount, in [0, 1).
    optimism : the value of an outcome not seen yet, as a multiple of the best discounted return from any step on
        to the end of its episode, and of episodes that were cut off as if they were repeated for ever. As long as
        no return was positive, that value is 1: scale rewards up if costs are far below 1.
    sweeps : maximum number of updates of a state's value at the start of an episode.
    backups : maximum number of updates of values after a step.
    seed : determines all randomness, including the environment's.
    """

    gamma: float = 0.99
    optimism: float = 2.0
    sweeps: int = 100
    backups: int = 1000
    seed: Seed = None

    broken = staticmethod(diverged)
    needs_horizon = False
    takes_basis = False
    samples_first = True
    update_every = 1

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        self._planning = TablePlanning(
            in_unit_interval("gamma", self.gamma),
            positive("optimism", self.optimism),
            whole("sweeps", self.sweeps, 1, 10**9),
            whole("backups", self.backups, 1, 10**9),
        )

    @property
    def alpha(self) -> float:
        """The weight of an outcome not seen yet, relative to one visit."""
        return float(self._learner.model.totals[ALPHA]) if self._learner else 1.0

    @property
    def states(self) -> int:
        """The number of distinct observations met."""
        return len(self._learner.rows) if self._learner else 0

    def notice(self) -> None:
        """Warn if the agent earns less than it did at random, or has never found a reward."""
        if not is_checked(self.episodes):
            return
        held, model = self._learner.earned, self._learner.model
        few = self._task is not None and self._task.states is None and 2 * self.states > self.steps
        remedy = self.remedy or (REMEDY + FEATURES if few else REMEDY)
        warn_if_behind(held[:FIRST], float(held[FIRST]) / (self.episodes // 4), self.episodes, remedy)
        outcomes = slice(model.sizes[1])
        unrewarded = not (model.reward[outcomes].any() or model.spread[outcomes].any())
        if unrewarded and (few or is_explored(model.times[outcomes], self.episodes)):
            self._miss_reward(remedy)

    def take_on(self, task: Task, env: Any = None) -> None:
        """Start a task, or check that it is the one learned so far."""
        layout, known = layout_if_known(env), self._problem_basis
        if self.steps == 0:
            self._problem_basis = layout
        elif env is not None and (layout and layout.layout) != (known and known.layout):
            raise ValueError(
                f"this agent has learned {self._task} with other observations, it cannot go on with these: "
                f"{self.how_else}"
            )
        super().take_on(task, env)

    def new_learner(self, task: Task, example: Any) -> SparseLearner:
        """Return a learner without experience."""
        learner = SparseLearner(task, self._layout(), self._planning)
        vector_or_bytes(learner.layout, example + task.first_state if task.states is not None else example)
        return learner

    def restored_learner(self, task: Task, file: Archive) -> SparseLearner:
        """Return the learner stored in a file, after checking all its arrays."""
        if not isinstance(self._problem_basis, Observed | None):
            raise ArchiveError("is damaged: it does not say what observations are")
        learner = SparseLearner(task, self._layout(), self._planning, room=0)
        learner.restore(file)
        return learner

    def _layout(self) -> Layout | None:
        return self._problem_basis.layout if self._problem_basis else None


def layout_if_known(env: Any) -> Observed | None:
    """Return the layout of an environment's observations; None for text, sequences and graphs."""
    try:
        layout_of(env.observation_space)
    except (ValueError, AttributeError):
        return None
    return of(env)
