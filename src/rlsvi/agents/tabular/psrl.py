"""PSRL: sample an MDP from the posterior, solve it, follow its optimal policy for an episode.

Osband, Russo and Van Roy (2013), with the conjugate prior of Theorem 1:

    for l = 0, 1, ..
        for every (h, s, a)
            P(h, s, a) ~ Dirichlet(alpha_P + counts of the next states)
            R(h, s, a) ~ low + (high - low) Beta(alpha_R[1] + highs, alpha_R[0] + lows)
        Q_h = R_h + P_h V_{h+1},  V_h = max_a Q_h               for h = H-1, .., 0
        act greedily on Q for an episode
"""

import math
from typing import Any

import numpy as np

from rlsvi.agents.tabular.agent import TabulaRasaAgent, range_of
from rlsvi.agents.tabular.counts import Known, best_values
from rlsvi.core.checks import positive
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.random import Seed, gamma, normal, pick
from rlsvi.mdp.dirichlet import weights_of

LOW, HIGH, ALPHA_LOW, ALPHA_HIGH, NOISE = range(5)  # of Known.numbers


class PSRL(TabulaRasaAgent):
    """Posterior sampling for reinforcement learning.

    Parameters
    ----------
    alpha_P : prior weight of every next state, or one for each, (S,). The end of an episode before its last
        period has no prior weight, and counts once it was seen.
    alpha_R : prior weights of the rewards `low` and `high`: a number or a pair.
    reward_range : (low, high). A reward in between counts partly as low, partly as high.
    reward_noise : None: as above. A number: rewards are normal with this standard deviation, and their mean is
        normal, centred on `reward_range` with half its width as standard deviation; rewards may lie outside.
    horizon, seed : as for RLSVI.
    """

    samples = True
    kind = 0

    def __init__(
        self,
        *,
        alpha_P: float | Floats = 1.0,
        alpha_R: float | tuple[float, float] = 1.0,
        reward_range: tuple[float, float] = (0.0, 1.0),
        reward_noise: float | None = None,
        horizon: int | None = None,
        seed: Seed = None,
    ) -> None:
        self.alpha_P, self.alpha_R = alpha_P, alpha_R
        self.reward_range, self.reward_noise = reward_range, reward_noise
        self.horizon, self.seed = horizon, seed
        self._start()

    def _numbers(self, horizon: int, states: int, actions: int, weights: int) -> Floats:
        noise = 0.0 if self.reward_noise is None else positive("reward_noise", self.reward_noise)
        return np.array([*range_of(self.reward_range), *weights_of("alpha_R", self.alpha_R, 2), noise])

    def _alpha(self, states: int) -> Floats:
        return weights_of("alpha_P", self.alpha_P, states)

    def _any_reward(self) -> bool:
        return self.reward_noise is not None

    @staticmethod
    def _planner(known: Known, mean: bool, stream: Words) -> Any:
        return psrl(known, mean, stream)


@compiled
def psrl(known: Known, mean: bool, stream: Words) -> bool:
    """Solve an MDP drawn from the posterior, or the posterior's mean; False where a value is not finite."""
    counts, plan = known.counts, known.plan
    H, S, A = plan.Q.shape
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                if counts.legal[h, s, a]:
                    n, total = counts.visits[h, s, a], counts.reward[h, s, a]
                    Q = mean_reward(known.numbers, n, total, mean, stream)
                    if h + 1 < H:
                        into = counts.into[h, s, a]
                        Q += next_value(known.alpha, into, plan.V[h + 1], plan.p, mean, stream)
                    plan.Q[h, s, a] = Q
        if not best_values(known, h):
            return False
    return True


@compiled
def mean_reward(numbers: Floats, n: float, total: float, mean: bool, stream: Words) -> float:
    """The mean reward of a pair tried n times, drawn from its posterior, or the posterior's mean."""
    low, high, noise = numbers[LOW], numbers[HIGH], numbers[NOISE]
    if noise > 0.0:
        middle, width = 0.5 * (low + high), 0.5 * (high - low)
        weight = noise * noise / (width * width)  # of the prior, in rewards
        centre = (weight * middle + total) / (weight + n)
        if not mean:
            centre += noise / math.sqrt(weight + n) * normal(stream)
        return float(centre)
    highs = min(max((total - n * low) / (high - low), 0.0), n)
    up, down = numbers[ALPHA_HIGH] + highs, numbers[ALPHA_LOW] + (n - highs)
    if not mean:
        up, down = gamma(stream, up), gamma(stream, down)
    return float(low + (high - low) * (up / (up + down)))


@compiled
def next_value(alpha: Floats, into: Floats, V: Floats, p: Floats, mean: bool, stream: Words) -> float:
    """P'V for P ~ Dirichlet(alpha + into), or its mean; `p` is overwritten."""
    total, value, weights = 0.0, 0.0, 0.0
    for j in range(p.size):
        weight = alpha[j] + into[j]
        weights += weight
        p[j] = weight if mean or weight == 0.0 else gamma(stream, weight)
        total += p[j]
        value += p[j] * V[j]
    if total > 0.0:
        return value / total
    for j in range(p.size):  # weights so small that all underflow: one state has all the probability
        p[j] = (alpha[j] + into[j]) / weights
    return float(V[pick(stream, p)])
