"""Features of the board after a placement, as small integers, for all placements at once.

Features are stored in planes, (d, M): one row per feature, one column per placement. Those of many positions are
thus adjacent in one array, and the values of many placements are summed at once, each in the order of the
features. This is as fast as the machine allows, and gives the same bits as one by one.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rlsvi.core.checks import one_of, shown
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Bools, Floats, compiled, unsigned
from rlsvi.tetris.bertsekas import bertsekas
from rlsvi.tetris.dellacherie import NAMES, dellacherie
from rlsvi.tetris.game import Game, Rules
from rlsvi.tetris.pieces import TALL

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


def checked_kind(kind: Any) -> int:
    """Return `kind` if it is the number of a kind of features."""
    if isinstance(kind, bool) or not isinstance(kind, int | np.integer) or not 0 <= kind < len(KINDS):
        known = ", ".join(f"{i} ({name})" for i, name in enumerate(KINDS))
        raise ValueError(f"kind must be one of {known}, got {shown(kind)}")
    return int(kind)


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
