"""RLSVI with bounded targets: Algorithm 1, but no value behind a target is higher or lower than a return can be.

    for h = H-1, .., 0
        regress r + V_{h+1} on the features, and sample theta_h              (rlsvi.py)
        Q_h = Phi_h theta_h,  V_h = max_a Q_h clipped to [low_h, high_h]

In Algorithm 1, noise that makes V_{h+1} too high or too low is passed on to all earlier periods, where it adds up.
Here it ends at the bounds, as in BoundedRLSVI for discounted problems. Actions are chosen by Q, without bounds.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.finite.memory import Memory
from rlsvi.agents.finite.rlsvi import RLSVI, Prior, Values, clip_values, draw_sigma, known_sigma, sampled_sigma
from rlsvi.bases import Features
from rlsvi.core.checks import finite, shown
from rlsvi.core.compile import Floats
from rlsvi.envs.task import Task


@dataclass(kw_only=True, repr=False, eq=False)
class BoundedTargetRLSVI(RLSVI):
    """Randomized least-squares value iteration with values that are clipped to the returns that are possible.

    Parameters
    ----------
    bounds
        The lowest and the highest sum of rewards from a period to the end of the episode, of all policies: two
        numbers for all periods, or a pair for each, (H, 2). If None, nothing is clipped, as in RLSVI. If all
        rewards are between low and high, and episodes may end early, the bounds of period h are (H - h) min(low,
        0) and (H - h) max(high, 0).
    lam, sigma, basis, horizon, prior_mean, reward_offset, seed
        As for RLSVI. The offset counts as reward.

    Examples
    --------
    The chain pays at most 1 in an episode:

    >>> import gymnasium, rlsvi
    >>> from rlsvi_paper.agents import BoundedTargetRLSVI
    >>> agent = BoundedTargetRLSVI(bounds=(0, 1), seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 50).predict(0, deterministic=True)
    (1, 1)
    """

    _fused = True

    bounds: tuple[float, float] | Floats | None = None

    def _check(self) -> None:
        super()._check()
        if self.bounds is not None:
            bounds_of(self.bounds)

    def _prior(self, task: Task, features: Features) -> Prior:
        """Return the prior of the weights, with the bounds of the values if there are any."""
        prior = super()._prior(task, features)
        if self.bounds is None:
            return prior
        kind: Any = BoundedPriorOfNoise if prior.shape > 0.0 else BoundedPrior
        bounded: Prior = kind(*prior, *bounds_of(self.bounds, task.horizon))
        return bounded


def bounds_of(given: Any, horizon: int | None = None) -> Floats:
    """Return the lowest and the highest value of every period, (2, H), given two numbers or a pair for each.

    Parameters
    ----------
    horizon
        The number of periods; if None, as many as are given.
    """
    pairs = finite("bounds", given)
    H = horizon if horizon is not None else len(pairs) if pairs.ndim == 2 else 1
    if pairs.shape not in ((2,), (H, 2)):
        shape = f"({'H' if horizon is None else H}, 2)"
        raise ValueError(f"bounds must be two numbers or a pair for each period, {shape}, got shape {pairs.shape}")
    if not (pairs[..., 0] <= pairs[..., 1]).all():
        raise ValueError(f"bounds must have the lower number first, got {shown(given)}")
    return np.ascontiguousarray(np.broadcast_to(pairs, (H, 2)).T)


class BoundedPrior(NamedTuple):
    """A prior of weights and noise, as in Algorithm 1, and the bounds of the values."""

    mean: Floats
    lam: float
    ridge: float
    sigma: float
    shape: float
    scale: float
    low: Floats  # (H,)
    high: Floats  # (H,)


class BoundedPriorOfNoise(BoundedPrior):
    """The same for unknown noise."""

    __slots__ = ()


draw_sigma.register(BoundedPrior)(known_sigma)
draw_sigma.register(BoundedPriorOfNoise)(sampled_sigma)


@clip_values.register(BoundedPrior)
def clip_to_bounds(prior: Any, memory: Memory, values: Values, h: int) -> None:
    """Clip V_h at the known states."""
    V, low, high = values.V[h], prior.low[h], prior.high[h]
    for j in range(memory.states[h]):
        V[j] = min(max(V[j], low), high)
