"""Raw episodes: every distinct observation once, and the steps between them, to be learned from in another way."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import Place, Step
from rlsvi.agents.tabular.discounted_psrl import key_of
from rlsvi.bases.layout import Layout, observation_of, vector_of
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import LARGEST
from rlsvi.core.compile import Bools, Floats

END = -1
RawStep = tuple[int, int, float, int]  # observation, action, reward, and the next observation or END


class Record(NamedTuple):
    """Episodes as rows of observations. `with_episode` returns a longer record and leaves this one unchanged.

    A step recurs if its observation was seen in an earlier episode. Steps of the first episode do not count.
    """

    rows: dict[bytes, int]
    x: list[Floats]
    legal: list[Bools]
    episodes: list[list[RawStep]]
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

    def replayed(self, layout: Layout, learner: Any) -> Iterator[list[Step]]:
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


def no_record() -> Record:
    """Return a record without episodes."""
    return Record({}, [], [], [])


def read_record(file: Archive, layout: Layout, actions: int) -> Record:
    """Read a record from a file, checking its observations, and that all its indices lie within bounds."""
    width = layout.measured + len(layout.counts)
    (N, _), (T, _) = file.shape("record.x", 2), file.shape("record.steps", 2)
    (E,) = file.shape("record.lengths", 1)
    x, legal = file.take("record.x", (N, width)), file.take("record.legal", (N, actions), np.bool_)
    steps, reward = file.take("record.steps", (T, 3), np.int64), file.take("record.reward", (T,), most=LARGEST)
    lengths = file.take_within("record.lengths", (E,), np.int64, 1, T)
    rows, action, following = steps.T
    within = (steps >= (0, 0, END)).all() and (steps < (N, actions, N)).all() and legal.any(axis=1).all()
    if lengths.sum() != T or not within or not legal[rows, action].all():
        raise ArchiveError("is damaged: its record of episodes makes no sense")
    record, begin = no_record(), 0
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
