"""`rlsvi.value_of`: against slow and obvious twins, exact values, and closed forms."""

from functools import cache

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import rlsvi
from contract.environments import LEGAL, MDP, drifting, numbered
from rlsvi.envs import FiniteMDPEnv, Spaces
from rlsvi.offline.fitted import (
    Fitted,
    design_of,
    draw_model,
    evaluate_draws,
    influences,
    leverages,
    regress,
    solve_weights,
    table_of,
)
from rlsvi.offline.off_policy import OffPolicyProblem, TargetPolicy
from rlsvi.offline.replay import replay_of
from rlsvi.offline.value import divergence, episode_weights

CHANCES = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.6, 0.4], [1 / 3, 1 / 3, 1 / 3]])
pytestmark = pytest.mark.filterwarnings("ignore:importance sampling rests on")


def policy(s):
    return CHANCES[s]


def drifter(x):
    """All legal actions of `drifting` alike, as in its logs."""
    return np.full(3, 1 / 3) if x[0] < 0.5 else np.array([0.5, 0.5, 0.0])


def truth(chances=CHANCES, horizon=3, gamma=1.0):
    """The exact value, by the definition: a sum over all that may happen."""
    table, P = MDP.table, np.zeros((4, 3, 4))
    R = table.expected.reshape(4, 3)
    for row in range(12):
        for k in range(table.indptr[row], table.indptr[row + 1]):
            P[row // 3, row % 3, table.successor[k]] += table.probability[k]
    V = np.zeros(4)
    for _ in range(horizon):
        V = (chances * (R + gamma * P @ V)).sum(axis=1)
        V[3] = 0
    return float(V @ table.start)


@cache
def log_of(episodes, seed=0):
    return rlsvi.record(numbered(), None, episodes, seed=seed)


def asked(log, env=None, gamma=1.0, horizon=3, per_period=False, judged=policy):
    replay = replay_of(log, numbered() if env is None else env)
    return OffPolicyProblem(
        replay.log, replay.env, TargetPolicy(judged, replay.action_space), gamma, horizon, per_period
    )


# ---- tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_period", [False, True])
@pytest.mark.parametrize(("horizon", "gamma"), [(3, 1.0), (3, 0.7), (0, 0.7)])
def test_a_drawn_model_is_solved_exactly(per_period, horizon, gamma):
    """Against dense linear algebra, draw by draw."""
    if per_period and not horizon:
        return
    problem = asked(log_of(40), gamma=gamma, horizon=horizon, per_period=per_period)
    model, B = table_of(problem), 3
    transition, reward = draw_model(model, B, np.random.default_rng(1))
    *_, (_, V, _) = evaluate_draws(model, transition, reward, gamma, horizon)
    S, C = model.states + 1, len(model.cell_state)
    P = transition.toarray().reshape(C, B, S, B)
    acting = np.zeros((S, C))
    acting[model.cell_state, np.arange(C)] = model.chances[0]
    for b in range(B):
        step = acting @ P[:, b, :, b]
        assert P[:, b, :, b].sum(axis=1) == pytest.approx(np.ones(C))
        expected = np.linalg.solve(np.eye(S) - gamma * step, acting @ reward[:, b]) if not horizon else np.zeros(S)
        for _ in range(horizon):
            expected = acting @ reward[:, b] + gamma * step @ expected
        assert V[:, b] == pytest.approx(expected, abs=1e-12)
        assert P[:, b, :, [c for c in range(B) if c != b]].max() == 0.0  # draws do not mix


def test_the_mean_of_drawn_models_is_the_share_of_outcomes():
    problem = asked(log_of(3000))
    model = table_of(problem)
    transition, reward = draw_model(model, 400, np.random.default_rng(2))
    C, S = len(model.cell_state), model.states + 1
    P = sum(transition[b::400, b::400].toarray() for b in range(400)) / 400
    counts, sums = np.zeros((C, S)), np.zeros(C)
    for c, s, r in zip(model.cell, model.following, model.reward, strict=True):
        if c >= 0:
            counts[c, s] += 1
            sums[c] += r
    times = counts.sum(axis=1)
    assert times.min() > 50
    # weights are Dirichlet: the mean of 400 draws deviates by sqrt(p (1 - p) / n / 400), the prior by 0.1 / n
    slack = 5 * np.sqrt(0.25 / times / 400) + 0.1 / times
    assert (np.abs(P - counts / times[:, None]) < slack[:, None]).all()
    assert (np.abs(reward.mean(axis=1) - sums / times) < slack).all()


@pytest.mark.parametrize("per_period", [False, True])
def test_many_episodes_give_the_exact_value(per_period):
    found = rlsvi.value_of(policy, log_of(4000), numbered(), per_period=per_period, horizon=3, draws=200)
    # pooled, the last period must not terminate: numbered() does so, and the table knows it only by the period
    for interval in found.estimates.values() if per_period else [found.robust]:
        half = (interval.high - interval.low) / 2
        assert abs(interval.value - truth()) < 2.5 * half
        assert half < 0.1


def test_discounted_without_a_horizon():
    env = gym.make("FrozenLake-v1")
    mdp = rlsvi.mdp.from_gymnasium(env, horizon=400)
    log = rlsvi.record(env, None, 1500, seed=3)
    known = Spaces(env.observation_space, env.action_space)
    chances = np.tile([0.1, 0.4, 0.4, 0.1], (mdp.states, 1))
    found = rlsvi.value_of(lambda s: chances[s], log, known, gamma=0.9, draws=200)
    discounted = np.zeros(mdp.states)
    rows = np.repeat(np.arange(mdp.states * 4), np.diff(mdp.indptr))
    for _ in range(400):
        Q = np.bincount(rows, mdp.probability * (mdp.reward + 0.9 * discounted[mdp.successor]), mdp.states * 4)
        discounted = np.where(mdp.table.absorbing, 0.0, (chances * Q.reshape(-1, 4)).sum(axis=1))
    exact = float(discounted @ mdp.start)
    assert found.horizon is None
    assert exact > 0
    for interval in (found.fitted, found.robust):
        assert abs(interval.value - exact) < 1.25 * (interval.high - interval.low)
    again = rlsvi.value_of(lambda s: chances[s], log, known, gamma=0.9, horizon=300, draws=200)
    assert again.fitted.value == pytest.approx(found.fitted.value, rel=1e-6)  # .9^300 is nothing


def test_an_action_that_was_never_tried():
    """Values lie between the worst and the best that happened, and the share is reported."""
    log = log_of(60).filter(pl.col("episode") < 50)
    first = log.filter((pl.col("step") == 0) & (pl.col("action") == 1))["episode"]
    found = rlsvi.value_of(
        lambda s: 1, log.filter(~pl.col("episode").is_in(first.to_list())), numbered(), draws=400
    )
    assert found.untried > 0.2
    assert found.fitted.high - found.fitted.low > 0.5
    assert "never tried" in str(found)
    assert rlsvi.value_of(policy, log_of(300), numbered(), draws=50).untried == 0


# ---- features ---------------------------------------------------------------------------------------------


def dense_twin(problem, ridge):
    """Fitted Q evaluation with one weight per state and action, as dense matrices."""
    log, n = problem.log, problem.log.steps
    taken, after = np.zeros((n, 12)), np.zeros((n, 12))
    for i in range(n):
        taken[i, log.observation.at(i) * 3 + log.action[i]] = 1
        if not log.terminated[i]:
            s = log.following.at(i)
            after[i, s * 3 : s * 3 + 3] = CHANCES[s]
    first = np.zeros((log.episodes, 12))
    for e, i in enumerate(log.start[:-1]):
        s = log.observation.at(i)
        first[e, s * 3 : s * 3 + 3] = CHANCES[s]
    return taken, after, first, taken.T @ taken + ridge * np.eye(12)


ONE_HOT = rlsvi.bases.StateFeatures(lambda s: np.eye(4)[s])


@pytest.mark.parametrize(("horizon", "gamma"), [(3, 1.0), (4, 0.7), (0, 0.7)])
def test_features_agree_with_a_dense_twin(horizon, gamma):
    problem = asked(log_of(40), gamma=gamma, horizon=horizon)
    taken, after, first, G = dense_twin(problem, 0.1)
    theta = np.zeros(12) if horizon else np.linalg.solve(G - gamma * taken.T @ after, taken.T @ problem.log.reward)
    for _ in range(horizon):
        theta = np.linalg.solve(G, taken.T @ (problem.log.reward + gamma * after @ theta))
    design = design_of(problem, ONE_HOT, np.arange(problem.log.steps))
    regression = regress(design, 0.1, problem.log.reward)
    leverage, found = leverages(design, regression.factors), solve_weights(problem, regression)
    assert design.first @ found[0] == pytest.approx(first @ theta, abs=1e-10)
    assert leverage == pytest.approx(np.einsum("ij,ij->i", taken, np.linalg.solve(G, taken.T).T), abs=1e-12)


@pytest.mark.parametrize(("horizon", "gamma"), [(3, 1.0), (0, 0.7)])
def test_influences_are_derivatives(horizon, gamma):
    """The value of a log with more weight on one row, by finite differences."""
    problem = asked(log_of(12), gamma=gamma, horizon=horizon)
    taken, after, first, _ = dense_twin(problem, 0.1)
    reward = problem.log.reward

    def value(weight):
        weighted = taken.T * weight
        M = weighted @ taken + 0.1 * np.eye(12)
        if not horizon:
            return (first @ np.linalg.solve(M - gamma * weighted @ after, weighted @ reward)).mean()
        theta = np.zeros(12)
        for _ in range(horizon):
            theta = np.linalg.solve(M, weighted @ (reward + gamma * after @ theta))
        return (first @ theta).mean()

    design = design_of(problem, ONE_HOT, np.arange(len(reward)))
    regression = regress(design, 0.1, reward)
    found, _ = influences(problem, design, regression, reward, solve_weights(problem, regression))
    for i in range(len(reward)):
        more = 1e-6 * (np.arange(len(reward)) == i)
        assert found[i] == pytest.approx((value(1 + more) - value(1 - more)) / 2e-6, abs=1e-7)


def test_features_of_every_period_give_the_exact_value():
    found = rlsvi.value_of(policy, log_of(4000), numbered(), basis=ONE_HOT)
    assert abs(found.fitted.value - truth()) < 1.25 * (found.fitted.high - found.fitted.low)
    assert found.fitted.high - found.fitted.low < 0.2


def test_default_features_of_vectors():
    log = rlsvi.record(drifting(), None, 200, seed=1)
    found = rlsvi.value_of(drifter, log, drifting(), horizon=3)
    played = log.group_by("episode").agg(pl.col("reward").sum())["reward"]
    assert found.effective == pytest.approx(200)
    assert found.weighted.value == pytest.approx(played.mean())  # the policy that made the log
    for interval in (found.fitted, found.robust):
        assert abs(interval.value - played.mean()) < 5 * played.std() / 200**0.5


@pytest.mark.parametrize(("horizon", "gamma", "most"), [(3, 1.0, "3"), (2, 0.5, "1.5"), (0, 0.5, "2")])
def test_what_the_rewards_do_not_allow_is_not_reported(monkeypatch, horizon, gamma, most):
    problem, log = asked(log_of(40), horizon=horizon, gamma=gamma), log_of(40)
    fitted = Fitted(float(most), 0.0, 9.0, np.zeros(40), np.zeros(log.height), 0.0)
    assert divergence(problem, fitted) == ""
    assert f"gives 3.5, but the rewards of the log allow 0 to {most}" in divergence(
        problem, fitted._replace(value=3.5)
    )
    monkeypatch.setattr("rlsvi.offline.value.fit_table", lambda *_: fitted._replace(value=3.5))
    found = rlsvi.value_of(policy, log, numbered())
    assert found.fitted is None
    assert found.absent["doubly robust"] == "it needs fitted Q evaluation"
    assert list(found.estimates) == ["weighted importance sampling"]


# ---- importance sampling ----------------------------------------------------------------------------------


def weighted_twin(log, gamma, horizon):
    """Per-decision weighted importance sampling, step by step."""
    episodes = [part for _, part in log.sort("episode", "step").group_by("episode", maintain_order=True)]
    weights, total = np.ones(len(episodes)), 0.0
    for t in range(horizon):
        rewards = np.zeros(len(episodes))
        for e, part in enumerate(episodes):
            if t < len(part):
                weights[e] *= CHANCES[part["observation"][t]][part["action"][t]] / part["propensity"][t]
                rewards[e] = part["reward"][t]
        total += gamma**t * (weights @ rewards) / weights.sum()
    return total, weights.sum() ** 2 / (weights**2).sum()


@pytest.mark.parametrize("gamma", [1.0, 0.8])
def test_weighted_importance_sampling_agrees_with_its_definition(gamma):
    log = log_of(50)
    found = rlsvi.value_of(policy, log, numbered(), gamma=gamma, draws=50)
    value, effective = weighted_twin(log, gamma, 3)
    assert found.weighted.value == pytest.approx(value, abs=1e-12)
    assert found.effective == pytest.approx(effective)


def test_weights_that_overflow():
    log = log_of(50).with_columns(propensity=pl.lit(1e-300))
    shares = episode_weights(asked(log)).share
    assert np.isfinite(shares).all()
    assert shares.sum(axis=0) == pytest.approx(np.ones(3))


def test_doubly_robust_is_right_if_either_part_is():
    """With useless values but right propensities, and with right values but wrong propensities."""
    log = log_of(4000)
    useless = rlsvi.bases.StateFeatures(lambda s: np.ones(1))
    found = rlsvi.value_of(policy, log, numbered(), basis=useless, ridge=1e6)
    half = (found.robust.high - found.robust.low) / 2
    assert abs(found.fitted.value - truth()) > 3 * half  # useless indeed
    assert abs(found.robust.value - truth()) < 2.5 * half
    lies = log.with_columns(propensity=pl.when(pl.col("action") == 1).then(0.9).otherwise(0.2))
    found = rlsvi.value_of(policy, lies, numbered(), draws=50)
    half = (found.robust.high - found.robust.low) / 2
    assert abs(found.weighted.value - truth()) > 3 * half  # wrong indeed
    assert abs(found.robust.value - truth()) < 2.5 * half


def test_without_propensities_there_is_one_estimate():
    log = log_of(30)
    found = rlsvi.value_of(policy, log.drop("propensity"), numbered(), draws=50)
    assert list(found.estimates) == ["fitted Q evaluation"]
    assert found.absent["doubly robust"] == "the log has no column propensity"
    assert found.effective is None
    assert found.weighted is None
    assert found.robust is None
    empty = log.with_columns(propensity=pl.lit(None, pl.Float64))
    assert rlsvi.value_of(policy, empty, numbered(), draws=50).summary() == found.summary()


def test_episodes_that_are_cut_off():
    env, cut = drifting(), rlsvi.record(drifting(), None, 80, seed=1, limit=2)
    found = rlsvi.value_of(drifter, cut, env, horizon=3)
    assert (
        "episodes are cut off before their return is known, the shortest after 2"
        in found.absent["weighted importance sampling"]
    )
    assert found.absent["doubly robust"] == found.absent["weighted importance sampling"]
    found = rlsvi.value_of(drifter, cut, env, horizon=2)
    assert found.weighted is not None
    assert found.robust is not None


def test_few_effective_episodes_are_warned_of():
    with pytest.warns(UserWarning, match="effective episodes of 20: the policy differs"):
        rlsvi.value_of(policy, log_of(20), numbered(), draws=50)


def test_a_policy_that_no_episode_follows():
    log = log_of(200).filter(pl.col("step") == 0).filter(pl.col("action") == 0)
    with pytest.warns(UserWarning, match="100% of the policy's actions were never tried"):
        found = rlsvi.value_of(lambda s: 1, log, numbered(), horizon=1, draws=50)
    assert found.absent["doubly robust"].startswith("no episode begins with an action of the policy: ")
    assert found.effective == 0
    assert found.untried == 1


# ---- agents -----------------------------------------------------------------------------------------------


def test_agents_are_judged_by_what_they_predict():
    """An agent of periods, in a model of periods and in one for all; and any other thing that predicts."""
    log = log_of(400)
    agent = rlsvi.RLSVI(seed=1).fit(log_of(30, seed=9), numbered())
    table = np.zeros((3, 4, 3))
    for h in range(3):
        for s in range(4):
            table[h, s, agent.predict(s, h, deterministic=True, action_mask=LEGAL[s])[0]] = 1
    exact = float(rlsvi.mdp.evaluate(MDP, table)[0] @ MDP.start)
    found = rlsvi.value_of(agent, log, numbered(), draws=200)
    assert found.horizon == 3
    assert found.fitted.low - 0.1 < exact < found.fitted.high + 0.1

    class Guest:
        def predict(self, observation, state=None, deterministic=False, action_mask=None):
            return np.array(1), None

    ones = rlsvi.value_of(Guest(), log, numbered(), draws=50)
    assert ones.summary() == rlsvi.value_of(lambda s: 1, log, numbered(), draws=50).summary()


def test_a_policy_of_periods_in_a_model_without():
    """The table and the features agree with a loop over periods."""
    env = gym.make("FrozenLake-v1", max_episode_steps=6)
    log = rlsvi.record(env, None, 400, seed=3)
    agent = rlsvi.RLSVI(seed=1).fit(log.filter(pl.col("episode") < 50), env)
    one_hot = rlsvi.bases.StateFeatures(lambda s: np.eye(16)[s])
    found = rlsvi.value_of(agent, log, env, basis=one_hot, ridge=1e-6, per_period=False)
    table = rlsvi.value_of(agent, log, env, draws=400, per_period=False)
    counts, rewards, after = np.zeros((16, 4)), np.zeros((16, 4)), np.zeros((16, 4, 16))
    for s, a, r, s2, over in log.select(
        "observation", "action", "reward", "next_observation", "terminated"
    ).iter_rows():
        counts[s, a] += 1
        rewards[s, a] += r
        after[s, a, s2] += not over
    V = np.zeros(16)
    for h in reversed(range(6)):
        Q = (rewards + after @ V) / np.maximum(counts, 1)
        V = np.array([Q[s, agent.predict(s, h, deterministic=True)[0]] for s in range(16)])
    assert found.fitted.value == pytest.approx(V[0], abs=1e-4)
    assert abs(table.fitted.value - V[0]) < 0.1
    assert table.fitted.low <= V[0] + 0.02


def test_text_and_spaces_that_begin_elsewhere():
    log = log_of(60)
    expected = rlsvi.value_of(policy, log, numbered(), draws=50).fitted
    text = log.with_columns(pl.format("s{}", "observation").alias("observation"),
                            pl.format("s{}", "next_observation").alias("next_observation"))  # fmt: skip
    found = rlsvi.value_of(lambda s: CHANCES[int(s[1:])], text, horizon=3, per_period=True, draws=50).fitted
    assert found == expected
    moved = log.with_columns(pl.col("observation") + 5, pl.col("next_observation") + 5, pl.col("action") + 7)
    env = Spaces(gym.spaces.Discrete(4, start=5), gym.spaces.Discrete(3, start=7))
    found = rlsvi.value_of(lambda s: CHANCES[s - 5], moved, env, horizon=3, per_period=True, draws=50).fitted
    assert found == expected
    features = rlsvi.value_of(
        lambda s: CHANCES[s - 5], moved, env, horizon=3, per_period=True, basis=ONE_HOT
    ).fitted
    assert features == rlsvi.value_of(policy, log, numbered(), basis=ONE_HOT).fitted


def test_the_seed_decides_and_the_order_of_rows_does_not():
    log = log_of(30)
    first, second, other = (rlsvi.value_of(policy, log, numbered(), draws=60, seed=seed) for seed in (3, 3, 4))
    assert first == second
    assert first.fitted != other.fitted
    assert first.weighted == other.weighted
    shuffled = rlsvi.value_of(policy, log.sample(fraction=1, shuffle=True, seed=1), numbered(), draws=60, seed=3)
    assert shuffled == first


def test_it_is_displayed_with_its_meaning():
    found = rlsvi.value_of(policy, log_of(30), FiniteMDPEnv(MDP), gamma=0.9, level=0.9, draws=60)
    assert "rewards discounted by 0.9 in at most 3 steps" in str(found)
    assert "90% interval" in str(found)
    assert repr(found).startswith("OfflineValue(fitted Q evaluation: ")
    assert "<td>doubly robust</td>" in found._repr_html_()
    assert set(found.summary()["estimates"]) == {
        "fitted_Q_evaluation",
        "weighted_importance_sampling",
        "doubly_robust",
    }
