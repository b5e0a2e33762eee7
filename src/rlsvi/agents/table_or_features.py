"""A table where observations recur, features where they do not: the default where observations are not numbered.

    learn with a table, and keep all episodes
    after each episode
        share = the part of the steps of all episodes but the first at an observation seen in an earlier episode
        if share < 1/10: learn all episodes with features from now on
        if share > 1/2: learn all episodes with a table from now on
    until 10,000 steps are kept, or actions are held for several steps; then the choice is final
    (never before the first decision)

A picture of a maze is a table however many numbers it has. Where nothing recurs, all cells are untried and a
table plays at random; the first decision is made as soon as 30 steps count, after two or three short episodes.
"""

import logging
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import Place, Step, diverged
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.practice.learner import REPEAT, PracticeAgent
from rlsvi.agents.tabular.discounted_psrl import DiscountedPSRL, key_of
from rlsvi.bases import Observed, of
from rlsvi.bases.layout import Layout, observation_of, vector_of
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import LARGEST
from rlsvi.core.compile import Bools, Floats, Longs, Words
from rlsvi.core.random import Seed
from rlsvi.envs.task import Task

LEAST, MOST = 0.1, 0.5  # shares below which features learn, and above which a table does
FIRST = 30  # the number of steps that a decision is based on, at least
FINAL, NUMBERS = 10_000, 2**24  # steps, and numbers of observations, beyond which the choice is final
TABLE_REMEDY = "try another gamma=, or rlsvi.DiscountedPSRL with another optimism="
FEATURES_REMEDY = (
    "try a larger gamma=, or rlsvi.BoundedRLSVI with repeat=1 or 4, a larger trace=, or another basis=, such as "
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
    gamma : discount, in [0, 1).
    seed : determines all randomness, including the environment's.
    """

    gamma: float = 0.99
    seed: Seed = None

    _broken = staticmethod(diverged)
    needs_horizon = False
    _samples_first = True

    def _check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        table, features = DiscountedPSRL(gamma=self.gamma, seed=0), BoundedRLSVI(gamma=self.gamma, seed=0)
        table._remedy, features._remedy = TABLE_REMEDY, FEATURES_REMEDY
        self._inner: dict[bool, Agent] = {True: table, False: features}

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
        return 1 if self.uses_table else int(self._learner.active.counters[REPEAT])

    @property
    def acting(self) -> Agent:
        """The agent in use, for a look at its properties; to learn, use this agent."""
        assert self._task is not None
        inner = self.inner(self.uses_table, self._task)
        inner._learner = self._learner and self._learner.active
        return inner

    @property
    def update_every(self) -> int | None:  # type: ignore[override]
        """The number of steps after which to learn and plan within an episode."""
        return self._inner[self.uses_table].update_every

    def _uses_sample(self, learner: Any) -> bool:
        """Return whether to act on a sample of the learner's posterior rather than on the mean."""
        return self._inner[learner.table]._uses_sample(learner.active)

    def _notice(self) -> None:
        """Warn as the agent in use does."""
        acting = self.acting
        acting._missed_reward = self._missed_reward
        acting._notice()
        self._missed_reward = acting._missed_reward

    def diagnostics(self) -> dict[str, float]:
        """Return what the agent in use tells."""
        return self.acting.diagnostics()

    def inner(self, table: bool, task: Task) -> Agent:
        """Return the agent of one kind, prepared for the task."""
        agent: Agent = self._inner[table]
        agent._problem_basis, agent._task = self._problem_basis, task
        return agent

    def _take_on(self, task: Task, env: Any = None) -> None:
        """Start a task, or check that it is the one learned so far."""
        self._take_layout(of(env))
        super()._take_on(task, env)

    def new_learner(self, task: Task, example: Any) -> "ChoosingLearner":
        """Return a learner without experience, which begins with a table."""
        active: Any = self.inner(True, task).new_learner(task, example)
        return ChoosingLearner(self, task, active, True, Record({}, [], [], []))

    def restored_learner(self, task: Task, file: Archive) -> "ChoosingLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        if not isinstance(self._problem_basis, Observed):
            raise ArchiveError("is damaged: it does not say what observations are")
        table = bool(file.take("table", (1,), np.bool_)[0])
        active: Any = self.inner(table, task).restored_learner(task, file)
        record = Record.read(file, self.layout, task.actions) if "record.x" in file else None
        if record is not None and (len(record.episodes), record.steps) != tuple(active.counters[:2]):
            raise ArchiveError("is damaged: its record of episodes does not fit its counters")
        return ChoosingLearner(self, task, active, table, record)


class ChoosingLearner:
    """The learner that is in use, and the record of all episodes until the choice is final."""

    def __init__(self, agent: TableOrFeatures, task: Task, active: Any, table: bool, record: "Record | None"):
        self.agent, self.task, self.layout = agent, task, agent.layout
        self.active, self.table, self.record = active, table, record
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
                later.record = self.record.with_episode([step for part in later.played for step in part])
                later.played = ()
                later._decide()
        return later

    def _decide(self) -> None:
        """Change the learner if the evidence says so, and drop the record when it is long enough."""
        record = self.record
        assert record is not None
        share = record.recurring / max(record.counted, 1)
        table = share >= (LEAST if self.table else MOST)
        if record.counted >= FIRST and table != self.table:
            self.active, self.table = self._replay(record, table), table
            log.info(
                "%.0f%% of observations were seen in an earlier episode: learning with %s from now on",
                *(100 * share, "a table" if table else "features"),
            )
        holds = not self.table and self.active.counters[REPEAT] > 1
        long = record.counted >= FIRST and (record.steps >= FINAL or record.numbers >= NUMBERS)
        if long or holds:
            self.record = None

    def _replay(self, record: "Record", table: bool) -> Any:
        """Return a learner of the other kind that has learned from all episodes."""
        inner, done = self.agent.inner(table, self.task), self.counters[:2].copy()
        example = next(iter(record.replay(self.layout, self.active)))[0].place.observation
        learner = inner.new_learner(self.task, self.task.checked(example))
        for steps in record.replay(self.layout, learner):
            learner = learner.remember(steps, None, True)
        learner.counters[:2] = done
        return learner

    def exported(self, plan: Any) -> Any:
        """Return the arrays of a policy that needs only NumPy."""
        return self.active.exported(plan)

    def state(self) -> dict[str, Any]:
        """Return the arrays of the learner in use, and the record."""
        arrays = {**self.active.state(), "table": np.array([self.table])}
        return arrays if self.record is None else arrays | self.record.state()


class Record(NamedTuple):
    """All episodes, so that they can be learned from in another way: every distinct observation once, and steps.

    `with_episode` returns a longer record and leaves this one unchanged. A step recurs if its observation was seen
    in an earlier episode. Steps of the first episode do not count.
    """

    rows: dict[bytes, int]
    x: list[Floats]
    legal: list[Bools]
    episodes: list[list[tuple[int, int, float, int]]]  # observation, action, reward, next observation or END
    steps: int = 0
    recurring: int = 0
    counted: int = 0

    @property
    def numbers(self) -> int:
        """How many numbers the observations hold."""
        return sum(len(x) for x in self.x[:1]) * len(self.x)

    def with_episode(self, steps: list[Step]) -> "Record":
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
        known = sum(step[0] < len(self.rows) for step in episode)
        counted = len(episode) if self.episodes else 0
        numbers = self.steps + len(episode), self.recurring + known, self.counted + counted
        return Record(rows, x, legal, [*self.episodes, episode], *numbers)

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

    def state(self) -> dict[str, Any]:
        """Return the arrays that a file must contain."""
        steps = [step for episode in self.episodes for step in episode]
        return {
            "record.x": np.array(self.x),
            "record.legal": np.array(self.legal),
            "record.steps": np.array([(i, a, y) for i, a, _, y in steps], np.int64),
            "record.reward": np.array([step[2] for step in steps]),
            "record.lengths": np.array([len(episode) for episode in self.episodes], np.int64),
        }

    @classmethod
    def read(cls, file: Archive, layout: Layout, actions: int) -> "Record":
        """Read a record from a file, checking its observations, and that all its indices lie within bounds."""
        (N, _), (T, _) = file.shape("record.x", 2), file.shape("record.steps", 2)
        (E,) = file.shape("record.lengths", 1)
        x, legal = file.take("record.x", (N, layout.size)), file.take("record.legal", (N, actions), np.bool_)
        steps, reward = file.take("record.steps", (T, 3), np.int64), file.take("record.reward", (T,), most=LARGEST)
        lengths = file.take_within("record.lengths", (E,), np.int64, 1, T)
        rows, action, following = steps.T
        within = (steps >= (0, 0, END)).all() and (steps < (N, actions, N)).all() and legal.any(axis=1).all()
        if lengths.sum() != T or not within or not legal[rows, action].all():
            raise ArchiveError("is damaged: its record of episodes makes no sense")
        record, begin = Record({}, [], [], []), 0
        places = [Place(0, None, legal[i], block=x[i]) for i in range(N)]
        for length in lengths.tolist():
            episode = [
                Step(places[i], a, r, None if y == END else places[y])
                for i, a, r, y in zip(
                    *(column[begin : begin + length].tolist() for column in (rows, action, reward, following)),
                    strict=True,
                )
            ]
            record, begin = record.with_episode(episode), begin + length
        try:
            held = [vector_of(layout, observation_of(layout, one)) for one in x]
        except ValueError:
            raise ArchiveError("is damaged: an observation of its record lies outside of the space") from None
        if not np.array_equal(np.array(record.x), x) or not np.array_equal(np.array(held), x):
            raise ArchiveError("is damaged: observations of its record are not in order")
        return record
