"""BoundedRLSVI: against plain NumPy on raw transitions, its memory, saving, and what it refuses."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Sequence

import rlsvi
from rlsvi import BoundedRLSVI, InverseGamma, NoProgressWarning, agent_for, bases
from rlsvi.agents.practice.bounded_rlsvi import BoundedLearner
from rlsvi.agents.practice.regression import (
    END,
    EpisodeHistory,
    FeatureRegression,
    targets,
    usual_reward,
    values_of,
)
from rlsvi.bases.layout import layout_of, scaled
from rlsvi.bases.observed import is_table
from rlsvi.core.archive import ArchiveError
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal
from rlsvi.core.regression import FactorError
from saved import read, write
from twin import Transitions

POSTERIOR, ACTION, EPISODE, PREDICT = range(4)


class Walk(gymnasium.Env):
    """A noisy walk on a line that ends at 3 and is cut off after twelve steps; nobody says where it may lead."""

    def __init__(self, kind="vector"):
        self.kind = kind
        self.action_space = Discrete(2, start=1)
        self.observation_space = {
            "vector": Box(-np.inf, np.inf, (1,), np.float64),
            "bounded": Box(-20.0, 4.0, (1,), np.float64),
            "dict": Dict({"x": Box(-np.inf, np.inf, (1,), np.float64), "odd": Discrete(2)}),
            "sequence": Sequence(Discrete(2)),
        }[kind]

    def _observe(self):
        x = np.array([self.x])
        return {"x": x, "odd": self.t % 2} if self.kind == "dict" else x

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0.0, 0
        return self._observe(), {}

    def step(self, action):
        noise = self.np_random.normal(0, 0.3)
        self.x, self.t = float(self.x + (1 if action == 2 else -1) * (1 + noise) / 2), self.t + 1
        return self._observe(), -1.0 + 0.1 * action, self.x >= 3, self.t >= 12, {}


def agent(**changes):
    return BoundedRLSVI(**{"seed": 3, "basis": bases.Fourier(order=3), **changes})


def settle(monkeypatch, **constants):
    for name, value in constants.items():
        monkeypatch.setattr(BoundedLearner, name, value)


# ---- the regression ---------------------------------------------------------------------------------------


def returns(rows, ends, gamma, trace, V, mistakes=False):
    """The lambda-return of every step; without mistakes, as far as it is better than V(y) of what follows, y."""

    def of(i):
        _, _, r, y = rows[i]
        v = 0.0 if y is None else V(y)
        if ends[i] or i + 1 == len(rows):
            return r + gamma * v
        following = of(i + 1)
        return r + gamma * ((1 - trace) * v + trace * (following if mistakes else max(v, following)))

    return np.array([of(i) for i in range(len(rows))])


def observed_returns(rows, ends, gamma):
    """The discounted sum of rewards from every step to the end of its episode."""

    def of(i):
        return rows[i][2] + (gamma * of(i + 1) if not ends[i] and i + 1 < len(rows) else 0.0)

    return np.array([of(i) for i in range(len(rows))])


def twin(rows, ends, phi, Q, sigma, lam, gamma, trace, mistakes, stream, sweeps, bounds):
    """The sweeps on raw transitions, in plain NumPy; Q(x) gives the values before. The last weights (A, d).

    The weights of action a are v_a + u, each with half of the prior variance: one regression on (v_1, .., v_A, u).
    """
    d, A = len(phi(rows[0][0])), 2
    B = A + 1
    X = np.zeros((len(rows), B, d))
    for i, (x, a, _, _) in enumerate(rows):
        X[i, a] = phi(x)
        X[i, A:] = phi(x)
    X = X.reshape(len(rows), B * d)
    known = not isinstance(sigma, InverseGamma)
    ridge = lam * sigma**2 if known else lam
    K = np.diag(np.repeat(2 * ridge, B * d))
    P = K + X.T @ X
    variate = 1.0 if known else gamma_variate(stream, sigma.shape + len(rows) / 2)
    z = np.array([normal(stream) for _ in range(B * d)]) * (0.5 if mistakes else 1.0)  # these actions are many
    shift = np.linalg.solve(np.linalg.cholesky(P).T, z)
    for _ in range(sweeps):
        b = returns(rows, ends, gamma, trace, lambda y, Q=Q: np.clip(Q(y).max(), *bounds), mistakes)
        m = np.linalg.solve(P, X.T @ b)
        if known:
            spread = sigma
        else:
            spread = np.sqrt((sigma.scale + 0.5 * (((b - X @ m) ** 2).sum() + m @ K @ m)) / variate)
        w = (m + spread * shift).reshape(B, d)
        theta = w[:A] + w[A:].sum(axis=0)

        def Q(x, theta=theta):
            return theta @ phi(x)

    return theta


@pytest.mark.parametrize("alike", [0.3, 0.5, 0.9])
def test_it_is_the_regression_of_correlated_actions(alike, monkeypatch):
    """Mean, covariance and penalty are those of the weights of all actions at once, with a dense prior."""
    rng, A, d, ridge = np.random.default_rng(3), 4, 3, 0.7
    monkeypatch.setattr("rlsvi.agents.practice.regression.ALIKE", alike)
    phi, theta = rng.normal(size=(9, d)), rng.normal(size=(A, d))
    row, action, count = (
        np.arange(9) % 8,
        np.array([0, 1, 2, 0, 1, 2, 0, 1, 2]),
        rng.integers(1, 4, 9).astype(float),
    )
    regression = FeatureRegression(A, d)
    regression.extend(phi)
    regression.add(row, action, count)
    regression.factor(ridge)
    prior = np.kron(ridge * np.linalg.inv(np.full((A, A), alike) + (1 - alike) * np.eye(A)), np.eye(d))
    X = np.zeros((9, A, d))
    X[np.arange(9), action] = phi[row]
    X, b = X.reshape(9, A * d), rng.normal(size=9)
    P = prior + X.T @ (count[:, None] * X)
    sums = np.zeros((9, A))
    np.add.at(sums, (row, action), count * b)
    assert np.allclose(regression.fit(sums).ravel(), np.linalg.solve(P, X.T @ (count * b)))
    units = np.eye(np.prod(regression.drawn)).reshape(-1, *regression.drawn)
    root = np.stack([regression.shape(z).ravel() for z in units], axis=1)
    assert np.allclose(root @ root.T, np.linalg.inv(P))
    assert regression.penalty(theta) == pytest.approx(theta.ravel() @ prior @ theta.ravel())
    variance, before = (np.linalg.inv(each).reshape(A, d, A, d) for each in (P, prior))
    left, all_of_it = (np.einsum("ni,aiaj,nj->na", phi, each, phi) for each in (variance, before))
    assert np.allclose(regression.all_unknown(), left / all_of_it)


@pytest.mark.parametrize("sigma", [0.5, InverseGamma(2.0, 1.0)])
@pytest.mark.parametrize("trace", [0.0, 0.5, 1.0])
def test_an_episode_acts_on_the_sample_that_plain_numpy_gives(sigma, trace, monkeypatch):
    """With every step the transitions differ, ranges grow, and the sample is still that of the batch."""
    env = Transitions(Walk())
    settle(monkeypatch, SWEEPS=7, FEW_SWEEPS=7, TOLERANCE=0.0, trace=trace)
    monkeypatch.setattr("rlsvi.agents.practice.bounded_rlsvi.FEW", 1)
    ours = agent(sigma=sigma, lam=0.3, gamma=0.9, repeat=1)
    ours.learn(env, episodes=4)
    rows, learner, stream = list(env.rows), ours._learner, ours._streams[POSTERIOR].copy()
    assert ours.rescalings >= 1
    start = {x.tobytes(): q for x, q in zip(learner.history.x, learner._values(), strict=True)}
    low, high = learner.lookup.ranges.low[0], learner.lookup.ranges.high[0]
    assert low <= min(r[0][0] for r in rows) < max(r[0][0] for r in rows) <= high

    def phi(x):
        scaled = min(max((x[0] - low) / (high - low), 0), 1)
        return np.array([np.cos(np.pi * c * scaled) / max(c, 1) ** bases.Fourier().smoothness for c in range(4)])

    seen = observed_returns(rows, env.ends, 0.9)
    usual = np.exp(np.mean([np.log(abs(r)) for _, _, r, _ in rows]))
    margin = max(0.1 * (seen.max() - seen.min()), usual)
    rewards = [10 * r for _, _, r, _ in rows]  # for ever, with gamma = 0.9
    least, most = seen.min() - margin, seen.max() + margin
    bounds = (
        max(least, min(rewards)) if min(rewards) <= seen.min() else least,
        min(most, max(*rewards, usual)) if max(rewards) >= seen.max() else most,
    )
    settings = {"sigma": sigma, "bounds": bounds, "lam": 0.3, "gamma": 0.9, "trace": trace}
    for mistakes in (False, True):
        learner.earned[:] = [[0.0], [1.0 if mistakes else -1.0]]  # the other kind has earned less

        def before(x, mistakes=mistakes):
            return np.array([bounds[1]]) if mistakes else start[x.tobytes()]

        expected = twin(rows, env.ends, phi, before, **settings, mistakes=mistakes, stream=stream.copy(), sweeps=7)
        found = learner.plan(True, stream.copy())
        assert found.mistakes == mistakes
        assert np.allclose(found.theta, expected, rtol=1e-8, atol=1e-8)


def test_rewards_may_come_in_any_unit():
    """With powers of 2 as the unit not even rounding differs: the same episodes, and values in that unit."""

    def learned(unit):
        env = Transitions(gymnasium.wrappers.TransformReward(Walk(), lambda r: r * unit))
        ours = BoundedRLSVI(seed=5, basis=bases.Fourier(order=3)).learn(env, episodes=8)
        return ours, [a for _, a, _, _ in env.rows]

    (plain, actions), (large, same), (_, again) = learned(2.0), learned(2.0**21), learned(2.0**-20)
    assert actions == same == again
    assert np.allclose(plain._learner.theta * 2.0**20, large._learner.theta, rtol=1e-9)
    assert usual_reward(plain._learner.history) * 2.0**20 == pytest.approx(usual_reward(large._learner.history))


class Candy(gymnasium.Env):
    """A line of real positions with a small prize near the start, and a large one at the other end."""

    action_space, observation_space = Discrete(2), Box(0.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0.25 + self.np_random.uniform(-0.02, 0.02), 0
        return np.array([self.x]), {}

    def step(self, action):
        self.x, self.t = float(np.clip(self.x + (0.06 if action else -0.06), 0.0, 1.0)), self.t + 1
        reward = 0.2 if self.x < 0.02 else float(self.x > 0.98)
        return np.array([self.x]), reward, reward > 0, self.t >= 40, {}


def test_a_large_prize_behind_a_small_one_is_found_by_optimism():
    """With the usual bounds nothing beyond the small one is thought possible, and these seeds do not find it."""
    for seed in (1, 3):
        learned = BoundedRLSVI(seed=seed, bounds="optimistic").learn(Candy(), episodes=30)
        assert rlsvi.evaluate(learned, Candy(), episodes=3).mean == 1.0


def test_optimism_goes_on_after_loading(tmp_path):
    whole, half = (BoundedRLSVI(seed=5, bounds="optimistic", repeat=1) for _ in range(2))
    whole.learn(Candy(), episodes=6)
    half.learn(Candy(), episodes=3).save(tmp_path / "half")
    again = rlsvi.load(tmp_path / "half").learn(Candy(), episodes=3)
    assert np.array_equal(whole._learner.theta, again._learner.theta)
    assert np.array_equal(whole._learner.history.transitions.action, again._learner.history.transitions.action)


def test_nothing_is_unknown_where_all_features_are_0():
    basis = bases.StateFeatures(lambda x: np.maximum(x, 0.0))
    ours = BoundedRLSVI(seed=0, basis=basis, bounds="optimistic", repeat=1).learn(Walk(), episodes=3)
    assert np.isfinite(ours._learner.theta).all()


def test_a_file_is_read_whose_features_have_become_fewer_since_the_last_plan(tmp_path):
    ours = agent().learn(Walk(), episodes=3)
    learner = ours._learner
    learner.start, learner.theta = (
        learner.regression.values(learner.theta),
        np.zeros((2, learner.regression.dim + 3)),
    )
    learner.warm, learner.counters[5] = learner.theta, learner.counters[1]
    ours.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    for each in (ours, again):
        each.learn(Walk(), episodes=1)
    assert np.array_equal(ours._learner.theta, again._learner.theta)


def test_bounds_hold_values_that_would_diverge(monkeypatch):
    """Waves without smoothness and a weak prior: a regression that is no contraction."""
    settle(monkeypatch, FEW_SWEEPS=60)
    wild = {"sigma": 0.1, "gamma": 0.999, "lam": 1e-4, "repeat": 1}
    ours = agent(basis=bases.Fourier(order=12, smoothness=0.0), **wild).learn(Walk(), episodes=12)
    assert np.abs(ours._learner.regression.values(ours._learner.theta)).max() < 1e6


class Lock(gymnasium.Env):
    """In each of ten states one action leads on, all others back to the start; only the end is worth anything."""

    action_space, observation_space = Discrete(2), Box(0.0, 9.0, (1,), np.float64)

    def _observe(self):
        return np.array([float(self.at)])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = 0, 0
        return self._observe(), {}

    def step(self, action):
        self.at, self.t = self.at + 1 if action == self.at % 3 % 2 else 0, self.t + 1
        over, self.at = self.at == 10, min(self.at, 9)
        return self._observe(), float(over), over, self.t >= 15, {}


def test_a_lock_is_opened_though_nothing_is_earned_before():
    """Random play opens it about once in 150 episodes, greedy play of what is known so far never."""
    for seed in range(3):
        ours = BoundedRLSVI(seed=seed).learn(Lock(), episodes=60)
        assert rlsvi.evaluate(ours, Lock(), episodes=3).mean == 1


def test_values_that_are_not_finite_are_an_error_and_change_nothing(monkeypatch):
    ours = agent().learn(Walk(), episodes=3)
    monkeypatch.setattr(FeatureRegression, "fit", lambda self, sums: np.full((2, self.dim), np.nan))
    theta, streams = ours._learner.theta.copy(), ours._streams.copy()
    with pytest.raises(FactorError, match="not finite"):
        ours.learn(Walk(), episodes=1)
    assert np.array_equal(ours._learner.theta, theta)
    assert np.array_equal(ours._streams, streams)
    assert ours.episodes == 3


def test_the_values_behind_targets_lie_within_the_bounds_and_rewards_are_kept():
    ours = agent(gamma=0.9, bounds=(5.0, 6.0), sigma=1e-3, lam=1e3).learn(Walk(), episodes=5)
    assert ours.planned.at_bounds == 1.0
    learner = ours._learner
    V, clipped = values_of(learner.history, learner._values(), (5.0, 6.0))
    assert clipped > 0
    assert set(V[:-1]) <= {5.0, 6.0}
    steps = learner.history.transitions
    assert np.allclose(targets(learner.history, V, 0.9) - 0.9 * V[steps.next], steps.reward)


def test_sweeps_stop_when_converged_and_at_the_cap(monkeypatch):
    ours = agent(gamma=0.5).learn(Walk(), episodes=5)
    assert ours.planned.sweeps < 20
    assert ours.planned.change <= 1e-4
    settle(monkeypatch, SWEEPS=7, FEW_SWEEPS=7, TOLERANCE=0.0)
    assert agent().learn(Walk(), episodes=5).planned.sweeps == 7


# ---- memory -----------------------------------------------------------------------------------------------


def test_steps_are_kept_in_order_and_only_the_most_recent_if_asked():
    env = Transitions(Walk())
    ours = agent(repeat=1).learn(env, episodes=9)
    history = ours._learner.history
    assert history.transitions.reward.tolist() == [r for _, _, r, _ in env.rows]
    assert history.last.tolist() == env.ends
    assert np.array_equal(history.x[history.transitions.row], [x for x, _, _, _ in env.rows])
    recent = history.recent(20)
    assert len(recent.last) == 20
    assert np.array_equal(recent.x[recent.transitions.row], history.x[history.transitions.row[-20:]])
    goes_on = recent.transitions.next != END
    old = history.transitions.next[-20:]
    assert np.array_equal(goes_on, old != END)
    assert np.array_equal(recent.x[recent.transitions.next[goes_on]], history.x[old[goes_on]])
    small = agent(repeat=1, memory=30).learn(Walk(), episodes=40)
    assert 30 <= len(small._learner.history.last) <= 1.25 * 30
    kept = small._learner.regression.sums.copy()
    small._learner.build()
    assert np.allclose(small._learner.regression.sums, kept)


class Slow(Walk):
    """A walk of many small steps."""

    def __init__(self):
        super().__init__()
        self.played = []

    def step(self, action):
        self.played.append(action)
        self.x, self.t = self.x + (0.02 if action == 2 else -0.01), self.t + 1
        return self._observe(), -1.0, self.x >= 1, self.t >= 200, {}


def test_actions_are_held_where_observations_change_slowly(tmp_path):
    assert agent().learn(Walk(), episodes=2).held == 1
    ours = agent().learn(env := Slow(), episodes=1)
    assert len(env.played) == ours.steps
    assert ours.held == 4
    env.played = []
    before = ours.steps
    ours.learn(env, episodes=1)
    assert [a for a in env.played[::4] for _ in range(4)][: len(env.played)] == env.played
    assert ours.steps - before == -(-len(env.played) // 4)
    ours.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    assert again.held == 4
    x, state, actions = np.zeros(1), None, []
    for i in range(12):
        action, state = again.predict(x + i / 10, state, deterministic=True)
        actions.append(action)
    assert actions == [a for a in actions[::4] for _ in range(4)]
    assert again.predict(x, state, action_mask=np.array([False, True]))[0] == 2
    assert agent(repeat=1).learn(Slow(), episodes=2).held == 1
    assert agent(repeat=3).held == 3


class Gates(Slow):
    """A slow walk in which the last action is illegal in every seventh step; `wrong` masks have three entries."""

    wrong = False

    def step(self, action):
        *returned, _ = super().step(action)
        return *returned, {"action_mask": self.mask(action)}

    def mask(self, action):
        legal = np.ones(3 if self.wrong else 2, np.bool_)
        legal[int(action) - 1] = self.t % 7 != 0
        return legal


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0.5),
        ({"basis": bases.Waves(features=5)}, 0.8),
        ({"basis": bases.Waves(features=5), "repeat": 4}, 0.5),
    ],
)
def test_returns_are_followed_for_longer_with_waves_unless_actions_are_held(options, expected):
    ours = agent(**{"repeat": 1} | options).learn(Walk(), episodes=1)
    assert ours._learner.trace == expected


def test_prediction_decides_when_learning_does(monkeypatch):
    ours, env, decided = agent(repeat=4).learn(Gates(), episodes=2), Gates(), []
    values = BoundedLearner.values
    monkeypatch.setattr(BoundedLearner, "values", lambda *a: decided.append(env.t) or values(*a))
    ours.learn(env, episodes=1)
    assert decided[:5] == [0, 4, 7, 11, 14]
    learned, decided[:] = decided.copy(), []
    (observation, info), state, over = env.reset(seed=0), None, False
    while not over:
        mask = info.get("action_mask")
        action, state = ours.predict(observation, state, deterministic=True, action_mask=mask)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    both = min(len(learned), len(decided))
    assert both > 5
    assert decided[:both] == learned[:both]


def test_a_wrong_mask_while_an_action_is_held_is_refused_clearly():
    env = Gates()
    ours = agent(repeat=4).learn(env, episodes=1)
    env.wrong = True
    with pytest.raises(ValueError, match=r"action_mask must have shape \(2,\), got \(3,\)"):
        ours.learn(env, episodes=1)
    env.mask = lambda action: np.zeros(0, np.bool_)
    with pytest.raises(ValueError, match=r"action_mask must have shape \(2,\), got \(0,\)"):
        ours.learn(env, episodes=1)
    _, state = ours.predict(np.zeros(1))
    with pytest.raises(ValueError, match=r"action_mask must have shape \(2,\)"):
        ours.predict(np.zeros(1), state, action_mask=np.ones(3))
    assert ours.episodes == 1


def test_more_features_than_memory_are_refused_before_the_first_step(monkeypatch):
    class Many(gymnasium.Env):
        observation_space, action_space = Box(-1, 1, (9,)), Discrete(500)

        def reset(self, *, seed=None, options=None):
            return np.zeros(9), {}

    needed = 8 * 4 * 500 * 410**2  # 1 + 9 + 400 waves
    monkeypatch.setattr("rlsvi.core.checks.memory", lambda: needed - 1)
    message = r"410 features of 500 actions take 2\.69 GB.*fewer features.*TransformAction"
    with pytest.raises(ValueError, match=message):
        agent_for(Many(), seed=0)
    with pytest.raises(ValueError, match=message):
        BoundedRLSVI(seed=0).learn(Many(), episodes=1)
    monkeypatch.setattr("rlsvi.core.checks.memory", lambda: needed)
    assert agent_for(Many(), seed=0).steps == 0


def test_plans_are_made_when_the_data_have_grown_by_a_share(monkeypatch):
    monkeypatch.setattr("rlsvi.agents.practice.bounded_rlsvi.STEPS_PLANNED_ALWAYS", 40)
    ours, plans = agent(repeat=1).learn(Walk(), episodes=8), []
    for _ in range(60):
        ours.learn(Walk(), episodes=1)
        plans.append(ours.planned)
    made = len({id(plan) for plan in plans})
    assert 10 < made < 40


@pytest.mark.parametrize(
    ("returns", "says"),
    [
        ([-1.0] * 8 + [-2.0] * 56, "earn -2.*repeat="),
        ([-2.0] * 8 + [5.0] * 24 + [-1.0] * 32, r"earn -1 on average, where earlier ones earned 5: .*repeat="),
    ],
)
def test_a_run_whose_returns_fall_says_so(returns, says):
    history = EpisodeHistory(1, 2)
    for i, reward in enumerate(returns):
        row = history.row(np.array([float(i)]), np.array([True, True]))
        history.add(row, 0, reward, END)
    assert history.returns().tolist() == returns
    ours = agent().learn(Walk(), episodes=1)
    ours._learner.history, ours._learner.counters[0] = history, 64
    with pytest.warns(NoProgressWarning, match=says):
        ours._notice()
    ours._learner.counters[0] = 63
    ours._notice()


def test_waves_follow_the_spread_of_the_data_and_a_length_that_predicts():
    space = Box(-np.inf, np.inf, (6,), np.float64)

    class Six(Walk):
        observation_space = space

        def _observe(self):
            return np.array([self.x, 1e6, self.t, self.x**2, -self.x, 1e-3 * self.x])

    env = Six()
    env.observation_space = space
    ours = BoundedRLSVI(seed=0, repeat=1, basis=bases.Waves()).learn(env, episodes=12)
    learner = ours._learner
    assert ours.rescalings >= 2
    x = learner.history.x[: 1 + learner.history.transitions.row[learner.counters[5] - 1]]
    z = 12 * scaled(learner.lookup.ranges, x) - 6
    assert np.allclose(z[:, [0, 2, 3, 4, 5]].std(axis=0), 1, atol=0.1)
    assert np.allclose(z[:, 1], 0)
    assert 6 / 16 <= learner.lookup.functions.length <= 6


def test_long_episodes_are_learned_from_before_they_end(monkeypatch):
    one = agent().learn(Walk(), episodes=2)
    monkeypatch.setattr(BoundedRLSVI, "update_every", 4)
    many = agent().learn(Walk(), episodes=2)
    assert many.steps == len(many._learner.history.transitions.row)
    assert many._learner.theta is not None
    assert not np.array_equal(one._streams, many._streams)  # it drew anew within an episode


# ---- verbs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vector", "dict", "waves"])
def test_saving_in_between_changes_nothing(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(BoundedRLSVI, "update_every", 5)
    waves = {"basis": bases.Waves(features=70), "memory": 40} if kind == "waves" else {}
    kind = "vector" if kind == "waves" else kind
    whole = BoundedRLSVI(seed=5, **waves).learn(Walk(kind), episodes=6)
    half = BoundedRLSVI(seed=5, **waves).learn(Walk(kind), episodes=2)
    half.save(tmp_path / "half")
    rest = rlsvi.load(tmp_path / "half").learn(Walk(kind), episodes=4)
    assert rest.rescalings == whole.rescalings
    assert (rest.steps, rest.episodes) == (whole.steps, whole.episodes)
    assert np.array_equal(rest._streams, whole._streams)
    assert np.array_equal(rest._learner.theta, whole._learner.theta)
    assert np.array_equal(rest._learner.history.x, whole._learner.history.x)


def test_a_basis_that_is_code_is_given_on_loading(tmp_path):
    basis = bases.StateFeatures(lambda x: np.array([1.0, x[0], x[0] ** 2]))
    ours = agent(basis=basis).learn(Walk(), episodes=3)
    ours.save(tmp_path / "agent")
    with pytest.raises(ArchiveError, match="pass it as load"):
        rlsvi.load(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent", basis=basis)
    x = np.array([0.2])
    assert again.predict(x, deterministic=True) == ours.predict(x, deterministic=True)


def test_a_damaged_file_is_refused(tmp_path):
    agent().learn(Walk(), episodes=2).save(tmp_path / "agent")
    header, arrays = read(tmp_path / "agent")
    for name, change in (
        ("history.next", lambda a: a + 1000),
        ("history.x", lambda a: a * np.nan),
        ("history.last", lambda a: a[1:]),
        ("history.legal", lambda a: ~a),
        ("sums", lambda a: a * 2),
        ("theta", lambda a: a[:, :0].T),
        ("ranges.low", lambda a: a[:0]),
    ):
        write(tmp_path / "broken", header, {**arrays, name: change(arrays[name])})
        with pytest.raises(ArchiveError, match=r"damaged|not a saved agent"):
            rlsvi.load(tmp_path / "broken")


def test_observations_that_make_too_many_features_are_refused_before_anything_is_played():
    env = Walk()
    env.observation_space = Box(-1.0, 1.0, (3000,), np.float64)
    env._observe = lambda: np.zeros(3000)
    BoundedRLSVI(seed=0).learn(env, episodes=1)  # waves take any number of numbers
    env.step = None
    with pytest.raises(ValueError, match=r"3000 numbers need 3001 Fourier features.*ResizeObservation.*basis="):
        BoundedRLSVI(seed=0, basis=bases.Fourier()).learn(env, episodes=1)
    with pytest.raises(ValueError, match=r"take 20001 values.*StateFeatures"):
        bases.of(Dict({"a": Discrete(20_000), "b": Box(0.0, 1.0, (1,)), "c": Discrete(1)})).bind(
            None, 2, 1, {"a": 3, "b": np.zeros(1), "c": 0}
        )
    assert is_table(layout_of(Discrete(10**9)))
    with pytest.raises(TypeError, match="basis must be"):
        BoundedRLSVI(basis=bases.Fourier)


def test_predict_draws_once_an_episode():
    ours = agent().learn(Walk(), episodes=4)
    ours.predict(np.zeros(1))
    (drawn,) = ours._drawn.values()
    assert ours.predict(np.zeros(1), state=1)[1] == 2
    assert [*ours._drawn.values()] == [drawn]
    ours.predict(np.zeros(1))
    (anew,) = ours._drawn.values()
    assert anew is not drawn


@pytest.mark.parametrize(
    ("basis", "make"), [(None, "FrozenLake-v1"), (None, "Blackjack-v1"), (bases.Tabular(), "FrozenLake-v1")]
)
def test_what_a_table_learns_is_refused_with_a_remedy(basis, make):
    env = gymnasium.make(make)
    log = rlsvi.record(env, None, 3, seed=0)
    for learn in (lambda it: it.learn(env, 1), lambda it: it.fit(log, env), lambda it: it.fit(log, env, chunk=9)):
        with pytest.raises(ValueError, match=r"use rlsvi.DiscountedPSRL\(\) or rlsvi.agent_for\(env\)"):
            learn(BoundedRLSVI(basis=basis))


def test_what_cannot_be_served_is_said_with_a_remedy():
    with pytest.raises(TypeError, match="Fourier"):
        BoundedRLSVI(basis=3)
    with pytest.raises(ValueError, match=r"is Sequence.*TransformObservation"):
        agent_for(Walk("sequence"), sigma=1.0)
    with pytest.raises(ValueError, match=r"one block of weights per action.*StateFeatures"):
        agent(basis=bases.ActionFeatures(lambda x, a: np.ones(2))).learn(Walk(), episodes=1)
    with pytest.raises(ValueError, match="clone"):
        agent().learn(Walk(), episodes=1).learn(Walk("bounded"), episodes=1)
    with pytest.raises(FactorError, match="larger lam"):
        agent(basis=bases.StateFeatures(lambda x: np.full(3, 1e9)), lam=1e-9).learn(Walk(), episodes=3)


@pytest.mark.slow
def test_cart_pole_is_learned_in_a_few_episodes():
    """By the middle of five seeds: which of them need more episodes depends on how a machine rounds."""
    env = gymnasium.make("CartPole-v1")
    agents = [agent_for(env, seed=seed).learn(env, episodes=20) for seed in range(1, 6)]
    assert sorted(rlsvi.evaluate(it, env, episodes=5).mean for it in agents)[2] >= 475
