"""Exact solutions of small games: the largest expected number of rows of any player."""

from typing import NamedTuple

import numpy as np

from rlsvi.core.checks import positive, whole
from rlsvi.core.compile import Floats, Longs, compiled
from rlsvi_paper.tetris.game import Game, GameOver, Rules, check_rules, measure, new_game, over, place

SWEEPS = 10_000


class Exact(NamedTuple):
    """The value of a game.

    Attributes
    ----------
    rows
        The expected rows of optimal play from an empty board.
    boards
        The number of reachable boards.
    game_over
        The rule that ends a game.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> tetris.solve(tetris.rules(height=4, width=4, pieces="S")).game_over
    'top row'
    """

    rows: float
    boards: int
    game_over: GameOver


def solve(rules: Rules, *, most_boards: int = 1_000_000, tolerance: float = 1e-9) -> Exact:
    """Solve a game by dynamic programming over all reachable boards.

    V(board) is the mean over the next piece of the maximum over its placements of rows removed + V(board after),
    and 0 once the game is over.

    Parameters
    ----------
    rules
        The rules of the game, on a small board.
    most_boards
        The largest number of boards to enumerate; more are refused.
    tolerance
        Bounds the error of the result, estimated from the rate of convergence.

    Returns
    -------
    Exact
        The value of the game.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> exact = tetris.solve(tetris.rules(height=4, width=4, pieces="S"))
    >>> exact.boards > 0
    True
    """
    check_rules(rules)
    if rules.usable * rules.width > 62:
        raise ValueError(
            f"a board of {rules.usable} usable rows x {rules.width} columns has more than 62 cells: choose a "
            "smaller height or width, the others cannot be solved exactly"
        )
    whole("most_boards", most_boards, 1, 2**31 - 1)
    boards, after, reward = _reachable(rules, most_boards)
    V = np.zeros(len(boards) + 1)  # the last entry stands for the end
    change, speed = np.inf, 1.0
    for _ in range(SWEEPS):
        before, change = change, float(_sweep(after, reward, V))
        speed = change / before if before < np.inf else 1.0
        if change == 0 or change * speed < positive("tolerance", tolerance) * (1 - speed):
            return Exact(float(V[np.searchsorted(boards, 0)]), len(boards), rules.game_over)
    raise ValueError(
        f"no end of the value after {SWEEPS} sweeps: with these pieces a game can be made to last for ever, or "
        "nearly so; choose a smaller height, or other pieces"
    )


def _reachable(rules: Rules, most: int) -> tuple[Longs, Longs, Longs]:
    """Return all boards, sorted, and for each, by piece and placement, the index of the next and the rows."""
    game = new_game(rules)
    boards = fresh = np.zeros(1, dtype=np.int64)
    while len(fresh):
        codes, _ = _expand_all(rules, game, fresh)
        fresh = np.setdiff1d(codes[codes >= 0], boards)
        boards = np.union1d(boards, fresh)
        if len(boards) > most:
            raise ValueError(
                f"more than most_boards = {most} boards can be reached: choose a smaller height or width or fewer "
                "pieces, or allow more"
            )
    codes, rows = _expand_all(rules, game, boards)
    after = np.where(codes >= 0, np.searchsorted(boards, codes), len(boards))
    after[codes == MISSING] = -1
    return boards, after, rows


OVER, MISSING = -1, -2  # no board: the game is over, or the piece has no such placement


def _expand_all(rules: Rules, game: Game, boards: Longs) -> tuple[Longs, Longs]:
    shape = len(boards), len(rules.letters), rules.actions
    codes, rows = np.full(shape, MISSING), np.zeros(shape, dtype=np.int64)
    _expand(rules, game, boards, codes, rows)
    return codes, rows


@compiled
def _expand(rules: Rules, game: Game, boards: Longs, codes: Longs, rows: Longs) -> None:
    """Compute the boards after every placement of every piece, and the rows each removes."""
    first = rules.placements.first
    for b in range(boards.size):
        for i in range(rules.letters.size):
            piece = rules.letters[i]
            for a in range(first[piece + 1] - first[piece]):
                unpack(rules, boards[b], game)
                game.piece[0] = piece
                rows[b, i, a] = place(rules, game, first[piece] + a)
                codes[b, i, a] = OVER if over(rules, game) else pack(rules, game)


@compiled
def pack(rules: Rules, game: Game) -> int:
    """Return a board as one number."""
    code = 0
    for i in range(rules.usable):
        code |= game.rows[i] << (i * rules.width)
    return code


@compiled
def unpack(rules: Rules, code: int, game: Game) -> None:
    """Set the board given by a number."""
    for i in range(game.rows.size):
        game.rows[i] = code >> (i * rules.width) & rules.full if i < rules.usable else 0
    measure(game)


@compiled
def _sweep(after: Longs, reward: Longs, V: Floats) -> float:
    """Update every value in turn, and return the largest change."""
    change = 0.0
    for b in range(after.shape[0]):
        total = 0.0
        for i in range(after.shape[1]):
            most = 0.0  # no placement has a negative value
            for a in range(after.shape[2]):
                if after[b, i, a] >= 0:
                    most = max(most, reward[b, i, a] + V[after[b, i, a]])
            total += most
        value = total / after.shape[1]
        change = max(change, abs(value - V[b]))
        V[b] = value
    return change
