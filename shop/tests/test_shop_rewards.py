"""Rewards that are wrong: limits in the settings, wild values, and feedback that is corrected or withdrawn."""

import shutil

import numpy as np
import polars as pl
import pytest
from stories import tell, visit
from test_shop_day import FILES

from rlsvi_shop import Event, Events, Recommender, ShopSettings, import_events, judge
from rlsvi_shop.follower import Follower
from rlsvi_shop.model.draws import choose, draw_of
from rlsvi_shop.model.learner import ENOUGH, FIRST_RIDGES, ShopLearner, limits_of
from rlsvi_shop.model.snapshots import load_learner, save_learner
from rlsvi_shop.requests import Conflict, NotFound

LEARNING = {"draws": 4, "history": 8}


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path, monkeypatch):
    """Where the files of a shop with a PostgreSQL database are written."""
    monkeypatch.chdir(tmp_path)


def shop_of(url, **options):
    shop = Recommender(database=url, slots=2, learning=LEARNING, **options)
    shop.add_all(dict.fromkeys("abcd"))
    return shop


# ---- limits ---------------------------------------------------------------------------------------------------


def test_a_reward_outside_of_the_limits_is_refused_and_nothing_is_stored(url):
    with shop_of(url, reward={"low": -1, "high": 5}) as shop:
        product = shop.recommend("ann")
        for reward in (-1.5, 5.1, 1e6):
            with pytest.raises(ValueError, match="reward must be between -1 and 5"):
                shop.feedback("ann", product, reward)
        shop.feedback("ann", product, 5.0)
        with pytest.raises(ValueError, match="reward must be between -1 and 5"):
            shop.feedback("ann", product, 6.0, correct=True)
        clicks = pl.DataFrame({"visit": ["x", "y"], "product": ["a", "a"], "reward": [1.0, 9.0]})
        with pytest.raises(ValueError, match=r"row 2.*between -1 and 5"):
            import_events(shop.events, shop.settings, clicks)
        assert [event.reward for event in shop.events.since(0, 99) if event.kind == "answered"] == [5.0]


@pytest.mark.parametrize("wrong", [{"low": 2, "high": 1}, {"low": 1, "high": 1}, {"low": 0, "unanswered": -1}])
def test_limits_that_contradict_each_other_are_refused(wrong):
    with pytest.raises(ValueError, match="reward"):
        ShopSettings(reward=wrong)


def test_rewards_that_were_stored_before_count_as_the_nearer_limit():
    learner = ShopLearner(ShopSettings(slots=1, reward={"low": 0, "high": 2}, learning=LEARNING))
    for name, reward in {"x": 9.0, "y": -9.0, "z": 1.5}.items():
        tell(learner, Event("added", product="a"), *visit(name, a=reward))
    assert learner.chains.visits.arrays().reward.tolist() == [2.0, 0.0, 1.5]


def test_a_judge_takes_rewards_that_were_stored_before_as_the_nearer_limit():
    events = [Event("added", product="a", id=1)]
    for v in range(4):
        events.append(Event("recommended", f"v{v}", "a", 0, propensity=1.0))
        events.append(Event("answered", f"v{v}", "a", reward=9.0 if v == 1 else 0.0))
    events.append(Event("answered", "v2", "a", reward=-9.0, correction=1))
    numbered = [event._replace(id=i + 1) for i, event in enumerate(events)]
    settings = ShopSettings(slots=1, reward={"low": -1, "high": 3}, learning=LEARNING)
    assert judge(settings, numbered).logged.value == 0.5


# ---- wild values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wild", [100.0, 1e6, -1000.0])
def test_one_wild_reward_does_not_ruin_a_shop(wild):
    rng, shown = np.random.default_rng(0), []
    learner = ShopLearner(ShopSettings(slots=1, learning={**LEARNING, "draws": 16}))
    tell(learner, *(Event("added", product=str(a)) for a in range(6)))
    draws = learner.refresh()
    for v in range(400):
        a = choose(draws, draw_of(f"v{v}", draws, 0), [], [], [], order=v).product
        reward = float(rng.random() < (0.7 if a == 3 else 0.2))
        tell(learner, *visit(f"v{v}", False, **{str(a): wild if v == 200 else reward}))
        if learner.due:
            draws = learner.refresh()
        shown.append(a == 3)
    assert np.mean(shown[250:]) > 0.85


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_likes_all_count_and_few_rewards_too(p):
    rewards = (np.random.default_rng(0).random(500) < p).astype(float)
    low, high = limits_of(rewards)
    assert low <= 0 < 1 <= high
    assert limits_of(np.arange(ENOUGH - 1.0)) == limits_of(np.zeros(500)) == (-np.inf, np.inf)


def test_limits_move_with_the_rewards_and_believe_what_happens_three_times():
    rewards = np.random.default_rng(0).normal(size=300)
    low, high = limits_of(rewards)
    assert low < rewards.min() < rewards.max() < high
    assert limits_of(5 * np.append(rewards, [1e6, -1e6]) + 100) == pytest.approx(
        (5 * low + 100, 5 * high + 100), rel=0.2
    )
    assert limits_of(np.append(rewards, [50.0] * 3))[1] > 50


# ---- corrections ----------------------------------------------------------------------------------------------


def test_feedback_is_corrected_and_withdrawn_and_all_of_it_is_stored(url):
    with shop_of(url) as shop:
        product = shop.recommend("ann")
        with pytest.raises(NotFound, match="no reward to correct"):
            shop.feedback("ann", product, 1.0, correct=True)
        with pytest.raises(ValueError, match="to withdraw"):
            shop.feedback("ann", product, None)
        shop.feedback("ann", product, 1e6)
        with pytest.raises(Conflict, match="correct"):
            shop.feedback("ann", product, 1.0)
        shop.close("ann")
        for reward in (1.0, 1.0, None, None, 2.0):  # retries count once
            shop.feedback("ann", product, reward, correct=True)
            shop.feedback("ann", product, 1e6)  # a late retry of the first one changes nothing
        found = [event for event in shop.events.since(0, 99) if event.kind == "answered"]
    assert [event.reward for event in found] == [1e6, 1.0, None, 2.0]
    assert [event.correction for event in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("when", ["open", "ended", "refreshed", "snapshot"])
@pytest.mark.parametrize(
    ("corrections", "unanswered"),
    [([0.0], None), ([0.0], 0.5), ([None], None), ([None], 0.5), ([None, 0.0], None)],
)
def test_the_learner_follows_a_correction(tmp_path, when, corrections, unanswered):
    """It ends where one that was told the right reward at once does, but for rounding."""
    settings = ShopSettings(
        slots=3,
        product={"price": {"low": 0, "high": 3}},
        reward={"unanswered": unanswered},
        learning={**LEARNING, "exploration": 0.0},
    )
    found = []
    for told in (1e6, corrections[-1]):
        rng, learner = np.random.default_rng(1), ShopLearner(settings)
        later = [Event("answered", "v7", "0", reward=it, correction=i + 1) for i, it in enumerate(corrections)]
        tell(learner, *(Event("added", product=str(a), features={"price": a % 3}) for a in range(5)))
        for v in range(40):
            for slot, a in enumerate((v + np.array([0, 3, 4])) % 5):
                tell(learner, Event("recommended", f"v{v}", str(a), slot, features={} if slot == 0 else None))
                reward = told if (v, slot) == (7, 1) else float(rng.random() < 0.2 * a)
                if reward is not None:
                    tell(learner, Event("answered", f"v{v}", str(a), reward=reward))
                if when == "open" and told == 1e6 and (v, slot) == (7, 1):
                    tell(learner, *later)
            tell(learner, Event("closed", f"v{v}"))
        if when in ("refreshed", "snapshot"):
            learner.refresh()
        if when == "snapshot":
            save_learner(tmp_path / "learner.rlsvi", learner)
            learner = load_learner(tmp_path / "learner.rlsvi", settings)
        if when != "open" and told == 1e6:
            fresh = learner.fresh
            tell(learner, *later)
            assert learner.fresh == fresh + len(corrections) * (when in ("refreshed", "snapshot"))
        chains = learner.chains
        for _ in range(3):
            chains.ridges, chains.sigma, chains.tuned_at = FIRST_RIDGES, 0.0, 0  # as after a correction
            draws = learner.refresh()
        found.append((learner, draws))
    (corrected, draws), (once, expected) = found
    assert corrected.ignored == once.ignored
    log, told = corrected.chains.visits.arrays(), once.chains.visits.arrays()
    assert (log.when == told.when)[log.x != 0].all()
    assert all((one == other).all() for one, other in zip(log[:-1], told[:-1], strict=True))
    one, other = corrected.chains.products, once.chains.products
    assert one.gram == pytest.approx(other.gram, abs=1e-9)
    assert (one.answers == other.answers).all()
    assert corrected.chains.statistics.sums == pytest.approx(once.chains.statistics.sums)
    assert np.array_equal(corrected.chains.statistics.recent, once.chains.statistics.recent, equal_nan=True)
    assert draws.value == pytest.approx(expected.value, abs=0.02 * once.chains.sigma)


def test_a_correction_makes_new_samples_due_and_reaches_a_learner_of_another_process(tmp_path):
    settings = ShopSettings(database=f"sqlite:///{tmp_path}/shop.db", slots=1, learning=LEARNING)
    with Follower(settings) as follower, Recommender(settings, learning=False) as shop:
        shop.add("a")
        follower.step()
        shop.renew()
        shop.recommend("ann")
        shop.feedback("ann", "a", 100.0)
        follower.step()
        assert not follower.due
        shop.feedback("ann", "a", 1.0, correct=True)
        follower.catch_up()
        assert follower.due
        assert follower.learner.chains.visits.arrays().reward.tolist() == [1.0]


def test_a_database_of_an_earlier_version_takes_corrections(tmp_path):
    for path in FILES.glob("shop.db*"):
        shutil.copy(path, tmp_path / path.name)
    settings = ShopSettings(
        database=f"sqlite:///{tmp_path}/shop.db",
        slots=3,
        product={"price": {"low": 0, "high": 10}},
        learning={"draws": 2, "history": 4},
    )
    with Events(settings.database) as events:
        first = next(event for event in events.since(0, 999) if event.kind == "answered")
        assert first.correction == 0
    for reward in (7.0, None, 8.0):
        with Recommender(settings) as shop:
            shop.feedback(first.visit, first.product, reward, correct=True)
            found = shop.events.since(0, 9999)[-1]
            assert (found.visit, found.product, found.reward) == (first.visit, first.product, reward)
            shop.learn()
            learner = shop._follower.learner
            visit = learner.open.get(first.visit) or learner.chains.visits.visit(
                learner.chains.visits.find(first.visit)
            )
            row = visit.product.index(learner.products[first.product])
            assert (visit.x[row] != 0, visit.reward[row]) == (reward is not None, reward or 0.0)
    with Events(settings.database) as events, events.reading() as reading:
        names = {row[0] for row in reading.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert "events_once_each" in names
    assert "events_once" not in names
