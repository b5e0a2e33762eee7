"""Agents on Gymnasium environments: stored observations, masks, ends of episodes, predict, and bad input."""

import inspect

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import rlsvi
from rlsvi import LSVI, RLSVI, Boltzmann, EpsilonGreedy
from rlsvi.bases import ActionFeatures, StateFeatures, Transformer
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import chain
from twin import Rows, assert_same, deviation, lsvi, state_of
from values import action_values


class Walk(gymnasium.Env):
    """A noisy walk over 0..6, seen as a number or as a vector; ends at 6. Its second step fails if `fails`."""

    horizon = 6

    def __init__(self, kind="vector", fails=False, action_start=0):
        self.kind, self.fails = kind, fails
        self.action_space = Discrete(3, start=action_start)
        self.observation_space = Discrete(7) if kind == "number" else Box(-1.0, 1.0, (2,), np.float64)

    def _observe(self):
        if self.kind == "number":
            return int(self.x)
        return np.array([self.x / 6, 1.0 - self.t / self.horizon])

    def _info(self):
        return {"action_mask": np.array([True, self.x % 2 == 0, self.x > 0], dtype=np.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 2, 0
        return self._observe(), self._info()

    def step(self, action):
        assert self.action_space.contains(action)
        a = action - self.action_space.start
        assert self._info()["action_mask"][a], "an illegal action was taken"
        self.t += 1
        if self.t == 2 and self.fails:
            raise OSError("the cable is out")
        self.x = np.clip(self.x + (0, 1, -1)[a] + self.np_random.integers(-1, 2), 0, 6)
        return self._observe(), self.x, bool(self.x == 6), False, self._info()


def features(observation):
    return np.array([1.0, *np.atleast_1d(observation)])


class Recorder(gymnasium.Wrapper):
    """Raw episodes as the twin takes them: (observation, action, reward, next or None, its mask)."""

    def __init__(self, env, horizon):
        super().__init__(env)
        self.horizon, self.episodes = horizon, []

    def reset(self, **options):
        self.seen, info = self.env.reset(**options)
        self.episodes.append([])
        return self.seen, info

    def step(self, action):
        following, reward, terminated, truncated, info = self.env.step(action)
        n = self.action_space.n
        mask = np.asarray(info.get("action_mask", np.ones(n)), dtype=bool)
        ends = terminated or len(self.episodes[-1]) + 1 == self.horizon
        a = int(action - self.action_space.start)
        self.episodes[-1].append((self.seen, a, reward, None if ends else following, mask))
        self.seen = following
        return following, reward, terminated, truncated, info


def assert_matches_the_twin(agent, episodes, ridge, tolerance=1e-7):
    """Posterior means on visited pairs, in units of their posterior sd (of noise 1)."""
    learner = agent._learner
    rows = Rows(learner.features)
    theta, data = lsvi(episodes, rows, learner.task.horizon, ridge, agent.prior_mean, agent.reward_offset)
    values = agent._plan(mean=True)
    for episode in episodes:
        for h, (observation, a, *_) in enumerate(episode):
            x = rows(h, observation)[a]
            error = action_values(agent, values, h, observation)[a] - x @ theta[h]
            assert abs(error) < tolerance * deviation(data[h], ridge, x)
    return theta, rows


# ---- learning ---------------------------------------------------------------------------------------------


def cart_pole_transformer():
    scale = np.random.default_rng(0).normal(size=(200, 4)) * [0.1, 0.5, 0.1, 0.5]
    return make_pipeline(StandardScaler(), PolynomialFeatures(2)).fit(scale)


@pytest.mark.parametrize(
    "basis",
    [
        StateFeatures(lambda o: [1.0, *o]),
        ActionFeatures(lambda o, a: [1.0, *(o if a else -o)]),
        Transformer(cart_pole_transformer()),
    ],
    ids=["state features", "action features", "transformer"],
)
@pytest.mark.parametrize(
    "agent",
    [
        RLSVI(lam=2.0, sigma=0.5, horizon=25, seed=1),
        LSVI(lam=0.5, horizon=25, explore=EpsilonGreedy(0.7), prior_mean=0.2, reward_offset=-0.5, seed=1),
    ],
    ids=["RLSVI", "LSVI"],
)
def test_cart_pole_is_learned_as_the_pseudo_code_says(agent, basis):
    agent = agent.clone(basis=basis)
    env = Recorder(gymnasium.make("CartPole-v1"), 25)
    agent.learn(env, episodes=30)
    lengths = [len(episode) for episode in env.episodes]
    assert min(lengths) < 25  # some poles fall before the horizon
    assert agent.steps == sum(lengths)
    assert_matches_the_twin(agent, env.episodes, agent.lam * agent.sigma**2)


@pytest.mark.parametrize("kind", ["vector", "number"])
@pytest.mark.parametrize("make", [RLSVI, LSVI])
def test_masked_walk_is_learned_as_the_pseudo_code_says(make, kind):
    agent = make(lam=0.5, basis=StateFeatures(features), prior_mean=1.0, seed=4)
    env = Recorder(Walk(kind), 6)
    agent.learn(env, episodes=60)  # Walk itself refuses illegal actions
    assert_matches_the_twin(agent, env.episodes, 0.5 * agent.sigma**2)


class Shop(gymnasium.Env):
    """Observations are dictionaries."""

    horizon = 4
    observation_space = Dict({"money": Box(0.0, 9.0, ()), "day": Discrete(5)})
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.money, self.day = 4.0, 0
        return {"money": np.float32(self.money), "day": self.day}, {}

    def step(self, action):
        self.money = float(np.clip(self.money + action * self.np_random.normal(), 0, 9))
        self.day += 1
        return {"money": np.float32(self.money), "day": self.day}, self.money, False, False, {}


def test_dictionary_observations_with_a_callable():
    agent = RLSVI(basis=StateFeatures(lambda o: [1.0, o["money"], o["day"]]), seed=0)
    env = Recorder(Shop(), 4)
    agent.learn(env, episodes=25)
    assert_matches_the_twin(agent, env.episodes, agent.lam * agent.sigma**2)
    assert agent.predict({"money": np.float32(2.0), "day": 0})[0] in (0, 1)


def test_actions_that_start_elsewhere():
    """Walk asserts that every action lies in its space; the rest is the same bit for bit."""
    shifted, plain = (RLSVI(basis=StateFeatures(features), seed=0) for _ in range(2))
    shifted.learn(Walk(action_start=5), episodes=20)
    plain.learn(Walk(), episodes=20)
    assert_same(state_of(shifted), state_of(plain))
    observation = np.array([0.5, 1.0])
    assert (
        shifted.predict(observation, deterministic=True)[0]
        == plain.predict(observation, deterministic=True)[0] + 5
    )


# ---- the end of an episode --------------------------------------------------------------------------------


class Ends(gymnasium.Env):
    """One step of reward 1, and then the end: terminated, truncated, both or neither."""

    action_space = Discrete(1)

    def __init__(self, terminated, truncated, kind):
        self.ends, self.kind = (terminated, truncated), kind
        self.observation_space = Discrete(4) if kind == "number" else Box(0.0, 9.0, (1,), np.float64)

    def _observe(self):
        return self.t if self.kind == "number" else np.array([float(self.t)])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._observe(), {}

    def step(self, action):
        self.t += 1
        return self._observe(), 1.0, *self.ends, {}


@pytest.mark.parametrize("kind", ["number", "vector"])
@pytest.mark.parametrize(
    ("terminated", "truncated", "horizon", "value"),
    [
        (True, False, 3, 1.0),
        (True, True, 3, 1.0),
        (False, True, 3, 1.0 + 10.0),  # cut off early: what would have come counts, here the prior mean 10
        (False, True, 1, 1.0),  # cut off at the horizon: there is nothing to come
        (False, False, 1, 1.0),
    ],
)
def test_truncation_goes_on_in_the_target_and_termination_does_not(terminated, truncated, horizon, value, kind):
    basis = StateFeatures(lambda o: [1.0])
    agent = LSVI(lam=1e-9, basis=basis, horizon=horizon, prior_mean=10.0, seed=0)
    agent.learn(Ends(terminated, truncated, kind), episodes=3)
    assert agent.steps == 3
    first = 0 if kind == "number" else np.array([0.0])
    assert action_values(agent, agent._plan(mean=True), 0, first)[0] == pytest.approx(value, abs=1e-6)


def test_the_horizon_is_the_shortest_limit_known_unless_given():
    def horizon(env, **options):
        return RLSVI(basis=StateFeatures(features), seed=0, **options).learn(env, episodes=1)._learner.task.horizon

    assert horizon(gymnasium.make("CartPole-v1", max_episode_steps=8)) == 8
    assert horizon(gymnasium.make("CartPole-v1"), horizon=5) == 5
    assert horizon(Walk()) == 6
    assert horizon(Walk(), horizon=3) == 3
    assert horizon(gymnasium.make("rlsvi/Chain-v0", length=9)) == 8
    assert horizon(gymnasium.make("rlsvi/Chain-v0", length=9, max_episode_steps=5)) == 5


# ---- how much to learn ------------------------------------------------------------------------------------


class Breaks(Walk):
    """Raises at its 21st step."""

    steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps > 20:
            raise OSError("the cable is out")
        return super().step(action)


def test_a_failed_call_does_not_spend_the_overshoot_twice():
    agent = RLSVI(basis=StateFeatures(features), seed=2).learn(Walk(), steps=1)
    assert agent._overshoot > 0
    with pytest.raises(OSError):
        agent.learn(Breaks(), steps=100)  # goes on well beyond the overshoot, and fails
    done = agent.steps
    agent.learn(Walk(), steps=50)
    assert agent.steps - done >= 50


# ---- predict ----------------------------------------------------------------------------------------------


def taught(make=RLSVI, kind="vector", episodes=30, **options):
    return make(basis=StateFeatures(features), seed=3, **options).learn(Walk(kind), episodes=episodes)


def test_predict_has_the_signature_of_stable_baselines():
    parameters = list(inspect.signature(RLSVI(seed=0).predict).parameters.values())
    expected = [
        ("observation", inspect.Parameter.empty),
        ("state", None),
        ("episode_start", None),
        ("deterministic", False),
    ]
    assert [(p.name, p.default) for p in parameters[:4]] == expected


@pytest.mark.parametrize("make", [RLSVI, LSVI])
def test_deterministic_prediction_is_greedy_on_the_posterior_mean(make):
    agent = make(basis=StateFeatures(features), seed=3)
    env = Recorder(Walk(), 6)
    agent.learn(env, episodes=30)
    theta, rows = assert_matches_the_twin(agent, env.episodes, agent.lam * agent.sigma**2)
    chosen = set()
    for h in range(6):
        for x in np.linspace(0, 1, 15):
            observation = np.array([x, 1 - h / 6])
            action, state = agent.predict(observation, state=h, deterministic=True)
            assert state == h + 1
            assert action == (rows(h, observation) @ theta[h]).argmax()
            chosen.add(action)
            mask = np.arange(3) != action
            second = agent.predict(observation, h, deterministic=True, action_mask=mask)[0]
            assert second == np.where(mask, rows(h, observation) @ theta[h], -np.inf).argmax()
    assert len(chosen) > 1


def test_the_state_of_predict_is_the_period():
    agent, observation = taught(), np.array([0.5, 1.0])
    assert agent.predict(observation)[1] == 1
    assert agent.predict(observation, state=4)[1] == 5
    assert agent.predict(observation, state=4, episode_start=False)[1] == 5
    assert agent.predict(observation, state=4, episode_start=True)[1] == 1
    assert agent.predict(observation, state=6, episode_start=True)[1] == 1


def test_rlsvi_predicts_with_one_sample_an_episode():
    agent = RLSVI(lam=1e-2, sigma=1.0, seed=0).learn(FiniteMDPEnv(chain(4)), episodes=1)
    assert {agent.predict(0)[0] for _ in range(60)} == {0, 1}
    for _ in range(10):
        agent.predict(0)
        within = {agent.predict(1, state=1)[0] for _ in range(20)}
        assert len(within) == 1


def test_lsvi_predicts_with_its_exploration():
    agent = taught(LSVI, explore=EpsilonGreedy(0.6))
    best = agent.predict(np.zeros(2), deterministic=True)[0]
    counts = np.bincount([agent.predict(np.zeros(2))[0] for _ in range(3000)], minlength=3)
    expected = 3000 * (0.4 * (np.arange(3) == best) + 0.2)
    assert (np.abs(counts - expected) < 5 * np.sqrt(3000 * 0.24)).all()  # binomial, p (1 - p) <= .24


def test_predictions_follow_what_was_learned_since():
    """A chain whose right end pays: after learning, the mean goes right; the first plan was not kept."""
    agent = RLSVI(seed=0).learn(FiniteMDPEnv(chain(4)), episodes=1)
    before = agent._plan(True).Q.copy()
    agent.learn(FiniteMDPEnv(chain(4)), episodes=200)
    assert [agent.predict(h, state=h, deterministic=True)[0] for h in range(3)] == [1, 1, 1]
    assert before.shape != agent._mean.Q.shape or (before != agent._mean.Q).any()


# ---- bad input --------------------------------------------------------------------------------------------


class Stops(Ends):
    """Cut off after one step, where the basis knows no features."""

    def __init__(self):
        super().__init__(False, True, "vector")


def picky(observation):
    if observation[0] > 0.5:
        raise LookupError("no features there")
    return [1.0]


def test_a_basis_that_fails_at_the_last_observation_leaves_the_agent_as_it_was():
    agent = LSVI(basis=StateFeatures(picky), horizon=2, seed=0).learn(Ends(True, False, "vector"), episodes=2)
    good = state_of(agent)
    with pytest.raises(LookupError):
        agent.learn(Stops(), episodes=1)
    assert_same(state_of(agent), good)


class Loud(Ends):
    """Goes on to a second period, where the features of the test are too large."""

    def __init__(self):
        super().__init__(False, False, "vector")


def test_features_too_large_to_learn_from_leave_the_agent_as_it_was():
    agent = LSVI(basis=StateFeatures(lambda o: [1e200 if o[0] else 1.0]), horizon=2, seed=0)
    agent.learn(Ends(True, False, "vector"), episodes=2)
    good = state_of(agent)
    with pytest.raises((ValueError, ArithmeticError), match="finite"):
        agent.learn(Loud(), episodes=1)
    assert_same(state_of(agent), good)


def test_after_a_failed_first_episode_another_task_can_be_learned():
    agent = RLSVI(seed=0)
    with pytest.raises(OSError):
        agent.learn(Walk("number", fails=True), episodes=1)
    agent.learn(FiniteMDPEnv(chain(4)), episodes=1)


def test_predict_after_a_failed_first_episode_says_that_nothing_was_learned():
    agent = RLSVI(seed=0)
    with pytest.raises(OSError):
        agent.learn(Walk("number", fails=True), episodes=1)
    with pytest.raises(RuntimeError, match="call learn first"):
        agent.predict(0)


class Continuous(Walk):
    def __init__(self):
        super().__init__()
        self.action_space = Box(-1.0, 1.0, (1,))


class Endless(Walk):
    horizon = None


def vector_env():
    return gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")


@pytest.mark.parametrize(
    ("env", "error", "message"),
    [
        (Continuous, ValueError, "cannot go on with .*between"),
        (vector_env, TypeError, "env is a vector environment: pass one environment"),
        (Endless, ValueError, "pass horizon= to the agent"),
        (lambda: FiniteMDPEnv(chain(5)), ValueError, r"cannot go on with .*: use agent.clone\(\)"),
        (lambda: Walk("number"), ValueError, "cannot go on with"),
        (lambda: Walk(action_start=1), ValueError, "cannot go on with"),
    ],
)
def test_environments_that_cannot_be_learned_are_refused(env, error, message):
    agent, twin = taught(), taught()
    bad = env()
    with pytest.raises(error, match=message):
        agent.learn(bad, episodes=2)
    if hasattr(bad, "close"):
        bad.close()
    assert_same(state_of(agent), state_of(twin))
    assert_same(state_of(agent.learn(Walk(), episodes=3)), state_of(twin.learn(Walk(), episodes=3)))


@pytest.mark.parametrize("env", [Walk, lambda: gymnasium.make("CartPole-v1", max_episode_steps=3)])
def test_a_table_of_observations_that_are_not_numbered_is_refused(env):
    with pytest.raises(ValueError, match=r"needs observations that are numbered.*use bases.StateFeatures"):
        RLSVI(seed=0).learn(env(), episodes=1)


class Moody(Walk):
    """The legal actions of a state change from one episode to the next."""

    masks = ((True, True, False), (True, False, False), (False, False, True))
    episode = -1

    def _info(self):
        return {"action_mask": np.array(self.masks[self.episode])}

    def reset(self, *, seed=None, options=None):
        self.episode = (self.episode + 1) % 3
        return super().reset(seed=seed)


def test_a_mask_that_changes_for_the_same_state_is_refused():
    agent, env = RLSVI(seed=0), Moody("number")
    agent.learn(env, episodes=1)
    good = state_of(agent)
    with pytest.raises(ValueError, match="the action mask of state 2 in period 0 has changed"):
        agent.learn(env, episodes=1)
    assert_same(state_of(agent), good)


def test_stored_observations_may_have_other_masks_each_time():
    agent, env = RLSVI(basis=StateFeatures(features), seed=0), Moody()
    assert agent.learn(env, episodes=6).episodes == 6


def test_masks_are_honoured_by_every_rule():
    """Walk asserts that only legal actions are taken."""
    for explore in (rlsvi.Greedy(), EpsilonGreedy(1.0), Boltzmann(5.0)):
        agent = taught(LSVI, episodes=40, explore=explore)
        mask = np.array([False, True, False])
        assert all(agent.predict(np.zeros(2), action_mask=mask)[0] == 1 for _ in range(20))


def test_predict_takes_a_narrower_mask_than_was_learned_with():
    agent = RLSVI(seed=0).learn(FiniteMDPEnv(chain(5)), episodes=3)
    for only in range(2):
        assert agent.predict(0, action_mask=np.arange(2) == only)[0] == only
