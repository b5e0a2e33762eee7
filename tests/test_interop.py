"""With other libraries: batches, wrappers, functions told of episodes, and policies for NumPy alone."""

import inspect
import json
import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import (
    FlattenObservation,
    NormalizeObservation,
    RecordEpisodeStatistics,
    RescaleObservation,
    TimeLimit,
    TransformReward,
)

import rlsvi
from pages import blocks
from rlsvi.core.regression import InverseGamma
from rlsvi.envs.description import Made

PAGE = "docs/interoperability.md"
COUNTED = "number", "grid"  # observations that a table learns


class Corridor(gym.Env):
    """Walk to the right end. Observations of many kinds; the goal pays 1, a step costs 0.1."""

    def __init__(self, kind="box"):
        self.kind, self.action_space = kind, spaces.Discrete(2, start=3)
        place = spaces.Box(-np.inf, np.inf, (1,))
        self.observation_space = {
            "box": place,
            "number": spaces.Discrete(7, start=-2),
            "grid": spaces.MultiDiscrete([3, 3]),
            "dict": spaces.Dict({"place": place, "parity": spaces.Discrete(2)}),
            "tuple": spaces.Tuple((spaces.Discrete(2), place, spaces.MultiBinary(2))),
            "many": spaces.Dict({"place": place, "code": spaces.MultiDiscrete([40, 40])}),
        }[kind]

    def look(self):
        x, place = self.x, np.array([self.x / 3], dtype=np.float32)
        return {
            "box": place,
            "number": np.int64(x - 2),
            "grid": np.array(divmod(x, 3)),
            "dict": {"place": place, "parity": x % 2},
            "tuple": (x % 2, place, np.array([x > 3, x > 5], dtype=np.int8)),
            "many": {"place": place, "code": np.array([x, 39 - x])},
        }[self.kind]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = int(self.np_random.integers(4)), 0
        return self.look(), {}

    def step(self, action):
        self.x, self.t = min(max(self.x + (1 if action == 4 else -1), 0), 6), self.t + 1
        return self.look(), float(self.x == 6) - 0.1, self.x == 6, self.t == 15, {}


def taught(kind="box", episodes=6, **arguments):
    env = Corridor(kind)
    kind = rlsvi.DiscountedPSRL if kind in COUNTED else rlsvi.BoundedRLSVI
    return kind(seed=1, **arguments).learn(env, episodes=episodes), env


def seen(env, count):
    """Observations along random walks."""
    rng, found = np.random.default_rng(0), []
    while len(found) < count:
        observation, over = env.reset(seed=int(rng.integers(1000)))[0], False
        while not over:
            found.append(observation)
            observation, _, terminated, truncated, _ = env.step(3 + int(rng.integers(2)))
            over = terminated or truncated
    return found[:count]


def stacked(observations):
    """As a vector environment passes them."""
    first = observations[0]
    if isinstance(first, dict):
        return {key: stacked([o[key] for o in observations]) for key in first}
    if isinstance(first, tuple):
        return tuple(stacked([o[i] for o in observations]) for i in range(len(first)))
    return np.stack([np.asarray(o) for o in observations])


# ---- batches ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["box", "number", "grid", "dict", "tuple"])
def test_a_batch_gives_the_actions_of_its_rows(kind):
    agent, env = taught(kind)
    observations = seen(env, 12)
    actions, states = agent.predict(stacked(observations), deterministic=True)
    assert actions.tolist() == [agent.predict(o, deterministic=True)[0] for o in observations]
    assert len(set(actions.tolist())) == 2 or set(actions.tolist()) == {4}
    assert states.tolist() == [1] * 12
    states = np.arange(12)
    starts = np.arange(12) % 3 == 0
    _, following = agent.predict(stacked(observations), states, starts, deterministic=True)
    assert following.tolist() == np.where(starts, 1, states + 1).tolist()


@pytest.mark.parametrize("kind", ["box", "number", "grid", "dict", "tuple", "function"])
def test_arrays_of_size_one_go_with_a_single_observation(kind):
    function = rlsvi.bases.StateFeatures(lambda x: np.array([1.0, x[0]])) if kind == "function" else None
    agent, env = taught("box", basis=function) if kind == "function" else taught(kind)
    observation, on, anew = seen(env, 1)[0], np.array([False]), np.array([True])
    action, state = agent.predict(observation, None, anew, deterministic=True)
    assert (action, state) == agent.predict(observation, deterministic=True)
    assert np.ndim(action) == np.ndim(state) == 0
    assert agent.predict(observation, np.array([7]), on, deterministic=True) == (action, 8)
    assert agent.predict(observation, np.array([7]), anew, deterministic=True) == (action, 1)
    assert agent.predict(observation, [7], deterministic=True, action_mask=[[True, True]]) == (action, 8)
    actions, states = agent.predict(stacked([observation]), np.array([7]), on, deterministic=True)
    assert (actions.tolist(), states.tolist()) == ([action], [8])


def test_each_environment_of_a_batch_plays_on_a_sample_of_its_own():
    env = Corridor()
    agent = rlsvi.BoundedRLSVI(seed=0, sigma=3.0, lam=0.01).learn(env, episodes=1)
    places = np.zeros((40, 1))
    first, state = agent.predict(places, None, np.ones(40, dtype=bool))
    again, state = agent.predict(places, state, np.zeros(40, dtype=bool))
    assert set(first.tolist()) == {3, 4}  # 40 samples that all agree would be 2^-39
    assert again.tolist() == first.tolist()
    starts = np.arange(40) < 20
    third, _ = agent.predict(places, state, starts)
    assert third[20:].tolist() == first[20:].tolist()
    assert third[:20].tolist() != first[:20].tolist()
    before = agent._drawn[0]
    agent.learn(env, episodes=1)
    agent.predict(places, state, np.zeros(40, dtype=bool))
    assert agent._drawn[0] is not before  # of what was known then


def test_agents_of_periods_and_plain_functions_take_batches_too():
    chain = gym.make("rlsvi/Chain-v0", length=5)
    agent = rlsvi.RLSVI(seed=0).learn(chain, episodes=50)
    actions, periods = agent.predict(np.arange(4), np.arange(4), np.zeros(4, dtype=bool), deterministic=True)
    assert actions.tolist() == [agent.predict(h, h, deterministic=True)[0] for h in range(4)]
    assert periods.tolist() == [1, 2, 3, 4]
    basis = rlsvi.bases.StateFeatures(lambda x: np.array([1.0, x[0]]))
    agent, env = taught(basis=basis)
    rows = stacked(seen(env, 5))
    actions, _ = agent.predict(rows, None, np.ones(5, dtype=bool), deterministic=True)
    assert actions.tolist() == [agent.predict(row, deterministic=True)[0] for row in rows]
    masks = np.array([[True, False], [False, True]] * 2 + [[True, True]])
    masked, _ = agent.predict(rows, None, np.ones(5, dtype=bool), True, masks)
    assert masked[:4].tolist() == [3, 4, 3, 4]


def test_batches_that_do_not_fit_are_refused():
    agent, _ = taught()
    with pytest.raises(ValueError, match=r"episode_start has 3 values, there are 2 observations"):
        agent.predict(np.zeros((2, 1)), None, np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="there is one observation"):
        agent.predict(np.zeros(1), np.zeros(2), np.ones(1, dtype=bool))
    with pytest.raises(ValueError, match="state has 4 values, there are 2 observations"):
        agent.predict(np.zeros((2, 1)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="action_mask has 3 rows, there are 2 observations"):
        agent.predict(np.zeros((2, 1)), action_mask=np.ones((3, 2)))
    with pytest.raises(ValueError, match="shape"):
        agent.predict(np.zeros((2, 3, 1)), deterministic=True)


class Vector:
    """A twin of stable-baselines3's DummyVecEnv, as far as evaluate_policy calls it."""

    def __init__(self, envs):
        self.envs, self.num_envs = envs, len(envs)

    def reset(self):
        return stacked([env.reset(seed=i)[0] for i, env in enumerate(self.envs)])

    def step(self, actions):
        assert isinstance(actions, np.ndarray)
        found, rewards, dones = [], [], []
        for env, action in zip(self.envs, actions, strict=True):
            observation, reward, terminated, truncated, _ = env.step(action)
            dones.append(terminated or truncated)
            found.append(env.reset()[0] if dones[-1] else observation)
            rewards.append(reward)
        return stacked(found), np.array(rewards), np.array(dones)


def test_the_calls_of_evaluate_policy():
    """The loop of stable-baselines3's evaluate_policy, without it."""
    agent, _ = taught("dict", episodes=15)
    vector, returns = Vector([Corridor("dict") for _ in range(3)]), []
    totals, observations, states = np.zeros(3), vector.reset(), None
    starts = np.ones(3, dtype=bool)
    while len(returns) < 6:
        actions, states = agent.predict(observations, state=states, episode_start=starts, deterministic=True)
        observations, rewards, starts = vector.step(actions)
        totals += rewards
        returns += totals[starts].tolist()
        totals[starts] = 0
    assert np.mean(returns) > 0.3  # at most 0.5 on average, from four first places


@pytest.mark.slow
def test_stable_baselines_evaluates_our_agents():
    pytest.importorskip("stable_baselines3", exc_type=ImportError)
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    env = gym.make("CartPole-v1")
    agent = rlsvi.agent_for(env, seed=0).learn(env, episodes=10)
    mean, _ = evaluate_policy(agent, Monitor(env), n_eval_episodes=3)
    assert mean > 200
    vector = make_vec_env("CartPole-v1", n_envs=3, seed=0)
    assert evaluate_policy(agent, vector, n_eval_episodes=3)[0] > 200
    assert evaluate_policy(agent, vector, n_eval_episodes=3, deterministic=False)[0] > 0
    lake = gym.make("FrozenLake-v1")
    numbered = rlsvi.agent_for(lake, seed=0).learn(lake, episodes=5)
    evaluate_policy(numbered, Monitor(lake), n_eval_episodes=2)


# ---- wrappers, callbacks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: TimeLimit(env, 5),
        RecordEpisodeStatistics,
        NormalizeObservation,
        lambda env: TransformReward(env, lambda r: 10 * r),
        FlattenObservation,
        lambda env: gym.wrappers.FrameStackObservation(env, 2),
        lambda env: gym.wrappers.TimeAwareObservation(TimeLimit(env, 15)),
    ],
)
def test_gymnasium_wrappers_work(wrap):
    env = wrap(Corridor())
    agent = rlsvi.agent_for(env, seed=0).learn(env, episodes=3)
    assert agent.predict(env.reset(seed=0)[0], deterministic=True)[0] in (3, 4)
    assert rlsvi.evaluate(agent, env, 2).steps > 0


def test_a_wrapper_that_changes_nothing_changes_nothing():
    plain, wrapped = gym.make("CartPole-v1"), RecordEpisodeStatistics(gym.make("CartPole-v1"))
    one, two = (rlsvi.agent_for(env, seed=0).learn(env, episodes=4) for env in (plain, wrapped))
    assert np.array_equal(one._learner.active.theta, two._learner.active.theta)
    assert list(wrapped.return_queue) == pytest.approx([float(n) for n in wrapped.length_queue])
    assert Made.of(plain) == Made("CartPole-v1", {}, 500)
    assert two.environment is None  # a wrapper that a file does not hold


def test_on_episode_is_told_every_return():
    env, told = RecordEpisodeStatistics(Corridor()), []
    agent = rlsvi.agent_for(env, seed=0)
    agent.learn(env, episodes=5, on_episode=lambda a, value: told.append((a.episodes, value)))
    assert [episode for episode, _ in told] == [1, 2, 3, 4, 5]
    assert [value for _, value in told] == pytest.approx(list(env.return_queue))
    twin = rlsvi.agent_for(Corridor(), seed=0).learn(Corridor(), episodes=5)
    assert np.array_equal(twin._learner.active.V, agent._learner.active.V)
    steps = []
    chain = gym.make("rlsvi/Chain-v0", length=4)
    rlsvi.RLSVI(seed=0).learn(chain, steps=7, on_episode=lambda a, value: steps.append(a.steps))
    assert steps == [3, 6, 9]
    assert agent.learn(env, episodes=5, on_episode=lambda a, value: a.episodes < 7).episodes == 7  # False ends it
    for kind in (rlsvi.StationaryRLSVI, rlsvi.PSRL, rlsvi.ThompsonSampling, rlsvi.BoundedRLSVI):
        assert "on_episode" in inspect.signature(kind.learn).parameters


# ---- NumPy alone ------------------------------------------------------------------------------------------

ALONE = """
import sys
for name in ("rlsvi", "numba", "gymnasium", "scipy"):
    sys.modules[name] = None  # cannot be imported
import json
with open("cases.json") as file:
    cases = json.load(file)
for name, observations in cases.items():
    act = policy(f"{name}.npz")
    print(json.dumps([act(*o) for o in observations]))
"""


class Sky(gym.Env):
    """Random pictures with a direction; the first action earns more in bright ones."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Dict(
        wind=gym.spaces.Discrete(3), view=gym.spaces.Box(0, 255, (2, 6, 5), np.uint8)
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._look(), {}

    def _look(self):
        self.view = self.np_random.integers(256, size=(2, 6, 5), dtype=np.uint8)
        return {"wind": int(self.np_random.integers(3)), "view": self.view}

    def step(self, action):
        reward = float(self.view.mean() / 255 * (1 - 2 * action))
        return self._look(), reward, bool(self.np_random.random() < 0.1), False, {}


def plain(observation):
    """An observation as JSON has it."""
    if isinstance(observation, dict):
        return {key: plain(part) for key, part in observation.items()}
    if isinstance(observation, tuple):
        return [plain(part) for part in observation]
    return np.asarray(observation).tolist()


def test_an_exported_policy_acts_the_same_with_numpy_alone(tmp_path):
    """In a Python that can import neither rlsvi nor numba nor gymnasium."""
    cases, expected, rng = {}, {}, np.random.default_rng(1)
    for kind in ("box", "number", "grid", "dict", "tuple", "many"):
        agent, env = taught(kind, episodes=4)
        mean = agent._plan(mean=True)
        if kind not in COUNTED:  # a policy of many turns
            agent._mean = mean._replace(theta=rng.normal(size=mean.theta.shape))
        agent.export(tmp_path / f"{kind}.npz")
        observations = seen(env, 60)
        cases[kind] = [[plain(o)] for o in observations]
        expected[kind] = [agent.predict(o, deterministic=True)[0] for o in observations]
    cart = gym.make("CartPole-v1")
    agent = rlsvi.agent_for(cart, seed=0).learn(cart, episodes=4)
    agent.export(tmp_path / "cart.npz")
    space = cart.observation_space
    rows = np.clip(np.random.default_rng(0).normal(size=(1000, 4)), space.low, space.high)
    cases["cart"], expected["cart"] = [[row] for row in rows.tolist()], agent.predict(rows, deterministic=True)[0]
    swing = gym.make("Acrobot-v1", max_episode_steps=60)
    agent = rlsvi.agent_for(swing, seed=0).learn(swing, episodes=4)  # waves
    mean = agent._plan(mean=True)
    agent._mean = mean._replace(theta=rng.normal(size=mean.theta.shape))
    agent.export(tmp_path / "swing.npz")
    rows = np.clip(np.random.default_rng(0).normal(size=(200, 6)), -1, 1)
    cases["swing"] = [[row] for row in rows.tolist()]
    expected["swing"] = [agent.predict(row, deterministic=True)[0] for row in rows]
    sky = Sky()
    agent = rlsvi.BoundedRLSVI(seed=0).learn(sky, episodes=4)  # pairs of pixels
    mean = agent._plan(mean=True)
    agent._mean = mean._replace(theta=rng.normal(size=mean.theta.shape))
    agent.export(tmp_path / "sky.npz")
    pictures = [sky.reset(seed=k)[0] for k in range(60)]
    cases["sky"] = [[plain(o)] for o in pictures]
    expected["sky"] = [agent.predict(o, deterministic=True)[0] for o in pictures]
    agent = rlsvi.RLSVI(seed=0).learn(gym.make("rlsvi/DeepSea-v0", size=4), episodes=60)
    agent.export(tmp_path / "sea.npz")
    cases["sea"] = [[s, h] for h in range(4) for s in range(16)]
    expected["sea"] = [agent.predict(s, h, deterministic=True)[0] for s, h in cases["sea"]]
    assert min(len({*np.asarray(v).tolist()}) for kind, v in expected.items() if kind not in COUNTED) == 2
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "alone.py").write_text(blocks(PAGE)[0] + ALONE)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "alone.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=alone
    )
    assert done.returncode == 0, done.stderr
    for name, line in zip(cases, done.stdout.splitlines(), strict=True):
        assert json.loads(line) == list(expected[name]), name


def test_what_cannot_be_exported_is_refused(tmp_path):
    for basis in (rlsvi.bases.Tiles(), rlsvi.bases.StateFeatures(lambda x: np.ones(2))):
        agent, _ = taught(basis=basis, episodes=1)
        with pytest.raises(ValueError, match=r"only bases\.Fourier\(\), "):
            agent.export(tmp_path / "policy.npz")
    with pytest.raises(RuntimeError, match="learned nothing"):
        rlsvi.BoundedRLSVI().export(tmp_path / "policy.npz")
    agent = rlsvi.StationaryRLSVI(seed=0, basis=rlsvi.bases.StateFeatures(lambda x: np.ones(2)))
    with pytest.raises(ValueError, match="StationaryRLSVI can be exported where"):
        agent.learn(Corridor(), episodes=1).export(tmp_path / "policy.npz")
    assert list(tmp_path.iterdir()) == []


# ---- saving -----------------------------------------------------------------------------------------------


def test_a_long_history_can_be_loaded(tmp_path):
    agent = rlsvi.BoundedRLSVI(seed=0).learn(Corridor(), episodes=20)
    assert len(agent._learner.history.transitions.row) > 64  # the room at first
    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    for mine, theirs in zip(agent._learner.history.transitions, again._learner.history.transitions, strict=True):
        assert np.array_equal(mine, theirs)


def test_a_file_remembers_the_environment(tmp_path):
    made = Made("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}, 30)
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False, max_episode_steps=30, render_mode="ansi")
    rlsvi.agent_for(env, seed=0).learn(env, episodes=2).save(tmp_path / "lake")
    again = rlsvi.load(tmp_path / "lake")
    assert again.environment == made
    assert again.environment.make().spec.kwargs["map_name"] == "8x8"
    assert again.environment.make().spec.max_episode_steps == 30
    pendulum = rlsvi.envs.Discretized(gym.make("Pendulum-v1"), choices=3)
    agent = rlsvi.BoundedRLSVI(seed=0, sigma=InverseGamma(1.0, 1.0)).learn(pendulum, steps=1)
    assert agent.environment == Made("Pendulum-v1", {}, 200, 3)
    assert agent.environment.make().action_space.n == 3
    assert Made.of(Corridor()) is None
    assert Made.of(RescaleObservation(gym.make("MountainCar-v0"), np.float32(0), np.float32(1))) is None
    assert Made.of(rlsvi.envs.Discretized(gym.make("Pendulum-v1"), choices=[[0.5], [1.0]])) is None
