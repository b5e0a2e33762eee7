"""What the threads of one run of Tetris do, in the order of the algorithm: the regression, then the game.

Each function is given the number of this thread and that of all threads of the run, one on a processor, and does
what is this thread's; functions without them are for the first thread alone. tetris_runs.py calls them one after
another, tetris_kernel.py with barriers between them.

Features are whole numbers below 256. Those of a placement, and the rows it removes, are packed into words of
eight.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import POSTERIOR
from rlsvi.agents.explore import BOLTZMANN, GREEDY, choose
from rlsvi.agents.stationary import precision_factor
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled
from rlsvi.core.random import bits, gamma, normal, reseed, uniform
from rlsvi.core.regression import InverseGamma, add_to, solve, solve_upper
from rlsvi_paper.tetris.features import height_after
from rlsvi_paper.tetris.game import CELLS, Game, Rules, draw_piece, full_rows, landing, over, place, start

BYTES, LAST = 8, np.uint64(255)  # bytes of a word, and the bits of its last one
PARTS, EIGHT = 64, 8  # sums of eight transitions that are computed together
WORDS = 3  # of a placement: its features and the rows it removes
MOST_PIECES = 1_000_000  # pieces, at which a game is cut off
MOVES = 14  # of a piece, at most, before it drops
OLDEST, SIZE, HEAD, SLOT, COUNT, OWNED, OLD, NEW, AT, MOVED, REMOVED, PLACED, FLAG, NUMBERS = range(14)
GOING, OVER, BROKEN, FULL = range(4)
SHAPE, SCALE = InverseGamma().shape, InverseGamma().scale  # of the prior over an unknown variance


class RunArrays(NamedTuple):
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
    variate: Floats  # (1,) what an unknown variance is drawn with
    U: Floats  # (d, d)
    inv: Floats  # (d,)
    low: Floats  # (d, d)
    z: Floats  # (d,)
    b: Floats  # (N,) targets; then, if the noise is unknown, squares of what the mean misses of them
    theta: Floats  # (d,)
    mean: Floats  # (d,)
    error: Floats  # (d,) rounding error of A'b
    parts: Floats  # (PARTS d,)
    w: Floats  # (d + 1,) weights of the packed numbers in Q
    units: Floats  # (d,)


class Player(NamedTuple):
    """How a run learns, with lambda = 1; the defaults are those of StationaryRLSVI with raw features."""

    seed: int
    gamma: float = 0.99
    sigma: float = 1.0  # 0: LSVI, which takes the mean
    known: bool = False  # the afterstate form: Q = r + gamma theta . phi
    scaled: bool = False  # features divided by the height of the board
    epsilon: float = 0.0  # the chance of a random placement, or the temperature eta of Boltzmann exploration: in
    eta: float = 0.0  # game l it is multiplied by decay^l, and divided by delay + l if delay > 0
    decay: float = 1.0
    delay: float = 0.0
    prior_first: bool = False  # the first game is played with a draw from the prior, not with its mean
    floor: float = -math.inf  # no target is less
    early: bool = False  # the game is over once the top row is touched, even if full rows are removed then
    few: bool = False  # four moves: drop, left, right, rotate, instead of all placements
    evaluate_from: int = 2**31 - 1  # from this game on, a game is also played with the posterior mean
    before: bool = False  # features look at the board before full rows are removed
    unknown: bool = False  # sigma^2 has the prior InverseGamma(), and sigma is not used
    memory: int = 100_000  # the number of most recent transitions to learn from


class RunBoard(NamedTuple):
    """The rules, the placement to which each move leads, and that with which each piece begins."""

    rules: Rules
    moves: Longs  # (placements, 4)
    spawn: Longs  # (7,)
    legal: Bools  # (A,) of ones
    pairs: Longs  # (d (d + 1) / 2, 2) the entries of A'A on and above its diagonal


# ---- The regression ----------------------------------------------------------------------------------------


@compiled
def row(run: RunArrays, t: int) -> int:
    """Return the position of transition t, the oldest being 0."""
    i = run.state[OLDEST] + t
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
def begin_plan(run: RunArrays, setting: Player) -> bool:
    """Factor the precision, draw the noise and set the weights to those of theta^-."""
    ridge = setting.sigma * setting.sigma if setting.sigma > 0.0 and not setting.unknown else 1.0
    if not precision_factor(run.gram, run.low[:0], run.units, ridge, run.U, run.inv, run.low):
        return False
    if setting.unknown:
        run.variate[0] = gamma(run.streams[POSTERIOR], SHAPE + 0.5 * run.state[SIZE])
    if setting.sigma > 0.0:
        for k in range(run.z.size):
            run.z[k] = normal(run.streams[POSTERIOR])
        solve_upper(run.U, run.inv, run.z)
    set_weights(run, setting, run.theta)
    return True


@compiled
def set_weights(run: RunArrays, setting: Player, theta: Floats) -> None:
    """Set the weights of the packed numbers in Q."""
    d = run.units.size
    for k in range(d):
        run.w[k] = (setting.gamma if setting.known else 1.0) * (run.units[k] * theta[k])
    run.w[d] = 1.0 if setting.known else 0.0


@compiled
def set_targets(run: RunArrays, setting: Player, lane: int, lanes: int) -> None:
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
def set_parts(run: RunArrays, t: int, lane: int, lanes: int) -> None:
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
def add_parts(run: RunArrays, t: int, lane: int, lanes: int) -> None:
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
def set_mean(run: RunArrays) -> None:
    """mean <- P^-1 A'b."""
    for k in range(run.mean.size):
        run.mean[k] = run.units[k] * run.mean[k]
    solve(run.U, run.inv, run.mean)


@compiled
def set_misfits(run: RunArrays, setting: Player, lane: int, lanes: int) -> None:
    """If the noise is unknown, b <- the squares of what the mean misses of the targets that are this thread's."""
    for t in range(lane, run.state[SIZE] if setting.unknown else 0, lanes):
        i, missing = row(run, t), -run.b[t]
        for k in range(run.units.size):
            number = (run.x[i, k // BYTES] >> np.uint64(BYTES * (k % BYTES))) & LAST
            missing += float(number) * (run.units[k] * run.mean[k])
        run.b[t] = missing * missing


@compiled
def end_plan(run: RunArrays, setting: Player) -> bool:
    """theta <- a sample, or the mean. Return whether it is finite."""
    fine, sigma = True, setting.sigma
    if setting.unknown:
        total = 0.0
        for t in range(run.state[SIZE]):
            total += run.b[t]
        for k in range(run.mean.size):
            total += run.mean[k] * run.mean[k]
        sigma = math.sqrt((SCALE + 0.5 * total) / run.variate[0])
    for k in range(run.mean.size):
        run.theta[k] = run.mean[k]
        if sigma > 0.0:
            run.theta[k] += sigma * run.z[k]
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
def begin_game(run: RunArrays, board: RunBoard, setting: Player, stream: Words, theta: Floats) -> None:
    """Empty the board, draw a piece, and find room for its placements."""
    state = run.state
    if state[OWNED] == 1:  # the last game was cut off, and its last transition has next placements
        state[HEAD] = state[SLOT] + state[COUNT]
    reseed(run.nature, bits(stream) >> np.uint64(32))
    start(board.rules, run.game, run.nature)
    state[REMOVED] = state[PLACED] = state[OWNED] = state[FLAG] = 0
    set_weights(run, setting, theta)
    offer(run, board, setting)
    state[SLOT] = place_for(run, run.Q.size)  # none of a game that is only played has more
    if state[SLOT] < 0:
        state[FLAG] = FULL


@compiled
def offer(run: RunArrays, board: RunBoard, setting: Player) -> None:
    """Count the actions for a new piece."""
    state, first, piece = run.state, board.rules.placements.first, run.game.piece[0]
    state[AT], state[MOVED] = board.spawn[piece], 0
    state[COUNT] = 4 if setting.few else first[piece + 1] - first[piece]


@compiled
def place_for(run: RunArrays, count: int) -> int:
    """Return the first of `count` adjacent free places for placements; if there are none, -1."""
    head, room = run.state[HEAD], run.next_x.shape[0]
    if run.state[SIZE] == 0:
        return 0
    tail = run.start[run.state[OLDEST]]
    if head >= tail:
        if head + count <= room:
            return int(head)
        return 0 if count < tail else -1
    return int(head) if head + count < tail else -1


@compiled
def placement(run: RunArrays, board: RunBoard, setting: Player, a: int) -> int:
    """Return the placement that action a leads to."""
    if setting.few:
        return int(board.moves[run.state[AT], a])
    return int(board.rules.placements.first[run.game.piece[0]] + a)


@compiled
def look(run: RunArrays, board: RunBoard, setting: Player, lane: int, lanes: int) -> None:
    """Describe and value the actions that are this thread's."""
    for a in range(lane, run.state[COUNT], lanes):
        p = placement(run, board, setting, a)
        run.Q[a] = describe(run, board.rules, p, run.state[SLOT] + a, setting.before)


@compiled
def describe(run: RunArrays, rules: Rules, p: int, to: int, before: bool) -> float:
    """Pack the features of the board after a placement, or `before` its full rows go, and their number; return its
    value.
    """
    W, game = rules.width, run.game
    y = landing(rules.placements, game.heights, p)
    lines = full_rows(rules, game.rows, p, y)
    gone = (lines & 1) + (lines >> 1 & 1) + (lines >> 2 & 1) + (lines >> 3 & 1)
    seen, hidden = (0, 0) if before else (lines, gone)
    words = np.uint64(0), np.uint64(0), np.uint64(0)
    tallest, under, left = 0, 0, 0
    for c in range(W):
        h = height_after(rules, game, p, y, seen, hidden, c)
        words = pack(words, c, h)
        if c > 0:
            words = pack(words, W + c - 1, abs(h - left))
        tallest, under, left = max(tallest, h), under + h, h
    words = pack(words, 2 * W - 1, tallest)
    words = pack(words, 2 * W, under - (game.cells[0] + CELLS - hidden * W))
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
def best_action(run: RunArrays, board: RunBoard, boltzmann: bool, parameter: float, stream: Words) -> int:
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
    if ties > 1 or parameter > 0.0 or not abs(best) < np.inf:
        rule = BOLTZMANN if boltzmann and parameter > 0.0 else GREEDY
        return choose(rule, parameter, run.Q[:count], board.legal[:count], run.chances[:count], stream)
    uniform(stream)
    return at


@compiled
def act(run: RunArrays, board: RunBoard, setting: Player, parameter: float, stream: Words, learning: bool) -> None:
    """Choose an action, store its transition if `learning`, and change the game."""
    state = run.state
    state[OLD] = state[NEW] = -1
    a = best_action(run, board, setting.eta > 0.0, parameter, stream)
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
    if state[SIZE] == setting.memory:
        state[OLD] = state[OLDEST]
        state[OLDEST], state[SIZE] = row(run, 1), state[SIZE] - 1
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
    top = landing(rules.placements, game.heights, p) + rules.placements.tall[p]
    removed = place(rules, game, p)
    return removed, over(rules, game) or (early and top > rules.usable)


@compiled
def unpack(run: RunArrays, lane: int, lanes: int) -> None:
    """Unpack the features of the newest transition, and of the one that was dropped: this thread's."""
    new, old = run.state[NEW], run.state[OLD]
    if new >= 0:
        for k in range(lane, run.units.size, lanes):
            m, shift = k // BYTES, np.uint64(BYTES * (k % BYTES))
            run.new[k] = np.int64((run.x[new, m] >> shift) & LAST)
            run.old[k] = np.int64((run.x[old, m] >> shift) & LAST) if old >= 0 else 0


@compiled
def add_products(run: RunArrays, board: RunBoard, lane: int, lanes: int) -> None:
    """Add the newest transition to A'A, and subtract the one that was dropped: this thread's entries."""
    if run.state[NEW] >= 0:
        for e in range(lane, board.pairs.shape[0], lanes):
            i, j = board.pairs[e, 0], board.pairs[e, 1]
            run.gram[i, j] += run.new[i] * run.new[j] - run.old[i] * run.old[j]
