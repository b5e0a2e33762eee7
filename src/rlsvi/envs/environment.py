"""The common part of the environments of this package: their own random stream, and two render modes."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from rlsvi.core.checks import shown, whole
from rlsvi.core.random import reseed

Info = dict[str, Any]


class Environment(gymnasium.Env[Any, Any]):
    """An environment that draws all its random numbers from `_stream`, so that compiled loops can draw the same.

    A subclass renders itself by `_text` and `_picture`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, render_mode: str | None) -> None:
        modes = self.metadata["render_modes"]
        if render_mode is not None and (not isinstance(render_mode, str) or render_mode not in modes):
            raise ValueError(f"render_mode must be one of {', '.join(modes)} or None, got {shown(render_mode)}")
        self.render_mode = render_mode
        self._stream = np.zeros(4, dtype=np.uint64)  # an invalid state, which no seed gives
        self._started = self._running = False

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> Any:
        """Start an episode. A seed restarts the stream; without one it continues, or is seeded at random."""
        seed = None if seed is None else whole("seed", seed, 0)
        if seed is not None and seed >= 2**64:
            raise ValueError(f"seed must be below 2**64, got {shown(seed)}")
        super().reset(seed=seed)
        if seed is not None or not self._stream.any():
            word = int(self.np_random.integers(2**63)) if seed is None else seed
            reseed(self._stream, np.uint64(word))
        self._started = self._running = True

    def _checked(self, action: Any, actions: int) -> int:
        """Return an action, after checking that it is valid and an episode is running."""
        if not self._running:
            raise ResetNeeded("the episode is over: call reset()" if self._started else "call reset() first")
        if not (type(action) is int and 0 <= action < actions) and not self.action_space.contains(action):
            raise ValueError(f"action {shown(action)} is not one of 0..{actions - 1}")
        return int(action)

    def render(self) -> Any:
        """Return a picture, (height, width, 3), or text, depending on render_mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() shows nothing: make the environment with a render_mode")
            return None
        if not self._started:
            raise ResetNeeded("call reset() before render()")
        return self._text() if self.render_mode == "ansi" else self._picture()

    def _text(self) -> str:
        raise NotImplementedError

    def _picture(self) -> Any:
        raise NotImplementedError
