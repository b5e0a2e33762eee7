"""A shop's recommender judged by past events: the log that they make, and what it says of the posterior mean."""

import numpy as np
import pytest

from rlsvi.mdp.recommendation import draw_taste, like_probability
from rlsvi.shop import Event, Events, ShopSettings
from rlsvi.shop.judging import MeanPolicy, judge, log_of
from rlsvi.shop.model.learner import ShopLearner

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # few effective episodes


def numbered(events):
    return [event._replace(id=i) for i, event in enumerate(events, 1)]


def uniform_events(taste, visits, slots, rng):
    """Events of the paper's customers, who are shown products uniformly at random."""
    N = len(taste.beta)
    events = [Event("added", product=f"p{a}") for a in range(N)]
    for v in range(visits):
        x = np.zeros(N, np.int8)
        for slot in range(slots):
            free = np.flatnonzero(x == 0)
            a = int(rng.choice(free))
            liked = bool(rng.random() < like_probability(taste, x, a))
            name, x[a] = f"v{v}", 1 if liked else -1
            events.append(Event("recommended", name, f"p{a}", slot, propensity=1 / free.size))
            events.append(Event("answered", name, f"p{a}", reward=float(liked)))
    return numbered(events)


def played(taste, policy, slots, visits, rng):
    """Likes per visit when the policy serves the customers."""
    likes = 0
    for _ in range(visits):
        x = np.zeros(len(taste.beta), np.int8)
        for slot in range(slots):
            a = policy.predict(np.array([*x, 2 * slot / slots - 1], float), x == 0)
            liked = bool(rng.random() < like_probability(taste, x, a))
            likes, x[a] = likes + liked, 1 if liked else -1
    return likes / visits


def test_estimates_agree_with_what_the_policies_earn():
    taste, rng = draw_taste(5, seed=3), np.random.default_rng(0)
    settings, events = ShopSettings(slots=2), uniform_events(draw_taste(5, seed=3), 400, 2, rng)
    halves = {f"v{v}" for v in range(200)}, {f"v{v}" for v in range(200, 400)}
    value = judge(settings, events)
    total = sum(event.reward or 0 for event in events) / 400
    assert value.logged.value == pytest.approx(total)
    assert value.logged.low < total < value.logged.high
    for found, learned in zip(value.halves, reversed(halves), strict=True):
        learner = ShopLearner(settings)
        for event in events:
            if not event.visit or event.visit in learned:
                learner.take(event)
        earned = played(taste, MeanPolicy(learner.refresh()), 2, 3000, rng)
        assert found.episodes == 200
        for estimate in found.estimates.values():
            assert estimate.low - 0.05 < earned < estimate.high + 0.05  # 3000 visits have an error of .015
        assert found.fitted.high - found.fitted.low < 1.0
    both = [half.fitted.value for half in value.halves]
    assert value.estimates["fitted Q evaluation"].value == pytest.approx(np.mean(both))
    assert "400 visits" in str(value)


def test_the_events_of_the_database_are_judged(tmp_path):
    settings = ShopSettings(slots=1, database=f"sqlite:///{tmp_path}/shop.db")
    stored = uniform_events(draw_taste(3, seed=3), 12, 1, np.random.default_rng(1))
    with Events(settings.database) as events, events.writing() as writer:
        writer.append(stored)
    assert str(judge(settings)) == str(judge(settings, stored))


def test_the_log_says_what_was_known_and_allowed_at_every_step():
    settings = ShopSettings(slots=3, customer={"age": {"low": 0, "high": 100}})
    events = numbered(
        [
            *(Event("added", product=name) for name in "abcd"),
            Event("recommended", "v", "a", 0, features={"age": 75}),
            Event("recommended", "v", "b", 1),
            Event("answered", "v", "a", reward=2.0),
            Event("removed", product="d"),
            Event("recommended", "v", "c", 2),
            Event("answered", "v", "c", reward=0.0),
            Event("recommended", "goes on", "a", 0),
            Event("closed", "v"),
        ]
    )
    log = log_of(settings, {name: n for n, name in enumerate("abcd")}, events)
    assert log["action"].to_list() == [0, 2]  # b was never answered
    assert log["observation"].to_list() == [[0.5, 0, 0, 0, 0, -1.0], [0.5, 1, 0, 0, 0, pytest.approx(1 / 3)]]
    assert log["mask"].to_list() == [[True] * 4, [False, False, True, False]]
    assert log["reward"].to_list() == [2.0, 0.0]
    assert log["terminated"].to_list() == [False, True]
    assert "propensity" not in log.columns


def test_too_few_visits_are_refused():
    with pytest.raises(ValueError, match="at least 4 visits"):
        judge(ShopSettings(slots=2), numbered([Event("added", product="a"), Event("recommended", "v", "a", 0)]))
    names = "abcd"
    going_on = [Event("added", product="a"), *(Event("recommended", name, "a", 0) for name in names)]
    with pytest.raises(ValueError, match="no visit of the events has ended"):
        judge(ShopSettings(slots=2), numbered(going_on))
