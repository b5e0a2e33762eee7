"""Every public function with one wrong argument: it works, or an error raised on purpose names the argument.

Nonsense never works, and an object that has refused a call is what it was before.

The calls are made from the signatures. Each public callable of a package has a valid call in a table, of which one
argument after the other is replaced by each of `VALUES`. Agents have theirs from their cases (contract/cases.py).
The tests are in test_fuzz.py, and for the other packages in their own folders.
"""

import ast
import contextlib
import inspect
import math
import pickle
import random
import re
import resource
import signal
import types
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import polars as pl

import rlsvi
from contract import environments as environments_
from contract.state import everything
from rlsvi.agents.agent import Agent
from rlsvi.bases import MeasuredBasis
from rlsvi.core.archive import ArchiveError
from rlsvi.core.regression import FactorError

SECONDS = 60  # of the processor, for one call
BYTES = 2 * 2**30  # of memory, for one call
FOLDER = Path()  # each test runs in a folder of its own


class Enough(Exception):
    """Raised by an environment or a callback where a call was allowed to go on for very long."""


class Patient(gymnasium.Wrapper):
    """An environment that allows a few hundred steps."""

    def __init__(self, env):
        super().__init__(env)
        self.left = 300

    def step(self, action):
        self.left -= 1
        if self.left < 0:
            raise Enough
        return self.env.step(action)


class Budget:
    """A callback of a fused loop that ends it."""

    def __init__(self):
        self.left = 20

    def __call__(self, *_):
        self.left -= 1
        if self.left < 0:
            raise Enough


class Record:
    """A class, where an instance is expected."""

    def __init__(self, *_, **__):
        pass


def does_nothing(*_, **__):
    """A function, where something else is expected."""


def _nested(depth):
    found = 1
    for _ in range(depth):
        found = [found]
    return found


def _objects(*things):
    found = np.empty(len(things), dtype=object)
    found[:] = things
    return found


# Made anew for every call.
VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2": lambda: 2,
    "2^31": lambda: 2**31,
    "2^63 - 1": lambda: 2**63 - 1,
    "2^63": lambda: 2**63,
    "-2^63 - 1": lambda: -(2**63) - 1,
    "2^200": lambda: 2**200,
    "10^30": lambda: 10**30,
    "10^5000": lambda: 10**5000,
    "-10^5000": lambda: -(10**5000),
    "0.5": lambda: 0.5,
    "1.5": lambda: 1.5,
    "-0.5": lambda: -0.5,
    "1e-320": lambda: 1e-320,
    "1e300": lambda: 1e300,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "complex": lambda: 1j,
    "fraction": lambda: Fraction(1, 3),
    "decimal": lambda: Decimal("0.1"),
    "decimal nan": lambda: Decimal("sNaN"),
    "int64": lambda: np.int64(-3),
    "uint64": lambda: np.uint64(2**64 - 1),
    "float32": lambda: np.float32("nan"),
    "empty text": lambda: "",
    "text": lambda: "text",
    "digits": lambda: "1",
    "null byte": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "long text": lambda: "x" * 100_000,
    "bytes": lambda: b"text",
    "empty list": lambda: [],
    "list": lambda: [1],
    "list of None": lambda: [None],
    "list of text": lambda: ["a", "b"],
    "list of nan": lambda: [math.nan, math.nan],
    "list of huge": lambda: [2**200, 10**5000],
    "ragged": lambda: [[1, 2], [3]],
    "nested": lambda: _nested(3),
    "deeply nested": lambda: _nested(200),
    "pair": lambda: (1, 2),
    "wrong pair": lambda: (math.nan, "x"),
    "huge pair": lambda: (-(10**5000), 10**5000),
    "set": lambda: {1, 2},
    "empty dictionary": lambda: {},
    "dictionary": lambda: {"a": 1},
    "dictionary of numbers": lambda: {1: None, 2.5: []},
    "object": lambda: object(),
    "class": lambda: Record,
    "class of numbers": lambda: int,
    "instance": lambda: Record(),
    "function": lambda: does_nothing,
    "function of nothing": lambda: lambda: 1,
    "module": lambda: math,
    "generator": lambda: (i for i in range(3)),
    "empty array": lambda: np.zeros(0),
    "array without shape": lambda: np.array(1.0),
    "vector": lambda: np.ones(3),
    "vector of nan": lambda: np.full(3, np.nan),
    "vector of uint8": lambda: np.ones(2, dtype=np.uint8),
    "vector of bools": lambda: np.ones(3, dtype=bool),
    "vector of complex": lambda: np.ones(3) * 1j,
    "vector of text": lambda: np.array(["a", "b"]),
    "vector of objects": lambda: _objects(None, 10**400, "x"),
    "vector of dates": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "records": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "matrix": lambda: np.zeros((2, 2)),
    "four axes": lambda: np.ones((2, 1, 2, 3)),
    "many axes": lambda: np.ones((1,) * 40),
    "no rows": lambda: np.zeros((0, 3)),
    "no columns": lambda: np.zeros((3, 0)),
    "frame": lambda: pl.DataFrame({"a": [1, 2]}),
    "environment": lambda: Patient(environments_.numbered()),
}


# ---- tables of valid calls ---------------------------------------------------------------------------------


def remembered(function):
    """A function that is computed once in each folder, and so by each test."""
    known = cache(lambda folder, *given: function(*given))
    return lambda *given: known(Path.cwd(), *given)


def own_folder(folder, monkeypatch):
    """Let a test run in a folder, with little memory."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("rlsvi.core.checks.memory", lambda: BYTES)


def env():
    return Patient(environments_.numbered())


def plays(env):
    """Take a step."""
    env.reset(seed=0)
    env.step(0)


def began(env):
    """An environment in an episode."""
    env.reset(seed=0)
    return env


def close(axes=None):
    """Close what was drawn."""
    import matplotlib.pyplot as plt

    plt.close("all")


def learned(case):
    """An agent that has learned."""
    file = Path(f"learned {case.name}.rlsvi")
    if not file.exists():
        case.learned(3).save(file)
    return case.load(file)


@remembered
def log_of(kind="table"):
    env = environments_.numbered() if kind == "table" else environments_.drifting()
    return rlsvi.record(env, episodes=3, progress=False)


def _nothing(result):
    pass


class Call(NamedTuple):
    """A valid call: its arguments, made anew, and what is then done with the result, which may show an error."""

    arguments: Callable[[], dict[str, Any]]
    then: Callable[[Any], object] = _nothing


def agent_calls(cases, package="rlsvi"):
    """Every case of an agent: made and let learn, and each method that a user calls on one that has learned."""
    found = {}
    for case in cases:

        def own(case=case):
            return Patient(case.env())

        def has(case=case, **others):
            return {"self": learned(case), **others}

        def learns(agent, case=case, own=own):
            agent.learn(own(), **{case.unit: 2}, progress=False)

        calls = {
            "": Call(lambda case=case: {"seed": 7, **case.options}, learns),
            ".learn": Call(lambda of=has, own=own, unit=case.unit: of(env=own(), progress=False, **{unit: 1})),
            ".predict": Call(lambda of=has, case=case: of(observation=case.observations[0])),
            ".save": Call(lambda of=has: of(path=FOLDER / "saved.rlsvi")),
            ".get_params": Call(lambda of=has: of(deep=True)),
            ".clone": Call(lambda of=has: of(seed=1)),
            ".set_params": Call(lambda case=case: {"self": case.make(), "seed": 1}),
        }
        if case.kind == "table" and case.looks:
            calls[".export"] = Call(lambda of=has: of(path=FOLDER / "exported.npz"))
        if not case.endless:
            calls[".plot"] = Call(lambda of=has: of(path=FOLDER / "curve.png"), close)
            calls[".fit"] = Call(
                lambda case=case, own=own: {
                    "self": case.make(),
                    "log": log_of(case.kind),
                    "env": own(),
                    "progress": False,
                }
            )
        found |= {f"{package}.{case.agent}{verb} {case.name}": call for verb, call in calls.items()}
    return found


# ---- what is public ----------------------------------------------------------------------------------------


def _public(modules, internal):
    """The public callables by name, without what only holds results: those are made by the library."""
    found = {}
    for place, module in ((place, import_module(place)) for place in modules):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in names:
            thing = getattr(module, name)
            if isinstance(thing, types.ModuleType) or not callable(thing) or thing is MeasuredBasis:
                continue
            if not thing.__module__.startswith((place, "rlsvi.agents.on_episode")):
                continue
            where = "rlsvi" if name in rlsvi.__all__ and getattr(rlsvi, name) is thing else place
            if not _holds_results(thing):
                found[f"{where}.{name}"] = thing
            if inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
                found |= {f"{where}.{name}.{verb}": of for verb, of in _methods(thing) if verb not in internal}
    return found


def _holds_results(thing):
    result = (rlsvi.OfflineValue, rlsvi.Runs, tuple, BaseException)
    return inspect.isclass(thing) and (issubclass(thing, result) or getattr(thing, "_is_protocol", False))


def _methods(thing):
    """The methods with arguments, unless they are of Gymnasium or Python."""
    for name in dir(thing):
        home = next(each for each in thing.__mro__ if name in vars(each))
        method = getattr(thing, name)
        if name.startswith("_") or not callable(method):
            continue
        if name != "rows" and issubclass(thing, MeasuredBasis) and hasattr(MeasuredBasis, name):
            continue  # what agents ask of a basis
        if home.__module__.startswith("rlsvi") and set(inspect.signature(method).parameters) - {"self"}:
            yield name, method


# ---- what a call must do -----------------------------------------------------------------------------------

INTERNAL = {  # methods that the library calls, or classes that extend it, with what it has checked
    *("adopt", "broken", "check", "check_task", "episodes_on_the_mean", "failure", "features"),
    *("inner", "learner_of", "mind_for", "new_learner", "parameters", "plan"),
    *("prepare", "prior", "restored_learner", "reward", "sampled", "step_sizes", "take_on"),
    *("task_in", "task_of", "due", "bind", "planes_in", "spread", "along", "afterstates", "begin", "episode"),
    *("frame", "gather", "write", "handle", "action"),
}
PATHS = {"path", "folder", "keep_best", "checkpoint", "store", "log", "source", "url", "database", "settings"}
OTHER_WORDS = {  # what an error may say instead of the name of the parameter
    ("rlsvi.Store", "folder"): "store",
    ("rlsvi_shop.Events", "url"): "url|database",
    ("from_toml", "path"): "path|name the file",
    ("rlsvi_paper.figure_called", "name"): "figure",
    ("rlsvi_paper.tetris.play", "kind"): "kind|weights",  # which must suit the kind
    ("predict", "observation"): "observation|function|basis|features",  # where a function of the user looks at it
    ("predict", "state"): "state|observation|function|basis|features",  # several are of several observations
    ("predict", "episode_start"): "episode_start|state|observation|function|basis|features",
    ("learn", "evaluate_every"): "evaluat",
    ("fit", "env"): "env|log",  # one of them is wrong for the other
    ("rlsvi.FiniteMDP.from_arrays", "P"): "P|R",  # of the same shape
    ("rlsvi.evaluate", "agent"): "agent|policy",
}
NONSENSE = ("object", "module", "nan")  # which every parameter refuses, but these: they are looked at by others
TAKES = {"deep", "episode_start", "example", "folder", "given", "name", "options", "rho_is"}
REFUSED = {  # besides, by parameters of these names
    **dict.fromkeys(("lam", "sigma", "prior_weight", "diverged_above", "optimism"), ("0", "-1", "inf", "digits")),
    **dict.fromkeys(("horizon", "ensemble", "members", "memory", "planned"), ("0", "-1", "1.5", "digits", "True")),
    **dict.fromkeys(("regressions", "repeat", "sweeps", "backups"), ("0", "-1", "1.5", "digits")),
    **dict.fromkeys(("size", "states", "actions", "products", "slots"), ("0", "-1", "1.5", "digits")),
    **dict.fromkeys(("blocks", "dim", "features", "seeds", "every", "degree"), ("0", "-1", "1.5", "digits")),
    **dict.fromkeys(("gamma", "nu", "delta"), ("-0.5", "1.5", "digits")),
    "length": ("-0.5", "digits"),
    **dict.fromkeys(("explore", "form", "perturb", "noise", "bonus"), ("text", "2")),
    **dict.fromkeys(("prior", "bounds", "reward_range"), ("text", "wrong pair")),
    **dict.fromkeys(("x", "target", "prior_mean", "P", "R", "start"), ("vector of nan", "inf", "text")),
    **dict.fromkeys(("episodes", "steps", "block", "action"), ("-1", "1.5", "text", "list of nan")),
    "seed": ("-1", "1.5", "text", "list of nan"),
}
PROC = Path("/proc/self/statm").exists()


class TooLong(BaseException):
    """Raised by the clock."""


class Try(NamedTuple):
    """A call with one wrong argument."""

    call: str
    parameter: str
    value: str

    def __str__(self):
        return f"{self.call}({self.parameter}={self.value})"


@cache
def _raises(path):
    """The lines of a file that belong to a `raise`."""
    tree = ast.parse(Path(path).read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return {line for node in nodes for line in range(node.lineno, node.end_lineno + 1)}


def _steps_of(error):
    """The module, the file and the line of every call that an error came through, the last first."""
    trace, found = error.__traceback__, []
    while trace is not None:
        code, module = trace.tb_frame.f_code, str(trace.tb_frame.f_globals.get("__name__"))
        found.append((module, code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found[::-1]


def _on_purpose(error):
    """Whether an error comes from a `raise` of our packages."""
    module, path, line = _steps_of(error)[0]
    return module.startswith("rlsvi") and line in _raises(path)


def _place_of(error):
    places = [f"{module}:{line}" for module, _, line in _steps_of(error) if module.startswith("rlsvi")]
    checks = ("rlsvi.core.checks", "rlsvi.core.random", "rlsvi.envs.task")
    return " < ".join([place for place in places if not place.startswith(checks)] or places)


@contextlib.contextmanager
def limited(seconds=SECONDS):
    """Limit the time of the processor and the memory of what is done within."""

    def stop(*_):
        raise TooLong

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if PROC else 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    kept = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    if PROC:
        resource.setrlimit(resource.RLIMIT_AS, (used + 2 * BYTES, before[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _wrong_with(error, public, parameter):
    words, kind = str(error), type(error)
    shown = f"{kind.__name__} at {_place_of(error)}: {words!s:.160}"
    if isinstance(error, OSError) and parameter in PATHS:
        return None
    if kind.__module__.startswith(("gymnasium", "pydantic")):  # which say it in words of their own
        return None
    if isinstance(error, ArchiveError | FactorError):  # they begin with the path; numbers that grow without bounds
        return None
    own = kind.__module__.startswith("rlsvi")
    if not own and not isinstance(error, ValueError | TypeError):
        return f"raw {shown}"
    if not _on_purpose(error):
        return f"not raised on purpose: {shown}"
    verb = public.rpartition(".")[2]
    name = OTHER_WORDS.get((public, parameter), OTHER_WORDS.get((verb, parameter), parameter))
    if not re.search(rf"\b({name})", words):
        return f"does not name {name}: {shown}"
    return None if len(words) < 1000 else f"speaks at length, {len(words)} characters: {shown}"


def _state_of(thing):
    """All that an object is, to be compared; None if it cannot be told."""
    if isinstance(thing, Agent):
        return everything(thing, FOLDER)
    with contextlib.suppress(Exception):
        return pickle.dumps(thing)
    return None


class Fuzz:
    """The valid calls of a package, and the public callables of its modules.

    parts : how many of 500 wrong calls are tried in each part, and which calls are in it, as a pattern.
    internal, never : methods that only the package calls, and callables that always refuse or are compiled.
    """

    def __init__(self, calls, modules, parts, internal=(), never=()):
        self.calls, self.parts, self.never = calls, parts, set(never)
        self.public = _public(modules, INTERNAL | set(internal))

    def check_table(self):
        """Every public callable has a valid call."""
        called = {name.partition(" ")[0] for name in self.calls}
        lacking, private = set(self.public) - called - self.never, called - set(self.public)
        assert not lacking, f"the table lacks a valid call of {sorted(lacking)}"
        assert not private, f"the table calls what is not public: {sorted(private)}"
        assert all(any(re.match(it, name) for _, it in self.parts.values()) for name in self.calls)

    def check(self, part, times=1):
        """The calls of a part are valid, and as many wrong ones as are wanted are fine."""
        tried = self._tries(part, times * self.parts[part][0])
        for name in dict.fromkeys(one.call for one in tried):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call = self.calls[name]
                call.then(self.public[name.partition(" ")[0]](**call.arguments()))  # raises nothing
        faults = [f"{one}: {said}" for one in tried if (said := self.fault(one))]
        assert not faults, f"{len(faults)} of {len(tried)}:\n" + "\n".join(faults[:50])

    def check_nonsense(self):
        """Every parameter refuses what no call takes."""
        pairs = {pair: calls[0] for part in self.parts for pair, calls in self.pairs(part).items()}
        values = {pair: (*NONSENSE, *REFUSED.get(pair[1], ())) for pair in pairs}
        tried = [Try(call, pair[1], value) for pair, call in pairs.items() for value in values[pair]]
        faults = [f"{one}: {said}" for one in tried if (said := self.fault(one))]
        assert not faults, f"{len(faults)} of {len(tried)}:\n" + "\n".join(faults[:50])

    def fault(self, one):
        """What is wrong with how a call with a wrong argument ends, in words; None if nothing is."""
        call, public = self.calls[one.call], one.call.partition(" ")[0]
        arguments = call.arguments() | {one.parameter: VALUES[one.value]()}
        own = arguments.get("self")
        before = _state_of(own)
        try:
            with limited(), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                call.then(self.public[public](**arguments))
        except Enough:
            return None
        except (Exception, TooLong) as error:
            said = _wrong_with(error, public, one.parameter)
            return said or ("it has changed the object" if _state_of(own) != before else None)
        refused = one.value in NONSENSE and one.parameter not in TAKES
        return "accepted" if refused or one.value in REFUSED.get(one.parameter, ()) else None

    def pairs(self, part):
        """The calls of each callable and parameter; all agents have the same methods, which count as one each."""
        groups: dict[tuple[str, str], list[str]] = {}
        for name, call in self.calls.items():
            if next(it for it, (_, pattern) in self.parts.items() if re.match(pattern, name)) != part:
                continue
            public = name.partition(" ")[0]
            method = " " in name and not inspect.isclass(self.public[public])
            group = f"Agent.{public.rpartition('.')[2]}" if method else public
            known = inspect.signature(self.public[public]).parameters
            names = [it for it, kind in known.items() if kind.kind not in (kind.VAR_KEYWORD, kind.VAR_POSITIONAL)]
            if len(names) < len(known):
                names += [each for each in call.arguments() if each not in names]
            for each in names:
                if each != "self":
                    groups.setdefault((group, each), []).append(name)
        return groups

    def _tries(self, part, count):
        """As many calls as asked for, no two alike: every parameter of every function gets as many."""
        draw, groups = random.Random(part), self.pairs(part)
        order = draw.sample(list(groups), len(groups))
        drawn = [[Try(call, pair[1], value) for call in groups[pair] for value in VALUES] for pair in order]
        for each in drawn:
            draw.shuffle(each)
        return [each[i] for i in range(max(map(len, drawn))) for each in drawn if i < len(each)][:count]
