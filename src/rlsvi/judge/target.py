"""The policy that is judged: the probability of every action at an observation."""

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from rlsvi.agents.predicting import Predicting
from rlsvi.core.compile import Bools, Floats

TOLERANCE = 1e-6  # of the sum of probabilities


class Target:
    """An agent, anything else with `predict`, or a function of an observation."""

    def __init__(self, policy: Any, actions: Discrete) -> None:
        self.first, self.n = int(actions.start), int(actions.n)
        self.policy, self.plays = policy, callable(getattr(policy, "predict", None))
        if isinstance(policy, type) or not (self.plays or callable(policy)):
            raise TypeError(
                "policy must be an agent, anything else with a method predict, or a function of an observation, "
                f"got {policy!r:.80}"
            )
        if (held := getattr(policy, "held", 1)) > 1:
            raise ValueError(
                f"policy holds each action for {held} steps, so that its actions do not follow from one "
                "observation: judge an agent with repeat=1"
            )
        own = isinstance(policy, Predicting) and policy._task is not None
        self.periods = policy._task.horizon if own else 0  # 0: it acts in the same way in all periods
        self._known: dict[Any, Floats] = {}  # of numbered observations and text

    def at(self, h: int, observation: Any, mask: Bools | None, row: int) -> Floats:
        """Return the probabilities of the actions, (A,), at an observation in a row of the log."""
        if not isinstance(observation, int | str):
            return self._checked(h, observation, mask, row)
        key = h if self.periods else 0, observation, None if mask is None else mask.tobytes()
        if key not in self._known:
            self._known[key] = self._checked(h, observation, mask, row)
        return self._known[key]

    def _checked(self, h: int, observation: Any, mask: Bools | None, row: int) -> Floats:
        given = self._asked(h, observation, mask) if self.plays else self.policy(observation)
        try:
            chances = self._probabilities(np.asarray(given))
        except ValueError as error:
            raise ValueError(f"policy is wrong at the observation of row {row} of the log: {error}") from None
        if mask is not None and (chances > 0)[~mask].any():
            a = int(np.flatnonzero((chances > 0) & ~mask)[0]) + self.first
            raise ValueError(
                f"policy takes action {a} at the observation of row {row} of the log, but the mask does not allow "
                "it: let the policy choose among legal actions"
            )
        return chances

    def _asked(self, h: int, observation: Any, mask: Bools | None) -> Any:
        """Return the action that `predict` gives on the posterior mean."""
        options: dict[str, Any] = {} if mask is None else {"action_mask": mask}
        state = h if self.periods else None
        action, after = self.policy.predict(observation, state, deterministic=True, **options)
        if after is not None and not isinstance(self.policy, Predicting):
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
