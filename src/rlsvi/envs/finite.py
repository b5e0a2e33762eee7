"""A FiniteMDP as a Gymnasium environment."""

from math import ceil, sqrt
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rlsvi.core.checks import flag, shown
from rlsvi.core.random import pick
from rlsvi.envs.environment import Environment, Info
from rlsvi.envs.render import GREY, INK, Canvas, mix
from rlsvi.mdp.finite import FiniteMDP, transition
from rlsvi.mdp.solve import check_alike


class FiniteMDPEnv(Environment):
    """A thin wrapper around the table: observations are state numbers, actions are action numbers.

    The episode ends, with `terminated`, after the last period or in an absorbing state; its terminal reward
    is paid with the last step. If some action is illegal, info["action_mask"] contains the legal ones.
    The environment draws from its own stream, in the order of the fused loop: the first state, then
    successor and reward of each step, then the terminal reward.

    Parameters
    ----------
    mdp : the problem.
    render_mode : "rgb_array" for pictures, "ansi" for a line of text, or None.
    endless : continue after the last period, forever; for an MDP whose periods are all alike.
    """

    def __init__(self, mdp: FiniteMDP, render_mode: str | None = None, endless: bool = False) -> None:
        if not isinstance(mdp, FiniteMDP):
            raise TypeError(f"mdp must be a FiniteMDP, such as rlsvi.mdp.chain(), got {shown(mdp)}")
        super().__init__(render_mode)
        if flag("endless", endless):
            check_alike(mdp)
        self.mdp, self.endless = mdp, endless
        self.observation_space = gymnasium.spaces.Discrete(mdp.states)
        self.action_space = gymnasium.spaces.Discrete(mdp.actions)
        self._masked = not mdp.table.legal[:, ~mdp.table.absorbing].all()
        self._path: list[int] = []  # s_0 .. s_h of this episode, and a_0 .. a_{h-1}
        self._actions: list[int] = []

    @property
    def horizon(self) -> int | None:
        """H, the maximum number of steps per episode; None if episodes do not end."""
        return None if self.endless else int(self.mdp.horizon)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[int, Info]:
        """Start an episode; a seed restarts the random stream."""
        super().reset(seed=seed)
        self._path, self._actions = [int(pick(self._stream, self.mdp.table.start))], []
        return self._path[-1], self._info()

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take one step; an invalid action is refused and changes nothing."""
        t, h = self.mdp.table, 0 if self.endless else len(self._actions)
        a = self._checked(action, t.actions)
        s = self._path[-1]
        if not t.legal[h % len(t.legal), s, a]:
            raise ValueError(f"action {a} is not legal in state {s}: choose one that info['action_mask'] allows")
        last = h + 1 == t.horizon and not self.endless
        next_state, reward, ended = transition(t, h, last, s, a, self._stream)
        if self.endless:  # the complete path would fill the memory
            del self._path[:-1], self._actions[:]
        self._path.append(int(next_state))
        self._actions.append(a)
        self._running = not ended
        return self._path[-1], float(reward), bool(ended), False, self._info()

    def _info(self) -> dict[str, Any]:
        if not self._masked:
            return {}
        legal, h = self.mdp.table.legal, min(len(self._actions), self.mdp.horizon - 1)
        mask = legal[h % len(legal), self._path[-1]].astype(np.int8)
        return {"action_mask": mask if mask.any() else np.ones_like(mask)}

    def _period(self) -> str:
        return "without end" if self.endless else f"period {len(self._actions)} of {self.horizon}"

    def _text(self) -> str:
        return f"{self._period()}: state {self._path[-1]} of {self.mdp.states}"

    def _picture(self) -> NDArray[np.uint8]:
        """Draw any MDP: its states in a square, with those of this episode shaded."""
        columns = ceil(sqrt(self.mdp.states))
        rows = ceil(self.mdp.states / columns)
        cell, margin = max(6, min(48, 480 // columns)), 16
        canvas = Canvas(columns * cell + 2 * margin, rows * cell + 3 * margin)
        visited = set(self._path)
        for s in range(self.mdp.states):
            y, x = (margin + k * cell for k in divmod(s, columns))
            colour = mix(GREY, INK, 0.35) if s in visited else GREY
            canvas.box(x + 1, y + 1, x + cell - 1, y + cell - 1, colour, radius=cell / 6)
        row, column = divmod(self._path[-1], columns)
        canvas.agent((margin + (column + 0.5) * cell, margin + (row + 0.5) * cell), cell / 4)
        if self.horizon:
            canvas.progress(len(self._actions) / self.horizon, margin=margin / 2)
        return canvas.image()
