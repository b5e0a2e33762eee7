"""Every Gymnasium space: what agent_for accepts is learned, what it refuses comes with a remedy that works."""

import re
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Text,
    Tuple,
)
from gymnasium.wrappers import FilterObservation, FlattenObservation, TransformAction, TransformObservation

import rlsvi
from rlsvi.agents.default import example_of
from rlsvi.bases.layout import layout_of, vector_of
from rlsvi.envs import Discretized


class Anything(gymnasium.Env):
    """Observations drawn from a space, which hardly recur if there are many, and any actions."""

    def __init__(self, observations, actions=None, steps=12):
        self.observation_space, self.action_space, self.length = observations, actions or Discrete(2), steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.t += 1
        return self.observation_space.sample(), self.t % 3, False, self.t >= self.length, {}


THREE = Box(-1, 1, (3,))
OBSERVATIONS = {
    "discrete": Discrete(5),
    "from -3": Discrete(5, start=-3),
    "one state": Discrete(1),
    "very many states": Discrete(10**12),
    "multi-discrete": MultiDiscrete([3, 4]),
    "multi-discrete of two dimensions": MultiDiscrete(np.array([[2, 3], [4, 5]])),
    "multi-discrete from elsewhere": MultiDiscrete([3, 4], start=[5, -2]),
    "multi-discrete of many values": MultiDiscrete([50_000, 50_000]),
    "many multi-discrete": MultiDiscrete([5] * 20),
    "binary": MultiBinary(4),
    "binary of two dimensions": MultiBinary([3, 2]),
    "very binary": MultiBinary(5000),
    "a number": Box(0, 1, ()),
    "no numbers": Box(0, 1, (0,)),
    "a matrix": Box(0, 1, (2, 3)),
    "bytes": Box(0, 255, (4, 4, 3), np.uint8),
    "booleans": Box(0, 1, (3, 3), bool),
    "small integers": Box(-5, 5, (2,), np.int8),
    "large integers": Box(-(2**62), 2**62, (2,), np.int64),
    "half precision": Box(-1, 1, (2,), np.float16),
    "double precision": Box(-1, 1, (2,), np.float64),
    "no bounds": Box(-np.inf, np.inf, (2,)),
    "one bound": Box(0, np.inf, (3,)),
    "far bounds": Box(-3e38, 3e38, (2,)),
    "a constant": Box(np.array([1.0, 0.0]), np.array([1.0, 1.0]), dtype=np.float64),
    "300 numbers": Box(0, 1, (300,)),
    "a large picture": Box(0, 255, (84, 84, 3), np.uint8),
    "dict": Dict(a=Discrete(3), b=THREE),
    "counted dict": Dict(a=Discrete(3), b=MultiBinary(3)),
    "nested": Dict(a=Dict(c=MultiBinary(2), d=Box(0, 1, (1,))), b=Tuple((Discrete(2), Discrete(3)))),
    "dict of many values": Dict(a=Discrete(20_000), b=THREE),
    "empty dict": Dict({}),
    "dict with text": Dict(mission=Text(5), image=THREE),
    "nested text": Dict(a=Dict(note=Text(5), x=THREE), b=Discrete(2)),
    "dict of text": Dict(mission=Text(3)),
    "tuple": Tuple((Discrete(3), THREE)),
    "empty tuple": Tuple(()),
    "tuple with text": Tuple((Discrete(3), Text(4))),
    "text": Text(4),
    "sequence": Sequence(THREE),
    "graph": Graph(THREE, Discrete(3)),
    "one of": OneOf((Discrete(3), THREE)),
}
ACTIONS = {
    "from -4": Discrete(3, start=-4),
    "one": Discrete(1),
    "too many": Discrete(10**6),
    "multi-discrete": MultiDiscrete([2, 3]),
    "binary": MultiBinary(3),
    "very binary": MultiBinary(20),
    "box": Box(-1, 1, (2,)),
    "box without bounds": Box(-np.inf, np.inf, (1,)),
    "integers": Box(0, 4, (1,), np.int32),
    "dict": Dict(a=Discrete(2)),
    "tuple": Tuple((Discrete(2), Discrete(2))),
    "text": Text(3),
    "sequence": Sequence(Discrete(2)),
    "graph": Graph(THREE, None),
    "one of": OneOf((Discrete(3), THREE)),
}
REMEDY = r"gymnasium\.wrappers\.\w+|rlsvi\.envs\.Discretized"


def assert_names_a_remedy(message):
    assert re.search(REMEDY, message), message
    for name in re.findall(r"gymnasium\.wrappers\.(\w+)", message):
        assert hasattr(gymnasium.wrappers, name), name


def learned_or_refused(env):
    """The agent that agent_for gives, after five episodes; None where it says what to do instead."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            agent = rlsvi.agent_for(env, seed=0)
        except ValueError as error:
            assert_names_a_remedy(str(error))
            return None
    for warning in told:  # of observations that never recur, which the agent cannot learn from
        assert_names_a_remedy(str(warning.message))
        assert isinstance(agent, rlsvi.DiscountedPSRL)
    assert agent.episodes == 0
    agent.learn(env, episodes=5)
    action, _ = agent.predict(env.reset(seed=1)[0], deterministic=True)
    assert env.action_space.contains(action)
    return agent


SERVED = [*(name for name in OBSERVATIONS if "text" not in name)][:19]
SERVED_ACTIONS = ("from -4", "one", "multi-discrete", "binary", "box", "integers")  # without a wrapper


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_observations_that_are_accepted_can_be_learned_from(name):
    space = OBSERVATIONS[name]
    assert space.contains(example_of(space))
    agent = learned_or_refused(Anything(space))
    assert agent is not None or name not in SERVED


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_that_are_accepted_can_be_learned(name):
    agent = learned_or_refused(Anything(THREE, ACTIONS[name]))
    assert agent is not None or name not in SERVED_ACTIONS


@pytest.mark.parametrize("name", ["nested", "tuple", "far bounds"])
def test_what_is_made_of_numbers_is_saved_too(name, tmp_path):
    env = Anything(OBSERVATIONS[name])
    agent = learned_or_refused(env)
    agent.save(tmp_path / "agent")
    observation = env.reset(seed=3)[0]
    again = rlsvi.load(tmp_path / "agent")
    assert again.predict(observation, deterministic=True) == agent.predict(observation, deterministic=True)
    assert again.learn(env, episodes=1).steps == agent.learn(env, episodes=1).steps


def described(observation):
    return np.array([len(observation)], dtype=np.float32)


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("dict with text", lambda env: FilterObservation(env, ["image"])),
        ("dict with text", FlattenObservation),
        ("nested text", lambda env: FilterObservation(env, ["b"])),
        ("nested text", FlattenObservation),
        ("text", FlattenObservation),
        ("tuple with text", FlattenObservation),
        ("one of", FlattenObservation),
        ("sequence", lambda env: TransformObservation(env, described, Box(0, np.inf, (1,)))),
        ("graph", lambda env: TransformObservation(env, described, Box(0, np.inf, (1,)))),
    ],
)
def test_the_remedies_for_observations_work(name, wrap):
    assert learned_or_refused(wrap(Anything(OBSERVATIONS[name]))) is not None


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("multi-discrete", Discretized),
        ("binary", Discretized),
        ("very binary", lambda env: Discretized(env, np.eye(20, dtype=np.int8))),
        ("box", lambda env: Discretized(env, 5)),
        ("box without bounds", lambda env: Discretized(env, [[-1.0], [1.0]])),
        ("integers", lambda env: Discretized(env, 5)),
        ("dict", lambda env: TransformAction(env, lambda k: [{"a": 0}, {"a": 1}][k], Discrete(2))),
        ("tuple", lambda env: TransformAction(env, lambda k: [(0, 0), (1, 1)][k], Discrete(2))),
        ("text", lambda env: TransformAction(env, lambda k: ["a", "b"][k], Discrete(2))),
        ("too many", lambda env: TransformAction(env, lambda k: [7, 9][k], Discrete(2))),
    ],
)
def test_the_remedies_for_actions_work(name, wrap):
    assert learned_or_refused(wrap(Anything(THREE, ACTIONS[name]))) is not None


LARGE_SPACES = {
    "bytes": (Box(0, 255, (56, 56, 3), np.uint8), "9408 numbers.*ResizeObservation"),
    "counted": (MultiDiscrete(np.full((56, 56), 4)), "12544 values.*TransformObservation"),
    "hashes": (Box(0, 2**64 - 1, (6,), np.uint64), r"beyond 2\^53.*TransformObservation"),
}


class Pictures(Anything):
    """A walk along nine large pictures; the first two differ in the last bit of a number, the end pays."""

    def seen(self):
        picture = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        large = 2**60 if picture.dtype == np.uint64 else 2
        picture.flat[self.at // 2] = large + self.at % 2
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.seen(), {}

    def step(self, action):
        self.t, self.at = self.t + 1, max(self.at + 2 * int(action) - 1, 0)
        return self.seen(), float(self.at == 9), self.at == 9, self.t >= 30, {}


@pytest.mark.parametrize("name", LARGE_SPACES)
def test_large_pictures_that_recur_are_a_table_and_others_are_warned_of(name):
    space, message = LARGE_SPACES[name]
    env = Pictures(space)
    with pytest.warns(UserWarning, match=f"never recur.*{message}"):
        agent = rlsvi.agent_for(env, seed=0)
    assert isinstance(agent, rlsvi.DiscountedPSRL)
    assert agent.learn(env, episodes=15).states == 9
    assert rlsvi.evaluate(agent, env, 3).mean == 1
    with pytest.raises(ValueError, match=message):
        rlsvi.agent_for(env, seed=0, sigma=1.0)


def test_whole_numbers_that_float64_cannot_tell_apart_are_refused():
    space = Box(-np.inf, np.inf, (1,), np.int64)  # without bounds: what is seen decides
    layout = layout_of(space)
    assert vector_of(layout, np.array([2**53])) == 2**53
    for large in (np.array([2**53 + 1]), [-(2**53) - 1], np.array([2**64 - 1], np.uint64)):
        with pytest.raises(ValueError, match=r"beyond 2\^53.*gymnasium\.wrappers\.TransformObservation"):
            vector_of(layout, large)
    assert isinstance(rlsvi.agent_for(Anything(space)), rlsvi.TableOrFeatures)
    assert isinstance(learned_or_refused(Anything(Discrete(2**60))), rlsvi.DiscountedPSRL)


def test_the_part_that_cannot_be_served_is_named():
    many = Sequence(Discrete(2))
    cases = (
        (Dict(image=THREE, mission=many), "observation['mission']"),
        (Dict(a=Dict(note=many, x=THREE), b=Discrete(2)), "observation['a']['note']"),
        (Dict(image=THREE, mission=many), "FilterObservation(env, ['image'])"),
        (Tuple((Discrete(3), OneOf((Discrete(3), THREE)))), "observation[1] is OneOf"),
    )
    for space, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            rlsvi.BoundedRLSVI(seed=0).learn(Anything(space), episodes=1)


class MissionSpace(gymnasium.Space):
    """The texts that MiniGrid gives as missions: a space of its own kind."""

    def __init__(self):
        super().__init__((), str, 0)

    def sample(self, mask=None, probability=None):
        return "get to the green goal square"

    def contains(self, x):
        return isinstance(x, str)


def test_the_mission_of_a_minigrid_is_warned_of_and_the_remedies_work():
    env = Anything(Dict(direction=Discrete(4), image=Box(0, 255, (2, 2, 3), np.uint8), mission=MissionSpace()))
    keep = "FilterObservation(env, ['direction', 'image'])"
    with pytest.warns(UserWarning, match=re.escape(keep) + ".*ImgObsWrapper.*TransformObservation") as told:
        agent = rlsvi.agent_for(env, seed=0)
    assert agent.learn(env, episodes=2).states > 1
    remedies = [f"gymnasium.wrappers.{keep}"]
    remedies += re.findall(r"declare it as text, by (gymnasium.*?), or give", str(told[0].message))
    assert len(remedies) == 2
    for remedy in remedies:
        wrapped = eval(remedy, {"env": env, "gymnasium": gymnasium})
        assert isinstance(learned_or_refused(wrapped), rlsvi.TableOrFeatures)


@pytest.mark.parametrize("name", ["sequence", "one of"])
def test_other_spaces_without_features_are_warned_of(name):
    with pytest.warns(UserWarning, match="with a table only, and nothing from observations that never recur"):
        rlsvi.agent_for(Anything(OBSERVATIONS[name]), seed=0)


@pytest.mark.parametrize("name", ["dict with text", "nested text", "dict of text", "tuple with text"])
def test_texts_as_parts_are_served(name):
    assert isinstance(learned_or_refused(Anything(OBSERVATIONS[name])), rlsvi.TableOrFeatures)


def test_a_basis_of_the_users_own_is_not_asked_about_observations_that_never_occur():
    def logarithm(x):
        assert (x > 0).all()
        return np.array([1.0, *np.log(x)])

    env = TransformObservation(Anything(THREE), lambda x: np.abs(x) + 1, Box(0, 2, (3,)))
    agent = rlsvi.agent_for(env, seed=0, basis=rlsvi.bases.StateFeatures(logarithm))
    assert agent.learn(env, episodes=1).episodes == 1


def test_the_id_of_an_environment_will_do():
    assert repr(rlsvi.agent_for("CartPole-v1", seed=3)) == repr(
        rlsvi.agent_for(gymnasium.make("CartPole-v1"), seed=3)
    )
    with pytest.raises(ValueError, match="did you mean CartPole-v1"):
        rlsvi.agent_for("CartPoel-v1")
    with pytest.raises(ValueError, match="cannot make the environment '': "):
        rlsvi.agent_for("")
