"""PSRL: sample an MDP from the posterior, solve it, follow its optimal policy for an episode.

Osband, Russo and Van Roy (2013), with the conjugate prior of Theorem 1:

    for l = 0, 1, ..
        for every (h, s, a)
            P(h, s, a) ~ Dirichlet(alpha_P + counts of the next states)
            R(h, s, a) ~ low + (high - low) Beta(alpha_R[1] + highs, alpha_R[0] + lows)
        Q_h = R_h + P_h V_{h+1},  V_h = max_a Q_h               for h = H-1, .., 0
        act greedily on Q for an episode

If periods are alike (`homogeneous`), one P(s, a) and one R(s, a) are drawn for all of them, given the counts of
all. The last period counts for R only, since no next state is observed in it.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.tabular.table import TabularAgent, TabularMind, plan_backwards, plan_values, range_of, value_of
from rlsvi.core.checks import Constraints, check_even, optional, positive
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.random import gamma, normal, pick
from rlsvi.mdp.examples import weights_of


@dataclass(kw_only=True, repr=False, eq=False)
class PSRL(TabularAgent):
    """Posterior sampling for reinforcement learning: an episode acts optimally in a sampled MDP, with a table.

    Parameters
    ----------
    alpha_P
        Prior weight of every next state, or one weight for each, (S,). The end of an episode before its last
        period has no prior weight, and counts once it has been seen.
    alpha_R
        Prior weights of the rewards `low` and `high`: a number or a pair.
    reward_range
        (low, high). A reward in between counts partly as low and partly as high.
    reward_noise
        If None, as above. If a number, rewards are normal with this standard deviation, and their mean is normal,
        centred on `reward_range`, with half its width as standard deviation; rewards may lie outside.
    homogeneous
        Whether transitions, rewards and legal actions are known not to depend on the period. The last step must
        then not pay an additional r_H. This is checked where the problem is a FiniteMDP.
    horizon, seed
        As for RLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.PSRL(homogeneous=True, reward_range=(-1, 1), seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/RiverSwim-v0"), 50).predict(0, deterministic=True)
    (1, 1)
    """

    _samples = True

    reward_range: tuple[float, float] = (0.0, 1.0)
    homogeneous: bool = False
    alpha_P: float | Floats = 1.0
    alpha_R: float | tuple[float, float] = 1.0
    reward_noise: float | None = None

    _constraints: ClassVar[Constraints] = {"alpha_P": check_even, "reward_noise": optional(positive)}

    def _rule(self, H: int, S: int, A: int) -> "PSRLRule | HomogeneousPSRLRule":
        noise = 0.0 if self.reward_noise is None else float(self.reward_noise)
        prior = reward_prior(self.reward_range, self.alpha_R, noise), state_weights(self.alpha_P, S)
        if not self.homogeneous:
            return PSRLRule(*prior, p=np.zeros(S + 1))
        return HomogeneousPSRLRule(*prior, p=np.zeros(S + 1), R=np.zeros((S, A)), P=np.zeros((S, A, S + 1)))

    def _reward_bounds(self) -> tuple[float, float]:
        """Return the lowest and the highest reward that can be learned from; any reward if they are normal."""
        return (-math.inf, math.inf) if self.reward_noise is not None else super()._reward_bounds()


class RewardPrior(NamedTuple):
    """The prior of a mean reward."""

    low: float
    high: float
    weight_low: float  # alpha_R
    weight_high: float
    noise: float  # the standard deviation of normal rewards, or 0


class PSRLRule(NamedTuple):
    """The prior of an MDP."""

    reward: RewardPrior
    alpha: Floats  # (S + 1,) prior weights of the next state; 0 for the end
    p: Floats  # (S + 1,) work array


class HomogeneousPSRLRule(NamedTuple):
    """The same for periods that are alike, and one MDP drawn for all of them."""

    reward: RewardPrior
    alpha: Floats
    p: Floats
    R: Floats  # (S, A)
    P: Floats  # (S, A, S + 1)


def reward_prior(reward_range: Any, alpha_R: Any, noise: float = 0.0) -> RewardPrior:
    """Return the prior of a mean reward, after checking it."""
    low, high = range_of(reward_range)
    weights = weights_of("alpha_R", alpha_R, 2)
    return RewardPrior(low, high, float(weights[0]), float(weights[1]), noise)


def state_weights(alpha_P: Any, S: int) -> Floats:
    """Return the prior weights of all next states and of the end, after checking them."""
    return np.append(weights_of("alpha_P", alpha_P, S), 0.0)


@value_of.register(PSRLRule)
def psrl(rule: PSRLRule, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words) -> float:
    """Return a value of an MDP drawn from the posterior, or of the posterior mean."""
    counts, V = mind.counts, mind.plan.V
    if not counts.legal[h, s, a]:
        return -np.inf
    Q = mean_reward(rule.reward, counts.visits[h, s, a], counts.reward[h, s, a], sampled, stream)
    if h + 1 < mind.plan.Q.shape[0]:
        Q += next_value(rule.alpha, counts.into[h, s, a], V[h + 1], rule.p, sampled, stream)
    return Q


@plan_values.register(HomogeneousPSRLRule)
def homogeneous_psrl(rule: HomogeneousPSRLRule, mind: TabularMind, sampled: bool, stream: Words) -> bool:
    """Draw one P and one R for all periods, and solve the MDP."""
    counts = mind.counts
    S, A = rule.R.shape
    for s in range(S):
        for a in range(A):
            n = counts.visits[0, s, a] + counts.visits[1, s, a]
            total = counts.reward[0, s, a] + counts.reward[1, s, a]
            rule.R[s, a] = mean_reward(rule.reward, n, total, sampled, stream)
            weights = draw_weights(rule.alpha, counts.into[0, s, a], rule.p, sampled, stream)
            for y in range(S + 1):
                rule.P[s, a, y] = rule.p[y] / weights
    return plan_backwards(rule, mind, sampled, stream)


@value_of.register(HomogeneousPSRLRule)
def value_in_sample(
    rule: HomogeneousPSRLRule, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words
) -> float:
    """Return a value of the MDP that was drawn."""
    H, S, _ = mind.plan.Q.shape
    Q: float = rule.R[s, a]
    for y in range(S if h + 1 < H else 0):
        Q += rule.P[s, a, y] * mind.plan.V[h + 1, y]
    return Q


@compiled
def mean_reward(prior: RewardPrior, n: float, total: float, sampled: bool, stream: Words) -> float:
    """Return the mean reward of a pair tried n times, drawn from its posterior, or the posterior mean."""
    low, high, noise = prior.low, prior.high, prior.noise
    if noise > 0.0:
        middle, width = 0.5 * (low + high), 0.5 * (high - low)
        weight = noise * noise / (width * width)  # of the prior, in numbers of rewards
        centre = (weight * middle + total) / (weight + n)
        if sampled:
            centre += noise / math.sqrt(weight + n) * normal(stream)
        return float(centre)
    highs = min(max((total - n * low) / (high - low), 0.0), n)
    up, down = prior.weight_high + highs, prior.weight_low + (n - highs)
    if sampled:
        up, down = gamma(stream, up), gamma(stream, down)
    return float(low + (high - low) * (up / (up + down)))


@compiled
def next_value(alpha: Floats, into: Floats, V: Floats, p: Floats, sampled: bool, stream: Words) -> float:
    """Return P'V for P ~ Dirichlet(alpha + into), or its mean; `p` is overwritten."""
    total, value = draw_weights(alpha, into, p, sampled, stream), 0.0
    for j in range(p.size):
        value += p[j] * V[j]
    return value / total


@compiled
def draw_weights(alpha: Floats, into: Floats, p: Floats, sampled: bool, stream: Words) -> float:
    """Draw p / sum(p) ~ Dirichlet(alpha + into), or set it to the mean; return the sum of p."""
    total, weights = 0.0, 0.0
    for j in range(p.size):
        weight = alpha[j] + into[j]
        weights += weight
        p[j] = weight if not sampled or weight == 0.0 else gamma(stream, weight)
        total += p[j]
    if total > 0.0:
        return total
    for j in range(p.size):  # if all weights underflow, one state has all the probability
        p[j] = (alpha[j] + into[j]) / weights
    only = pick(stream, p)
    for j in range(p.size):
        p[j] = 1.0 if j == only else 0.0
    return 1.0
