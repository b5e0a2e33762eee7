"""Evaluation while learning: fresh episodes on the posterior mean, in an environment of their own."""

import copy
import os
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Env

from rlsvi.agents.files import load_like
from rlsvi.agents.task import play_episodes
from rlsvi.callbacks.calling import Callback, Numbers
from rlsvi.core.archive import checked_target
from rlsvi.core.checks import shown, whole


class Evaluate(Callback):
    """Evaluate the policy of the posterior mean while the agent learns, and keep the best agent.

    After every `every` episodes, fresh episodes are played without learning, always with the same seeds, so that
    policies are compared under equal conditions. `results` lists the mean returns. What is learned is not changed.

    Parameters
    ----------
    every : the number of episodes of learning between evaluations.
    env : the environment to evaluate in, not the one that the agent learns in. If None, another one is made from
        its `spec`, with the same wrappers.
    episodes : the number of fresh episodes of an evaluation.
    seed : determines where each of them begins, as for `rlsvi.evaluate`.
    keep_best : a file that the agent is saved to if the mean return is larger than in all evaluations before; of
        equals, the first is kept. If an agent that has learned before goes on and the file exists, the agent in
        the file is evaluated first and is replaced only by a better one.
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
        self._env = another(env) if self.given is None else self.given
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


def another(env: Env[Any, Any]) -> Env[Any, Any]:
    """Return a second environment like `env`, made from its spec, which shows nothing."""
    spec, why = env.spec, "it was not made by gymnasium.make, or a wrapper cannot be made again"
    if spec is not None:
        spec = copy.copy(spec)
        spec.kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
        try:
            return gymnasium.make(spec)
        except Exception as error:  # of Gymnasium, or of any environment or wrapper
            why = str(error)
    raise ValueError(
        f"cannot make a second environment like env to evaluate in ({why}): give one as evaluation_env=, or as "
        "rlsvi.callbacks.Evaluate(every, env)"
    )
