"""The published tables: the verdicts they give are those that are told, and the page is made of them."""

from pathlib import Path

import pytest
from tables import LONG, RESULTS, published

from pages import HOUSE
from rlsvi_paper import FIGURES, figure_called
from rlsvi_paper.report.answer import answer_page, first_sentence
from rlsvi_paper.report.markdown import markdown_page
from rlsvi_paper.report.records import read_figure, read_figures

PUBLISHED = [name for name in FIGURES if (RESULTS / f"{name}.json").exists()]
pytestmark = pytest.mark.skipif(not PUBLISHED, reason="nothing is published yet")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in PUBLISHED]
)
def test_verdicts_are_those_of_the_published_table(name):
    figure, told = figure_called(name), read_figure(RESULTS / f"{name}.json")
    verdicts = figure.judge(published(name), told.scale)
    assert [claim.words for claim in told.claims] == [claim.words for claim in figure.claims]
    assert [claim.outcome for claim in told.claims] == [str(verdict.outcome) for verdict in verdicts]
    assert [claim.readings for claim in told.claims] == [list(map(list, it.readings)) for it in verdicts]


def test_all_figures_are_published_at_the_papers_scale():
    assert PUBLISHED == list(FIGURES)
    assert {it.scale for it in read_figures(RESULTS)} == {"paper"}


def test_the_page_of_results_is_made_of_them():
    docs = Path(HOUSE) / "docs"
    page = markdown_page(read_figures(RESULTS, list(FIGURES)), docs, docs / "images")
    assert (docs / "results.md").read_text("utf-8") == page


def test_findings_tell_of_every_open_claim():
    """Numbers agree between pages: as many claims are said to be open as are."""
    text = (Path(HOUSE) / "docs" / "findings.md").read_text("utf-8")
    told = text.partition("## What stays open")[2].partition("\n## ")[0].count("\n| ") - 2  # without the head
    claims = [claim for figure in read_figures(RESULTS) for claim in figure.claims]
    assert told == sum(claim.outcome == "inconclusive" for claim in claims)


def test_every_changed_criterion_is_told_with_its_verdict():
    """The table of changed criteria has claims by the words they begin with, and their verdicts of today."""
    text = (Path(HOUSE) / "docs" / "findings.md").read_text("utf-8")
    table = text.partition("## Criteria that changed")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    claims = {claim.words: claim.outcome for figure in read_figures(RESULTS) for claim in figure.claims}
    assert rows
    for several, verdicts, *_ in rows:
        for words in several.replace("\\*", "*").split("; "):
            found = {outcome for claim, outcome in claims.items() if claim.startswith(words)}
            assert found == {verdicts.rpartition("now ")[2]}, words


def test_the_page_that_answers_is_made_of_them():
    docs = Path(HOUSE) / "docs"
    figures = read_figures(RESULTS, list(FIGURES))
    assert (docs / "reproduce.md").read_text("utf-8") == answer_page(figures, "results.md")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_pages_carry_its_first_sentence(page):
    sentence = first_sentence(read_figures(RESULTS, list(FIGURES)))
    text = " ".join((HOUSE / page).read_text("utf-8").split())
    assert sentence in text, f"{page} must say: {sentence}"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_settings_told_are_those_of_the_published_jobs(name):
    told = read_figure(RESULTS / f"{name}.json")
    jobs = figure_called(name).plan(told.scale)
    assert told.jobs == len(jobs)
    assert {key: set(values) for key, values in told.settings.items()} == {
        key: {job.settings[key] for job in jobs if key in job.settings} for key in told.settings
    }


def test_they_are_small():
    published = [path for path in RESULTS.iterdir() if path.suffix in (".parquet", ".json", ".md")]
    assert sum(path.stat().st_size for path in published) < 20_000_000
