"""RLSVI by a nonparametric bootstrap (section 7), for linear value functions.

Section 7 proposes to "take approximate posterior samples from a nonlinear value function via a nonparametric
bootstrap". This is its linear case, a Bayesian bootstrap as in Osband and Van Roy (2015): instead of adding noise
to the targets, as RLSVI does in effect, it gives random weights to the transitions and to artificial prior data.

    for l = 0, 1, ..
        for h = H-1, .., 0
            w_i ~ Exp(1) for every transition i of period h
            for every weight k, artificial data: a target y_k ~ N(prior_mean, 1 / lam), with a random weight
                v_k ~ Gamma(prior_weight), as of `prior_weight` transitions that all have this target
            theta_h minimises   sum_i w_i (r_i + V_h+1(s_i') - phi_i . theta)^2 + sum_k v_k (theta_k - y_k)^2
        play an episode greedily on it

No noise is assumed: how uncertain a value is depends on how much its targets differ, and on the artificial data.
If these were not random, an agent that has seen no reward would be sure that there is none. With a table, theta
is a Dirichlet mixture of the targets seen and of y, as in PSRL.

The weights are new in every episode, and so is the regression. Copies of a transition (h, s, a, r, s') are only
counted, and the sum of their n weights is drawn as Gamma(n). An episode thus costs one rank-one update for each
(h, s, a) tried, and one Gamma variate for each distinct transition. If there are finitely many states and rewards,
these numbers are bounded; otherwise the cost of an episode grows with the number of transitions. As for RLSVI, the
weights of the first episode are the prior mean.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.agents.arguments import checked_basis, weights_shaped
from rlsvi.agents.finite.agent import FiniteHorizonAgent, read_features
from rlsvi.agents.finite.bootstrap_mind import BootstrapMind
from rlsvi.agents.finite.learner import FiniteLearner
from rlsvi.agents.finite.memory import empty
from rlsvi.agents.finite.outcomes import no_outcomes, read_outcomes, resized
from rlsvi.agents.finite.value_iteration import Prior, no_values
from rlsvi.agents.mind import no_features
from rlsvi.agents.task import Task
from rlsvi.bases import Features
from rlsvi.core.archive import Archive
from rlsvi.core.checks import finite, flag, positive, shown
from rlsvi.core.regression import prior_factor

LEAST_WEIGHT = 0.1  # a Gamma variate of a smaller shape may be 0


@dataclass(kw_only=True, repr=False, eq=False)
class BootstrapRLSVI(FiniteHorizonAgent):
    """RLSVI with randomly weighted transitions instead of normal noise, for linear value functions.

    Parameters
    ----------
    lam : precision of the artificial targets, > 0, as of RLSVI's prior: they are N(prior_mean, 1 / lam).
    prior_weight : the number of transitions that an artificial target counts for, at least 0.1. It corresponds to
        RLSVI's lam sigma^2; larger values explore longer.
    random_prior : draw artificial targets. False: all are the prior mean, and only the weights are random, so that
        nothing is explored before targets differ.
    basis, horizon, prior_mean, reward_offset, seed : as for RLSVI.
    """

    prior_weight: float = 1.0
    random_prior: bool = True

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        positive("lam", self.lam)
        if positive("prior_weight", self.prior_weight) < LEAST_WEIGHT:
            raise ValueError(f"prior_weight must be at least {LEAST_WEIGHT}, got {shown(self.prior_weight)}")
        flag("random_prior", self.random_prior)
        finite("prior_mean", self.prior_mean)
        checked_basis(self.basis)

    def prior(self, task: Task, features: Features) -> Prior:
        """Return the artificial data of every weight."""
        mean = weights_shaped(self.prior_mean, (task.horizon, features.blocks, features.dim))
        return Prior(mean, float(self.lam), float(self.prior_weight), 0.0, 0.0, 0.0)

    def restored_learner(self, task: Task, file: Archive) -> Any:
        """Return the learner stored in a file, after checking all its arrays."""
        learner = self.learner_of(task, read_features(self, task, file, "memory.reward", 3))
        learner.restore(file)
        return learner

    def learner_of(self, task: Task, features: Features) -> Any:
        """Return a learner with these features and without experience."""
        spread = 1.0 / math.sqrt(self.lam) if self.random_prior else 0.0
        return BootstrapLearner(task, bootstrap_mind(task, features, self.prior(task, features), spread), features)


def bootstrap_mind(task: Task, features: Features, prior: Prior, spread: float) -> BootstrapMind:
    """Return the mind of a learner without experience."""
    H, A, B, d = task.horizon, task.actions, features.blocks, features.dim
    memory = empty(H, A, B, d)
    return BootstrapMind(
        features.table or no_features(d),
        np.full((H, task.states or 0), -1, dtype=np.int32),
        memory,
        no_outcomes(H, memory.block.shape[1]),
        prior_factor((B,), d + 1, 1.0),
        prior,
        spread,
        no_values(H, A, B, d, memory.sum_head.shape[1]),
        np.empty(d + 1),
    )


class BootstrapLearner(FiniteLearner):
    """A learner that stores distinct transitions with their counts."""

    keeps_data = False  # as sums, which `evidence` needs

    mind: Any

    def factors(self) -> dict[str, Any]:
        """No factors are kept from one plan to the next."""
        return {}

    def enlarged(self) -> Any:
        """Return the mind after making twice as much room."""
        super().enlarged()
        self.resize_outcomes(2 * self.mind.outcomes.link.shape[1])
        return self.mind

    def make_room(self, spare: int = 0) -> None:
        """Make sure that there is room for another episode."""
        super().make_room(spare)
        outcomes, pairs = self.mind.outcomes, self.mind.memory.block.shape[1]
        used, room = outcomes.many.max(initial=0) + spare, outcomes.link.shape[1]
        if used >= room or outcomes.head.shape[1] < pairs:
            self.resize_outcomes(room if used < room else max(used + 1, room + max(room // 4, 4)))

    def resize_outcomes(self, room: int) -> None:
        """Make room for the outcomes of all pairs, and for so many per period."""
        self.mind = self.mind._replace(**self.resized_outcomes(room))

    def resized_outcomes(self, room: int) -> dict[str, Any]:
        """Return the parts of the mind that have room for so many outcomes per period."""
        return {"outcomes": resized(self.mind.outcomes, self.mind.memory.block.shape[1], room)}

    def state(self) -> dict[str, Any]:
        """Return the memory and the outcomes without unused room."""
        arrays, many = super().state(), self.mind.outcomes.many
        outcomes = resized(self.mind.outcomes, arrays["memory.block"].shape[1], max(many.max(), 1))
        return arrays | {f"outcomes.{name}": array for name, array in outcomes._asdict().items()}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        super().restore(file)
        self.mind = self.mind._replace(outcomes=read_outcomes(file, self.mind.memory))
