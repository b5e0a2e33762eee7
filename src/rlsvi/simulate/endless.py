"""The fused loop of continual agents: acting, the MDP's answers and learning in one compiled function.

It calls what the Gymnasium loop of the agent calls, in the same order and with the same random streams, so both
give the same steps bit for bit.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi.agents.continual.agent import KINDS, ContinualAgent
from rlsvi.agents.continual.step import Walk, advance, row_values
from rlsvi.agents.explore import choose
from rlsvi.agents.finite.learner import Finite, broken, table_row
from rlsvi.agents.task import Task
from rlsvi.agents.verbs import ACTION, EPISODE, POSTERIOR
from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import bits, copy, reseed
from rlsvi.mdp import FiniteMDP
from rlsvi.mdp.average import check_alike
from rlsvi.mdp.table import Table, first_state, step, terminal_reward

DONE, FULL, BROKEN = 0, 1, 2
CHUNK_SECONDS = 0.1


class Work(NamedTuple):
    """Room for the compiled loop to work in."""

    state: Longs  # (1,) where the MDP stands, or -1 before its first step
    visited: Longs  # (2,)
    actions: Longs  # (1,)
    rewards: Floats  # (1,)
    Q: Floats  # (A,)
    chances: Floats  # (A,)
    x: Floats  # (d,)
    kept: Words  # the agent's streams before the step


def simulate_continual(
    agent: ContinualAgent, mdp: FiniteMDP, steps: int, *, advance: Callable[[int], None] = lambda n: None
) -> Floats:
    """Let `agent` live `steps` more steps in `mdp`, which has no end: its reward in every step.

    It goes on where the last call left it, also after saving and loading. An absorbing state pays its terminal
    reward and leads back to the start.

    advance : called now and then with the number of steps just done.
    """
    whole("steps", steps, 0)
    check_alike(mdp)
    table = mdp.table
    agent.take_on(Task(0, table.actions, table.states))
    if agent._env is not None:
        raise ValueError("this agent has learned in a Gymnasium environment, and stands there: go on with learn")
    learner = agent._learner = agent._learner or agent._new(agent._task, agent.features(0))  # type: ignore[arg-type]
    known = np.flatnonzero(learner.index[0] == agent._row) if agent._row >= 0 else [-1]
    work = Work(
        np.array([known[0]]),
        np.zeros(2, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1),
        np.empty(table.actions),
        np.empty(table.actions),
        np.empty(learner.features.dim),
        np.empty((4, 4), np.uint64),
    )
    rewards, done, chunk = np.zeros(steps), 0, 64
    while done < steps:
        begin = time.perf_counter()
        count = min(chunk, steps - done)
        rule, parameters = agent.explore.parameters(agent.steps, count)
        part, kind = rewards[done : done + count], KINDS[agent.noise]
        finished, status = run(
            table, learner.finite(), learner.walk, learner.gamma, kind, rule, parameters, agent._streams,
            agent._world, part, work,
        )  # fmt: skip
        if work.state[0] >= 0:
            agent._row = int(learner.index[0, work.state[0]])
        if finished:
            agent.note(finished)
        done += finished
        advance(finished)
        if status == BROKEN:
            raise broken()
        if status == FULL:
            learner.make_room(2)
        chunk = max(1, min(2 * chunk, int(chunk * CHUNK_SECONDS / (time.perf_counter() - begin))))
    return rewards


@compiled
def run(
    table: Table,
    learner: Finite,
    walk: Walk,
    gamma: float,
    kind: int,
    rule: int,
    parameters: Floats,
    streams: Words,
    nature: Words,
    rewards: Floats,
    work: Work,
) -> tuple[int, int]:
    """Steps until all are done, memory is full or a number breaks: (steps, status)."""
    memory, values, A = learner.memory, learner.values, table.actions
    if memory.states[0] + 2 >= memory.sum_head.shape[1]:
        return 0, FULL
    if work.state[0] < 0:
        work.state[0] = begin_anew(table, learner, streams, nature)
    for i in range(parameters.size):
        if memory.states[0] + 2 >= memory.sum_head.shape[1] or memory.sums[0] >= memory.into.shape[1]:
            return i, FULL
        copy(streams, work.kept)
        s = work.state[0]
        row = learner.rows[0, s]
        for a in range(A):
            work.Q[a] = values.Q[0, row * A + a]
        action = choose(rule, parameters[i], work.Q, table.legal[0, s], work.chances, streams[ACTION])
        if action < 0:
            copy(work.kept, streams)
            return i, BROKEN
        following, reward = step(table, 0, s, action, nature)
        ends = table.absorbing[following]
        if ends:
            reward += terminal_reward(table, following, nature)
        work.visited[0], work.actions[0], work.rewards[0] = row, action, reward
        work.visited[1] = -1 if ends else known_row(table, learner, following)
        rewards[i] = reward
        if not advance(
            memory, learner.factor, learner.prior, values, walk, gamma, kind, work.visited, work.actions,
            work.rewards, not ends, work.x, streams[POSTERIOR],
        ):  # fmt: skip
            return i, BROKEN
        work.state[0] = begin_anew(table, learner, streams, nature) if ends else following
    return parameters.size, DONE


@compiled
def begin_anew(table: Table, learner: Finite, streams: Words, nature: Words) -> int:
    """The first state of a life, which becomes known."""
    reseed(nature, bits(streams[EPISODE]) >> np.uint64(32))
    s = first_state(table, nature)
    known_row(table, learner, s)
    return s


@compiled
def known_row(table: Table, learner: Finite, s: int) -> int:
    """The row of a state, which becomes known if it was not, with its values under theta_t."""
    new = learner.rows[0, s] < 0
    row = table_row(learner, 0, s, table.legal[0, s])
    if new:
        row_values(learner.memory, learner.values, row)
    return row
