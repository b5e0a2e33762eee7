"""The agents of a comparison: those of this library, and anything else that learns."""

# ruff: noqa: NPY002 - agents of others draw from global generators

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.core.checks import shown
from rlsvi.simulate.serving import ours, replaced

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
