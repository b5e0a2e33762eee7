"""The contract: every exported agent, driven through the same list of promises by its public interface alone.

The cases are in contract/cases.py. Promises: a file resumes bit for bit; learning in parts is learning at once;
predicting changes nothing; whatever interrupts, an agent is as it was after its last whole episode. What files,
bases, environments and arguments may do is in test_contract_files.py and test_contract_inputs.py.
"""

import os

import gymnasium
import numpy as np
import pytest

import rlsvi
from contract.cases import BY_NAME, CASES, EPISODES, FUSED, STEPS, a_share, exported_agents, predictions
from contract.clean import Clean
from contract.environments import Recorded
from contract.interrupts import every_line, interrupted, interrupted_after, some
from contract.state import assert_equal, everything

NAMES = list(BY_NAME)


pytestmark = pytest.mark.usefixtures("quick_disk")


def test_every_exported_agent_has_a_case():
    assert sorted({case.agent for case in CASES}) == sorted(exported_agents())


# ---- learning in parts, saving and loading ----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_agent_goes_on_bit_for_bit(name, tmp_path):
    case = BY_NAME[name]
    env = Recorded(case.env())
    on = {"reset": False} if case.endless else {}
    whole = case.learn(case.make(), 5, env)
    other = Recorded(case.env())
    parts = case.learn(case.make(), 2, other)
    parts.save(tmp_path / "agent")
    parts = case.learn(case.load(tmp_path / "agent"), 3, other, **on)
    assert type(parts) is case.type
    assert other.seen == env.seen
    assert (parts.steps, case.done(parts)) == (whole.steps, case.done(whole))
    assert_equal(everything(parts, tmp_path), everything(whole, tmp_path))
    assert predictions(case, parts) == predictions(case, whole)
    assert_equal(everything(parts, tmp_path), everything(whole, tmp_path))


@pytest.mark.parametrize("name", FUSED)
def test_the_compiled_loop_goes_on_after_loading(name, tmp_path):
    case = BY_NAME[name]
    whole, parts = case.make(), case.make()
    case.simulate(whole, 70)
    for amount in (0, 1, 30, 39):
        case.simulate(parts, amount)
        parts.save(tmp_path / "agent")
        parts = case.load(tmp_path / "agent")
    assert_equal(everything(parts, tmp_path), everything(whole, tmp_path))


@pytest.mark.parametrize("unit", [EPISODES, STEPS])
@pytest.mark.parametrize("name", NAMES)
def test_learning_in_parts_is_learning_at_once(name, unit, tmp_path):
    case = BY_NAME[name]
    if case.endless and unit == EPISODES:
        pytest.skip("it has no episodes")
    env, other = case.env(), case.env()
    whole, parts = case.make().learn(env, **{unit: 11}), case.make()
    for amount in (0, 4, 1, 6):
        parts.learn(other, **{unit: amount})
    assert_equal(everything(parts, tmp_path), everything(whole, tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_that_has_learned_nothing_can_be_saved(name, tmp_path):
    case = BY_NAME[name]
    case.make().save(tmp_path / "agent")
    loaded = case.load(tmp_path / "agent")
    assert_equal(everything(loaded, tmp_path), everything(case.make(), tmp_path))
    assert_equal(everything(case.learn(loaded, 2), tmp_path), everything(case.learned(2), tmp_path))


# ---- predicting, cloning, representing --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_predicting_changes_nothing_of_learning(name, tmp_path):
    case, seen = BY_NAME[name], []
    for predicts in (False, True):
        env, agent = Recorded(case.env()), case.make()
        for _ in range(4):
            case.learn(agent, 2, env)
            if predicts:
                predictions(case, agent)
        seen.append((env.seen, everything(agent, tmp_path).contents.without("streams")))
    assert seen[0][0] == seen[1][0]
    assert_equal(seen[0][1], seen[1][1])


@pytest.mark.parametrize("name", NAMES)
def test_predicting_on_the_mean_and_exporting_draw_nothing(name, tmp_path):
    case = BY_NAME[name]
    agent = case.learned(4)
    before = everything(agent, tmp_path)
    said = [agent.predict(x, deterministic=True)[0] for x in case.observations]
    assert said == [agent.predict(x, deterministic=True)[0] for x in case.observations]
    if case.kind == "table" and case.looks:
        agent.export(tmp_path / "policy.npz")
        with np.load(tmp_path / "policy.npz") as policy:
            assert policy["actions"][0, : len(said)].tolist() == said
    assert_equal(everything(agent, tmp_path), before)


@pytest.mark.parametrize("name", NAMES)
def test_every_agent_explains_how_it_learns_and_draws_nothing(name, tmp_path):
    case = BY_NAME[name]
    assert case.make().explain().endswith(".")
    agent = case.learned(2)
    before, said = everything(agent, tmp_path), agent.explain()
    assert said.endswith(".")
    assert_equal(everything(agent, tmp_path), before)
    agent.save(tmp_path / "agent")
    assert case.load(tmp_path / "agent").explain() == said


def test_an_agent_explains_what_followed_from_the_environment():
    agent, env = rlsvi.RLSVI(seed=0), gymnasium.make("rlsvi/Chain-v0", length=5)
    assert "its basis and its horizon follow" in agent.explain()
    assert "its horizon follows" in rlsvi.RLSVI(basis=rlsvi.bases.Tabular()).explain()
    said = agent.learn(env, 1).explain()
    assert all(word in said for word in (f"{env.unwrapped.horizon} periods", "5 states", "Tabular"))


@pytest.mark.parametrize("name", NAMES)
def test_a_clone_is_fresh_and_has_the_same_arguments(name, tmp_path):
    case = BY_NAME[name]
    agent = case.learned(2)
    clone = agent.clone()
    assert type(clone) is case.type
    assert list(clone._arguments()) == case.arguments
    assert clone._arguments() == agent._arguments() == case.make()._arguments()
    assert_equal(everything(clone, tmp_path), everything(case.make(), tmp_path))
    assert_equal(everything(case.learn(clone, 2), tmp_path), everything(agent, tmp_path))
    assert agent.clone(seed=8)._arguments() == case.make(seed=8)._arguments()


@pytest.mark.parametrize("name", NAMES)
def test_a_representation_can_be_read_again(name):
    case = BY_NAME[name]
    if case.code is not None:
        pytest.skip("its basis is code")
    agent = case.learned(1)
    names = {part: getattr(place, part) for place in (rlsvi.bases, rlsvi) for part in place.__all__}
    again = eval(repr(agent), names | {case.agent: case.type})
    assert type(again) is type(agent)
    assert again._arguments() == agent._arguments()


# ---- interruptions ----------------------------------------------------------------------------------------


def _interrupt_at_lines(case, folder, play, amount, most):
    """At all lines of the agent's own family, and at every third of those that all agents share, in turn."""
    clean, bad = Clean(case, folder, play), []
    moments = every_line(lambda: play(case.make(), amount), of_shared=lambda shared: a_share(shared, case, 3))
    for number, at in enumerate(some(moments, most)):
        agent = case.make()
        stopped = interrupted(lambda agent=agent: play(agent, amount), at)
        assert stopped or case.done(agent) == amount, "an interruption was swallowed, and not all was learned"
        complaint = clean.complaint(agent, goes_on=number % 5 == 0)
        bad += [f"line {at}: {complaint}"] if complaint else []
    assert not bad, f"{len(bad)} interruptions did harm:\n" + "\n".join(bad[:5])


FEW_LINES, ALL_LINES = 10, 10**6


@pytest.mark.parametrize("name", NAMES)
def test_an_interruption_of_learning_leaves_whole_episodes(name, thorough, tmp_path):
    case = BY_NAME[name]
    _interrupt_at_lines(
        case, tmp_path, lambda agent, n: case.learn(agent, n), 2, ALL_LINES if thorough else FEW_LINES
    )


@pytest.mark.parametrize("name", FUSED)
def test_an_interruption_around_the_compiled_loop_leaves_whole_episodes(name, thorough, tmp_path):
    case = BY_NAME[name]
    _interrupt_at_lines(case, tmp_path, case.simulate, 2, ALL_LINES if thorough else FEW_LINES)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs the timers of Unix")
@pytest.mark.parametrize("name", FUSED)
def test_an_interruption_inside_the_compiled_loop_leaves_whole_episodes(name, thorough, tmp_path):
    case, bad, hits, times = BY_NAME[name], [], 0, 50 if thorough else 4
    case.simulate(case.make(), 1)
    for seconds in np.random.default_rng(0).uniform(0.001, 0.015, times):
        agent = case.make()
        if interrupted_after(seconds, lambda agent=agent: case.simulate(agent, 10**6)):
            hits += 1
            complaint = Clean(case, tmp_path, case.simulate).complaint(agent)
            bad += [complaint] if complaint else []
    assert hits == times
    assert not bad, f"{len(bad)} of {hits} interruptions did harm:\n" + "\n".join(bad[:5])
