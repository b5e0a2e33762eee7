"""The features of Dellacherie and of Thiery and Scherrer, which the best linear players use.

C. Thiery and B. Scherrer, "Building Controllers for Tetris", ICGA Journal 32 (2009): six of Pierre
Dellacherie's, two of their own, and here a constant. Walls and floor count as filled.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.compile import Bools, Longs, compiled
from rlsvi.tetris.game import Game, Rules, landing

NAMES = (
    "twice the landing height",  # of the middle of the piece, from the floor
    "eroded piece cells",  # rows removed times cells of the piece in them
    "row transitions",  # between filled and empty cells side by side
    "column transitions",  # and one above the other
    "holes",  # empty cells with a filled one above
    "cumulative wells",  # 1 + .. + n for every n empty cells in a column with both neighbours filled
    "hole depth",  # for every hole, the filled cells above it
    "rows with holes",
    "constant",
)


@compiled
def dellacherie(
    rules: Rules, game: Game, planes: NDArray[Any], at: int, removed: NDArray[Any], fatal: Bools
) -> int:
    """`afterstates` with these features."""
    table = rules.placements
    first = table.first[game.piece[0]]
    count: int = table.first[game.piece[0] + 1] - first
    for a in range(count):
        p, to, rows = first + a, at + a, game.spare
        y = landing(table, game.heights, p)
        gone, eroded = _place(rules, game.rows, p, y, rows)
        tallest = rows.size
        while tallest > 0 and rows[tallest - 1] == 0:
            tallest -= 1
        across, along, wells = _transitions(rules, rows, tallest)
        holes, depth, holed = _holes(rows, tallest)
        planes[0, to] = 2 * y + table.tall[p]
        planes[1, to] = gone * eroded
        planes[2, to] = across
        planes[3, to] = along
        planes[4, to] = holes
        planes[5, to] = wells
        planes[6, to] = depth
        planes[7, to] = holed
        planes[8, to] = 1
        removed[to] = gone
        fatal[to] = tallest > rules.usable
    return count


@compiled
def _place(rules: Rules, rows: Longs, p: int, y: int, after: Longs) -> tuple[int, int]:
    """Compute the board after a placement; return the rows removed and the cells of the piece in them."""
    table = rules.placements
    kept, eroded = 0, 0
    for i in range(rows.size):
        row, own = rows[i], 0
        if y <= i < y + table.tall[p]:
            own = table.bits[p, i - y]
        if row | own == rules.full:
            eroded += count_bits(own)
        else:
            after[kept] = row | own
            kept += 1
    for i in range(kept, rows.size):
        after[i] = 0
    return rows.size - kept, eroded


@compiled
def _transitions(rules: Rules, rows: Longs, tallest: int) -> tuple[int, int, int]:
    """Return row transitions, column transitions and cumulative wells."""
    W, wall = rules.width, 1 | 1 << (rules.width + 1)
    across, along, wells = 2 * max(rules.height - tallest, 0), 0, 0
    below = rules.full
    for i in range(tallest):
        row = rows[i]
        walled = row << 1 | wall
        across += count_bits((walled ^ walled >> 1) & ((1 << (W + 1)) - 1))
        along += count_bits(row ^ below)
        below = row
        well, j = well_cells(rules, row), i
        while well != 0:  # every well cell counts itself and those below it in its well
            wells += count_bits(well)
            j -= 1
            well &= well_cells(rules, rows[j]) if j >= 0 else 0
    return across, along + count_bits(below), wells


@compiled
def well_cells(rules: Rules, row: int) -> int:
    """Return the empty cells of a row whose neighbours are both filled."""
    walled = row << 1 | 1 | 1 << (rules.width + 1)
    return ~row & walled & walled >> 2 & rules.full


@compiled
def _holes(rows: Longs, tallest: int) -> tuple[int, int, int]:
    """Return the holes, the filled cells above each of them, and the rows with holes."""
    holes, depth, holed, covered = 0, 0, 0, 0
    for i in range(tallest - 1, -1, -1):
        here = covered & ~rows[i]
        covered |= rows[i]
        if here != 0:
            holes += count_bits(here)
            holed += 1
            for j in range(i + 1, tallest):
                depth += count_bits(rows[j] & here)
    return holes, depth, holed


@compiled
def count_bits(word: int) -> int:
    """Return the number of ones of a non-negative number below 2^62, by sums of increasingly wide fields."""
    x = np.int64(word)
    x = x - (x >> 1 & 0x5555555555555555)
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333)
    x = x + (x >> 4) & 0x0F0F0F0F0F0F0F0F
    x = x + (x >> 8)
    x = x + (x >> 16)
    x = x + (x >> 32)
    return int(x & 0x7F)
