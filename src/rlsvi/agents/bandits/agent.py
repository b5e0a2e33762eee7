"""What agents that plan nothing share: Thompson sampling, the contextual bandit, and policies known beforehand.

They choose by values that need no value of the next state, so there is no value iteration, and what they know does
not grow with the episodes. An agent of this kind says what it knows, how to sample from it, what the actions are
then worth, and how to learn from an episode; the loop over episodes and the user's verbs are here.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.batches import batched
from rlsvi.agents.explore import GREEDY, Greedy, choose
from rlsvi.agents.finite.learner import broken
from rlsvi.agents.task import Task, checked_observation, checked_reward
from rlsvi.agents.verbs import (
    ACTION,
    EPISODE,
    POSTERIOR,
    PREDICT,
    OnEpisode,
    Verbs,
    amount_of,
    learn_for,
    new_streams,
)
from rlsvi.bases import Basis
from rlsvi.core.checks import finite, shaped
from rlsvi.core.compile import Bools, Floats, Longs, Words
from rlsvi.core.random import Seed, bits


class Step(NamedTuple):
    """A period, what is observed in it, and which actions are legal."""

    h: int
    observation: Any
    legal: Bools


class OneStepAgent(Verbs):
    """An agent without value iteration. Subclasses say what it knows (`_mind`) and how it learns."""

    seed: Seed
    reward_offset: float = 0.0
    explore = Greedy()
    samples = True  # acts on a sample of what it knows, from the second episode on, or from the first:
    samples_first = True
    basis: Basis | None = None  # most need none
    _problem_basis: Basis | None = None
    _mind: Any

    def _start(self) -> None:
        """Check the arguments a constructor has stored; nothing is learned yet."""
        shaped("reward_offset", finite("reward_offset", self.reward_offset), ())
        self._streams = new_streams(self.seed)
        self._task: Task | None = None
        self._mind = None
        self._act: Any = None  # the plan of the episode
        self._forget_plans()
        self.episodes = self.steps = self._overshoot = 0

    def _forget_plans(self) -> None:
        self._mean: Any = None
        self._drawn: Any = None

    # What a subclass says.

    def _task_of(self, env: Any) -> Task:
        """The task that an environment sets."""
        raise NotImplementedError

    def _bind(self, task: Task, example: Any) -> None:
        """Make `_mind`: what is known before anything is seen; `example` is an observation."""
        raise NotImplementedError

    def _new_plan(self) -> Any:
        """Room for a sample of what is known."""
        raise NotImplementedError

    def _plan(self, plan: Any, sampled: bool, stream: Words) -> None:
        """Sample from what is known, or take its mean."""
        raise NotImplementedError

    def _values(self, plan: Any, step: Step) -> Floats:
        """What every action is worth."""
        raise NotImplementedError

    def _learn(self, steps: list[Step], actions: Longs, rewards: Floats) -> None:
        """Learn from an episode, all of it or nothing."""
        raise NotImplementedError

    # The user's verbs.

    def learn(
        self,
        env: Env[Any, Any],
        *,
        episodes: int | None = None,
        steps: int | None = None,
        progress: bool = False,
        on_episode: OnEpisode | None = None,
    ) -> Self:
        """Play and learn for `episodes` more episodes, or for at least `steps` more steps; as `RLSVI.learn`."""
        unit, amount = amount_of(episodes, steps)
        self._check(self._task_of(env))
        learn_for(self, env, unit, amount, progress, on_episode)
        return self

    def _episode(self, env: Env[Any, Any]) -> None:
        """One episode: sample, act, learn. If anything fails, the agent is as it was before."""
        assert self._task is not None
        kept, unbound = self._streams.copy(), self._mind is None
        try:
            observation, info = env.reset(seed=int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            places = [self._look(0, observation, info.get("action_mask"))]
            if self._mind is None:
                self._bind(self._task, places[0].observation)
            self._plan(self.episode_plan(), self.sampled(), self._streams[POSTERIOR])
            actions: list[int] = []
            rewards: list[float] = []
            over = False
            while not over:
                Q = self._values(self._act, places[-1])
                a = choose(GREEDY, 0.0, Q, places[-1].legal, np.empty_like(Q), self._streams[ACTION])
                if a < 0:
                    raise broken()
                observation, reward, terminated, truncated, info = env.step(self._task.first_action + a)
                actions.append(a)
                rewards.append(checked_reward(reward) + self.reward_offset)
                over = terminated or truncated or len(actions) == self._task.horizon
                if not over:
                    places.append(self._look(len(actions), observation, info.get("action_mask")))
            self._learn(places, np.array(actions), np.array(rewards))
        except BaseException:
            self._streams[:] = kept
            if unbound:
                self._mind = self._act = None
            raise
        self.note(1, len(actions))

    @batched
    def predict(
        self,
        observation: Any,
        state: int | None = None,
        episode_start: bool | None = None,
        deterministic: bool = False,
        action_mask: Bools | None = None,
    ) -> tuple[int, int]:
        """An action, and the state to pass to the next call: the period reached; as `RLSVI.predict`."""
        h = 0 if state is None or episode_start else int(state)
        if self._mind is None or self._task is None:
            raise RuntimeError("this agent has learned nothing yet: call learn first")
        if h < 0 or (self._task.horizon and h >= self._task.horizon):
            raise ValueError(f"state is period {h} of {self._task.horizon}: start a new episode")
        place = self._look(h, observation, action_mask)
        Q = self._values(self._plan_for(deterministic, h == 0), place)
        if deterministic:
            a = int(np.argmax(np.where(place.legal, Q, -np.inf)))
        else:
            a = choose(GREEDY, 0.0, Q, place.legal, np.empty_like(Q), self._streams[PREDICT])
        if a < 0 or not np.isfinite(Q[a]):
            raise broken()
        return self._task.first_action + a, h + 1

    def _plan_for(self, mean: bool, first: bool) -> Any:
        """The mean, kept until more is learned; or a sample, a new one for each episode."""
        noise = self._streams[PREDICT]
        if mean:
            if self._mean is None:
                self._mean = self._new_plan()
                self._plan(self._mean, False, noise)
            return self._mean
        if first or self._drawn is None:
            self._drawn = self._drawn or self._new_plan()
            self._plan(self._drawn, self.sampled(), noise)
        return self._drawn

    def sampled(self) -> bool:
        """Whether the next episode is played on a sample, and not on the mean."""
        return self.samples and (self.samples_first or self.episodes > 0)

    def episode_plan(self) -> Any:
        """The plan that episodes are played with."""
        self._act = self._act or self._new_plan()
        return self._act

    def note(self, episodes: int, steps: int) -> None:
        """Count episodes and steps that have been learned from."""
        self.episodes += episodes
        self.steps += steps
        self._forget_plans()

    def _look(self, h: int, observation: Any, mask: Any) -> Step:
        assert self._task is not None
        return Step(h, checked_observation(self._task, observation), self._task.legal(mask))

    def _check(self, task: Task) -> None:
        """Take on a task, or check that it is the one learned so far."""
        if self._mind is None or self._task is None:
            self._task = task
        elif self._task != task:
            raise ValueError(
                f"this agent has learned {self._task}, it cannot go on with {task}: use agent.clone()"
            )
