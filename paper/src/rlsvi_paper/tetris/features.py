"""Features of the board after a placement, as small integers, for all placements at once.

Features are stored in planes, (d, M): one row per feature, one column per placement. Those of many positions are
thus adjacent in one array, and the values of many placements are summed at once, each in the order of the
features. This is as fast as the machine allows, and gives the same bits as one by one.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rlsvi.core.checks import one_of
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Bools, Floats, Longs, compiled, unsigned
from rlsvi_paper.tetris.game import CELLS, TALL, Game, Rules, full_rows, landing

# ---- The features of Bertsekas and Ioffe (1996), the benchmark that the paper uses -------------------------
#
# The heights of the columns, the absolute differences between neighbours, the maximum height, the holes (empty
# cells with a filled one above) and a constant. For each placement only the changes are computed.


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
    W, gone = unsigned(rules.width), 0
    for i in range(TALL):
        gone += lines >> i & 1
    tallest, under, left = 0, 0, 0
    for c in range(rules.width):
        h = height_after(rules, game, p, y, lines, gone, c)
        planes[unsigned(c), to] = h
        if c > 0:
            planes[W + unsigned(c) - ONE, to] = abs(h - left)
        tallest, under, left = max(tallest, h), under + h, h
    planes[TWO * W - ONE, to] = tallest
    planes[TWO * W, to] = under - (game.cells[0] + CELLS - gone * rules.width)
    return gone


@compiled
def height_after(rules: Rules, game: Game, p: int | Index, y: int, lines: int, gone: int, c: int) -> int:
    """Return the height of column c after a placement that fills `lines`, which are `gone` rows."""
    table = rules.placements
    j = c - table.column[p]
    h: int = y + table.high[p, j] if 0 <= j < table.span[p] else game.heights[c]
    if is_full(lines, h - 1 - y):
        return _below(rules, game, p, y, lines, c, h - 1)
    return h - gone  # a full row fills every column, so all full rows were below


@compiled
def is_full(lines: int, i: int) -> bool:
    """Return whether the row i above the landing row is full."""
    return 0 <= i < TALL and lines >> i & 1 == 1


@compiled
def _below(rules: Rules, game: Game, p: int | Index, y: int, lines: int, c: int, h: int) -> int:
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


# ---- The features of Dellacherie and of Thiery and Scherrer, which the best linear players use -------------
#
# C. Thiery and B. Scherrer, "Building Controllers for Tetris", ICGA Journal 32 (2009): six of Pierre
# Dellacherie's, two of their own, and here a constant. Walls and floor count as filled.


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


Kind = Literal["bertsekas", "dellacherie"]
BERTSEKAS, DELLACHERIE = 0, 1
KINDS = ("bertsekas", "dellacherie")


class Room(NamedTuple):
    """Work arrays for the placements of one piece."""

    planes: NDArray[Any]  # (d, A)
    removed: NDArray[np.uint8]  # (A,)
    fatal: Bools  # (A,)
    values: Floats  # (A,)


def kind_of(name: Kind) -> int:
    """Return the number of a kind of features in compiled code."""
    return KINDS.index(one_of("features", name, KINDS))


def names(kind: int, width: int) -> tuple[str, ...]:
    """Return the names of the features."""
    if kind == DELLACHERIE:
        return NAMES
    heights = [f"height of column {c}" for c in range(width)]
    differences = [f"difference between columns {c} and {c + 1}" for c in range(width - 1)]
    return (*heights, *differences, "greatest height", "holes", "constant")


def natural_units(kind: int, rules: Rules, scaled: bool) -> Floats:
    """Return the units of the features, by which the integers are multiplied.

    If scaled, all but the constant are divided by the height of the board, so that heights lie between 0 and 1.
    Learning by posterior samples requires this: a prior over weights of heights up to 20 is far too wide.
    """
    units = np.ones(len(names(kind, rules.width)))
    if kind == DELLACHERIE:
        units[0] = 0.5  # twice the landing height is stored, which is an integer
    if scaled:
        units[:-1] /= rules.height
    return units


def smallest_dtype(kind: int, rules: Rules) -> DTypeLike:
    """Return the smallest integer type that no feature exceeds under these rules."""
    rows = rules.height + TALL
    most = rows * rules.width if kind == BERTSEKAS else rows * rows * rules.width
    return np.uint8 if most <= 255 else np.int16 if most <= 32767 else np.int32


def new_room(rules: Rules, kind: int, dtype: DTypeLike = np.float64) -> Room:
    """Return work arrays for the placements of one piece. float64 is exact here, and computes values fastest."""
    A = int(np.diff(rules.placements.first).max())
    planes = np.zeros((len(names(kind, rules.width)), A), dtype=dtype)
    return Room(planes, np.zeros(A, dtype=np.uint8), np.zeros(A, dtype=np.bool_), np.zeros(A))


@compiled
def afterstates(
    rules: Rules, kind: int, game: Game, planes: NDArray[Any], at: int, removed: NDArray[Any], fatal: Bools
) -> int:
    """Compute the features of the board after each placement of the piece; return the number of placements.

    Placement a uses column at + a of `planes`, and the same position in `removed`, the rows it removes, and in
    `fatal`, whether it ends the game.
    """
    if kind == BERTSEKAS:
        return bertsekas(rules, game, planes, at, removed, fatal)
    return dellacherie(rules, game, planes, at, removed, fatal)


@compiled
def values(planes: NDArray[Any], at: int, count: int, weights: Floats, out: Floats) -> None:
    """Compute the values of `count` placements from column `at` on: weights . features, summed in order."""
    n, o, d = unsigned(count), unsigned(at), unsigned(weights.size)
    for a in range(n):
        out[a] = 0.0
    k = unsigned(0)
    while k + THREE < d:  # four at a time, to load and store a sum less often
        w, x, y, z = weights[k], weights[k + ONE], weights[k + TWO], weights[k + THREE]
        for a in range(n):
            i = o + a
            s = out[a] + w * planes[k, i] + x * planes[k + ONE, i]
            out[a] = s + y * planes[k + TWO, i] + z * planes[k + THREE, i]
        k += FOUR
    while k < d:
        for a in range(n):
            out[a] += weights[k] * planes[k, o + a]
        k += ONE


@compiled
def evaluate(rules: Rules, kind: int, game: Game, weights: Floats, room: Room) -> int:
    """Compute only the value weights . features of every placement; return the number of placements."""
    count = afterstates(rules, kind, game, room.planes, 0, room.removed, room.fatal)
    values(room.planes, 0, count, weights, room.values)
    return count
