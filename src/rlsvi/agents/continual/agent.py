"""Continual RLSVI (appendix F): for discounted problems that never end, a new value function in every step.

theta_0 = prior mean, w_0 = 0
for t = 0, 1, ..
    sample a_t from argmax_a (Phi theta_t)(x_t, a)                          (ties broken uniformly)
    observe r_t and x_t+1
    theta_t+1 = theta-bar_t+1 + w_t+1, by one regression over all data      (step.py)

The noise w changes slowly, so that the agent can follow a plan of several steps. With dithering instead of noise,
this is ContinualLSVI. If an environment ends nevertheless, it is reset and learning continues.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.agent import explain_calls
from rlsvi.agents.continual.learner import ContinualLearner
from rlsvi.agents.continual.step import INDEPENDENT, NONE, PAPER, WHITENED, Rule
from rlsvi.agents.contract import EPISODE, POSTERIOR, weights_shaped
from rlsvi.agents.discounted import DiscountedAgent
from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.finite.rlsvi import Prior, new_mind, read_features
from rlsvi.agents.task import Task, begun
from rlsvi.bases import Basis, Features
from rlsvi.core.archive import Archive
from rlsvi.core.checks import flag, one_of, ridge_of, whole
from rlsvi.core.compile import Floats
from rlsvi.core.progress import bar
from rlsvi.core.random import Seed, bits
from rlsvi.logs.replay import Replay

NoiseRecursion = Literal["paper", "whitened", "independent"]
KINDS = {"paper": PAPER, "whitened": WHITENED, "independent": INDEPENDENT, "none": NONE}


@dataclass(kw_only=True, repr=False, eq=False)
class ContinualAgent(DiscountedAgent):
    """One value function, regressed anew in every step, the base of ContinualRLSVI and ContinualLSVI."""

    lam: float = 1.0
    gamma: float = 0.99
    basis: Basis | None = None
    prior_mean: float | Floats = 0.0
    diverged_above: float = 1000.0
    seed: Seed = None

    samples_first = True
    noise = "none"
    update_every = 1
    _env = None  # the environment in which the agent acted last

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        super().check()
        ridge_of(self.lam, self.sigma)
        if self.gamma == 1:
            raise ValueError("gamma must lie in [0, 1): without end there must be a discount; got 1")

    @explain_calls
    def learn(  # type: ignore[override]
        self, env: Env[Any, Any], *, steps: int, reset: bool | None = None, progress: bool | None = None
    ) -> Self:
        """Act and learn for `steps` more steps.

        reset : True resets the environment, with a seed derived from the agent's. None does so unless the agent
            was the last to act in it. False never does: the environment must then be in the state that the agent's
            last step led to, as when both come from a checkpoint.
        progress : as for other agents.
        """
        whole("steps", steps, 0)
        if reset is not None:
            flag("reset", reset)
        self.take_on(self.task_of(env), env)
        anew = env is not self._env if reset is None else reset
        if not anew and self.steps == 0:
            raise ValueError("reset=False needs an agent that has learned: it does not know where env stands")
        with bar(steps, "steps", progress) as advance:
            for _ in range(steps):
                self._step(env, anew)
                anew = False
                advance(1)
        return self

    def _relive(self, replay: Replay, progress: bool | None) -> None:
        """Learn from all steps of a log, after which life goes on unless the log says otherwise."""
        replay.open_end = True
        self.learn(replay, steps=replay.log.steps, progress=progress)

    def _step(self, env: Env[Any, Any], anew: bool) -> None:
        """Act once and learn from it. If it fails before learning, nothing has been learned."""
        assert self._task is not None
        self._env = None
        with self.undone_unless_learned():
            learner = self._learner
            place = None if anew or learner is None else learner.here()
            if place is None:
                observation, info = begun(env, int(bits(self._streams[EPISODE]) >> np.uint64(32)))
                learner = learner or self.new_learner(self._task, self._task.checked(observation))
                place = learner.look(0, observation, info.get("action_mask"))
            stream = self._streams[POSTERIOR]
            (step,), _, _, goes_on = self._play(env, learner, learner.plan(True, stream), place)
            self._learner = learner.live(step, not goes_on, stream)
        self._env = env
        self.notice()

    def _predict(self, *given: Any) -> tuple[int, int]:
        """Return an action, and a state that is always 0, since there is one value function for all steps."""
        action, _ = super()._predict(*given)
        return action, 0

    def plan(self, mean: bool, key: int = -1, first: bool = False) -> Any:
        """Return the values of theta-bar_t, or of theta_t, with which it learns."""
        return super().plan(mean, key, first=True) if mean else self._learner.plan(True, self._streams[POSTERIOR])

    def new_learner(self, task: Task, example: Any) -> ContinualLearner:
        """Return a learner without experience."""
        return self._learner_of(task, self.features(task, example))

    def restored_learner(self, task: Task, file: Archive) -> ContinualLearner:
        """Return the learner stored in a file, after checking all its arrays."""
        learner = self._learner_of(task, read_features(self, task, file))
        learner.restore(file)
        return learner

    def _learner_of(self, task: Task, features: Features) -> ContinualLearner:
        mean = weights_shaped(self.prior_mean, (1, features.blocks, features.dim))
        prior = Prior(mean, float(self.lam), ridge_of(self.lam, self.sigma), float(self.sigma), 0.0, 0.0)
        spread = 0.0 if self.noise == "none" else 1 / math.sqrt(self.lam)
        explained = float(np.abs(mean).max()) + spread
        rule = Rule(float(self.gamma), KINDS[self.noise], explained, float(self.diverged_above))
        return ContinualLearner(task, new_mind(task._replace(horizon=1), features, prior), features, rule)


@dataclass(kw_only=True, repr=False, eq=False)
class ContinualRLSVI(ContinualAgent):
    """Randomized least-squares value iteration for discounted problems that never end.

    Parameters
    ----------
    lam : prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma : standard deviation of the noise of a target, > 0. Larger values explore longer.
    gamma : discount, in [0, 1).
    noise : how w evolves. "paper": N(sqrt(1 - gamma^2) w, gamma^2 Sigma), as printed, which has a correlation of
        only .14 at gamma = .99; "whitened": an autoregression with correlation gamma in units of Sigma;
        "independent": drawn anew in every step. All have covariance Sigma.
    basis : how states and actions map to weights. If None, a table. Observations that are not numbered states are
        all stored, and the cost of a step is proportional to their number.
    prior_mean, diverged_above, seed : as for StationaryRLSVI.
    """

    sigma: float = 1.0
    noise: NoiseRecursion = "paper"

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        super().check()
        if str(self.noise) == "none":
            raise ValueError("noise must be drawn: without any, use ContinualLSVI")
        one_of("noise", self.noise, ("paper", "whitened", "independent"))


@dataclass(kw_only=True, repr=False, eq=False)
class ContinualLSVI(ContinualAgent):
    """Least-squares value iteration for discounted problems that never end: ContinualRLSVI without noise.

    Parameters
    ----------
    lam : the ridge, > 0. It corresponds to ContinualRLSVI's lam sigma^2.
    explore : Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the step.
    gamma, basis, prior_mean, diverged_above, seed : as for ContinualRLSVI.
    """

    explore: Explore = Greedy()
