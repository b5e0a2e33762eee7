"""How often the intervals of `rlsvi_shop.judge` contain the truth: `python -m benchmarks.shop_coverage`.

Shops with simulated customers make logs by a policy whose probabilities are known. Policies are judged by each
log, and then serve other customers of the same shop, which tells the truth. The recommender is judged as by the
command: it learns from each half of the log and is judged by the other. The other policies have learned from an
earlier log, of products shown at random. "Judged" and "silent" are numbers of logs; the other columns are of logs
that judge.
"""

import argparse
from collections import Counter
from typing import NamedTuple

import numpy as np

from benchmarks.shop_quality.ours import schema_of
from benchmarks.shop_quality.worlds import Shop, World
from rlsvi.offline.value import ROBUST, WEIGHTED
from rlsvi_shop.events import Event
from rlsvi_shop.judging import LoggedSteps, judge, value_of_samples
from rlsvi_shop.model.draws import conditional
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.model.targets import sign_of
from rlsvi_shop.settings import ShopSettings

TRUTH = 4000  # customers who tell it
RANDOM = 0.3  # the share of products shown at random in a mixed log
ORDERS = 16  # orders of products, of which the random policy draws one for each visit


class Case(NamedTuple):
    """A shop and its log. Popularity is the mean and the spread of logits."""

    kind: str
    products: int
    slots: int
    visits: int
    earlier: int
    log: str
    popularity: tuple[float, float] = (-1.0, 1.0)


CASES = {
    "10 products, random": Case("plain", 10, 1, 2000, 300, "random"),
    "10 products, 2 slots, random": Case("plain", 10, 2, 2000, 300, "random"),
    "10 products, 2% clicks, random": Case("plain", 10, 1, 4000, 1000, "random", (-4.0, 0.5)),
    "20 products, customer features, mixed": Case("customer features", 20, 1, 2000, 300, "mixed"),
    "20 products, 2 slots, revenue, mixed": Case("revenue", 20, 2, 2000, 300, "mixed"),
    "50 products, revenue, mixed": Case("revenue", 50, 1, 2000, 500, "mixed"),
    "10 products, its own samples": Case("plain", 10, 1, 2000, 300, "samples"),
    "10 products, 2 slots, its own samples": Case("plain", 10, 2, 2000, 300, "samples"),
    "20 products, 3 slots, its own samples": Case("plain", 20, 3, 2000, 300, "samples"),
}


class Played(NamedTuple):
    """What was shown to customers, (slots, customers), what was known, (.., e), and what was allowed, (.., N)."""

    product: np.ndarray
    propensity: np.ndarray
    reward: np.ndarray
    expected: np.ndarray
    known: np.ndarray
    allowed: np.ndarray


class Simulation:
    """A shop, whose first customers make the log, the next ones an earlier log, and the others tell the truth."""

    def __init__(self, case, seed):
        self.case, N = case, case.products
        self.shop = Shop(World(case.kind, N, case.slots, case.visits + case.earlier + TRUTH), seed)
        self.rng = np.random.default_rng([seed, 7])
        self.shop.beta = self.shop.beta + case.popularity[0] + case.popularity[1] * self.rng.standard_normal(N)
        learning = {"history": N, "seed": seed}
        self.settings = ShopSettings(
            slots=case.slots, customer=schema_of(self.shop.customer_features), learning=learning
        )
        self.sign = np.array([sign_of(n, N) for n in range(N)])

    def play(self, customers, policy):
        """Serve customers side by side, by a function of what is known and allowed: products, propensities."""
        M, c, found = np.arange(len(customers)), self.shop.context[customers], []
        x, allowed = np.zeros((len(M), self.case.products)), np.ones((len(M), self.case.products), bool)
        base = self.shop.beta + c @ self.shop.effect.T
        for _ in range(self.case.slots):
            u = np.hstack([np.ones((len(M), 1)), c, x * self.sign])
            a, propensity = policy(u, allowed)
            chance = 1 / (1 + np.exp(-(base[M, a] + (self.shop.gamma[a] * x).sum(axis=1))))
            liked, price = self.rng.random(len(M)) < chance, self.shop.price[a]
            found.append((a, propensity, liked * price, chance * price, u, allowed.copy()))
            x[M, a], allowed[M, a] = np.where(liked, 1, -1), False
        return Played._make(np.array(part) for part in zip(*found, strict=True))

    def random(self, u, allowed):
        """Every product alike."""
        return np.where(allowed, self.rng.random(allowed.shape), -1).argmax(axis=1), 1 / allowed.sum(axis=1)

    def mixed(self, draws):
        """The choice of the posterior mean, except for a share that is random."""

        def policy(u, allowed):
            best, (other, chance) = _best(draws.weight[0], u, allowed), self.random(u, allowed)
            a = np.where(self.rng.random(len(u)) < RANDOM, other, best)
            return a, RANDOM * chance + (1 - RANDOM) * (a == best)

        return policy

    def samples(self, draws, number):
        """Visit i uses sample number[i] in all slots; propensities are those that the service stores."""
        agreeing = np.ones((len(number), len(draws.weight) - 1))

        def policy(u, allowed):
            nonlocal agreeing
            best = np.stack([_best(w, u, allowed) for w in draws.weight[1:]], axis=1)
            a = best[np.arange(len(u)), number]
            propensity, agreeing = conditional(agreeing, (best == a[:, None]).astype(float))
            return a, propensity

        return policy

    def truth(self, draws):
        """What samples earn per visit."""
        S, first = len(draws.weight) - 1, self.case.visits + self.case.earlier
        number = np.arange(TRUTH) % S

        def policy(u, allowed):
            a = np.zeros(TRUTH, int)
            for s in range(S):
                a[number == s] = _best(draws.weight[s + 1], u[number == s], allowed[number == s])
            return a, np.ones(TRUTH)

        return self.play(np.arange(first, first + TRUTH), policy).expected.sum(axis=0).mean()

    def steps(self, played, draws):
        """The same as `steps_of` gives for the events, of all visits at once."""
        a, u = played.product, played.known
        Q = u @ draws.weight[0] + draws.base[: self.case.slots, None, None]
        chosen = np.stack([_best(w, u, played.allowed) for w in draws.weight[1:]], axis=2)
        same = (chosen == a[:, :, None]).astype(float)
        values = np.take_along_axis(Q, a[:, :, None], axis=2)[:, :, 0], np.take_along_axis(Q, chosen, axis=2)
        parts = played.reward, played.propensity, same, *values
        reward, propensity, *others = (np.concatenate(np.swapaxes(part, 0, 1)) for part in parts)
        return LoggedSteps(np.arange(a.shape[1] + 1) * self.case.slots, reward, propensity, *others, Counter(), "")

    def events(self, customers, played):
        """The events of visits."""
        found = [Event("added", product=str(a)) for a in range(self.case.products)]
        for i, customer in enumerate(customers):
            for slot in range(self.case.slots):
                a, p, reward = (part[slot, i] for part in played[:3])
                about = self.shop.customer_features[customer] if slot == 0 else None
                name = f"v{customer}"
                found.append(Event("recommended", name, str(a), slot, propensity=float(p), features=about))
                found.append(Event("answered", name, str(a), reward=float(reward)))
        return [event._replace(id=i) for i, event in enumerate(found, 1)]

    def learned(self, events, **learning):
        """The samples that events teach."""
        changed = self.settings.learning.model_copy(update=learning)
        learner = ShopLearner(self.settings.model_copy(update={"learning": changed}))
        for event in events:
            learner.take(event)
        return learner.refresh()


def _best(weight, u, allowed):
    return np.where(allowed, u @ weight, -np.inf).argmax(axis=-1)


def _fixed_orders(draws, scores):
    """Samples that show products in fixed orders, by scores (S, N), with the posterior mean of others."""
    weight = np.zeros((1 + len(scores), *draws.weight.shape[1:]))
    weight[0], weight[1:, 0] = draws.weight[0], scores
    return draws._replace(weight=weight)


def judged(case, seed, level=0.95):
    """The truth and what one log says, as a `SampleValue` or `ShopValue`, of every policy."""
    it = Simulation(case, seed)
    N, customers = case.products, np.arange(case.visits)
    early = np.arange(case.visits, case.visits + case.earlier)
    before = it.play(early, it.random)
    past = it.events(early, before)
    wide, greedy = it.learned(past, exploration=1.0), it.learned(past, exploration=0.0, draws=1)
    number = it.rng.integers(len(wide.weight) - 1, size=case.visits)
    makes = {"random": it.random, "mixed": it.mixed(wide), "samples": it.samples(wide, number)}[case.log]
    played = it.play(customers, makes)
    events, middle = it.events(customers, played), N + case.visits // 2 * 2 * case.slots
    halves = events[:middle], events[:N] + events[middle:]
    shown = np.bincount(before.product.ravel(), minlength=N)
    means = np.bincount(before.product.ravel(), before.reward.ravel(), N) / np.maximum(shown, 1)
    policies = {
        "greedy": greedy,
        "best mean": _fixed_orders(greedy, means[None]),
        "random": _fixed_orders(greedy, it.rng.random((ORDERS, N))),
    }
    truth = np.mean([it.truth(it.learned(half)) for half in halves])
    found = {"recommender": (truth, judge(it.settings, events, level=level))}
    for name, draws in policies.items():
        found[name] = it.truth(draws), value_of_samples(it.steps(played, draws), level)
    return found


def rows_of(name, logs):
    """The lines of the table of one case, from what `judged` returns of every log."""
    for policy in logs[0]:
        told = [(truth, value.estimates) for truth, value in (log[policy] for log in logs) if value.estimates]
        for estimator in (WEIGHTED, ROBUST) if told else ("",):
            cells = [name, policy, estimator, str(len(told)), str(len(logs) - len(told))]
            if told:
                truth = np.array([each for each, _ in told])
                value, low, high = np.array([estimates[estimator] for _, estimates in told]).T
                covered = ((low <= truth) & (truth <= high)).mean()
                cells += [f"{covered:.2f}", f"{(high - low).mean():.3f}", f"{(value - truth).mean():+.4f}"]
                cells += [f"{truth.mean():.3f}"]
            yield "| " + " | ".join(cells + [""] * (9 - len(cells))) + " |"


def main(arguments=None):
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0, help="settings are chosen on seeds from 1000 on")
    parser.add_argument("--only", choices=CASES, help="one case alone")
    given = parser.parse_args(arguments)
    print("| shop and log | policy | estimator | judged | silent | covered | width | bias | truth |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    for name, case in CASES.items():
        if given.only in (None, name):
            logs = [judged(case, seed) for seed in range(given.first_seed, given.first_seed + given.logs)]
            print("\n".join(rows_of(name, logs)), flush=True)


if __name__ == "__main__":
    main()
