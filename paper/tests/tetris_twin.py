"""Tetris as slow and obvious as can be: cells in a 2-D array, a piece that falls one row at a time.

Row 0 is the floor. The functions are compiled only because there are hundreds of thousands of drops to check.
"""

from functools import cache

import numba
import numpy as np

CELLS = {  # (row from below, column), one rotation of each
    "I": [(0, 0), (0, 1), (0, 2), (0, 3)],
    "O": [(0, 0), (0, 1), (1, 0), (1, 1)],
    "T": [(0, 0), (0, 1), (0, 2), (1, 1)],
    "S": [(0, 0), (0, 1), (1, 1), (1, 2)],
    "Z": [(1, 0), (1, 1), (0, 1), (0, 2)],
    "J": [(1, 0), (0, 0), (0, 1), (0, 2)],
    "L": [(1, 2), (0, 0), (0, 1), (0, 2)],
}


def shapes(letter):
    """The different rotations, clockwise, as arrays of cells."""
    cells, found = CELLS[letter], []
    for _ in range(4):
        low, left = min(r for r, _ in cells), min(c for _, c in cells)
        cells = sorted((r - low, c - left) for r, c in cells)
        if cells not in found:
            found.append(cells)
        cells = [(-c, r) for r, c in cells]
    return [np.array([[(r, c) in cells for c in range(4)] for r in range(4)]) for cells in found]


def moves(letter, width):
    """All placements as (shape, column), the order being part of the contract."""
    found = []
    for shape in shapes(letter):
        span = 1 + np.flatnonzero(shape.any(axis=0)).max()
        found += [(shape, column) for column in range(width - span + 1)]
    return found


@numba.njit
def fits(board, shape, row, column):
    for i in range(4):
        for j in range(4):
            if shape[i, j] and (row + i < 0 or board[row + i, column + j]):
                return False
    return True


@numba.njit
def drop(board, shape, column):
    """Let a piece fall and remove full rows: the row it lands on, rows removed, its cells among them."""
    row = board.shape[0] - 4
    while fits(board, shape, row - 1, column):
        row -= 1
    own = np.zeros_like(board)
    for i in range(4):
        for j in range(4):
            if shape[i, j]:
                board[row + i, column + j] = True
                own[row + i, column + j] = True
    removed, cells, i = 0, 0, 0
    while i < board.shape[0]:
        if board[i].all():
            removed += 1
            cells += own[i].sum()
            for k in range(i, board.shape[0] - 1):
                board[k], own[k] = board[k + 1], own[k + 1]
            board[-1], own[-1] = False, False
        else:
            i += 1
    return row, removed, cells


@numba.njit
def height(board, c):
    h = 0
    for r in range(board.shape[0]):
        if board[r, c]:
            h = r + 1
    return h


@numba.njit
def is_hole(board, r, c):
    return not board[r, c] and board[r:, c].any()


@numba.njit
def bertsekas(board, out):
    H, W = board.shape
    for c in range(W):
        out[c] = height(board, c)
    for c in range(W - 1):
        out[W + c] = abs(height(board, c) - height(board, c + 1))
    out[2 * W - 1] = max([height(board, c) for c in range(W)])
    out[2 * W] = 0
    for r in range(H):
        for c in range(W):
            out[2 * W] += is_hole(board, r, c)
    out[2 * W + 1] = 1


@numba.njit
def filled(board, r, c):
    """Walls and floor count as filled."""
    return r < 0 or c < 0 or c >= board.shape[1] or board[r, c]


@numba.njit
def dellacherie(board, rows, row, tall, removed, cells, out):
    H, W = board.shape
    out[:] = 0
    out[0] = 2 * row + tall
    out[1] = removed * cells
    for r in range(H):
        holes = 0
        for c in range(W + 1):
            if r < rows or board[r].any():
                out[2] += filled(board, r, c - 1) != filled(board, r, c)
        for c in range(W):
            out[3] += filled(board, r - 1, c) != filled(board, r, c)
            if is_hole(board, r, c):
                holes += 1
                out[6] += board[r:, c].sum()
        out[4] += holes
        out[7] += holes > 0
    for c in range(W):
        out[3] += board[H - 1, c]  # above it all is empty
        run = 0
        for r in range(H):
            if not board[r, c] and filled(board, r, c - 1) and filled(board, r, c + 1):
                run += 1
                out[5] += run
            else:
                run = 0
    out[8] = 1


@numba.njit
def after_all(board, rows, usable, all_shapes, columns, talls, features, other, removed, fatal, lands):
    """All placements: both kinds of features, (n, d), rows removed, whether the game is over, and the boards."""
    for a in range(len(columns)):
        after = lands[a]
        after[:] = board
        row, removed[a], cells = drop(after, all_shapes[a], columns[a])
        bertsekas(after, features[a])
        dellacherie(after, rows, row, talls[a], removed[a], cells, other[a])
        fatal[a] = False
        for c in range(board.shape[1]):
            if height(after, c) > usable:
                fatal[a] = True


@cache
def arrays(letter, width, rows):
    """The arguments of `after_all` that all boards of a size share."""
    options = moves(letter, width)
    n, stack = len(options), np.array([shape for shape, _ in options])
    columns, talls = np.array([c for _, c in options]), stack.any(axis=2).sum(axis=1)
    features, other = np.zeros((n, 2 * width + 2), np.int64), np.zeros((n, 9), np.int64)
    removed, fatal, boards = np.zeros(n, np.int64), np.zeros(n, bool), np.zeros((n, rows, width), bool)
    return stack, columns, talls, features, other, removed, fatal, boards


def look(board, rows, usable, letter):
    """`after_all` with its arrays, which the next call uses again."""
    found = arrays(letter, board.shape[1], len(board))
    after_all(board, rows, usable, *found)
    return found[3:]
