"""What the figures on the extensions measure, on small cases."""

import numpy as np
import pytest

from rlsvi import RLSVI, GradientRLSVI, IncrementalRLSVI, problems
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import river_swim
from rlsvi.simulate.finite import simulate
from rlsvi_paper.extensions.bootstrap import BOOTSTRAP, DATA_ALONE, NORMAL, bootstrap_time
from rlsvi_paper.extensions.continual import (
    COHERENT,
    FUNCTIONS,
    GAMMA,
    _agent,
    continual_reward,
    discounted_values,
    perturbations,
)
from rlsvi_paper.extensions.incremental import (
    BONUSES,
    CHAIN,
    EVIDENCE,
    GUESSED,
    _Losing,
    learning_regret,
    multiplications,
)
from rlsvi_paper.results import unexplained


def test_an_environment_writes_down_what_actions_lose():
    """On the chain only the way right is worth something: p* = (1 - 1/N)^(N-1), lost by one step left."""
    problem = problems.chain(4)
    env, worth = _Losing(problem), (1 - 1 / 4) ** 3
    rng = np.random.default_rng(0)
    for episode in range(30):
        env.reset(seed=episode)
        over, actions = False, []
        while not over:
            actions.append(int(rng.random() < 0.8))
            over = env.step(actions[-1])[2]
        if all(actions):
            assert env.lost[-1] == pytest.approx(0, abs=1e-12)
        elif actions[0] == 0:
            assert env.lost[-1] == pytest.approx(worth, rel=1e-12)
    assert len(env.lost) == 30
    assert len({round(lost, 9) for lost in env.lost}) > 2  # later steps left lose other amounts


def test_gradient_regret_is_that_of_its_own_episodes():
    found = learning_regret(task="chain", agent="gradient", nu=0.0, episodes=20, runs=1, seed=3)
    env = _Losing(problems.chain(CHAIN))
    GradientRLSVI(lam=1.0, sigma=0.1, basis=problems.chain(CHAIN).basis, seed=3000).learn(env, episodes=20)
    np.testing.assert_allclose(found["regret"], np.cumsum(env.lost), rtol=1e-12)
    assert found["work_late"] > 0


@pytest.mark.parametrize("agent", ["batch", *GUESSED, *EVIDENCE, "incremental", "incremental, literal", *BONUSES])
def test_regret_never_falls(agent):
    found = learning_regret(task="chain", agent=agent, nu=0.01, episodes=20, runs=2, seed=0)
    assert (np.diff(found["regret"]) >= -1e-12).all()
    assert 0 < found["done_early"] <= found["done_late"] <= found["work_late"]
    assert found["work_early"] <= found["work_late"]


def test_multiplications_are_counted_from_what_is_in_memory():
    """Two products of two, one after the other: d = 2, two blocks and two actions a period."""
    problem, forgets = problems.recommendation(2, 2, seed=0), {"lam": 0.2, "sigma": 0.1, "seed": 0}
    batch, incremental = RLSVI(**forgets), IncrementalRLSVI(**forgets, nu=0.1)
    for agent in (batch, incremental):
        simulate(agent, problem, 200, regret=False)
    assert batch._learner.mind.memory.states.tolist() == [1, 4]  # and as many sums, into the second period
    blocks, update, values = 4 * 4, 2 * 2 * 4, 2 * 2 * 2
    assert multiplications(batch) == blocks + (4 + 5 * 2) * 2 + update
    fresh = IncrementalRLSVI(**forgets, nu=0.0)
    simulate(fresh, problem, 1, regret=False)  # one block a period
    assert multiplications(fresh, skips=False) - multiplications(fresh) == 2 * 4
    assert multiplications(incremental) == pytest.approx(blocks + update + values + 4 * 8 / 3, rel=1e-12)
    for options, more in (({"nu": 0.1, "keep_prior": False}, 4 * 2), ({"nu": 0.0}, 0)):
        agent = IncrementalRLSVI(**forgets, **options)
        simulate(agent, problem, 200, regret=False)
        assert multiplications(agent) == blocks + update + values + more
    gradient = GradientRLSVI(**forgets, updates=3, ensemble=2, basis=problem.basis)
    gradient.learn(FiniteMDPEnv(problem.mdp), episodes=30)
    assert multiplications(gradient) == 3 * ((8 * 1 + 2) + 8 * 2)  # 1, and 1 and an answer; one product is left


def test_a_life_that_diverges_is_noticed_before_it_ends():
    """Six random functions of twelve pairs: those of seed 5 make the regression diverge, those of seed 0 not."""
    found = continual_reward(agent="paper", basis="random", states=6, steps=20_000, seed=5)
    assert found["noticed"] <= found["ended"] < 20_000
    assert found["share"][-1] == 0
    calm = continual_reward(agent="paper", basis="random", states=6, steps=2_000, seed=0)
    assert calm["noticed"] == calm["ended"] == np.inf


@pytest.mark.parametrize("states", [6, 10])
def test_values_without_end_and_a_basis_that_spans_them(states):
    """Q* is what value iteration comes to; six functions leave nothing of it."""
    mdp = river_swim(states)
    t, V = mdp.table, np.zeros(states)
    Q, rows = discounted_values(mdp), np.repeat(np.arange(2 * states), np.diff(t.indptr))
    for _ in range(4000):
        onward = np.bincount(rows, weights=t.probability * V[t.successor])
        V = (t.expected + GAMMA * onward).reshape(states, 2).max(axis=1)
    np.testing.assert_allclose(Q.max(axis=1), V, rtol=1e-10)
    np.testing.assert_allclose(Q.ravel(), t.expected + GAMMA * np.bincount(rows, t.probability * V[t.successor]))
    for name in COHERENT:
        phi = _agent("paper", name, states, 100, seed=3).basis.phi.reshape(2 * states, -1)
        assert phi.shape[1] == FUNCTIONS
        assert np.abs(unexplained(phi, Q.ravel())).max() < 1e-9 * Q.max()
    other = _agent("paper", "random", states, 100, seed=3).basis.phi.reshape(2 * states, -1)
    assert np.abs(unexplained(other, Q.ravel())).max() > 1e-3 * Q.max()


def test_noise_is_watched_in_its_own_units():
    """n steps of 6 weights or more; independent ones have correlation 0 and variance 1."""
    steps = 400
    found = perturbations(noise="independent", states=3, steps=2 * steps, seed=0)
    assert abs(found["correlation"]) < 4 / np.sqrt(6 * steps)
    assert abs(found["variance"] - 1) < 4 * np.sqrt(2 / (6 * steps))
    assert 0 < found["change"] < 0.05
    assert found["largest"] == pytest.approx(0.5)  # lambda = sigma = 1: from 1 to 1/2 by the first step
    slow = perturbations(noise="whitened", states=3, steps=2 * steps, seed=0)
    assert slow["correlation"] > 0.9


def test_jobs_of_the_bootstrap_tell_when_each_agent_has_ten_rewards():
    settings = {"length": 6, "features": 5, "limit": 2000, "seed": 1}
    found = {name: bootstrap_time(agent=name, **settings)["time"] for name in (NORMAL, BOOTSTRAP, DATA_ALONE)}
    assert len(set(found.values())) == 3
    assert all(10 <= time < 2000 for time in found.values())
    assert bootstrap_time(agent=BOOTSTRAP, **settings | {"limit": 9})["time"] == np.inf
