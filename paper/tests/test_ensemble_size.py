"""The experiment on the number of members, against a plain simulation."""

import math

import numpy as np
import pytest

from rlsvi import RLSVI, EnsembleRLSVI, problems
from rlsvi.simulate.finite import simulate
from rlsvi_paper.descendants.ensemble_size import EXACT, SHALLOW, TARGETS, WEIGHTS_ALONE, ensemble_regret
from rlsvi_paper.results import seeds_of

PRIOR = {"lam": 10.0, "sigma": 0.001}
PLAYERS = {
    EXACT: (None, lambda seed: RLSVI(**PRIOR, seed=seed)),
    TARGETS: (10, lambda seed: EnsembleRLSVI(members=10, **PRIOR, seed=seed)),
    WEIGHTS_ALONE: (
        10,
        lambda seed: EnsembleRLSVI(members=10, perturb="weights", prior_scale=0, **PRIOR, seed=seed),
    ),
}


@pytest.mark.parametrize("name", [EXACT, TARGETS, pytest.param(WEIGHTS_ALONE, marks=pytest.mark.slow)])
def test_time_and_regret_are_those_of_a_plain_simulation(name):
    members, make = PLAYERS[name]
    given = {} if members is None else {"members": members}
    found = ensemble_regret(task=SHALLOW, agent=name, episodes=200, seed=3, **given)
    problem_seed, agent_seed = seeds_of(3)
    problem = problems.deep_sea(10, seed=problem_seed)
    regret = simulate(make(agent_seed), problem, 200).regret
    good = [i + 1 for i, lost in enumerate(regret) if lost <= 0.5 * problem.solution.V[0, 0]]
    assert found["time"] == (good[9] if len(good) >= 10 else math.inf)
    assert found["regret"] == pytest.approx(np.mean(regret) / problem.random_regret)
    assert math.isinf(found["time"]) == (name == WEIGHTS_ALONE)
