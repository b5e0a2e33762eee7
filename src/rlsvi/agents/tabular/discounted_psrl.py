"""Posterior sampling of a discounted model, for tables whose states appear as they come.

for l = 0, 1, ..
    draw chances and rewards of all cells (s, a)
        unseen outcomes have the weight alpha, a part rho of which is worth more than the best return met so far,
        and the rest as much as the best outcome of any action in the same state
        an untried cell is all of the first kind
    V(s) = max_a E[r + gamma V(s')], starting from the last V
    until the end of the episode
        sample a_t from argmax_a E[r + gamma V(s')], observe r_t and s_t+1
        count the outcome of (s_t, a_t), and draw this cell anew
        update V where that matters, backwards from s_t                              (a bounded number of states)

What happens in an episode changes the rest of it, so a state that turns out to be a dead end is not tried again
until the next episode. The posterior mean uses the counts alone, and avoids cells that were not tried. In
new observations it takes the action that has been best on average.
"""

import hashlib
import math
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium.spaces import Text

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import Place, Step, copy_into, copy_of, diverged, new_counters
from rlsvi.agents.diagnosis import (
    FIRST_EPISODES,
    earned,
    is_checked,
    is_explored,
    lack_of_progress,
    lack_of_progress_at_random,
    nothing_earned,
)
from rlsvi.bases import Observed, of
from rlsvi.bases.layout import Layout, is_exact, layout_of, vector_of
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, in_unit_interval, positive, whole
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled
from rlsvi.core.elementary import power
from rlsvi.core.random import Seed, normal
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.envs.task import Task

REMEDY = "try another gamma= or optimism="
FEATURES = ", or features, since few observations recur: rlsvi.BoundedRLSVI()"
NUMBERS = ", or features of the observed numbers: rlsvi.BoundedRLSVI()"


@dataclass(kw_only=True, repr=False, eq=False)
class DiscountedPSRL(Agent):
    """Posterior sampling for reinforcement learning with discounting, where states appear as they come.

    Observations may be of any kind: numbered, arrays, pictures, text, or tuples and dictionaries of these. Equal
    observations are one state. Each step is learned from at once. `alpha`, the weight of outcomes not seen yet,
    follows the evidence of how often something new came after one visit, two visits and so on: where nothing is
    random, or where all that can happen has happened, it falls, and only what was never tried is tried.

    Parameters
    ----------
    gamma
        Discount, in [0, 1).
    optimism
        The value of an outcome not seen yet, as a multiple of the best discounted return from any step on to the
        end of its episode, and of episodes that were cut off as if they were repeated for ever. As long as no
        return was positive, that value is the median absolute reward other than 0 or, if it is more, twice that
        multiple of the worst return, times the part of steps that cost nothing.
    sweeps
        Maximum number of updates of a state's value at the start of an episode.
    backups
        Maximum number of updates of values after a step.
    seed
        Determines all randomness, including the environment's.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.DiscountedPSRL(seed=0).learn(gymnasium.make("CliffWalking-v1", max_episode_steps=200), 50)
    >>> agent.states
    37
    """

    gamma: float = 0.99
    optimism: float = 2.0
    sweeps: int = 100
    backups: int = 1000
    seed: Seed = None

    _broken = staticmethod(diverged)
    needs_horizon = False
    _takes_basis = False
    _samples_first = True
    update_every = 1
    _remedy = REMEDY

    _constraints: ClassVar[Constraints] = {
        "gamma": in_unit_interval,
        "optimism": positive,
        "sweeps": partial(whole, least=1, most=10**9),
        "backups": partial(whole, least=1, most=10**9),
    }

    def _check(self) -> None:
        self._planning = TablePlanning(
            float(self.gamma), float(self.optimism), int(self.sweeps), int(self.backups)
        )

    @property
    def alpha(self) -> float:
        """The weight of an outcome not seen yet, relative to one visit, where an action was tried once."""
        return float(self._learner.model.alpha[0, 0]) if self._learner else 1.0

    @property
    def states(self) -> int:
        """The number of distinct observations met."""
        return len(self._learner.rows) if self._learner else 0

    def _notice(self) -> None:
        """Warn if the agent earns no more than it did at random, or has never found a reward."""
        if not is_checked(self.episodes):
            return
        held, explored = self._learner.earned, self._search_has_ended
        first, recent = held[:FIRST_EPISODES], float(held[FIRST_EPISODES]) / (self.episodes // 4)
        if explored:
            if not self._found_any:
                self._miss_reward()
            self._miss_progress(lack_of_progress(first, recent, self.episodes, explored))
        elif self._is_random:  # otherwise, looking for something new may cost something
            self._miss_progress(lack_of_progress_at_random(first, recent, self.episodes))

    @property
    def _search_has_ended(self) -> bool:
        """Whether exploration finds nothing new any more, or nothing that a table could use."""
        return self._few_recur or self._is_explored

    @property
    def _few_recur(self) -> bool:
        """Whether more than half of the steps were at an observation not met before."""
        return self._task is not None and self._task.states is None and 2 * self.states > self.steps

    @property
    def _is_explored(self) -> bool:
        """Whether hardly any new outcome is to be expected."""
        model = self._learner.model
        return is_explored(model.times[: model.sizes[1]], self.episodes)

    @property
    def _is_random(self) -> bool:
        """Whether most actions that were tried again at an observation have had several outcomes."""
        model = self._learner.model
        visits = model.visits[: model.sizes[0]].ravel()
        outcomes = np.bincount(model.cell[: model.sizes[1]], minlength=len(visits))
        several = outcomes[visits > 1] > 1
        return bool(2 * np.count_nonzero(several) > len(several))

    @property
    def _found_any(self) -> bool:
        """Whether a step was ever rewarded."""
        model = self._learner.model
        outcomes = slice(model.sizes[1])
        return bool(model.reward[outcomes].any() or model.spread[outcomes].any())

    def _what_to_try(self) -> str:
        layout = self._layout()
        if self._few_recur and self._remedy == REMEDY:
            return self._remedy + FEATURES
        return self._remedy + (NUMBERS if layout is not None and layout.measured else "")

    def _how_to_find_more(self) -> str:
        if self._few_recur:
            return self._what_to_try()
        return f"try rlsvi.DiscountedPSRL(optimism={5 * self.optimism:g}), or reward steps on the way to it"

    def explain(self) -> str:
        """Return that it learns with a table, and how much of it was tried.

        Returns
        -------
        str
            One or two sentences.
        """
        so_far = f" So far: {self._facts()['table']}." if self._learner else ""
        return (
            f"Learning with a table, as this kind of agent always does: equal observations are one state.{so_far}"
        )

    def _facts(self) -> dict[str, str]:
        """Return what the table knows: how much recurs, and how random the problem is."""
        model = self._learner.model
        tried, legal = int(np.count_nonzero(model.visits)), int(np.count_nonzero(model.legal))
        once = np.count_nonzero(model.times[: model.sizes[1]] == 1.0)
        return {
            "table": f"{self.states} observations, {tried} of {legal} actions at them were tried",
            "recurrence": f"{self.steps / max(tried, 1):.3g} visits for each action tried, on average",
            "exploration": f"about {once / max(self.episodes, 1):.2g} new outcomes in an episode",
            "randomness": f"alpha is {self.alpha:.2g}: below 1, most outcomes are as they were before",
        }

    def _take_on(self, task: Task, env: Any = None) -> None:
        layout, known = layout_if_known(env), self._problem_basis
        if self.steps > 0 and known is None and layout is not None and layout.layout.texts:
            layout = None  # files of earlier versions know observations with texts by their bytes
        if self.steps == 0:
            self._problem_basis = layout
        elif env is not None and (layout and layout.layout) != (known and known.layout):
            raise ValueError(
                f"this agent has learned {self._task} with other observations, it cannot go on with these: "
                f"{self._advice}"
            )
        super()._take_on(task, env)

    def new_learner(self, task: Task, example: Any) -> "SparseLearner":
        """Return a learner without experience."""
        learner = SparseLearner(task, self._layout(), self._planning)
        vector_or_bytes(learner.layout, example + task.first_state if task.states is not None else example)
        return learner

    def restored_learner(self, task: Task, file: Archive) -> "SparseLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        if not isinstance(self._problem_basis, Observed | None):
            raise ArchiveError("is damaged: it does not say what observations are")
        learner = SparseLearner(task, self._layout(), self._planning, room=0)
        learner.restore(file)
        return learner

    def _layout(self) -> Layout | None:
        return self._problem_basis.layout if self._problem_basis else None


def layout_if_known(env: Any) -> Observed | None:
    """Return the layout of an environment's observations; None for a text alone, sequences and graphs."""
    if isinstance(getattr(env, "observation_space", None), Text):
        return None
    try:
        layout_of(env.observation_space)
    except (ValueError, AttributeError):
        return None
    return of(env)


# ---- The learner of DiscountedPSRL: a table of the observations met, their counts, and the model of the episode
#
# During an episode, `remember` works on a copy of the table, made at the first step, that belongs to this episode.
# The learner before it stays as it was; the copy becomes what was learned when the episode has ended.


MOST_EXPORTED = 1_000_000  # the largest number of actions to export
ROOM = 64  # for states and outcomes, to begin with
MEAN_SWEEPS = 1000  # maximum number of updates per state, for the posterior mean
SAVED = ("cell", "to", "times", "reward", "spread")  # of all outcomes
TOTALS = ("revisits", "news", "finds", "alpha", "rho", "totals")


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
        self.counters = new_counters()  # episodes and steps
        self.sample: SampledModel | None = None  # of the episode that is being played
        self.visited: list[tuple[int, int]] = []  # cells to draw anew
        self.rewards: list[float] = []  # of the episode
        self.earned = nothing_earned()  # by the first and by recent episodes

    @property
    def worth(self) -> float:
        """The value of an unseen outcome.

        Where every step costs something, one reward more than nothing is enough to look for an end. Where costs
        can be avoided, it takes a prize worth more than all of them together, also when it is discounted.
        """
        (best, worst), optimism = self.model.totals[BEST:], self.planning.optimism
        if best > 0:
            return float(optimism * best)
        times, reward = self.model.times, self.model.reward
        paid = reward != 0.0
        if not paid.any():
            return 1.0
        free = times[~paid].sum() / times.sum()
        return float(max(np.median(np.abs(reward[paid])), -2.0 * optimism * worst * free))

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Find an observation in the table; a prediction without a mask uses the actions that were legal."""
        legal, x = self.task.legal(mask), self._vector(observation)
        row = self.rows.get(key_of(x), -1)
        if row >= 0 and mask is None and not learning:
            legal = self.model.legal[row].copy()
        return Place(h, observation, legal, row, x=x)

    def _vector(self, observation: Any) -> Floats | bytes:
        """Return a checked observation in the form that its key is made of; that of a state is its number."""
        layout = self.layout if self.task.states is not None else None
        if layout is not None and isinstance(observation, int | np.integer):
            state = int(observation) - self.task.first_state
            if 0 <= state < layout.counts[0]:
                return np.array([float(state)])
        return vector_or_bytes(self.layout, observation)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> "SampledModel":
        """Return a model to act on: that of the episode, with visited cells drawn anew, or another one."""
        if learning and self.sample is not None:
            for s, a in self.visited:
                if not redraw(self.model, self.sample, s, a, self.planning.gamma, self.planning.backups, stream):
                    raise diverged()
            self.visited = []
            return self.sample
        worth = self.worth if sampled else float(self.model.totals[WORST])
        sample = self._blank_sample(worth)
        if sampled:
            sample.V[: len(self.V)] = self.V
        sweeps = self.planning.sweeps if sampled else MEAN_SWEEPS
        if not draw_all(self.model, sample, self.planning.gamma, sweeps, sampled, stream):
            raise diverged()
        if learning:
            return sample
        Q = np.full((len(self.rows) + 1, self.task.actions), worth)
        all_action_values(self.model, sample, self.planning.gamma, Q[:-1])
        if not sampled:
            visits = self.model.visits[: len(self.rows)]
            Q[-1] = usual_values(visits, Q[:-1], worth)
            Q[:-1][~visits.any(axis=1)] = Q[-1]
        return sample._replace(Q=Q)

    def values(self, plan: "SampledModel", place: Place) -> Floats:
        """Return Q(s, .); the last row of the plan is that of unknown states."""
        if len(plan.V) < len(self.model.into) or len(plan.chance) < len(self.model.to):
            raise ValueError("this plan is of an earlier state of the learner: plan anew")
        row = place.row if place.row >= 0 else self.rows.get(key_of(place.x), -1)
        Q: Floats
        if row < len(plan.Q) - 1:
            Q = plan.Q[row].copy()
            return Q
        Q = np.full(self.task.actions, plan.worth[0])
        if row >= 0:
            action_values(self.model, plan, row, self.planning.gamma, Q)
        return Q

    def remember(self, steps: list[Step], plan: "SampledModel | None", ended: bool) -> "SparseLearner":
        """Count transitions in the copy that belongs to this episode, which is made at its first step.

        Without a plan, the values to start from are those of untried cells.
        """
        later = self if self.sample is not None else self._copy_with(plan or self._blank_sample(self.worth))
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

    def _blank_sample(self, worth: float) -> "SampledModel":
        return no_sample(len(self.model.into), len(self.model.to), self.task.actions, worth)

    def _copy_with(self, sample: "SampledModel") -> "SparseLearner":
        later = copy(self)
        later.rows, later.model, later.counters = self.rows.copy(), copy_of(self.model), self.counters.copy()
        later.sample, later.visited, later.rewards = sample, [], []
        return later

    def count(self, step: Step) -> None:
        """Count a transition; both its observations get a row."""
        s = self.row(step.place)
        to = END if step.following is None else self.row(step.following)
        self.make_room()
        if step.reward != 0.0 and not any(self.rewards) and not self.model.totals[BEST:].any():
            assert self.sample is not None
            self.sample.V[:] *= abs(step.reward)  # the first reward is the unit of values, which was 1
            self.sample.worth[:] *= abs(step.reward)
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
        model, A, sample = self.model, self.task.actions, self.sample
        S, O = len(model.into), len(model.to)  # noqa: E741
        room = 2 * S if len(self.rows) >= S else S, 2 * O if model.sizes[1] >= O else O
        if room == (S, O):
            return
        self.model = copy_into(no_model(*room, A), model)
        if sample is not None:
            self.sample = copy_into(no_sample(*room, A, float(sample.worth[0])), sample)
            self.sample.queue[:S], self.sample.waiting[0] = np.roll(sample.queue, -sample.waiting[0]), 0

    def exported(self, plan: "SampledModel") -> tuple[Layout, dict[str, Any]]:
        """Return the layout of observations and the actions of all, if they are counted and not too many."""
        layout = self.layout
        if layout is None or layout.measured or np.prod([float(n) for n in layout.counts]) > MOST_EXPORTED:
            raise ValueError(
                f"a table of observations that are measured, text or more than {MOST_EXPORTED:,} cannot be "
                "exported: save the agent instead, and load it by rlsvi.load"
            )
        actions = np.full((1, int(np.prod(layout.counts))), self.task.first_action, np.int64)
        for i, x in enumerate(np.ndindex(*layout.counts)):
            row = self.rows.get(key_of(np.array(x, np.float64)), -1)
            legal = self.model.legal[row] if row >= 0 else True
            actions[0, i] += int(np.argmax(np.where(legal, plan.Q[row], -np.inf)))
        return layout, {"actions": actions}

    def state(self) -> dict[str, Any]:
        """Return the keys of all observations, their legal actions, all outcomes, and the values to start from."""
        S, O = (int(size) for size in self.model.sizes)  # noqa: E741
        keys = np.frombuffer(b"".join(self.rows), np.uint8).reshape(S, SIZE)
        arrays = {f"model.{name}": getattr(self.model, name)[:O] for name in SAVED}
        arrays |= {"model.legal": self.model.legal[:S], "keys": keys, "V": self.V}
        arrays |= {f"model.{name}": getattr(self.model, name) for name in TOTALS}
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
        if "model.news" in file:
            for name in TOTALS:
                getattr(model, name)[:] = file.take(f"model.{name}", getattr(model, name).shape)
        else:  # of an earlier version, with one alpha for all: new outcomes came as often as that implies
            _, alpha, *totals = file.take("model.totals", (6,))
            model.revisits[:], model.alpha[:] = file.take("model.revisits", (EARLY,)), alpha
            model.news[:] = model.revisits * alpha / (np.arange(EARLY) + max(alpha, 1e-300))
            model.finds[:], model.totals[:] = model.news, totals
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
        counts = np.stack([np.zeros((KINDS, EARLY)), model.finds, model.news, model.revisits])
        sound = (np.diff(counts, axis=0) >= 0).all() and (spread >= 0).all()
        sound = sound and (model.totals[: BEST + 1] >= 0).all() and model.totals[WORST] <= 0
        known = (0 < model.alpha).all() and (model.alpha < 1e6).all()
        known = known and (0 < model.rho).all() and (model.rho <= 1).all()
        possible = model.legal[:S].any(axis=1).all() and model.legal.reshape(-1)[cell].all()
        if not (distinct and counted and sound and known and possible):
            raise ArchiveError("is damaged: its table does not add up")


# ---- Counts of what followed each state and action, and models sampled from them; states appear as they come ----
#
# A cell (s, a) has a list of outcomes: each next state seen, or the end, with the number of times, the mean reward
# and the squared deviations from it. A sampled model gives every cell
#
#     chances ~ Dirichlet(times of each outcome, and alpha for all unseen ones)
#     shift   ~ N(0, variance / visits)                                              of the mean reward
#
# A part rho of the unseen outcomes are finds, worth more than the best return met so far. The others are worth as
# much as the best outcome that any action has had in the same state. An untried cell is all find. The variance of
# the rewards of one outcome is that of the cell, with one reward's worth of the variance pooled over all cells;
# where rewards never vary, there is no shift.
#
# `alpha` follows the evidence of how random the problem is. Under a Dirichlet process, a cell visited i times
# shows a new outcome next with probability alpha / (i + alpha). Where outcomes are few, something new comes much
# less often once a cell was visited many times, and cells that never varied show less of it than others. Therefore
# cells of two kinds, which have had one outcome or several, and in different stages, visited once, 2 to 3, 4 to 7,
# .. times, have an alpha each. With a Gamma(2, 1 / before) prior, whose mode is the alpha of the stage before, or
# 1, the posterior given all such revisits, pooled over cells, is highest at the fixed point of
#
#     alpha = (1 + new outcomes) / (1 / before + sum over revisits of 1 / (i + alpha)),
#
# one iteration of which follows every visit. A new outcome is a find if it is a state never met before, from which
# everything is untried; one that leads to a known state is not worth much more than what is known. The part of
# finds follows the evidence as well, with a prior that counts as much as one new outcome and has the mean of the
# stage before, or 1:
#
#     rho = (rho before + finds) / (1 + new outcomes)
#
# Without it, exploration would hardly fade where outcomes are many and random, for new ones keep coming. Only the
# first `EARLY` visits of every cell count.


END = -1  # the next state of an outcome that ends the episode
NONE = -1  # the end of a list
KINDS, STAGES = 2, 6
EARLY = 2**STAGES
SPREAD, FREEDOM, BEST, WORST = range(4)  # indices of SparseModel.totals


class SparseModel(NamedTuple):
    """Counts, with room for more states and outcomes than there are. Lists are linked by indices."""

    legal: Bools  # (S, A) actions that were ever legal
    visits: Floats  # (S, A)
    first: Longs  # (S, A) the first outcome of a cell
    into: Longs  # (S,) the first outcome that leads to a state
    cell: Longs  # (O,) s A + a
    to: Longs  # (O,) the next state, or END
    also: Longs  # (O,) the next outcome of the same cell
    before: Longs  # (O,) the next outcome that leads to the same state
    times: Floats  # (O,)
    reward: Floats  # (O,) mean reward
    spread: Floats  # (O,) sum of squared deviations of rewards from their mean
    revisits: Floats  # (KINDS, EARLY) visits of cells that had been visited i times
    news: Floats  # (KINDS, EARLY) how many of them had a new outcome
    finds: Floats  # (KINDS, EARLY) how many of these were states never met before
    alpha: Floats  # (KINDS, STAGES) of cells that were visited once, 2 to 3, 4 to 7, .. times
    rho: Floats  # (KINDS, STAGES) the part of their new outcomes that is a find
    totals: Floats  # (4,) all spreads and their freedom, best and worst return
    sizes: Longs  # (2,) states and outcomes


class SampledModel(NamedTuple):
    """A model drawn from the counts, its values, and the states whose values may have to change."""

    chance: Floats  # (O,)
    find: Floats  # (S, A) chance of an outcome better than any
    other: Floats  # (S, A) chance of an unseen outcome that is as good as the best one in this state
    shift: Floats  # (S, A) of the mean reward
    V: Floats  # (S,)
    Q: Floats  # (S + 1, A), the last row for unknown states, or (0, A) of a model that still changes
    worth: Floats  # (1,) value of the unseen outcome
    queue: Longs  # (S,) a ring of states
    queued: Bools  # (S,)
    waiting: Longs  # (2,) where the ring begins, and how many states wait


def no_model(S: int, O: int, A: int) -> SparseModel:  # noqa: E741
    """Return counts of nothing, with room for S states and O outcomes."""
    cell, to, also, before = np.full((4, O), NONE, np.int64)
    times, reward, spread = np.zeros((3, O))
    revisits, news, finds = np.zeros((3, KINDS, EARLY))
    alpha, rho = np.ones((2, KINDS, STAGES))
    return SparseModel(
        np.zeros((S, A), np.bool_),
        np.zeros((S, A)),
        np.full((S, A), NONE, np.int64),
        np.full(S, NONE, np.int64),
        *(cell, to, also, before, times, reward, spread),
        *(revisits, news, finds, alpha, rho),
        np.zeros(4),
        np.zeros(2, np.int64),
    )


def no_sample(S: int, O: int, A: int, worth: float) -> SampledModel:  # noqa: E741
    """Return a model of untried cells alone."""
    other, shift = np.zeros((2, S, A))
    return SampledModel(
        np.zeros(O),
        np.ones((S, A)),
        *(other, shift),
        np.full(S, worth),
        np.zeros((0, A)),
        np.array([worth]),
        np.zeros(S, np.int64),
        np.zeros(S, np.bool_),
        np.zeros(2, np.int64),
    )


@compiled
def count(model: SparseModel, s: int, a: int, reward: float, to: int) -> None:
    """Count a visit of a cell and its outcome, for which there must be room."""
    n, o, kind = model.visits[s, a], model.first[s, a], kind_of(model, s, a)
    while o != NONE and model.to[o] != to:
        o = model.also[o]
    new = o == NONE
    if new:
        o = model.sizes[1]
        model.sizes[1] += 1
        link(model, o, s * model.legal.shape[1] + a, to)
    if 1.0 <= n < EARLY:
        model.revisits[kind, int(n)] += 1.0
        model.news[kind, int(n)] += new
        model.finds[kind, int(n)] += new and is_unknown(model, to)
        follow_evidence(model)
    model.visits[s, a] = n + 1.0
    model.times[o] += 1.0
    off = reward - model.reward[o]
    model.reward[o] += off / model.times[o]
    more = off * (reward - model.reward[o])
    model.spread[o] += more
    model.totals[SPREAD] += more
    model.totals[FREEDOM] += not new


@compiled
def is_unknown(model: SparseModel, s: int) -> bool:
    """Return whether a state was never met before."""
    if s == END or model.before[model.into[s]] != NONE:
        return False
    visits = 0.0
    for a in range(model.legal.shape[1]):
        visits += model.visits[s, a]
    return bool(visits == 0.0)


@compiled
def link(model: SparseModel, o: int, cell: int, to: int) -> None:
    """Put an outcome at the head of the lists of its cell and of its next state."""
    A = model.legal.shape[1]
    s, a = cell // A, cell % A
    model.cell[o], model.to[o] = cell, to
    model.also[o] = model.first[s, a]
    model.first[s, a] = o
    if to != END:
        model.before[o] = model.into[to]
        model.into[to] = o


@compiled
def follow_evidence(model: SparseModel) -> None:
    """Take one step of the iteration for alpha of every kind and stage, and compute rho."""
    for kind in range(KINDS):
        before, found = 1.0, 1.0
        for stage in range(STAGES):
            alpha, new, exposure = model.alpha[kind, stage], 1.0, 1.0 / before
            for i in range(1 << stage, 1 << (stage + 1)):
                new += model.news[kind, i]
                found += model.finds[kind, i]
                exposure += model.revisits[kind, i] / (i + alpha)
            before = model.alpha[kind, stage] = new / exposure
            found = model.rho[kind, stage] = found / new


@compiled
def kind_of(model: SparseModel, s: int, a: int) -> int:
    """Return 0 if a cell has had one outcome, and 1 if it has had several."""
    o = model.first[s, a]
    return 1 if o != NONE and model.also[o] != NONE else 0


@compiled
def stage_of(visits: float) -> int:
    """Return the stage of a cell that was visited so many times."""
    stage = 0
    while stage < STAGES - 1 and visits >= 1 << (stage + 1):
        stage += 1
    return stage


@compiled
def draw_cell(model: SparseModel, sample: SampledModel, s: int, a: int, sampled: bool, stream: Words) -> None:
    """Draw the chances and the reward of a cell, or set them to what was counted, without an unseen outcome."""
    n = model.visits[s, a]
    if n == 0.0:
        return
    kind, stage = kind_of(model, s, a), stage_of(n)
    unseen = gamma_variate(stream, model.alpha[kind, stage]) if sampled else 0.0
    total, spread, outcomes = unseen, 0.0, 0.0
    o = model.first[s, a]
    while o != NONE:
        sample.chance[o] = gamma_variate(stream, model.times[o]) if sampled else model.times[o]
        total += sample.chance[o]
        spread += model.spread[o]
        outcomes += 1.0
        o = model.also[o]
    o = model.first[s, a]
    while o != NONE:
        sample.chance[o] /= total
        o = model.also[o]
    sample.find[s, a] = model.rho[kind, stage] * unseen / total
    sample.other[s, a] = unseen / total - sample.find[s, a]
    pooled = model.totals[SPREAD] / max(model.totals[FREEDOM], 1.0)
    variance = (spread + pooled) / (n - outcomes + 1.0)
    sample.shift[s, a] = math.sqrt(variance / n) * normal(stream) if sampled and variance > 0.0 else 0.0


@compiled
def best_outcome(model: SparseModel, sample: SampledModel, s: int, gamma: float) -> float:
    """Return the value of the best outcome that any action has had in a state, or 0 if there is none."""
    best, some = 0.0, False
    for a in range(model.legal.shape[1]):
        o = model.first[s, a]
        while o != NONE:
            value = model.reward[o] + (0.0 if model.to[o] == END else gamma * sample.V[model.to[o]])
            best, some = value if not some else max(best, value), True
            o = model.also[o]
    return best


@compiled
def cell_value(model: SparseModel, sample: SampledModel, s: int, a: int, gamma: float, best: float) -> float:
    """Return the value of choosing an action until it leads elsewhere, which solves loops from s to s at once.

    Parameters
    ----------
    best
        The value of the best outcome in the state.
    """
    value, stays = sample.find[s, a] * sample.worth[0] + sample.other[s, a] * best + sample.shift[s, a], 0.0
    o = model.first[s, a]
    while o != NONE:
        value += sample.chance[o] * model.reward[o]
        if model.to[o] == s:
            stays += sample.chance[o]
        elif model.to[o] != END:
            value += gamma * sample.chance[o] * sample.V[model.to[o]]
        o = model.also[o]
    return float(value / (1.0 - gamma * stays))


@compiled
def action_values(model: SparseModel, sample: SampledModel, s: int, gamma: float, Q: Floats) -> None:
    """Compute the values of all actions in a state."""
    best = best_outcome(model, sample, s, gamma)
    for a in range(Q.size):
        Q[a] = cell_value(model, sample, s, a, gamma, best)


@compiled
def all_action_values(model: SparseModel, sample: SampledModel, gamma: float, Q: Floats) -> None:
    """Compute the values of all actions in all states."""
    for s in range(Q.shape[0]):
        action_values(model, sample, s, gamma, Q[s])


def usual_values(visits: Floats, Q: Floats, worst: float) -> Floats:
    """Return the mean value of each action over its visits and one of any action; the worst if never tried."""
    times, sums = visits.sum(axis=0), (visits * Q).sum(axis=0)
    return np.where(times > 0, (sums + sums.sum() / times.sum()) / (times + 1), worst)


@compiled
def wait(sample: SampledModel, s: int) -> None:
    """Put a state into the queue, unless it waits already."""
    if not sample.queued[s]:
        sample.queued[s] = True
        sample.queue[(sample.waiting[0] + sample.waiting[1]) % sample.queue.size] = s
        sample.waiting[1] += 1


@compiled
def solve(model: SparseModel, sample: SampledModel, gamma: float, most: int) -> bool:
    """Update the values of waiting states, at most so many, and of those before them as far as changes reach.

    A change matters if it exceeds 1% of what one step of discounting changes. Return False unless all are finite.
    """
    A = model.legal.shape[1]
    while sample.waiting[1] > 0 and most > 0:
        most -= 1
        s = sample.queue[sample.waiting[0]]
        sample.waiting[0] = (sample.waiting[0] + 1) % sample.queue.size
        sample.waiting[1] -= 1
        sample.queued[s] = False
        best, outcome = -np.inf, best_outcome(model, sample, s, gamma)
        for a in range(A):
            if model.legal[s, a]:
                best = max(best, cell_value(model, sample, s, a, gamma, outcome))
        if not abs(best) < np.inf:
            return False
        matters = abs(best - sample.V[s]) > 0.01 * (1.0 - gamma) * abs(best)
        sample.V[s] = best
        o = model.into[s] if matters else NONE
        while o != NONE:
            if model.cell[o] // A != s:
                wait(sample, model.cell[o] // A)
            o = model.before[o]
    return True


@compiled
def draw_all(
    model: SparseModel, sample: SampledModel, gamma: float, most: int, sampled: bool, stream: Words
) -> bool:
    """Draw all cells and solve the model, starting from the values that it has, states found last first."""
    S, A = model.sizes[0], model.legal.shape[1]
    for s in range(S):
        for a in range(A):
            draw_cell(model, sample, s, a, sampled, stream)
    for s in range(S - 1, -1, -1):
        wait(sample, s)
    return solve(model, sample, gamma, most * S)


@compiled
def redraw(
    model: SparseModel, sample: SampledModel, s: int, a: int, gamma: float, most: int, stream: Words
) -> bool:
    """Draw a visited cell anew, and let values follow."""
    draw_cell(model, sample, s, a, True, stream)
    wait(sample, s)
    return solve(model, sample, gamma, most)


@compiled
def follow_returns(totals: Floats, rewards: Floats, gamma: float, cut_off: bool) -> None:
    """Extend the best and the worst discounted return from any step on to the end.

    An episode that was cut off would have gone on: it also counts as if it were repeated for ever.
    """
    total = 0.0
    for i in range(rewards.size - 1, -1, -1):
        total = rewards[i] + gamma * total
        totals[BEST] = max(totals[BEST], total)
        totals[WORST] = min(totals[WORST], total)
    if cut_off:
        total /= 1.0 - power(gamma, rewards.size)
        totals[BEST] = max(totals[BEST], total)
        totals[WORST] = min(totals[WORST], total)


# ---- Observations of any kind as keys of a table -----------------------------------------------------------


SIZE = 16  # bytes of a key: two of 2^32 observations have the same with a chance of 2^-65


def vector_or_bytes(layout: Layout | None, observation: Any) -> Floats | bytes:
    """Return a checked observation as a vector if the layout of its space is known, otherwise as bytes."""
    if layout is not None:
        return vector_of(layout, observation) + 0.0  # a copy, in which -0.0 is 0.0
    return plain_bytes(observation)


def key_of(x: Floats | bytes) -> bytes:
    """Return a key of constant length, whatever the size of the observation."""
    return hashlib.blake2b(x if isinstance(x, bytes) else x.tobytes(), digest_size=SIZE).digest()


def plain_bytes(observation: Any) -> bytes:
    """Return bytes that differ between observations that differ; equal numbers of any type are equal."""
    if isinstance(observation, str | bytes):
        text = observation if isinstance(observation, bytes) else observation.encode()
        return _tagged("text", text)
    if isinstance(observation, dict):
        parts = sorted(plain_bytes(key) + plain_bytes(value) for key, value in observation.items())
        return _tagged("dict", *parts)
    if isinstance(observation, tuple | list | frozenset | set):
        items = [plain_bytes(item) for item in observation]
        return _tagged("items", *(sorted(items) if isinstance(observation, frozenset | set) else items))
    if isinstance(observation, bool | int | float | np.generic | np.ndarray):
        return _numbers(observation)
    raise ValueError(
        f"observation {observation!r:.80} cannot be looked up in a table: only numbers, arrays, text, and tuples, "
        "lists, sets or dictionaries of these; wrap the environment (gymnasium.wrappers.TransformObservation)"
    )


def _numbers(observation: Any) -> bytes:
    array = np.asarray(observation)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"observation holds {array.dtype}, which is neither numbers nor text: {observation!r:.80}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"observation holds NaN or infinity: {observation}")
    if is_exact(array):
        return _tagged(str(array.shape), (array.astype(np.float64) + 0.0).tobytes())
    return _tagged(str(array.shape) + array.dtype.str, array.tobytes())


def _tagged(kind: str, *parts: bytes) -> bytes:
    """Return parts with their lengths, so that no two sequences of parts look alike."""
    return b"".join([kind.encode(), b":", *(b"%d:%b" % (len(part), part) for part in parts)])
