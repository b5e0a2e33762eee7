"""What is believed of the noise of a target: its standard deviation, or a prior over its variance."""

from dataclasses import dataclass
from typing import NamedTuple

from rlsvi.core.checks import positive, ridge_of, whole
from rlsvi.core.compile import Floats
from rlsvi.core.plain import storable


@storable
@dataclass(frozen=True)
class InverseGamma:
    """sigma^2 ~ InverseGamma(shape, scale): density proportional to v^(-shape - 1) exp(-scale / v).

    The weights are then N(prior_mean, sigma^2 I / lam) given sigma^2: the conjugate prior, in which lam counts in
    transitions, and is the ridge. A small shape says little; sigma^2 is about scale / shape.
    """

    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("scale", self.scale)


@storable
@dataclass(frozen=True)
class ByEvidence:
    """lam and sigma are those that all data so far support best, as `rlsvi.evidence` finds them.

    They are found anew at the start of the episodes number first, 2 first, 4 first, ..; before that, and as long
    as all targets are 0, lam is the one given and sigma is `sigma`. Data cannot speak of what they have not met:
    where rewards are rare, begin with a `sigma` that explores.
    """

    sigma: float = 0.1
    first: int = 8

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        whole("first", self.first, 1)

    def due(self, episodes: int) -> bool:
        """Whether lam and sigma are found anew before this episode."""
        times, rest = divmod(episodes, self.first)
        return rest == 0 and times > 0 and times & (times - 1) == 0


Noise = float | InverseGamma


class Model(NamedTuple):
    """The regression of one discounted value function: prior, noise and discount."""

    mean: Floats  # (B, d) prior mean of the weights
    ridge: float
    sigma: float  # of known noise
    shape: float  # of unknown noise; 0: it is known
    scale: float
    gamma: float


def noise_of(lam: float, sigma: Noise) -> tuple[float, float, float, float]:
    """The ridge, sigma where it is known, and the shape (0 where it is known) and scale of the prior."""
    if isinstance(sigma, ByEvidence):
        raise ValueError(
            "sigma=ByEvidence() is for RLSVI, which keeps all it needs of its data: give a number here"
        )
    if isinstance(sigma, InverseGamma):
        return positive("lam", lam), 0.0, float(sigma.shape), float(sigma.scale)
    return ridge_of(lam, sigma), float(sigma), 0.0, 0.0
