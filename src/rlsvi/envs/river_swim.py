"""River swim as a Gymnasium environment."""

import numpy as np
from numpy.typing import NDArray

from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.envs.render import INK, WHITE, Canvas, Colour, mix
from rlsvi.mdp.river_swim import river_swim

WATER: Colour = (104, 179, 217)
DEEP: Colour = (47, 118, 171)
BANK: Colour = (196, 214, 158)


class RiverSwimEnv(FiniteMDPEnv):
    """`rlsvi.mdp.river_swim(states, horizon)`: drift to a small reward, or swim up to a large one.

    horizon : the number of periods. If None, endless.
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
