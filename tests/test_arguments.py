"""Wrong arguments of public functions: an error that names the argument, before anything is computed."""

import math
import re

import gymnasium
import numpy as np
import pytest

import jobs
import rlsvi
from rlsvi import bases, envs, mdp, problems
from rlsvi.study.executors import executor, processes
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import sweep

THINGS = {
    "nothing": None,
    "text": "text",
    "nan": math.nan,
    "infinite": math.inf,
    "negative": -1,
    "half": 1.5,
    "huge": 10**30,
    "beyond float64": 10**400,
    "empty list": [],
    "dictionary": {},
    "array": np.zeros((2, 2)),
    "object": object(),
}


class Player:
    def predict(self, observation, state=None, **_):
        return 0, state


def compared(**changed):
    usual = {"agents": {"a": rlsvi.RLSVI()}, "problem": problems.river_swim(3, 2), "episodes": 1, "seeds": 1}
    return rlsvi.compare(**{**usual, "progress": False, **changed})


def evaluated(**changed):
    usual = {"agent": Player(), "env": envs.ChainEnv(3), "episodes": 1}
    return rlsvi.evaluate(**{**usual, **changed})


def swept(folder, **changed):
    return sweep(**{"jobs": [Job.of(jobs.picky, i=1, bad=2)], "store": folder, "executor": "serial", **changed})


Q = np.arange(12.0).reshape(2, 3, 2)
# The function, the argument, and the things that it may well take.
CASES = [
    (compared, "agents", {}),
    (compared, "problem", {}),
    (compared, "episodes", {}),
    (compared, "seeds", {}),
    (compared, "workers", {"nothing"}),
    (evaluated, "agent", {"nothing"}),
    (evaluated, "env", {}),
    (evaluated, "episodes", {}),
    (evaluated, "seed", {"huge", "beyond float64"}),
    (evaluated, "deterministic", {}),
    (evaluated, "limit", {"huge", "beyond float64"}),
    (lambda folder: Store(folder), "folder", {"text"}),
    (lambda function: Job(function, {}), "function", {}),
    (lambda settings: Job("jobs:picky", settings), "settings", {"dictionary"}),
    (lambda cost: Job("jobs:picky", {}, cost), "cost", {"half", "huge"}),
    (lambda function: Job.of(function), "function", {}),
    (lambda workers: processes(workers), "workers", {"nothing"}),
    (lambda executor_: executor(executor_), "executor", {}),
    (mdp.chain, "length", {}),
    (mdp.chain, "deterministic", {}),
    (mdp.deep_sea, "size", {}),
    (mdp.deep_sea, "move_cost", {"negative", "half", "huge"}),
    (mdp.deep_sea, "stochastic", {}),
    (mdp.deep_sea, "randomize_actions", {}),
    (mdp.deep_sea, "seed", {"nothing", "huge", "beyond float64"}),
    (mdp.river_swim, "states", {}),
    (mdp.river_swim, "horizon", {}),
    (lambda states: mdp.dirichlet(states, 2, 2), "states", {}),
    (lambda actions: mdp.dirichlet(2, actions, 2), "actions", {}),
    (lambda horizon: mdp.dirichlet(2, 2, horizon), "horizon", {}),
    (lambda alpha_P: mdp.dirichlet(2, 2, 2, alpha_P=alpha_P), "alpha_P", {"half", "huge"}),
    (lambda homogeneous: mdp.dirichlet(2, 2, 2, homogeneous=homogeneous), "homogeneous", {}),
    (lambda products: mdp.recommendation(products, 1), "products", {}),
    (lambda slots: mdp.recommendation(3, slots), "slots", {}),
    (lambda scale: mdp.recommendation(2, 1, scale=scale), "scale", {"half", "huge"}),
    (problems.Problem, "mdp", {}),
    (lambda basis: problems.Problem(mdp.chain(3), basis), "basis", {}),
    (lambda features: problems.chain(3, features), "features", {"nothing"}),
    (lambda rho: problems.chain(3, 2, rho=rho), "rho", {"nothing", "half", "huge"}),
    (lambda scale: bases.coherent(Q, 3, scale=scale), "scale", {}),
    (lambda per_period: bases.coherent(Q, 3, per_period=per_period), "per_period", {}),
    (lambda features: bases.agnostic(Q, features, 0.1), "features", {}),
    (lambda rho_is: bases.agnostic(Q, 3, 0.1, rho_is=rho_is), "rho_is", {}),
    (lambda env_id: problems.gymnasium(env_id), "env_id", {"text"}),
    (envs.ChainEnv, "length", {}),
    (envs.DeepSeaEnv, "size", {}),
    (envs.RiverSwimEnv, "horizon", {"nothing"}),
    (envs.SwingUpEnv, "height", {"negative"}),
    (envs.SwingUpEnv, "cost", {"half", "huge"}),
    (envs.FiniteMDPEnv, "mdp", {}),
    (lambda render_mode: envs.ChainEnv(3, render_mode), "render_mode", {"nothing"}),
    (envs.Discretized, "env", {}),
]


WRONG = [
    pytest.param(function, name, thing, id=f"{i} {name} {thing}")
    for i, (function, name, fine) in enumerate(CASES)
    for thing in THINGS
    if thing not in fine
]


@pytest.mark.parametrize(("function", "name", "thing"), WRONG)
def test_a_wrong_argument_is_named(function, name, thing):
    alone = getattr(function, "__name__", "") == "<lambda>"
    with pytest.raises((ValueError, TypeError)) as error:
        function(THINGS[thing]) if alone else function(**{name: THINGS[thing]})
    assert re.search(rf"\b{'store' if name == 'folder' else name}\b", str(error.value)), str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("name", ["jobs", "store", "executor"])
def test_a_wrong_argument_of_a_sweep_is_named(name, thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if (name, thing) == ("store", "text"):
        return
    with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
        swept(tmp_path / "store", **{name: THINGS[thing]})


class Odd(envs.ChainEnv):
    """An environment that does one thing in another way."""

    def __init__(self, reset=None, step=None):
        super().__init__(3)
        self.change_reset, self.change_step = reset, step

    def reset(self, **options):
        found = super().reset(**options)
        return self.change_reset(*found) if self.change_reset else found

    def step(self, action):
        found = super().step(action)
        return self.change_step(*found) if self.change_step else found


ODD = {
    "no info": (Odd(reset=lambda o, i: o), "env.reset must return"),
    "info is None": (Odd(reset=lambda o, i: (o, None)), "env.reset must return"),
    "four things": (Odd(step=lambda o, r, e, c, i: (o, r, e, i)), "env.step must return"),
    "info of a step is None": (Odd(step=lambda o, r, e, c, i: (o, r, e, c, None)), "env.step must return"),
    "several ends": (
        Odd(step=lambda o, r, e, c, i: (o, r, np.array([e, e]), c, i)),
        "True or False as terminated",
    ),
    "several rewards": (Odd(step=lambda o, r, e, c, i: (o, [r, r], e, c, i)), "several at once"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_environment_that_is_not_as_gymnasium_has_it_is_named(name):
    env, message = ODD[name]
    with pytest.raises(TypeError, match=message):
        evaluated(env=env)


def test_arrays_of_one_number_are_as_good_as_the_number():
    env = Odd(step=lambda o, r, e, c, i: (o, np.array([r]), np.array([e]), np.array(c), i))
    assert np.array_equal(evaluated(env=env).returns, evaluated().returns)


@pytest.mark.parametrize(
    ("id", "wrong", "words"),
    [
        ("CartPole-v1", "sigmaa", "agent_for has no argument sigmaa .*: did you mean sigma?"),
        ("FrozenLake-v1", "optimsm", "agent_for has no argument optimsm .*: did you mean optimism?"),
        ("rlsvi/Chain-v0", "sigmaa", "agent_for has no argument sigmaa .* RLSVI: did you mean sigma?"),
        ("rlsvi/Chain-v0", "gamma", "agent_for has no argument gamma for this environment, .* makes a RLSVI"),
        ("CartPole-v1", "seeed", "agent_for has no argument seeed for this environment: did you mean seed?"),
    ],
)
def test_agent_for_speaks_of_itself_and_of_the_nearest_argument(id, wrong, words):
    with pytest.raises(TypeError, match=words.replace("?", r"\?")):
        rlsvi.agent_for(gymnasium.make(id), **{wrong: 1})


def test_learn_says_what_to_write():
    env = envs.FiniteMDPEnv(mdp.chain(3))
    assert rlsvi.RLSVI(seed=0).learn(env, 5).episodes == 5
    for arguments, words in [
        ({"total_timesteps": 100}, r"no argument total_timesteps: write steps=, as in learn\(env, steps="),
        ({"episodes": 3, "callback": print}, "no argument callback: write on_episode=.* returns False"),
        ({"episode": 3}, r"no argument episode: did you mean episodes\?"),
        ({"episodes": 3, "tb_log_name": "a"}, "no argument tb_log_name: there are env, episodes, steps"),
    ]:
        with pytest.raises(TypeError, match=words):
            rlsvi.RLSVI(seed=0).learn(env, **arguments)
    with pytest.raises(TypeError, match=r"too many positional arguments: .* have names, such as steps="):
        rlsvi.RLSVI(seed=0).learn(env, 5, 100)
    with pytest.raises(TypeError, match=r"missing a required argument: 'env': write learn\(env, 20\)$"):
        rlsvi.RLSVI(seed=0).learn()
    with pytest.raises(ValueError, match=r"learn\(env, 20\) means 20 episodes"):
        rlsvi.RLSVI(seed=0).learn(env)
    endless = rlsvi.ContinualRLSVI(seed=0)
    with pytest.raises(TypeError, match="names, such as steps=1000"):
        endless.learn(env, 5)
    with pytest.raises(TypeError, match=r"argument: 'steps': write learn\(env, steps=1000\)$"):
        endless.learn(env)
    with pytest.raises(TypeError, match="no argument total_timesteps: write steps="):
        endless.learn(env, total_timesteps=5)
