"""Every public function with one wrong argument: it works, or an error raised on purpose names the argument.

The calls are made from the signatures. Each public callable has a valid call in `CALLS` (agents have theirs in
contract/cases.py), of which one argument after the other is replaced by each of `VALUES`.
"""

import ast
import contextlib
import importlib
import inspect
import itertools
import math
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
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import polars as pl
import pytest

import jobs
import rlsvi
import rlsvi_shop as shop
from contract import environments as environments_
from contract.bases import ARGUMENTS, measured_bases
from contract.cases import BY_NAME, CASES, exported_agents
from contract.state import difference, everything
from rlsvi import bases, envs, mdp, problems, simulate
from rlsvi.core.archive import ArchiveError
from rlsvi.core.regression import FactorError
from rlsvi_paper import tetris

SOURCE = Path(rlsvi.__file__).parent
MODULES = ("", "bases", "envs", "mdp", "problems", "callbacks", "simulate", "tetris", "theory", "paper", "shop")
SECONDS = 60  # of the processor, for one call
BYTES = 2 * 2**30  # of memory, for one call


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


# ---- valid calls ------------------------------------------------------------------------------------------


def _env():
    return Patient(environments_.numbered())


def _vectors():
    return Patient(environments_.drifting())


@cache
def _learned_bytes(name):
    """An agent that has learned, as a file."""
    case, data = BY_NAME[name], FOLDER / f"learned {name}.rlsvi"
    case.learned(3).save(data)
    return data


def _learned(name="RLSVI-table"):
    return BY_NAME[name].load(_learned_bytes(name))


@cache
def _log(kind="table"):
    env = environments_.numbered() if kind == "table" else environments_.drifting()
    return rlsvi.record(env, episodes=3, progress=False)


@cache
def _runs():
    agents = {"a": rlsvi.RLSVI(seed=0), "b": rlsvi.LSVI(seed=0)}
    return rlsvi.compare(agents, problems.chain(3), 3, 2, workers=1, progress=False)


def _job():
    return rlsvi.Job.of(jobs.picky, i=1, bad=2)


@cache
def _events():
    return shop.Events(f"sqlite:///{FOLDER}/events.db")


def _settings(**changes):
    return shop.ShopSettings(database=f"sqlite:///{FOLDER}/shop.db", slots=2, **changes)


@cache
def _recommender():
    """A shop of three products, with an open visit."""
    found = shop.Recommender(_settings())
    for product in "abc":
        found.add(product)
    found.learn()
    return found


def _opened():
    """A new visit."""
    visit = f"visit {next(NUMBERS)}"
    _recommender().recommend(visit)
    return visit


NUMBERS = itertools.count()


def _shown():
    """A product that the visit v1 has been shown, in the first slot."""
    return _recommender().recommend("v1", slot=0)


def _offered(product):
    _recommender().add(product)
    return product


CLICKS = pl.DataFrame(
    {"visit": ["a", "a", "b", "c"], "product": ["x", "y", "x", "y"], "reward": [1.0, 0.0, 0.0, 1.0]}
)


@cache
def _visits():
    found = shop.Events(f"sqlite:///{FOLDER}/visits.db")
    names = [f"{i}" for i in range(8)]
    frame = pl.DataFrame({"visit": names, "product": ["x", "y"] * 4, "reward": [1.0, 0.0] * 4})
    shop.import_events(found, _settings(), frame)
    return found


Q = np.arange(12.0).reshape(2, 3, 2)
X = np.array([[0.1, 0.9], [0.5, 0.5]])
FOLDER = Path()  # set by each test to a folder of its own
TWO_STATES = {"P": np.full((2, 2, 2), 0.5), "R": np.zeros((2, 2))}
TABLE = {
    "horizon": 2,
    "states": 2,
    "actions": 1,
    "indptr": np.array([0, 1, 2]),
    "successor": np.array([0, 1]),
    "probability": np.ones(2),
    "reward": np.zeros(2),
    "start": np.array([1.0, 0.0]),
}


@cache
def _rules():
    return tetris.rules(4, 4, "SZ")  # no game is long


def _bound(basis):
    return {"states": 3, "actions": 2, "horizon": 2, "example": 0, "basis": basis}


def _learns(basis):
    """Learn from vectors with a basis of rows."""
    agent = rlsvi.BoundedRLSVI(basis=basis, seed=0, regressions=2)
    agent.learn(_vectors(), episodes=1)


def _binds(basis):
    """Bind to numbered states, and to vectors."""
    agent = rlsvi.RLSVI(basis=basis, seed=0)
    agent.learn(_vectors() if not isinstance(basis, bases.Dense) else _env(), episodes=1)


def _plays(env):
    env.reset(seed=0)
    env.step(0)


def _called(callback):
    rlsvi.RLSVI(seed=0).learn(_env(), episodes=2, on_episode=callback)


def _nothing(result):
    pass


class Call(NamedTuple):
    """A valid call: its arguments, made anew, and what is then done with the result, which may show an error."""

    arguments: Callable[[], dict[str, Any]]
    then: Callable[[Any], object] = _nothing


CALLS: dict[str, Call] = {
    "rlsvi.Boltzmann": Call(
        lambda: {"eta": 1.0}, lambda x: rlsvi.LSVI(explore=x, seed=0).learn(_env(), episodes=1)
    ),
    "rlsvi.EpsilonGreedy": Call(
        lambda: {"epsilon": 0.1}, lambda x: rlsvi.LSVI(explore=x, seed=0).learn(_env(), episodes=1)
    ),
    "rlsvi.Greedy": Call(dict),
    "rlsvi.Exponential": Call(lambda: {"start": 1.0, "decay": 0.9, "end": 0.0}, lambda x: x(3)),
    "rlsvi.Linear": Call(lambda: {"start": 1.0, "end": 0.1, "episodes": 5}, lambda x: x(3)),
    "rlsvi.ByEvidence": Call(dict, lambda x: rlsvi.RLSVI(sigma=x, seed=0).learn(_env(), episodes=2)),
    "rlsvi.InverseGamma": Call(dict, lambda x: rlsvi.RLSVI(sigma=x, seed=0).learn(_env(), episodes=2)),
    "rlsvi.FiniteMDP": Call(lambda: TABLE, lambda x: mdp.backward_induction(x)),
    "rlsvi.FiniteMDP.from_arrays": Call(lambda: {**TWO_STATES, "horizon": 2, "start": np.array([0.5, 0.5])}),
    "rlsvi.FiniteMDP.from_function": Call(
        lambda: {
            "successors": lambda s, a: [(1.0, s, 0.0)],
            "horizon": 2,
            "states": 2,
            "actions": 2,
            "start": np.array([0.5, 0.5]),
        }
    ),
    "rlsvi.Job": Call(lambda: {"function": "jobs:picky", "settings": {"i": 1, "bad": 2}}, lambda x: x.name),
    "rlsvi.Job.of": Call(lambda: {"function": jobs.picky, "cost": 1.0, "i": 1, "bad": 2}, lambda x: x.name),
    "rlsvi.Posterior": Call(lambda: {"blocks": 2, "dim": 3}, lambda x: x.sample(0)),
    "rlsvi.Posterior.observe": Call(
        lambda: {"self": rlsvi.Posterior(2, 3), "block": 1, "x": np.ones(3), "target": 0.5}
    ),
    "rlsvi.Posterior.variance": Call(lambda: {"self": rlsvi.Posterior(2, 3), "block": 1, "x": np.ones(3)}),
    "rlsvi.Posterior.sample": Call(lambda: {"self": rlsvi.Posterior(2, 3), "rng": 0}),
    "rlsvi.Problem": Call(lambda: {"mdp": mdp.chain(3), "basis": bases.Tabular()}, lambda x: x.random_regret),
    "rlsvi.Runs.of": Call(lambda: {"self": _runs(), "agent": "a"}),
    "rlsvi.Runs.cumulative": Call(lambda: {"self": _runs(), "agent": "a"}),
    "rlsvi.Runs.improvement": Call(lambda: {"self": _runs(), "agent": "a", "over": "b"}),
    "rlsvi.Runs.learning_times": Call(lambda: {"self": _runs(), "agent": "a"}),
    "rlsvi.Runs.total_regret": Call(lambda: {"self": _runs(), "agent": "a"}),
    "rlsvi.Runs.total_return": Call(lambda: {"self": _runs(), "agent": "a"}),
    "rlsvi.Runs.plot": Call(lambda: {"self": _runs(), "path": FOLDER / "runs.png"}, lambda ax: _close()),
    "rlsvi.Store": Call(lambda: {"folder": FOLDER / "store"}),
    "rlsvi.Store.path": Call(lambda: {"self": rlsvi.Store(FOLDER / "store"), "job": _job()}),
    "rlsvi.Store.read": Call(lambda: {"self": rlsvi.Store(FOLDER / "store"), "job": _job()}),
    "rlsvi.Store.unfinished": Call(lambda: {"self": rlsvi.Store(FOLDER / "store"), "job": _job()}),
    "rlsvi.Store.forget": Call(lambda: {"self": rlsvi.Store(FOLDER / "store"), "job": _job()}),
    "rlsvi.Store.missing": Call(lambda: {"self": rlsvi.Store(FOLDER / "store"), "jobs": [_job()]}),
    "rlsvi.agent_for": Call(lambda: {"env": _vectors(), "gamma": 0.9, "seed": 0}),
    "rlsvi.compare": Call(
        lambda: {
            "agents": {"a": rlsvi.RLSVI()},
            "problem": problems.chain(3),
            "episodes": 1,
            "seeds": 1,
            "workers": 1,
            "progress": False,
        }
    ),
    "rlsvi.evaluate": Call(lambda: {"agent": _learned(), "env": _env(), "episodes": 1, "progress": False}),
    "rlsvi.evidence": Call(lambda: {"agent": _learned()}),
    "rlsvi_paper.agents.learn_concurrently": Call(
        lambda: {"agent": rlsvi.RLSVI(seed=0), "envs": [_env(), _env()], "rounds": 1, "progress": False}
    ),
    "rlsvi.load": Call(lambda: {"path": _learned_bytes("RLSVI-table")}),
    "rlsvi.record": Call(
        lambda: {"env": _env(), "policy": _learned(), "episodes": 1, "progress": False, "path": None}
    ),
    "rlsvi.sweep": Call(lambda: {"jobs": [_job()], "store": FOLDER / "store", "executor": "serial"}),
    "rlsvi.value_of": Call(lambda: {"policy": _learned(), "log": _log(), "env": _env(), "draws": 40}),
    "rlsvi.bases.ActionFeatures": Call(lambda: {"function": lambda x, a: [1.0, a]}, _binds),
    "rlsvi.bases.StateFeatures": Call(lambda: {"function": lambda x: [1.0, x[0]]}, _binds),
    "rlsvi.bases.Transformer": Call(lambda: {"transformer": Doubling()}, _binds),
    "rlsvi.bases.Dense": Call(lambda: {"phi": np.ones((4, 3, 2))}, _binds),
    "rlsvi.bases.Observed": Call(
        lambda: {"tree": ["box", [2]], "low": [0.0, 0.0], "high": [1.0, 1.0], "counts": []}
    ),
    "rlsvi.bases.Recommendation": Call(dict),
    "rlsvi.bases.Tabular": Call(dict),
    "rlsvi_paper.tetris.Tetris": Call(
        dict,
        lambda x: rlsvi.StationaryRLSVI(basis=x, seed=0).learn(
            envs.TetrisEnv(4, 4, "O", max_pieces=3), episodes=1
        ),
    ),
    "rlsvi.bases.agnostic": Call(lambda: {"Q": Q, "features": 2, "rho": 0.1}),
    "rlsvi.bases.coherent": Call(lambda: {"Q": Q, "features": 2}),
    "rlsvi.bases.bound": Call(lambda: _bound(bases.Tabular())),
    "rlsvi.bases.default": Call(lambda: {"env": _vectors()}),
    "rlsvi.bases.of": Call(lambda: {"space": _vectors().observation_space, "basis": bases.Fourier()}),
    "rlsvi.envs.register": Call(dict),
    "rlsvi.envs.ChainEnv": Call(lambda: {"length": 3}, _plays),
    "rlsvi.envs.DeepSeaEnv": Call(lambda: {"size": 3, "stochastic": False, "move_cost": 0.01, "seed": 0}, _plays),
    "rlsvi.envs.Discretized": Call(lambda: {"env": gymnasium.make("Pendulum-v1"), "choices": 3}, _plays),
    "rlsvi.envs.FiniteMDPEnv": Call(lambda: {"mdp": mdp.chain(3)}, _plays),
    "rlsvi.envs.RecommendationEnv": Call(lambda: {"products": 3, "slots": 2, "scale": 2.0, "seed": 0}, _plays),
    "rlsvi.envs.RiverSwimEnv": Call(lambda: {"states": 3, "horizon": 3}, _plays),
    "rlsvi.envs.Spaces": Call(
        lambda: {"observation_space": gymnasium.spaces.Discrete(3), "action_space": gymnasium.spaces.Discrete(2)}
    ),
    "rlsvi.envs.SwingUpEnv": Call(dict, _plays),
    "rlsvi_paper.tetris.TetrisEnv": Call(lambda: {"height": 4, "width": 4, "pieces": "O"}, _plays),
    "rlsvi.mdp.chain": Call(lambda: {"length": 3}),
    "rlsvi.mdp.deep_sea": Call(lambda: {"size": 3}),
    "rlsvi.mdp.dirichlet": Call(lambda: {"states": 3, "actions": 2, "horizon": 2}),
    "rlsvi.mdp.recommendation": Call(lambda: {"products": 3, "slots": 2}),
    "rlsvi.mdp.draw_taste": Call(lambda: {"products": 3}),
    "rlsvi.mdp.myopic_products": Call(lambda: {"taste": mdp.draw_taste(3), "x": np.zeros(3)}),
    "rlsvi.mdp.river_swim": Call(lambda: {"states": 3, "horizon": 2}),
    "rlsvi.mdp.average_reward": Call(lambda: {"mdp": mdp.river_swim(3, 2)}),
    "rlsvi.mdp.backward_induction": Call(lambda: {"mdp": mdp.chain(3)}),
    "rlsvi.mdp.evaluate": Call(lambda: {"mdp": mdp.chain(3), "policy": np.full((2, 3, 2), 0.5)}),
    "rlsvi.mdp.myopic_values": Call(lambda: {"mdp": mdp.chain(3)}),
    "rlsvi.mdp.from_gymnasium": Call(lambda: {"env": gymnasium.make("FrozenLake-v1"), "horizon": 3}),
    "rlsvi.problems.chain": Call(lambda: {"length": 3, "features": 2}),
    "rlsvi.problems.deep_sea": Call(lambda: {"size": 3, "features": 2}),
    "rlsvi.problems.dirichlet": Call(lambda: {"states": 3, "actions": 2, "horizon": 2, "alpha_P": 1.0}),
    "rlsvi.problems.gymnasium": Call(lambda: {"env_id": "FrozenLake-v1", "horizon": 3}),
    "rlsvi.problems.recommendation": Call(lambda: {"products": 3, "slots": 2, "scale": 2.0}),
    "rlsvi.problems.grid": Call(lambda: {"size": 3, "slip": 0.2, "horizon": 4}),
    "rlsvi.problems.river_swim": Call(lambda: {"states": 3, "horizon": 2}),
    "rlsvi.callbacks.CSV": Call(lambda: {"path": FOLDER / "log.csv"}, _called),
    "rlsvi.callbacks.Callback": Call(dict, _called),
    "rlsvi.callbacks.Checkpoint": Call(lambda: {"every": 1, "path": FOLDER / "agent.rlsvi"}, _called),
    "rlsvi.callbacks.Evaluate": Call(
        lambda: {"every": 1, "env": _env(), "episodes": 1, "keep_best": FOLDER / "best.rlsvi"}, _called
    ),
    "rlsvi.callbacks.TensorBoard": Call(lambda: {"folder": FOLDER / "board"}),
    "rlsvi.simulate.play_mean": Call(
        lambda: {"agent": _tetris_agent(), "rules": _rules(), "games": 1, "max_pieces": 3}
    ),
    "rlsvi.simulate.simulate": Call(
        lambda: {"agent": rlsvi.RLSVI(seed=0), "problem": problems.chain(3), "episodes": 1, "advance": Budget()}
    ),
    "rlsvi_paper.loops.concurrent.simulate_concurrent": Call(
        lambda: {
            "agent": rlsvi.RLSVI(seed=0),
            "problem": problems.chain(3),
            "rounds": 1,
            "agents": 2,
            "advance": Budget(),
        }
    ),
    "rlsvi.simulate.simulate_continual": Call(
        lambda: {
            "agent": rlsvi.ContinualRLSVI(seed=0),
            "mdp": environments_.ROUND,
            "steps": 3,
            "advance": Budget(),
        }
    ),
    "rlsvi_paper.tetris.loop.simulate_tetris": Call(
        lambda: {
            "agent": rlsvi.StationaryRLSVI(basis=bases.Tetris(), seed=0),
            "rules": _rules(),
            "games": 1,
            "max_pieces": 3,
            "advance": Budget(),
        }
    ),
    "rlsvi_paper.tetris.solve": Call(lambda: {"rules": tetris.rules(4, 4, "SZ")}),
    "rlsvi_paper.tetris.rules": Call(lambda: {"height": 4, "width": 4, "pieces": "O"}),
    "rlsvi_paper.tetris.play": Call(
        lambda: {
            "rules": _rules(),
            "kind": 0,
            "weights": tetris.scoring_weights(_rules()),
            "games": 1,
            "max_pieces": 3,
        }
    ),
    "rlsvi_paper.tetris.level": Call(lambda: {"scores": np.array([1.0, 2.0])}),
    "rlsvi_paper.tetris.policy_iteration": Call(
        lambda: {
            "rules": _rules(),
            "weights": tetris.scoring_weights(_rules()),
            "iterations": 1,
            "games": 2,
            "max_pieces": 3,
        }
    ),
    "rlsvi_paper.tetris.scoring_weights": Call(lambda: {"rules": _rules()}),
    "rlsvi_paper.theory.optimism.crossings": Call(lambda: {"alpha": 2.0, "beta": 2.0, "points": 101}),
    "rlsvi_paper.theory.optimism.density_crossings": Call(lambda: {"alpha": 2.0, "beta": 2.0, "points": 101}),
    "rlsvi_paper.theory.optimism.failing_sums": Call(lambda: {"mean": 0.5, "tolerance": 0.1}),
    "rlsvi_paper.theory.bounds.dithering_chance": Call(lambda: {"length": 3}),
    "rlsvi_paper.theory.bounds.dithering_regret": Call(lambda: {"length": 3, "episodes": 10}),
    "rlsvi_paper.theory.expected_excess.beta_excess": Call(lambda: {"alpha": 2.0, "beta": 2.0, "t": 0.5}),
    "rlsvi_paper.theory.expected_excess.dirichlet_excess": Call(
        lambda: {"alpha": [1.0, 1.0], "V": [0.0, 1.0], "t": 0.5}
    ),
    "rlsvi_paper.theory.expected_excess.normal_excess": Call(lambda: {"mean": 0.0, "std": 1.0, "t": 0.5}),
    "rlsvi_paper.theory.optimism.least_gap": Call(
        lambda: {
            "optimist": lambda t: (np.exp(-t), np.zeros_like(t)),
            "other": lambda t: (np.exp(-2 * t), np.zeros_like(t)),
            "low": 0.0,
            "high": 1.0,
            "tolerance": 1e-3,
            "most": 100,
        }
    ),
    "rlsvi_paper.theory.optimism.beta_gap": Call(lambda: {"alpha": 2.0, "beta": 2.0}),
    "rlsvi_paper.theory.optimism.lemma_gap": Call(lambda: {"alpha": [1.0, 1.0], "V": [0.0, 1.0]}),
    "rlsvi_paper.theory.optimism.matched_beta": Call(lambda: {"alpha": [1.0, 1.0], "V": [0.0, 1.0]}),
    "rlsvi_paper.theory.optimism.matched_gap": Call(lambda: {"alpha": [1.0, 1.0], "V": [0.0, 1.0]}),
    "rlsvi_paper.theory.optimism.last_period_gap": Call(lambda: {"n": 3, "lows": 1, "lam": 4.0, "sigma": 2.0}),
    "rlsvi_paper.theory.optimism.q_gap": Call(
        lambda: {
            "into": np.ones((2, 2, 1, 2)),
            "lows": np.ones((2, 2, 1)),
            "lam": 4.0,
            "sigma": 2.0,
            "draws": 1000,
        }
    ),
    "rlsvi_paper.theory.bounds.proof_bound": Call(lambda: {"states": 2, "actions": 2, "horizon": 2, "steps": 10}),
    "rlsvi_paper.theory.bounds.regret_shape": Call(lambda: {"states": 2, "actions": 2, "horizon": 2, "steps": 10}),
    "rlsvi_paper.theory.bounds.theorem_agent": Call(lambda: {"states": 2, "horizon": 2, "seed": 0}),
    "rlsvi_paper.theory.bounds.optimistic_parameters": Call(lambda: {"states": 2, "horizon": 2}),
    "rlsvi_paper.theory.optimism.optimistic_variance": Call(lambda: {"total": 2.0}),
    "rlsvi_paper.theory.bounds.theorem_parameters": Call(lambda: {"states": 2, "horizon": 2}),
    "rlsvi_paper.figure_called": Call(lambda: {"name": "dithering"}),
    "rlsvi_shop.Events": Call(lambda: {"url": f"sqlite:///{FOLDER}/events.db"}, lambda x: x.close()),
    "rlsvi_shop.Events.since": Call(lambda: {"self": _events(), "number": 0, "limit": 5}),
    "rlsvi_shop.Recommender": Call(
        lambda: {"database": f"sqlite:///{FOLDER}/options.db", "learning": False, "idle": 60.0}, lambda x: x.stop()
    ),
    "rlsvi_shop.Recommender.add": Call(lambda: {"self": _recommender(), "product": "a", "features": None}),
    "rlsvi_shop.Recommender.add_all": Call(lambda: {"self": _recommender(), "products": {"a": None}}),
    "rlsvi_shop.Recommender.remove": Call(lambda: {"self": _recommender(), "product": _offered("d")}),
    "rlsvi_shop.Recommender.recommend": Call(
        lambda: {"self": _recommender(), "visit": f"visit {next(NUMBERS)}", "context": None}
    ),
    "rlsvi_shop.Recommender.feedback": Call(
        lambda: {"self": _recommender(), "visit": "v1", "product": _shown(), "reward": 1.0}
    ),
    "rlsvi_shop.Recommender.close": Call(lambda: {"self": _recommender(), "visit": _opened()}),
    "rlsvi_shop.ShopSettings": Call(lambda: {"database": f"sqlite:///{FOLDER}/shop.db", "slots": 2}),
    "rlsvi_shop.ShopSettings.from_toml": Call(lambda: {"path": _toml()}),
    "rlsvi_shop.events_frame": Call(lambda: {"events": _events()}),
    "rlsvi_shop.export_events": Call(lambda: {"events": _events(), "path": FOLDER / "events.csv"}),
    "rlsvi_shop.import_events": Call(lambda: {"events": _events(), "settings": _settings(), "source": CLICKS}),
    "rlsvi_shop.judge": Call(lambda: {"settings": _settings(), "events": _visits()}),
}


class Doubling:
    """A transformer, as scikit-learn has them."""

    def transform(self, rows):
        return np.asarray(rows) * 2


def _toml():
    path = FOLDER / "shop.toml"
    path.write_text('slots = 2\ndatabase = "sqlite:///shop.db"\n')
    return path


def _close():
    import matplotlib.pyplot as plt

    plt.close("all")


@cache
def _tetris_agent():
    agent = rlsvi.StationaryRLSVI(basis=bases.Tetris(), seed=0)
    simulate.simulate_tetris(agent, _rules(), 1, max_pieces=3)
    return agent


def _agent_calls():
    """Every case of an agent: made and let learn, and each method that a user calls on one that has learned."""
    found = {}
    for case in CASES:

        def own(case=case):
            return Patient(case.env())

        def learned(case=case, **others):
            return {"self": _learned(case.name), **others}

        def learns(agent, case=case, own=own):
            agent.learn(own(), **{case.unit: 2}, progress=False)

        calls = {
            "": Call(lambda case=case: {"seed": 7, **case.options}, learns),
            ".learn": Call(lambda of=learned, own=own, unit=case.unit: of(env=own(), progress=False, **{unit: 1})),
            ".predict": Call(lambda of=learned, case=case: of(observation=case.observations[0])),
            ".save": Call(lambda of=learned: of(path=FOLDER / "saved.rlsvi")),
            ".get_params": Call(lambda of=learned: of(deep=True)),
            ".clone": Call(lambda of=learned: of(seed=1)),
            ".set_params": Call(lambda case=case: {"self": case.make(), "seed": 1}),
        }
        if case.kind == "table" and case.looks:
            calls[".export"] = Call(lambda of=learned: of(path=FOLDER / "exported.npz"))
        if not case.endless:
            calls[".plot"] = Call(lambda of=learned: of(path=FOLDER / "curve.png"), lambda ax: _close())
            calls[".fit"] = Call(
                lambda case=case, own=own: {
                    "self": case.make(),
                    "log": _log(case.kind),
                    "env": own(),
                    "progress": False,
                }
            )
        found |= {f"rlsvi.{case.agent}{verb} {case.name}": call for verb, call in calls.items()}
    return found


def _began(env):
    env.reset(seed=0)
    return env


def _env_calls():
    """The methods of the environments."""
    found = {}
    for name, call in CALLS.items():
        if name.startswith("rlsvi.envs.") and call.then is _plays and "Discretized" not in name:
            make = getattr(envs, name.rpartition(".")[2])
            found[f"{name}.step"] = Call(
                lambda make=make, call=call: {"self": _began(make(**call.arguments())), "action": 0}
            )
            found[f"{name}.reset"] = Call(
                lambda make=make, call=call: {"self": make(**call.arguments()), "seed": 0, "options": None}
            )
    return found


def _basis_calls():
    """Every basis of measured numbers, made and let learn, and its features."""
    found = {}
    for basis in measured_bases():
        name = f"rlsvi.bases.{type(basis).__name__}"
        given = {key: getattr(basis, key) for key in ARGUMENTS.get(type(basis).__name__, {})}
        found[name] = Call(lambda given=given: dict(given), _learns)
        found[f"{name}.rows"] = Call(lambda basis=basis: {"self": basis, "x": X})
    return found


CALLS |= _agent_calls() | _env_calls() | _basis_calls()
AGENTS = exported_agents()


# ---- what is public ---------------------------------------------------------------------------------------

OF_THE_LIBRARY = {  # methods that the library calls, or classes that extend it, with what it has checked
    *("adopt", "broken", "check", "check_task", "episodes_on_the_mean", "failure", "features"),
    *("inner", "learner_of", "mind_for", "new_learner", "parameters", "plan"),
    *("prepare", "prior", "restored_learner", "reward", "sampled", "step_sizes", "take_on"),
    *("task_in", "task_of", "due", "bind", "planes_in", "spread", "along", "afterstates", "begin", "episode"),
    *(
        "frame",
        "gather",
        "write",
        "handle",
        "newest_draws",
        "put_draws",
        "product_id",
        "action",
        "file",
        "note_failure",
    ),
}

NEVER = {  # methods that always refuse, and say so
    *("rlsvi.ContinualLSVI.fit", "rlsvi.ContinualRLSVI.fit", "rlsvi.ThompsonSampling.export"),
    *("rlsvi.ContinualLSVI.plot", "rlsvi.ContinualRLSVI.plot"),  # a life without episodes has no returns
    *("rlsvi.envs.Spaces.reset", "rlsvi.envs.Spaces.step"),
}


def _public():
    """The public callables by name, without what only holds results: those are made by the library."""
    found = {}
    for part in MODULES:
        module = importlib.import_module(f"rlsvi.{part}".rstrip("."))
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in names:
            thing = getattr(module, name)
            if (
                isinstance(thing, types.ModuleType)
                or not callable(thing)
                or thing is bases.MeasuredBasis  # which has no features itself
                or not thing.__module__.startswith(
                    (module.__name__, f"rlsvi_paper.{part}.", "rlsvi.agents.on_episode")
                )
            ):
                continue
            where = "rlsvi" if name in rlsvi.__all__ and getattr(rlsvi, name) is thing else module.__name__
            if not _holds_results(thing):
                found[f"{where}.{name}"] = thing
            if inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
                found |= {f"{where}.{name}.{verb}": of for verb, of in _methods(thing)}
    return found


def _holds_results(thing):
    result = (rlsvi.OfflineValue, rlsvi.Runs, tuple, BaseException)
    return inspect.isclass(thing) and (issubclass(thing, result) or getattr(thing, "_is_protocol", False))


def _methods(thing):
    """The methods with arguments, unless they are of Gymnasium or Python."""
    for name in dir(thing):
        home = next(each for each in thing.__mro__ if name in vars(each))
        method = getattr(thing, name)
        if name.startswith("_") or name in OF_THE_LIBRARY or not callable(method):
            continue
        if name != "rows" and issubclass(thing, bases.MeasuredBasis) and hasattr(bases.MeasuredBasis, name):
            continue  # what agents ask of a basis
        if home.__module__.startswith("rlsvi") and set(inspect.signature(method).parameters) - {"self"}:
            yield name, method


PUBLIC = _public()


def test_every_public_function_has_a_valid_call():
    called = {name.partition(" ")[0] for name in CALLS}
    assert not sorted(set(PUBLIC) - called - NEVER), "CALLS lacks a valid call"
    assert not sorted(called - set(PUBLIC)), "CALLS calls what is not public"


# ---- what a call must do ----------------------------------------------------------------------------------

PATHS = {"path", "folder", "keep_best", "checkpoint", "store", "log", "source", "url", "database", "settings"}
OTHER_WORDS = {  # what an error may say instead of the name of the parameter
    ("rlsvi.Store", "folder"): "store",
    ("rlsvi_shop.Events", "url"): "url|database",
    ("from_toml", "path"): "path|name the file",
    ("rlsvi_paper.figure_called", "name"): "figure",
    ("predict", "observation"): "observation|function|basis|features",  # where a function of the user looks at it
    ("predict", "state"): "state|observation|function|basis|features",  # several are of several observations
    ("predict", "episode_start"): "episode_start|state|observation|function|basis|features",
    ("learn", "evaluate_every"): "evaluat",
}


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


def _on_purpose(error):
    """Whether an error comes from a `raise` of this package."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    path = trace.tb_frame.f_code.co_filename
    return Path(path).is_relative_to(SOURCE) and trace.tb_lineno in _raises(path)


def _place_of(error):
    trace = error.__traceback__
    found = []
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            found.append(f"{path.relative_to(SOURCE)}:{trace.tb_lineno}")
        trace = trace.tb_next
    checks = ("core/checks.py", "core/random.py", "envs/task.py")
    return " < ".join([place for place in found[::-1] if not place.startswith(checks)] or found)


@contextlib.contextmanager
def _limited():
    """Limit the time of the processor and the memory of what is done within."""

    def stop(*_):
        raise TooLong

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if PROC else 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    kept = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    if PROC:
        resource.setrlimit(resource.RLIMIT_AS, (used + 2 * BYTES, before[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)
        resource.setrlimit(resource.RLIMIT_AS, before)


PROC = Path("/proc/self/statm").exists()


def _fault(one):
    """What is wrong with how a call with a wrong argument ends, in words; None if nothing is."""
    call, public = CALLS[one.call], one.call.partition(" ")[0]
    arguments = call.arguments() | {one.parameter: VALUES[one.value]()}
    agent = arguments.get("self") if one.call.partition(".")[2].partition(".")[0] in AGENTS else None
    before = None if agent is None else everything(agent, FOLDER)
    try:
        with _limited(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            call.then(PUBLIC[public](**arguments))
    except Enough:
        return None
    except (Exception, TooLong) as error:
        said = _wrong_with(error, public, one.parameter)
        if said is None and before is not None:
            after = difference(everything(agent, FOLDER), before)
            said = after and f"it has changed the agent: {after:.200}"
        return said or None
    return None


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


def _pairs(part):
    """The groups of calls and their parameters; all agents have the same methods, which are one group each."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, call in CALLS.items():
        public = name.partition(" ")[0]
        own, verb = public.split(".")[1], public.rpartition(".")[2]
        group = f"Agent.{verb}" if own in AGENTS and verb != own else public
        if part != _part_of(group, own):
            continue
        known = inspect.signature(PUBLIC[public]).parameters
        names = [each for each, kind in known.items() if kind.kind not in (kind.VAR_KEYWORD, kind.VAR_POSITIONAL)]
        if len(names) < len(known):
            names += [each for each in call.arguments() if each not in names]
        for each in names:
            if each != "self":
                groups.setdefault((group, each), []).append(name)
    return groups


def _part_of(group, own):
    if group.startswith("Agent."):
        return "methods of agents"
    if own in AGENTS:
        return "agents"
    return own if own in ("bases", "shop", "theory") else "problems" if own in MODULES else "functions"


def _tries(part, count):
    """As many calls as asked for, no two alike: every parameter of every function gets as many."""
    draw, groups = random.Random(part), _pairs(part)
    order = draw.sample(list(groups), len(groups))
    drawn = [[Try(call, pair[1], value) for call in groups[pair] for value in VALUES] for pair in order]
    for each in drawn:
        draw.shuffle(each)
    turns = [each[i] for i in range(max(map(len, drawn))) for each in drawn if i < len(each)]
    assert len(turns) >= count
    return turns[:count]


PARTS = {  # how many calls of 500
    "agents": 100,
    "methods of agents": 100,
    "functions": 100,
    "bases": 60,
    "problems": 80,
    "theory": 30,
    "shop": 30,
}


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlsvi.core.checks.memory", lambda: BYTES)
    monkeypatch.setitem(globals(), "FOLDER", tmp_path)
    for remembered in (_learned_bytes, _events, _recommender, _visits):
        remembered.cache_clear()


def _assert_all_fine(part, count):
    assert sum(PARTS.values()) == 500
    tried = _tries(part, count)
    for name in dict.fromkeys(one.call for one in tried):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            CALLS[name].then(PUBLIC[name.partition(" ")[0]](**CALLS[name].arguments()))  # raises nothing
    faults = [f"{one}: {said}" for one in tried if (said := _fault(one))]
    assert not faults, f"{len(faults)} of {len(tried)}:\n" + "\n".join(faults[:50])


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.usefixtures("own_folder", "quick_disk")
def test_wrong_arguments_are_named(part):
    _assert_all_fine(part, PARTS[part])


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.usefixtures("own_folder", "quick_disk")
def test_thousands_of_wrong_arguments_are_named(part):
    _assert_all_fine(part, 20 * PARTS[part])


RAW_ONCE = [  # each raised an error of Python or NumPy once
    Try("rlsvi.BoundedRLSVI.fit BoundedRLSVI-vector", "executor", "null byte"),
    Try("rlsvi.ContinualRLSVI.learn ContinualRLSVI-vector", "reset", "False"),
    Try("rlsvi.Posterior.variance", "block", "10^5000"),
    Try("rlsvi.PSRL.export PSRL-table", "path", "None"),
    Try("rlsvi.bases.Fourier", "smoothness", "text"),
    Try("rlsvi.bases.Fourier", "order", "list"),
    Try("rlsvi.bases.Fourier.rows", "x", "None"),
    Try("rlsvi.bases.Polynomial", "degree", "list"),
    Try("rlsvi.bases.Polynomial.rows", "x", "vector"),
    Try("rlsvi.bases.Radial", "seed", "list"),
    Try("rlsvi.bases.Radial.rows", "x", "text"),
    Try("rlsvi.bases.StateFeatures", "function", "None"),
    Try("rlsvi.bases.coherent", "Q", "text"),
    Try("rlsvi.evaluate", "progress", "vector"),
    Try("rlsvi.simulate.simulate", "episodes", "2^63"),
    Try("rlsvi.StationaryLSVI StationaryLSVI-table", "memory", "2^63"),
    Try("rlsvi.StationaryLSVI StationaryLSVI-table", "regressions", "2^63"),
    Try("rlsvi.GradientRLSVI GradientRLSVI-table", "memory", "2^63"),
    Try("rlsvi.GradientRLSVI GradientRLSVI-table", "ensemble", "2^63"),
    Try("rlsvi.compare", "executor", "class of numbers"),
    Try("rlsvi.compare", "executor", "function of nothing"),
    Try("rlsvi.compare", "problem", "class of numbers"),
    Try("rlsvi.sweep", "executor", "class of numbers"),
    Try("rlsvi.sweep", "advance", "function of nothing"),
    Try("rlsvi.Job", "given", "function of nothing"),
    Try("rlsvi.FiniteMDP.from_function", "successors", "function of nothing"),
    Try("rlsvi.EpsilonGreedy", "epsilon", "function of nothing"),
    Try("rlsvi.IncrementalRLSVI IncrementalRLSVI-table", "nu", "function of nothing"),
    Try("rlsvi.RLSVI.learn RLSVI-table", "on_episode", "function of nothing"),
    Try("rlsvi.bases.StateFeatures", "function", "class of numbers"),
    Try("rlsvi.bases.ActionFeatures", "function", "class of numbers"),
    Try("rlsvi.simulate.simulate", "advance", "function of nothing"),
    Try("rlsvi_paper.tetris.loop.simulate_tetris", "advance", "function of nothing"),
    Try("rlsvi_paper.tetris.policy_iteration", "progress", "class of numbers"),
]


@pytest.mark.parametrize("one", RAW_ONCE, ids=str)
@pytest.mark.usefixtures("own_folder", "quick_disk")
def test_what_was_raw_once_is_named(one):
    assert not _fault(one)


@pytest.mark.parametrize("make", [bases.StateFeatures, bases.ActionFeatures])
@pytest.mark.parametrize("at", ["reset", "step"])
@pytest.mark.parametrize("wrong", [None, "here", np.zeros(5), {}], ids=["None", "text", "longer", "dictionary"])
def test_a_function_of_the_user_is_called_on_checked_observations_only(make, at, wrong):
    def function(x, action=0):
        assert isinstance(x, np.ndarray)
        assert x.shape == (2,)
        return [1.0, x[0]]

    class Wrong(environments_.Drift):
        def reset(self, **options):
            seen, info = super().reset(**options)
            return (wrong, info) if at == "reset" else (seen, info)

        def step(self, action):
            _, *rest = super().step(action)
            return wrong, *rest

    agent = rlsvi.RLSVI(basis=make(function), seed=0)
    with pytest.raises(ValueError, match="observation must be"):
        agent.learn(Wrong(), episodes=3)
    assert agent.episodes == 0
