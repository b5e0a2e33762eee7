"""The numbers of a shop's page, from a real table of events, against a slow twin that looks at all events."""

import math
import random
import re
import time
from collections import defaultdict, namedtuple

import numpy as np
import pytest
import sqlalchemy as sa
from scipy import stats
from stories import write

from rlsvi_shop.events import Event
from rlsvi_shop.samples import sample_of
from rlsvi_shop.service import statistics as page_statistics
from rlsvi_shop.service.statistics import COLUMNS, STEPS, ShopStatistics
from rlsvi_shop.settings import ShopSettings

SLOTS = 4
PRODUCTS = ["tea", "<script>alert(1)</script>", "a & b", *(f"jazz-{i}" for i in range(9))]


def statistics(events, newest=None, **settings):
    return ShopStatistics(ShopSettings(slots=SLOTS, **settings), events, lambda: newest)


def counted(page):
    """What the page is told once all events are counted."""
    while (found := page.current(count=100))["read"] < found["events"]:
        pass
    return found


def told_lately(events, **settings):
    """The numbers of the latest events, which all of them are."""
    page = statistics(events, **settings)
    page._counts.width = 2**13
    return counted(page)["lately"]


def newest(event, products=PRODUCTS, at=0.0):
    value, spread = np.arange(len(products), dtype=float), np.full(len(products), 0.5)
    draws = namedtuple("Known", "value spread offered")(value, spread, np.ones(len(products), dtype=bool))
    return sample_of(draws, {"event": event, "products": list(products), "at": at}, {})


def day(seed, visits, start=0):
    """Events of interleaved visits: some are closed, some complete, some neither; some answers come too late."""
    chance, rows, going = random.Random(seed), [], []
    for i in range(visits):
        name, shown = f"visit-{seed}-{i}", chance.sample(PRODUCTS, SLOTS)
        story = []
        for slot, product in enumerate(shown[: chance.choice([1, 2, SLOTS, SLOTS, SLOTS])]):
            context = {"age": 30 + i % 50} if slot == 0 else None
            explored = chance.random() < 0.3
            story.append(Event("recommended", name, product, slot, explored=explored, sample=0, features=context))
            if chance.random() < 0.9:
                story.append(Event("answered", name, product, reward=1e6 + chance.gauss(0, 2)))
        end = chance.random()
        if end < 0.6:
            story.append(Event("closed", name))
        if end < 0.2 and len(story) > 3:
            story[-1], story[-2] = story[-2], story[-1]  # something comes after the end
        going.append(story)
    at = 1e9 + start
    while going:
        story = chance.choice(going[:20])
        rows.append(story.pop(0)._replace(at=at))
        at += chance.random()
        going = [story for story in going if story]
    return rows


def twin(rows, slots):
    """Look at every event: what ended when with which reward, and the sums of buckets and products."""
    ended, answers = {}, defaultdict(list)
    products = defaultdict(lambda: {"shown": 0, "rewards": [], "offered": True})
    for it in rows:
        if it.kind in ("added", "removed"):
            products[it.product]["offered"] = it.kind == "added"
        elif it.kind == "recommended":
            products[it.product]["shown"] += 1
        elif it.kind == "answered":
            products[it.product]["rewards"].append(it.reward)
            answers[it.visit].append(it.reward)
        if it.visit and it.visit not in ended and it.kind in ("answered", "closed"):
            complete = len(answers[it.visit]) >= min(slots, len(products))
            if complete or it.kind == "closed":
                ended[it.visit] = it.id, math.fsum(answers[it.visit])
    width = 64
    while rows and rows[-1].id // width >= 32:
        width *= 2
    buckets = defaultdict(lambda: {"rewards": [], "explored": [], "at": []})
    for it in rows:
        if it.visit:
            buckets[it.id // width]["at"].append(it.at)
        if it.kind == "recommended" and it.explored is not None:
            buckets[it.id // width]["explored"].append(it.explored)
    for number, reward in ended.values():
        buckets[number // width]["rewards"].append(reward)
    return ended, products, [buckets[i] for i in sorted(buckets)]


def joined(buckets):
    return {name: [it for bucket in buckets for it in bucket[name]] for name in ("rewards", "explored", "at")}


def expected(bucket):
    rewards = bucket["rewards"]
    low, high = stats.t.interval(0.95, len(rewards) - 1, np.mean(rewards), stats.sem(rewards))
    return {
        "number": len(rewards),
        "mean": pytest.approx(np.mean(rewards), rel=1e-12),
        "low": pytest.approx(low, rel=1e-10),
        "high": pytest.approx(high, rel=1e-10),
        "explored": pytest.approx(np.mean(bucket["explored"])),
    }


def lately(buckets):
    found = joined(buckets[-4:])
    begin = {"from": min(found["at"]), "gain": None, "cost": None, "missing": None}
    return {**expected(found), **begin, **dict.fromkeys(("chosen", "served"), len(found["explored"]))}


def check(found, rows, slots=SLOTS):
    ended, products, buckets = twin(rows, slots)
    assert found["events"] == found["read"] == rows[-1].id
    assert found["visits"] == len(ended) > 50
    assert found["recommended"] == sum(it.kind == "recommended" for it in rows)
    assert found["lately"] == lately(buckets)
    with_visits = [bucket for bucket in buckets if bucket["rewards"]]
    if 2 * len(with_visits[-1]["rewards"]) < len(with_visits[-2]["rewards"]):
        with_visits[-2:] = [joined(with_visits[-2:])]
    assert len(found["points"]) == len(with_visits)
    visits = 0
    for point, bucket in zip(found["points"], with_visits, strict=True):
        visits += len(bucket["rewards"])
        times = {"from": min(bucket["at"]), "to": max(bucket["at"])}
        assert point == {"visits": visits, **expected(bucket), **times}
    shown = {row["product"]: row for row in found["products"]["rows"]}
    assert set(shown) == set(products)
    for product, count in products.items():
        assert shown[product]["shown"] == count["shown"]
        assert shown[product]["answers"] == len(count["rewards"])
        assert shown[product]["offered"] == count["offered"]
        assert shown[product]["mean"] == pytest.approx(np.mean(count["rewards"]), rel=1e-12)


@pytest.mark.parametrize("step", [20_000, 499], ids=["in one step", "in many"])
def test_numbers_are_those_of_all_events(events, monkeypatch, step):
    monkeypatch.setattr(page_statistics, "STEP", step)
    page = statistics(events)
    write(events, *[Event("added", "", product) for product in PRODUCTS])
    for part in range(3):  # the page is asked while events come
        write(events, *day(part, 300, start=10_000 * part))
        if part == 1:
            write(events, Event("removed", "", "tea"), Event("removed", "", "a & b"), Event("added", "", "tea"))
        found = page.current()
    while found["read"] < found["events"]:
        before = found["read"]
        found = page.current()
        assert before < found["read"] <= before + STEPS * step
    check(found, events.since(0, 10**6))
    assert page.current()["points"] == found["points"]  # nothing is counted twice
    check(counted(statistics(events)), events.since(0, 10**6))


def test_an_empty_shop(events):
    found = statistics(events).current()
    nothing = {"number": 0, "mean": None, "low": None, "high": None, "from": None, "gain": None}
    nothing |= {"served": 0, "chosen": 0, "explored": None, "cost": None, "missing": None}
    trend = {"count": 0, "rows": []}
    unknown = dict.fromkeys(("worked", "failure", "included", "behind", "age"))
    assert found.pop("now") > 1e9
    assert found == {
        "events": 0,
        "read": 0,
        "visits": 0,
        "recommended": 0,
        "before": None,
        "lately": nothing,
        "trends": {"compared": 0, "rising": trend, "falling": trend},
        "points": [],
        "references": [],
        "liked_above": 0.0,
        "unanswered": None,
        "products": {"count": 0, "offered": 0, "rows": [], "low": None, "high": None},
        "latest": [],
        "learner": {"state": "late", **unknown},
    }


def test_one_visit(events):
    settings = {"reference": {"uniform": 2.5}, "reward": {"liked_above": 0.5}}
    added = [Event("added", "", product) for product in ("tea", "mate")]
    write(
        events, *added, Event("recommended", "ann", "tea", 0, explored=True, sample=0, features={"age": 3}, at=5.0)
    )
    page = statistics(events, newest(2, ["tea", "mate"]), **settings)
    found = page.current()
    assert found["points"] == []  # it goes on
    one = {"number": 0, "mean": None, "low": None, "high": None, "served": 1, "chosen": 1, "explored": 1.0}
    one |= {"from": None, "gain": None, "cost": None, "missing": None}
    assert found["lately"] == one
    shown = [{"product": "tea", "reward": None, "explored": True}]
    ann = {"visit": "ann", "at": 5.0, "context": {"age": "3"}, "ended": False, "reward": 0.0, "shown": shown}
    assert found["latest"] == [ann]
    assert found["learner"]["included"] == 2
    assert found["learner"]["behind"] == 1
    assert found["learner"]["age"] > 1e9
    write(events, Event("answered", "ann", "tea", reward=0.75, at=6.0), Event("closed", "ann", at=7.0))
    found = page.current()
    assert found["lately"] == one | {"number": 1, "mean": 0.75, "from": 5.0}
    assert found["points"][0]["visits"] == 1
    assert found["latest"] == [
        ann | {"at": 7.0, "ended": True, "reward": 0.75, "shown": [shown[0] | {"reward": 0.75}]}
    ]
    assert found["references"] == [{"name": "uniform", "value": 2.5}]
    assert found["liked_above"] == 0.5


@pytest.mark.parametrize("step", [20_000, 1], ids=["in one step", "in many"])
def test_no_visit_ends_twice_when_products_are_added(events, monkeypatch, step):
    """Ann has seen all products there were; that there are more of them later does not open her visit again."""
    monkeypatch.setattr(page_statistics, "STEP", step)
    monkeypatch.setattr("rlsvi_shop.service.statistics.STEPS", 100)
    write(events, *[Event("added", product=product) for product in ("tea", "mate")])
    for slot, product in enumerate(("tea", "mate")):
        answer = Event("answered", "ann", product, reward=2.0)
        write(events, Event("recommended", "ann", product, slot, sample=0), answer)
    page = statistics(events)
    assert page.current()["visits"] == 1
    write(
        events,
        Event("added", product="rum"),
        Event("recommended", "ann", "rum", 2, explored=True),
        Event("answered", "ann", "rum", reward=50.0),
        Event("closed", "ann"),
        Event("recommended", "bob", "tea", 0),
        Event("answered", "bob", "tea", reward=1.0),
    )
    for found in (page.current(), statistics(events).current()):
        assert (found["visits"], found["lately"]["mean"]) == (1, 4.0)
        assert (found["recommended"], found["lately"]["chosen"], found["lately"]["explored"]) == (4, 1, 1.0)
        bob, ann = found["latest"]
        assert (ann["ended"], ann["reward"], bob["ended"], bob["reward"]) == (True, 4.0, False, 1.0)


def test_products_can_be_sorted_and_their_intervals_are_those_of_the_draws(events):
    write(
        events,
        *[Event("added", "", product) for product in PRODUCTS],
        Event("added", "", "new"),
        Event("removed", "", "jazz-0"),
        *day(0, 40),
    )
    page = statistics(events, newest(3))
    for by in COLUMNS:
        for descending in (False, True):
            rows = page.current(by=by, descending=descending, count=100)["products"]["rows"]
            assert len(rows) == 13
            known = [row[by] for row in rows if row[by] is not None]
            assert known == sorted(known, reverse=descending)
            assert [row["product"] for row in rows[len(known) :]] == (["new"] if by in ("mean", "value") else [])
    top = page.current(by="value", count=2)["products"]
    assert (top["count"], top["offered"]) == (13, 12)
    assert [row["product"] for row in top["rows"]] == PRODUCTS[:-3:-1]
    assert top["rows"][0]["value"] == 11.0
    assert top["rows"][0]["high"] == top["high"] == pytest.approx(11 + 2 * 0.5)
    assert top["rows"][1]["low"] == top["low"] == pytest.approx(10 - 2 * 0.5)


def test_integers_are_sorted_as_such(events):
    write(events, *[Event("added", "", str(product)) for product in (10, 9, -3, 2**60)])
    rows = statistics(events, ids="integer").current(by="product", descending=False)["products"]["rows"]
    assert [row["product"] for row in rows] == ["-3", "9", "10", str(2**60)]


def test_the_reward_of_a_latest_visit_follows_corrections_after_its_end(events):
    shown = [Event("recommended", "ann", product, slot, sample=0) for slot, product in enumerate(("tea", "mate"))]
    added = [Event("added", "", product) for product in PRODUCTS]
    answers = [Event("answered", "ann", "tea", reward=1e6), Event("closed", "ann")]
    write(events, *added, *shown, *answers, Event("answered", "ann", "mate", reward=7.0))  # the last is late
    page = statistics(events, reward={"unanswered": 0.5})
    assert page.current()["latest"][0]["reward"] == 1e6 + 0.5
    for correction, (reward, total) in enumerate([(2.0, 2.5), (None, 1.0), (3.0, 3.5)]):
        write(events, Event("answered", "ann", "tea", reward=reward, correction=correction + 1))
        ann = page.current()["latest"][0]
        assert (ann["ended"], ann["reward"], ann["shown"][0]["reward"]) == (True, total, reward)


def test_the_latest_visits_come_first_and_their_texts_are_short(events):
    write(events, *[Event("added", "", product) for product in PRODUCTS], *day(0, 100))
    context = {"<b>": "x" * 1000, "n": None}
    write(events, Event("recommended", "last", "tea", 0, explored=False, features=context))
    found = statistics(events).current()["latest"]
    assert len(found) == 10
    assert found[0]["visit"] == "last"
    assert found[0]["context"] == {"<b>": "x" * 80, "n": "None"}
    rows = [it.visit for it in events.since(0, 10**6) if it.visit]
    assert [it["visit"] for it in found] == list(dict.fromkeys(reversed(rows)))[:10]


UNANSWERED = """
SELECT r.product, COUNT(*), SUM(CASE WHEN a.id IS NULL THEN :unanswered ELSE a.reward END)
FROM events r
LEFT JOIN events a ON a.visit = r.visit AND a.product = r.product AND a.kind = 'answered'
WHERE r.kind = 'recommended'
AND (a.id IS NOT NULL OR EXISTS (SELECT 1 FROM events c WHERE c.visit = r.visit AND c.kind = 'closed'))
GROUP BY r.product
"""
OF_CLOSED = """
SELECT c.visit, SUM(CASE WHEN a.id IS NULL THEN :unanswered ELSE a.reward END)
FROM events c JOIN events r ON r.visit = c.visit AND r.kind = 'recommended'
LEFT JOIN events a ON a.visit = r.visit AND a.product = r.product AND a.kind = 'answered'
WHERE c.kind = 'closed' GROUP BY c.visit
"""


@pytest.mark.parametrize("step", [20_000, 97], ids=["in one step", "in many"])
def test_recommendations_without_an_answer_count_when_their_visit_is_closed(events, monkeypatch, step):
    monkeypatch.setattr(page_statistics, "STEP", step)
    chance, rows = random.Random(5), [Event("added", "", product) for product in PRODUCTS]
    for i in range(60):  # clicks alone; a third of the visits go on
        shown = chance.sample(PRODUCTS, chance.randint(1, SLOTS))
        rows += [Event("recommended", f"v{i}", product, slot) for slot, product in enumerate(shown)]
        clicked = [product for product in shown[: SLOTS - 1] if chance.random() < 0.4]
        rows += [Event("answered", f"v{i}", product, reward=1.0 + i) for product in clicked]
        rows += [Event("closed", f"v{i}")] * (i % 3 > 0)
    write(events, *rows)
    found = counted(statistics(events, reward={"unanswered": -0.25}))
    with events.reading() as reading:
        products, closed = (
            reading.execute(sa.text(text), {"unanswered": -0.25}).all() for text in (UNANSWERED, OF_CLOSED)
        )
    shown = {row["product"]: row["mean"] for row in found["products"]["rows"]}
    assert shown == {product: pytest.approx(total / number) for product, number, total in products}
    assert len(shown) == len(PRODUCTS)
    assert found["visits"] == len(closed) == 40
    points = [(point["number"], point["mean"]) for point in found["points"]]
    assert sum(number * mean for number, mean in points) == pytest.approx(sum(total for _, total in closed))
    latest = {it["visit"]: it["reward"] for it in found["latest"] if it["ended"]}
    assert latest == {visit: pytest.approx(total) for visit, total in closed if visit in latest}
    assert len(latest) > 3
    assert found["unanswered"] == -0.25


def test_what_is_shown_after_a_visit_has_ended_by_its_answers_is_not_settled(events):
    """There was one product, and it was answered. The second one came later."""
    write(
        events,
        Event("added", "", "tea"),
        Event("recommended", "ann", "tea", 0, sample=0),
        Event("answered", "ann", "tea", reward=3.0),
        Event("added", "", "mud"),
        Event("recommended", "ann", "mud", 1),
        Event("closed", "ann"),
    )
    found = statistics(events, reward={"unanswered": -1.0}).current()
    assert (found["visits"], found["lately"]["mean"], found["latest"][0]["reward"]) == (1, 3.0, 3.0)
    assert {row["product"]: row["mean"] for row in found["products"]["rows"]} == {"tea": 3.0, "mud": None}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("reward", [{}, {"unanswered": 0.0}], ids=["answers", "unanswered"])
def test_no_request_looks_at_all_events(events, reward):
    """SQLite says how it will find rows: by a range of numbers, an index, or from the end up to a limit."""
    write(events, *[Event("added", "", product) for product in PRODUCTS], *day(0, 20))
    statements = []
    sa.event.listen(events._database.engine, "before_execute", lambda *args: statements.append(args[1]))
    statistics(events, reward=reward).current()
    assert len(statements) == (11 if reward else 9)
    with events._database.engine.connect() as connection:
        for statement in statements:
            text = str(statement.compile(connection, compile_kwargs={"literal_binds": True}))
            plan = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
            whole = [line for line in plan if re.match("SCAN (events|seen|answer)", line)]
            assert whole == (["SCAN events"] if "LIMIT" in text else []), (text, plan)
            if "LIMIT" in text:
                assert len(plan) == 1  # without sorting


def test_a_visit_that_was_shown_nothing_may_end(events):
    write(events, Event("closed", "ann"))
    found = statistics(events).current()
    assert found["before"] == {"number": 1, "mean": 0.0, "low": None, "high": None}
    assert found["latest"][0]["shown"] == []


@pytest.mark.parametrize("step", [20_000, 97], ids=["in one step", "in many"])
def test_imported_visits_are_told_apart_from_those_that_were_served(events, monkeypatch, step):
    """They have a mean of their own, and neither what is lately nor a point mixes them with others."""
    monkeypatch.setattr(page_statistics, "STEP", step)
    write(events, *[Event("added", "", product) for product in PRODUCTS])
    page, rewards = statistics(events), {"old": 2.0, "own": 5.0}
    for name, visits, sample in (("old", 333, None), ("own", 77, 0)):
        for i in range(visits):
            shown = Event(
                "recommended", f"{name}-{i}", "tea", 0, explored=None if sample is None else False, sample=sample
            )
            answer = Event("answered", shown.visit, "tea", reward=rewards[name] + (-1) ** i)
            write(events, shown, answer, Event("closed", shown.visit))
        for asked in (page, statistics(events)):  # while events come, and later
            found = counted(asked)
            assert found["before"]["number"] == 333
            assert found["before"]["mean"] == pytest.approx(2 + 1 / 333)
            assert found["visits"] == 333 + (77 if name == "own" else 0)
            points = [(point["visits"] <= 333, point["number"], point["mean"]) for point in found["points"]]
            assert sum(number for old, number, _ in points if old) == 333
            assert all(abs(mean - (2.0 if old else 5.0)) < 0.2 for old, _, mean in points)
            if name == "old":
                assert (found["lately"]["number"], found["lately"]["mean"]) == (0, None)
    assert 0 < found["lately"]["number"] <= 77
    assert found["lately"]["mean"] == pytest.approx(5.0, abs=0.1)


# ---- what is earned more, what exploration costs, which products rise and fall, how the learner does --------


def busy_days(seed, visits, rising="tea", falling="a & b", reward=0.3, change=0.25):
    """Events of visits with two slots: half of the way through, one product begins to earn more, one less."""
    chance, rows = random.Random(seed), [Event("added", "", product) for product in PRODUCTS[:6]]
    for i in range(visits):
        for slot, product in enumerate(chance.sample(PRODUCTS[:6], 2)):
            q, explored = chance.choice([0.25, 0.5, 0.75, 1.0]), chance.random() < 0.2
            shown = Event("recommended", f"v{i}", product, slot, explored=explored, propensity=q, sample=0)
            rows.append(shown._replace(at=1.0 + i))
            likes = reward + change * (i > visits / 2) * ((product == rising) - (product == falling))
            likes -= 0.2 * explored
            if chance.random() < 0.9:
                rows.append(Event("answered", f"v{i}", product, reward=float(chance.random() < likes), at=1.0 + i))
        rows.append(Event("closed", f"v{i}", at=1.0 + i))
    return rows


def periods_twin(rows, width, unanswered=None):
    """Look at every event: what the last four buckets of events, and the four before them, have earned."""
    buckets = defaultdict(lambda: {"ended": 0, "explored": 0, "showings": []})
    visits = defaultdict(dict)
    for it in rows:
        bucket = buckets[it.id // width] if it.visit else None
        if it.kind == "recommended":
            visits[it.visit][it.product] = it
            bucket["explored"] += it.explored
        elif it.kind == "answered":
            bucket["showings"].append((visits[it.visit].pop(it.product), it.reward))
        elif it.kind == "closed":
            bucket["ended"] += 1
            if unanswered is not None:
                bucket["showings"] += [(shown, unanswered) for shown in visits[it.visit].values()]
    return [buckets[number] for number in sorted(buckets)]


def cost_twin(buckets):
    showings = [each for bucket in buckets for each in bucket["showings"]]
    r = np.array([reward for _, reward in showings])
    explored = np.array([shown.explored for shown, _ in showings])
    q = np.array([shown.propensity for shown, _ in showings])
    w = (1 / q - 1)[~explored]
    best = np.average(r[~explored], weights=w)
    variance = (w**2 * (r[~explored] - best) ** 2).sum() / w.sum() ** 2 + r[explored].var() / explored.sum()
    a_visit = sum(bucket["explored"] for bucket in buckets) / sum(bucket["ended"] for bucket in buckets)
    cost, half = a_visit * (best - r[explored].mean()), 1.96 * a_visit * math.sqrt(variance)
    found = {"mean": cost, "low": cost - half, "high": cost + half}
    return {name: pytest.approx(value, rel=1e-9) for name, value in found.items()}


def trends_twin(earlier, latest):
    rewards = [defaultdict(list), defaultdict(list)]
    for some, buckets in zip(rewards, (earlier, latest), strict=True):
        for shown, reward in [each for bucket in buckets for each in bucket["showings"]]:
            some[shown.product].append(reward)
    before, now = rewards
    compared = [product for product in before if min(len(before[product]), len(now[product])) >= 30]
    found = {"compared": len(compared), "rising": [], "falling": []}
    for product in compared:
        a, b = np.array(before[product]), np.array(now[product])
        apart = math.hypot(stats.sem(a), stats.sem(b))
        together = np.concatenate([a, b]).std(ddof=1) * math.sqrt(1 / len(a) + 1 / len(b))
        limit = stats.t.ppf(1 - 0.025 / len(compared), min(len(a), len(b)) - 1) * max(apart, together)
        if abs(b.mean() - a.mean()) > limit:
            row = {"product": product, "before": pytest.approx(a.mean()), "now": pytest.approx(b.mean())}
            found["rising" if b.mean() > a.mean() else "falling"].append(row)
    return {it: {"count": len(rows), "rows": rows} if it != "compared" else rows for it, rows in found.items()}


@pytest.mark.parametrize("unanswered", [None, 0.0, -0.5])
@pytest.mark.parametrize(("step", "widest"), [(20_000, 32_768), (499, 256)], ids=["in one step", "in many"])
def test_costs_and_trends_are_those_of_all_events(events, monkeypatch, step, widest, unanswered):
    monkeypatch.setattr(page_statistics, "STEP", step)
    monkeypatch.setattr(page_statistics, "WIDEST_BUCKET", widest)
    rows = busy_days(3, 1000)
    page = statistics(events, reward={} if unanswered is None else {"unanswered": unanswered})
    for some in (rows[:1700], rows[1700:]):  # the page is asked while events come
        write(events, *some)
        found = counted(page)
    width = 64
    while len(rows) // width >= 32:
        width *= 2
    buckets = periods_twin(events.since(0, 10**6), min(width, widest), unanswered)
    assert found["lately"]["number"] == sum(bucket["ended"] for bucket in buckets[-4:])
    assert found["lately"]["cost"] == cost_twin(buckets[-4:])
    assert found["trends"] == trends_twin(buckets[-8:-4], buckets[-4:])
    assert found["trends"]["compared"] == 6


def test_the_cost_is_that_of_exploring_where_it_happens(events):
    """Where the model is sure, it explores little and earns much; there is no reason to compare with that."""
    chance, rows = random.Random(8), [Event("added", "", "tea")]
    for i in range(6000):
        q, best, other = chance.choice([(0.5, 0.3, 0.2), (0.95, 0.9, 0.8)])  # exploring costs 0.1 everywhere
        explored = chance.random() > q
        choice = {"explored": explored, "propensity": 1 - q if explored else q, "sample": 0}
        reward = float(chance.random() < (other if explored else best))
        rows += [
            Event("recommended", f"v{i}", "tea", 0, **choice),
            Event("answered", f"v{i}", "tea", reward=reward),
        ]
    write(events, *rows)
    lately = told_lately(events)
    cost, share = lately["cost"], (0.5 + 0.05) / 2
    assert lately["explored"] == pytest.approx(share, abs=0.02)
    assert cost["high"] - cost["low"] < 0.02
    assert cost["low"] < 0.1 * share < cost["high"]
    pairs = list(zip(rows[1::2], rows[2::2], strict=True))
    plain = [np.mean([b.reward for a, b in pairs if a.explored is it]) for it in (False, True)]
    assert share * (plain[0] - plain[1]) > 0.1  # without weights


def test_products_that_rise_and_fall_are_named_and_removed_ones_are_not(events):
    rows = busy_days(4, 4000)
    write(events, *rows)
    middle = len(events.since(0, 10**6)) // 2
    page = statistics(events)
    page._counts.width = 2 ** math.ceil(math.log2(middle / 4))  # the change lies between two periods
    found = page.current()["trends"]
    assert [row["product"] for row in found["rising"]["rows"]] == ["tea"]
    assert [row["product"] for row in found["falling"]["rows"]] == ["a & b"]
    assert found["rising"]["rows"][0]["now"] > found["rising"]["rows"][0]["before"] + 0.1
    write(events, Event("removed", "", "tea"))
    found = page.current()["trends"]
    assert (found["rising"]["count"], found["falling"]["count"]) == (0, 1)


@pytest.mark.parametrize(
    "reward", [lambda rng, n: rng.random(n) < 0.02, lambda rng, n: rng.lognormal(0, 2, n) * (rng.random(n) < 0.1)]
)
def test_without_a_change_hardly_any_product_is_named(reward):
    """Rewards are rare, or of very different sizes, and some products are shown much more often lately."""
    rng, products, named = np.random.default_rng(0), 50, 0
    counts = {str(i): page_statistics.ProductCount(i) for i in range(products)}
    for _ in range(200):
        periods = [page_statistics.Period(), page_statistics.Period()]
        for period in periods:
            sizes = rng.choice([30, 100, 1000], products)
            some = [np.asarray(reward(rng, n), dtype=float) for n in sizes]
            period.rewards = np.array([[len(r), r.sum(), (r**2).sum()] for r in some])
        found = page_statistics._trends(*periods, counts)
        assert found["compared"] == products
        named += found["rising"]["count"] + found["falling"]["count"] > 0
    assert named <= 10  # of 200 shops


def test_what_is_earned_more_than_before_serving(events):
    chance = random.Random(0)
    rewards = {"old": [chance.gauss(2, 1) for _ in range(200)], "own": [chance.gauss(5, 2) for _ in range(90)]}
    write(events, Event("added", "", "tea"))
    for name, some in rewards.items():
        for i, reward in enumerate(some):
            shown = Event("recommended", f"{name}-{i}", "tea", 0, sample=0 if name == "own" else None)
            write(events, shown, Event("answered", shown.visit, "tea", reward=reward))
    found = statistics(events).current()["lately"]
    own = rewards["own"][-found["number"] :]
    half = stats.t.ppf(0.975, len(own) - 1) * math.hypot(stats.sem(own), stats.sem(rewards["old"]))
    gain = np.mean(own) - np.mean(rewards["old"])
    assert found["gain"] == {k: pytest.approx(gain + i * half) for k, i in (("mean", 0), ("low", -1), ("high", 1))}


def all_the_same(own, before):
    """Events of visits with one slot, which earned `own` each, after imported ones that earned `before`."""
    rows = [Event("added", "", product) for product in PRODUCTS]
    for i, reward in enumerate((*before, *own)):
        choice = {} if i < len(before) else {"sample": 0, "propensity": 0.5, "explored": i % 2 == 0}
        shown = Event("recommended", f"v{i}", PRODUCTS[i % 5], 0, at=1.0 + i, **choice)
        answer = Event("answered", shown.visit, shown.product, reward=reward, at=1.0 + i)
        rows += [shown, answer, Event("closed", shown.visit, at=1.0 + i)]
    return rows


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_visits_that_earned_the_same_have_no_interval(events, reward):
    write(events, *all_the_same([reward] * 200, [0.0, 1.0] * 50))
    found = statistics(events).current()
    unsure = {"mean": reward, "low": None, "high": None}
    assert found["lately"] | unsure == found["lately"]
    assert found["lately"]["gain"] == unsure | {"mean": reward - 0.5}
    assert found["lately"]["cost"] is None
    assert found["lately"]["chosen"] > 60
    assert found["before"]["low"] < 0.5 < found["before"]["high"]
    assert all(point | unsure == point for point in found["points"] if point["visits"] > 100)


def test_products_shown_without_a_best_guess_count_neither_as_it_nor_as_exploration(events):
    """They are served, but not in the share of exploration, nor in what it costs."""
    write(events, *busy_days(3, 600))
    alone = told_lately(events)
    assert alone["cost"] is not None
    write(
        events,
        *[Event("recommended", f"w{i}", "tea", 0, propensity=1 / 65, sample=0) for i in range(10)],
        *[Event("answered", f"w{i}", "tea", reward=1000.0) for i in range(10)],
    )
    assert told_lately(events) == alone | {"served": alone["served"] + 10}


@pytest.mark.parametrize("step", [20_000, 97], ids=["in one step", "in many"])
def test_products_that_stay_without_an_answer_are_noticed(events, monkeypatch, step):
    monkeypatch.setattr(page_statistics, "STEP", step)
    rows, missing, shown = [Event("added", "", product) for product in PRODUCTS], 0, 0
    for i in range(120):  # a third of the products has an answer; some visits are complete, some go on
        names, ends = PRODUCTS[:SLOTS], i % 5 < 4
        clicked = names if i % 10 == 0 else names[: i % 3]
        rows += [
            Event("recommended", f"v{i}", it, slot, explored=False, sample=0) for slot, it in enumerate(names)
        ]
        rows += [Event("answered", f"v{i}", it, reward=1.0) for it in clicked]
        rows += [Event("closed", f"v{i}")] * (ends and len(clicked) < SLOTS)
        if ends:
            missing, shown = missing + SLOTS - len(clicked), shown + SLOTS
    write(events, *rows)
    assert told_lately(events)["missing"] == {"number": missing, "of": shown}
    assert 2 * missing > shown
    assert told_lately(events, reward={"unanswered": 0.0})["missing"] is None
    answers = [Event("answered", f"w{i}", "tea", reward=0.0) for i in range(missing)]
    write(
        events,
        *[Event("recommended", it.visit, "tea", 0, sample=0) for it in answers],
        *answers,
        *(Event("closed", it.visit) for it in answers),
    )
    assert told_lately(events)["missing"] is None  # now it is less than half of them


def test_few_products_without_an_answer_are_not_worth_a_word(events):
    for i in range(29):
        write(events, Event("recommended", f"v{i}", "tea", 0, sample=0), Event("closed", f"v{i}"))
    assert statistics(events).current()["lately"]["missing"] is None
    write(events, Event("recommended", "last", "tea", 0, sample=0), Event("closed", "last"))
    assert statistics(events).current()["lately"]["missing"] == {"number": 30, "of": 30}


def test_it_is_told_how_the_learner_does(events):
    page = statistics(events)
    events.note_learner()
    found = page.current()["learner"]
    assert (found["state"], found["failure"], found["age"]) == ("ok", None, None)
    assert 0 <= found["worked"] < 60
    for _ in range(3):
        events.note_failure("FactorError")
    found = page.current()["learner"]
    assert (found["state"], found["failure"]) == ("failing", "FactorError")
    late = ShopStatistics(ShopSettings(slots=SLOTS), events, lambda: newest(7), lambda: (1.0, 0, ""))
    found = late.current()["learner"]
    assert (found["state"], found["included"], found["behind"]) == ("late", 7, 0)
    assert found["worked"] > 1e9
    for seconds, state in ((60.0, "ok"), (600.0, "behind")):  # samples are drawn every 60 seconds
        slow = ShopStatistics(
            ShopSettings(slots=SLOTS),
            events,
            lambda s=seconds: newest(7)._replace(behind=s),
            lambda: (time.time(), 0, ""),
        )
        assert slow.current()["learner"]["state"] == state
