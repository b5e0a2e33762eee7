"""The agent of docs/how-to/own-agent.md learns, predicts, is saved and loaded as all others are."""

import numpy as np
import pytest

import rlsvi
from pages import blocks
from rlsvi.agents.contract import REGISTRY
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import chain

PAGE = "docs/how-to/own-agent.md"


@pytest.fixture(scope="module")
def own():
    """The class on the page."""
    (code,) = blocks(PAGE)
    names = {"__name__": "own_agent"}
    exec(compile(code, PAGE, "exec"), names)
    return names["Greedy"]


def test_it_learns_predicts_and_goes_on_after_loading(own, tmp_path):
    env = FiniteMDPEnv(chain(4))
    whole = own(seed=3).learn(env, episodes=12)
    half = own(seed=3).learn(env, episodes=5)
    half.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent").learn(env, episodes=7)
    assert type(again) is own
    assert again.episodes == whole.episodes == 12
    assert again.steps == whole.steps
    assert np.array_equal(again._learner.sums, whole._learner.sums)
    assert again.predict(0, deterministic=True) == whole.predict(0, deterministic=True)
    assert repr(again) == "Greedy(horizon=None, seed=3)"


def test_it_learns_from_a_log(own):
    env, lived = FiniteMDPEnv(chain(4)), own(seed=3)
    log = rlsvi.record(env, lived, 12, learning=True)
    fitted = own(seed=3).fit(log, env)
    assert np.array_equal(fitted._learner.sums, lived._learner.sums)
    assert np.array_equal(fitted._streams, lived._streams)


def test_it_is_as_it_was_when_the_environment_fails(own):
    class Failing(FiniteMDPEnv):
        def step(self, action):
            raise OSError("the cable")

    agent = own(seed=3).learn(FiniteMDPEnv(chain(4)), episodes=2)
    sums, streams = agent._learner.sums.copy(), agent._streams.copy()
    with pytest.raises(OSError, match="the cable"):
        agent.learn(Failing(chain(4)), episodes=1)
    assert np.array_equal(agent._learner.sums, sums)
    assert np.array_equal(agent._streams, streams)


def test_a_file_of_a_class_that_is_not_known_says_so(own, tmp_path, monkeypatch):
    own(seed=3).save(tmp_path / "agent")
    monkeypatch.delitem(REGISTRY, "own_agent:Greedy")
    with pytest.raises(ValueError, match="import the module that defines it"):
        rlsvi.load(tmp_path / "agent")
