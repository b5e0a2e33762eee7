"""The policy that is judged: the probability of every action at an observation."""

import inspect
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from rlsvi.agents.agent import Agent
from rlsvi.agents.task import check_function
from rlsvi.core.checks import shown
from rlsvi.core.compile import Bools, Floats
from rlsvi.offline.observations import Observations

TOLERANCE = 1e-6  # of probabilities and of their sum
REPEATED = 20  # the number of observations at which the policy is asked several times
TIMES = 5  # how often it is asked there, in order to see whether it acts at random


class Target:
    """An agent, anything else with `predict`, or a function of an observation."""

    def __init__(self, policy: Any, actions: Discrete) -> None:
        self.first, self.n = int(actions.start), int(actions.n)
        self.policy, self.plays = policy, callable(getattr(policy, "predict", None))
        if isinstance(policy, type) or not (self.plays or callable(policy)):
            raise TypeError(
                "policy must be an agent, anything else with a method predict, or a function of an observation, "
                f"got {shown(policy)}"
            )
        if not self.plays:
            check_function(policy)
        if (held := getattr(policy, "held", 1)) > 1:
            raise ValueError(
                f"policy holds each action for {held} steps, so that its actions do not follow from one "
                "observation: judge an agent with repeat=1"
            )
        own = isinstance(policy, Agent) and policy._task is not None
        self.periods = policy._task.horizon if own else 0  # 0: it acts in the same way in all periods
        self._takes = parameters_of(policy.predict) if self.plays else None  # None: anything
        self._left = REPEATED
        self._known: dict[Any, Floats] = {}

    def at(self, h: int, observations: Observations, i: int, mask: Bools | None, row: int) -> Floats:
        """Return the probabilities of the actions, (A,), at observation i, which is in a row of the log."""
        key = h if self.periods else 0, observations.key(i), None if mask is None else mask.tobytes()
        if key not in self._known:
            self._known[key] = self._checked(h, observations.at(i), mask, row)
        return self._known[key]

    def _checked(self, h: int, observation: Any, mask: Bools | None, row: int) -> Floats:
        """Ask the policy, several times at the first observations, and check the answer."""
        chances = self._answer(h, observation, mask, row)
        for _ in range(TIMES - 1 if self._left else 0):
            if np.abs(self._answer(h, observation, mask, row) - chances).max() > TOLERANCE:
                raise ValueError(
                    f"policy answers differently when it is asked again at the observation of row {row} of the "
                    "log, so it acts at random: let it return the probabilities of all actions instead"
                )
        self._left = max(self._left - 1, 0)
        if mask is not None and (chances > 0)[~mask].any():
            a = int(np.flatnonzero((chances > 0) & ~mask)[0]) + self.first
            raise ValueError(
                f"policy takes action {a} at the observation of row {row} of the log, but the mask does not allow "
                "it: let the policy choose among legal actions"
            )
        return chances

    def _answer(self, h: int, observation: Any, mask: Bools | None, row: int) -> Floats:
        try:
            given = self._asked(h, observation, mask) if self.plays else self.policy(observation)
        except Exception as error:
            error.add_note(f"policy was asked for an action at the observation of row {row} of the log")
            raise
        try:
            return self._probabilities(np.asarray(given))
        except ValueError as error:
            raise ValueError(f"policy is wrong at the observation of row {row} of the log: {error}") from None

    def _asked(self, h: int, observation: Any, mask: Bools | None) -> Any:
        """Return the action that `predict` gives on the posterior mean, called with what it takes."""
        options: dict[str, Any] = {"state": h if self.periods else None, "deterministic": True}
        if mask is not None:
            options["action_mask"] = mask
        takes = options if self._takes is None else self._takes
        given = self.policy.predict(observation, **{name: v for name, v in options.items() if name in takes})
        action, after = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if after is not None and not isinstance(self.policy, Agent):
            raise TypeError("policy.predict returns a state: only policies of a single observation can be judged")
        return action

    def _probabilities(self, given: Any) -> Floats:
        """Return an action or a vector of probabilities as probabilities."""
        last = self.first + self.n - 1
        if given.dtype.kind in "iu" and given.size == 1:
            a = int(given.item()) - self.first
            if not 0 <= a < self.n:
                raise ValueError(f"actions are {self.first} to {last}, it gives {a + self.first}")
            one: Floats = np.eye(1, self.n, a)[0]
            return one
        if given.dtype.kind not in "fiub" or given.shape != (self.n,):
            raise ValueError(
                f"it must give an action, {self.first} to {last}, or {self.n} probabilities, got {given!r:.80}"
            )
        chances: Floats = given.astype(np.float64)
        if not (chances >= 0).all() or abs(chances.sum() - 1) > TOLERANCE:
            raise ValueError(
                f"probabilities must not be negative, and must add up to 1; they add up to {chances.sum():.6g}"
            )
        chances /= chances.sum()
        return chances


def parameters_of(function: Any) -> set[str] | None:
    """Return the names that a function takes; None if it takes any, or does not say."""
    try:
        takes = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    return None if any(it.kind is it.VAR_KEYWORD for it in takes.values()) else set(takes)
