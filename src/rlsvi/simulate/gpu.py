"""The fused loop on a graphics card: thousands of runs at once, one thread each, with the bits of the processor.

Runs of the same kind and size form a batch. Every thread calls `run` of finite.py, unchanged, with views of its
own part of the arrays of all runs (lanes, below). If the memory of a run is full, the kernel returns, the arrays
grow, and the run goes on.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent, new_streams
from rlsvi.agents.contract import EPISODES, Workspace, new_workspace
from rlsvi.agents.explore import Explore, exploration
from rlsvi.core import card
from rlsvi.core.checks import read_only, shown, whole
from rlsvi.core.compile import Floats, Longs, Words
from rlsvi.core.regression import ByEvidence
from rlsvi.mdp.finite import Table
from rlsvi.problems import Problem
from rlsvi.simulate.finite import BROKEN, FULL, History, Trace, blank_history, fused_for, run

# ---- Nested named tuples of arrays, for many runs at once on a graphics card -------------------------------
#
# The leaves of a tree (arrays and numbers) are on the card once if all runs have the same and no run writes to
# them, and otherwise stacked along the last axis. A kernel gives each thread the tree of its own run, made of
# views.


KERNEL = """
def play(runs, lanes, todo, done, status, begin, on_the_mean, explore, offset, regret, out, ints, floats):
    t = cuda.grid(1)
    if t < todo.size:
        p = todo[t]
        i, first = lanes[p], done[p]
        me = {me}
        trace = Trace(ints[:0], ints[:0], floats[:0])
        history = History(out[0, first:, p], out[1, first:, p], out[2, first:, p], out[3, first:, p], trace)
        mean, e = max(on_the_mean - begin - first, 0), explore.kind[i]
        rule, values = explore.rules[e], explore.parameters[e, first:]
        finished, status[p] = run(
            me.table, me.mind, mean, rule, values, offset, me.streams, me.V, me.Q, regret, history, me.work
        )
        done[p] = first + finished
"""


class Leaf(NamedTuple):
    """A leaf of the tree of one run, those of all runs if they differ, and whether the card has it only once."""

    one: Any
    rows: Sequence[Any] | None
    shared: bool

    @property
    def bytes(self) -> int:
        """The number of bytes of every run."""
        return 0 if self.shared else int(np.asarray(self.one).nbytes)

    def placed(self, runs: int) -> Any:
        """Return the leaf of so many runs on the card."""
        if not isinstance(self.one, np.ndarray):
            return self.one if self.rows is None else card.cuda().to_device(np.array(self.rows))
        if self.one.size == 0:  # never read; cut to its shape in the kernel
            return card.cuda().to_device(np.zeros([max(n, 1) for n in self.one.shape], self.one.dtype))
        if self.shared:
            return card.cuda().to_device(np.ascontiguousarray(self.one))
        return card.stacked(self.one, runs) if self.rows is None else card.stacked_rows(self.rows)


def leaves(tree: Any) -> list[Any]:
    """Return the arrays and numbers of nested named tuples, in order."""
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def rebuild(tree: Any, new: Iterator[Any]) -> Any:
    """Return nested named tuples like `tree`, of other leaves."""
    if not isinstance(tree, tuple):
        return next(new)
    return type(tree)(*[rebuild(part, new) for part in tree])


def freeze(tree: Any) -> Any:
    """Return the same tree with arrays that cannot be written to."""
    kept = (read_only(leaf.view()) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves(tree))
    return rebuild(tree, kept)


def kinds_of(tree: Any) -> list[type]:
    """Return the classes of nested named tuples, in order."""
    return [type(tree), *(kind for part in tree for kind in kinds_of(part))] if isinstance(tree, tuple) else []


def compare_leaves(tree: Any, others: Iterable[Any]) -> list[Leaf]:
    """Return the leaves of a tree, and those of all runs where they differ; all must have the same size."""
    ones, kinds = leaves(tree), kinds_of(tree)
    rows: list[list[Any]] = [[] for _ in ones]
    for other in others:
        same = kinds_of(other) == kinds
        for one, leaf, its in zip(ones, leaves(other), rows, strict=True):
            if leaf is not one and (not same or size_of(one) != size_of(leaf)):
                raise ValueError("runs on a card must have agents of the same kind, and problems of the same size")
            its.append(one if leaf is one or np.array_equal(one, leaf) else leaf)  # equal ones need no memory
    found = []
    for one, its in zip(ones, rows, strict=True):
        differ = any(leaf is not one for leaf in its)
        written = isinstance(one, np.ndarray) and one.flags.writeable
        found.append(Leaf(one, its if differ else None, np.size(one) == 0 or not (differ or written)))
    return found


def size_of(leaf: Any) -> Any:
    """Return what must be the same in all runs: the shape and type of an array, the value of a whole number."""
    if isinstance(leaf, np.ndarray):
        return leaf.shape, leaf.dtype
    return float if isinstance(leaf, float) else leaf


def kernel_of(tree: Any, parts: Sequence[Leaf], names: dict[str, Any]) -> Any:
    """Return the kernel that lets every run of a tree with these leaves play; `names` are those it uses."""
    kinds: list[Any] = []
    me = _lane(tree, iter(parts), "runs", kinds)
    return _kernel(KERNEL.format(me=me), tuple(kinds), tuple(names.items()))


@cache
def _kernel(source: str, kinds: tuple[Any, ...], names: tuple[tuple[str, Any], ...]) -> Any:
    space = {f"K{k}": kind for k, kind in enumerate(kinds)} | dict(names) | {"cuda": card.cuda()}
    exec(source, space)
    return card.kernel(space["play"])


def _lane(tree: Any, parts: Iterator[Leaf], name: str, kinds: list[Any]) -> str:
    """Return the expression of the tree of run i."""
    if isinstance(tree, tuple):
        kinds.append(type(tree))
        kind = f"K{len(kinds) - 1}"
        return f"{kind}({', '.join(_lane(part, parts, f'{name}[{k}]', kinds) for k, part in enumerate(tree))})"
    one, _, shared = next(parts)
    if isinstance(one, np.ndarray) and one.size == 0:
        return f"{name}[{', '.join(':0' if n == 0 else ':' for n in one.shape)}]"
    if shared:
        return name
    return f"{name}[..., i]" if isinstance(one, np.ndarray) else f"{name}[i]"


LAUNCH_SECONDS = 0.5  # time between two returns from the card
SPARE = 0.9  # the share of the card's free memory that the arrays of the runs may take
NUMBERS = (  # may differ between runs
    *("lam", "sigma", "scale", "delta", "planned", "prior_mean", "prior_weight", "prior_scale"),
)
NAMES = {"run": run, "History": History, "Trace": Trace}


class Lane(NamedTuple):
    """All that one run uses, or, stacked, all runs of a batch."""

    table: Table
    V: Floats  # the exact solution
    Q: Floats
    mind: Any
    streams: Words
    work: Workspace


class Exploration(NamedTuple):
    """The ways of exploring of the runs: the index of each, and the rule and parameters of the next episodes."""

    kind: Any  # (runs,)
    rules: Any  # (kinds,)
    parameters: Any  # (kinds, episodes)


class Batch:
    """Runs of agents of the same kind on problems of the same size, one for each agent or one for all.

    The agents have learned nothing, and have the same arguments except for their seeds, how they explore, and
    numbers such as `lam`. They are not changed.
    """

    def __init__(self, agents: Sequence[Agent], problems: Problem | Sequence[Problem]) -> None:
        each = [problems] * len(agents) if isinstance(problems, Problem) else list(problems)
        if not agents or len(each) != len(agents):
            raise ValueError(
                f"agents must be at least one, with as many problems, got {len(agents)} and {len(each)}"
            )
        for agent in agents:
            refuse(agent)
        alike = all([agree(agent, agents[0]) for agent in agents]) and all(it is each[0] for it in each)  # noqa: C419
        self.agent, self.size = agents[0].clone(), len(agents)
        self.ways: list[Explore] = []  # of exploring
        for agent in agents:
            if agent.explore not in self.ways:
                self.ways.append(agent.explore)
        self.way_of = np.array([self.ways.index(agent.explore) for agent in agents])
        self.template = new_lane(self.agent, each[0])
        others = () if alike else zip(agents, each, strict=True)
        lanes = (
            new_lane(copy(agent), problem, self.template if problem.mdp is each[0].mdp else None)
            for agent, problem in others
        )
        self.leaves = compare_leaves(self.template, lanes)
        check_memory(sum(leaf.bytes for leaf in self.leaves), self.size)
        with card.memory_is_checked():
            runs: Any = rebuild(self.template, (leaf.placed(self.size) for leaf in self.leaves))
            self.runs = runs._replace(streams=card.stacked_rows([agent._streams for agent in agents]))
        self.leaves = [leaf._replace(rows=None) for leaf in self.leaves]
        self.played = np.zeros(self.size, np.int64)
        self.sound = np.ones(self.size, np.bool_)  # whether a run can go on
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

        Returns the history of each, or the error that ended it, after which it cannot go on. After an interrupt
        none of them can. `advance` is called from time to time with the number of episodes just played by all.
        """
        chosen, first = self._checked(lanes), int(self.played[lanes[0]])
        found = np.full((len(chosen), 4, whole("episodes", episodes, 0)), np.nan)
        failures: dict[int, Exception] = {}
        self.sound[chosen] = False
        self._prepare(first, episodes)
        going = np.arange(len(chosen))
        for done, count in self._launches(episodes):
            part, status = self._launch(chosen[going], first + done, count, regret)
            found[going, :, done : done + count] = part.transpose(2, 0, 1)
            if (status == BROKEN).any():
                rewards = self.runs.work.rewards.copy_to_host()
                failures |= {i: self.agent._failure(rewards[:, chosen[i]]) for i in going[status == BROKEN]}
            going = going[status != BROKEN]
            advance(count * len(going))
        self.played[chosen[going]] += episodes
        self.sound[chosen[going]] = True
        trace = blank_history(0, 0).trace
        return [failures.get(i) or History(*parts, trace) for i, parts in enumerate(found)]  # type: ignore[call-arg]

    def _checked(self, lanes: Sequence[int]) -> Longs:
        chosen = np.array(lanes, np.int64)
        if not len(chosen) or len(set(lanes)) != len(lanes) or chosen.min() < 0 or chosen.max() >= self.size:
            raise ValueError(
                f"lanes must be different runs of 0..{self.size - 1}, at least one, got {shown(lanes)}"
            )
        if not self.sound[chosen].all():
            raise ValueError("a run that failed, or was interrupted, cannot go on: make another batch")
        if len(set(self.played[chosen])) > 1:
            raise ValueError("runs that play together must have played the same number of episodes before")
        return chosen

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
        cuda, shape = card.cuda(), (4, count, len(lanes))
        if not len(lanes):
            return np.zeros(shape), np.zeros(0, np.int64)
        with card.memory_is_checked(), card.strict_arithmetic():
            out, where = cuda.device_array(shape, np.float64), cuda.to_device(lanes)
            done, status = (cuda.to_device(np.zeros(len(lanes), np.int64)) for _ in range(2))
            rest = self._arguments(begin, count, regret, out)
            todo = np.arange(len(lanes))
            while len(todo):
                kernel, blocks = kernel_of(self.template, self.leaves, NAMES), -(-len(todo) // card.THREADS)
                play = card.sized(kernel, blocks, card.THREADS)
                play(self.runs, where, cuda.to_device(todo), done, status, *rest)
                todo = np.flatnonzero(status.copy_to_host() == FULL)
                if len(todo):
                    self._renew(self.agent._learner.enlarged())
        found, last, played = out.copy_to_host(), status.copy_to_host(), done.copy_to_host()
        if not regret:
            found[1] = np.nan
        for p in np.flatnonzero(last == BROKEN):
            found[:, played[p] :, p] = np.nan
        return found, last

    def _arguments(self, begin: int, count: int, regret: bool, out: Any) -> tuple[Any, ...]:
        """Return the arguments of the kernel after those that say which runs are to play."""
        put, agent = card.cuda().to_device, self.agent
        ways = [exploration(way, begin, count) for way in self.ways]
        rules, parameters = np.array([rule for rule, _ in ways]), np.stack([values for _, values in ways])
        explore = Exploration(put(self.way_of), put(rules), put(parameters))
        mean, offset = agent._episodes_on_the_mean(2**62), float(agent.reward_offset)
        return begin, mean, explore, offset, regret, out, put(np.zeros((1, 1), np.int32)), put(np.zeros((1, 1)))

    def _prepare(self, played: int, episodes: int) -> None:
        """Renew what all runs share, such as the step sizes of the next episodes."""
        self.agent._learner.counters[EPISODES] = played
        mind, count = self.agent._mind_for(episodes)
        if count < episodes:
            raise TypeError(
                f"{type(self.agent).__name__} changes after {count} episodes, which it cannot do on a card: use "
                "device='cpu'"
            )
        self._renew(mind)

    def _renew(self, mind: Any) -> None:
        """Replace the mind of the template, and on the card what has another size or is shared."""
        runs, template = leaves(self.runs), self.template._replace(mind=mind)
        new = [leaf._replace(one=one) for leaf, one in zip(self.leaves, leaves(template), strict=True)]
        for i, (before, leaf) in enumerate(zip(self.leaves, new, strict=True)):
            if leaf.shared and leaf.one is not before.one:
                runs[i] = leaf.placed(self.size)
            elif not leaf.shared and np.shape(leaf.one) != np.shape(before.one):
                check_memory(leaf.bytes, self.size)
                runs[i] = card.enlarged(runs[i], before.one, leaf.one)
        self.template, self.leaves, self.runs = template, new, rebuild(template, iter(runs))


def check_memory(bytes_per_run: int, runs: int) -> None:
    """Raise TooLittleMemory if so many more bytes per run do not fit on the card."""
    free = int(SPARE * card.free_memory())
    if bytes_per_run * runs > free:
        raise card.TooLittleMemory(
            f"{runs} runs need {bytes_per_run * runs / 1e9:.1f} GB more on the card, where {free / 1e9:.1f} GB "
            f"can be used: {free // bytes_per_run} such runs would fit"
        )


def bytes_of(agent: Agent, problem: Problem, shared: bool) -> int:
    """Return about how many bytes a run takes at first, if all runs share the problem or each has its own."""
    found = compare_leaves(new_lane(agent.clone(), problem), [])
    if shared:
        return sum(leaf.bytes for leaf in found)
    return sum(leaf.one.nbytes for leaf in found if isinstance(leaf.one, np.ndarray))


def new_lane(agent: Agent, problem: Problem, like: Lane | None = None) -> Lane:
    """Return what a run of an agent that has learned nothing uses; `like` is that of another in the same MDP."""
    agent._adopt(problem.mdp, problem.basis)
    if like is not None:
        return like._replace(mind=agent._learner.mind)
    table, solution = problem.mdp.table, problem.solution
    known = freeze(table), freeze(solution.V), freeze(solution.Q)
    work = new_workspace(table.horizon, table.states, table.actions)
    empty = rebuild(work, (np.zeros_like(part) for part in work))  # so that runs do not differ in it
    return Lane(*known, agent._learner.mind, new_streams(0), empty)


def refuse(agent: Agent) -> None:
    """Raise an error if a card cannot run an agent."""
    if not isinstance(agent, Agent) or not agent._fused:
        raise TypeError(f"{shown(agent)} has no fused loop, which is what a card runs: use device='cpu'")
    if agent.episodes:
        raise ValueError("agents on a card start from nothing: use agent.clone()")
    if isinstance(agent.sigma, ByEvidence):
        raise TypeError("a card cannot estimate lam and sigma by evidence: give them, or use device='cpu'")
    if not fused_for(agent):
        raise TypeError(
            f"{type(agent).__name__} has methods of its own, which a card cannot call: use device='cpu'"
        )


def agree(agent: Agent, first: Agent) -> bool:
    """Return whether two agents have the same arguments; raise an error if they cannot run together."""
    mine, other = agent.get_params(), first.get_params()
    pairs: dict[str, tuple[Any, Any]] = {
        name: (mine[name], other.get(name)) for name in mine.keys() - {"seed", "explore"}
    }
    differ = sorted(name for name, (one, its) in pairs.items() if one is not its and not np.array_equal(one, its))
    if type(agent) is not type(first) or not all(name in NUMBERS for name in differ):
        raise ValueError(
            "agents that run together on a card must have the same arguments, except for seeds and numbers; "
            f"{', '.join(differ)} differ"
        )
    return not differ
