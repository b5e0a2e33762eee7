"""What test_fuzz.py cannot reach: environments that do one thing in another way, and what errors advise."""

import contextlib

import gymnasium
import numpy as np
import pytest

import rlsvi
from contract.misbehaving import FAULTS, Misbehaving
from rlsvi import envs, mdp


class Player:
    def predict(self, observation, state=None, **_):
        return 0, state


def evaluated(**changed):
    usual = {"agent": Player(), "env": envs.ChainEnv(3), "episodes": 1}
    return rlsvi.evaluate(**{**usual, **changed})


OF_ALL = [name for name, fault in FAULTS.items() if not fault.looks and fault.says != "mask"]
OF_ALL.remove("terminated is a number")  # which some may take


@pytest.mark.parametrize("name", OF_ALL)
def test_an_environment_that_is_not_as_gymnasium_has_it_is_named(name):
    fault = FAULTS[name]
    refused = pytest.raises((TypeError, ValueError, OSError), match=fault.says)
    with contextlib.nullcontext() if fault.harmless else refused:
        found = evaluated(env=Misbehaving(envs.ChainEnv(3), fault, 0)).returns
        assert np.array_equal(found, evaluated().returns)


@pytest.mark.parametrize(
    ("id", "wrong", "words"),
    [
        ("CartPole-v1", "sigmaa", "agent_for has no argument sigmaa .*: did you mean sigma?"),
        ("FrozenLake-v1", "optimsm", "agent_for has no argument optimsm .*: did you mean optimism?"),
        ("rlsvi/Chain-v0", "sigmaa", "agent_for has no argument sigmaa .* RLSVI: did you mean sigma?"),
        ("rlsvi/Chain-v0", "gamma", "agent_for has no argument gamma for this environment, .* makes a RLSVI"),
        ("CartPole-v1", "seeed", "agent_for has no argument seeed for this environment: did you mean seed?"),
    ],
)
def test_agent_for_speaks_of_itself_and_of_the_nearest_argument(id, wrong, words):
    with pytest.raises(TypeError, match=words.replace("?", r"\?")):
        rlsvi.agent_for(gymnasium.make(id), **{wrong: 1})


def test_learn_says_what_to_write():
    env = envs.FiniteMDPEnv(mdp.chain(3))
    assert rlsvi.RLSVI(seed=0).learn(env, 5).episodes == 5
    for arguments, words in [
        ({"total_timesteps": 100}, r"no argument total_timesteps: write steps=, as in learn\(env, steps="),
        ({"episodes": 3, "callback": print}, "no argument callback: write on_episode=.* returns False"),
        ({"episode": 3}, r"no argument episode: did you mean episodes\?"),
        ({"episodes": 3, "tb_log_name": "a"}, "no argument tb_log_name: there are env, episodes, steps"),
    ]:
        with pytest.raises(TypeError, match=words):
            rlsvi.RLSVI(seed=0).learn(env, **arguments)
    with pytest.raises(TypeError, match=r"too many positional arguments: .* have names, such as steps="):
        rlsvi.RLSVI(seed=0).learn(env, 5, 100)
    with pytest.raises(TypeError, match=r"missing a required argument: 'env': write learn\(env, 20\)$"):
        rlsvi.RLSVI(seed=0).learn()
    with pytest.raises(ValueError, match=r"learn\(env, 20\) means 20 episodes"):
        rlsvi.RLSVI(seed=0).learn(env)
    with pytest.raises(ValueError, match="episodes"):
        rlsvi.RLSVI(seed=0).learn(env, episodes=1, steps=1)
    endless = rlsvi.ContinualRLSVI(seed=0)
    with pytest.raises(TypeError, match="names, such as steps=1000"):
        endless.learn(env, 5)
    with pytest.raises(TypeError, match=r"argument: 'steps': write learn\(env, steps=1000\)$"):
        endless.learn(env)
    with pytest.raises(TypeError, match="no argument total_timesteps: write steps="):
        endless.learn(env, total_timesteps=5)
