"""Comparison of several agents on one problem, with many seeds each, on all cores."""

# ruff: noqa: NPY002 - agents of others draw from global generators

import base64
import copy
import inspect
import pickle
import random
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import gymnasium
import numpy as np
from gymnasium.utils import EzPickle
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from rlsvi.agents import RLSVI
from rlsvi.agents.agent import Agent
from rlsvi.core.card import cuda
from rlsvi.core.checks import one_of, shown, whole
from rlsvi.core.machine import cores
from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.mdp import FiniteMDP, from_gymnasium
from rlsvi.problems import Problem, chain
from rlsvi.progress import bar
from rlsvi.simulate import simulate
from rlsvi.simulate.finite import fused_for, ours, replaced
from rlsvi.simulate.gpu import Batch, bytes_of, check_memory, refuse
from rlsvi.simulate.stepped import Recorded, blank_history, stepped
from rlsvi.study.executors import Executor, serial
from rlsvi.study.executors import executor as executor_called
from rlsvi.study.job import Columns, Failed, Job
from rlsvi.study.runs import FUSED, STEPPED, Run, Runs

# ---- The agents of a comparison: those of this library, and anything else that learns ----------------------


one_at_a_time = Lock()  # for code that may draw from global generators


def check_entrants(agents: Any) -> None:
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
        _check_clone(name, given)


def entrant(name: str, given: Any, env: Any, seed: int) -> Any:
    """Return a new agent for a run: a clone with this seed, or what a class or function makes of env and seed."""
    if isinstance(given, Agent) or (not callable(given) and not isinstance(given, type)):
        return given.clone(seed=seed)
    made = _called(name, given, env, seed)
    if isinstance(made, Agent) and getattr(made, "seed", None) is None:
        _check_clone(name, made)
        made = made.clone(seed=seed)
    if isinstance(made, type) or not callable(getattr(made, "learn", None)):
        raise TypeError(f"agents[{shown(name)}] must make an agent with a method learn, got {shown(made)}")
    return made


def _check_clone(name: str, agent: Any) -> None:
    """Raise an error if a clone would behave otherwise than the agent."""
    if isinstance(agent, Agent) and (lost := replaced(agent)):
        raise TypeError(
            f"agents[{shown(name)}] has methods of its own, {', '.join(lost)}, that its clones would not have: "
            "override them in a subclass, or pass a function of seed that makes the agent"
        )


def _called(name: str, function: Callable[..., Any], env: Any, seed: int) -> Any:
    """Call a function with those of env and seed that it takes."""
    takes = inspect.signature(function).parameters
    any_name = any(it.kind is it.VAR_KEYWORD for it in takes.values())
    given = {key: value for key, value in (("env", env), ("seed", seed)) if key in takes}
    if any_name:
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
        return all(ours(base) for base in kind.__mro__[: kind.__mro__.index(Agent)])
    return str(getattr(given, "__module__", "")).startswith("rlsvi.")


@contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Seed the generators that all code of a process shares, for one user at a time, and restore them.

    PyTorch is not imported here; its generator is seeded if it is there, or as soon as an agent imports it.
    """
    with one_at_a_time:
        kept, kept_of_torch = (random.getstate(), np.random.get_state()), []

        def seed_torch(torch: Any) -> None:
            kept_of_torch.append((torch, torch.get_rng_state()))
            torch.manual_seed(seed)

        random.seed(seed)
        np.random.seed(seed % 2**32)
        import_seen = _ImportSeen("torch", seed_torch)
        if "torch" in sys.modules:
            seed_torch(sys.modules["torch"])
        else:
            sys.meta_path.insert(0, import_seen)
        try:
            yield
        finally:
            if import_seen in sys.meta_path:
                sys.meta_path.remove(import_seen)
            random.setstate(kept[0])
            np.random.set_state(kept[1])
            for torch, state in kept_of_torch:
                torch.set_rng_state(state)


class _ImportSeen(MetaPathFinder):
    """Calls a function with a module when it has been imported for the first time."""

    def __init__(self, name: str, call: Callable[[Any], None]) -> None:
        self.name, self.call = name, call

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find the module as usual, and let its loader call the function."""
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load: Any = spec.loader.exec_module

            def load_and_call(module: Any) -> None:
                load(module)
                self.call(module)

            spec.loader.exec_module = load_and_call  # type: ignore[method-assign]
        return spec


# ---- What a comparison is played in: a problem whose solution is known, or any Gymnasium environment -------


Env = gymnasium.Env[Any, Any]
Arenas = Problem | Env | str | Callable[..., Any]
PLAIN = TimeLimit, OrderEnforcing, PassiveEnvChecker  # wrappers that change neither observations nor rewards
TABLES = "gymnasium.envs.toy_text.", "rlsvi.envs."  # where environments are as their tables say
VALUES = bool, int, float, str, tuple, list, dict, np.ndarray, np.generic, gymnasium.Space
WANTED = "a Problem, a Gymnasium environment or its id, or a function of the seed that returns one"


class Arena(NamedTuple):
    """One problem of a comparison.

    make : returns a new environment, in which agents can be stepped, to be closed; if the environment was drawn
        by a function, it is that one, and make is called once.
    problem : the finite MDP of that environment, with its exact solution; None if it is not known.
    """

    name: str
    make: Callable[[], Env]
    problem: Problem | None


def arena_of(given: Any, seed: int) -> Arena:
    """Return what agents with this seed play, given what a user calls a problem."""
    drawn = called_with_seed(given, seed) if callable(given) else given
    if isinstance(drawn, Problem):
        return Arena(drawn.name, partial(FiniteMDPEnv, drawn.mdp), drawn)
    if isinstance(drawn, str):
        with closing(_made(drawn)) as env:
            return Arena(_name(env), partial(_made, drawn), table_of(env))
    if not isinstance(drawn, gymnasium.Env):
        raise TypeError(f"problem must be {WANTED}, got {shown(drawn)}")
    if drawn is not given:
        _check_new(drawn)
        return Arena(_name(drawn), lambda: drawn, table_of(drawn))
    _copied(drawn).close()  # raises an error if it cannot be copied
    return Arena(_name(drawn), partial(_copied, drawn), table_of(drawn))


_drawn: WeakValueDictionary[int, Env] = WeakValueDictionary()


def _check_new(env: Env) -> None:
    """Raise an error if a function has returned the same environment before: runs would share it."""
    if _drawn.get(id(env)) is env:
        raise TypeError(
            "problem is a function that has returned the same environment twice: let it make a new one at every "
            "call, or pass the environment itself, of which every run plays a copy"
        )
    _drawn[id(env)] = env


def _copied(env: Env) -> Env:
    """Return a copy of an environment, which itself is never played."""
    remedy = "pass a function that makes it instead, such as lambda: gymnasium.make(..)"
    try:
        copied = copy.deepcopy(env)
    except Exception as error:
        raise TypeError(
            f"problem is an environment that cannot be copied for each run ({error}): {remedy}"
        ) from error
    for one, other in zip(_layers(env), _layers(copied), strict=True):
        if changed := _changed(one, other) if isinstance(one, EzPickle) else []:
            raise TypeError(
                f"problem is an environment that is copied by its constructor ({type(one).__name__} is an "
                f"EzPickle), so copies would not have its {', '.join(changed)}: {remedy}"
            )
    return copied


def _layers(env: Env) -> Iterator[Env]:
    """Yield an environment and those that it wraps."""
    yield env
    while isinstance(env, gymnasium.Wrapper):
        env = env.env
        yield env


def _changed(env: Env, made: Env) -> list[str]:
    """Return the attributes with plain values that an environment has otherwise than one that was just made.

    Those that are None there, as they are set by reset, do not count.
    """
    values = {name: value for name, value in vars(made).items() if isinstance(value, VALUES)}
    return sorted(name for name, value in values.items() if not _same(vars(env).get(name), value))


def _same(one: Any, other: Any) -> bool:
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True


def called_with_seed(function: Callable[..., Any], seed: int) -> Any:
    """Call a function with the seed, as `seed` or as its first argument, or without if it requires none."""
    takes = inspect.signature(function).parameters
    if "seed" in takes:
        return function(seed=seed)
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    needs = any(it.kind in positional and it.default is it.empty for it in takes.values())
    return function(seed) if needs or any(it.kind is it.VAR_POSITIONAL for it in takes.values()) else function()


def table_of(env: Env) -> Problem | None:
    """Return the finite MDP behind an environment, if it is certain that the environment behaves accordingly."""
    inner, limits = env, []
    while isinstance(inner, gymnasium.Wrapper):
        if type(inner) not in PLAIN:
            return None
        if isinstance(inner, TimeLimit):
            limits.append(inner._max_episode_steps)
        inner = inner.env
    if not type(inner).__module__.startswith(TABLES):
        return None
    mdp = getattr(inner, "mdp", None)
    if isinstance(mdp, FiniteMDP):
        whole = getattr(inner, "horizon", None) == mdp.horizon == min([mdp.horizon, *limits])
        return Problem(mdp) if whole else None
    try:
        return Problem(from_gymnasium(inner, min(limits))) if limits else None
    except ValueError:  # there is no table, or it is not all there is
        return None


def _made(id: str) -> Env:
    try:
        return gymnasium.make(id)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"problem is {shown(id)}, which Gymnasium cannot make: {error!s:.500}") from error


def _name(env: Env) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


# ---- Work in threads that end with the program: what cannot be stopped does not hold it up -----------------


POLL = 0.1  # seconds, after which an interrupt that another thread has received is seen
PATIENCE = 2.0  # seconds in which threads that are no longer needed may end


class Stopped(BaseException):
    """Raised in work that is no longer needed; no `except Exception` of an agent stops it."""


def in_threads(
    work: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], threads: int, show: Callable[[int], None]
) -> list[Any]:
    """Return what `work` returns for every job, called with the parts of the job and `advance`.

    `advance(n)` shows progress, and raises Stopped after an error of other work or an interrupt. Work that does
    not call it goes on in the background, which a warning says.
    """
    stop, todo = Event(), deque(enumerate(jobs))
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()

    def advance(n: int) -> None:
        if stop.is_set():
            raise Stopped
        if n:
            show(n)

    def serve() -> None:
        while todo and not stop.is_set():
            try:
                i, job = todo.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                done.put((i, work(*job, advance), None))
            except BaseException as error:
                done.put((i, None, error))

    crew = [Thread(target=serve, daemon=True) for _ in range(min(threads, len(jobs)))]
    results: dict[int, Any] = {}
    try:
        for thread in crew:
            thread.start()
        while len(results) < len(jobs):
            with suppress(Empty):
                i, results[i], error = done.get(timeout=POLL)
                if error is not None:
                    raise error
    finally:
        stop.set()
        _join(crew)
    return [results[i] for i in range(len(jobs))]


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


# ---- A comparison by an executor of sweeps: each run is a job, in another process or on another machine ----


HISTORY = "reward", "regret", "realised", "path_regret"


class Playable(Protocol):
    """What is compared; it must survive being sent to another process."""

    agents: Mapping[str, Any]
    episodes: int

    def run(self, name: str, seed: int) -> Run:
        """Let a new agent learn."""


def spread(
    field: Any, seeds: Sequence[int], executor: str | Executor, workers: int | None, show: Callable[[int], None]
) -> dict[tuple[str, int], Run]:
    """Compute the runs of all agents with all seeds."""
    chosen = executor_called(executor, workers) if isinstance(executor, str) else executor
    if not callable(chosen):
        raise TypeError(f"executor must be a name or what executors.executor returns, got {shown(executor)}")
    elsewhere = chosen is not serial
    sent = packed(field, getattr(chosen, "dumps", None), elsewhere)
    jobs = [Job.of(played, field=sent, name=name, number=seed) for name in field.agents for seed in seeds]
    found = {}
    outcomes = chosen(jobs)
    if not isinstance(outcomes, Iterable):
        raise TypeError(f"executor must return jobs and what came of them, got {shown(outcomes)}")
    try:
        for job, outcome in outcomes:
            name, seed = str(job.settings["name"]), int(job.settings["number"])  # type: ignore[arg-type]
            if isinstance(outcome, Failed):
                raise RuntimeError(
                    f"the run of agents[{name!r}] with seed {seed} failed: {outcome.reason}\n{outcome.details}"
                )
            found[name, seed] = _run(outcome.columns)
            show(field.episodes)
    finally:
        if hasattr(outcomes, "close"):
            outcomes.close()
    return {(name, seed): found[name, seed] for name in field.agents for seed in seeds}


def packed(field: Any, dumps: Callable[[Any], bytes] | None = None, elsewhere: bool = False) -> str:
    """Return everything as text, or raise an error that names what other processes could not import.

    dumps : like pickle.dumps, but including the code of what is defined in a script or a notebook.
    elsewhere : whether the runs are in other processes.
    """
    named = {f"agents[{name!r}]": agent for name, agent in field.agents.items()}
    for what, value in {**named, "problem": field.problem}.items():
        remedy = "define it by name at the top level of a module, or leave executor out"
        try:
            data = (dumps or pickle.dumps)(value)
        except Exception as error:
            raise TypeError(f"{what} cannot be sent to other processes ({error}): {remedy}") from error
        if (
            elsewhere
            and dumps is None
            and b"__main__" in data
            and not hasattr(sys.modules["__main__"], "__file__")
        ):
            raise TypeError(
                f"{what} is defined in a notebook or on a command line, where other processes cannot find it: "
                f"{remedy}"
            )
    return base64.b64encode((dumps or pickle.dumps)(field._replace(first=None))).decode()


def played(*, field: str, name: str, number: int) -> dict[str, Any]:
    """Return the columns of one run; `field` comes from `packed` in the process that compares."""
    here: Playable = pickle.loads(base64.b64decode(field))
    run = here.run(name, number)
    columns = {name: getattr(run.history, name) for name in HISTORY}
    return {**columns, "random_regret": run.random_regret, "loop": run.loop}


def _run(columns: Columns) -> Run:
    parts: dict[str, Any] = {name: columns[name] for name in HISTORY}
    history = blank_history(0, 0)._replace(**parts)
    return Run(history, float(columns["random_regret"][0]), str(columns["loop"][0]))


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
                if known is not None and isinstance(agent, Agent) and agent._fused:
                    if fused_for(agent):
                        history = simulate(
                            agent, known, self.episodes, advance=advance
                        )  # its learner may be stepped
                        return Run(history, regret, FUSED if fused_for(agent) else STEPPED)
                    agent._adopt(known.mdp, known.basis)
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
