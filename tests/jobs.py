"""Jobs for the tests of sweeps, in a module that other processes can import."""

import os
import signal
import time
from pathlib import Path

import gymnasium
import numpy as np
from threadpoolctl import threadpool_info


def learn(length, features, seed, episodes):
    """A real simulation."""
    from rlsvi import RLSVI, problems  # the other jobs start without compiled code
    from rlsvi.simulate.finite import simulate

    history = simulate(RLSVI(seed=seed), problems.chain(length, features, seed=seed), episodes)
    return {"episode": np.arange(episodes), "reward": history.reward, "regret": history.regret}


def dive(seed):
    """An environment that is named by text."""
    env = gymnasium.make("rlsvi/DeepSea-v0")
    return {"return": env.step(env.reset(seed=seed)[0])[1]}


def noted(log, i, seconds=0.0):
    """Write i and the process into `log`, wait, and return a table of three rows."""
    with open(log, "a") as file:
        file.write(f"{i} {os.getpid()}\n")
    time.sleep(seconds)
    return {"row": np.arange(3), "x": np.sin(i + np.arange(3)), "square": i * i}


def picky(i, bad):
    """Fail for one of them."""
    if i == bad:
        raise ArithmeticError(f"{i} is not liked")
    return {"half": i / 2}


def mortal(i, flag):
    """The first time, be killed as if memory were short."""
    if flag is not None and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"half": i / 2}


def threads():
    """Threads of all libraries of linear algebra, one of them loaded only now."""
    import scipy.linalg  # noqa: F401

    return {"threads": np.array([pool["num_threads"] for pool in threadpool_info()])}


def returned(what):
    """What jobs should not return, and some things they may."""
    return {
        "nothing": None,
        "empty": {},
        "list": [1, 2],
        "numbered": {1: 2.0},
        "ragged": {"a": np.zeros(2), "b": np.zeros(3)},
        "square": {"a": np.zeros((2, 2))},
        "complex": {"a": np.zeros(2, complex)},
        "long": {"a": np.zeros(2, np.longdouble)},
        "objects": {"a": np.array([None, 1])},
        "named as a setting": {"what": 1.0},
        "mixed": {"a": np.arange(2), "b": True, "c": ["x", "y"], "d": np.float32(0.5)},
        "no rows": {"a": np.empty(0), "b": 1},
    }[what]


def length(given="", *, i):
    return {"length": len(given)}
