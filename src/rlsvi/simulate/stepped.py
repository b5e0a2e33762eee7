"""Runs that are stepped through an environment: of any agent with `learn`, which need not count its episodes.

`Recorded` stands between the agent and the environment. It notes the results of each episode, gives a seed to
resets that have none, and ends `learn` when the last episode is over. Only whole episodes count.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import NothingLearned, Place
from rlsvi.core.checks import fits, shown
from rlsvi.core.compile import Floats, Ints
from rlsvi.core.random import Seed, sequence
from rlsvi.envs.task import checked_reward, reset_env, step_env
from rlsvi.mdp import Solution

# ---- What happened in each episode of a run ----------------------------------------------------------------


class Trace(NamedTuple):
    """All steps, as arrays of shape (episodes, H); -1, or NaN for rewards, after the end of an episode."""

    states: Ints
    actions: Ints
    rewards: Floats


class History(NamedTuple):
    """The results of each episode.

    reward : the sum of its rewards.
    regret : expected regret V*_0(s_0) - V^mu_0(s_0) of the policy mu it was played with; NaN if not requested.
    realised : realised regret V*_0(s_0) - reward.
    path_regret : sum over its steps of V*_h(s_h) - sum_a mu(a | s_h) Q*_h(s_h, a), the cost of mu in the states
        visited. Its expectation is `regret`, which is slow to compute if a random policy reaches many states.
    """

    reward: Floats
    regret: Floats
    realised: Floats
    path_regret: Floats
    trace: Trace


def blank_history(episodes: int, horizon: int) -> History:
    """Return arrays for the history; without a trace if `horizon` is 0."""
    fits(f"{shown(episodes)} episodes", episodes * (4 + 2 * horizon), "learn fewer, or without trace")
    shape = (episodes if horizon else 0), horizon
    trace = Trace(np.full(shape, -1, np.int32), np.full(shape, -1, np.int32), np.full(shape, np.nan))
    nan = np.full((3, episodes), np.nan)
    return History(np.zeros(episodes), nan[0], nan[1], nan[2], trace)


def part_of(history: History, now: slice) -> History:
    """Return some episodes of a history."""
    trace = Trace(history.trace.states[now], history.trace.actions[now], history.trace.rewards[now])
    reward, regret, realised, path_regret, _ = history
    return History(reward[now], regret[now], realised[now], path_regret[now], trace)


STEPS = ("steps", "total_timesteps", "timesteps")  # what others call the number of steps to learn for
MANY = 10**9  # steps to learn for if the limit of an episode is not known


class EpisodesPlayed(BaseException):
    """Raised in `reset` when the last episode is over; no `except Exception` of an agent stops it."""


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that notes what happens in the next `episodes` episodes, and refuses to begin another.

    solution : V* and Q* of the states that the environment shows, if they are known. The regret of an episode is
        then the sum of V*_h(s_h) - Q*_h(s_h, a_h) over its steps, whose expectation is the expected regret.
    seed : of resets without one, and of the action space.
    advance : called with 1 after each episode, and with 0 before each step; it may raise an error to stop.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        episodes: int,
        *,
        solution: Solution | None = None,
        seed: Seed = 0,
        trace: int = 0,
        advance: Callable[[int], None] = lambda n: None,
    ) -> None:
        super().__init__(env)
        self.history: History = blank_history(episodes, trace)
        self.episodes, self.played, self.solution, self.advance = episodes, 0, solution, advance
        self.seeds = np.random.default_rng(sequence(seed))
        env.action_space.seed(self._seed())
        self.observation: Any = None
        self.info: Mapping[str, Any] = {}
        self._steps = 0  # of the episode that is being played

    def _seed(self) -> int:
        return int(self.seeds.integers(2**31))

    @property
    def limit(self) -> int | None:
        """The largest number of steps of an episode, as wrappers and the environment have it; None if unknown."""
        limits, env = [getattr(self.unwrapped, "horizon", None)], self.env
        while isinstance(env, gymnasium.Wrapper):
            limits.append(vars(env).get("_max_episode_steps"))
            env = env.env
        return min((int(limit) for limit in limits if isinstance(limit, int | np.integer) and limit), default=None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode; the last one must be over."""
        self.advance(0)
        if self._steps:
            raise RuntimeError(
                f"the environment was reset after {self._steps} steps of episode {self.played}, which was not "
                "over: play episodes to their end. To compare in shorter ones, let the problem be "
                "gymnasium.wrappers.TimeLimit(env, steps)"
            )
        if self.played == self.episodes:
            raise EpisodesPlayed
        seed = self._seed() if seed is None else seed
        begin = reset_env(self.env, seed) if options is None else self.env.reset(seed=seed, options=options)
        self.observation, self.info = begin
        return begin

    def step(self, action: Any) -> Any:
        """Take a step and note it; the last one of an episode finishes it."""
        self.advance(0)
        before = self.observation
        try:
            observation, reward, terminated, truncated, info = step_env(self.env, action)
        except Exception as error:
            if self._forbidden(action):
                error.add_note(
                    "info['action_mask'] of reset and step says which actions are legal: an agent that does not "
                    "heed it cannot play this problem"
                )
            raise
        self._note(before, action, checked_reward(reward))
        self.observation, self.info = observation, info
        if terminated or truncated:
            self._finish()
        return observation, reward, terminated, truncated, info

    def _forbidden(self, action: Any) -> bool:
        with suppress(Exception):  # this is only asked when something has failed already
            return not self.info["action_mask"][int(np.asarray(action).item())]
        return False

    def _note(self, observation: Any, action: Any, reward: float) -> None:
        if self.played == self.episodes:
            raise EpisodesPlayed
        history, i, h = self.history, self.played, self._steps
        self._steps += 1
        history.reward[i] += reward
        if self.solution is None:
            return
        V, Q = self.solution.V, self.solution.Q
        s, a = int(observation), int(np.asarray(action).item())
        if h == 0:
            history.path_regret[i], history.realised[i] = 0.0, V[0, s]
        history.path_regret[i] += V[h, s] - Q[h, s, a]
        history.realised[i] -= reward
        if history.trace.states.size:
            history.trace.states[i, h], history.trace.actions[i, h] = s, a
            history.trace.rewards[i, h] = reward

    @property
    def progress(self) -> tuple[int, int]:
        """The episodes played, and the steps of the one that is not over."""
        return self.played, self._steps

    def _finish(self) -> None:
        """Count the episode that is over."""
        self.history.regret[self.played] = self.history.path_regret[self.played]
        self.played, self._steps = self.played + 1, 0
        self.advance(1)


def stepped(agent: Any, env: Recorded) -> History:
    """Let anything with `learn` learn all episodes of `env`; if it is bound to an environment, that must be `env`.

    `learn` is called with the environment, if it takes one, and with the episodes that are left, or with at least
    as many steps as they can have. If it returns earlier, it is called again.
    """
    if isinstance(agent, Agent) and getattr(agent.predict, "__func__", None) is not Agent.predict:
        agent._decide = predicted_by(agent, env)
        try:
            return _taught(agent, env)
        finally:
            agent._decide = None
    return _taught(agent, env)


def _taught(agent: Any, env: Recorded) -> History:
    first = True
    while env.played < env.episodes:
        before = env.progress
        with suppress(EpisodesPlayed):
            _learn(agent, env, first)
        if env.progress == before:
            raise RuntimeError(
                f"{type(agent).__name__}.learn returned after {env.played} of {env.episodes} episodes: let it "
                "play the episodes or steps it is asked for, in the environment it is given"
            )
        first = False
    return env.history


def _learn(agent: Any, env: Recorded, first: bool) -> None:
    """Call `learn` with those arguments that it takes."""
    signature = inspect.signature(agent.learn)
    takes = signature.parameters
    left = env.episodes - env.played
    known = {"episodes": left, "progress": False, "reset_num_timesteps": first}
    given = {name: value for name, value in known.items() if name in takes}
    steps = next((name for name in STEPS if name in takes), None)
    if "episodes" not in takes and steps is not None:
        given[steps] = MANY if env.limit is None else left * env.limit
    elif "episodes" not in takes and _takes_any_name(takes):
        given["episodes"] = left
    begins = next(iter(takes.values()), None)
    by_position = begins and begins.kind in (
        begins.POSITIONAL_ONLY,
        begins.POSITIONAL_OR_KEYWORD,
        begins.VAR_POSITIONAL,
    )
    where = (env,) if begins and by_position and begins.name not in given else ()
    try:
        signature.bind(*where, **given)
    except TypeError as error:
        raise TypeError(
            f"{type(agent).__name__}.learn{signature} cannot be called ({error}): it may take the environment as "
            f"its first argument, and episodes, or a number of steps called {', '.join(STEPS)}; all else needs a "
            "default"
        ) from None
    agent.learn(*where, **given)


def _takes_any_name(takes: Mapping[str, inspect.Parameter]) -> bool:
    return any(it.kind is it.VAR_KEYWORD for it in takes.values())


def predicted_by(agent: Agent, env: Recorded) -> Callable[[Place], int | None]:
    """Return a function that lets the agent's own `predict` decide in learning.

    It is called with the observation, and by name with what it takes of state, episode_start and action_mask. As
    long as it raises NothingLearned, the agent decides as usual.
    """
    takes = inspect.signature(agent.predict).parameters
    name = f"{type(agent).__name__}.predict"
    state: Any = None

    def decide(place: Place) -> int | None:
        nonlocal state
        start = place.h == 0
        known: dict[str, Any] = {"state": None if start else state, "episode_start": start}
        if env.info.get("action_mask") is not None:
            known["action_mask"] = env.info["action_mask"]
        given = {key: value for key, value in known.items() if key in takes or _takes_any_name(takes)}
        try:
            returned: Any = agent.predict(env.observation, **given)
        except NothingLearned:
            return None
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(f"{name} must return an action and a state, got {shown(returned)}")
        action, state = returned
        decided = int(np.asarray(action).item()) - int(env.action_space.start)  # type: ignore[attr-defined]
        if not (0 <= decided < place.legal.size and place.legal[decided]):
            raise ValueError(f"{name} returned {shown(action)}, which is not a legal action")
        return decided

    return decide
