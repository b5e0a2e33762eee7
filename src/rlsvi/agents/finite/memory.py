"""All past episodes, as sums whose size does not grow with their number.

A period h stores the states it has seen, with their features, and for the regression of Algorithm 1
    A'b = sum_i phi_i r_i + sum_i phi_i V_{h+1}(s_i')
the first sum and, for every block and next state s' seen, the sum of the phi that led there. The targets
change with every sampled V_{h+1}, but these sums do not: A'b is rebuilt exactly, at a cost that depends only
on the number of distinct states. States that never repeat are rows of the same tables.
For unknown noise, |b|^2 is rebuilt in the same way, from the sum of all r^2 and, for every block and next
state, the number of transitions that led there and the sum of their rewards.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import copy_into
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Bools, Floats, Ints, Longs, compiled
from rlsvi.core.regression import add, rank_one


class Memory(NamedTuple):
    """H periods, B blocks of d weights, A actions; room for C states and E sums per period."""

    counters: Longs  # (2,) episodes and steps learned from
    states: Longs  # (H,) number of known states
    phi: Floats  # (H, d, C A) features of each known state j and action a, at j A + a
    block: Ints  # (H, C A)
    barred: Floats  # (H, C A) 0 if the action is legal, -inf otherwise
    alive: Bools  # (H, B) blocks that a known state can touch
    lives: Longs  # (H,) number of live blocks
    live: Ints  # (H, B) the live blocks, in the order they were first seen
    reward: Floats  # (H, B, d) sum of phi r
    reward_error: Floats
    counts: Floats  # (H,) transitions; fewer if the past is discounted
    squares: Floats  # (H,) sum of r^2
    sums: Longs  # (H,) distinct pairs of a block and a next state
    sum_block: Ints  # (H, E)
    sum_next: Ints  # (H, E) the next state, as a row of period h + 1
    sum_link: Ints  # (H, E) another sum into the same next state, or -1
    sum_head: Ints  # (H, C) the last sum into a next state, or -1
    into: Floats  # (H, E, d) sum of phi
    into_error: Floats
    into_count: Floats  # (H, E) transitions
    into_reward: Floats  # (H, E) sum of r


_AXES = {  # P is C A; fields that are not listed have the shape (H,)
    "counters": "2", "phi": "HdP", "block": "HP", "barred": "HP", "alive": "HB", "live": "HB", "reward": "HBd",
    "reward_error": "HBd", "sum_block": "HE", "sum_next": "HE", "sum_link": "HE", "sum_head": "HC",
    "into": "HEd", "into_error": "HEd", "into_count": "HE", "into_reward": "HE",
}  # fmt: skip
_LINKS = ("sum_link", "sum_head")
_TYPES = (
    dict.fromkeys(("block", "live", "sum_block", "sum_next", *_LINKS), np.int32)
    | dict.fromkeys(("counters", "states", "lives", "sums"), np.int64)
    | {"alive": np.bool_}
)  # else float64


def _layout(H: int, A: int, B: int, d: int, C: int, E: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the shape and type of every array of a memory of this size."""
    sizes = {"2": 2, "H": H, "P": C * A, "B": B, "d": d, "C": C, "E": E}
    shapes = {name: tuple(sizes[axis] for axis in _AXES.get(name, "H")) for name in Memory._fields}
    return {name: (shape, _TYPES.get(name, np.float64)) for name, shape in shapes.items()}


def empty(H: int, A: int, B: int, d: int, states: int = 16, sums: int = 16) -> Memory:
    """Return an empty memory, with room for `states` states and `sums` sums per period."""
    memory = Memory(**{name: np.zeros(*each) for name, each in _layout(H, A, B, d, states, sums).items()})
    memory.sum_link[:] = memory.sum_head[:] = -1
    return memory


def resized(memory: Memory, states: int, sums: int) -> Memory:
    """Return the same memory with room for `states` states and `sums` sums per period."""
    (H, d, pairs), room = memory.phi.shape, memory.sum_head.shape[1]
    larger: Memory = copy_into(empty(H, pairs // room, memory.alive.shape[1], d, states, sums), memory)
    return larger


@compiled
def add_state(memory: Memory, h: int, phi: Floats, block: Ints, legal: Bools) -> int:
    """Add a state to period h, given the features (A, d) and blocks (A,) of its actions."""
    j: int = memory.states[h]
    memory.states[h] = j + 1
    for a in range(block.size):
        pair = j * block.size + a
        memory.block[h, pair] = block[a]
        memory.barred[h, pair] = 0.0 if legal[a] else -np.inf
        for k in range(phi.shape[1]):
            memory.phi[h, k, pair] = phi[a, k]
        if legal[a] and not memory.alive[h, block[a]]:
            memory.alive[h, block[a]] = True
            memory.live[h, memory.lives[h]] = block[a]
            memory.lives[h] += 1
    return j


@compiled
def _sum_of(memory: Memory, h: int, block: int, following: int) -> int:
    """Return the index of the sum of features of `block` that led to the state `following` of period h + 1."""
    e: int = memory.sum_head[h, following]
    while e >= 0:
        if memory.sum_block[h, e] == block:
            return e
        e = memory.sum_link[h, e]
    e = memory.sums[h]
    memory.sums[h] = e + 1
    memory.sum_block[h, e] = block
    memory.sum_next[h, e] = following
    memory.sum_link[h, e] = memory.sum_head[h, following]
    memory.sum_head[h, following] = e
    return e


@compiled
def add_transitions(mind: Any, visited: Longs, actions: Longs, rewards: Floats, T: int, goes_on: bool) -> bool:
    """Add the transitions of T steps through the known states `visited` to the sums and the factors of a mind.

    `goes_on`: the episode was truncated in state visited[T]; otherwise it terminated.
    Returns False if a factor failed.
    """
    memory, factor, x = mind.memory, mind.factor, mind.x
    A = memory.block.shape[1] // memory.sum_head.shape[1]
    for h in range(T):
        pair = visited[h] * A + actions[h]
        b = memory.block[h, pair]
        for k in range(x.size):
            x[k] = memory.phi[h, k, pair]
        memory.counts[h] += 1.0
        memory.squares[h] += rewards[h] * rewards[h]
        if rewards[h] != 0.0:  # adding zero changes nothing
            add(memory.reward[h, b], memory.reward_error[h, b], x, rewards[h])
        if goes_on or h + 1 < T:
            e = _sum_of(memory, h, b, visited[h + 1])
            add(memory.into[h, e], memory.into_error[h, e], x, 1.0)
            memory.into_count[h, e] += 1.0
            memory.into_reward[h, e] += rewards[h]
        if not rank_one(factor.U[h, b], factor.inv[h, b], x):
            return False
    return True


def read_memory(file: Archive, H: int, A: int, B: int, d: int) -> Memory:
    """Read the memory from a file, checking that its arrays are consistent and all indices are within bounds."""
    (_, room), (_, sums, _) = file.shape("memory.sum_head", 2), file.shape("memory.into", 3)
    if room < 1 or sums < 1:
        raise ArchiveError("is damaged: its memory has no room")
    bounds = {
        "counters": (0, 2**62),
        "states": (0, room),
        "sums": (0, sums),
        "lives": (0, B),
        "block": (0, B - 1),
        "live": (0, B - 1),
        "sum_block": (0, B - 1),
        "sum_next": (0, room - 1),
        "sum_link": (-1, sums - 1),
        "sum_head": (-1, sums - 1),
    }
    fields = {}
    for name, (shape, kind) in _layout(H, A, B, d, room, sums).items():
        if name in bounds:
            fields[name] = file.take_within(f"memory.{name}", shape, kind, *bounds[name])
        else:
            fields[name] = file.take(f"memory.{name}", shape, kind, finite=name != "barred")
    memory = Memory(**fields)
    if min(memory.counts.min(), memory.into_count.min()) < 0:
        raise ArchiveError("is damaged: its memory has counted less than nothing")
    if (room, sums) != (max(memory.states.max(), 1), max(memory.sums.max(), 1)):
        raise ArchiveError("is damaged: its memory has other numbers of states and sums than it says")
    listed = np.zeros((H, B), np.bool_)
    for h, n in enumerate(memory.lives):
        listed[h, memory.live[h, :n]] = True
    sound = np.array_equal(listed, memory.alive) and np.array_equal(memory.alive.sum(axis=1), memory.lives)
    if not sound or not ((memory.barred == 0) | (memory.barred == -np.inf)).all():
        raise ArchiveError("is damaged: the blocks of weights in its memory do not fit together")
    if not all(_is_linked(memory, h) for h in range(H)):
        raise ArchiveError("is damaged: the sums in its memory are not linked as they were")
    return memory


def _is_linked(memory: Memory, h: int) -> bool:
    """Return whether every sum of a period is reached from its next state exactly once."""
    last: dict[int, int] = {}
    for e, (following, link) in enumerate(zip(memory.sum_next[h], memory.sum_link[h], strict=True)):
        if e >= memory.sums[h]:
            break
        if last.get(int(following), -1) != link:
            return False
        last[int(following)] = e
    heads = {j: int(e) for j, e in enumerate(memory.sum_head[h]) if e >= 0}
    return heads == last
