"""`reward.unanswered`: what products without an answer earned, for shops that send clicks alone."""

import pytest

from rlsvi_shop import Event, Events, Recommender, judge
from rlsvi_shop.exchange import export_events, import_events
from rlsvi_shop.follower import Follower
from rlsvi_shop.model.targets import NEVER
from rlsvi_shop.settings import ShopSettings


def settings(folder, unanswered, file="shop.db"):
    reward = {} if unanswered is None else {"unanswered": unanswered}
    learning = {"draws": 3, "history": 4, "exploration": 0.0}
    return ShopSettings(database=f"sqlite:///{folder}/{file}", slots=2, reward=reward, learning=learning)


def write(where, *rows):
    with Events(where.database) as events, events.writing() as writer:
        writer.append(rows)


def clicks_only(where, visits):
    """Customers see both products, and click on tea alone; nothing is sent of mud."""
    write(where, *(Event("added", product=product) for product in ("tea", "mud")))
    for n in range(visits):
        order = ("tea", "mud") if n % 2 else ("mud", "tea")
        shown = [Event("recommended", f"v{n}", product, slot) for slot, product in enumerate(order)]
        write(where, *shown, Event("answered", f"v{n}", "tea", reward=1.0), Event("closed", f"v{n}"))


def answers(where):
    """How often each product was answered, by a learner of the shop."""
    with Follower(where) as follower:
        return follower.learner.chains.products.answers[:2].tolist()


def test_a_shop_that_sends_clicks_alone_learns_with_unanswered(tmp_path):
    ahead = {}
    for unanswered in (None, 0.0):
        where = settings(tmp_path, unanswered)
        if unanswered is None:
            clicks_only(where, 60)
        with Recommender(where) as shop:
            shop.learn()
            tea, mud = shop.sample.draws.weight[0, 0]
            ahead[unanswered] = tea - mud
        expected = [60, 0 if unanswered is None else 60]
        assert answers(where) == expected  # of the snapshot
        where.file("learner").unlink()
        assert answers(where) == expected  # of all events
    assert ahead[0.0] > max(0.3, ahead[None] + 0.2)


def test_it_is_applied_to_the_past_and_unknown_during_the_visit(tmp_path):
    before = settings(tmp_path, None)
    clicks_only(before, 4)
    with Follower(before) as follower:
        follower.stop()
    assert answers(before) == [4, 0]
    with Follower(settings(tmp_path, -1.0)) as follower:
        visits = follower.learner.chains.visits.arrays()
        assert visits.reward.tolist() == [-1.0, 1.0, 1.0, -1.0] * 2
        assert visits.x.tolist() == [-1, 1, 1, -1] * 2
        assert (visits.when[visits.x < 0] == NEVER).all()


def test_it_counts_for_visits_that_are_closed_as_idle_and_not_for_open_ones(tmp_path):
    where = settings(tmp_path, 0.0)
    write(where, *(Event("added", product=product) for product in ("tea", "mud")))
    write(where, *(Event("recommended", name, "tea", 0, at=at) for name, at in (("old", 5.0), ("new", 9e9))))
    with Follower(where) as follower:
        follower.close_idle(1e6)
        follower.catch_up()
        assert list(follower.learner.open) == ["new"]
        assert follower.learner.chains.products.answers[:2].tolist() == [1, 0]


def test_exports_hold_what_was_sent_and_teach_the_same(tmp_path):
    where, other = settings(tmp_path, 0.0), settings(tmp_path, 0.0, "other.db")
    clicks_only(where, 6)
    with Events(where.database) as events, Events(other.database) as others:
        export_events(events, tmp_path / "events.csv")
        import_events(others, other, tmp_path / "events.csv")
        assert sum(event.kind == "answered" for event in others.since(0, 1000)) == 6
    assert answers(other) == answers(where) == [6, 6]


def test_judging_reads_it_as_the_learner_does(tmp_path):
    where = settings(tmp_path, -0.5)
    clicks_only(where, 40)
    assert judge(where).logged.value == pytest.approx(0.5)
    assert judge(settings(tmp_path, None)).logged.value == pytest.approx(1.0)
    assert "a product was shown without a propensity" in judge(where).why
