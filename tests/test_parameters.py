"""Parameters as scikit-learn expects them: get_params, set_params and clone, for every agent of the contract."""

import numpy as np
import pytest

import rlsvi
from contract.cases import BY_NAME
from contract.state import assert_equal, everything

NAMES = list(BY_NAME)
pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_the_arguments(name, tmp_path):
    case = BY_NAME[name]
    agent = case.make()
    found = agent.get_params()
    assert list(found) == case.arguments
    assert found == agent.get_params(deep=False)
    assert all(found[key] is value for key, value in case.options.items())
    assert agent.set_params() is agent
    assert agent.set_params(seed=8) is agent
    assert agent.get_params() == case.make(seed=8).get_params()
    assert_equal(everything(case.learn(agent, 2), tmp_path), everything(case.learned(2, seed=8), tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_set_all_or_none(name, tmp_path):
    case = BY_NAME[name]
    agent, before = case.make(), everything(case.make(), tmp_path)
    with pytest.raises(ValueError, match="has no parameter epsilon, nonsense: there are"):
        agent.set_params(seed=8, nonsense=1, epsilon=2)
    with pytest.raises((ValueError, TypeError)):
        agent.set_params(**{"seed": 8, **invalid(case)})
    assert_equal(everything(agent, tmp_path), before)
    case.learn(agent, 1)
    learned = everything(agent, tmp_path)
    with pytest.raises(RuntimeError, match=r"agent.clone\(seed=...\) is a new agent"):
        agent.set_params(seed=8)
    assert agent.set_params() is agent
    assert_equal(everything(agent, tmp_path), learned)


def invalid(case):
    """An argument that the constructor refuses."""
    bad = {"lam": -1.0, "gamma": 2.0, "prior": (-1.0, 1.0), "alpha_P": -1.0, "scale": -1.0, "seed": -1}
    return next({name: value} for name, value in bad.items() if name in case.arguments)


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learn_clones_agents(name, tmp_path):
    clone = pytest.importorskip("sklearn.base").clone
    case = BY_NAME[name]
    agent = case.learned(2)
    found = clone(agent)
    assert type(found) is case.type
    assert found.steps == 0
    assert found.get_params() == agent.get_params()
    assert_equal(everything(case.learn(found, 2), tmp_path), everything(agent, tmp_path))
    assert clone(agent).set_params(seed=8).get_params()["seed"] == 8


def test_a_search_over_parameters_as_scikit_learn_does_it():
    model_selection = pytest.importorskip("sklearn.model_selection")
    base = pytest.importorskip("sklearn.base")
    agent = rlsvi.RLSVI(seed=0)
    grid = model_selection.ParameterGrid({"sigma": [0.1, 1.0], "lam": [0.5, 2.0]})
    made = [base.clone(agent).set_params(**point) for point in grid]
    assert sorted((one.lam, one.sigma) for one in made) == [(0.5, 0.1), (0.5, 1.0), (2.0, 0.1), (2.0, 1.0)]


def test_an_array_and_a_seed_sequence_are_parameters():
    agent = rlsvi.RLSVI(seed=np.random.SeedSequence(3), prior_mean=np.zeros(4))
    assert agent.set_params(lam=2.0).get_params()["prior_mean"].shape == (4,)
    assert agent.lam == 2.0
    other = rlsvi.RLSVI(seed=np.random.SeedSequence(3), prior_mean=np.zeros(4), lam=2.0)
    assert (agent._streams == other._streams).all()
