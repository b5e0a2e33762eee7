"""Actions of more combinations than can be listed: values are sums over the parts of an action."""

from itertools import product

import gymnasium as gym
import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text

import rlsvi
from rlsvi.agents.practice.features import Sample, errors_of, weights
from rlsvi.agents.practice.parts import PartsRegression, blocks_of, codes_of
from rlsvi.agents.practice.regression import FeatureRegression, best_values
from rlsvi.core.archive import ArchiveError
from rlsvi.envs.actions import Parts, choices_of, starts_of
from rlsvi.envs.task import Task

SWITCHES = 11


class Match(gym.Env):
    """The reward is the share of the parts that are as a linear rule of two random numbers says."""

    def __init__(self, actions=None, observations=None, steps=10, mask=None):
        self.action_space = actions or MultiBinary(SWITCHES)
        self.observation_space = observations or Box(-1.0, 1.0, (2,), np.float64)
        self.rule = np.random.default_rng(0).normal(size=(int(np.prod(self.action_space.shape)), 2))
        self.length, self.info, self.taken = steps, {} if mask is None else {"action_mask": mask}, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.x = 0, self.np_random.uniform(-1, 1, 2)
        return self.look(), self.info

    def look(self):
        if isinstance(self.observation_space, Discrete):
            return int(self.x[0] > 0)
        if isinstance(self.observation_space, Dict):
            return {"numbers": self.x.copy(), "word": "up" if self.x[0] > 0 else "down"}
        return self.x.copy()

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(action.copy())
        least = getattr(self.action_space, "start", 0)
        right = (self.rule @ self.x > 0) == ((action - least).ravel() > 0)
        self.t, self.x = self.t + 1, self.np_random.uniform(-1, 1, 2)
        return self.look(), float(right.mean()), False, self.t == self.length, self.info


def small(seed=0, **given):
    """An agent of few features."""
    return rlsvi.BoundedRLSVI(seed=seed, gamma=0.5, basis=rlsvi.bases.Fourier(order=1), **given)


def data(parts, n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    action = np.stack(
        [start + rng.integers(k, size=n) for start, k in zip(starts_of(parts), parts, strict=True)], axis=1
    )
    return rng.normal(size=(n, d)), action, rng.normal(size=n)


def regression(parts, phi, action, ridge=0.3):
    made = PartsRegression(parts, phi.shape[1])
    made.extend(phi)
    half = len(phi) // 2
    for its in (np.arange(half), np.arange(half, len(phi))):
        made.add(its, action[its], np.ones(len(its)))
    made.factor(ridge)
    return made


def sums_of(action, b, P):
    sums = np.zeros((len(b), P))
    np.put_along_axis(sums, action, b[:, None], axis=1)
    return sums


# ---- The regression -----------------------------------------------------------------------------------------


def dense(parts, phi, action, b, alike, ridge):
    """The slow twin: the posterior of u and all v_p(j), each with a block of weights of its own."""
    (n, d), k, P = phi.shape, len(parts), sum(parts)
    design = np.zeros((n, (1 + P) * d))
    for i in range(n):
        design[i, :d] = phi[i]
        for j in action[i]:
            design[i, (1 + j) * d : (2 + j) * d] += phi[i]
    precision = np.concatenate([np.full(d, ridge / alike), np.full(P * d, ridge * k / (1 - alike))])
    covariance = np.linalg.inv(design.T @ design + np.diag(precision))
    return covariance @ design.T @ b, covariance


def combined(parts, phi):
    """The design of phi for all combinations of the twin."""
    d, starts = len(phi), starts_of(parts)
    rows = []
    for values in product(*map(range, parts)):
        row = np.zeros((1 + sum(parts), d))
        row[0] = phi
        row[1 + starts + np.array(values)] = phi
        rows.append(row.ravel())
    return np.array(rows)


@pytest.mark.parametrize("parts", [(2, 2, 2), (3, 2), (1, 4), (5,)])
@pytest.mark.parametrize("alike", [0.2, 0.5])
def test_posterior_of_all_combinations_is_that_of_the_twin(parts, alike, monkeypatch):
    monkeypatch.setattr("rlsvi.agents.practice.parts.ALIKE", alike)
    phi, action, b = data(parts)
    made = regression(parts, phi, action, ridge=0.3)
    theta = made.fit(sums_of(action, b, sum(parts)))
    slow, covariance = dense(parts, phi, action, b, alike, 0.3)
    X = combined(parts, np.array([0.3, -1.0, 2.0]))
    starts = starts_of(parts)
    chosen = [starts + np.array(values) for values in product(*map(range, parts))]
    Q = theta @ np.array([0.3, -1.0, 2.0])
    assert np.allclose([Q[its].sum() for its in chosen], X @ slow)
    drawn = np.array([made.shape(z) for z in np.eye(np.prod(made.drawn)).reshape(-1, *made.drawn)])  # of L^-T
    root = np.array([(drawn @ np.array([0.3, -1.0, 2.0]))[:, its].sum(axis=1) for its in chosen])
    assert np.allclose(root @ root.T, X @ covariance @ X.T)


def test_one_part_is_the_regression_of_actions():
    phi, action, b = data((4,))
    made = regression((4,), phi, action)
    other = FeatureRegression(4, 3)
    other.extend(phi)
    other.add(np.arange(40), action[:, 0], np.ones(40))
    other.factor(0.3)
    sums = sums_of(action, b, 4)
    assert np.allclose(made.fit(sums), other.fit(sums))
    away = np.random.default_rng(1).normal(size=(4, 3))
    assert made.penalty(away) == pytest.approx(other.penalty(away))
    assert np.allclose(made.values(away), other.values(away))


def test_penalty_is_that_of_the_most_probable_weights_of_the_twin():
    parts, ridge = (2, 3), 0.3
    away = codes_of(parts) @ np.random.default_rng(0).normal(size=(blocks_of(parts), 1))
    phi, action, _ = data(parts, d=1)
    made = regression(parts, phi, action, ridge)
    A = combined(parts, np.ones(1))  # w(a) of all actions, by u and v
    w = np.array([away[starts_of(parts) + np.array(v)].sum() for v in product(*map(range, parts))])
    scale = np.array([0.5, *[0.25] * 5]) / ridge
    least = np.linalg.pinv(A * np.sqrt(scale)) @ w  # of least length
    assert made.penalty(away) == pytest.approx(float(least @ least))


def test_codes():
    for parts in ((2, 2), (3, 1, 4)):
        codes, k = codes_of(parts), len(parts)
        assert codes.shape == (sum(parts), blocks_of(parts))
        assert np.allclose(codes[:, 1:].T @ codes[:, 1:], np.eye(blocks_of(parts) - 1))
        assert np.allclose(np.add.reduceat(codes[:, 1:], starts_of(parts)), 0)
        assert (codes[:, 0] == 1 / k).all()


def test_best_value_is_the_maximum_over_all_combinations():
    parts = (2, 3, 2)
    rng = np.random.default_rng(0)
    Q, legal = rng.normal(size=(20, 7)), rng.random((20, 7)) < 0.7
    legal[:, starts_of(parts)] = True
    for mask in (legal, np.ones_like(legal)):
        slow = [
            max(
                q[its].sum()
                for its in (starts_of(parts) + np.array(v) for v in product(*map(range, parts)))
                if ok[its].all()
            )
            for q, ok in zip(Q, mask, strict=True)
        ]
        assert np.allclose(best_values(Q, mask, parts), slow)


def test_predictions_of_held_out_steps():
    parts = (2, 3)
    phi, action, b = data(parts)
    sample, known = Sample(phi, action, np.arange(40), b), np.arange(40) < 30
    theta = weights(phi, 5, sample, known, 0.3, parts)
    slow, _ = dense(parts, phi[known], action[known], b[known], 0.5, 0.3)
    slow = slow.reshape(6, 3)
    predicted = [x @ (slow[0] + slow[1 + its].sum(axis=0)) for x, its in zip(phi, action, strict=True)]
    assert np.allclose(errors_of(phi, theta, sample), (b - predicted) ** 2)


# ---- Spaces -------------------------------------------------------------------------------------------------


def test_numbers_of_values():
    space = MultiDiscrete([[11, 10], [3, 4]], start=[[0, -5], [7, 0]])
    parts = choices_of(space)
    assert parts == Parts("int64", (2, 2), (11, 10, 3, 4), (0, -5, 7, 0))
    action = np.array([[10, -5], [8, 3]])
    assert parts.number(action).tolist() == [10, 11, 22, 27]
    assert np.array_equal(parts.action(parts.number(action)), action)
    assert parts.action([0, 11, 21, 24]).dtype == space.dtype
    for _ in range(20):
        drawn = space.sample()
        assert np.array_equal(parts.action(parts.number(drawn)), drawn)
    for wrong in ([[11, 0], [7, 0]], [[0, 0], [6, 0]], [[0.5, 0], [7, 0]], [0, 0], "up", [[np.nan, 0], [7, 0]]):
        with pytest.raises(ValueError, match="is not an action of shape"):
            parts.number(wrong)
    assert choices_of(MultiBinary(64)).counts == (2,) * 64
    assert not isinstance(choices_of(MultiDiscrete([10, 10, 10])), Parts)


def test_files_of_tasks():
    task = Task(0, 22, None, 0, 0, choices_of(MultiBinary(SWITCHES)))
    plain = [0, 22, None, 0, 0, ["int8", [11], [2] * 11, [0] * 11]]
    assert Task.read(plain) == task
    assert "22 values of 11 parts of actions" in str(task)
    for wrong in (
        ["int8", [11], [2] * 10, [0] * 11],
        ["int8", [11], [2] * 11, [0] * 10],
        ["int8", [12], [2] * 11, [0] * 11],
        ["float32", [11], [2] * 11, [0] * 11],
        ["int8", [11], [2] * 10 + [3], [0] * 11],
        ["int8", [11], [2] * 10 + [0.5], [0] * 11],
    ):
        with pytest.raises((ValueError, TypeError)):
            Task.read([0, 22, None, 0, 0, wrong])


# ---- Agents -------------------------------------------------------------------------------------------------


def test_agent_learns_and_acts_in_the_space():
    env = Match()
    agent = rlsvi.agent_for(env, seed=0)
    assert isinstance(agent, rlsvi.BoundedRLSVI)
    agent = small().learn(env, 20)
    x = np.random.default_rng(0).uniform(-1, 1, (9, 2))
    actions, states = agent.predict(x, deterministic=True)
    assert actions.shape == (9, SWITCHES)
    assert actions.dtype == env.action_space.dtype
    assert states.tolist() == [1] * 9
    alone = [agent.predict(row, deterministic=True)[0] for row in x]
    assert all(env.action_space.contains(action) for action in alone)
    assert np.array_equal(actions, alone)
    assert agent.predict(x[:0])[0].shape == (0, SWITCHES)
    chance = rlsvi.record(env, None, 20)["reward"].mean()
    assert rlsvi.evaluate(agent, env, 10).mean / 10 > chance + 0.25


def test_greedy_action_is_the_best_of_all_combinations():
    env = Match(MultiDiscrete([40, 5, 6]), steps=5)
    agent = small().learn(env, 3)
    plan, place = agent._plan(True), agent._learner.look(0, np.array([0.2, -0.5]), None)
    Q, starts = agent._learner.values(plan, place), starts_of((40, 5, 6))
    best = max(product(range(40), range(5), range(6)), key=lambda v: Q[starts + np.array(v)].sum())
    assert agent.predict(np.array([0.2, -0.5]), deterministic=True)[0].tolist() == list(best)


@pytest.mark.parametrize(
    ("actions", "observations", "given"),
    [
        (MultiBinary(64), None, {"basis": rlsvi.bases.Fourier(order=1)}),
        (MultiBinary((2, 6)), Discrete(2), {}),
        (
            MultiDiscrete([40, 5, 6], start=[3, -1, 0]),
            Dict(numbers=Box(-np.inf, np.inf, (2,), np.float64), word=Text(9)),
            {"basis": rlsvi.bases.Fourier(order=1)},
        ),
    ],
)
def test_files_continue_with_the_same_bits(actions, observations, given, tmp_path):
    first, second = Match(actions, observations, steps=5), Match(actions, observations, steps=5)
    agent = rlsvi.agent_for(first, seed=1, **given).learn(first, 3)
    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    assert again._task == agent._task
    assert agent._learner.state().keys() == again._learner.state().keys()
    first.taken.clear()
    agent.learn(first, 2)
    again.learn(second, 2)
    assert len(first.taken) == 10
    assert np.array_equal(first.taken, second.taken)
    whole = rlsvi.agent_for(first, seed=1, **given).learn(Match(actions, observations, steps=5), 5)
    for name, array in agent._learner.state().items():
        assert np.array_equal(array, again._learner.state()[name], equal_nan=True), name
        assert np.array_equal(array, whole._learner.state()[name], equal_nan=True), name


def test_damaged_files_are_refused(tmp_path):
    agent = small().learn(Match(), 2)
    file = tmp_path / "agent"
    action = agent._learner.history._columns.action
    kept = action[0].copy()
    action[0, 0] = kept[1]
    agent.save(file)
    with pytest.raises(ArchiveError, match="value of another part"):
        rlsvi.load(file)
    action[0] = kept
    agent._learner.regression.sums[0, 0, 0, 0] += 1.0
    agent.save(file)
    with pytest.raises(ArchiveError, match="sums do not fit"):
        rlsvi.load(file)


def test_a_log_of_learning_makes_an_equal_agent(tmp_path):
    agent = small(3)
    log = rlsvi.record(Match(), agent, 4, learning=True, path=tmp_path / "log.parquet")
    assert len(log["action"][0]) == SWITCHES
    fitted = small(3).fit(tmp_path / "log.parquet", Match())
    first, second = Match(), Match()
    agent.learn(first, 2)
    fitted.learn(second, 2)
    assert np.array_equal(first.taken, second.taken)
    assert small(3).fit(log, rlsvi.envs.Spaces(first.observation_space, first.action_space)).steps == 40


def test_logs_of_other_policies():
    env = Match()
    log = rlsvi.record(env, None, 2)
    assert log["propensity"].to_list() == [2.0**-SWITCHES] * 20
    agent = small().fit(log, env)
    mixed = rlsvi.record(env, agent, 5, epsilon=0.5)
    chances = np.unique(mixed["propensity"].to_numpy())
    assert np.allclose(chances, [0.5 * 2**-SWITCHES, 0.5 + 0.5 * 2**-SWITCHES])
    always = rlsvi.record(env, lambda x: np.ones(SWITCHES, np.int8), 1)
    assert always["action"].to_numpy().min() == 1
    with pytest.raises(ValueError, match="is not an action of"):
        rlsvi.record(env, lambda x: np.full(SWITCHES, 2), 1)
    wrong = log.with_columns(pl.Series("action", [[2] * SWITCHES] * 20))
    with pytest.raises(ValueError, match="column 'action', row 0: actions are of shape"):
        agent.fit(wrong, env)
    assert agent.steps == 20
    with pytest.raises(ValueError, match="2048 combinations"):
        rlsvi.value_of(agent, log, env, gamma=0.5, horizon=10, basis=rlsvi.bases.StateFeatures(lambda x: x))


def test_masks_have_a_flag_for_every_value(tmp_path):
    mask = np.ones(2 * SWITCHES, bool)
    mask[[1, 2]] = False  # the first switch stays off, the second on
    env = Match(mask=mask)
    agent = small()
    log = rlsvi.record(env, agent, 3, learning=True)
    taken = np.array(env.taken)
    assert (taken[:, 0] == 0).all()
    assert (taken[:, 1] == 1).all()
    assert 0 < taken[:, 2:].mean() < 1
    assert small().fit(log, env).steps == 30
    assert set(rlsvi.record(env, None, 1)["propensity"]) == {2.0 ** -(SWITCHES - 2)}
    other = ~mask
    other[4:] = True
    action, _ = agent.predict(np.zeros(2), deterministic=True, action_mask=other)
    assert action[:2].tolist() == [1, 0]
    none = mask.copy()
    none[:2] = False
    with pytest.raises(ValueError, match="every part needs at least one legal value"):
        agent.predict(np.zeros(2), action_mask=none)
    with pytest.raises(ValueError, match=r"action_mask must have shape \(22,\)"):
        agent.predict(np.zeros(2), action_mask=np.ones(2048, bool))
    with pytest.raises(ValueError, match="the mask does not allow it"):
        rlsvi.record(env, lambda x: np.ones(SWITCHES, np.int8), 1)


def test_callbacks_diagnosis_and_what_is_not_offered(tmp_path, capsys):
    env = Match()
    agent = small(memory=30)
    log = rlsvi.callbacks.CSV(tmp_path / "log.csv")
    agent.learn(env, 6, evaluate_every=2, evaluation_env=Match(), on_episode=log)
    assert pl.read_csv(tmp_path / "log.csv")["evaluation_return"].null_count() == 3
    assert len(agent._learner.history.last) < 60
    assert "22 values of 11 parts of actions" in str(agent.diagnose())
    assert "Discretized" in agent._what_to_try()
    with pytest.raises(ValueError, match="cannot be exported: save the agent"):
        agent.export(tmp_path / "policy.npz")
    log = rlsvi.record(env, None, 2)
    with pytest.raises(ValueError, match="leave out chunk="):
        small().fit(log, env, chunk=10)


def test_an_interrupt_leaves_the_last_whole_episode():
    agent, twin = small().learn(Match(), 2), small().learn(Match(), 2)

    class Stop(Match):
        def step(self, action):
            if self.t == 5:
                raise KeyboardInterrupt
            return super().step(action)

    with pytest.raises(KeyboardInterrupt):
        agent.learn(Stop(), 1)
    assert agent.episodes == 2
    first, second = Match(), Match()
    agent.learn(first, 1)
    twin.learn(second, 1)
    assert np.array_equal(first.taken, second.taken)


def test_what_cannot_be_learned_is_refused_before_the_first_step():
    env = Match()
    for agent, message in (
        (rlsvi.BoundedRLSVI(repeat=4), "leave out repeat="),
        (rlsvi.TableOrFeatures(), r"2048 combinations, .*at most 1000: .*agent_for.*Discretized"),
        (rlsvi.DiscountedPSRL(), "2048 combinations"),
        (rlsvi.RLSVI(horizon=10), "2048 combinations"),
        (rlsvi.BoundedRLSVI(basis=rlsvi.bases.Waves(features=2000)), "24036 weights, but at most 8192"),
    ):
        with pytest.raises(ValueError, match=message):
            agent.learn(env, 1)
        assert agent.steps == 0
    with pytest.raises(ValueError, match="weights, but at most 8192 can be learned jointly: use fewer features"):
        rlsvi.agent_for(Match(MultiDiscrete([2000, 2000])))
    with pytest.raises(TypeError, match="agent_for has no argument horizon"):
        rlsvi.agent_for(env, horizon=3)
    with pytest.raises(ValueError, match="leave out repeat="):
        rlsvi.agent_for(env, repeat=2)
    assert not env.taken


def test_other_parts_are_another_task():
    agent = small().learn(Match(), 1)
    with pytest.raises(ValueError, match=r"22 values of 11 parts.*cannot go on with .*24 values of 12 parts"):
        agent.learn(Match(MultiBinary(12)), 1)


def test_more_words_than_can_be_learned_leave_what_was_learned(monkeypatch):
    monkeypatch.setattr("rlsvi.agents.practice.parts.MOST_WEIGHTS", 700)

    class Words(Match):
        def look(self):
            word = "a" if self.np_random.random() < 0.5 or not self.many else f"w{self.np_random.integers(10**6)}"
            return {"numbers": self.x.copy(), "word": word}

    space = Dict(numbers=Box(-1.0, 1.0, (2,), np.float64), word=Text(9))
    env = Words(MultiDiscrete([40, 40]), space, steps=200)
    env.many = False
    agent = small().learn(env, 1)
    env.many = True
    with pytest.raises(ValueError, match="weights, but at most 700 can be learned jointly"):
        agent.learn(env, 1)
    assert agent.episodes == 1
