"""Stationary agents: against plain NumPy that rebuilds A and b from raw transitions, and all verbs and errors."""

import itertools
from dataclasses import dataclass
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import rlsvi
from rlsvi import (
    Boltzmann,
    DivergenceWarning,
    EpsilonGreedy,
    Exponential,
    InverseGamma,
    Linear,
    StationaryLSVI,
    StationaryRLSVI,
)
from rlsvi.bases import Features, StateFeatures, Tabular
from rlsvi.core.archive import ArchiveError
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal
from rlsvi.core.regression import FactorError
from rlsvi.testing import check_agent
from saved import read, write
from twin import Rows, Transitions, assert_same, ridge_regression, state_of

POSTERIOR, ACTION, EPISODE, PREDICT = range(4)
MOVES = np.array([0, 1, -1])


class Walk(gymnasium.Env):
    """A noisy walk over 0..6 that ends at 6 and is cut off after nine steps. Rewards follow from the action."""

    def __init__(self, kind="vector", action_start=0):
        self.kind = kind
        self.action_space = Discrete(3, start=action_start)
        self.observation_space = Discrete(7) if kind == "number" else Box(0.0, 9.0, (2,), np.float64)

    def _observe(self):
        if self.kind == "number":
            return int(self.x)
        return np.array([self.x, self.t], dtype=np.float64)

    def _info(self):
        return {"action_mask": np.array([True, self.x % 2 == 0, self.x > 0], dtype=np.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = int(self.np_random.integers(6)), 0
        return self._observe(), self._info()

    def step(self, action):
        a = action - self.action_space.start
        assert self._info()["action_mask"][a], "an illegal action was taken"
        reward = float(rewards_of(self.x)[a])
        self.x = int(np.clip(self.x + MOVES[a] + self.np_random.integers(-1, 3), 0, 6))
        self.t += 1
        return self._observe(), reward, self.x == 6, self.t == 9, self._info()


def rewards_of(x):
    return np.array([x == 3, (x + 1) // 2, x == 1], dtype=np.uint8)


@dataclass(frozen=True)
class After:
    """Small integers that describe where an action leads, and the known rewards."""

    dtype: str = "uint8"
    scaled: bool = True
    squares: bool = True

    @property
    def units(self):
        units = [1.0, 1 / 6, 0.1, 1 / 36] if self.scaled else [1.0] * 4
        return np.array(units[: 3 + self.squares])

    def bind(self, states, actions, horizon, example):
        def at(h, observation):
            phi = self.numbers(observation) * self.units
            return np.zeros(3, dtype=np.int32), phi

        return Features(1, 3 + self.squares, at, None, self.rewards, self.units, self.numbers)

    def numbers(self, observation):
        x, t = np.ravel(observation)[0], np.ravel(observation)[-1]
        after = np.clip(x + MOVES, 0, 6)
        columns = [np.ones(3), after, np.full(3, t), after**2][: 3 + self.squares]
        return np.stack(columns, axis=1).astype(self.dtype)

    def rewards(self, observation):
        return rewards_of(np.ravel(observation)[0]).astype(self.dtype)


def features(observation):
    x = np.ravel(observation) / 6
    return np.array([1.0, *x, x[0] ** 2])


def transitions_of(env):
    """All transitions as the twin takes them: with the masks of what follows."""
    return [(*row, legal) for row, legal in zip(env.rows, env.legal, strict=True)]


class Twin:
    """The algorithm as the paper writes it, from the raw list of the last N transitions."""

    def __init__(self, agent, states=None):
        basis = agent.basis or Tabular()
        self.agent, bound = agent, basis.bind(states, 3, 1, np.zeros(2))
        self.rows, self.basis = Rows(bound), basis
        self.mean = np.broadcast_to(agent.prior_mean, self.rows.weights)
        self.theta = np.array(self.mean, dtype=float)
        self.shape = bound.blocks, bound.dim

    def Q(self, observation, theta):
        values = self.rows(0, observation) @ theta
        if self.agent.form == "afterstate":
            return self.basis.rewards(observation) + self.agent.gamma * values
        return values

    def episode(self, transitions, noise):
        """theta of the next episode; `noise` is a copy of the agent's posterior stream."""
        agent, unknown = self.agent, isinstance(self.agent.sigma, InverseGamma)
        data = transitions[-agent.memory :] if agent.memory else transitions
        A = np.array([self.rows(0, s)[a] for s, a, *_ in data])
        ridge = agent.lam * (1.0 if unknown else agent.sigma**2)
        L = np.linalg.cholesky(A.T @ A + ridge * np.eye(A.shape[1]))
        if agent._samples:
            g = gamma_variate(noise, agent.sigma.shape + len(data) / 2) if unknown else None
            z = np.linalg.solve(L.T, [normal(noise) for _ in range(A.shape[1])])
        for _ in range(agent.regressions):
            b = []
            for _, _, r, following, legal in data:
                best = 0.0 if following is None else self.Q(following, self.theta)[legal].max()
                b.append(best if agent.form == "afterstate" else r + agent.gamma * best)
            self.theta = ridge_regression(A, np.array(b), ridge, self.mean)
            if agent._samples:
                misfit = np.sum((A @ self.theta - b) ** 2) + ridge * np.sum((self.theta - self.mean) ** 2)
                sigma = np.sqrt((agent.sigma.scale + misfit / 2) / g) if unknown else agent.sigma
                self.theta = self.theta + sigma * z
        return self.theta


def given(**options):
    return {"gamma": 0.9, **options}


BLOCKS = StateFeatures(features)
SAMPLING = {
    "plain": given(lam=2.0, sigma=0.5, basis=BLOCKS),
    "all": given(lam=2.0, sigma=1.5, basis=BLOCKS, memory=None, prior_mean=0.3),
    "sweeps": given(lam=2.0, sigma=0.5, basis=BLOCKS, memory=25, regressions=4),
    "table": given(lam=0.5, sigma=0.5, memory=60, regressions=2),
    "integers": given(sigma=0.5, basis=After(), memory=40),
    "afterstate": given(basis=After(), memory=40, form="afterstate", regressions=3),
    "floats": given(basis=After("float64"), memory=40, form="afterstate", prior_mean=-0.5),
    "inverse gamma": given(
        basis=After("int16"), sigma=InverseGamma(2.0, 0.5), memory=40, form="afterstate", regressions=3
    ),
    "inverse gamma, blocks": given(lam=2.0, sigma=InverseGamma(1.0, 1.0), basis=BLOCKS),
}


@pytest.mark.parametrize("make", [StationaryRLSVI, StationaryLSVI])
@pytest.mark.parametrize("name", SAMPLING)
def test_every_episode_is_planned_as_the_pseudo_code_says(name, make):
    options = dict(SAMPLING[name])
    if make is StationaryLSVI:
        options.pop("sigma", None)
        options["explore"] = EpsilonGreedy(0.4)
    agent = make(seed=3, **options)
    kind = "vector" if "basis" in options else "number"
    env, twin = Transitions(Walk(kind)), Twin(agent, None if kind == "vector" else 7)
    for episode in range(25):
        seen, noise = transitions_of(env), agent._streams[POSTERIOR].copy()
        agent.learn(env, episodes=1)
        if episode > 0:
            wanted = twin.episode(seen, noise).reshape(twin.shape)
            assert (agent._streams[POSTERIOR] == noise).all()  # the same number of draws
            np.testing.assert_allclose(agent._learner.mind.theta, wanted, rtol=1e-7, atol=1e-7)
            twin.theta = agent._learner.mind.theta.ravel().copy()
    assert agent.steps == len(env.rows) > 90
    assert {t[3] is None for t in env.rows} == {True, False}
    assert agent._learner.mind.ring.size[0] == min(agent.memory or 10**9, agent.steps)


@pytest.mark.parametrize("form", ["literal", "afterstate"])
def test_integers_and_floats_give_the_same_bits(form):
    """Without units: uint8 finds the best action by 16-bit weights, sums in int64; float64 by plain code."""
    found = []
    for dtype in ("uint8", "int16", "float64"):
        agent = StationaryRLSVI(basis=After(dtype, scaled=False), form=form, gamma=0.9, memory=50, seed=1)
        env = Transitions(Walk())
        agent.learn(env, episodes=30)
        assert agent._learner.mind.ring.x.dtype == dtype
        found.append((agent._learner.mind.theta.tobytes(), agent._streams.tobytes(), str(transitions_of(env))))
    assert found[0] == found[1] == found[2]


class Ends(gymnasium.Env):
    """One step of reward 1, and then the end, terminated or truncated."""

    action_space, observation_space = Discrete(1), Discrete(2)

    def __init__(self, terminated):
        self.terminated = terminated

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 1, 1.0, self.terminated, True, {}


@pytest.mark.parametrize(("terminated", "value"), [(True, 1.0), (False, 1.0 + 0.5 * 10.0)])
def test_truncation_goes_on_in_the_target_and_termination_does_not(terminated, value):
    agent = StationaryLSVI(lam=1e-9, gamma=0.5, prior_mean=10.0, seed=0).learn(Ends(terminated), episodes=3)
    assert agent._plan(mean=True).theta[0, 0] == pytest.approx(value, abs=1e-6)


# ---- state and files --------------------------------------------------------------------------------------


AGENTS = {
    "RLSVI": (StationaryRLSVI, {"basis": StateFeatures(features), "memory": 50, "regressions": 2}),
    "table": (StationaryRLSVI, {"memory": None, "gamma": 0.9}),
    "integers": (
        StationaryRLSVI,
        {"basis": After(), "form": "afterstate", "memory": 33, "sigma": InverseGamma(), "gamma": 0.9},
    ),
    "LSVI": (
        StationaryLSVI,
        {"basis": After("int16"), "explore": EpsilonGreedy(Linear(1.0, 0.1, 20)), "gamma": 0.9},
    ),
    "Boltzmann": (StationaryLSVI, {"explore": Boltzmann(0.3), "gamma": 0.9}),
}


@pytest.mark.parametrize("name", AGENTS)
def test_it_keeps_the_promises_of_agents(name):
    make, options = AGENTS[name]
    basis = options.get("basis")
    check_agent(partial(make, **options), partial(Walk, "vector" if basis else "number"), basis=basis)


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize(
    ("other", "words"),
    [
        (StateFeatures(features), "the basis gives 3 of"),
        (After("int16"), "kept as uint8, the basis gives int16"),
        (After(scaled=False), "but in other units than the basis gives"),
        (After(squares=False), "the basis gives 1 of"),
    ],
    ids=["blocks", "type", "units", "number"],
)
def test_another_basis_than_the_one_learned_with_is_refused(other, words, learn, tmp_path):
    StationaryRLSVI(basis=After(), gamma=0.9, seed=0).learn(Walk(), episodes=2).save(tmp_path / "a")
    with pytest.raises(ArchiveError, match="holds no basis"):
        rlsvi.load(tmp_path / "a")
    agent = rlsvi.load(tmp_path / "a", other)
    before = state_of(agent)
    go_on = (lambda: agent.learn(Walk(), episodes=1)) if learn else (lambda: agent.predict(np.zeros(2)))
    with pytest.raises(ValueError, match=f"this agent has learned with 1 blocks of 4 features, {words}.*clone"):
        go_on()
    assert_same(state_of(agent), before)


@pytest.mark.parametrize("name", ["x", "next_x", "gram", "theta", "start", "following", "block", "size", "first"])
def test_rings_of_impossible_values_are_refused(name, tmp_path):
    path, basis = tmp_path / "a", StateFeatures(features)
    StationaryRLSVI(basis=basis, gamma=0.9, seed=0).learn(Walk(), episodes=3).save(path)
    header, arrays = read(path)
    damaged = arrays[name if name == "theta" else f"ring.{name}"]
    damaged.flat[0] = np.nan if damaged.dtype.kind == "f" else 999
    write(path, header, arrays)
    with pytest.raises(ArchiveError):
        rlsvi.load(path, basis)


# ---- acting -----------------------------------------------------------------------------------------------


def test_deterministic_prediction_is_greedy_on_the_posterior_mean():
    agent = StationaryRLSVI(basis=After(), form="afterstate", gamma=0.9, seed=5)
    env = Transitions(Walk())
    agent.learn(env, episodes=20)
    twin = Twin(agent)
    twin.theta, agent._samples = agent._learner.mind.theta.ravel().copy(), False
    theta = twin.episode(transitions_of(env), None)
    del agent._samples
    for x, t in itertools.product(range(6), range(9)):
        Q = twin.Q(np.array([x, t]), theta)
        assert agent.predict(np.array([x, t]), deterministic=True)[0] == Q.argmax()
        mask = np.arange(3) != Q.argmax()
        action, state = agent.predict(np.array([x, t]), 4, deterministic=True, action_mask=mask)
        assert (action, state) == (np.where(mask, Q, -np.inf).argmax(), 5)


def test_one_sample_an_episode():
    agent = StationaryRLSVI(lam=1e-2, gamma=0.9, seed=0).learn(Walk("number"), episodes=1)
    assert len({agent.predict(5)[0] for _ in range(60)}) > 1
    for _ in range(10):
        agent.predict(5)
        assert len({agent.predict(5, state=1)[0] for _ in range(20)}) == 1


@pytest.mark.parametrize(
    ("schedule", "values"),
    [(0.5, [0.5, 0.5]), (Linear(0.8, 0.2, 4), [0.65, 0.2]), (Exponential(0.8, 0.5, 0.01), [0.4, 0.025])],
)
def test_epsilon_follows_its_schedule(schedule, values):
    agent = StationaryLSVI(explore=EpsilonGreedy(schedule), gamma=0.9, prior_mean=np.arange(21) / 9, seed=3)
    done = 0
    for episodes, epsilon in zip((1, 5), values, strict=True):
        agent.learn(Walk("number"), episodes=episodes - done)
        done = episodes
        best = agent.predict(3, deterministic=True)[0]
        other = np.mean([agent.predict(3)[0] != best for _ in range(2000)])
        assert other == pytest.approx(epsilon * 2 / 3, abs=5 * np.sqrt(0.25 / 2000))


def test_actions_that_start_elsewhere():
    shifted, plain = (StationaryRLSVI(basis=After(), gamma=0.9, seed=0) for _ in range(2))
    shifted.learn(Walk(action_start=5), episodes=9)
    plain.learn(Walk(), episodes=9)
    assert_same(state_of(shifted), state_of(plain))
    assert (
        shifted.predict(np.zeros(2), deterministic=True)[0]
        == plain.predict(np.zeros(2), deterministic=True)[0] + 5
    )


# ---- divergence -------------------------------------------------------------------------------------------


class Doubling(gymnasium.Env):
    """No reward ever; a state of feature 1 leads to one of feature 2, which leads to itself: w, 2w."""

    action_space, observation_space = Discrete(1), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t += 1
        return 1, 0.0, False, self.t == 2, {}


def doubling(**options):
    return StationaryLSVI(basis=StateFeatures(lambda s: [1.0 + s]), prior_mean=1.0, seed=0, **options)


@pytest.mark.filterwarnings("ignore::rlsvi.NoProgressWarning")  # there is no reward
def test_divergence_is_noticed_said_once_and_changes_nothing(tmp_path):
    """w grows by .99 * 6 / 5 an episode, once data outweigh the prior: nothing is clipped."""
    agent = doubling(diverged_above=100.0)
    with pytest.warns(DivergenceWarning, match=r"the values diverge.*smaller gamma") as caught:
        agent.learn(Doubling(), episodes=70)
    assert [each.filename for each in caught if each.category is DivergenceWarning] == [__file__]
    assert agent.diverged
    assert agent.excess > 100
    before = agent._learner.mind.theta[0, 0]
    agent.learn(Doubling(), episodes=1)
    assert agent._learner.mind.theta[0, 0] / before == pytest.approx(0.99 * 6 / 5, rel=0.01)
    agent.save(tmp_path / "a")
    assert rlsvi.load(tmp_path / "a", agent.basis).diverged


def test_values_that_are_no_longer_finite_are_an_error_and_change_nothing():
    agent = doubling(regressions=6000, diverged_above=1e300, lam=0.01).learn(Doubling(), episodes=1)
    before = state_of(agent)
    with pytest.raises(FactorError, match="the values diverged"):
        agent.learn(Doubling(), episodes=1)
    assert_same(state_of(agent), before)


@pytest.mark.filterwarnings("ignore::rlsvi.NoProgressWarning")  # there is no reward
def test_no_divergence_is_seen_where_there_is_none():
    agent = doubling(gamma=0.8, diverged_above=1.0).learn(Doubling(), episodes=70)
    assert not agent.diverged
    assert 0 < agent.excess < 1


# ---- bad input --------------------------------------------------------------------------------------------


def test_arguments_that_do_not_fit_each_other_are_refused():
    for basis in (None, StateFeatures(features)):
        agent = StationaryRLSVI(form="afterstate", basis=basis)
        with pytest.raises(ValueError, match="needs a basis that knows the reward of every action"):
            agent.learn(Walk("vector" if basis else "number"), episodes=1)
    with pytest.raises(ValueError, match="scale must be a positive"):
        InverseGamma(1.0, 0.0)
    with pytest.raises(ValueError, match=r"prior_mean must be a number, or of shape \(4,\)"):
        StationaryRLSVI(basis=After(), prior_mean=np.zeros(3)).learn(Walk(), episodes=1)


@dataclass(frozen=True)
class Bad(After):
    """A basis with a fault."""

    fault: str = ""

    @property
    def units(self):
        return np.zeros(4) if self.fault == "units" else np.ones(4)

    def rewards(self, observation):
        return np.ones(2) if self.fault == "rewards" else super().rewards(observation)

    def bind(self, states, actions, horizon, example):
        good, calls = super().bind(states, actions, horizon, example), []

        def numbers(observation):
            x = good.numbers(observation)
            calls.append(None)
            if self.fault == "type" and len(calls) > 3:
                return x.astype(np.int16)
            return x[:, :3] if self.fault == "shape" else x * (np.nan if self.fault == "nan" else 1)

        def at(h, observation):
            return np.ones(3, np.int32), good.at(h, observation)[1]

        return good._replace(at=at, numbers=None if self.fault == "block" else numbers)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("units", "units of Bad must be 4 finite numbers other than 0"),
        ("rewards", r"Bad.rewards must return float64\(3,\)"),
        ("block", r"the blocks of Bad must be numbered 0\.\.0, got 1"),
        ("type", r"Bad.numbers must return uint8\(3, 4\), got int16"),
        ("shape", r"Bad.numbers must return uint8\(3, 4\), got"),
        ("nan", "Bad.numbers.*finite"),
    ],
)
def test_bad_bases_are_refused(fault, message):
    agent = StationaryRLSVI(basis=Bad(fault=fault), form="afterstate", seed=0)
    with pytest.raises(ValueError, match=message):
        agent.learn(Walk(), episodes=3)


# ---- a real environment -----------------------------------------------------------------------------------

WAVES = np.array(list(itertools.product(range(4), repeat=4)))
HIGH = np.array([2.4, 3.0, 0.21, 3.0])


def fourier(observation):
    """Order 3, all products: cos(pi c . x), c in {0, .., 3}^4, of the observation scaled to [0, 1]."""
    return np.cos(np.pi * WAVES @ (np.clip(observation, -HIGH, HIGH) / HIGH + 1) / 2)


@pytest.mark.slow
def test_cart_pole_is_learned_in_few_episodes():
    """256 features an action; a random player falls after 22 steps on average. Nothing is clipped."""
    agent = StationaryRLSVI(basis=StateFeatures(fourier), gamma=0.98, sigma=1.0, regressions=10, seed=0)
    env = gymnasium.make("CartPole-v1", max_episode_steps=200)
    lengths = []
    for _ in range(24):
        before = agent.steps
        agent.learn(env, episodes=1)
        lengths.append(agent.steps - before)
    assert not agent.diverged
    assert np.mean(lengths[-10:]) > 100, lengths
