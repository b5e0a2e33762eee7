"""Concurrent agents: several that act at once, each in its own copy of an environment, and share all their data.

Time is in rounds. In each, every agent plans from what all have learned before it, and plays an episode; then
all episodes are learned. One object has the shared data, and its class says what each agent acts on:

    EnsembleRLSVI(members=K)   agent k acts on member k: a prior draw and noise that are its own and never change
    RLSVI                      a new sample for each agent and each round
    either, with shared=True   one sample, or one member drawn anew, for all agents of a round

The first is seed sampling (Dimakopoulou and Van Roy 2018; for value functions, Dimakopoulou, Osband and Van Roy
2018): member k is a function of the data and of the seed of agent k, so that agents differ from each other, and
change their plans only as data arrive. As for one agent, the weights of the first round are the prior mean.
"""

from collections.abc import Iterable
from copy import copy
from typing import Any

import numpy as np
from gymnasium import Env

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import ANY, EPISODE, POSTERIOR, Step, copy_of
from rlsvi.agents.finite.ensemble import EnsembleRLSVI
from rlsvi.agents.finite.rlsvi import FiniteLearner
from rlsvi.core.checks import fits, flag, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import bits
from rlsvi.core.regression import ByEvidence
from rlsvi.envs.task import reset_env
from rlsvi.progress import bar


def learn_concurrently(
    agent: Agent, envs: Iterable[Env[Any, Any]], rounds: int, *, shared: bool = False, progress: bool | None = None
) -> Floats:
    """Let concurrent agents learn for `rounds` more rounds, one in each environment; return their returns.

    The agent's seed determines everything, since it also seeds the environments. After an error or interrupt, the
    agent is as after its last complete round.

    Parameters
    ----------
    agent
        Has the data of all, and says what each acts on: RLSVI, BoundedTargetRLSVI, BootstrapRLSVI, LSVI, or
        EnsembleRLSVI with as many members as there are environments.
    envs
        Copies of one environment, one for each agent.
    rounds
        The number of rounds. In each, every agent plays one episode.
    shared
        All agents of a round act on one sample.
    progress
        Show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.

    Returns
    -------
    Floats
        The sum of the rewards of every episode, (rounds, agents).

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> from rlsvi_paper.agents import learn_concurrently
    >>> envs = [gymnasium.make("rlsvi/Chain-v0", length=5) for _ in range(3)]
    >>> learn_concurrently(rlsvi.RLSVI(seed=0), envs, 20).shape
    (20, 3)
    """
    places = list(envs) if isinstance(envs, Iterable) and not isinstance(envs, np.ndarray) else []
    if not places:
        raise ValueError(f"envs must have an environment for each agent, such as [env, env], got {shown(envs)}")
    whole("rounds", rounds, 0)
    check_concurrent(agent, len(places), shared)
    if wrong := [env for env in places if not isinstance(env, Env)]:
        raise TypeError(f"envs must be a list of Gymnasium environments, got {shown(wrong[0])} in it")
    tasks = [agent._task_of(env) for env in places]
    if any(task != tasks[0] for task in tasks):
        raise ValueError(f"envs must be copies of one environment, got {sorted(set(map(str, tasks)))}")
    fits(f"the returns of {shown(rounds)} rounds", rounds * len(places), "learn fewer at once")
    agent._take_on(tasks[0], places[0])
    returns = np.zeros((rounds, len(places)))
    with bar(rounds, "rounds", progress) as advance:
        for one in returns:
            one[:] = _round(agent, places, shared)
            advance(1)
    return returns


def check_concurrent(agent: Any, agents: int, shared: bool) -> None:
    """Raise an error if so many agents cannot share the data of `agent`."""
    flag("shared", shared)
    if not isinstance(agent, Agent) or not agent._concurrent:
        raise TypeError(
            "agent must be one whose data do not depend on the value function that it acted on, such as "
            f"rlsvi.RLSVI(), EnsembleRLSVI or BootstrapRLSVI, got {shown(agent)}"
        )
    if isinstance(agent.sigma, ByEvidence):
        raise ValueError("sigma=ByEvidence() counts episodes, not rounds: give a number to concurrent agents")
    if isinstance(agent, EnsembleRLSVI) and not shared and agent.members_in_use != agents:
        raise ValueError(
            f"members is {agent.members_in_use}, there are {agents} agents: each has a member of its own, so use "
            f"EnsembleRLSVI(members={agents}), or shared=True"
        )


def _round(agent: Agent, envs: list[Env[Any, Any]], shared: bool) -> list[float]:
    """Play an episode in each environment, then learn from all; return their returns."""
    assert agent._task is not None
    episodes, returns, plan = list[list[Step]](), list[float](), None
    with agent._restore_streams():
        agent._settle()
        learner = agent._learner
        for k, env in enumerate(envs):
            observation, info = reset_env(env, int(bits(agent._streams[EPISODE]) >> np.uint64(32)))
            if learner is None:
                learner = agent.new_learner(agent._task, agent._first(env, observation))
            place, sampled = learner.look(0, observation, info.get("action_mask")), agent._uses_sample(learner)
            if plan is None or (sampled and not shared):
                plan = learner.plan_as(ANY if shared else k, sampled, agent._streams[POSTERIOR])
            steps, paid, _, _ = agent._play(env, learner, plan, place)
            episodes.append(steps)
            returns.append(paid)
        agent._expect(returns)
        after = copy(learner)  # the learner itself does not change
        after.mind = copy_of(learner.mind)
        for steps in episodes:
            after = after.remember([_now(after, step) for step in steps], None, ended=True)
        agent._learner = after
    agent._notice()
    return returns


def _now(learner: FiniteLearner, step: Step) -> Step:
    """Return a step between the places as they are now."""
    following = None if step.following is None else learner.looked_at_again(step.following)
    return step._replace(place=learner.looked_at_again(step.place), following=following)
