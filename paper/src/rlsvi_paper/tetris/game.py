"""The game: the pieces and every way to place one, a board of bits, and the effect of a placement.

A row is an integer whose bit c says whether column c is filled; row 0 is the floor. The heights of the columns and
the number of filled cells are stored too, so that a placement costs a few additions: the heights determine where
it lands, and the holes are the empty cells below the heights.

A placement is a rotation and a column. Its profile is the lowest and the highest cell of each column it touches:
where it lands is a maximum of a few heights.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.checks import one_of, shown, whole
from rlsvi.core.compile import Bools, Longs, Words, compiled, unsigned
from rlsvi.core.random import uniform

LETTERS = "IOTSZJL"  # a piece is identified by its index in this string, whatever set a game draws from
TALL = 4  # no piece has more rows or columns
CELLS = 4  # number of cells of any piece
DRAWINGS = {
    "I": ("####",),
    "O": ("##", "##"),
    "T": (".#.", "###"),
    "S": (".##", "##."),
    "Z": ("##.", ".##"),
    "J": ("#..", "###"),
    "L": ("..#", "###"),
}

Profile = tuple[int, int, int, list[int], list[int], list[int]]  # one row of the arrays below


class Placements(NamedTuple):
    """All placements of all pieces on a board of a given width, in one list.

    Those of piece p are first[p] .. first[p + 1] - 1: one rotation after the other, clockwise, each from left
    to right. Heights are counted from the row on which the piece lands.
    """

    first: Longs  # (8,)
    column: Longs  # (N,) the leftmost column it touches
    span: Longs  # (N,) number of columns
    tall: Longs  # (N,) number of rows
    low: Longs  # (N, 4) height below the lowest cell, by column
    high: Longs  # (N, 4) height above the highest cell
    bits: Longs  # (N, 4) its cells, row by row from below; bit c is column c


def rotations(letter: str) -> list[Bools]:
    """Return the distinct rotations of a piece, as cells (row from below, column)."""
    shape = np.array([[cell == "#" for cell in line] for line in DRAWINGS[letter]])
    found: list[Bools] = []
    for turns in range(4):
        turned = np.rot90(shape, -turns)[::-1]
        if not any(np.array_equal(turned, other) for other in found):
            found.append(turned)
    return found


def placements(width: int) -> Placements:
    """Return every placement on a board with `width` columns."""
    counts: list[int] = []
    rows: list[Profile] = []
    for letter in LETTERS:
        before = len(rows)
        for shape in rotations(letter):
            rows += [_profile(shape, column) for column in range(width - shape.shape[1] + 1)]
        counts.append(len(rows) - before)
    column, span, tall, low, high, bits = zip(*rows, strict=True) if rows else ((),) * 6
    profiles = (np.array(part, dtype=np.int64).reshape(-1, TALL) for part in (low, high, bits))
    return Placements(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        *(np.array(part, dtype=np.int64) for part in (column, span, tall)),
        *profiles,
    )


def _profile(shape: Bools, column: int) -> Profile:
    tall, span = shape.shape
    low, high, bits = [0] * TALL, [0] * TALL, [0] * TALL
    for j in range(span):
        filled = np.flatnonzero(shape[:, j])
        low[j], high[j] = int(filled[0]), int(filled[-1]) + 1
    for i in range(tall):
        bits[i] = sum(1 << (column + int(j)) for j in np.flatnonzero(shape[i]))
    return column, span, tall, low, high, bits


GameOver = Literal["top row", "overflow"]
WIDEST_BOARD, HIGHEST_BOARD = 32, 100


class Rules(NamedTuple):
    """A board, a set of pieces and the rule that ends a game, in the form that compiled code uses.

    Attributes
    ----------
    height, width
        The size of the board.
    usable
        The game is over when a column is higher than this after the removal of full rows.
    actions
        The largest number of placements of a piece of the set.
    full
        The bits of a full row.
    letters
        The pieces drawn from, (P,).
    placements
        Where each piece can be placed.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> tetris.rules(height=6, width=5).usable
    5
    """

    height: int
    width: int
    usable: int  # the game is over when a column is higher than this after the removal of full rows
    actions: int  # the largest number of placements of a piece of the set
    full: int  # the bits of a full row
    letters: Longs  # (P,) the pieces drawn from
    placements: Placements

    @property
    def game_over(self) -> GameOver:
        """The rule that ends a game, as passed to `rules`."""
        return "top row" if self.usable < self.height else "overflow"

    @property
    def setting(self) -> dict[str, Any]:
        """The arguments of `rules`, with the pieces in the order of LETTERS."""
        pieces = "".join(LETTERS[p] for p in sorted(self.letters))
        return {"height": self.height, "width": self.width, "pieces": pieces, "game_over": self.game_over}


class Game(NamedTuple):
    """A board and the piece to place."""

    rows: Longs  # (height + 4,) from the floor up; the last four are above the board
    heights: Longs  # (width,)
    cells: Longs  # (1,) number of filled cells
    piece: Longs  # (1,) one of LETTERS
    spare: Longs  # (height + 4,) work array


def rules(height: int = 20, width: int = 10, pieces: str = LETTERS, game_over: GameOver = "top row") -> Rules:
    """Return the rules of a game.

    Parameters
    ----------
    height, width
        Rows and columns of the board.
    pieces
        Letters of IOTSZJL. Each is drawn with the same probability, independently.
    game_over
        "top row", as in the paper: a game ends if a square of the top row is filled after full rows are removed,
        so that height - 1 rows are usable. "overflow": a game ends if a square above the top row is filled after
        full rows are removed, so that all rows are usable.

    Returns
    -------
    Rules
        The rules.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> rules = tetris.rules(height=6, width=5, pieces="IO")
    >>> rules.actions, rules.game_over
    (7, 'top row')
    """
    if whole("height", height, 1) > HIGHEST_BOARD:
        raise ValueError(f"height must be at most {HIGHEST_BOARD}, got {shown(height)}")
    if whole("width", width, 2) > WIDEST_BOARD:
        raise ValueError(f"width must be at most {WIDEST_BOARD}, got {shown(width)}")
    if not isinstance(pieces, str) or not pieces or not set(pieces) <= set(LETTERS):
        raise ValueError(f'pieces must be letters of {LETTERS}, such as "SZ", got {shown(pieces)}')
    if len(set(pieces)) < len(pieces):
        raise ValueError(f"pieces must name each piece once, for all have the same chance, got {shown(pieces)}")
    one_of("game_over", game_over, ("top row", "overflow"))
    board = board_rules(int(height), int(width), int(height) - (game_over == "top row"), pieces)
    first, tall = board.placements.first, board.placements.tall
    for letter, p in zip(pieces, board.letters, strict=True):
        if not (tall[first[p] : first[p + 1]] <= board.usable).any():
            raise ValueError(
                f"piece {letter} does not fit on a board {width} wide with {board.usable} usable rows (game_over "
                f'is "{game_over}"): leave it out of pieces, or make width or height larger'
            )
    return board


def check_rules(given: Any) -> Rules:
    """Return `given` if it is an instance of Rules."""
    if not isinstance(given, Rules):
        raise TypeError(f"rules must be what rlsvi_paper.tetris.rules() returns, got {shown(given)}")
    return given


def board_rules(height: int, width: int, usable: int, pieces: str = LETTERS) -> Rules:
    """Return rules without checking them."""
    table = placements(width)
    letters = np.array([LETTERS.index(letter) for letter in pieces], dtype=np.int64)
    actions = int(np.diff(table.first)[letters].max())
    return Rules(height, width, usable, actions, (1 << width) - 1, letters, table)


def new_game(rules: Rules) -> Game:
    """Return an empty board; `start` draws the first piece."""
    rows, heights = np.zeros(rules.height + TALL, dtype=np.int64), np.zeros(rules.width, dtype=np.int64)
    return Game(rows, heights, np.zeros(1, dtype=np.int64), rules.letters[:1].copy(), np.zeros_like(rows))


@compiled
def start(rules: Rules, game: Game, stream: Words) -> None:
    """Empty the board and draw the first piece."""
    for i in range(game.rows.size):
        game.rows[i] = 0
    for c in range(game.heights.size):
        game.heights[c] = 0
    game.cells[0] = 0
    draw_piece(rules, game, stream)


@compiled
def draw_piece(rules: Rules, game: Game, stream: Words) -> None:
    """Draw the next piece, using one random number."""
    game.piece[0] = rules.letters[int(uniform(stream) * rules.letters.size)]


@compiled
def set_board(game: Game, board: NDArray[Any], piece: int) -> None:
    """Set the board, (height, width), of zeros and ones, top row first, and the piece."""
    game.piece[0] = piece
    for i in range(game.rows.size):
        game.rows[i] = 0
    for i in range(board.shape[0]):
        for c in range(board.shape[1]):
            if board[board.shape[0] - 1 - i, c] != 0:
                game.rows[i] |= 1 << c
    measure(game)


@compiled
def measure(game: Game) -> None:
    """Compute the heights and the number of filled cells from the rows."""
    game.cells[0] = 0
    for c in range(game.heights.size):
        game.heights[c] = 0
    for i in range(game.rows.size):
        for c in range(game.heights.size):
            if game.rows[i] >> c & 1 == 1:
                game.heights[c] = i + 1
                game.cells[0] += 1


@compiled
def get_board(game: Game, board: NDArray[Any]) -> None:
    """Write the board as zeros and ones, top row first, without the cells above it."""
    for i in range(board.shape[0]):
        for c in range(board.shape[1]):
            board[board.shape[0] - 1 - i, c] = game.rows[i] >> c & 1


@compiled
def legal(rules: Rules, game: Game) -> int:
    """Return the number of placements of the piece; they are numbered from 0."""
    first = rules.placements.first
    piece = game.piece[0]
    return int(first[piece + 1] - first[piece])


@compiled
def landing(table: Placements, heights: Longs, p: int | np.uint64) -> int:
    """Return the row on which a placement lands."""
    c, y = unsigned(table.column[p]), 0
    for j in range(unsigned(table.span[p])):
        y = max(y, heights[c + j] - table.low[p, j])
    return y


@compiled
def full_rows(rules: Rules, rows: Longs, p: int | np.uint64, y: int) -> int:
    """Return which of the rows y .. y + 3 a placement completes, as bits."""
    found = 0
    for i in range(unsigned(rules.placements.tall[p])):
        if rows[unsigned(y) + i] | rules.placements.bits[p, i] == rules.full:
            found |= 1 << i
    return found


@compiled
def place(rules: Rules, game: Game, p: int) -> int:
    """Put the piece on the board by placement p and remove full rows; return their number."""
    table = rules.placements
    y = landing(table, game.heights, p)
    lines = full_rows(rules, game.rows, p, y)
    for i in range(table.tall[p]):
        game.rows[y + i] |= table.bits[p, i]
    for j in range(table.span[p]):
        game.heights[table.column[p] + j] = y + table.high[p, j]
    removed = remove_full_rows(rules, game) if lines != 0 else 0
    game.cells[0] += CELLS - removed * rules.width
    return removed


@compiled
def remove_full_rows(rules: Rules, game: Game) -> int:
    """Remove the full rows and compute the heights; return their number."""
    kept = 0
    for i in range(game.rows.size):
        row = game.rows[i]
        game.rows[kept] = row
        kept += row != rules.full
    removed = game.rows.size - kept
    if removed > 0:
        for i in range(kept, game.rows.size):
            game.rows[i] = 0
        for c in range(game.heights.size):
            h = game.heights[c]
            while h > 0 and game.rows[h - 1] >> c & 1 == 0:
                h -= 1
            game.heights[c] = h
    return removed


@compiled
def over(rules: Rules, game: Game) -> bool:
    """Return whether the board ends the game."""
    tallest = 0
    for c in range(game.heights.size):
        tallest = max(tallest, game.heights[c])
    return tallest > rules.usable


@compiled
def step(rules: Rules, game: Game, action: int, stream: Words) -> tuple[int, bool]:
    """Place the piece; return the rows removed and whether the game is over. If not, draw the next piece."""
    removed = place(rules, game, rules.placements.first[game.piece[0]] + action)
    ended = over(rules, game)
    if not ended:
        draw_piece(rules, game, stream)
    return removed, ended
