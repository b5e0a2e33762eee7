"""UCRL2 for finite horizons: the best MDP consistent with the data, solved by extended value iteration.

Jaksch, Ortner and Auer (2010), where (h, s) takes the place of a state:

    for phases k = 0, 1, ..   (a phase ends with the episode in which some pair has been tried as often within
                               the phase as before it)
        t = steps so far + 1, n = max(1, visits of (h, s, a))
        |r - r_mean| <= (high - low) sqrt(7 log(2 S H A t / delta) / (2 n))
        |p - p_mean|_1 <= sqrt(14 S log(2 A H t / delta) / n)
        Q_h(s, a) = max r + max p'V_{h+1} within these sets,  V_h = max_a Q_h       (extended value iteration)
        act greedily on Q

If periods are alike (`homogeneous`), visits are those of all periods together, and H is 1 in the logarithms, as in
the original. The last period counts for r only, since no next state is observed in it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlsvi.agents.contract import STEPS
from rlsvi.agents.tabular.table import (
    ROWS,
    TabularAgent,
    TabularMind,
    begin_period,
    copy_plan,
    copy_table,
    copy_values,
    count_row,
    learn_step,
    plan_backwards,
    plan_values,
    probability,
    range_of,
    value_of,
)
from rlsvi.core.checks import positive
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled
from rlsvi.core.elementary import log


@dataclass(kw_only=True, repr=False, eq=False)
class UCRL2(TabularAgent):
    """Optimism over L1 confidence sets of MDPs, with a table.

    The end of an episode before its last period is a possible outcome once it has been seen.

    Parameters
    ----------
    delta
        The confidence sets fail with at most this probability.
    scale
        Factor of both radii. The theory requires 1; smaller values work best.
    reward_range
        (low, high), the bounds of all rewards.
    homogeneous
        As for PSRL.
    horizon, seed
        As for RLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.UCRL2(scale=0.1, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=5), 100).predict(0, deterministic=True)
    (1, 1)
    """

    _samples = False

    reward_range: tuple[float, float] = (0.0, 1.0)
    homogeneous: bool = False
    delta: float = 0.05
    scale: float = 1.0

    def _rule(self, H: int, S: int, A: int) -> "UCRL2Rule":
        low, high = range_of(self.reward_range)
        scale, delta = positive("scale", self.scale), probability("delta", self.delta)
        return UCRL2Rule(low, high, scale, delta, order=np.zeros(S + 1, np.int64), p=np.zeros(S + 1))

    def _blank_plan(self, H: int, S: int, A: int) -> "Phase":
        """Return the first phase, which is over before it begins."""
        Q, V = super()._blank_plan(H, S, A)
        return Phase(Q, V, np.zeros((ROWS if self.homogeneous else H, S, A)), np.ones(1, np.bool_))


class UCRL2Rule(NamedTuple):
    """The bounds of rewards, and what the radii are made of."""

    low: float
    high: float
    scale: float
    delta: float
    order: Longs  # (S + 1,) work arrays
    p: Floats  # (S + 1,)


class Phase(NamedTuple):
    """A plan, which is kept until its phase is over."""

    Q: Floats
    V: Floats
    visits: Floats  # (P, S, A) when the plan was made
    due: Bools  # (1,) whether a pair has been tried as often since then as before


@copy_plan.register(Phase)
def copy_phase(plan: Phase, to: Phase) -> None:
    """Copy the values, and what says when they are due again."""
    copy_values(plan, to)
    copy_table(plan.visits, to.visits)
    to.due[0] = plan.due[0]


@learn_step.register(UCRL2Rule)
def end_phase(rule: UCRL2Rule, mind: TabularMind, h: int, s: int, a: int) -> bool:
    """End the phase if this pair has been tried as often within it as before it."""
    counts, plan, p = mind.counts, mind.plan, count_row(mind.homogeneous, mind.plan.Q.shape[0], h)
    n, before = counts.visits[p, s, a], plan.visits[p, s, a]
    if mind.homogeneous:
        n, before = n + counts.visits[1 - p, s, a], before + plan.visits[1 - p, s, a]
    if n - before >= max(1.0, before):
        plan.due[0] = True
    return True


@compiled
def radii(rule: UCRL2Rule, H: int, S: int, A: int, t: float, n: float) -> tuple[float, float]:
    """Return the radii of the confidence sets of a mean reward and, in L1, of the next state's distribution."""
    n, delta = max(1.0, n), rule.delta
    reward = (rule.high - rule.low) * math.sqrt(7.0 * log(2.0 * S * H * A * t / delta) / (2.0 * n))
    return rule.scale * reward, rule.scale * math.sqrt(14.0 * S * log(2.0 * A * H * t / delta) / n)


@plan_values.register(UCRL2Rule)
def ucrl2(rule: UCRL2Rule, mind: TabularMind, sampled: bool, stream: Words) -> bool:
    """Extended value iteration, if the phase is over. Returns False if a value is not finite."""
    counts, plan = mind.counts, mind.plan
    if not plan.due[0]:
        return True
    if not plan_backwards(rule, mind, sampled, stream):
        return False
    copy_table(counts.visits, plan.visits)
    plan.due[0] = False
    return True


@begin_period.register(UCRL2Rule)
def order_outcomes(rule: UCRL2Rule, mind: TabularMind, h: int) -> None:
    """Order the possible next states, and the end if it is one, from the best to the worst."""
    sort_descending(mind.plan.V[h + 1], rule.order, outcomes_of(mind, h))


@compiled
def outcomes_of(mind: TabularMind, h: int) -> int:
    """Return the number of possible next states; the end of an episode, number S, is one if it was seen."""
    S: int = mind.plan.Q.shape[1]
    return S + 1 if mind.counts.ends[0 if mind.homogeneous else h] > 0 else S


@value_of.register(UCRL2Rule)
def optimistic_value(
    rule: UCRL2Rule, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words
) -> float:
    """Return the highest value within the confidence sets."""
    counts, V = mind.counts, mind.plan.V
    H, S, A = mind.plan.Q.shape
    p, periods = (0, 1) if mind.homogeneous else (h, H)  # periods that have confidence sets of their own
    t = counts.counters[STEPS] + 1.0
    n, m, reward = counts.visits[p, s, a], counts.visits[p, s, a], counts.reward[p, s, a]
    if mind.homogeneous:
        n, reward = n + counts.visits[1, s, a], reward + counts.reward[1, s, a]
    Q = rule.high
    if n > 0.0:
        Q = min(reward / n + radii(rule, periods, S, A, t, n)[0], Q)
    if h + 1 < H:
        d = radii(rule, periods, S, A, t, m)[1]
        Q += optimistic(counts.into[p, s, a], m, d, V[h + 1], rule.order, outcomes_of(mind, h), rule.p)
    return Q


@compiled
def optimistic(into: Floats, n: float, radius: float, V: Floats, order: Longs, outcomes: int, p: Floats) -> float:
    """Maximise p'V subject to |p - into / n|_1 <= radius, by moving mass from the worst outcomes to the best.

    `order` lists the outcomes from the best to the worst. `p` is overwritten with the maximiser.
    """
    best = order[0]
    for j in range(outcomes):
        p[j] = into[j] / n if n > 0.0 else 0.0
    moved = min(1.0 - p[best], 0.5 * radius) if n > 0.0 else 1.0
    p[best] += moved
    i = outcomes - 1
    while n > 0.0 and moved > 0.0 and i > 0:
        taken = min(p[order[i]], moved)
        p[order[i]] -= taken
        moved -= taken
        i -= 1
    value = 0.0
    for j in range(outcomes):
        value += p[j] * V[j]
    return value


@compiled
def sort_descending(V: Floats, order: Longs, size: int) -> None:
    """order[:size] <- the first `size` indices of V from the highest to the lowest value, by insertion."""
    for i in range(size):
        j = i
        while j > 0 and V[order[j - 1]] < V[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
