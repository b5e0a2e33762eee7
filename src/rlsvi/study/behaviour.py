"""How a recorded policy acts: its own actions, mixed with random ones, and how likely each of them was."""

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.agents.playing import check_function
from rlsvi.agents.predicting import Predicting
from rlsvi.core.checks import in_unit_interval, shown, whole
from rlsvi.core.compile import Bools, Floats

if TYPE_CHECKING:
    import polars as pl

UNKNOWN = np.nan
TOLERANCE = 1e-6  # of the sum of probabilities


class Behaviour:
    """A policy mixed with random actions, and the probability of each action taken."""

    def __init__(self, policy: Any, actions: Any, epsilon: float, deterministic: bool, seed: int) -> None:
        self.is_function = callable(policy) and not isinstance(policy, type) and not hasattr(policy, "predict")
        if self.is_function:
            check_function(policy)
        elif policy is not None and (isinstance(policy, type) or not callable(getattr(policy, "predict", None))):
            raise TypeError(
                "policy must be an agent, anything else with a method predict, a function of an observation, or "
                f"None for random actions, got {shown(policy)}"
            )
        chance = in_unit_interval("epsilon", epsilon, closed=True)
        self.policy, self.epsilon = policy, 1.0 if policy is None else chance
        self.first, self.n = int(actions.start), int(actions.n)
        own = isinstance(policy, Predicting) and type(policy).predict is Predicting.predict
        self.certain = own and deterministic  # others may break ties at random
        self.random = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0), spawn_key=(1,)))
        self.chances = array("d")  # of the actions taken

    def predict(
        self, observation: Any, state: Any = None, deterministic: bool = True, action_mask: Any = None
    ) -> tuple[int, Any]:
        """Return an action, and the state to pass to the next call."""
        legal = np.ones(self.n, np.bool_) if action_mask is None else np.asarray(action_mask).astype(np.bool_)
        given = None
        if self.is_function:
            given = self.policy(observation)
        elif self.policy is not None:
            options = {} if action_mask is None else {"action_mask": action_mask}
            given = self.policy.predict(observation, state, deterministic=deterministic, **options)
            given, state = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        known, chances = self.certain or self.epsilon == 1, np.zeros(self.n)
        if self.policy is not None:
            stated, chances = self._probabilities(given, legal)
            known = known or stated
        if self.epsilon > 0 and self.random.random() < self.epsilon:
            a = int(self.random.choice(np.flatnonzero(legal)))
        else:
            a = int(np.argmax(chances) if chances.max() == 1 else self.random.choice(self.n, p=chances))
        chance = self.epsilon / legal.sum() + (1 - self.epsilon) * chances[a]
        self.chances.append(chance if known else UNKNOWN)
        return self.first + a, state

    def _probabilities(self, given: Any, legal: Bools) -> tuple[bool, Floats]:
        """Return whether a policy gives probabilities rather than an action, and them, of legal actions alone."""
        names, answer = f"{self.first} to {self.first + self.n - 1}", given
        try:
            given = np.asarray(answer)
        except ValueError:  # lists of different lengths
            given = np.asarray(None)
        if given.dtype.kind in "iu" and given.size == 1:
            a = int(given.item()) - self.first
            if not (0 <= a < self.n and legal[a]):
                why = "the mask does not allow it" if 0 <= a < self.n else f"actions are {names}"
                raise ValueError(f"policy gives action {a + self.first}: {why}")
            return False, np.eye(1, self.n, a)[0]
        if given.dtype.kind not in "fiub" or given.shape != (self.n,):
            raise ValueError(
                f"policy must give an action, {names}, or {self.n} probabilities, got {shown(answer)}"
            )
        chances: Floats = given.astype(np.float64)
        if not (chances >= 0).all() or abs(chances.sum() - 1) > TOLERANCE:
            raise ValueError(f"policy gives probabilities that add up to {chances.sum():.6g}, not to 1")
        if chances[~legal].any():
            raise ValueError("policy gives a probability to an action that the mask does not allow")
        return True, chances / chances.sum()

    def with_propensities(self, log: "pl.DataFrame") -> "pl.DataFrame":
        """Return the log of what was played with the probabilities of the actions, if they are known."""
        import polars as pl

        chances = np.array(self.chances[: log.height])
        return log if np.isnan(chances).any() else log.with_columns(pl.Series("propensity", chances))
