"""The fused loop of Tetris: placements, features, values, choices and steps of a game in one compiled function.

It calls the same functions as the Gymnasium loop of a stationary agent, in the same order and with the same random
streams, so both produce the same games bit for bit; an agent may switch between them after any game. The
transitions of a game are buffered while it lasts, and added to the agent's ring when it has ended. A game that is
stopped by Ctrl-C, or fails, therefore leaves the agent unchanged.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.agents.contract import ACTION, EPISODE, POSTERIOR, diverged
from rlsvi.agents.explore import choose, exploration
from rlsvi.agents.stationary import (
    FOREVER,
    Numbers,
    Ring,
    StationaryAgent,
    StationaryLearner,
    StationaryMind,
    begin_transition,
    count_episode,
    empty_ring,
    place_for,
    resize_ring,
)
from rlsvi.core.checks import fits, function_of, shown, whole
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled, unsigned
from rlsvi.core.random import bits, reseed
from rlsvi.envs.task import Task
from rlsvi_paper.tetris.basis import Tetris
from rlsvi_paper.tetris.features import Room, afterstates, kind_of, values
from rlsvi_paper.tetris.game import Game, Rules, check_rules, new_game, start, step

STOPPED, OVER, FULL, BROKEN = range(4)
CHUNK = 20_000  # pieces between two returns from the compiled loop
MOVED = 2048  # approximate number of next placements moved at once
ROWS, PIECES, COUNT = range(3)


class Games(NamedTuple):
    """The results of each game.

    Parameters
    ----------
    rows
        Rows removed.
    pieces
        Pieces placed.
    over
        Whether the game was over, rather than truncated.
    size
        The norm of the weights theta it was played with.
    excess
        Its largest target, in multiples of what rewards, prior and discount explain: large on divergence.
    game_over
        The rule that ends a game.

    Examples
    --------
    >>> from rlsvi import StationaryRLSVI
    >>> from rlsvi_paper.tetris import Tetris, rules, simulate_tetris
    >>> agent = StationaryRLSVI(basis=Tetris(), form="afterstate", gamma=0.99, seed=0)
    >>> games = simulate_tetris(agent, rules(height=8, width=6), games=3)
    >>> games.rows.shape, bool(games.over.all())
    ((3,), True)
    """

    rows: Longs
    pieces: Longs
    over: Bools
    size: Floats
    excess: Floats
    game_over: NDArray[np.str_]


class Desk(NamedTuple):
    """The state of a game in progress."""

    rules: Rules
    kind: int
    known: bool  # whether the agent knows the rows that a placement removes
    game: Game
    room: Room  # placements of the current piece; if known, the last of P planes is the rows they remove
    tally: Longs  # (3,) rows removed, pieces placed, and number of placements of the current piece
    legal: Bools  # (A,) of ones
    chances: Floats  # (A,)
    nature: Words  # the stream of pieces


def simulate_tetris(
    agent: StationaryAgent,
    rules: Rules,
    games: int,
    *,
    max_pieces: int | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Games:
    """Let `agent`, whose basis is `bases.Tetris`, learn `games` more games; mostly without the GIL.

    Parameters
    ----------
    agent
        The agent, which goes on learning.
    rules
        The rules of the game, from `rlsvi_paper.tetris.rules`; they must not change for an agent (see `setting`).
    games
        The number of games.
    max_pieces
        A game is truncated after this many pieces. If None, never.
    advance
        Called with 1 after every game.

    Returns
    -------
    Games
        The rows removed and pieces placed in each game, and more.

    Examples
    --------
    >>> import rlsvi
    >>> from rlsvi_paper import tetris
    >>> agent = rlsvi.StationaryRLSVI(basis=tetris.Tetris(), seed=0)
    >>> rules = tetris.rules(height=6, width=5, pieces="IO")
    >>> tetris.simulate_tetris(agent, rules, 3).rows.shape
    (3,)
    """
    limit = FOREVER if max_pieces is None else whole("max_pieces", max_pieces, 1, FOREVER)
    function_of("advance", advance, "the number of games just finished")
    whole("games", games, 0, 2**31 - 1)
    fits(f"the results of {games} games", 10 * games, "play fewer")
    (rows, pieces), (size, excess) = np.zeros((2, games), np.int64), np.zeros((2, games))
    rules_of = np.full(games, check_rules(rules).game_over, dtype="U8")
    found = Games(rows, pieces, np.zeros(games, np.bool_), size, excess, rules_of)
    if games == 0:
        return found
    learner = learner_for(agent, rules)
    ring, desk = learner.mind.ring, _desk(agent, learner, rules)
    aside = empty_ring(rules.actions, 1, ring.units, ring.x.dtype, desk.known, int(ring.limit[0]))
    for g in range(games):
        with agent._restore_streams():
            reseed(desk.nature, bits(agent._streams[EPISODE]) >> np.uint64(32))
            plan = learner.plan(agent._uses_sample(learner), agent._streams[POSTERIOR], learning=True)
            rule, parameters = exploration(agent.explore, agent.episodes, 1)
            found.over[g], aside = _game(desk, plan.w, rule, parameters[0], agent._streams[ACTION], aside, limit)
            order = (int(aside.first[0]) + np.arange(int(aside.size[0]))) % len(aside.x)
            learner.make_room(aside.following[order])
            row = np.empty(len(aside.units), aside.gram.dtype)
            agent._expect([float(desk.tally[ROWS])])
            pour(aside, learner.mind, plan.theta, plan.largest, int(desk.tally[PIECES]), row)
        agent._notice()
        found.rows[g], found.pieces[g] = desk.tally[ROWS], desk.tally[PIECES]
        found.size[g], found.excess[g] = math.hypot(*plan.theta.flat), agent.excess
        advance(1)
    return found


def learner_for(agent: StationaryAgent, rules: Rules) -> StationaryLearner:
    """Return the learner of `agent`, after checking that it can play by these rules."""
    _kind(agent)
    setting = check_rules(rules).setting
    board = np.zeros((rules.height, rules.width), dtype=np.int8)
    return agent.prepare(Task(0, rules.actions, None), setting, {"board": board, "piece": int(rules.letters[0])})


def _kind(agent: StationaryAgent) -> int:
    if not isinstance(agent, StationaryAgent) or not isinstance(agent.basis, Tetris):
        raise TypeError(
            "agent must be a StationaryRLSVI or StationaryLSVI with basis=rlsvi_paper.tetris.Tetris() for the "
            f"loop of Tetris, got {shown(agent)}: others learn from rlsvi/Tetris-v0 by learn(env)"
        )
    return kind_of(agent.basis.features)


def _desk(agent: StationaryAgent, learner: StationaryLearner, rules: Rules) -> Desk:
    A, P, d = rules.actions, len(learner.mind.ring.next_x), len(learner.mind.ring.units)
    planes = np.zeros((P, A), learner.mind.ring.x.dtype)
    return Desk(
        rules=rules,
        kind=_kind(agent),
        known=P > d,
        game=new_game(rules),
        room=Room(planes, np.zeros(A, dtype=np.uint8), np.zeros(A, dtype=np.bool_), np.zeros(A)),
        tally=np.zeros(3, dtype=np.int64),
        legal=np.ones(A, dtype=np.bool_),
        chances=np.zeros(A),
        nature=np.zeros(4, dtype=np.uint64),
    )


def _game(
    desk: Desk, w: Floats, rule: int, parameter: float, stream: Words, aside: Ring, limit: int
) -> tuple[bool, Ring]:
    """Play one game; return whether it is over, and its transitions."""
    weights = np.ascontiguousarray(w[:, 0])
    begin(desk, aside)
    while True:
        until = min(int(desk.tally[PIECES]) + CHUNK, limit)
        status = play_on(desk, weights, rule, parameter, stream, aside, until)
        if status == BROKEN:
            raise diverged()
        if status == FULL:
            aside = resize_ring(aside, 2 * len(aside.x), 2 * aside.next_x.shape[1])
        elif status == OVER or desk.tally[PIECES] == limit:
            return status == OVER, aside


@compiled
def begin(desk: Desk, aside: Ring) -> None:
    """Start with an empty board and no transitions."""
    start(desk.rules, desk.game, desk.nature)
    desk.tally[ROWS] = desk.tally[PIECES] = 0
    aside.first[0] = aside.size[0] = aside.head[0] = 0
    look(desk)


@compiled
def look(desk: Desk) -> None:
    """Compute the placements of the current piece."""
    room = desk.room
    count = afterstates(desk.rules, desk.kind, desk.game, room.planes, 0, room.removed, room.fatal)
    if desk.known:
        for a in range(count):
            room.planes[room.planes.shape[0] - 1, a] = room.removed[a]
    desk.tally[COUNT] = count


@compiled
def play_on(
    desk: Desk, weights: Floats, rule: int, parameter: float, stream: Words, aside: Ring, until: int
) -> int:
    """Continue a game until it is over, has `until` pieces, the buffer is full or a number is not finite."""
    room, tally = desk.room, desk.tally
    while tally[PIECES] < until:
        if aside.size[0] == aside.limit[0]:
            forget(aside)
        p = place_for(aside, room.values.size)
        if p < 0 or aside.size[0] == aside.x.shape[0]:
            return FULL
        count = tally[COUNT]
        values(room.planes, 0, count, weights, room.values)
        a = choose(rule, parameter, room.values[:count], desk.legal[:count], desk.chances[:count], stream)
        if a < 0:
            return BROKEN
        i = (aside.first[0] + aside.size[0]) % aside.x.shape[0]
        for k in range(aside.x.shape[1]):
            aside.x[i, k] = room.planes[k, a]
        removed, ended = step(desk.rules, desk.game, a, desk.nature)
        aside.reward[i], aside.start[i], aside.following[i] = removed, p, 0
        tally[ROWS] += removed
        tally[PIECES] += 1
        aside.size[0] += 1
        if ended:
            aside.head[0] = p
            return OVER
        look(desk)
        aside.following[i] = tally[COUNT]
        aside.head[0] = p + tally[COUNT]
        copy_columns(room.planes, 0, aside.next_x, p, tally[COUNT])
    return STOPPED


@compiled
def forget(aside: Ring) -> None:
    """Drop the oldest transition, which the agent would forget anyway; its extreme values are kept."""
    i = aside.first[0]
    norm = 0.0
    for k in range(aside.units.size):
        norm += (aside.x[i, k] * aside.units[k]) * (aside.x[i, k] * aside.units[k])
    aside.reach[0] = max(aside.reach[0], abs(aside.reward[i]))
    aside.reach[1] = max(aside.reach[1], np.sqrt(norm))
    aside.first[0] = i + 1 if i + 1 < aside.x.shape[0] else 0
    aside.size[0] -= 1


@compiled
def pour(aside: Ring, mind: StationaryMind, theta: Floats, largest: float, pieces: int, row: Numbers) -> None:
    """Learn from a game that was played with `theta`: add its transitions to the ring, which has room for them.

    Next placements that are adjacent both before and after are moved together.
    """
    ring = mind.ring
    at = to = n = 0
    for t in range(aside.size[0]):
        i = (aside.first[0] + t) % aside.x.shape[0]
        p = begin_transition(ring, aside.x[i], 0, aside.reward[i], aside.following[i], row)
        if aside.start[i] != at + n or p != to + n or n > MOVED:
            copy_columns(aside.next_x, at, ring.next_x, to, n)
            at, to, n = aside.start[i], p, 0
        n += aside.following[i]
    copy_columns(aside.next_x, at, ring.next_x, to, n)
    for k in range(ring.reach.size):
        ring.reach[k] = max(ring.reach[k], aside.reach[k])
    count_episode(mind, theta, largest, pieces)


@compiled
def copy_columns(source: Numbers, at: int, target: Numbers, to: int, n: int) -> None:
    """Copy n columns from position `at` to position `to`."""
    begin, place = unsigned(at), unsigned(to)
    for k in range(unsigned(source.shape[0])):
        for a in range(unsigned(n)):
            target[k, place + a] = source[k, begin + a]
