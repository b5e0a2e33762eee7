"""Stationary LSVI: stationary RLSVI without its noise, and with dithering instead (appendix D)."""

from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.stationary.agent import Form, StationaryAgent
from rlsvi.bases import Basis
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed


class StationaryLSVI(StationaryAgent):
    """Least-squares value iteration without a fixed number of periods.

    Parameters
    ----------
    lam : the ridge, > 0: theta minimises |A theta - b|^2 + lam |theta - prior_mean|^2. It corresponds to
        StationaryRLSVI's lam sigma^2.
    explore : Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the episode.
    gamma, basis, form, memory, regressions, prior_mean, diverged_above, seed : as for StationaryRLSVI.
    """

    samples = False
    sigma = 1.0

    def __init__(
        self,
        *,
        lam: float = 1.0,
        explore: Explore = Greedy(),
        gamma: float = 0.99,
        basis: Basis | None = None,
        form: Form = "literal",
        memory: int | None = 100_000,
        regressions: int = 1,
        prior_mean: float | Floats = 0.0,
        diverged_above: float = 1000.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.explore, self.gamma = lam, explore, gamma
        self.basis, self.form = basis, form
        self.memory, self.regressions = memory, regressions
        self.prior_mean, self.diverged_above = prior_mean, diverged_above
        self.seed = seed
        self._start()
