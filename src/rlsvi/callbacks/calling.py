"""What `learn` tells after every episode, and whom: functions and callbacks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from gymnasium import Env

from rlsvi.core.checks import shown

Numbers = dict[str, float]
FIELDS = ("episodes", "steps", "return", "length", "seconds", "cpu_seconds")  # of every agent
DIAGNOSTICS = ("sweeps", "noise", "bounds_hit")  # of agents that have them
EVALUATIONS = ("evaluation_return", "evaluation_error")  # of episodes after which there was one


class Callback:
    """Something that `learn(..., on_episode=callback)` tells of every episode; override what you need.

    Callbacks are called in the order in which they are given, so that one that logs evaluations comes after the
    one that evaluates. An error in a callback ends learning; the agent is then as after its last episode.
    """

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Called before the first episode. Whatever can be refused should be refused here."""

    def episode(self, agent: Any, numbers: Numbers) -> object:
        """Called after every episode. If it returns False, learning ends once all callbacks were called.

        numbers : the episodes and steps learned from so far; the return and length of this episode, and the
            seconds by the clock (`seconds`) and of the processor (`cpu_seconds`) for playing and learning it; what
            `agent.diagnostics()` tells; and what callbacks before this one have added.
        """

    def end(self) -> None:
        """Called when learning ends, also by an error or an interrupt."""


Function = Callable[[Any, float], object]  # of the agent, and the return of the episode just learned from
OnEpisode = Function | Callback | Sequence[Function | Callback]


class FunctionCallback(Callback):
    """A function of the agent and the return."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def episode(self, agent: Any, numbers: Numbers) -> object:
        """Call the function."""
        return self.function(agent, numbers["return"])


def callbacks_of(on_episode: OnEpisode | None) -> list[Callback]:
    """Return the argument `on_episode` as a list of callbacks."""
    given: Any = on_episode if isinstance(on_episode, list | tuple) else [on_episode] * (on_episode is not None)
    for one in given:
        if isinstance(one, type) or not (isinstance(one, Callback) or callable(one)):
            raise TypeError(
                "on_episode must be a function of the agent and the return, a callback such as "
                f"rlsvi.callbacks.CSV(path), or a list of these, got {shown(one)}"
            )
    return [one if isinstance(one, Callback) else FunctionCallback(one) for one in given]


@contextmanager
def begun_callbacks(
    callbacks: list[Callback], agent: Any, env: Env[Any, Any]
) -> Iterator[Callable[[Numbers], bool]]:
    """Yield a function that tells all callbacks of an episode, and returns whether one wants to end learning."""
    with ExitStack() as stack:
        for callback in callbacks:
            callback.begin(agent, env)
            stack.callback(callback.end)

        def tell(numbers: Numbers) -> bool:
            answers = [callback.episode(agent, numbers) for callback in callbacks]  # all, to log the last episode
            return any(isinstance(answer, bool | np.bool_) and not answer for answer in answers)

        yield tell
