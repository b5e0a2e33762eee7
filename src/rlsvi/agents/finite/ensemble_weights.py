"""EnsembleRLSVI with random weights instead of noise: its mind and its learner.

Member m solves   min_theta  sum_i w_im (r_i + V_h+1(s_i') - phi_i . theta)^2 + ridge |theta - theta0_m|^2
where w_im ~ Exp(1) is drawn once, when the transition is learned. Copies of a transition are stored once, with the
sum of their weights for each member. The regression of a member is built anew from these sums when it is picked.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.finite.bootstrap import BootstrapLearner
from rlsvi.agents.finite.bootstrap_mind import (
    add_steps,
    artificial,
    bootstrap_is_full,
    weight_of,
    weighted_iteration,
)
from rlsvi.agents.finite.ensemble_mind import begin_plan, key_of_episode
from rlsvi.agents.finite.memory import Memory
from rlsvi.agents.finite.mind import episode_rows, finite_only_best, finite_values, known_rows
from rlsvi.agents.finite.outcomes import Outcomes
from rlsvi.agents.finite.value_iteration import Prior, Values, key_of_block
from rlsvi.agents.mind import (
    ANY,
    Episode,
    Workspace,
    count,
    is_full,
    learn,
    only_best,
    plan,
    plan_as,
    remember,
    values,
)
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats, Ints, Longs, Words, compiled
from rlsvi.core.elementary import log
from rlsvi.core.random import normal, reseed, uniform
from rlsvi.core.regression import Factor
from rlsvi.mdp.table import Table


class WeightedMind(NamedTuple):
    """Like BootstrapMind, with M members."""

    features: FeatureTable
    rows: Ints  # (H, S) or (H, 0)
    memory: Memory
    outcomes: Outcomes
    factor: Factor  # (B, d + 1, d + 1) and (B, d + 1), a work array
    prior: Prior
    spread: float  # standard deviation of a prior draw
    values: Values
    x: Floats  # (d + 1,) work array
    weights: Floats  # (H, E, M) sums of the weights of every outcome
    keys: Words  # (M + 1,) identify the prior draw of each member, and the weights of all transitions
    scratch: Words  # work array


class FixedWeights(NamedTuple):
    """The weights and the prior draw of one member; `weights` has none for the posterior mean."""

    weights: Floats  # (H, E, 1 or 0)
    key: np.uint64
    spread: float


values.register(WeightedMind)(finite_values)
only_best.register(WeightedMind)(finite_only_best)
is_full.register(WeightedMind)(bootstrap_is_full)


@plan.register(WeightedMind)
def plan_with_any_weights(mind: WeightedMind, sampled: bool, stream: Words) -> bool:
    """Value iteration for a member drawn uniformly, or for the posterior mean if not `sampled`."""
    return plan_with_weights(mind, ANY, sampled, stream)


@plan_as.register(WeightedMind)
def plan_with_weights(mind: WeightedMind, k: int, sampled: bool, stream: Words) -> bool:
    """The same for member k."""
    m, values = begin_plan(mind, k, sampled, stream), mind.values
    key, spread = (mind.keys[m], mind.spread) if sampled else (np.uint64(0), 0.0)
    values.key[0] = key
    for h in range(values.spread.size):
        values.spread[h] = spread
    return weighted_iteration(mind, FixedWeights(mind.weights[:, :, m : m + (1 if sampled else 0)], key, spread))


@artificial.register(FixedWeights)
def fixed_artificial(weights: FixedWeights, mind: Any, h: int, b: int, k: int) -> tuple[float, float]:
    """The weight is the ridge, and the target the prior draw, the same that `new_values` makes from the key."""
    if k == 0:
        reseed(mind.scratch, key_of_block(weights.key, mind.memory.alive, h, b))
    return mind.prior.ridge, mind.prior.mean[h, b, k] + weights.spread * normal(mind.scratch)


@weight_of.register(FixedWeights)
def fixed_weight(weights: FixedWeights, outcomes: Outcomes, h: int, e: int) -> float:
    """The sum of the weights, or the number of copies for the posterior mean."""
    weight: float = weights.weights[h, e, 0] if weights.weights.shape[2] > 0 else outcomes.times[h, e]
    return weight


@learn.register(WeightedMind)
def weighted_learn(mind: WeightedMind, table: Table, T: int, work: Workspace) -> bool:
    """Count the transitions as BootstrapRLSVI does, and add weights of their own for every member."""
    known_rows(mind, table, T, work)
    add_steps(mind, work.visited, work.actions, work.rewards, T, False)
    add_weights(mind, work.visited, T, work.scratch)
    return count(mind.memory.counters, T)


@remember.register(WeightedMind)
def weighted_remember(mind: WeightedMind, episode: Episode, work: Workspace) -> bool:
    """The same for an episode played elsewhere."""
    episode_rows(mind, episode, work)
    T = episode.actions.size
    add_steps(mind, work.visited, episode.actions, episode.rewards, T, episode.goes_on)
    add_weights(mind, work.visited, T, work.scratch)
    return count(mind.memory.counters, T)


@compiled
def add_weights(mind: WeightedMind, outcomes: Longs, T: int, scratch: Words) -> None:
    """Add a weight of Exp(1) for each of T transitions and each member, given the positions of their outcomes."""
    reseed(scratch, key_of_episode(mind))
    for h in range(T):
        total = mind.weights[h, outcomes[h]]
        for m in range(total.size):
            total[m] -= log(1.0 - uniform(scratch))


class WeightedLearner(BootstrapLearner):
    """A learner that stores distinct transitions with the sums of their weights."""

    def resized_outcomes(self, room: int) -> dict[str, Any]:
        """Return the parts of the mind that have room for so many outcomes per period."""
        return super().resized_outcomes(room) | {"weights": resized_weights(self.mind.weights, room)}

    def state(self) -> dict[str, Any]:
        """Return the memory, the outcomes and the weights without unused room."""
        arrays = super().state()
        weights = resized_weights(self.mind.weights, arrays["outcomes.link"].shape[1])
        return arrays | {"weights": weights, "keys": self.mind.keys}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        super().restore(file)
        many, (H, room) = self.mind.outcomes.many, self.mind.outcomes.link.shape
        weights = file.take("weights", (H, room, self.mind.weights.shape[2]))
        unused = np.arange(room) >= many[:, None]
        if weights.min(initial=0.0) < 0.0 or weights[unused].any():
            raise ArchiveError("is damaged: its weights are negative, or belong to no transition")
        self.mind = self.mind._replace(weights=weights, keys=file.take("keys", self.mind.keys.shape, np.uint64))


def resized_weights(weights: Floats, room: int) -> Floats:
    """Return the same weights with room for another number of outcomes."""
    other = np.zeros((weights.shape[0], room, weights.shape[2]))
    n = min(room, weights.shape[1])
    other[:, :n] = weights[:, :n]
    return other
