"""Vowpal Wabbit's contextual bandit: one regression for all products, with products crossed with what is known.

Namespaces: C the customer's context, H her answers in this visit (product by product, 1 or -1), F the features of
products weighted by her answers; P the product, Z its features. C, H and F are crossed with P, H and F with Z. The
cost of an answer is minus its reward, in units of the largest price of the catalogue, since Vowpal Wabbit expects
costs of about one. It learns online from each answer, with the probability with which the product was chosen.
"""

import numpy as np

SETTING = "--squarecb --gamma_scale 1000"  # chosen on seeds from 100 on, see docs/shop-quality.md
BITS = 20


class VowpalWabbit:
    """A policy that hands everything to Vowpal Wabbit. Lines of products are parsed once, to save time."""

    def __init__(self, shop, *, setting=SETTING):
        from vowpalwabbit import Workspace

        self.shop, self.unit = shop, shop.price.max()
        self.rng = np.random.default_rng([shop.seed, 5])
        crossed = "HP"
        crossed += " CP" if shop.context.shape[1] else ""
        crossed += " HZ FZ FP" if shop.product.shape[1] else ""
        pairs = " ".join(f"-q {pair}" for pair in crossed.split())
        self.vw = Workspace(f"--cb_explore_adf {setting} -b {BITS} {pairs} --random_seed {shop.seed + 1} --quiet")
        self.lines, self.parsed = [], []
        self.unlearned = []  # of the wave: visit, shared line, products asked, chosen one, its probability

    def add(self, products):
        """Products join the shop."""
        for a in products:
            self.lines.append(f"|P p{a}{_named('Z', self.shop.product[a])}")
            self.parsed.append(self._parse(self.lines[-1]))

    def _parse(self, line):
        from vowpalwabbit import Example, LabelType

        return Example(self.vw, line, LabelType.CONTEXTUAL_BANDIT)

    def shared(self, visit):
        """The line of what is known of a customer."""
        seen = " ".join(f"h{a}:{visit.x[a]}" for a in visit.shown)
        about = _named("C", self.shop.context[visit.customer]) + _named("F", visit.x @ self.shop.product)
        return f"shared |H {seen}{about}"

    def choose(self, visits):
        """A product for each visit, drawn with the probabilities that Vowpal Wabbit says."""
        return [self._choose(visit) for visit in visits]

    def _choose(self, visit):
        allowed = np.flatnonzero(visit.allowed)
        line = self.shared(visit)
        chances = np.array(self.vw.predict([self._parse(line), *(self.parsed[a] for a in allowed)]))
        k = int(self.rng.choice(len(allowed), p=chances / chances.sum()))
        self.unlearned.append((visit, line, allowed, k, chances[k]))
        return int(allowed[k])

    def learn(self, visits):
        """Learn from the answers of the wave, in the order in which they came."""
        for visit, line, allowed, k, chance in self.unlearned:
            product = int(allowed[k])
            cost = -visit.rewards[visit.shown.index(product)] / self.unit
            examples = [self._parse(line), *(self.parsed[a] for a in allowed)]
            examples[1 + k] = self._parse(f"0:{cost}:{chance} {self.lines[product]}")
            self.vw.learn(examples)
        self.unlearned = []


class VowpalSlates:
    """Vowpal Wabbit's conditional contextual bandit, which fills all slots of a visit before the first answer."""

    def __init__(self, shop):
        from vowpalwabbit import Workspace

        self.shop, self.unit = shop, shop.price.max()
        pairs = "-q SP" + (" -q CP" if shop.context.shape[1] else "") + (" -q CZ" if shop.product.shape[1] else "")
        self.vw = Workspace(f"--ccb_explore_adf {SETTING} -b {BITS} {pairs} --random_seed {shop.seed + 1} --quiet")
        self.actions, self.chosen = [], {}

    def add(self, products):
        """Products join the shop."""
        self.actions += [f"ccb action |P p{a}{_named('Z', self.shop.product[a])}" for a in products]

    def choose(self, visits):
        """The product of the next slot; a visit's whole slate is chosen with its first."""
        for visit in visits:
            if not visit.shown:
                lines = [f"ccb shared |B b{_named('C', self.shop.context[visit.customer])}", *self.actions]
                slots = self.vw.predict(lines + [f"ccb slot |S s{j}" for j in range(self.shop.world.slots)])
                self.chosen[visit.customer] = lines, [slot[0] for slot in slots]
        return [self.chosen[visit.customer][1][len(visit.shown)][0] for visit in visits]

    def learn(self, visits):
        """Learn from the answers of the wave."""
        for visit in visits:
            lines, slate = self.chosen.pop(visit.customer)
            costs = [-reward / self.unit for reward in visit.rewards]
            told = zip(slate, costs, strict=True)
            labels = [f"ccb slot {a}:{cost}:{chance} |S s{j}" for j, ((a, chance), cost) in enumerate(told)]
            self.vw.learn(lines + labels)


def _named(namespace, values):
    """A namespace with one feature for each number, or nothing if there are none."""
    if not len(values):
        return ""
    return f" |{namespace} " + " ".join(f"{namespace.lower()}{k}:{value:.6g}" for k, value in enumerate(values))
