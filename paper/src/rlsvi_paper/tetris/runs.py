"""Many runs of stationary RLSVI or LSVI that learn Tetris, on a graphics card or on the processor.

On a card every run has a block of threads: each thread describes and values other placements, computes other
targets and sums other columns of A'b, and the first one does the rest. On a processor one thread does all of it.
The functions (tetris_lanes.py) and the order of every sum are the same, so the games have the same bits, which are
also those of `simulate_tetris` for the players that an agent can be. Beyond those there are some that only studies
of the paper need (see Player).
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import new_streams
from rlsvi.agents.contract import ACTION, EPISODE, PREDICT
from rlsvi.core import card
from rlsvi.core.checks import flag, number, one_of, shown, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi_paper.tetris.features import BERTSEKAS, natural_units, smallest_dtype
from rlsvi_paper.tetris.game import Game, Placements, Rules, check_rules, new_game
from rlsvi_paper.tetris.lanes import (
    BROKEN,
    EIGHT,
    FLAG,
    FULL,
    GOING,
    MOST_PIECES,
    NUMBERS,
    OVER,
    PARTS,
    PLACED,
    REMOVED,
    SIZE,
    WORDS,
    Player,
    RunArrays,
    RunBoard,
    act,
    add_parts,
    add_products,
    begin_game,
    begin_plan,
    end_plan,
    look,
    norm,
    set_mean,
    set_misfits,
    set_parts,
    set_targets,
    unpack,
)

THREADS, REGISTERS = 64, 80  # threads of a run on a card, and registers of each, so that many runs fit
LAUNCH_SECONDS = 60.0  # about the time between two returns from the card
TALLEST = 60  # rows of a board, four less than the threads of a run share
SPARE = 0.9  # the share of the card's free memory that may be used
DROP, LEFT, RIGHT, ROTATE = range(4)


class RunScores(NamedTuple):
    """What happened in every game, (runs, games). A run whose numbers break plays no more."""

    rows: Longs  # removed in the games that a run learns from
    pieces: Longs
    mean_rows: Longs  # removed in a game with the posterior mean, -1 if none was played
    size: Floats  # the norm of theta, infinite if numbers broke


# ---- A game by one thread; tetris_kernel.py has the same for many ------------------------------------------


@compiled
def learn_game(run: RunArrays, board: RunBoard, setting: Player, parameter: float, g: int) -> tuple[int, int]:
    """Plan game g, play it and learn from it; return its status, and the rows of a game with the mean."""
    rows = -1
    if g > 0 or setting.prior_first:
        if not begin_plan(run, setting):
            return BROKEN, rows
        set_targets(run, setting, 0, 1)
        for t in range(0, max(1, run.state[SIZE]), EIGHT * PARTS):
            set_parts(run, t, 0, 1)
            add_parts(run, t, 0, 1)
        set_mean(run)
        set_misfits(run, setting, 0, 1)
        if not end_plan(run, setting):
            return BROKEN, rows
    if g >= setting.evaluate_from:
        if play_game(run, board, setting, run.mean, 0.0, run.streams[PREDICT], run.streams[PREDICT], False) > OVER:
            return BROKEN, rows
        rows = run.state[REMOVED]
    theta, streams = run.theta, run.streams
    return play_game(run, board, setting, theta, parameter, streams[EPISODE], streams[ACTION], True), rows


@compiled
def play_game(
    run: RunArrays,
    board: RunBoard,
    setting: Player,
    theta: Floats,
    parameter: float,
    pieces: Words,
    actions: Words,
    learning: bool,
) -> int:
    """Play a game with `theta`."""
    begin_game(run, board, setting, pieces, theta)
    while run.state[FLAG] == GOING and run.state[PLACED] < MOST_PIECES:
        look(run, board, setting, 0, 1)
        act(run, board, setting, parameter, actions, learning)
        unpack(run, 0, 1)
        add_products(run, board, 0, 1)
    return int(run.state[FLAG])


# ---- All runs ---------------------------------------------------------------------------------------------


def learn_tetris(
    players: Sequence[Player],
    rules: Rules,
    games: int,
    *,
    device: str = "cpu",
    advance: Callable[[int], None] = lambda n: None,
) -> RunScores:
    """Let every player learn `games` games, from nothing.

    Parameters
    ----------
    rules
        From `rlsvi_paper.tetris.rules`, for a board on which no feature exceeds 255.
    device
        "cpu", one run after another, or "cuda", all together.
    advance
        Called from time to time with the number of games just played.
    """
    one_of("device", device, ("cpu", "cuda"))
    if smallest_dtype(BERTSEKAS, check_rules(rules)) is not np.uint8 or rules.width > 10 or rules.height > TALLEST:
        raise ValueError(
            f"rules must be of a board at most 10 wide and {TALLEST} high on which no feature exceeds 255, got "
            f"{shown(rules)}"
        )
    games = whole("games", games, 1, 2**31 - 1)
    if not isinstance(players, Sequence) or not players:
        raise ValueError(f"players must be a list of at least one Player, got {shown(players)}")
    for player in players:
        check_player(player)
    board = board_of(rules)
    rows, pieces, mean_rows = np.zeros((3, len(players), games), np.int64)
    found = RunScores(rows, pieces, mean_rows, np.full((len(players), games), np.inf))
    found.mean_rows[:] = -1
    if device == "cpu":
        for r, player in enumerate(players):
            _learn_alone(player, board, games, RunScores(*(column[r] for column in found)), advance)
        return found
    card.cuda()
    for few in (False, True):  # moves need less memory than placements
        chosen = [r for r, player in enumerate(players) if player.few == few]
        if not chosen:
            continue
        largest = max((players[r] for r in chosen), key=lambda player: player.memory)
        each = sum(part.nbytes for part in _leaves(new_run(largest, rules)))
        at_once = int(SPARE * card.free_memory()) // each
        if at_once < 1:
            raise card.TooLittleMemory(f"a run needs {each / 1e9:.1f} GB on the card")
        for i in range(0, len(chosen), at_once):
            some = chosen[i : i + at_once]
            _learn_together([players[r] for r in some], board, games, largest, some, found, advance)
    return found


def check_player(player: Any) -> None:
    """Raise an error if a player's numbers cannot be used."""
    if not isinstance(player, Player):
        raise ValueError(f"players must be a list of at least one Player, with {shown(player)} in it")
    whole("seed", player.seed, 0)
    whole("evaluate_from", player.evaluate_from, 0, 2**31 - 1)
    whole("memory", player.memory, 1, 10**7)
    for name in ("gamma", "sigma", "epsilon", "eta", "decay", "delay"):
        value, most = number(name, getattr(player, name)), 1.0 if name in ("gamma", "decay") else math.inf
        if not 0.0 <= value <= most:
            raise ValueError(f"{name} must be at least 0{f' and at most {most:g}' * (most == 1)}, got {value:g}")
    if player.epsilon > 0.0 and (player.eta > 0.0 or player.epsilon > max(1.0, player.delay)):
        raise ValueError(f"epsilon must be at most 1 in all games, and 0 with an eta, got {player.epsilon:g}")
    if player.unknown and player.sigma == 0.0:
        raise ValueError("sigma must be positive if it is unknown: LSVI draws nothing")
    if player.floor != -math.inf:
        number("floor", player.floor)
    for name in ("known", "scaled", "prior_first", "early", "few", "before", "unknown"):
        flag(name, getattr(player, name))


def _learn_alone(
    player: Player, board: RunBoard, games: int, out: RunScores, advance: Callable[[int], None]
) -> None:
    run, setting, parameters = new_run(player, board.rules), setting_of(player), schedule(player, games)
    for g in range(games):
        status, out.mean_rows[g] = learn_game(run, board, setting, parameters[g], g)
        if status == FULL:
            raise RuntimeError(_no_room(player))
        if status == BROKEN:
            return
        out.rows[g], out.pieces[g] = run.state[REMOVED], run.state[PLACED]
        out.size[g] = norm(run.theta)
        advance(1)


def _learn_together(
    players: Sequence[Player],
    board: RunBoard,
    games: int,
    largest: Player,
    where: Sequence[int],
    found: RunScores,
    advance: Callable[[int], None],
) -> None:
    from rlsvi_paper.tetris.kernel import play

    cuda, R = card.cuda(), len(players)
    one = new_run(largest, board.rules)
    with card.memory_is_checked(), card.strict_arithmetic():
        runs: Any = _on_card(one, R, players, board.rules)
        there = _to_device(board)
        settings = cuda.to_device(np.array([setting_of(player) for player in players], np.float64))
        parameters = cuda.to_device(np.stack([schedule(player, games) for player in players]))
        out = [cuda.to_device(np.ascontiguousarray(column[where])) for column in found]
        kernel = card.sized(card.kernel(play, REGISTERS), R, 8 if card.is_simulated() else THREADS)
        done, chunk = 0, 10
        while done < games:
            began, count = time.perf_counter(), min(chunk, games - done)
            kernel(runs, there, settings, parameters, done, count, *out)
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


def setting_of(player: Player) -> Player:
    """Return a player for compiled code: its numbers have the types that they should have."""
    kinds = Player.__annotations__.values()
    return Player(*(kind(value) for kind, value in zip(kinds, player._replace(seed=0), strict=True)))


def schedule(player: Player, games: int) -> Floats:
    """Return the probability of a random placement, or the temperature, in every game."""
    delays = [player.delay + g if player.delay > 0.0 else 1.0 for g in range(games)]
    return np.array([(player.epsilon + player.eta) * player.decay**g / delay for g, delay in enumerate(delays)])


def board_of(rules: Rules) -> RunBoard:
    """Return the rules, with what moves lead to."""
    table = rules.placements
    moves = np.array([_moves(table, rules.width, p) for p in range(len(table.column))], np.int64)
    spawn = [int(table.first[k]) + (rules.width - int(table.span[table.first[k]])) // 2 for k in range(7)]
    pairs = np.stack(np.triu_indices(2 * rules.width + 2), axis=1)
    return RunBoard(rules, moves, np.array(spawn), np.ones(rules.actions, np.bool_), pairs)


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


def new_run(player: Player, rules: Rules) -> RunArrays:
    """Return the arrays of a run that has learned nothing."""
    units = natural_units(BERTSEKAS, rules, player.scaled)
    d, N, A = len(units), player.memory + 1, rules.actions
    counts = np.diff(rules.placements.first)[rules.letters]
    per_piece = 4.0 if player.few else float(counts.mean())
    M = math.ceil(per_piece * N + 12.0 * float(counts.std()) * math.sqrt(N)) + 3 * A
    state = np.zeros(NUMBERS, np.int64)
    return RunArrays(
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
        variate=np.ones(1),
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


def _on_card(one: RunArrays, R: int, players: Sequence[Player], rules: Rules) -> RunArrays:
    """Return the arrays of all runs on the card: small ones of zeros, large ones as they come."""
    cuda = card.cuda()

    def many(part: Any) -> Any:
        if part.nbytes > 2**16:
            return cuda.device_array((R, *part.shape), part.dtype)
        return cuda.to_device(np.zeros((R, *part.shape), part.dtype))

    game = Game(*(many(part) for part in one.game))
    parts: Any = (game if isinstance(part, tuple) else many(part) for part in one)
    runs = RunArrays(*parts)
    units = np.stack([natural_units(BERTSEKAS, rules, player.scaled) for player in players])
    streams = np.stack([new_streams(player.seed) for player in players])
    return runs._replace(units=cuda.to_device(units), streams=cuda.to_device(streams))


def _to_device(tree: Any) -> Any:
    """Return nested named tuples with their arrays on the card."""
    if isinstance(tree, tuple):
        return type(tree)(*(_to_device(part) for part in tree))
    return card.cuda().to_device(tree) if isinstance(tree, np.ndarray) else tree
