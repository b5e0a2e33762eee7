"""The experiments in a river without end: functions that the jobs of the figure on continual RLSVI call."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.polynomial.legendre import legvander

from rlsvi.agents import ContinualLSVI, ContinualRLSVI, DivergenceWarning, EpsilonGreedy, Linear
from rlsvi.agents.continual.rlsvi import ContinualAgent
from rlsvi.agents.explore import Schedule
from rlsvi.bases import Dense, StateFeatures, coherent
from rlsvi.core.compile import Floats
from rlsvi.core.regression import FactorError
from rlsvi.mdp import FiniteMDP, river_swim
from rlsvi.mdp.solve import average_reward
from rlsvi.simulate import simulate_continual

GAMMA = 0.99
FUNCTIONS = 6  # of place and action
COHERENT: dict[str, Literal["HSA", "sqrt(HSA)"]] = {"coherent": "HSA", "coherent, small": "sqrt(HSA)"}
DITHERING: dict[str, Callable[[int], Schedule]] = {
    "epsilon = .01": lambda steps: 0.01,
    "epsilon = .1": lambda steps: 0.1,
    "epsilon = .5": lambda steps: 0.5,
    "epsilon from 1 to 0": lambda steps: Linear(1.0, 0.0, max(steps // 2, 1)),
}


def continual_reward(*, agent: str, basis: str, states: int, steps: int, seed: int) -> dict[str, Any]:
    """The average reward in a river without end, as a share of the best, over ten parts of a run.

    agent : the noise of continual RLSVI ("paper", "whitened" or "independent"), or a name in DITHERING.
    basis : "table"; one of COHERENT, six random functions of place and action whose span contains Q*, drawn as
        appendix C has it; "random", six that need not span it; other ones for every seed. Or "places", 1, x and
        x^2 of the place x, for each action, which do not span it either.

    Also the step by which divergence was noticed, and the one at which a number was no longer finite and the run
    ended; infinite if never.
    """
    mdp = river_swim(states)
    best, learning = average_reward(mdp), _agent(agent, basis, states, steps, seed)
    shares, noticed, ended = np.zeros(10), np.inf, np.inf
    for part in range(10):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DivergenceWarning)
            try:
                shares[part] = simulate_continual(learning, mdp, steps // 10).mean() / best
            except FactorError:
                ended = float(learning.steps)
        if caught and not np.isfinite(noticed):
            noticed = float(learning.steps)
        if np.isfinite(ended):
            break
    return {"part": np.arange(1, 11), "share": shares, "noticed": noticed, "ended": ended}


def _agent(agent: str, basis: str, states: int, steps: int, seed: int) -> ContinualAgent:
    usual: dict[str, Any] = {"gamma": GAMMA, "seed": seed}
    if basis in COHERENT:
        Q = discounted_values(river_swim(states))
        usual["basis"] = coherent(Q[None], FUNCTIONS, scale=COHERENT[basis], seed=seed)
    elif basis == "random":
        usual["basis"] = Dense(np.random.default_rng(seed).normal(size=(states, 2, FUNCTIONS)))
    elif basis == "places":
        usual["basis"] = StateFeatures(lambda s: legvander(2.0 * s / (states - 1) - 1.0, 2).ravel())
    if agent in DITHERING:
        return ContinualLSVI(explore=EpsilonGreedy(DITHERING[agent](steps)), **usual)
    noise: Any = agent
    return ContinualRLSVI(noise=noise, **usual)


def discounted_values(mdp: FiniteMDP) -> Floats:
    """Q* of an MDP without end, (S, A), by policy iteration."""
    t = mdp.table
    P = np.zeros((t.states * t.actions, t.states))
    np.add.at(P, (np.repeat(np.arange(len(P)), np.diff(t.indptr)), t.successor), t.probability)
    policy, better = np.full(t.states, -1), np.zeros(t.states, dtype=np.int64)
    while (policy != better).any():
        policy = better
        rows = t.actions * np.arange(t.states) + policy
        V = np.linalg.solve(np.eye(t.states) - GAMMA * P[rows], t.expected[rows])
        Q = (t.expected + GAMMA * P @ V).reshape(t.states, t.actions)
        better = Q.argmax(axis=1)
    return Q


def perturbations(*, noise: str, states: int, steps: int, seed: int) -> dict[str, Any]:
    """How consecutive perturbations are correlated, in units of their own standard deviation.

    Over the second half of `steps` steps, for by then Sigma changes slowly; the mean over the weights of states
    that were met before.
    change : how much Sigma changes in a step, relative to itself: the largest change of a weight, on average over
        all steps from the first on; largest : the largest of all.
    """
    mdp, half = river_swim(states), steps // 2
    learning = _agent(noise, "table", states, steps, seed)
    weights = 2 * states
    w, spread = np.zeros((steps, weights)), np.full((steps + 1, weights), learning.lam**-0.5)
    known = np.zeros(weights, dtype=np.bool_)
    for t in range(steps):
        simulate_continual(learning, mdp, 1)
        learner = learning._learner
        assert learner is not None
        if t == half:
            known = learner.mind.memory.alive[0].copy()
        spread[t + 1] = learning.sigma * learner.mind.factor.inv[0, :, 0]
        w[t] = (learner.mind.values.theta[0] - learner.walk.mean[0]).ravel() / spread[t + 1]
    change = np.abs((spread[1:] / spread[:-1]) ** 2 - 1).max(axis=1)
    late = w[half:, known]
    return {
        "correlation": float((late[1:] * late[:-1]).mean() / (late**2).mean()),
        "variance": float((late**2).mean()),
        "change": float(change.mean()),
        "largest": float(change.max()),
    }
