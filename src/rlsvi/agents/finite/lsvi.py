"""LSVI with dithering: the algorithms of appendix A that RLSVI is compared with.

for l = 0, 1, ..
    compute theta_l0, .., theta_l,H-1 by least squares          (Algorithm 3: Algorithm 1 without noise)
    observe s_l0
    for h = 0, .., H-1
        a_lh ~ exp((Phi_h theta_lh)(s_lh, .) / eta)             (Algorithm 4, Boltzmann), or
        a_lh uniform with probability epsilon, else greedy      (Algorithm 5, epsilon-greedy)
        observe r_lh and s_l,h+1
"""

from dataclasses import dataclass

from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.finite.agent import FiniteHorizonAgent


@dataclass(kw_only=True, repr=False, eq=False)
class LSVI(FiniteHorizonAgent):
    """Least-squares value iteration with greedy, epsilon-greedy or Boltzmann exploration.

    Parameters
    ----------
    lam : the ridge, > 0: theta minimises |A theta - b|^2 + lam |theta - prior_mean|^2. It corresponds to
        RLSVI's lam sigma^2.
    explore : Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the episode.
    basis, horizon, prior_mean, reward_offset, seed : as for RLSVI.
    """

    explore: Explore = Greedy()

    samples = False
