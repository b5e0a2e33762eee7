"""What the measurements of a shop begin with, and the tables that they write."""

from benchmarks.shop_faults import shown as faults_row
from benchmarks.shop_load import shown as load_row
from benchmarks.shop_service import prefill, write_markdown, write_settings

from rlsvi_shop import Events, ShopSettings
from rlsvi_shop.model.learner import ShopLearner


def test_past_visits_are_ones_that_a_learner_learns_from(tmp_path):
    port = write_settings(tmp_path, slots=3, products=7)
    settings = ShopSettings.from_toml(tmp_path / "shop.toml")
    assert (settings.serve.port, settings.slots) == (port, 3)
    prefill(tmp_path, visits=25, products=7, slots=3)
    learner = ShopLearner(settings)
    with Events(settings.database) as events:
        for event in events.since(0, 10_000):
            learner.take(event)
        assert events.last() == 7 + 25 * 6
    assert (learner.visits, learner.ignored, len(learner.open)) == (25, 0, 0)


def test_tables_are_markdown(tmp_path, capsys):
    times = {"s_per_second": 1234.5, "_p50_ms": 1.04, "_p99_ms": 2, "_p99.9_ms": 30.25, "_longest_ms": 40}
    on, off = ({f"recommend{name}_{turn}": x for name, x in times.items()} for turn in ("on", "off"))
    memory = {"parent_mb": "50", "worker_mb": "90 + 91", "learner_mb": "200"}
    load = {"products": 50, "workers": 2, "clients": 8, **on, **off, "recommend_p99_ms_on": 3}
    write_markdown(tmp_path / "new", "load.md", [load_row({**load, **memory})] * 2, "Some words.")
    head, line, *rows, empty, words = (tmp_path / "new" / "load.md").read_text().splitlines()
    assert {text.count("|") for text in (head, line, *rows)} == {12}
    shown = "| 1234 / 1234 | 1.0 / 1.0 | 3.0 / 2.0 | 30.2 / 30.2 | 40 / 40 |"
    assert rows[0] == rows[1] == f"| 50 | 2 | 8 {shown} 50 | 90 + 91 | 200 |"
    assert (empty, words) == ("", "Some words.")
    found = {"kills": {"worker": 3, "parent": 1}, "acknowledged answers": 9, "requests sent again": 4}
    row = faults_row("sqlite", {**found, "wrong": [("lost answer", 1), ("twice", 2), ("/close", {}, 500, {})]})
    assert list(row.values()) == ["sqlite", 3, 0, 1, 0, 9, 4, 1, 1, 1]
    assert "Some words." in capsys.readouterr().out
