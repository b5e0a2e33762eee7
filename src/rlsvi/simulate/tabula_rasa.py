"""The fused loop of the tabula rasa agents: as in simulate.py, with their planners in the place of RLSVI's."""

import time
from collections.abc import Callable

import numpy as np

from rlsvi.agents.explore import GREEDY
from rlsvi.agents.finite.learner import broken
from rlsvi.agents.minds import Work, new_work
from rlsvi.agents.tabular.agent import TabulaRasaAgent, outside
from rlsvi.agents.tabular.counts import Known, count_episode, see
from rlsvi.agents.tabular.gaussian_psrl import GaussianPSRL, gaussian_psrl
from rlsvi.agents.tabular.lsvi_ucb import lsvi_ucb
from rlsvi.agents.tabular.psrl import PSRL, psrl
from rlsvi.agents.tabular.ucbvi import UCBVI, ucbvi
from rlsvi.agents.tabular.ucrl2 import UCRL2, ucrl2
from rlsvi.agents.task import Task
from rlsvi.agents.verbs import ACTION, EPISODE, POSTERIOR
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.random import bits, copy, reseed
from rlsvi.mdp.table import Table, first_state, mask_of
from rlsvi.problems import Problem
from rlsvi.simulate.finite import (
    BROKEN,
    CHUNK_SECONDS,
    DONE,
    History,
    blank_history,
    part_of,
    play,
    policy_value,
    tell,
)

OUTSIDE = 3
_PSRL, _GAUSSIAN_PSRL, _UCRL2, _UCBVI = PSRL.kind, GaussianPSRL.kind, UCRL2.kind, UCBVI.kind


def simulate_tabula_rasa(
    agent: TabulaRasaAgent,
    problem: Problem,
    episodes: int,
    regret: bool,
    trace: bool,
    advance: Callable[[int], None],
) -> History:
    """What `simulate` does, for a tabula rasa agent."""
    table = problem.mdp.table
    known = agent.adopt(Task(table.horizon, table.actions, table.states), problem.basis)
    history = blank_history(episodes, table.horizon if trace else 0)
    work = new_work(table.horizon, table.states, table.actions, 1)
    rewards = (-np.inf, np.inf) if agent._any_reward() else tuple(float(r) for r in agent.reward_range)
    done, chunk = 0, 64
    while done < episodes:
        begin = time.perf_counter()
        count = min(chunk, episodes - done)
        finished, status = run(
            table,
            known,
            agent.kind,
            np.array(rewards),
            agent._streams,
            problem.solution.V,
            problem.solution.Q,
            regret,
            part_of(history, slice(done, done + count)),
            work,
        )
        agent.note(0)
        done += finished
        advance(finished)
        if status == BROKEN:
            raise broken()
        if status == OUTSIDE:
            raise outside(work.rewards[0], agent.reward_range)
        took = time.perf_counter() - begin
        chunk = max(1, min(2 * chunk, int(chunk * CHUNK_SECONDS / took)))
    return history


@compiled
def planned(kind: int, known: Known, stream: Words) -> bool:
    """Make the plan of the next episode; False where a value is not finite."""
    if kind == _PSRL:
        return psrl(known, False, stream)
    if kind == _GAUSSIAN_PSRL:
        return gaussian_psrl(known, False, stream)
    if kind == _UCRL2:
        return ucrl2(known, False, stream)
    if kind == _UCBVI:
        return ucbvi(known, False, stream)
    return lsvi_ucb(known, False, stream)


@compiled
def run(
    table: Table,
    known: Known,
    kind: int,
    rewards: Floats,
    streams: Words,
    V: Floats,
    Q: Floats,
    regret: bool,
    out: History,
    work: Work,
) -> tuple[int, int]:
    """Episodes until all are played or something breaks: (episodes, status).

    An episode that breaks before it is learned from leaves the agent as it was. A reward outside of `rewards`
    is left in work.rewards[0].
    """
    for i in range(out.reward.size):
        copy(streams, work.kept)
        reseed(work.nature, bits(streams[EPISODE]) >> np.uint64(32))
        start = first_state(table, work.nature)
        fine = planned(kind, known, streams[POSTERIOR])
        if fine and regret:
            value = policy_value(table, None, None, None, known.plan.Q, GREEDY, 0.0, start, work)
            out.regret[i] = V[0, start] - value
            fine = value == value
        T = play(table, None, None, None, known.plan.Q, GREEDY, 0.0, start, streams[ACTION], work) if fine else 0
        if T == 0:
            copy(work.kept, streams)
            return i, BROKEN
        for h in range(T):
            if not rewards[0] <= work.rewards[h] <= rewards[1]:
                work.rewards[0] = work.rewards[h]
                copy(work.kept, streams)
                return i, OUTSIDE
        for h in range(T):
            s, legal = work.states[h], table.legal[mask_of(table, h)]
            see(known.counts, h, s, legal[s])
        tell(out, i, T, V, Q, work)
        if not count_episode(known, work.states, work.actions, work.rewards, T, table.states):
            return i, BROKEN
    return out.reward.size, DONE
