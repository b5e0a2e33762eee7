"""`rlsvi.value_of` where the log says little: actions without rows, rewards that never came, ends that mislead."""

import re
from contextlib import contextmanager

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import rlsvi
from rlsvi.envs import Spaces
from rlsvi.offline import value
from rlsvi.offline.fitted import design_of, factor_blocks, prior_uncertainty, weight_scales
from rlsvi.offline.off_policy import OffPolicyProblem, TargetPolicy
from rlsvi.offline.replay import replay_of

COLUMNS = "episode", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated"
LINE = Spaces(gym.spaces.Box(0, 3, (1,)), gym.spaces.Discrete(2))


def frame(rows, *more):
    return pl.DataFrame(rows, schema=[*COLUMNS, *more], orient="row")


# ---- features without rows --------------------------------------------------------------------------------


def overlapping(seed, paid, episodes=200):
    """Action 1 is tried only where x < 1, and pays paid(x)."""
    rng, rows = np.random.default_rng(seed), []
    for e in range(episodes):
        x = rng.uniform(0, 3)
        a = int(x < 1 and rng.random() < 0.5)
        rows.append((e, 0, [x], a, a * paid(x) + 0.1 * rng.normal(), [0.0], True, False))
    return frame(rows)


@pytest.mark.parametrize("options", [{"horizon": 10}, {"gamma": 0.95}])
def test_features_are_not_certain_about_an_action_without_rows(options):
    env = gym.make("CartPole-v1")
    log = rlsvi.record(env, lambda o: 0, episodes=20, seed=1)
    with pytest.warns(UserWarning, match="never tried in the log"):
        found = rlsvi.value_of(lambda o: 1, log, env, **options)
    assert found.untried == 1
    assert (found.fitted.low, found.fitted.high) == (-np.inf, np.inf)
    some = rlsvi.value_of(lambda o: [0.8, 0.2], log, env, **options)
    assert some.untried == pytest.approx(0.2)
    most = (0.2 * scale_of(log, env, **options)) * 1.9
    assert some.fitted.high - some.fitted.low > most
    assert "20.0% of the policy's actions were never tried" in str(some)


def scale_of(log, env, gamma=1.0, horizon=10):
    """The largest return of the log, step by step."""
    returns = []
    for _, part in log.group_by("episode"):
        rewards = part.sort("step")["reward"].to_numpy()
        returns.append(sum(gamma**t * r for t, r in enumerate(rewards[: horizon if gamma == 1 else None])))
    return max(returns)


def test_the_scale_of_the_prior_is_the_largest_return():
    rows = [(e, t, [float(t)], 0, e - 1.0 + t, [t + 1.0], t == 2, False) for e in range(2) for t in range(3)]
    replay = replay_of(frame(rows), LINE)
    basis = rlsvi.bases.StateFeatures(lambda x: np.full(4, 0.5))
    for horizon, expected in ((2, [3, 2]), (3, [3, 3, 2]), (5, [3, 3, 3, 3, 2])):
        problem = OffPolicyProblem(
            replay.log, replay.env, TargetPolicy(lambda x: 0, replay.action_space), 1.0, horizon, False
        )
        design = design_of(problem, basis, np.arange(6))
        assert weight_scales(problem, design.taken) == pytest.approx(expected)
    factors = factor_blocks(design, 0.5)
    x = np.full(4, 0.5)
    inverse = np.linalg.inv(6 * np.outer(x, x) + 0.5 * np.eye(4))
    assert prior_uncertainty(design.taken, factors) == pytest.approx(np.full(6, 0.5 * np.linalg.norm(inverse @ x)))


def test_features_with_partial_overlap():
    """The reward falls, or is what it was, where the action was never tried."""
    for paid, truth in ((lambda x: 1.0 * (x < 1), 1 / 3), (lambda x: 1.0, 1.0), (lambda x: min(x, 1), 5 / 6)):
        found = [
            rlsvi.value_of(lambda o: 1, overlapping(seed, paid), LINE, horizon=1).fitted for seed in range(12)
        ]
        assert sum(each.low <= truth <= each.high for each in found) >= 10


# ---- ends -------------------------------------------------------------------------------------------------


def test_episodes_of_a_fixed_length_that_terminate():
    """Time ends these episodes, not what was done in the only state: the value is 8."""
    rows = [(e, t, 0, (e + t) % 2, 1.0, 0, t == 7, False) for e in range(100) for t in range(8)]
    log, env = frame(rows), Spaces(gym.spaces.Discrete(1), gym.spaces.Discrete(2))
    assert rlsvi.value_of(lambda s: [0.5, 0.5], log, env, horizon=8, draws=50).fitted.value == pytest.approx(8)
    ones = rlsvi.bases.StateFeatures(lambda s: np.ones(1))
    found = rlsvi.value_of(lambda s: [0.5, 0.5], log, env, horizon=8, basis=ones, ridge=1e-6)
    assert found.fitted.value == pytest.approx(8, abs=1e-3)
    pooled = rlsvi.value_of(lambda s: [0.5, 0.5], log, env, horizon=8, draws=50, per_period=False)
    assert pooled.fitted.value < 7  # an end that may come anywhere, as one can still ask


def test_agents_with_periods_need_no_environment():
    mdp = rlsvi.mdp.river_swim(4, 8)
    env = rlsvi.envs.FiniteMDPEnv(mdp)
    agent = rlsvi.RLSVI(seed=0).learn(env, episodes=30)
    log = rlsvi.record(env, None, episodes=300, seed=3).drop("propensity")
    early = log.filter((pl.col("episode") > 0) | (pl.col("step") < 4))  # not all of the same length
    for each in (log, early):
        alone, with_env = (rlsvi.value_of(agent, each, given, draws=50) for given in (None, env))
        assert alone.fitted.value == pytest.approx(with_env.fitted.value)


def test_doubly_robust_needs_whole_episodes():
    """Rewards grow with each step, the features do not know, and the log ends after 5 of 10 steps."""
    rng, rows = np.random.default_rng(0), []
    for e in range(200):
        for t in range(5):
            a = int(rng.integers(2))
            rows.append((e, t, t, a, float(a * (t + 1)), t + 1, False, t == 4, 0.5))
    log, env = frame(rows, "propensity"), Spaces(gym.spaces.Discrete(20), gym.spaces.Discrete(2))
    ones = rlsvi.bases.StateFeatures(lambda s: np.ones(1))
    found = rlsvi.value_of(lambda s: 1, log, env, horizon=10, basis=ones)
    assert found.robust is None
    assert "200 of 200 episodes are cut off" in found.absent["doubly robust"]
    with pytest.warns(UserWarning, match="importance sampling rests on"):
        found = rlsvi.value_of(lambda s: 1, log, env, horizon=5, basis=ones)
    assert found.robust.low <= 15 <= found.robust.high


# ---- intervals without width ------------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [0.0, 0.3])
@pytest.mark.parametrize("basis", [None, rlsvi.bases.StateFeatures(lambda s: np.ones(1))])
def test_a_few_episodes_that_are_all_alike_say_little(reward, basis):
    env = Spaces(gym.spaces.Discrete(1), gym.spaces.Discrete(2))

    def judged(episodes, policy=0):
        log = frame([(e, 0, 0, 0, reward, 0, True, False) for e in range(episodes)])
        return rlsvi.value_of(lambda s: policy, log, env, horizon=1, basis=basis, draws=50).fitted

    if basis is None or reward == 0:  # with features the prior gives some width
        assert (judged(1).low, judged(99).high) == (-np.inf, np.inf)
        assert judged(100).high - judged(100).low < 1e-9
    with pytest.warns(UserWarning, match="never tried"):
        assert judged(200, policy=1).high == np.inf


def test_weights_that_differ_by_rounding_give_no_interval():
    """Three rewards of .1 in episodes that are all alike: the mean is not exactly .1."""
    rows = [(e, t, 0, 0, 0.1, 0, t == 2, False, 0.7) for e in range(6) for t in range(3)]
    env = Spaces(gym.spaces.Discrete(1), gym.spaces.Discrete(2))
    with pytest.warns(UserWarning, match="importance sampling rests on"):
        found = rlsvi.value_of(lambda s: [0.7, 0.3], frame(rows, "propensity"), env, horizon=3, draws=50)
    assert found.weighted.value == pytest.approx(0.3)
    assert found.weighted.high == np.inf


# ---- what would give an answer ----------------------------------------------------------------------------


def halving(steps, cut=None, episodes=200, paid=lambda rng, a: a + rng.normal()):
    """Both actions are equally likely, so that half of the episodes that follow a policy leave it in each step."""
    rng, rows = np.random.default_rng(0), []
    for e in range(episodes):
        for t in range(last := steps if cut is None or e % 2 else cut):
            a = int(rng.integers(2))
            rows.append((e, t, 0, a, float(paid(rng, a)), 0, t == steps - 1, t == last - 1 < steps - 1, 0.5))
    return frame(rows, "propensity")


ONE_STATE = Spaces(gym.spaces.Discrete(1), gym.spaces.Discrete(2))


def advised(found, name, argument):
    """The number that an estimate which is missing asks for."""
    return float(re.search(rf"{argument}=(\d+(\.\d+)?)", found.absent[name])[1])


@pytest.mark.filterwarnings("ignore:importance sampling rests on")
@pytest.mark.parametrize("log", [halving(20), halving(20, cut=4), halving(20, episodes=20)])
def test_a_horizon_that_is_advised_gives_an_answer(log):
    found = rlsvi.value_of(lambda s: 1, log, ONE_STATE, horizon=20, draws=50)
    assert found.weighted is None
    shorter = int(advised(found, "weighted importance sampling", "horizon"))
    again = rlsvi.value_of(lambda s: 1, log, ONE_STATE, horizon=shorter, draws=50)
    assert np.isfinite(again.weighted).all()
    assert np.isfinite(again.robust).all()
    longer = rlsvi.value_of(lambda s: 1, log, ONE_STATE, horizon=shorter + 1, draws=50)
    assert longer.weighted is None or not np.isfinite(longer.weighted).all()


@pytest.mark.filterwarnings("ignore:importance sampling rests on")
def test_a_horizon_without_an_interval_is_called_so():
    log = halving(20, episodes=120, paid=lambda rng, a: 1.0)  # all returns are equal
    found = rlsvi.value_of(lambda s: 1, log, ONE_STATE, horizon=20, draws=50)
    assert "for a value without an interval" in found.absent["weighted importance sampling"]
    shorter = int(advised(found, "weighted importance sampling", "horizon"))
    again = rlsvi.value_of(lambda s: 1, log, ONE_STATE, horizon=shorter, draws=50)
    assert again.weighted.value == pytest.approx(shorter)
    assert again.effective >= 10


def test_a_horizon_and_a_gamma_that_are_advised_keep_the_regression_possible():
    """Values grow by a tenth in each step: x is 1 in eight rows that lead to 2, and 2 in three that lead to 1."""
    rows = [(e, 0, [1.0 + (e > 7)], 0, 1.0, [2.0 - (e > 7)], False, True) for e in range(11)]
    log, basis = frame(rows), rlsvi.bases.StateFeatures(lambda x: x)
    found = rlsvi.value_of(lambda x: 0, log, LINE, horizon=50, basis=basis)
    assert found.fitted is None
    assert "the rewards of the log allow 0 to 50: give horizon=" in found.absent["fitted Q evaluation"]
    for argument, other in (("horizon", 50), ("gamma", 1.0)):
        options = {"horizon": 50, "gamma": 1.0, argument: advised(found, "fitted Q evaluation", argument)}
        options["horizon"] = int(options["horizon"])
        assert options[argument] < other
        assert np.isfinite(rlsvi.value_of(lambda x: 0, log, LINE, basis=basis, **options).fitted).all()


def test_nothing_is_computed_for_an_estimate_that_can_say_nothing(monkeypatch):
    kept = halving(20, episodes=20)
    log = kept.with_columns(
        pl.concat_list(pl.col(name).cast(pl.Float64)).alias(name) for name in ("observation", "next_observation")
    )

    def folds(*_):
        raise AssertionError("values of the parts of a log are needed for the doubly robust estimate alone")

    monkeypatch.setattr("rlsvi.offline.fitted.fit_folds", folds)
    for each, env in ((log, LINE), (kept, ONE_STATE)):
        found = rlsvi.value_of(lambda s: 1, each, env, horizon=20, draws=50)
        assert found.fitted is not None
        assert found.effective < 2
        assert "no episode does what the policy would do for more than" in found.absent["doubly robust"]


@pytest.mark.filterwarnings("ignore:importance sampling rests on")
def test_a_policy_is_asked_once_at_each_observation():
    env = gym.make("CartPole-v1")
    log, asked = rlsvi.record(env, None, 10, seed=1), []

    def judged(observation):
        asked.append(observation.tobytes())
        return [0.5, 0.5]

    found = rlsvi.value_of(judged, log, env, horizon=5)
    assert found.robust is not None
    assert len(asked) == len(set(asked)) + 20 * 4  # of the first 20, several times


@pytest.mark.filterwarnings("ignore:importance sampling rests on", "ignore:.*never tried in the log")
@pytest.mark.parametrize("propensities", [True, False])
@pytest.mark.parametrize("basis", [None, rlsvi.bases.StateFeatures(lambda s: np.ones(1))])
@pytest.mark.parametrize("per_period", [True, False])
def test_progress_ends_at_its_total(propensities, basis, per_period, monkeypatch):
    total, done = [], []

    @contextmanager
    def counted(work, what, show):
        total.append(work)
        yield lambda n, words="": done.append(n)

    monkeypatch.setattr(value, "bar", counted)
    log = halving(4) if propensities else halving(4).drop("propensity")
    options = {"horizon": 3, "draws": 50, "basis": basis, "per_period": per_period}
    found = rlsvi.value_of(lambda s: [0.5, 0.5], log, ONE_STATE, **options)
    assert (found.robust is not None) == propensities
    assert total == [sum(done)]


def test_progress_is_shown_where_it_is_asked_for(capfd):
    for shown in (True, False, None):
        rlsvi.value_of(lambda s: [0.5, 0.5], halving(4), ONE_STATE, horizon=4, draws=50, progress=shown)
        assert ("judging" in capfd.readouterr().err) == (shown is True)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_intervals_are_cut_to_returns_that_are_possible(sign):
    rng, rows = np.random.default_rng(0), []
    for e in range(6):
        x = rng.uniform(0, 3, 5)
        rows += [(e, t, [x[t]], 0, sign * x[t], [x[t + 1]], False, t == 3) for t in range(4)]
    found = rlsvi.value_of(lambda _: [0.5, 0.5], frame(rows), LINE, horizon=8).fitted
    low, high = sorted([0.0, 8 * sign * max(abs(row[4]) for row in rows)])
    assert low <= found.low < found.value < found.high <= high
    assert 0.0 in found
    many = rlsvi.value_of(lambda _: [0.5, 0.5], frame(rows), LINE, gamma=0.5).fitted
    assert low / 4 <= many.low < many.high <= high / 4
