"""The fused loop: planning, acting, the MDP's answers and learning in one compiled function.

It calls what the Gymnasium loop of an agent calls, in the same order and with the same random streams, so
both give the same episodes bit for bit; an agent may go from one to the other at any episode.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi.agents.agent import FiniteHorizonAgent
from rlsvi.agents.explore import choose, probabilities
from rlsvi.agents.gymnasium import Task
from rlsvi.agents.learner import Finite, broken, table_row, table_values
from rlsvi.agents.memory import add_episode, is_full
from rlsvi.agents.value_iteration import value_iteration
from rlsvi.agents.verbs import ACTION, EPISODE, POSTERIOR
from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import bits, copy, reseed
from rlsvi.mdp.table import Table, first_state, mask_of, row_of, step, terminal_reward
from rlsvi.problems import Problem

DONE, FULL, BROKEN = 0, 1, 2
CHUNK_SECONDS = 0.1  # between two looks at the world outside the compiled loop


class Trace(NamedTuple):
    """What happened, step by step: (episodes, H) each; -1, or NaN for rewards, after the end of an episode."""

    states: Ints
    actions: Ints
    rewards: Floats


class History(NamedTuple):
    """What each episode brought.

    reward : the sum of its rewards.
    regret : expected regret V*_0(s_0) - V^mu_0(s_0) of the policy mu it was played with; NaN if not asked for.
    realised : realised regret V*_0(s_0) - reward.
    """

    reward: Floats
    regret: Floats
    realised: Floats
    trace: Trace


class Work(NamedTuple):
    """Room for the compiled loop to work in."""

    states: Longs  # (H,) the episode
    actions: Longs  # (H,)
    rewards: Floats  # (H,)
    visited: Longs  # (H,) rows of the states in memory
    Q: Floats  # (A,)
    chances: Floats  # (A,)
    x: Floats  # (d,)
    nature: Words  # the MDP's random stream
    scratch: Words
    kept: Words  # the agent's random streams before the episode
    mass: Floats  # (2, S)
    front: Longs  # (2, S)


def _work(H: int, S: int, A: int, d: int) -> Work:
    return Work(
        states=np.empty(H, np.int64),
        actions=np.empty(H, np.int64),
        rewards=np.empty(H),
        visited=np.empty(H, np.int64),
        Q=np.empty(A),
        chances=np.empty(A),
        x=np.empty(d),
        nature=np.empty(4, np.uint64),
        scratch=np.empty(4, np.uint64),
        kept=np.empty((4, 4), np.uint64),
        mass=np.zeros((2, S)),
        front=np.empty((2, S), np.int64),
    )


def simulate(
    agent: FiniteHorizonAgent,
    problem: Problem,
    episodes: int,
    *,
    regret: bool = True,
    trace: bool = False,
    advance: Callable[[int], None] = lambda n: None,
) -> History:
    """Let `agent` learn `episodes` more episodes of `problem`; it releases the GIL.

    regret : evaluate the policy of every episode exactly.
    trace : keep every step.
    advance : called now and then with the number of episodes just finished.
    """
    whole("episodes", episodes, 0)
    table = problem.mdp.table
    learner = agent.adopt(Task(table.horizon, table.actions, table.states), problem.basis)
    history = _blank(episodes, table.horizon if trace else 0)
    optimal = problem.solution.V[0]
    work = _work(table.horizon, table.states, table.actions, learner.features.dim)
    done, chunk = 0, 64
    while done < episodes:
        begin = time.perf_counter()
        count = min(chunk, episodes - done)
        rule, parameters = agent.explore.parameters(agent.episodes, count)
        finished, steps, status = run(
            table,
            learner.finite(),
            agent.samples,
            rule,
            parameters,
            float(agent.reward_offset),
            agent._streams,
            optimal,
            regret,
            _part(history, slice(done, done + count)),
            work,
        )
        agent.note(steps)
        done += finished
        advance(finished)
        if status == BROKEN:
            raise broken()
        if status == FULL:
            learner.make_room()
        took = time.perf_counter() - begin
        chunk = max(1, min(2 * chunk, int(chunk * CHUNK_SECONDS / took)))
    return history


def _blank(episodes: int, horizon: int) -> History:
    """Room for the history; `horizon` 0: no trace is kept."""
    shape = (episodes if horizon else 0), horizon
    trace = Trace(np.full(shape, -1, np.int32), np.full(shape, -1, np.int32), np.full(shape, np.nan))
    return History(np.zeros(episodes), np.full(episodes, np.nan), np.full(episodes, np.nan), trace)


def _part(history: History, now: slice) -> History:
    trace = Trace(history.trace.states[now], history.trace.actions[now], history.trace.rewards[now])
    return History(history.reward[now], history.regret[now], history.realised[now], trace)


@compiled
def run(
    table: Table,
    learner: Finite,
    samples: bool,
    rule: int,
    parameters: Floats,
    offset: float,
    streams: Words,
    optimal: Floats,
    regret: bool,
    out: History,
    work: Work,
) -> tuple[int, int, int]:
    """Episodes until all are played, memory is full or a number breaks: (episodes, steps, status).

    An episode that breaks before it is learned from leaves the agent as it was.
    """
    memory, factor, total = learner.memory, learner.factor, 0
    for i in range(parameters.size):
        if is_full(memory):
            return i, total, FULL
        copy(streams, work.kept)
        reseed(work.nature, bits(streams[EPISODE]) >> np.uint64(32))
        start = first_state(table, work.nature)
        sampled = samples and memory.episodes[0] > 0
        fine = value_iteration(memory, factor, learner.prior, learner.values, sampled, streams[POSTERIOR])
        if fine and regret:
            value = policy_value(table, learner, rule, parameters[i], start, work)
            out.regret[i] = optimal[start] - value
            fine = value == value
        T = play(table, learner, rule, parameters[i], start, streams[ACTION], work) if fine else 0
        if T == 0:
            copy(work.kept, streams)
            return i, total, BROKEN
        for h in range(T):
            s, legal = work.states[h], table.legal[mask_of(table, h)]
            work.visited[h] = table_row(learner, h, s, legal[s])
            out.reward[i] += work.rewards[h]
            if out.trace.states.size > 0:
                out.trace.states[i, h] = s
                out.trace.actions[i, h] = work.actions[h]
                out.trace.rewards[i, h] = work.rewards[h]
            work.rewards[h] += offset
        out.realised[i] = optimal[start] - out.reward[i]
        if not add_episode(memory, factor, work.visited, work.actions, work.rewards, T, False, work.x):
            return i, total, BROKEN
        total += T
    return parameters.size, total, DONE


@compiled
def play(table: Table, learner: Finite, rule: int, parameter: float, start: int, stream: Words, work: Work) -> int:
    """Act for one episode, into `work`; its number of steps, or 0 if values are not numbers one can compare."""
    s = start
    for h in range(table.horizon):
        table_values(learner, h, s, work.Q, work.scratch)
        legal = table.legal[mask_of(table, h)]
        a = choose(rule, parameter, work.Q, legal[s], work.chances, stream)
        if a < 0:
            return 0
        work.states[h], work.actions[h] = s, a
        s, work.rewards[h] = step(table, h, s, a, work.nature)
        if h + 1 == table.horizon or table.absorbing[s]:
            work.rewards[h] += terminal_reward(table, s, work.nature)
            return h + 1
    return 0


@compiled
def policy_value(table: Table, learner: Finite, rule: int, parameter: float, start: int, work: Work) -> float:
    """V^mu_0(start) of the policy the agent plays in this episode, exactly; NaN if its values are not finite.

    Goes forward over the states the policy can reach, with the probability `mass` of being in each;
    `front` lists them. Both hold two periods, and `mass` is zero before and after.
    """
    Q, chances, mass, front = work.Q, work.chances, work.mass, work.front
    value = 0.0
    here, size = 0, 1
    front[0, 0] = start
    mass[0, start] = 1.0
    for h in range(table.horizon):
        there, reached = 1 - here, 0
        for i in range(size):
            s = front[here, i]
            weight = mass[here, s]
            mass[here, s] = 0.0
            table_values(learner, h, s, Q, work.scratch)
            if not probabilities(rule, parameter, Q, table.legal[mask_of(table, h), s], chances):
                return np.nan
            for a in range(table.actions):
                if chances[a] > 0.0:
                    row = row_of(table, h, s, a)
                    value += weight * chances[a] * table.expected[row]
                    for j in range(table.indptr[row], table.indptr[row + 1]):
                        flow = weight * chances[a] * table.probability[j]
                        following = table.successor[j]
                        if h + 1 == table.horizon or table.absorbing[following]:
                            value += flow * table.terminal[following]
                        elif flow > 0.0:
                            if mass[there, following] == 0.0:
                                front[there, reached] = following
                                reached += 1
                            mass[there, following] += flow
        here, size = there, reached
    return value
