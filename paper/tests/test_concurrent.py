"""Concurrent agents: one is `simulate`, compiled rounds are the stepped ones, and rounds are all or nothing."""

import gymnasium
import numpy as np
import pytest

import rlsvi
from rlsvi import (
    LSVI,
    BootstrapRLSVI,
    ByEvidence,
    EnsembleRLSVI,
    EpsilonGreedy,
    IncrementalRLSVI,
    Linear,
    problems,
)
from rlsvi.bases import StateFeatures
from rlsvi.core.random import stream
from rlsvi.core.regression import FactorError
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate.finite import simulate
from rlsvi_paper.agents import BoundedTargetRLSVI, learn_concurrently
from rlsvi_paper.loops.concurrent import simulate_concurrent
from test_gymnasium import Recorder as RawRecorder
from test_gymnasium import Walk, assert_matches_the_twin, features
from test_simulate import PROBLEMS
from twin import Recorder, assert_same, state_of

K = 6
SCHEMES = {
    "independent": (lambda: rlsvi.RLSVI(sigma=0.3, reward_offset=-0.25, seed=4), False),
    "shared": (lambda: rlsvi.RLSVI(sigma=0.3, reward_offset=-0.25, seed=4), True),
    "seeds": (lambda: EnsembleRLSVI(members=K, sigma=0.3, seed=4), False),
    "seeds, weights": (lambda: EnsembleRLSVI(members=K, perturb="weights", seed=4), False),
    "one of three members": (lambda: EnsembleRLSVI(members=3, sigma=0.3, seed=4), True),
    "bootstrap": (lambda: BootstrapRLSVI(seed=4), False),
    "bounded targets": (lambda: BoundedTargetRLSVI(sigma=0.3, bounds=(-1.0, 2.0), seed=4), False),
    "epsilon": (lambda: LSVI(explore=EpsilonGreedy(Linear(1.0, 0.1, 100)), seed=4), False),
}
TASKS = "masked", "40 states a period"  # two first states; memory that must grow within a round
QUICK_CASES = {
    ("masked", "independent"),
    ("40 states a period", "shared"),
    ("masked", "seeds"),
}  # others compile more


def fused(agent, problem, rounds, shared):
    """The states, actions and rewards of all episodes."""
    trace = simulate_concurrent(agent, problem, rounds, agents=K, shared=shared, trace=True).trace
    lengths = (trace.states >= 0).sum(axis=1)
    return [list(zip(*(a[i, :T].tolist() for a in trace), strict=True)) for i, T in enumerate(lengths)]


@pytest.mark.slow
def test_one_agent_is_simulate():
    problem = PROBLEMS["masked"]()
    alone, one = (rlsvi.RLSVI(sigma=0.3, seed=7) for _ in range(2))
    expected = simulate(alone, problem, 60, trace=True)
    found = simulate_concurrent(one, problem, 60, agents=1, trace=True)
    for name in ("reward", "regret", "realised", "path_regret"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.trace.states, expected.trace.states)
    assert_same(state_of(one), state_of(alone))


@pytest.mark.parametrize(
    ("task", "scheme"),
    [
        pytest.param(task, scheme, marks=() if (task, scheme) in QUICK_CASES else pytest.mark.slow)
        for task in TASKS
        for scheme in SCHEMES
    ],
)
def test_compiled_and_stepped_rounds_agree_bit_for_bit(task, scheme, tmp_path):
    """Also when an agent goes back and forth between them, though the same new state is met several times, and
    when it is saved and loaded in between."""
    problem, (make, shared) = PROBLEMS[task](), SCHEMES[scheme]
    straight, mixed = make(), make()
    expected = fused(straight, problem, 25, shared)
    env = Recorder(FiniteMDPEnv(problem.mdp))
    returns = learn_concurrently(mixed, [env] * K, 10, shared=shared)
    np.testing.assert_allclose(returns.ravel(), [sum(r for _, _, r in episode) for episode in env.episodes])
    assert returns.shape == (10, K)
    mixed.save(tmp_path / "mixed")
    mixed = rlsvi.load(tmp_path / "mixed")
    played = env.episodes + fused(mixed, problem, 7, shared)
    mixed.save(tmp_path / "mixed")
    mixed = rlsvi.load(tmp_path / "mixed")
    env.episodes.clear()
    learn_concurrently(mixed, [env] * K, 4, shared=shared)
    played += env.episodes + fused(mixed, problem, 4, shared)
    assert played == expected
    assert straight.episodes == 25 * K
    assert_same(state_of(mixed), state_of(straight))


def test_truncated_episodes_of_vectors_are_learned_as_the_pseudo_code_says():
    """Half of the agents are cut off after three steps; the value of where they were belongs to the target."""
    agent = rlsvi.RLSVI(lam=0.5, horizon=6, basis=StateFeatures(features), prior_mean=1.0, seed=4)
    envs = [RawRecorder(Walk(), 6), RawRecorder(gymnasium.wrappers.TimeLimit(Walk(), 3), 6)] * 2
    learn_concurrently(agent, envs, 15)
    episodes = envs[0].episodes + envs[1].episodes
    assert len(episodes) == agent.episodes == 60
    assert max(map(len, envs[0].episodes)) == 6
    assert sum(len(episode) == 3 and episode[-1][3] is not None for episode in envs[1].episodes) > 10
    assert_matches_the_twin(agent, episodes, 0.5 * agent.sigma**2)


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


@pytest.mark.parametrize("make", [lambda: rlsvi.RLSVI(seed=1), lambda: EnsembleRLSVI(members=4, seed=1)])
def test_a_round_that_is_learned_only_in_part_leaves_the_last_one(make):
    """The factor of a state that agent k > 0 is the first to reach, in some later round, is not a number."""
    problem, straight, agent, finished = PROBLEMS["40 states a period"](), make(), make(), []
    states = simulate_concurrent(make(), problem, 40, agents=4, trace=True).trace.states
    first = {(h, s): np.argmax(states[:, h] == s) for h in range(3) for s in np.unique(states[:, h])}
    (h, s), at = max(first.items(), key=lambda item: (item[1] % 4 > 0, item[1]))
    assert at > 8  # in the third round or later
    assert at % 4 > 0
    simulate_concurrent(straight, problem, at // 4, agents=4)
    simulate_concurrent(agent, problem, 1, agents=4)
    factor, blocks = agent._learner.mind.factor, agent._learner.mind.features.block[s]
    kept = factor.U[h, blocks].copy()
    factor.U[h, blocks] = np.nan
    with pytest.raises(FactorError):
        simulate_concurrent(agent, problem, 39, agents=4, advance=finished.append)
    assert sum(finished) == at // 4 - 1
    agent._learner.mind.factor.U[h, blocks] = kept
    assert_same(state_of(agent), state_of(straight))


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
        (rlsvi.RLSVI(), {"agents": 2, "advance": 1}, TypeError, "advance.*number of rounds"),
        (rlsvi.RLSVI(), {"agents": 10**13}, ValueError, "1 rounds of 10000000000000 agents.*use fewer agents"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_changes(agent, options, error, words):
    before = agent._streams.copy()
    problem, rounds = options.pop("problem", SEA), options.pop("rounds", 1)
    with pytest.raises(error, match=words):
        simulate_concurrent(agent, problem, rounds, **options)
    assert agent._learner is None
    np.testing.assert_array_equal(agent._streams, before)


@pytest.mark.parametrize("perturb", ["targets", pytest.param("weights", marks=pytest.mark.slow)])
def test_members_cannot_be_added_after_learning(perturb):
    """Compiled code has no bounds checks, so what counts is the members that there are."""
    agent = EnsembleRLSVI(members=3, perturb=perturb, seed=0)
    simulate_concurrent(agent, SEA, 2, agents=3)
    agent.members = 10
    with pytest.raises(ValueError, match="members is 3, there are 10 agents"):
        simulate_concurrent(agent, SEA, 1, agents=10)
    with pytest.raises(ValueError, match="members is 3, there are 10 agents"):
        learn_concurrently(agent, [FiniteMDPEnv(SEA.mdp)] * 10, 1)
    simulate_concurrent(agent, SEA, 1, agents=3)
    assert agent.episodes == 9


def test_environments_must_be_copies_of_one():
    agent = rlsvi.RLSVI()
    with pytest.raises(ValueError, match="copies of one environment"):
        learn_concurrently(agent, [FiniteMDPEnv(SEA.mdp), FiniteMDPEnv(problems.deep_sea(4).mdp)], 1)
    for envs in ([], 5, FiniteMDPEnv(SEA.mdp)):
        with pytest.raises(
            ValueError, match=r"envs must have an environment for each agent, such as \[env, env\]"
        ):
            learn_concurrently(agent, envs, 1)
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
