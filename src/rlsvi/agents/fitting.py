"""Learning from a log: `fit`, which replays what the log says through the same code as `learn`."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Self

from gymnasium import Env

from rlsvi.agents.progress import NoProgressWarning
from rlsvi.logs.replay import Replay


class Fitting:
    """The part of an agent that learns from logs."""

    learn: Any
    task_of: Any
    arguments: Any
    steps: Any
    _missed_reward: bool

    def fit(
        self,
        log: Any,
        env: Env[Any, Any] | None = None,
        *,
        columns: Mapping[str, Any] | None = None,
        progress: bool | None = None,
        chunk: int | None = None,
        executor: str | None = None,
    ) -> Self:
        """Learn from a log of transitions, as if the agent had lived through it.

        The log is learned from episode by episode, as in `learn`, except that it says which actions were taken.
        An agent that has the same arguments and seed as the one whose learning was recorded is equal to it
        afterwards, bit for bit, its random streams included. With another seed, what is kept of the data is still
        the same; what depends on earlier samples, such as the values where the next plan starts, is not.
        All of the log is checked first, and it fits into memory. After an error the agent is as before; after an
        interrupt, it is as after the last complete episode.

        log : a polars frame, the path of a Parquet file or of a folder of such files, a pandas or Arrow table, a
            Minari data set, or an iterator of such pieces. Its columns are episode, step, observation, action,
            reward, next_observation and terminated, and optionally truncated (an episode that just stops counts
            as truncated), mask and next_mask (which actions are legal) and propensity. The order of its rows does
            not matter: episodes are learned from in the order of their numbers. An observation of several numbers
            is a list, or has a column for each: observation_0, observation_1, ..; one of several parts may be a
            Struct, or have a column for each part: observation_KEY. Numbers are those that the environment gives.
        env : the environment that the log comes from, which is not played, or envs.Spaces(..). If None, the spaces
            are those of the log: states and actions up to the largest number met, or vectors without bounds.
        columns : other names of columns: {"reward": "r", "observation": ["position", "speed"]}.
        progress : as for `learn`.
        chunk, executor : for logs that do not fit into memory; see `BoundedRLSVI.fit`. Others do not take them.
        """
        from rlsvi.logs.reading import replay_of  # which knows of tasks

        if chunk is not None or executor is not None:
            raise ValueError(
                f"{type(self).__name__} reads a log as a whole: for chunk= and executor=, use rlsvi.BoundedRLSVI"
            )
        replay = replay_of(log, env, columns)
        replay.check_length(self.task_of(replay).horizon)
        with self._unchanged_by_errors():
            self._relive(replay, progress)
        return self

    def _relive(self, replay: Replay, progress: bool | None) -> None:
        """Learn from all episodes of a log, which need not show progress."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoProgressWarning)
            self.learn(replay, episodes=replay.log.episodes, progress=progress)
        self._missed_reward = False  # nobody has heard of it

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """Context manager that restores everything learned before on an error, but not on an interrupt.

        What cannot be copied is kept as it is: a learner whose `remember` returns a new one does not change.
        """
        shared = [self, self.__dict__.get("_env"), *self.arguments().values()]
        known, before = {id(thing): thing for thing in shared}, {}
        for name, value in self.__dict__.items():
            copies = dict(known)
            try:
                before[name], known = deepcopy(value, copies), copies
            except Exception:  # of any kind: it is what the class of the user raises
                before[name] = value
        steps = self.steps
        try:
            yield
        except Exception as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if self.steps != steps:
                error.add_note(
                    "the agent keeps what it had learned from the log by then: its learner cannot be copied, and "
                    "its remember changes it instead of returning a new one"
                )
            raise
