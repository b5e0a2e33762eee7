"""Smooth shapes in a NumPy array: all the drawing that the environments need, without a graphics library.

A shape is given by the signed distance, in pixels, of every pixel from its edge; pixels within half a pixel of the
edge are blended, so that edges are smooth.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.compile import Floats

Colour = tuple[int, int, int]
Point = tuple[float, float]  # x to the right, y downward

PAPER: Colour = (250, 250, 247)
INK: Colour = (44, 62, 80)
GREY: Colour = (214, 219, 223)
GOLD: Colour = (243, 186, 47)
CORAL: Colour = (231, 88, 66)
WHITE: Colour = (255, 255, 255)


def mix(a: Colour, b: Colour, weight: float) -> Colour:
    """Return a colour between a (weight 0) and b (weight 1)."""
    red, green, blue = (round(x + (y - x) * weight) for x, y in zip(a, b, strict=True))
    return red, green, blue


class Canvas:
    """A picture that is painted shape by shape."""

    def __init__(self, width: int, height: int, background: Colour = PAPER) -> None:
        self.width, self.height = int(width), int(height)
        self._pixels = np.empty((self.height, self.width, 3))
        self._pixels[:] = background

    def image(self) -> NDArray[np.uint8]:
        """The picture, (height, width, 3)."""
        return np.rint(self._pixels).astype(np.uint8)

    def box(self, x0: float, y0: float, x1: float, y1: float, colour: Colour, *, radius: float = 0.0) -> None:
        """Draw a rectangle with rounded corners."""
        r = min(radius, (x1 - x0) / 2, (y1 - y0) / 2)
        X, Y, region = self._around(x0, y0, x1, y1)
        dx = np.abs(X - (x0 + x1) / 2) - (x1 - x0) / 2 + r
        dy = np.abs(Y - (y0 + y1) / 2) - (y1 - y0) / 2 + r
        outside = np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0))
        self._blend(region, outside + np.minimum(np.maximum(dx, dy), 0.0) - r, colour)

    def disc(self, centre: Point, radius: float, colour: Colour, *, opacity: float = 1.0) -> None:
        """Draw a filled circle."""
        x, y = centre
        X, Y, region = self._around(x - radius, y - radius, x + radius, y + radius)
        self._blend(region, np.hypot(X - x, Y - y) - radius, colour, opacity)

    def line(self, points: Sequence[Point], width: float, colour: Colour, *, opacity: float = 1.0) -> None:
        """Draw a path with round joints, with uniform opacity even where it crosses itself."""
        r = width / 2
        xs, ys = zip(*points, strict=True)
        X, Y, whole = self._around(min(xs) - r, min(ys) - r, max(xs) + r, max(ys) + r)
        distance = np.full((Y.size, X.size), np.inf)
        for (x0, y0), (x1, y1) in pairwise(points):
            near_x = np.abs(X[0] - (x0 + x1) / 2) < abs(x1 - x0) / 2 + r + 1
            near_y = np.abs(Y[:, 0] - (y0 + y1) / 2) < abs(y1 - y0) / 2 + r + 1
            near, x, y = np.ix_(near_y, near_x), X[:, near_x] - x0, Y[near_y] - y0
            dx, dy = x1 - x0, y1 - y0
            along = np.clip((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-12), 0.0, 1.0)
            distance[near] = np.minimum(distance[near], np.hypot(x - along * dx, y - along * dy) - r)
        self._blend(whole, distance, colour, opacity)

    def agent(self, centre: Point, radius: float, colour: Colour = CORAL) -> None:
        """Draw the agent: a disc with a bright rim."""
        self.disc(centre, radius + max(1.0, radius / 4), WHITE)
        self.disc(centre, radius, colour)

    def coin(self, centre: Point, radius: float) -> None:
        """Draw a reward: a gold disc with a darker edge."""
        self.disc(centre, radius, mix(GOLD, INK, 0.25))
        self.disc(centre, radius * 0.8, GOLD)

    def progress(self, fraction: float, *, margin: float, height: float = 6.0) -> None:
        """Draw a bar along the lower edge that shows how much of the episode has passed."""
        right, bottom = self.width - margin, self.height - margin
        self.box(margin, bottom - height, right, bottom, GREY, radius=height / 2)
        if fraction > 0:
            end = margin + max(height, fraction * (right - margin))
            self.box(margin, bottom - height, end, bottom, INK, radius=height / 2)

    def _around(self, x0: float, y0: float, x1: float, y1: float) -> tuple[Floats, Floats, tuple[slice, slice]]:
        """Return the pixel centres of a rectangle with a margin of one pixel, and their slices in the picture."""
        left, right = np.clip([int(np.floor(x0)) - 1, int(np.ceil(x1)) + 1], 0, self.width)
        top, bottom = np.clip([int(np.floor(y0)) - 1, int(np.ceil(y1)) + 1], 0, self.height)
        X, Y = np.arange(left, right)[None, :] + 0.5, np.arange(top, bottom)[:, None] + 0.5
        return X, Y, (slice(top, bottom), slice(left, right))

    def _blend(self, region: tuple[slice, slice], distance: Floats, colour: Colour, opacity: float = 1.0) -> None:
        cover = np.clip(0.5 - distance, 0.0, 1.0)[..., None] * opacity
        self._pixels[region] += cover * (np.array(colour, dtype=np.float64) - self._pixels[region])
