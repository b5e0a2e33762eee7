"""How customers come to the shops of the figure, and who serves them there."""

from collections import Counter

import numpy as np
import pytest
from benchmarks.recommendation_scale import runs as shops
from benchmarks.recommendation_scale.plan import share_of
from benchmarks.recommendation_scale.players import TabularBandit, myopic_policy, random_play, served_by

from rlsvi.mdp.recommendation import draw_taste, myopic_products
from rlsvi.shop import Recommender
from rlsvi.study.means import mean

N, J = 6, 3


class Diary:
    """Notes all calls, and hands out products 0, 1, .. to everybody."""

    def __init__(self):
        self.calls, self.shown = [], Counter()

    def recommend(self, customer):
        self.shown[customer] += 1
        self.calls.append(("recommend", customer))
        return self.shown[customer] - 1

    def feedback(self, customer, product, liked):
        self.calls.append(("feedback", customer, product, liked))

    def close(self, customer):
        self.calls.append(("close", customer))

    def when(self, *call):
        (at,) = [i for i, made in enumerate(self.calls) if made[: len(call)] == call]
        return at


def kept(customers=60, **way):
    diary = Diary()
    likes = served_by(diary, draw_taste(N, seed=1), J, customers, np.random.default_rng(0), **way)
    return diary, likes


def test_in_order_every_answer_comes_before_the_next_slot():
    diary, likes = kept(5)
    expected = [(kind, i) for i in range(5) for _ in range(J) for kind in ("recommend", "feedback")]
    assert [call[:2] for call in diary.calls] == expected
    assert likes.shape == (5,)
    assert (likes > 0.5).all()  # the first slot alone has one half


def test_likes_are_those_of_her_true_history():
    taste = draw_taste(N, seed=1)
    diary, likes = kept(1)
    x, total = np.zeros(N), 0.0
    for kind, _, *answer in diary.calls:
        if kind == "feedback":
            a, liked = answer
            total += 1 / (1 + np.exp(-(taste.beta[a] + taste.gamma[a] @ x)))
            x[a] = 1 if liked else -1
    assert likes[0] == pytest.approx(total, abs=1e-12)


def test_as_many_overlap_as_are_told_and_all_are_served():
    diary, _ = kept(at_once=10)
    seen, most = Counter(), 0
    for call in diary.calls:
        seen[call[1]] += call[0] == "recommend"
        most = max(most, sum(0 < count < J for count in seen.values()))
    assert 5 <= most <= 10
    assert seen == dict.fromkeys(range(60), J)
    assert sum(call[0] == "feedback" for call in diary.calls) == 60 * J
    assert not any(call[0] == "close" for call in diary.calls)


def test_late_answers_come_after_so_many_other_slots_in_the_mean():
    """A geometric number of mean 20 has a standard deviation below 21; what is asked at the end is left out."""
    customers, late = 500, 20.0
    diary, _ = kept(customers, at_once=30, late=late)
    asked, seen, waits, now = {}, Counter(), [], 0
    for kind, i, *answer in diary.calls:
        if kind == "recommend":
            asked[i, seen[i]] = now
            seen[i] += 1
            now += 1
        elif asked[i, answer[0]] < customers * J - 300:
            waits.append(now - 1 - asked[i, answer[0]])
    assert len(waits) == customers * J - 300
    assert abs(np.mean(waits) - late) < 5 * 21 / len(waits) ** 0.5
    assert max(waits) > 60


def test_lost_answers_never_come_and_who_lost_one_is_closed_last():
    diary, _ = kept(400, lost=0.25, at_once=3, late=4.0)
    told = Counter(call[1] for call in diary.calls if call[0] == "feedback")
    closed = [call[1] for call in diary.calls if call[0] == "close"]
    share = 1 - sum(told.values()) / (400 * J)
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / (400 * J)) ** 0.5
    assert sorted(closed) == [i for i in range(400) if told[i] < J]
    for i in closed:
        assert not any(call[1] == i for call in diary.calls[diary.when("close", i) + 1 :])


@pytest.mark.parametrize("way", [{}, {"at_once": 7, "late": 5.0, "lost": 0.2}])
def test_a_recommender_learns_from_all_of_them(way):
    shop = Recommender(N, J, seed=0)
    served_by(shop, draw_taste(N, seed=1), J, 40, np.random.default_rng(0), **way)
    assert shop.customers == 40
    assert shop.open == []


def test_the_myopic_policy_and_random_play_go_by_what_they_were_told():
    taste, rng = draw_taste(N, seed=1), np.random.default_rng(0)
    known = myopic_policy(taste, rng)
    first = known.recommend(0)
    known.feedback(0, first, False)
    x = np.zeros(N)
    x[first] = -1
    (best,) = myopic_products(taste, x)
    assert known.recommend(0) == best
    assert known.recommend(0) not in (first, best)  # unanswered, but shown
    assert {known.recommend(i) for i in range(1, 100)} == set(range(N))
    blind = random_play(N, rng)
    assert {blind.recommend(0) for _ in range(N)} == set(range(N))


def test_the_tabular_bandit_learns_after_each_history_apart():
    """Product 4 is always liked after a like of product 2, and not shown more often after a dislike of it."""
    bandit = TabularBandit(N, np.random.default_rng(0))
    seconds = {True: Counter(), False: Counter()}
    for i in range(3000):
        first = bandit.recommend(i)
        liked = i % 2 == 0
        bandit.feedback(i, first, liked if first == 2 else False)
        if first == 2:
            second = bandit.recommend(i)
            bandit.feedback(i, second, second == 4 if liked else False)
            if i >= 1500:
                seconds[liked][second] += 1
    assert seconds[True][4] > 0.9 * seconds[True].total()
    n = seconds[False].total()
    assert n > 300
    assert abs(seconds[False][4] / n - 1 / (N - 1)) < 5 * (0.25 / n) ** 0.5


def test_greedy_is_the_mean_of_the_same_posterior():
    """Its noise is nothing and its ridge that of RLSVI, so that another sample is the same one."""
    taste, moved = draw_taste(N, seed=1), {}
    for name in ("greedy", "RLSVI"):
        shop = shops._counter(name, taste, J, 0, {"lam": 50.0, "pooled": False})
        assert shop.lam * shop.sigma**2 == pytest.approx(50.0 * shops.SIGMA2, rel=1e-12)
        served_by(shop, taste, J, 40, np.random.default_rng(0))
        before = shop._mind.weight.copy()
        shop.learn()
        moved[name] = np.abs(shop._mind.weight - before).max()
    assert moved["greedy"] < 1e-9
    assert moved["RLSVI"] > 1e-3


def test_a_share_ends_where_the_difference_may_be_nothing():
    """The ends of Fieller's interval are the multiples at which Student's interval of the difference ends at 0."""
    rng = np.random.default_rng(0)
    others = 3.0 + 0.3 * rng.standard_normal(8)
    values = 0.8 * others + 0.1 * rng.standard_normal(8)
    share = share_of(values, others)
    assert share.value == pytest.approx(values.mean() / others.mean(), rel=1e-12)
    assert mean(values - share.low * others).low == pytest.approx(0.0, abs=1e-9)
    assert mean(values - share.high * others).high == pytest.approx(0.0, abs=1e-9)
    assert share.high - share.low < 0.1  # paired: apart, others alone make it wider
    assert share_of(values, others - 3.0).high == np.inf
    assert share_of(values[:1], others[:1])[1:] == (-np.inf, np.inf)


def test_more_noise_explores_more():
    """A sample moves the weights by the noise, with the same ridge."""
    taste, moved = draw_taste(N, seed=1), []
    for sigma2 in (1e-3, 0.1):
        form = {"lam": 1.0 / sigma2, "sigma": sigma2**0.5, "pooled": True}
        shop = shops._counter("RLSVI", taste, J, 0, form)
        served_by(shop, taste, J, 40, np.random.default_rng(0))
        shop.learn()
        before = shop._mind.weight.copy()
        shop.learn()
        moved.append(np.abs(shop._mind.weight - before).mean())
    assert 3 < moved[1] / moved[0] < 30  # 10, but for what each was shown
    told = {"study": "", "agent": "RLSVI", "products": N, "slots": J, "customers": 41, "seed": 3, "lam": 1.0}
    few, usual, many = (shops.served(**told, **more)["likes"] for more in ({"sigma2": 1e-3}, {}, {"sigma2": 1.0}))
    assert (few == usual).all()
    assert (few != many).any()


def test_a_job_is_the_mean_likes_of_its_parts():
    settings = {"products": N, "slots": J, "customers": 41, "seed": 3}
    found = shops.served(study="", agent="random", **settings)
    rngs = np.random.default_rng([3, 2]), np.random.default_rng([3, 1])
    likes = served_by(random_play(N, rngs[0]), draw_taste(N, seed=3), J, 41, rngs[1])
    assert found["customer"][-1] == 41
    weights = np.diff([0, *found["customer"]])
    assert found["likes"] @ weights == pytest.approx(likes.sum(), abs=1e-9)
    for agent in ("Thompson sampling", "greedy", "linear bandit", "tabular bandit", "myopic policy", "RLSVI"):
        other = shops.served(study="", agent=agent, lam=100.0, **settings)
        assert other["likes"].shape == (20,)
        assert 0.5 < other["likes"].mean() < J
