"""Logs of episodes, to be learned from or judged later."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Env

from rlsvi.agents.playing import check_player, play
from rlsvi.agents.task import checked_env
from rlsvi.core.checks import flag, whole
from rlsvi.core.files import whole_file
from rlsvi.core.progress import bar
from rlsvi.logs.recorder import Recorder

if TYPE_CHECKING:
    import polars as pl


def record(
    env: Env[Any, Any],
    policy: Any = None,
    episodes: int = 100,
    *,
    epsilon: float = 0.0,
    deterministic: bool = True,
    learning: bool = False,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    limit: int = 10_000,
    progress: bool | None = None,
) -> "pl.DataFrame":
    """Play episodes, and return all their steps as a log that `agent.fit` takes.

    The log has the columns episode, step, observation, action, reward, next_observation, terminated and truncated;
    mask and next_mask, if the environment says which actions are legal; and propensity, the probability of the
    action under the policy, where it is known.

    Parameters
    ----------
    env : the environment, with Discrete actions.
    policy : anything with a `predict` method. If None, all legal actions are equally likely.
    episodes : the number of episodes.
    epsilon : the probability of a random legal action instead of the policy's.
    deterministic : act greedily on the posterior mean; otherwise as in learning, with one sample per episode. The
        propensities are not known then.
    learning : let the agent `policy` learn while it plays, and record what it lives through. Its own seed decides
        everything, and `epsilon`, `deterministic`, `seed` and `limit` do not apply.
    seed : determines where each episode begins, and all other randomness of the environment and of `epsilon`.
    path : a Parquet file to write the log to as well, completely or not at all.
    limit : the maximum number of steps of an episode. A longer one is cut off there.
    progress : show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.
    """
    checked_env(env)
    whole("episodes", episodes, 1, 10**8)
    recorder = Recorder(env)
    if flag("learning", learning):
        if not callable(getattr(policy, "learn", None)):
            raise TypeError(f"learning=True needs an agent that learns, got {policy!r:.80}")
        policy.learn(recorder, episodes=episodes, progress=progress)
        log = recorder.frame()
    else:
        player = Behaviour(policy, env.action_space, epsilon, flag("deterministic", deterministic), seed)
        starts = np.random.SeedSequence(whole("seed", seed, 0)).generate_state(episodes)
        with bar(episodes, "episodes", progress) as advance:
            for start in starts:
                play(player, recorder, int(start), deterministic, whole("limit", limit, 1))
                advance(1)
        log = recorder.frame(player.chances if deterministic or player.epsilon == 1 else None)
    if path is not None:
        with whole_file(Path(path)) as file:
            log.write_parquet(file)
    return log


class Behaviour:
    """A policy mixed with random actions, and the probability of each action taken."""

    def __init__(self, policy: Any, actions: Any, epsilon: float, deterministic: bool, seed: int) -> None:
        if policy is not None:
            check_player(policy)
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1], got {epsilon!r}")
        self.policy, self.epsilon = policy, 1.0 if policy is None else float(epsilon)
        self.first, self.n, self.deterministic = int(actions.start), int(actions.n), deterministic
        self.random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self.chances: list[float] = []

    def predict(
        self, observation: Any, state: Any = None, deterministic: bool = True, action_mask: Any = None
    ) -> tuple[int, Any]:
        """Return an action, and the state to pass to the next call."""
        options = {} if action_mask is None else {"action_mask": action_mask}
        legal = np.arange(self.n) if action_mask is None else np.flatnonzero(action_mask)
        proposed = None
        if self.policy is not None:
            given, state = self.policy.predict(observation, state, deterministic=deterministic, **options)
            proposed = int(np.asarray(given).item()) - self.first
        randomly = self.epsilon > 0 and self.random.random() < self.epsilon
        a = int(self.random.choice(legal)) if proposed is None or randomly else proposed
        self.chances.append(self.epsilon / len(legal) + (1 - self.epsilon) * (a == proposed))
        return self.first + a, state
