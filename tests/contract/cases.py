"""How to make each exported agent, and what it learns in.

An agent without a case of its own is made without arguments, and learns a table; a case of its own says otherwise.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rlsvi
from contract import environments as envs
from rlsvi import bases
from rlsvi.simulate.finite import fused_for


def features(observation):
    """Plain code, which no file holds; of a 2-norm of at most 1 at every state, as LSVI-UCB needs it."""
    x = np.array([1.0, *np.ravel(observation)])
    return x / 4 if x.dtype.kind == "f" else x


CODE = bases.StateFeatures(features)
EPISODES, STEPS = "episodes", "steps"


@dataclass(frozen=True)
class Case:
    """An agent and what suits it."""

    agent: str  # a name in rlsvi.__all__, or in `home`
    kind: str  # what it observes: "table" or "vector"
    options: dict = field(default_factory=dict)
    fused: bool = True  # whether a compiled loop plays it
    endless: bool = False  # learns in steps, without episodes
    looks: bool = True  # at observations
    code: Any = None  # given on loading
    label: str = ""  # of a second case of this kind
    home: Any = rlsvi

    @property
    def name(self):
        return f"{self.agent}-{self.kind}{self.label}"

    @property
    def type(self):
        return getattr(self.home, self.agent)

    @property
    def arguments(self):
        return list(inspect.signature(self.type).parameters)

    @property
    def has_basis(self):
        return "basis" in self.arguments

    @property
    def unit(self):
        return STEPS if self.endless else EPISODES

    def make(self, **changes):
        """A fresh agent."""
        return self.type(**{"seed": 7, **self.options, **changes})

    def env(self):
        """A new environment that behaves."""
        if self.kind == "table":
            return envs.endless() if self.endless else envs.numbered()
        return envs.drifting_for_ever() if self.endless else envs.drifting()

    def learn(self, agent, amount, env=None, **options):
        """Let it learn `amount` more episodes (or steps, of an agent without episodes)."""
        return agent.learn(env or self.env(), **{self.unit: amount}, **options)

    def done(self, agent):
        """How many episodes (or steps) it claims to have learned from."""
        return getattr(agent, self.unit)

    def learned(self, amount, **changes):
        """An agent that has learned so much in one call."""
        return self.learn(self.make(**changes), amount)

    def load(self, path):
        """The agent in a file."""
        return rlsvi.load(path, self.code) if self.code is not None else rlsvi.load(path)

    @property
    def observations(self):
        """Some that it can predict at."""
        if self.kind == "table":
            return [0, 1, 2]
        return [np.array([x, 0.25]) for x in (-0.9, 0.0, 0.4, 0.8)]

    def go_on(self, agent):
        """Learn a little more, and predict."""
        self.learn(agent, 1)
        predictions(self, agent)

    def simulate(self, agent, amount):
        """The compiled loop."""
        if self.endless:
            rlsvi.simulate.simulate_continual(agent, envs.ROUND, amount)
        else:
            from rlsvi.simulate import simulate

            simulate(agent, rlsvi.Problem(envs.MDP), amount, regret=False)


def predictions(case, agent):
    """What it says, on the posterior mean and on samples, at the start of an episode and later."""
    found = []
    for deterministic in (True, False):
        for observation in case.observations:
            action, state = agent.predict(observation, deterministic=deterministic)
            found += [int(action), int(agent.predict(observation, state, deterministic=deterministic)[0])]
    return found


def _vector(agent, **options):
    return Case(agent, "vector", {"basis": CODE, **options}, fused=False, code=CODE)


def _endless(agent, kind, **options):
    code = CODE if kind == "vector" else None
    given = {**options, **({"basis": CODE} if code else {})}
    return Case(agent, kind, given, fused=kind == "table", endless=True, code=code)


SCHEDULE = rlsvi.EpsilonGreedy(rlsvi.Linear(1.0, 0.1, 5))
SPECIAL = [
    Case("RLSVI", "table", {"prior_mean": 0.5}),
    Case("RLSVI", "table", {"sigma": rlsvi.ByEvidence()}, label=" by evidence"),
    _vector("RLSVI", sigma=rlsvi.InverseGamma(2.0, 1.0)),
    Case("LSVI", "table", {"explore": SCHEDULE}),
    _vector("LSVI", explore=rlsvi.Boltzmann(0.5)),
    Case("IncrementalRLSVI", "table", {"nu": 0.1}),
    _vector("IncrementalRLSVI", keep_prior=False),
    Case("BootstrapRLSVI", "table", {"prior_mean": 0.5}),
    _vector("BootstrapRLSVI", prior_weight=0.5, random_prior=False),
    Case("GradientRLSVI", "table", {"ensemble": 2, "updates": 4, "memory": 6}, fused=False),
    _vector("GradientRLSVI", ensemble=2, updates=4, memory=6),
    Case("StationaryRLSVI", "table", {"memory": 6}, fused=False),
    _vector("StationaryRLSVI", memory=6),
    Case("StationaryLSVI", "table", {"explore": SCHEDULE}, fused=False),
    Case("BoundedRLSVI", "vector", {"basis": bases.Polynomial(degree=1)}, fused=False),
    Case("DiscountedPSRL", "vector", {"gamma": 0.9}, fused=False),
    Case("TableOrFeatures", "vector", {"gamma": 0.9}, fused=False),
    _endless("ContinualRLSVI", "table"),
    _endless("ContinualRLSVI", "vector", gamma=0.5),
    _endless("ContinualLSVI", "table", explore=SCHEDULE),
    _vector("ContextualBandit", pooled=True),
    Case("ThompsonSampling", "table", {"prior": (1.0, 2.0)}, looks=False),
    Case("PSRL", "table", {"homogeneous": True}, label=" homogeneous"),
    Case("UCRL2", "table", {"homogeneous": True}, label=" homogeneous"),
    Case("UCBVI", "table", {"bonus": "bernstein"}),
    Case("EnsembleRLSVI", "table", {"members": 3, "prior_mean": 0.5}),
    Case("EnsembleRLSVI", "table", {"members": 3, "perturb": "weights"}, label=" weights"),
    _vector("EnsembleRLSVI", members=3, prior_scale=0.5),
]


def exported_agents():
    """The names of all agent classes in rlsvi.__all__."""
    return [name for name in rlsvi.__all__ if _is_agent(getattr(rlsvi, name))]


def _is_agent(thing: Callable[..., Any]) -> bool:
    return inspect.isclass(thing) and all(hasattr(thing, verb) for verb in ("learn", "predict"))


def _usual(agent):
    """An agent that is made without arguments, with a table."""
    kind = getattr(rlsvi, agent)
    endless = "episodes" not in inspect.signature(kind.learn).parameters
    return Case(agent, "table", fused=fused_for(kind()), endless=endless)


_made = {case.name for case in SPECIAL}
_made.add("BoundedRLSVI-table")  # it learns with features only
CASES = SPECIAL + [_usual(agent) for agent in exported_agents() if f"{agent}-table" not in _made]
BY_NAME: dict[str, Case] = {case.name: case for case in CASES}
FUSED = [case.name for case in CASES if case.fused]
BASED = [case.name for case in CASES if case.has_basis]


# One case of each kind of learner: the first suite drives these through the contract, the second all cases.
KINDS = {
    *(
        "RLSVI-table",
        "RLSVI-vector",
        "EnsembleRLSVI-table",
        "PSRL-table",
        "DiscountedPSRL-vector",
        "ContextualBandit-table",
    ),
    *("StationaryRLSVI-vector", "ContinualRLSVI-table", "BoundedRLSVI-vector", "TableOrFeatures-vector"),
    *("GradientRLSVI-table", "ThompsonSampling-table"),
}
assert KINDS <= BY_NAME.keys()


def a_share(items, case, of):
    """Every `of`-th item, beginning at another for each case; of 1: all."""
    return list(items)[list(BY_NAME).index(case.name) % of :: of]
