"""Stationary LSVI: stationary RLSVI with dithering instead of noise (appendix D)."""

from dataclasses import dataclass

from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.stationary.agent import StationaryAgent


@dataclass(kw_only=True, repr=False, eq=False)
class StationaryLSVI(StationaryAgent):
    """Least-squares value iteration without a fixed number of periods.

    Parameters
    ----------
    lam : the ridge, > 0: theta minimises |A theta - b|^2 + lam |theta - prior_mean|^2. It corresponds to
        StationaryRLSVI's lam sigma^2.
    explore : Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the episode.
    gamma, basis, form, memory, regressions, prior_mean, diverged_above, seed : as for StationaryRLSVI.
    """

    explore: Explore = Greedy()

    samples = False
