"""What a shop has learned: the posterior of its model, and S + 1 chains of randomized value iteration.

Every chain has weights of its own, from which its targets are computed, and noise of its own. Chain 0 has no
noise: it is the posterior mean. A refresh draws new noise, and then alternates between targets and weights until
they agree.

Visits beyond the `remember` newest ones keep the targets that chain 0 gave them last. What remains of them are the
Gram matrices and sums of u times the target, of u for each slot, and of what the evidence needs.
"""

from typing import Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.core.machine import one_thread
from rlsvi.shop.model.baseline import RewardStatistics
from rlsvi.shop.model.draws import Draws
from rlsvi.shop.model.histories import Histories, OpenVisit, VisitLog
from rlsvi.shop.model.products import ProductArrays, no_products
from rlsvi.shop.model.regression import Noise, Ridges, factor_products, factor_shared, first_weights, solved
from rlsvi.shop.model.sizes import Sizes, check_memory
from rlsvi.shop.model.targets import add_grams, add_masses, add_rights, targets_of, work_row
from rlsvi.shop.model.tuning import START, Rows, best_ridges, evidence_for
from rlsvi.shop.model.values import first_values

FIRST_TUNING = 50  # answers before the prior is chosen by evidence
EQUAL = 1e-6  # distance of the targets from the baseline, relative to both, below which they tell nothing of noise
SETTLED = 0.02  # change of the targets, relative to sigma, at which they agree with the weights


class Chains:
    """The posterior and its samples.

    sizes : sizes of the model.
    learning : the section of the settings.
    unit : the size of a usual reward; None: learned.
    """

    def __init__(self, sizes: Sizes, learning: Any, unit: float | None) -> None:
        check_memory(sizes, 16, learning.draws, 0)
        self.sizes, self.learning = sizes, learning
        self.count = self.refreshes = self.tuned_at = self.taken = 0
        self.ridges = START
        self.sigma = 0.0  # until the first refresh
        self.products = no_products(sizes)
        self.visits = VisitLog(sizes.customer)
        self.statistics = RewardStatistics(sizes.slots, unit)
        self.base = self.statistics.base()
        self.forgotten = np.zeros((3, sizes.slots))  # by slot: answers, their targets, and squares of these
        self.beta = np.zeros((learning.draws + 1, sizes.shared))
        self.weight = np.zeros((learning.draws + 1, sizes.width, 0))

    def add_product(self, z: Floats) -> int:
        """Add a product with features z, and return its number."""
        a = self.count
        if a == len(self.products.z):
            room = max(16, 2 * a)
            check_memory(self.sizes, room, self.learning.draws, self.visits.count)
            self.products = self.products.longer(room)
        self.products.z[a], self.products.new_z[a], self.products.offered[a] = z, z, True
        self.count += 1
        return a

    def learn(self, visit: OpenVisit) -> None:
        """Learn from a visit that has ended, with the next refresh.

        If many visits come without a refresh, one takes place here, so that they need not all be remembered.
        """
        self.visits.append(visit)
        for a, x in zip(visit.product, visit.x, strict=True):
            self.products.shown[a] += 1
            self.products.answers[a] += x != 0
        self.statistics.add(visit)
        if self.visits.count > 2 * self.learning.remember:
            self.refresh()

    def refresh(self) -> Draws:
        """Draw new samples of the posterior from all visits learned so far."""
        products = self.products.part(self.count)
        with one_thread():
            self._take_in(products)
            visits, self.base = self.visits.histories(), self.statistics.base()
            self._extend_weights(products)
            self._tune(products, visits)
            L_shared = self._sample(products, visits)
            value, spread = first_values(products, self.weight[0], L_shared, self.base[0], self.sizes)
            self.refreshes += 1
            if self.visits.count > self.learning.remember + self.learning.remember // 10:
                self._forget(products, visits, self.visits.count - self.learning.remember)
        return Draws(
            self.weight,
            self.base,
            products.z.copy(),
            products.offered.copy(),
            products.shown.copy(),
            value,
            self.sigma * spread,
            self.beta,
            np.array(self.sizes.customer),
        )

    def _take_in(self, products: ProductArrays) -> None:
        """Add the rows of new visits to the Gram matrices; rows with features that have changed are replaced."""
        visits, work = self.visits.histories(), work_row(self.sizes.width)
        if (products.new_z != products.z).any():
            add_grams(visits, 0, self.taken, -1.0, products.z, products.gram, products.dirty, *work)
            products.z[...] = products.new_z
            add_grams(visits, 0, self.taken, 1.0, products.z, products.gram, products.dirty, *work)
        add_grams(visits, self.taken, self.visits.count, 1.0, products.z, products.gram, products.dirty, *work)
        self.taken = self.visits.count

    def _extend_weights(self, products: ProductArrays) -> None:
        """Give products that are new since the last refresh the weights that follow from their features."""
        old = self.weight.shape[2]
        if old < self.count:
            new = first_weights(self.beta, products.z[old:], self.sizes)
            self.weight = np.concatenate([self.weight, new], axis=2)

    def _targets(self, products: ProductArrays, visits: Histories, weight: Floats) -> Floats:
        limits = self.statistics.lowest, self.statistics.highest
        return targets_of(visits, weight, self.base, products.z, products.offered, *limits)

    def _rights(self, products: ProductArrays, visits: Histories, targets: Floats) -> Floats:
        """Return the right-hand sides of the regressions of some chains: (chains, N, e)."""
        fixed = products.frozen - np.tensordot(products.mass, self.base[:-1], (1, 0))
        right = np.repeat(fixed[None], len(targets), axis=0)
        add_rights(
            visits, len(visits.customer), targets, self.base, products.z, right, *work_row(self.sizes.width)
        )
        return right

    def _tune(self, products: ProductArrays, visits: Histories) -> None:
        """Choose the prior and sigma by evidence when the data have doubled, unless they are given.

        While all rewards are equal, as where nobody has clicked yet, they say nothing about the noise: sigma is
        half of the scale of rewards, and the evidence is asked again with the next refresh.
        """
        lam, sigma, before = self.learning.lam, self.learning.sigma, self.ridges
        self.sigma = sigma or self.sigma or 0.5 * self.statistics.scale
        answers = self.statistics.answers
        if answers >= max(FIRST_TUNING, 2 * self.tuned_at) and None in (lam, sigma):
            targets = self._targets(products, visits, self.weight[:1])
            rows = Rows(answers, self._rights(products, visits, targets)[0], self._squares(visits, targets[0]))
            if rows.squares <= answers * (EQUAL * max(self.statistics.scale, abs(self.base).max())) ** 2:
                self.sigma = sigma or 0.5 * self.statistics.scale
            else:
                of = evidence_for(products, self.sizes, rows, sigma)
                self.ridges, found = (
                    best_ridges(of, before, self.sizes.product > 0) if lam is None else (before, of(before))
                )
                self.sigma, self.tuned_at = found.sigma, answers
        if lam is not None:
            self.ridges = Ridges(lam * self.sigma**2, lam * self.sigma**2)
        if self.ridges != before:
            self.products.dirty[:] = True

    def _squares(self, visits: Histories, targets: Floats) -> float:
        """Return the sum of the squares of all targets relative to the baseline."""
        over = (targets - self.base[slots_of(visits)])[visits.x != 0]
        answers, total, squares = self.forgotten
        base = self.base[:-1]
        return float(over @ over + (squares - 2.0 * base * total + base**2 * answers).sum())

    def _sample(self, products: ProductArrays, visits: Histories) -> Floats:
        """Draw noise, and alternate between targets and weights. Return the factor of the shared weights."""
        factor_products(products, self.sizes, self.ridges.own)
        shared = np.zeros((0, 0))
        if self.sizes.product:
            shared = factor_shared(products.z, products.B, self.ridges.shared)
        noise = self._noise()
        limit, before = (SETTLED * self.sigma) ** 2 * len(visits.x), None
        for _ in range(self.sizes.slots + 1):
            targets = self._targets(products, visits, self.weight)
            if before is not None and ((targets - before) ** 2).sum() <= limit * len(targets):
                break
            right = self._rights(products, visits, targets)
            self.weight, self.beta = solved(products, shared, self.sizes, right, noise)
            before = targets
        return shared

    def _noise(self) -> Noise:
        """Return new noise for all chains but the first."""
        N, S = self.count, self.learning.draws
        rng = np.random.default_rng([self.learning.seed, self.refreshes])
        scale = self.learning.exploration * self.sigma
        own, shared = np.zeros((N, S + 1, self.sizes.own)), np.zeros((S + 1, self.sizes.shared))
        own[:, 1:] = scale * rng.standard_normal((N, S, self.sizes.own))
        shared[1:] = scale * rng.standard_normal((S, self.sizes.shared))
        return Noise(own, shared)

    def _forget(self, products: ProductArrays, visits: Histories, oldest: int) -> None:
        """Fix the targets of the oldest visits at what chain 0 gives them, and keep their sums alone."""
        targets, work = self._targets(products, visits, self.weight[:1]), work_row(self.sizes.width)
        add_rights(visits, oldest, targets, 0.0 * self.base, products.z, products.frozen[None], *work)
        add_masses(visits, oldest, products.z, products.mass, *work)
        answered = np.flatnonzero(visits.x[: visits.first[oldest]])
        for power, sums in enumerate(self.forgotten):
            np.add.at(sums, slots_of(visits)[answered], targets[0, answered] ** power)
        self.visits.drop(oldest)
        self.taken -= oldest


def slots_of(visits: Histories) -> Any:
    """Return the slot of every row."""
    return np.arange(len(visits.x)) - np.repeat(visits.first[:-1], np.diff(visits.first))
