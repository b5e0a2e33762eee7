"""The seven pieces, and every way to place one: a rotation and a column.

A placement is described by its profile, the lowest and the highest cell of each column it touches. This determines
where it lands, which is a maximum of a few heights.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Longs

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
