"""The problems that no agent was tuned on: they are environments, and their references are what is stated."""

import numpy as np
import pytest
from benchmarks.practice.evaluation import random_return
from benchmarks.practice.unseen import REFERENCES, UNSEEN, solve
from gymnasium.spaces import Discrete
from gymnasium.utils.env_checker import check_env

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", UNSEEN)
def test_chances_add_up_and_episodes_end(name):
    env = UNSEEN[name].make()
    check_env(env, skip_render_check=True)
    states = np.stack(np.meshgrid(*env.axes, indexing="ij"), axis=-1).reshape(-1, len(env.axes))
    for action in range(env.action_space.n) if isinstance(env.action_space, Discrete) else (0.0, 0.4, 1.0):
        for t in (0, env.limit - 1):
            outcomes = env.moves(t, states, float(action))
            np.testing.assert_allclose(sum(np.zeros(len(states)) + chance for chance, _, _ in outcomes), 1.0)
            for _, _, following in outcomes:  # on the grid, or at an end
                assert (
                    (following >= states.min(axis=0)) & (following <= states.max(axis=0)) | np.isnan(following)
                ).all()
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(env.limit):
        observation, _, ended, cut, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        assert not cut
        if ended:
            break
    assert ended


@pytest.mark.parametrize("name", UNSEEN)
def test_references_are_those_of_dynamic_programming(name):
    task = UNSEEN[name]
    assert solve(task.make()) == pytest.approx(REFERENCES[name], rel=1e-4)
    assert random_return(task) == pytest.approx(task.random, rel=1e-3)
