"""Tetris as a Gymnasium environment: an action is a placement of the piece."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray

from rlsvi.core.checks import whole
from rlsvi.envs.environment import Environment, Info
from rlsvi.envs.render import WHITE, Canvas, Colour, mix
from rlsvi_paper.tetris.game import (
    LETTERS,
    GameOver,
    get_board,
    landing,
    legal,
    new_game,
    rotations,
    rules,
    start,
    step,
)

# ---- How Tetris is drawn, in a terminal and in a picture ---------------------------------------------------


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


class PlacementSpace(Discrete):
    """The numbers of placements; samples are legal placements of the current piece."""

    legal = 1

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Return a random legal placement, or a sample under the mask or probabilities given."""
        if probability is not None:
            return super().sample(mask, probability)
        return super().sample((np.arange(self.n) < self.legal).astype(np.int8) if mask is None else mask)


class TetrisEnv(Environment):
    """Pieces are placed one after the other: choose a rotation and a column, and the piece falls straight down.

    The observation is the board, {"board": (height, width) of 0 and 1, top row first; "piece": its index in
    IOTSZJL}. Action a is the a-th placement of the piece: one rotation after the other, clockwise, each from left
    to right. Most pieces have fewer placements than there are actions: info["action_mask"] contains the legal
    ones, and samples of the action space are legal. The reward is the number of rows removed, and
    info["game_over"] is the rule that ends a game. Pieces come from a stream that the seed of `reset` starts: one
    number for the first and, unless the game is over, one after each placement.

    Parameters
    ----------
    height, width, pieces, game_over
        See `rlsvi_paper.tetris.rules`.
    max_pieces
        A game is `truncated` after this many placements. If None, never.
    render_mode
        "ansi" for coloured text, "rgb_array" for pictures, or None.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Tetris-v0", height=10, max_pieces=100)
    >>> observation, info = env.reset(seed=0)
    >>> observation["board"].shape
    (10, 10)
    """

    def __init__(
        self,
        height: int = 20,
        width: int = 10,
        pieces: str = LETTERS,
        game_over: GameOver = "top row",
        max_pieces: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(render_mode)
        self.rules = rules(height, width, pieces, game_over)
        self.game_over = game_over
        self.max_pieces = None if max_pieces is None else whole("max_pieces", max_pieces, 1)
        board = MultiBinary((self.rules.height, self.rules.width))
        self.observation_space = Dict({"board": board, "piece": Discrete(len(LETTERS))})
        self.action_space = self._placements = PlacementSpace(self.rules.actions)
        self._game = new_game(self.rules)
        self._view = View(np.zeros((len(self._game.rows), self.rules.width), dtype=np.int8))

    @property
    def horizon(self) -> int | None:
        """The maximum number of placements per game, if games are truncated."""
        return self.max_pieces

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Info, Info]:
        """Empty the board; a seed restarts the stream of pieces."""
        super().reset(seed=seed)
        start(self.rules, self._game, self._stream)
        self._view = View(np.zeros_like(self._view.cells), piece=int(self._game.piece[0]))
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Place the piece; an invalid placement is refused and changes nothing."""
        a, count = self._checked(action, self.rules.actions), self._placements.legal
        if a >= count:
            raise ValueError(
                f"action {a} is not legal: piece {LETTERS[self._game.piece[0]]} has the placements "
                f"0..{count - 1}, choose one that info['action_mask'] allows"
            )
        self._show(a)
        removed, over = step(self.rules, self._game, a, self._stream)
        self._view.rows += removed
        self._view.pieces += 1
        self._view.piece = -1 if over else int(self._game.piece[0])
        truncated = not over and self._view.pieces == self.max_pieces
        self._running = not (over or truncated)
        return self._observation(), float(removed), bool(over), truncated, self._info()

    def _text(self) -> str:
        return text(self._view, self.rules.height)

    def _picture(self) -> Any:
        return picture(self._view, self.rules.height)

    def _observation(self) -> dict[str, Any]:
        board = np.empty((self.rules.height, self.rules.width), dtype=np.int8)
        get_board(self._game, board)
        return {"board": board, "piece": np.int64(self._game.piece[0])}

    def _info(self) -> dict[str, Any]:
        count = self._placements.legal = int(legal(self.rules, self._game))
        mask = (np.arange(self.rules.actions) < count).astype(np.int8)
        return {"action_mask": mask, "game_over": self.game_over}

    def _show(self, action: int) -> None:
        """Update the colours: write the letter of the piece where it lands, and remove full rows."""
        table, cells = self.rules.placements, self._view.cells
        p = table.first[self._game.piece[0]] + action
        y = landing(table, self._game.heights, p)
        for i in range(table.tall[p]):
            own = table.bits[p, i] >> np.arange(self.rules.width) & 1
            cells[y + i][own == 1] = self._game.piece[0] + 1
        kept = cells[~(cells > 0).all(axis=1)]
        cells[:] = 0
        cells[: len(kept)] = kept
