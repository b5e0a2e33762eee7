"""A chain with copies of its states and actions: S and A grow, while K, H and what there is to learn do not."""

import math

import numpy as np

from rlsvi import bases, mdp
from rlsvi.agents import RLSVI
from rlsvi.bases.dense import Dense
from rlsvi.mdp import FiniteMDP
from rlsvi.paper.chain.experiments import seeds_of, until_learned
from rlsvi.paper.theory.prior_regret import MAKERS
from rlsvi.problems import Problem
from rlsvi.study.experiment import Play, Playing, experiment


@experiment
def copied_time(
    *,
    length: int,
    features: int | None,
    states: int,
    actions: int,
    seed: int,
    limit: int,
    lam: float = 1.0,
    sigma: float = 0.1,
) -> Playing:
    """Episodes until RLSVI has ten rewards on the chain with `states` and `actions` copies of each.

    features : of a coherent basis, whose functions are as large as those of the chain by itself; None: a table.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = copied_chain(length, states, actions, features, seed=problem_seed)
    agent = RLSVI(lam=lam, sigma=sigma, seed=agent_seed)
    return {"time": (yield from until_learned(agent, problem, limit))}


@experiment
def copied_regret(*, agent: str, scale: float, length: int, copies: int, limit: int, seed: int) -> Playing:
    """What an agent with a table loses in `limit` episodes of the chain, along its path.

    agent, scale : one of MAKERS, at its scale. copies : of every state, and of every action.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = copied_chain(length, copies, copies, None, seed=problem_seed)
    history = yield Play(MAKERS[agent](scale, limit, agent_seed), problem, limit, regret=False)
    return {"lost": float(history.path_regret.sum())}


def copied_chain(length: int, states: int, actions: int, features: int | None, *, seed: int = 0) -> Problem:
    """The chain with copies: place p is one of the states p, N + p, .., drawn afresh; even actions go left."""
    plain, N = mdp.chain(length).table, length
    S, A = N * states, 2 * actions

    def successors(s: int, a: int) -> list[tuple[float, int, float]]:
        row = (s % N) * 2 + a % 2
        entries = range(plain.indptr[row], plain.indptr[row + 1])
        return [
            (plain.probability[i] / states, int(plain.successor[i]) + N * copy, 0.0)
            for i in entries
            for copy in range(states)
        ]

    task = FiniteMDP.from_function(
        successors,
        horizon=N - 1,
        states=S,
        actions=A,
        start=np.tile(np.eye(N)[0], states) / states,
        terminal_reward=np.tile(np.eye(N)[-1], states),
        name=f"chain of length {N}, {states} x {actions} copies",
    )
    if features is None:
        return Problem(task)
    basis = bases.coherent(mdp.backward_induction(task).Q, features, seed=seed)
    return Problem(task, Dense(basis.phi / math.sqrt(states * actions)))
