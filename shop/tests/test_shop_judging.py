"""A shop's recommender judged by past events: the steps that they make, what they say, and where they say nothing.

The slow twin goes through visits, samples and slots one at a time.
"""

import json
import math
from collections import Counter

import numpy as np
import pytest
from benchmarks import shop_coverage
from scipy import stats
from stories import visit, write
from typer.testing import CliRunner

from rlsvi.cli.app import app
from rlsvi.mdp.recommendation import draw_taste, like_probability
from rlsvi.offline.value import ROBUST, WEIGHTED
from rlsvi_shop import Event, Events, Recommender, ShopSettings
from rlsvi_shop.judging import EARLIER, UNKNOWN, WITHOUT, LoggedSteps, judge, steps_of, value_of_samples
from rlsvi_shop.model.draws import choose, draw_of
from rlsvi_shop.model.learner import ShopLearner


def numbered(events):
    return [event._replace(id=i) for i, event in enumerate(events, 1)]


def uniform_events(taste, visits, slots, rng, sample=None):
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
            events.append(Event("recommended", name, f"p{a}", slot, propensity=1 / free.size, sample=sample))
            events.append(Event("answered", name, f"p{a}", reward=float(liked)))
    return numbered(events)


def learned(settings, events, visits):
    """The samples that events of some visits teach, and the numbers of products."""
    learner = ShopLearner(settings)
    for event in events:
        if not event.visit or event.visit in visits:
            learner.take(event)
    return learner.refresh(), learner.products


def twin(draws, slots, events, level):
    """Both estimates and their intervals, from events of uniform recommendations that are all answered."""
    S, N = len(draws.weight) - 1, len(draws.offered)
    answers = {(event.visit, event.product): event.reward for event in events if event.kind == "answered"}
    visits = {}
    for event in events:
        if event.kind == "recommended":
            visits.setdefault(event.visit, []).append(event)
    E = len(visits)
    w, reward, robust, first = np.zeros((E, slots)), np.zeros((E, slots)), np.zeros((E, slots)), np.zeros(E)
    for e, shown in enumerate(visits.values()):
        for s in range(1, S + 1):
            weight, known, x, allowed = 1.0, [], [], np.ones(N, bool)

            def value(slot, a, known=known, x=x):
                u = np.zeros(draws.weight.shape[1])
                u[0] = 1.0
                u[1 + np.array(known, int)] = x  # there are no features, and more places than products
                return draws.base[slot] + draws.weight[0][:, a] @ u

            for slot, event in enumerate(shown):
                a, r = int(event.product[1:]), answers[event.visit, event.product]
                best = choose(draws, s, [], known, x, allowed).product
                first[e] += value(slot, best) / S if slot == 0 else 0.0
                weight *= (best == a) / event.propensity
                before = value(slot, a)
                known.append(a)
                x.append(1.0 if r > 0 else -1.0)
                allowed[a] = False
                ahead = 0.0
                if slot + 1 < slots:
                    ahead = value(slot + 1, choose(draws, s, [], known, x, allowed).product)
                w[e, slot] += weight / S
                reward[e, slot] += weight * r / S
                robust[e, slot] += weight * (r + ahead - before) / S
    found = {}
    for name, terms, start in ((WEIGHTED, reward, 0 * first), (ROBUST, robust, first)):
        means = terms.sum(axis=0) / w.sum(axis=0)
        d = (start - start.mean()) / E + ((terms - w * means) / w.sum(axis=0)).sum(axis=1)
        count = (d**2).sum() ** 2 / (d**4).sum()
        half = stats.t.ppf((1 + level) / 2, count - 1) * math.sqrt((d**2).sum() * count / (count - 1))
        value = start.mean() + means.sum()
        found[name] = value, value - half, value + half
    return found


def test_estimates_are_those_of_the_slow_twin():
    settings, rng = ShopSettings(slots=2, learning={"history": 8, "draws": 5, "exploration": 3.0}), 0
    events = uniform_events(draw_taste(5, seed=3), 800, 2, np.random.default_rng(rng))
    draws, products = learned(settings, events, {f"v{v}" for v in range(60)})
    others = [event for event in events if not event.visit or int(event.visit[1:]) >= 60]
    found = value_of_samples(steps_of(settings, products, draws, others), 0.9)
    expected = twin(draws, 2, others, 0.9)
    assert set(found.estimates) == set(expected) == {WEIGHTED, ROBUST}
    for name, interval in found.estimates.items():
        assert interval == pytest.approx(expected[name], rel=1e-9), name
    assert not found.why


def logged(rng, visits=1000, products=5, rate=0.4, propensity=None, support=None):
    """Visits of one slot that were shown random products, for a policy that shows product 0."""
    shown = rng.integers(support or products, size=visits)
    reward = (rng.random(visits) < rate).astype(float)
    chance = (shown == 0)[:, None].astype(float)
    p = np.full(visits, propensity or 1 / (support or products))
    value = np.full(visits, rate + 0.1)
    return LoggedSteps(np.arange(visits + 1), reward, p, chance, value, value[:, None], Counter(), "")


@pytest.mark.slow
def test_intervals_contain_the_truth_as_often_as_they_say():
    """Of 400 logs, 95% have a standard error of 1.1%: 4 of them are allowed."""
    for rate, visits in ((0.4, 500), (0.05, 3000)):
        found = [
            value_of_samples(logged(np.random.default_rng([i, visits]), visits, rate=rate), 0.95)
            for i in range(400)
        ]
        told = [value.estimates for value in found if value.estimates]
        assert len(told) > 350
        for name in (WEIGHTED, ROBUST):
            covered = np.mean([estimates[name].low <= rate <= estimates[name].high for estimates in told])
            assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / len(told))


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ({"visits": 200}, "visits in which it would have shown the same products count as"),
        ({"rate": 0.01}, "its estimate rests on the rewards of"),
        ({"propensity": 0.5}, "the weights of slot 0 have the mean 0"),
        ({"propensity": 0.1}, "the weights of slot 0 have the mean 1.9"),
    ],
)
def test_a_log_that_cannot_tell_is_silent_and_says_why(steps, why):
    found = value_of_samples(logged(np.random.default_rng(0), **steps), 0.95)
    assert not found.estimates
    assert found.why.startswith(why)


def test_products_that_the_log_never_shows_are_noticed():
    """A policy that shows one of two products at random, the second of which no visit was ever shown."""
    steps = logged(np.random.default_rng(0))
    half = steps._replace(chance=0.5 * steps.chance)
    assert value_of_samples(steps, 0.95).estimates
    assert "products that the log could not have shown" in value_of_samples(half, 0.95).why


def unfit(event, n):
    """The event, with what a log may have wrong."""
    if event.visit in {f"v{v}" for v in range(0, n, 3)} and event.kind == "recommended":
        return event._replace(propensity=None)
    if event.visit in {f"v{v}" for v in range(1, n, 3)} and event.kind == "recommended":
        return event._replace(propensity=0.0 if event.slot else 1.5)
    if event.visit in {f"v{v}" for v in range(2, n, 3)}:
        return (
            event._replace(product="wine")
            if event.product == "p0"
            else event._replace(sample=event.propensity and 1)
        )
    return event


def test_a_few_visits_that_cannot_be_judged_by_are_left_out_and_more_of_them_silence_the_log():
    settings = ShopSettings(slots=2, learning={"history": 4, "draws": 5, "exploration": 1.0})
    events = uniform_events(draw_taste(3, seed=3), 1000, 2, np.random.default_rng(0))
    names = {f"v{v}": f"v{name}" for v, name in enumerate(np.random.default_rng(1).permutation(1000))}
    given = [event._replace(visit=names.get(event.visit, "")) for event in events]  # which are unfit is by chance
    given = numbered([*given, *(Event("closed", name) for name in names)])
    few, many = ([unfit(event, n) for event in given] for n in (60, 300))
    assert judge(settings, given).estimates
    found = judge(settings, few)
    assert (found.visits, sum(found.left_out.values()), found.why) == (940, 60, "")
    assert set(found.estimates) == {WEIGHTED, ROBUST}
    assert found.left_out[WITHOUT] == 40
    assert set(found.left_out) == {WITHOUT, EARLIER, UNKNOWN}
    assert "40 visits were left out because a product was shown without a propensity above 0" in str(found)
    draws, products = learned(settings, given, set())
    fit = [event for event in few if not event.visit or int(event.visit[1:]) >= 60]
    both = (steps_of(settings, products, draws, some)[:-2] for some in (few, fit))
    for mine, theirs in zip(*both, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    silent = judge(settings, many)
    assert (silent.visits, silent.left_out, silent.estimates) == (1000, {}, {})
    assert silent.why.count("visits a product was shown without a propensity above 0 and up to 1: show") == 1
    assert "visits an earlier version of this service filled later slots" in silent.why
    assert "This log cannot judge the recommender: in " in str(silent)


def test_visits_of_an_earlier_version_tell_of_their_first_slot_alone():
    settings = ShopSettings(slots=2, learning={"history": 4, "draws": 5})
    for slots, told in ((1, False), (2, True)):
        events = uniform_events(draw_taste(3, seed=3), 40, slots, np.random.default_rng(0), sample=1)
        events += [Event("closed", f"v{v}", id=len(events) + v + 1) for v in range(40)]
        assert (EARLIER in judge(settings, events).why) == told
        new = [event._replace(agreeing=[1.0] * 5) if event.propensity else event for event in events]
        assert EARLIER not in judge(settings, new).why


@pytest.mark.slow
def test_logs_of_a_shop_with_two_slots_are_judged_and_told_right(tmp_path):
    """The mean reward is near what the samples would earn; the first half may be silent."""
    taste, rng = draw_taste(3, seed=3), np.random.default_rng(0)
    settings = ShopSettings(
        slots=2, database=f"sqlite:///{tmp_path}/shop.db", learning={"history": 3, "exploration": 3.0, "draws": 8}
    )
    with Recommender(settings, every=200) as shop:
        shop.add_all({f"p{a}": None for a in range(3)})
        for v in range(1500):
            x = np.zeros(3, np.int8)
            for _ in range(2):
                product = shop.recommend(f"v{v}")
                a = int(product[1:])
                liked = bool(rng.random() < like_probability(taste, x, a))
                x[a] = 1 if liked else -1
                shop.feedback(f"v{v}", product, float(liked))
    found = judge(settings)
    assert not found.left_out
    told = [interval for half in found.halves for interval in half.estimates.values()]
    assert told, found.why
    for interval in told:
        assert interval.low - 0.1 < found.logged.value < interval.high + 0.1


def test_a_slot_without_an_answer_counts_for_the_weights():
    """The visit shows two products, of which the policy would show the first alone: it has no weight."""
    settings = ShopSettings(slots=2, learning={"history": 4, "draws": 1, "exploration": 0.0})
    added = [Event("added", product=name) for name in "abc"]
    past = [
        event
        for v in range(30)
        for name in "abc"
        for event in visit(f"{name}{v}", **{name: float("abc".index(name))})
    ]
    draws, products = learned(settings, numbered([*added, *past]), {event.visit for event in past})
    shown = [Event("recommended", "v", name, slot, propensity=0.5) for slot, name in enumerate("ca")]
    steps = steps_of(settings, products, draws, numbered([*added, *shown, Event("closed", "v")]))
    assert steps.chance.ravel().tolist() == [1.0, 0.0]
    assert steps.reward.tolist() == [0.0, 0.0]


@pytest.mark.slow
def test_estimates_agree_with_what_the_samples_earn():
    taste, rng = draw_taste(4, seed=3), np.random.default_rng(0)
    settings = ShopSettings(slots=2, learning={"history": 4, "draws": 5, "exploration": 1.0})
    events = uniform_events(taste, 2000, 2, rng)
    halves = {f"v{v}" for v in range(1000)}, {f"v{v}" for v in range(1000, 2000)}
    value = judge(settings, events)
    total = sum(event.reward or 0 for event in events) / 2000
    assert value.logged.value == pytest.approx(total)
    assert value.logged.low < total < value.logged.high
    earned = np.mean([played(taste, learned(settings, events, half)[0], 2, 3000, rng) for half in halves])
    for interval in value.estimates.values():
        half = (interval.high - interval.low) / 2
        assert abs(interval.value - earned) < 2 * half + 0.03  # 6000 visits have an error of .01
    assert value.estimates[WEIGHTED].value == pytest.approx(
        np.mean([half.estimates[WEIGHTED].value for half in value.halves])
    )
    assert "2000 visits" in str(value)
    assert "the policy of the log" in str(value)


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


def test_the_benchmark_simulates_what_the_judge_reads():
    it = shop_coverage.Simulation(shop_coverage.Case("customer features", 12, 3, 60, 40, "mixed"), 1)
    early, customers = np.arange(60, 100), np.arange(60)
    draws = it.learned(it.events(early, it.play(early, it.random)), exploration=1.0)
    visits = it.play(customers, it.mixed(draws))
    products = {str(a): a for a in range(12)}
    read = steps_of(it.settings, products, draws, it.events(customers, visits))
    for mine, theirs in zip(it.steps(visits, draws)[:-2], read[:-2], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    found = shop_coverage.judged(shop_coverage.Case("plain", 4, 1, 600, 60, "random"), 1)
    lines = list(shop_coverage.rows_of("small", [found]))
    assert {line.split(" | ")[1] for line in lines} == {"recommender", "greedy", "best mean", "random"}
    assert lines[0].startswith("| small | recommender | weighted importance sampling | 1 | 0 | ")


def test_memory_does_not_grow_with_the_catalogue():
    """Dense observations and masks of these 100 steps would have 120,000 numbers."""
    settings = ShopSettings(slots=10, learning={"history": 4, "draws": 2})
    events = uniform_events(draw_taste(600, seed=3), 10, 10, np.random.default_rng(0))
    draws, products = learned(settings, events, set())
    steps = steps_of(settings, products, draws, events)
    arrays = [np.asarray(part) for part in steps]
    assert (len(steps.start) - 1, len(steps.reward)) == (10, 100)
    assert sum(array.size for array in arrays) < 100 * 20


def test_the_events_of_the_database_are_judged(tmp_path):
    settings = ShopSettings(slots=1, database=f"sqlite:///{tmp_path}/shop.db")
    stored = uniform_events(draw_taste(3, seed=3), 12, 1, np.random.default_rng(1))
    with Events(settings.database) as events:
        write(events, *stored)
    assert str(judge(settings)) == str(judge(settings, stored))


def test_the_command_prints_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.toml").write_text('database = "sqlite:///shop.db"\nslots = 1\n')
    stored = uniform_events(draw_taste(2, seed=3), 400, 1, np.random.default_rng(1))
    with Events(f"sqlite:///{tmp_path}/shop.db") as events:
        write(events, *stored)
    printed = CliRunner().invoke(app, ["judge-shop", "shop.toml", "--json"])
    assert printed.exit_code == 0, printed.stderr
    found, value = json.loads(printed.stdout), judge(ShopSettings.from_toml("shop.toml"))
    assert set(found) == {"logged", "weighted_importance_sampling", "doubly_robust", "left_out", "why"}
    assert found["left_out"] == {}
    assert found["doubly_robust"] == value.estimates[ROBUST]._asdict()
    assert found["why"] == ""


def test_steps_say_what_was_known_and_samples_choose_among_what_was_allowed():
    settings = ShopSettings(
        slots=3, customer={"age": {"low": 0, "high": 100}}, learning={"history": 4, "draws": 3, "exploration": 0.0}
    )
    events = numbered(
        [
            *(Event("added", product=name) for name in "abcd"),
            *(event for v in range(40) for event in visit(f"t{v}", **{"abcd"[v % 4]: float(v % 4 == 3)})),
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
    second = choose(draws, 1, [0.5], [], [], np.isin(list("abcd"), ["b", "c"])).product == products["b"]
    fourth = choose(draws, 1, [0.0], [], [], np.isin(list("abcd"), ["a", "b", "c"])).product == products["a"]
    assert steps.start.tolist() == [0, 3, 4]
    assert steps.reward.tolist() == [2.0, 1.0, 0.0, -3.0]
    assert steps.chance[:, 0].tolist() == [0.0, float(second), 1.0, float(fourth)]
    assert steps.chosen_value[0] == pytest.approx(draws.base[0] + draws.weight[0, :2, products["d"]] @ [1.0, 0.5])
    assert np.isnan(steps.propensity).all()
    assert "in 1 of 2 visits a product was shown without a propensity" in steps.why
    assert "in 1 of 2 visits a product was shown that was never added" in steps.why


def test_too_few_visits_are_refused():
    with pytest.raises(ValueError, match="at least 4 visits"):
        judge(ShopSettings(slots=2), numbered([Event("added", product="a"), Event("recommended", "v", "a", 0)]))
    names = "abcd"
    going_on = [Event("added", product="a"), *(Event("recommended", name, "a", 0) for name in names)]
    with pytest.raises(ValueError, match="no visit of the events has ended"):
        judge(ShopSettings(slots=2), numbered(going_on))
