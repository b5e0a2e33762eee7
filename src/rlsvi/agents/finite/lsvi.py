"""LSVI with dithering: the algorithms of appendix A that RLSVI is compared with.

for l = 0, 1, ..
    compute theta_l0, .., theta_l,H-1 by least squares          (Algorithm 3: Algorithm 1 without noise)
    observe s_l0
    for h = 0, .., H-1
        a_lh ~ exp((Phi_h theta_lh)(s_lh, .) / eta)             (Algorithm 4, Boltzmann), or
        a_lh uniform with probability epsilon, else greedy      (Algorithm 5, epsilon-greedy)
        observe r_lh and s_l,h+1
"""

from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.bases import Basis
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed


class LSVI(FiniteHorizonAgent):
    """Least-squares value iteration with greedy, epsilon-greedy or Boltzmann exploration.

    Parameters
    ----------
    lam : the ridge, > 0: theta minimises |A theta - b|^2 + lam |theta - prior_mean|^2. It corresponds to
        RLSVI's lam sigma^2.
    explore : Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the episode.
    basis, horizon, prior_mean, reward_offset, seed : as for RLSVI.
    """

    samples = False
    sigma = 1.0

    def __init__(
        self,
        *,
        lam: float = 1.0,
        explore: Explore = Greedy(),
        basis: Basis | None = None,
        horizon: int | None = None,
        prior_mean: float | Floats = 0.0,
        reward_offset: float = 0.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.explore = lam, explore
        self.basis, self.horizon = basis, horizon
        self.prior_mean, self.reward_offset = prior_mean, reward_offset
        self.seed = seed
        self._start()
