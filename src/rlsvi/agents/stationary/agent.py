"""What stationary RLSVI and LSVI share: one value function, learned from the latest transitions."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.batches import batched
from rlsvi.agents.explore import Explore, choose
from rlsvi.agents.noise import Noise, noise_of
from rlsvi.agents.stationary.learner import Place, StationaryLearner, bound_features, unusable
from rlsvi.agents.stationary.sweeps import Model
from rlsvi.agents.task import (
    Task,
    check_setting,
    checked_observation,
    checked_reward,
    endless_task_of,
    setting_of,
)
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
from rlsvi.bases import Basis, Tabular
from rlsvi.core.checks import finite, positive, shaped, whole
from rlsvi.core.compile import Bools, Floats
from rlsvi.core.random import Seed, bits

Form = Literal["literal", "afterstate"]


class DivergenceWarning(UserWarning):
    """Targets have grown beyond what rewards and discount can explain."""


class StationaryAgent(Verbs):
    """Regression of one value function. StationaryRLSVI and StationaryLSVI say how."""

    lam: float
    sigma: Noise
    gamma: float
    basis: Basis | None
    form: Form
    memory: int | None
    regressions: int
    prior_mean: float | Floats
    explore: Explore
    diverged_above: float
    seed: Seed
    samples: bool  # acts on a sample of the posterior, not on its mean

    def _start(self) -> None:
        """Check the arguments a constructor has stored; nothing is learned yet."""
        noise_of(self.lam, self.sigma)
        gamma = shaped("gamma", finite("gamma", self.gamma), ())
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must lie in [0, 1], got {self.gamma!r}")
        finite("prior_mean", self.prior_mean)
        if self.form not in ("literal", "afterstate"):
            raise ValueError(f'form must be "literal" or "afterstate", got {self.form!r}')
        if self.memory is not None:
            whole("memory", self.memory, 1)
        whole("regressions", self.regressions, 1)
        positive("diverged_above", self.diverged_above)
        if self.basis is not None and not hasattr(self.basis, "bind"):
            raise TypeError(f"basis must be a basis such as rlsvi.bases.Tabular(), got {self.basis!r}")
        if not isinstance(self.explore, Explore):
            raise TypeError(f"explore must be Greedy, EpsilonGreedy or Boltzmann, got {self.explore!r}")
        self.explore.parameters(0, 1)
        self._streams = new_streams(self.seed)
        self._task: Task | None = None
        self._problem_basis: Basis | None = None
        self._learner: StationaryLearner | None = None
        self._setting: dict[str, Any] = {}
        self._forget_plans()
        self.episodes = self.steps = self._overshoot = self._longest = 0
        self.excess = 0.0
        self.diverged = False

    def _forget_plans(self) -> None:
        self._mean: Floats | None = None
        self._drawn: Floats | None = None

    @property
    def setting(self) -> dict[str, Any]:
        """What it has learned by, as far as it was told: of Tetris height, width, pieces and game_over."""
        return dict(self._setting) if self.episodes > 0 else {}

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
        """
        unit, amount = amount_of(episodes, steps)
        self._take_on(endless_task_of(env), setting_of(env))
        learn_for(self, env, unit, amount, progress, on_episode)
        return self

    def adopt(self, task: Task, setting: dict[str, Any], example: Any) -> StationaryLearner:
        """Take on a task with observations like `example`; `setting` is what else is known of it."""
        self._take_on(task, setting)
        self._look(example, None)
        assert self._learner is not None
        return self._learner

    def _take_on(self, task: Task, setting: dict[str, Any]) -> None:
        if self._learner is None:
            self._task, self._setting = task, setting
            return
        check_setting(self._setting, setting)
        if self._task != task:
            raise ValueError(
                f"this agent has learned {self._task}, it cannot go on with {task}: use agent.clone()"
            )

    def _episode(self, env: Env[Any, Any]) -> None:
        """One episode: plan, act, learn. If anything fails, the agent is as it was before."""
        with self.undone_if_it_fails():
            observation, info = env.reset(seed=int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            place = self._look(observation, info.get("action_mask"))
            w, rule, parameter = self.episode_plan()
            episode: list[tuple[Place, int, float, Place | None]] = []
            terminated = truncated = False
            while not (terminated or truncated):
                Q = place.values(w)
                a = choose(rule, parameter, Q, place.legal, np.empty_like(Q), self._streams[ACTION])
                if a < 0:
                    raise unusable()
                observation, reward, terminated, truncated, info = env.step(self._first_action + a)
                following = None if terminated else self._look(observation, info.get("action_mask"))
                episode.append((place, a, checked_reward(reward), following))
                place = following or place
        assert self._learner is not None
        for step in episode:
            self._learner.remember(*step)
        self.note(len(episode))

    @contextmanager
    def undone_if_it_fails(self) -> Iterator[None]:
        """What is done to streams and weights holds only if all of it succeeds."""
        kept, learner = self._streams.copy(), self._learner
        theta = None if learner is None else learner.theta.copy()
        try:
            yield
        except BaseException:
            self._streams[:], self._learner = kept, learner
            if learner is not None and theta is not None:
                learner.theta[:] = theta
            raise

    def episode_plan(self) -> tuple[Floats, int, float]:
        """The weights of the planes for the next episode, the rule of exploration and its parameter."""
        assert self._learner is not None
        w = self._plan(self.samples, self._learner.theta, POSTERIOR)
        rule, parameters = self.explore.parameters(self.episodes, 1)
        return w, rule, float(parameters[0])

    def note(self, steps: int) -> None:
        """Count an episode that has been learned from."""
        assert self._learner is not None
        largest = float(self._learner.work.largest[0]) if self.episodes else 0.0
        self.episodes, self.steps = self.episodes + 1, self.steps + steps
        self._longest = max(self._longest, steps)
        self._forget_plans()
        self._watch(largest)

    def _plan(self, sampled: bool, theta: Floats, stream: int) -> Floats:
        """From theta, which is theta^- before, to the weights of this episode; in the first one the prior mean."""
        assert self._learner is not None
        if self.episodes > 0:
            self._learner.plan(theta, sampled, self.regressions, self._streams[stream])
        return self._learner.weights(theta)

    def _watch(self, largest: float) -> None:
        """Notice targets that rewards, the prior and the discount cannot explain."""
        assert self._learner is not None
        reward, feature = self._learner.ring.reach
        ridge, sigma, shape, scale = noise_of(self.lam, self.sigma)
        spread = np.sqrt(scale / shape / ridge) if shape else sigma / np.sqrt(ridge)
        periods = 1 / (1 - self.gamma) if self.gamma < 1 else self._longest
        explained = (reward + feature * (np.abs(self._learner.model.mean).max() + spread)) * periods
        self.excess = float(largest / explained) if explained > 0 else 0.0
        if self.excess > self.diverged_above and not self.diverged:
            self.diverged = True
            warnings.warn(
                f"the values diverge: a target of size {largest:.3g} in episode {self.episodes - 1}, where "
                f"rewards, prior and discount explain {explained:.3g}; use a smaller gamma, features of a "
                "smaller scale, a larger lam, or fewer features",
                DivergenceWarning,
                stacklevel=5,
            )

    @batched
    def predict(
        self,
        observation: Any,
        state: int | None = None,
        episode_start: bool | None = None,
        deterministic: bool = False,
        action_mask: Bools | None = None,
    ) -> tuple[int, int]:
        """An action, and the state to pass to the next call: the number of steps taken in the episode.

        Without a state every call begins an episode, and so with a new sample of the value function.

        deterministic : act on the posterior mean, greedily. Otherwise as in learning: on a value function
            sampled at the start of the episode (RLSVI), or with the exploration given (LSVI).
        action_mask : which actions are legal; all of them by default.
        """
        h = 0 if state is None or episode_start else int(state)
        if self._learner is None or self.episodes == 0:
            raise RuntimeError("this agent has learned nothing yet: call learn first")
        if h < 0:
            raise ValueError(f"state is the number of steps taken, got {h}: start a new episode")
        place = self._look(observation, action_mask)
        Q = place.values(self._weights(deterministic or not self.samples, h == 0))
        rule, parameter = self.explore.parameters(self.episodes, 1)
        if deterministic:
            a = int(np.argmax(np.where(place.legal, Q, -np.inf)))
        else:
            a = choose(rule, parameter[0], Q, place.legal, np.empty_like(Q), self._streams[PREDICT])
        if a < 0 or not np.isfinite(Q[a]):
            raise unusable()
        return self._first_action + a, h + 1

    def _weights(self, mean: bool, first: bool) -> Floats:
        """The posterior mean, kept until more is learned; or a sample, a new one for each episode."""
        assert self._learner is not None
        if mean:
            if self._mean is None:
                self._mean = self._plan(False, self._learner.theta.copy(), PREDICT)
            return self._mean
        if first or self._drawn is None:
            self._drawn = self._plan(True, self._learner.theta.copy(), PREDICT)
        return self._drawn

    def _look(self, observation: Any, mask: Any) -> Place:
        """An observation as the learner sees it, checked. The first one shows what features look like."""
        assert self._task is not None
        observation, legal = checked_observation(self._task, observation), self._task.legal(mask)
        basis = self.basis or Tabular()
        if self._learner is None:
            features = bound_features(basis, self._task, self.form == "afterstate", observation)
            model = Model(np.zeros((0, 0)), *noise_of(self.lam, self.sigma), float(self.gamma))
            self._learner = StationaryLearner.new(
                features, self._task.actions, model, self.prior_mean, self.memory
            )
            self._setting = {**features.setting, **self._setting}
        elif self._learner.features is None:
            features = bound_features(basis, self._task, self.form == "afterstate", observation)
            check_setting(self._setting, features.setting)
            self._learner.take(features)
        return self._learner.look(observation, legal)

    @property
    def _first_action(self) -> int:
        return self._task.first_action if self._task else 0
