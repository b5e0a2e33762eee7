"""Continual RLSVI against its recursion in plain NumPy; its noise, its face, and RiverSwim without end."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import rlsvi
from rlsvi import ContinualLSVI, ContinualRLSVI, DivergenceWarning, EpsilonGreedy
from rlsvi.agents.continual import KINDS, Rule, disturb, new_walk
from rlsvi.bases import Dense, StateFeatures
from rlsvi.core.random import normal, stream
from rlsvi.core.regression import FactorError, prior_factor
from rlsvi.envs import FiniteMDPEnv, RiverSwimEnv
from rlsvi.mdp import FiniteMDP, average_reward, dirichlet, river_swim
from rlsvi.simulate.endless import simulate_continual
from twin import Rows, Transitions, assert_same, ridge_regression, state_of

S, A = 5, 2


def mdp_of(seed=0):
    return dirichlet(S, A, 1, homogeneous=True, seed=seed)


def basis_of(kind):
    table = np.random.default_rng(3).normal(size=(S, A, 3)) / 3
    return {"tabular": None, "dense": Dense(table), "blocks": StateFeatures(lambda s: table[s, 0])}[kind]


# ---- the recursion ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tabular", "dense", "blocks"])
@pytest.mark.parametrize("noise", ["paper", "whitened", "independent"])
def test_every_step_is_that_of_the_recursion(kind, noise):
    agent = ContinualRLSVI(
        lam=0.8, sigma=0.5, gamma=0.9, noise=noise, basis=basis_of(kind), prior_mean=0.3, seed=2
    )
    env, found = Transitions(FiniteMDPEnv(mdp_of(), endless=True)), []
    for _ in range(40):
        agent.learn(env, steps=1)
        found.append(agent._learner.mind.values.theta[0].ravel().copy())
    learner, draws = agent._learner, agent.clone()._streams[0]
    B, d, rows = learner.features.blocks, learner.features.dim, Rows(learner.features)
    theta, w, z = np.full(B * d, 0.3), np.zeros(B * d), np.zeros(B * d)
    begun, live, known, other = set(), [], set(), np.sqrt(1 - 0.9**2)
    for t in range(40):
        for s in (env.rows[t][0], env.rows[t][3]):
            live += [] if s in known else [b for b in learner.features.at(0, s)[0] if b not in live]
            known.add(s)
            live = list(dict.fromkeys(live))
        data = env.rows[: t + 1]
        X = np.array([rows(0, s)[a] for s, a, _, _ in data])
        b = np.array([r + 0.9 * (rows(0, then) @ theta).max() for _, _, r, then in data])
        theta = ridge_regression(X, b, 0.8 * 0.25, 0.3)
        P = 0.8 * 0.25 * np.eye(B * d) + X.T @ X
        for block in live:
            part = slice(block * d, (block + 1) * d)
            e = np.array([normal(draws) for _ in range(d)])
            z[part] = 0.9 * z[part] + other * e if block in begun else e
            root = np.linalg.cholesky(P[part, part]).T
            w[part] = {
                "paper": lambda p=part, u=root, e=e: other * w[p] + 0.9 * 0.5 * np.linalg.solve(u, e),
                "whitened": lambda p=part, u=root, e=e: 0.5 * np.linalg.solve(u, z[p]),
                "independent": lambda p=part, u=root, e=e: 0.5 * np.linalg.solve(u, e),
            }[noise]()
            begun.add(block)
        theta = theta + w
        np.testing.assert_allclose(found[t], theta, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("noise", "correlation"), [("paper", np.sqrt(1 - 0.9**2)), ("whitened", 0.9), ("independent", 0)]
)
def test_noise_has_the_covariance_of_the_posterior_and_its_own_correlation(noise, correlation):
    """One weight of precision 4, sigma 2: variance 1. Correlated draws count for (1 - c) / (1 + c) each."""
    U, inv = (array[0] for array in prior_factor((1,), 1, 4.0))
    walk, draws, n = new_walk(1, 1), stream(0), 20_000
    walk.begun[0] = 1
    w = np.zeros(n)
    rule = Rule(0.9, KINDS[noise], 0.0, 1000.0)
    for t in range(n):
        theta = np.zeros(1)
        disturb(U, inv, theta, walk.w[0], walk, 0, 2.0, rule, draws)
        w[t] = theta[0]
    w = w[100:]
    counted = len(w) * (1 - correlation) / (1 + correlation)
    assert abs(w.var() - 1) < 4 * np.sqrt(2 / counted)
    assert abs(np.corrcoef(w[1:], w[:-1])[0, 1] - correlation) < 4 / np.sqrt(counted)


def test_an_end_pays_no_more_and_life_begins_anew():
    """Two states; the second is absorbing, pays 5, and ends: Q is 1 + 5 there, and never more."""
    P = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    mdp = FiniteMDP.from_arrays(
        P,
        np.ones((2, 1)),
        horizon=1,
        start=[1.0, 0.0],
        absorbing=np.array([False, True]),
        terminal_reward=[0.0, 5.0],
    )
    fused, stepped = (ContinualRLSVI(sigma=0.1, seed=1) for _ in range(2))
    rewards = simulate_continual(fused, mdp, 300)
    np.testing.assert_array_equal(rewards, 6.0)
    stepped.learn(FiniteMDPEnv(mdp, endless=True), steps=300)
    assert stepped._learner.mind.values.theta[0, 0, 0] == fused._learner.mind.values.theta[0, 0, 0]
    assert abs(fused._learner.walk.mean[0, 0, 0] - 6 * 300 / (300 + 0.01)) < 1e-9


# ---- the same face ----------------------------------------------------------------------------------------


AGENTS = [ContinualRLSVI(noise=n, seed=4) for n in ("paper", "whitened", "independent")]
AGENTS += [ContinualLSVI(explore=EpsilonGreedy(0.3), seed=4)]


@pytest.mark.parametrize("pattern", AGENTS, ids=lambda a: a.noise)
def test_the_fused_loop_and_gymnasium_give_the_same_bits_before_and_after_saving(pattern, tmp_path):
    mdp, gym, fused = river_swim(20), pattern.clone(), pattern.clone()
    simulate_continual(fused, mdp, 500)
    env = RiverSwimEnv(20, None)
    for part in (100, 0, 150):
        gym.learn(env, steps=part)
    gym.save(tmp_path / "a")
    loaded = rlsvi.load(tmp_path / "a").learn(env, steps=250, reset=False)
    world = {"walk.world": fused._learner.walk.world}  # the random stream of an MDP in the fused loop
    assert_same(state_of(loaded) | world, state_of(fused))
    half = pattern.clone()
    simulate_continual(half, mdp, 250)
    half.save(tmp_path / "b")
    half = rlsvi.load(tmp_path / "b")
    simulate_continual(half, mdp, 250)
    assert_same(state_of(half), state_of(fused))
    assert type(half) is type(pattern)


class Wander(gymnasium.Env):
    """A number that wanders for ever, near 0 or not."""

    observation_space = Box(-3.0, 3.0, (1,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        return np.array([self.x]), {}

    def step(self, action):
        self.x = float(np.clip(self.x + 0.3 * (2 * action - 1) + 0.1 * self.np_random.normal(), -3, 3))
        return np.array([self.x]), 1.0 - abs(self.x), False, False, {}


def test_observations_of_any_kind_can_be_learned_from(tmp_path):
    basis = StateFeatures(lambda x: np.exp(-((x[0] - np.linspace(-3, 3, 7)) ** 2)))
    agent, env = ContinualRLSVI(basis=basis, gamma=0.8, sigma=0.3, seed=0), Wander()
    agent.learn(env, steps=300)
    agent.save(tmp_path / "a")
    loaded = rlsvi.load(tmp_path / "a", basis)
    for x, action in ((-2.0, 1), (2.0, 0)):
        assert agent.predict(np.array([x]), deterministic=True) == (action, 0)
        assert loaded.predict(np.array([x]), deterministic=True) == (action, 0)


def unstable():
    """An MDP and features: state 0 has feature 1, what is best in state 1 has 3 but is seldom done.

    In uniform play A'A = (1/2) 1 + (1/20) 9 and A'b = gamma ((1/2) 3 + (1/20) 3) theta + ..: each step adds 70%.
    """
    P = np.broadcast_to(np.eye(2)[::-1][:, None], (2, 10, 2))
    mdp = FiniteMDP.from_arrays(P, np.ones((2, 10)), horizon=1, start=[1.0, 0.0])
    phi = np.zeros((2, 10, 1))
    phi[0], phi[1, 0] = 1.0, 3.0
    return mdp, phi


def test_divergence_is_noticed():
    mdp, phi = unstable()
    explore = EpsilonGreedy(1.0)
    agent = ContinualLSVI(lam=1e-3, basis=Dense(phi), explore=explore, diverged_above=10.0, seed=0)
    calm = ContinualLSVI(lam=1e-3, explore=explore, diverged_above=10.0, seed=0)
    simulate_continual(calm, mdp, 200)
    assert not calm.diverged
    with pytest.warns(DivergenceWarning, match="the values diverge"):
        simulate_continual(agent, mdp, 200)
    assert agent.diverged
    assert agent.excess > 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rlsvi.DivergenceWarning")
@pytest.mark.parametrize("fused", [True, False], ids=["fused", "stepped"])
def test_numbers_that_break_leave_the_last_whole_step(fused, tmp_path):
    """The features of the test before; a value is beyond float64 after a thousand steps or more."""
    mdp, phi = unstable()
    env = FiniteMDPEnv(mdp, endless=True)

    def live(agent, steps):
        if fused:
            simulate_continual(agent, mdp, steps)
        else:
            agent.learn(env, steps=steps)
        return agent

    agent = ContinualLSVI(lam=1e-3, basis=Dense(phi), explore=EpsilonGreedy(1.0), seed=0)
    clean = agent.clone()
    with pytest.raises(FactorError, match="the values diverged"):
        live(agent, 10_000)
    assert agent.steps > 100
    assert_same(state_of(agent), state_of(live(clean, agent.steps)))
    agent.save(tmp_path / "a")
    again = rlsvi.load(tmp_path / "a")
    assert again.predict(0, deterministic=True) == agent.predict(0, deterministic=True)
    with pytest.raises(FactorError):
        live(agent, 1)
    assert_same(state_of(agent), state_of(again))


def test_the_fused_loop_does_not_go_on_where_an_environment_stands(tmp_path):
    mdp, _ = unstable()
    agent = ContinualRLSVI(seed=0)
    simulate_continual(agent, mdp, 3)
    agent.learn(FiniteMDPEnv(mdp, endless=True), steps=5)
    agent.save(tmp_path / "a")
    for it in (agent, rlsvi.load(tmp_path / "a")):
        with pytest.raises(ValueError, match="in the middle of a Gymnasium environment: go on with learn"):
            simulate_continual(it, mdp, 1)
        assert_same(state_of(it), state_of(agent))


def test_misuse_is_refused():
    agent = ContinualRLSVI(seed=0)
    with pytest.raises(ValueError, match="reset=False needs"):
        agent.learn(RiverSwimEnv(4, None), steps=1, reset=False)
    with pytest.raises(ValueError, match="periods that differ"):
        simulate_continual(agent, dirichlet(3, 2, 3), 5)
    agent.learn(RiverSwimEnv(4, None), steps=5)
    with pytest.raises(ValueError, match="cannot go on with"):
        agent.learn(RiverSwimEnv(5, None), steps=1)
    with pytest.raises(ValueError, match="in the middle of a Gymnasium environment: go on with learn"):
        simulate_continual(agent, river_swim(4), 5)


# ---- without end ------------------------------------------------------------------------------------------


def test_an_endless_environment_does_not_end_and_keeps_no_path():
    env = RiverSwimEnv(4, None, render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(100):
        assert not any(env.step(1)[2:4])
    assert env.render().ndim == 3
    assert len(env._path) == 2
    assert env.horizon is None
    with pytest.raises(ValueError, match="number of periods is not known"):
        rlsvi.RLSVI().learn(env, episodes=1)
    with pytest.raises(ValueError, match="periods that differ"):
        FiniteMDPEnv(dirichlet(3, 2, 3), endless=True)


def test_the_average_reward_is_that_of_swimming_up():
    """The stationary distribution of always right, from its linear equations; and a cycle by hand."""
    for states in (3, 6):
        table = river_swim(states).table
        P, r = np.zeros((states, states)), np.zeros(states)
        for s in range(states):
            part = slice(*table.indptr[2 * s + 1 : 2 * s + 3])
            P[s, table.successor[part]], r[s] = table.probability[part], table.expected[2 * s + 1]
        pi = np.linalg.lstsq(
            np.vstack([P.T - np.eye(states), np.ones(states)]), np.eye(states + 1)[-1], rcond=None
        )[0]
        assert average_reward(river_swim(states)) == pytest.approx(pi @ r, abs=1e-8)
    cycle = FiniteMDP.from_arrays(np.eye(2)[::-1][:, None], np.array([[3.0], [0.0]]), horizon=1, start=[1.0, 0.0])
    assert average_reward(cycle) == pytest.approx(1.5, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("states", [6, 10, 14])
def test_it_swims_up_every_river_and_epsilon_greedy_does_not(states):
    mdp = river_swim(states)
    best = average_reward(mdp)
    for seed in range(10):
        rewards = simulate_continual(ContinualRLSVI(seed=seed), mdp, 100_000)
        assert rewards[50_000:].mean() > 0.95 * best
        dithering = simulate_continual(ContinualLSVI(explore=EpsilonGreedy(0.1), seed=seed), mdp, 100_000)
        assert dithering.mean() < 0.1 * best
