"""The fused loop on a graphics card: thousands of runs at once, one thread each, with the bits of the processor.

Runs of the same kind and size form a batch. Every thread calls `run` of finite.py, unchanged, with views of its
own part of the arrays of all runs (lanes.py). If the memory of a run is full, the kernel returns, the arrays grow,
and the run goes on.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent, new_streams
from rlsvi.agents.contract import EPISODES
from rlsvi.agents.explore import exploration
from rlsvi.agents.mind import Workspace, new_workspace
from rlsvi.agents.noise import ByEvidence
from rlsvi.core import card
from rlsvi.core.compile import Floats, Longs, Words
from rlsvi.mdp.table import Table
from rlsvi.problems import Problem
from rlsvi.simulate.finite import BROKEN, FULL, History, Trace, blank_history, run
from rlsvi.simulate.lanes import compared, frozen, kernel_of, leaves, rebuilt

LAUNCH_SECONDS = 0.5  # time between two returns from the card
SPARE = 0.9  # the share of the card's free memory that the arrays of the runs may take at first
NUMBERS = ("lam", "sigma", "scale", "delta", "planned", "prior_mean", "prior_weight")  # may differ between runs
NAMES = {"run": run, "History": History, "Trace": Trace}


class Lane(NamedTuple):
    """All that one run uses, or, stacked, all runs of a batch."""

    table: Table
    V: Floats  # the exact solution
    Q: Floats
    mind: Any
    streams: Words
    work: Workspace


class Batch:
    """Runs of agents of the same kind on problems of the same size.

    agents : agents that have learned nothing, with the same arguments except for seeds and numbers such as `lam`.
        They are not changed.
    problems : one for each agent, or one for all.
    """

    def __init__(self, agents: Sequence[Agent], problems: Problem | Sequence[Problem]) -> None:
        each = [problems] * len(agents) if isinstance(problems, Problem) else list(problems)
        differ = [agent for agent in agents if not check(agent, agents[0])]
        alike = not differ and all(problem is each[0] for problem in each)
        self.agent, self.size = agents[0].clone(), len(agents)
        self.template = begun(self.agent, each[0])
        runs = () if alike else zip(agents, each, strict=True)
        self.leaves = compared(self.template, (leaves(begun(agent.clone(), it)) for agent, it in runs))
        self._check_memory(sum(leaf.bytes for leaf in self.leaves))
        self.runs: Any = rebuilt(self.template, (leaf.placed(self.size) for leaf in self.leaves))
        self.runs = self.runs._replace(streams=card.stacked_rows([agent._streams for agent in agents]))
        self.played = np.zeros(self.size, np.int64)
        self.chunk = 16  # episodes of the next launch

    def play(
        self,
        lanes: Sequence[int],
        episodes: int,
        *,
        regret: bool = True,
        advance: Callable[[int], None] = lambda n: None,
    ) -> list[History | Exception]:
        """Let some of the runs, which have played equally long before, play `episodes` more episodes.

        Returns the history of each, or the error that ended it. `advance` is called from time to time with the
        number of episodes just played by all of them.
        """
        going, first = np.array(lanes, np.int64), int(self.played[lanes[0]])
        found, failures = np.full((4, episodes, self.size), np.nan), {}
        self._prepare(first, episodes)
        for done, count in self._launches(episodes):
            found[:, done : done + count, going], status = self._launch(going, first + done, count, regret)
            for lane in going[status == BROKEN]:
                failures[lane] = self.agent.failure(self.runs.work.rewards.copy_to_host()[:, lane])
            going = going[status != BROKEN]
            advance(count * len(going))
            if not len(going):
                break
        self.played[lanes] += episodes
        reward, regrets, realised, path_regret = found
        none = blank_history(0, 0).trace
        return [
            failures.get(i) or History(reward[:, i], regrets[:, i], realised[:, i], path_regret[:, i], none)
            for i in lanes
        ]

    def _launches(self, episodes: int) -> Iterator[tuple[int, int]]:
        """Divide episodes into launches of about the same time: their first episodes and numbers."""
        done = 0
        while done < episodes:
            begin, count = time.perf_counter(), min(self.chunk, episodes - done)
            yield done, count
            done, took = done + count, time.perf_counter() - begin
            self.chunk = max(1, min(2 * self.chunk, int(count * LAUNCH_SECONDS / took)))

    def _launch(self, lanes: Longs, begin: int, count: int, regret: bool) -> tuple[Floats, Longs]:
        """Let runs play the episodes from `begin` on; return what they played, and the status of every run."""
        cuda, agent = card.cuda(), self.agent
        rule, parameters = exploration(agent.explore, begin, count)
        mean, offset = agent.episodes_on_the_mean(2**62), float(agent.reward_offset)
        which, each = cuda.to_device(lanes), cuda.to_device(parameters)
        out = cuda.device_array((4, count, len(lanes)), np.float64)
        done, status = (cuda.to_device(np.zeros(len(lanes), np.int64)) for _ in range(2))
        empty = cuda.to_device(np.zeros((1, 1), np.int32)), cuda.to_device(np.zeros((1, 1)))
        todo = np.arange(len(lanes))
        while len(todo):
            kernel, blocks = kernel_of(self.template, self.leaves, NAMES), -(-len(todo) // card.THREADS)
            progress = which, cuda.to_device(todo), done, status
            with card.strict_arithmetic():
                kernel[blocks, card.THREADS](
                    self.runs, *progress, begin, mean, rule, each, offset, regret, out, *empty
                )
            todo = np.flatnonzero(status.copy_to_host() == FULL)
            if len(todo):
                self._grow()
        found, last = out.copy_to_host(), status.copy_to_host()
        if not regret:
            found[1] = np.nan
        for p in np.flatnonzero(last == BROKEN):
            found[:, done.copy_to_host()[p] :, p] = np.nan
        return found, last

    def _prepare(self, played: int, episodes: int) -> None:
        """Renew what all runs share, such as the step sizes of the next episodes."""
        learner = self.agent._learner
        learner.counters[EPISODES] = played
        self._replace(self.agent.mind_for(episodes)[0])

    def _grow(self) -> None:
        """Give all runs more memory."""
        self._replace(self.agent._learner.enlarged())

    def _replace(self, mind: Any) -> None:
        """Replace the mind of the template, and what is another size or shared on the card."""
        old, now = self.leaves, leaves(self.runs)
        self.template = self.template._replace(mind=mind)
        self.leaves = [leaf._replace(one=one) for leaf, one in zip(old, leaves(self.template), strict=True)]
        for i, (before, leaf) in enumerate(zip(old, self.leaves, strict=True)):
            if leaf.shared and leaf.one is not before.one:
                now[i] = leaf.placed(self.size)
            elif not leaf.shared and np.shape(leaf.one) != np.shape(before.one):
                self._check_memory(leaf.bytes)
                now[i] = card.enlarged(now[i], before.one, leaf.one)
        self.runs = rebuilt(self.template, iter(now))

    def _check_memory(self, bytes_per_run: int) -> None:
        """Raise NoCard if so many more bytes per run do not fit."""
        free = int(SPARE * card.free_memory())
        if bytes_per_run * self.size > free:
            raise card.NoCard(
                f"{self.size} runs need {bytes_per_run * self.size / 1e9:.1f} GB more on the card, where "
                f"{free / 1e9:.1f} GB can be used: {free // bytes_per_run} such runs would fit"
            )


def begun(agent: Agent, problem: Problem) -> Lane:
    """Return what a run of an agent that has learned nothing uses."""
    agent.adopt(problem.mdp, problem.basis)
    table, solution = problem.mdp.table, problem.solution
    work = new_workspace(table.horizon, table.states, table.actions)
    known = frozen(table), frozen(solution.V), frozen(solution.Q)
    return Lane(*known, agent._learner.mind, new_streams(0), work)


def check(agent: Agent, first: Agent) -> bool:
    """Raise an error if a card cannot run an agent beside a first one; return whether their arguments agree."""
    if not isinstance(agent, Agent) or not agent.fused:
        raise TypeError(f"{agent!r} has no fused loop, which is what a card runs: use device='cpu'")
    if agent.episodes:
        raise ValueError("agents on a card start from nothing: use agent.clone()")
    if isinstance(agent.sigma, ByEvidence):
        raise TypeError("a card cannot estimate lam and sigma by evidence: give them, or use device='cpu'")
    if agent is first:
        return True
    mine, its = agent.arguments(), first.arguments()
    rules = [exploration(each.explore, 0, 16) for each in (agent, first)]
    same = type(agent) is type(first) and all(map(np.array_equal, *rules))
    differ = [name for name in mine.keys() - {"seed", "explore"} if not _equal(mine[name], its.get(name))]
    if not same or not all(name in NUMBERS for name in differ):
        raise ValueError("agents that run together on a card must have the same arguments, except for numbers")
    return not differ


def _equal(one: Any, other: Any) -> bool:
    return one is other or callable(one) or bool(np.array_equal(one, other))
