"""Evaluation of an agent's policy in new episodes of a Gymnasium environment."""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import Env

from rlsvi.core.checks import flag, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.envs.task import MOST_STEPS, check_spaces, horizon_of, play_episodes
from rlsvi.html import html_table
from rlsvi.offline.off_policy import is_function
from rlsvi.offline.recorder import OTHERS, BehaviourPolicy
from rlsvi.progress import bar
from rlsvi.study.statistics import Interval, mean


class Evaluation(NamedTuple):
    """The returns of new episodes.

    Attributes
    ----------
    returns
        The sum of the rewards of each episode, (n,).
    steps
        The number of steps of all episodes.
    cut
        The number of episodes that were cut off at the limit, or at the agent's horizon.
    horizon
        The agent's horizon if it is shorter than the limit; otherwise 0.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> result = rlsvi.Evaluation(returns=np.array([1.0, 2.0, 3.0]), steps=30, cut=0)
    >>> result.mean, round(result.error, 3)
    (2.0, 0.577)
    """

    returns: Floats  # (n,) the sum of the rewards of each episode
    steps: int  # in all episodes
    cut: int  # episodes that were cut off at the limit, or at the agent's horizon
    horizon: int = 0  # of the agent, if it is shorter than the limit

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite for a single episode."""
        n = len(self.returns)
        return float(self.returns.std(ddof=1) / n**0.5) if n > 1 else np.inf

    @property
    def interval(self) -> Interval:
        """The mean and its 95% Student interval."""
        return mean(self.returns)

    def summary(self) -> dict[str, Any]:
        """Return everything as plain numbers, with None for what a single episode cannot tell."""
        _, low, high = (v if np.isfinite(v) else None for v in self.interval)
        return {
            "episodes": len(self.returns),
            "mean": self.mean,
            "standard_error": self.error if np.isfinite(self.error) else None,
            "low": low,
            "high": high,
            "min": float(self.returns.min()),
            "max": float(self.returns.max()),
            "steps": self.steps,
            "cut": self.cut,
        }

    def __repr__(self) -> str:
        return f"Evaluation({self})"

    def _repr_html_(self) -> str:
        known = {name: value for name, value in self.summary().items() if value is not None}
        return html_table(
            "Evaluation", ((name.replace("_", " "), f"{value:.6g}") for name, value in known.items())
        )

    def __str__(self) -> str:
        n, many = len(self.returns), len(self.returns) > 1
        lines = f"mean return {self.mean:.2f} of {n} fresh episode{'s' * many}"
        if many:
            _, low, high = self.interval
            lines += f" (standard error {self.error:.2g}, 95% interval {low:.2f} to {high:.2f}), "
            lines += f"smallest {self.returns.min():.2f}, largest {self.returns.max():.2f}"
        if self.cut:
            lines += f"; {self.cut} did not end and {'was' if self.cut == 1 else 'were'} cut off"
            lines += f" after the agent's horizon of {self.horizon} steps" if self.horizon else ""
        return lines


def evaluate(
    agent: Any,
    env: Env[Any, Any],
    episodes: int = 100,
    *,
    seed: int = 0,
    deterministic: bool = True,
    limit: int = MOST_STEPS,
    progress: bool | None = None,
) -> Evaluation:
    """Play new episodes without learning from them.

    Parameters
    ----------
    agent
        Anything with a `predict` method, such as an agent of this library or of stable-baselines3, or a function
        of an observation that returns an action or the probabilities of all actions. If None, random play, where
        all legal actions are equally likely; as for `rlsvi.record`.
    env
        The environment.
    episodes
        The number of episodes.
    seed
        Determines where each episode begins, and all other randomness of the environment.
    deterministic
        Act greedily on the posterior mean; otherwise as in learning, with one sample per episode.
    limit
        The maximum number of steps of an episode. A longer one is cut off there, and counts as it is; also after
        the `horizon` of an agent that knows no later values.
    progress
        Show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/DeepSea-v0", size=5)
    >>> agent = rlsvi.RLSVI(seed=0).learn(env, 200)
    >>> rlsvi.evaluate(agent, env, episodes=10).mean
    0.99
    """
    drawn = agent is None or is_function(agent, OTHERS, "agent")
    if not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
        raise TypeError(f"env must be a Gymnasium environment, as gymnasium.make returns it, got {shown(env)}")
    check_spaces(env)
    flag("deterministic", deterministic)
    whole("seed", seed, 0)
    whole("episodes", episodes, 1, 10**8)
    whole("limit", limit, 1)
    player = BehaviourPolicy(agent, env.action_space, 0.0, deterministic, seed) if drawn else agent
    horizon = horizon_of(player)
    with bar(episodes, "fresh episodes", progress) as advance:
        played = play_episodes(player, env, episodes, seed, deterministic, limit, advance)
    return Evaluation(*played, horizon if horizon < limit else 0)
