"""Runs that are stepped through an environment: of any agent with `learn`, which need not count its episodes.

`Recorded` stands between the agent and the environment. It notes the results of each episode, gives a seed to
resets that have none, and ends `learn` when the last episode is over.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import Place
from rlsvi.agents.predicting import Predicting
from rlsvi.agents.task import begun, checked_reward, taken
from rlsvi.core.random import Seed, sequence
from rlsvi.mdp import Solution
from rlsvi.simulate.history import History, blank_history

STEPS = ("steps", "total_timesteps", "timesteps")  # what others call the number of steps to learn for
LONG = 1000  # steps of an episode whose limit is not known


class EpisodesPlayed(BaseException):
    """Raised in `reset` when the last episode is over; no `except Exception` of an agent stops it."""


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that notes what happens in the next `episodes` episodes, and refuses to begin another.

    solution : V* and Q* of the states that the environment shows, if they are known. The regret of an episode is
        then the sum of V*_h(s_h) - Q*_h(s_h, a_h) over its steps, whose expectation is the expected regret.
    seed : of resets without one, and of the action space.
    advance : called with 1 after each episode.
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
    def limit(self) -> int:
        """The largest number of steps of an episode, or a guess."""
        limits = getattr(self.spec, "max_episode_steps", None), getattr(self.unwrapped, "horizon", None)
        return min((int(limit) for limit in limits if limit is not None), default=LONG)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode; one that was not over counts as it is."""
        self.finish()
        if self.played == self.episodes:
            raise EpisodesPlayed
        seed = self._seed() if seed is None else seed
        begin = begun(self.env, seed) if options is None else self.env.reset(seed=seed, options=options)
        self.observation, self.info = begin
        return begin

    def step(self, action: Any) -> Any:
        """Take a step and note it; the last one of an episode finishes it."""
        before = self.observation
        observation, reward, terminated, truncated, info = taken(self.env, action)
        self._note(before, action, checked_reward(reward))
        self.observation, self.info = observation, info
        if terminated or truncated:
            self.finish()
        return observation, reward, terminated, truncated, info

    def _note(self, observation: Any, action: Any, reward: float) -> None:
        if self.played == self.episodes:
            raise EpisodesPlayed
        history, i, h = self.history, self.played, self._steps
        self._steps += 1
        if self._steps % LONG == 0:
            self.advance(0)  # may stop an episode without end
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

    def finish(self) -> None:
        """Count the episode that is being played, if any."""
        if self._steps:
            self.history.regret[self.played] = self.history.path_regret[self.played]
            self.played, self._steps = self.played + 1, 0
            self.advance(1)


def stepped(agent: Any, env: Recorded) -> History:
    """Let anything with `learn` learn all episodes of `env`; if it is bound to an environment, that must be `env`.

    `learn` is called with the environment, if it takes one, and with the episodes that are left, or with at least
    as many steps as they can have. If it returns earlier, it is called again.
    """
    if isinstance(agent, Agent) and type(agent).predict is not Predicting.predict:
        agent.deciding = predicted_by(agent, env)
        try:
            return _taught(agent, env)
        finally:
            agent.deciding = None
    return _taught(agent, env)


def _taught(agent: Any, env: Recorded) -> History:
    first = True
    while env.played < env.episodes:
        before = env.played
        with suppress(EpisodesPlayed):
            _learn(agent.learn, env, first)
        env.finish()
        if env.played == before:
            raise RuntimeError(
                f"{type(agent).__name__}.learn returned after {before} of {env.episodes} episodes: let it play "
                "the episodes or steps it is asked for, in the environment it is given"
            )
        first = False
    return env.history


def _learn(learn: Callable[..., Any], env: Recorded, first: bool) -> None:
    """Call `learn` with those arguments that it takes."""
    takes = inspect.signature(learn).parameters
    any_name = any(it.kind is it.VAR_KEYWORD for it in takes.values())
    left = env.episodes - env.played
    known = {"episodes": left, "progress": False, "reset_num_timesteps": first}
    given = {name: value for name, value in known.items() if name in takes}
    steps = next((name for name in STEPS if name in takes), None)
    if "episodes" not in takes and steps is not None:
        given[steps] = left * env.limit
    elif "episodes" not in takes and any_name:
        given["episodes"] = left
    begins = next(iter(takes.values()), None)
    bound = (
        begins is None
        or begins.name in given
        or begins.kind
        not in (
            begins.POSITIONAL_ONLY,
            begins.POSITIONAL_OR_KEYWORD,
            begins.VAR_POSITIONAL,
        )
    )
    learn(**given) if bound else learn(env, **given)


def predicted_by(agent: Agent, env: Recorded) -> Callable[[Place], int | None]:
    """Return a function that lets the agent's own `predict` decide in learning.

    A `predict` that needs something to have been learned is not asked before.
    """
    state: Any = None

    def decide(place: Place) -> int | None:
        nonlocal state
        mask = env.info.get("action_mask")
        options = {} if mask is None else {"action_mask": mask}
        start = place.h == 0
        try:
            action, state = agent.predict(env.observation, None if start else state, start, **options)
        except RuntimeError:
            if agent.steps:
                raise
            return None
        decided = int(np.asarray(action).item()) - int(env.action_space.start)  # type: ignore[attr-defined]
        if not (0 <= decided < place.legal.size and place.legal[decided]):
            raise ValueError(f"{type(agent).__name__}.predict returned {action!r}, which is not a legal action")
        return decided

    return decide
