"""Agents without value iteration: what they learn, both loops bit for bit, saving, and what they refuse."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TransformObservation
from scipy import stats

import rlsvi
from contract.interrupts import every_line, interrupted
from rlsvi import ContextualBandit, OptimalPolicy, Posterior, Problem, ThompsonSampling, mdp
from rlsvi.bases import ActionFeatures, Recommendation, StateFeatures
from rlsvi.core.archive import ArchiveError
from rlsvi.core.random import beta, stream
from rlsvi.envs import FiniteMDPEnv, RecommendationEnv
from rlsvi.mdp.recommendation import number_of
from rlsvi.simulate.finite import simulate
from saved import read, write
from twin import Recorder, assert_same, state_of
from values import action_values


def masked():
    """Masks that change with the period, an absorbing state, two first states, rewards of 0 and 1."""
    rng = np.random.default_rng(11)
    legal = rng.random((6, 5, 3)) < 0.5
    legal[..., 1] = True
    return mdp.FiniteMDP.from_arrays(
        rng.dirichlet(np.full(5, 0.7), size=(6, 5, 3)),
        rng.random((6, 5, 3)),
        start=[0.3, 0.7, 0, 0, 0],
        rewards="bernoulli",
        legal=legal,
        absorbing=np.arange(5) == 4,
    )


PROBLEMS = {
    "recommendation": lambda: rlsvi.problems.recommendation(5, 3, seed=2),
    "masked table": lambda: Problem(masked()),
    "masked, one block": lambda: Problem(masked(), ActionFeatures(lambda s, a: [1.0, np.sin(s + 3 * a)])),
    "chain": lambda: rlsvi.problems.chain(8, features=4, seed=1),
}
AGENTS = {
    "per period": ContextualBandit(lam=0.5, sigma=0.3),
    "pooled, offset and prior": ContextualBandit(pooled=True, sigma=0.2, prior_mean=0.4, reward_offset=-0.2),
    "Thompson": ThompsonSampling(),
    "Thompson, other prior": ThompsonSampling(prior=(0.5, 2.0)),
    "optimal": OptimalPolicy(),
    "myopic": OptimalPolicy(myopic=True),
}


def fused(agent, problem, n):
    trace = simulate(agent, problem, n, trace=True).trace
    lengths = (trace.states >= 0).sum(axis=1)
    return [list(zip(*(a[i, :T].tolist() for a in trace), strict=True)) for i, T in enumerate(lengths)]


def stepped(agent, problem, n):
    env = Recorder(FiniteMDPEnv(problem.mdp))
    agent.learn(env, episodes=n)
    return env.episodes


# ---- one loop ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("task", PROBLEMS)
def test_fused_and_gymnasium_loops_agree_bit_for_bit(task, name):
    problem = PROBLEMS[task]()
    # A basis, where there is one, for Gymnasium knows none.
    own = {"basis": problem.basis} if "basis" in AGENTS[name].get_params() else {}
    agents = [AGENTS[name].clone(seed=7, **own) for _ in range(3)]
    first, second = fused(agents[0], problem, 40), stepped(agents[1], problem, 40)
    assert first == second
    assert_same(state_of(agents[0]), state_of(agents[1]))
    mixed = [
        e for loop, n in ((stepped, 3), (fused, 7), (stepped, 1), (fused, 29)) for e in loop(agents[2], problem, n)
    ]
    assert mixed == first
    assert_same(state_of(agents[2]), state_of(agents[0]))
    assert sum(map(len, first)) == agents[0].steps


# ---- what they learn --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pooled", [False, True])
def test_the_contextual_bandit_is_the_posterior_of_rewards(pooled):
    problem, lam, sigma = PROBLEMS["recommendation"](), 0.3, 0.2
    agent = ContextualBandit(lam=lam, sigma=sigma, pooled=pooled, prior_mean=0.5, seed=1)
    episodes = fused(agent, problem, 60)
    features = problem.basis.bind(problem.mdp.states, 5, 3, 0)
    posteriors = [Posterior(5, 5, lam, sigma, 0.5) for _ in range(1 if pooled else 3)]
    for episode in episodes:
        for h, (s, a, r) in enumerate(episode):
            block, phi = features.at(h, s)
            posteriors[0 if pooled else h].observe(block[a], phi[a], r)
    plan = agent._plan(mean=True)
    for h in range(3):
        for s in {episode[h][0] for episode in episodes}:
            block, phi = features.at(h, s)
            theta = posteriors[0 if pooled else h].mean()
            expected = [phi[a] @ theta[block[a]] for a in range(5)]
            assert action_values(agent, plan, h, s) == pytest.approx(expected, abs=1e-9)


def test_the_contextual_bandit_samples_its_posterior():
    problem = PROBLEMS["recommendation"]()
    agent = ContextualBandit(lam=0.3, sigma=0.2, pooled=True, seed=1)
    episodes = fused(agent, problem, 30)
    features = problem.basis.bind(problem.mdp.states, 5, 3, 0)
    posterior = Posterior(5, 5, 0.3, 0.2)
    for episode in episodes:
        for h, (s, a, r) in enumerate(episode):
            block, phi = features.at(h, s)
            posterior.observe(block[a], phi[a], r)
    draws = np.array([action_values(agent, agent._plan(mean=False, first=True), 0, 0) for _ in range(4000)])
    block, phi = features.at(0, 0)
    for a in range(5):
        mean, sd = phi[a] @ posterior.mean()[a], np.sqrt(posterior.variance(a, phi[a]))
        assert draws[:, a].mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(4000))
        assert draws[:, a].std() == pytest.approx(sd, rel=5 / np.sqrt(2 * 4000))
    assert np.abs(np.corrcoef(draws.T) - np.eye(5)).max() < 5 / np.sqrt(4000)  # blocks are independent


def test_a_sample_is_held_through_the_episode():
    problem = PROBLEMS["recommendation"]()
    agent = ContextualBandit(pooled=True, seed=1)
    fused(agent, problem, 5)
    first = action_values(agent, agent._plan(mean=False, first=True), 0, 0)
    assert np.array_equal(action_values(agent, agent._plan(mean=False), 0, 0), first)
    assert not np.array_equal(action_values(agent, agent._plan(mean=False, first=True), 0, 0), first)


def test_the_contextual_bandit_learns_the_myopic_policy():
    problem = rlsvi.problems.recommendation(4, 2, beta=[0.9, 0.3, -0.3, -0.9], seed=3)
    agent = ContextualBandit(lam=0.2, sigma=0.3, seed=0)
    late = simulate(agent, problem, 3000).regret[-300:].mean()
    myopic = simulate(OptimalPolicy(myopic=True, seed=0), problem, 300).regret.mean()
    assert late < myopic + 0.1 * (problem.random_regret - myopic)


def test_beta_draws_have_the_distribution_of_beta():
    noise = stream(5)
    for a, b in ((1.0, 1.0), (0.1, 0.1), (0.5, 3.0), (40.0, 7.5)):
        draws = np.array([beta(noise, a, b) for _ in range(4000)])
        assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > 1e-3


def test_thompson_sampling_counts_successes():
    problem = PROBLEMS["masked table"]()
    agent = ThompsonSampling(prior=(2.0, 3.0), seed=0)
    expected = np.repeat([[2.0], [3.0]], 3, axis=1)
    for episode in fused(agent, problem, 50):
        for _, a, r in episode:
            expected[:, a] += r, 1 - r
    assert np.array_equal(agent._learner.mind.counts, expected)
    mean = expected[0] / expected.sum(axis=0)
    assert agent.predict(0, deterministic=True)[0] == mean.argmax()


def test_thompson_sampling_finds_the_best_arm_and_recommends_in_order():
    arms = mdp.FiniteMDP.from_arrays(
        np.ones((1, 4, 1)), [[0.2, 0.7, 0.5, 0.1]], horizon=1, start=[1.0], rewards="bernoulli"
    )
    agent = ThompsonSampling(seed=0)
    regret = simulate(agent, Problem(arms), 2000).regret
    assert regret[-500:].mean() < 0.01
    env = RecommendationEnv(6, 6, beta=np.linspace(-2, 2, 6), gamma=np.zeros((6, 6)))
    shown = Recorder(env)
    learned = ThompsonSampling(seed=1).learn(shown, episodes=20)
    p = learned._learner.mind.p
    assert [a for _, a, _ in shown.episodes[-1]] == np.argsort(-p).tolist()


def test_the_optimal_policy_has_no_regret_and_takes_on_any_mdp():
    agent = OptimalPolicy(seed=0)
    for name in ("chain", "masked table", "recommendation"):
        problem = PROBLEMS[name]()
        assert np.abs(simulate(agent, problem, 20).regret).max() < 1e-12
        agent.learn(FiniteMDPEnv(problem.mdp), episodes=2)
    river = rlsvi.problems.river_swim()
    assert simulate(OptimalPolicy(myopic=True, seed=0), river, 3).regret.mean() > 0.5


def test_myopic_values_count_the_terminal_reward_where_it_is_paid():
    values = mdp.myopic_values(mdp.chain(4))
    assert not values[:2].any()
    assert values[2, 2].tolist() == [0.0, 0.75]


def test_a_known_policy_plays_any_environment_whose_mdp_is_given():
    problem = rlsvi.problems.recommendation(5, 3, seed=2)
    env = RecommendationEnv(5, 3, seed=2)
    numbered = TransformObservation(env, lambda x: int(min(number_of(x), problem.mdp.states - 1)), Discrete(132))
    assert problem.mdp.states == 1 + 10 + 40 + 1
    with pytest.raises(ValueError, match="pass the mdp that is played"):
        OptimalPolicy(mdp=problem.mdp, seed=4).learn(numbered, episodes=1)
    numbered.observation_space = Discrete(problem.mdp.states)
    direct, table = (OptimalPolicy(mdp=problem.mdp, seed=4) for _ in range(2))
    seen = Recorder(numbered)
    direct.learn(seen, episodes=20)
    assert [[s[1:] for s in e] for e in seen.episodes] == [[s[1:] for s in e] for e in stepped(table, problem, 20)]


def test_regret_along_the_path_has_the_regret_as_its_mean():
    problem = rlsvi.problems.recommendation(5, 3, seed=7)
    history = simulate(OptimalPolicy(myopic=True, seed=0), problem, 4000)
    path = history.path_regret
    assert (path >= -1e-12).all()
    assert path.std() > 0
    assert path.mean() == pytest.approx(history.regret.mean(), abs=5 * path.std() / np.sqrt(4000))
    dithering = rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(1.0), seed=0)
    found = simulate(dithering, problem, 4000)
    assert found.regret == pytest.approx(problem.random_regret, abs=1e-9)
    spread = found.path_regret.std()
    assert found.path_regret.mean() == pytest.approx(problem.random_regret, abs=5 * spread / np.sqrt(4000))
    assert spread < found.realised.std()


# ---- any environment --------------------------------------------------------------------------------------


class Drift(gymnasium.Env):
    """A number drifts until it leaves [-1, 1]; no horizon is known."""

    observation_space = Box(-9.0, 9.0, (1,), np.float64)
    action_space = Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        return np.array([self.x]), {}

    def step(self, action):
        assert 5 <= action <= 7
        self.x += 0.3 * (action - 6) + 0.3 * self.np_random.normal()
        return np.array([self.x]), float(abs(self.x) < 0.5), abs(self.x) > 1, False, {}


BASIS = StateFeatures(lambda x: [1.0, x[0], x[0] ** 2])


def test_episodes_of_any_length():
    pooled = ContextualBandit(pooled=True, basis=BASIS, seed=0).learn(Drift(), episodes=20)
    assert pooled.episodes == 20
    assert 5 <= pooled.predict(np.array([0.7]), deterministic=True)[0] <= 7
    assert ThompsonSampling(seed=0).learn(Drift(), steps=50).steps >= 50
    with pytest.raises(ValueError, match="number of periods is not known"):
        ContextualBandit(basis=BASIS).learn(Drift(), episodes=1)


def test_the_bandits_knowledge_does_not_grow():
    agent = ContextualBandit(pooled=True, basis=BASIS, seed=0).learn(Drift(), episodes=5)
    before = sum(array.nbytes for array in agent._state().values())
    agent.learn(Drift(), episodes=50)
    assert sum(array.nbytes for array in agent._state().values()) == before


# ---- saving -----------------------------------------------------------------------------------------------


def test_a_policy_is_saved_with_the_mdp_it_was_given(tmp_path):
    agent = OptimalPolicy(mdp=masked(), seed=1)
    agent.save(tmp_path / "new.rlsvi")
    loaded = rlsvi.load(tmp_path / "new.rlsvi")
    assert loaded.episodes == 0
    periods, states = range(6), range(5)
    found, expected = ([one.predict(s, h)[0] for h in periods for s in states] for one in (loaded, agent))
    assert found == expected


@pytest.mark.parametrize(
    ("name", "array", "change"),
    [
        ("Thompson", "counts", lambda a: -a),
        ("Thompson", "counts", lambda a: a[:, :2]),
        ("Thompson", "counts", lambda a: a * np.nan),
        ("per period", "factor.U", lambda a: a[:1]),
        ("per period", "reward", lambda a: a + np.inf),
        ("optimal", "Q", lambda a: a * np.nan),
    ],
)
def test_damaged_files_are_refused(name, array, change, tmp_path):
    path = tmp_path / "agent.rlsvi"
    agent = AGENTS[name].clone(seed=7)
    fused(agent, PROBLEMS["recommendation"](), 5)
    agent.save(path)
    header, arrays = read(path)
    arrays[array] = change(arrays[array])
    write(path, header, arrays)
    with pytest.raises(ArchiveError, match=r"damaged|not a saved agent"):
        rlsvi.load(path)


# ---- what goes wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", [fused, stepped])
def test_rewards_that_are_no_successes_are_refused_and_nothing_is_learned(loop):
    problem = rlsvi.problems.recommendation(5, 3, reward_values=(-1.0, 0.0))
    agent = ThompsonSampling(seed=0)
    with pytest.raises(ValueError, match="reward_offset=1 for rewards"):
        loop(agent, problem, 50)
    assert agent.episodes < 50
    counted = agent._learner.mind.counts.sum() - 10 if agent._learner is not None else 0
    assert counted == 3 * agent.episodes
    assert len(loop(ThompsonSampling(reward_offset=1.0, seed=0), problem, 50)) == 50


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OptimalPolicy().learn(RecommendationEnv(), episodes=1), "pass mdp= to the agent"),
        (lambda: OptimalPolicy(mdp=mdp.chain(4)).predict(0, 3), "period 3 of 3: start a new episode"),
        (lambda: OptimalPolicy(mdp=mdp.chain(4)).predict(9), "observation must lie in 0..3"),
        (lambda: simulate(OptimalPolicy(mdp=mdp.chain(4)), rlsvi.problems.chain(5), 1), "leave mdp out"),
        (lambda: simulate(ContextualBandit(horizon=2), rlsvi.problems.chain(5), 1), "leave it out"),
        (
            lambda: simulate(ContextualBandit(prior_mean=[1.0, 2.0]), rlsvi.problems.chain(5), 1),
            "one mean per weight",
        ),
        (lambda: simulate(rlsvi.StationaryRLSVI(), rlsvi.problems.chain(5), 1), "has no fused loop"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        make()


def test_another_task_or_basis_is_refused():
    problem = PROBLEMS["recommendation"]()
    agent = ContextualBandit(seed=0)
    simulate(agent, problem, 3)
    with pytest.raises(ValueError, match="has learned through another basis"):
        simulate(agent, Problem(problem.mdp, rlsvi.bases.Tabular()), 1)
    simulate(agent, Problem(problem.mdp, Recommendation()), 1)
    for other in (agent, simulate_once(ThompsonSampling(seed=0), problem)):
        with pytest.raises(ValueError, match=r"use agent.clone"):
            simulate(other, rlsvi.problems.chain(5), 1)


def simulate_once(agent, problem):
    simulate(agent, problem, 1)
    return agent


def test_interrupted_while_another_mdp_is_taken_on_the_optimal_policy_knows_one_of_them():
    large, small = rlsvi.problems.deep_sea(8), rlsvi.problems.deep_sea(3)

    def taken_on(agent):
        agent._adopt(small.mdp)

    for at in every_line(lambda: taken_on(OptimalPolicy())):
        agent = OptimalPolicy(seed=0)
        agent._adopt(large.mdp)
        interrupted(lambda agent=agent: taken_on(agent), at)
        assert agent._learner.mind.Q.shape[0] == agent._task.horizon
