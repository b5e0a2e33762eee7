"""What the recommender of a shop learns, against a twin in plain NumPy that rebuilds it from all that happened."""

import threading

import numpy as np
import pytest

import rlsvi
from rlsvi.core.random import bits
from rlsvi.core.regression import FactorError
from rlsvi.mdp.recommendation import draw_taste, like_probability
from rlsvi.shop import Recommender
from rlsvi.shop.size import SHARE, Form, numbers_of_a_sample
from shop_twin import FORMS, J, N, Twin, made, serve, state, visits_of
from values import action_values


def same_sample(shop, twin):
    np.testing.assert_allclose(shop._mind.weight, twin.theta.transpose(0, 2, 1), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(shop._mind.base[:J], twin.base, rtol=1e-12)
    assert (shop._streams[1] == twin.noise).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_is_the_one_of_plain_numpy(form):
    shop, contexts = made(form, every=5), {}
    twin = Twin(shop, shop._streams[1].copy())
    gone, here = visits_of(serve(shop, 40, contexts=contexts), contexts)
    assert len(gone) == shop.customers > 30
    assert set(here) == set(shop.open)
    assert any(answer == 0 for _, rows in gone for _, answer, _ in rows)  # some never came
    assert any(0 < len(rows) < J for _, rows in gone)  # some left
    assert any(when > j + 1 for _, rows in gone for j, (_, answer, when) in enumerate(rows) if answer)  # late
    for visit in gone:
        twin.come(visit, 5)
    same_sample(shop, twin)
    customer = next(c for c in shop.open if shop._open[c].shown < J)
    x, seen = twin.state((contexts.get(customer, np.zeros(N)), here[customer]), len(here[customer]))
    slot = len(here[customer])
    Q = [np.nan if a in seen else twin.base[slot] + twin.Q(twin.theta, slot, x, a) for a in range(N)]
    np.testing.assert_allclose(shop.values(customer), Q, rtol=1e-7, atol=1e-7)
    assert shop.recommend(customer) == np.nanargmax(Q)


# ---- customers no longer remembered -----------------------------------------------------------------------


def drifting(i):
    """First all like everything, then hardly anybody does: the baseline moves under those who are forgotten."""
    return 0.95 if i < 30 else 0.1


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("form", FORMS)
def test_customers_no_longer_remembered_count_over_the_baseline_of_the_day(form, every):
    shop, contexts = made(form, every=every, remember=12), {}
    twin = Twin(shop, shop._streams[1].copy())
    gone, _ = visits_of(serve(shop, 60, likes=drifting, contexts=contexts), contexts)
    then = None
    for visit in gone:
        twin.come(visit, every)
        if twin.forgotten and then is None:
            then = twin.base
    assert len(twin.visits) - len(twin.forgotten) == shop._count <= 12
    assert len(twin.forgotten) > 40
    if shop.baseline == "recent":
        assert abs(then - twin.base).max() > 0.3
    same_sample(shop, twin)


@pytest.mark.parametrize("pooled", [True, False])
def test_forgetting_changes_nothing_where_targets_do_not_depend_on_the_sample(pooled):
    form = {"pooled": pooled, "myopic": True, "every": 1}
    shop, whole = Recommender(N, J, remember=10, seed=3, **form), Recommender(N, J, seed=3, **form)
    for one in (shop, whole):
        for i in range(60):
            for _ in range(J):
                a = one.recommend(i)
                one.feedback(i, a, (i * a) % 3 == 0 if i < 30 else False)
    assert shop._count <= 10
    assert shop.customers == whole._count == 60
    np.testing.assert_array_equal(shop._mind.base, whole._mind.base)
    np.testing.assert_allclose(shop._mind.weight, whole._mind.weight, rtol=1e-9, atol=1e-12)


def test_customers_are_forgotten_though_nobody_learns():
    shop = made("pooled", every="later", remember=10)
    serve(shop, 60)
    assert shop.customers > 50
    assert shop._count <= 10
    assert not shop._mind.weight.any()
    assert shop._mind.mass.any()


def test_a_sample_when_it_is_asked_for_is_the_one_there_would_have_been():
    shop, other = made("exact", every=1000), made("exact", every="later")
    assert serve(shop, 30) == serve(other, 30)
    assert other.due
    shop.learn()
    other.learn()
    assert not other.due
    assert state(shop, times=False)[:4] == state(other, times=False)[:4]
    assert shop._mind.weight.any()


def test_samples_become_rare_as_they_become_dear():
    shop = Recommender(40, 4, seed=0, pooled=True)
    assert numbers_of_a_sample(Form(40, 4, True, None), 7, 20) == 40**3 + 27 * 40 < SHARE
    assert numbers_of_a_sample(Form(40, 4, False, None), 7, 20) == 4 * 40**3 + (28 + 50) * 40
    shop._gone.first[1], shop._count = 4 * 10**6, 1  # as if there had been so many
    shop._since = 15
    assert not shop.due
    shop._since = 17
    assert shop.due
    shop._gone.first[1], shop._gone.given[0] = 8 * 10**6, 4 * 10**6  # and had all had a context
    assert not shop.due
    assert not made("exact", every=3).due


# ---- what there is to offer -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["exact", "both"])
def test_values_are_those_of_what_is_offered(form):
    shop, contexts, offered = made(form, every=5, remember=12), {}, [0, 2, 3, 5, 6]
    shop.offer(offered)
    twin = Twin(shop, shop._streams[1].copy(), offered)
    diary = serve(shop, 40, offered=offered, contexts=contexts)
    assert {a for what, _, a, *_ in [d for d in diary if d[0] == "shown"]} == set(offered)
    for visit in visits_of(diary, contexts)[0]:
        twin.come(visit, 5)
    same_sample(shop, twin)
    shop.recommend("ann")
    assert np.isnan(shop.values("ann")[[1, 4]]).all()
    shop.offer(None)
    assert not np.isnan(shop.values("ann")[[1, 4]]).any()


def test_a_product_may_be_chosen_among_some():
    shop = made("pooled")
    serve(shop, 10)
    assert [shop.recommend("ann", among=np.array([4, 6])) for _ in range(2)] in ([4, 6], [6, 4])
    best = shop.values("ann")
    assert shop.recommend("ann", among={0, 1, 2}) == np.argmax(best[:3])


# ---- failures ---------------------------------------------------------------------------------------------


def test_a_sample_that_fails_leaves_the_one_before_in_use():
    shop, other = (made("pooled", every="later") for _ in range(2))
    for one in (shop, other):
        serve(one, 30)
        one.learn()
        serve(one, 5, name=100)
    shop._mind.frozen[0, 3, 2], shop._forgot = np.inf, True
    (streams, recent, _, _, *rest), *others = state(shop)
    with pytest.raises(FactorError, match="the one before stays in use, and no answer is lost"):
        shop.learn()
    found, *after = state(shop)
    assert [found[0], found[1], *found[4:]] == [streams, recent, *rest]
    assert after[:2] == others[:2]
    assert shop._taken == shop._count  # answers are in the factors already, which changes nothing in use
    assert shop.due
    shop._mind.frozen[0, 3, 2], shop._forgot = 0.0, False
    shop.learn()
    other.learn()
    assert state(shop)[0] == state(other)[0]


def test_values_without_bound_end_in_an_error_and_not_in_nonsense():
    """Targets of the sample before, neither clipped nor held by a prior, may grow with every sample."""
    shop = made("pooled", every="later", clip=False, lam=1e-6, sigma=1.0)
    serve(shop, 40)

    def learn_on():
        for _ in range(20_000):
            shop.learn()

    with pytest.raises(FactorError, match="clip=True or a larger lam"):
        learn_on()
    assert np.isfinite(shop._mind.weight).all()
    shop.recommend("ann")
    assert np.isfinite(shop.values("ann")).sum() == N - 1


def test_a_factor_that_fails_takes_in_nothing_of_the_customer():
    shop = made("pooled", every="later")
    for _ in range(J):
        shop.feedback("ann", shop.recommend("ann"), True)
    shop._mind.factor.U[0, shop._gone.product[J - 1], 0, 1] = np.nan  # of her last product
    before = state(shop)
    with pytest.raises(FactorError, match="load the last saved file"):
        shop.learn()
    assert state(shop) == before


# ---- threads ----------------------------------------------------------------------------------------------


def test_threads_ask_answer_learn_and_save_at_once(tmp_path):
    """At the end every answer is in the factors once, whoever gave it and when."""
    shop = made("pooled", every=7, remember=30)
    shop.keep(tmp_path / "shop")
    failures, done = [], threading.Event()

    def customers(k):
        rng = np.random.default_rng(k)
        for i in range(60):
            for _ in range(J):
                shop.feedback(f"{k}/{i}", shop.recommend(f"{k}/{i}"), bool(rng.random() < 0.5))

    def beside(work):
        while not done.is_set():
            work()

    def guarded(work, *told):
        def run():
            try:
                work(*told)
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=run)

    workers = [guarded(customers, k) for k in range(3)]
    others = [guarded(beside, shop.learn), guarded(beside, lambda: shop.save(tmp_path / "shop"))]
    for thread in (*workers, *others):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    for thread in others:
        thread.join()
    assert failures == []
    shop.learn()
    assert shop.customers == 180
    assert shop._taken == shop._count <= 30
    answers = shop._mind.mass[:, np.arange(N), shop._mind.constant].sum() + shop._gone.first[shop._count]
    assert answers == 180 * J
    U = np.triu(shop._mind.factor.U[0])
    precision = U.transpose(0, 2, 1) @ U
    assert precision[np.arange(N), shop._mind.constant, shop._mind.constant].sum() == pytest.approx(
        180 * J + N * 0.05
    )
    again = Recommender.load(tmp_path / "shop")
    assert (again.customers, again.open) == (180, [])
    np.testing.assert_allclose(np.triu(again._mind.factor.U[0]), U, atol=1e-9)


# ---- what it is for ---------------------------------------------------------------------------------------


def test_the_paper_s_form_is_rlsvi():
    """The same customers and noise: factors and samples of every period and product are those of the agent."""
    products, slots, episodes = 10, 5, 80
    env = rlsvi.envs.RecommendationEnv(products, slots, seed=2)
    agent = rlsvi.RLSVI(lam=0.2, sigma=0.1, basis=rlsvi.bases.Recommendation(), seed=0)
    shop = Recommender(products, slots, lam=0.2, sigma=0.1, baseline=0.0, clip=False, every="later", seed=0)
    steps, real = [], env.step

    def step(action):
        found = real(action)
        steps.append((int(action), found[1] > 0))
        return found

    env.step = step
    agent.learn(env, episodes=episodes)
    for i in range(episodes):
        for a, liked in steps[slots * i : slots * (i + 1)]:
            assert shop.recommend(i, among=[a]) == a
            shop.feedback(i, a, liked)
    learner = agent._learner
    memory = (
        learner.mind.memory
    )  # the agent draws for the products that came, in that order; the shop in their own
    assert memory.lives.min() > slots
    memory.alive[:], memory.lives[:], memory.live[:] = True, products, np.arange(products)
    noise = agent._streams[0].copy()
    shop._streams[1] = noise
    bits(shop._streams[1])  # the agent's first is for products that never came
    values = learner.plan(True, noise.copy())
    shop.learn()
    U = learner.mind.factor.U
    np.testing.assert_allclose(
        np.triu(shop._mind.factor.U), np.triu(U.reshape(shop._mind.factor.U.shape)), atol=1e-12
    )
    np.testing.assert_allclose(shop._mind.weight, values.theta.transpose(0, 2, 1), rtol=1e-7, atol=1e-7)
    x = np.zeros(products)
    for slot, (a, liked) in enumerate(steps[-slots:-1], 1):  # and so are the values on the way of a customer
        shop.recommend("ann", among=[a])
        shop.feedback("ann", a, liked)
        x[a] = 1 if liked else -1
        Q = np.where(x == 0, action_values(learner, values, slot, x), np.nan)
        np.testing.assert_allclose(shop.values("ann"), Q, rtol=1e-7, atol=1e-7)


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
