"""Several agents on one problem, many seeds each, on all cores."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import nullcontext
from threading import Event
from typing import Any

import numpy as np

from rlsvi.agents.agent import FiniteHorizonAgent
from rlsvi.core.progress import bar
from rlsvi.problems import Problem
from rlsvi.simulate import History, simulate
from rlsvi.study.runs import Runs

ProblemOf = Problem | Callable[[int], Problem]


def compare(
    agents: Mapping[str, FiniteHorizonAgent],
    problem: ProblemOf,
    episodes: int,
    seeds: int | Sequence[int] = 10,
    *,
    workers: int | None = None,
    progress: bool = True,
) -> Runs:
    """Let each agent learn `problem` for `episodes` episodes, once with every seed.

    Parameters
    ----------
    agents : named agents. They serve as patterns: every run learns with a fresh clone.
    problem : a problem, or a function of the seed, so that every seed draws its own.
    seeds : how many (0, 1, ..), or which.
    workers : threads; None: one a core. The results do not depend on it.
    progress : show a bar on stderr.
    """
    numbers = (
        list(range(seeds)) if isinstance(seeds, int) and not isinstance(seeds, bool) else list(_listed(seeds))
    )
    _check(agents, episodes, numbers, workers)
    problems = {seed: problem(seed) if callable(problem) else problem for seed in numbers}
    for drawn in problems.values():
        if not isinstance(drawn, Problem):
            raise TypeError(
                f"problem must be a Problem, or a function of the seed that returns one, got {drawn!r}"
            )
    _warm_up(agents, problems[numbers[0]], progress)
    stop = Event()
    jobs = [(name, seed) for name in agents for seed in numbers]
    with bar(len(jobs) * episodes, "episodes", progress) as show, ThreadPoolExecutor(workers or cores()) as pool:

        def advance(n: int) -> None:
            if stop.is_set():
                raise InterruptedError("stopped")
            show(n)

        def run(job: tuple[str, int]) -> History:
            agent = agents[job[0]].clone(seed=job[1])
            return simulate(agent, problems[job[1]], episodes, advance=advance)

        futures = [pool.submit(run, job) for job in jobs]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
        histories = dict(zip(jobs, [future.result() for future in futures], strict=True))
    return Runs(problems[numbers[0]].name, tuple(agents), tuple(numbers), histories)


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check(agents: Any, episodes: Any, seeds: list[int], workers: Any) -> None:
    if not isinstance(agents, Mapping) or not agents:
        raise ValueError("agents must be a dictionary of at least one agent: {'RLSVI': rlsvi.RLSVI()}")
    for name, agent in agents.items():
        if not isinstance(agent, FiniteHorizonAgent):
            raise TypeError(f"agents[{name!r}] must be an agent such as rlsvi.RLSVI(), got {agent!r}")
    for name, value in (("episodes", episodes), ("workers", 1 if workers is None else workers)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds must be at least one, and each only once, got {seeds}")


def _listed(seeds: Any) -> list[int]:
    try:
        return [int(seed) for seed in seeds]
    except TypeError:
        raise ValueError(f"seeds must be a number of seeds or a list of them, got {seeds!r}") from None


def _warm_up(agents: Mapping[str, FiniteHorizonAgent], problem: Problem, progress: bool) -> None:
    """Have the compiled code ready before threads ask for it, and say so: the first time takes a while."""
    waiting: Any = nullcontext()
    if progress:
        from rich.console import Console

        waiting = Console(stderr=True).status(
            "making the compiled code ready (the first time, about half a minute)"
        )
    with waiting:
        simulate(next(iter(agents.values())).clone(seed=0), problem, 1)
