"""Games of a fixed player, which chooses the first placement of the greatest value."""

from typing import NamedTuple

import numpy as np

from rlsvi.core.checks import finite, fits, shaped, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import reseed
from rlsvi_paper.tetris.features import KINDS, Room, evaluate, new_room
from rlsvi_paper.tetris.game import Game, GameOver, Rules, check_rules, new_game, start, step

CHUNK = 50_000  # pieces between two returns from the compiled loop
ROWS, PIECES = range(2)


class Scores(NamedTuple):
    """Rows removed and pieces placed in each game, whether it was over rather than stopped, and the rule.

    Attributes
    ----------
    rows
        The rows removed in each game.
    pieces
        The pieces placed.
    over
        Whether the game was over, rather than stopped.
    game_over
        The rule that ends a game.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> from rlsvi_paper import tetris
    >>> scores = tetris.Scores(np.array([10, 30]), np.array([40, 90]), np.array([1, 1]), "top row")
    >>> scores.rows.mean()
    np.float64(20.0)
    """

    rows: Longs
    pieces: Longs
    over: Longs
    game_over: GameOver


def play(
    rules: Rules, kind: int, weights: Floats, games: int, max_pieces: int, seed: int = 0, reward: float = 1.0
) -> Scores:
    """Play games with the player that maximises reward r + weights . features, for r rows removed by a placement.

    Parameters
    ----------
    rules
        The rules of the game.
    kind
        The kind of features, 0 (bertsekas) or 1 (dellacherie).
    weights
        One weight per feature.
    games
        The number of games.
    max_pieces
        The number of pieces after which a game is stopped.
    seed
        Determines the pieces.
    reward
        The weight of a row removed.

    Returns
    -------
    Scores
        The rows removed and pieces placed in each game.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> rules = tetris.rules(height=6, width=5, pieces="IO")
    >>> weights = tetris.scoring_weights(rules)
    >>> tetris.play(rules, 0, weights, games=3, max_pieces=50).rows.shape
    (3,)
    """
    rules, kind = check_rules(rules), whole("kind", kind, 0, len(KINDS) - 1)
    room, words, game = new_room(rules, kind), np.empty(4, dtype=np.uint64), new_game(rules)
    reseed(words, np.uint64(whole("seed", seed, 0, 2**64 - 1)))
    weights = shaped("weights", finite("weights", weights), room.planes.shape[:1])
    reward = float(shaped("reward", finite("reward", reward), ()))
    scores = no_scores(rules, whole("games", games, 1, 2**31 - 1))
    limit, tally = whole("max_pieces", max_pieces, 1, 2**62), np.zeros(2, dtype=np.int64)
    for g in range(games):
        start(rules, game, words)
        tally[:] = 0
        over = False
        while not over and tally[PIECES] < limit:
            until = min(limit, int(tally[PIECES]) + CHUNK)
            over = play_on(rules, kind, game, weights, reward, words, room, tally, until)
        scores.rows[g], scores.pieces[g], scores.over[g] = tally[ROWS], tally[PIECES], over
    return scores


def no_scores(rules: Rules, games: int) -> Scores:
    """Return scores of zero."""
    fits(f"the scores of {games} games", 3 * games, "play fewer")
    rows, pieces, over = np.zeros((3, games), dtype=np.int64)
    return Scores(rows, pieces, over, rules.game_over)


@compiled
def play_on(
    rules: Rules,
    kind: int,
    game: Game,
    weights: Floats,
    reward: float,
    stream: Words,
    room: Room,
    tally: Longs,
    until: int,
) -> bool:
    """Continue a game until it is over or has `until` pieces; return whether it is over."""
    while tally[PIECES] < until:
        count = evaluate(rules, kind, game, weights, room)
        removed, ended = step(rules, game, best(room, count, reward), stream)
        tally[ROWS] += removed
        tally[PIECES] += 1
        if ended:
            return True
    return False


@compiled
def best(room: Room, count: int, reward: float) -> int:
    """Return the placement of the greatest reward r + value."""
    at, most = 0, -np.inf
    for a in range(count):
        value = room.values[a] + reward * room.removed[a]
        if value > most:
            at, most = a, value
    return at
