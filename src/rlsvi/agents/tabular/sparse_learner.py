"""The learner of DiscountedPSRL: a table of the observations met, their counts, and the model of the episode.

During an episode, `remember` works on a copy of the table, made at the first step, that belongs to this episode.
The learner before it stays as it was; the copy becomes what was learned when the episode has ended.
"""

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import Place, Step, diverged
from rlsvi.agents.progress import earned, nothing_earned
from rlsvi.agents.tabular.observations import SIZE, key_of, vector_or_bytes
from rlsvi.agents.tabular.sparse_model import (
    ALPHA,
    BEST,
    END,
    WORST,
    SampledModel,
    SparseModel,
    action_values,
    count,
    draw_all,
    follow_returns,
    link,
    no_model,
    no_sample,
    redraw,
)
from rlsvi.agents.task import Task
from rlsvi.bases.layout import Layout
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats, Longs, Words

MOST = 1_000_000  # the largest number of actions to export
ROOM = 64  # for states and outcomes, to begin with
MEAN_SWEEPS = 1000  # maximum number of updates per state, for the posterior mean
STATES = ("legal", "visits", "first", "into")  # the fields of a model with one row per state
OUTCOMES = ("cell", "to", "also", "before", "times", "reward", "spread")  # with one entry per outcome
SAVED = ("cell", "to", "times", "reward", "spread")


class TablePlanning(NamedTuple):
    """The settings of DiscountedPSRL."""

    gamma: float
    optimism: float
    sweeps: int  # maximum number of updates per state, at the start of an episode
    backups: int  # maximum number of updates, after a step


class SparseLearner:
    """Counts of all experience in a table that grows."""

    def __init__(self, task: Task, layout: Layout | None, planning: TablePlanning, room: int = ROOM) -> None:
        self.task, self.layout, self.planning = task, layout, planning
        self.rows: dict[bytes, int] = {}
        self.model = no_model(room, room, task.actions)
        self.V = np.zeros(0)  # of all states, at the end of the last episode, in proportion to `worth`
        self.counters = np.zeros(2, np.int64)  # episodes and steps
        self.sample: SampledModel | None = None  # of the episode that is being played
        self.visited: list[tuple[int, int]] = []  # cells to draw anew
        self.rewards: list[float] = []  # of the episode
        self.earned = nothing_earned()  # by the first and by recent episodes

    @property
    def worth(self) -> float:
        """The value of an unseen outcome: a multiple of the best return met, or 1 if none was positive."""
        best = float(self.model.totals[BEST])
        return self.planning.optimism * best if best > 0 else 1.0

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Find an observation in the table; a prediction without a mask uses the actions that were legal."""
        legal, x = self.task.legal(mask), vector_or_bytes(self.layout, observation)
        row = self.rows.get(key_of(x), -1)
        if row >= 0 and mask is None and not learning:
            legal = self.model.legal[row].copy()
        return Place(h, observation, legal, row, x=x)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> SampledModel:
        """Return a model to act on: that of the episode, with visited cells drawn anew, or another one."""
        if learning and self.sample is not None:
            for s, a in self.visited:
                if not redraw(self.model, self.sample, s, a, self.planning.gamma, self.planning.backups, stream):
                    raise diverged()
            self.visited = []
            return self.sample
        worth = self.worth if sampled else float(self.model.totals[WORST])
        sample = self._untried(worth)
        if sampled:
            sample.V[: len(self.V)] = self.V
        sweeps = self.planning.sweeps if sampled else MEAN_SWEEPS
        if not draw_all(self.model, sample, self.planning.gamma, sweeps, sampled, stream):
            raise diverged()
        return sample

    def values(self, plan: SampledModel, place: Place) -> Floats:
        """Return Q(s, .); all actions in an unknown state are worth the same."""
        if len(plan.V) < len(self.model.into) or len(plan.chance) < len(self.model.to):
            raise ValueError("this plan is of an earlier state of the learner: plan anew")
        Q, row = np.full(self.task.actions, plan.worth[0]), place.row
        if row < 0:
            row = self.rows.get(key_of(place.x), -1)
        if row >= 0:
            action_values(self.model, plan, row, self.planning.gamma, Q)
        return Q

    def remember(self, steps: list[Step], plan: SampledModel | None, ended: bool) -> "SparseLearner":
        """Count transitions in the copy that belongs to this episode, which is made at its first step.

        Without a plan, the values to start from are those of untried cells.
        """
        later = self if self.sample is not None else self._copied(plan or self._untried(self.worth))
        for step in steps:
            later.count(step)
        later.counters[1] += len(steps)
        if ended:
            assert later.sample is not None
            later.counters[0] += 1
            later.earned = earned(self.earned, int(later.counters[0]), sum(later.rewards))
            cut_off = steps[-1].following is not None
            follow_returns(later.model.totals, np.array(later.rewards), later.planning.gamma, cut_off)
            change = later.worth / float(later.sample.worth[0])
            later.V, later.sample = change * later.sample.V[: len(later.rows)], None
            later.visited, later.rewards = [], []
        return later

    def _untried(self, worth: float) -> SampledModel:
        return no_sample(len(self.model.into), len(self.model.to), self.task.actions, worth)

    def _copied(self, sample: SampledModel) -> "SparseLearner":
        later = copy(self)
        parts: Any = self.model
        later.rows, later.model = self.rows.copy(), SparseModel(*(part.copy() for part in parts))
        later.counters, later.sample = self.counters.copy(), sample
        later.visited, later.rewards = [], []
        return later

    def count(self, step: Step) -> None:
        """Count a transition; both its observations get a row."""
        s = self.row(step.place)
        to = END if step.following is None else self.row(step.following)
        self.make_room()
        count(self.model, s, step.action, step.reward, to)
        self.visited.append((s, step.action))
        self.rewards.append(step.reward)

    def row(self, place: Place) -> int:
        """Return the row of an observation, adding it if new. Actions that were ever legal in it stay legal."""
        key = key_of(place.x)
        s = self.rows.setdefault(key, len(self.rows))
        self.make_room()
        self.model.sizes[0] = len(self.rows)
        self.model.legal[s] |= place.legal
        return s

    def make_room(self) -> None:
        """Enlarge the arrays that are full."""
        model, sample = self.model, self.sample
        S, O = len(model.into), len(model.to)  # noqa: E741
        more_S = S if len(self.rows) >= S else 0
        more_O = O if model.sizes[1] >= O else 0
        if not more_S and not more_O:
            return
        larger = no_model(S + more_S, O + more_O, self.task.actions)
        for name in (*STATES, *OUTCOMES):
            array = getattr(model, name)
            getattr(larger, name)[: len(array)] = array
        self.model = larger._replace(revisits=model.revisits, totals=model.totals, sizes=model.sizes)
        if sample is not None:
            self.sample = _larger(sample, S + more_S, O + more_O)

    def exported(self, plan: SampledModel) -> tuple[Layout, dict[str, Any]]:
        """Return the layout of observations and the actions of all, if they are counted and not too many."""
        layout = self.layout
        if layout is None or layout.measured or np.prod([float(n) for n in layout.counts]) > MOST:
            raise ValueError(
                f"a table of observations that are measured, text or more than {MOST:,} cannot be exported: save "
                "the agent instead, and load it by rlsvi.load"
            )
        actions = np.full((1, int(np.prod(layout.counts))), self.task.first_action, np.int64)  # if unknown
        for i, x in enumerate(np.ndindex(*layout.counts)):
            row = self.rows.get(key_of(np.array(x, np.float64)), -1)
            if row >= 0:
                Q = self.values(plan, Place(0, None, self.model.legal[row], row))
                actions[0, i] += int(np.argmax(np.where(self.model.legal[row], Q, -np.inf)))
        return layout, {"actions": actions}

    def state(self) -> dict[str, Any]:
        """Return the keys of all observations, their legal actions, all outcomes, and the values to start from."""
        S, O = (int(size) for size in self.model.sizes)  # noqa: E741
        keys = np.frombuffer(b"".join(self.rows), np.uint8).reshape(S, SIZE)
        arrays = {f"model.{name}": getattr(self.model, name)[:O] for name in SAVED}
        arrays |= {"model.legal": self.model.legal[:S], "model.revisits": self.model.revisits}
        arrays |= {"model.totals": self.model.totals, "keys": keys, "V": self.V}
        return arrays | {"counters": self.counters, "earned": self.earned}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        A = self.task.actions
        (S, _), (O,) = file.shape("keys", 2), file.shape("model.to", 1)  # noqa: E741
        if min(S, O) < 1:
            raise ArchiveError("is damaged: its table is empty")
        keys = file.take("keys", (S, SIZE), np.uint8)
        legal = file.take("model.legal", (S, A), np.bool_)
        cell = file.take_within("model.cell", (O,), np.int64, 0, S * A - 1)
        to = file.take_within("model.to", (O,), np.int64, END, S - 1)
        model = no_model(S, O, A)
        model.legal[:S], model.sizes[:] = legal, (S, O)
        for o in range(O):
            link(model, o, int(cell[o]), int(to[o]))
        for name in ("times", "reward", "spread"):
            getattr(model, name)[:O] = file.take(f"model.{name}", (O,))
        np.add.at(model.visits.reshape(-1), cell, model.times[:O])
        model.revisits[:] = file.take("model.revisits", model.revisits.shape)
        model.totals[:] = file.take("model.totals", model.totals.shape)
        self.model, self.rows = model, {bytes(key): s for s, key in enumerate(keys)}
        self.V, self.counters = file.take("V", (S,)), file.take_within("counters", (2,), np.int64, 1, 2**62)
        self.earned = file.take("earned", self.earned.shape)
        self._check(cell, to)

    def _check(self, cell: Longs, to: Longs) -> None:
        """Raise an error if the arrays of a file contradict one another."""
        model, (S, O) = self.model, self.model.sizes  # noqa: E741
        times, spread = model.times[:O], model.spread[:O]
        distinct = len(self.rows) == S and len(np.unique(np.stack([cell, to]), axis=1).T) == O
        counted = (times >= 1).all() and (times == np.floor(times)).all() and times.sum() == self.counters[1]
        sound = (model.revisits >= 0).all() and (spread >= 0).all() and (model.totals[:4] >= 0).all()
        known = model.totals[WORST] <= 0 <= model.totals[BEST] and 0 < model.totals[ALPHA] < 1e6
        possible = model.legal[:S].any(axis=1).all() and model.legal.reshape(-1)[cell].all()
        if not (distinct and counted and sound and known and possible):
            raise ArchiveError("is damaged: its table does not add up")


def _larger(sample: SampledModel, S: int, O: int) -> SampledModel:  # noqa: E741
    """Return a sampled model with room for more states and outcomes; the queue begins at 0."""
    larger = no_sample(S, O, sample.unseen.shape[1], float(sample.worth[0]))
    for name in ("chance", "unseen", "shift", "V", "queued"):
        array = getattr(sample, name)
        getattr(larger, name)[: len(array)] = array
    begin, waiting = sample.waiting
    larger.queue[: len(sample.queue)] = np.roll(sample.queue, -begin)
    larger.waiting[1] = waiting
    return larger
