"""Deep sea as a Gymnasium environment."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.envs.render import CORAL, GOLD, INK, WHITE, Canvas, Colour, mix
from rlsvi.mdp.deep_sea import deep_sea
from rlsvi.mdp.finite import row_of

SHALLOW: Colour = (142, 205, 220)
ABYSS: Colour = (18, 52, 96)
WOOD: Colour = (176, 104, 48)


class DeepSeaEnv(FiniteMDPEnv):
    """`rlsvi.mdp.deep_sea(size, ...)`: descend through N rows; only moving right every time finds the treasure.

    options : arguments of `rlsvi.mdp.deep_sea`: stochastic, move_cost, randomize_actions and seed.
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
        self._draw_chest(canvas, margin + (N - 0.5) * pitch, pitch)
        if not self._found():
            canvas.agent(points[-1], pitch / 4)
        canvas.progress(len(self._actions) / self.mdp.horizon, margin=margin / 2)
        return canvas.image()

    def _draw_chest(self, canvas: Canvas, centre: float, pitch: float) -> None:
        """Draw the treasure, which shines when found."""
        x, y, w = centre, centre, 0.38 * pitch
        if self._found():
            canvas.disc((x, y), 1.9 * w, GOLD, opacity=0.35)
            canvas.disc((x, y), 1.5 * w, GOLD, opacity=0.6)
        canvas.box(x - w, y - 0.8 * w, x + w, y + 0.8 * w, WOOD, radius=w / 2)
        canvas.box(x - w, y - 0.1 * w, x + w, y + 0.8 * w, mix(WOOD, INK, 0.3), radius=w / 6)
        canvas.box(x - w, y - 0.25 * w, x + w, y + 0.05 * w, GOLD)
        canvas.box(x - 0.28 * w, y - 0.3 * w, x + 0.28 * w, y + 0.4 * w, GOLD, radius=w / 8)
