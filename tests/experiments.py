"""An experiment for the tests of graphics cards, in a module that other processes can import."""

import os
import traceback

from rlsvi import LSVI, PSRL, RLSVI, problems
from rlsvi.study.experiment import Play, experiment


@experiment
def regret_of(*, length, seed):
    """Even seeds play on; seed 3 fails."""
    agent, problem = RLSVI(seed=seed), problems.chain(length, 2, seed=seed)
    history = yield Play(agent, problem, 8)
    if seed == 3:
        raise ArithmeticError("3 is not liked")
    more = (yield Play(agent, problem, 4, regret=False)) if seed % 2 == 0 else history
    return {"regret": history.regret.sum(), "reward": more.reward.sum()}


@experiment
def two_agents(*, length, seed):
    """Not an experiment: it plays with another agent."""
    yield Play(RLSVI(seed=seed), problems.chain(length), 3)
    history = yield Play(LSVI(seed=seed), problems.chain(length), 3)
    return {"reward": history.reward.sum()}


@experiment
def careful(*, length, seed):
    """Expects rewards that the agent refuses."""
    try:
        yield Play(PSRL(seed=seed, reward_range=(2.0, 3.0)), problems.chain(length), 3)
    except ValueError:
        return {"failed": 1.0}
    return {"failed": 0.0}


@experiment
def reads_its_agent(*, length, seed):
    """Finds that its agent is a template, which has learned nothing."""
    agent = RLSVI(seed=seed)
    yield Play(agent, problems.chain(length), 3)
    return {"episodes": float(agent.episodes)}


@experiment
def dies_on_a_card(*, length, seed):
    """Ends the process that computes several of them at once."""
    history = yield Play(RLSVI(seed=seed), problems.chain(length), 3)
    if any(frame.name == "play_together" for frame in traceback.extract_stack()):
        os._exit(1)
    return {"reward": history.reward.sum()}
