"""Finite MDPs as Gymnasium environments: any of them, and the chain, deep sea and river swim with pictures."""

from math import ceil, sqrt
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rlsvi.core.checks import flag
from rlsvi.core.random import pick
from rlsvi.envs.environment import Environment, Info
from rlsvi.envs.render import CORAL, GOLD, GREY, INK, WHITE, Canvas, Colour, mix
from rlsvi.mdp.examples import chain, deep_sea, river_swim
from rlsvi.mdp.finite import FiniteMDP, row_of, transition
from rlsvi.mdp.solve import check_alike, check_mdp


class FiniteMDPEnv(Environment):
    """A thin wrapper around the table: observations are state numbers, actions are action numbers.

    The episode ends, with `terminated`, after the last period or in an absorbing state; its terminal reward
    is paid with the last step. If some action is illegal, info["action_mask"] contains the legal ones.
    The environment draws from its own stream, in the order of the fused loop: the first state, then
    successor and reward of each step, then the terminal reward.

    Parameters
    ----------
    mdp
        The problem.
    render_mode
        "rgb_array" for pictures, "ansi" for a line of text, or None.
    endless
        Continue after the last period, forever; for an MDP whose periods are all alike.

    Examples
    --------
    >>> import rlsvi
    >>> env = rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(5))
    >>> env.reset(seed=0)
    (0, {})
    """

    def __init__(self, mdp: FiniteMDP, render_mode: str | None = None, endless: bool = False) -> None:
        check_mdp(mdp)
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


class ChainEnv(FiniteMDPEnv):
    """The chain of `rlsvi.mdp.chain`.

    Parameters
    ----------
    length
        As for `rlsvi.mdp.chain`.
    render_mode
        "rgb_array" for pictures, "ansi" for a line of text, or None.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Chain-v0", length=10)
    >>> env.observation_space, env.action_space
    (Discrete(10), Discrete(2))
    """

    def __init__(self, length: int = 50, render_mode: str | None = None) -> None:
        super().__init__(chain(length), render_mode)

    def _text(self) -> str:
        visited = set(self._path)
        cells = ["●" if s in visited else "○" for s in range(self.mdp.states)]
        cells[-1] = "★"
        cells[self._path[-1]] = "◆"
        return "".join(cells) + f"  {self._period()}"

    def _picture(self) -> NDArray[np.uint8]:
        """A row of discs: states visited in this episode are dark, the rewarded one is gold."""
        N = self.mdp.states
        pitch = max(5.0, min(56.0, 960 / N))
        margin, radius = 20.0, 0.34 * pitch
        middle = margin + 0.6 * pitch
        canvas = Canvas(round(N * pitch + 2 * margin), round(2 * margin + 1.2 * pitch + 12))

        def centre(s: int) -> tuple[float, float]:
            return margin + (s + 0.5) * pitch, middle

        canvas.line([centre(0), centre(N - 1)], max(1.5, pitch / 12), GREY)
        visited = set(self._path)
        for s in range(N - 1):
            canvas.disc(centre(s), radius, mix(GREY, INK, 0.45) if s in visited else GREY)
        canvas.coin(centre(N - 1), 0.46 * pitch)
        canvas.agent(centre(self._path[-1]), radius)
        canvas.progress(len(self._actions) / self.mdp.horizon, margin=margin / 2)
        return canvas.image()


SHALLOW: Colour = (142, 205, 220)
ABYSS: Colour = (18, 52, 96)
WOOD: Colour = (176, 104, 48)


class DeepSeaEnv(FiniteMDPEnv):
    """The deep sea of `rlsvi.mdp.deep_sea`.

    Parameters
    ----------
    size
        As for `rlsvi.mdp.deep_sea`.
    render_mode
        "rgb_array" for pictures, "ansi" for a line of text, or None.
    **options
        Other arguments of `rlsvi.mdp.deep_sea`.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/DeepSea-v0", size=5, stochastic=True)
    >>> env.observation_space
    Discrete(26)
    """

    def __init__(self, size: int = 10, *, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(deep_sea(size, **options), render_mode)
        self.size = int(size)

    def _cells(self) -> list[tuple[int, int]]:
        """Return the cells (row, column) of this episode, without the end."""
        return [divmod(s, self.size) for s in self._path if s < self.size**2]

    def _found(self) -> bool:
        """Return whether the episode ended with the treasure: in its corner, by the better action."""
        if self._running or self._cells()[-1] != (self.size - 1, self.size - 1):
            return False
        t, corner = self.mdp.table, self.size**2 - 1
        taken, other = (t.expected[row_of(t, 0, corner, a)] for a in (self._actions[-1], 1 - self._actions[-1]))
        return bool(taken > other)

    def _text(self) -> str:
        N, cells = self.size, self._cells()
        grid = np.full((N, N), "·")
        grid[-1, -1] = "★"
        for cell in cells[:-1]:
            grid[cell] = "│"
        grid[cells[-1]] = "◆"
        found = "  treasure!" if self._found() else ""
        return "\n".join([*(" ".join(row) for row in grid), self._period() + found])

    def _picture(self) -> NDArray[np.uint8]:
        """The water darkens with depth, and more where no path leads; a line shows the path so far."""
        N, cells = self.size, self._cells()
        pitch = max(6.0, min(44.0, 560 / N))
        margin, gap = 20.0, min(1.5, pitch / 12)
        canvas = Canvas(round(N * pitch + 2 * margin), round(N * pitch + 2 * margin + 14))
        for row, column in np.ndindex(N, N):
            x, y = margin + column * pitch, margin + row * pitch
            colour = mix(SHALLOW, ABYSS, row / max(N - 1, 1))
            colour = mix(colour, WHITE, 0.72) if column > row else colour
            canvas.box(x + gap, y + gap, x + pitch - gap, y + pitch - gap, colour, radius=pitch / 8)
        points = [(margin + (column + 0.5) * pitch, margin + (row + 0.5) * pitch) for row, column in cells]
        canvas.line(points, max(1.5, pitch / 8), mix(CORAL, WHITE, 0.35), opacity=0.9)
        at, w = margin + (N - 0.5) * pitch, 0.38 * pitch  # of the chest, which shines when found
        if self._found():
            canvas.disc((at, at), 1.9 * w, GOLD, opacity=0.35)
            canvas.disc((at, at), 1.5 * w, GOLD, opacity=0.6)
        canvas.box(at - w, at - 0.8 * w, at + w, at + 0.8 * w, WOOD, radius=w / 2)
        canvas.box(at - w, at - 0.1 * w, at + w, at + 0.8 * w, mix(WOOD, INK, 0.3), radius=w / 6)
        canvas.box(at - w, at - 0.25 * w, at + w, at + 0.05 * w, GOLD)
        canvas.box(at - 0.28 * w, at - 0.3 * w, at + 0.28 * w, at + 0.4 * w, GOLD, radius=w / 8)
        if not self._found():
            canvas.agent(points[-1], pitch / 4)
        canvas.progress(len(self._actions) / self.mdp.horizon, margin=margin / 2)
        return canvas.image()


WATER: Colour = (104, 179, 217)
DEEP: Colour = (47, 118, 171)
BANK: Colour = (196, 214, 158)


class RiverSwimEnv(FiniteMDPEnv):
    """The river of `rlsvi.mdp.river_swim`, which may be endless.

    Parameters
    ----------
    states
        As for `rlsvi.mdp.river_swim`.
    horizon
        The number of periods. If None, endless.
    render_mode
        "rgb_array" for pictures, "ansi" for a line of text, or None.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> gymnasium.make("rlsvi/RiverSwim-v0", horizon=None).observation_space
    Discrete(6)
    """

    def __init__(self, states: int = 6, horizon: int | None = 20, render_mode: str | None = None) -> None:
        mdp = river_swim(states, 1 if horizon is None else horizon)
        super().__init__(mdp, render_mode, endless=horizon is None)

    def _text(self) -> str:
        cells = ["≈"] * self.mdp.states
        cells[self._path[-1]] = "◆"
        return f"¢ {' '.join(cells)} ★  {self._period()}"

    def _picture(self) -> NDArray[np.uint8]:
        """The river flows to the left; a small coin lies downstream, a large one upstream."""
        S = self.mdp.states
        pitch = max(12.0, min(96.0, 960 / (S + 2)))
        margin, radius = 20.0, pitch / 5
        top, bottom = margin + 0.25 * pitch, margin + 1.25 * pitch
        canvas = Canvas(round((S + 2) * pitch + 2 * margin), round(2 * margin + 1.5 * pitch + 14))
        left, right, middle = margin, margin + (S + 2) * pitch, (top + bottom) / 2
        canvas.box(left, margin, right, margin + 1.5 * pitch, BANK, radius=pitch / 4)
        for s in range(S):
            x = left + (s + 1) * pitch
            colour = mix(WATER, DEEP, s / (S - 1))
            canvas.box(x + 1, top, x + pitch - 1, bottom, colour, radius=pitch / 10)
            for row in (0.24, 0.76):
                self._draw_current(canvas, x + pitch / 2, top + row * pitch, pitch / 7, mix(colour, WHITE, 0.45))
        canvas.coin((left + pitch / 2, middle), pitch / 9)
        canvas.coin((right - pitch / 2, middle), pitch / 3.2)
        if len(self._path) > 1:
            before = left + (self._path[-2] + 1.5) * pitch
            canvas.disc((before, middle), radius, INK, opacity=0.15)
        canvas.agent((left + (self._path[-1] + 1.5) * pitch, middle), radius)
        if self.horizon:
            canvas.progress(len(self._actions) / self.horizon, margin=margin / 2)
        return canvas.image()

    @staticmethod
    def _draw_current(canvas: Canvas, x: float, y: float, size: float, colour: Colour) -> None:
        """Draw two arrowheads that point downstream."""
        for shift in (-0.5, 0.5):
            tip = x + (shift - 0.3) * size * 1.4
            head = [(tip + 0.6 * size, y - 0.6 * size), (tip, y), (tip + 0.6 * size, y + 0.6 * size)]
            canvas.line(head, max(1.0, size / 4), colour)
