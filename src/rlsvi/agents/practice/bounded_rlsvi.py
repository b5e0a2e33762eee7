"""Stationary RLSVI made for practice: bounded targets, one draw held until converged, nothing to tune.

for l = 0, 1, ..
    draw the noise z of the regression, once                                        (held_sweeps.py)
    until Q changes little
        b_i = r_i + gamma max_a Q(s_i', a), or r_i at the end, put into the bounds
        Q = Phi (posterior mean for b + sigma L^-T z)
    until the end of the episode
        sample a_t from argmax_a Q(s_t, a), observe r_t and s_t+1                   (history.py)
"""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.batches import batched
from rlsvi.agents.explore import GREEDY, choose
from rlsvi.agents.noise import InverseGamma, Noise, noise_of
from rlsvi.agents.practice.learner import BoundedLearner, Lookup, Place, Prior, Step
from rlsvi.agents.practice.value_iteration import Outcome
from rlsvi.agents.stationary.learner import unusable
from rlsvi.agents.task import Task, checked_reward, endless_task_of
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
from rlsvi.bases import Basis, Observed, RowBasis, Tabular, of
from rlsvi.bases.default import is_table
from rlsvi.core.checks import finite, shaped, whole
from rlsvi.core.compile import Bools, Floats, Words
from rlsvi.core.random import Seed, bits

Bounds = Literal["attainable"] | tuple[float, float] | None
UNKNOWN = InverseGamma(1.0, 1.0)  # in squares of the usual reward
RIDGE = 0.1  # of features
MEAN_SWEEPS = 10  # times as many at most for the posterior mean, which is worked out once and acted on for long


class BoundedRLSVI(Verbs):
    """Randomized least-squares value iteration with defaults that work. `rlsvi.agent_for(env)` makes one.

    It learns from all that has happened; what happened before is counted, not kept again. Measured observations
    are scaled by what has been observed; when that range grows, all features are worked out anew from the
    observations, so that the posterior is exact (`rescalings` counts it, the logger "rlsvi" tells).
    docs/practice.md gives the evidence for each default.

    Parameters
    ----------
    lam : the ridge if sigma is unknown, else prior precision: the prior is N(prior_mean, I / lam). None: 0.1 of
        features; of a table what the cells tried so far speak for.
    sigma : standard deviation of the noise of a target; or InverseGamma(shape, scale), a prior over its square.
        None: InverseGamma(1, u^2), where u is the usual size of a reward, or 1 if that is less.
    gamma : discount, in [0, 1].
    basis : bases.Fourier(), Polynomial(), Radial() or Tiles() for the measured part of observations;
        bases.of(env, ..) to give bounds as well; or any basis with a block an action. None: a table where
        observations are counted and at most 10,000, else Radial() of up to two numbers and Fourier() of more.
    alike : prior correlation of the weights of two actions, in [0, 1); what one action teaches of a state is
        believed of the others to that degree. A table ignores it.
    bounds : what a target is put into. "attainable": [r_min / (1 - gamma), r_max / (1 - gamma)] for the rewards
        seen, and one usual reward, which holds the values of all policies; two numbers; or None. Without them the
        values of features can diverge; the paper has none. Values that do raise DivergenceWarning and are planned
        anew with ten times the ridge (`recoveries` counts it).
    regressions : sweeps of value iteration an episode at most, all with the same noise.
    tolerance : they end when Q changes by less than this part of its size.
    update_every : learn and plan anew after so many steps within an episode too; None: only at its end.
    prior_mean : prior mean of the weights, a number. None: 0; of a table without `lam` that of the cells tried.
    seed : decides all randomness, the environment's included.
    """

    samples = True

    def __init__(
        self,
        *,
        lam: float | None = None,
        sigma: Noise | None = None,
        gamma: float = 0.99,
        basis: Basis | RowBasis | None = None,
        alike: float = 0.5,
        bounds: Bounds = "attainable",
        regressions: int = 20,
        tolerance: float = 1e-4,
        update_every: int | None = 1000,
        prior_mean: float | None = None,
        seed: Seed = None,
    ) -> None:
        self.lam, self.sigma, self.gamma = lam, sigma, gamma
        self.basis, self.alike, self.bounds = basis, alike, bounds
        self.regressions, self.tolerance, self.update_every = regressions, tolerance, update_every
        self.prior_mean, self.seed = prior_mean, seed
        self._start()

    def _start(self) -> None:
        """Check the arguments; nothing is learned yet."""
        self._noise = (
            *noise_of(RIDGE if self.lam is None else self.lam, UNKNOWN if self.sigma is None else self.sigma),
            _part("gamma", self.gamma, True),
        )
        _part("alike", self.alike, False)
        _part("tolerance", self.tolerance, False)
        if self.prior_mean is not None:
            shaped("prior_mean", finite("prior_mean", self.prior_mean), ())
        whole("regressions", self.regressions, 1)
        if self.update_every is not None:
            whole("update_every", self.update_every, 1)
        self._bounds = _bounds(self.bounds)
        made = not isinstance(self.basis, type) and (hasattr(self.basis, "rows") or hasattr(self.basis, "bind"))
        if self.basis is not None and not made:
            raise TypeError(f"basis must be a basis such as rlsvi.bases.Fourier(), got {self.basis!r}")
        self._streams = new_streams(self.seed)
        self._task: Task | None = None
        self._problem_basis: Observed | None = None  # the layout of the environment's observations
        self._learner: BoundedLearner | None = None
        self.episodes = self.steps = self._overshoot = 0
        self.planned: Outcome | None = None  # the last sweeps: how many, whether converged, sigma
        self._forget_plans()

    def _forget_plans(self) -> None:
        self._mean: Floats | None = None
        self._drawn: Floats | None = None

    @property
    def rescalings(self) -> int:
        """How often the observed range grew and all features were worked out anew."""
        return self._learner.rescalings if self._learner else 0

    @property
    def recoveries(self) -> int:
        """How often values diverged in learning, and were planned anew with ten times the ridge."""
        return self._learner.recoveries if self._learner else 0

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
        Episodes are played to their end; what exceeds `steps` counts towards the next call with `steps`.
        If the environment fails, what was learned before is kept, and can be saved.

        on_episode : is called with the agent and the return of the episode, after each one.
        """
        unit, amount = amount_of(episodes, steps)
        self._take_on(env)
        learn_for(self, env, unit, amount, progress, on_episode)
        return self

    def _take_on(self, env: Env[Any, Any]) -> None:
        """Take on the task of an environment, or check that it is the one learned so far."""
        task = endless_task_of(env)
        layout = of(env) if self._takes_layout() else None
        if self._learner is None:
            self._task, self._problem_basis = task, layout
        elif self._task != task or (
            layout and self._problem_basis and layout.layout != self._problem_basis.layout
        ):
            raise ValueError(
                f"this agent has learned {self._task}, it cannot go on with {task}: use agent.clone()"
            )

    def _takes_layout(self) -> bool:
        """Whether the environment says where the numbers of an observation are, and not the basis."""
        return self.basis is None or isinstance(self.basis, Tabular) or hasattr(self.basis, "rows")

    def _episode(self, env: Env[Any, Any]) -> None:
        """One episode: plan, act, learn. If anything fails, the agent is as it was when it last learned."""
        before = self._snapshot()
        try:
            observation, info = env.reset(seed=int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            place, going_on = self._look(observation, info.get("action_mask")), True
            while going_on:
                learner = self._learner
                assert learner is not None
                self._plan_episode(learner)
                steps, place, going_on = self._play(env, learner, place)
                self._learner = learner.after(steps)
                self.steps += len(steps)
                self._forget_plans()
                before = self._snapshot()
        except BaseException:
            self._streams[:], self._learner, values = before
            if self._learner is not None and values is not None:
                self._learner.theta, self._learner.Q, self._learner.recoveries = values
            raise
        self.episodes += 1

    def _snapshot(self) -> tuple[Words, BoundedLearner | None, tuple[Floats | None, Floats, int] | None]:
        """What an episode changes before it is learned from."""
        learner = self._learner
        values = None if learner is None else (learner.theta, learner.Q, learner.recoveries)
        return self._streams.copy(), learner, values

    def _plan_episode(self, learner: BoundedLearner) -> None:
        if learner.design is None:
            return
        self.planned = learner.plan(
            self._noise, self._bounds, self._streams[POSTERIOR], self.regressions, self.tolerance
        )
        learner.theta, learner.Q = self.planned.theta, self.planned.Q
        learner.recoveries += self.planned.recoveries

    def _play(self, env: Env[Any, Any], learner: BoundedLearner, place: Place) -> tuple[list[Step], Place, bool]:
        """Act until the episode ends or it is time to learn: the steps, the place reached, whether it goes on."""
        assert self._task is not None
        steps: list[Step] = []
        while self.update_every is None or len(steps) < self.update_every:
            Q = learner.values(learner.theta, place)
            a = choose(GREEDY, 0.0, Q, place.legal, np.empty_like(Q), self._streams[ACTION])
            if a < 0:
                raise unusable()
            observation, reward, terminated, truncated, info = env.step(self._task.first_action + a)
            following = None if terminated else self._look(observation, info.get("action_mask"))
            steps.append((place, a, checked_reward(reward), following))
            place = following or place
            if terminated or truncated:
                return steps, place, False
        return steps, place, True

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

        deterministic : act on the posterior mean, greedily; otherwise as in learning, on a sampled value function.
        action_mask : which actions are legal; by default those that were in learning, or all.

        Arrays of a row an environment give arrays, as stable-baselines3 expects it.
        """
        h = 0 if state is None or episode_start else int(state)
        if self._learner is None or self._learner.design is None:
            raise RuntimeError("this agent has learned nothing yet: call learn first")
        if h < 0:
            raise ValueError(f"state is the number of steps taken, got {h}: start a new episode")
        assert self._task is not None
        place = self._look(observation, action_mask)
        known = self._learner.history.find(place.x)
        if action_mask is None and known is not None:
            place = place._replace(legal=self._learner.history.legal[known])
        Q = self._learner.values(self._weights(deterministic, h == 0), place)
        if deterministic:
            a = int(np.argmax(np.where(place.legal, Q, -np.inf)))
        else:
            a = choose(GREEDY, 0.0, Q, place.legal, np.empty_like(Q), self._streams[PREDICT])
        if a < 0 or not np.isfinite(Q[a]):
            raise unusable()
        return self._task.first_action + a, h + 1

    def _weights(self, mean: bool, first: bool) -> Floats:
        """The posterior mean, kept until more is learned; or a sample, a new one for each episode."""
        assert self._learner is not None
        if mean:
            if self._mean is None:
                cap = MEAN_SWEEPS * self.regressions
                self._mean = self._learner.plan(self._noise, self._bounds, None, cap, self.tolerance).theta
            return self._mean
        if first or self._drawn is None:
            stream = self._streams[PREDICT]
            self._drawn = self._learner.plan(
                self._noise, self._bounds, stream, self.regressions, self.tolerance
            ).theta
        return self._drawn

    def _look(self, observation: Any, mask: Any) -> Place:
        """An observation as the learner sees it, checked."""
        assert self._task is not None
        legal = self._task.legal(mask)
        if self._learner is None:
            lookup = self.lookup()
            row = lookup.row(observation)
            self._learner = BoundedLearner(lookup.tried(row), len(row), self.prior())
        return Place(self._learner.lookup.row(observation), legal)

    def prior(self) -> Prior:
        """What is believed of the weights."""
        mean = None if self.prior_mean is None else float(self.prior_mean)
        return Prior(mean, float(self.alike), self.lam is None, self.sigma is None)

    def lookup(self) -> Lookup:
        """How observations of the task become features."""
        assert self._task is not None
        given, layout = self.basis, self._problem_basis
        if layout is None:
            return Lookup(given, False, self._task, given=True)
        if given is None or isinstance(given, Tabular):
            return Lookup(layout, given is not None or is_table(layout.layout), self._task, given=False)
        return Lookup(replace(layout, basis=given), False, self._task, given=False)


def _part(name: str, value: Any, one: bool) -> float:
    """A number in [0, 1), or in [0, 1]."""
    number = float(shaped(name, finite(name, value), ()))
    if not 0 <= number < 1 and not (one and number == 1):
        raise ValueError(f"{name} must lie in [0, 1{']' if one else ')'}, got {value!r}")
    return number


def _bounds(given: Any) -> Any:
    if given is None or isinstance(given, str):
        if given not in (None, "attainable"):
            raise ValueError(f'bounds must be "attainable", two numbers or None, got {given!r}')
        return given
    low, high = shaped("bounds", finite("bounds", given), (2,))
    if not low < high:
        raise ValueError(f"bounds must be two numbers, the lower one first, got {given!r}")
    return float(low), float(high)
