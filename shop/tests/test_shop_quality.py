"""The comparison of ways to recommend: worlds, policies, files and tables; rivals where they are installed."""

import zipfile
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from benchmarks.shop_quality import __main__ as command
from benchmarks.shop_quality import logged_policies, open_bandit, open_visits, results, summary
from benchmarks.shop_quality.knowing import Myopic, Optimal, Uniform, solved
from benchmarks.shop_quality.linear_shared import SharedThompson
from benchmarks.shop_quality.policies import NAMES, POLICIES, installed, takes_part
from benchmarks.shop_quality.visits import Visit, play
from benchmarks.shop_quality.worlds import KINDS, OTHERS, WORLDS, Shop, World

from rlsvi.mdp.recommendation import histories, recommendation
from rlsvi.mdp.solve import backward_induction
from rlsvi.offline.value import WEIGHTED


def test_the_optimal_policy_is_that_of_dynamic_programming():
    shop = Shop(World("plain", 6, 3, 20), 4)
    exact = backward_induction(recommendation(6, 3, gamma=shop.gamma))
    Q = solved(shop, 0, np.ones(6, dtype=bool))
    number = np.count_nonzero(histories(6, 3), axis=1)
    for h in range(3):
        np.testing.assert_allclose(Q[number == h], exact.Q[h, :-1][number == h])


@pytest.mark.parametrize("kind", ["bundles", "boredom", "new products"])
def test_the_optimal_policy_looks_through_all_that_may_follow(kind):
    shop = Shop(World(kind, 8, 3, 10), 1)

    def best(customer, x, slots):
        chance = shop.chances(customer, x)
        return max(
            p * (shop.price[a] + following[0]) + (1 - p) * following[1]
            for a in np.flatnonzero((x == 0) & shop.offered(customer))
            for p, unit in [(chance[a], np.eye(8)[a])]
            for following in [[best(customer, x + s * unit, slots - 1) if slots > 1 else 0 for s in (1, -1)]]
        )

    for customer in (0, 9):
        found = Optimal(shop).values(Visit(customer, np.zeros(8), shop.offered(customer)))
        assert found.max() == pytest.approx(best(customer, np.zeros(8), 3))


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("genres", 0, 0),
        ("opener", 0.15, 0.4),
        ("warm up", 0.01, 0.12),
        ("bundles", 0.15, 0.4),
        ("boredom", 0, 0.01),
    ],
)
def test_planning_is_worth_what_the_world_is_named_for(kind, least, most):
    shops = [Shop(World(kind, 24, 3, 80), seed) for seed in range(100, 104)]
    myopic, optimal = (sum(play(shop, policy(shop)).sum() for shop in shops) for policy in (Myopic, Optimal))
    assert least <= optimal / myopic - 1 <= most


@pytest.mark.parametrize("kind", KINDS)
def test_knowing_more_earns_more_with_the_same_customers(kind):
    shop = Shop(World(kind, 8, 4, 150), 1)
    uniform, myopic, optimal = (play(shop, policy(shop)) for policy in (Uniform, Myopic, Optimal))
    assert uniform.mean() < myopic.mean() <= optimal.mean() + 0.05
    assert np.array_equal(optimal, play(shop, Optimal(shop)))
    assert (optimal <= 4 * shop.price.max()).all()


def test_an_answer_is_decided_by_the_customer_and_the_product():
    shop = Shop(World("plain", 6, 6, 40), 2)

    class InOrder(Uniform):
        """Shows products in a fixed order, and keeps the visits."""

        order, kept = range(6), ()

        def choose(self, visits):
            return [self.order[len(visit.shown)] for visit in visits]

        def learn(self, visits):
            self.kept += tuple(visits)

    first, again = InOrder(shop), InOrder(shop)
    play(shop, first)
    play(shop, again)
    assert [visit.rewards for visit in first.kept] == [visit.rewards for visit in again.kept]
    for visit in first.kept:
        x = np.zeros(6)
        for a, reward in zip(visit.shown, visit.rewards, strict=True):
            liked = shop.opinions(visit.customer)[a] < 1 / (1 + np.exp(-shop.gamma[a] @ x))
            assert reward == float(liked)
            x[a] = 1 if liked else -1


def test_products_are_added_midway_and_cannot_be_shown_before():
    world = World("new products", 10, 3, 60)
    shop = Shop(world, 0)
    assert shop.offered(29).sum() == 7
    assert shop.offered(30).all()
    assert shop.product.shape == (10, 6)

    class Last(Uniform):
        """Shows the last product, which is not there."""

        def choose(self, visits):
            return [9] * len(visits)

    with pytest.raises(ValueError, match="product 9 may not be shown to customer 0"):
        play(shop, Last(shop))


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ("uniform", "myopic", "optimal")])
def test_every_policy_serves_every_kind_of_world(name, kind):
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    shop = Shop(World(kind, 8, 3, 30), 3)
    served = [play(shop, POLICIES[name](shop)) for _ in range(2)]
    assert np.array_equal(*served)
    assert ((served[0] > 0) & (served[0] < 3 * shop.price.max())).all()


@pytest.mark.parametrize("kind", ["opener", "customer features", "new products", "plain"])
def test_the_shared_posterior_is_that_of_all_answers_at_once(kind):
    shop = Shop(World(kind, 7, 3, 25), 1)

    class Recorded(SharedThompson):
        """Keeps all visits."""

        kept = ()

        def learn(self, visits):
            super().learn(visits)
            self.kept += tuple(visits)

    learner = Recorded(shop, alpha=0.3, ridge=2.0)
    play(shop, learner)
    rows, rewards = [], []
    for visit in learner.kept:
        x, c = np.zeros(7), shop.context[visit.customer]
        for a, reward in zip(visit.shown, visit.rewards, strict=True):
            z = shop.product[a]
            liked, disliked = (sum((shop.product[n] for n in np.flatnonzero(x == s)), 0 * z) for s in (1, -1))
            own = [1, *x] if len(z) else [1, *c, *x]
            about = [1, *c, *liked, *disliked]
            rows.append([*np.kron(np.eye(7)[a], own), *(u * v for u in about for v in (1, *z))])
            rewards.append(reward)
            x[a] = 1 if reward else -1
    X = np.array(rows)
    mean = np.linalg.inv(X.T @ X + 2 * np.eye(X.shape[1])) @ X.T @ rewards
    np.testing.assert_allclose(learner.mean, mean, atol=1e-10)
    visit = Visit(3, x := np.array([1, 0, 0, -1, 0, 0, 0]), x == 0)
    np.testing.assert_allclose(
        learner.values(visit, mean), [learner.row(3, x, a) @ mean for a in range(7)], atol=1e-10
    )


@pytest.mark.parametrize("name", ["ours", "ours-greedy", "shared-ts", "lints", "vw"])
def test_whoever_learns_earns_more_than_uniform(name):
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    shop = Shop(WORLDS["plain-10"].shortened(200), 105)
    assert play(shop, POLICIES[name](shop))[100:].mean() > play(shop, Uniform(shop)).mean() + 0.4


@pytest.mark.parametrize(("kind", "changed"), [("redrawn", {1, 2, 3}), ("kept", {2}), ("fixed", set())])
def test_noise_of_open_visits_changes_with_a_refresh_as_its_kind_says(kind, changed):
    learning, sizes = SimpleNamespace(draws=3, seed=0), SimpleNamespace(own=2, shared=4)
    before, after = (
        open_visits.noise_of(
            SimpleNamespace(count=5, learning=learning, sizes=sizes, refreshes=refreshes),
            kind,
            np.ones((5, 2)),
            1.0,
        )
        for refreshes in (3, 4)
    )
    assert not before.own[:, 0].any()  # the mean has no noise
    assert not before.shared[0].any()
    own = {s for s in range(4) if (before.own[:, s] != after.own[:, s]).any()}
    assert own == {s for s in range(4) if (before.shared[s] != after.shared[s]).any()} == changed


def test_customers_who_come_one_by_one_are_all_served():
    world = WORLDS["plain-10"].shortened(30)
    earned = {kind: open_visits.play(Shop(world, 0), kind, 4) for kind in open_visits.KINDS}
    assert all(len(each) == 30 and (each > 0).all() for each in earned.values())
    assert len({each.tobytes() for each in earned.values()}) == 3


@pytest.mark.slow
def test_only_what_is_missing_is_measured_and_tables_compare_the_same_seeds(tmp_path, monkeypatch):
    asked = ["--quick", "--worlds", "plain-10", "--policies", "uniform", "myopic", "--out", str(tmp_path)]
    command.main([*asked, "--seeds", "2"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "plain-10.myopic.0.json",
        "plain-10.myopic.1.json",
        "plain-10.uniform.0.json",
        "plain-10.uniform.1.json",
        "shop-quality.png",
        "tables.md",
    ]
    monkeypatch.setattr(command, "measure", lambda *_: pytest.fail("measured again"))
    command.main([*asked, "--seeds", "2"])
    monkeypatch.undo()
    results.measure(tmp_path, WORLDS["plain-10"].shortened(20), "myopic", 0)
    options = SimpleNamespace(
        quick=True, seeds=1, first_seed=0, worlds=["plain-10"], policies=["myopic"], out=tmp_path
    )
    assert len(command.planned(options, [])) == 1, "another number of customers is another run"


def test_differences_are_those_of_seeds_that_both_have():
    def held(*rewards):
        return {seed: {"reward": [value] * results.PARTS, "customers": 20} for seed, value in enumerate(rewards)}

    found = {("plain-10", "ours"): held(1.0, 2.0, 3.0, 9.0), ("plain-10", "vw"): held(0.9, 1.8, 2.9)}
    more = summary.differences(found, "plain-10", "vw", "last fifth")
    assert more.value == pytest.approx(0.4 / 3)
    text = summary.page(found)
    assert "**+0.13 (" not in text
    assert "+0.13 (" in text
    assert "| 75 |" in text, "the mean total of 20 customers"
    assert NAMES["vw"] in text
    assert not takes_part("optimal", WORLDS["plain-50"])


@pytest.fixture
def wheel(tmp_path):
    """A small file like that of obp: product 1 is clicked by customers of kind a."""
    rng = np.random.default_rng(0)
    n = 600
    kind, item = rng.choice(["a", "b"], n), rng.integers(4, size=n)
    click = ((item == 1) & (kind == "a")).astype(int)
    rows = {"timestamp": [f"{i:05}" for i in range(n)], "item_id": item, "position": rng.integers(1, 4, n)}
    rows |= {"click": click, "propensity_score": np.full(n, 0.25), "user_feature_0": kind}
    rows |= {f"user_feature_{k}": ["x"] * n for k in (1, 2, 3)}
    items = {"item_id": range(4), "item_feature_0": [0.0, 1.0, 0.5, 0.2], "item_feature_3": ["p", "q", "p", "q"]}
    path = tmp_path / "small.whl"
    with zipfile.ZipFile(path, "w") as file:
        for policy in ("random", "bts"):
            for campaign in open_bandit.CAMPAIGNS:
                folder = f"obp/dataset/obd/{policy}/{campaign}"
                file.writestr(f"{folder}/{campaign}.csv", pl.DataFrame(rows).write_csv())
                file.writestr(f"{folder}/item_context.csv", pl.DataFrame(items).write_csv())
    return path


def test_open_bandit_data_are_read_and_policies_judged(wheel, capsys):
    rows, products = open_bandit.read(wheel, "random", "all"), open_bandit.catalogue(wheel, "all")
    assert rows["half"].sum() == 300
    found = open_bandit.judged(rows, products, logged_policies.uniform)
    for interval in found.estimates.values():
        assert interval.value == pytest.approx(rows["reward"].mean(), rel=0.05)
    better = open_bandit.judged(rows, products, logged_policies.ours_greedy)
    assert better.estimates[WEIGHTED].value > 3 * found.estimates[WEIGHTED].value
    chances = logged_policies.ours(rows, rows["customer"].head(5).to_list(), products)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    none, some = open_bandit.proportion(0.0, 100), open_bandit.proportion(0.04, 100)
    assert none.low == 0 < none.high == pytest.approx(1 - 0.025**0.01)
    assert 0.01 < some.low < 0.04 < some.high < 0.1
    if installed("lints"):
        open_bandit.main([str(wheel)])
        assert capsys.readouterr().out.count("| women |") == 5
