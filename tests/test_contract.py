"""The contract: every exported agent, driven through the same list of promises by its public interface alone.

The cases are in contract/cases.py. Most promises are those that `rlsvi.testing.check_agent` checks of anybody's
agent. Here are also those of the compiled loop, of export and of representation, and that an agent is as it was
after its last whole episode wherever it is interrupted. What files, bases, environments and arguments may do is
in test_contract_files.py and test_contract_inputs.py.
"""

import os

import gymnasium
import numpy as np
import pytest

import rlsvi
from contract.cases import BY_NAME, CASES, FUSED, a_share, exported_agents
from contract.clean import Clean
from contract.interrupts import every_line, interrupted, interrupted_after, some
from contract.state import assert_equal, everything
from rlsvi.testing import check_agent

NAMES = list(BY_NAME)


pytestmark = pytest.mark.usefixtures("quick_disk")


def test_every_exported_agent_has_a_case():
    assert sorted({case.agent for case in CASES}) == sorted(exported_agents())


@pytest.mark.parametrize("name", NAMES)
def test_every_agent_keeps_the_promises_of_agents(name):
    case = BY_NAME[name]
    check_agent(case.make, case.env, basis=case.code)


@pytest.mark.parametrize("name", FUSED)
def test_the_compiled_loop_goes_on_after_loading_and_after_steps_of_gymnasium(name, tmp_path):
    case = BY_NAME[name]
    whole, parts = case.make(), case.make()
    case.simulate(whole, 70)
    # Without episodes, learning begins where an environment stands; vectors are no states of the loop.
    learn = case.simulate if case.endless or case.kind == "vector" else case.learn
    for play, amount in ((case.simulate, 0), (case.simulate, 1), (learn, 9), (case.simulate, 30), (learn, 30)):
        play(parts, amount)
        parts.save(tmp_path / "agent")
        parts = case.load(tmp_path / "agent")
    assert_equal(everything(parts, tmp_path), everything(whole, tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_learning_steps_in_parts_is_learning_them_at_once(name, tmp_path):
    case = BY_NAME[name]
    env, other = case.env(), case.env()
    whole, parts = case.make().learn(env, steps=11), case.make()
    for amount in (0, 4, 1, 6):
        parts.learn(other, steps=amount)
    assert_equal(everything(parts, tmp_path), everything(whole, tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_exporting_changes_nothing_and_gives_the_actions_of_the_mean(name, tmp_path):
    case = BY_NAME[name]
    if case.kind != "table" or not case.looks:
        pytest.skip("a policy of features needs more than a table of actions")
    agent = case.learned(4)
    before = everything(agent, tmp_path)
    said = [agent.predict(x, deterministic=True)[0] for x in case.observations]
    agent.export(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz") as policy:
        assert policy["actions"][0, : len(said)].tolist() == said
    assert_equal(everything(agent, tmp_path), before)


def test_an_agent_explains_what_followed_from_the_environment():
    agent, env = rlsvi.RLSVI(seed=0), gymnasium.make("rlsvi/Chain-v0", length=5)
    assert "its basis and its horizon follow" in agent.explain()
    assert "its horizon follows" in rlsvi.RLSVI(basis=rlsvi.bases.Tabular()).explain()
    said = agent.learn(env, 1).explain()
    assert all(word in said for word in (f"{env.unwrapped.horizon} periods", "5 states", "Tabular"))


@pytest.mark.parametrize("name", NAMES)
def test_a_representation_can_be_read_again(name):
    case = BY_NAME[name]
    if case.code is not None:
        pytest.skip("its basis is code")
    agent = case.learned(1)
    names = {part: getattr(place, part) for place in (rlsvi.bases, rlsvi) for part in place.__all__}
    again = eval(repr(agent), names | {case.agent: case.type})
    assert type(again) is type(agent) is case.type
    assert again.get_params() == agent.get_params()


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
