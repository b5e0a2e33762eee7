"""A log as an environment, in which the log dictates the actions: learning in it is learning from the log."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Env, Wrapper

from rlsvi.core.compile import Bools
from rlsvi.envs.spaces import Spaces
from rlsvi.envs.task import check_env
from rlsvi.offline.log import (
    LoggedEpisodes,
    episodes_of,
    errors_by_piece,
    join_pieces,
    ordered_columns,
    pieces_of,
    spaces_in,
)


class Replay(Wrapper[Any, Any, Any, Any]):
    """Plays the episodes of a log in their order. `env` is the environment they come from, which is not played."""

    def __init__(self, log: LoggedEpisodes, env: Env[Any, Any]) -> None:
        super().__init__(env)
        self.log = log
        self.episode = self.row = -1
        self.times = 1  # for how many steps an action is held in a decision
        self.open_end = False  # whether the last episode goes on after the log

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """How the environment was made; that it is replayed does not matter."""
        return self.env.spec

    @property
    def next_action(self) -> Any:
        """The action that comes next in the log, counted from 0, or the numbers of the values of its parts."""
        action = self.log.action[self.row]
        return int(action) if np.ndim(action) == 0 else action

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin the next episode, which no seed changes."""
        self.episode += 1
        self.row = int(self.log.start[self.episode])
        return self.log.observation.at(self.row), _info(self.log.mask.at(self.row))

    def step(self, action: Any) -> Any:
        """Return what followed the next action of the log, whatever `action` is."""
        first, log, end = self.row, self.log, int(self.log.start[self.episode + 1])
        self.row = after = self._decision_end(first, end)
        i = after - 1
        reward = log.reward[first]
        if after - first > 1:
            reward = 0.0
            for r in log.reward[first:after].tolist():  # in this order, as when actions are held
                reward += r
        observation = log.following.at(i) if after == end else log.observation.at(after)
        cut = after == end and not (self.open_end and after == log.steps)
        terminated = bool(log.terminated[i])
        truncated = bool(log.truncated[i] or (cut and not terminated))
        return observation, float(reward), terminated, truncated, _info(log.next_mask.at(i))

    def hold(self, times: int) -> bool:
        """Let each decision be `times` steps of one action from now on, if the rest of the log is so."""
        if times == self.times:
            return True
        before, self.times = self.times, times
        for episode in range(self.episode + 1, self.log.episodes):
            row, end = self.log.start[episode : episode + 2].tolist()
            while row < end:
                following = self._decision_end(row, end)
                if (self.log.action[row:following] != self.log.action[row]).any():
                    self.times = before
                    return False
                row = following
        return True

    def check_length(self, horizon: int) -> None:
        """Raise an error if an episode is longer than the number of periods."""
        lengths = np.diff(self.log.start)
        if horizon and lengths.max() > horizon:
            row = self.log.row[self.log.start[np.argmax(lengths > horizon)] + horizon]
            raise ValueError(
                f"the log has an episode of {lengths.max()} steps, but this is a task of {horizon} periods (the "
                f"first row beyond it is {row}): give the agent horizon={lengths.max()}, or cut the episodes"
            )

    def _decision_end(self, row: int, end: int) -> int:
        """Return the row after a decision: an action is held until illegal, or until the episode ends."""
        for i in range(row, min(row + self.times, end)):
            legal = self.log.next_mask.at(i)
            if legal is not None and not legal[self.log.action[row]].all():
                return i + 1
        return min(row + self.times, end)


def _info(mask: Bools | None) -> dict[str, Any]:
    return {} if mask is None else {"action_mask": mask}


def replay_of(log: Any, env: Env[Any, Any] | None = None, columns: Mapping[str, Any] | None = None) -> Replay:
    """Return a log as an environment, after checking it all.

    Without the environment that it comes from, or envs.Spaces, the spaces are those of the log. `columns` are the
    names of columns that are called otherwise; see `Agent.fit`.
    """
    if isinstance(log, Replay):
        return Replay(log.log, log.env)
    if env is None and all(hasattr(log, name) for name in ("observation_space", "action_space")):
        env = Spaces(log.observation_space, log.action_space)  # a Minari data set knows them, and often more
        env.spec = getattr(log, "env_spec", None)
    if env is not None:
        check_env(env)
    pieces = pieces_of(log)
    with errors_by_piece(pieces):
        found = ordered_columns(join_pieces(pieces), columns)
        env = spaces_in(found) if env is None else env
        return Replay(episodes_of(found, env), env)
