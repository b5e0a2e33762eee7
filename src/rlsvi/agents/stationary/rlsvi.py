"""Stationary RLSVI (appendix D): one value function for all periods, from the most recent transitions.

theta^-_0 = prior mean
for l = 0, 1, ..
    b_i = r_i + gamma max_a (Phi theta^-)(s_i', a), or r_i if s_i' is terminal      (targets.py)
    sample theta_l from the posterior of the regression of b on Phi                 (sweeps.py)
    (repeated with theta^- = theta_l and the same noise if `regressions` > 1)
    until the end of the episode
        sample a_t from argmax_a (Phi theta_l)(s_t, a)                              (ties broken uniformly)
        observe r_t and s_t+1                                                       (ring.py)
    theta^-_l+1 = theta_l
"""

from dataclasses import dataclass

from rlsvi.agents.noise import Noise
from rlsvi.agents.stationary.agent import StationaryAgent


@dataclass(kw_only=True, repr=False, eq=False)
class StationaryRLSVI(StationaryAgent):
    """Randomized least-squares value iteration without a fixed number of periods.

    Parameters
    ----------
    lam : prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma : standard deviation of the noise of a target, > 0; or InverseGamma(shape, scale), a prior over its
        square, in which case the prior of the weights is N(prior_mean, sigma^2 I / lam).
    gamma : discount, in [0, 1].
    basis : how states and actions map to weights. If None, a table. Features with `numbers` are stored in few
        bytes; features with `rewards` can be used in the afterstate form.
    form : "literal", Q(s, a) = theta . phi(s, a), or "afterstate", Q(s, a) = r(s, a) + gamma theta . phi(s, a)
        with r(s, a) known, where phi describes the result of the action.
    memory : the number of most recent transitions to learn from. If None, all.
    regressions : number of sweeps of value iteration per episode, all with the same noise.
    prior_mean : prior mean of the weights: a number or (weights,).
    diverged_above : a target larger than this multiple of what rewards, prior and discount explain is reported by
        a DivergenceWarning and the attributes `diverged` and `excess`. It is not changed.
    seed : determines all randomness, including the environment's.

    In the first episode there are no data and the weights are the prior mean (the paper's footnote 1).
    """

    sigma: Noise = 1.0
