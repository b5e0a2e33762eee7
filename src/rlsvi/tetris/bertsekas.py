"""The features of Bertsekas and Ioffe (1996), the benchmark that the paper uses.

The heights of the columns, the absolute differences between neighbours, the maximum height, the holes (empty
cells with a filled one above) and a constant. For each placement only the changes are computed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Bools, compiled, unsigned
from rlsvi.tetris.game import Game, Rules, full_rows
from rlsvi.tetris.pieces import CELLS, TALL

Index = np.uint64


class Before(NamedTuple):
    """The common state before all placements."""

    tallest: int
    holes: int
    pit: Index  # the lowest column
    lowest: int  # its height


@compiled
def bertsekas(rules: Rules, game: Game, planes: NDArray[Any], at: int, removed: NDArray[Any], fatal: Bools) -> int:
    """`afterstates` with these features."""
    table = rules.placements
    first = unsigned(table.first[game.piece[0]])
    count: int = table.first[game.piece[0] + 1] - table.first[game.piece[0]]
    before = _before(game, planes, unsigned(at), unsigned(count))
    for a in range(unsigned(count)):
        p, to = first + a, unsigned(at) + a
        span = unsigned(table.span[p])
        if span == TWO:  # four copies of the code without loops are faster than one with loops
            y, lines = _drop(rules, game, before, p, TWO, planes, to)
        elif span == THREE:
            y, lines = _drop(rules, game, before, p, THREE, planes, to)
        elif span == ONE:
            y, lines = _drop(rules, game, before, p, ONE, planes, to)
        else:
            y, lines = _drop(rules, game, before, p, FOUR, planes, to)
        removed[to] = 0 if lines == 0 else _remove(rules, game, p, y, lines, planes, to)
        fatal[to] = planes[TWO * unsigned(rules.width) - ONE, to] > rules.usable
    return count


@compiled
def _before(game: Game, planes: NDArray[Any], at: Index, count: Index) -> Before:
    """Set heights and differences before any placement, for all placements, and the constant."""
    W = unsigned(game.heights.size)
    pit, tallest, under = unsigned(0), 0, 0
    for c in range(W):
        h = game.heights[c]
        tallest = max(tallest, h)
        under += h
        if h < game.heights[pit]:
            pit = unsigned(c)
        for a in range(count):
            planes[c, at + a] = h
    for c in range(ONE, W):
        difference = abs(game.heights[c] - game.heights[c - ONE])
        for a in range(count):
            planes[W + c - ONE, at + a] = difference
    for a in range(count):
        planes[TWO * W + ONE, at + a] = 1
    return Before(tallest, under - game.cells[0], pit, game.heights[pit])


@compiled
def _drop(
    rules: Rules, game: Game, before: Before, p: Index, span: Index, planes: NDArray[Any], to: Index
) -> tuple[int, int]:
    """Compute the features if a placement fills no row; return where it lands and the rows it fills, as bits."""
    table, heights, W = rules.placements, game.heights, unsigned(rules.width)
    c, y = unsigned(table.column[p]), 0
    for j in range(span):
        y = max(y, heights[c + j] - table.low[p, j])
    holes, left = before.holes, 0
    for j in range(span):
        holes += y + table.low[p, j] - heights[c + j]
        h = y + table.high[p, j]
        planes[c + j, to] = h
        if j > 0:
            planes[W + c + j - ONE, to] = abs(h - left)
        left = h
    if c > 0:
        planes[W + c - ONE, to] = abs(y + table.high[p, 0] - heights[c - ONE])
    if c + span < W:
        planes[W + c + span - ONE, to] = abs(heights[c + span] - left)
    planes[TWO * W - ONE, to] = max(before.tallest, y + table.tall[p])
    planes[TWO * W, to] = holes
    if before.lowest > y or c <= before.pit < c + span:  # otherwise the lowest column stays open
        return y, full_rows(rules, game.rows, p, y)
    return y, 0


@compiled
def _remove(rules: Rules, game: Game, p: Index, y: int, lines: int, planes: NDArray[Any], to: Index) -> int:
    """Compute the features if a placement fills the rows y + i, for bits i of `lines`; return their number."""
    table, W, gone = rules.placements, unsigned(rules.width), 0
    for i in range(TALL):
        gone += lines >> i & 1
    tallest, under, left = 0, 0, 0
    for c in range(rules.width):
        j = c - table.column[p]
        h = y + table.high[p, j] if 0 <= j < table.span[p] else game.heights[c]
        if is_full(lines, h - 1 - y):
            h = _below(rules, game, p, y, lines, c, h - 1)
        else:
            h -= gone  # a full row fills every column, so all full rows were below
        planes[unsigned(c), to] = h
        if c > 0:
            planes[W + unsigned(c) - ONE, to] = abs(h - left)
        tallest, under, left = max(tallest, h), under + h, h
    planes[TWO * W - ONE, to] = tallest
    planes[TWO * W, to] = under - (game.cells[0] + CELLS - gone * rules.width)
    return gone


@compiled
def is_full(lines: int, i: int) -> bool:
    """Return whether the row i above the landing row is full."""
    return 0 <= i < TALL and lines >> i & 1 == 1


@compiled
def _below(rules: Rules, game: Game, p: Index, y: int, lines: int, c: int, h: int) -> int:
    """Return the height of a column after full rows are removed, one of which, row h, was its top."""
    table = rules.placements
    while h > 0:
        i = h - 1 - y
        bits = game.rows[h - 1]
        if 0 <= i < table.tall[p]:
            bits |= table.bits[p, i]
        if not is_full(lines, i) and bits >> c & 1 == 1:
            break
        h -= 1
    below = 0
    for i in range(TALL):
        below += y + i < h and is_full(lines, i)
    return h - below
