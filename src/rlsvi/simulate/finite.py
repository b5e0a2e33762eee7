"""The fused loop: planning, acting, the MDP's response and learning in one compiled function.

It calls the same functions as the Gymnasium loop of an agent, in the same order and with the same random streams,
so both produce the same episodes bit for bit; an agent may switch between them after any episode. What an agent
knows is passed in one argument, its mind (agents/contract.py), and the loop is compiled for each class of minds.
Streams, memory and counters change only within the compiled call: whenever Python is interrupted, the agent is as
it was after its last complete episode.
"""

import inspect
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.continual import ContinualAgent
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
from rlsvi.core.checks import fits, flag, function_of, shown, whole
from rlsvi.core.compile import ONE, Floats, Ints, Longs, Words, compiled, unsigned
from rlsvi.core.random import Seed, bits, copy, reseed, sequence
from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.envs.task import checked_reward, reset_env, step_env
from rlsvi.mdp import Solution
from rlsvi.mdp.finite import Table, first_state, mask_of, row_of, transition
from rlsvi.problems import Problem

# ---- What happened in each episode of a run ----------------------------------------------------------------


class Trace(NamedTuple):
    """All steps, as arrays of shape (episodes, H); -1, or NaN for rewards, after the end of an episode.

    Attributes
    ----------
    states
        The states.
    actions
        The actions.
    rewards
        The rewards.

    Examples
    --------
    >>> import rlsvi
    >>> history = rlsvi.simulate.simulate(rlsvi.RLSVI(seed=0), rlsvi.problems.chain(5), 10, trace=True)
    >>> history.trace.states[:, 0].tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    """

    states: Ints
    actions: Ints
    rewards: Floats


class History(NamedTuple):
    """The results of each episode.

    Attributes
    ----------
    reward
        The sum of its rewards.
    regret
        Expected regret `V*_0(s_0) - V^mu_0(s_0)` of the policy mu it was played with; NaN if not requested.
    realised
        Realised regret `V*_0(s_0) - reward`.
    path_regret
        Sum over its steps of `V*_h(s_h) - sum_a mu(a | s_h) Q*_h(s_h, a)`, the cost of mu in the states visited.
        Its expectation is `regret`, which is slow to compute if a random policy reaches many states.
    trace
        Every step, if requested.

    Examples
    --------
    >>> import rlsvi
    >>> history = rlsvi.simulate.simulate(rlsvi.RLSVI(seed=0), rlsvi.problems.chain(5), 100)
    >>> bool((history.regret >= 0).all())
    True
    """

    reward: Floats
    regret: Floats
    realised: Floats
    path_regret: Floats
    trace: Trace


def blank_history(episodes: int, horizon: int) -> History:
    """Return arrays for the history; without a trace if `horizon` is 0."""
    fits(f"{shown(episodes)} episodes", episodes * (4 + 2 * horizon), "learn fewer, or without trace")
    shape = (episodes if horizon else 0), horizon
    trace = Trace(np.full(shape, -1, np.int32), np.full(shape, -1, np.int32), np.full(shape, np.nan))
    nan = np.full((3, episodes), np.nan)
    return History(np.zeros(episodes), nan[0], nan[1], nan[2], trace)


def part_of(history: History, now: slice) -> History:
    """Return some episodes of a history."""
    trace = Trace(history.trace.states[now], history.trace.actions[now], history.trace.rewards[now])
    reward, regret, realised, path_regret, _ = history
    return History(reward[now], regret[now], realised[now], path_regret[now], trace)


# ---- Which loop serves an agent: the fused one, or stepping through an environment -------------------------
#
# The fused loop calls compiled functions in place of these methods. The classes of this library say by `_fused`
# that both do the same. A class outside of it that defines one of them is stepped, so that the method is called,
# unless it says `_fused = True` itself.


METHODS = {
    "_choose",
    "_episode",
    "_first",
    "_learner_of",
    "_notice",
    "_play",
    "_settle",
    "_uses_sample",
    "learn",
    "new_learner",
    "reward",
}


def _keeps_methods(agent: Agent) -> bool:
    """Return whether the methods that the fused loop replaces are those of a class that says it is fused."""
    if METHODS & vars(agent).keys():
        return False
    for cls in type(agent).__mro__:
        if cls.__module__.startswith("rlsvi.") or "_fused" in vars(cls):
            return True
        if METHODS & vars(cls).keys():
            return False
    return True


def fused_for(agent: Agent) -> bool:
    """Return whether the fused loop does all that stepping would do with an agent."""
    known = isinstance(agent._learner, MindLearner | None)
    return agent._fused and agent.update_every is None and known and _keeps_methods(agent)


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

    An agent whose class is not of this library and overrides a method of learning, such as `reward`, is stepped
    through an environment instead, and `regret` is that of the actions taken.

    Parameters
    ----------
    agent
        The agent, which goes on learning.
    problem
        The problem.
    episodes
        The number of episodes.
    regret
        Evaluate the policy of every episode exactly.
    trace
        Record every step.
    advance
        Called from time to time with the number of episodes just finished.

    Returns
    -------
    History
        The results of each episode.

    Examples
    --------
    >>> import rlsvi
    >>> history = rlsvi.simulate.simulate(rlsvi.RLSVI(seed=0), rlsvi.problems.chain(5), 100)
    >>> history.regret.shape
    (100,)
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
        found = run_stepped(agent, env)
        return found if regret else found._replace(regret=np.full(episodes, np.nan))
    history = blank_history(episodes, table.horizon if trace else 0)
    work = new_workspace(table.horizon, table.states, table.actions)
    done, chunk = 0, 64
    while done < episodes:
        begin = time.perf_counter()
        mind, count = agent._mind_for(min(chunk, episodes - done))
        rule, parameters = exploration(agent.explore, agent.episodes, count)
        part = part_of(history, slice(done, done + count))
        agent._expect(part.reward)
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
            part,
            work,
        )
        done += finished
        advance(finished)
        if status == BROKEN:
            raise agent._failure(work.rewards)
        took = time.perf_counter() - begin
        chunk = max(1, min(2 * chunk, int(chunk * CHUNK_SECONDS / took)))
    agent._expect()
    return history


def check_problem(problem: Any, advance: Any, unit: str = "episodes") -> None:
    """Raise an error if these are not a problem and a function."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, such as rlsvi.problems.chain(10), got {shown(problem)}")
    function_of("advance", advance, f"the number of {unit} just finished")


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


# ---- Stepping: any agent with `learn`, which need not count its episodes ---------------------------------------
#
# `Recorded` stands between the agent and the environment. It notes the results of each episode, gives a seed to
# resets that have none, and ends `learn` when the last episode is over. Only whole episodes count.


UNKNOWN_STEPS = 10**9  # steps to learn for if the limit of an episode is not known


class EpisodesPlayed(BaseException):
    """Raised in `reset` when the last episode is over; no `except Exception` of an agent stops it."""


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that notes what happens in the next `episodes` episodes, and refuses to begin another.

    Parameters
    ----------
    solution
        V* and Q* of the states that the environment shows, if they are known. The regret of an episode is
        then the sum of V*_h(s_h) - Q*_h(s_h, a_h) over its steps, whose expectation is the expected
        regret.
    seed
        Of resets without one, and of the action space.
    advance
        Called with 1 after each episode, and with 0 before each step; it may raise an error to stop.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        episodes: int,
        *,
        solution: Solution | None = None,
        seed: Seed = 0,
        trace: int = 0,
        advance: Callable[[int], None] = lambda n: None,
    ) -> None:
        super().__init__(env)
        self.history: History = blank_history(episodes, trace)
        self.episodes, self.played, self.solution, self.advance = episodes, 0, solution, advance
        self.seeds = np.random.default_rng(sequence(seed))
        env.action_space.seed(self._seed())
        self.observation: Any = None
        self.info: Mapping[str, Any] = {}
        self._steps = 0  # of the episode that is being played

    def _seed(self) -> int:
        return int(self.seeds.integers(2**31))

    @property
    def limit(self) -> int | None:
        """The largest number of steps of an episode, as wrappers and the environment have it; None if unknown."""
        limits, env = [getattr(self.unwrapped, "horizon", None)], self.env
        while isinstance(env, gymnasium.Wrapper):
            limits.append(vars(env).get("_max_episode_steps"))
            env = env.env
        return min((int(limit) for limit in limits if isinstance(limit, int | np.integer) and limit), default=None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode; the last one must be over."""
        self.advance(0)
        if self._steps:
            raise RuntimeError(
                f"the environment was reset after {self._steps} steps of episode {self.played}, which was not "
                "over: play episodes to their end. To compare in shorter ones, let the problem be "
                "gymnasium.wrappers.TimeLimit(env, steps)"
            )
        if self.played == self.episodes:
            raise EpisodesPlayed
        seed = self._seed() if seed is None else seed
        begin = reset_env(self.env, seed) if options is None else self.env.reset(seed=seed, options=options)
        self.observation, self.info = begin
        return begin

    def step(self, action: Any) -> Any:
        """Take a step and note it; the last one of an episode finishes it."""
        self.advance(0)
        before = self.observation
        try:
            observation, reward, terminated, truncated, info = step_env(self.env, action)
        except Exception as error:
            if self._forbidden(action):
                error.add_note(
                    "info['action_mask'] of reset and step says which actions are legal: an agent that does not "
                    "heed it cannot play this problem"
                )
            raise
        self._note(before, action, checked_reward(reward))
        self.observation, self.info = observation, info
        if terminated or truncated:
            self.history.regret[self.played] = self.history.path_regret[self.played]
            self.played, self._steps = self.played + 1, 0
            self.advance(1)
        return observation, reward, terminated, truncated, info

    def _forbidden(self, action: Any) -> bool:
        with suppress(Exception):  # this is only asked when something has failed already
            return not self.info["action_mask"][int(np.asarray(action).item())]
        return False

    def _note(self, observation: Any, action: Any, reward: float) -> None:
        if self.played == self.episodes:
            raise EpisodesPlayed
        history, i, h = self.history, self.played, self._steps
        self._steps += 1
        history.reward[i] += reward
        if self.solution is None:
            return
        V, Q = self.solution.V, self.solution.Q
        s, a = int(observation), int(np.asarray(action).item())
        if h == 0:
            history.path_regret[i], history.realised[i] = 0.0, V[0, s]
        history.path_regret[i] += V[h, s] - Q[h, s, a]
        history.realised[i] -= reward
        if history.trace.states.size:
            history.trace.states[i, h], history.trace.actions[i, h] = s, a
            history.trace.rewards[i, h] = reward


def run_stepped(agent: Any, env: Recorded) -> History:
    """Let anything with `learn(env, episodes)` learn all episodes of `env`.

    A continual agent, and a model of stable-baselines3, which must be bound to `env`, learn for a number of steps.
    It is enough for all episodes, and they are stopped when the last one is over.
    """
    steps = UNKNOWN_STEPS if env.limit is None else env.episodes * env.limit
    with suppress(EpisodesPlayed):
        if isinstance(agent, ContinualAgent):
            agent.learn(env, steps=steps, progress=False)
        elif isinstance(agent, Agent):
            agent.learn(env, env.episodes, progress=False)
        elif _is_model(agent):
            agent.learn(steps)
        else:
            agent.learn(env, env.episodes)
    if env.played < env.episodes:
        raise RuntimeError(
            f"{type(agent).__name__}.learn returned after {env.played} of {env.episodes} episodes: let "
            "learn(env, episodes) play that number of episodes in the environment it is given"
        )
    return env.history


def check_learn(agent: Any) -> None:
    """Raise an error unless `run_stepped` can let an agent learn."""
    if isinstance(agent, Agent) or _is_model(agent):
        return
    try:
        inspect.signature(agent.learn).bind("env", "episodes")
    except TypeError as error:
        raise TypeError(
            f"{type(agent).__name__}.learn cannot be called as learn(env, episodes) ({error}): let it take the "
            "environment and the number of episodes to play"
        ) from None


def _is_model(agent: Any) -> bool:
    """Return whether an agent is a model of stable-baselines3, without importing it."""
    module = sys.modules.get("stable_baselines3.common.base_class")
    return module is not None and isinstance(agent, module.BaseAlgorithm)
