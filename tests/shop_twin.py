"""A shop to test: customers who overlap, a twin of the recommender in plain NumPy, and all that it holds."""

import numpy as np

from rlsvi.core.random import normal
from rlsvi.shop import Recommender
from rlsvi.shop.size import RECENT

FORMS = {
    "exact": {},
    "pooled": {"pooled": True},
    "sketched": {"sketch": 3},
    "both": {"pooled": True, "sketch": 3},
    "paper": {"lam": 0.2, "baseline": 0.0, "clip": False},
    "myopic": {"pooled": True, "myopic": True},
}
N, J = 7, 4


def made(form, **options):
    return Recommender(N, J, **{"seed": 1, "lam": 50.0, **FORMS[form], **options})


def context(rng):
    return rng.integers(-1, 2, N) * (rng.random(N) < 0.3)


def serve(shop, customers, seed=0, name=0, likes=lambda i: 0.6, offered=range(N), contexts=None):
    """Customers who overlap: some answer late, some never, some leave early; what each was shown and answered."""
    rng, diary, waiting = np.random.default_rng(seed), [], {}
    for i in range(name, name + customers):
        x = context(rng) if i % 4 == 3 else None
        if x is not None and contexts is not None:
            contexts[i] = x.astype(float)
        a = shop.recommend(i, x)
        waiting[i] = [(a, None)]
        diary.append(("shown", i, a))
        while len(waiting) > 3:
            one = int(rng.choice(list(waiting)))
            kind = rng.random()
            open_ones = [a for a, liked in waiting[one] if liked is None]
            if kind < 0.55 and open_ones:
                a, liked = int(rng.choice(open_ones)), bool(rng.random() < likes(i))
                waiting[one] = [(b, liked if b == a else was) for b, was in waiting[one]]
                shop.feedback(one, a, liked)
                diary.append(("answer", one, a, liked))
            elif kind < 0.9 and len(waiting[one]) < J and set(offered) - set(shop._open[one].rows.tolist()):
                a = shop.recommend(one)
                waiting[one].append((a, None))
                diary.append(("shown", one, a))
            else:
                shop.close(one)
                diary.append(("close", one))
            if one not in shop.open:
                del waiting[one]
    return diary


def come_and_go(shop, customers, x=None):
    """Customers who leave without an answer, one after another."""
    for i in range(1000, 1000 + customers):
        shop.recommend(i, x)
        shop.close(i)


def visits_of(diary, contexts):
    """The customers in the order they went, from what happened, and who is still open."""
    here, gone = {}, []
    for what, i, *rest in diary:
        if what == "shown":
            here.setdefault(i, []).append([rest[0], 0, np.inf])
        elif what == "answer":
            row = next(row for row in here[i] if row[0] == rest[0])
            row[1:] = 1 if rest[1] else -1, len(here[i])
            if len(here[i]) == J and all(row[1] for row in here[i]):
                gone.append((contexts.get(i, np.zeros(N)), here.pop(i)))
        else:
            gone.append((contexts.get(i, np.zeros(N)), here.pop(i)))
    return gone, here


class Twin:
    """The same in words of the docstring: every regression rebuilt from all that ever happened."""

    def __init__(self, shop, noise, offered=range(N)):
        self.shop, self.mind, self.noise, self.offered = shop, shop._mind, noise, set(offered)
        self.P, self.d = self.mind.weight.shape[:2]
        self.theta = np.zeros((self.P, N, self.d))
        self.visits, self.forgotten = [], []  # all customers; the targets of the first of them
        self.base = self.bases()

    def phi(self, x, a):
        z = np.zeros(self.d)
        for n in np.flatnonzero(x):
            z[self.mind.place[n]] += x[n] * self.mind.sign[n]
        z[self.mind.constant[a]] = 1.0
        return z

    def Q(self, theta, j, x, a):
        return self.phi(x, a) @ theta[j if self.P > 1 else 0, a]

    def bases(self):
        rates = []
        for j in range(J):
            found = [rows[j][1] > 0 for _, rows in self.visits[-RECENT:] if len(rows) > j and rows[j][1] != 0]
            rates.append((sum(found) + 0.5) / (len(found) + 1))
        if self.shop.baseline != "recent":
            rates = [self.shop.baseline] * J
        return np.array(rates) if self.shop.myopic else np.cumsum(rates[::-1])[::-1]

    def state(self, visit, j):
        """x and the products known in slot j."""
        given, rows = visit
        x, seen = given.copy(), set(np.flatnonzero(given).tolist())
        for a, answer, when in rows[:j]:
            seen.add(a)
            if answer != 0 and when <= j:
                x[a] = answer
        return x, seen

    def target(self, visit, j, theta, base):
        """Likes to be expected from slot j on, by a sample over a baseline."""
        shop, r = self.shop, float(visit[1][j][1] > 0)
        if not shop.myopic:
            x, seen = self.state(visit, j + 1)
            unseen = self.offered - seen
            left = min(J - j - 1, len(unseen))
            if left:
                value = base[j + 1] + max(self.Q(theta, j + 1, x, a) for a in unseen)
                r += min(max(value, 0.0), left) if shop.clip else value
        return r

    def learn(self):
        shop, ridge = self.shop, self.shop.lam * self.shop.sigma**2
        base, theta = self.bases(), np.zeros_like(self.theta)
        by = (self.theta, self.base) if shop.pooled else (theta, base)
        for p in reversed(range(self.P)):
            precision, y = np.tile(ridge * np.eye(self.d), (N, 1, 1)), np.zeros((N, self.d))
            for i, visit in enumerate(self.visits):
                for j, (a, answer, _) in enumerate(visit[1]):
                    if answer != 0 and (self.P == 1 or j == p):
                        z = self.phi(self.state(visit, j)[0], a)
                        old = i < len(self.forgotten)
                        precision[a] += np.outer(z, z)
                        y[a] += z * ((self.forgotten[i][j] if old else self.target(visit, j, *by)) - base[j])
            for a in range(N):
                z = np.array([normal(self.noise) for _ in range(self.d)])
                L = np.linalg.cholesky(precision[a])
                y[a] = np.linalg.solve(precision[a], y[a]) + shop.sigma * np.linalg.solve(L.T, z)
            theta[p] = y
        self.theta, self.base = theta, base

    def forget(self, oldest):
        """The first customers that are remembered keep the targets that the newest sample gives them."""
        for given, rows in self.visits[len(self.forgotten) :][:oldest]:
            of = [self.target((given, rows), j, self.theta, self.base) for j in range(len(rows))]
            self.forgotten.append(of)

    def come(self, visit, every):
        """A customer leaves."""
        self.visits.append(visit)
        if len(self.visits) % every == 0:
            self.learn()
        count, most = len(self.visits) - len(self.forgotten), self.shop.remember
        if count > most:
            self.forget(count - most + most // 10)


def arrays_of(thing, found=None):
    """Every array that can be reached from an object, by its id."""
    found = {} if found is None else found
    if isinstance(thing, np.ndarray):
        found[id(thing)] = thing
    elif isinstance(thing, dict):
        for part in thing.values():
            arrays_of(part, found)
    elif isinstance(thing, list | tuple):
        for part in thing:
            arrays_of(part, found)
    elif hasattr(thing, "__dict__") and type(thing).__module__.startswith("rlsvi"):
        arrays_of(vars(thing), found)
    return found


def state(shop, times=True):
    """All that a wrong call might change, bit for bit: everything but room to work in, and times if told."""
    mind, rows = shop._mind, int(shop._gone.first[shop._count])
    fixed = [*mind.factor, mind.frozen, mind.mass, mind.weight, mind.bias, mind.base, *mind[-4:]]
    gone = [shop._gone.first[: shop._count + 1], shop._gone.given[: shop._count]]
    gone += [part[:rows] for part in shop._gone[2:]]
    sizes = [part.size for part in shop._gone]
    people = [
        (name, [part.tolist() for part in one.visit], one.touched[0] if times else 0.0)
        for name, one in shop._open.items()
    ]
    counts = shop.customers, shop._count, shop._taken, shop._since, shop._forgot, shop._changes, shop._open_bytes
    arrays = [shop._streams, shop._recent, *fixed, *gone]
    return [array.tobytes() for array in arrays], sizes, people, counts, shop.arguments()
