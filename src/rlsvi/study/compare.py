"""Comparison of several agents on one problem, with many seeds each, on all cores."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents import RLSVI
from rlsvi.agents.agent import Agent
from rlsvi.core.card import cuda
from rlsvi.core.checks import one_of, shown, whole
from rlsvi.core.machine import cores
from rlsvi.core.progress import bar
from rlsvi.problems import Problem, chain
from rlsvi.simulate import simulate
from rlsvi.simulate.gpu import Batch, bytes_of, check_memory, refuse
from rlsvi.simulate.serving import fused_for
from rlsvi.simulate.stepped import Recorded, stepped
from rlsvi.study.arena import Arena, Arenas, arena_of
from rlsvi.study.entrants import check_entrants, entrant, global_generators, is_ours
from rlsvi.study.executors import Executor
from rlsvi.study.runs import FUSED, STEPPED, Run, Runs
from rlsvi.study.spread import spread
from rlsvi.study.threads import in_threads

NATURE = (4,)  # the stream of environments, beside those of agents


def compare(
    agents: Mapping[str, Any],
    problem: Arenas,
    episodes: int,
    seeds: int | Sequence[int] = 10,
    *,
    workers: int | None = None,
    executor: str | Executor | None = None,
    device: str = "cpu",
    progress: bool | None = None,
) -> Runs:
    """Let each agent learn `problem` for `episodes` episodes, once with every seed.

    Agents of this library learn a problem whose solution is known in a compiled loop. All others, and those with a
    method overridden outside of this library that the loop would not call, are stepped through the environment;
    `runs.loops` says which. Results are regrets if the solution is known, and returns otherwise.

    Parameters
    ----------
    agents : agents by name. An agent serves as a template: every run learns with a new clone. A class, or a
        function of `env` and `seed` (or one of them, by these names), makes the agent of each run. It may be
        anything with a method `learn`, such as a model of stable-baselines3:
        `lambda env, seed: PPO("MlpPolicy", env, seed=seed)`. `learn` may take the environment as its first
        argument, and `episodes`, or a number of steps called `steps`, `total_timesteps` or `timesteps`. Steps are
        enough for all episodes: it is stopped when the last one is over.
        `rlsvi.agent_for` makes the default agent.
    problem : a problem, a Gymnasium environment or its id, or a function that returns one of these. A function
        that takes `seed`, or requires an argument, is called with each seed; others are called without. It must
        make a new environment at every call, which is closed after the run; of an environment that is given,
        every run plays a copy.
    seeds : the number of seeds (0, 1, ..), or a list of seeds.
    workers : number of threads or processes. If None, one per core. The results do not depend on it.
    executor : None for threads, which suit the compiled loop. Agents that are stepped have to take turns in them,
        and use all cores with "processes"; "serial", "ray" and results of `study.executors.executor` are possible
        too. Agents and problem must then be defined at the top level of a module (for "ray" they need not), and a
        script must compare under `if __name__ == "__main__":`.
    device : "cpu", or "cuda" for a graphics card, which runs all seeds of an agent at once, with the same results
        (`pip install ".[cuda]"`). It pays from about a thousand seeds on.
    progress : show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.
    """
    numbers = _numbers(seeds)
    check_entrants(agents)
    whole("episodes", episodes, 1, 10**9)
    threads = cores() if workers is None else whole("workers", workers, 1, 10**4)
    one_of("device", device, ("cpu", "cuda"))
    if device == "cuda" and executor is not None:
        raise ValueError("executor goes with device='cpu': leave one of them out")
    first = arena_of(problem, numbers[0])
    if callable(problem):
        first.make().close()  # every run makes its own
    field = Field(agents, problem, episodes, first)
    with bar(len(agents) * len(numbers) * episodes, "episodes", progress) as show:
        if device == "cuda":
            runs = _on_card(field, numbers, show)
        elif executor is None:
            runs = _on_cores(threads, field, numbers, show)
        else:
            runs = spread(field, numbers, executor, workers, show)
    return Runs(first.name, tuple(agents), tuple(numbers), runs)


class Field(NamedTuple):
    """What is compared: agents and a problem as the user gave them, and perhaps the problem of the first seed."""

    agents: Mapping[str, Any]
    problem: Arenas
    episodes: int
    first: Arena | None = None

    def arena(self, seed: int) -> Arena:
        """Return what agents with this seed play."""
        return arena_of(self.problem, seed) if self.first is None or callable(self.problem) else self.first

    def run(self, name: str, seed: int, advance: Callable[[int], None] = lambda n: None) -> Run:
        """Let a new agent learn."""
        given, nature = self.agents[name], np.random.SeedSequence(seed, spawn_key=NATURE)
        with ExitStack() as alone:
            if not is_ours(given):
                alone.enter_context(global_generators(seed))
            advance(0)  # it may have been stopped while it waited for its turn
            arena = self.arena(seed)
            known = arena.problem
            solution, regret = (None, np.nan) if known is None else (known.solution, known.random_regret)
            played = Recorded(arena.make(), self.episodes, solution=solution, seed=nature, advance=advance)
            with closing(played) as env:
                agent = entrant(name, given, env, seed)
                if is_ours(agent):
                    alone.close()
                if known is not None and isinstance(agent, Agent) and agent.fused:
                    if fused_for(agent):
                        history = simulate(
                            agent, known, self.episodes, advance=advance
                        )  # its learner may be stepped
                        return Run(history, regret, FUSED if fused_for(agent) else STEPPED)
                    agent.adopt(known.mdp, known.basis)
                return Run(stepped(agent, env), regret, STEPPED)

    def noted(self, name: str, seed: int, advance: Callable[[int], None]) -> Run:
        """Let a new agent learn; an error says which."""
        try:
            return self.run(name, seed, advance)
        except Exception as error:
            error.add_note(f"in the run of agents[{name!r}] with seed {seed}")
            raise


Found = dict[tuple[str, int], Run]
Show = Callable[[int], None]


def _on_card(field: Field, seeds: list[int], show: Show) -> Found:
    """Compute the runs on a graphics card, those of an agent at once."""
    cuda()
    once, first = not callable(field.problem), _solved(field.first or field.arena(seeds[0]))
    for agent in field.agents.values():
        refuse(agent.clone() if isinstance(agent, Agent) else agent)
        check_memory(bytes_of(agent, first, once), len(seeds))
    drawn = [first if once else _solved(field.arena(seed)) for seed in seeds]
    runs = {}
    for name, agent in field.agents.items():
        batch = Batch([agent.clone(seed=seed) for seed in seeds], drawn)
        for seed, its, history in zip(
            seeds, drawn, batch.play(range(len(seeds)), field.episodes, advance=show), strict=True
        ):
            if isinstance(history, Exception):
                raise history
            runs[name, seed] = Run(history, its.random_regret)
    return runs


def _solved(arena: Arena) -> Problem:
    if arena.problem is None:
        raise ValueError(f"device='cuda' needs a problem whose solution is known, {arena.name} is not one")
    return arena.problem


def _on_cores(threads: int, field: Field, seeds: list[int], show: Show) -> Found:
    """Compute the runs with threads on this processor."""
    if field.first is not None and field.first.problem is not None:
        warm_up()
    jobs = [(name, seed) for name in field.agents for seed in seeds]
    return dict(zip(jobs, in_threads(field.noted, jobs, threads, show), strict=True))


def warm_up() -> None:
    """Load the compiled code, or compile it the first time, before several threads or processes need it."""
    simulate(RLSVI(seed=0), chain(4), 1)


def _numbers(seeds: Any) -> list[int]:
    """Return 0 .. seeds - 1, or the seeds listed."""
    if isinstance(seeds, int | np.integer):
        return list(range(whole("seeds", seeds, 1, 10**7)))
    if (isinstance(seeds, str | np.ndarray) and np.ndim(seeds) != 1) or not isinstance(seeds, Iterable):
        raise ValueError(f"seeds must be a number of seeds or a list of them, got {shown(seeds)}")
    numbers = [whole("seeds", seed, 0) for seed in seeds]
    if not numbers or len(set(numbers)) != len(numbers):
        raise ValueError(f"seeds must be at least one, and each only once, got {shown(seeds)}")
    return numbers
