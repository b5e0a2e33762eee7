"""Comparison of several agents on one problem, with many seeds each, on all cores."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from rlsvi.agents import RLSVI
from rlsvi.agents.agent import Agent
from rlsvi.core.card import cuda
from rlsvi.core.checks import whole
from rlsvi.core.machine import cores
from rlsvi.core.progress import bar
from rlsvi.problems import Problem, chain
from rlsvi.simulate import simulate
from rlsvi.simulate.gpu import Batch, bytes_of, check_memory, refuse
from rlsvi.study.runs import Run, Runs

ProblemOf = Problem | Callable[[int], Problem]


def compare(
    agents: Mapping[str, Agent],
    problem: ProblemOf,
    episodes: int,
    seeds: int | Sequence[int] = 10,
    *,
    workers: int | None = None,
    device: str = "cpu",
    progress: bool | None = None,
) -> Runs:
    """Let each agent learn `problem` for `episodes` episodes, once with every seed.

    Parameters
    ----------
    agents : agents by name. They serve as templates: every run learns with a new clone.
    problem : a problem, or a function that returns one for each seed.
    seeds : the number of seeds (0, 1, ..), or a list of seeds.
    workers : number of threads. If None, one per core. The results do not depend on it.
    device : "cpu", or "cuda" for a graphics card, which runs all seeds of an agent at once, with the same results
        (`pip install rlsvi[cuda]`). It pays from about a thousand seeds on.
    progress : show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.
    """
    numbers = _numbers(seeds)
    _check(agents)
    whole("episodes", episodes, 1, 10**9)
    threads = cores() if workers is None else whole("workers", workers, 1, 10**4)
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r:.80}")
    first = _drawn(problem, numbers[0])
    with bar(len(agents) * len(numbers) * episodes, "episodes", progress) as show:
        compute = _on_card if device == "cuda" else partial(_on_cores, threads)
        runs = compute(agents, problem, episodes, numbers, show)
    return Runs(first.name, tuple(agents), tuple(numbers), runs)


Found = dict[tuple[str, int], Run]
Show = Callable[[int], None]


def _on_card(
    agents: Mapping[str, Agent], problem: ProblemOf, episodes: int, seeds: list[int], show: Show
) -> Found:
    """Compute the runs on a graphics card, those of an agent at once."""
    cuda()
    first = _drawn(problem, seeds[0])
    for agent in agents.values():
        refuse(agent.clone())
        check_memory(bytes_of(agent, first, isinstance(problem, Problem)), len(seeds))
    drawn = [_drawn(problem, seed) for seed in seeds]
    runs = {}
    for name, agent in agents.items():
        batch = Batch([agent.clone(seed=seed) for seed in seeds], drawn)
        for seed, its, history in zip(
            seeds, drawn, batch.play(range(len(seeds)), episodes, advance=show), strict=True
        ):
            if isinstance(history, Exception):
                raise history
            runs[name, seed] = Run(history, its.random_regret)
    return runs


def _on_cores(
    threads: int, agents: Mapping[str, Agent], problem: ProblemOf, episodes: int, seeds: list[int], show: Show
) -> Found:
    """Compute the runs with threads on this processor."""
    warm_up()
    stop = Event()
    jobs = [(name, seed) for name in agents for seed in seeds]
    with ThreadPoolExecutor(threads) as pool:

        def advance(n: int) -> None:
            if stop.is_set():
                raise InterruptedError("stopped")
            show(n)

        def run(name: str, seed: int) -> Run:
            drawn = _drawn(problem, seed)
            history = simulate(agents[name].clone(seed=seed), drawn, episodes, advance=advance)
            return Run(history, drawn.random_regret)

        futures = [pool.submit(run, *job) for job in jobs]
        try:
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
        for future in sorted(finished, key=futures.index):
            future.result()  # raises an error of any run, before reading runs that were stopped because of it
        return {job: future.result() for job, future in zip(jobs, futures, strict=True)}


def warm_up() -> None:
    """Load the compiled code, or compile it the first time, before several threads or processes need it."""
    simulate(RLSVI(seed=0), chain(4), 1)


def _drawn(problem: ProblemOf, seed: int) -> Problem:
    drawn = problem if isinstance(problem, Problem) or not callable(problem) else problem(seed)
    if not isinstance(drawn, Problem):
        raise TypeError(f"problem must be a Problem, or a function of the seed that returns one, got {drawn!r}")
    return drawn


def _check(agents: Any) -> None:
    if not isinstance(agents, Mapping) or not agents:
        raise ValueError("agents must be a dictionary of at least one agent: {'RLSVI': rlsvi.RLSVI()}")
    for name, agent in agents.items():
        if not isinstance(agent, Agent) or not agent.fused:
            raise TypeError(f"agents[{name!r}] must be an agent with a fused loop, such as RLSVI(), got {agent!r}")


def _numbers(seeds: Any) -> list[int]:
    """Return 0 .. seeds - 1, or the seeds listed."""
    if isinstance(seeds, int | np.integer):
        return list(range(whole("seeds", seeds, 1, 10**7)))
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise ValueError(f"seeds must be a number of seeds or a list of them, got {seeds!r:.80}")
    numbers = [whole("seeds", seed, 0) for seed in seeds]
    if not numbers or len(set(numbers)) != len(numbers):
        raise ValueError(f"seeds must be at least one, and each only once, got {seeds!r}")
    return numbers
