"""Approximate policy iteration on new games, with which the paper compares ("LSPI").

D. Bertsekas and S. Ioffe, "Temporal Differences-Based Policy Iteration and Applications in Neuro-Dynamic
Programming", MIT LIDS-P-2349 (1996); also Bertsekas and Tsitsiklis, "Neuro-Dynamic Programming"
(1996), section 8.3. The value of a board i is V_t(i) = w_t . phi(i), with the features of Bertsekas and Ioffe.

1. The player mu_t takes the placement of the greatest r + gamma V_t(i'), where r is the rows it removes and i'
   the board after it, including fatal ones; ties are broken at random.
2. It plays M new games, the m-th over the boards i_0 (empty), i_1, .., i_T, of which i_T ends it.
3. Temporal differences d_s = r_{s+1} + gamma V_t(i_{s+1}) - V_t(i_s), with 0 in place of V_t(i_T).
4. w_{t+1} = argmin_w  sum over games, over k < T, of
   ( phi(i_k) . w - V_t(i_k) - sum_{s = k}^{T - 1} (gamma lambda)^{s - k} d_s )^2.

So lambda = 1 is regression on the return of each game from i_k on, which is policy iteration by Monte Carlo, and
lambda = 0 is one step of value iteration. No data of earlier games are kept. In a game that is stopped by
`max_pieces`, V_t(i_T) stands for the rest. With the traces z_s = gamma lambda z_{s-1} + phi(i_s), the
right-hand side of the normal equations is sum_s d_s z_s, so no game needs to be stored. Their matrix is a sum of
products of small integers, exact in float64. The equations are solved for the change w_{t+1} - w_t, by a singular
value decomposition: if the games do not determine some direction, the minimiser closest to w_t is used, with each
feature scaled by its root mean square. There is no ridge.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi.core.checks import LARGEST_NUMBER, finite, function_of, in_unit_interval, shaped, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled, unsigned
from rlsvi.core.random import Seed, sequence, stream, uniform
from rlsvi_paper.tetris.features import BERTSEKAS, Room, evaluate, new_room
from rlsvi_paper.tetris.game import Game, GameOver, Rules, check_rules, new_game, start, step
from rlsvi_paper.tetris.play import Scores, no_scores


class Policies(NamedTuple):
    """The players mu_0, mu_1, .., and the games of each, from which the next one was computed.

    Attributes
    ----------
    weights
        (players, d).
    rows
        The rows removed, (players, games).
    pieces
        The pieces placed, (players, games).
    over
        Whether the game was over, rather than stopped, (players, games).
    rank
        The rank of the normal equations for each next player, (players - 1,).
    diverged
        Whether the next weights were not finite, so that there is no next player.
    game_over
        The rule that ends a game.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> rules = tetris.rules(height=6, width=5, pieces="IO")
    >>> weights = tetris.scoring_weights(rules)
    >>> found = tetris.policy_iteration(rules, weights, iterations=2, games=5, max_pieces=50)
    >>> found.mean.shape
    (3,)
    """

    weights: Floats  # (players, d)
    rows: Longs  # (players, games)
    pieces: Longs  # (players, games)
    over: Longs  # (players, games) whether the game was over, rather than stopped
    rank: Longs  # (players - 1,) rank of the normal equations for each next player
    diverged: bool  # whether the next weights were not finite, so that there is no next player
    game_over: GameOver

    @property
    def mean(self) -> Floats:
        """Mean rows per game, for each player."""
        return np.asarray(self.rows.mean(axis=1))


class Sums(NamedTuple):
    """The normal equations, and intermediate results."""

    matrix: Floats  # (d, d) sum of phi phi', its upper half
    right: Floats  # (d,) sum of d_s z_s
    features: Floats  # (d,) of the board before the placement
    trace: Floats  # (d,)


def scoring_weights(rules: Rules) -> Floats:
    """Return the first player of Bertsekas and Ioffe: -10 for the maximum height, -1 for a hole, 0 otherwise.

    Parameters
    ----------
    rules
        The rules of the game.

    Returns
    -------
    Floats
        One weight per feature.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> weights = tetris.scoring_weights(tetris.rules(height=6, width=5))
    >>> len(weights), weights.min().item()
    (12, -10.0)
    """
    weights = np.zeros(2 * check_rules(rules).width + 2)
    weights[-3:-1] = -10.0, -1.0
    return weights


def policy_iteration(
    rules: Rules,
    weights: Floats,
    *,
    iterations: int = 20,
    games: int = 100,
    lam: float = 0.3,
    gamma: float = 1.0,
    max_pieces: int = 1_000_000,
    seed: Seed = 0,
    progress: Callable[[int, Scores], None] | None = None,
) -> Policies:
    """Play and improve: compute `iterations` + 1 players, each from the games of the one before.

    Parameters
    ----------
    rules
        The rules of the game.
    weights
        w_0, such as `scoring_weights(rules)`, or zeros to learn from scratch.
    iterations
        The number of players to compute.
    games
        M, the number of games per iteration.
    lam, gamma
        lambda and the discount, both between 0 and 1.
    max_pieces
        The number of pieces after which a game is stopped.
    seed
        Determines the pieces.
    progress
        Called with t and the scores of mu_t, once it has played.

    Returns
    -------
    Policies
        The players and their games.

    Examples
    --------
    >>> from rlsvi_paper import tetris
    >>> rules = tetris.rules(height=6, width=5, pieces="IO")
    >>> weights = tetris.scoring_weights(rules)
    >>> found = tetris.policy_iteration(rules, weights, iterations=2, games=5, max_pieces=50)
    >>> found.rows.shape
    (3, 5)
    """
    room, game = new_room(check_rules(rules), BERTSEKAS), new_game(rules)
    d = len(room.planes)
    w = shaped("weights", finite("weights", weights), (d,))
    decay = in_unit_interval("gamma", gamma, closed=True) * in_unit_interval("lam", lam, closed=True)
    whole("iterations", iterations, 0, 10**6)
    whole("games", games, 1, 10**8)
    whole("max_pieces", max_pieces, 1, 2**62)
    if progress is not None:
        function_of("progress", progress, "t", "the scores")
    root = sequence(seed)  # a given SeedSequence is not changed
    keys = ((*root.spawn_key, i) for i in range(2))
    piece_stream, tie_stream = (stream(np.random.SeedSequence(root.entropy, spawn_key=key)) for key in keys)
    players, played, ranks, diverged = [], [], [], False
    for t in range(iterations + 1):
        scores = no_scores(rules, games)
        sums = Sums(np.zeros((d, d)), *np.zeros((3, d)))
        _collect(rules, game, w, gamma, decay, max_pieces, piece_stream, tie_stream, room, *scores[:3], sums)
        players.append(w)
        played.append(scores)
        if progress is not None:
            progress(t, scores)
        if t < iterations:
            matrix = sums.matrix + np.triu(sums.matrix, 1).T
            scale = np.sqrt(np.diagonal(matrix))  # features are scaled alike, for precision
            scale[scale == 0] = 1.0
            change, _, rank, _ = np.linalg.lstsq(matrix / np.outer(scale, scale), sums.right / scale, rcond=None)
            w = w + change / scale
            if not (np.abs(w) <= LARGEST_NUMBER).all():
                diverged = True
                break
            ranks.append(rank)
    rows, pieces, over = (np.stack(column) for column in zip(*(scores[:3] for scores in played), strict=True))
    solved = np.array(ranks, dtype=np.int64)
    return Policies(np.stack(players), rows, pieces, over, solved, diverged, rules.game_over)


@compiled
def _collect(
    rules: Rules,
    game: Game,
    weights: Floats,
    gamma: float,
    decay: float,
    limit: int,
    piece_stream: Words,
    tie_stream: Words,
    room: Room,
    rows: Longs,
    pieces: Longs,
    over: Longs,
    sums: Sums,
) -> None:
    """Play games with fixed weights, and add them to the scores and to the sums."""
    d = unsigned(weights.size)
    for g in range(rows.size):
        start(rules, game, piece_stream)
        for k in range(d):
            sums.features[k] = sums.trace[k] = 0.0
        sums.features[d - unsigned(1)] = 1.0  # the empty board
        value = weights[d - unsigned(1)]
        ended = False
        while not ended and pieces[g] < limit:
            count = evaluate(rules, BERTSEKAS, game, weights, room)
            a = greedy(room, count, gamma, tie_stream)
            removed, ended = step(rules, game, a, piece_stream)
            after = 0.0 if ended else room.values[a]
            _add(sums, decay, removed + gamma * after - value)
            value = after
            for k in range(d):
                sums.features[k] = room.planes[k, a]
            rows[g] += removed
            pieces[g] += 1
        over[g] = ended


@compiled
def greedy(room: Room, count: int, gamma: float, stream: Words) -> int:
    """Return a placement of the greatest r + gamma value, with ties broken uniformly, using one random number."""
    most, ties = -np.inf, 0
    for a in range(count):
        value = room.removed[a] + gamma * room.values[a]
        if value > most:
            most, ties = value, 1
        elif value == most:
            ties += 1
    left = int(uniform(stream) * ties)
    for a in range(count):
        if room.removed[a] + gamma * room.values[a] == most:
            if left == 0:
                return a
            left -= 1
    return 0


@compiled
def _add(sums: Sums, decay: float, difference: float) -> None:
    """Add one board and the temporal difference that follows it."""
    d = unsigned(sums.trace.size)
    for j in range(d):
        sums.trace[j] = decay * sums.trace[j] + sums.features[j]
        sums.right[j] += difference * sums.trace[j]
        x = sums.features[j]
        for k in range(j, d):
            sums.matrix[j, k] += x * sums.features[k]
