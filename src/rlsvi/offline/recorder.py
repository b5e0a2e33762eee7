"""`rlsvi.record`: play episodes, and write down everything that happens in them as a log."""

import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Env, Wrapper

from rlsvi.core.archive import path_of
from rlsvi.core.checks import flag, in_unit_interval, shown, whole
from rlsvi.core.files import check_folder, whole_file
from rlsvi.envs.actions import Parts, numbering_of_parts
from rlsvi.envs.task import check_env, checked_reward, play, reset_env, step_env
from rlsvi.offline.log import REQUIRED, as_column, is_csv, writer_of
from rlsvi.offline.off_policy import is_function, probabilities_of
from rlsvi.progress import bar

if TYPE_CHECKING:
    import polars as pl

NAMES = (*REQUIRED, "truncated", "mask", "next_mask")  # in the order of `Recorder._rows`
OTHERS = "a function of an observation, or None for random actions"
PIECE = 10_000  # rows that are kept before they become a frame, which takes less memory


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
    env
        The environment. Actions that are not Discrete are recorded as lists of their numbers.
    policy
        Anything with a `predict` method, or a function of an observation. Either returns an action, or the
        probabilities of all actions, one of which is then drawn. If None, all legal actions are equally likely; of
        a Box, all those that agents choose among.
    episodes
        The number of episodes; by default 100.
    steps
        With learning=True, the number of steps instead, for agents whose `learn` takes that.
    epsilon
        The probability of a random legal action instead of the policy's.
    deterministic
        Act greedily on the posterior mean; otherwise as in learning, with one sample per episode. The propensities
        are not known then.
    learning
        Let the agent `policy` learn while it plays, and record what it lives through. Its own seed decides
        everything, and `epsilon`, `deterministic`, `seed` and `limit` do not apply.
    seed
        Determines where each episode begins, and all other randomness of the environment and of `epsilon`.
    path
        A Parquet file (not CSV) to write the log to as well, completely or not at all. If the environment fails,
        or after an interrupt, it contains the episodes that were finished.
    limit
        The maximum number of steps of an episode. A longer one is cut off there.
    progress
        Show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> log = rlsvi.record(gymnasium.make("rlsvi/Chain-v0", length=5), episodes=10)
    >>> log.columns[:5], log.height
    (['episode', 'step', 'observation', 'action', 'reward'], 40)
    """
    check_env(env)
    if steps is not None and (episodes is not None or not learning):
        raise ValueError("steps goes with learning=True and without episodes")
    if steps is None:
        episodes = whole("episodes", 100 if episodes is None else episodes, 1, 10**8)
    else:
        whole("steps", steps, 1)
    check_folder(None if path is None else path_of(path))
    if path is not None and is_csv(path_of(path)):
        raise ValueError(f"path must be a Parquet file, such as log.parquet, got {path}: CSV cannot hold lists")
    recorder = Recorder(env)
    if flag("learning", learning):
        amount = {"episodes": episodes} if steps is None else {"steps": steps}
        learn = _learn_call(policy, recorder, amount, progress)
        with _keep_finished(recorder, path, all_steps="episodes" not in signature(policy.learn).parameters):
            learn()
        log = recorder.frame()
    else:
        assert episodes is not None
        player = BehaviourPolicy(policy, env.action_space, epsilon, flag("deterministic", deterministic), seed)
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
    policy: Any, recorder: "Recorder", amount: dict[str, Any], progress: bool | None
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
    recorder: "Recorder", path: Any, player: "BehaviourPolicy | None" = None, all_steps: bool = False
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


class BehaviourPolicy:
    """A policy mixed with random actions, and the probability of each action taken."""

    def __init__(self, policy: Any, actions: Any, epsilon: float, deterministic: bool, seed: int) -> None:
        self.is_function = policy is not None and is_function(policy, OTHERS)
        self._task = getattr(policy, "_task", None)  # with the number of periods that it knows, for `play`
        chance = in_unit_interval("epsilon", epsilon, closed=True)
        self.policy, self.epsilon = policy, 1.0 if policy is None else chance
        self.first, self.n, self.choices = numbering_of_parts(actions)
        own = getattr(getattr(type(policy), "predict", None), "__module__", "") == "rlsvi.agents.agent"
        self.certain = own and deterministic  # others may break ties at random
        self.random = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0), spawn_key=(1,)))
        self.chances = array("d")  # of the actions taken

    def predict(
        self, observation: Any, state: Any = None, deterministic: bool = True, action_mask: Any = None
    ) -> tuple[Any, Any]:
        """Return an action, and the state to pass to the next call."""
        legal = np.ones(self.n, np.bool_) if action_mask is None else np.asarray(action_mask).astype(np.bool_)
        given = None
        if self.is_function:
            given = self.policy(observation)
        elif self.policy is not None:
            options = {} if action_mask is None else {"action_mask": action_mask}
            given = self.policy.predict(observation, state, deterministic=deterministic, **options)
            given, state = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if isinstance(self.choices, Parts):
            return self._mix(self.choices, given, legal), state
        known, chances = self.certain or self.epsilon == 1, np.zeros(self.n)
        if self.policy is not None:
            chances, stated = probabilities_of(given, self.first, self.n, legal, self.choices)
            known, given = known or stated, None if stated else given
        if self.epsilon > 0 and self.random.random() < self.epsilon:
            a, given = int(self.random.choice(np.flatnonzero(legal))), None
        else:
            a = int(np.argmax(chances) if chances.max() == 1 else self.random.choice(self.n, p=chances))
        chance = self.epsilon / legal.sum() + (1 - self.epsilon) * chances[a]
        self.chances.append(chance if known else np.nan)
        if self.choices is None:
            return self.first + a, state
        return self.choices.action(a) if given is None else np.asarray(given).reshape(self.choices.shape), state

    def _mix(self, parts: Parts, given: Any, legal: Any) -> Any:
        """Return the action given, or a random one, where actions have parts."""
        decided = None if self.policy is None else parts.number(given)
        if decided is not None and not legal[decided].all():
            raise ValueError(f"policy gives action {shown(given)}: the mask does not allow it")
        values = [its.start + np.flatnonzero(legal[its]) for its in parts.slices]
        taken = decided
        if taken is None or (self.epsilon > 0 and self.random.random() < self.epsilon):
            taken = np.array([self.random.choice(its) for its in values])
        chance = self.epsilon / prod(map(len, values))
        if decided is not None and np.array_equal(taken, decided):
            chance += 1 - self.epsilon
        self.chances.append(chance if self.certain or self.epsilon == 1 else np.nan)
        return parts.action(taken)

    def with_propensities(self, log: "pl.DataFrame") -> "pl.DataFrame":
        """Return the log of what was played with the probabilities of the actions, if they are known."""
        import polars as pl

        chances = np.array(self.chances[: log.height])
        return log if np.isnan(chances).any() else log.with_columns(pl.Series("propensity", chances))


class Recorder(Wrapper[Any, Any, Any, Any]):
    """Changes nothing of an environment, and keeps every step for `frame`."""

    def __init__(self, env: Env[Any, Any]) -> None:
        super().__init__(env)
        self._rows: list[tuple[Any, ...]] = []
        self._pieces: list[pl.DataFrame] = []
        self._write, self._write_action = writer_of(env.observation_space), writer_of(env.action_space)
        self._episode, self._step = -1, 0
        self._here: tuple[Any, Any] = None, None
        self.finished = 0  # episodes that have ended, or were left for another one

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """How the environment was made; that it is recorded does not matter."""
        return self.env.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        self.finished = self._episode + 1
        observation, info = reset_env(self.env, seed)  # type: ignore[arg-type]
        self._episode, self._step = self._episode + 1, 0
        self._here = self._write(observation), _mask(info)
        return observation, info

    def step(self, action: Any) -> Any:
        """Take an action, and write down what happened."""
        observation, reward, terminated, truncated, info = step_env(self.env, action)
        before, self._here = self._here, (self._write(observation), _mask(info))
        taken, paid = self._write_action(action), checked_reward(reward)
        where = self._episode, self._step, before[0], taken, paid, self._here[0]
        self._rows.append((*where, terminated, truncated, before[1], self._here[1]))
        self._step += 1
        if terminated or truncated:
            self.finished = self._episode + 1
        if len(self._rows) >= PIECE:
            self._pieces, self._rows = [*self._pieces, _frame(self._rows)], []
        return observation, reward, terminated, truncated, info

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return len(self._rows) + sum(piece.height for piece in self._pieces)

    def frame(self) -> "pl.DataFrame":
        """Return all steps. Masks are included if the environment has any."""
        import polars as pl

        pieces = [*self._pieces, _frame(self._rows)] if self._rows else self._pieces
        log = pl.concat(pieces, how="vertical_relaxed")
        return log.drop("mask", "next_mask") if log["mask"].null_count() == log.height else log


def _frame(rows: list[tuple[Any, ...]]) -> "pl.DataFrame":
    """Return steps as a frame."""
    import polars as pl

    columns: dict[str, Any] = dict(zip(NAMES, zip(*rows, strict=True), strict=True))
    for name in ("observation", "action", "next_observation"):
        columns[name] = as_column(columns[name])
    types: dict[str, Any] = {"reward": pl.Float64}
    if not isinstance(columns["action"], np.ndarray):
        types["action"] = pl.Int64
    types |= dict.fromkeys(("terminated", "truncated"), pl.Boolean)
    types |= dict.fromkeys(("mask", "next_mask"), pl.List(pl.Boolean))
    return pl.DataFrame(columns, schema_overrides=types)


def _mask(info: Any) -> list[bool] | None:
    mask = info.get("action_mask")
    return None if mask is None else np.asarray(mask).astype(np.bool_).tolist()
