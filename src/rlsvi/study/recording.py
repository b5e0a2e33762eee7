"""Logs of episodes, to be learned from or judged later."""

import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Env

from rlsvi.agents.agent import Agent
from rlsvi.agents.task import check_function, checked_env, play
from rlsvi.core.archive import path_of
from rlsvi.core.checks import flag, in_unit_interval, shown, whole
from rlsvi.core.compile import Bools, Floats
from rlsvi.core.files import check_folder, whole_file
from rlsvi.offline.recorder import Recorder
from rlsvi.progress import bar

if TYPE_CHECKING:
    import polars as pl


# ---- How a recorded policy acts: its own actions, mixed with random ones, and how likely each of them was ----


UNKNOWN = np.nan
TOLERANCE = 1e-6  # of the sum of probabilities


class Behaviour:
    """A policy mixed with random actions, and the probability of each action taken."""

    def __init__(self, policy: Any, actions: Any, epsilon: float, deterministic: bool, seed: int) -> None:
        self.is_function = callable(policy) and not isinstance(policy, type) and not hasattr(policy, "predict")
        if self.is_function:
            check_function(policy)
        elif policy is not None and (isinstance(policy, type) or not callable(getattr(policy, "predict", None))):
            raise TypeError(
                "policy must be an agent, anything else with a method predict, a function of an observation, or "
                f"None for random actions, got {shown(policy)}"
            )
        chance = in_unit_interval("epsilon", epsilon, closed=True)
        self.policy, self.epsilon = policy, 1.0 if policy is None else chance
        self.first, self.n = int(actions.start), int(actions.n)
        own = isinstance(policy, Agent) and type(policy).predict is Agent.predict
        self.certain = own and deterministic  # others may break ties at random
        self.random = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0), spawn_key=(1,)))
        self.chances = array("d")  # of the actions taken

    def predict(
        self, observation: Any, state: Any = None, deterministic: bool = True, action_mask: Any = None
    ) -> tuple[int, Any]:
        """Return an action, and the state to pass to the next call."""
        legal = np.ones(self.n, np.bool_) if action_mask is None else np.asarray(action_mask).astype(np.bool_)
        given = None
        if self.is_function:
            given = self.policy(observation)
        elif self.policy is not None:
            options = {} if action_mask is None else {"action_mask": action_mask}
            given = self.policy.predict(observation, state, deterministic=deterministic, **options)
            given, state = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        known, chances = self.certain or self.epsilon == 1, np.zeros(self.n)
        if self.policy is not None:
            stated, chances = self._probabilities(given, legal)
            known = known or stated
        if self.epsilon > 0 and self.random.random() < self.epsilon:
            a = int(self.random.choice(np.flatnonzero(legal)))
        else:
            a = int(np.argmax(chances) if chances.max() == 1 else self.random.choice(self.n, p=chances))
        chance = self.epsilon / legal.sum() + (1 - self.epsilon) * chances[a]
        self.chances.append(chance if known else UNKNOWN)
        return self.first + a, state

    def _probabilities(self, given: Any, legal: Bools) -> tuple[bool, Floats]:
        """Return whether a policy gives probabilities rather than an action, and them, of legal actions alone."""
        names, answer = f"{self.first} to {self.first + self.n - 1}", given
        try:
            given = np.asarray(answer)
        except ValueError:  # lists of different lengths
            given = np.asarray(None)
        if given.dtype.kind in "iu" and given.size == 1:
            a = int(given.item()) - self.first
            if not (0 <= a < self.n and legal[a]):
                why = "the mask does not allow it" if 0 <= a < self.n else f"actions are {names}"
                raise ValueError(f"policy gives action {a + self.first}: {why}")
            return False, np.eye(1, self.n, a)[0]
        if given.dtype.kind not in "fiub" or given.shape != (self.n,):
            raise ValueError(
                f"policy must give an action, {names}, or {self.n} probabilities, got {shown(answer)}"
            )
        chances: Floats = given.astype(np.float64)
        if not (chances >= 0).all() or abs(chances.sum() - 1) > TOLERANCE:
            raise ValueError(f"policy gives probabilities that add up to {chances.sum():.6g}, not to 1")
        if chances[~legal].any():
            raise ValueError("policy gives a probability to an action that the mask does not allow")
        return True, chances / chances.sum()

    def with_propensities(self, log: "pl.DataFrame") -> "pl.DataFrame":
        """Return the log of what was played with the probabilities of the actions, if they are known."""
        import polars as pl

        chances = np.array(self.chances[: log.height])
        return log if np.isnan(chances).any() else log.with_columns(pl.Series("propensity", chances))


def record(
    env: Env[Any, Any],
    policy: Any = None,
    episodes: int | None = None,
    *,
    steps: int | None = None,
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
    action under the policy, where it is known. It is known for agents of this library, for random play, and for
    policies that return probabilities.

    Parameters
    ----------
    env : the environment, with Discrete actions.
    policy : anything with a `predict` method, or a function of an observation. Either returns an action, or the
        probabilities of all actions, one of which is then drawn. If None, all legal actions are equally likely.
    episodes : the number of episodes; by default 100.
    steps : with learning=True, the number of steps instead, for agents whose `learn` takes that.
    epsilon : the probability of a random legal action instead of the policy's.
    deterministic : act greedily on the posterior mean; otherwise as in learning, with one sample per episode. The
        propensities are not known then.
    learning : let the agent `policy` learn while it plays, and record what it lives through. Its own seed decides
        everything, and `epsilon`, `deterministic`, `seed` and `limit` do not apply.
    seed : determines where each episode begins, and all other randomness of the environment and of `epsilon`.
    path : a Parquet file to write the log to as well, completely or not at all. If the environment fails, or after
        an interrupt, it contains the episodes that were finished.
    limit : the maximum number of steps of an episode. A longer one is cut off there.
    progress : show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.
    """
    checked_env(env)
    if steps is not None and (episodes is not None or not learning):
        raise ValueError("steps goes with learning=True and without episodes")
    if steps is None:
        episodes = whole("episodes", 100 if episodes is None else episodes, 1, 10**8)
    else:
        whole("steps", steps, 1)
    check_folder(None if path is None else path_of(path))
    recorder = Recorder(env)
    if flag("learning", learning):
        amount = {"episodes": episodes} if steps is None else {"steps": steps}
        learn = _learn_call(policy, recorder, amount, progress)
        with _keep_finished(recorder, path, all_steps="episodes" not in signature(policy.learn).parameters):
            learn()
        log = recorder.frame()
    else:
        assert episodes is not None
        player = Behaviour(policy, env.action_space, epsilon, flag("deterministic", deterministic), seed)
        starts = np.random.SeedSequence(seed).generate_state(episodes)
        whole("limit", limit, 1)
        with _keep_finished(recorder, path, player), bar(episodes, "episodes", progress) as advance:
            for start in starts:
                play(player, recorder, int(start), deterministic, limit)
                advance(1)
        log = player.with_propensities(recorder.frame())
    if path is not None:
        _write(log, path)
    return log


def _learn_call(
    policy: Any, recorder: Recorder, amount: dict[str, Any], progress: bool | None
) -> Callable[[], Any]:
    """Return the call that lets an agent learn, after checking that it can be called so."""
    if not callable(getattr(policy, "learn", None)):
        raise TypeError(f"learning=True needs an agent that learns, got {policy!r:.80}")
    takes = signature(policy.learn)
    options = {"progress": progress} if "progress" in takes.parameters else {}
    try:
        takes.bind(recorder, **amount, **options)
    except TypeError:
        (unit,) = amount
        other = {"episodes": "steps", "steps": "episodes"}[unit]
        remedy = f"record(.., {other}=..)" if other in takes.parameters else f"define learn(self, env, {unit})"
        raise TypeError(
            f"learning=True needs an agent with learn(env, {unit}=..), but {type(policy).__name__} has "
            f"learn({', '.join(takes.parameters)}): {remedy}"
        ) from None
    return lambda: policy.learn(recorder, **amount, **options)


@contextmanager
def _keep_finished(
    recorder: Recorder, path: Any, player: Behaviour | None = None, all_steps: bool = False
) -> Iterator[None]:
    """Context manager that writes what was finished before an error or interrupt, and adds to the error where."""
    import polars as pl

    try:
        yield
    except BaseException as error:
        if recorder.steps == 0 or not (all_steps or recorder.finished):
            raise
        if path is None:
            error.add_note("rlsvi.record(.., path=..) would have kept the episodes that were finished")
            raise
        log = recorder.frame()
        log = log if player is None else player.with_propensities(log)
        log = log if all_steps else log.filter(pl.col("episode") < recorder.finished)
        _write(log, path)
        error.add_note(f"{path} contains the {log['episode'].n_unique()} episodes before, {log.height} steps")
        raise


def _write(log: "pl.DataFrame", path: str | os.PathLike[str]) -> None:
    with whole_file(Path(path)) as file:
        log.write_parquet(file)
