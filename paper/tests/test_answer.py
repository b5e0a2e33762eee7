"""The page that answers whether the paper reproduces: made of the verdicts, and of what the paper prints."""

import re

import pytest
from test_report import claim, put

from rlsvi_paper import FIGURES, figure_called
from rlsvi_paper.report import write_markdown
from rlsvi_paper.report.answer import answer, claims_of, first_sentence, lists
from rlsvi_paper.report.printed import COLUMNS, PRINTED, ours
from rlsvi_paper.report.records import ClaimRecord, read_figures

LOST = {"outcome": "not reproduced", "why": "finding"}
OPEN = {"outcome": "inconclusive", "why": "scale"}
READ = {  # outcomes in the readings of two claims
    "4500": [["as printed", "not reproduced"], ["b", "reproduced"], ["c", "inconclusive"]],
    "better": [["as printed", "not reproduced"], ["b", "reproduced"], ["c", "not run"]],
}


def record(**changes):
    return ClaimRecord(**{"readings": [], "variants": [], "caveat": "", **claim(**changes)})


@pytest.fixture
def folder(tmp_path):
    """Two parts of the paper: the chain with two headline claims and a caveat, Tetris with two that are lost."""
    out, leading = tmp_path / "out", {"headline": True}
    put(
        out,
        "chain-length",
        where="section 6.1.1, figure 3",
        claims=[claim(caveat="N is 100 at *most*", **leading), claim(words="a | b", **LOST)],
    )
    put(
        out,
        "chain-features",
        where="section 6.1.1, figure 4",
        claims=[claim(**leading), claim(kind="ours", **LOST)],
    )
    tetris = [claim(words=words, readings=ways, **LOST, **leading) for words, ways in READ.items()]
    put(out, "tetris", where="section 6.2, figure 7", claims=tetris)
    return out


def test_the_first_sentence_counts_the_headline_claims(folder):
    found = first_sentence(read_figures(folder))
    assert found == (
        "Of the 4 headline claims of the paper, 2 are reproduced in runs as large as its own (the chain 2 of 2; "
        "Tetris 0 of 2), 2 are not, and 0 are open."
    )
    put(folder, "theorem", where="section 5", scale="quick", claims=[claim(headline=True, **OPEN)])
    found = first_sentence(read_figures(folder))
    assert "2 are reproduced in runs smaller than its own" in found
    assert "the theory 0 of 1" in found
    assert found.endswith("2 are not, and 1 is open.")


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([claim(headline=True), claim()], "yes"),
        ([claim(headline=True, caveat="but"), claim(**LOST)], "yes, with 1 caveat"),
        ([claim(headline=True, caveat=it) for it in "ab"], "yes, with 2 caveats"),
        ([claim(headline=True), claim(caveat="not leading")], "yes"),
        (
            [claim(headline=True), claim(kind="proof", **OPEN)],
            "numerically consistent; the printed proof is incomplete",
        ),
        (
            [claim(headline=True), claim(headline=True, **LOST), claim(kind="proof")],
            "numerically consistent, in part; the printed proof is complete",
        ),
        ([claim(headline=True, **LOST), claim(kind="proof")], "no"),
        ([claim(headline=True), claim(headline=True, **LOST)], "in part"),
        ([claim(headline=True, **LOST), claim()], "no"),
        ([claim(headline=True, **OPEN), claim()], "open"),
        ([claim(), claim(**LOST)], "in part"),  # without headline claims all decide
    ],
)
def test_a_part_reproduces_if_all_its_headline_claims_do(claims, expected):
    assert answer([record(**it) for it in claims]) == expected


def test_our_own_claims_do_not_count(folder):
    found = claims_of(read_figures(folder))
    assert list(found) == ["chain", "tetris"]
    assert len(found["chain"]) == 3


def test_claims_are_counted_by_longer_lists(folder):
    claims = [claim for part in claims_of(read_figures(folder)).values() for _, claim in part]
    assert lists(claims) == "all of section 6 2 of 5, and all that the paper says about results 2 of 5"


def test_ways_to_judge_a_claim_are_counted():
    ways = {"variants": [["x 1", "reproduced"], ["x 2", "inconclusive"]], "readings": READ["better"]}
    assert record(**ways).held == "3 of 4"  # the first reading is the verdict, and one was not run
    assert record().held == ""


def test_it_is_written_beside_the_page_of_results(folder, tmp_path):
    page = write_markdown(folder, tmp_path / "docs" / "all.md", tmp_path / "docs" / "images")
    text = (page.parent / "reproduce.md").read_text("utf-8")
    place = 0
    for part in (
        f"# Does the paper reproduce?\n\n{first_sentence(read_figures(folder))}\n",
        "| The chain (sections 3 and 6.1, appendix C) | **yes, with 1 caveat** | 2 of 2 | 0 of 1 | – |\n",
        "| Tetris (section 6.2, appendix D) | **no** | 0 of 2 | – | – |\n",
        "\n- The chain, “RLSVI outperforms both bounds”: but N is 100 at \\*most\\*.\n",
        "## The headline claims",
        "(all.md#chain-length) | section 6.1.1 | the median is below both bounds | ✓ |\n",
        "(all.md#tetris) | section 6.1.1 | the median is below both bounds | **✗ not reproduced**, finding (1",
        "## What else is not reproduced, or open\n\nThe chain:\n",
        "\n- **✗ not reproduced**, finding: [a \\| b](all.md#chain-length)\n",
        "## The settings",
        "| 3 | to 100 → 10 .. 100 (19 values) | 10 | – → 1 | – → 0.1 | – | until ten rewards → 20,000 | 5 → 100 |",
        f"## How to run all of it again\n\n    rlsvi paper --scale paper --out {folder.parent.name}/out\n",
    ):
        place = text.index(part, place)
    assert "preregistration.md" not in text
    put(folder, "tetris-readings", where="section 6.2", claims=[claim(headline=True, **LOST)])
    write_markdown(folder, page, page.parent / "images")
    assert "](preregistration.md)" in (page.parent / "reproduce.md").read_text("utf-8")


def test_it_is_not_written_for_figures_that_are_not_of_the_paper(tmp_path):
    put(tmp_path / "out", "mine")
    write_markdown(tmp_path / "out", tmp_path / "results.md", tmp_path)
    assert not (tmp_path / "reproduce.md").exists()


def test_every_figure_of_the_paper_is_there_under_its_number():
    assert [it.number for it in PRINTED.values()] == list(range(2, 15))  # the first shows a chain
    for name, printed in PRINTED.items():
        assert name in FIGURES
        assert re.search(rf"\bfigure {printed.number}$", figure_called(name).where)
        assert set(printed.settings) <= set(COLUMNS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chain-regret", {"N": "50", "K": "10", "λ": "1", "σ": "0.1", "episodes": "2000, 1,000,000"}),
        ("chain-agnostic", {"N": "20", "K": "20", "λ": "1", "σ": "0.1", "episodes": "10,000", "seeds": "1 to 20"}),
        ("chain-sigma", {"N": "50", "λ": "100", "σ": "0.0001 .. 100 (13 values)", "seeds": "60"}),
        ("recsys-myopic", {"N": "10", "K": "110", "λ": "0.2", "σ": "0.03162", "seeds": "100 × 10"}),
        ("mini-tetris", {"N": "100,000", "K": "22", "γ": "0.99, 0.999, 1", "episodes": "2000"}),
    ],
)
def test_our_settings_are_those_of_the_jobs(name, expected):
    found = ours(name, "paper")
    assert {column: found[column] for column in expected} == expected
