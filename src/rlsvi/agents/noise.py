"""The noise of a target: its standard deviation, or a prior over its variance."""

from dataclasses import dataclass
from typing import NamedTuple

from rlsvi.core.archive import storable
from rlsvi.core.checks import positive, ridge_of, whole
from rlsvi.core.compile import Floats


@storable
@dataclass(frozen=True)
class InverseGamma:
    """sigma^2 ~ InverseGamma(shape, scale): density proportional to v^(-shape - 1) exp(-scale / v).

    Given sigma^2, the weights are N(prior_mean, sigma^2 I / lam). This is the conjugate prior, in which lam is the
    ridge, measured in transitions. A small shape is a weak prior; sigma^2 is about scale / shape.
    """

    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("scale", self.scale)


@storable
@dataclass(frozen=True)
class ByEvidence:
    """Use the lam and sigma that all data so far support best, as found by `rlsvi.evidence`.

    They are updated at the start of episodes first, 2 first, 4 first, ..; before that, and as long as all targets
    are 0, lam is the given one and sigma is `sigma`. Data say nothing about what they do not contain: if rewards
    are rare, begin with a `sigma` that explores.
    """

    sigma: float = 0.1
    first: int = 8

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        whole("first", self.first, 1)

    def due(self, episodes: int) -> bool:
        """Return whether lam and sigma are updated before this episode."""
        times, rest = divmod(episodes, self.first)
        return rest == 0 and times > 0 and times & (times - 1) == 0


Noise = float | InverseGamma


class Model(NamedTuple):
    """The regression of one discounted value function: prior, noise and discount."""

    mean: Floats  # (B, d) prior mean of the weights
    ridge: float
    sigma: float  # if the noise is known
    shape: float  # if the noise is unknown; 0 if it is known
    scale: float
    gamma: float


def noise_of(lam: float, sigma: Noise) -> tuple[float, float, float, float]:
    """Return the ridge, sigma if known, and the shape (0 if sigma is known) and scale of the prior."""
    if isinstance(sigma, ByEvidence):
        raise ValueError(
            "sigma=ByEvidence() is for RLSVI, which keeps all it needs of its data: give a number here"
        )
    if isinstance(sigma, InverseGamma):
        return positive("lam", lam), 0.0, float(sigma.shape), float(sigma.scale)
    return ridge_of(lam, sigma), float(sigma), 0.0, 0.0
