"""What is asked: the steps of a log, the policy, and which return is meant."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.offline.episodes import LoggedEpisodes
from rlsvi.offline.target import Target

MOST = 0.5  # the share of untried actions above which a value is not to be trusted
ROUNDING = 1e-9  # differences that are none, as a share of the numbers
FEW = 100  # episodes below which no spread is no certainty, and importance sampling is not to be trusted
FOLDS = 5  # parts of a log, each judged by a model of the others


class Question(NamedTuple):
    """The value of `target`: the sum of gamma^t r_t over the first `horizon` steps (0: over all) of an episode."""

    log: LoggedEpisodes
    env: Any  # only its spaces are used
    target: Target
    gamma: float
    horizon: int
    per_period: bool  # whether what follows an action depends on the period
    advance: Callable[[int], None] = lambda n: None  # is called with work that is done

    @property
    def step(self) -> Longs:
        """The period of every row."""
        return step_of(self.log)

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

    def at(self, i: int, h: int) -> Floats:
        """Return the policy at the observation of row i in period h."""
        log = self.log
        return self.target.at(h, log.observation, i, log.mask[i], int(log.row[i]))

    def after(self, i: int, h: int) -> Floats:
        """Return the policy at the observation that follows row i, in period h."""
        log = self.log
        return self.target.at(h, log.following, i, log.next_mask[i], int(log.row[i]))

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


class Fitted(NamedTuple):
    """A fitted value function, averaged over its posterior."""

    value: float
    low: float
    high: float
    first: Floats  # (E,) the value of the first observation of each episode, by a model of other episodes
    error: Floats  # (N,) r + gamma V(s') - Q(s, a) of every row, in its own period, by a model of other episodes
    untried: float  # the share of the policy's actions, at logged observations, never tried: there, or at all
    instead: str = ""  # arguments with which the value is possible, if it is not


def folds_of(log: LoggedEpisodes) -> list[Bools]:
    """Return which episodes to leave out, (E,), for values that do not depend on the episode itself."""
    numbers, folds = np.arange(log.episodes), min(FOLDS, log.episodes)
    return [numbers % folds == k for k in range(folds)] if folds > 1 else []


def step_of(log: LoggedEpisodes) -> Longs:
    """Return the period of every row of a log."""
    lengths = np.diff(log.start)
    steps: Longs = np.arange(log.steps) - np.repeat(log.start[:-1], lengths)
    return steps
