"""UCBVI: value iteration on the empirical MDP, with a bonus for actions that were rarely tried.

Azar, Osband and Munos (2017), where (h, s) takes the place of a state and rewards are learned too:

    for k = 1, 2, ..
        for h = H-1, .., 0, every (s, a)
            Q_h(s, a) = min(Q_h(s, a) of the last episode, largest return, r_mean + p_mean'V_{h+1} + bonus)
            V_h = max_a Q_h
        act greedily on Q for an episode

With K episodes, T = K H and L = log(5 H S A T / delta), n visits of (h, s, a), and n'(y) visits of (h+1, y), the
bonus is
    Hoeffding   7 H L / sqrt(n)
    Bernstein   sqrt(8 L Var_p(V) / n) + 14 H L / (3 n)
                + sqrt(8 sum_y p(y) min(100^2 H^3 S^2 A L^2 / n'(y), H^2) / n) + sqrt(L / (2 n))
times the width of `reward_range`. The paper has L = log(5 S A T / delta), for one P in all periods; here there are
H times as many pairs, and the bonus must hold for all of them. The last term is for the mean reward, which the
paper assumes known; the first bonus is wide enough for it.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

from rlsvi.agents.tabular.table import TabularAgent, TabularMind, probability, range_of, value_of
from rlsvi.core.checks import Constraints, one_of, positive, whole
from rlsvi.core.compile import Words, compiled
from rlsvi.core.elementary import log


@dataclass(kw_only=True, repr=False, eq=False)
class UCBVI(TabularAgent):
    """Upper confidence bound value iteration, which is optimistic by a bonus for what is rarely seen.

    Parameters
    ----------
    bonus
        "hoeffding" (UCBVI-CH) or "bernstein" (UCBVI-BF).
    delta
        The probability that values are not optimistic throughout is at most this.
    planned
        K, the number of episodes that will be played.
    scale
        Factor of the bonus. The theory requires 1; smaller values work best.
    reward_range
        (low, high), the bounds of all rewards. As episodes may end early, it is extended to contain 0.
    horizon, seed
        As for RLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.UCBVI(scale=0.1, planned=100, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 100).episodes
    100
    """

    _samples = False

    reward_range: tuple[float, float] = (0.0, 1.0)
    bonus: Literal["hoeffding", "bernstein"] = "hoeffding"
    delta: float = 0.05
    planned: int = 100_000
    scale: float = 1.0

    _constraints: ClassVar[Constraints] = {"bonus": partial(one_of, names=("hoeffding", "bernstein"))}

    def _rule(self, H: int, S: int, A: int) -> "UCBVIRule":
        low, high = range_of(self.reward_range, with_zero=True)
        steps = whole("planned", self.planned, 1, 2**62) * H
        L = log(5 * H * S * A * steps / probability("delta", self.delta))
        return UCBVIRule(high, high - low, positive("scale", self.scale), L, bool(self.bonus == "bernstein"))


class UCBVIRule(NamedTuple):
    """The bounds of rewards, and what the bonus is made of."""

    high: float
    width: float  # of the range of rewards
    scale: float
    L: float
    bernstein: bool


@value_of.register(UCBVIRule)
def ucbvi(rule: UCBVIRule, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words) -> float:
    """Return an optimistic value, which never rises."""
    counts, plan = mind.counts, mind.plan
    H, S, _ = plan.Q.shape
    n = counts.visits[h, s, a]
    Q: float = min(plan.Q[h, s, a], (H - h) * rule.high)
    if n == 0.0:
        return Q
    expected = counts.reward[h, s, a] / n
    for y in range(S if h + 1 < H else 0):
        expected += counts.into[h, s, a, y] / n * plan.V[h + 1, y]
    bonus = bernstein(rule, mind, h, s, a) if rule.bernstein else 7.0 * H * rule.L / math.sqrt(n)
    return float(min(Q, expected + rule.scale * rule.width * bonus))


@compiled
def bernstein(rule: UCBVIRule, mind: TabularMind, h: int, s: int, a: int) -> float:
    """Return the bonus of UCBVI-BF, for rewards of width 1."""
    counts, V, L, width = mind.counts, mind.plan.V, rule.L, rule.width
    H, S, A = mind.plan.Q.shape
    n, first, spread, doubt = counts.visits[h, s, a], 0.0, 0.0, 0.0
    for y in range(S + 1):
        first += counts.into[h, s, a, y] / n * V[h + 1, y]
    for y in range(S + 1):
        p = counts.into[h, s, a, y] / n
        away = V[h + 1, y] - first
        spread += p * (away * away) / (width * width)
        if p > 0.0 and y < S:
            visits = 0.0
            for b in range(A):
                visits += counts.visits[h + 1, y, b]
            most = H * H * 1.0
            if visits > 0.0:
                most = min(most, 1e4 * (H * H * H) * S * S * A * L * L / visits)
            doubt += p * most
    values = math.sqrt(8.0 * L * spread / n) + 14.0 * H * L / (3.0 * n) + math.sqrt(8.0 * doubt / n)
    return float(values + math.sqrt(0.5 * L / n))
