"""Agents that share a table and learn from every step of one another, in compiled code.

Agent k of K begins its first episode at step k H // K, and the next one as soon as an episode ends: some are at
the beginning of an episode while others are at its end. All learn from every step of each of them. An agent either
plans at the beginning of an episode, or anew at every step, from what all have learned until then.

The value functions are those of RLSVI and of EnsembleRLSVI with a table:

    Q_h(s, a) = (sum of r + V_{h+1}(s') + noise, and ridge theta_0) / (n + ridge)        ridge = lam sigma^2

where a seed is the noise of every transition and theta_0 ~ N(0, 1 / lam), drawn once, and a draw has new noise of
standard deviation sigma / sqrt(n + ridge) in their place.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.core.checks import positive, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import Seed, normal, pick, sequence, stream
from rlsvi.mdp.finite import FiniteMDP


class Scheme(NamedTuple):
    """What agents act on."""

    seeds: bool  # noise that never changes, different for each agent; otherwise noise is drawn for each plan
    replan: bool  # at every step, otherwise at the beginning of an episode
    shared: bool = False  # one plan for all agents


class Layers(NamedTuple):
    """A problem by period: the states that can be reached in each, numbered anew, and what follows in the next."""

    size: Longs  # (H + 1,) the number of states
    r: Floats  # (H, n, A) rewards, which are not random
    P: Floats  # (H, n, A, n) probabilities


def layers_of(mdp: FiniteMDP) -> Layers:
    """Return the layers of a problem with one first state, number 0, and rewards that are not random."""
    t = mdp.table
    reached = [np.flatnonzero(t.start)]
    if len(reached[0]) > 1 or not t.legal.all() or t.pays_terminal or mdp.rewards != "deterministic":
        raise ValueError("mdp must have one first state, only legal actions, and no random or terminal rewards")
    for h in range(t.horizon):
        rows = _rows(mdp, h, reached[h])
        reached.append(np.unique(np.concatenate([t.successor[entry] for entry in _entries(mdp, rows)])))
    size = np.array([len(states) for states in reached])
    r = np.zeros((t.horizon, size.max(), t.actions))
    P = np.zeros((*r.shape, size.max()))
    for h, following in enumerate(reached[1:]):
        rows = _rows(mdp, h, reached[h])
        r[h, : size[h]] = t.expected[rows]
        for i, entry in zip(np.ndindex(rows.shape), _entries(mdp, rows), strict=True):
            np.add.at(P[(h, *i)], np.searchsorted(following, t.successor[entry]), t.probability[entry])
    return Layers(size, r, P)


def _rows(mdp: FiniteMDP, h: int, states: Longs) -> Longs:
    period = h if mdp.table.per_period else 0
    rows: Longs = (period * mdp.states + states[:, None]) * mdp.actions + np.arange(mdp.actions)
    return rows


def _entries(mdp: FiniteMDP, rows: Longs) -> list[slice]:
    return [slice(mdp.indptr[row], mdp.indptr[row + 1]) for row in rows.flat]


class Learned(NamedTuple):
    """What all agents have learned: sums over all transitions, by period, state and action."""

    n: Floats  # (H, n, A)
    moves: Floats  # (H, n, A, n) counts of s'
    noise: Floats  # (K or 0, H, n, A) the noise of each agent's seed, and ridge theta_0


class SharedTable:
    """Agents that share a table: what they have learned, and their values Q, (K, H, n, A)."""

    def __init__(
        self, layers: Layers, agents: int, scheme: Scheme, lam: float, sigma: float, seed: Seed = None
    ) -> None:
        whole("agents", agents, 1)
        positive("lam", lam)
        positive("sigma", sigma)
        self.layers, self.scheme, self.sigma, self.ridge = layers, scheme, sigma, lam * (sigma * sigma)
        prior, later = sequence(seed).spawn(2)
        drawn = np.random.default_rng(prior).standard_normal((agents if scheme.seeds else 0, *layers.r.shape))
        self.learned = Learned(
            np.zeros_like(layers.r), np.zeros_like(layers.P), self.ridge / math.sqrt(lam) * drawn
        )
        self.Q, self.stream = np.zeros((agents, *layers.r.shape)), stream(later)

    def play(self, rounds: int) -> float:
        """Let all agents play so many episodes, and return the sum of what they earn."""
        whole("rounds", rounds, 1)
        work, state = np.zeros((len(self.layers.size), self.layers.r.shape[1])), np.zeros(len(self.Q), np.int64)
        _, replan, shared = self.scheme
        options = rounds, replan, shared, self.ridge, self.sigma, self.stream
        return float(play(self.layers, self.learned, self.Q, work, state, *options))


@compiled
def plan(
    layers: Layers,
    learned: Learned,
    Q: Floats,
    V: Floats,
    agent: int,
    since: int,
    ridge: float,
    sigma: float,
    words: Words,
) -> None:
    """Set the values of an agent, (H, n, A), from a period on. V is for work, (H + 1, n), and 0 after the last."""
    H, _, A = Q.shape
    for h in range(H - 1, since - 1, -1):
        for s in range(layers.size[h]):
            V[h, s] = -np.inf
            for a in range(A):
                n, total = learned.n[h, s, a], learned.n[h, s, a] * layers.r[h, s, a]
                if n > 0.0:
                    for following in range(layers.size[h + 1]):
                        total += learned.moves[h, s, a, following] * V[h + 1, following]
                if learned.noise.shape[0] > 0:
                    Q[h, s, a] = (total + learned.noise[agent, h, s, a]) / (n + ridge)
                else:
                    Q[h, s, a] = total / (n + ridge) + sigma / math.sqrt(n + ridge) * normal(words)
                V[h, s] = max(V[h, s], Q[h, s, a])


@compiled
def add(learned: Learned, h: int, s: int, a: int, following: int, sigma: float, words: Words) -> None:
    """Learn a transition, with noise for every seed."""
    learned.n[h, s, a] += 1.0
    learned.moves[h, s, a, following] += 1.0
    for agent in range(learned.noise.shape[0]):
        learned.noise[agent, h, s, a] += sigma * normal(words)


@compiled
def play(
    layers: Layers,
    learned: Learned,
    Q: Floats,
    V: Floats,
    state: Longs,
    rounds: int,
    replan: bool,
    shared: bool,
    ridge: float,
    sigma: float,
    words: Words,
) -> float:
    """Let all agents play so many episodes: with each step all plan who plan now, and then all act."""
    K, H, _, A = Q.shape
    earned = 0.0
    for step in range((K - 1) * H // K + rounds * H):
        if shared:
            plan(layers, learned, Q[0], V, 0, 0, ridge, sigma, words)
        for k in range(K):
            at = step - k * H // K
            if not shared and 0 <= at < rounds * H and (replan or at % H == 0):
                plan(layers, learned, Q[k], V, k, at % H, ridge, sigma, words)
        for k in range(K):
            at = step - k * H // K
            if 0 <= at < rounds * H:
                h, s, best = at % H, 0 if at % H == 0 else state[k], 0
                values = Q[0 if shared else k, h, s]
                for a in range(1, A):
                    best = a if values[a] > values[best] else best
                state[k] = pick(words, layers.P[h, s, best])
                add(learned, h, s, best, state[k], sigma, words)
                earned += layers.r[h, s, best]
    return earned
