"""The kernel of tetris_runs.py: a block of threads plans, plays and learns the games of one run.

It has a file of its own, to be imported only if there is a card, since a simulated card replaces the global name
`cuda` while it runs a kernel.
"""

from typing import Any

import numba.cuda
import numpy as np

from rlsvi.agents.contract import ACTION, EPISODE, PREDICT
from rlsvi.core.compile import Floats, Longs
from rlsvi_paper.tetris.game import Game
from rlsvi_paper.tetris.lanes import (
    BROKEN,
    EIGHT,
    FLAG,
    GOING,
    MOST_PIECES,
    NUMBERS,
    PARTS,
    PLACED,
    REMOVED,
    SIZE,
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

cuda: Any = numba.cuda
ROOM, FEATURES = 64, 24  # at least as many as there are placements, and features
SUMS = FEATURES * PARTS


def play(
    runs: RunArrays,
    board: RunBoard,
    settings: Floats,
    parameters: Floats,
    first: int,
    games: int,
    rows: Longs,
    pieces: Longs,
    mean_rows: Longs,
    size: Floats,
) -> None:
    """Let each run play `games` games from game `first` on, as `learn_game` does."""
    r, lane, lanes = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    s = settings[r]
    setting = Player(
        int(s[0]),
        s[1],
        s[2],
        s[3] > 0.0,
        s[4] > 0.0,
        s[5],
        s[6],
        s[7],
        s[8],
        s[9] > 0.0,
        s[10],
        s[11] > 0.0,
        s[12] > 0.0,
        int(s[13]),
        s[14] > 0.0,
        s[15] > 0.0,
        int(s[16]),
    )
    state = cuda.shared.array(NUMBERS, np.int64)
    board_rows = cuda.shared.array(ROOM, np.int64)
    heights = cuda.shared.array(ROOM, np.int64)
    cells = cuda.shared.array(1, np.int64)
    piece = cuda.shared.array(1, np.int64)
    streams = cuda.shared.array((4, 4), np.uint64)
    nature = cuda.shared.array(4, np.uint64)
    values = cuda.shared.array(ROOM, np.float64)
    weights = cuda.shared.array(ROOM, np.float64)
    gram = cuda.shared.array((FEATURES, FEATURES), np.int64)
    new = cuda.shared.array(FEATURES, np.int64)
    old = cuda.shared.array(FEATURES, np.int64)
    parts = cuda.shared.array(SUMS, np.float64)
    n, W, d = runs.game.rows.shape[1], runs.game.heights.shape[1], runs.units.shape[1]
    run = RunArrays(
        state,
        Game(board_rows[:n], heights[:W], cells, piece, runs.game.spare[r]),
        streams,
        nature,
        values[: runs.Q.shape[1]],
        runs.chances[r],
        runs.x[r],
        runs.reward[r],
        runs.start[r],
        runs.following[r],
        runs.next_x[r],
        gram,
        new,
        old,
        runs.variate[r],
        runs.U[r],
        runs.inv[r],
        runs.low[r],
        runs.z[r],
        runs.b[r],
        runs.theta[r],
        runs.mean[r],
        runs.error[r],
        parts,
        weights[: d + 1],
        runs.units[r],
    )
    if lane == 0:
        for k in range(NUMBERS):
            state[k] = runs.state[r, k]
        for k in range(16):
            streams[k // 4, k % 4] = runs.streams[r, k // 4, k % 4]
        for i in range(d):
            for j in range(i, d):
                gram[i, j] = runs.gram[r, i, j]
    cuda.syncthreads()
    for g in range(first, first + games):
        if state[FLAG] >= BROKEN:
            break
        if g > 0 or setting.prior_first:
            cuda.syncthreads()
            if lane == 0:
                state[FLAG] = GOING if begin_plan(run, setting) else BROKEN
            cuda.syncthreads()
            if state[FLAG] == BROKEN:
                break
            set_targets(run, setting, lane, lanes)
            cuda.syncthreads()
            for t in range(0, max(1, state[SIZE]), EIGHT * PARTS):
                set_parts(run, t, lane, lanes)
                cuda.syncthreads()
                add_parts(run, t, lane, lanes)
                cuda.syncthreads()
            if lane == 0:
                set_mean(run)
            cuda.syncthreads()
            set_misfits(run, setting, lane, lanes)
            cuda.syncthreads()
            if lane == 0:
                state[FLAG] = GOING if end_plan(run, setting) else BROKEN
            cuda.syncthreads()
            if state[FLAG] == BROKEN:
                break
        for learning in range(0 if g >= setting.evaluate_from else 1, 2):
            cuda.syncthreads()
            if lane == 0:
                stream = EPISODE if learning == 1 else PREDICT
                theta = run.theta if learning == 1 else run.mean
                begin_game(run, board, setting, run.streams[stream], theta)
            cuda.syncthreads()
            while state[FLAG] == GOING and state[PLACED] < MOST_PIECES:
                look(run, board, setting, lane, lanes)
                cuda.syncthreads()
                if lane == 0:
                    chance = parameters[r, g] if learning == 1 else 0.0
                    stream = ACTION if learning == 1 else PREDICT
                    act(run, board, setting, chance, run.streams[stream], learning == 1)
                cuda.syncthreads()
                unpack(run, lane, lanes)
                cuda.syncthreads()
                add_products(run, board, lane, lanes)
            if state[FLAG] >= BROKEN:
                break
            if lane == 0:
                if learning == 1:
                    rows[r, g], pieces[r, g], size[r, g] = state[REMOVED], state[PLACED], norm(run.theta)
                else:
                    mean_rows[r, g] = state[REMOVED]
        if state[FLAG] >= BROKEN:
            break
    cuda.syncthreads()
    if lane == 0:
        for k in range(NUMBERS):
            runs.state[r, k] = state[k]
        for k in range(16):
            runs.streams[r, k // 4, k % 4] = streams[k // 4, k % 4]
        for i in range(d):
            for j in range(i, d):
                runs.gram[r, i, j] = gram[i, j]
