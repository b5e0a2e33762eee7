"""The contract, for what users bring: wrong bases and environments are named, and do no harm.

Wrong arguments are in test_fuzz.py.
"""

import re
from functools import partial

import numpy as np
import pytest

import rlsvi
from contract import environments as envs
from contract.bases import FAULTS, HARMLESS, OTHERS, Switched, faults_of
from contract.cases import BASED, BY_NAME, FUSED, a_share
from contract.clean import Clean
from contract.misbehaving import FAULTS as MISBEHAVIOUR
from contract.misbehaving import Misbehaving, Reusing
from contract.state import assert_equal, contents, difference, everything

NAMES = list(BY_NAME)
CLEAR = (ValueError, TypeError)
pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def of(thorough):
    """Each case tries one of so many shares of what there is to try."""
    return 1 if thorough else 8


def _outcome(work, says, allowed=CLEAR):
    """What is wrong with how `work` fails; None: it did not fail."""
    try:
        work()
    except allowed as error:
        return (
            "" if re.search(says, str(error)) else f"{type(error).__name__} does not say {says!r}: {error!s:.150}"
        )
    except Exception as error:  # whatever else it is, it is judged
        return f"raw {type(error).__name__}: {error!s:.150}"
    return None


def _assert_none(bad):
    bad = [words for words in bad if words]
    assert not bad, f"{len(bad)} times:\n" + "\n".join(bad[:12])


# ---- bases ------------------------------------------------------------------------------------------------

OF_A_BASIS = "(?i)basis|bases|feature|block|phi|table|bind|function"


@pytest.mark.parametrize("name", BASED)
def test_a_wrong_basis_is_refused_before_anything_is_learned(name, of, tmp_path):
    case, bad = BY_NAME[name], []
    good = everything(case.learned(2, basis=Switched()), tmp_path)
    for fault in a_share(faults_of(case), case, of):
        basis = Switched(fault)
        agent = case.make(basis=basis)
        said = _outcome(lambda agent=agent: case.learn(agent, 2), OF_A_BASIS)
        bad += [f"{fault}: accepted"] if said is None else [said and f"{fault}: {said}"]
        basis.fault = None
        if said is not None:
            after = difference(everything(case.learn(agent, 2), tmp_path), good)
            bad += [after and f"{fault}: healed, but it is not as it was: {after:.200}"]
    _assert_none(bad)


@pytest.mark.parametrize("name", BASED)
def test_a_basis_that_goes_wrong_later_changes_nothing(name, of, tmp_path):
    """Features of numbered states may have been worked out before; then it must go on as if nothing were wrong."""
    case, bad = BY_NAME[name], []
    good = case.learned(2, basis=Switched())
    right = [good.predict(x, deterministic=True) for x in case.observations]
    goes_on = everything(case.learn(good, 2), tmp_path)
    for fault in a_share(FAULTS, case, of):
        basis = Switched()
        agent = case.learned(2, basis=basis)
        before = everything(agent, tmp_path)
        basis.fault = fault
        said = _outcome(lambda agent=agent: case.learn(agent, 2), OF_A_BASIS)
        now = everything(agent, tmp_path)
        if said is None:
            kept = case.kind == "table" and now == goes_on
            bad += [] if kept else [f"{fault}: accepted"]
            continue
        bad += [said and f"{fault}: {said}", difference(now, before) and f"{fault}: it is not as it was"]
        x = case.observations[0]
        said = _outcome(lambda agent=agent, x=x: agent.predict(x, deterministic=True), OF_A_BASIS)
        if said is None:
            said = "" if case.kind == "table" else "predicts all the same"
        bad += [said and f"{fault}, predict: {said}"]
        basis.fault = None
        now = [agent.predict(x, deterministic=True) for x in case.observations]
        bad += [] if now == right else [f"{fault}: predicts otherwise"]
    _assert_none(bad)


@pytest.mark.parametrize("name", BASED)
def test_a_basis_given_on_loading_must_be_the_one_learned_with(name, of, tmp_path):
    case, bad, path = BY_NAME[name], [], tmp_path / "agent"
    case.learned(2, basis=Switched()).save(path)
    held = contents(path).without("streams")
    bases = [*((fault, Switched(fault)) for fault in faults_of(case)), *OTHERS.items()]
    for fault, basis in a_share(bases, case, of):
        agents = []
        said = _outcome(
            lambda basis=basis, agents=agents: agents.append(rlsvi.load(path, basis=basis)), OF_A_BASIS
        )
        bad += [said and f"{fault}: {said}"]
        for agent in agents:
            for verb in (lambda agent=agent: agent.predict(case.observations[0]), partial(case.learn, agent, 1)):
                said = _outcome(verb, OF_A_BASIS)
                bad += [f"{fault}: accepted" if said is None else said and f"{fault}: {said}"]
            now = everything(agent, tmp_path).contents.without("streams")
            bad += [difference(now, held) and f"{fault}: it is not as it was"]
    _assert_none(bad)


@pytest.mark.parametrize("name", [name for name in FUSED if BY_NAME[name].has_basis and not BY_NAME[name].endless])
def test_the_compiled_loop_refuses_a_wrong_basis(name, of, tmp_path):
    from rlsvi.simulate import simulate

    case, bad = BY_NAME[name], []
    good = case.make()
    simulate(good, rlsvi.Problem(envs.MDP, Switched()), 4)
    good = everything(good, tmp_path)
    for fault in a_share(faults_of(case), case, of):
        for own in (False, True):
            basis = Switched(fault)
            agent = case.make(basis=basis) if own else case.make()
            problem = rlsvi.Problem(envs.MDP) if own else rlsvi.Problem(envs.MDP, basis)
            said = _outcome(partial(simulate, agent, problem, 4), OF_A_BASIS)
            bad += [f"{fault}: accepted"] if said is None else [said and f"{fault}: {said}"]
            basis.fault = None
            if said is not None and not own:
                simulate(agent, rlsvi.Problem(envs.MDP, basis), 4)
                bad += [difference(everything(agent, tmp_path), good) and f"{fault}: it is not as it was"]
    _assert_none(bad)


@pytest.mark.parametrize("fault", HARMLESS)
@pytest.mark.parametrize("name", BASED)
def test_a_basis_of_another_type_is_taken_or_refused(name, fault, tmp_path):
    case = BY_NAME[name]
    agent = case.make(basis=Switched(fault))
    said = _outcome(lambda: case.learn(agent, 2), OF_A_BASIS)
    assert not said
    if said is None:
        assert_equal(everything(agent, tmp_path), everything(case.learned(2, basis=Switched()), tmp_path))


# ---- environments -----------------------------------------------------------------------------------------


def _faults(case):
    return {
        name: fault
        for name, fault in MISBEHAVIOUR.items()
        if fault.kind in ("", case.kind) and (case.looks or not fault.looks)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_misbehaving_environment_does_no_harm(name, of, tmp_path):
    case, bad = BY_NAME[name], []
    clean = Clean(case, tmp_path, lambda agent, n: case.learn(agent, n))
    for what, fault in a_share(_faults(case).items(), case, of):
        for at in (0,) if case.endless and fault.of_reset else (0, 2):
            agent = case.make()
            env = Misbehaving(case.env(), fault, at)
            says = f"(?i){fault.says}"
            said = _outcome(
                lambda agent=agent, env=env: case.learn(agent, 6, env), says, (*CLEAR, RuntimeError, OSError)
            )
            if said is None and not fault.harmless:
                bad.append(f"{what}: accepted")
            else:
                harm = clean.complaint(agent)
                bad += [said and f"{what}: {said}", harm and f"{what}: {harm:.300}"]
    _assert_none(bad)


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_that_reuses_its_arrays_is_learned_like_any_other(name, tmp_path):
    case = BY_NAME[name]
    agent = case.learn(case.make(), 6, Reusing(case.env()))
    assert_equal(everything(agent, tmp_path), everything(case.learned(6), tmp_path))


@pytest.mark.parametrize("name", [name for name in NAMES if "horizon" in BY_NAME[name].arguments])
def test_an_environment_that_never_ends_is_left_at_the_horizon(name):
    case = BY_NAME[name]
    agent = case.make(horizon=4).learn(
        envs.endless() if case.kind == "table" else envs.drifting_for_ever(), episodes=3
    )
    assert (agent.episodes, agent.steps) == (3, 12)


@pytest.mark.parametrize("name", [name for name in NAMES if BY_NAME[name].agent != "OptimalPolicy"])
def test_another_space_is_refused_after_learning(name, tmp_path):
    case = BY_NAME[name]
    agent = case.learned(2)
    before = everything(agent, tmp_path)
    if case.kind == "table":
        others = [rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.river_swim(4, 3), endless=case.endless)]
        others += [envs.drifting()] if case.looks else []
        others += (
            [rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.dirichlet(9, 3, 3, homogeneous=True, seed=0))] if case.looks else []
        )
    else:
        others = [envs.Drift(actions=4), envs.Drift(size=3), envs.numbered()]
    for other in others:
        with pytest.raises(CLEAR, match=r"(?i)learned|task|space|observation|feature|action|layout"):
            case.learn(agent, 2, other)
        assert_equal(everything(agent, tmp_path), before)


# ---- arguments --------------------------------------------------------------------------------------------


PREDICTING = [
    ({"observation": None}, "observation|feature|state|function"),
    ({"observation": "here"}, "observation|feature|state|function"),
    ({"observation": {}}, "observation|feature|state|function"),
    ({"state": -1}, "state"),
    ({"state": "first"}, "state"),
    ({"state": 1.5}, "state"),
    ({"action_mask": [1, 1]}, "action_mask"),
    ({"action_mask": [0, 0, 0]}, "action_mask"),
    ({"action_mask": "all"}, "action_mask"),
    ({"action_mask": 3}, "action_mask"),
]


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_of_predict_are_refused_by_name(name, tmp_path):
    case, bad = BY_NAME[name], []
    agent = case.learned(2)
    before = everything(agent, tmp_path)
    for options, says in PREDICTING:
        if ("observation" in options and not case.looks) or ("state" in options and case.endless):
            continue  # it does not look at them
        for deterministic in (True, False):
            given = {"observation": case.observations[0], "deterministic": deterministic, **options}
            said = _outcome(lambda given=given: agent.predict(**given), says)
            bad += [f"{options}: {'accepted' if said is None else said}"] if said != "" else []
    _assert_none([*bad, difference(everything(agent, tmp_path), before)])


def test_paths_that_lead_nowhere_are_refused(tmp_path):
    agent = BY_NAME["RLSVI-table"].learned(1)
    for path, error in ((tmp_path, IsADirectoryError), (tmp_path / "nowhere" / "agent", FileNotFoundError)):
        for verb in (agent.save, rlsvi.load):
            with pytest.raises(error, match=re.escape(str(path))):
                verb(path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        rlsvi.load(tmp_path / "nothing")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match=r"other\.npz"):
        rlsvi.load(tmp_path / "other.npz")
