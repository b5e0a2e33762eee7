"""The recommender of a shop: what it learns against a twin in plain NumPy, bad input, late answers, files."""

import json
import zipfile

import numpy as np
import pytest

import rlsvi
from rlsvi.agents.archive import ArchiveError
from rlsvi.core.random import normal, stream
from rlsvi.mdp.recommendation import draw_taste, like_probability
from rlsvi.shop import Recommender
from rlsvi.shop.mind import RECENT
from rlsvi.shop.size import SHARE, bytes_needed, numbers_of_a_sample

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


def serve(shop, customers, seed=0, name=0):
    """Customers who overlap: some answer late, some never, some leave early; what each was shown and answered."""
    rng, diary, waiting = np.random.default_rng(seed), [], {}
    for i in range(name, name + customers):
        x = rng.integers(-1, 2, N) * (rng.random(N) < 0.3) if i % 4 == 3 else None
        a = shop.recommend(i, x)
        waiting[i] = [(a, None)]
        diary.append(("shown", i, a))
        while len(waiting) > 3:
            one = int(rng.choice(list(waiting)))
            kind = rng.random()
            open_ones = [a for a, liked in waiting[one] if liked is None]
            if kind < 0.55 and open_ones:
                a, liked = int(rng.choice(open_ones)), bool(rng.random() < 0.6)
                waiting[one] = [(b, liked if b == a else was) for b, was in waiting[one]]
                shop.feedback(one, a, liked)
                diary.append(("answer", one, a, liked))
            elif kind < 0.9 and len(waiting[one]) < J and (shop._open[one].rows.size < N):
                a = shop.recommend(one)
                waiting[one].append((a, None))
                diary.append(("shown", one, a))
            else:
                shop.close(one)
                diary.append(("close", one))
            if one not in shop.open:
                del waiting[one]
    return diary


# ---- against plain NumPy ----------------------------------------------------------------------------------


class Twin:
    """The same in words of the docstring: every regression rebuilt from what happened."""

    def __init__(self, shop):
        self.shop, self.mind = shop, shop._mind
        self.P, self.d = self.mind.weight.shape[:2]
        self.theta = np.zeros((self.P, N, self.d))
        self.base = self.bases([])

    def phi(self, x, a):
        z = np.zeros(self.d)
        for n in np.flatnonzero(x):
            z[self.mind.place[n]] += x[n] * self.mind.sign[n]
        z[self.mind.constant[a]] = 1.0
        return z

    def Q(self, j, x, a):
        return self.phi(x, a) @ self.theta[j if self.P > 1 else 0, a]

    def bases(self, visits):
        rates = []
        for j in range(J):
            found = [rows[j][1] > 0 for _, rows in visits[-RECENT:] if len(rows) > j and rows[j][1] != 0]
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

    def target(self, visit, j):
        shop, r = self.shop, float(visit[1][j][1] > 0)
        if not shop.myopic:
            x, seen = self.state(visit, j + 1)
            unseen = [a for a in range(N) if a not in seen]
            left = min(J - j - 1, len(unseen))
            if left:
                value = self.base[j + 1] + max(self.Q(j + 1, x, a) for a in unseen)
                r += min(max(value, 0.0), left) if shop.clip else value
        return r - self.base[j]

    def learn(self, visits, noise):
        shop, ridge = self.shop, self.shop.lam * self.shop.sigma**2
        self.base = self.bases(visits)
        for p in reversed(range(self.P)):
            precision, y = np.tile(ridge * np.eye(self.d), (N, 1, 1)), np.zeros((N, self.d))
            for visit in visits:
                for j, (a, answer, _) in enumerate(visit[1]):
                    if answer != 0 and (self.P == 1 or j == p):
                        z = self.phi(self.state(visit, j)[0], a)
                        precision[a] += np.outer(z, z)
                        y[a] += z * self.target(visit, j)
            for a in range(N):
                z = np.array([normal(noise) for _ in range(self.d)])
                L = np.linalg.cholesky(precision[a])
                y[a] = np.linalg.solve(precision[a], y[a]) + shop.sigma * np.linalg.solve(L.T, z)
            self.theta[p] = y


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


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_is_the_one_of_plain_numpy(form, monkeypatch):
    shop, contexts = made(form, every=5), {}
    noise, real = shop._streams[1].copy(), Recommender.recommend

    def recommend(self, customer, context=None):
        if context is not None:
            contexts[customer] = np.asarray(context, dtype=float)
        return real(self, customer, context)

    monkeypatch.setattr(Recommender, "recommend", recommend)
    diary = serve(shop, 40)
    gone, here = visits_of(diary, contexts)
    assert len(gone) == shop.customers > 30
    assert set(here) == set(shop.open)
    assert any(answer == 0 for _, rows in gone for _, answer, _ in rows)  # some never came
    assert any(0 < len(rows) < J for _, rows in gone)  # some left
    assert any(when > j + 1 for _, rows in gone for j, (_, answer, when) in enumerate(rows) if answer)  # late
    twin = Twin(shop)
    for count in range(5, len(gone) + 1, 5):
        twin.learn(gone[:count], noise)
    np.testing.assert_allclose(shop._mind.weight, twin.theta.transpose(0, 2, 1), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(shop._mind.base[:J], twin.base, rtol=1e-12)
    assert (shop._streams[1] == noise).all()
    customer = next(c for c in shop.open if shop._open[c].shown < J)
    x, seen = twin.state((contexts.get(customer, np.zeros(N)), here[customer]), len(here[customer]))
    slot = len(here[customer])
    Q = [np.nan if a in seen else twin.base[slot] + twin.Q(slot, x, a) for a in range(N)]
    np.testing.assert_allclose(shop.values(customer), Q, rtol=1e-7, atol=1e-7)
    if not np.isnan(Q).all():
        assert shop.recommend(customer) == np.nanargmax(Q)


def test_the_paper_s_form_has_the_factors_of_rlsvi():
    """The same customers: the factors of every period and product agree with those of the agent."""
    env = rlsvi.envs.RecommendationEnv(5, 3, seed=2)
    agent = rlsvi.RLSVI(lam=0.2, sigma=0.1, basis=rlsvi.bases.Recommendation(), seed=0)
    shop = Recommender(5, 3, lam=0.2, sigma=0.1, baseline=0.0, clip=False, seed=0)
    steps, real = [], env.step

    def step(action):
        found = real(action)
        steps.append((int(action), found[1] > 0))
        return found

    env.step = step
    agent.learn(env, episodes=30)
    for i in range(30):
        for a, liked in steps[3 * i : 3 * i + 3]:
            shop.recommend(i)
            shop._open[i].visit.product[shop._open[i].shown - 1] = a  # she was shown what the agent showed
            shop.feedback(i, a, liked)
    U = agent._learner.factor.U
    np.testing.assert_allclose(
        np.triu(shop._mind.factor.U), np.triu(U.reshape(shop._mind.factor.U.shape)), atol=1e-12
    )


def test_it_learns_what_customers_like():
    taste = draw_taste(12, seed=3)
    total = {}
    for name, options in {"reinforcement": {}, "pooled": {"pooled": True}, "bandit": {"myopic": True}}.items():
        shop, rng, likes = Recommender(12, 4, seed=0, **options), np.random.default_rng(0), []
        for i in range(250):
            x = np.zeros(12, dtype=np.int8)
            for _ in range(4):
                a = shop.recommend(i)
                liked = bool(rng.random() < like_probability(taste, x, a))
                x[a] = 1 if liked else -1
                shop.feedback(i, a, liked)
            likes.append((x > 0).sum())
        total[name] = np.mean(likes[-100:])
    assert min(total.values()) > 2.0 + 5 * 1.1 / 10  # random play has 2.0, sd about 1.1 a customer


# ---- customers --------------------------------------------------------------------------------------------


def test_no_customer_is_shown_a_product_she_knows():
    shop = made("pooled")
    x = np.array([1, -1, 0, 0, 0, 0, 0])
    shown = [shop.recommend("a", x)] + [shop.recommend("a") for _ in range(3)]
    assert len(set(shown)) == 4
    assert not {0, 1} & set(shown)


def state(shop):
    """All that a wrong call might change."""
    arrays = [shop._streams, *shop._mind.factor, *shop._mind[1:], *shop._gone]
    people = [(name, [part.tolist() for part in one.visit], one.touched[0]) for name, one in shop._open.items()]
    return [array.tobytes() for array in arrays], people, shop.customers, shop._count, shop._since


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s, a: s.feedback("nobody", a, True), LookupError, "customer 'nobody' is unknown, or was closed"),
        (lambda s, a: s.feedback("done", 0, True), LookupError, "customer 'done' is unknown, or was closed"),
        (lambda s, a: s.close("nobody"), LookupError, "is unknown"),
        (lambda s, a: s.values("nobody"), LookupError, "is unknown"),
        (lambda s, a: s.feedback("ann", 7, True), ValueError, r"product 7 is unknown: there are 0\.\.6"),
        (lambda s, a: s.feedback("ann", -1, True), ValueError, "product must be a whole number"),
        (lambda s, a: s.feedback("ann", 1.5, True), ValueError, "product must be a whole number"),
        (
            lambda s, a: s.feedback("ann", (a[0] + 1) % 7, True),
            ValueError,
            "was not recommended to customer 'ann'",
        ),
        (lambda s, a: s.feedback("bob", a[1], False), ValueError, "has answered product . already"),
        (lambda s, a: s.feedback("ann", a[0], 1), ValueError, "liked must be True or False"),
        (lambda s, a: s.feedback("ann", a[0], float("nan")), ValueError, "liked must be True or False"),
        (lambda s, a: s.feedback("kim", 0, True), ValueError, "was not recommended to customer 'kim'"),
        (lambda s, a: s.recommend("new", [np.nan] * 7), ValueError, "context must be finite"),
        (lambda s, a: s.recommend("new", [0.5] * 7), ValueError, "context must be 7 numbers -1, 0 or 1"),
        (lambda s, a: s.recommend("new", [0] * 6), ValueError, "context must be 7 numbers"),
        (lambda s, a: s.recommend("new", "likes"), ValueError, "context must be a number or an array"),
        (lambda s, a: s.recommend("new", [1] * 7), ValueError, "no product is left that customer 'new'"),
        (lambda s, a: s.recommend("ann", [0] * 7), ValueError, "must come with her first slot"),
        (lambda s, a: s.recommend("kim"), ValueError, "no product is left that customer 'kim'"),
        (lambda s, a: s.recommend("max"), ValueError, "was shown 4 products already: close"),
        (lambda s, a: s.recommend(None), ValueError, "customer must be a string or a whole number"),
        (lambda s, a: s.recommend(True), ValueError, "customer must be a string or a whole number"),
        (lambda s, a: s.expire(0.0), ValueError, "idle must be a positive"),
        (lambda s, a: s.expire(float("nan")), ValueError, "idle must be a positive"),
    ],
)
def test_wrong_calls_are_refused_and_change_nothing(call, error, words):
    shop = made("pooled")
    shop.recommend("done")
    shop.close("done")
    shown = [shop.recommend("ann"), shop.recommend("bob")]
    shop.feedback("bob", shown[1], True)
    shop.recommend("kim", [1, 1, 1, -1, -1, 1, 0])
    for _ in range(J):
        shop.recommend("max")
    before = state(shop)
    with pytest.raises(error, match=words):
        call(shop, shown)
    assert state(shop) == before


def test_customers_not_heard_of_are_closed_and_learned_from():
    shop = made("pooled")
    a = shop.recommend("early")
    shop.feedback("early", a, True)
    shop.recommend("late")
    early, late = (shop._open[name].touched for name in ("early", "late"))
    early[0], late[0] = 100.0, 200.0
    assert shop.expire(50.0, now=120.0) == []
    assert shop.expire(50.0, now=160.0) == ["early"]
    assert shop.open == ["late"]
    assert shop.customers == 1
    assert shop._mind.bias[0].any()


def test_a_visit_without_answers_teaches_nothing():
    shop, other = made("pooled", every=100), made("pooled", every=100)
    for i in range(3):
        shop.recommend(i)
        shop.close(i)
    assert all((a == b).all() for a, b in zip(shop._mind.factor, other._mind.factor, strict=True))


@pytest.mark.parametrize("pooled", [True, False])
def test_customers_no_longer_remembered_still_count(pooled):
    """Where targets do not depend on the sample, forgetting changes nothing but the order of sums."""
    form = {"pooled": pooled, "myopic": True, "baseline": 0.5, "every": 1}
    shop, whole = Recommender(N, J, remember=10, seed=3, **form), Recommender(N, J, seed=3, **form)
    for one in (shop, whole):
        for i in range(40):
            for _ in range(J):
                a = one.recommend(i)
                one.feedback(i, a, (i * a) % 3 == 0)
    assert shop._count <= 10
    assert shop.customers == whole._count == 40
    assert shop._mind.frozen.any()
    np.testing.assert_allclose(shop._mind.weight, whole._mind.weight, rtol=1e-9, atol=1e-12)


def test_samples_become_rare_as_they_become_dear():
    shop = Recommender(40, 4, seed=0, pooled=True)
    cost = {"pooled": True, "sketch": None}
    assert numbers_of_a_sample(40, 4, **cost, customers=5) == 40**3 + 5 * 4 * 40 < SHARE
    shop._count = 10**6  # as if there had been so many
    shop._since = 15
    assert not shop._due()
    shop._since = 17
    assert shop._due()
    assert made("exact", every=3)._due() is False


# ---- memory -----------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_with_what_would():
    with pytest.raises(
        ValueError, match=r"need 20\.. GB in this form.*pass pooled=True \(1\.\d* GB\) or sketch=64"
    ):
        Recommender(500, 20)
    with pytest.raises(ValueError, match="smaller sketch, or remember fewer customers, or raise memory"):
        Recommender(50, 5, memory=1e3)
    assert bytes_needed(500, 20, pooled=True, sketch=None, remember=20_000) < 1.1e9


def test_the_memory_worked_out_is_that_of_the_arrays():
    for form in FORMS:
        shop = made(form, remember=1)
        arrays = [*shop._mind.factor, *shop._mind[1:5]]
        taken = sum(array.nbytes for array in arrays) + 8 * shop._mind.bias.size
        assert taken == pytest.approx(shop.bytes, rel=0.15)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"products": 0}, "products must be a whole number"),
        ({"slots": 8}, "slots must be at most products = 7"),
        ({"sketch": 0}, "sketch must be a whole number"),
        ({"every": 0}, "every must be a whole number"),
        ({"lam": -1.0}, "lam must be a positive"),
        ({"baseline": "mean"}, 'baseline must be "recent" or a number'),
        ({"baseline": 2.0}, 'baseline must be "recent" or a number'),
        ({"remember": 0}, "remember must be a whole number"),
        ({"memory": float("nan")}, "memory must be a positive"),
        ({"seed": -1}, "seed must be a non-negative"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Recommender(**{"products": 7, "slots": 4, **options})


# ---- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_it_goes_on_from_a_file_bit_for_bit(form, tmp_path):
    shop = made(form, remember=15)
    serve(shop, 25)
    assert shop.open
    shop.save(tmp_path / "shop")
    again = Recommender.load(tmp_path / "shop")
    assert again.arguments() == shop.arguments()
    assert again.open == shop.open
    for one in (shop, again):
        for name in one.open[1:]:
            one.close(name)
    assert serve(shop, 25, seed=9, name=100) == serve(again, 25, seed=9, name=100)
    shop.learn()
    again.learn()
    rows, count = int(shop._gone.first[shop._count]), shop._count
    assert (again._count, int(again._gone.first[count])) == (count, rows)
    for mine, other in zip(
        [*shop._mind.factor, *shop._mind[1:]], [*again._mind.factor, *again._mind[1:]], strict=True
    ):
        assert mine.tobytes() == other.tobytes()
    assert (shop._streams == again._streams).all()


def test_a_fresh_one_can_be_saved(tmp_path):
    made("exact").save(tmp_path / "shop")
    again = Recommender.load(tmp_path / "shop")
    assert again.customers == 0
    assert serve(again, 10) == serve(made("exact"), 10)


def changed(path, change):
    """The file with another header."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    header = json.loads(parts["header.json"])
    change(header)
    parts["header.json"] = json.dumps(header)
    with zipfile.ZipFile(path, "w") as new:
        for name, data in parts.items():
            new.writestr(name, data)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(agent="RLSVI"),
        lambda header: header["arguments"].update(products=8),
        lambda header: header["arguments"].update(memory=10.0),
        lambda header: header.update(remembered=10**6),
        lambda header: header.update(customers="many"),
        lambda header: header["open"][0].__setitem__(2, 99),
        lambda header: header["open"][0][3].__setitem__(0, 7),
        lambda header: header["open"][0][4].__setitem__(0, 2),
        lambda header: header["open"][0].__setitem__(0, []),
        lambda header: header.pop("open"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(change, tmp_path):
    shop = made("exact")
    serve(shop, 10)
    shop.save(tmp_path / "shop")
    changed(tmp_path / "shop", change)
    with pytest.raises(ArchiveError):
        Recommender.load(tmp_path / "shop")


def test_a_failed_save_leaves_the_file_there_was(tmp_path, monkeypatch):
    shop = made("exact")
    shop.save(tmp_path / "shop")
    before = (tmp_path / "shop").read_bytes()
    serve(shop, 5)

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", fails)
    with pytest.raises(OSError, match="cannot save"):
        shop.save(tmp_path / "shop")
    assert (tmp_path / "shop").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


def test_streams_of_choice_and_posterior_are_apart():
    shop = made("exact")
    posterior = shop._streams[1].copy()
    shop.recommend(0)
    assert (shop._streams[1] == posterior).all()
    assert not (shop._streams[0] == stream(np.random.SeedSequence(1).spawn(3)[1])).all()
