"""RLSVI: sample a statistically plausible value function, act greedily on it for an episode, learn.

Algorithm 2 of the paper, with Algorithm 1 in value_iteration.py:

    for l = 0, 1, ..
        compute theta_l0, .., theta_l,H-1 by Algorithm 1            (plan)
        observe s_l0
        for h = 0, .., H-1
            sample a_lh from argmax_a (Phi_h theta_lh)(s_lh, a)     (act, ties broken fairly)
            observe r_lh and s_l,h+1
        observe r_lH                                                (paid with the last step)
"""

from rlsvi.agents.evidence import settle
from rlsvi.agents.explore import Greedy
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.noise import ByEvidence, Noise
from rlsvi.bases import Basis
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed


class RLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration.

    Parameters
    ----------
    lam : prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma : standard deviation of the noise of a target r + V, > 0. Larger explores longer. Or InverseGamma(shape,
        scale), a prior over its square, one for each period; the prior of the weights is then
        N(prior_mean, sigma^2 I / lam). Or ByEvidence(): lam and sigma are found from the data as they come.
    basis : how states and actions map to weights; None: the problem's own, or a table.
    horizon : number of periods H; None: what the environment says.
    prior_mean : prior mean of the weights: a number, (weights,) or (H, weights).
    reward_offset : added to every reward before it is learned from; -1 turns rewards {0, 1} into {-1, 0}.
    seed : decides all randomness, the environment's included.

    In the first episode there are no data and the weights are the prior mean (the paper's footnote 1).
    """

    samples = True

    def __init__(
        self,
        *,
        lam: float = 1.0,
        sigma: Noise | ByEvidence = 0.1,
        basis: Basis | None = None,
        horizon: int | None = None,
        prior_mean: float | Floats = 0.0,
        reward_offset: float = 0.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.sigma = lam, sigma
        self.found: tuple[float, float, int] | None = (
            None  # lam and sigma by evidence, and after how many episodes
        )
        self.basis, self.horizon = basis, horizon
        self.prior_mean, self.reward_offset = prior_mean, reward_offset
        self.seed = seed
        self.explore = Greedy()
        self._start()

    def parameters(self) -> tuple[float, Noise]:
        """The lam and sigma in use."""
        if not isinstance(self.sigma, ByEvidence):
            return self.lam, self.sigma
        return self.found[:2] if self.found else (self.lam, float(self.sigma.sigma))

    def settle(self) -> None:
        """Find lam and sigma anew where they are due; a second time does nothing."""
        due = isinstance(self.sigma, ByEvidence) and self.sigma.due(self.episodes)
        if due and (self.found is None or self.found[2] != self.episodes):
            settle(self)

    def settled_for(self, episodes: int) -> int:
        """How many of the next episodes have the same lam and sigma, at most `episodes`."""
        if not isinstance(self.sigma, ByEvidence):
            return episodes
        following = int(self.sigma.first)
        while following <= self.episodes:
            following *= 2
        return min(episodes, following - self.episodes)
