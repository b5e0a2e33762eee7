"""The fused loop of continual agents: acting, the MDP's response and learning in one compiled function.

It calls the same functions as the Gymnasium loop of the agent, in the same order and with the same random streams,
so that both produce the same steps bit for bit.
"""

import time
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from rlsvi.agents.continual import ContinualAgent, Rule, Walk, advance, row_values
from rlsvi.agents.contract import ACTION, EPISODE, POSTERIOR
from rlsvi.agents.explore import choose, exploration
from rlsvi.agents.finite.rlsvi import FiniteMind, known_row
from rlsvi.core.checks import fits, function_of, shown, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import bits, reseed
from rlsvi.envs.task import Task
from rlsvi.mdp import FiniteMDP
from rlsvi.mdp.finite import Table, first_state, transition
from rlsvi.mdp.solve import check_alike
from rlsvi.simulate.finite import BROKEN, CHUNK_SECONDS, DONE, FULL


class StepRoom(NamedTuple):
    """Work arrays for the compiled loop."""

    state: Longs  # (1,) the state of the MDP, or -1 at the beginning of a life
    visited: Longs  # (2,)
    actions: Longs  # (1,)
    rewards: Floats  # (1,)
    Q: Floats  # (A,)
    chances: Floats  # (A,)


def simulate_continual(
    agent: ContinualAgent, mdp: FiniteMDP, steps: int, *, advance: Callable[[int], None] = lambda n: None
) -> Floats:
    """Let `agent` learn for `steps` more steps in `mdp`, which has no end; return the reward of every step.

    It continues where the last call ended, also after saving and loading. An absorbing state pays its terminal
    reward and leads back to the start.

    Parameters
    ----------
    agent
        The agent, which goes on learning.
    mdp
        The MDP.
    steps
        The number of steps.
    advance
        Called from time to time with the number of steps just done.

    Examples
    --------
    >>> import rlsvi
    >>> agent = rlsvi.ContinualRLSVI(gamma=0.9, seed=0)
    >>> rlsvi.simulate.simulate_continual(agent, rlsvi.mdp.river_swim(), 100).shape
    (100,)
    """
    steps = whole("steps", steps, 0)
    if not isinstance(agent, ContinualAgent):
        raise TypeError(f"agent must be ContinualRLSVI or ContinualLSVI, got {shown(agent)}")
    function_of("advance", advance, "the number of steps just done")
    check_alike(mdp)
    table, task = mdp.table, Task(0, mdp.table.actions, mdp.table.states)
    agent._take_on(task)
    learner = agent._learner = agent._learner or agent.new_learner(task, 0)
    here, A = learner.here(), table.actions
    if here is not None and not learner.walk.world.any():
        raise ValueError("this agent is in the middle of a Gymnasium environment: go on with learn")
    agent._env = None
    state = np.array([-1 if here is None else here.observation])
    visited, actions = np.zeros(2, np.int64), np.zeros(1, np.int64)
    desk = StepRoom(state, visited, actions, np.zeros(1), np.empty(A), np.empty(A))
    fits("the rewards of all steps", steps, "learn fewer at once")
    rewards = np.zeros(steps)
    done, chunk = 0, 64
    while done < steps:
        begin = time.perf_counter()
        learner.make_room(2)
        rule, parameters = exploration(agent.explore, agent.steps, min(chunk, steps - done))
        part = rewards[done : done + len(parameters)]
        finished, status, after = _run_on_copies(agent, table, rule, parameters, part, desk)
        if status == BROKEN:  # the last step has left traces: repeat without it
            _, _, after = _run_on_copies(agent, table, rule, parameters[:finished], part, desk)
        learner.mind, learner.walk, agent._streams, desk = after
        agent._notice()
        done += finished
        advance(finished)
        if status == BROKEN:
            raise agent._broken()
        chunk = max(1, min(2 * chunk, int(chunk * CHUNK_SECONDS / (time.perf_counter() - begin))))
    return rewards


def _run_on_copies(
    agent: ContinualAgent, table: Table, rule: int, parameters: Floats, rewards: Floats, desk: StepRoom
) -> tuple[int, int, tuple[FiniteMind, Walk, Words, StepRoom]]:
    """Run steps on copies: how many were finished, why it stopped, and what the copies are then."""
    learner = agent._learner
    (mind, walk), streams, desk = learner.copies(), agent._streams.copy(), deepcopy(desk)
    finished, status = run(table, mind, walk, learner.rule, rule, parameters, streams, rewards, desk)
    return finished, status, (mind, walk, streams, desk)


@compiled
def run(
    table: Table,
    mind: FiniteMind,
    walk: Walk,
    learned_by: Rule,
    rule: int,
    parameters: Floats,
    streams: Words,
    rewards: Floats,
    desk: StepRoom,
) -> tuple[int, int]:
    """Run steps until all are done, memory is full or a number is not finite: (steps, status)."""
    memory, values, A = mind.memory, mind.values, table.actions
    for i in range(parameters.size):
        if memory.states[0] + 2 >= memory.sum_head.shape[1] or memory.sums[0] >= memory.into.shape[1]:
            return i, FULL
        s = desk.state[0]
        if s < 0:
            reseed(walk.world, bits(streams[EPISODE]) >> np.uint64(32))
            s = first_state(table, walk.world)
        row = row_with_values(table, mind, s)
        for a in range(A):
            desk.Q[a] = values.Q[0, row * A + a]
        action = choose(rule, parameters[i], desk.Q, table.legal[0, s], desk.chances, streams[ACTION])
        following, reward, ends = 0, 0.0, False
        if action >= 0:
            following, reward, ends = transition(table, 0, False, s, action, walk.world)
            desk.visited[0], desk.actions[0], desk.rewards[0] = row, action, reward
            desk.visited[1] = -1 if ends else row_with_values(table, mind, following)
        if action < 0 or not advance(
            mind, walk, learned_by, desk.visited, desk.actions, desk.rewards, not ends, streams[POSTERIOR]
        ):
            return i, BROKEN
        rewards[i] = reward
        walk.row[0] = desk.visited[1]
        desk.state[0] = -1 if ends else following
    return parameters.size, DONE


@compiled
def row_with_values(table: Table, mind: FiniteMind, s: int) -> int:
    """Return the row of a state, adding it with its values under theta_t if it is new."""
    new = mind.rows[0, s] < 0
    row = known_row(mind, 0, s, table.legal[0, s])
    if new:
        row_values(mind.memory, mind.values, row)
    return row
