"""What a shop has learned: the posterior of its model, and S + 1 chains of randomized value iteration.

Every chain has its own weights, from which its targets are computed, and its own noise. Chain 0 has no noise: it is
the posterior mean. `refresh` draws new noise, and then alternates between targets and weights until both agree.

Visits beyond the `remember` newest ones keep the targets that chain 0 gave them last. Of these visits three sums
remain: u times the target, u for each slot, and what the evidence needs.
"""

from typing import Any

import numpy as np

from rlsvi.core.blas import one_thread
from rlsvi.core.compile import Floats
from rlsvi.shop.draws import Draws
from rlsvi.shop.histories import Histories, OpenVisit, VisitLog
from rlsvi.shop.regression import Ridges, factor_products, factor_shared, new_posterior, solved
from rlsvi.shop.sizes import Sizes, check_memory
from rlsvi.shop.targets import add_grams, add_masses, add_rights, targets_of, work_row
from rlsvi.shop.tuning import best_ridges, evidence

RECENT = 200  # visits that the baseline averages over
FIRST_TUNING = 50  # answers before the prior is chosen by evidence for the first time
SETTLED = 0.02  # change of the targets, relative to sigma, at which they count as settled
PER_PRODUCT = ("gram", "frozen", "z", "offered", "shown", "answers", "rewards", "dirty")


class Chains:
    """The posterior and its samples, for products numbered in the order in which they were added."""

    def __init__(
        self,
        sizes: Sizes,
        *,
        draws: int = 16,
        exploration: float = 0.3,
        remember: int = 20_000,
        seed: int = 0,
        lam: float | None = None,
        sigma: float | None = None,
        unit: float | None = None,
    ) -> None:
        self.sizes, self.draws, self.exploration, self.remember, self.seed = (
            sizes,
            draws,
            exploration,
            remember,
            seed,
        )
        self.lam, self.fixed_sigma, self.unit = lam, sigma, unit
        J, e = sizes.slots, sizes.width
        self.products = self.refreshes = self.tuned_at = self.taken = 0
        self.ridges, self.sigma = Ridges(1.0, 1.0), 0.0
        self.visits = VisitLog(sizes.customer)
        self.recent = np.full((RECENT, J), np.nan)
        self.learned = 0  # visits, including those no longer remembered
        self.rows = 0  # answers in them
        self.lowest = self.highest = self.squared = 0.0  # of rewards
        self.old = np.zeros((3, J))  # of visits no longer remembered: answers, targets and squared targets by slot
        self.beta = np.zeros((draws + 1, sizes.shared))
        self.weight = np.zeros((draws + 1, e, 0))
        self.base = self._new_base()
        self._allocate(16)

    def _allocate(self, room: int) -> None:
        """Make room for `room` products, keeping what there is."""
        check_memory(self.sizes, room, self.draws, self.remember)
        e, J = self.sizes.width, self.sizes.slots
        kinds: dict[str, Any] = {
            "gram": np.zeros((room, e, e)),
            "frozen": np.zeros((room, e)),
            "mass": np.zeros((J, room, e)),
            "z": np.zeros((room, self.sizes.product)),
            "offered": np.zeros(room, np.bool_),
            "shown": np.zeros(room, np.int64),
            "answers": np.zeros(room, np.int64),
            "rewards": np.zeros(room),
            "dirty": np.ones(room, np.bool_),
        }
        posterior = new_posterior(self.sizes, room)
        for name, array in kinds.items():
            if self.products and name == "mass":
                array[:, : self.products] = self.mass[:, : self.products]
            elif self.products:
                array[: self.products] = getattr(self, name)[: self.products]
            setattr(self, name, array)
        if self.products:
            for to, of in zip(posterior[:3], self.posterior[:3], strict=True):
                to[: self.products] = of[: self.products]
        self.posterior, self.room = posterior, room

    def add_product(self, z: Any) -> int:
        """Add a product with features z, and return its number."""
        if self.products == self.room:
            self._allocate(2 * self.room)
        a = self.products
        self.z[a], self.offered[a], self.products = z, True, a + 1
        return a

    def learn(self, visit: OpenVisit) -> None:
        """Learn from a visit that has ended, with the next `refresh`."""
        rewards = np.full(self.sizes.slots, np.nan)
        for slot, (a, x, reward) in enumerate(zip(visit.product, visit.x, visit.reward, strict=True)):
            self.shown[a] += 1
            if x != 0:
                rewards[slot] = reward
                self.answers[a] += 1
                self.rewards[a] += reward
                self.rows += 1
                self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
                self.squared += reward * reward
        self.recent[self.learned % RECENT] = rewards
        self.visits.append(visit)
        self.learned += 1

    def refresh(self) -> Draws:
        """Draw new samples of the posterior from all visits learned so far."""
        with one_thread():
            visits = self._take_in()
            self.base = self._new_base()
            self._extend_weights()
            self._tune(visits)
            self._sample(visits)
            self.refreshes += 1
            if self.visits.count > self.remember + self.remember // 10:
                self._forget(self.visits.count - self.remember)
        return self.current()

    def current(self) -> Draws:
        """Return the newest samples."""
        N = self.weight.shape[2]
        n, total, rewards = self.answers[:N], max(self.rows, 1), self.rewards[: self.products].sum()
        mean = rewards / total
        sd = np.sqrt(max(self.squared / total - mean**2, 0.0)) if self.rows > 1 else self.scale()
        value, spread = (self.rewards[:N] + mean) / (n + 1), sd / np.sqrt(n + 1)
        return Draws(
            self.weight,
            self.base,
            self.z[:N].copy(),
            self.offered[:N].copy(),
            self.shown[:N].copy(),
            value,
            spread,
            np.array(self.sizes.customer),
        )

    def scale(self) -> float:
        """Return the unit of rewards: as given, or their root mean square; 1 before there are any."""
        if self.unit is not None:
            return self.unit
        return float(np.sqrt(self.squared / self.rows)) if self.squared > 0.0 else 1.0

    def _take_in(self) -> Histories:
        """Add the rows of new visits to the Gram matrices; return all visits that are remembered."""
        visits = self.visits.histories()
        add_grams(
            visits, self.taken, self.visits.count, 1.0, self.z, self.gram, self.dirty, *work_row(self.sizes.width)
        )
        self.taken = self.visits.count
        return visits

    def _new_base(self) -> Floats:
        """Return the reward to be expected from slot j on, at the mean rewards of recent visits in each slot."""
        found = np.isfinite(self.recent)
        count, total = found.sum(axis=0), np.where(found, self.recent, 0.0).sum(axis=0)
        prior = total.sum() / count.sum() if count.any() else 0.5 * self.scale()
        rates = (total + prior) / (count + 1)
        return np.concatenate([np.cumsum(rates[::-1])[::-1], [0.0]])

    def _extend_weights(self) -> None:
        """Give products that are new since the last refresh the weights that follow from their features."""
        old, N, S = self.weight.shape[2], self.products, self.draws + 1
        if old < N:
            weight = np.zeros((S, self.sizes.width, N))
            weight[:, :, :old] = self.weight
            if self.sizes.product:
                beta = self.beta.reshape(S, self.sizes.product, self.sizes.crossed)
                weight[:, self.posterior.crossing, old:] = np.tensordot(beta, self.z[old:N], (1, 1))
            self.weight = weight

    def _targets(self, visits: Histories, weight: Floats) -> Floats:
        N = self.products
        return targets_of(visits, weight, self.base, self.z[:N], self.offered[:N], self.lowest, self.highest)

    def _rights(self, visits: Histories, targets: Floats) -> Floats:
        """Return the right-hand sides of the regressions of some chains: (chains, N, e)."""
        N = self.products
        fixed = self.frozen[:N] - np.tensordot(self.base[:-1], self.mass[:, :N], 1)
        right = np.repeat(fixed[None], len(targets), axis=0)
        work = work_row(self.sizes.width)
        add_rights(visits, self.visits.count, targets, self.base, self.z, right, *work)
        return right

    def _tune(self, visits: Histories) -> None:
        """Choose the prior and sigma by evidence when the data have doubled."""
        if self.sigma == 0.0:
            self.sigma = self.fixed_sigma or 0.5 * self.scale()
        if self.rows >= max(FIRST_TUNING, 2 * self.tuned_at):
            N, targets = self.products, self._targets(visits, self.weight[:1])
            right = self._rights(visits, targets)[0]
            squares = self._squares(visits, targets[0])

            def of(ridges: Ridges) -> Any:
                return evidence(
                    self.sizes, self.gram[:N], self.z[:N], right, squares, self.rows, ridges, self.fixed_sigma
                )

            before = self.ridges
            if self.lam is None:
                self.ridges, self.sigma = best_ridges(of, self.ridges, self.sizes.product > 0)
            else:
                self.sigma = of(self.ridges).sigma
            self.tuned_at = self.rows
            self.dirty[:] |= self.ridges != before
        if self.lam is not None:
            ridges = Ridges(self.lam * self.sigma**2, self.lam * self.sigma**2)
            self.dirty[:] |= self.ridges != ridges
            self.ridges = ridges

    def _squares(self, visits: Histories, targets: Floats) -> float:
        """Return the sum of the squares of all targets relative to the baseline."""
        slot = np.arange(len(targets)) - np.repeat(visits.first[:-1], np.diff(visits.first))
        over = (targets - self.base[slot])[visits.x != 0]
        count, total, squares = self.old
        return float(over @ over + (squares - 2.0 * self.base[:-1] * total + self.base[:-1] ** 2 * count).sum())

    def _sample(self, visits: Histories) -> None:
        """Draw noise, and alternate between targets and weights."""
        N, S, d, z = self.products, self.draws + 1, self.sizes.own, self.z[: self.products]
        factor_products(self.posterior, self.gram, self.ridges.own, self.dirty & (np.arange(self.room) < N))
        self.dirty[:N] = False
        part = self.posterior._replace(**{name: getattr(self.posterior, name)[:N] for name in "LWB"})
        shared = factor_shared(part, z, self.ridges.shared) if self.sizes.product else np.zeros((0, 0))
        rng = np.random.default_rng([self.seed, self.refreshes])
        noise, noise_shared = np.zeros((N, S, d)), np.zeros((S, self.sizes.shared))
        noise[:, 1:] = rng.standard_normal((N, S - 1, d)) * (self.exploration * self.sigma)
        noise_shared[1:] = rng.standard_normal((S - 1, self.sizes.shared)) * (self.exploration * self.sigma)
        before = None
        for _ in range(self.sizes.slots + 1):
            targets = self._targets(visits, self.weight)
            if (
                before is not None
                and ((targets - before) ** 2).sum() <= (SETTLED * self.sigma) ** 2 * targets.size
            ):
                break
            right = self._rights(visits, targets)
            self.weight, self.beta = solved(part, shared, z, right, noise, noise_shared)
            before = targets

    def _forget(self, oldest: int) -> None:
        """Fix the targets of the oldest visits at what chain 0 gives them, and remember their sums alone."""
        visits = self.visits.histories()
        targets, work = self._targets(visits, self.weight[:1]), work_row(self.sizes.width)
        zero, frozen = np.zeros_like(self.base), np.zeros((1, *self.frozen.shape))
        add_rights(visits, oldest, targets, zero, self.z, frozen, *work)
        add_masses(visits, oldest, self.z, self.mass, *work)
        self.frozen += frozen[0]
        end = visits.first[oldest]
        slot = np.arange(end) - np.repeat(visits.first[:oldest], np.diff(visits.first[: oldest + 1]))
        answered = visits.x[:end] != 0
        for power, into in enumerate(self.old):
            np.add.at(into, slot[answered], targets[0, :end][answered] ** power)
        self.visits.drop(oldest)
        self.taken -= oldest
