"""The off-policy problem: what a target policy is worth, given a log of other policies."""

from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from math import prod
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.checks import function_of, shown
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.envs.actions import Choices, numbering
from rlsvi.envs.task import Task
from rlsvi.offline.log import LoggedEpisodes, Observations

TOLERANCE = 1e-6  # of probabilities and of their sum
REPEATED = 20  # the number of observations at which the policy is asked several times
TIMES_ASKED = 5  # how often it is asked there, in order to see whether it acts at random


class OffPolicyProblem(NamedTuple):
    """The value of `target`: the sum of gamma^t r_t over the first `horizon` steps (0: over all) of an episode."""

    log: LoggedEpisodes
    env: Any  # only its spaces are used
    target: "TargetPolicy"
    gamma: float
    horizon: int
    per_period: bool  # whether what follows an action depends on the period
    advance: Callable[[int], None] = lambda n: None  # is called with work that is done

    @property
    def step(self) -> Longs:
        """The period of every row."""
        return self.log.period

    @property
    def used(self) -> Bools:
        """The rows that a model is learned from: rows beyond the horizon say nothing about other periods."""
        return self.step < self.horizon if self.per_period else np.ones(self.log.steps, np.bool_)

    @property
    def over(self) -> Bools:
        """The rows after which nothing follows that counts, whatever the policy does."""
        last: Bools = self.log.terminated.copy()
        if self.per_period:
            last |= self.step >= self.horizon - 1
        return last

    @property
    def periodic(self) -> bool:
        """Whether the policy depends on the period in a model that does not."""
        return bool(self.target.periods) and not self.per_period and self.horizon > 0

    def policy_at(self, i: int, h: int) -> Floats:
        """Return the policy at the observation of row i in period h."""
        log = self.log
        return self.target.at(h, log.observation, i, log.mask.at(i), int(log.row[i]))

    def policy_after(self, i: int, h: int) -> Floats:
        """Return the policy at the observation that follows row i, in period h."""
        log = self.log
        return self.target.at(h, log.following, i, log.next_mask.at(i), int(log.row[i]))

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the greatest value that the rewards of the log allow."""
        reward, gamma, H = self.log.reward, self.gamma, self.horizon
        steps = H if gamma == 1 else (1 - gamma**H if H else 1) / (1 - gamma)
        return steps * min(0.0, float(reward.min())), steps * max(0.0, float(reward.max()))

    def allows(self, value: float) -> bool:
        """Return whether a value is possible, but for rounding."""
        low, high = self.possible
        slack = 1e-6 * (high - low) + 1e-9
        return low - slack <= value <= high + slack


class TargetPolicy:
    """The probabilities of actions by an agent, anything else with `predict`, or a function of an observation."""

    def __init__(self, policy: Any, actions: Any) -> None:
        self.first, self.n, self.choices = numbering(actions)
        self.policy, self.plays = policy, not is_function(policy)
        if (held := getattr(policy, "held", 1)) > 1:
            raise ValueError(
                f"policy holds each action for {held} steps, so that its actions do not follow from one "
                "observation: judge an agent with repeat=1"
            )
        task = getattr(policy, "_task", None)
        self.is_agent = isinstance(task, Task)  # the state that it passes on is the period
        self.periods = task.horizon if isinstance(task, Task) else 0  # 0: it acts alike in all periods
        self._takes: set[str] | None = None  # the arguments of `predict`; None: any
        if self.plays:
            with suppress(TypeError, ValueError):  # it does not tell what it takes
                takes = signature(policy.predict).parameters
                if not any(it.kind is it.VAR_KEYWORD for it in takes.values()):
                    self._takes = set(takes)
        self._left = REPEATED
        self._known: dict[Any, Floats] = {}

    def at(self, h: int, observations: Observations, i: int, mask: Bools | None, row: int) -> Floats:
        """Return the probabilities of the actions, (A,), at observation i, which is in a row of the log."""
        key = h if self.periods else 0, observations.key(i), None if mask is None else mask.tobytes()
        if key not in self._known:
            self._known[key] = self._ask(h, observations.at(i), mask, row)
        return self._known[key]

    def _ask(self, h: int, observation: Any, mask: Bools | None, row: int) -> Floats:
        """Ask the policy, several times at the first observations, and check the answer."""
        chances = self._answer(h, observation, mask, row)
        for _ in range(TIMES_ASKED - 1 if self._left else 0):
            if np.abs(self._answer(h, observation, mask, row) - chances).max() > TOLERANCE:
                raise ValueError(
                    f"policy answers differently when it is asked again at the observation of row {row} of the "
                    "log, so it acts at random: let it return the probabilities of all actions instead"
                )
        self._left = max(self._left - 1, 0)
        return chances

    def _answer(self, h: int, observation: Any, mask: Bools | None, row: int) -> Floats:
        try:
            given = self._predict(h, observation, mask) if self.plays else self.policy(observation)
        except Exception as error:
            error.add_note(f"policy was asked for an action at the observation of row {row} of the log")
            raise
        try:
            return probabilities_of(given, self.first, self.n, mask, self.choices)[0]
        except ValueError as error:
            raise ValueError(f"at the observation of row {row} of the log: {error}") from None

    def _predict(self, h: int, observation: Any, mask: Bools | None) -> Any:
        """Return the action that `predict` gives on the posterior mean, called with what it takes."""
        options: dict[str, Any] = {"state": h if self.periods else None, "deterministic": True}
        if mask is not None:
            options["action_mask"] = mask
        takes = options if self._takes is None else self._takes
        given = self.policy.predict(observation, **{name: v for name, v in options.items() if name in takes})
        action, after = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if after is not None and not self.is_agent:
            raise TypeError("policy.predict returns a state: only policies of a single observation can be judged")
        return action


def is_function(policy: Any, others: str = "or a function of an observation", name: str = "policy") -> bool:
    """Return whether a policy is a function of an observation, or raise an error if it has no `predict` either."""
    if isinstance(policy, type) or not (callable(policy) or callable(getattr(policy, "predict", None))):
        raise TypeError(
            f"{name} must be an agent, anything else with a method predict, {others}, got {shown(policy)}"
        )
    if callable(getattr(policy, "predict", None)):
        return False
    function_of(name, policy, "one observation")
    return True


def probabilities_of(
    given: Any, first: int, n: int, legal: Bools | None, choices: Choices | None = None
) -> tuple[Floats, bool]:
    """Return the answer of a policy as probabilities of all actions, and whether it gave them itself.

    The answer is an action, first .. first + n - 1, or one of the space of the choices, of which the nearest
    counts; or n probabilities, of legal actions alone.
    """
    names = f"of {choices}" if choices else f"{first} to {first + n - 1}"
    legal = np.ones(n, np.bool_) if legal is None else legal
    try:
        answer = np.asarray(given)
    except ValueError:  # lists of different lengths
        answer = np.asarray(None)
    if choices is not None and answer.dtype.kind in "fiub" and answer.size == prod(choices.shape):
        a = choices.number(answer)
        if not legal[a]:
            raise ValueError(f"policy gives action {shown(given)}: the mask does not allow it")
        return np.eye(1, n, a)[0], False
    if choices is None and answer.dtype.kind in "iu" and answer.size == 1:
        a = int(answer.item()) - first
        if not (0 <= a < n and legal[a]):
            why = "the mask does not allow it" if 0 <= a < n else f"actions are {names}"
            raise ValueError(f"policy gives action {a + first}: {why}")
        return np.eye(1, n, a)[0], False
    if answer.dtype.kind not in "fiub" or answer.shape != (n,):
        raise ValueError(f"policy must give an action, {names}, or {n} probabilities, got {shown(given)}")
    chances: Floats = answer.astype(np.float64)
    if not (chances >= 0).all() or abs(chances.sum() - 1) > TOLERANCE:
        raise ValueError(
            f"policy gives probabilities that add up to {chances.sum():.6g}: they must not be negative, and must "
            "add up to 1"
        )
    if chances[~legal].any():
        a = int(np.flatnonzero((chances > 0) & ~legal)[0]) + first
        raise ValueError(f"policy gives a probability to action {a}: the mask does not allow it")
    return chances / chances.sum(), True
