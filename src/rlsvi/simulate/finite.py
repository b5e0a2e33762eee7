"""The fused loop: planning, acting, the MDP's answers and learning in one compiled function.

It calls what the Gymnasium loop of an agent calls, in the same order and with the same random streams, so
both give the same episodes bit for bit; an agent may go from one to the other at any episode.
What an agent knows comes in one of four arguments, the others being None (agents/minds.py): the loop is compiled
for each kind of agent alone.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi.agents.bandits.contextual import ContextualBandit
from rlsvi.agents.bandits.optimal_policy import OptimalPolicy
from rlsvi.agents.bandits.thompson import Counts, ThompsonSampling, outside
from rlsvi.agents.explore import choose, probabilities
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.finite.incremental import IncrementalLearner
from rlsvi.agents.finite.learner import Finite, Learner, broken
from rlsvi.agents.minds import (
    BATCH,
    Tabled,
    Work,
    is_out_of_room,
    learn_episode,
    mind_values,
    new_work,
    plan_episode,
)
from rlsvi.agents.tabular.agent import TabulaRasaAgent
from rlsvi.agents.task import Task
from rlsvi.agents.verbs import ACTION, EPISODE, POSTERIOR
from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats, Ints, Words, compiled
from rlsvi.core.random import bits, copy, reseed
from rlsvi.mdp.table import Table, first_state, mask_of, row_of, step, terminal_reward
from rlsvi.problems import Problem

NO_STEPS = np.empty(0)
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
    path_regret : sum over its steps of V*_h(s_h) - sum_a mu(a | s_h) Q*_h(s_h, a), what mu costs at the states it
        came through. Its expectation is `regret`, which takes long where a random policy reaches many states.
    """

    reward: Floats
    regret: Floats
    realised: Floats
    path_regret: Floats
    trace: Trace


Agent = FiniteHorizonAgent | ContextualBandit | ThompsonSampling | OptimalPolicy | TabulaRasaAgent


def simulate(
    agent: Agent,
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
    if isinstance(agent, TabulaRasaAgent):
        from rlsvi.simulate.tabula_rasa import simulate_tabula_rasa

        return simulate_tabula_rasa(agent, problem, episodes, regret, trace, advance)
    table, solution = problem.mdp.table, problem.solution
    learner, bandit, counts, known = _adopted(agent, problem)
    history = blank_history(episodes, table.horizon if trace else 0)
    dim = learner.features.dim if learner else bandit.features.phi.shape[3] if bandit else 1
    lanes = learner.lanes if isinstance(learner, IncrementalLearner) else None
    work = new_work(table.horizon, table.states, table.actions, dim, lanes)
    done, chunk = 0, 64
    while done < episodes:
        begin = time.perf_counter()
        count = min(chunk, episodes - done)
        if isinstance(agent, FiniteHorizonAgent):
            agent.settle()
            count = agent.settled_for(count)
        rule, parameters = agent.explore.parameters(agent.episodes, count)
        finished, steps, status = run(
            table,
            learner.finite() if learner else None,
            bandit,
            counts,
            known,
            agent.samples,
            agent.episodes if learner or bandit else 1,  # the first episode is played on the mean of the prior
            rule,
            parameters,
            float(agent.reward_offset),
            agent._streams,
            solution.V,
            solution.Q,
            regret,
            agent.step_sizes(agent.episodes, count) if isinstance(agent, FiniteHorizonAgent) else NO_STEPS,
            agent.keep_prior if isinstance(agent, FiniteHorizonAgent) else True,
            part_of(history, slice(done, done + count)),
            work,
        )
        if isinstance(agent, FiniteHorizonAgent):
            agent.note(steps)
        else:
            agent.note(finished, steps)
        done += finished
        advance(finished)
        if status == BROKEN:
            raise outside() if isinstance(agent, ThompsonSampling) else broken()
        if status == FULL and learner:
            learner.make_room()
        took = time.perf_counter() - begin
        chunk = max(1, min(2 * chunk, int(chunk * CHUNK_SECONDS / took)))
    return history


def _adopted(agent: Agent, problem: Problem) -> tuple[Learner | None, Tabled | None, Counts | None, Floats | None]:
    """What the agent knows, once it has taken on the problem."""
    table = problem.mdp.table
    task = Task(table.horizon, table.actions, table.states)
    if isinstance(agent, FiniteHorizonAgent):
        return agent.adopt(task, problem.basis), None, None, None
    if isinstance(agent, ContextualBandit):
        features = agent.adopt(task, problem.basis).table
        assert features is not None
        return None, Tabled(features, agent._mind, agent.episode_plan()), None, None
    if isinstance(agent, ThompsonSampling):
        return None, None, agent.adopt(task), None
    if isinstance(agent, OptimalPolicy):
        return None, None, None, agent.adopt(problem.mdp)
    raise TypeError(f"agent must be one of a finite horizon, such as rlsvi.RLSVI(), got {agent!r}")


def blank_history(episodes: int, horizon: int) -> History:
    """Room for the history; `horizon` 0: no trace is kept."""
    shape = (episodes if horizon else 0), horizon
    trace = Trace(np.full(shape, -1, np.int32), np.full(shape, -1, np.int32), np.full(shape, np.nan))
    nan = np.full((3, episodes), np.nan)
    return History(np.zeros(episodes), nan[0], nan[1], nan[2], trace)


def part_of(history: History, now: slice) -> History:
    """Some episodes of a history."""
    trace = Trace(history.trace.states[now], history.trace.actions[now], history.trace.rewards[now])
    reward, regret, realised, path_regret, _ = history
    return History(reward[now], regret[now], realised[now], path_regret[now], trace)


@compiled
def run(
    table: Table,
    learner: Finite | None,
    bandit: Tabled | None,
    counts: Counts | None,
    known: Floats | None,
    samples: bool,
    before: int,
    rule: int,
    parameters: Floats,
    offset: float,
    streams: Words,
    V: Floats,
    Q: Floats,
    regret: bool,
    nus: Floats,
    keep_prior: bool,
    out: History,
    work: Work,
) -> tuple[int, int, int]:
    """Episodes until all are played, memory is full or a number breaks: (episodes, steps, status).

    `before` episodes were learned from, V and Q are the exact solution.
    An episode that breaks before it is learned from leaves the agent as it was.
    """
    total = 0
    for i in range(parameters.size):
        if is_out_of_room(learner):
            return i, total, FULL
        copy(streams, work.kept)
        reseed(work.nature, bits(streams[EPISODE]) >> np.uint64(32))
        start = first_state(table, work.nature)
        sampled = samples and before + i > 0
        fine = plan_episode(learner, bandit, counts, known, sampled, streams[POSTERIOR])
        if fine and regret:
            value = policy_value(table, learner, bandit, counts, known, rule, parameters[i], start, work)
            out.regret[i] = V[0, start] - value
            fine = value == value
        T = 0
        if fine:
            T = play(table, learner, bandit, counts, known, rule, parameters[i], start, streams[ACTION], work)
        if T == 0:
            copy(work.kept, streams)
            return i, total, BROKEN
        tell(out, i, T, V, Q, work)
        for h in range(T):
            work.rewards[h] += offset
        nu = nus[i] if nus.size > 0 else BATCH
        if not learn_episode(table, learner, bandit, counts, known, T, nu, keep_prior, work):
            copy(work.kept, streams)
            return i, total, BROKEN
        total += T
    return parameters.size, total, DONE


@compiled
def tell(out: History, i: int, T: int, V: Floats, Q: Floats, work: Work) -> None:
    """Write the episode of T steps in `work` down as the i-th of a history. V and Q are the exact solution."""
    path_regret = reward = 0.0
    for h in range(T):
        s = work.states[h]
        path_regret += V[h, s]
        for a in range(Q.shape[2]):
            if work.chances[h, a] > 0.0:
                path_regret -= work.chances[h, a] * Q[h, s, a]
        reward += work.rewards[h]
        if out.trace.states.size > 0:
            out.trace.states[i, h] = s
            out.trace.actions[i, h] = work.actions[h]
            out.trace.rewards[i, h] = work.rewards[h]
    out.reward[i], out.realised[i], out.path_regret[i] = reward, V[0, work.states[0]] - reward, path_regret


@compiled
def play(
    table: Table,
    learner: Finite | None,
    bandit: Tabled | None,
    counts: Counts | None,
    known: Floats | None,
    rule: int,
    parameter: float,
    start: int,
    stream: Words,
    work: Work,
) -> int:
    """Act for one episode, into `work`; its number of steps, or 0 if values are not numbers one can compare."""
    s = start
    for h in range(table.horizon):
        mind_values(learner, bandit, counts, known, h, s, work.Q, work.scratch)
        legal = table.legal[mask_of(table, h)]
        a = choose(rule, parameter, work.Q, legal[s], work.chances[h], stream)
        if a < 0:
            return 0
        work.states[h], work.actions[h] = s, a
        s, work.rewards[h] = step(table, h, s, a, work.nature)
        if h + 1 == table.horizon or table.absorbing[s]:
            work.rewards[h] += terminal_reward(table, s, work.nature)
            return h + 1
    return 0


@compiled
def policy_value(
    table: Table,
    learner: Finite | None,
    bandit: Tabled | None,
    counts: Counts | None,
    known: Floats | None,
    rule: int,
    parameter: float,
    start: int,
    work: Work,
) -> float:
    """V^mu_0(start) of the policy the agent plays in this episode, exactly; NaN if its values are not finite.

    Goes forward over the states the policy can reach, with the probability `mass` of being in each;
    `front` lists them. Both hold two periods, and `mass` is zero before and after.
    """
    Q, chances, mass, front = work.Q, work.chances[0], work.mass, work.front
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
            mind_values(learner, bandit, counts, known, h, s, Q, work.scratch)
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
