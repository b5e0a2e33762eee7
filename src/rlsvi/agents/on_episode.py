"""After every episode of `learn`: callbacks are told of it, the agent is evaluated, and it is saved."""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Env

from rlsvi.agents.files import load_like
from rlsvi.core.archive import checked_target
from rlsvi.core.checks import shown, takes, whole
from rlsvi.envs.description import copied_env
from rlsvi.envs.task import play_episodes

Numbers = dict[str, float]


class Callback:
    """Something that `learn(..., on_episode=callback)` tells of every episode; override what you need.

    Callbacks are called in the order in which they are given, so that one that logs evaluations comes after the
    one that evaluates. An error in a callback ends learning; the agent is then as after its last episode.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> class Stop(rlsvi.callbacks.Callback):
    ...     def episode(self, agent, numbers):
    ...         return numbers["episodes"] < 10
    >>> env = gymnasium.make("rlsvi/Chain-v0", length=5)
    >>> rlsvi.RLSVI(seed=0).learn(env, 100, on_episode=Stop()).episodes
    10
    """

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Called before the first episode. Whatever can be refused should be refused here.

        Parameters
        ----------
        agent
            The agent.
        env
            The environment it learns in.
        """

    def episode(self, agent: Any, numbers: Numbers) -> object:
        """Called after every episode. If it returns False, learning ends once all callbacks were called.

        Parameters
        ----------
        agent
            The agent.
        numbers
            The episodes and steps learned from so far; the return and length of this episode, and the seconds by
            the clock (`seconds`) and of the processor (`cpu_seconds`) for playing and learning it; what
            `agent.diagnostics()` tells; and what callbacks before this one have added.

        Returns
        -------
        object
            False to end learning; anything else, such as None, to go on.
        """

    def end(self) -> None:
        """Called when learning ends, also by an error or an interrupt."""


Function = Callable[[Any, float], object]  # of the agent, and the return of the episode just learned from
OnEpisode = Function | Callback | Sequence[Function | Callback]


class Evaluate(Callback):
    """Evaluate the policy of the posterior mean while the agent learns, and keep the best agent.

    After every `every` episodes, fresh episodes are played without learning, always with the same seeds, so that
    policies are compared under equal conditions. `results` lists the mean returns. What is learned is not changed.

    Parameters
    ----------
    every
        The number of episodes of learning between evaluations.
    env
        The environment to evaluate in, not the one that the agent learns in. If None, another one is made from its
        `spec`, with the same wrappers, or where it has none, a copy of it (`copy.deepcopy`) is played.
    episodes
        The number of fresh episodes of an evaluation.
    seed
        Determines where each of them begins, as for `rlsvi.evaluate`.
    keep_best
        A file that the agent is saved to if the mean return is larger than in all evaluations before; of equals,
        the first is kept. If an agent that has learned before goes on and the file exists, the agent in the file
        is evaluated first and is replaced only by a better one.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> evaluate = rlsvi.callbacks.Evaluate(25, episodes=5, keep_best="best.npz")
    >>> agent = rlsvi.RLSVI(seed=0)
    >>> agent = agent.learn(gymnasium.make("rlsvi/DeepSea-v0", size=5), 100, on_episode=evaluate)
    >>> len(evaluate.results)
    4
    """

    def __init__(
        self,
        every: int,
        env: Env[Any, Any] | None = None,
        *,
        episodes: int = 20,
        seed: int = 0,
        keep_best: str | os.PathLike[str] | None = None,
    ) -> None:
        self.every, self.given = whole("every", every, 1), env
        if env is not None and not isinstance(env, Env):
            raise TypeError(
                f"env (evaluation_env in learn) must be a Gymnasium environment, to evaluate in, got {shown(env)}"
            )
        self.episodes, self.seed = whole("episodes", episodes, 1, 10**8), whole("seed", seed, 0)
        self.keep_best = None if keep_best is None else checked_target(keep_best, name="keep_best")
        self.results: list[dict[str, float]] = []  # episodes and steps learned from, mean return, standard error
        self.best = -np.inf  # the largest mean return so far
        self._env: Env[Any, Any] | None = None

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Make the environment, and find out what the best agent so far is worth."""
        if self.keep_best is not None:
            checked_target(self.keep_best)
            agent._check_can_be_saved()
        if self.given is not None and self.given.unwrapped is env.unwrapped:
            raise ValueError(
                "the agent learns in the environment to evaluate in: make a second one for evaluation"
            )
        self._env = _second_env(env) if self.given is None else self.given
        try:
            task, learned = agent._task_of(self._env), agent._task_of(env)
            if task != learned or self._env.observation_space != env.observation_space:
                raise ValueError(
                    f"the environment to evaluate in is {task} with observations {self._env.observation_space}, "
                    f"but the agent learns {learned} with {env.observation_space}: both must be the same"
                )
            self.best = -np.inf
            if self.keep_best is not None and agent.steps > 0 and self.keep_best.exists():
                kept = load_like(agent, self.keep_best)
                self.best = float(self._returns(kept).mean()) if kept.steps > 0 else -np.inf
        except BaseException:
            self.end()
            raise

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Evaluate if it is time, and save the agent if it is the best so far."""
        if agent.episodes % self.every:
            return
        returns = self._returns(agent)
        value, n = float(returns.mean()), len(returns)
        numbers["evaluation_return"] = value
        if n > 1:
            numbers["evaluation_error"] = float(returns.std(ddof=1) / n**0.5)
        names = "episodes", "steps", "evaluation_return", "evaluation_error"
        self.results.append({name: numbers[name] for name in names if name in numbers})
        if value > self.best:
            if self.keep_best is not None:
                agent.save(self.keep_best)
            self.best = value

    def end(self) -> None:
        """Close the environment, unless it was given."""
        if self.given is None and self._env is not None:
            self._env.close()
        self._env = None

    def _returns(self, agent: Any) -> Any:
        assert self._env is not None
        with agent._keep_streams():
            return play_episodes(agent, self._env, self.episodes, self.seed)[0]


def _second_env(env: Env[Any, Any]) -> Env[Any, Any]:
    """Return a second environment like `env`, made from its spec or else a copy, which shows nothing."""
    if env.spec is not None:
        spec = copy.copy(env.spec)
        spec.kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
        with suppress(Exception):  # of Gymnasium, or of any environment or wrapper that cannot be made again
            return gymnasium.make(spec)
    give = "give a second one to evaluate in, as evaluation_env= or as rlsvi.callbacks.Evaluate(every, env)"
    copied = copied_env("env", env, give)
    if copied.unwrapped.render_mode is not None:
        with suppress(AttributeError):  # of a property that cannot be set
            copied.unwrapped.render_mode = None
    return copied


class Checkpoint(Callback):
    """Save the agent whenever the number of episodes it has learned from is a multiple of `every`.

    The file is replaced as a whole, so that it always contains the last complete checkpoint, even if the process
    is killed or the disk is full. `rlsvi.load(path).learn(env, ...)` continues as if learning had never stopped,
    bit for bit. In a list of callbacks it should be the last, so that logs are not behind the checkpoint.

    Parameters
    ----------
    every
        The number of episodes between checkpoints.
    path
        The file. If its name contains `{episodes}`, the number of episodes takes its place, and all are kept.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> save = rlsvi.callbacks.Checkpoint(10, "agent.npz")
    >>> agent = rlsvi.RLSVI(seed=0).learn(gymnasium.make("rlsvi/Chain-v0", length=5), 25, on_episode=save)
    >>> rlsvi.load("agent.npz").episodes
    20
    """

    def __init__(self, every: int, path: str | os.PathLike[str]) -> None:
        self.every, self.path = whole("every", every, 1), checked_target(path)

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Check that the agent can be saved."""
        checked_target(self.path)
        agent._check_can_be_saved()

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Save the agent if it is time."""
        if agent.episodes % self.every == 0:
            agent.save(Path(str(self.path).replace("{episodes}", str(agent.episodes))))


def callbacks_of(
    on_episode: OnEpisode | None,
    evaluate_every: Any = None,
    evaluation_env: Any = None,
    keep_best: Any = None,
    checkpoint_every: Any = None,
    checkpoint: Any = None,
) -> list[Function | Callback]:
    """Return the arguments of `learn` as what is called: evaluation first, and saving last."""
    found: list[Any] = []
    if evaluate_every is not None:
        every = whole("evaluate_every", evaluate_every, 1)
        found.append(Evaluate(every, evaluation_env, keep_best=keep_best))
    for name, value in (("keep_best", keep_best), ("evaluation_env", evaluation_env)):
        if evaluate_every is None and value is not None:
            raise ValueError(
                f"{name} needs evaluations: give evaluate_every= too, such as evaluate_every=50, or use "
                f"on_episode=rlsvi.callbacks.Evaluate(50, ...)"
            )
    given: Any = on_episode if isinstance(on_episode, list | tuple) else [on_episode] * (on_episode is not None)
    for one in given:
        if not isinstance(one, Callback) and not takes(one, 2):
            raise TypeError(
                "on_episode must be a function of the agent and the return, a callback such as "
                f"rlsvi.callbacks.CSV(path), or a list of these, got {shown(one)}"
            )
    found += given
    if (checkpoint_every is None) != (checkpoint is None):
        raise ValueError(
            "checkpoint_every and checkpoint belong together: give the number of episodes and the file, such as "
            'checkpoint_every=50, checkpoint="agent.rlsvi"'
        )
    if checkpoint is not None:
        target = checked_target(checkpoint, name="checkpoint")
        found.append(Checkpoint(whole("checkpoint_every", checkpoint_every, 1), target))
        if keep_best is not None and target == Path(keep_best):
            raise ValueError(f"checkpoint and keep_best are both {keep_best}: name two files")
    return found


@contextmanager
def open_callbacks(
    callbacks: list[Function | Callback], agent: Any, env: Env[Any, Any]
) -> Iterator[Callable[[Numbers], bool]]:
    """Yield a function that tells all callbacks of an episode, and returns whether one wants to end learning."""

    def answer(callback: Function | Callback, numbers: Numbers) -> object:
        if isinstance(callback, Callback):
            return callback.episode(agent, numbers)
        return callback(agent, numbers["return"])

    def tell(numbers: Numbers) -> bool:
        answers = [answer(callback, numbers) for callback in callbacks]  # all, to log the last episode
        return any(isinstance(each, bool | np.bool_) and not each for each in answers)

    with ExitStack() as stack:
        for callback in callbacks:
            if isinstance(callback, Callback):
                callback.begin(agent, env)
                stack.callback(callback.end)
        yield tell
