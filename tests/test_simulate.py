"""The fused loop is the Gymnasium loop bit for bit, and expected regret is what exact evaluation says it is."""

import numpy as np
import pytest

import rlsvi
from rlsvi import LSVI, RLSVI, Boltzmann, EpsilonGreedy, Greedy, Linear, Problem, mdp
from rlsvi.agents.explore import probabilities
from rlsvi.bases import ActionFeatures, Dense, StateFeatures, Tabular
from rlsvi.core.random import bits, reseed, stream
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp.finite import first_state
from rlsvi.simulate.finite import run, simulate
from twin import Recorder, assert_same, state_of
from values import action_values


def masked():
    """Five states, masks that change with the period, an absorbing state, noise, two first states."""
    rng = np.random.default_rng(11)
    legal = rng.random((6, 5, 3)) < 0.5
    legal[..., 1] = True
    return mdp.FiniteMDP.from_arrays(
        rng.dirichlet(np.full(5, 0.7), size=(6, 5, 3)),
        rng.normal(size=(6, 5, 3)),
        start=[0.3, 0.7, 0, 0, 0],
        rewards="gaussian",
        reward_std=0.2,
        terminal_reward=rng.normal(size=5),
        legal=legal,
        absorbing=np.arange(5) == 4,
    )


def random_features(S):
    table = np.random.default_rng(S).normal(size=(S, 3))
    return StateFeatures(lambda s: table[s])


PROBLEMS = {
    "chain, coherent": lambda: rlsvi.problems.chain(10, features=5, seed=3),
    "stochastic deep sea": lambda: rlsvi.problems.deep_sea(7, stochastic=True, seed=1),
    "river swim": lambda: rlsvi.problems.river_swim(6, 12),
    "dirichlet": lambda: rlsvi.problems.dirichlet(5, 3, 4, seed=2),
    "dirichlet, a block an action": lambda: Problem(mdp.dirichlet(5, 3, 4, seed=2), random_features(5)),
    "masked": lambda: Problem(masked()),
    "masked, one block": lambda: Problem(masked(), ActionFeatures(lambda s, a: [1.0, np.sin(s + 3 * a)])),
    "frozen lake": lambda: rlsvi.problems.gymnasium("FrozenLake-v1", horizon=15),
    "40 states a period": lambda: Problem(mdp.dirichlet(40, 2, 3, homogeneous=True, seed=4)),
}
AGENTS = {
    "RLSVI": RLSVI(lam=1.0, sigma=0.3),
    "RLSVI, offset and prior": RLSVI(lam=0.5, sigma=1.0, prior_mean=0.3, reward_offset=-0.25),
    "greedy": LSVI(explore=Greedy()),
    "epsilon-greedy": LSVI(explore=EpsilonGreedy(Linear(1.0, 0.1, 30))),
    "Boltzmann": LSVI(explore=Boltzmann(0.2)),
}


def fused(agent, problem, n):
    """The states, actions and rewards of n episodes of the fused loop."""
    trace = simulate(agent, problem, n, trace=True).trace
    lengths = (trace.states >= 0).sum(axis=1)
    return [list(zip(*(a[i, :T].tolist() for a in trace), strict=True)) for i, T in enumerate(lengths)]


def stepped(agent, problem, n):
    """The same through Gymnasium."""
    env = Recorder(FiniteMDPEnv(problem.mdp))
    agent.learn(env, episodes=n)
    return env.episodes


def whole_state(agent):
    """All of it, the value function last acted on included."""
    values, n = agent._learner.mind.values, agent._learner.mind.memory.states.max()
    shown = {"theta": values.theta, "key": values.key, "Q": values.Q[:, : n * agent._learner.task.actions]}
    return state_of(agent) | {name: array.copy() for name, array in shown.items()}


# ---- one loop ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("task", PROBLEMS)
def test_fused_and_gymnasium_loops_agree_bit_for_bit(task, name):
    problem = PROBLEMS[task]()
    agents = [AGENTS[name].clone(basis=problem.basis, seed=7) for _ in range(2)]
    first, second = fused(agents[0], problem, 60), stepped(agents[1], problem, 60)
    assert first == second
    assert_same(whole_state(agents[0]), whole_state(agents[1]))
    assert len(first) == agents[0].episodes == 60
    assert sum(map(len, first)) == agents[0].steps


@pytest.mark.parametrize("task", ["chain, coherent", "masked", "40 states a period"])
def test_going_back_and_forth_between_the_loops_is_one_loop(task):
    problem = PROBLEMS[task]()
    mixed, straight = (RLSVI(sigma=0.3, basis=problem.basis, seed=5) for _ in range(2))
    played = []
    for loop, n in ((fused, 7), (stepped, 30), (fused, 1), (stepped, 1), (fused, 61)):
        played += loop(mixed, problem, n)
    assert played == fused(straight, problem, 100)
    assert_same(whole_state(mixed), whole_state(straight))


def test_seeds_matter():
    problem = PROBLEMS["river swim"]()
    assert fused(RLSVI(seed=1), problem, 20) != fused(RLSVI(seed=2), problem, 20)


def test_memory_grows_beyond_its_first_room():
    problem = PROBLEMS["40 states a period"]()
    agent = RLSVI(seed=0)
    episodes = fused(agent, problem, 500)
    memory = agent._learner.mind.memory
    states = [len({episode[h][0] for episode in episodes}) for h in range(3)]
    sums = [len({(e[h][0], e[h][1], e[h + 1][0]) for e in episodes}) for h in range(2)]
    assert memory.states.tolist() == states
    assert memory.sums.tolist() == [*sums, 0]
    assert max(states) > 32  # the room for 16 was doubled twice
    assert max(sums) > 256


def test_the_agents_own_basis_goes_before_the_problems():
    problem = rlsvi.problems.chain(5, features=3)
    agent = RLSVI(basis=Tabular(), seed=0)
    simulate(agent, problem, 3)
    assert (agent._learner.features.blocks, agent._learner.features.dim) == (10, 1)


def test_a_horizon_given_to_the_agent_must_be_the_problems():
    with pytest.raises(ValueError, match="horizon is 6, the problem has 10 periods: leave it out"):
        simulate(RLSVI(horizon=6, seed=0), rlsvi.problems.river_swim(4, 10), 5)


def test_a_problem_that_is_refused_leaves_the_agent_as_it_was():
    agent, wrong = RLSVI(seed=0), rlsvi.bases.Dense(np.ones((9, 9, 9)))
    with pytest.raises(ValueError, match="phi must have shape"):
        simulate(agent, Problem(mdp.chain(5), wrong), 3)
    simulate(agent, rlsvi.problems.chain(4), 3)
    with pytest.raises(ValueError, match="another basis"):
        simulate(agent, Problem(mdp.chain(4), rlsvi.bases.Dense(np.ones((4, 2, 1)))), 3)


@pytest.mark.parametrize("loop", ["fused", "stepped"])
def test_a_factor_gone_bad_raises_in_both_loops(loop):
    problem = rlsvi.problems.chain(5)
    agent = RLSVI(seed=0)
    simulate(agent, problem, 5)
    agent._learner.mind.factor.U[:] = np.nan
    with pytest.raises(ArithmeticError, match="stopped being finite"):
        simulate(agent, problem, 5) if loop == "fused" else agent.learn(FiniteMDPEnv(problem.mdp), episodes=5)


def test_every_kind_of_problem_runs_the_same_machine_code():
    """After the first one, no signature is added: nobody waits for a second compilation."""
    kinds = (
        rlsvi.problems.chain(4),
        rlsvi.problems.chain(4, 3),
        rlsvi.problems.deep_sea(3, stochastic=True),
        rlsvi.problems.river_swim(3, 4),
        rlsvi.problems.dirichlet(2, 2, 2),
        rlsvi.problems.gymnasium("FrozenLake-v1"),
    )
    simulate(RLSVI(seed=0), kinds[0], 2)
    known = set(run.signatures)
    for problem in kinds:
        for agent in (RLSVI(seed=0), LSVI(seed=0, prior_mean=1, reward_offset=-1)):
            simulate(agent, problem, 2)
    assert set(run.signatures) == known


# ---- threads ----------------------------------------------------------------------------------------------


def test_any_number_of_workers_gives_the_same_bits():
    agents = {"RLSVI": AGENTS["RLSVI"], "Boltzmann": AGENTS["Boltzmann"]}
    frames = [
        rlsvi.compare(
            agents,
            lambda seed: rlsvi.problems.chain(8, features=4, seed=seed),
            episodes=150,
            seeds=6,
            workers=workers,
            progress=False,
        ).frame
        for workers in (1, 2, 4)
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])
    one = RLSVI(lam=1.0, sigma=0.3, seed=4)
    alone = simulate(one, rlsvi.problems.chain(8, features=4, seed=4), 150)
    rows = frames[0].to_dict(as_series=False)
    shared = [
        r
        for r, name, s in zip(rows["regret"], rows["agent"], rows["seed"], strict=True)
        if (name, s) == ("RLSVI", 4)
    ]
    assert shared == alone.regret.tolist()


# ---- regret -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", PROBLEMS)
def test_asking_for_regret_changes_nothing(task):
    problem = PROBLEMS[task]()
    with_regret, without = (RLSVI(sigma=0.3, seed=9) for _ in range(2))
    first = simulate(with_regret, problem, 50, trace=True)
    second = simulate(without, problem, 50, regret=False, trace=True)
    for one, other in zip(first.trace, second.trace, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(first.reward, second.reward)
    np.testing.assert_array_equal(first.realised, second.realised)
    assert_same(whole_state(with_regret), whole_state(without))
    assert np.isfinite(first.regret).all()
    assert np.isnan(second.regret).all()


def policy_of(agent, problem, values, episode):
    """What the agent plays in an episode, as a table (H, S, A) of probabilities."""
    t = problem.mdp.table
    rule, parameter = agent.explore.parameters(episode, 1)
    mu = np.zeros((t.horizon, t.states, t.actions))
    for h in range(t.horizon):
        for s in np.flatnonzero(~t.absorbing):
            Q = action_values(agent, values, h, s)
            assert probabilities(rule, parameter[0], Q, t.legal[h % len(t.legal), s], mu[h, s])
    return mu


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(
    "task", ["chain, coherent", "stochastic deep sea", "dirichlet", "masked", "masked, one block"]
)
def test_expected_regret_is_that_of_the_policy_written_out(task, name):
    problem = PROBLEMS[task]()
    agent = AGENTS[name].clone(seed=3)
    simulate(agent, problem, 0)
    best = mdp.backward_induction(problem.mdp).V[0]
    for i in range(12):
        # the plan of the next episode, from copies of the streams it will be made with
        posterior, nature = agent._streams[0].copy(), np.empty(4, dtype=np.uint64)
        reseed(nature, bits(agent._streams[2].copy()) >> np.uint64(32))
        s = first_state(problem.mdp.table, nature)
        values = agent._learner.plan(agent._samples and i > 0, posterior)
        value = mdp.evaluate(problem.mdp, policy_of(agent, problem, values, i))[0, s]
        regret = simulate(agent, problem, 1).regret[0]
        assert regret == pytest.approx(best[s] - value, abs=1e-12)


def test_expected_regret_is_the_mean_of_realised_regret():
    """An agent that never changes: its prior is so firm that nothing is learned."""
    problem = PROBLEMS["masked"]()
    agent = LSVI(lam=1e12, explore=Boltzmann(1.0), seed=0)
    history = simulate(agent, problem, 20_000)
    excess = history.realised - history.regret
    assert np.abs(excess.mean()) < 4 * excess.std() / np.sqrt(len(excess))
    assert excess.std() > 0.1


@pytest.mark.parametrize("task", ["chain, coherent", "masked", "frozen lake"])
def test_realised_regret_is_the_optimal_value_less_the_reward(task):
    problem = PROBLEMS[task]()
    history = simulate(RLSVI(seed=0, reward_offset=5.0), problem, 40, trace=True)
    optimal = problem.solution.V[0, history.trace.states[:, 0]]
    np.testing.assert_array_equal(history.realised, optimal - history.reward)
    np.testing.assert_allclose(history.reward, np.nansum(history.trace.rewards, axis=1), atol=1e-12)
    assert (history.regret >= -1e-12).all()


def test_an_optimal_policy_has_no_regret():
    """Weights fixed at Q* by a firm prior."""
    for task in ("dirichlet", "masked"):
        problem = PROBLEMS[task]()
        Q = problem.solution.Q
        prior = np.where(np.isfinite(Q), Q, 0.0).reshape(len(Q), -1)
        history = simulate(LSVI(lam=1e12, prior_mean=prior, seed=0), problem, 50)
        assert np.abs(history.regret).max() < 1e-12


# ---- bad input --------------------------------------------------------------------------------------------


def test_another_problem_is_refused_and_nothing_is_lost():
    agent, twin = RLSVI(seed=0), RLSVI(seed=0)
    for one in (agent, twin):
        simulate(one, rlsvi.problems.chain(4), 10)
    with pytest.raises(ValueError, match="clone"):
        simulate(agent, rlsvi.problems.chain(5), 10)
    for one in (agent, twin):
        simulate(one, rlsvi.problems.chain(4), 10)
    assert_same(whole_state(agent), whole_state(twin))


def test_a_basis_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="phi must have shape"):
        simulate(RLSVI(basis=Dense(np.ones((3, 2, 2)))), rlsvi.problems.chain(4), 1)


def test_random_streams_of_an_agent_are_distinct():
    agent = RLSVI(seed=0)
    assert len({tuple(words) for words in agent._streams}) == 4
    assert tuple(stream(0)) not in {tuple(words) for words in agent._streams}


def test_rewards_too_large_to_learn_from_are_refused_by_the_table():
    with pytest.raises(ValueError, match="R must be finite"):
        mdp.FiniteMDP.from_arrays(np.ones((1, 1, 1)), [[1e308]], horizon=1, start=[1.0])


def test_an_episode_that_breaks_leaves_the_agent_as_it_was_before_it():
    problem = rlsvi.problems.chain(4)
    phi = 1e99 * np.random.default_rng(0).uniform(0.5, 1.0, (4, 2, 2))  # equal ones cancel exactly, by luck
    agent = RLSVI(lam=1e-240, sigma=1.0, basis=rlsvi.bases.Dense(phi), seed=0)
    with pytest.raises(ArithmeticError, match="scale them down"):
        simulate(agent, problem, 100)  # the weights are huge, and soon beyond float64
    twin = agent.clone()
    simulate(twin, problem, agent.episodes)
    assert 0 < agent.episodes < 100
    assert_same(state_of(agent), state_of(twin))
