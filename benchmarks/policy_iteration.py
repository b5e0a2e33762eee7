"""Approximate policy iteration on Tetris, 20 x 10: the score of every player on the way.

    python -m benchmarks.policy_iteration [--start scoring|zero] [--lam 0.3] [--seeds 2] [--out DIR]

Prints a line an iteration and writes DIR/policy-iteration-START-LAM.json. The best player of a run is played
anew, because the greatest of many means is too great.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from rlsvi_paper.tetris import play, rules
from rlsvi_paper.tetris.features import BERTSEKAS
from rlsvi_paper.tetris.policy_iteration import policy_iteration, scoring_weights


def summary(rows):
    return round(float(rows.mean()), 1), round(float(rows.std(ddof=1) / len(rows) ** 0.5), 1)


def measure(board, start, seed, again, **settings):
    def progress(t, scores):
        print(f"seed {seed} player {t:3d}: {scores.rows.mean():8.1f} +- {summary(scores.rows)[1]:.1f}", flush=True)

    first = scoring_weights(board) if start == "scoring" else np.zeros(2 * board.width + 2)
    found = policy_iteration(board, first, seed=seed, progress=progress, **settings)
    best = int(found.mean.argmax())
    anew = play(board, BERTSEKAS, found.weights[best], again, 1_000_000, seed=10_000 + seed)
    print(f"seed {seed} best player {best}, in {again} new games: {summary(anew.rows)}", flush=True)
    return {
        "seed": seed,
        "scores": [summary(rows) for rows in found.rows],
        "rank": found.rank.tolist(),
        "diverged": found.diverged,
        "best": best,
        "best_anew": summary(anew.rows),
        "weights": found.weights.tolist(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", choices=("scoring", "zero"), default="scoring")
    parser.add_argument("--lam", type=float, default=0.3)
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--again", type=int, default=250, help="new games of the best player")
    parser.add_argument("--out", type=Path, default=Path("."))
    given = parser.parse_args()
    settings = {name: getattr(given, name) for name in ("start", "lam", "gamma", "games", "iterations", "again")}
    runs = [measure(rules(), seed=seed, **settings) for seed in range(given.seeds)]
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"policy-iteration-{given.start}-{given.lam:g}.json"
    path.write_text(json.dumps({"game_over": "top row", **settings, "runs": runs}, indent=1))


if __name__ == "__main__":
    main()
