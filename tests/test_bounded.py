"""BoundedRLSVI: against plain NumPy on raw transitions, its memory, saving, and what it refuses."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text

import rlsvi
from rlsvi import BoundedRLSVI, InverseGamma, agent_for, bases
from rlsvi.agents import archive
from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.history import END, History
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal
from rlsvi.core.regression import FactorError

POSTERIOR, ACTION, EPISODE, PREDICT = range(4)


class Walk(gymnasium.Env):
    """A noisy walk on a line that ends at 3 and is cut off after twelve steps; nobody says where it may lead."""

    def __init__(self, kind="vector", fault=None):
        self.kind, self.fault = kind, fault
        self.action_space = Discrete(2, start=1)
        self.observation_space = {
            "vector": Box(-np.inf, np.inf, (1,), np.float64),
            "bounded": Box(-20.0, 4.0, (1,), np.float64),
            "number": Discrete(30, start=-20),
            "dict": Dict({"x": Box(-np.inf, np.inf, (1,), np.float64), "odd": Discrete(2)}),
            "text": Text(5),
        }[kind]

    def _observe(self):
        if self.kind == "number":
            return round(self.x)
        x = np.array([np.nan if self.fault == "nan" and self.t == 3 else self.x])
        return {"x": x, "odd": self.t % 2} if self.kind == "dict" else x

    def _info(self):
        return {"action_mask": np.array([self.x > -2, True])} if self.kind == "number" else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0.0, 0
        return self._observe(), self._info()

    def step(self, action):
        if self.fault == "cable" and self.t == 2:
            raise OSError("the cable is out")
        noise = self.np_random.integers(2) if self.kind == "number" else self.np_random.normal(0, 0.3)
        self.x, self.t = float(self.x + (1 if action == 2 else -1) * (1 + noise) / 2), self.t + 1
        if self.kind == "number":
            self.x = float(round(self.x))
        return self._observe(), -1.0 + 0.1 * action, self.x >= 3, self.t >= 12, self._info()


def agent(**changes):
    return BoundedRLSVI(**{"seed": 3, "basis": bases.Fourier(order=3), "regressions": 7, **changes})


class Recorded(gymnasium.Wrapper):
    """Keeps raw transitions."""

    def __init__(self, env):
        super().__init__(env)
        self.rows = []

    def reset(self, **options):
        self.seen, info = self.env.reset(**options)
        return self.seen, info

    def step(self, action):
        before = self.seen
        self.seen, reward, terminated, truncated, info = self.env.step(action)
        self.rows.append((before, action - 1, reward, None if terminated else self.seen))
        return self.seen, reward, terminated, truncated, info


# ---- the regression ---------------------------------------------------------------------------------------


def twin(rows, phi, Q, sigma, alike, lam, gamma, stream, sweeps, bounds):
    """The sweeps on raw transitions, in plain NumPy; Q(x) gives the values before. The last weights (A, d)."""
    d, A = len(phi(rows[0][0])), 2
    X = np.zeros((len(rows), A * d))
    for i, (x, a, _, _) in enumerate(rows):
        X[i, a * d : (a + 1) * d] = phi(x)
    known = not isinstance(sigma, InverseGamma)
    ridge = lam * sigma**2 if known else lam
    K = np.kron(np.linalg.inv(np.full((A, A), alike) + (1 - alike) * np.eye(A)), np.eye(d)) * ridge
    P = K + X.T @ X
    variate = 1.0 if known else gamma_variate(stream, sigma.shape + len(rows) / 2)
    z = np.array([normal(stream) for _ in range(A * d)])
    shift = np.linalg.solve(np.linalg.cholesky(P).T, z)
    for _ in range(sweeps):
        b = np.array([r + (0 if y is None else gamma * Q(y).max()) for _, _, r, y in rows])
        b = np.clip(b, *bounds)
        m = np.linalg.solve(P, X.T @ b)
        if known:
            spread = sigma
        else:
            spread = np.sqrt((sigma.scale + 0.5 * (((b - X @ m) ** 2).sum() + m @ K @ m)) / variate)
        theta = (m + spread * shift).reshape(A, d)

        def Q(x, theta=theta):
            return theta @ phi(x)

    return theta


@pytest.mark.parametrize("sigma", [0.5, InverseGamma(2.0, 1.0)])
@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_an_episode_acts_on_the_sample_that_plain_numpy_gives(sigma, alike):
    """With every step the transitions differ, ranges grow, and the sample is still that of the batch."""
    env, ours = Recorded(Walk()), agent(sigma=sigma, alike=alike, lam=0.3, gamma=0.9, tolerance=0.0)
    ours.learn(env, episodes=4)
    before = ours._learner.rescalings
    rows, learner, stream = list(env.rows), ours._learner, ours._streams[POSTERIOR].copy()
    assert before >= 1
    start = {x.tobytes(): q for x, q in zip(learner.history.x, learner.Q, strict=True)}
    low, high = learner.lookup.ranges.low[0], learner.lookup.ranges.high[0]
    assert low < min(r[0][0] for r in rows) < max(r[0][0] for r in rows) < high

    def phi(x):
        scaled = min(max((x[0] - low) / (high - low), 0), 1)
        return np.array([np.cos(np.pi * c * scaled) / max(c, 1) ** bases.Fourier().smoothness for c in range(4)])

    expected = twin(rows, phi, lambda x: start[x.tobytes()], sigma, alike, 0.3, 0.9, stream, 7, (-0.9 / 0.1, -0.8))
    ours._plan_episode(learner)
    assert np.allclose(learner.theta, expected, rtol=1e-8, atol=1e-8)


def test_a_table_is_the_posterior_of_every_cell():
    env, ours = Recorded(Walk("number")), BoundedRLSVI(seed=1, sigma=0.5, lam=2.0, gamma=0.8, regressions=400)
    ours.learn(env, episodes=30)
    x, gamma, ridge = -1, 0.8, 2.0 * 0.5**2
    Q = {}
    for _ in range(300):
        sums, counts = {}, {}
        for s, a, r, y in env.rows:
            best = 0.0
            if y is not None:
                best = max(Q.get((y, a2), 0.0) for a2 in ((0, 1) if y > -2 else (1,)))
            sums[s, a] = sums.get((s, a), 0.0) + r + gamma * best
            counts[s, a] = counts.get((s, a), 0) + 1
        Q = {key: sums[key] / (ridge + counts[key]) for key in sums}
    theta = ours._learner.plan(ours._noise, "attainable", None, 400, 1e-13).theta
    history = ours._learner.history
    for (s, a), q in Q.items():
        assert theta[a, history.find(np.array([s + 20.0]))] == pytest.approx(q, abs=1e-9)
    assert x + 20 in history.x
    assert len(history.transitions.row) < len(env.rows)
    assert history.transitions.times.sum() == len(env.rows)
    assert ours.predict(-2, deterministic=True)[0] == 2  # the only legal action, known from learning


def test_targets_lie_within_the_bounds():
    ours = agent(gamma=0.9, bounds=(-0.5, 0.5), sigma=1e-3, lam=1e-3, alike=0.0).learn(Walk(), episodes=5)
    assert ours.planned.at_bounds > 0.5
    assert np.abs(ours._learner.plan(ours._noise, (-0.5, 0.5), None, 50, 1e-6).Q).max() < 1.0


def test_sweeps_stop_when_converged_and_at_the_cap():
    ours = agent(gamma=0.5, tolerance=1e-3, regressions=100).learn(Walk(), episodes=5)
    assert ours.planned.sweeps < 100
    assert ours.planned.change <= 1e-3
    assert agent(tolerance=0.0).learn(Walk(), episodes=5).planned.sweeps == 7


# ---- memory -----------------------------------------------------------------------------------------------


def test_what_repeats_is_counted():
    history, legal = History(1, 2), np.array([True, False])
    for i in range(200):
        row = history.row(np.array([i % 3.0]), legal)
        assert row == i % 3
        history.add(row, 0, 1.0, END)
    assert history.x.ravel().tolist() == [0.0, 1.0, 2.0]
    assert history.transitions.times.tolist() == [67.0, 67.0, 66.0]
    history.row(np.array([0.0]), ~legal)
    assert history.legal.tolist() == [[True, True], [True, False], [True, False]]
    for i in range(500):
        history.add(history.row(np.array([10.0 + i]), legal), 0, 1.0, 0)
    assert history.x[-1, 0] == 509
    assert len(history.transitions.row) == 503


def test_long_episodes_are_learned_from_before_they_end():
    one, many = (agent(update_every=n).learn(Walk(), episodes=2) for n in (None, 4))
    assert many.steps == many._learner.history.transitions.times.sum()
    assert many._learner.theta is not None
    assert not np.array_equal(one._streams, many._streams)  # it drew anew within an episode


# ---- verbs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vector", "number", "dict"])
def test_saving_in_between_changes_nothing(tmp_path, kind):
    whole = BoundedRLSVI(seed=5, update_every=5).learn(Walk(kind), episodes=6)
    half = BoundedRLSVI(seed=5, update_every=5).learn(Walk(kind), episodes=2)
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
    header, arrays = archive.read(tmp_path / "agent")
    for name, change in (
        ("history.next", lambda a: a + 1000),
        ("history.x", lambda a: a * np.nan),
        ("Q", lambda a: a[1:]),
        ("design", lambda a: a * 2),
        ("theta", lambda a: a[:, :0].T),
        ("ranges.low", lambda a: a[:0]),
    ):
        broken = {**arrays, name: change(arrays[name])}
        archive.write(tmp_path / "broken", {k: v for k, v in header.items() if k != "format"}, broken)
        with pytest.raises(ArchiveError, match=r"damaged|not a saved agent"):
            rlsvi.load(tmp_path / "broken")


@pytest.mark.parametrize(("fault", "error"), [("nan", ValueError), ("cable", OSError)])
def test_what_was_learned_before_a_failure_is_kept_and_can_be_saved(tmp_path, fault, error):
    ours = agent().learn(Walk(), episodes=3)
    streams, steps = ours._streams.copy(), ours.steps
    with pytest.raises(error, match=r"NaN|cable"):
        ours.learn(Walk(fault=fault), episodes=1)
    assert np.array_equal(ours._streams, streams)
    assert (ours.episodes, ours.steps) == (3, steps)
    ours.save(tmp_path / "agent")
    same = agent().learn(Walk(), episodes=4)
    assert np.array_equal(
        rlsvi.load(tmp_path / "agent").learn(Walk(), episodes=1)._learner.theta, same._learner.theta
    )


def test_a_failure_in_the_first_episode_leaves_a_fresh_agent():
    ours = agent()
    with pytest.raises(OSError, match="cable"):
        ours.learn(Walk(fault="cable"), episodes=1)
    with pytest.raises(RuntimeError, match="learned nothing"):
        ours.predict(np.zeros(1))
    assert np.array_equal(ours.learn(Walk(), episodes=2)._streams, agent().learn(Walk(), episodes=2)._streams)


def test_predict_draws_once_an_episode():
    ours = agent().learn(Walk(), episodes=4)
    ours.predict(np.zeros(1))
    drawn = ours._drawn
    assert ours.predict(np.zeros(1), state=1)[1] == 2
    assert ours._drawn is drawn
    ours.predict(np.zeros(1))
    assert ours._drawn is not drawn
    with pytest.raises(ValueError, match="start a new episode"):
        ours.predict(np.zeros(1), state=-1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": 1.5}, "gamma"),
        ({"alike": 1.0}, "alike"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"bounds": "none"}, "bounds"),
        ({"bounds": (1.0, 0.0)}, "lower one first"),
        ({"regressions": 0}, "regressions"),
        ({"update_every": 0}, "update_every"),
        ({"lam": 0.0}, "lam"),
        ({"prior_mean": np.zeros(3)}, "prior_mean"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        BoundedRLSVI(**arguments)


def test_what_cannot_be_served_is_said_with_a_remedy():
    with pytest.raises(TypeError, match="Fourier"):
        BoundedRLSVI(basis=3)
    with pytest.raises(ValueError, match="wrap the environment"):
        agent_for(Walk("text"))
    with pytest.raises(ValueError, match="only Discrete actions"):
        agent_for(gymnasium.make("Pendulum-v1"))
    with pytest.raises(ValueError, match=r"one block of weights an action.*StateFeatures"):
        agent(basis=bases.ActionFeatures(lambda x, a: np.ones(2))).learn(Walk(), episodes=1)
    with pytest.raises(ValueError, match="clone"):
        agent().learn(Walk(), episodes=1).learn(Walk("bounded"), episodes=1)
    with pytest.raises(FactorError, match="larger lam"):
        agent(basis=bases.StateFeatures(lambda x: np.full(3, 1e9)), lam=1e-9).learn(Walk(), episodes=3)


def test_the_agent_for_an_environment():
    assert isinstance(agent_for(gymnasium.make("rlsvi/Chain-v0", length=5)), rlsvi.RLSVI)
    made = agent_for(gymnasium.make("CartPole-v1"), seed=7)
    assert isinstance(made, BoundedRLSVI)
    assert made.seed == 7
    assert isinstance(agent_for(gymnasium.make("FrozenLake-v1")), BoundedRLSVI)


def test_cart_pole_is_learned_in_a_few_episodes():
    env = gymnasium.make("CartPole-v1")
    ours = agent_for(env, seed=2).learn(env, episodes=20)
    total = 0.0
    for i in range(5):
        observation, _ = env.reset(seed=1000 + i)
        done = False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(
                ours.predict(observation, deterministic=True)[0]
            )
            total, done = total + reward, terminated or truncated
    assert total / 5 >= 475
