"""The agent of docs/how-to/own-agent.md learns, predicts, is saved and loaded as all others are."""

import threading

import numpy as np
import polars as pl
import pytest

import rlsvi
from pages import blocks
from rlsvi.agents.contract import REGISTRY
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import chain
from rlsvi.testing import check_agent

PAGE = "docs/how-to/own-agent.md"


@pytest.fixture(scope="module")
def own():
    """The class on the page."""
    code, *_ = blocks(PAGE)
    names = {"__name__": "own_agent"}
    exec(compile(code, PAGE, "exec"), names)
    return names["Greedy"]


def test_it_keeps_the_promises_of_agents(own):
    check_agent(own)
    assert repr(own(seed=3)) == "Greedy(seed=3)"


def test_it_learns_the_environment_of_the_tutorial(own):
    """Which has no number of periods that is known before."""
    names = {"__name__": "my_envs"}
    code, *_ = blocks("docs/tutorials/own-environment.md")
    exec(compile(code.partition("\n\n\ngym.register")[0], "own-environment.md", "exec"), names)
    agent = own(seed=0).learn(names["Heating"](), episodes=3)
    assert (agent.episodes, agent.steps) == (3, 3 * 48)
    assert agent._learner.task.horizon == 0


def test_it_learns_from_a_log(own):
    env, lived = FiniteMDPEnv(chain(4)), own(seed=3)
    log = rlsvi.record(env, lived, 12, learning=True)
    fitted = own(seed=3).fit(log, env)
    assert np.array_equal(fitted._learner.sums, lived._learner.sums)
    assert np.array_equal(fitted._streams, lived._streams)


class Locked:
    """A learner that cannot be copied, because of a lock."""

    in_place = False

    def __init__(self, *given):
        super().__init__(*given)
        self.lock = threading.Lock()

    def remember(self, steps, plan, ended):
        if any(step.reward > 5 for step in steps):
            raise OSError("the disk is full")
        after = super().remember(steps, plan, ended)
        if self.in_place:
            self.sums, self.counters = after.sums, after.counters
            return self
        return type(self)(after.task, after.sums, after.counters)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_learner_that_cannot_be_copied_learns_from_logs(own, in_place):
    env = FiniteMDPEnv(chain(4))
    kind = type(own(seed=1).new_learner(own(seed=1)._task_of(env), 0))
    locked = type("LockedMeans", (Locked, kind), {"in_place": in_place})

    class Agent(own):
        def new_learner(self, task, example):
            return locked(task)

    log = rlsvi.record(env, None, 6)
    agent = Agent(seed=1).fit(log, env).fit(log, env)
    assert agent.steps == 2 * log.height
    sums, streams = agent._learner.sums.copy(), agent._streams.copy()
    last = log.with_columns(reward=pl.when(pl.col("episode") == 5).then(9.0).otherwise(pl.col("reward")))
    with pytest.raises(OSError, match="the disk is full") as raised:
        agent.fit(last, env)
    assert np.array_equal(agent._streams, streams)
    assert np.array_equal(agent._learner.sums, sums) is not in_place
    assert bool(getattr(raised.value, "__notes__", [])) is in_place  # which say so


def test_a_file_of_a_class_that_is_not_known_says_so(own, tmp_path, monkeypatch):
    own(seed=3).save(tmp_path / "agent")
    monkeypatch.delitem(REGISTRY, "own_agent:Greedy")
    with pytest.raises(ValueError, match="import the module that defines it"):
        rlsvi.load(tmp_path / "agent")
