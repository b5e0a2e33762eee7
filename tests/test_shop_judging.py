"""A shop's recommender judged by past events: the steps that they make, and what they say of its samples.

The slow twin asks `rlsvi.value_of` about one sample at a time, with dense observations: the customer, the answers
by product, the slot.
"""

import json

import numpy as np
import polars as pl
import pytest
from gymnasium.spaces import Box, Discrete
from typer.testing import CliRunner

from rlsvi import value_of
from rlsvi.bases import StateFeatures
from rlsvi.cli import app
from rlsvi.envs.spaces import Spaces
from rlsvi.mdp.recommendation import draw_taste, like_probability
from rlsvi.shop import Event, Events, ShopSettings
from rlsvi.shop.judging import judge, steps_of, value_of_samples
from rlsvi.shop.model.draws import choose, draw_of
from rlsvi.shop.model.learner import ShopLearner
from rlsvi.shop.model.targets import sign_of

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


def learned(settings, events, visits):
    """The samples that events of some visits teach, and the numbers of products."""
    learner = ShopLearner(settings)
    for event in events:
        if not event.visit or event.visit in visits:
            learner.take(event)
    return learner.refresh(), learner.products


class SamplePolicy:
    """A sample as a policy of observations (c, x, slot)."""

    def __init__(self, draws, draw):
        self.draws, self.draw, self.q = draws, draw, int(draws.customer)
        N, m = draws.z.shape
        places = draws.weight.shape[1] - 1 - self.q - m
        self.answers = np.zeros((N, places + m))
        for n in range(N):
            self.answers[n, n % places] = sign_of(n, places)
        self.answers[:, places:] = draws.z

    def predict(self, observation, action_mask):
        x = observation[self.q : -1]
        known = np.flatnonzero(x)
        return choose(self.draws, self.draw, observation[: self.q], known, x[known], action_mask).product

    def features(self, observation):
        q = self.q
        return np.concatenate([[1.0], observation[:q], observation[q:-1] @ self.answers, observation[-1:]])


def dense_log(settings, steps, draws):
    """The steps as a log of episodes with dense observations, of customers without features and uniform masks."""
    rows, N = [], steps.products
    for e, (begin, end) in enumerate(zip(steps.start[:-1], steps.start[1:], strict=True)):
        x, mask, known = np.zeros(N), np.ones(N, bool), []
        for t, row in enumerate(range(begin, end)):
            known.append(([*x, 2 * t / settings.slots - 1], mask.tolist()))
            x[steps.shown[row]] = 1.0 if steps.reward[row] > 0 else -1.0
            mask[steps.shown[row]] = False
        following = [*known[1:], known[-1]]
        for t, row in enumerate(range(begin, end)):
            names = ("observation", "mask"), ("next_observation", "next_mask")
            values = dict(zip(names[0], known[t], strict=True)) | dict(zip(names[1], following[t], strict=True))
            place = {"episode": e, "step": t, "action": int(steps.shown[row]), "reward": float(steps.reward[row])}
            place |= {"terminated": bool(row == end - 1), "truncated": False}
            rows.append({**place, **values, "propensity": float(steps.propensity[row])})
    return pl.DataFrame(rows, infer_schema_length=None)


def by_twin(settings, steps, draws, draw):
    policy, width = SamplePolicy(draws, draw), steps.products + 1
    spaces = Spaces(Box(-np.inf, np.inf, (width,)), Discrete(steps.products))
    basis = StateFeatures(policy.features)
    log = dense_log(settings, steps, draws)
    return value_of(policy, log, spaces, horizon=settings.slots, per_period=False, basis=basis)


def played(taste, draws, slots, visits, rng):
    """Likes per visit when the samples serve the customers, one for each visit."""
    likes = 0
    for v in range(visits):
        x, draw = np.zeros(len(taste.beta), np.int8), draw_of(f"v{v}", draws, 0)
        for _ in range(slots):
            known = np.flatnonzero(x)
            a = choose(draws, draw, [], known, x[known], x == 0).product
            liked = bool(rng.random() < like_probability(taste, x, a))
            likes, x[a] = likes + liked, 1 if liked else -1
    return likes / visits


SMALL = {"slots": 2, "learning": {"history": 4, "draws": 5, "exploration": 1.0}}


def test_one_sample_is_judged_as_by_its_slow_twin():
    """With no exploration all samples are the posterior mean, and all estimates are those of `value_of`."""
    settings = ShopSettings(slots=3, learning={"history": 4, "draws": 2, "exploration": 0.0})
    events = uniform_events(draw_taste(6, seed=3), 200, 3, np.random.default_rng(0))
    draws, products = learned(settings, events, {f"v{v}" for v in range(100)})
    others = [event for event in events if not event.visit or int(event.visit[1:]) >= 100]
    steps = steps_of(settings, products, draws, others)
    found, expected = value_of_samples(steps, 3, 0.95), by_twin(settings, steps, draws, 0)
    assert (
        set(found.estimates)
        == set(expected.estimates)
        == {
            "fitted Q evaluation",
            "weighted importance sampling",
            "doubly robust",
        }
    )
    for name, interval in found.estimates.items():
        assert interval == pytest.approx(expected.estimates[name], rel=1e-6), name
    assert found.effective == pytest.approx(expected.effective)
    assert (found.untried, found.episodes, found.steps) == (expected.untried, 100, 300)


def test_samples_are_judged_together():
    """The value is the mean over samples; the weight of a visit is the mean of its weights under all samples."""
    settings, rng = ShopSettings(**SMALL), np.random.default_rng(0)
    events = uniform_events(draw_taste(5, seed=3), 120, 2, rng)
    draws, products = learned(settings, events, {f"v{v}" for v in range(60)})
    others = [event for event in events if not event.visit or int(event.visit[1:]) >= 60]
    steps = steps_of(settings, products, draws, others)
    assert len({tuple(chosen) for chosen in steps.chosen.T.tolist()}) > 1
    found = value_of_samples(steps, 2, 0.95)
    alone = [by_twin(settings, steps, draws, draw) for draw in range(1, 6)]
    assert found.fitted.value == pytest.approx(np.mean([each.fitted.value for each in alone]))
    shown, reward = steps.shown.reshape(-1, 2), steps.reward.reshape(-1, 2)
    follows = np.cumprod(steps.chosen.reshape(-1, 2, 5) == shown[:, :, None], axis=1).mean(axis=2)
    weight = follows / np.cumprod(steps.propensity.reshape(-1, 2), axis=1)
    expected = (weight * reward).sum(axis=0) / weight.sum(axis=0)
    assert found.weighted.value == pytest.approx(expected.sum())


def test_estimates_agree_with_what_the_samples_earn():
    taste, rng = draw_taste(5, seed=3), np.random.default_rng(0)
    settings, events = ShopSettings(**SMALL), uniform_events(draw_taste(5, seed=3), 400, 2, rng)
    halves = {f"v{v}" for v in range(200)}, {f"v{v}" for v in range(200, 400)}
    value = judge(settings, events)
    total = sum(event.reward or 0 for event in events) / 400
    assert value.logged.value == pytest.approx(total)
    assert value.logged.low < total < value.logged.high
    for found, visits in zip(value.halves, reversed(halves), strict=True):
        earned = played(taste, learned(settings, events, visits)[0], 2, 3000, rng)
        assert found.episodes == 200
        for estimate in found.estimates.values():
            assert estimate.low - 0.05 < earned < estimate.high + 0.05  # 3000 visits have an error of .015
        assert found.fitted.high - found.fitted.low < 1.0
    both = [half.fitted.value for half in value.halves]
    assert value.estimates["fitted Q evaluation"].value == pytest.approx(np.mean(both))
    assert "400 visits" in str(value)
    assert "the policy of the log" in str(value)
    assert "fitted Q evaluation: its interval takes a linear model as true and is not calibrated" in str(value)


def test_memory_does_not_grow_with_the_catalogue():
    """Dense observations and masks of these 100 steps would have 120,000 numbers."""
    settings = ShopSettings(slots=10, learning={"history": 4, "draws": 2})
    events = uniform_events(draw_taste(600, seed=3), 10, 10, np.random.default_rng(0))
    draws, products = learned(settings, events, set())
    steps = steps_of(settings, products, draws, events)
    arrays = steps.features.data, steps.features.indices, steps.shown, steps.reward, steps.chosen
    assert (steps.visits, len(steps.shown), steps.products) == (10, 100, 600)
    assert sum(array.size for array in arrays) < 100 * 20


def test_the_events_of_the_database_are_judged(tmp_path):
    settings = ShopSettings(slots=1, database=f"sqlite:///{tmp_path}/shop.db")
    stored = uniform_events(draw_taste(3, seed=3), 12, 1, np.random.default_rng(1))
    with Events(settings.database) as events, events.writing() as writer:
        writer.append(stored)
    assert str(judge(settings)) == str(judge(settings, stored))


def test_json_has_null_for_an_end_that_is_not_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.toml").write_text('database = "sqlite:///shop.db"\nslots = 1\n')
    stored = uniform_events(draw_taste(4, seed=3), 4, 1, np.random.default_rng(1))
    with Events(f"sqlite:///{tmp_path}/shop.db") as events, events.writing() as writer:
        writer.append(stored)
    printed = CliRunner().invoke(app, ["judge-shop", "shop.toml", "--json"])
    assert printed.exit_code == 0, printed.stderr

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    found = json.loads(printed.stdout, parse_constant=refuse)
    estimates = {
        name.replace(" ", "_"): it for name, it in judge(ShopSettings.from_toml("shop.toml")).estimates.items()
    }
    ends = [
        (found[name][end], getattr(it, end)) for name, it in estimates.items() for end in ("value", "low", "high")
    ]
    assert all(told == (known if np.isfinite(known) else None) for told, known in ends)
    assert None in [told for told, _ in ends]


def test_steps_say_what_was_known_and_samples_choose_among_what_was_allowed():
    settings = ShopSettings(
        slots=3, customer={"age": {"low": 0, "high": 100}}, learning={"history": 4, "draws": 3, "exploration": 0.0}
    )
    events = numbered(
        [
            *(Event("added", product=name) for name in "abcd"),
            *(event for v in range(40) for event in answered(f"t{v}", "abcd"[v % 4], float(v % 4 == 3))),
            Event("recommended", "v", "a", 0, features={"age": 75}),
            Event("recommended", "v", "b", 1, among=["a", "b", "c", "wine"]),
            Event("answered", "v", "a", reward=2.0),
            Event("removed", product="d"),
            Event("recommended", "v", "c", 2),
            Event("answered", "v", "c", reward=0.0),
            Event("answered", "v", "b", reward=1.0),
            Event("recommended", "w", "a", 0),
            Event("recommended", "w", "wine", 1),
            Event("added", product="d"),
            Event("answered", "w", "a", reward=-3.0),
            Event("recommended", "goes on", "a", 0),
            Event("closed", "w"),
            Event("answered", "w", "a", reward=9.0),
        ]
    )
    draws, products = learned(settings, events, {event.visit for event in events if event.visit.startswith("t")})
    steps = steps_of(settings, products, draws, [event for event in events if not event.visit.startswith("t")])
    assert [name for name in "abcd" if draws.value[products[name]] == draws.value.max()] == ["d"]
    assert steps.start.tolist() == [0, 3, 4]
    assert steps.shown.tolist() == [products[name] for name in "abca"]
    assert steps.reward.tolist() == [2.0, 1.0, 0.0, -3.0]
    third = [1, 0.5, 1, 0, 0, 0, 1 / 3]
    assert steps.features.toarray().tolist()[:2] == [[1, 0.5, 0, 0, 0, 0, -1], [1, 0.5, 0, 0, 0, 0, 2 / 3 - 1]]
    assert steps.features.toarray()[2].tolist() == pytest.approx(third)
    chosen = ["abcd"[a] for a in steps.chosen[:, 0]]
    assert chosen[0] == "d"
    assert chosen[1] in "bc"  # d was not in among
    assert chosen[2] == "c"  # d was removed
    assert chosen[3] != "d"
    assert steps.propensity is None


def answered(visit, product, reward):
    return [
        Event("recommended", visit, product, 0),
        Event("answered", visit, product, reward=reward),
        Event("closed", visit),
    ]


def test_too_few_visits_are_refused():
    with pytest.raises(ValueError, match="at least 4 visits"):
        judge(ShopSettings(slots=2), numbered([Event("added", product="a"), Event("recommended", "v", "a", 0)]))
    names = "abcd"
    going_on = [Event("added", product="a"), *(Event("recommended", name, "a", 0) for name in names)]
    with pytest.raises(ValueError, match="no visit of the events has ended"):
        judge(ShopSettings(slots=2), numbered(going_on))
