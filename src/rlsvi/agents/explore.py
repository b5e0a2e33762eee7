"""How an action is chosen from the values of all actions: greedily, or by dithering (appendix A)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rlsvi.core.archive import storable
from rlsvi.core.checks import finite, function_of, number, shaped, shown, whole
from rlsvi.core.compile import Bools, Floats, Words, compiled
from rlsvi.core.elementary import exp, power
from rlsvi.core.random import argmax_set, pick

Schedule = float | Callable[[int], float]
GREEDY, BOLTZMANN = 0, 1


@storable
@dataclass(frozen=True)
class Linear:
    """A schedule that goes from one value to another in equal steps, and then stays there.

    Parameters
    ----------
    start, end
        The first value and the last.
    episodes
        The number of episodes from the first to the last.

    Examples
    --------
    >>> import rlsvi
    >>> epsilon = rlsvi.Linear(1.0, 0.5, episodes=10)
    >>> [epsilon(episode) for episode in (0, 5, 10, 20)]
    [1.0, 0.75, 0.5, 0.5]
    """

    start: float
    end: float
    episodes: int

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            number(name, getattr(self, name))
        whole("episodes", self.episodes, 1)

    def __call__(self, episode: int) -> float:
        """Return the value in an episode."""
        return self.start + (self.end - self.start) * min(episode / self.episodes, 1.0)


@storable
@dataclass(frozen=True)
class Exponential:
    """A schedule that is multiplied by a constant after every episode.

    Parameters
    ----------
    start
        The first value.
    decay
        The factor.
    end
        The lowest value.

    Examples
    --------
    >>> import rlsvi
    >>> eta = rlsvi.Exponential(1.0, 0.5, end=0.2)
    >>> [eta(episode) for episode in range(4)]
    [1.0, 0.5, 0.25, 0.2]
    """

    start: float
    decay: float
    end: float = 0.0

    def __post_init__(self) -> None:
        for name in ("start", "decay", "end"):
            number(name, getattr(self, name))

    def __call__(self, episode: int) -> float:
        """Return the value in an episode."""
        return max(self.start * power(float(self.decay), episode), self.end)


@storable
@dataclass(frozen=True)
class Greedy:
    """Choose an action of the highest value, with ties broken uniformly.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.LSVI(explore=rlsvi.Greedy()).explore
    Greedy()
    """

    def parameters(self, first: int, episodes: int) -> tuple[int, Floats]:
        """Return the rule, and its parameter in `episodes` episodes from `first` on."""
        return GREEDY, np.zeros(episodes)


@storable
@dataclass(frozen=True)
class EpsilonGreedy:
    """Choose uniformly with probability `epsilon`, and otherwise an action of the highest value.

    Parameters
    ----------
    epsilon
        The probability: a number, or a function of the episode such as Linear.

    Examples
    --------
    >>> import rlsvi
    >>> agent = rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(rlsvi.Linear(1.0, 0.1, episodes=100)))
    """

    epsilon: Schedule = 0.1

    def parameters(self, first: int, episodes: int) -> tuple[int, Floats]:
        """Return the rule, and its parameter in `episodes` episodes from `first` on."""
        values = scheduled("epsilon", self.epsilon, first, episodes)
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"epsilon must lie in [0, 1], got {shown(self.epsilon)}")
        return GREEDY, values


@storable
@dataclass(frozen=True)
class Boltzmann:
    """Choose action a with probability proportional to exp(Q(a) / eta).

    Parameters
    ----------
    eta
        The temperature: a number, or a function of the episode such as Exponential. With a high one, all actions
        are almost equally likely.

    Examples
    --------
    >>> import rlsvi
    >>> agent = rlsvi.LSVI(explore=rlsvi.Boltzmann(0.05))
    """

    eta: Schedule = 1.0

    def parameters(self, first: int, episodes: int) -> tuple[int, Floats]:
        """Return the rule, and its parameter in `episodes` episodes from `first` on."""
        values = scheduled("eta", self.eta, first, episodes)
        if not ((values > 0) & (values < np.inf)).all():
            raise ValueError(f"eta must be positive and finite, got {shown(self.eta)}")
        return BOLTZMANN, values


Explore = Greedy | EpsilonGreedy | Boltzmann


def exploration(explore: Explore, first: int, episodes: int) -> tuple[int, Floats]:
    """Return the rule and its checked parameter in `episodes` episodes from `first` on, for compiled code."""
    rule, parameters = explore.parameters(first, episodes)
    if rule not in (GREEDY, BOLTZMANN):
        raise ValueError(f"explore must follow one of the rules of Greedy and Boltzmann, got {shown(rule)}")
    values = shaped("the parameters of explore", finite("explore", parameters), (episodes,))
    return rule, np.ascontiguousarray(values)


def scheduled(name: str, schedule: Schedule, first: int, episodes: int) -> Floats:
    """Return the values of a schedule in `episodes` episodes from `first` on."""
    if callable(schedule):
        function_of(name, schedule, "the episode")
        return shaped(name, finite(name, [schedule(first + i) for i in range(episodes)]), (episodes,))
    return np.full(episodes, number(name, schedule))


@compiled
def best_value(Q: Floats, legal: Bools) -> float:
    """Return the highest value of a legal action."""
    best = -np.inf
    for a in range(Q.size):
        if legal[a]:
            best = max(best, Q[a])
    return best


@compiled
def probabilities(rule: int, parameter: float, Q: Floats, legal: Bools, out: Floats) -> bool:
    """Compute the probability of each action. Return False if the values cannot be compared."""
    if not argmax_set(Q, legal, out):
        return False
    if rule == BOLTZMANN:
        best, total = best_value(Q, legal), 0.0
        for a in range(Q.size):
            out[a] = exp((Q[a] - best) / parameter) if legal[a] else 0.0
            total += out[a]
        for a in range(Q.size):
            out[a] /= total
    elif parameter > 0.0:
        count = 0
        for a in range(Q.size):
            count += legal[a]
        for a in range(Q.size):
            out[a] = (1.0 - parameter) * out[a] + (parameter / count if legal[a] else 0.0)
    return True


@compiled
def choose(rule: int, parameter: float, Q: Floats, legal: Bools, chances: Floats, stream: Words) -> int:
    """Choose an action, using one random number whatever the values are; -1 if they cannot be compared.

    `chances` is overwritten with the probability of each action.
    """
    if not probabilities(rule, parameter, Q, legal, chances):
        return -1
    return pick(stream, chances)
