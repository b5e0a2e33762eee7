"""The Tetris simulator: placements and pieces a second on one core, beside the package tetris-gymnasium.

    python -m benchmarks.tetris [--out DIR] [--quick]

Prints a table and writes DIR/tetris.json. Times are processor seconds of this thread, the least of several
runs in turns. `pip install tetris-gymnasium` for the comparison; without it the rest is measured.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numba
import numpy as np

from rlsvi.core.random import reseed
from rlsvi_paper.tetris import Tetris, TetrisEnv, play, rules, solve
from rlsvi_paper.tetris.features import BERTSEKAS, DELLACHERIE, afterstates, evaluate, new_room, values
from rlsvi_paper.tetris.game import Game, new_game, start, step
from rlsvi_paper.tetris.play import best

# A player of middling strength: flat, low, without holes.
PLAYER = np.concatenate([np.zeros(10), np.full(9, -1.0), [-0.5, -10.0, 0.0]])
DELLACHERIE_PLAYER = np.array([-0.5, 1.0, -1.0, -1.0, -4.0, -1.0, 0.0, 0.0, 0.0])
STORED, STORED_AND_VALUED, VALUED = range(3)


def least(works, repeats=7):
    """The least processor time of each of several pieces of work, measured in turns."""
    times = dict.fromkeys(works, np.inf)
    for work in works.values():
        work()
    for _ in range(repeats):
        for name, work in works.items():
            begin = time.thread_time()
            work()
            times[name] = min(times[name], time.thread_time() - begin)
    return times


@numba.njit(nogil=True)
def collect(rules, game, room, stream, rows, heights, cells, pieces):
    """The positions that the player meets; how many placements they have."""
    start(rules, game, stream)
    total = 0
    for t in range(pieces.size):
        rows[t], heights[t], cells[t], pieces[t] = game.rows, game.heights, game.cells[0], game.piece[0]
        count = evaluate(rules, BERTSEKAS, game, PLAYER, room)
        total += count
        _, ended = step(rules, game, best(room, count, 1.0), stream)
        if ended:
            start(rules, game, stream)
    return total


@numba.njit(nogil=True)
def look(rules, kind, what, weights, room, spare, rows, heights, cells, pieces):
    """All placements of all positions."""
    total = 0.0
    for t in range(pieces.size):
        game = Game(rows[t], heights[t], cells[t : t + 1], pieces[t : t + 1], spare)
        if what == VALUED:
            count = evaluate(rules, kind, game, weights, room)
        else:
            count = afterstates(rules, kind, game, room.planes, 0, room.removed, room.fatal)
            if what == STORED_AND_VALUED:
                values(room.planes, 0, count, weights, room.values)
        total += room.values[count - 1]
    return total


def placements_a_second(r, positions):
    """Of the features alone, of stored features with their values, of values alone, and of the other features."""
    game, words = new_game(r), np.empty(4, dtype=np.uint64)
    reseed(words, np.uint64(0))
    arrays = (
        np.zeros((positions, len(game.rows)), dtype=np.int64),
        np.zeros((positions, r.width), dtype=np.int64),
        *(np.zeros(positions, dtype=np.int64) for _ in range(2)),
    )
    total = collect(r, game, new_room(r, BERTSEKAS), words, *arrays)
    fast, small, other = (
        new_room(r, BERTSEKAS),
        new_room(r, BERTSEKAS, np.uint8),
        new_room(r, DELLACHERIE),
    )
    times = least(
        {
            "stored": lambda: look(r, BERTSEKAS, STORED, PLAYER, small, game.spare, *arrays),
            "stored and valued": lambda: look(r, BERTSEKAS, STORED_AND_VALUED, PLAYER, small, game.spare, *arrays),
            "valued": lambda: look(r, BERTSEKAS, VALUED, PLAYER, fast, game.spare, *arrays),
            "dellacherie": lambda: look(r, DELLACHERIE, VALUED, DELLACHERIE_PLAYER, other, game.spare, *arrays),
        },
        25,
    )
    return {name: total / seconds for name, seconds in times.items()} | {"a piece": total / positions}


def compiled_games(r, pieces):
    """Pieces a second of whole games of the player, and rows a piece."""
    scores = []
    times = least({"play": lambda: scores.append(play(r, BERTSEKAS, PLAYER, pieces // 500, 10**6))})
    return scores[-1].pieces.sum() / times["play"], scores[-1].rows.sum() / scores[-1].pieces.sum()


def stepped_games(pieces):
    """Pieces a second of the same player through Gymnasium, features from the basis."""
    env = TetrisEnv()
    seen = {"at": env.reset(seed=0)}
    features = Tetris(units="raw").bind(None, int(env.action_space.n), 1, seen["at"][0])

    def work():
        observation, info = seen["at"]
        for _ in range(pieces):
            worth = features.at(0, observation)[1] @ PLAYER + features.rewards(observation)
            action = int(np.argmax(np.where(info["action_mask"] == 1, worth, -np.inf)))
            observation, _, terminated, _, info = env.step(action)
            if terminated:
                observation, info = env.reset()
        seen["at"] = observation, info

    return pieces / least({"stepped": work}, 3)["stepped"]


def tetris_gymnasium(pieces):
    """Pieces a second of the same player in tetris-gymnasium, through its grouped placements; None without it."""
    try:
        import gymnasium
        from tetris_gymnasium.envs.tetris import Tetris as Other
        from tetris_gymnasium.wrappers.grouped import GroupedActionsObservations
        from tetris_gymnasium.wrappers.observation import FeatureVectorObservation
    except ImportError:
        return None
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    base = Other(width=10, height=20)
    env = GroupedActionsObservations(base, observation_wrappers=[FeatureVectorObservation(base)])
    weights = np.concatenate([np.zeros(10), [-0.5, -10.0, -1.0]])  # heights, greatest height, holes, differences
    seen = {"at": env.reset(seed=0)[0]}

    def work():
        shown = seen["at"]
        for _ in range(pieces):
            worth = np.where(env.legal_actions_mask == 1, shown @ weights, -np.inf)
            shown, _, terminated, _, _ = env.step(int(np.argmax(worth)))
            if terminated:
                shown, _ = env.reset()
        seen["at"] = shown

    return pieces / least({"grouped": work}, 3)["grouped"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--quick", action="store_true", help="fewer positions and pieces")
    options = parser.parse_args()
    scale = 1 if options.quick else 5
    result = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version()}

    def row(what, value):
        print(f"{what:<66}{value:>20}", flush=True)

    print("20 x 10, all pieces, one core")
    rate = result["placements_a_second"] = placements_a_second(rules(), 1000 * scale)
    row("placements a second: 22 features stored as bytes", f"{rate['stored'] / 1e6:.1f} million")
    row("placements a second: stored, and their values", f"{rate['stored and valued'] / 1e6:.1f} million")
    row("placements a second: values alone", f"{rate['valued'] / 1e6:.1f} million")
    row("placements a second: values, Dellacherie's features", f"{rate['dellacherie'] / 1e6:.1f} million")
    row("placements a piece", f"{rate['a piece']:.1f}")
    games, rows = compiled_games(rules(), 10_000 * scale)
    result |= {"pieces_a_second": games, "rows_a_piece": rows}
    row("pieces a second: greedy games, compiled", f"{games:,.0f}")
    row("rows a piece", f"{rows:.3f}")
    stepped = result["pieces_a_second_gymnasium"] = stepped_games(200 * scale)
    row("pieces a second: greedy games through Gymnasium", f"{stepped:,.0f}")
    grouped = result["pieces_a_second_tetris_gymnasium"] = tetris_gymnasium(20 * scale)
    if grouped is None:
        row("pieces a second: tetris-gymnasium", "not installed")
    else:
        row("pieces a second: tetris-gymnasium, grouped placements", f"{grouped:,.1f}")
        row("compiled over tetris-gymnasium, times", f"{games / grouped:,.0f}")
        row("through Gymnasium over tetris-gymnasium, times", f"{stepped / grouped:,.0f}")
    begin = time.thread_time()
    exact = solve(rules(4, 10, "SZ"))
    result["exact"] = {"seconds": time.thread_time() - begin, "rows": exact.rows, "boards": exact.boards}
    row(
        f"mini-Tetris solved: {exact.rows:.4f} rows over {exact.boards:,} boards",
        f"{result['exact']['seconds']:.1f} s",
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "tetris.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {options.out / 'tetris.json'}")


if __name__ == "__main__":
    main()
