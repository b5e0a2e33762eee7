"""`check_agent` passes agents that keep their promises, and names the promise that another breaks."""

from dataclasses import dataclass

import numpy as np
import pytest

from pages import blocks
from rlsvi.testing import check_agent

PAGE = "docs/how-to/own-agent.md"
NAMES = {"__name__": "own_agent"}
exec(compile(blocks(PAGE)[0], PAGE, "exec"), NAMES)
Greedy, Means = NAMES["Greedy"], NAMES["Means"]


class Broken(Means):
    """A learner of a subclass, which goes on as one."""

    def remember(self, steps, plan, ended):
        after = super().remember(steps, plan, ended)
        return type(self)(self.task, after.sums, after.counters)


class LearnsWhenAsked(Broken):
    def values(self, plan, place):
        self.sums[1] += 1
        return plan


class DrawsWithoutASeed(Broken):
    def plan(self, sampled, stream, learning=False):
        return super().plan(sampled, stream) + np.random.default_rng().random(self.task.actions)

    def remember(self, steps, plan, ended):
        self.sums[0] += plan
        return super().remember(steps, plan, ended)


class ForgetsInFiles(Broken):
    def state(self):
        return {**super().state(), "sums": np.zeros_like(self.sums)}


class LearnsBeforeItIsComplete(Broken):
    def look(self, h, observation, mask, learning=True):
        self.sums[1] += learning
        return super().look(h, observation, mask)


@pytest.mark.parametrize(
    ("learner", "promise"),
    [
        (LearnsWhenAsked, "must change nothing|must say the same"),
        (DrawsWithoutASeed, "the same seed must give the same bits"),
        (ForgetsInFiles, "a loaded agent must go on with the same actions"),
        (LearnsBeforeItIsComplete, "must be as after its last whole episode"),
    ],
)
def test_a_broken_promise_is_named(learner, promise):
    @dataclass(kw_only=True, repr=False, eq=False)
    class Agent(Greedy):
        def new_learner(self, task, example):
            return learner(task)

        def restored_learner(self, task, file):
            found = super().restored_learner(task, file)
            return learner(task, found.sums, found.counters)

    with pytest.raises(AssertionError, match=promise):
        check_agent(Agent)


def test_what_is_no_agent_is_refused():
    for make in (3, dict, lambda seed: "an agent"):
        with pytest.raises(TypeError, match="make must be a class of agents"):
            check_agent(make)
