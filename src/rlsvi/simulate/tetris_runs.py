"""Many runs of stationary RLSVI or LSVI that learn Tetris, on a graphics card or on the processor.

On a card every run has a block of threads: each thread describes and values other placements, computes other
targets and sums other columns of A'b, and the first one does the rest. On a processor one thread does all of it.
The functions and the order of every sum are the same, so the games have the same bits, which are also those of
`simulate_tetris` for the players that an agent can be. Beyond those there are some that only studies of the paper
need (see Player).

Features are whole numbers below 256. Those of a placement, and the rows it removes, are packed into words of
eight.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import new_streams
from rlsvi.agents.contract import ACTION, EPISODE, POSTERIOR, PREDICT
from rlsvi.agents.explore import GREEDY, choose
from rlsvi.agents.stationary import precision_factor
from rlsvi.core import card
from rlsvi.core.checks import one_of, shown, whole
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled
from rlsvi.core.random import bits, normal, reseed, uniform
from rlsvi.core.regression import solve, solve_upper
from rlsvi.tetris.features import BERTSEKAS, height_after, natural_units, smallest_dtype
from rlsvi.tetris.game import (
    CELLS,
    Game,
    Placements,
    Rules,
    check_rules,
    draw_piece,
    full_rows,
    landing,
    new_game,
    remove_full_rows,
    start,
)

BYTES, LAST = 8, np.uint64(255)  # bytes of a word, and the bits of its last one
PARTS, EIGHT = 64, 8  # sums of eight transitions that are computed together
WORDS = 3  # of a placement: its features and the rows it removes
THREADS, REGISTERS = 64, 80  # threads of a run on a card, and registers of each, so that many runs fit
LIMIT = 1_000_000  # pieces, at which a game is cut off
LAUNCH_SECONDS = 20.0  # about the time between two returns from the card
SPARE = 0.9  # the share of the card's free memory that may be used
MOVES = 14  # of a piece, at most, before it drops
DROP, LEFT, RIGHT, ROTATE = range(4)


class Player(NamedTuple):
    """How a run learns, with lambda = 1; the defaults are those of StationaryRLSVI with raw features."""

    seed: int
    gamma: float = 0.99
    sigma: float = 1.0  # 0: LSVI, which takes the mean
    known: bool = False  # the afterstate form: Q = r + gamma theta . phi
    scaled: bool = False  # features divided by the height of the board
    epsilon: float = 0.0  # in game l it places at random with probability epsilon decay^l
    decay: float = 1.0
    prior_first: bool = False  # the first game is played with a draw from the prior, not with its mean
    floor: float = -math.inf  # no target is less
    early: bool = False  # the game is over once the top row is touched, even if full rows are removed then
    few: bool = False  # four moves: drop, left, right, rotate, instead of all placements
    evaluate_from: int = 2**31 - 1  # from this game on, a game is also played with the posterior mean


class Scores(NamedTuple):
    """What happened in every game, (runs, games). A run whose numbers break plays no more."""

    rows: Longs  # removed in the games that a run learns from
    pieces: Longs
    mean_rows: Longs  # removed in a game with the posterior mean, -1 if none was played
    size: Floats  # the norm of theta, infinite if numbers broke


FIRST, SIZE, HEAD, SLOT, COUNT, OWNED, OLD, NEW, AT, MOVED, REMOVED, PLACED, FLAG, NUMBERS = range(14)
GOING, OVER, BROKEN, FULL = range(4)


class Run(NamedTuple):
    """The arrays of one run, or with one more axis in front those of many."""

    state: Longs  # (NUMBERS,)
    game: Game
    streams: Words  # (4, 4)
    nature: Words  # (4,)
    Q: Floats  # (A,)
    chances: Floats  # (A,)
    x: Words  # (N, 3) packed features of the board after the placement of each transition
    reward: Any  # (N,)
    start: Any  # (N,) the first of its next placements
    following: Any  # (N,) their number
    next_x: Words  # (M, 3) packed features of next placements
    gram: Longs  # (d, d)
    new: Longs  # (d,) the newest features
    old: Longs  # (d,) those that were dropped for them, or zeros
    U: Floats  # (d, d)
    inv: Floats  # (d,)
    low: Floats  # (d, d)
    z: Floats  # (d,)
    b: Floats  # (N,)
    theta: Floats  # (d,)
    mean: Floats  # (d,)
    error: Floats  # (d,) rounding error of A'b
    parts: Floats  # (PARTS d,)
    w: Floats  # (d + 1,) weights of the packed numbers in Q
    units: Floats  # (d,)


class Setting(NamedTuple):
    """What compiled code needs of a player."""

    limit: int
    gamma: float
    sigma: float
    known: bool
    prior_first: bool
    floor: float
    early: bool
    few: bool
    evaluate_from: int


class Board(NamedTuple):
    """The rules, the placement to which each move leads, and that with which each piece begins."""

    rules: Rules
    moves: Longs  # (placements, 4)
    spawn: Longs  # (7,)
    legal: Bools  # (A,) of ones
    pairs: Longs  # (d (d + 1) / 2, 2) the entries of A'A on and above its diagonal


# ---- The regression ----------------------------------------------------------------------------------------


@compiled
def row(run: Run, t: int) -> int:
    """Return the position of transition t, the oldest being 0."""
    i = run.state[FIRST] + t
    return int(i - run.reward.size if i >= run.reward.size else i)


@compiled
def value(w: Floats, words: tuple[Any, Any, Any]) -> float:
    """Return Q of a packed placement: weights times numbers, summed in order."""
    q, k = 0.0, 0
    for word in words:
        rest = word
        for _ in range(min(BYTES, w.size - k)):
            q += float(rest & LAST) * w[k]
            rest >>= np.uint64(BYTES)
            k += 1
    return q


@compiled
def begin_plan(run: Run, setting: Setting) -> bool:
    """Factor the precision, draw the noise and set the weights to those of theta^-."""
    ridge = setting.sigma * setting.sigma if setting.sigma > 0.0 else 1.0
    if not precision_factor(run.gram, run.low[:0], run.units, ridge, run.U, run.inv, run.low):
        return False
    if setting.sigma > 0.0:
        for k in range(run.z.size):
            run.z[k] = normal(run.streams[POSTERIOR])
        solve_upper(run.U, run.inv, run.z)
    set_weights(run, setting, run.theta)
    return True


@compiled
def set_weights(run: Run, setting: Setting, theta: Floats) -> None:
    """Set the weights of the packed numbers in Q."""
    d = run.units.size
    for k in range(d):
        run.w[k] = (setting.gamma if setting.known else 1.0) * (run.units[k] * theta[k])
    run.w[d] = 1.0 if setting.known else 0.0


@compiled
def set_targets(run: Run, setting: Setting, lane: int, lanes: int) -> None:
    """Compute every target whose transition is this thread's."""
    for t in range(lane, run.state[SIZE], lanes):
        i = row(run, t)
        best = -np.inf if run.following[i] > 0 else 0.0
        for j in range(run.start[i], run.start[i] + run.following[i]):
            words = run.next_x[j, 0], run.next_x[j, 1], run.next_x[j, 2]
            best = max(best, value(run.w, words))
        b = best if setting.known else run.reward[i] + setting.gamma * best
        run.b[t] = max(b, setting.floor)


@compiled
def set_parts(run: Run, t: int, lane: int, lanes: int) -> None:
    """Sum A'b over each eight of PARTS eights of transitions from t on: the sums that are this thread's."""
    d, x, b = run.units.size, run.x, run.b
    eights = min(PARTS, (run.state[SIZE] - t) // EIGHT)
    for e in range(lane, eights * d, lanes):
        n, k = e // d, e % d
        m, shift = k // BYTES, np.uint64(BYTES * (k % BYTES))
        total = 0.0
        for u in range(t + EIGHT * n, t + EIGHT * (n + 1)):
            term = float((x[row(run, u), m] >> shift) & LAST) * b[u]
            total = term if u == t + EIGHT * n else total + term
        run.parts[e] = total


@compiled
def add_parts(run: Run, t: int, lane: int, lanes: int) -> None:
    """Add these sums, and a rest of fewer than eight, to A'b with compensation for rounding (as stationary.py)."""
    d, size = run.units.size, run.state[SIZE]
    eights = min(PARTS, (size - t) // EIGHT)
    for k in range(lane, d, lanes):
        total, error = (run.mean[k], run.error[k]) if t > 0 else (0.0, 0.0)
        for n in range(eights):
            total, error = add_to(total, error, run.parts[n * d + k])
        if eights < PARTS:
            for u in range(t + EIGHT * eights, size):
                number = (run.x[row(run, u), k // BYTES] >> np.uint64(BYTES * (k % BYTES))) & LAST
                total, error = add_to(total, error, float(number) * run.b[u])
        run.mean[k], run.error[k] = total, error


@compiled
def add_to(total: float, error: float, term: float) -> tuple[float, float]:
    """Return total + error + term as a sum and its rounding error (`add` of core/regression.py)."""
    rough = total + term
    part = rough - total
    carry = error + ((total - (rough - part)) + (term - part))
    result = rough + carry
    return result, carry - (result - rough)


@compiled
def end_plan(run: Run, setting: Setting) -> bool:
    """mean <- P^-1 A'b, and theta <- a sample, or the mean. Return whether all are finite."""
    fine = True
    for k in range(run.mean.size):
        run.mean[k] = run.units[k] * run.mean[k]
    solve(run.U, run.inv, run.mean)
    for k in range(run.mean.size):
        run.theta[k] = run.mean[k]
        if setting.sigma > 0.0:
            run.theta[k] += setting.sigma * run.z[k]
        fine = fine and abs(run.theta[k]) < np.inf
    return fine


@compiled
def norm(theta: Floats) -> float:
    """Return the norm of the weights."""
    total = 0.0
    for k in range(theta.size):
        total += theta[k] * theta[k]
    return math.sqrt(total)


# ---- The game ----------------------------------------------------------------------------------------------


@compiled
def begin_game(run: Run, board: Board, setting: Setting, stream: Words, theta: Floats) -> None:
    """Empty the board, draw a piece, and find room for its placements."""
    state = run.state
    reseed(run.nature, bits(stream) >> np.uint64(32))
    start(board.rules, run.game, run.nature)
    state[REMOVED] = state[PLACED] = state[OWNED] = state[FLAG] = 0
    set_weights(run, setting, theta)
    offer(run, board, setting)
    state[SLOT] = place_for(run, run.Q.size)  # none of a game that is only played has more


@compiled
def offer(run: Run, board: Board, setting: Setting) -> None:
    """Count the actions for a new piece."""
    state, first, piece = run.state, board.rules.placements.first, run.game.piece[0]
    state[AT], state[MOVED] = board.spawn[piece], 0
    state[COUNT] = 4 if setting.few else first[piece + 1] - first[piece]


@compiled
def place_for(run: Run, count: int) -> int:
    """Return the first of `count` adjacent free places for placements; if there are none, -1."""
    head, room = run.state[HEAD], run.next_x.shape[0]
    if run.state[SIZE] == 0:
        return 0
    tail = run.start[run.state[FIRST]]
    if head >= tail:
        if head + count <= room:
            return int(head)
        return 0 if count < tail else -1
    return int(head) if head + count < tail else -1


@compiled
def placement(run: Run, board: Board, setting: Setting, a: int) -> int:
    """Return the placement that action a leads to."""
    if setting.few:
        return int(board.moves[run.state[AT], a])
    return int(board.rules.placements.first[run.game.piece[0]] + a)


@compiled
def look(run: Run, board: Board, setting: Setting, lane: int, lanes: int) -> None:
    """Describe and value the actions that are this thread's."""
    for a in range(lane, run.state[COUNT], lanes):
        p = placement(run, board, setting, a)
        run.Q[a] = describe(run, board.rules, p, run.state[SLOT] + a)


@compiled
def describe(run: Run, rules: Rules, p: int, to: int) -> float:
    """Pack the features of the board after a placement, and the rows it removes; return its value."""
    W, game = rules.width, run.game
    y = landing(rules.placements, game.heights, p)
    lines = full_rows(rules, game.rows, p, y)
    gone = (lines & 1) + (lines >> 1 & 1) + (lines >> 2 & 1) + (lines >> 3 & 1)
    words = np.uint64(0), np.uint64(0), np.uint64(0)
    tallest, under, left = 0, 0, 0
    for c in range(W):
        h = height_after(rules, game, p, y, lines, gone, c)
        words = pack(words, c, h)
        if c > 0:
            words = pack(words, W + c - 1, abs(h - left))
        tallest, under, left = max(tallest, h), under + h, h
    words = pack(words, 2 * W - 1, tallest)
    words = pack(words, 2 * W, under - (game.cells[0] + CELLS - gone * W))
    words = pack(words, 2 * W + 1, 1)
    words = pack(words, 2 * W + 2, gone)
    x = run.next_x
    x[to, 0], x[to, 1], x[to, 2] = words
    return value(run.w, words)


@compiled
def pack(words: tuple[Any, Any, Any], k: int, number: int) -> tuple[Any, Any, Any]:
    """Return packed numbers with one more, which is number k."""
    first, second, third = words
    bits = np.uint64(number) << np.uint64(BYTES * (k % BYTES))
    if k < BYTES:
        first |= bits
    elif k < 2 * BYTES:
        second |= bits
    else:
        third |= bits
    return first, second, third


@compiled
def best_action(run: Run, board: Board, epsilon: float, stream: Words) -> int:
    """Choose among the valued actions, with one random number; -1 if they cannot be compared."""
    count, best, at, ties = run.state[COUNT], -np.inf, 0, 0
    for a in range(count):
        q = run.Q[a]
        if q != q:
            return -1
        if q > best:
            best, at, ties = q, a, 1
        elif q == best:
            ties += 1
    if ties > 1 or epsilon > 0.0 or not abs(best) < np.inf:
        return choose(GREEDY, epsilon, run.Q[:count], board.legal[:count], run.chances[:count], stream)
    uniform(stream)
    return at


@compiled
def act(run: Run, board: Board, setting: Setting, epsilon: float, stream: Words, learning: bool) -> None:
    """Choose an action, store its transition if `learning`, and change the game."""
    state = run.state
    state[OLD] = state[NEW] = -1
    a = best_action(run, board, epsilon, stream)
    if a < 0:
        state[FLAG] = BROKEN
        return
    slot, count = state[SLOT], state[COUNT]
    p = placement(run, board, setting, a)
    moved = setting.few and a > 0
    removed, ended = (0, False) if moved else put(board.rules, run.game, p, setting.early)
    state[REMOVED] += removed
    if moved:
        state[AT], state[MOVED] = p, state[MOVED] + 1
        state[COUNT] = 4 if state[MOVED] < MOVES else 1
    else:
        state[PLACED] += 1
        if ended:
            state[FLAG], state[COUNT] = OVER, 0
        else:
            draw_piece(board.rules, run.game, run.nature)
            offer(run, board, setting)
    if not learning:
        return
    if state[SIZE] == setting.limit:
        state[OLD] = state[FIRST]
        state[FIRST], state[SIZE] = row(run, 1), state[SIZE] - 1
    if state[OWNED] == 1:
        state[HEAD] = slot + count
    i = row(run, state[SIZE])
    for m in range(run.x.shape[1]):
        run.x[i, m] = run.next_x[slot + a, m]
    state[SIZE], state[NEW], state[OWNED] = state[SIZE] + 1, i, 1
    state[SLOT] = place_for(run, state[COUNT])
    run.reward[i], run.start[i], run.following[i] = removed, state[SLOT], state[COUNT]
    if state[SLOT] < 0:
        state[FLAG] = FULL


@compiled
def put(rules: Rules, game: Game, p: int, early: bool) -> tuple[int, bool]:
    """Put the piece on the board and remove full rows; return their number, and whether the game is over."""
    table, removed = rules.placements, 0
    y = landing(table, game.heights, p)
    lines = full_rows(rules, game.rows, p, y)
    for i in range(table.tall[p]):
        game.rows[y + i] |= table.bits[p, i]
    for j in range(table.span[p]):
        game.heights[table.column[p] + j] = y + table.high[p, j]
    if lines != 0:
        removed = remove_full_rows(rules, game)
    game.cells[0] += CELLS - removed * rules.width
    tallest = y + table.tall[p] if early else 0
    for c in range(game.heights.size):
        tallest = max(tallest, game.heights[c])
    return removed, tallest > rules.usable


@compiled
def unpack(run: Run, lane: int, lanes: int) -> None:
    """Unpack the features of the newest transition, and of the one that was dropped: this thread's."""
    new, old = run.state[NEW], run.state[OLD]
    if new >= 0:
        for k in range(lane, run.units.size, lanes):
            m, shift = k // BYTES, np.uint64(BYTES * (k % BYTES))
            run.new[k] = np.int64((run.x[new, m] >> shift) & LAST)
            run.old[k] = np.int64((run.x[old, m] >> shift) & LAST) if old >= 0 else 0


@compiled
def add_products(run: Run, board: Board, lane: int, lanes: int) -> None:
    """Add the newest transition to A'A, and subtract the one that was dropped: this thread's entries."""
    if run.state[NEW] >= 0:
        for e in range(lane, board.pairs.shape[0], lanes):
            i, j = board.pairs[e, 0], board.pairs[e, 1]
            run.gram[i, j] += run.new[i] * run.new[j] - run.old[i] * run.old[j]


# ---- A game by one thread; simulate/tetris_kernel.py has the same for many --------------------------------


@compiled
def learn_game(run: Run, board: Board, setting: Setting, epsilon: float, g: int) -> tuple[int, int]:
    """Plan game g, play it and learn from it; return its status, and the rows of a game with the mean."""
    rows = -1
    if g > 0 or setting.prior_first:
        if not begin_plan(run, setting):
            return BROKEN, rows
        set_targets(run, setting, 0, 1)
        for t in range(0, max(1, run.state[SIZE]), EIGHT * PARTS):
            set_parts(run, t, 0, 1)
            add_parts(run, t, 0, 1)
        if not end_plan(run, setting):
            return BROKEN, rows
    if g >= setting.evaluate_from:
        if play_game(run, board, setting, run.mean, 0.0, run.streams[PREDICT], run.streams[PREDICT], False) > OVER:
            return BROKEN, rows
        rows = run.state[REMOVED]
    theta, streams = run.theta, run.streams
    return play_game(run, board, setting, theta, epsilon, streams[EPISODE], streams[ACTION], True), rows


@compiled
def play_game(
    run: Run,
    board: Board,
    setting: Setting,
    theta: Floats,
    epsilon: float,
    pieces: Words,
    actions: Words,
    learning: bool,
) -> int:
    """Play a game with `theta`."""
    begin_game(run, board, setting, pieces, theta)
    while run.state[FLAG] == GOING and run.state[PLACED] < LIMIT:
        look(run, board, setting, 0, 1)
        act(run, board, setting, epsilon, actions, learning)
        unpack(run, 0, 1)
        add_products(run, board, 0, 1)
    return int(run.state[FLAG])


# ---- All runs ---------------------------------------------------------------------------------------------


def learn_tetris(
    players: Sequence[Player],
    rules: Rules,
    games: int,
    *,
    memory: int = 100_000,
    device: str = "cpu",
    advance: Callable[[int], None] = lambda n: None,
) -> Scores:
    """Let every player learn `games` games, from nothing.

    rules : from `rlsvi.tetris.rules`, for a board on which no feature exceeds 255.
    memory : the number of most recent transitions to learn from.
    device : "cpu", one run after another, or "cuda", all together.
    advance : called from time to time with the number of games just played.
    """
    one_of("device", device, ("cpu", "cuda"))
    if smallest_dtype(BERTSEKAS, check_rules(rules)) is not np.uint8 or rules.width > 10:
        raise ValueError(
            f"rules must be of a board at most 10 wide, on which no feature exceeds 255, got {shown(rules)}"
        )
    games, memory = whole("games", games, 1, 2**31 - 1), whole("memory", memory, 1, 2**31 - 1)
    if not players or not all(isinstance(player, Player) for player in players):
        raise ValueError("players must be at least one Player")
    board = board_of(rules)
    found = Scores(
        *(np.zeros((len(players), games), np.int64) for _ in range(3)), np.full((len(players), games), np.inf)
    )
    found.mean_rows[:] = -1
    if device == "cpu":
        for r, player in enumerate(players):
            _learn_alone(player, board, games, memory, Scores(*(column[r] for column in found)), advance)
        return found
    card.cuda()
    for few in (False, True):  # moves need less memory than placements
        chosen = [r for r, player in enumerate(players) if player.few == few]
        if not chosen:
            continue
        each = sum(part.nbytes for part in _leaves(new_run(players[chosen[0]], rules, memory)))
        at_once = int(SPARE * card.free_memory()) // each
        if at_once < 1:
            raise card.TooLittleMemory(f"a run needs {each / 1e9:.1f} GB on the card")
        for i in range(0, len(chosen), at_once):
            some = chosen[i : i + at_once]
            _learn_together([players[r] for r in some], board, games, memory, some, found, advance)
    return found


def _learn_alone(
    player: Player, board: Board, games: int, memory: int, out: Scores, advance: Callable[[int], None]
) -> None:
    run, setting, epsilon = (
        new_run(player, board.rules, memory),
        setting_of(player, memory),
        schedule(player, games),
    )
    for g in range(games):
        status, out.mean_rows[g] = learn_game(run, board, setting, epsilon[g], g)
        if status == FULL:
            raise RuntimeError(_no_room(player))
        if status == BROKEN:
            return
        out.rows[g], out.pieces[g] = run.state[REMOVED], run.state[PLACED]
        out.size[g] = norm(run.theta)
        advance(1)


def _learn_together(
    players: Sequence[Player],
    board: Board,
    games: int,
    memory: int,
    where: Sequence[int],
    found: Scores,
    advance: Callable[[int], None],
) -> None:
    from rlsvi.simulate.tetris_kernel import play

    cuda, R = card.cuda(), len(players)
    one = new_run(players[0], board.rules, memory)
    with card.memory_is_checked(), card.strict_arithmetic():
        runs = _on_card(one, R, players, board.rules)
        there = _to_device(board)
        settings = cuda.to_device(np.array([setting_of(player, memory) for player in players], np.float64))
        epsilon = cuda.to_device(np.stack([schedule(player, games) for player in players]))
        out = [cuda.to_device(np.ascontiguousarray(column[where])) for column in found]
        kernel, done, chunk = card.kernel(play, REGISTERS), 0, 10
        while done < games:
            began, count = time.perf_counter(), min(chunk, games - done)
            kernel[R, 8 if card.is_simulated() else THREADS](runs, there, settings, epsilon, done, count, *out)
            flags = runs.state.copy_to_host()[:, FLAG]
            if (flags == FULL).any():
                raise RuntimeError(_no_room(players[int((flags == FULL).argmax())]))
            done, took = done + count, time.perf_counter() - began
            chunk = max(1, min(2 * chunk, int(count * LAUNCH_SECONDS / took)))
            advance(count * R)
    for column, part in zip(found, out, strict=True):
        column[where] = part.copy_to_host()


def _no_room(player: Player) -> str:
    return f"there was not enough room for the next placements of {player}: use another seed"


def setting_of(player: Player, memory: int) -> Setting:
    """Return what compiled code needs of a player."""
    return Setting(
        memory,
        float(player.gamma),
        float(player.sigma),
        bool(player.known),
        bool(player.prior_first),
        float(player.floor),
        bool(player.early),
        bool(player.few),
        int(player.evaluate_from),
    )


def schedule(player: Player, games: int) -> Floats:
    """Return the probability of a random placement in every game."""
    return np.array([player.epsilon * player.decay**g for g in range(games)])


def board_of(rules: Rules) -> Board:
    """Return the rules, with what moves lead to."""
    table = rules.placements
    moves = np.array([_moves(table, rules.width, p) for p in range(len(table.column))], np.int64)
    spawn = [int(table.first[k]) + (rules.width - int(table.span[table.first[k]])) // 2 for k in range(7)]
    pairs = np.stack(np.triu_indices(2 * rules.width + 2), axis=1)
    return Board(rules, moves, np.array(spawn), np.ones(rules.actions, np.bool_), pairs)


def _moves(table: Placements, width: int, p: int) -> list[int]:
    """Where a piece is after drop, left, right and rotate, as placements; at a wall it stays."""
    k = int(np.searchsorted(table.first, p, side="right")) - 1
    first, last = int(table.first[k]), int(table.first[k + 1])
    begins = [q for q in range(first, last) if table.column[q] == 0]  # of each rotation
    n = max(i for i, begin in enumerate(begins) if begin <= p)
    column = int(table.column[p])
    following = begins[(n + 1) % len(begins)]
    left, right = p - (column > 0), p + (column + int(table.span[p]) < width)
    return [p, left, right, following + min(column, width - int(table.span[following]))]


def new_run(player: Player, rules: Rules, memory: int) -> Run:
    """Return the arrays of a run that has learned nothing."""
    units = natural_units(BERTSEKAS, rules, player.scaled)
    d, N, A = len(units), memory + 1, rules.actions
    counts = np.diff(rules.placements.first)[rules.letters]
    per_piece = 4.0 if player.few else float(counts.mean())
    M = math.ceil(per_piece * N + 12.0 * float(counts.std()) * math.sqrt(N)) + 3 * A
    state = np.zeros(NUMBERS, np.int64)
    return Run(
        state=state,
        game=new_game(rules),
        streams=new_streams(player.seed),
        nature=np.zeros(4, np.uint64),
        Q=np.zeros(A),
        chances=np.zeros(A),
        x=np.zeros((N, WORDS), np.uint64),
        reward=np.zeros(N, np.uint8),
        start=np.zeros(N, np.int32),
        following=np.zeros(N, np.uint8),
        next_x=np.zeros((M, WORDS), np.uint64),
        gram=np.zeros((d, d), np.int64),
        new=np.zeros(d, np.int64),
        old=np.zeros(d, np.int64),
        U=np.zeros((d, d)),
        inv=np.zeros(d),
        low=np.zeros((d, d)),
        z=np.zeros(d),
        b=np.zeros(N),
        theta=np.zeros(d),
        mean=np.zeros(d),
        error=np.zeros(d),
        parts=np.zeros(PARTS * d),
        w=np.zeros(d + 1),
        units=units,
    )


def _leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [tree]


def _on_card(one: Run, R: int, players: Sequence[Player], rules: Rules) -> Run:
    """Return the arrays of all runs on the card: small ones of zeros, large ones as they come."""
    cuda = card.cuda()

    def many(part: Any) -> Any:
        if part.nbytes > 2**16:
            return cuda.device_array((R, *part.shape), part.dtype)
        return cuda.to_device(np.zeros((R, *part.shape), part.dtype))

    game = Game(*(many(part) for part in one.game))
    runs = Run(*(game if isinstance(part, tuple) else many(part) for part in one))
    units = np.stack([natural_units(BERTSEKAS, rules, player.scaled) for player in players])
    streams = np.stack([new_streams(player.seed) for player in players])
    return runs._replace(units=cuda.to_device(units), streams=cuda.to_device(streams))


def _to_device(tree: Any) -> Any:
    """Return nested named tuples with their arrays on the card."""
    if isinstance(tree, tuple):
        return type(tree)(*(_to_device(part) for part in tree))
    return card.cuda().to_device(tree) if isinstance(tree, np.ndarray) else tree
