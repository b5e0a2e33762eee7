"""Players of Tetris that RLSVI is compared with: those of policy iteration, and one with published weights."""

from typing import Any

import numpy as np

from rlsvi.tetris import play, policy_iteration, rules, scoring_weights
from rlsvi.tetris.features import BERTSEKAS, DELLACHERIE
from rlsvi.tetris.game import GameOver

LIMIT = 1_000_000  # pieces, at which a game is cut off
# Pierre Dellacherie's, as Thiery and Scherrer (2009) give them: landing height (kept twice), eroded cells, row and
# column transitions, holes, wells; their own two features and the constant have none.
PUBLISHED_WEIGHTS = (-0.5, 1.0, -1.0, -1.0, -4.0, -1.0, 0.0, 0.0, 0.0)


def policies(
    *, start: str, lam: float, iterations: int, games: int, again: int, game_over: GameOver, seed: int
) -> dict[str, Any]:
    """Mean rows of every player of approximate policy iteration, and of the best and the last in new games.

    start : "scoring", the first player of Bertsekas and Ioffe, or "nothing", weights of zero.
    games : an iteration.
    again : games that the best and the last player play anew: the greatest of several means is too great.

    Where the weights stop being finite numbers there is no next player: its mean is 0, and so is the last one's.
    """
    board = rules(game_over=game_over)
    first = scoring_weights(board) if start == "scoring" else np.zeros(2 * board.width + 2)
    found = policy_iteration(
        board, first, iterations=iterations, games=games, lam=lam, max_pieces=LIMIT, seed=seed
    )
    best = int(found.mean.argmax())
    anew = [
        play(board, BERTSEKAS, found.weights[i], again, LIMIT, seed=10_000 + seed).rows.mean() for i in (best, -1)
    ]
    mean = np.zeros(iterations + 1)
    mean[: len(found.mean)] = found.mean
    return {
        "iteration": np.arange(iterations + 1),
        "mean": mean,
        "best": best,
        "best_anew": anew[0],
        "last_anew": 0.0 if found.diverged else anew[1],
        "diverged": found.diverged,
    }


def published_player(*, again: int, game_over: GameOver, seed: int) -> dict[str, Any]:
    """Rows of a player with other features and Dellacherie's weights, in games cut off after a million pieces."""
    found = play(rules(game_over=game_over), DELLACHERIE, np.array(PUBLISHED_WEIGHTS), again, LIMIT, seed=seed)
    return {"published": found.rows.mean(), "cut_off": int((found.over == 0).sum())}
