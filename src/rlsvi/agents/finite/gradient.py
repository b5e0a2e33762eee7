"""RLSVI by stochastic gradients (appendix F, "another approach"): without matrices, for very many features.

A sample of the posterior is also the solution of a perturbed regression: theta-tilde minimises
    sum_i (r_i + V_h+1(s_i') + w_i - phi_i . theta)^2 + ridge |theta - theta_p|^2,
with w_i ~ N(0, sigma^2) and theta_p ~ N(prior_mean, I / lam). Here `ensemble` such solutions are tracked in
parallel, each with its own fixed w_i and theta_p. Every transition carries its share of the prior: of the n_k
transitions that touch a weight k, each has c_k = ridge / n_k, so that the sum runs over transitions alone,
    sum_i ((b_i - phi_i . theta)^2 + sum over the k it touches of c_k (theta_k - theta_pk)^2).
Every episode is played by one member of the ensemble, after
    for h = H-1, .., 0
        `updates` times: draw a past transition i of period h, with target b_i = r_i + V_h+1(s_i') + w_i
            theta becomes the minimiser of its term plus sum_k (ridge + mass_k) (theta_k - its previous value)^2
            mass_k = (1 - nu) mass_k + phi_ik^2 + c_k
The step is implicit, as in a Kalman filter with a diagonal covariance, and does not diverge for any scale of
features. With nu = 0 and fixed targets, steps get smaller and theta converges to the solution. With nu > 0, theta
fluctuates around it, as the mean of the last 1 / nu draws of a target fluctuates around the mean of all. This adds
a variance of up to nu / 2 times that of the targets to the posterior's, which is the price of following targets
that change. The cost of an episode is constant. Weights take ensemble x H x K x 24 bytes, and only nonzero
features are stored.
"""

from dataclasses import dataclass

from rlsvi.agents.bound import restored_features
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.finite.gradient_learner import GradientLearner, Settings, read_past
from rlsvi.agents.task import Task
from rlsvi.bases import Features
from rlsvi.core.archive import Archive
from rlsvi.core.checks import in_unit_interval, positive, whole


@dataclass(kw_only=True, repr=False, eq=False)
class GradientRLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration by stochastic gradients, for very many features.

    Parameters
    ----------
    lam, sigma, basis, horizon, prior_mean, reward_offset, seed : as for RLSVI; sigma is a number.
    ensemble : the number of solutions. More are closer to independent samples, but learn more slowly.
    updates : gradient steps per period and episode.
    nu : how fast a weight forgets the steps it has taken, in [0, 1). Targets change while later periods are
        learned; with fixed targets, 0 samples from the posterior.
    memory : the number of most recent transitions kept for each period.
    """

    sigma: float = 0.1
    ensemble: int = 10
    updates: int = 32
    nu: float = 0.05
    memory: int = 10_000

    fused = False
    concurrent = False
    keeps_factors = False

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        positive("sigma", self.sigma)
        for name in ("ensemble", "updates", "memory"):
            whole(name, getattr(self, name), 1, 2**31 - 1)
        in_unit_interval("nu", self.nu)
        super().check()

    def learner_of(self, task: Task, features: Features) -> GradientLearner:
        """Return a learner without experience."""
        settings = Settings(self.ensemble, self.updates, float(self.nu), self.memory)
        return GradientLearner(task, features, self.prior(task, features), settings)

    def restored_learner(self, task: Task, file: Archive) -> GradientLearner:
        """Return the learner stored in a file, after checking all its arrays."""
        blocks, dim = (int(n) for n in file.take_within("features", (2,), "int64", 1, 2**31))
        shape = self.ensemble, task.horizon, blocks * dim
        arrays = {name: file.take(name, shape) for name in ("theta", "start", "mass")}
        learner = self.learner_of(task, restored_features(self, task, blocks, dim, counted=False))
        for name, array in arrays.items():
            getattr(learner, name)[...] = array
        learner.keys[:] = file.take("keys", learner.keys.shape, "uint64")
        learner.counters[:] = file.take_within("counters", (2,), "int64", 1, 2**62)
        read_past(file, learner)
        return learner
