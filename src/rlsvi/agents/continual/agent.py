"""Continual RLSVI (appendix F): for discounted problems that never end, a new value function in every step.

theta_0 = prior mean, w_0 = 0
for t = 0, 1, ..
    sample a_t from argmax_a (Phi theta_t)(x_t, a)                          (ties broken fairly)
    observe r_t and x_t+1
    theta_t+1 = theta-bar_t+1 + w_t+1, by one regression over all data      (continual_step.py)

The noise w moves slowly, so that the agent can follow a plan of several steps. Without noise, and with dithering
instead, this is ContinualLSVI. An environment that ends all the same is begun anew, and learning goes on.
"""

import warnings
from typing import Any, Literal, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.batches import batched
from rlsvi.agents.continual.learner import ContinualLearner
from rlsvi.agents.continual.step import INDEPENDENT, NONE, PAPER, WHITENED
from rlsvi.agents.explore import Explore, Greedy, choose
from rlsvi.agents.finite.learner import broken
from rlsvi.agents.finite.value_iteration import Prior
from rlsvi.agents.stationary.agent import DivergenceWarning
from rlsvi.agents.stationary.learner import prior_mean_of
from rlsvi.agents.task import Task, checked_observation, checked_reward, endless_task_of
from rlsvi.agents.verbs import ACTION, EPISODE, POSTERIOR, PREDICT, Verbs, new_streams
from rlsvi.bases import Basis, Features, Tabular
from rlsvi.core.checks import finite, positive, ridge_of, shaped, whole
from rlsvi.core.compile import Bools, Floats
from rlsvi.core.progress import bar
from rlsvi.core.random import Seed, bits

Walking = Literal["paper", "whitened", "independent"]
KINDS = {"paper": PAPER, "whitened": WHITENED, "independent": INDEPENDENT, "none": NONE}


class ContinualAgent(Verbs):
    """One value function for ever, regressed anew in every step. ContinualRLSVI and ContinualLSVI say how."""

    lam: float
    sigma: float
    gamma: float
    noise: str
    basis: Basis | None
    prior_mean: float | Floats
    explore: Explore
    diverged_above: float
    seed: Seed

    def _start(self) -> None:
        """Check the arguments a constructor has stored; nothing is learned yet."""
        ridge_of(self.lam, self.sigma)
        gamma = shaped("gamma", finite("gamma", self.gamma), ())
        if not 0 <= gamma < 1:
            raise ValueError(f"gamma must lie in [0, 1): without end there must be a discount; got {self.gamma!r}")
        if self.noise not in KINDS:
            raise ValueError(f'noise must be "paper", "whitened" or "independent", got {self.noise!r}')
        finite("prior_mean", self.prior_mean)
        positive("diverged_above", self.diverged_above)
        if self.basis is not None and not hasattr(self.basis, "bind"):
            raise TypeError(f"basis must be a basis such as rlsvi.bases.Tabular(), got {self.basis!r}")
        if not isinstance(self.explore, Explore):
            raise TypeError(f"explore must be Greedy, EpsilonGreedy or Boltzmann, got {self.explore!r}")
        self.explore.parameters(0, 1)
        self._streams = new_streams(self.seed)
        self._world = np.zeros(4, np.uint64)  # the random stream of an MDP in the compiled loop
        self._task: Task | None = None
        self._problem_basis: Basis | None = None
        self._learner: ContinualLearner | None = None
        self._env: Env[Any, Any] | None = None  # the one that stands where the agent stands
        self._row = -1  # where the agent stands, as a row of its memory
        self._overshoot = self.steps = 0
        self.excess = 0.0
        self.diverged = False

    def learn(self, env: Env[Any, Any], *, steps: int, reset: bool | None = None, progress: bool = False) -> Self:
        """Act and learn for `steps` more steps.

        reset : begin the environment anew, with a seed that the agent's own decides. None: unless it was the last
            to act in it. False: never; the environment must stand where the agent's last step led, as when both
            come from a checkpoint.
        """
        whole("steps", steps, 0)
        self.take_on(endless_task_of(env))
        if reset is None:
            reset = env is not self._env
        if not reset and self._row < 0:
            raise ValueError("reset=False needs an agent that has learned: it does not know where env stands")
        if reset:
            self._begin(env)
        with bar(steps, "steps", progress) as advance:
            for _ in range(steps):
                self._step(env)
                advance(1)
        return self

    def _begin(self, env: Env[Any, Any]) -> None:
        self._env, kept = None, self._streams.copy()
        try:
            observation, info = env.reset(seed=int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            self._row = self._known(observation, info.get("action_mask"))
        except BaseException:
            self._streams[:] = kept
            raise
        self._env = env

    def _step(self, env: Env[Any, Any]) -> None:
        """Act once, and learn from it. If it fails before it is learned from, nothing has been learned."""
        assert self._learner is not None
        kept = self._streams.copy()
        try:
            Q, legal = self._learner.at(self._row)
            rule, parameter = self.explore.parameters(self.steps, 1)
            a = choose(rule, parameter[0], Q, legal, np.empty_like(Q), self._streams[ACTION])
            if a < 0:
                raise broken()
            observation, reward, terminated, truncated, info = env.step(self._first_action + a)
            paid = checked_reward(reward)
            following = -1 if terminated else self._known(observation, info.get("action_mask"))
        except BaseException:
            self._streams[:], self._env = kept, None
            raise
        self._learner.advance(self._row, a, paid, following, KINDS[self.noise], self._streams[POSTERIOR])
        self._row = following
        self.note(1)
        if terminated or truncated:
            self._begin(env)

    def _known(self, observation: Any, mask: Any) -> int:
        """The row of an observation, which becomes known if it was not."""
        assert self._task is not None
        observation, legal = checked_observation(self._task, observation), self._task.legal(mask)
        learner = self._learner or self._new(self._task, self.features(observation))
        row = learner.row(observation, legal)
        self._learner = learner
        return row

    def note(self, steps: int) -> None:
        """Count steps that have been learned from, and notice targets that nothing explains."""
        assert self._learner is not None
        self.steps += steps
        self._learner.forget_mean()
        reward, feature, largest = self._learner.walk.reach
        spread = 0.0 if self.noise == "none" else 1 / np.sqrt(self.lam)
        explained = (reward + feature * (self._learner.prior_reach + spread)) / (1 - self.gamma)
        self.excess = float(largest / explained) if explained > 0 else 0.0
        if self.excess > self.diverged_above and not self.diverged:
            self.diverged = True
            warnings.warn(
                f"the values diverge: a target of size {largest:.3g} at step {self.steps}, where rewards, prior "
                f"and discount explain {explained:.3g}; use a smaller gamma, features of a smaller scale, a "
                "larger lam, or fewer features",
                DivergenceWarning,
                stacklevel=4,
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
        """An action; and a state, which is always 0, for there is one value function whatever came before.

        deterministic : act on theta-bar_t, greedily. Otherwise as in learning, on theta_t.
        action_mask : which actions are legal; all of them by default.
        """
        if self._learner is None or self._task is None or self.steps == 0:
            raise RuntimeError("this agent has learned nothing yet: call learn first")
        legal = self._task.legal(action_mask)
        Q = self._learner.values_of(checked_observation(self._task, observation), deterministic)
        rule, parameter = self.explore.parameters(self.steps, 1)
        if deterministic:
            a = int(np.argmax(np.where(legal, Q, -np.inf)))
        else:
            a = choose(rule, parameter[0], Q, legal, np.empty_like(Q), self._streams[PREDICT])
        if a < 0 or not np.isfinite(Q[a]):
            raise broken()
        return self._first_action + a, 0

    @property
    def _first_action(self) -> int:
        return self._task.first_action if self._task else 0

    def take_on(self, task: Task) -> None:
        """Take on a task, or check that it is the one learned so far."""
        if self._learner is None:
            self._task = task
        elif self._task != task:
            raise ValueError(
                f"this agent has learned {self._task}, it cannot go on with {task}: use agent.clone()"
            )

    def features(self, example: Any) -> Features:
        """The agent's basis, or the problem's, or else a table, bound to the task."""
        assert self._task is not None
        basis = self.basis or self._problem_basis or Tabular()
        return basis.bind(self._task.states, self._task.actions, 1, example)

    def _new(self, task: Task, features: Features) -> ContinualLearner:
        mean = prior_mean_of(self.prior_mean, (features.blocks, features.dim))[None]
        prior = Prior(mean, float(self.lam), ridge_of(self.lam, self.sigma), float(self.sigma), 0.0, 0.0)
        learner = ContinualLearner.new(features, task.actions, 1, task.states, prior)
        return learner.begun(float(self.gamma))


class ContinualRLSVI(ContinualAgent):
    """Randomized least-squares value iteration for discounted problems without end.

    Parameters
    ----------
    lam : prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma : standard deviation of the noise of a target, > 0. Larger explores longer.
    gamma : discount, in [0, 1).
    noise : how w follows itself. "paper": N(sqrt(1 - gamma^2) w, gamma^2 Sigma), as printed, which at gamma = .99
        has a correlation of .14 only; "whitened": an autoregression of correlation gamma in units of Sigma;
        "independent": anew in every step. All have covariance Sigma.
    basis : how states and actions map to weights; None: a table. Observations that are not numbered states are all
        kept, and a step costs as much as there are.
    prior_mean : prior mean of the weights: a number or (weights,).
    diverged_above : a target so many times larger than rewards, prior and discount explain is reported, by a
        DivergenceWarning and the attributes `diverged` and `excess`. It is not changed.
    seed : decides all randomness, the environment's included.
    """

    def __init__(
        self,
        *,
        lam: float = 1.0,
        sigma: float = 1.0,
        gamma: float = 0.99,
        noise: Walking = "paper",
        basis: Basis | None = None,
        prior_mean: float | Floats = 0.0,
        diverged_above: float = 1000.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.sigma, self.gamma, self.noise = lam, sigma, gamma, noise
        self.basis, self.prior_mean, self.diverged_above = basis, prior_mean, diverged_above
        self.seed = seed
        self.explore = Greedy()
        if str(noise) == "none":
            raise ValueError("noise must be drawn: without any, use ContinualLSVI")
        self._start()


class ContinualLSVI(ContinualAgent):
    """Least-squares value iteration for discounted problems without end: ContinualRLSVI without noise.

    Parameters
    ----------
    lam : the ridge, > 0. It corresponds to ContinualRLSVI's lam sigma^2.
    explore : Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the step.
    gamma, basis, prior_mean, diverged_above, seed : as for ContinualRLSVI.
    """

    sigma = 1.0
    noise = "none"

    def __init__(
        self,
        *,
        lam: float = 1.0,
        explore: Explore = Greedy(),
        gamma: float = 0.99,
        basis: Basis | None = None,
        prior_mean: float | Floats = 0.0,
        diverged_above: float = 1000.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.explore, self.gamma = lam, explore, gamma
        self.basis, self.prior_mean, self.diverged_above = basis, prior_mean, diverged_above
        self.seed = seed
        self._start()
