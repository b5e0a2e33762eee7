"""The tabular agents: each against its own definition, and all of them through both loops."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

import rlsvi
from rlsvi import LSVIUCB, PSRL, UCBVI, UCRL2, Problem, mdp, problems
from rlsvi.agents.tabular.psrl import RewardPrior, mean_reward, next_value
from rlsvi.agents.tabular.ucrl2 import optimistic, radii, sort_descending
from rlsvi.bases import ActionFeatures, Dense, Tabular
from rlsvi.core.random import stream
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate.finite import simulate
from twin import assert_same, state_of

WIDE_RANGE = (-10.0, 10.0)
AGENTS = {
    "PSRL": PSRL(alpha_P=0.3, reward_range=WIDE_RANGE),
    "PSRL, normal rewards": PSRL(reward_noise=0.5),
    "UCRL2": UCRL2(scale=0.2, reward_range=WIDE_RANGE),
    "UCBVI": UCBVI(scale=0.02, reward_range=WIDE_RANGE),
    "UCBVI, Bernstein": UCBVI(bonus="bernstein", scale=0.05, reward_range=WIDE_RANGE),
    "LSVI-UCB": LSVIUCB(scale=0.01, reward_range=WIDE_RANGE),
    "LSVI-UCB, features": LSVIUCB(
        scale=0.01,
        reward_range=WIDE_RANGE,
        basis=ActionFeatures(lambda s, a: [0.4, 0.4 * math.sin(s + 3 * a), 0.4 * a]),
    ),
}


def masked():
    """Four states, masks that change with the period, an absorbing state, noise, a terminal reward."""
    rng = np.random.default_rng(11)
    legal = rng.random((4, 4, 3)) < 0.5
    legal[..., 1] = True
    return mdp.FiniteMDP.from_arrays(
        rng.dirichlet(np.full(4, 0.7), size=(4, 4, 3)),
        rng.normal(size=(4, 4, 3)),
        start=[0.3, 0.7, 0, 0],
        rewards="gaussian",
        reward_std=0.2,
        terminal_reward=rng.normal(size=4),
        legal=legal,
        absorbing=np.arange(4) == 3,
    )


PROBLEMS = {"masked": lambda: Problem(masked()), "deep sea": lambda: problems.deep_sea(3, seed=1)}


def transitions(history, problem):
    """(h, s, a, r, next state or S) of every step of a trace."""
    S, (states, actions, rewards) = problem.mdp.states, history.trace
    for line in zip(states, actions, rewards, strict=True):
        steps = int((line[0] >= 0).sum())
        for h in range(steps):
            yield h, line[0][h], line[1][h], line[2][h], line[0][h + 1] if h + 1 < steps else S


def sums(history, problem):
    """Visits, rewards and next states, by plain counting."""
    H, S, A = problem.mdp.horizon, problem.mdp.states, problem.mdp.actions
    n, r, into = np.zeros((H, S, A)), np.zeros((H, S, A)), np.zeros((H, S, A, S + 1))
    for h, s, a, reward, following in transitions(history, problem):
        n[h, s, a] += 1
        r[h, s, a] += reward
        into[h, s, a, following] += 1
    return n, r, into


def played(agent, problem, episodes=30):
    """The agent after some episodes, planned anew; and plain counts."""
    agent = agent.clone(seed=5)
    history = simulate(agent, problem, episodes, trace=True)
    return agent, sums(history, problem)


def small(**options):
    return problems.dirichlet(3, 2, 3, seed=4, **options)


SMALL_RANGE = (-1.0, 0.0)  # the rewards of `small`


# ---- both loops, files, verbs -------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", AGENTS)
def test_the_fused_loop_is_the_gymnasium_loop(name, problem):
    task = PROBLEMS[problem]()
    fused, stepped = AGENTS[name].clone(seed=1), AGENTS[name].clone(seed=1)
    history = simulate(fused, task, 25, trace=True)
    stepped.learn(FiniteMDPEnv(task.mdp), episodes=25)
    assert_same(state_of(fused), state_of(stepped))
    for found, expected in zip(fused._learner.mind.counts[1:4], sums(history, task), strict=True):
        assert found == pytest.approx(expected, abs=1e-12)
    assert (fused.episodes, fused.steps) == (25, int(fused._learner.mind.counts.visits.sum()))


@pytest.mark.parametrize("kind", [PSRL, UCRL2, LSVIUCB])
def test_a_file_of_the_time_when_all_saved_the_same_arrays_is_read_whole(kind):
    """An agent of an earlier version wrote it after 4 episodes; all files held phases and factors, used or not."""
    env, path = FiniteMDPEnv(mdp.chain(3)), Path(__file__).parent / "files" / f"{kind.__name__}.rlsvi"
    agent, whole = rlsvi.load(path), kind(seed=3).learn(env, episodes=4)
    assert_same(state_of(agent), state_of(whole))
    assert_same(state_of(agent.learn(env, episodes=3)), state_of(whole.learn(env, episodes=3)))


def test_a_file_whose_counts_do_not_add_up_is_refused(tmp_path):
    agent = PSRL(seed=3, reward_range=SMALL_RANGE)
    simulate(agent, small(), 5)
    agent._learner.mind.counts.visits[0, 0, 0] += 1
    agent.save(tmp_path / "agent")
    with pytest.raises(ValueError, match="do not add up"):
        rlsvi.load(tmp_path / "agent")


def test_regret_is_that_of_the_policy_played():
    problem = small()
    agent = UCBVI(scale=0.01, reward_range=SMALL_RANGE, seed=0)
    simulate(agent, problem, 50)
    before = agent._learner.mind.plan.Q.copy()
    regret = simulate(agent, problem, 1).regret[0]
    Q = agent._learner.mind.plan.Q
    assert (Q <= before).all()
    best = Q == Q.max(axis=2, keepdims=True)
    value = mdp.evaluate(problem.mdp, best / best.sum(axis=2, keepdims=True))[0, 0]
    assert regret == pytest.approx(problem.solution.V[0, 0] - value, abs=1e-12)


def test_compare_takes_them():
    agents = {"PSRL": PSRL(reward_range=SMALL_RANGE), "UCRL2": UCRL2(reward_range=SMALL_RANGE)}
    runs = rlsvi.compare(agents, small(), 20, seeds=2, progress=False)
    assert runs.cumulative("PSRL").shape == (2, 20)


def test_an_episode_that_fails_leaves_the_agent_as_it_was():
    agent = UCRL2(reward_range=(-0.5, 0.0), seed=0)
    before = agent._streams.copy()
    with pytest.raises(ValueError, match="reward -1 lies outside of reward_range"):
        simulate(agent, small(), 100)
    failed = agent.episodes
    kept = agent._streams.copy()
    with pytest.raises(ValueError, match="reward -1 lies outside of reward_range"):
        agent.learn(FiniteMDPEnv(small().mdp), episodes=100)
    assert agent.episodes == failed
    assert np.array_equal(agent._streams, kept)
    assert failed > 0 or np.array_equal(kept, before)


def test_another_task_is_refused():
    agent = PSRL(reward_range=SMALL_RANGE, seed=0)
    simulate(agent, small(), 3)
    with pytest.raises(ValueError, match="cannot go on"):
        simulate(agent, problems.dirichlet(4, 2, 3), 3)
    features = LSVIUCB(reward_range=SMALL_RANGE, seed=0)
    simulate(features, small(), 3)
    simulate(features, small(), 3)  # the same features, though another object
    with pytest.raises(ValueError, match="another basis"):
        simulate(features, Problem(small().mdp, Dense(np.ones((3, 2, 1)))), 3)


def test_a_mask_is_honoured_and_may_not_change():
    agent = PSRL(reward_range=WIDE_RANGE, seed=0)
    simulate(agent, Problem(masked()), 30)
    legal = masked().legal[0, 1]
    assert agent._learner.mind.counts.seen[0, 1]
    assert {agent.predict(1)[0] for _ in range(30)} <= set(np.flatnonzero(legal))
    mask = np.array([False, True, False])
    assert agent.predict(1, action_mask=mask) == (1, 1)
    with pytest.raises(ValueError, match="has changed"):
        agent._learner.look(0, 1, ~legal if (~legal).any() else mask)


# ---- PSRL ---------------------------------------------------------------------------------------------------


def draws(function, count=20_000):
    noise = stream(8)
    return np.array([function(noise) for _ in range(count)])


def test_next_values_have_the_moments_of_the_dirichlet():
    alpha, into, V = np.array([0.4, 1.0, 0.7, 0.0]), np.array([0.0, 2, 1, 0]), np.array([-1.0, 0.5, 2.0, 50.0])
    found = draws(lambda noise: next_value(alpha, into, V, np.empty(4), True, noise))
    weights = alpha + into
    p = weights / weights.sum()
    variance = (p @ V**2 - (p @ V) ** 2) / (weights.sum() + 1)
    assert next_value(alpha, into, V, np.empty(4), False, stream(0)) == pytest.approx(p @ V)
    assert found.mean() == pytest.approx(p @ V, abs=4.5 * math.sqrt(variance / len(found)))
    spread = np.std((found - found.mean()) ** 2) / math.sqrt(len(found))
    assert found.var() == pytest.approx(variance, abs=4.5 * spread)


def test_weights_that_underflow_still_give_a_state():
    alpha, V = np.array([1e-9, 3e-9]), np.array([0.0, 1.0])
    found = draws(lambda noise: next_value(alpha, np.zeros(2), V, np.empty(2), True, noise), 4000)
    assert set(found) == {0.0, 1.0}
    assert found.mean() == pytest.approx(0.75, abs=4.5 * math.sqrt(0.75 * 0.25 / 4000))


def test_mean_rewards_have_the_posterior_of_the_prior_given():
    beta = RewardPrior(-1.0, 3.0, 1.5, 0.5, 0.0)  # low, high, weights of low and high, no noise
    n, total = 4.0, 4.0  # 2 highs' worth
    found = (draws(lambda noise: mean_reward(beta, n, total, True, noise), 5000) + 1) / 4
    assert stats.kstest(found, stats.beta(0.5 + 2, 1.5 + 2).cdf).pvalue > 1e-4
    assert mean_reward(beta, n, total, False, stream(0)) == pytest.approx(-1 + 4 * 2.5 / 6)
    normal = RewardPrior(-1.0, 3.0, 1.0, 1.0, 0.5)
    precision = 1 / 2.0**2 + n / 0.5**2
    posterior = stats.norm((1.0 / 4 + total / 0.25) / precision, 1 / math.sqrt(precision))
    found = draws(lambda noise: mean_reward(normal, n, total, True, noise), 5000)
    assert stats.kstest(found, posterior.cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    "agent",
    [
        PSRL(alpha_P=[0.5, 1.0, 2.0], reward_range=SMALL_RANGE),
    ],
)
def test_the_mean_plan_solves_the_mean_of_the_posterior(agent):
    agent, (n, r, into) = played(agent, small())
    P = np.asarray(agent.alpha_P) + into[..., :3]
    R = (r - 1.0) / (n + 2.0)  # Beta(1, 1) on {-1, 0}
    mean = mdp.FiniteMDP.from_arrays(P / P.sum(axis=3, keepdims=True), R, start=[1.0, 0, 0])
    assert agent._plan(True).plan.Q == pytest.approx(mdp.backward_induction(mean).Q, abs=1e-12)


def test_an_early_end_counts_once_it_was_seen():
    """In FrozenLake episodes end in holes: the end has value 0 whatever the prior of the states."""
    agent, (n, r, into) = played(PSRL(alpha_P=0.1), problems.gymnasium("FrozenLake-v1", horizon=6))
    S = n.shape[1]
    assert into[:5, ..., S].sum() > 0
    weights = np.concatenate([0.1 + into[..., :S], into[..., S:]], axis=3)
    V = np.zeros(S + 1)
    for h in reversed(range(6)):
        Q = (1 + r[h]) / (2 + n[h]) + (h < 5) * (weights[h] @ V) / weights[h].sum(axis=2)
        V[:S] = Q.max(axis=1)
        assert agent._plan(True).plan.Q[h] == pytest.approx(Q, abs=1e-12)


def test_psrl_draws_the_last_period_from_its_posterior():
    agent, (n, r, _) = played(PSRL(reward_range=SMALL_RANGE), small())
    s, a = np.unravel_index(n[2].argmax(), n[2].shape)
    found = np.array([agent._plan(False, first=True).plan.Q[2, s, a] for _ in range(3000)])
    highs = n[2, s, a] + r[2, s, a]
    assert stats.kstest(found + 1, stats.beta(1 + highs, 1 + n[2, s, a] - highs).cdf).pvalue > 1e-4


# ---- UCRL2 --------------------------------------------------------------------------------------------------


def best_by_linear_program(p_mean, radius, V):
    """max p'V, sum p = 1, p >= 0, |p - p_mean|_1 <= radius, with the distances as further variables."""
    k = len(V)
    above = np.block([[np.eye(k), -np.eye(k)], [-np.eye(k), -np.eye(k)], [np.zeros((1, k)), np.ones((1, k))]])
    limits = np.concatenate([p_mean, -p_mean, [radius]])
    found = linprog(
        np.concatenate([-V, np.zeros(k)]),
        A_ub=above,
        b_ub=limits,
        A_eq=np.concatenate([np.ones(k), np.zeros(k)])[None],
        b_eq=[1.0],
    )
    return -found.fun


def test_the_optimistic_distribution_solves_its_linear_program():
    rng = np.random.default_rng(0)
    for radius in (0.0, 0.1, 0.7, 1.5, 3.0):
        into, V = rng.poisson(2.0, size=5) + np.eye(5)[0], rng.normal(size=6)
        order, p = np.empty(6, np.int64), np.empty(6)
        sort_descending(V, order, 5)
        assert V[order[:5]].tolist() == sorted(V[:5], reverse=True)
        found = optimistic(np.append(into, 0.0), into.sum(), radius, V, order, 5, p)
        assert found == pytest.approx(best_by_linear_program(into / into.sum(), radius, V[:5]), abs=1e-9)
        assert p[:5].sum() == pytest.approx(1.0)
        assert (p[:5] >= 0).all()
        assert np.abs(p[:5] - into / into.sum()).sum() <= radius + 1e-12


def test_extended_value_iteration_against_linear_programs():
    agent, (n, r, into) = played(UCRL2(reward_range=SMALL_RANGE, scale=0.15), small(), 25)
    agent._learner.mind.plan.due[0] = True
    mind = agent._learner.plan(False, stream(0))
    t, V = n.sum() + 1, np.zeros(3)
    for h in (2, 1, 0):
        for s, a in np.ndindex(3, 2):
            m = max(n[h, s, a], 1)
            rewards = 0.15 * math.sqrt(7 * math.log(2 * 3 * 3 * 2 * t / 0.05) / (2 * m))
            states = 0.15 * math.sqrt(14 * 3 * math.log(2 * 2 * 3 * t / 0.05) / m)
            assert radii(mind.rule, 3, 3, 2, t, n[h, s, a]) == pytest.approx((rewards, states))
            if n[h, s, a]:
                mean = into[h, s, a, :3] / m if h < 2 else np.eye(3)[0]
                Q = min(r[h, s, a] / m + rewards, 0.0) + best_by_linear_program(mean, states, V)
            else:
                Q = V.max()
            assert mind.plan.Q[h, s, a] == pytest.approx(Q, abs=1e-9)
        V = mind.plan.Q[h].max(axis=1)


def test_ucrl2_plans_again_only_when_a_count_has_doubled():
    agent, problem = UCRL2(reward_range=SMALL_RANGE, seed=0), small()
    plans, before = 0, None
    for _ in range(300):
        simulate(agent, problem, 1)
        planned = agent._learner.mind.plan.visits
        if before is None or (planned != before).any():
            plans += 1
            before = planned.copy()
        tried = agent._learner.mind.counts.visits - planned
        assert agent._learner.mind.plan.due[0] == (tried >= np.maximum(planned, 1)).any()
    assert 5 < plans < 18 * (2 + math.log2(300))


# ---- UCBVI --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hoeffding", "bernstein"])
def test_ucbvi_against_its_definition(kind):
    """Every episode planned by a plain twin, from plain counts."""
    problem, scale = small(), 0.002 if kind == "hoeffding" else 0.02
    agent = UCBVI(bonus=kind, scale=scale, planned=1000, delta=0.1, reward_range=SMALL_RANGE, seed=5)
    history = simulate(agent, problem, 40, trace=True)
    L, H, S, A = math.log(5 * 3 * 3 * 2 * 3000 / 0.1), 3, 3, 2  # T = 3000 of H S A pairs
    Q = np.full((H, S, A), np.inf)
    for episode in range(40):  # the last plan was made before the last episode
        past = history._replace(trace=type(history.trace)(*(x[:episode] for x in history.trace)))
        n, r, into = sums(past, problem)
        V = np.zeros((H + 1, S))
        for h in reversed(range(H)):
            for s, a in np.ndindex(S, A):
                Q[h, s, a] = min(Q[h, s, a], 0.0)
                m = n[h, s, a]
                if m == 0:
                    continue
                p = into[h, s, a, :S] / m
                if kind == "hoeffding":
                    bonus = 7 * H * L / math.sqrt(m)
                else:
                    next_visits = n[h + 1].sum(axis=1) if h + 1 < H else np.ones(S)
                    with np.errstate(divide="ignore"):
                        doubt = np.minimum(1e4 * H**3 * S**2 * A * L**2 / next_visits, H**2)
                    variance = p @ V[h + 1] ** 2 - (p @ V[h + 1]) ** 2
                    bonus = math.sqrt(8 * L * max(variance, 0.0) / m) + 14 * H * L / (3 * m)
                    bonus += math.sqrt(8 * (p @ doubt) / m) + math.sqrt(L / (2 * m))
                Q[h, s, a] = min(Q[h, s, a], r[h, s, a] / m + p @ V[h + 1] + scale * bonus)
            V[h] = Q[h].max(axis=1)
    assert agent._learner.mind.plan.Q == pytest.approx(Q, abs=1e-9)
    assert (Q < -1e-3).any()  # it is not all clipped


# ---- LSVI-UCB -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [None, 4])
def test_lsvi_ucb_against_its_definition(features):
    """One regression a period over all transitions, with an explicit inverse."""
    H, S, A = 3, 3, 2
    phi = np.random.default_rng(1).normal(size=(H, S, A, 4)) if features else np.eye(6).reshape(1, S, A, 6)
    phi /= np.linalg.norm(phi, axis=-1).max()
    problem = Problem(small().mdp, Dense(phi) if features else Tabular())
    agent = LSVIUCB(lam=0.7, scale=0.005, planned=1000, delta=0.1, reward_range=SMALL_RANGE, seed=5)
    history = simulate(agent, problem, 30, trace=True)
    plan = agent._learner.plan(False, stream(0)).plan
    d = phi.shape[3]
    beta = 0.005 * d * H * math.sqrt(math.log(2 * d * 3000 / 0.1))
    V = np.zeros(S + 1)
    for h in reversed(range(H)):
        x = phi[h % len(phi)]
        precision, y = 0.7 * np.eye(d), np.zeros(d)
        for k, s, a, reward, following in transitions(history, problem):
            if k == h:
                precision += np.outer(x[s, a], x[s, a])
                y += x[s, a] * (reward + V[following])
        covariance = np.linalg.inv(precision)
        width = np.sqrt(np.einsum("sak,kl,sal->sa", x, covariance, x))
        Q = np.minimum(x @ (covariance @ y) + beta * width, 0.0)
        assert plan.Q[h] == pytest.approx(Q, abs=1e-9)
        V[:S] = Q.max(axis=1)
    assert (plan.Q < -1e-3).any()


# ---- optimism and learning ----------------------------------------------------------------------------------


def with_data(agent, problem, each, rng):
    """The agent's plan after every pair of the problem was tried `each` times."""
    table = problem.mdp.table
    H, S, A = table.horizon, table.states, table.actions
    agent._adopt(problem.mdp, problem.basis)
    mind = agent._learner.mind
    P, R = table.probability.reshape(H, S, A, S), table.expected.reshape(H, S, A)
    mind.counts.visits[:] = each
    mind.counts.counters[1] = H * S * A * each
    mind.counts.reward[:] = -rng.binomial(each, -R)
    mind.counts.into[:-1, ..., :S] = rng.multinomial(each, P[:-1])
    mind.counts.into[-1, ..., S] = each
    if isinstance(agent, LSVIUCB):
        mind.rule.factor.U[:] = math.sqrt(1.0 + each)  # of a table, where lam = 1
        mind.rule.factor.inv[:] = 1 / math.sqrt(1.0 + each)
    return agent._learner.plan(False, stream(0)).plan.Q


@pytest.mark.parametrize("agent", [UCRL2(), UCBVI(), UCBVI(bonus="bernstein"), LSVIUCB()])
def test_optimistic_values_are_at_least_the_true_ones(agent):
    """At the theory's constants, with probability 0.95 and in practice nearly always; and close to them."""
    rng = np.random.default_rng(0)
    agent = agent.clone(reward_range=SMALL_RANGE)
    short = []
    for seed in range(20):
        problem = problems.dirichlet(2, 2, 2, seed=seed)
        Q = with_data(agent.clone(), problem, 1_000_000, rng)
        assert (Q >= problem.solution.Q).all()
        assert (Q <= problem.solution.Q + 1.0).all()
        short.append((with_data(agent.clone(scale=1e-9), problem, 1_000_000, rng) < problem.solution.Q).any())
    assert any(short)  # without the bonus they would not be


@pytest.mark.parametrize("seen", [False, True])
def test_an_early_end_is_a_candidate_of_optimism_once_it_was_seen(seen):
    """With rewards below 0 the end, of value 0, is the best that can happen."""
    agent, problem = UCRL2(reward_range=SMALL_RANGE, scale=0.05), problems.dirichlet(2, 2, 2, seed=0)
    with_data(agent, problem, 400, np.random.default_rng(0))
    agent._learner.mind.counts.ends[0] = seen
    mind = agent._learner.plan(False, stream(0))
    V = mind.plan.V[1, : 3 if seen else 2]
    assert (V[:2] < -0.01).all()
    for s, a in np.ndindex(2, 2):
        reward, radius = radii(mind.rule, 2, 2, 2, agent.steps + 1, 400)
        best = best_by_linear_program(mind.counts.into[0, s, a, : len(V)] / 400, radius, V)
        mean = mind.counts.reward[0, s, a] / 400
        assert mind.plan.Q[0, s, a] == pytest.approx(min(mean + reward, 0.0) + best, abs=1e-9)


LEARNERS = {
    "PSRL": PSRL(alpha_P=0.1, alpha_R=0.3),
    "UCRL2": UCRL2(scale=0.05),
    "UCBVI": UCBVI(scale=0.003),
    "UCBVI, Bernstein": UCBVI(bonus="bernstein", scale=0.02),
    "LSVI-UCB": LSVIUCB(lam=0.1, scale=0.003),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_all_learn_to_swim(name):
    problem = problems.river_swim(4, 10)
    regret = [simulate(LEARNERS[name].clone(seed=s), problem, 3000).regret[-100:].mean() for s in range(3)]
    assert np.median(regret) < 0.2 * problem.random_regret


@pytest.mark.parametrize("name", LEARNERS)
def test_all_find_the_treasure(name):
    """DeepSea of 6 rows, which random play finds once in 64 episodes."""
    problem = problems.deep_sea(6, seed=2)
    changes = {"alpha_P": 0.01, "alpha_R": (0.1, 0.02)} if "PSRL" in name else {}
    changes |= {"UCBVI": {"scale": 0.001}, "LSVI-UCB": {"scale": 0.0001}}.get(name, {})
    agent = LEARNERS[name].clone(reward_range=(-0.01, 1.0), seed=0, **changes)
    assert simulate(agent, problem, 1500).regret[-100:].mean() < 0.1


# ---- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PSRL(alpha_R=[1, 2, 3]), "alpha_R"),
        (lambda: PSRL(reward_range=(1.0, 0.0)), "low < high"),
        (lambda: UCRL2(delta=[0.1]), "delta"),
        (lambda: simulate(LSVIUCB(basis=Dense(np.full((3, 2, 4), 0.6))), small(), 1), "2-norm 1.2, .* divide"),
        (lambda: simulate(PSRL(alpha_P=[1.0, 2.0], reward_range=SMALL_RANGE), small(), 1), "alpha_P"),
        (lambda: simulate(PSRL(horizon=2), small(), 1), "leave it out"),
        (lambda: PSRL(horizon=9).learn(__import__("gymnasium").make("CartPole-v1"), episodes=1), "numbered"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
