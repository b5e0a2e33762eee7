"""The agents of a comparison: those of this library, and anything else that learns."""

# ruff: noqa: NPY002 - agents of others draw from global generators

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np

from rlsvi.agents.agent import Agent

one_at_a_time = Lock()  # for code that may draw from global generators


def check_entrants(agents: Any) -> None:
    """Raise an error unless every agent can be made anew for each seed."""
    if not isinstance(agents, Mapping) or not agents:
        raise ValueError("agents must be a dictionary of at least one agent: {'RLSVI': rlsvi.RLSVI()}")
    for name, given in agents.items():
        if not isinstance(name, str):
            raise TypeError(f"agents must have names as keys, got {name!r:.80}")
        if not isinstance(given, Agent) and not callable(getattr(given, "clone", None)) and not callable(given):
            raise TypeError(
                f"agents[{name!r}] must be an agent, such as RLSVI(), or its class, or a function of env and seed "
                f"that makes anything with learn, such as lambda env, seed: PPO('MlpPolicy', env, seed=seed); got "
                f"{given!r:.80}"
            )


def entrant(name: str, given: Any, env: Any, seed: int) -> Any:
    """Return a new agent for a run: a clone with this seed, or what a class or function makes of env and seed."""
    if isinstance(given, Agent) or (not callable(given) and not isinstance(given, type)):
        return given.clone(seed=seed)
    made = _called(name, given, env, seed)
    if isinstance(made, Agent) and getattr(made, "seed", None) is None:
        made = made.clone(seed=seed)
    if isinstance(made, type) or not callable(getattr(made, "learn", None)):
        raise TypeError(f"agents[{name!r}] must make an agent with a method learn, got {made!r:.80}")
    return made


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
            f"agents[{name!r}] is called with env and seed by these names,{needs}: pass a function, such as "
            "lambda env, seed: .."
        )
    return function(**given)


def is_ours(given: Any) -> bool:
    """Return whether making and teaching an agent uses no global generators: it has streams of its own."""
    made_of_ours = isinstance(given, type) and issubclass(given, Agent)
    return isinstance(given, Agent) or made_of_ours or str(getattr(given, "__module__", "")).startswith("rlsvi.")


@contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Seed the generators that all code of a process shares, for one user at a time, and restore them."""
    torch: Any = sys.modules.get("torch")
    with one_at_a_time:
        kept = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()
        random.seed(seed)
        np.random.seed(seed % 2**32)
        if torch:
            torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])
            if torch:
                torch.set_rng_state(kept[2])
