"""The fused loop: planning, acting, the MDP's response and learning in one compiled function.

It calls the same functions as the Gymnasium loop of an agent, in the same order and with the same random streams,
so both produce the same episodes bit for bit; an agent may switch between them after any episode. What an agent
knows is passed in one argument, its mind (agents/contract.py), and the loop is compiled for each class of minds.
Streams, memory and counters change only within the compiled call: whenever Python is interrupted, the agent is as
it was after its last complete episode.
"""

import time
from collections.abc import Callable
from functools import cached_property, partialmethod
from typing import Any

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    ACTION,
    EPISODE,
    POSTERIOR,
    MindLearner,
    Workspace,
    is_full,
    learn,
    new_workspace,
    only_best,
    plan,
    values,
)
from rlsvi.agents.explore import GREEDY, choose, exploration, probabilities
from rlsvi.core.checks import flag, shown, whole
from rlsvi.core.compile import ONE, Floats, Longs, Words, compiled, unsigned
from rlsvi.core.random import bits, copy, reseed
from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.mdp.finite import Table, first_state, mask_of, row_of, transition
from rlsvi.problems import Problem
from rlsvi.simulate.stepped import History, Recorded, blank_history, part_of, stepped

# ---- Which loop serves an agent: the fused one, or stepping through an environment -------------------------
#
# The fused loop calls compiled functions instead of most methods of an agent and its learner. A class outside of
# this library that overrides one of those methods means it to be called, so such an agent is stepped.


# What the fused loop calls too, and what no loop calls.
HEEDED = {
    *("_start", "_arguments", "_check", "_check_task", "clone", "_take_on"),
    *("_adopt", "_broken", "_episodes_on_the_mean", "_failure", "_mind_for", "_task_in"),
    *(
        "_features",
        "_learner_of",
        "new_learner",
        "_parameters",
        "_prior",
        "_rule",
        "_blank_plan",
        "_reward_bounds",
    ),
    *("export", "restored_learner", "save", "_state"),
}
OF_LEARNERS = {"counters", "enlarged", "mind_for", "restore", "state"}
METHODS = property, cached_property, partialmethod, staticmethod, classmethod


def ours(cls: type) -> bool:
    """Return whether a class belongs to this library."""
    return cls.__module__.startswith("rlsvi.")


def overridden(cls: type) -> list[str]:
    """Return the methods of this library that a class or one of its bases outside of it has overridden."""
    known = {name for base in cls.__mro__ if ours(base) for name in vars(base)}
    others = (vars(base) for base in cls.__mro__ if not ours(base))
    found = {name for own in others for name, value in own.items() if _is_method(value)}
    return sorted(name for name in found & known if not name.startswith("__"))


def replaced(thing: Any) -> list[str]:
    """Return the methods of this library that were set on an instance, as in `agent.reward = f`."""
    fields = getattr(thing, "__dataclass_fields__", {})
    cached = {
        name for base in type(thing).__mro__ for name, it in vars(base).items() if isinstance(it, cached_property)
    }
    own = getattr(thing, "__dict__", {}).keys() - fields - cached
    theirs = [vars(base) for base in type(thing).__mro__ if ours(base)]
    return sorted(name for name in own if any(_is_method(names.get(name)) for names in theirs))


def _is_method(value: Any) -> bool:
    return isinstance(value, METHODS) or (callable(value) and not isinstance(value, type))


def fused_for(agent: Agent) -> bool:
    """Return whether the fused loop does all that stepping would do with an agent."""
    if not agent._fused or agent.update_every is not None or _changed(agent) - HEEDED:
        return False
    learner = agent._learner
    known = learner is None or isinstance(learner, MindLearner)
    return known and not _changed(learner) - OF_LEARNERS


def _changed(thing: Any) -> set[str]:
    return {*overridden(type(thing)), *replaced(thing)}


DONE, FULL, BROKEN = 0, 1, 2
CHUNK_SECONDS = 0.1  # time between two returns from the compiled loop


def simulate(
    agent: Agent,
    problem: Problem,
    episodes: int,
    *,
    regret: bool = True,
    trace: bool = False,
    advance: Callable[[int], None] = lambda n: None,
) -> History:
    """Let `agent` learn `episodes` more episodes of `problem`; releases the GIL.

    If a class outside of this library has overridden a method that compiled code would not call, such as `reward`
    or `predict`, the agent is stepped through an environment instead, and `regret` is that of the actions taken.

    regret : evaluate the policy of every episode exactly.
    trace : record every step.
    advance : called from time to time with the number of episodes just finished.
    """
    episodes = whole("episodes", episodes, 0)
    if not isinstance(agent, Agent):
        raise TypeError(f"agent must be one of a finite horizon, such as rlsvi.RLSVI(), got {shown(agent)}")
    check_problem(problem, advance)
    flag("regret", regret)
    flag("trace", trace)
    agent._adopt(problem.mdp, problem.basis)
    table, solution = problem.mdp.table, problem.solution
    if not fused_for(agent):
        traced = table.horizon if trace else 0
        env = Recorded(FiniteMDPEnv(problem.mdp), episodes, solution=solution, trace=traced, advance=advance)
        found = stepped(agent, env)
        return found if regret else found._replace(regret=np.full(episodes, np.nan))
    history = blank_history(episodes, table.horizon if trace else 0)
    work = new_workspace(table.horizon, table.states, table.actions)
    done, chunk = 0, 64
    while done < episodes:
        begin = time.perf_counter()
        mind, count = agent._mind_for(min(chunk, episodes - done))
        rule, parameters = exploration(agent.explore, agent.episodes, count)
        finished, status = run(
            table,
            mind,
            agent._episodes_on_the_mean(count),
            rule,
            parameters,
            float(agent.reward_offset),
            agent._streams,
            solution.V,
            solution.Q,
            regret,
            part_of(history, slice(done, done + count)),
            work,
        )
        done += finished
        advance(finished)
        if status == BROKEN:
            raise agent._failure(work.rewards)
        took = time.perf_counter() - begin
        chunk = max(1, min(2 * chunk, int(chunk * CHUNK_SECONDS / took)))
    return history


def check_problem(problem: Any, advance: Any, unit: str = "episodes") -> None:
    """Raise an error if these are not a problem and a function."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, such as rlsvi.problems.chain(10), got {shown(problem)}")
    if not callable(advance):
        raise TypeError(f"advance must be a function of the number of {unit} just finished, got {shown(advance)}")


@compiled
def run(
    table: Table,
    mind: Any,
    on_the_mean: int,
    rule: int,
    parameters: Floats,
    offset: float,
    streams: Words,
    V: Floats,
    Q: Floats,
    regret: bool,
    out: History,
    work: Workspace,
) -> tuple[int, int]:
    """Run episodes until all are played, the mind is full or an episode fails; return their number and the reason.

    The first `on_the_mean` episodes use the posterior mean. V and Q are the exact solution.
    """
    for i in range(parameters.size):
        if is_full(mind, 1):
            return i, FULL
        copy(streams, work.kept)
        reseed(work.nature, bits(streams[EPISODE]) >> np.uint64(32))
        start = first_state(table, work.nature)
        fine = plan(mind, i >= on_the_mean, streams[POSTERIOR])
        if fine and regret:
            value = policy_value(table, mind, rule, parameters[i], start, work)
            out.regret[i] = V[0, start] - value
            fine = value == value
        T = play(table, mind, rule, parameters[i], start, streams[ACTION], work) if fine else 0
        if T > 0:
            tell(out, i, T, V, Q, work)
            for h in range(T):
                work.rewards[h] += offset
            fine = learn(mind, table, T, work)
        if T == 0 or not fine:
            copy(work.kept, streams)
            return i, BROKEN
    return parameters.size, DONE


@compiled
def tell(out: History, i: int, T: int, V: Floats, Q: Floats, work: Workspace) -> None:
    """Record the episode of T steps in `work` as the i-th of a history. V and Q are the exact solution."""
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
def play(table: Table, mind: Any, rule: int, parameter: float, start: int, stream: Words, work: Workspace) -> int:
    """Act for one episode, recorded in `work`; return its number of steps, or 0 if values cannot be compared."""
    s = start
    for h in range(table.horizon):
        values(mind, h, s, work.Q, work.scratch)
        legal = table.legal[mask_of(table, h)]
        a = choose(rule, parameter, work.Q, legal[s], work.chances[h], stream)
        if a < 0:
            return 0
        work.states[h], work.actions[h] = s, a
        s, work.rewards[h], ended = transition(table, h, h + 1 == table.horizon, s, a, work.nature)
        if ended:
            return h + 1
    return 0


@compiled
def policy_value(table: Table, mind: Any, rule: int, parameter: float, start: int, work: Workspace) -> float:
    """Return the exact V^mu_0(start) of the agent's policy in this episode; NaN if its values are not finite.

    Goes forward over the states that the policy can reach, with the probability `mass` of being in each;
    `front` lists them. Both hold two periods, and `mass` is zero before and after.
    """
    A, Q, chances, value, size = unsigned(table.actions), work.Q, work.chances[0], 0.0, ONE
    greedy = rule == GREEDY and parameter == 0.0
    mass, next_mass, front, next_front = work.mass[0], work.mass[1], work.front[0], work.front[1]
    front[0] = start
    mass[start] = 1.0
    for h in range(table.horizon):
        legal, first, reached = table.legal[mask_of(table, h)], unsigned(row_of(table, h, 0, 0)), unsigned(0)
        last = h + 1 == table.horizon
        for i in range(size):
            s = front[i]
            weight, row = mass[s], first + unsigned(s) * A
            mass[s] = 0.0
            best = only_best(mind, h, s, legal[s], Q, work.scratch) if greedy else -1
            if best >= 0:  # with probability 1
                row += unsigned(best)
                value, reached = go_on(table, last, row, weight, value, next_mass, next_front, reached)
                continue
            values(mind, h, s, Q, work.scratch)
            if not probabilities(rule, parameter, Q, legal[s], chances):
                return np.nan
            for a in range(A):
                if chances[a] > 0.0:
                    share = weight * chances[a]
                    value, reached = go_on(table, last, row + a, share, value, next_mass, next_front, reached)
        mass, next_mass = next_mass, mass
        front, next_front, size = next_front, front, reached
    return value


@compiled
def go_on(
    table: Table, last: bool, row: unsigned, weight: float, V: float, mass: Floats, front: Longs, reached: unsigned
) -> tuple[float, unsigned]:
    """Propagate the probability `weight` from a row of the table to its successors, which join the next front.

    Returns the value V including the rewards on the way, and the number of states in the next front.
    """
    V += weight * table.expected[row]
    for j in range(unsigned(table.indptr[row]), unsigned(table.indptr[row + ONE])):
        flow, following = weight * table.probability[j], unsigned(table.successor[j])
        if last or table.absorbing[following]:
            V += flow * table.terminal[following]
        elif flow > 0.0:
            before = mass[following]
            front[reached] = following  # kept only if it is new; avoids an unpredictable branch
            reached += ONE if before == 0.0 else unsigned(0)
            mass[following] = before + flow
    return V, reached
