"""Agents that share every step at once: the function that the jobs of the figure call, and its schemes.

Agent k of K begins its first episode at step k H // K, and the next one as soon as an episode ends: some are at
the beginning of an episode while others are at its end. All learn from every step of each of them. An agent either
plans at the beginning of an episode, or anew at every step, from what all have learned until then.

The value functions are those of RLSVI and of EnsembleRLSVI with a table, computed for all agents at once:

    Q_h(s, a) = (sum of r + V_{h+1}(s') + noise, and ridge theta_0) / (n + ridge)        ridge = lam sigma^2

where a seed is the noise of every transition and theta_0 ~ N(0, 1 / lam), drawn once, and a draw has new noise of
standard deviation sigma / sqrt(n + ridge) in their place.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi import problems
from rlsvi.core.compile import Floats, Longs
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.solve import backward_induction
from rlsvi.paper.chain.experiments import seeds_of


class Scheme(NamedTuple):
    """What agents act on."""

    seeds: bool  # noise that never changes, different for each agent; otherwise noise is drawn for each plan
    replan: bool  # at every step, otherwise at the beginning of an episode
    shared: bool = False  # one plan for all agents


SEEDS, REDRAWN = "a seed for each agent, planning at every step", "a draw at every step"
EPISODES, SHARED = "a draw for every episode", "one shared draw at every step"
SCHEMES = {
    SEEDS: Scheme(seeds=True, replan=True),
    EPISODES: Scheme(seeds=False, replan=False),
    REDRAWN: Scheme(seeds=False, replan=True),
    SHARED: Scheme(seeds=False, replan=True, shared=True),
}
# By the name of a problem: how a seed draws it, lambda and sigma: those of the figure `concurrent`.
PROBLEMS: dict[str, tuple[Callable[[int], FiniteMDP], float, float]] = {
    "DeepSea, N = 20": (lambda seed: problems.deep_sea(20, seed=seed).mdp, 10.0, 0.001),
    "RiverSwim": (lambda seed: problems.river_swim(6, 20).mdp, 1.0, 0.3),
}


def staggered_regret(*, task: str, scheme: str, agents: int, rounds: int, seed: int) -> dict[str, float]:
    """The regret per agent of so many episodes of each."""
    problem_seed, agent_seed = seeds_of(seed)
    draw, lam, sigma = PROBLEMS[task]
    mdp, rng = draw(problem_seed), np.random.default_rng(agent_seed)
    best = float(mdp.start @ backward_induction(mdp).V[0])
    earned = play(layers_of(mdp), SCHEMES[scheme], agents, rounds, lam, sigma, rng)
    return {"regret": rounds * best - earned / agents}


class Layer(NamedTuple):
    """The n states that can be reached in a period, and what follows: probabilities of the n' of the next."""

    r: Floats  # (n, A) rewards, which are not random
    P: Floats  # (n, A, n')


def layers_of(mdp: FiniteMDP) -> list[Layer]:
    """Return the layers of a problem with a single first state, which has number 0."""
    t, found = mdp.table, list[Layer]()
    reached = np.flatnonzero(t.start)
    for h in range(t.horizon):
        rows = ((h if t.per_period else 0) * t.states + reached[:, None]) * t.actions + np.arange(t.actions)
        entries = [slice(t.indptr[row], t.indptr[row + 1]) for row in rows.flat]
        following = np.unique(np.concatenate([t.successor[entry] for entry in entries]))
        P = np.zeros((rows.size, len(following)))
        for row, entry in enumerate(entries):
            P[row, np.searchsorted(following, t.successor[entry])] = t.probability[entry]
        found.append(Layer(t.expected[rows], P.reshape(*rows.shape, -1)))
        reached = following
    return found


def play(
    layers: list[Layer],
    scheme: Scheme,
    agents: int,
    rounds: int,
    lam: float,
    sigma: float,
    rng: np.random.Generator,
) -> float:
    """Let all agents play so many episodes, and return the sum of what they earn, in expectation at each step."""
    H, earned = len(layers), 0.0
    learned = SharedTable(layers, agents if scheme.seeds else 0, lam, sigma, rng)
    Q = [np.zeros((agents, *layer.r.shape)) for layer in layers]
    begin, state = np.arange(agents) * H // agents, np.zeros(agents, np.int64)
    for step in range(int(begin[-1]) + rounds * H):
        here = np.flatnonzero((step >= begin) & (step < begin + rounds * H))
        period = (step - begin[here]) % H
        plan = here if scheme.replan else here[period == 0]
        if scheme.shared:
            learned.plan(Q, np.array([0]), np.array([0]))
        else:
            learned.plan(Q, plan, period if scheme.replan else 0 * plan)
        for h in np.unique(period):
            who = here[period == h]
            s = state[who] if h else 0 * who
            a = Q[h][0 * who if scheme.shared else who, s].argmax(axis=1)
            following = (rng.random((len(who), 1)) >= layers[h].P[s, a].cumsum(axis=1)[:, :-1]).sum(axis=1)
            learned.add(h, s, a, following)
            earned += float(layers[h].r[s, a].sum())
            state[who] = following
    return earned


class SharedTable:
    """What all agents have learned: sums over all transitions, by period, state and action."""

    def __init__(
        self, layers: list[Layer], members: int, lam: float, sigma: float, rng: np.random.Generator
    ) -> None:
        self.layers, self.members, self.sigma, self.rng = layers, members, sigma, rng
        self.ridge = lam * sigma**2
        self.moves = [np.zeros_like(layer.P) for layer in layers]  # counts of (s, a, s')
        self.n = [np.zeros_like(layer.r) for layer in layers]
        prior = [rng.standard_normal((members, *layer.r.shape)) / np.sqrt(lam) for layer in layers]
        self.noise = [self.ridge * theta for theta in prior]  # of each member, and ridge theta_0

    def add(self, h: int, s: Longs, a: Longs, following: Longs) -> None:
        """Learn transitions of period h, each with noise for every member."""
        np.add.at(self.moves[h], (s, a, following), 1.0)
        np.add.at(self.n[h], (s, a), 1.0)
        if self.members:
            noise = self.sigma * self.rng.standard_normal((self.members, len(s)))
            np.add.at(np.moveaxis(self.noise[h], 0, 2), (s, a), noise.T)

    def plan(self, Q: list[Floats], who: Longs, since: Longs) -> None:
        """Set the values Q of some agents, each from the given period on."""
        if not len(who):
            return
        V = np.zeros((len(who), self.layers[-1].P.shape[2]))
        for h in range(len(Q) - 1, int(since.min()) - 1, -1):
            needed = since <= h
            V, agents = V[needed], who[needed]
            who, since = agents, since[needed]
            n, moves = self.n[h], self.moves[h]
            total = n * self.layers[h].r + (V @ moves.reshape(n.size, -1).T).reshape(-1, *n.shape)
            if self.members:
                values = (total + self.noise[h][agents]) / (n + self.ridge)
            else:
                noise = self.rng.standard_normal(total.shape)
                values = total / (n + self.ridge) + self.sigma / np.sqrt(n + self.ridge) * noise
            Q[h][agents] = values
            V = values.max(axis=2)
