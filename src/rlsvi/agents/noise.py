"""What is believed of the noise of a target: its standard deviation, or a prior over its variance."""

from dataclasses import dataclass

from rlsvi.core.checks import positive, ridge_of


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


Noise = float | InverseGamma


def noise_of(lam: float, sigma: Noise) -> tuple[float, float, float, float]:
    """The ridge, sigma where it is known, and the shape (0 where it is known) and scale of the prior."""
    if isinstance(sigma, InverseGamma):
        return positive("lam", lam), 0.0, float(sigma.shape), float(sigma.scale)
    return ridge_of(lam, sigma), float(sigma), 0.0, 0.0
