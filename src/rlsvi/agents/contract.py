"""The contract of everything that learns: what a family of agents defines, so that `Agent` can do the rest.

A learner looks at observations, plans, evaluates actions under a plan, and learns from whole episodes:

    place = learner.look(0, observation, mask)
    plan = learner.plan(sampled, stream, learning=True)
    Q = learner.values(plan, place)                               (act, observe, look at what follows)
    learner = learner.remember(steps, plan, ended=True)

`counters` contains the episodes and steps learned from. It changes last and together with everything else: either
in the same compiled call, which no signal can interrupt, or as `remember` returns a new learner and leaves this
one unchanged. After an error or interrupt, the counters thus show whether an episode was learned from.
An agent that learns within an episode (`update_every`) keeps the learner of the last complete episode until the
end: a learner returned with ended=False belongs to the episode, and the next call may change it.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from rlsvi.core.compile import Bools, Floats, Longs, Words
from rlsvi.core.regression import FactorError

POSTERIOR, ACTION, EPISODE, PREDICT = range(4)  # the random streams of an agent
EPISODES, STEPS = range(2)  # the counters of a learner


class NothingLearned(RuntimeError):
    """An agent was asked to act on what it has learned, and has learned nothing yet."""


class Place(NamedTuple):
    """An observation in its period, as a learner sees it."""

    h: int  # the period, or the number of steps since the episode began
    observation: Any  # checked; states count from 0
    legal: Bools  # (A,)
    row: int = -1  # of a state known to the learner
    block: Any = None  # (A,) the blocks of weights of all actions
    x: Any = None  # their features, (A, d), or any other description of the observation

    def narrowed(self, known: Bools, learning: bool) -> "Place":
        """Return the place with the actions legal here before; only a prediction may restrict them further."""
        if learning and (known != self.legal).any():
            raise ValueError(
                f"the action mask of state {self.observation} in period {self.h} has changed: legal actions must "
                "depend on the period and the observation alone, so put into the observation what they depend on"
            )
        if not (self.legal & known).any():
            raise ValueError("action_mask allows only actions that were not legal in this state before")
        return self._replace(legal=self.legal & known)


class Step(NamedTuple):
    """An action at a place, its reward, and the place that followed, or None if the episode terminated."""

    place: Place
    action: int
    reward: float
    following: Place | None


class Learner(Protocol):
    """What was learned, and how to learn more."""

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, and any other counters."""

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Check an observation and its action mask, and find its features. Nothing is changed.

        If legal actions must not change, `learning` refuses another mask; a prediction may restrict them.
        """

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Any:
        """Return a sample of the posterior to act on, or its mean. `learning`: the episode will be remembered."""

    def values(self, plan: Any, place: Place) -> Floats:
        """Return Q(s, .) under a plan, (A,)."""

    def remember(self, steps: list[Step], plan: Any, ended: bool) -> Self:
        """Learn from steps played with `plan`, all of them or none, and return the learner to continue with."""

    def state(self) -> dict[str, Any]:
        """Return all arrays that a file must contain."""


def checked_values(Q: Floats, place: Place) -> Floats:
    """Return the values of a learner in the form that compiled code uses: one number per action."""
    given = np.ascontiguousarray(Q, dtype=np.float64)
    if given.shape != place.legal.shape:
        raise ValueError(f"a learner's values must have shape {place.legal.shape}, got {given.shape}")
    return given


REGISTRY: dict[str, Any] = {}  # all classes of agents, by their names in files


def register(cls: type) -> None:
    """Make a class of agents known to `rlsvi.load`. Classes of other packages are named with their module."""
    ours = cls.__module__.startswith("rlsvi.")
    REGISTRY[cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"] = cls


Broken = Callable[[], FactorError]


def broken() -> FactorError:
    """Return the error for compiled code that reports numbers that are not finite."""
    return FactorError(
        "a posterior factor or value stopped being finite: features, rewards, 1/lam or sigma are too large "
        "for float64; scale them down"
    )


def diverged() -> FactorError:
    """Return the error for values of a discounted problem that are not finite."""
    return FactorError(
        "the values diverged: a weight or value is no longer a finite number; use a smaller gamma, features and "
        "rewards of a smaller scale, or a larger lam"
    )


class DivergenceWarning(UserWarning):
    """Targets have grown beyond what rewards and discount can explain."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, however deep inside of it this call is."""
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "rlsvi" and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
