"""The experiments of the package bsuite, and what it says of them."""

from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from rlsvi.core.checks import instead

EXPERIMENTS = (
    *("bandit", "mnist", "catch", "mountain_car", "cartpole"),
    *("bandit_noise", "mnist_noise", "catch_noise", "mountain_car_noise", "cartpole_noise"),
    *("bandit_scale", "mnist_scale", "catch_scale", "mountain_car_scale", "cartpole_scale"),
    *("deep_sea", "deep_sea_stochastic", "cartpole_swingup"),
    *("umbrella_length", "umbrella_distract", "discounting_chain"),
    *("memory_len", "memory_size"),
)
TAGS = {  # the abilities, and how many experiments test each
    "basic": 5,
    "noise": 8,
    "scale": 5,
    "exploration": 3,
    "credit_assignment": 7,
    "generalization": 10,
    "memory": 2,
}
ASKED_FOR = "its images are downloaded from the internet when it begins: name it in --experiments to run it"
LEFT_OUT = {name: ASKED_FOR for name in EXPERIMENTS if name.startswith("mnist")}


def imported(module: str = "") -> Any:
    """Return a module of the package, or the package itself; an error says how to install it.

    Some of its modules change the style of all pictures when they are imported; here they do not.
    """
    from matplotlib import rc_context

    try:
        with rc_context():
            return import_module(f"bsuite.{module}" if module else "bsuite")
    except ModuleNotFoundError as error:
        missing = f'the behaviour suite needs {error.name}: pip install ".[bsuite]" in a clone of rlsvi'
        raise RuntimeError(missing) from None


def package_version() -> str:
    """Return the version of the package that is installed."""
    imported()
    return version("bsuite")


def experiments_named(names: str | None) -> list[str]:
    """Return the experiments that a list separated by commas means; None means all but those left out."""
    if names is None:
        return [name for name in EXPERIMENTS if name not in LEFT_OUT]
    found = list(dict.fromkeys(name.strip() for name in names.split(",")))
    if unknown := [name for name in found if name not in EXPERIMENTS]:
        raise ValueError(f"unknown experiment {unknown[0]!r} in --experiments: {instead(unknown[0], EXPERIMENTS)}")
    return found


def ids_of(experiment: str, most: int | None = None) -> list[str]:
    """Return the settings of an experiment, such as catch/0; if only some are wanted, evenly spread over all."""
    ids = [each for each in imported("sweep").SWEEP if each.partition("/")[0] == experiment]
    if most is None or most >= len(ids):
        return ids
    places = np.linspace(0, len(ids) - 1, most).round().astype(int)
    return [ids[place] for place in places]


def number_of(bsuite_id: str) -> int:
    """Return the place of a setting among those of all experiments."""
    return int(imported("sweep").SWEEP.index(bsuite_id))


def arguments_of(bsuite_id: str) -> dict[str, Any]:
    """Return the arguments of the environment of a setting."""
    return dict(imported("sweep").SETTINGS[bsuite_id])


def episodes_of(experiment: str) -> int:
    """Return the number of episodes that a setting of an experiment is to be played for."""
    return int(imported("sweep").EPISODES[f"{experiment}/0"])


def tags_of(experiment: str) -> list[str]:
    """Return the abilities that an experiment is said to test."""
    tags = imported("sweep").TAGS
    return [tag for tag in TAGS if f"{experiment}/0" in tags[tag]]
