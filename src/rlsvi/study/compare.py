"""Comparison of several agents on one problem, with many seeds each, on all cores."""

# ruff: noqa: NPY002 - agents of others draw from global generators

import inspect
import pickle
import random
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from rlsvi.agents import RLSVI
from rlsvi.agents.agent import Agent
from rlsvi.core.card import cuda
from rlsvi.core.checks import one_of, shown, whole
from rlsvi.core.machine import cores, one_thread
from rlsvi.envs.description import copied_env, layers_of
from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.envs.task import check_spaces
from rlsvi.mdp import FiniteMDP, from_gymnasium
from rlsvi.problems import Problem, chain
from rlsvi.progress import bar
from rlsvi.simulate import simulate
from rlsvi.simulate.finite import Recorded, blank_history, check_learn, fused_for, run_stepped
from rlsvi.simulate.gpu import Batch, bytes_of, check_memory, refuse
from rlsvi.study.executors import Executor, checked_executor, serial
from rlsvi.study.job import Failed, Job
from rlsvi.study.runs import FUSED, STEPPED, Run, Runs

Env = gymnasium.Env[Any, Any]
ProblemSource = Problem | Env | str | Callable[..., Any]
Show = Callable[[int], None]
AllRuns = dict[tuple[str, int], Run]
NATURE = (4,)  # the stream of environments, beside those of agents


def compare(
    agents: Mapping[str, Any],
    problem: ProblemSource,
    episodes: int,
    seeds: int | Sequence[int] = 10,
    *,
    workers: int | None = None,
    executor: str | Executor | None = None,
    device: str = "cpu",
    progress: bool | None = None,
) -> Runs:
    """Let each agent learn `problem` for `episodes` episodes, once with every seed.

    Agents of this library learn a problem whose solution is known in a compiled loop. All others, and subclasses
    that override a method of learning, are stepped through the environment; `runs.loops` says which. Results are
    regrets if the solution is known, and returns otherwise.

    Parameters
    ----------
    agents
        Agents by name. An agent serves as a template: every run learns with a new clone. A class, or a function of
        `env` and `seed` (or one of them, by these names), makes the agent of each run. It may be anything with a
        method `learn(env, episodes)`, or a model of stable-baselines3, as in
        `lambda env, seed: PPO("MlpPolicy", env, seed=seed)`. `rlsvi.agent_for` makes the default agent.
    problem
        A problem, a Gymnasium environment or its id, or a function that returns one of these. A function that
        takes `seed`, or requires an argument, is called with each seed; others are called without. It must make a
        new environment at every call, which is closed after the run; of an environment that is given, every run
        plays a copy.
    episodes
        The number of episodes of each run.
    seeds
        The number of seeds (0, 1, ..), or a list of seeds.
    workers
        Number of threads or processes. If None, one per core. The results do not depend on it.
    executor
        None for threads, which suit the compiled loop. Agents that are stepped have to take turns in them, and use
        all cores with "processes"; "serial", "ray" and results of `study.executors.executor` are possible too.
        Agents and problem must then be defined at the top level of a module (for "ray" they need not), and a
        script must compare under `if __name__ == "__main__":`.
    device
        "cpu", or "cuda" for a graphics card, which runs all seeds of an agent at once, with the same results (`pip
        install ".[cuda]"`). It pays from about a thousand seeds on.
    progress
        Show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.

    Returns
    -------
    Runs
        All runs, with a table, a figure and statistics.

    Examples
    --------
    >>> import rlsvi
    >>> agents = {"RLSVI": rlsvi.RLSVI(), "dithering": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(0.1))}
    >>> runs = rlsvi.compare(agents, rlsvi.problems.chain(10), episodes=300, seeds=5)
    >>> runs.summary()["learned"].to_list()
    [5, 0]
    """
    numbers = _numbers(seeds)
    check_agents(agents)
    whole("episodes", episodes, 1, 10**9)
    threads = cores() if workers is None else whole("workers", workers, 1, 10**4)
    one_of("device", device, ("cpu", "cuda"))
    if device == "cuda" and executor is not None:
        raise ValueError("executor goes with device='cpu': leave one of them out")
    first = draw_problem(problem, numbers[0])
    if callable(problem):
        first.make().close()  # every run makes its own
    comparison = Comparison(agents, problem, episodes, first)
    with bar(len(agents) * len(numbers) * episodes, "episodes", progress) as show:
        if device == "cuda":
            runs = _run_on_card(comparison, numbers, show)
        elif executor is None:
            runs = _run_in_threads(comparison, numbers, threads, show)
        else:
            runs = _run_as_jobs(comparison, numbers, checked_executor(executor, workers), show)
    return Runs(first.name, tuple(agents), tuple(numbers), runs)


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


class Comparison(NamedTuple):
    """What is compared: agents and a problem as the user gave them, and perhaps the problem of the first seed."""

    agents: Mapping[str, Any]
    problem: ProblemSource
    episodes: int
    first: "DrawnProblem | None" = None

    def drawn(self, seed: int) -> "DrawnProblem":
        """Return what agents with this seed play."""
        return draw_problem(self.problem, seed) if self.first is None or callable(self.problem) else self.first

    def run(self, name: str, seed: int, advance: Show = lambda n: None) -> Run:
        """Let a new agent learn."""
        given, nature = self.agents[name], np.random.SeedSequence(seed, spawn_key=NATURE)
        with ExitStack() as alone:
            if not is_ours(given):
                alone.enter_context(seeded_generators(seed))
            advance(0)  # it may have been stopped while it waited for its turn
            drawn = self.drawn(seed)
            known = drawn.problem
            solution, regret = (None, np.nan) if known is None else (known.solution, known.random_regret)
            recorded = Recorded(drawn.make(), self.episodes, solution=solution, seed=nature, advance=advance)
            with closing(recorded) as env:
                agent = make_agent(name, given, env, seed)
                if is_ours(agent) or (isinstance(agent, Agent) and fused_for(agent)):
                    alone.close()  # compiled loops use no generators but the agent's own
                check_learn(agent)
                if known is not None and isinstance(agent, Agent) and agent._fused:
                    agent._adopt(known.mdp, known.basis)
                    if fused_for(agent):
                        return Run(simulate(agent, known, self.episodes, advance=advance), regret, FUSED)
                return Run(run_stepped(agent, env), regret, STEPPED)


def warm_up() -> None:
    """Load the compiled code, or compile it the first time, before several threads or processes need it."""
    simulate(RLSVI(seed=0), chain(4), 1)


# ---- On a graphics card: all seeds of an agent at once ------------------------------------------------------


def _run_on_card(comparison: Comparison, seeds: list[int], show: Show) -> AllRuns:
    def solved(drawn: DrawnProblem) -> Problem:
        if drawn.problem is None:
            raise ValueError(f"device='cuda' needs a problem whose solution is known, {drawn.name} is not one")
        return drawn.problem

    cuda()
    once, first = not callable(comparison.problem), solved(comparison.first or comparison.drawn(seeds[0]))
    for agent in comparison.agents.values():
        refuse(agent.clone() if isinstance(agent, Agent) else agent)
        check_memory(bytes_of(agent, first, once), len(seeds))
    problems = [first] * len(seeds)
    if not once:
        with one_thread():  # for products of such small matrices, threads cost more than they save
            problems = [solved(comparison.drawn(seed)) for seed in seeds]
    runs = {}
    for name, agent in comparison.agents.items():
        batch = Batch([agent.clone(seed=seed) for seed in seeds], problems)
        histories = batch.play(range(len(seeds)), comparison.episodes, advance=show)
        for seed, problem, history in zip(seeds, problems, histories, strict=True):
            if isinstance(history, Exception):
                raise history
            runs[name, seed] = Run(history, problem.random_regret)
    return runs


# ---- In threads that end with the program: what cannot be stopped does not hold it up ----------------------


POLL = 0.1  # seconds, after which an interrupt that another thread has received is seen
PATIENCE = 2.0  # seconds in which threads that are no longer needed may end


class Stopped(BaseException):
    """Raised in a run that is no longer needed; no `except Exception` of an agent stops it."""


def _run_in_threads(comparison: Comparison, seeds: list[int], threads: int, show: Show) -> AllRuns:
    """Compute all runs. Agents are stopped, after an error of another or an interrupt, when they take a step.

    Those that take none go on in the background, which a warning says.
    """
    if threads > 1 and comparison.first is not None and comparison.first.problem is not None:
        warm_up()
    wanted = [(name, seed) for name in comparison.agents for seed in seeds]
    stop, todo = Event(), deque(wanted)
    done: SimpleQueue[tuple[tuple[str, int], Run | BaseException]] = SimpleQueue()

    def advance(n: int) -> None:
        if stop.is_set():
            raise Stopped
        if n:
            show(n)

    def work() -> None:
        with suppress(IndexError):  # another thread took the last one
            while not stop.is_set():
                name, seed = todo.popleft()
                try:
                    done.put(((name, seed), comparison.run(name, seed, advance)))
                except BaseException as error:
                    error.add_note(f"in the run of agents[{name!r}] with seed {seed}")
                    done.put(((name, seed), error))

    crew = [Thread(target=work, daemon=True) for _ in range(min(threads, len(wanted)))]
    runs: AllRuns = {}
    try:
        for thread in crew:
            thread.start()
        while len(runs) < len(wanted):
            with suppress(Empty):
                which, run = done.get(timeout=POLL)
                if isinstance(run, BaseException):
                    raise run
                runs[which] = run
    finally:
        stop.set()
        _join(crew)
    return {which: runs[which] for which in wanted}


def _join(crew: Sequence[Thread]) -> None:
    end = monotonic() + PATIENCE
    for thread in crew:
        if thread.is_alive():
            thread.join(max(end - monotonic(), 0.0))
    if going_on := sum(thread.is_alive() for thread in crew):
        warnings.warn(
            f"{going_on} of the runs go on in the background, as their agents take no steps: restart Python to "
            "end them, and before comparing such agents again",
            stacklevel=3,
        )


# ---- As jobs of an executor: in other processes or on other machines ----------------------------------------


HISTORY = "reward", "regret", "realised", "path_regret"


def _run_as_jobs(comparison: Comparison, seeds: list[int], executor: Executor, show: Show) -> AllRuns:
    sent = comparison._replace(first=None)
    _check_sendable(sent, getattr(executor, "dumps", None), elsewhere=executor is not serial)
    wanted = [(name, seed) for name in comparison.agents for seed in seeds]
    jobs = [Job(f"{__name__}:compute_run", {"agent": name, "seed": seed}, given=sent) for name, seed in wanted]
    outcomes = executor(jobs)
    if not isinstance(outcomes, Iterable):
        raise TypeError(f"executor must return jobs and what came of them, got {shown(outcomes)}")
    runs: dict[Any, Run] = {}
    try:
        for job, outcome in outcomes:
            name, seed = job.settings["agent"], job.settings["seed"]
            if isinstance(outcome, Failed):
                raise RuntimeError(
                    f"the run of agents[{name!r}] with seed {seed} failed: {outcome.reason}\n{outcome.details}"
                )
            columns: Any = outcome.columns
            history = blank_history(0, 0)._replace(**{part: columns[part] for part in HISTORY})
            runs[name, seed] = Run(history, float(columns["random_regret"][0]), str(columns["loop"][0]))
            show(comparison.episodes)
    finally:
        if hasattr(outcomes, "close"):
            outcomes.close()
    return {which: runs[which] for which in wanted}


def _check_sendable(comparison: Comparison, dumps: Callable[[Any], bytes] | None, elsewhere: bool) -> None:
    """Raise an error that names what other processes could not import.

    Parameters
    ----------
    dumps
        Like pickle.dumps, but including the code of what is defined in a script or a notebook.
    elsewhere
        Whether the runs are in other processes.
    """
    named = {f"agents[{name!r}]": agent for name, agent in comparison.agents.items()}
    interactive = elsewhere and dumps is None and not hasattr(sys.modules["__main__"], "__file__")
    remedy = "define it by name at the top level of a module, or leave executor out"
    for what, value in {**named, "problem": comparison.problem}.items():
        try:
            data = (dumps or pickle.dumps)(value)
        except Exception as error:
            raise TypeError(f"{what} cannot be sent to other processes ({error}): {remedy}") from error
        if interactive and b"__main__" in data:
            raise TypeError(
                f"{what} is defined in a notebook or on a command line, where other processes cannot find it: "
                f"{remedy}"
            )


def compute_run(comparison: Comparison, *, agent: str, seed: int) -> dict[str, Any]:
    """Return the columns of one run: the function of the jobs."""
    run = comparison.run(agent, seed)
    columns = {name: getattr(run.history, name) for name in HISTORY}
    return {**columns, "random_regret": run.random_regret, "loop": run.loop}


# ---- The agents: those of this library, and anything else that learns ----------------------------------------


one_at_a_time = Lock()  # for code that may draw from global generators


def check_agents(agents: Any) -> None:
    """Raise an error unless every agent can be made anew for each seed."""
    if not isinstance(agents, Mapping) or not agents:
        raise ValueError("agents must be a dictionary of at least one agent: {'RLSVI': rlsvi.RLSVI()}")
    for name, given in agents.items():
        if not isinstance(name, str):
            raise TypeError(f"agents must have names as keys, got {shown(name)}")
        if not isinstance(given, Agent) and not callable(getattr(given, "clone", None)) and not callable(given):
            raise TypeError(
                f"agents[{shown(name)}] must be an agent, such as RLSVI(), or its class, or a function of env and "
                f"seed that makes anything with learn, as in lambda env, seed: PPO('MlpPolicy', env, seed=seed); "
                f"got {shown(given)}"
            )


def make_agent(name: str, given: Any, env: Any, seed: int) -> Any:
    """Return a new agent for a run: a clone with this seed, or what a class or function makes of env and seed."""
    if isinstance(given, Agent) or not callable(given):
        return given.clone(seed=seed)
    made = _call(name, given, env, seed)
    if isinstance(made, Agent) and getattr(made, "seed", None) is None:
        made = made.clone(seed=seed)
    if isinstance(made, type) or not callable(getattr(made, "learn", None)):
        raise TypeError(f"agents[{shown(name)}] must make an agent with a method learn, got {shown(made)}")
    return made


def _call(name: str, function: Callable[..., Any], env: Any, seed: int) -> Any:
    """Call a function with those of env and seed that it takes."""
    try:
        takes = inspect.signature(function).parameters
    except ValueError:  # of a function or class of C
        raise TypeError(
            f"agents[{shown(name)}] must be an agent, or a function of env and seed that makes one, got "
            f"{shown(function)}"
        ) from None
    given = {key: value for key, value in (("env", env), ("seed", seed)) if key in takes}
    if any(it.kind is it.VAR_KEYWORD for it in takes.values()):
        given["seed"] = seed
    missing = [
        it.name
        for it in takes.values()
        if it.name not in given and it.default is it.empty and it.kind not in (it.VAR_KEYWORD, it.VAR_POSITIONAL)
    ]
    if missing or not given:
        needs = f" not {', '.join(missing)}" if missing else " at least one of them"
        raise TypeError(
            f"agents[{shown(name)}] is called with env and seed by these names,{needs}: pass a function, such as "
            "lambda env, seed: .."
        )
    return function(**given)


def is_ours(given: Any) -> bool:
    """Return whether making and teaching an agent uses no global generators: all its code is of this library."""
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, Agent):
        own = kind.__mro__[: kind.__mro__.index(Agent)]
        return all(base.__module__.startswith("rlsvi.") for base in own)
    return str(getattr(given, "__module__", "")).startswith("rlsvi.")


@contextmanager
def seeded_generators(seed: int) -> Iterator[None]:
    """Seed the generators that all code of a process shares, for one user at a time, and restore them.

    They are those of Python, NumPy and, where it is installed, PyTorch, which is imported for that: an agent may
    import it at any time, and must find it seeded.
    """
    with one_at_a_time, ExitStack() as after:
        torch: Any = None
        with suppress(ImportError, OSError):
            torch = import_module("torch")
        after.callback(random.setstate, random.getstate())
        after.callback(np.random.set_state, np.random.get_state())
        random.seed(seed)
        np.random.seed(seed % 2**32)
        if torch is not None:
            after.callback(torch.set_rng_state, torch.get_rng_state())
            torch.manual_seed(seed)
        yield


# ---- The problem: one whose solution is known, or any Gymnasium environment ---------------------------------


PLAIN = TimeLimit, OrderEnforcing, PassiveEnvChecker  # wrappers that change neither observations nor rewards
TABLES = "gymnasium.envs.toy_text.", "rlsvi.envs."  # where environments are as their tables say
WANTED = "a Problem, a Gymnasium environment or its id, or a function of the seed that returns one"


_drawn: WeakValueDictionary[int, Env] = WeakValueDictionary()  # what functions have returned


class DrawnProblem(NamedTuple):
    """What agents with one seed play.

    Parameters
    ----------
    make
        Returns a new environment, in which agents can be stepped, to be closed; if the environment was
        drawn by a function, it is that one, and make is called once.
    problem
        The finite MDP of that environment, with its exact solution; None if it is not known.
    """

    name: str
    make: Callable[[], Env]
    problem: Problem | None


def draw_problem(given: Any, seed: int) -> DrawnProblem:
    """Return what agents with this seed play, given what a user calls a problem."""
    drawn = _call_with_seed(given, seed) if callable(given) else given
    if isinstance(drawn, Problem):
        return DrawnProblem(drawn.name, partial(FiniteMDPEnv, drawn.mdp), drawn)
    if isinstance(drawn, str):
        with closing(_make(drawn)) as env:
            return DrawnProblem(_name(env), partial(_make, drawn), _table_of(env))
    if not isinstance(drawn, gymnasium.Env):
        raise TypeError(f"problem must be {WANTED}, got {shown(drawn)}")
    check_spaces(drawn)
    if drawn is not given:
        if _drawn.get(id(drawn)) is drawn:  # runs would share it
            raise TypeError(
                "problem is a function that has returned the same environment twice: let it make a new one at "
                "every call, or pass the environment itself, of which every run plays a copy"
            )
        _drawn[id(drawn)] = drawn
        return DrawnProblem(_name(drawn), lambda: drawn, _table_of(drawn))
    _copy(drawn).close()  # raises an error if it cannot be copied
    return DrawnProblem(_name(drawn), partial(_copy, drawn), _table_of(drawn))


def _call_with_seed(function: Callable[..., Any], seed: int) -> Any:
    """Call a function with the seed, as `seed` or as its first argument, or without if it requires none."""
    try:
        takes = inspect.signature(function).parameters
    except ValueError:  # of a function or class of C
        raise TypeError(f"problem must be {WANTED}, got {shown(function)}") from None
    if "seed" in takes:
        return function(seed=seed)
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    needs = any(it.kind in positional and it.default is it.empty for it in takes.values())
    return function(seed) if needs or any(it.kind is it.VAR_POSITIONAL for it in takes.values()) else function()


def _make(id: str) -> Env:
    try:
        return gymnasium.make(id)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"problem is {shown(id)}, which Gymnasium cannot make: {error!s:.500}") from error


def _name(env: Env) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def _copy(env: Env) -> Env:
    """Return a copy of an environment, which itself is never played."""
    return copied_env("problem", env, "pass a function that makes it, such as lambda: gymnasium.make(..)")


def _table_of(env: Env) -> Problem | None:
    """Return the finite MDP behind an environment, if it is certain that the environment behaves accordingly."""
    *wrappers, inner = layers_of(env)
    if any(type(each) not in PLAIN for each in wrappers) or not type(inner).__module__.startswith(TABLES):
        return None
    limits = [each._max_episode_steps for each in wrappers if isinstance(each, TimeLimit)]
    mdp = getattr(inner, "mdp", None)
    if isinstance(mdp, FiniteMDP):
        all_of_it = getattr(inner, "horizon", None) == mdp.horizon == min([mdp.horizon, *limits])
        return Problem(mdp) if all_of_it else None
    try:
        return Problem(from_gymnasium(inner, min(limits))) if limits else None
    except ValueError:  # there is no table, or it is not all there is
        return None
