"""What RLSVI and LSVI share: the loop over the episodes of a Gymnasium environment, and the user's verbs."""

from typing import Any, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.batches import batched
from rlsvi.agents.explore import Explore, choose
from rlsvi.agents.finite.learner import Learner, Place, broken
from rlsvi.agents.finite.value_iteration import Prior, Values
from rlsvi.agents.noise import Noise, noise_of
from rlsvi.agents.task import Task, checked_observation, checked_reward, task_of
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
from rlsvi.bases import Basis, Features, Tabular
from rlsvi.bases.basis import same_table
from rlsvi.core.checks import finite, shaped, whole
from rlsvi.core.compile import Bools, Floats
from rlsvi.core.random import Seed, bits


class FiniteHorizonAgent(Verbs):
    """Value iteration by regression over a known number of periods. RLSVI and LSVI say how."""

    lam: float
    sigma: Any  # Noise, or a rule to find it by
    basis: Basis | None
    horizon: int | None
    prior_mean: float | Floats
    reward_offset: float
    explore: Explore
    seed: Seed
    keep_prior: bool = True  # of an agent with step sizes
    samples: bool  # acts on a sample of the posterior, not on its mean

    def _start(self) -> None:
        """Check the arguments a constructor has stored; nothing is learned yet."""
        noise_of(*self.parameters())
        finite("prior_mean", self.prior_mean)
        shaped("reward_offset", finite("reward_offset", self.reward_offset), ())
        if self.horizon is not None:
            whole("horizon", self.horizon, 1)
        if self.basis is not None and not hasattr(self.basis, "bind"):
            raise TypeError(f"basis must be a basis such as rlsvi.bases.Tabular(), got {self.basis!r}")
        if not isinstance(self.explore, Explore):
            raise TypeError(f"explore must be Greedy, EpsilonGreedy or Boltzmann, got {self.explore!r}")
        self.explore.parameters(0, 1)
        self._streams = new_streams(self.seed)
        self._task: Task | None = None
        self._problem_basis: Basis | None = None
        self._learner: Learner | None = None
        self._forget_plans()
        self.steps = 0
        self._overshoot = 0

    def step_sizes(self, first: int, episodes: int) -> Floats:
        """nu_l in `episodes` episodes from `first` on; none for an agent that learns from all its data at once."""
        return np.empty(0)

    def parameters(self) -> tuple[float, Noise]:
        """The lam and sigma in use."""
        return self.lam, self.sigma

    def settle(self) -> None:
        """See to the lam and sigma of the next episode, before it begins."""

    def settled_for(self, episodes: int) -> int:
        """How many of the next episodes have the same lam and sigma, at most `episodes`."""
        return episodes

    def _forget_plans(self) -> None:
        self._mean: Values | None = None
        self._drawn: Values | None = None

    @property
    def episodes(self) -> int:
        """Episodes learned from."""
        return int(self._learner.memory.episodes[0]) if self._learner else 0

    def learn(
        self,
        env: Env[Any, Any],
        *,
        episodes: int | None = None,
        steps: int | None = None,
        progress: bool = False,
        on_episode: OnEpisode | None = None,
    ) -> Self:
        """Play and learn for `episodes` more episodes, or for at least `steps` more steps.

        The agent's seed decides everything: it also seeds the environment at the start of every episode.
        Episodes are played to their end; what exceeds `steps` counts towards the next call with `steps`,
        so that learning a and then b is learning a + b.

        on_episode : is called with the agent and the return of the episode, after each one.
        """
        unit, amount = amount_of(episodes, steps)
        self._check(task_of(env, self.horizon))
        learn_for(self, env, unit, amount, progress, on_episode)
        return self

    def _episode(self, env: Env[Any, Any]) -> None:
        """One episode: plan, act, learn. If anything fails, the agent is as it was before."""
        kept = self._streams.copy()
        try:
            observation, info = env.reset(seed=int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            learner = self._bound(observation)
            self.settle()
            learner.plan(self.samples and self.episodes > 0, self._streams[POSTERIOR])
            rule, parameter = self.explore.parameters(self.episodes, 1)
            places = [self._look(0, observation, info.get("action_mask"))]
            actions: list[int] = []
            rewards: list[float] = []
            terminated = truncated = False
            while len(actions) < learner.horizon and not (terminated or truncated):
                Q = learner.values_at(learner.values, places[-1])
                a = choose(rule, parameter[0], Q, places[-1].legal, np.empty_like(Q), self._streams[ACTION])
                if a < 0:
                    raise broken()
                observation, reward, terminated, truncated, info = env.step(self._first_action + a)
                actions.append(a)
                rewards.append(checked_reward(reward) + self.reward_offset)
                if len(actions) < learner.horizon and not terminated:
                    places.append(self._look(len(actions), observation, info.get("action_mask")))
            goes_on = len(places) > len(actions)
            learner.remember(places, np.array(actions), np.array(rewards), goes_on)
        except BaseException:
            self._streams[:] = kept
            if self.episodes == 0:
                self._learner = None
            raise
        self.note(len(actions))

    @batched
    def predict(
        self,
        observation: Any,
        state: int | None = None,
        episode_start: bool | None = None,
        deterministic: bool = False,
        action_mask: Bools | None = None,
    ) -> tuple[int, int]:
        """An action, and the state to pass to the next call: the period reached.

        Values differ from period to period, so pass the state on; without it every call acts as in period 0.

        deterministic : act on the posterior mean, greedily. Otherwise as in learning: on a value function
            sampled at the start of the episode (RLSVI), or with the exploration given (LSVI).
        action_mask : which actions are legal; all of them by default.

        Arrays of a row an environment give arrays, as stable-baselines3 expects it.
        """
        h = 0 if state is None or episode_start else int(state)
        if self._learner is None:
            raise RuntimeError("this agent has learned nothing yet: call learn first")
        if not 0 <= h < self._learner.horizon:
            raise ValueError(f"state is period {h} of {self._learner.horizon}: start a new episode")
        place = self._look(h, observation, action_mask, learning=False)
        Q = self._learner.values_at(self._plan(deterministic, h == 0), place)
        rule, parameter = self.explore.parameters(self.episodes, 1)
        if deterministic:
            a = int(np.argmax(np.where(place.legal, Q, -np.inf)))
        else:
            a = choose(rule, parameter[0], Q, place.legal, np.empty_like(Q), self._streams[PREDICT])
        if a < 0 or not np.isfinite(Q[a]):
            raise broken()
        return self._first_action + a, h + 1

    def _look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """An observation as the learner sees it, checked.

        A known state keeps its legal actions while `learning`; in predicting they may be narrowed down.
        """
        assert self._task is not None
        assert self._learner is not None
        observation, legal = checked_observation(self._task, observation), self._task.legal(mask)
        known = None if learning else self._learner.legal(h, observation)
        if known is None:
            return self._learner.look(h, observation, legal)
        if not (legal & known).any():
            raise ValueError("action_mask allows only actions that were not legal in this state before")
        return self._learner.look(h, observation, known)._replace(legal=legal & known)

    @property
    def _first_action(self) -> int:
        return self._task.first_action if self._task else 0

    def _plan(self, mean: bool, first: bool) -> Values:
        """The posterior mean, kept until more is learned; or a sample, a new one for each episode."""
        assert self._learner is not None
        noise = self._streams[PREDICT]
        if mean or not self.samples:
            self._mean = self._mean or self._learner.plan(False, noise, self._learner.blank_values())
            return self._mean
        if first or self._drawn is None:
            sampled = self.episodes > 0
            self._drawn = self._learner.plan(sampled, noise, self._drawn or self._learner.blank_values())
        return self._drawn

    def adopt(self, task: Task, basis: Basis) -> Learner:
        """Take on a task of finitely many states, with `basis` unless the agent has its own."""
        if self.horizon not in (None, task.horizon):
            raise ValueError(f"horizon is {self.horizon}, the problem has {task.horizon} periods: leave it out")
        if self._learner is not None and basis is self._problem_basis and task == self._task:
            return self._learner
        given = (self.basis or basis).bind(task.states, task.actions, task.horizon, 0)
        if self._learner is None:
            self._learner = self._new(task, given)
            self._task, self._problem_basis = task, None if self.basis else basis
        self._check(task)
        if not same_table(self._learner.features.table, given.table):
            raise ValueError("this agent has learned through another basis: use agent.clone()")
        return self._learner

    def note(self, steps: int) -> None:
        """Count steps that have been learned from."""
        self.steps += steps
        self._forget_plans()

    def features(self, example: Any) -> Features:
        """The agent's basis, or the problem's, or else a table, bound to the task."""
        assert self._task is not None
        basis = self.basis or self._problem_basis or Tabular()
        return basis.bind(self._task.states, self._task.actions, self._task.horizon, example)

    def prior(self, task: Task, features: Features) -> Prior:
        """The prior of the weights."""
        weights = features.blocks * features.dim
        given = np.asarray(self.prior_mean, dtype=np.float64)
        try:
            mean = np.broadcast_to(given, (task.horizon, weights))
        except ValueError:
            raise ValueError(
                f"prior_mean must be a number, or of shape ({weights},) or {(task.horizon, weights)}: "
                f"one mean a weight; got {given.shape}"
            ) from None
        shape = task.horizon, features.blocks, features.dim
        lam, sigma = self.parameters()
        return Prior(np.array(mean).reshape(shape), float(lam), *noise_of(lam, sigma))

    def _new(self, task: Task, features: Features) -> Learner:
        prior = self.prior(task, features)
        return Learner.new(features, task.actions, task.horizon, task.states, prior)

    def _check(self, task: Task) -> None:
        """Take on a task, or check that it is the one learned so far."""
        if self._learner is None:
            self._task = task
        elif self._task != task:
            raise ValueError(
                f"this agent has learned {self._task}, it cannot go on with {task}: use agent.clone()"
            )

    def _bound(self, example: Any) -> Learner:
        """The learner, made when the first observation is there to show what features look like."""
        assert self._task is not None
        if self._learner is None:
            self._learner = self._new(self._task, self.features(checked_observation(self._task, example)))
        return self._learner
