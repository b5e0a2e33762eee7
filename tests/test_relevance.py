"""Numbers that do not matter are found, left out, and taken back if they begin to matter."""

import gymnasium
import numpy as np
import pytest
from benchmarks.noise import Noise
from gymnasium.spaces import Box, Discrete

import rlsvi
from pages import blocks
from rlsvi.agents.practice.features import FEWEST_EPISODES, MOST_NUMBERS, Sample, copies_in, relevant_numbers


class Slope(gymnasium.Env):
    """Numbers in [-1, 1] of which the first says which action pays; the others are noise."""

    action_space = Discrete(2)

    def __init__(self, numbers, at=0):
        self.observation_space = Box(-1.0, 1.0, (numbers,), np.float64)
        self.at = at

    def look(self):
        self.x = self.np_random.uniform(-1, 1, self.observation_space.shape)
        return self.x

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.look(), {}

    def step(self, action):
        reward, self.t = float(self.x[self.at]) * (2 * action - 1), self.t + 1
        return self.look(), reward, False, self.t >= 25, {}


def learned(env, episodes, **settings):
    return rlsvi.BoundedRLSVI(seed=0, repeat=1, gamma=0.0, **settings).learn(env, episodes, progress=False)


@pytest.mark.parametrize("numbers", [2, 3, 6])  # radial, Fourier, waves
def test_noise_is_left_out(numbers):
    env = Slope(numbers)
    agent = learned(env, 20)
    assert agent.relevant == (True, *[False] * (numbers - 1))
    assert agent.diagnostics()["relevant"] == 1
    assert isinstance(agent._learner.lookup.functions, rlsvi.bases.Radial)


def test_what_matters_is_kept():
    env = gymnasium.make("CartPole-v1")
    agent = rlsvi.BoundedRLSVI(seed=0).learn(env, 12, progress=False)
    assert agent.relevant == (True,) * 4
    assert "relevant" not in agent.diagnostics()


def test_nothing_is_left_out_where_nothing_matters_yet():
    class Costs(Slope):
        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, -0.1 * action, *rest

    assert learned(Costs(2), 20).relevant == (True, True)


def test_a_basis_that_is_given_is_used_as_it_is():
    for basis in (rlsvi.bases.Fourier(), rlsvi.bases.Waves()):
        assert learned(Slope(3), 12, basis=basis).relevant == (True,) * 3


@pytest.mark.filterwarnings("ignore::rlsvi.NoProgressWarning")  # what it earned before is no longer paid
def test_what_was_left_out_comes_back():
    env = Slope(3)
    agent = learned(env, 40)
    assert agent.relevant == (True, False, False)
    env.at = 2
    agent.learn(env, 120, progress=False)
    assert agent.relevant[2]


def test_a_file_remembers_what_is_relevant(tmp_path):
    agent = learned(Slope(6), 20)
    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    assert again.relevant == agent.relevant != (True,) * 6
    for a in (agent, again):
        a.learn(Slope(6), 12, progress=False)
    whole = learned(Slope(6), 32)
    states = [a._state() for a in (agent, again, whole)]
    for name, array in states[0].items():
        assert all(np.array_equal(array, other[name]) for other in states[1:]), name


def test_an_exported_policy_reads_the_relevant_numbers_alone(tmp_path):
    agent = learned(Slope(6), 20)
    assert not all(agent.relevant)
    agent.export(tmp_path / "policy.npz")
    reader = {}
    exec(blocks("docs/interoperability.md")[0], reader)
    act = reader["policy"](tmp_path / "policy.npz")
    rows = np.random.default_rng(0).uniform(-1, 1, (100, 6))
    actions = agent.predict(rows, deterministic=True)[0]
    assert [act(row) for row in rows] == actions.tolist()
    assert len(set(actions.tolist())) == 2


class Copied(gymnasium.ObservationWrapper):
    """The angle of CartPole in degrees too, or noise in its place, and a difference of two velocities."""

    def __init__(self, noise=False):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.observation_space, self.noise = Box(-np.inf, np.inf, (6,), np.float32), noise

    def observation(self, x):
        second = self.np_random.normal() if self.noise else np.degrees(x[2]).astype(np.float32)
        return np.array([*x, second, x[1] - x[3]], np.float32)


def test_copies_and_differences_have_no_features_and_come_back_when_they_are_none(tmp_path):
    agent = rlsvi.BoundedRLSVI(seed=0).learn(Copied(), 12, progress=False)
    assert not any(agent.relevant[4:])
    lookup = agent._learner.lookup
    assert not isinstance(lookup.functions, rlsvi.bases.Waves)
    assert lookup.copies.tolist() == [False] * 4 + [True, True]
    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    for each in (agent, again):
        env, steps = Copied(noise=True), each.steps
        while each.steps < 2 * steps:  # by then they have been judged again
            each.learn(env, 1, progress=False)
        assert each._learner.lookup.copies.tolist() == [False] * 5 + [True]
    assert again.relevant == agent.relevant
    assert np.array_equal(again._learner.theta, agent._learner.theta)


# ---- The judgement alone ----------------------------------------------------------------------------------


def judged(x, b, before=None, length=40):
    """Which of all numbers are relevant to targets b, in episodes of a length."""
    rng = np.random.default_rng(5)
    sample = Sample(x, rng.integers(2, size=len(x)), np.arange(len(x)) // length, b)

    def features(rows, scale):
        return rlsvi.bases.Waves(features=100, length=scale).rows((rows + 6) / 12)

    return relevant_numbers(features, 2, sample, np.ones(x.shape[1], bool) if before is None else before, 0.1)


X = np.random.default_rng(0).normal(size=(800, 5))


def test_numbers_that_targets_depend_on_are_relevant():
    assert judged(X, np.sin(X[:, 1]) + X[:, 3] ** 2 / 2).tolist() == [False, True, False, True, False]


def test_one_of_two_equal_numbers_is_kept():
    twice = X.copy()
    twice[:, 4] = twice[:, 1]
    kept = judged(twice, np.sin(twice[:, 1]))
    assert not kept[[0, 2, 3]].any()
    assert kept[[1, 4]].any()


def single(x):
    return np.asarray(x, np.float32).astype(np.float64)


def test_what_a_new_copy_tells_is_looked_for_in_the_others():
    """The only relevant number is found to be a copy of one that had been left out."""
    lookup = rlsvi.BoundedRLSVI(seed=0).learn(Slope(3), 4)._learner.lookup
    lookup.relevant[:] = False, False, True
    x = np.random.default_rng(0).normal(size=(60, 3))
    x[:, 2] = 2 * x[:, 0]
    sample = Sample(x, np.zeros(60, int), np.arange(60) // 20, x[:, 0])  # too few episodes to judge by
    assert lookup.tune(lookup.seen(x), sample, 60, 0.1).relevant.tolist() == [True, True, False]


def test_copies_are_combinations_of_earlier_numbers_to_rounding():
    a, b = single(X[:, 0]), single(3 * X[:, 1] + 2)
    c = single(np.sign(X[:, 2]))
    for kind in (single, np.asarray):
        x = np.stack(
            [a, kind(57.3 * a), b, kind(a + b), np.full(800, 0.1), c, kind(1e-8 * (7 - b)), X[:, 3]], axis=1
        )
        assert copies_in(x).tolist() == [False, True, False, True, False, False, True, False]
        assert copies_in(x[:40]).tolist() == copies_in(x).tolist()
        assert not copies_in(x[:39]).any()
    far = single(a + 1000)  # of which single precision has lost some digits
    assert copies_in(np.stack([far, a, b, single(1e4 + a - b)], axis=1)).tolist() == [False, True, False, True]


def test_what_is_nearly_a_combination_is_no_copy():
    a, b, noise = X[:, 0], X[:, 1], X[:, 2]
    rare = a + (np.arange(800) == 700)
    assert not copies_in(np.stack([a, a + 1e-3 * noise, a + 1e-3 * a**3, rare], axis=1)).any()
    assert not copies_in(np.stack([a, b, a * b, np.abs(a), np.maximum(a, b)], axis=1)).any()
    assert not copies_in(np.stack([a, b, 1e-200 * (a > 0)], axis=1)).any()  # its spread is 0
    assert not copies_in(np.repeat(a[:, None], MOST_NUMBERS + 1, axis=1)).any()  # it would take too long


def test_targets_that_cannot_be_predicted_change_nothing():
    before = np.array([True, False, True, True, False])
    assert judged(X, np.random.default_rng(1).normal(size=800), before).tolist() == before.tolist()
    assert judged(X, np.zeros(800), before).tolist() == before.tolist()


def test_too_few_episodes_change_nothing():
    assert judged(X, np.sin(X[:, 1]), length=800 // (FEWEST_EPISODES - 1)).all()
    assert not judged(X, np.sin(X[:, 1]), length=800 // FEWEST_EPISODES + 1).all()


def test_too_many_numbers_are_not_judged():
    many = np.concatenate([X, np.zeros((800, MOST_NUMBERS - 4))], axis=1)
    assert judged(many, np.sin(X[:, 1])).all()


def test_the_wrapper_adds_noise_that_depends_on_the_seed():
    env = Noise(gymnasium.make("CartPole-v1"), 3)
    first, again, other = (env.reset(seed=seed)[0] for seed in (1, 1, 2))
    assert first.shape == (7,)
    assert env.observation_space.contains(first)
    assert np.array_equal(first, again)
    assert not np.array_equal(first[4:], other[4:])
