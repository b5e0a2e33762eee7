"""Concurrent agents: one is `simulate`, compiled rounds are the stepped ones, and rounds are all or nothing."""

import gymnasium
import numpy as np
import pytest

import rlsvi
from rlsvi import ByEvidence, EnsembleRLSVI, IncrementalRLSVI, learn_concurrently, problems
from rlsvi.core.random import stream
from rlsvi.core.regression import FactorError
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate import simulate_concurrent
from rlsvi.simulate.finite import simulate
from test_simulate import PROBLEMS
from twin import Recorder, assert_same, state_of

K = 6
SCHEMES = {
    "independent": (lambda: rlsvi.RLSVI(sigma=0.3, reward_offset=-0.25, seed=4), False),
    "shared": (lambda: rlsvi.RLSVI(sigma=0.3, reward_offset=-0.25, seed=4), True),
    "seeds": (lambda: EnsembleRLSVI(members=K, sigma=0.3, seed=4), False),
    "seeds, weights": (lambda: EnsembleRLSVI(members=K, perturb="weights", seed=4), False),
    "one of three members": (lambda: EnsembleRLSVI(members=3, sigma=0.3, seed=4), True),
}
TASKS = "masked", "40 states a period"  # two first states; memory that must grow within a round


def fused(agent, problem, rounds, shared):
    """The states, actions and rewards of all episodes."""
    trace = simulate_concurrent(agent, problem, rounds, agents=K, shared=shared, trace=True).trace
    lengths = (trace.states >= 0).sum(axis=1)
    return [list(zip(*(a[i, :T].tolist() for a in trace), strict=True)) for i, T in enumerate(lengths)]


def test_one_agent_is_simulate():
    problem = PROBLEMS["masked"]()
    alone, one = (rlsvi.RLSVI(sigma=0.3, seed=7) for _ in range(2))
    expected = simulate(alone, problem, 60, trace=True)
    found = simulate_concurrent(one, problem, 60, agents=1, trace=True)
    for name in ("reward", "regret", "realised", "path_regret"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.trace.states, expected.trace.states)
    assert_same(state_of(one), state_of(alone))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("task", TASKS)
def test_compiled_and_stepped_rounds_agree_bit_for_bit(task, scheme):
    """Also when an agent goes back and forth between them, though the same new state is met several times."""
    problem, (make, shared) = PROBLEMS[task](), SCHEMES[scheme]
    straight, mixed = make(), make()
    expected = fused(straight, problem, 25, shared)
    env = Recorder(FiniteMDPEnv(problem.mdp))
    returns = learn_concurrently(mixed, [env] * K, 10, shared=shared)
    played = env.episodes + fused(mixed, problem, 15, shared)
    assert played == expected
    np.testing.assert_allclose(returns.ravel(), [sum(r for _, _, r in episode) for episode in env.episodes])
    assert returns.shape == (10, K)
    assert straight.episodes == 25 * K
    assert_same(state_of(mixed), state_of(straight))


def test_agents_plan_before_anyone_learns_and_agent_k_has_member_k():
    """In states that were known before the round, every agent does what its member finds best."""
    problem = PROBLEMS["river swim"]()
    agent = EnsembleRLSVI(members=3, sigma=0.3, seed=1)
    simulate_concurrent(agent, problem, 4, agents=3)
    learner, noise = agent._learner, stream(0)
    before, rows = noise.copy(), learner.mind.rows.copy()
    plans = [learner.plan_as(k, True, noise).Q.copy() for k in range(3)]
    np.testing.assert_array_equal(noise, before)  # nothing of a member is drawn anew
    trace, compared = simulate_concurrent(agent, problem, 1, agents=3, trace=True).trace, 0
    for k in range(3):
        for h, (s, a) in enumerate(zip(trace.states[k], trace.actions[k], strict=True)):
            if rows[h, s] >= 0:
                assert a == plans[k][h, learner.pairs(rows[h, s])].argmax()
                compared += 1
    assert compared > 20
    assert not np.array_equal(plans[0], plans[1])


def test_agents_with_one_draw_all_do_the_same_where_nothing_is_random():
    """All but one episode of a round are wasted, from the second round on; agents with own draws differ."""
    problem = problems.deep_sea(6)
    for shared in (True, False):
        agent = rlsvi.RLSVI(lam=10.0, sigma=0.001, seed=0)
        states = simulate_concurrent(agent, problem, 12, agents=20, shared=shared, trace=True).trace.states
        distinct = [len(np.unique(part, axis=0)) for part in states.reshape(12, 20, 6)]
        assert distinct[0] > 1  # on the mean all actions are equal, and ties are broken by each agent
        assert distinct[1:] == [1] * 11 if shared else distinct[1] > 5


# ---- all or nothing ---------------------------------------------------------------------------------------


class Failing(gymnasium.Wrapper):
    """An environment that fails in some step."""

    def __init__(self, env, at, error):
        super().__init__(env)
        self.left, self.error = at, error

    def step(self, action):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.env.step(action)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("wet")])
@pytest.mark.parametrize("rounds", [0, 1])
def test_a_stepped_round_that_fails_leaves_the_last_one(rounds, error):
    problem = problems.deep_sea(4)
    envs, agent = [FiniteMDPEnv(problem.mdp) for _ in range(3)], EnsembleRLSVI(members=3, seed=2)
    last = Failing(envs[2], 4 * rounds + 3, error)
    with pytest.raises(type(error)):
        learn_concurrently(agent, [*envs[:2], last], 5)
    assert agent.episodes == 3 * rounds
    learn_concurrently(agent, envs, 4 - rounds)
    straight = EnsembleRLSVI(members=3, seed=2)
    learn_concurrently(straight, envs, 4)
    assert_same(state_of(agent), state_of(straight))


def test_an_interrupt_while_a_round_is_learned_changes_nothing(monkeypatch):
    agent, env = rlsvi.RLSVI(seed=0), FiniteMDPEnv(problems.deep_sea(3).mdp)
    learn_concurrently(agent, [env] * 3, 2)
    before, kind = state_of(agent), type(agent._learner)
    learn, calls = kind.remember, []

    def remember(self, *given, **named):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return learn(self, *given, **named)

    monkeypatch.setattr(kind, "remember", remember)
    with pytest.raises(KeyboardInterrupt):
        learn_concurrently(agent, [env] * 3, 1)
    assert_same(state_of(agent), before)


def test_a_plan_that_is_not_finite_leaves_the_last_round():
    agent, problem = rlsvi.RLSVI(seed=0), problems.deep_sea(3)
    simulate_concurrent(agent, problem, 3, agents=4)
    before, kept = state_of(agent), agent._learner.mind.memory.reward.copy()
    agent._learner.mind.memory.reward[:] = np.inf
    with pytest.raises(FactorError):
        simulate_concurrent(agent, problem, 2, agents=4)
    agent._learner.mind.memory.reward[:] = kept
    assert_same(state_of(agent), before)


def test_a_mask_that_two_agents_see_differently_is_refused():
    class Other(FiniteMDPEnv):
        def reset(self, **options):
            observation, info = super().reset(**options)
            return observation, {**info, "action_mask": np.array([True, False], np.int8)}

    mdp = problems.deep_sea(3).mdp
    agent = rlsvi.RLSVI(seed=0)
    with pytest.raises(ValueError, match="action mask of state 0 in period 0 has changed"):
        learn_concurrently(agent, [FiniteMDPEnv(mdp), Other(mdp)], 1)
    assert agent.episodes == 0


SEA = problems.deep_sea(3)


@pytest.mark.parametrize(
    ("agent", "options", "error", "words"),
    [
        (EnsembleRLSVI(members=3), {"agents": 2}, ValueError, r"members is 3, there are 2 agents.*members=2"),
        (IncrementalRLSVI(), {"agents": 2}, TypeError, "data do not depend on the value function"),
        (rlsvi.PSRL(), {"agents": 2}, TypeError, "data do not depend on the value function"),
        (rlsvi.RLSVI(sigma=ByEvidence()), {"agents": 2}, ValueError, "ByEvidence"),
        (rlsvi.RLSVI(), {"agents": 0}, ValueError, "agents must be a whole number of at least 1"),
        (rlsvi.RLSVI(), {"agents": 2, "rounds": -1}, ValueError, "rounds must be a whole number"),
        (rlsvi.RLSVI(), {"agents": 2, "shared": 1}, (TypeError, ValueError), "shared"),
        (rlsvi.RLSVI(), {"agents": 2, "problem": SEA.mdp}, TypeError, "problem must be a Problem"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_changes(agent, options, error, words):
    before = agent._streams.copy()
    problem, rounds = options.pop("problem", SEA), options.pop("rounds", 1)
    with pytest.raises(error, match=words):
        simulate_concurrent(agent, problem, rounds, **options)
    assert agent._learner is None
    np.testing.assert_array_equal(agent._streams, before)


def test_environments_must_be_copies_of_one():
    agent = rlsvi.RLSVI()
    with pytest.raises(ValueError, match="copies of one environment"):
        learn_concurrently(agent, [FiniteMDPEnv(SEA.mdp), FiniteMDPEnv(problems.deep_sea(4).mdp)], 1)
    with pytest.raises(ValueError, match="the number of agents"):
        learn_concurrently(agent, [], 1)
    assert agent._learner is None


class Doubled(rlsvi.RLSVI):
    """An agent whose rewards compiled code would not see."""

    def reward(self, paid):
        return 2.0 * paid


def test_an_agent_with_methods_of_its_own_is_stepped():
    with pytest.raises(TypeError, match="learn_concurrently"):
        simulate_concurrent(Doubled(), SEA, 1, agents=2)
    agent = Doubled(seed=0)
    returns = learn_concurrently(agent, [FiniteMDPEnv(SEA.mdp)] * 2, 3)
    np.testing.assert_allclose(agent._learner.mind.memory.reward.sum(), 2.0 * returns.sum())
