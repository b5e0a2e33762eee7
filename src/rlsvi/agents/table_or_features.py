"""A table where observations recur, features where they do not: the default where observations are not numbered.

    learn with a table, and keep all episodes (or none, if features of the observations would be a table too)
    after 2, 3, 4, 6, 8, 12, 16, .. episodes
        seen = the part of the steps of all episodes but the first at an observation seen in an earlier episode
        known = the part of recent steps whose observation and action occurred together in an earlier episode
        gain = by how much features predict better than a table what steps led to, in episodes held out
        with a table: if seen < 1/10, learn all episodes with features from now on
        otherwise, if outcomes are random, and there are four episodes:
            if gain exceeds its standard error, learn all episodes with features from now on
            if gain is below minus twice its standard error, learn all episodes with a table from now on
        otherwise, with features: if known >= 1/2, learn all episodes with a table from now on
    after each episode: if more than half of the gain in returns is lost since the last change, go back, and judge
        again when there are twice as many episodes; but not while there are only costs and outcomes are certain
    until 10,000 steps are kept, or actions are held for several steps; then the choice is final
    (never before the first decision, nor within eight episodes of a change), as it is after seven changes

A picture of a maze is a table however many numbers it has. Where nothing recurs, all cells are untried and a
table plays at random: eight steps that met nothing known are enough to tell, or 30 where all numbers are whole.
Where stocks or queues are counted, observations recur, and features may be better nevertheless, because chance
shows a table something new for ever. Where outcomes are certain, a table that explores needs to see each of them
once, however well features predict small costs on the way; and if nothing but costs was found yet, searching on
costs something.

What a step led to is the sum of the rewards that followed, discounted by 0.9 (or gamma, if it is less): sums over
a longer time are mostly noise. An episode that was cut off counts as if the usual reward had followed. Every other
episode is predicted from the rest, and the rest from these. Noise is in the errors of both, so that they hardly
differ; what tells is whether the difference has the same sign in most episodes.
"""

import logging
import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import Place, Step, diverged
from rlsvi.agents.diagnosis import CHECKED_FROM, is_lost
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.practice.features import Sample, errors_of, judges, weights
from rlsvi.agents.practice.held_actions import PracticeAgent
from rlsvi.agents.practice.regression import discounted_sums
from rlsvi.agents.tabular.discounted_psrl import DiscountedPSRL, key_of
from rlsvi.bases import Observed, of
from rlsvi.bases.layout import Layout, observation_of, vector_of
from rlsvi.bases.observed import is_table
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import LARGEST_NUMBER
from rlsvi.core.compile import Bools, Floats, Longs, Words
from rlsvi.core.machine import one_thread
from rlsvi.core.random import Seed
from rlsvi.envs.task import Task

LEAST_SEEN, LEAST_KNOWN = 0.1, 0.5  # shares below which features learn, and from which on a table does
FEATURES_SURE, TABLE_SURE = 1.0, 2.0  # standard errors by which predictions must be better
FEWEST_REAL, FEWEST_WHOLE = 8, 30  # steps that tell that little recurs, by the numbers observed
RIDGE = 20.0  # of the regression that predicts: what a step led to is mostly noise
MOST_DISCOUNT = 0.9  # the discount of the rewards that are predicted, at most
FEWEST_EPISODES = 4  # that predictions are compared on, and before and after a change that tell if returns fell
CHANGES = 7  # after which the choice is final
FINAL_STEPS, FINAL_NUMBERS = 10_000, 2**24  # steps, and numbers of observations, beyond which the choice is final
TABLE_REMEDY = "try another gamma=, or rlsvi.DiscountedPSRL with another optimism="
FEATURES_REMEDY = (
    "try a larger gamma=, or rlsvi.BoundedRLSVI with repeat=1 or 4, or another basis=, such as "
    "bases.Waves(features=1000)"
)
END = -1
log = logging.getLogger("rlsvi")


@dataclass(kw_only=True, repr=False, eq=False)
class TableOrFeatures(PracticeAgent):
    """DiscountedPSRL where observations recur, and BoundedRLSVI where they do not, as the data show.

    It begins with a table and keeps all episodes. When observations turn out not to recur, it continues with
    features that have learned from the same episodes. The logger "rlsvi" reports it at the level INFO,
    `uses_table` tells it at any time, and `acting` is the agent in use.

    Parameters
    ----------
    gamma
        Discount, in [0, 1).
    seed
        Determines all randomness, including the environment's.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.TableOrFeatures(seed=0).learn(gymnasium.make("CartPole-v1"), 5)
    >>> agent.episodes
    5
    """

    gamma: float = 0.99
    seed: Seed = None

    _broken = staticmethod(diverged)
    needs_horizon = False
    _samples_first = True

    def _check(self) -> None:
        self._inner = BoundedRLSVI(gamma=self.gamma, seed=0), DiscountedPSRL(gamma=self.gamma, seed=0)

    @property
    def layout(self) -> Any:
        """The layout of observations."""
        return self._problem_basis.layout

    @property
    def uses_table(self) -> bool:
        """Whether it learns with a table at present."""
        return self._learner is None or bool(self._learner.table)

    @property
    def held(self) -> int:
        """For how many steps each action is held: 1 with a table."""
        return 1 if self.uses_table else int(self._using(False, self._learner.active).held)

    @property
    def acting(self) -> Agent:
        """The agent in use, for a look at its properties; to learn, use this agent."""
        agent: Agent = self._using(self.uses_table, self._learner and self._learner.active)
        return agent

    def _using(self, table: bool, learner: Any = None) -> Any:
        """Return the agent that learns with a table, or with features, after giving it a learner."""
        return self._inner[table]._on_behalf_of(self, learner, TABLE_REMEDY if table else FEATURES_REMEDY)

    @property
    def _choice(self) -> "Judgement":
        """The last decision, and what it is based on."""
        return self._learner.choice if self._learner else Judgement()

    @property
    def update_every(self) -> int | None:  # type: ignore[override]
        """The number of steps after which to learn and plan within an episode."""
        return self._inner[self.uses_table].update_every

    def _uses_sample(self, learner: Any) -> bool:
        return self._inner[learner.table]._uses_sample(learner.active)

    def _notice(self) -> None:
        """Warn as the agent in use does."""
        self.acting._notice()

    def _what_to_try(self) -> str:
        return self.acting._what_to_try()

    def _facts(self) -> dict[str, str]:
        """Return why a table or features learn, and what the agent in use tells."""
        return {"choice": self.explain(), **self.acting._facts()}

    def _returns(self) -> Floats:
        return self.acting._returns()

    def _advise(self) -> str:
        undecided = self.uses_table and self._choice.reason in (START, UNKNOWN)
        if undecided and 0 < self.episodes < CHECKED_FROM:
            return (
                "it is too early to tell, because it may still change from a table to features: let it learn for "
                "more episodes."
            )
        return self.acting._advise()

    def diagnostics(self) -> dict[str, float]:
        """Return what the agent in use tells."""
        return self.acting.diagnostics()

    def _take_on(self, task: Task, env: Any = None) -> None:
        self._take_layout(of(env))
        super()._take_on(task, env)

    def explain(self) -> str:
        """Return whether it learns with a table or with features, and the numbers that decided it.

        Returns
        -------
        str
            One or two sentences.
        """
        return self._choice.told(self.uses_table)

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<p>{escape(self.explain())}</p>"

    def new_learner(self, task: Task, example: Any) -> "ChoosingLearner":
        """Return a learner without experience, which begins with a table."""
        active: Any = self._using(True).new_learner(task, example)
        if is_table(self.layout):
            return ChoosingLearner(self, task, active, True, None, Judgement(FEW_VALUES))
        return ChoosingLearner(self, task, active, True, Record.empty(), Judgement())

    def restored_learner(self, task: Task, file: Archive) -> "ChoosingLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        if not isinstance(self._problem_basis, Observed):
            raise ArchiveError("is damaged: it does not say what observations are")
        table = bool(file.take("table", (1,), np.bool_)[0])
        active: Any = self._using(table).restored_learner(task, file)
        kept = "record.x" in file and not is_table(self.layout)
        record = Record.read(file, self.layout, task.actions, table) if kept else None
        if record is not None and (len(record.episodes), record.steps) != tuple(active.counters[:2]):
            raise ArchiveError("is damaged: its record of episodes does not fit its counters")
        return ChoosingLearner(self, task, active, table, record, Judgement.read(file))


class ChoosingLearner:
    """The learner that is in use, and the record of all episodes until the choice is final."""

    def __init__(
        self,
        agent: TableOrFeatures,
        task: Task,
        active: Any,
        table: bool,
        record: "Record | None",
        choice: "Judgement",
    ) -> None:
        self.agent, self.task, self.layout = agent, task, agent.layout
        self.active, self.table, self.record, self.choice = active, table, record, choice
        self.played: tuple[list[Step], ...] = ()  # the steps of this episode, in parts

    @property
    def counters(self) -> Longs:
        """Those of the learner in use: episodes and steps first."""
        counters: Longs = self.active.counters
        return counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Look at an observation, and keep it as a vector if it may be recorded."""
        place: Place = self.active.look(h, observation, mask, learning)
        if self.record is None or not learning:
            return place
        return place._replace(block=vector_of(self.layout, observation) + 0.0)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Any:
        """Return a plan of the learner in use."""
        return self.active.plan(sampled, stream, learning)

    def values(self, plan: Any, place: Place) -> Floats:
        """Return Q(s, .) of the learner in use."""
        Q: Floats = self.active.values(plan, place)
        return Q

    def remember(self, steps: list[Step], plan: Any, ended: bool) -> "ChoosingLearner":
        """Learn, and decide at the end of an episode how to learn from the next one on."""
        later = copy(self)
        later.active = self.active.remember(steps, plan, ended)
        if self.record is not None:
            later.played = (*self.played, steps)
            if ended:
                steps = [step for part in later.played for step in part]
                later.record = self.record.with_episode(steps, self.table)
                later.played = ()
                later._decide()
        return later

    def _decide(self) -> None:
        """Change the learner if the evidence says so, and drop the record when the choice is final."""
        record = self.record
        assert record is not None
        changes = record.changes
        if (judged := self._judge(record)) is not None:
            table, self.choice = judged
            if table != self.table:
                self.active, self.table, changes = self._replay(record, table), table, changes + 1
                log.info("%s", self.choice.told(table))
        holds = not self.table and self.agent._using(False, self.active).held > 1
        proven = (
            record.tables[-2 * FEWEST_EPISODES :] == [self.table] * 2 * FEWEST_EPISODES
        )  # returns have not fallen since a change
        long = record.steps >= (FINAL_STEPS if proven else 10 * FINAL_STEPS) or record.numbers >= FINAL_NUMBERS
        if holds or changes >= CHANGES or (long and self.choice.reason != START):
            self.record = None

    def _judge(self, record: "Record") -> "tuple[bool, Judgement] | None":
        """Return whether to learn with a table from now on, and why; or None if it is not the time to decide."""
        episodes, table = len(record.episodes), self.table
        returns = record.fallen_returns()
        if returns is not None and (record.is_rewarded or record.is_random):
            return not table, Judgement(FELL, episodes, record.known, *returns)
        went_back = self.choice.reason == FELL and episodes < 2 * self.choice.episodes
        if went_back or not is_judged(episodes):
            return None
        seen = record.seen / record.counted
        if table and seen < LEAST_SEEN and record.counted >= (FEWEST_WHOLE if record.is_whole else FEWEST_REAL):
            return False, Judgement(NEW, episodes, seen)
        if record.is_random and episodes >= FEWEST_EPISODES:
            with one_thread():
                gain, error, *errors = self._compare(record)
            if gain > FEATURES_SURE * error or gain < -TABLE_SURE * error:
                table = gain < 0
            return table, Judgement(TABLE if table else FEATURES, episodes, record.known, *errors)
        recurs = record.known >= LEAST_KNOWN
        return table or recurs, Judgement(KNOWN if recurs else UNKNOWN, episodes, record.known)

    def _compare(self, record: "Record") -> tuple[float, float, float, float]:
        """Return by how much features predict an episode better than a table, its standard error, and both errors.

        A table predicts the mean of what the same observation and action led to, with the overall mean as one more
        outcome. Errors are roots of mean squares.
        """
        steps = [step for episode in record.episodes for step in episode]
        row, action = np.array([step[:2] for step in steps]).T
        ends, at = np.cumsum([len(episode) for episode in record.episodes]), np.arange(len(steps))
        last, episode = np.isin(at, ends - 1), np.searchsorted(ends, at, side="right")
        reward = np.array([step[2] for step in steps])
        gamma = min(MOST_DISCOUNT, self.agent.gamma)
        reward[last & np.array([step[3] != END for step in steps])] += gamma / (1 - gamma) * reward.mean()
        led_to = discounted_sums(reward, last, gamma)

        chosen, cell = judges(len(steps)), row * self.task.actions + action
        sample = Sample(
            np.array([record.x[i] for i in row[chosen]]), action[chosen], episode[chosen], led_to[chosen]
        )
        phi = self.agent._using(False)._features_of(self.task, sample, len(steps), RIDGE)
        errors = np.empty((2, len(chosen)))
        for half in (0, 1):
            held, known = sample.episode % 2 == half, episode % 2 != half
            b = led_to - led_to[known].mean()
            sums, times = (np.bincount(cell[known], each, cell.max() + 1) for each in (b[known], None))
            table, away = (sums / (times + 1))[cell[chosen]], sample._replace(b=b[chosen])
            theta = weights(phi, self.task.actions, away, ~held, RIDGE)
            errors[:, held] = (table - away.b)[held] ** 2, errors_of(phi, theta, away)[held]
        _, number = np.unique(sample.episode, return_inverse=True)
        gains = np.bincount(number, errors[0] - errors[1])
        error = float(gains.std(ddof=1)) / math.sqrt(len(gains))
        return float(gains.mean()), error, *np.sqrt(errors.mean(axis=1)).tolist()

    def _replay(self, record: "Record", table: bool) -> Any:
        """Return a learner of the other kind that has learned from all episodes."""
        example = next(iter(record.replay(self.layout, self.active)))[0].place.observation
        learner = self.agent._using(table).new_learner(self.task, self.task.checked(example))
        for steps in record.replay(self.layout, learner):
            learner = learner.remember(steps, None, True)
        return learner

    def exported(self, plan: Any) -> Any:
        """Return the arrays of a policy that needs only NumPy."""
        return self.active.exported(plan)

    def state(self) -> dict[str, Any]:
        """Return the arrays of the learner in use, the last decision, and the record."""
        arrays = {**self.active.state(), "table": np.array([self.table])}
        if self.choice != Judgement():
            arrays["choice"] = np.array(self.choice)
        return arrays if self.record is None else arrays | self.record.state(self.table)


def is_judged(episodes: int) -> bool:
    """Return whether to compare a table and features after this many episodes: 2, 3, 4, 6, 8, 12, 16, .."""
    part = episodes // 3 if episodes % 3 == 0 else episodes
    return episodes > 1 and part & (part - 1) == 0


START, NEW, KNOWN, UNKNOWN, FEATURES, TABLE, FELL, FEW_VALUES = range(8)  # reasons of a choice


class Judgement(NamedTuple):
    """The last decision between a table and features, and the numbers that it is based on."""

    reason: float = START
    episodes: float = 0
    share: float = 0.0  # of steps that recur
    table: float = 0.0  # the error of its predictions, or the mean return
    features: float = 0.0

    def told(self, table: bool) -> str:
        """Return the decision as a sentence."""
        if self.reason == START:
            return (
                "Learning with a table for now: whether observations recur, so that a table is enough, is judged "
                "from the second episode on."
            )
        share, kind = f"{100 * self.share:.0f}%", "a table" if table else "features"
        taken = (
            f"in {share} of recent steps the action had been taken at the same observation in an earlier episode"
        )
        errors = (
            "from other episodes, what steps led to is predicted with an error of "
            f"{self.table:.3g} by a table and of {self.features:.3g} by features; small differences do not count"
        )
        now, before = (self.features, self.table) if table else (self.table, self.features)
        other = "features" if table else "a table"
        why = {
            NEW: f"{share} of observations were seen in an earlier episode",
            KNOWN: taken,
            UNKNOWN: taken,
            FEATURES: errors,
            TABLE: errors,
            FELL: f"returns had fallen from {before:.4g} to {now:.4g} with {other}",
            FEW_VALUES: "observations consist of categories with so few values that features would be a table too",
        }
        after = f", as judged after {self.episodes:.0f} episodes" if self.episodes else ""
        return f"Learning with {kind}{after}: {why[int(self.reason)]}."

    @classmethod
    def read(cls, file: Archive) -> "Judgement":
        """Read the decision from a file; older files do not have it."""
        if "choice" not in file:
            return cls()
        reason, *numbers = file.take("choice", (len(cls._fields),)).tolist()
        if reason not in range(FEW_VALUES + 1):
            raise ArchiveError("is damaged: its choice of a table or features has no reason")
        return cls(reason, *numbers)


class Record(NamedTuple):
    """All episodes, so that they can be learned from in another way: every distinct observation once, and steps.

    `with_episode` returns a longer record and leaves this one unchanged. An observation is seen again if it
    occurred in an earlier episode; a step recurs if its observation and its action did, together.
    """

    rows: dict[bytes, int]
    x: list[Floats]
    legal: list[Bools]
    cells: set[tuple[int, int]]  # observations and actions
    episodes: list[list[tuple[int, int, float, int]]]  # observation, action, reward, next observation or END
    tables: list[bool]  # whether a table played, of each episode
    recurring: list[int]  # steps of each episode
    returns: list[float]  # of each episode
    steps: int = 0
    seen: int = 0  # steps at an observation seen again

    @classmethod
    def empty(cls) -> "Record":
        """Return a record of no episodes."""
        return cls({}, [], [], set(), [], [], [], [])

    @property
    def counted(self) -> int:
        """The number of steps after the first episode."""
        return self.steps - sum(len(episode) for episode in self.episodes[:1])

    @property
    def known(self) -> float:
        """The part of the steps of recent episodes, those after the last judgement, that recur."""
        first = max(filter(is_judged, range(len(self.episodes))), default=1)
        return sum(self.recurring[first:]) / sum(len(episode) for episode in self.episodes[first:])

    @property
    def is_rewarded(self) -> bool:
        """Whether any step has paid more than 0."""
        return any(step[2] > 0 for episode in self.episodes for step in episode)

    @property
    def is_whole(self) -> bool:
        """Whether all numbers of all observations are whole."""
        return all((x == np.rint(x)).all() for x in self.x)

    @property
    def is_random(self) -> bool:
        """Whether most actions that were taken again at an observation have led to different ones."""
        led_to: dict[tuple[int, int], list[int]] = {}
        for row, action, _, following in (step for episode in self.episodes for step in episode):
            led_to.setdefault((row, action), []).append(following)
        again = [len(set(found)) > 1 for found in led_to.values() if len(found) > 1]
        return 2 * sum(again) > len(again)

    @property
    def changes(self) -> int:
        """How many times the learner has changed before the last episode."""
        return int(np.count_nonzero(np.diff(self.tables)))

    def fallen_returns(self) -> tuple[float, float] | None:
        """Return mean returns with a table and with features, if most of the gain is lost since the last change.

        The gain is what episodes before the change earned more than the first ones. If they earned no more, any
        clear loss counts.
        """
        begins = [0, 0, *(np.flatnonzero(np.diff(self.tables)) + 1)]
        returns = np.array(self.returns)
        after = returns[begins[-1] :]
        before = returns[begins[-2] : begins[-1]][-len(after) :]
        if min(len(before), len(after)) < FEWEST_EPISODES:
            return None
        if not is_lost(returns[:FEWEST_EPISODES], before, after, 2.0):
            return None
        usual, now = float(before.mean()), float(after.mean())
        return (now, usual) if self.tables[-1] else (usual, now)

    @property
    def numbers(self) -> int:
        """How many numbers the observations hold."""
        return sum(len(x) for x in self.x[:1]) * len(self.x)

    def with_episode(self, steps: list[Step], table: bool) -> "Record":
        """Return a record with one more episode, whose places have the vectors of observations as `block`."""
        rows, x, legal = self.rows.copy(), self.x.copy(), self.legal.copy()

        def row(place: Place) -> int:
            i = rows.setdefault(key_of(place.block), len(rows))
            if i == len(x):
                x.append(place.block)
                legal.append(place.legal)
            else:
                legal[i] = legal[i] | place.legal
            return i

        episode = [
            (row(place), action, reward, END if following is None else row(following))
            for place, action, reward, following in steps
        ]
        seen = sum(step[0] < len(self.rows) for step in episode)
        taken = [step[:2] for step in episode]
        return Record(
            *(rows, x, legal, self.cells.union(taken)),
            [*self.episodes, episode],
            [*self.tables, table],
            [*self.recurring, sum(cell in self.cells for cell in taken)],
            [*self.returns, sum(step[2] for step in episode)],
            *(self.steps + len(episode), self.seen + seen),
        )

    def replay(self, layout: Layout, learner: Any) -> Iterator[list[Step]]:
        """Yield all episodes as steps that a learner has looked at."""

        def place(h: int, i: int) -> Place:
            seen: Place = learner.look(h, observation_of(layout, self.x[i]), self.legal[i])
            return seen

        for episode in self.episodes:
            yield [
                Step(place(h, i), action, reward, None if following == END else place(h + 1, following))
                for h, (i, action, reward, following) in enumerate(episode)
            ]

    def state(self, table: bool) -> dict[str, Any]:
        """Return the arrays that a file must contain, if this is how it learns now."""
        steps = [step for episode in self.episodes for step in episode]
        changed = {} if self.tables == [table] * len(self.tables) else {"record.tables": np.array(self.tables)}
        return {
            "record.x": np.array(self.x),
            "record.legal": np.array(self.legal),
            "record.steps": np.array([(i, a, y) for i, a, _, y in steps], np.int64),
            "record.reward": np.array([step[2] for step in steps]),
            "record.lengths": np.array([len(episode) for episode in self.episodes], np.int64),
            **changed,
        }

    @classmethod
    def read(cls, file: Archive, layout: Layout, actions: int, table: bool) -> "Record":
        """Read a record from a file, checking its observations, and that all its indices lie within bounds.

        Older files do not say whether a table played an episode: all were played as the last one, then.
        """
        (N, _), (T, _) = file.shape("record.x", 2), file.shape("record.steps", 2)
        (E,) = file.shape("record.lengths", 1)
        x, legal = file.take("record.x", (N, layout.size)), file.take("record.legal", (N, actions), np.bool_)
        steps, reward = (
            file.take("record.steps", (T, 3), np.int64),
            file.take("record.reward", (T,), most=LARGEST_NUMBER),
        )
        lengths = file.take_within("record.lengths", (E,), np.int64, 1, T)
        rows, action, following = steps.T
        within = (steps >= (0, 0, END)).all() and (steps < (N, actions, N)).all() and legal.any(axis=1).all()
        if lengths.sum() != T or not within or not legal[rows, action].all():
            raise ArchiveError("is damaged: its record of episodes makes no sense")
        tables = [table] * E
        if "record.tables" in file:
            tables = file.take("record.tables", (E,), np.bool_).tolist()
        record, begin = Record.empty(), 0
        places = [Place(0, None, legal[i], block=x[i]) for i in range(N)]
        for length, kind in zip(lengths.tolist(), tables, strict=True):
            episode = [
                Step(places[i], a, r, None if y == END else places[y])
                for i, a, r, y in zip(
                    *(column[begin : begin + length].tolist() for column in (rows, action, reward, following)),
                    strict=True,
                )
            ]
            record, begin = record.with_episode(episode, kind), begin + length
        try:
            held = [vector_of(layout, observation_of(layout, one)) for one in x]
        except ValueError:
            raise ArchiveError("is damaged: an observation of its record lies outside of the space") from None
        if not np.array_equal(np.array(record.x), x) or not np.array_equal(np.array(held), x):
            raise ArchiveError("is damaged: observations of its record are not in order")
        return record
