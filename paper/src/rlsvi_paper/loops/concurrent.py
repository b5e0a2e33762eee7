"""The fused loop of concurrent agents: a round of planning, acting and learning in one compiled function.

It calls the same functions as `learn_concurrently`, in the same order and with the same random streams, so both
produce the same episodes bit for bit. The episodes of a round are set aside until all have been played. A round is
played and learned within one compiled call: whenever Python is interrupted, the agent is as it was after its last
complete round. So it is after an error: if an episode cannot be learned from, others of its round may have been,
and the complete rounds of the call are played again on a copy from before it.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    ACTION,
    ANY,
    EPISODE,
    POSTERIOR,
    Workspace,
    copy_of,
    is_full,
    learn,
    new_workspace,
    plan_as,
)
from rlsvi.agents.explore import exploration
from rlsvi.core.checks import fits, flag, shown, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import bits, copy, reseed
from rlsvi.mdp.finite import Table, first_state
from rlsvi.problems import Problem
from rlsvi.simulate.finite import (
    BROKEN,
    CHUNK_SECONDS,
    DONE,
    FULL,
    History,
    blank_history,
    check_problem,
    fused_for,
    part_of,
    play,
    policy_value,
    tell,
)
from rlsvi_paper.agents.concurrent import check_concurrent


class Round(NamedTuple):
    """The episodes of one round, of K agents."""

    lengths: Longs  # (K,) their numbers of steps
    states: Longs  # (K, H)
    actions: Longs  # (K, H)
    rewards: Floats  # (K, H) to learn from


def simulate_concurrent(
    agent: Agent,
    problem: Problem,
    rounds: int,
    *,
    agents: int,
    shared: bool = False,
    regret: bool = True,
    trace: bool = False,
    advance: Callable[[int], None] = lambda n: None,
) -> History:
    """Let several agents that share their data learn `rounds` more rounds of `problem`; releases the GIL.

    In each round every agent plans from what all have learned before the round, and plays an episode. The history
    has the episodes round by round: agent k played number `round * agents + k`.

    Parameters
    ----------
    agent
        Has the data of all, and says what each acts on. EnsembleRLSVI(members=agents): agent k always acts on
        member k, which is seed sampling. RLSVI and others: on a sample of its own, new in each round.
    problem
        The problem.
    rounds
        The number of rounds.
    agents
        The number of agents.
    shared
        All agents of a round act on one sample, or on one member of an ensemble.
    regret, trace
        As for `simulate`.
    advance
        Called from time to time with the number of rounds just finished.

    Returns
    -------
    History
        The results of each episode.

    Examples
    --------
    >>> import rlsvi
    >>> from rlsvi_paper.loops.concurrent import simulate_concurrent
    >>> agent = rlsvi.EnsembleRLSVI(members=4, seed=0)
    >>> history = simulate_concurrent(agent, rlsvi.problems.chain(5), rounds=10, agents=4)
    >>> history.reward.shape
    (40,)
    """
    rounds, agents = whole("rounds", rounds, 0), whole("agents", agents, 1)
    check_concurrent(agent, agents, shared)
    check_problem(problem, advance, "rounds")
    flag("regret", regret)
    flag("trace", trace)
    if not fused_for(agent):
        raise TypeError(
            f"{type(agent).__name__} overrides methods that compiled code would not call: use "
            "rlsvi_paper.agents.learn_concurrently with rlsvi.envs.FiniteMDPEnv(problem.mdp)"
        )
    table, solution = problem.mdp.table, problem.solution
    numbers = agents * (3 * table.horizon + rounds * (2 * table.horizon + 4 if trace else 4))
    fits(f"{shown(rounds)} rounds of {shown(agents)} agents", numbers, "use fewer agents or rounds, or no trace")
    agent._adopt(problem.mdp, problem.basis)
    history = blank_history(rounds * agents, table.horizon if trace else 0)
    states, actions = np.zeros((2, agents, table.horizon), np.int64)
    aside = Round(np.zeros(agents, np.int64), states, actions, np.zeros((agents, table.horizon)))
    work = new_workspace(table.horizon, table.states, table.actions)
    done, chunk = 0, max(1, 64 // agents)
    while done < rounds:
        begin = time.perf_counter()
        agent._learner.make_room(agents - 1)
        mind, count = agent._learner.mind, min(chunk, rounds - done)
        rule, parameters = exploration(agent.explore, agent.episodes, count * agents)
        parameters, before, streams = parameters[::agents].copy(), copy_of(mind), agent._streams.copy()
        others = (
            table,
            agent._episodes_on_the_mean(count),
            shared,
            rule,
            float(agent.reward_offset),
            solution.V,
            solution.Q,
            regret,
            part_of(history, slice(done * agents, (done + count) * agents)),
            aside,
            work,
        )
        agent._expect(history.reward[done * agents : (done + count) * agents])
        copied = time.perf_counter()
        finished, status = run_rounds(mind, agent._streams, parameters, *others)
        took = time.perf_counter() - copied
        if status == BROKEN:
            error = agent._failure(work.rewards)
            run_rounds(before, streams, parameters[:finished], *others)
            agent._learner.mind = before
            advance(finished)
            raise error
        done += finished
        advance(finished)
        seconds = max(CHUNK_SECONDS, 10 * (copied - begin))  # copying a large mind takes a tenth of the time
        chunk = max(1, min(2 * chunk, int(chunk * seconds / took)))
    return history


@compiled
def run_rounds(
    mind: Any,
    streams: Words,
    parameters: Floats,
    table: Table,
    on_the_mean: int,
    shared: bool,
    rule: int,
    offset: float,
    V: Floats,
    Q: Floats,
    regret: bool,
    out: History,
    aside: Round,
    work: Workspace,
) -> tuple[int, int]:
    """Run rounds until all are played, the mind is full or one fails; return their number and the reason.

    The first `on_the_mean` rounds use the posterior mean. V and Q are the exact solution. If a round fails, the
    streams are as before it, but some of its episodes may have been learned.
    """
    K = aside.lengths.size
    for r in range(parameters.size):
        if is_full(mind, K):
            return r, FULL
        copy(streams, work.kept)
        sampled, fine = r >= on_the_mean, True
        for k in range(K):
            reseed(work.nature, bits(streams[EPISODE]) >> np.uint64(32))
            start = first_state(table, work.nature)
            if k == 0 or (sampled and not shared):
                fine = plan_as(mind, ANY if shared else k, sampled, streams[POSTERIOR])
            if fine and regret:
                value = policy_value(table, mind, rule, parameters[r], start, work)
                out.regret[r * K + k] = V[0, start] - value
                fine = value == value
            T = play(table, mind, rule, parameters[r], start, streams[ACTION], work) if fine else 0
            if T == 0:
                copy(work.kept, streams)
                return r, BROKEN
            tell(out, r * K + k, T, V, Q, work)
            set_aside(work, T, offset, aside, k)
        for k in range(K):
            take_back(aside, k, work)
            if not learn(mind, table, aside.lengths[k], work):
                copy(work.kept, streams)
                return r, BROKEN
    return parameters.size, DONE


@compiled
def set_aside(work: Workspace, T: int, offset: float, aside: Round, k: int) -> None:
    """Keep the episode of T steps in `work`, that of agent k, with the rewards to learn from."""
    aside.lengths[k] = T
    for h in range(T):
        aside.states[k, h], aside.actions[k, h] = work.states[h], work.actions[h]
        aside.rewards[k, h] = work.rewards[h] + offset


@compiled
def take_back(aside: Round, k: int, work: Workspace) -> None:
    """Put the episode of agent k into `work`, from which it is learned."""
    for h in range(aside.lengths[k]):
        work.states[h], work.actions[h] = aside.states[k, h], aside.actions[k, h]
        work.rewards[h] = aside.rewards[k, h]
