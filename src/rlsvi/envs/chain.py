"""The chain of Example 1 as a Gymnasium environment."""

import numpy as np
from numpy.typing import NDArray

from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.envs.render import GREY, INK, Canvas, mix
from rlsvi.mdp.chain import chain


class ChainEnv(FiniteMDPEnv):
    """`rlsvi.mdp.chain(length)`: move right N - 1 times, without any reward on the way."""

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
