"""Moving pictures of two players side by side, drawn without any toolkit of games."""

import io
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

PALE, CART, POLE = "#d9d9d9", "#0072B2", "#D55E00"
BESIDE = "Left: before learning. Right: after it."
WIDTH, HEIGHT = 300, 150  # of the picture of a cart


class AtRandom:
    """A player that takes any legal action."""

    def __init__(self, actions: int, seed: int = 0) -> None:
        self.actions, self.rng = actions, np.random.default_rng(seed)

    def predict(self, observation: Any, state: Any = None, *, action_mask: Any = None, **_: Any) -> Any:
        """An action, and no state."""
        legal = np.arange(self.actions) if action_mask is None else np.flatnonzero(action_mask)
        return int(self.rng.choice(legal)), None


def cart(x: float, angle: float) -> Image.Image:
    """A cart on its track, and its pole."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), "white")
    pen, ground = ImageDraw.Draw(picture), HEIGHT - 35
    middle = WIDTH / 2 + x / 2.4 * (WIDTH / 2 - 30)
    pen.line((0, ground, WIDTH, ground), fill=PALE, width=2)
    pen.rectangle((middle - 22, ground - 16, middle + 22, ground), fill=CART)
    end = middle + 80 * math.sin(angle), ground - 16 - 80 * math.cos(angle)
    pen.line((middle, ground - 16, *end), fill=POLE, width=6)
    return picture


def side_by_side(frames: Iterator[tuple[Image.Image, ...]], pause: int) -> bytes:
    """A GIF of several films beside each other; `pause` milliseconds a frame."""
    pictures = []
    for parts in frames:
        whole = Image.new("RGB", (sum(part.width + 12 for part in parts) - 12, parts[0].height), "white")
        left = 0
        for part in parts:
            whole.paste(part, (left, 0))
            left += part.width + 12
        pictures.append(whole.quantize(16))
    first, *rest = pictures
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=rest, duration=pause, loop=0)
    return file.getvalue()
