"""The recommendation engine: table, simulator and basis, against brute force and the paper's own basis."""

import itertools
import math

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rlsvi
from rlsvi import (
    LSVI,
    RLSVI,
    ContextualBandit,
    EpsilonGreedy,
    OptimalPolicy,
    Posterior,
    Problem,
    ThompsonSampling,
    mdp,
)
from rlsvi.bases import Dense, Recommendation
from rlsvi.bases.basis import from_table
from rlsvi.envs import FiniteMDPEnv, RecommendationEnv
from rlsvi.mdp.recommendation import count_histories, draw_taste, histories, like_probability, number_of
from rlsvi.simulate.finite import simulate
from values import action_values


def taste(N, seed=0, beta=True):
    rng = np.random.default_rng(seed)
    return {"beta": rng.normal(size=N) if beta else 0.0, "gamma": 2 * rng.normal(size=(N, N))}


def like(beta, gamma, x, a):
    """Equation (3) of the paper."""
    return 1 / (1 + np.exp(-(np.broadcast_to(beta, len(x))[a] + gamma[a] @ x)))


def shown(x, a, answer):
    after = x.copy()
    after[a] = answer
    return after


def best(beta, gamma, x, left):
    """The most likes to come, by trying everything."""
    if left == 0:
        return 0.0
    return max(worth(beta, gamma, x, a, lambda y: best(beta, gamma, y, left - 1)) for a in np.flatnonzero(x == 0))


def worth(beta, gamma, x, a, then):
    p = like(beta, gamma, x, a)
    return p * (1 + then(shown(x, a, 1))) + (1 - p) * then(shown(x, a, -1))


def myopic(beta, gamma, x, left):
    if left == 0:
        return 0.0
    chances = [like(beta, gamma, x, a) if x[a] == 0 else -1 for a in range(len(x))]
    return worth(beta, gamma, x, int(np.argmax(chances)), lambda y: myopic(beta, gamma, y, left - 1))


# ---- the table --------------------------------------------------------------------------------------------


def test_the_papers_problem_has_4521_states():
    assert count_histories(10, 5) == 4521
    table = mdp.recommendation().table
    assert (~table.absorbing).sum() == 4521
    assert table.horizon == 5
    assert table.actions == 10


@pytest.mark.parametrize(("N", "J"), [(1, 1), (3, 3), (5, 2), (6, 4), (90, 2)])
def test_numbers_and_histories_are_one_to_one(N, J):
    x = histories(N, J)
    assert len(x) == count_histories(N, J) == len({tuple(row) for row in x})
    assert np.array_equal(number_of(x), np.arange(len(x)))
    assert not x[0].any()
    assert (np.count_nonzero(x, axis=1) < J).all()
    assert number_of(x[-1]) == len(x) - 1


@pytest.mark.parametrize(("N", "J", "seed"), [(3, 2, 0), (4, 3, 1), (3, 3, 2), (2, 1, 3)])
def test_exact_solution_agrees_with_brute_force(N, J, seed):
    given = taste(N, seed)
    problem = rlsvi.problems.recommendation(N, J, **given)
    nothing = np.zeros(N)
    assert problem.solution.V[0, 0] == pytest.approx(best(**given, x=nothing, left=J), abs=1e-12)
    for s, x in enumerate(histories(N, J)):
        h = np.count_nonzero(x)
        for a in range(N):
            expected = -np.inf
            if x[a] == 0:
                expected = worth(**given, x=x, a=a, then=lambda y, h=h: best(**given, x=y, left=J - h - 1))
            assert problem.solution.Q[h, s, a] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("N", "J", "seed"), [(4, 3, 1), (5, 4, 2)])
def test_the_optimal_myopic_policy_is_the_papers(N, J, seed):
    given = taste(N, seed)
    problem = rlsvi.problems.recommendation(N, J, **given)
    policy = mdp.myopic_values(problem.mdp).argmax(axis=2)
    value = mdp.evaluate(problem.mdp, policy)[0, 0]
    assert value == pytest.approx(myopic(**given, x=np.zeros(N), left=J), abs=1e-12)
    assert value < problem.solution.V[0, 0] - 1e-3  # planning is worth something
    for agent, expected in ((OptimalPolicy(seed=0), 0.0), (OptimalPolicy(myopic=True, seed=0), None)):
        regret = simulate(agent, problem, 5).regret
        assert regret == pytest.approx(problem.solution.V[0, 0] - value if expected is None else 0.0, abs=1e-12)


@pytest.mark.parametrize("beta", [False, True])
def test_the_myopic_policy_needs_no_table(beta):
    """After every history of a small problem it shows what the exact one does; if beta = 0, anything at first."""
    N, J = 4, 3
    given = taste(N, seed=2, beta=beta)
    known, small = draw_taste(N, **given), rlsvi.problems.recommendation(N, J, **given)
    Q = mdp.myopic_values(small.mdp)
    for s, x in enumerate(histories(N, J)):
        row = Q[np.count_nonzero(x), s]
        assert list(mdp.myopic_products(known, x)) == list(np.flatnonzero(row > row.max() - 1e-12))
    assert len(mdp.myopic_products(known, np.zeros(N))) == (1 if beta else N)
    barred = mdp.myopic_products(known, x, legal=[True, False, False, False])
    assert list(barred) == [0]
    with pytest.raises(ValueError, match="legal must leave a product"):
        mdp.myopic_products(known, x, legal=np.zeros(N))


def test_random_play_and_every_fixed_order_are_liked_half_the_time():
    """Where beta = 0, turning every answer round turns like into dislike, for any policy that ignores answers."""
    problem = rlsvi.problems.recommendation(seed=4)
    optimal = problem.solution.V[0, 0]
    assert optimal - problem.random_regret == pytest.approx(2.5, abs=1e-12)
    N, J = 4, 3
    small = rlsvi.problems.recommendation(N, J, **taste(N, beta=False))
    seen = np.vstack([histories(N, J) != 0, np.zeros((1, N), dtype=bool)])
    for order in itertools.permutations(range(N)):
        first = np.where(seen[:, order], N, np.arange(N)).min(axis=1) % N
        policy = np.tile(np.array(order)[first], (J, 1))
        assert mdp.evaluate(small.mdp, policy)[0, 0] == pytest.approx(J / 2, abs=1e-12)
    tilted = rlsvi.problems.recommendation(N, J, **taste(N, beta=True))
    assert abs(mdp.evaluate(tilted.mdp, policy)[0, 0] - J / 2) > 0.01


def test_thompson_sampling_cannot_do_better_than_that():
    problem = rlsvi.problems.recommendation(seed=4)
    regret = simulate(ThompsonSampling(seed=0), problem, 100).regret
    assert regret == pytest.approx(problem.solution.V[0, 0] - 2.5, abs=1e-12)


def test_reward_codings_are_the_same_problem():
    one, other = (rlsvi.problems.recommendation(5, 3, seed=1, reward_values=v) for v in ((0, 1), (-1, 0)))
    assert one.solution.V[0, 0] - 3 == pytest.approx(other.solution.V[0, 0], abs=1e-12)
    shift = 3 - np.arange(3)[:, None, None]
    assert one.solution.Q[:, 0, :] - shift[:, 0] == pytest.approx(other.solution.Q[:, 0, :], abs=1e-12)
    tried = simulate(LSVI(seed=0, explore=EpsilonGreedy(1.0)), other, 50, trace=True)
    assert set(np.unique(tried.trace.rewards)) == {-1.0, 0.0}
    offset = LSVI(seed=0, explore=EpsilonGreedy(1.0), reward_offset=-1.0)
    plain = LSVI(seed=0, explore=EpsilonGreedy(1.0))
    simulate(offset, one, 50), simulate(plain, other, 50)
    assert offset._learner.mind.memory.reward.tobytes() == plain._learner.mind.memory.reward.tobytes()


def test_the_draw_is_normal_and_one_seed_is_one_instance():
    gamma = draw_taste(100, scale=3.0, seed=5).gamma
    assert gamma.std() == pytest.approx(3.0, abs=5 * 3 / math.sqrt(2 * 1e4))
    assert gamma.mean() == pytest.approx(0.0, abs=5 * 3 / 100)
    assert abs(np.corrcoef(gamma.ravel(), gamma.T.ravel())[0, 1]) < 0.06  # not symmetric
    assert np.array_equal(draw_taste(7, seed=1).gamma, draw_taste(7, seed=1).gamma)
    assert not np.array_equal(draw_taste(7, seed=1).gamma, draw_taste(7, seed=2).gamma)


def test_like_probability_is_the_papers_and_holds_at_the_ends():
    given = draw_taste(6, **taste(6))
    rng = np.random.default_rng(1)
    for x in rng.integers(-1, 2, size=(20, 6)).astype(np.int8):
        for a in range(6):
            assert like_probability(given, x, a) == pytest.approx(like(*given, x, a), rel=1e-12)
    steep = draw_taste(2, beta=[800.0, -800.0])
    nothing = np.zeros(2, np.int8)
    assert [like_probability(steep, nothing, a) for a in (0, 1)] == [1.0, 0.0]


# ---- the simulator ----------------------------------------------------------------------------------------


def test_the_environment_keeps_the_conventions():
    env = gymnasium.make("rlsvi/Recommendation-v0", products=4, slots=4)
    assert isinstance(env.unwrapped, RecommendationEnv)
    check_env(env.unwrapped, skip_render_check=True)


def test_only_unseen_products_are_legal():
    env = gymnasium.make("rlsvi/Recommendation-v0", products=3, slots=3).unwrapped
    x, info = env.reset(seed=3)
    assert info["action_mask"].tolist() == [1, 1, 1]
    x, reward, _, _, info = env.step(1)
    assert info["action_mask"].tolist() == [1, 0, 1]
    assert abs(x[1]) == 1
    assert reward == (x[1] > 0)
    before = env._stream.copy()
    with pytest.raises(ValueError, match="product 1 was shown already"):
        env.step(1)
    for wrong in (3, -1, 0.5, "a", None):
        with pytest.raises(ValueError, match=r"is not one of 0..2"):
            env.step(wrong)
    assert np.array_equal(before, env._stream)
    env.step(0)
    assert env.step(2)[2]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_simulator_and_table_give_the_same_answers():
    settings = {**taste(5), "reward_values": (-1.0, 0.0)}
    direct, table = RecommendationEnv(5, 3, **settings), FiniteMDPEnv(mdp.recommendation(5, 3, **settings))
    rng = np.random.default_rng(0)
    for seed in range(60):
        x, info = direct.reset(seed=seed)
        number, same = table.reset(seed=seed)
        over = False
        while not over:
            assert number == number_of(x)
            assert np.array_equal(info["action_mask"], same["action_mask"])
            a = int(rng.choice(np.flatnonzero(x == 0)))
            x, reward, over, _, info = direct.step(a)
            number, again, ended, _, same = table.step(a)
            assert (again, ended) == (reward, over)


@pytest.mark.parametrize("agent", [RLSVI(lam=0.2, sigma=0.03), ContextualBandit(lam=0.2, sigma=0.03)])
def test_histories_and_their_numbers_are_learned_alike(agent):
    tables = rlsvi.problems.recommendation(4, 3, seed=2)
    first, second = (agent.clone(basis=Recommendation(), seed=5) for _ in range(2))
    first.learn(FiniteMDPEnv(tables.mdp), episodes=60)
    second.learn(gymnasium.make("rlsvi/Recommendation-v0", products=4, slots=3, seed=2), episodes=60)
    if isinstance(agent, RLSVI):
        assert np.allclose(first._learner.mind.factor.U, second._learner.mind.factor.U, rtol=1e-9)
        assert np.allclose(first._learner.mind.memory.reward, second._learner.mind.memory.reward)
    else:
        assert first._learner.mind.factor.U.tobytes() == second._learner.mind.factor.U.tobytes()
        assert first._learner.mind.reward.tobytes() == second._learner.mind.reward.tobytes()


def test_any_size_can_be_simulated():
    env = RecommendationEnv(300, 12, seed=1)
    agent = ThompsonSampling(seed=0).learn(env, episodes=3)
    assert agent.steps == 36
    assert agent._learner.mind.counts.sum() == 600 + 36


def test_pictures_and_text():
    env = RecommendationEnv(4, 2, beta=50.0, gamma=np.zeros((4, 4)), render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.render()
    env.reset(seed=0)
    env.step(2)
    assert env.render() == "..+.  1 of 2 shown"
    env.render_mode = "rgb_array"
    assert env.render().shape[2] == 3


# ---- the basis --------------------------------------------------------------------------------------------


def papers_basis(N, J):
    """phi_m and phi_mn, (S, A, N^2 + N), as written in section 6.3."""
    x = np.vstack([histories(N, J), np.zeros((1, N))])
    phi = np.zeros((len(x), N, N + N * N))
    for a in range(N):
        phi[:, a, a] = 1.0
        phi[:, a, N + a * N : N + (a + 1) * N] = x
    return phi


def test_posteriors_in_blocks_are_those_of_the_papers_dense_basis():
    N, J, lam, sigma = 4, 3, 0.2, 0.03
    dense, features = papers_basis(N, J), Recommendation().bind(count_histories(N, J) + 1, N, J, 0)
    x = histories(N, J)
    blocks, whole = Posterior(N, N, lam, sigma), Posterior(1, N + N * N, lam, sigma)
    rng = np.random.default_rng(0)
    for _ in range(80):
        s = rng.integers(len(x))
        a = rng.choice(np.flatnonzero(x[s] == 0))
        target = rng.normal()
        block, phi = features.at(0, s)
        blocks.observe(block[a], phi[a], target)
        whole.observe(0, dense[s, a], target)
    mean, dense_mean = blocks.mean(), whole.mean()[0]
    for s in range(len(x)):
        block, phi = features.at(0, s)
        for a in np.flatnonzero(x[s] == 0):
            spread = math.sqrt(whole.variance(0, dense[s, a]))
            assert math.sqrt(blocks.variance(block[a], phi[a])) == pytest.approx(spread, rel=1e-9)
            assert abs(phi[a] @ mean[block[a]] - dense[s, a] @ dense_mean) < 1e-8 * max(spread, 1)


def test_values_learned_in_blocks_are_those_of_the_papers_dense_basis():
    """Random play makes the data the same; then value iteration, with maxima over legal products, must agree."""
    N, J = 4, 3
    task = mdp.recommendation(N, J, seed=6)
    agents = []
    for basis in (Recommendation(), Dense(papers_basis(N, J))):
        agents.append(LSVI(lam=0.2, explore=EpsilonGreedy(1.0), seed=3))
        simulate(agents[-1], Problem(task, basis), 150)
    legal = 0
    for s, x in enumerate(histories(N, J)):
        h = np.count_nonzero(x)
        first, second = (action_values(agent, agent._plan(True), h, s) for agent in agents)
        assert first[x == 0] == pytest.approx(second[x == 0], abs=1e-8)
        place = agents[0]._learner.look(h, s, None, learning=False)
        if place.row >= 0:  # it was seen
            assert np.array_equal(place.legal, x == 0)
            legal += 1
    assert legal > 20


class Reversed:
    """The same basis with its blocks in the opposite order, which takes another way through the code."""

    def bind(self, states, actions, horizon, example):
        table = Recommendation().bind(states, actions, horizon, example).table
        return from_table(table.phi, actions - 1 - table.block, actions, "Reversed")


def test_the_order_of_blocks_changes_no_bit():
    task = mdp.recommendation(7, 3, seed=6)
    values = []
    for basis in (Recommendation(), Reversed()):
        agent = LSVI(lam=0.2, explore=EpsilonGreedy(1.0), seed=3)
        simulate(agent, Problem(task, basis), 200)
        n = agent._learner.mind.memory.states
        values.append([agent._learner.mind.values.Q[h, : n[h] * 7].tobytes() for h in range(3)])
        ordered = agent._learner.mind.values.ordered
    assert values[0] == values[1]
    assert not ordered.any()
    assert max(n) * 7 > 2 * 64  # more than one tile


def test_features_of_a_history():
    features = Recommendation().bind(None, 3, 2, np.zeros(3, np.int8))
    block, phi = features.at(0, np.array([0, 1, -1], np.int8))
    assert block.tolist() == [0, 1, 2]
    assert phi.tolist() == [[1, 1, -1], [0, 1, -1], [0, 1, 1]]
    assert (features.blocks, features.dim) == (3, 3)


# ---- what goes wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"products": 0}, "products must be a whole number"),
        ({"slots": 0}, "slots must be a whole number"),
        ({"slots": 11}, "slots must be at most products = 10"),
        ({"products": 2.5}, "products must be a whole number"),
        ({"beta": [1.0, 2.0]}, r"beta must have shape \(10,\)"),
        ({"beta": np.nan}, "beta must be finite"),
        ({"gamma": np.zeros((3, 3))}, r"gamma must have shape \(10, 10\)"),
        ({"gamma": np.full((10, 10), np.inf)}, "gamma must be finite"),
        ({"scale": 0.0}, "scale must be a positive"),
        ({"scale": np.nan}, "scale must be a positive"),
        ({"seed": -1}, "seed must be a non-negative integer"),
        ({"reward_values": (1.0, 0.0)}, "reward_values must be a pair"),
        ({"reward_values": (0.0, np.nan)}, "reward_values must be finite"),
        ({"reward_values": (0.0, 0.5, 1.0)}, "reward_values must be a pair"),
    ],
)
@pytest.mark.parametrize("make", [mdp.recommendation, RecommendationEnv])
def test_bad_settings_are_named(make, settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


def test_what_is_too_large_for_a_table_is_refused_with_advice():
    for size in ((200, 10), (2000, 1000)):
        with pytest.raises(ValueError, match="too many for a table: take fewer, or learn from the simulator"):
            rlsvi.problems.recommendation(*size)
    with pytest.raises(ValueError, match="too many for a number of 64 bits"):
        number_of(np.ones(500, np.int8))


def test_the_basis_refuses_what_is_no_history():
    with pytest.raises(ValueError, match=r"needs the states of mdp.recommendation"):
        simulate(RLSVI(basis=Recommendation()), rlsvi.problems.chain(5), 1)
    features = Recommendation().bind(None, 3, 2, np.zeros(3))
    for wrong in ([0, 1], [0, 2, 0], [0.0, np.nan, 0.0], "abc"):
        with pytest.raises(ValueError, match="needs a history of 3 numbers -1, 0 or 1"):
            features.at(0, wrong)


def test_a_bandit_without_a_basis_is_told_of_the_one_for_histories():
    agent = ContextualBandit(seed=0)
    with pytest.raises(ValueError, match=r"pass basis=rlsvi\.bases\.Recommendation\(\) for histories"):
        agent.learn(RecommendationEnv(3, 2), episodes=1)
    assert agent.episodes == 0
    agent.learn(RecommendationEnv(3, 2, numbered=True), episodes=1)  # numbers need none


def test_an_episode_begins_with_one_random_number_and_an_answer_takes_one():
    env = RecommendationEnv(3, 2)
    env.reset(seed=9)
    begin = env._stream[3]
    env.step(0)
    assert env._stream[3] - begin == 1


@pytest.mark.parametrize("myopic", [False, True])
def test_known_policies_play_numbered_histories(myopic):
    env = RecommendationEnv(4, 2, seed=3, numbered=True)
    agent = OptimalPolicy(myopic=myopic, seed=0).learn(env, episodes=300)
    twin = OptimalPolicy(myopic=myopic, seed=0)
    history = simulate(twin, rlsvi.problems.recommendation(4, 2, seed=3), 300)
    assert agent.steps == twin.steps == 600
    assert history.reward.mean() > 0.9
    np.testing.assert_array_equal(
        env.mdp.table.probability, rlsvi.problems.recommendation(4, 2, seed=3).mdp.table.probability
    )


def test_numbers_are_those_of_the_histories_seen():
    plain, numbered = RecommendationEnv(4, 3, seed=1), RecommendationEnv(4, 3, seed=1, numbered=True)
    x, _ = plain.reset(seed=5)
    s, _ = numbered.reset(seed=5)
    for action in (2, 0, 3):
        assert (histories(4, 3)[s] == x).all()
        x, reward, over, _, _ = plain.step(action)
        s, other, ended, _, _ = numbered.step(action)
        assert (reward, over) == (other, ended)
    assert s == len(histories(4, 3))
    assert numbered.observation_space.contains(s)
