"""The page of verdicts that changed since version 0.1.0."""

import json
from collections import Counter

import pytest
from benchmarks import verdicts_changed
from benchmarks.verdicts_changed import Old, changes, new_claims, old_verdicts, page, reasons
from benchmarks.verdicts_changed.__main__ import main

from rlsvi.paper import FIGURES, figure_called
from rlsvi.paper.claim import Outcome, Verdict
from rlsvi.paper.folder import _record_of
from rlsvi.paper.report.records import read_figures
from test_report import put

OLD = [
    Old("continual", "explores", "reproduced", "stays"),
    Old("continual", "autocorrelated", "not reproduced", "another criterion"),
    Old("continual", "plans_need_it", "inconclusive", "with a table"),
    Old("continual", "plans_need_it", "reproduced", "with features"),
    Old("continual", "stays_finite", "reproduced", "no reason"),
    Old("continual", "differ_slightly", "inconclusive", "more runs"),
    Old("continual", "", "reproduced", "forgotten"),
]
WHY = {
    "continual": {
        "autocorrelated": {"criterion": "It is 1/2.", "why": "The paper says so."},
        "explores": {"criterion": "It is .9.", "why": "A better one."},
        "plans_need_it": {"why": "Both count."},
    },
    "gone": {"forgotten": {"why": "Told elsewhere."}},
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The claims of one figure, all reproduced but one, and verdicts of old that are made up."""
    monkeypatch.setattr(verdicts_changed, "old_verdicts", lambda: OLD)
    monkeypatch.setattr(verdicts_changed, "reasons", lambda: WHY)
    outcomes = {"plans_need_it": Outcome.NOT_REPRODUCED, "stays_finite": Outcome.NOT_REPRODUCED}
    figure = figure_called("continual")
    claims = [
        _record_of(figure, claim, Verdict(outcomes.get(claim.name, Outcome.REPRODUCED), "as measured"))
        for claim in figure.claims
    ]
    put(tmp_path, "continual", claims=json.loads(json.dumps(claims)))
    return tmp_path


def test_changes_are_told_with_their_reasons(results):
    figures = read_figures(results)
    found = {it.name: it for it in changes(figures)}
    assert {name: it.changed for name, it in found.items()} == {
        "explores": False,
        "autocorrelated": True,
        "differ_slightly": True,
        "plans_need_it": True,
        "stays_finite": True,
    }
    assert found["differ_slightly"].why == verdicts_changed.DECIDED
    text = page(figures)
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) == 4
    assert any("| ✗ not reproduced | **✓ reproduced** | The paper says so. |" in row for row in rows)
    merged = "| 1 ✓ reproduced, 1 ? inconclusive | **✗ not reproduced**, finding | Both count. |"
    assert any(merged in row for row in rows)
    assert text.count("*Before:* It is") == 2  # also where the verdict is the same
    assert "- forgotten. Told elsewhere." in text
    assert [claim.kind for _, claim in new_claims(figures)] == ["ours"]
    assert "Of 5 claims of [today](results.md) that were\njudged then, 4 have another verdict" in text


def test_a_change_without_a_reason_is_printed(results, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["verdicts_changed", str(results), str(results / "page.md")])
    assert main() == 1
    assert "no reason: continual.stays_finite, reproduced, now not reproduced" in capsys.readouterr().out
    assert (results / "page.md").read_text().startswith("<!-- Written by")


def test_every_old_verdict_is_one_of_a_claim_of_today():
    """And every reason too; those of old claims that are gone are given."""
    names = {(name, claim.name) for name in FIGURES for claim in figure_called(name).claims}
    old = old_verdicts()
    assert {(it.figure, it.claim) for it in old if it.claim} <= names
    assert Counter(it.verdict for it in old) == {"reproduced": 108, "not reproduced": 35, "inconclusive": 25}
    known = reasons()
    assert set(known.pop("gone")) == {it.words for it in old if not it.claim}
    assert {(figure, name) for figure, found in known.items() for name in found} <= names
    assert all(set(it) <= {"criterion", "why"} and it["why"] for found in known.values() for it in found.values())
