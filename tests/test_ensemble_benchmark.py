"""The rival in plain NumPy that EnsembleRLSVI is timed against: it must be the same algorithm."""

import numpy as np
import pytest
from benchmarks.ensemble import episodes_to_treasures
from benchmarks.ensemble_rivals import LAM, SIGMA, PlainEnsemble, Sea

from rlsvi import EnsembleRLSVI, problems
from rlsvi.agents.contract import plan_as
from rlsvi.core.random import normal, stream
from rlsvi.simulate.finite import simulate
from test_ensemble import stream_of
from values import action_values

N, M, EPISODES = 5, 4, 20


def prior_draws(agent):
    """The prior draws theta0, (N, 2, N, M), of an agent that has learned."""
    keys, draws = agent._learner.mind.own.keys, np.zeros((N, 2, N, M))
    for h, a, c, m in np.ndindex(draws.shape):
        block = 2 * (h * N + c) + a
        draws[h, a, c, m] = normal(stream_of(keys[m], h * agent._learner.features.blocks + block + 1))
    return draws / np.sqrt(LAM)


def test_members_in_numpy_are_those_of_the_agent():
    """For the same episodes, prior draws and noise, at every state that a period can reach, visited or not."""
    problem = problems.deep_sea(N)
    agent = EnsembleRLSVI(lam=LAM, sigma=SIGMA, members=M, seed=1)
    trace = simulate(agent, problem, EPISODES, trace=True).trace
    twin, key = PlainEnsemble(Sea(problem.mdp, N), M), agent._learner.mind.own.keys[-1]
    twin.noise = twin.ridge * prior_draws(agent)
    for number in range(EPISODES):
        state = stream_of(key, number + 1)
        noise = SIGMA * np.array([[normal(state) for _ in range(M)] for _ in range(N)])
        twin.learn((trace.states[number] % N).tolist(), trace.actions[number], trace.rewards[number], noise)
    visits = twin.count.sum(axis=1)[np.tri(N, dtype=bool)]  # of what can be reached
    assert (visits > 1).any()
    assert (visits == 0).any()
    for m in range(M):
        assert plan_as(agent._learner.mind, m, True, stream(0))
        plan, Q = agent._learner.mind.values, twin.plan(m)
        for h in range(N):
            for c in range(h + 1):
                found = action_values(agent, plan, h, h * N + c)
                np.testing.assert_allclose(Q[h, :, c], found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("members", [1, 10])
def test_the_rival_learns_as_the_agent_does(members):
    """With ten members it finds the treasure in every run, with one it hardly ever does."""
    problem = problems.deep_sea(6)
    times = [episodes_to_treasures(PlainEnsemble(Sea(problem.mdp, 6), members, seed), 300) for seed in range(10)]
    assert np.isfinite(times).sum() >= 9 if members == 10 else np.isfinite(times).sum() <= 5
