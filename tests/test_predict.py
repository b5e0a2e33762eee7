"""Predictions one at a time are those of batches, and of plans that are looked up anew."""

import gymnasium
import numpy as np
import pytest

import rlsvi
from rlsvi.bases.layout import layout_of, vector_of
from rlsvi.core.checks import LARGEST_NUMBER, finite


@pytest.mark.parametrize(("name", "episodes"), [("CartPole-v1", 6), ("MountainCar-v0", 2), ("Taxi-v3", 3)])
def test_one_observation_is_a_batch_of_one(name, episodes):
    env = gymnasium.make(name.replace("v3", "v4") if name.replace("v3", "v4") in gymnasium.registry else name)
    agent = rlsvi.agent_for(env, seed=0).learn(env, episodes)
    (observation, info), state = env.reset(seed=1), None
    for step in range(40):
        mask = info.get("action_mask")
        found = agent.predict(observation, state, deterministic=True, action_mask=mask)
        batch = np.asarray(observation)[None]
        one = agent.predict(batch, None if state is None else np.array([state]), None, True, mask)
        assert found == (one[0][0], one[1][0])
        assert type(found[1]) is int
        for other in (None if state is None else np.int64(state), state):
            assert agent.predict(observation, other, False if step else None, True, mask) == found
        observation, _, terminated, truncated, info = env.step(found[0])
        state = found[1]
        if terminated or truncated:
            (observation, info), state = env.reset(seed=step), None
    with pytest.raises(ValueError, match="state must be a whole number of at least 0"):
        agent.predict(observation, -1)
    with pytest.raises(ValueError, match="state must be a whole number of at least 0"):
        agent.predict(observation, True)


@pytest.mark.parametrize("large", [np.nan, np.inf, -np.inf, 2 * LARGEST_NUMBER, -1e300])
def test_numbers_are_finite_however_they_are_checked(large):
    for size in (1, 7, 5000):
        array = np.full(size, -1.5)
        assert finite("x", array) is array
        array[-1] = large
        with pytest.raises(ValueError, match="x must be finite"):
            finite("x", array)
        with pytest.raises(ValueError, match="observation holds NaN, infinity or more than"):
            vector_of(layout_of(gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)), array)
    assert finite("x", np.array([LARGEST_NUMBER, -LARGEST_NUMBER])).tolist() == [LARGEST_NUMBER, -LARGEST_NUMBER]
