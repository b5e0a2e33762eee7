"""Learning by playing: `learn`, which tells callbacks of every episode."""

import os
from collections.abc import Callable
from functools import wraps
from inspect import signature
from time import perf_counter, process_time
from typing import Any, ParamSpec, Self, TypeVar

from gymnasium import Env

from rlsvi.callbacks.calling import Numbers, OnEpisode, begun_callbacks, callbacks_of
from rlsvi.core.checks import instead, whole
from rlsvi.core.progress import bar

P = ParamSpec("P")
R = TypeVar("R")
SB3 = {  # arguments of stable-baselines3, and what to write instead
    "total_timesteps": "write steps=, as in learn(env, steps=10_000)",
    "callback": "write on_episode=, a function of the agent and the return that is called after every episode; "
    "learning ends if it returns False",
}


def explain_calls(learn: Callable[P, R]) -> Callable[P, R]:
    """Decorate `learn` so that a call with other arguments is refused with what to write instead."""
    takes = signature(learn)

    @wraps(learn)
    def called(*given: P.args, **named: P.kwargs) -> R:
        try:
            takes.bind(*given, **named)
        except TypeError as error:
            for name in named:
                if name not in takes.parameters:
                    remedy = SB3.get(name) or instead(name, list(takes.parameters)[1:])
                    raise TypeError(f"learn has no argument {name}: {remedy}") from None
            counts = "episodes" in takes.parameters
            remedy = "write learn(env, 20)" if counts else "write learn(env, steps=1000)"
            if len(given) > sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in takes.parameters.values()):
                first = "learn(env, 20)" if counts else "learn(env)"
                remedy = f"in {first}, all further arguments have names, such as steps=1000"
            raise TypeError(f"{error}: {remedy}") from None
        return learn(*given, **named)

    return called


class Learning:
    """The part of an agent that learns by playing."""

    episodes: Any
    steps: Any
    take_on: Any
    task_of: Any
    _episode: Any
    _surplus: tuple[int, int]

    @property
    def _overshoot(self) -> int:
        """The number of steps by which the last `learn(steps=)` exceeded its goal; 0 after further learning."""
        at, steps = self._surplus
        return steps if at == self.steps else 0

    @_overshoot.setter
    def _overshoot(self, steps: int) -> None:
        self._surplus = self.steps, steps

    def diagnostics(self) -> dict[str, float]:
        """Return numbers about the last plan, by name, for callbacks that log them; an agent may have none."""
        return {}

    @explain_calls
    def learn(
        self,
        env: Env[Any, Any],
        episodes: int | None = None,
        *,
        steps: int | None = None,
        progress: bool | None = None,
        on_episode: OnEpisode | None = None,
        evaluate_every: int | None = None,
        evaluation_env: Env[Any, Any] | None = None,
        keep_best: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Play and learn for `episodes` more episodes, or for at least `steps` more steps.

        `learn(env, 20)` means 20 episodes.
        The agent's seed determines everything, since it also seeds the environment at the start of every episode.
        Episodes are always completed; surplus steps count towards the next call with `steps`, so learning
        a and then b equals learning a + b. After an error or interrupt, the agent is as after its last episode.
        Callbacks do not change what is learned.

        progress : show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.
        on_episode : a function that is called after each episode with the agent and the return, a
            `rlsvi.callbacks.Callback`, or a list of these. Learning ends if one returns False.
        evaluate_every : play fresh episodes on the posterior mean, without learning, whenever the number of
            episodes learned from is a multiple of this: short for `callbacks.Evaluate`.
        evaluation_env : the environment to evaluate in. If None, one like `env` is made from `env.spec`.
        keep_best : a file that the agent is saved to whenever an evaluation is better than all before.
        checkpoint_every, checkpoint : save the agent to the file `checkpoint` whenever the number of episodes is a
            multiple of `checkpoint_every`: short for `callbacks.Checkpoint`.
        """
        from rlsvi.callbacks.shorthands import evaluating, saving  # which know of tasks

        unit, amount = amount_of(episodes, steps)
        callbacks = [
            *evaluating(evaluate_every, evaluation_env, keep_best),
            *callbacks_of(on_episode),
            *saving(checkpoint_every, checkpoint, keep_best),
        ]
        self.take_on(self.task_of(env), env)
        begin, goal = getattr(self, unit), amount - (self._overshoot if unit == "steps" else 0)
        with begun_callbacks(callbacks, self, env) as tell, bar(max(goal, 0), unit, progress) as advance:
            while getattr(self, unit) < begin + goal:
                before, counted = self._now(), getattr(self, unit)
                total = self._episode(env)
                advance(getattr(self, unit) - counted)
                if callbacks and tell(self._described(total, before)):
                    return self
        if unit == "steps":
            self._overshoot = self.steps - begin - goal
        return self

    def _now(self) -> tuple[int, float, float]:
        """Return the steps learned from, and the seconds of the clock and of the processor."""
        return self.steps, perf_counter(), process_time()

    def _described(self, total: float, before: tuple[int, float, float]) -> Numbers:
        """Return the numbers that describe an episode, given its return and `_now()` before it."""
        length, seconds, cpu_seconds = (after - past for after, past in zip(self._now(), before, strict=True))
        counted = {"episodes": self.episodes, "steps": self.steps, "return": total, "length": length}
        return {**counted, "seconds": seconds, "cpu_seconds": cpu_seconds, **self.diagnostics()}


def amount_of(episodes: int | None, steps: int | None) -> tuple[str, int]:
    """Return the unit and the amount to learn for; exactly one argument must be given."""
    if (episodes is None) == (steps is None):
        raise ValueError("give either episodes= or steps=, and only one of them: learn(env, 20) means 20 episodes")
    unit, amount = ("episodes", episodes) if steps is None else ("steps", steps)
    return unit, whole(unit, amount, 0)
