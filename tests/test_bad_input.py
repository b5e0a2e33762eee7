"""What goes wrong while agent_for's agent learns: the error says what to do, and what was learned stays."""

import re
import warnings
from contextlib import suppress

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from gymnasium.wrappers import TimeLimit

import rlsvi
from contract.state import assert_equal, everything

BOX = Box(-1, 1, (3,), np.float64)
KINDS = {
    "numbered": Discrete(6),
    "counted": MultiDiscrete([2, 3]),
    "measured": BOX,
    "mixed": Dict(a=Discrete(2), b=Box(-1, 1, (1,), np.float64)),
}


class Faulty(gymnasium.Env):
    """Ten steps of drawn observations; from the `at`-th step on, `fault` changes what a step returns."""

    def __init__(self, kind, fault=None, at=35):
        self.observation_space, self.action_space = KINDS[kind], Discrete(3)
        self.fault, self.at, self.steps = fault, at, 0

    def _info(self):
        return {"action_mask": np.ones(3, np.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), self._info()

    def step(self, action):
        self.t += 1
        self.steps += 1
        taken = self.observation_space.sample(), float(action == 1), False, self.t >= 10, self._info()
        return self.fault(*taken) if self.fault and self.steps > self.at else taken


def seen(change):
    return lambda observation, *rest: (change(observation), *rest)


FAULTS = [  # of which kind of observation, what happens, and what the error says
    ("measured", seen(lambda x: x * np.nan), "NaN.*TransformObservation"),
    ("measured", seen(lambda x: x + np.inf), "infinity.*TransformObservation"),
    ("measured", seen(lambda x: x[:2]), r"shape \(3,\)"),
    ("measured", seen(lambda x: "here"), r"must be numbers of shape \(3,\).*TransformObservation"),
    ("mixed", seen(lambda x: {**x, "b": x["b"] * np.nan}), "NaN.*TransformObservation"),
    ("mixed", seen(lambda x: {**x, "a": 2}), "outside of the observation space.*TransformObservation"),
    ("mixed", seen(lambda x: {"a": x["a"]}), r"it lacks \['b'\].*TransformObservation"),
    ("counted", seen(lambda x: x + 3), "outside of the observation space.*TransformObservation"),
    ("counted", seen(lambda x: x * 0.5 - 0.25), "outside of the observation space"),
    ("numbered", seen(lambda x: 6), "observation"),
    ("numbered", seen(lambda x: np.nan), "observation"),
]


@pytest.mark.parametrize(("kind", "fault", "says"), FAULTS)
def test_an_error_says_what_is_wrong_and_what_was_learned_stays(kind, fault, says, tmp_path):
    agent = rlsvi.agent_for(Faulty(kind), seed=0)
    with pytest.raises(ValueError, match=says):
        agent.learn(Faulty(kind, fault), episodes=9)
    untouched = rlsvi.agent_for(Faulty(kind), seed=0).learn(Faulty(kind), episodes=3)
    assert_equal(everything(agent, tmp_path), everything(untouched, tmp_path))


@pytest.mark.parametrize("kind", ["measured", "mixed"])
def test_a_space_with_wrong_bounds_is_warned_of(kind):
    far = seen(lambda x: 255 * x if kind == "measured" else {**x, "b": 255 * x["b"]})
    agent = rlsvi.BoundedRLSVI(seed=0)
    with pytest.warns(UserWarning, match=r"outside of the bounds.*TransformObservation"):
        agent.learn(Faulty(kind, far), episodes=5)
    assert agent.episodes == 5


def test_rounding_beyond_a_bound_is_not_warned_of():
    near = seen(lambda x: np.sign(x) * 1.0005)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rlsvi.BoundedRLSVI(seed=0).learn(Faulty("measured", near), episodes=5)


@pytest.mark.parametrize("kind", ["counted", "measured"])
def test_only_legal_actions_are_taken_where_the_mask_changes(kind):
    """Whether it is allowed to change is a matter of the agent, but none may take an illegal action."""

    class Changing(Faulty):
        def _info(self):
            self.legal = np.arange(3) == (self.steps % 3)
            return {"action_mask": self.legal.astype(np.int8)}

        def step(self, action):
            assert self.legal[action], "an illegal action was taken"
            return super().step(action)

    agent = rlsvi.agent_for(Changing(kind), seed=0)
    with suppress(ValueError):
        agent.learn(Changing(kind), episodes=5)


class Endless(gymnasium.Env):
    """Never ends by itself."""

    observation_space, action_space = Box(0, 3, (1,), np.float64), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1), {}

    def step(self, action):
        return self.np_random.uniform(0, 3, 1), float(action), False, False, {}


def test_an_episode_without_end_is_warned_of(monkeypatch):
    monkeypatch.setattr("rlsvi.agents.agent.LONG_EPISODE", 2000)
    agent = rlsvi.BoundedRLSVI(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"2000 steps.*TimeLimit"):
            agent.learn(Endless(), episodes=1)
        assert agent.episodes == agent.steps == 0
        agent.learn(TimeLimit(Endless(), 3000), episodes=1)
    assert agent.steps == 3000


def test_a_time_limit_is_seen_where_actions_are_held(monkeypatch):
    monkeypatch.setattr("rlsvi.agents.agent.LONG_EPISODE", 50)
    monkeypatch.setattr(rlsvi.BoundedRLSVI, "update_every", 25)
    agent = rlsvi.BoundedRLSVI(seed=0, repeat=4)
    with pytest.warns(UserWarning, match=r"50 steps.*TimeLimit"), pytest.raises(RuntimeError, match="enough"):
        agent.learn(Ending(Endless(), 300), episodes=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.learn(TimeLimit(Endless(), 400), episodes=1)
    assert agent.steps == 100


class Ending(gymnasium.Wrapper):
    """Raises an error in a step."""

    def __init__(self, env, last):
        super().__init__(env)
        self.left = last

    def step(self, action):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("enough")
        return self.env.step(action)


USES = {
    "agent_for": lambda env: rlsvi.agent_for(env),
    "learn": lambda env: rlsvi.PSRL(horizon=3).learn(env, episodes=1),
    "compare": lambda env: rlsvi.compare({"a": rlsvi.DiscountedPSRL()}, env, 1, 1, workers=1, progress=False),
    "record": lambda env: rlsvi.record(env, episodes=1, progress=False),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["observation_space", "action_space"])
@pytest.mark.parametrize("space", [None, 3, [], "Discrete(3)", Discrete, np.ones(2), re], ids=repr)
def test_what_is_no_space_is_refused_by_name(use, name, space):
    env = Faulty("numbered")
    setattr(env, name, space)
    with pytest.raises(TypeError, match=f"{name} of env must be a space"):
        USES[use](TimeLimit(env, 3))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("space", [Discrete(10**6), Discrete(10**9), MultiDiscrete([10**9, 10**9])], ids=str)
def test_more_actions_than_can_be_learned_are_refused(use, space):
    env = TimeLimit(Faulty("numbered"), 3)
    env.action_space = space
    with pytest.raises(ValueError, match=r"action space.*at most 100,000.*TransformAction"):
        USES[use](env)


def test_more_states_than_memory_holds_are_refused_with_an_agent_that_learns_them():
    env = TimeLimit(Faulty("numbered"), 3)
    env.observation_space = Discrete(10**9)
    with pytest.raises(ValueError, match=r"1000000000 states.*more than this machine has.*DiscountedPSRL"):
        rlsvi.PSRL(horizon=3).learn(env, episodes=1)
    for kind in (rlsvi.StationaryRLSVI, rlsvi.StationaryLSVI, rlsvi.ContinualRLSVI):
        with pytest.raises(ValueError, match=r"1000000000 states.*more than .*DiscountedPSRL"):
            kind().learn(env, steps=1)
    assert rlsvi.DiscountedPSRL(seed=0).learn(env, episodes=1).states > 1


def test_an_observation_that_is_no_number_of_a_discrete_space_is_not_recorded():
    env = TimeLimit(Faulty("measured"), 3)
    env.observation_space = Discrete(6)
    with pytest.raises(ValueError, match="must be a whole number"):
        rlsvi.record(env, episodes=1, progress=False)
