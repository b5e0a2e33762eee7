"""The public functions of the library with one wrong argument; see fuzzing.py."""

import gymnasium
import numpy as np
import pytest

import jobs
import rlsvi
from contract import environments as environments_
from contract.bases import ARGUMENTS, measured_bases
from contract.cases import BY_NAME, CASES
from fuzzing import (
    FOLDER,
    Budget,
    Call,
    Fuzz,
    Patient,
    Try,
    agent_calls,
    began,
    close,
    env,
    learned,
    log_of,
    own_folder,
    plays,
    remembered,
)
from rlsvi import bases, envs, mdp, problems


def _vectors():
    return Patient(environments_.drifting())


def _learned():
    return learned(BY_NAME["RLSVI-table"])


def _saved():
    _learned().save(FOLDER / "saved before.rlsvi")
    return FOLDER / "saved before.rlsvi"


@remembered
def _runs():
    agents = {"a": rlsvi.RLSVI(seed=0), "b": rlsvi.LSVI(seed=0)}
    return rlsvi.compare(agents, problems.chain(3), 3, 2, workers=1, progress=False)


def _job():
    return rlsvi.Job.of(jobs.picky, i=1, bad=2)


Q = np.arange(12.0).reshape(2, 3, 2)
X = np.array([[0.1, 0.9], [0.5, 0.5]])
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


def _bound(basis):
    return {"states": 3, "actions": 2, "horizon": 2, "example": 0, "basis": basis}


def _learns(basis):
    """Learn from vectors with a basis of rows."""
    agent = rlsvi.BoundedRLSVI(basis=basis, seed=0)
    agent.learn(_vectors(), episodes=1)


def _binds(basis):
    """Bind to numbered states, and to vectors."""
    agent = rlsvi.RLSVI(basis=basis, seed=0)
    agent.learn(_vectors() if not isinstance(basis, bases.Dense) else env(), episodes=1)


@remembered
def _fitted():
    return rlsvi.BoundedRLSVI(basis=bases.Fourier(), seed=0).learn(_vectors(), episodes=1)


def _called(callback):
    rlsvi.RLSVI(seed=0).learn(env(), episodes=2, on_episode=callback)


class Doubling:
    """A transformer, as scikit-learn has them."""

    def transform(self, rows):
        return np.asarray(rows) * 2


CALLS: dict[str, Call] = {
    "rlsvi.BoundedRLSVI.export": Call(lambda: {"self": _fitted(), "path": FOLDER / "policy.npz"}),
    "rlsvi.Boltzmann": Call(
        lambda: {"eta": 1.0}, lambda x: rlsvi.LSVI(explore=x, seed=0).learn(env(), episodes=1)
    ),
    "rlsvi.EpsilonGreedy": Call(
        lambda: {"epsilon": 0.1}, lambda x: rlsvi.LSVI(explore=x, seed=0).learn(env(), episodes=1)
    ),
    "rlsvi.Greedy": Call(dict),
    "rlsvi.Exponential": Call(lambda: {"start": 1.0, "decay": 0.9, "end": 0.0}, lambda x: x(3)),
    "rlsvi.Linear": Call(lambda: {"start": 1.0, "end": 0.1, "episodes": 5}, lambda x: x(3)),
    "rlsvi.ByEvidence": Call(dict, lambda x: rlsvi.RLSVI(sigma=x, seed=0).learn(env(), episodes=2)),
    "rlsvi.InverseGamma": Call(dict, lambda x: rlsvi.RLSVI(sigma=x, seed=0).learn(env(), episodes=2)),
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
    "rlsvi.Runs.plot": Call(lambda: {"self": _runs(), "path": FOLDER / "runs.png"}, close),
    "rlsvi.Store": Call(lambda: {"folder": FOLDER / "store"}),
    "rlsvi.Store.path": Call(lambda: {"self": rlsvi.Store(FOLDER / "store"), "job": _job()}),
    "rlsvi.Store.read": Call(lambda: {"self": rlsvi.Store(FOLDER / "store"), "job": _job()}),
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
    "rlsvi.evaluate": Call(lambda: {"agent": _learned(), "env": env(), "episodes": 1, "progress": False}),
    "rlsvi.evidence": Call(lambda: {"agent": _learned()}),
    "rlsvi.load": Call(lambda: {"path": _saved()}),
    "rlsvi.record": Call(
        lambda: {"env": env(), "policy": _learned(), "episodes": 1, "progress": False, "path": None}
    ),
    "rlsvi.sweep": Call(lambda: {"jobs": [_job()], "store": FOLDER / "store", "executor": "serial"}),
    "rlsvi.value_of": Call(lambda: {"policy": _learned(), "log": log_of(), "env": env(), "draws": 40}),
    "rlsvi.bases.ActionFeatures": Call(lambda: {"function": lambda x, a: [1.0, a]}, _binds),
    "rlsvi.bases.StateFeatures": Call(lambda: {"function": lambda x: [1.0, x[0]]}, _binds),
    "rlsvi.bases.Transformer": Call(lambda: {"transformer": Doubling()}, _binds),
    "rlsvi.bases.Dense": Call(lambda: {"phi": np.ones((4, 3, 2))}, _binds),
    "rlsvi.bases.Observed": Call(
        lambda: {"tree": ["box", [2]], "low": [0.0, 0.0], "high": [1.0, 1.0], "counts": []}
    ),
    "rlsvi.bases.Recommendation": Call(dict),
    "rlsvi.bases.Tabular": Call(dict),
    "rlsvi.bases.agnostic": Call(lambda: {"Q": Q, "features": 2, "rho": 0.1}),
    "rlsvi.bases.coherent": Call(lambda: {"Q": Q, "features": 2}),
    "rlsvi.bases.bound": Call(lambda: _bound(bases.Tabular())),
    "rlsvi.bases.default": Call(lambda: {"env": _vectors()}),
    "rlsvi.bases.of": Call(lambda: {"space": _vectors().observation_space, "basis": bases.Fourier()}),
    "rlsvi.envs.register": Call(dict),
    "rlsvi.envs.ChainEnv": Call(lambda: {"length": 3}, plays),
    "rlsvi.envs.DeepSeaEnv": Call(lambda: {"size": 3, "stochastic": False, "move_cost": 0.01, "seed": 0}, plays),
    "rlsvi.envs.Discretized": Call(lambda: {"env": gymnasium.make("Pendulum-v1"), "choices": 3}, plays),
    "rlsvi.envs.FiniteMDPEnv": Call(lambda: {"mdp": mdp.chain(3)}, plays),
    "rlsvi.envs.RecommendationEnv": Call(lambda: {"products": 3, "slots": 2, "scale": 2.0, "seed": 0}, plays),
    "rlsvi.envs.RiverSwimEnv": Call(lambda: {"states": 3, "horizon": 3}, plays),
    "rlsvi.envs.Spaces": Call(
        lambda: {"observation_space": gymnasium.spaces.Discrete(3), "action_space": gymnasium.spaces.Discrete(2)}
    ),
    "rlsvi.envs.SwingUpEnv": Call(dict, plays),
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
        lambda: {"every": 1, "env": env(), "episodes": 1, "keep_best": FOLDER / "best.rlsvi"}, _called
    ),
    "rlsvi.callbacks.TensorBoard": Call(lambda: {"folder": FOLDER / "board"}),
    "rlsvi.simulate.simulate": Call(
        lambda: {"agent": rlsvi.RLSVI(seed=0), "problem": problems.chain(3), "episodes": 1, "advance": Budget()}
    ),
    "rlsvi.simulate.simulate_continual": Call(
        lambda: {
            "agent": rlsvi.ContinualRLSVI(seed=0),
            "mdp": environments_.ROUND,
            "steps": 3,
            "advance": Budget(),
        }
    ),
}


def _env_calls():
    """The methods of the environments."""
    found = {}
    for name, call in CALLS.items():
        if name.startswith("rlsvi.envs.") and call.then is plays and "Discretized" not in name:
            make = getattr(envs, name.rpartition(".")[2])
            found[f"{name}.step"] = Call(
                lambda make=make, call=call: {"self": began(make(**call.arguments())), "action": 0}
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


FUZZ = Fuzz(
    CALLS | agent_calls(CASES) | _env_calls() | _basis_calls(),
    ("rlsvi", *(f"rlsvi.{it}" for it in ("bases", "envs", "mdp", "problems", "callbacks", "simulate"))),
    {
        "agents": (60, r"rlsvi\.\w+ "),
        "methods of agents": (60, r"rlsvi\.\w+\.\w+ "),
        "bases": (60, r"rlsvi\.bases\."),
        "problems": (60, r"rlsvi\.(envs|mdp|problems|callbacks|simulate)\."),
        "functions": (100, r"rlsvi\."),
    },
    never={  # they say so
        *("rlsvi.ContinualLSVI.fit", "rlsvi.ContinualRLSVI.fit", "rlsvi.ThompsonSampling.export"),
        *("rlsvi.ContinualLSVI.plot", "rlsvi.ContinualRLSVI.plot"),  # a life without episodes has no returns
        *("rlsvi.envs.Spaces.reset", "rlsvi.envs.Spaces.step"),
    },
)
pytestmark = pytest.mark.usefixtures("quick_disk")


def test_every_public_function_has_a_valid_call():
    FUZZ.check_table()


@pytest.mark.parametrize("part", FUZZ.parts)
def test_wrong_arguments_are_named(part, tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    FUZZ.check(part)


@pytest.mark.slow
@pytest.mark.parametrize("part", FUZZ.parts)
def test_thousands_of_wrong_arguments_are_named(part, tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    FUZZ.check(part, times=20)


def test_nonsense_is_refused_and_changes_nothing(tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    FUZZ.check_nonsense()


RAW_ONCE = [  # each raised an error of Python or NumPy once, or changed the object
    Try("rlsvi.envs.RiverSwimEnv.reset", "seed", "2^200"),
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
]


@pytest.mark.parametrize("one", RAW_ONCE, ids=str)
def test_what_was_raw_once_is_named(one, tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    assert not FUZZ.fault(one)


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
