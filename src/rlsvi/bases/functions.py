"""Features computed from the observation by a function or a fitted scikit-learn transformer."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from rlsvi.bases.basis import Features, from_table, vector
from rlsvi.core.checks import function_of, shown
from rlsvi.core.compile import Floats, Ints


@dataclass(frozen=True)
class StateFeatures:
    """Features of an observation, with a block of weights for every action.

    Parameters
    ----------
    function
        A function of an observation that returns its features, (d,).

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> basis = rlsvi.bases.StateFeatures(lambda observation: [1.0, observation / 10])
    >>> agent = rlsvi.RLSVI(basis=basis, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 20).episodes
    20
    """

    function: Callable[[Any], Any]

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block of d weights per action."""
        function_of("function", self.function, "an observation")
        block = np.arange(actions, dtype=np.int32)
        dim = len(vector("function", self.function(example)))

        def at(h: int, observation: Any) -> tuple[Ints, Floats]:
            check_like(example, observation)
            x = _of_length(dim, vector("function", self.function(observation)))
            return block, np.broadcast_to(x, (actions, dim))

        return _bound(actions, dim, at, states)


@dataclass(frozen=True)
class ActionFeatures:
    """Features of an observation and an action, with one block of weights for all actions.

    Parameters
    ----------
    function
        A function of an observation and an action that returns their features, (K,).

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> basis = rlsvi.bases.ActionFeatures(lambda observation, action: [1.0, observation * action])
    >>> agent = rlsvi.RLSVI(basis=basis, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 20).episodes
    20
    """

    function: Callable[[Any, int], Any]

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block of K weights."""
        function_of("function", self.function, "an observation", "an action")
        block = np.zeros(actions, dtype=np.int32)
        dim = len(vector("function", self.function(example, 0)))

        def at(h: int, observation: Any) -> tuple[Ints, Floats]:
            check_like(example, observation)
            rows = [vector("function", self.function(observation, a)) for a in range(actions)]
            return block, np.stack([_of_length(dim, x) for x in rows])

        return _bound(1, dim, at, states)


@dataclass(frozen=True)
class Transformer:
    """A fitted scikit-learn transformer of observation vectors, with a block of weights for every action.

    Parameters
    ----------
    transformer
        Anything with the method `transform` of scikit-learn, already fitted.

    Examples
    --------
    >>> import rlsvi
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> transformer = PolynomialFeatures(degree=2).fit([[0.0, 0.0]])
    >>> agent = rlsvi.StationaryRLSVI(basis=rlsvi.bases.Transformer(transformer))
    """

    transformer: Any

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block per action and one weight per output of the transformer."""
        if isinstance(self.transformer, type) or not callable(getattr(self.transformer, "transform", None)):
            raise TypeError(f"transformer must have a transform method, got {type(self.transformer).__name__}")

        def features(observation: Any) -> Floats:
            row = self.transformer.transform(np.asarray(observation, dtype=np.float64).reshape(1, -1))
            row = row.toarray() if hasattr(row, "toarray") else np.asarray(row)
            return vector("transformer", row[0])

        return StateFeatures(features).bind(states, actions, horizon, example)


def check_like(example: Any, observation: Any) -> None:
    """Raise an error if an observation is not of the kind and shape of `example`, which a function can use."""
    if isinstance(example, np.ndarray):
        try:
            like = np.shape(observation) == example.shape and np.asarray(observation).dtype.kind in "fiub"
        except ValueError:  # rows of different lengths
            like = False
        like = like or example.dtype.kind not in "fiub"
    elif isinstance(example, dict):
        like = isinstance(observation, dict) and set(example) <= set(observation)
        for key in example if like else ():
            check_like(example[key], observation[key])
    elif isinstance(example, tuple):
        like = isinstance(observation, tuple) and len(observation) == len(example)
        for one, other in zip(example, observation, strict=True) if like else ():
            check_like(one, other)
    else:
        like = isinstance(example, Number | np.generic) == isinstance(observation, Number | np.generic)
    if not like:
        what = f"numbers of shape {example.shape}" if isinstance(example, np.ndarray) else f"like {shown(example)}"
        raise ValueError(f"observation must be {what}, got {shown(observation)}: correct the environment")


def _bound(blocks: int, dim: int, at: Any, states: int | None) -> Features:
    if states is None:
        return Features(blocks, dim, at, None)
    rows = [at(0, s) for s in range(states)]
    return from_table(np.stack([phi for _, phi in rows])[None], np.stack([b for b, _ in rows]), blocks, "function")


def _of_length(dim: int, x: Floats) -> Floats:
    if len(x) != dim:
        raise ValueError(f"function must always return the same number of features: {dim} at first, now {len(x)}")
    return x
