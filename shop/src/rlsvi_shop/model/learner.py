"""From the events of a shop, in order, to samples of the posterior."""

import time
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.checks import finite
from rlsvi.core.compile import Floats
from rlsvi.core.machine import one_thread
from rlsvi_shop.events import Event
from rlsvi_shop.model.draws import Draws
from rlsvi_shop.model.regression import (
    FIRST_RIDGES,
    Noise,
    ProductArrays,
    Ridges,
    Rows,
    Sizes,
    best_ridges,
    check_memory,
    evidence_for,
    factor_products,
    factor_shared,
    first_values,
    first_weights,
    learnable,
    no_products,
    solve_weights,
)
from rlsvi_shop.model.targets import (
    OpenVisit,
    VisitArrays,
    VisitLog,
    add_grams,
    add_masses,
    add_rights,
    targets_of,
    work_row,
)
from rlsvi_shop.settings import ShopSettings, schema

RECENT = 200  # visits that the baseline averages over
ENOUGH = 20  # rewards below which none is called wild
WILD = 3  # rewards that are as far off as any must be, for all of them to count
REACH = 2.0  # how far from the median a reward counts, in distances of the one that is the third farthest from it
RARE_SHARE = 0.01  # the share of recent rewards at each end that does not count for their range
FIRST_TUNING = 50  # answers before the prior is chosen by evidence
EQUAL = 1e-6  # distance of the targets from the baseline, relative to both, below which they tell nothing of noise
SETTLED = 0.02  # change of the targets, relative to sigma, at which they agree with the weights


class ShopLearner:
    """Takes events in the order of their numbers; `refresh` turns what they say into new samples.

    A visit is learned from when it is complete, that is when all its slots are filled and answered, or when it is
    closed. First answers that come later are not learned from; corrections are. When a visit is closed, products
    without an answer have the reward `reward.unanswered` of the settings; they teach nothing if that is None. The
    samples depend on the settings, on the order of events, and on when `refresh` was called between them, and on
    nothing else.

    Attributes
    ----------

    Parameters
    ----------
    last, last_at
        The number of the last event taken, and its time.
    open
        The visits that are going on, by name; `open[name].at` is the latest time of their events.
    products
        The number of each product, in the order in which they were added.
    ignored
        Events that are not learned from: answers that came after their visit had ended, and what cannot
        be, such as a slot beyond the number of slots in the settings.
    """

    def __init__(self, settings: ShopSettings) -> None:
        self.settings = settings
        sizes = Sizes(settings.slots, settings.customer.width, settings.product.width, settings.learning.history)
        self.chains = Chains(sizes, settings.learning, settings.reward.unit)
        self.products: dict[str, int] = {}
        self.open: dict[str, OpenVisit] = {}
        self.last = self.ignored = self.refreshed_at = self.refreshed_event = 0
        self.last_at = 0.0

    def take(self, event: Event) -> None:
        """Take the next event. A wrong one is refused with a ValueError, and changes nothing."""
        if event.id <= self.last:
            raise ValueError(
                f"event {event.id} comes after event {self.last}: events are taken in order of their id"
            )
        match event.kind:
            case "added":
                self._add_product(event)
            case "removed" if event.product in self.products:
                self.chains.products.offered[self.products[event.product]] = False
            case "removed":
                self.ignored += 1
            case "recommended":
                self._show(event)
            case "answered":
                self._answer(event)
            case "closed":
                if (visit := self.open.pop(event.visit, None)) is not None:
                    self._settle(visit)
                    self.chains.learn(visit, event.visit)
            case _:
                raise ValueError(f"event {event.id} is of an unknown kind, {event.kind!r:.80}")
        self.last, self.last_at = event.id, event.at

    @property
    def visits(self) -> int:
        """The number of visits learned from."""
        return self.chains.statistics.visits

    @property
    def due(self) -> bool:
        """Whether visits have grown by 3% of those remembered since the last refresh, or products were added."""
        enough = 0.03 * min(self.refreshed_at, self.settings.learning.remember)
        return self.fresh > enough or self.chains.weight.shape[2] < len(self.products)

    @property
    def fresh(self) -> int:
        """The number of visits that the newest samples do not know."""
        return self.visits - self.refreshed_at

    def refresh(self) -> Draws:
        """Return new samples of the posterior, given all events taken so far."""
        draws = self.chains.refresh()
        self.refreshed_at, self.refreshed_event = self.chains.statistics.visits, self.last
        return draws

    def header(self) -> dict[str, Any]:
        """Return what a file of the newest samples says about them."""
        return {
            "event": self.refreshed_event,
            "products": list(self.products)[: self.chains.weight.shape[2]],
            "features": schema(self.settings),
            "ids": self.settings.ids,
            "seed": self.settings.learning.seed,
            "visits": self.refreshed_at,
            "ridge": self.chains.ridges.own,
            "shared_ridge": self.chains.ridges.shared,
            "sigma": self.chains.sigma,
            "at": time.time(),
        }

    def idle(self, before: float) -> list[str]:
        """Return the visits whose last event came before a time, in seconds since 1970."""
        return [name for name, visit in self.open.items() if visit.at < before]

    def _add_product(self, event: Event) -> None:
        z = self.settings.product.encode_stored(event.features)
        if event.product not in self.products:
            self.products[event.product] = self.chains.add_product(z)
        a = self.products[event.product]
        self.chains.products.offered[a], self.chains.products.new_z[a] = True, z

    def _show(self, event: Event) -> None:
        a, visit = self.products.get(event.product), self.open.get(event.visit)
        filled = len(visit.product) if visit else 0
        if a is None or event.slot != filled or filled >= self.settings.slots or (visit and a in visit.product):
            self.ignored += 1
            return
        if visit is None:
            customer = self.settings.customer.encode_stored(event.features).tolist()
            visit = self.open[event.visit] = OpenVisit(customer, event.at)
        visit.show(a)
        visit.at = max(visit.at, event.at)  # the clock may have been set back

    def _answer(self, event: Event) -> None:
        a, visit, reward = self.products.get(event.product), self.open.get(event.visit), event.reward
        if reward is not None or not event.correction:
            reward = float(finite(f"reward of event {event.id}", reward))
            reward = min(max(reward, self.settings.reward.low), self.settings.reward.high)
        if visit is None and event.correction:
            self._correct(event.visit, a, reward)
            return
        if visit is None or a not in visit.product or (not event.correction and visit.x[visit.product.index(a)]):
            self.ignored += 1
            return
        visit.answer(visit.product.index(a), reward, self._liked(reward))
        visit.at = max(visit.at, event.at)
        if len(visit.product) == min(self.settings.slots, len(self.products)) and visit.answered:
            self.chains.learn(self.open.pop(event.visit), event.visit)

    def _correct(self, name: str, a: int | None, reward: float | None) -> None:
        """Replace an answer of a visit that has ended, unless only sums are left of it."""
        i = self.chains.visits.find(name)
        visit = None if i is None else self.chains.visits.visit(i)
        if i is None or visit is None or a not in visit.product:
            self.ignored += 1
            return
        visit.answer(visit.product.index(a), reward, self._liked(reward))
        self._settle(visit)
        self.chains.correct(i, visit)
        if self.visits - self.chains.visits.count + i < self.refreshed_at:
            self.refreshed_at -= 1  # the samples do not know it as it is now

    def _settle(self, visit: OpenVisit) -> None:
        unanswered = self.settings.reward.unanswered
        if unanswered is not None:
            visit.settle(unanswered, self._liked(unanswered))

    def _liked(self, reward: float | None) -> bool:
        return reward is not None and reward > self.settings.reward.liked_above


class RewardTotals(NamedTuple):
    """The range of rewards, which includes 0, their sum and that of their squares."""

    lowest: float = 0.0
    highest: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def with_rewards(self, rewards: Floats) -> "RewardTotals":
        """Return the sums over these rewards too."""
        lowest, highest = rewards.min(initial=self.lowest), rewards.max(initial=self.highest)
        sums = self.total + float(rewards.sum()), self.squares + float(rewards @ rewards)
        return RewardTotals(float(lowest), float(highest), *sums)


class RewardStatistics:
    """Means of recent rewards by slot, and sums over all rewards, as far as they count: see `limits_of`."""

    def __init__(self, slots: int, unit: float | None) -> None:
        self.unit = unit
        self.recent = np.full((RECENT, slots), np.nan)
        self.visits = self.answers = 0
        self.forgotten = self.sums = RewardTotals()  # of visits that are no longer remembered, and of all
        self.limits = -np.inf, np.inf

    def add(self, visit: OpenVisit) -> None:
        """Add the rewards of a visit."""
        self.visits += 1
        self.answers += sum(x != 0 for x in visit.x)
        self.note(self.visits - 1, visit)

    def note(self, number: int, visit: OpenVisit) -> None:
        """Note the recent rewards of the visit of a number, counted from 0."""
        if number >= self.visits - RECENT:
            rewards = [reward if x else np.nan for x, reward in zip(visit.x, visit.reward, strict=True)]
            self.recent[number % RECENT] = np.nan
            self.recent[number % RECENT, : len(rewards)] = rewards

    def sum_up(self, visits: VisitArrays) -> VisitArrays:
        """Sum up the rewards of remembered visits, and return these with the rewards as they count."""
        answered = visits.x != 0
        self.limits = limits_of(visits.reward[answered])
        visits = visits._replace(reward=np.clip(visits.reward, *self.limits))
        self.sums = self.forgotten.with_rewards(visits.reward[answered])
        return visits

    @property
    def scale(self) -> float:
        """The unit of rewards: as given, or their root mean square; 1 while that is not known."""
        if self.unit is not None:
            return self.unit
        return float(np.sqrt(self.sums.squares / self.answers)) if self.sums.squares > 0.0 else 1.0

    @property
    def mean(self) -> float:
        """The mean reward of an answer; half a unit before the first."""
        return self.sums.total / self.answers if self.answers else 0.5 * self.scale

    def base(self) -> Floats:
        """Return the reward to be expected from slot j on, (J + 1,), at the mean recent rewards of each slot.

        The mean of all rewards counts as one more answer of every slot.
        """
        return self._expected(np.clip(self.recent, *self.limits))

    def _expected(self, recent: Floats) -> Floats:
        there = np.isfinite(recent)
        rates = (np.where(there, recent, 0.0).sum(axis=0) + self.mean) / (there.sum(axis=0) + 1)
        return np.append(np.cumsum(rates[::-1])[::-1], 0.0)

    @property
    def unearned(self) -> float:
        """The share of the range of rewards that recent visits did not earn: what a better choice could still add.

        The range is that of recent rewards without the hundredth at each end, so that a single refund or a single
        large order does not decide; if these are equal, it is that of all rewards. While all rewards are equal,
        they do not say what can be earned: all of it.
        """
        lowest, highest, total, squares = self.sums
        if squares * self.answers <= total**2 * (1.0 + EQUAL):
            return 1.0
        low, high, recent = lowest, highest, np.clip(self.recent, *self.limits)
        there = recent[np.isfinite(recent)]
        if there.size:
            ends = np.quantile(there, [RARE_SHARE, 1.0 - RARE_SHARE], method="inverted_cdf")
            low, high = ends if ends[0] < ends[1] else (low, high)
        earned = self._expected(np.clip(recent, low, high))[0] / self.recent.shape[1]
        return float(min(max((high - earned) / (high - low), 0.0), 1.0))


def limits_of(rewards: Floats) -> tuple[float, float]:
    """Return between which limits rewards count as they are; those beyond count as the nearer limit.

    A reward counts at most `REACH` times as far from the median as the third farthest of them all. So one or two
    wild values teach what large rewards teach, and no more; what happens three times is no accident. Distances of
    0 do not count: where nearly all rewards are 0, the first few others are believed.
    """
    if len(rewards) < ENOUGH:
        return -np.inf, np.inf
    median = float(np.median(rewards))
    far = abs(rewards - median)
    far = far[far > 0.0]
    if len(far) < WILD:
        return -np.inf, np.inf
    reach = REACH * float(np.partition(far, -WILD)[-WILD])
    return median - reach, median + reach


class Chains:
    """What a shop has learned: the posterior of its model, and S + 1 chains of randomized value iteration.

    Every chain has weights of its own, from which its targets are computed, and noise of its own. Chain 0 has no
    noise: it is the posterior mean. A refresh draws new noise, and then alternates between targets and weights
    until they agree.

    Visits beyond the `remember` newest ones keep the targets that chain 0 gave them last. What remains of them are
    the Gram matrices and sums of u times the target, of u for each slot, and of what the evidence needs.

    Parameters
    ----------
    sizes
        Sizes of the model.
    learning
        The section of the settings.
    unit
        The size of a usual reward; None: learned.
    """

    def __init__(self, sizes: Sizes, learning: Any, unit: float | None) -> None:
        check_memory(sizes, 16, learning.draws, 0)
        self.sizes, self.learning = sizes, learning
        self.count = self.refreshes = self.tuned_at = self.taken = 0
        self.ridges = FIRST_RIDGES
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

    def learn(self, visit: OpenVisit, name: str) -> None:
        """Learn from a visit that has ended, with the next refresh.

        If many visits come without a refresh, one takes place here, so that they need not all be remembered.
        """
        self.visits.append(visit, name)
        self.products.shown[visit.product] += 1
        self.products.answers[visit.product] += np.array(visit.x) != 0
        self.statistics.add(visit)
        if self.visits.count > 2 * self.learning.remember:
            self.refresh()

    def correct(self, i: int, visit: OpenVisit) -> None:
        """Replace the answers of the visit at place i of those remembered. The prior is chosen anew."""
        products = self.products
        more = np.array([x != 0 for x in visit.x], np.int64) - (np.array(self.visits.visit(i).x) != 0)
        products.answers[visit.product] += more
        self.statistics.answers += int(more.sum())
        self.statistics.note(self.statistics.visits - self.visits.count + i, visit)
        for sign in (-1.0, 1.0):
            if i < self.taken:
                self._add_grams(products, i, i + 1, sign)
            self.visits.replace(i, visit)
        self.ridges, self.sigma, self.tuned_at = FIRST_RIDGES, 0.0, 0
        products.dirty[:] = True

    def refresh(self) -> Draws:
        """Draw new samples of the posterior from all visits learned so far."""
        products = self.products.part(self.count)
        with one_thread():
            self._take_in(products)
            visits = self.statistics.sum_up(self.visits.arrays())
            self.base = self.statistics.base()
            if not self.learning.plan:
                self.base[:-1] -= self.base[1:]
            if (sampled := self.weight.shape[2]) < self.count:  # products that are new since the last refresh
                new = first_weights(self.beta, products.z[sampled:], self.sizes)
                self.weight = np.concatenate([self.weight, new], axis=2)
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
        if (products.new_z != products.z).any():
            self._add_grams(products, 0, self.taken, -1.0)
            products.z[...] = products.new_z
            self._add_grams(products, 0, self.taken, 1.0)
        self._add_grams(products, self.taken, self.visits.count, 1.0)
        self.taken = self.visits.count

    def _add_grams(self, products: ProductArrays, begin: int, end: int, sign: float) -> None:
        rows = self.visits.arrays(), begin, end, sign, products.z, products.gram, products.dirty
        add_grams(*rows, self.sizes.slots, *work_row(self.sizes.width))

    def _targets(self, products: ProductArrays, visits: VisitArrays, weight: Floats) -> Floats:
        if not self.learning.plan:
            return np.repeat(visits.reward[None], len(weight), axis=0)
        return targets_of(visits, weight, self.base, products.z, products.offered, *self.statistics.sums[:2])

    def _rights(self, products: ProductArrays, visits: VisitArrays, targets: Floats) -> Floats:
        """Return the right-hand sides of the regressions of some chains: (chains, N, e)."""
        fixed = products.frozen - np.tensordot(products.mass, self.base[:-1], (1, 0))
        right = np.repeat(fixed[None], len(targets), axis=0)
        add_rights(
            visits, len(visits.customer), targets, self.base, products.z, right, *work_row(self.sizes.width)
        )
        return right

    def _tune(self, products: ProductArrays, visits: VisitArrays) -> None:
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
            self.ridges = Ridges(*[lam * self.sigma**2] * 4)
        if self.ridges != before:
            self.products.dirty[:] = True

    def _squares(self, visits: VisitArrays, targets: Floats) -> float:
        """Return the sum of the squares of all targets relative to the baseline."""
        over = (targets - self.base[slots_of(visits)])[visits.x != 0]
        answers, total, squares = self.forgotten
        base = self.base[:-1]
        return float(over @ over + (squares - 2.0 * base * total + base**2 * answers).sum())

    def _sample(self, products: ProductArrays, visits: VisitArrays) -> Floats:
        """Draw noise, and alternate between targets and weights. Return the factor of the shared weights."""
        factor_products(products, self.sizes, self.ridges.of_own(self.sizes))
        shared = np.zeros((0, 0))
        if self.sizes.product:
            shared = factor_shared(products.z, products.B, self.ridges.of_shared(self.sizes))
        noise = self._noise(*self._deviations(products, shared))
        limit, before = (SETTLED * self.sigma) ** 2 * len(visits.x), None
        for _ in range(self.sizes.slots + 1):
            targets = self._targets(products, visits, self.weight)
            if before is not None and ((targets - before) ** 2).sum() <= limit * len(targets):
                break
            right = self._rights(products, visits, targets)
            self.weight, self.beta = solve_weights(products, shared, self.sizes, right, noise)
            before = targets
        return shared

    def _deviations(self, products: ProductArrays, L_shared: Floats) -> tuple[Floats, Floats]:
        """Return the deviations of the noise of own weights, (N, d), and of shared ones, (k,), before L^-1.

        They are those of the posterior, times `exploration`, less what exploring can no longer gain.
        """
        scale = self.learning.exploration * self.sigma * self.statistics.unearned
        own, shared = learnable(products, L_shared, self.sizes, self.ridges.of_shared(self.sizes))
        return scale * np.sqrt(own), scale * np.sqrt(shared)

    def _noise(self, own_scale: Floats, shared_scale: Floats) -> Noise:
        """Return new noise for all chains but the first; `benchmarks/shop_quality` tries others in its place."""
        N, S = self.count, self.learning.draws
        rng = np.random.default_rng([self.learning.seed, self.refreshes])
        own, shared = np.zeros((N, S + 1, self.sizes.own)), np.zeros((S + 1, self.sizes.shared))
        own[:, 1:] = own_scale[:, None] * rng.standard_normal((N, S, self.sizes.own))
        shared[1:] = shared_scale * rng.standard_normal((S, self.sizes.shared))
        return Noise(own, shared)

    def _forget(self, products: ProductArrays, visits: VisitArrays, oldest: int) -> None:
        """Fix the targets of the oldest visits at what chain 0 gives them, and keep their sums alone."""
        targets, work = self._targets(products, visits, self.weight[:1]), work_row(self.sizes.width)
        add_rights(visits, oldest, targets, 0.0 * self.base, products.z, products.frozen[None], *work)
        add_masses(visits, oldest, products.z, products.mass, *work)
        answered = np.flatnonzero(visits.x[: visits.first[oldest]])
        for power, sums in enumerate(self.forgotten):
            np.add.at(sums, slots_of(visits)[answered], targets[0, answered] ** power)
        self.statistics.forgotten = self.statistics.forgotten.with_rewards(visits.reward[answered])
        self.visits.drop(oldest)
        self.taken -= oldest


def slots_of(visits: VisitArrays) -> Any:
    """Return the slot of every row."""
    return np.arange(len(visits.x)) - np.repeat(visits.first[:-1], np.diff(visits.first))
