"""Actions of any space without a wrapper: the finite choice, what agents return, files, exports and logs."""

import gymnasium as gym
import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text
from tests.pages import blocks

import rlsvi
from rlsvi.envs.actions import choices_of
from rlsvi.envs.task import Task


class Aim(gym.Env):
    """The reward is the negative distance of the action to a target that the random observation determines."""

    def __init__(self, space, target, observations=None, steps=10):
        self.action_space, self.target, self.length = space, target, steps
        self.observation_space = observations or Box(-1.0, 1.0, (2,))
        self.taken = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.look(), {}

    def look(self):
        if isinstance(self.observation_space, Discrete):
            self.at = int(self.np_random.integers(self.observation_space.n))
        else:
            self.at = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.at

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(np.array(action))
        self.t += 1
        away = np.abs(np.asarray(action, float) - self.target(self.at)).sum()
        return self.look(), -float(away), False, self.t >= self.length, {}


def signs(at):
    return np.sign(at)


def binary(at):
    return (at > 0).astype(float)


SPACES = {
    "box": (Box(-1.0, 1.0, (2,)), signs),
    "matrix": (Box(-1.0, 1.0, (2, 1), np.float64), lambda at: np.sign(at).reshape(2, 1)),
    "integers": (Box(-1, 1, (2,), np.int32), signs),
    "multi-discrete": (MultiDiscrete([2, 3], start=[0, -1]), binary),
    "multi-binary": (MultiBinary(2), binary),
}


def aim(name):
    return Aim(*SPACES[name])


def small(seed=0):
    """An agent of few features, which learns such tasks quickly."""
    return rlsvi.BoundedRLSVI(seed=seed, gamma=0.0, basis=rlsvi.bases.Fourier(order=1))


def exported(path):
    """The policy of a file, by the reader of the documentation."""
    names = {}
    exec(blocks("docs/interoperability.md")[0], names)
    return names["policy"](path)


def test_the_choices_of_each_space():
    one = choices_of(Box(-2.0, 2.0, (1,)))
    assert one.table.dtype == np.float32
    assert one.table.ravel().tolist() == [-2, -1, 0, 1, 2]
    two = choices_of(Box(np.array([0.0, -1.0]), np.array([1.0, 1.0]), dtype=np.float64)).table
    assert len(two) == len(np.unique(two, axis=0)) == 9
    assert (two.min(axis=0).tolist(), two.max(axis=0).tolist()) == ([0, -1], [1, 1])
    for n, many in ((3, 15), (4, 25)):
        table = choices_of(Box(-1.0, 1.0, (n,))).table
        assert len(np.unique(table, axis=0)) == len(table) == many
        assert set(np.count_nonzero(table, axis=1).tolist()) == {0, 1, n}
    assert choices_of(Box(0, 1, (3,), np.int8)).table.tolist() == choices_of(MultiBinary(3)).table.tolist()
    assert choices_of(Box(0, 9, (), np.uint8)).table.tolist() == [0, 2, 4, 7, 9]
    assert choices_of(MultiDiscrete([2, 2], start=[5, -1])).table.tolist() == [[5, -1], [5, 0], [6, -1], [6, 0]]
    assert choices_of(Discrete(3)) is None


def test_the_nearest_choice():
    choices = choices_of(Box(np.array([-2.0, 0.0]), np.array([2.0, 1000.0]), dtype=np.float64))
    x = np.random.default_rng(0).uniform([-2, 0], [2, 1000], (200, 2))
    numbers, away = choices.nearest(x)
    twin = [min(range(9), key=lambda k: (abs((choices.table[k] - row) / [4, 1000]) ** 2).sum()) for row in x]
    assert numbers.tolist() == twin
    assert away.max() <= 0.25 * 2**0.5
    assert [choices.number(action) for action in choices.table] == list(range(9))
    for wrong in ([np.nan, 0.0], [3.0, 0.0], [0.0], "up", None, [[], [1]]):
        with pytest.raises(ValueError, match="is not an action of shape"):
            choices.number(wrong)


@pytest.mark.parametrize("name", SPACES)
def test_an_agent_learns_predicts_saves_and_exports_actions_of_the_space(name, tmp_path):
    env, space = aim(name), SPACES[name][0]
    agent = small().learn(env, 30)
    observation = np.array([0.9, -0.9], np.float32)
    action, state = agent.predict(observation, deterministic=True)
    assert space.contains(action)
    assert state == 1
    many = np.random.default_rng(0).uniform(-1, 1, (7, 2)).astype(np.float32)
    actions, _ = agent.predict(many, deterministic=True)
    assert actions.dtype == space.dtype
    assert actions.shape == (7, *space.shape)
    alone = np.array([agent.predict(row, deterministic=True)[0] for row in many])
    assert np.array_equal(actions, alone)
    random = aim(name)
    random.action_space.seed(0)
    random.reset(seed=0)
    chance = np.mean([random.step(random.action_space.sample())[1] for _ in range(200)])
    assert rlsvi.evaluate(agent, env, 10).mean / 10 > chance / 2

    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    assert again._task == agent._task
    assert np.array_equal(again.predict(many, deterministic=True)[0], actions)
    agent.export(tmp_path / "policy.npz")
    act = exported(tmp_path / "policy.npz")
    alone = np.array([act(row) for row in many])
    assert alone.dtype == space.dtype
    assert np.array_equal(alone, actions)
    first, second = aim(name), aim(name)
    assert np.array_equal(agent.learn(first, 3).predict(many)[0], again.learn(second, 3).predict(many)[0])
    assert np.array_equal(first.taken, second.taken)


@pytest.mark.parametrize(("kind", "options"), [(rlsvi.RLSVI, {"horizon": 1}), (rlsvi.DiscountedPSRL, {})])
def test_numbered_states(kind, options, tmp_path):
    env = Aim(MultiDiscrete([2, 2]), lambda at: np.array([at // 2, at % 2]), Discrete(4), steps=1)
    agent = kind(seed=0, **options).learn(env, 60)
    for s in range(4):
        assert agent.predict(s, deterministic=True)[0].tolist() == [s // 2, s % 2]
    agent.export(tmp_path / "policy.npz")
    act = exported(tmp_path / "policy.npz")
    assert [act(s).tolist() for s in range(4)] == [[0, 0], [0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("name", SPACES)
def test_a_log_of_learning_makes_an_equal_agent(name, tmp_path):
    agent = small(3)
    log = rlsvi.record(aim(name), agent, 8, learning=True, path=tmp_path / "log.parquet")
    assert len(log["action"][0]) == 2
    fitted = small(3).fit(tmp_path / "log.parquet", aim(name))
    first, second = aim(name), aim(name)
    agent.learn(first, 3)
    fitted.learn(second, 3)
    assert np.array_equal(first.taken, second.taken)
    spaces = rlsvi.envs.Spaces(first.observation_space, first.action_space)
    assert small(3).fit(log, spaces).steps == 80


def test_logs_of_other_policies():
    env = aim("box")
    log = rlsvi.record(env, None, 3, seed=1)
    assert log["propensity"].to_list() == [1 / 9] * 30
    assert len({tuple(action) for action in log["action"].to_list()}) == 9
    between = rlsvi.record(env, lambda x: 0.9 * x, 5)  # not on the grid
    assert np.allclose(between["action"].to_numpy(), 0.9 * between["observation"].to_numpy())
    assert "propensity" not in between.columns
    with pytest.warns(UserWarning, match="none of the 9 that agents choose among.*nearest"):
        agent = small().fit(between, env)
    assert agent.steps == 50
    drawn = rlsvi.record(env, lambda x: np.full(9, 1 / 9), 1)
    assert drawn["propensity"].to_list() == [1 / 9] * 10


def test_a_policy_is_judged_by_a_log():
    env = Aim(MultiBinary(2), binary, steps=1)
    agent = small().learn(env, 50)
    log = rlsvi.record(env, agent, 250, epsilon=0.5)
    assert set(log["propensity"].round(12)) == {0.125, 0.625}
    basis = rlsvi.bases.StateFeatures(lambda x: np.append(1, x))
    value = rlsvi.value_of(agent, log, env, gamma=0.0, horizon=1, basis=basis)
    assert -1.5 < value.weighted.value <= 0
    assert abs(value.weighted.value - value.fitted.value) < 0.5


def test_logs_with_wrong_actions_are_refused_with_the_row():
    env = aim("box")
    log = rlsvi.record(env, None, 1, limit=4)

    def refuses(actions, message, given=env):
        wrong = log.with_columns(pl.Series("action", actions))
        agent = rlsvi.BoundedRLSVI(seed=0)
        with pytest.raises(ValueError, match=message):
            agent.fit(wrong, given)
        assert agent.steps == 0

    good = [[0.0, 0.0]] * 3
    refuses([*good, [0.0, np.nan]], "column 'action', row 3: NaN")
    refuses([[0.0, 1.5], *good], r"column 'action', row 0: actions are of shape \(2,\).*between \[-1 -1\]")
    refuses([*good, [0.0]], "column 'action', row 3: there must be 2 numbers")
    refuses([0, 1, 2, 3], "column 'action'")
    refuses(log["action"], "which actions there are cannot be told.*Spaces", given=None)
    refuses([[0.0, 0.5], *good], "column 'action', row 0: actions are of shape", given=aim("multi-binary"))


def test_pendulum_as_it_is(tmp_path):
    env = gym.make("Pendulum-v1", max_episode_steps=20)
    agent = rlsvi.agent_for(env, seed=0)
    log = rlsvi.record(env, agent, 4, learning=True)
    agent.learn(env, 2, evaluate_every=1, on_episode=rlsvi.callbacks.CSV(tmp_path / "log.csv"))
    assert pl.read_csv(tmp_path / "log.csv")["evaluation_return"].max() < 0
    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    assert again.environment == agent.environment
    assert rlsvi.evaluate(again, env, 2).mean == rlsvi.evaluate(agent, env, 2).mean
    twin = rlsvi.agent_for(env, seed=0).fit(log, env).learn(env, 2)
    many = np.random.default_rng(1).uniform(-1, 1, (5, 3)).astype(np.float32)
    assert np.array_equal(twin.predict(many, deterministic=True)[0], agent.predict(many, deterministic=True)[0])
    other = gym.wrappers.RescaleAction(gym.make("Pendulum-v1", max_episode_steps=20), *np.float32([-1, 1]))
    with pytest.raises(
        ValueError, match=r"between \[-2\] and \[2\].*cannot go on with .*between \[-1\] and \[1\]"
    ):
        agent.learn(other, 1)


def test_actions_are_held_where_observations_change_slowly():
    env = gym.make("MountainCarContinuous-v0", max_episode_steps=60)
    agent = rlsvi.BoundedRLSVI(seed=0, repeat=4, basis=rlsvi.bases.Fourier(order=1)).learn(env, 2)
    observation, state, actions = env.reset(seed=0)[0], None, []
    for _ in range(8):
        action, state = agent.predict(observation, state)
        actions.append(action.tolist())
        observation = env.step(action)[0]
    assert actions[:4] == actions[:1] * 4
    assert actions[4:] == actions[4:5] * 4


def test_a_mask_has_a_flag_for_every_combination():
    env = aim("multi-binary")
    agent = small().learn(env, 5)
    mask = [False, True, False, False]
    assert agent.predict(np.zeros(2, np.float32), action_mask=mask)[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"action_mask must have shape \(4,\)"):
        agent.predict(np.zeros(2, np.float32), action_mask=[True, False])


REFUSED = {
    "no bounds": (
        Box(-np.inf, np.inf, (1,)),
        r"number 0 has no bounds: .*TransformAction.*Discretized\(env, choices",
    ),
    "one bound": (Box(np.array([0.0, 0.0]), np.array([1.0, np.inf]), dtype=np.float64), "number 1 has no bounds"),
    "far bounds": (Box(-3e38, 3e38, (1,)), "number 0 has no bounds"),
    "equal bounds": (
        Box(np.array([0, 1.0]), np.array([1, 1.0]), dtype=np.float64),
        "number 1 is always 1: .*Discretized",
    ),
    "five numbers": (
        Box(-1, 1, (5,)),
        r"5 numbers, but a grid of actions is made of 1 to 4 numbers only: .*Discretized\(env, choices",
    ),
    "no numbers": (Box(-1, 1, (0,)), "of 0 numbers"),
    "text": (Text(3), "offers no finite choice: .*TransformAction"),
    "dict": (Dict(a=Discrete(2)), "offers no finite choice: .*TransformAction"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_spaces_that_cannot_be_served_are_refused_before_the_first_step(name):
    space, message = REFUSED[name]
    env = Aim(space, signs)
    for call in (
        lambda: rlsvi.agent_for(env),
        lambda: rlsvi.BoundedRLSVI(seed=0).learn(env, 1),
        lambda: rlsvi.record(env, None, 1),
        lambda: rlsvi.agent_for(env, basis=rlsvi.bases.Fourier(), seed=0),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert not env.taken


NAN = {
    "array": np.full(2, np.nan, np.float32),
    "list": [0.0, np.inf],
    "parts": (np.zeros(1), [np.nan]),
    "dict": {"a": np.float32(np.nan)},
    "float": float("nan"),
    "scalar": np.float64(np.nan),
}


@pytest.mark.parametrize("name", NAN)
def test_a_policy_that_acts_nan_is_refused(name):
    class Broken:
        def predict(self, observation, state=None, deterministic=True):
            return NAN[name], None

    env = aim("box")
    with pytest.raises(ValueError, match="action holds NaN or infinity"):
        rlsvi.evaluate(Broken(), env, 1)
    with pytest.raises(ValueError, match=r"is not an action of|policy must give an action"):
        rlsvi.record(env, Broken(), 1)
    assert not env.taken


def test_files_of_tasks():
    task = Task(0, 4, None, 0, 0, choices_of(MultiBinary(2)))
    plain = [0, 4, None, 0, 0, ["int8", [2], [[0, 0], [0, 1], [1, 0], [1, 1]]]]
    assert Task.read(plain) == task
    assert Task.read([5, 3, 2, 1, 0]) == Task(5, 3, 2, 1, 0)  # as older files have it
    assert Task(5, 3, 2, 1, 0).plain == (5, 3, 2, 1, 0)
    for wrong in (
        ["int8", [2], [[0, 0], [0, 1], [1, 0]]],
        ["int8", [2], [[0, 0], [0, 1], [1, 0], [1, 0.5]]],
        ["int8", [2], [[0, 0], [0, 1], [1, 0], [1]]],
        ["int8", [3], [[0, 0], [0, 1], [1, 0], [1, 1]]],
        ["object", [2], [[0, 0], [0, 1], [1, 0], [1, 1]]],
        ["float32", [2], [[0, 0], [0, 1], [1, 0], [1, float("nan")]]],
        ["float32", [2], "four"],
        ["float32", [2]],
        7,
    ):
        with pytest.raises((ValueError, TypeError)):
            Task.read([0, 4, None, 0, 0, wrong])
    with pytest.raises(ValueError, match="a task cannot be"):
        Task.read([0, 4, None, 1, 0, plain[5]])
