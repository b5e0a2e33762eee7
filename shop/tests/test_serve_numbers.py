"""Every number on the page of a shop against SQL over its events, after requests that were sent again."""

import random
import sqlite3
from contextlib import closing

import pytest
from serving import PRODUCTS, new_shop, serving

ENDED = """
    SELECT visit, SUM(COALESCE(reward, 0)) AS reward FROM events WHERE visit <> ''
    GROUP BY visit HAVING SUM(kind = 'closed') > 0 OR SUM(kind = 'answered') = 3
"""


@pytest.fixture
def numbers(tmp_path):
    """What the page is told, and a function that asks the database."""
    chance = random.Random(1)
    with new_shop(tmp_path) as shop, serving(shop) as ask:

        def sent(path, body):
            answers = [ask("POST", path, body) for _ in range(chance.choice([1, 2, 3]))]
            assert {answer.status for answer in answers} == {200}
            assert len({answer.body for answer in answers}) == 1
            return answers[0].json

        for i in range(25):
            name, slots = f"visit-{i}", chance.randint(1, 3)
            for slot in range(slots):
                (product,) = sent("/recommend", {"visit": name, "slot": slot})["products"]
                if chance.random() < 0.8:
                    sent("/feedback", {"visit": name, "product": product, "reward": chance.randint(-2, 3)})
            if chance.random() < 0.6:
                sent("/close", {"visit": name})
            assert ask("POST", "/feedback", {"visit": name, "product": "wine", "reward": 1}).status == 404
        shop.remove("tea")
        shop.add("wine")
        shop.learn()
        found = ask("GET", "/statistics").json
        listed = ask("GET", "/products").json["products"]
        with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
            yield found, listed, lambda text, *given: database.execute(text, given).fetchall()


def test_the_tiles(numbers):
    found, _, sql = numbers
    assert found["events"] == found["read"] == sql("SELECT COUNT(*) FROM events")[0][0]
    (visits, mean), *_ = sql(f"SELECT COUNT(*), AVG(reward) FROM ({ENDED})")
    assert found["visits"] == found["lately"]["number"] == visits > 5
    assert found["lately"]["mean"] == pytest.approx(mean)
    ((shown, known, explored),) = sql(
        "SELECT COUNT(*), COUNT(explored), AVG(explored) FROM events WHERE kind = 'recommended'"
    )
    assert (found["recommended"], found["lately"]["chosen"]) == (shown, known)
    assert found["lately"]["explored"] == pytest.approx(explored)
    assert found["learner"]["behind"] == 0
    assert found["learner"]["included"] == found["events"]


def test_the_points_of_the_charts(numbers):
    found, _, sql = numbers
    assert sum(point["number"] for point in found["points"]) == found["visits"]
    total = sum(point["mean"] * point["number"] for point in found["points"])
    assert total == pytest.approx(sql(f"SELECT SUM(reward) FROM ({ENDED})")[0][0])
    assert found["points"][-1]["visits"] == found["visits"]
    first, last = sql("SELECT MIN(at), MAX(at) FROM events WHERE visit <> ''")[0]
    assert (found["points"][0]["from"], found["points"][-1]["to"]) == (first, last)


def test_the_products(numbers):
    found, listed, sql = numbers
    rows, known = ({each["product"]: each for each in some} for some in (found["products"]["rows"], listed))
    assert set(rows) == set(known) == {*PRODUCTS, "wine"}
    assert (found["products"]["count"], found["products"]["offered"]) == (6, 5)
    for product, row in rows.items():
        of = "SELECT COUNT(*), AVG(reward), COUNT(reward) FROM events WHERE product = ? AND kind = ?"
        assert row["shown"] == sql(of, product, "recommended")[0][0]
        assert (row["answers"], row["mean"]) == (
            (answers := sql(of, product, "answered")[0])[2],
            None if answers[1] is None else pytest.approx(answers[1]),
        )
        assert row["offered"] is known[product]["offered"] is (product != "tea")
        assert row["value"] == known[product]["value"]
        assert row["high"] - row["low"] == pytest.approx(2 * 2.0 * known[product]["spread"])


def test_the_latest_visits(numbers):
    found, _, sql = numbers
    latest = sql("SELECT visit FROM events WHERE visit <> '' GROUP BY visit ORDER BY MAX(id) DESC LIMIT 10")
    assert [it["visit"] for it in found["latest"]] == [name for (name,) in latest]
    ended = dict(sql(ENDED))
    for it in found["latest"]:
        of = "SELECT product, explored FROM events WHERE visit = ? AND kind = 'recommended' ORDER BY slot"
        answers = "SELECT product, reward FROM events WHERE visit = ? AND kind = 'answered'"
        rewards = dict(sql(answers, it["visit"]))
        chosen = [(product, bool(explored)) for product, explored in sql(of, it["visit"])]
        assert [(one["product"], one["explored"]) for one in it["shown"]] == chosen
        assert {one["product"]: one["reward"] for one in it["shown"] if one["reward"] is not None} == rewards
        assert it["ended"] is (it["visit"] in ended)
        assert it["reward"] == sum(rewards.values())
