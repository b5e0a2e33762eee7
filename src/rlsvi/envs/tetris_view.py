"""How Tetris is drawn, in a terminal and in a picture."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlsvi.envs.render import WHITE, Canvas, Colour, mix
from rlsvi.tetris.pieces import LETTERS, rotations

COLOURS: tuple[Colour, ...] = (
    (49, 199, 239),
    (247, 211, 8),
    (173, 77, 156),
    (66, 182, 66),
    (239, 32, 41),
    (90, 101, 173),
    (239, 121, 33),
)
TERMINAL = (44, 220, 133, 71, 160, 62, 208)  # the same, from the 256 terminal colours
NIGHT: Colour = (24, 27, 38)
GRID: Colour = (38, 43, 58)
FRAME: Colour = (92, 102, 128)
DIGITS = ("75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717")  # 3 x 5 dots


@dataclass
class View:
    """The visible state of a game."""

    cells: NDArray[np.int8]  # (height + 4, width) from the floor up: 0 if empty, otherwise 1 + the piece
    piece: int = -1  # piece to place; -1 if the game is over
    rows: int = 0
    pieces: int = 0


def text(view: View, height: int) -> str:
    """Return text with two coloured characters per cell, and the piece to place above the board."""
    width = view.cells.shape[1]
    lines = ["  " + "".join(_cell(k, "") for k in row) for row in _coming(view, width)]
    lines.append(" ┌" + "──" * width + "┐")
    lines += [" │" + "".join(_cell(k, "·") for k in row) + "│" for row in view.cells[:height][::-1]]
    lines.append(" └" + "──" * width + "┘")
    what = "game over" if view.piece < 0 else f"piece {LETTERS[view.piece]}"
    lines.append(f"  rows {view.rows}  pieces {view.pieces}  {what}")
    return "\n".join(lines)


def _cell(k: int, empty: str) -> str:
    if k:
        return f"\x1b[38;5;{TERMINAL[k - 1]}m██\x1b[0m"
    return f"\x1b[38;5;238m{empty} \x1b[0m" if empty else "  "


def _coming(view: View, width: int) -> NDArray[np.int8]:
    """Return the piece to place as two rows of cells, the upper first, centred."""
    rows = np.zeros((2, width), dtype=np.int8)
    if view.piece >= 0:
        shapes = [shape for shape in rotations(LETTERS[view.piece]) if shape.shape[1] <= width]
        shape = min(shapes, key=len)[::-1][-2:]
        left = (width - shape.shape[1]) // 2
        rows[2 - len(shape) :, left : left + shape.shape[1]] = shape * (view.piece + 1)
    return rows


def picture(view: View, height: int) -> NDArray[np.uint8]:
    """Return a dark well with shining blocks, the piece to place above it, and the rows removed below."""
    width = view.cells.shape[1]
    pitch = max(8, min(28, 600 // height, 640 // width))
    margin = 16
    left, top = margin, margin + 2 * pitch + 10
    canvas = Canvas(width * pitch + 2 * margin, top + height * pitch + 5 * 4 + 3 * margin, NIGHT)
    for r, row in enumerate(_coming(view, width)):
        _blocks(canvas, row, left, margin + r * pitch, pitch)
    canvas.box(left - 4, top - 4, left + width * pitch + 4, top + height * pitch + 4, FRAME, radius=6)
    canvas.box(left - 1, top - 1, left + width * pitch + 1, top + height * pitch + 1, NIGHT)
    for c in range(1, width):
        canvas.box(left + c * pitch - 0.5, top, left + c * pitch + 0.5, top + height * pitch, GRID)
    for r, row in enumerate(view.cells[:height][::-1]):
        canvas.box(left, top + r * pitch - 0.5, left + width * pitch, top + r * pitch + 0.5, GRID)
        _blocks(canvas, row, left, top + r * pitch, pitch)
    _number(canvas, view.rows, left, top + height * pitch + margin + 4, WHITE if view.piece >= 0 else COLOURS[4])
    return canvas.image()


def _blocks(canvas: Canvas, row: NDArray[np.int8], x: float, y: float, pitch: float) -> None:
    """Draw the blocks of a row: a dark edge, a bright one, and a face."""
    for c in np.flatnonzero(row):
        colour, x0 = COLOURS[row[c] - 1], x + int(c) * pitch
        layers = ((0.5, 0.5, mix(colour, NIGHT, 0.45)), (1.5, 2.5, mix(colour, WHITE, 0.45)), (3.0, 2.5, colour))
        for near, far, shade in layers:
            canvas.box(x0 + near, y + near, x0 + pitch - far, y + pitch - far, shade, radius=pitch / 8)


def _number(canvas: Canvas, number: int, x: float, y: float, colour: Colour, dot: float = 4.0) -> None:
    """Draw a number in digits of 3 x 5 dots."""
    for place, digit in enumerate(str(number)):
        for i, bits in enumerate(DIGITS[int(digit)]):
            for j in range(3):
                if int(bits) >> (2 - j) & 1:
                    x0, y0 = x + (4 * place + j) * dot, y + i * dot
                    canvas.box(x0, y0, x0 + dot - 0.5, y0 + dot - 0.5, colour)
