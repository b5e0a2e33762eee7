"""Which loop serves an agent: the fused one, or stepping through an environment.

The fused loop calls compiled functions instead of most methods of an agent and its learner. A class outside of
this library that overrides one of those methods means it to be called, so such an agent is stepped.
"""

from functools import cached_property, partialmethod
from typing import Any

from rlsvi.agents.agent import Agent
from rlsvi.agents.learner import MindLearner

# What the fused loop calls too, and what no loop calls.
HEEDED = {
    *("_start", "arguments", "check", "check_task", "clone", "take_on"),
    *("adopt", "broken", "episodes_on_the_mean", "failure", "mind_for", "task_in"),
    *("features", "learner_of", "linear", "new_learner", "numbers", "parameters", "prior", "prior_weights"),
    *("export", "restored_learner", "rewards", "save", "state"),
}
OF_LEARNERS = {"counters", "enlarged", "mind_for", "restore", "state"}
METHODS = property, cached_property, partialmethod, staticmethod, classmethod


def ours(cls: type) -> bool:
    """Return whether a class belongs to this library."""
    return cls.__module__.startswith("rlsvi.")


def overridden(cls: type) -> list[str]:
    """Return the methods of this library that a class or one of its bases outside of it has overridden."""
    known = {name for base in cls.__mro__ if ours(base) for name in vars(base)}
    others = (vars(base) for base in cls.__mro__ if not ours(base))
    found = {name for own in others for name, value in own.items() if _is_method(value)}
    return sorted(name for name in found & known if not name.startswith("__"))


def replaced(thing: Any) -> list[str]:
    """Return the methods of this library that were set on an instance, as in `agent.reward = f`."""
    fields = getattr(thing, "__dataclass_fields__", {})
    cached = {
        name for base in type(thing).__mro__ for name, it in vars(base).items() if isinstance(it, cached_property)
    }
    own = getattr(thing, "__dict__", {}).keys() - fields - cached
    theirs = [vars(base) for base in type(thing).__mro__ if ours(base)]
    return sorted(name for name in own if any(_is_method(names.get(name)) for names in theirs))


def _is_method(value: Any) -> bool:
    return isinstance(value, METHODS) or (callable(value) and not isinstance(value, type))


def fused_for(agent: Agent) -> bool:
    """Return whether the fused loop does all that stepping would do with an agent."""
    if not agent.fused or agent.update_every is not None or _changed(agent) - HEEDED:
        return False
    learner = agent._learner
    known = learner is None or isinstance(learner, MindLearner)
    return known and not _changed(learner) - OF_LEARNERS


def _changed(thing: Any) -> set[str]:
    return {*overridden(type(thing)), *replaced(thing)}
