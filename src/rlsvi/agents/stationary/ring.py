"""The most recent transitions, with everything that a regression over them needs, added and evicted exactly.

A transition is stored as the features of its state and action, its reward, and the features of every legal action
in the next state, or none if that is terminal. Features are uint8, int16 (times `units` when used) or float64.
Those of the next actions are stored in planes, one plane per feature with transitions side by side, which is the
fastest layout to read. Nothing computed from a ring depends on the positions of the transitions in it, only on
which they are and in what order.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats, Ints, Longs, compiled
from rlsvi.core.elementary import add_outer

Numbers = NDArray[Any]
FOREVER = 2**62  # a ring of this many transitions evicts none
KEPT = (np.dtype(np.uint8), np.dtype(np.int16), np.dtype(np.float64))  # types of stored features
LINE = 64  # columns: planes of bytes aligned alike within cache lines are read faster


class Ring(NamedTuple):
    """Room for N transitions and M next actions; B blocks of d features; P = d planes, or d + 1 with rewards."""

    limit: Longs  # (1,) the maximum number of transitions
    first: Longs  # (1,) position of the oldest one
    size: Longs  # (1,) number of transitions
    head: Longs  # (1,) the first free column of next_x
    x: Numbers  # (N, d) features of the state and action
    block: Ints  # (N,)
    reward: Floats  # (N,)
    start: Longs  # (N,) first column in next_x
    following: Ints  # (N,) number of columns: the legal actions of the next state
    next_x: Numbers  # (P, M) features of the next actions; plane d, if any, contains known rewards
    next_block: Ints  # (M,)
    units: Floats  # (d,) a feature is the stored number times its unit
    gram: Numbers  # (B, d, d) the sum of x x', upper triangle: int64, or float64
    low: Floats  # (B, d, d) the rounding error of gram; (B, 0, 0) for int64
    reach: Floats  # (2,) the largest |reward| and |x units| ever stored


def empty_ring(
    actions: int, blocks: int, units: Floats, dtype: Any, known: bool, memory: int | None, room: int = 256
) -> Ring:
    """Return an empty ring. `known`: the rewards of the next actions are stored with them."""
    d, M, whole = len(units), columns_for(room * actions), np.dtype(dtype).kind in "iu"
    limit = FOREVER if memory is None else memory
    return Ring(
        limit=np.array([limit]),
        first=np.zeros(1, np.int64),
        size=np.zeros(1, np.int64),
        head=np.zeros(1, np.int64),
        x=np.zeros((room, d), dtype),
        block=np.zeros(room, np.int32),
        reward=np.zeros(room),
        start=np.zeros(room, np.int64),
        following=np.zeros(room, np.int32),
        next_x=np.zeros((d + known, M), dtype),
        next_block=np.zeros(M, np.int32),
        units=np.array(units, dtype=np.float64),
        gram=np.zeros((blocks, d, d), np.int64 if whole else np.float64),
        low=np.zeros((blocks, 0 if whole else d, 0 if whole else d)),
        reach=np.zeros(2),
    )


def columns_for(pairs: int) -> int:
    """Return the columns for `pairs` next actions: an odd number of lines, to reduce cache conflicts of planes."""
    return (-(-pairs // LINE) | 1) * LINE


def resized(ring: Ring, transitions: int, pairs: int) -> Ring:
    """Return the same transitions, oldest first, with room for `transitions` and `pairs` next actions."""
    size, room = int(ring.size[0]), len(ring.x)
    order = (int(ring.first[0]) + np.arange(size)) % room
    counts = ring.following[order].astype(np.int64)
    ends = np.cumsum(counts)
    used = int(ends[-1]) if size else 0
    columns = np.arange(used) + np.repeat(ring.start[order] - (ends - counts), counts)
    fields = ring._asdict() | {
        "first": np.zeros(1, np.int64),
        "size": ring.size.copy(),
        "head": np.array([used]),
        "start": np.zeros(transitions, np.int64),
        "next_x": np.zeros((len(ring.next_x), columns_for(pairs)), ring.next_x.dtype),
        "next_block": np.zeros(columns_for(pairs), np.int32),
    }
    fields["start"][:size] = ends - counts
    fields["next_block"][:used] = ring.next_block[columns]
    for plane, old in zip(fields["next_x"], ring.next_x, strict=True):
        plane[:used] = old[columns]
    for name in ("x", "block", "reward", "following"):
        old = fields[name]
        fields[name] = np.zeros((transitions, *old.shape[1:]), old.dtype)
        fields[name][:size] = old[order]
    return Ring(**fields)


def pairs_of(ring: Ring) -> int:
    """Return the number of next actions stored."""
    order = (int(ring.first[0]) + np.arange(int(ring.size[0]))) % len(ring.x)
    return int(ring.following[order].sum())


def used_columns(ring: Ring) -> int:
    """Return the number of columns from the oldest transition to the first free one, including gaps."""
    if ring.size[0] == 0:
        return 0
    head, tail = int(ring.head[0]), int(ring.start[ring.first[0]])
    return head - tail if head >= tail else head + ring.next_x.shape[1] - tail


def read_ring(file: Archive, actions: int, memory: int | None, known: bool) -> Ring:
    """Read the ring from a file, checking that its arrays are consistent and all indices are within bounds."""
    (room, d), (planes, columns), (blocks, *_) = (
        file.shape(f"ring.{name}", n) for name, n in (("x", 2), ("next_x", 2), ("gram", 3))
    )
    dtype, limit = file.dtype("ring.x"), FOREVER if memory is None else memory
    if dtype not in KEPT or min(room, d, columns, blocks) < 1 or planes != d + known:
        raise ArchiveError(f"is damaged: no ring holds {dtype} features of shape {(room, d)} and {planes} planes")
    shapes = {"x": (room, d), "next_x": (planes, columns), "gram": (blocks, d, d), "units": (d,), "reach": (2,)}
    shapes |= dict.fromkeys(("block", "reward", "start", "following"), (room,))
    shapes["next_block"] = (columns,)
    shapes["low"] = (blocks, 0, 0) if dtype.kind in "iu" else (blocks, d, d)
    fields = {}
    for name, kind in empty_ring(1, 1, np.ones(1), dtype, known, memory, 1)._asdict().items():
        fields[name] = file.take(f"ring.{name}", shapes.get(name, (1,)), kind.dtype)
    ring = Ring(**fields)
    size, following = int(ring.size[0]), ring.following.astype(np.int64)
    pairs = following[: max(size, 0)]
    fine = ring.limit[0] == limit and 0 <= size <= min(room, limit) and ring.first[0] == 0
    fine = fine and bool(((following >= 0) & (following <= actions)).all())
    fine = fine and np.array_equal(ring.start[:size], np.cumsum(pairs) - pairs)
    fine = fine and ring.head[0] == pairs.sum() <= columns and bool((ring.units != 0).all())
    fine = fine and not any(part[..., int(pairs.sum()) :].any() for part in (ring.next_x, ring.next_block))
    for block in (ring.block, ring.next_block):
        fine = fine and bool(((block >= 0) & (block < blocks)).all())
    if not fine:
        raise ArchiveError("is damaged: an index in its ring points outside its tables")
    return ring


@compiled
def place_for(ring: Ring, pairs: int) -> int:
    """Return the first of `pairs` adjacent free columns, or -1. Columns are used in a circle, without breaks."""
    head, columns = ring.head[0], ring.next_x.shape[1]
    if ring.size[0] == 0:
        return 0 if pairs <= columns else -1
    tail = ring.start[ring.first[0]]
    if head >= tail:
        if head + pairs <= columns:
            return int(head)
        return 0 if pairs < tail else -1
    return int(head) if head + pairs < tail else -1


@compiled
def evict(ring: Ring, row: Numbers) -> None:
    """Remove the oldest transition. `row` (d,), of the type of gram, is overwritten."""
    i = ring.first[0]
    b = ring.block[i]
    for k in range(row.size):
        row[k] = ring.x[i, k]
    add_outer(ring.gram[b], ring.low[b], row, -1)
    ring.first[0] = i + 1 if i + 1 < ring.x.shape[0] else 0
    ring.size[0] -= 1


@compiled
def begin_transition(ring: Ring, x: Numbers, block: int, reward: float, pairs: int, row: Numbers) -> int:
    """Store a transition without its next actions and return the first column for these; -1 if there is none."""
    if ring.size[0] == ring.limit[0]:
        evict(ring, row)
    p = place_for(ring, pairs)
    if p < 0 or ring.size[0] == ring.x.shape[0]:
        return -1
    i = (ring.first[0] + ring.size[0]) % ring.x.shape[0]
    ring.size[0] += 1
    ring.block[i], ring.reward[i], ring.start[i], ring.following[i] = block, reward, p, pairs
    norm = 0.0
    for k in range(row.size):
        ring.x[i, k] = x[k]
        row[k] = x[k]
        norm += (x[k] * ring.units[k]) * (x[k] * ring.units[k])
    add_outer(ring.gram[block], ring.low[block], row, 1)
    ring.reach[0], ring.reach[1] = max(ring.reach[0], abs(reward)), max(ring.reach[1], np.sqrt(norm))
    ring.head[0] = p + pairs
    return p
