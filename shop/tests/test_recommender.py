"""A shop in one process: visits, products, retries, and what is learned."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from serving import PRODUCTS, new_shop

from rlsvi_shop import Recommender, ShopSettings
from rlsvi_shop.requests import Close, Conflict, Feedback, NotFound, NotReady, Recommend, RequestError


def kinds(shop, visit):
    return [event.kind for event in shop.events.since(0, 10_000) if event.visit == visit]


def test_learning_is_a_flag_or_a_section_of_the_settings(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    section = ShopSettings(learning={"draws": 5}).learning
    for given, draws in ((True, 16), (False, 16), ({"draws": 3}, 3), (section, 5)):
        with Recommender(database=url, learning=given) as shop:
            assert shop.settings.learning.draws == draws
            assert (shop._follower is None) is (given is False)
    for given, words in (({"drawn": 3}, "drawn"), ("yes", "must be True or False"), ([], "learning must")):
        with pytest.raises((ValueError, TypeError), match=words):
            Recommender(database=url, learning=given)
    with pytest.raises(TypeError, match="give settings, or options such as learning, not both"):
        Recommender(ShopSettings(database=url), learning={"draws": 3})


# ---- visits -------------------------------------------------------------------------------------------------


def test_no_product_is_shown_twice_and_slots_end(shop):
    shown = [shop.recommend("ann") for _ in range(3)]
    assert len(set(shown)) == 3
    assert set(shown) <= set(PRODUCTS)
    with pytest.raises(Conflict, match="visit 'ann' was shown 3 products, and slots = 3"):
        shop.recommend("ann")


def test_a_slate_fills_slots_together_and_may_be_shorter(shop):
    first = shop.recommend("ann", count=2)
    assert len(set(first)) == 2
    rest = shop.recommend("ann", count=2)
    assert len(rest) == 1
    assert rest[0] not in first
    assert [event.slot for event in shop.events.since(len(PRODUCTS), 9)] == [0, 1, 2]
    assert shop.recommend("bob", count=1, among=["tea"]) == ["tea"]


def test_slots_store_what_is_needed_for_the_probability_of_a_visit_also_over_a_refresh(tmp_path):
    options = {"database": f"sqlite:///{tmp_path}/shop.db", "slots": 4}

    def of(shop, visit):
        return [
            event for event in shop.events.since(0, 999) if (event.visit, event.kind) == (visit, "recommended")
        ]

    with Recommender(**options, learning={"draws": 3}) as shop:
        shop.add_all({name: {} for name in PRODUCTS})
        shop.recommend("ann", count=2)
        for n in range(20):
            shop.feedback(f"v{n}", shop.recommend(f"v{n}"), float(n % 2))
            shop.close(f"v{n}")
        shop.learn()
        shop.recommend("ann")
        first, second, third = of(shop, "ann")
        assert (first.propensity, first.agreeing) == (pytest.approx(1 / len(PRODUCTS)), [1.0] * 3)
        assert second.propensity == pytest.approx(1 / (len(PRODUCTS) - 1))
        assert max(third.agreeing) == 1.0
        assert third.sample > second.sample
        names = [f"w{n}" for n in range(60)]
        chance = {name: np.prod([event.propensity for event in of(shop, name)])
                  for name in names if shop.recommend(name, count=2)}  # fmt: skip
        visits = {tuple(event.product for event in of(shop, name)): chance[name] for name in names}
        assert sum(visits.values()) == pytest.approx(1.0)  # three samples, all of which were seen
    with Recommender(**options, learning={"draws": 4}) as shop:
        shop.recommend("ann")
        assert of(shop, "ann")[3][-1] is of(shop, "ann")[3].propensity is None
    one = {"database": f"sqlite:///{tmp_path}/one.db", "slots": 1}
    with Recommender(**one) as shop:
        shop.add("tea")
        shop.recommend("ann")
        assert (of(shop, "ann")[0].propensity, of(shop, "ann")[0].agreeing) == (1.0, None)


def test_a_slot_that_is_filled_is_returned_as_it_was(shop):
    first = shop.recommend("ann", slot=0)
    assert shop.recommend("ann", slot=0) == first
    second = shop.recommend("ann", slot=1)
    assert shop.recommend("ann", slot=0, count=2) == [first, second]
    assert kinds(shop, "ann") == ["recommended"] * 2
    shop.close("ann")
    assert shop.recommend("ann", slot=1) == second  # also after the visit
    with pytest.raises(Conflict, match="closed"):
        shop.recommend("ann", slot=2)
    with pytest.raises(Conflict, match="slot 2 of visit 'bob' cannot be filled before slot 0"):
        shop.recommend("bob", slot=2)


def test_the_same_answer_counts_once_and_another_one_is_refused(shop):
    product = shop.recommend("ann")
    shop.feedback("ann", product, 1.5)
    shop.feedback("ann", product, 1.5)
    with pytest.raises(Conflict, match=r"has the reward 1\.5 already"):
        shop.feedback("ann", product, 2.0)
    shop.close("ann")
    shop.close("ann")
    shop.feedback("ann", product, 1.5)
    assert kinds(shop, "ann") == ["recommended", "answered", "closed"]


def test_what_makes_no_sense_is_refused_and_changes_nothing(shop):
    shop.recommend("ann", {"age": 20}, among=["tea"])
    before = shop.events.last()
    for error, words, call in (
        (NotFound, "'coffee' was not recommended in visit 'ann'", lambda: shop.feedback("ann", "coffee", 1.0)),
        (NotFound, "visit 'bob' is unknown", lambda: shop.close("bob")),
        (NotFound, "product 'wine' of among is unknown", lambda: shop.recommend("bob", among=["tea", "wine"])),
        (Conflict, "context of visit 'ann' differs", lambda: shop.recommend("ann", {"age": 21})),
        (Conflict, "offered that visit 'ann' has not seen", lambda: shop.recommend("ann", among=["tea"])),
        (RequestError, "reward must", lambda: shop.feedback("ann", "tea", float("nan"))),
        (RequestError, "reward must", lambda: shop.feedback("ann", "tea", None)),
        (RequestError, "visit must", lambda: shop.recommend("a" * 201)),
        (RequestError, "visit must", lambda: shop.recommend(1.5)),
    ):
        with pytest.raises(error, match=words):
            call()
    assert shop.events.last() == before
    shop.recommend("ann", {"age": 20})  # the same context may come again


def test_numbers_of_numpy_are_numbers(shop):
    product = shop.recommend("7", {"age": np.float32(20)}, count=np.int64(1))[0]
    shop.feedback("7", product, np.float64(1.0))
    assert kinds(shop, "7") == ["recommended", "answered"]


def test_a_late_answer_and_one_to_a_closed_visit(shop):
    first, second = shop.recommend("ann", count=2)
    shop.feedback("ann", second, 0.0)
    shop.feedback("ann", first, 1.0)
    third = shop.recommend("ann")
    shop.close("ann")
    with pytest.raises(Conflict, match="visit 'ann' is closed"):
        shop.feedback("ann", third, 1.0)


def test_requests_in_one_transaction_see_one_another(shop):
    shop.recommend("first")
    asked = [
        Recommend.of(visit="ann"),
        Recommend.of(visit="ann"),
        Close.of(visit="ann"),
        Recommend.of(visit="ann"),
    ]
    first, second, closed, refused = shop.handle(asked)
    assert first[0] == 0
    assert second[0] == 1
    assert first[1] != second[1]
    assert closed is None
    assert isinstance(refused, Conflict)
    (again,) = shop.handle([Feedback.of(visit="ann", product="nothing", reward=1)])
    assert isinstance(again, NotFound)


def test_a_transaction_that_fails_leaves_nothing(shop, monkeypatch):
    shop.recommend("ann")
    before = shop.events.last()
    monkeypatch.setattr("rlsvi_shop.events.Writer.append", lambda self, events: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shop.recommend("bob")
    monkeypatch.undo()
    assert shop.events.last() == before
    shop.recommend("bob")


# ---- products -----------------------------------------------------------------------------------------------


def test_products_come_go_and_come_back(shop):
    assert shop.products == PRODUCTS
    shop.remove("tea")
    assert all("tea" not in shop.recommend(f"v{n}", count=3) for n in range(20))
    with pytest.raises(NotFound, match="product 'wine' is unknown"):
        shop.remove("wine")
    shop.add("wine", {"price": 3})
    assert shop.recommend("for wine", among=["wine"]) == "wine"
    shop.add("tea")
    assert shop.recommend("for tea", among=["tea"]) == "tea"
    assert set(shop.products) == {*PRODUCTS, "wine"}
    before = shop.events.last()
    shop.add("wine", {"price": 3})  # it is so already
    assert shop.events.last() == before
    shop.add("wine", {"price": 4})
    assert shop.described_products()[-1]["features"] == {"price": 4.0}


def test_products_and_visits_are_integers_if_the_settings_say_so(tmp_path):
    with new_shop(tmp_path, [10, 20, 30], ids="integer") as shop:
        assert shop.products == [10, 20, 30]
        product = shop.recommend(np.int64(7))
        assert isinstance(product, int)
        shop.feedback(7, product, 1.0)
        with pytest.raises(RequestError, match="visit must be an integer"):
            shop.recommend("ann")
        with pytest.raises(RequestError, match="product must be an integer"):
            shop.feedback(7, str(product), 1.0)
        with pytest.raises(RequestError, match="product must be an integer"):
            shop.add("forty")


def test_another_process_sees_changes_of_the_catalogue_at_once(tmp_path):
    with new_shop(tmp_path) as shop, Recommender(shop.settings, learning=False) as other:
        shop.learn()
        shop._follower.publish()
        assert other.renew()
        assert not other.renew()
        shop.remove("tea")
        assert all("tea" not in other.recommend(f"w{n}", count=3) for n in range(20))


def test_a_server_answers_as_soon_as_there_are_samples(tmp_path, caplog):
    """Also the one that has not looked for them: else a healthy service refuses what its other worker is asked."""
    with new_shop(tmp_path) as shop, Recommender(shop.settings, learning=False) as other:
        assert other.recommend("early") in PRODUCTS  # at random
        shop.settings.file("draws").write_bytes(b"no samples")
        for _ in range(2):
            with pytest.raises(NotReady, match="is damaged: let the learner"):
                other.recommend("ann")
        assert [record.message for record in caplog.records] == ["samples left out"]  # once, not at every request
        shop.learn()
        shop._follower.publish()
        assert other.recommend("ann") in PRODUCTS
    with Recommender(shop.settings, learning=False) as other:
        assert other.health()["sample"] == len(PRODUCTS) + 1  # the early visit too


def test_samples_travel_through_the_database_to_another_machine(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with new_shop(here, share_draws=True) as shop:
        settings = shop.settings.model_copy(update={"folder": str(there)})
        with Recommender(settings, learning=False) as other:
            assert not other.renew()
            shop._follower.catch_up()
            shop._follower.publish()
            assert other.renew()
            assert not other.renew()
            assert other.recommend("ann") in PRODUCTS
            assert other.sample.last == len(PRODUCTS)


# ---- settings and learning ----------------------------------------------------------------------------------


def test_settings_from_a_file_from_python_and_by_name(tmp_path):
    file = tmp_path / "shop.toml"
    file.write_text('database = "sqlite:///of_file.db"\nslots = 2\n')
    with Recommender(file, learning=False) as shop:
        assert shop.settings.slots == 2
    assert (tmp_path / "of_file.db").exists()
    settings = ShopSettings(database=f"sqlite:///{tmp_path}/of_python.db", slots=4)
    with Recommender(settings, learning=False) as shop:
        assert shop.settings is settings
        with pytest.raises(RuntimeError, match="does not learn"):
            shop.learn()
        with pytest.raises(Conflict, match="no product is offered"):
            shop.recommend("ann")
    with pytest.raises(ValueError, match="slots must be at least 1"):
        Recommender(slots=0)


def test_it_learns_what_is_liked(tmp_path):
    products = [f"p{n}" for n in range(8)]
    with new_shop(tmp_path, products, slots=2, every=5) as shop:
        rewards = []
        for visit in map(str, range(120)):
            for _ in range(2):
                product = shop.recommend(visit)
                shop.feedback(visit, product, float(product in ("p3", "p4")))
            rewards.append(sum(event.reward or 0 for event in shop.events.since(0, 10**6) if event.visit == visit))
    assert np.mean(rewards[-40:]) > 1.5
    assert np.mean(rewards[:10]) < 1.5


def test_a_new_process_goes_on_with_open_visits_and_what_was_learned(tmp_path):
    with new_shop(tmp_path) as shop:
        for visit in map(str, range(10)):
            for product in shop.recommend(visit, count=3):
                shop.feedback(visit, product, float(product == "tea"))
        open_visit = shop.recommend("open")
        settings = shop.settings
        shop.learn()
        before = shop.described_products()
    assert (tmp_path / "shop.db.learner.rlsvi").exists()
    with Recommender(settings) as again:
        assert again._follower.learner.visits == 10
        again.feedback("open", open_visit, 1.0)
        assert again.recommend("open") != open_visit
        assert [each["product"] for each in again.described_products()] == [each["product"] for each in before]
    (tmp_path / "shop.db.learner.rlsvi").write_bytes(b"spoiled")
    with Recommender(settings) as again:  # all events are learned anew
        assert again._follower.learner.visits == 10


# ---- together -----------------------------------------------------------------------------------------------


def test_threads_do_not_disturb_one_another(shop):
    shop.recommend("first")

    def visit(name):
        for _ in range(3):
            shop.feedback(name, shop.recommend(name), 1.0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, [f"v{n}" for n in range(8)]))
    assert all(kinds(shop, f"v{n}") == ["recommended", "answered"] * 3 for n in range(8))


def visits_of_a_process(settings, name):
    """What the other process of the next test does."""
    with Recommender(settings, learning=False) as shop:
        shop.renew()
        for n in range(30):
            shop.recommend(f"{name}-{n}")
            shop.recommend("shared", slot=min(n // 10, 2))
            shop.feedback(f"{name}-{n}", shop.recommend(f"{name}-{n}", slot=0), 1.0)


@pytest.mark.slow
def test_two_processes_serve_one_shop(tmp_path):
    with new_shop(tmp_path) as shop:
        shop._follower.catch_up()
        shop._follower.publish()
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(visits_of_a_process, [shop.settings] * 2, range(2)))
        events = shop.events.since(0, 10**6)
    shared = [event.product for event in events if event.visit == "shared"]
    assert len(shared) == len(set(shared)) == 3
    assert sum(event.kind == "answered" for event in events) == 60
    assert [event.id for event in events] == sorted(event.id for event in events)
