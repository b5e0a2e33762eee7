"""The report in a browser: filters, links and zoom work, and it fits a window and a phone.

Skipped where there is no Chromium. The page is opened from its file; nothing is asked of any network.
"""

import re

import pytest
from test_report import claim, put

from browser import BROWSER, PHONE, SIZE, WINDOW, dumped, seen
from rlsvi_paper.report import write_html

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no browser: neither Chromium nor Chrome is installed"),
]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="518.4pt" height="302.4pt" viewBox="0 0 518.4 302.4"/>'
WORDS = "RLSVI explores far more efficiently than any dithering strategy, "
LONG_NAME = "a_name_of_a_setting_that_has_no_place_to_break_" * 4


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of usual size: 20 figures with 6 claims each, 20 of which are headlines."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "probe.html").write_text("<p>It opens.</p>")
    if "It opens." not in dumped((folder / "probe.html").as_uri(), folder / "profile"):
        pytest.skip(f"{BROWSER} cannot open a file in {folder}")
    table = [["N", *(f"a long heading {i}" for i in range(8))], ["10", *"12345678"]]
    lost = {"outcome": "not reproduced", "why": "misprint"}
    for i in range(20):
        section = f"section {5 + i % 2}"
        claims = [claim(words=f"{WORDS}{j} of {i}", where=section, headline=j == 0) for j in range(4)]
        claims += [
            claim(words=f"{WORDS}lost in {i}", where="appendix G", kind="proof", measured=LONG_NAME, **lost)
        ]
        claims += [claim(words="ours", kind="ours", outcome="inconclusive", why="scale", table=table)]
        caption = "Episodes until ten rewards, the proxy of the learning time, in every run. Dashed: the bound."
        put(folder, f"fig-{i}", svg=SVG, title=f"Learning time, number {i}", caption=caption, claims=claims)
    return write_html(folder)


def shown(document):
    """The ids of the claims that are not hidden."""
    claims = re.findall(r'<details class="claim" id="claim-([\w-]+)"(.*?)>', document)
    assert len(claims) == 120
    return [name for name, attributes in claims if "hidden" not in attributes]


FIRST_FIGURE = "(d) => d.querySelector('.gallery img').getBoundingClientRect().bottom"
UNFOLD = "(d) => { for (const it of d.querySelectorAll('details:not(.zoom)')) it.open = true; }"


@pytest.mark.parametrize("size", [WINDOW, PHONE], ids=["window", "phone"])
def test_it_fits_and_a_figure_is_on_the_first_screen(report, tmp_path, size):
    folded, figure, _, unfolded = seen(report, tmp_path, size, [SIZE, FIRST_FIGURE, UNFOLD, SIZE])
    assert folded[0] == folded[1]  # no scrolling to the side
    assert unfolded[0] == unfolded[1]
    assert 0 < figure < size[1]
    assert unfolded[2] > folded[2]
    assert folded[2] < 15 * size[1]


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("", [f"fig-{i}-{j}" for i in range(20) for j in range(1, 7)]),
        ("#verdict=not+reproduced", [f"fig-{i}-5" for i in range(20)]),
        ("#kind=ours&verdict=inconclusive", [f"fig-{i}-6" for i in range(20)]),
        ("#kind=ours&verdict=reproduced", []),
        ("#section=Appendix+G&search=13%20%20LOST", ["fig-13-5"]),
        (
            "#section=Section+6&search=number+1",
            [f"fig-{i}-{j}" for i in (1, *range(11, 20, 2)) for j in range(1, 5)],
        ),
        ("#verdict=unheard-of", [f"fig-{i}-{j}" for i in range(20) for j in range(1, 7)]),
    ],
)
def test_the_address_can_ask_for_some_claims(report, tmp_path, fragment, expected):
    document = dumped(f"{report.as_uri()}{fragment}", tmp_path)
    found = shown(document)
    assert sorted(found) == sorted(expected)
    assert f"<output>{len(found)} of 120 claims</output>" in document
    figures = re.findall(r'<section class="figure" id="figure-([\w-]+)"(.*?)>', document)
    left = {name for name, attributes in figures if "hidden" not in attributes}
    assert left == {name.rpartition("-")[0] for name in found}
    gallery = document[document.index('class="gallery"') : document.index('id="headlines"')]
    assert set(re.findall(r'<li><a href="#figure-([\w-]+)"', gallery)) == left


def test_filters_and_search_work_as_one_types(report, tmp_path):
    choose = """(d, w) => {{
      d.querySelector("[name={0}]").value = "{1}";
      d.querySelector("[name={0}]").dispatchEvent(new Event("input", {{bubbles: true}}));
      return [d.querySelector("output").textContent, w.location.hash];
    }}"""
    reset = (
        "(d, w) => { d.querySelector('#filters button').click(); return d.querySelector('output').textContent; }"
    )
    steps = [choose.format("kind", "proof"), choose.format("search", "lost in 13"), reset]
    kind, search, all_again = seen(report, tmp_path, WINDOW, steps)
    assert kind == ["20 of 120 claims", "#kind=proof"]
    assert search == ["1 of 120 claims", "#search=lost+in+13&kind=proof"]
    assert all_again == "120 of 120 claims"


def test_permalinks_lead_to_figures_and_open_claims_even_hidden_ones(report, tmp_path):
    place = """(d) => {{
      const it = d.getElementById("{0}"), place = it.getBoundingClientRect();
      return [place.top, place.height > 0, it.open ?? null, d.querySelector("output").textContent];
    }}"""
    go = '(d, w) => {{ w.location.hash = "{}"; }}'
    figure, claim = "figure-fig-12", "claim-fig-17-5"
    steps = [
        place.format(figure),
        go.format("kind=ours"),
        place.format(claim),
        go.format(claim),
        place.format(claim),
    ]
    first, _, hidden, _, last = seen(report, tmp_path, WINDOW, steps, f"#{figure}")
    assert 0 <= first[0] < 100
    assert hidden[1:] == [False, False, "20 of 120 claims"]
    assert 0 <= last[0] < WINDOW[1]
    assert last[1:] == [True, True, "120 of 120 claims"]


def test_a_phone_shows_figures_folded_until_one_asks_for_them(report, tmp_path):
    folds = "(d) => [...d.querySelectorAll('.fold')].flatMap((it, i) => (it.open ? [i] : []))"
    go = "(d, w) => {{ w.location.hash = '{}'; }}"
    follow = [
        go.format("figure-fig-12"),
        folds,
        go.format("claim-fig-17-5"),
        folds,
        go.format("search=lost+in+3"),
        folds,
    ]
    at_first, _, figure, _, claim, _, found = seen(report, tmp_path, PHONE, [folds, *follow])
    order = [
        name for name, _ in re.findall(r'<section class="figure" id="figure-([\w-]+)"(.*?)>', report.read_text())
    ]
    assert at_first == []
    assert [order[i] for i in figure] == ["fig-12"]
    assert {order[i] for i in claim} == {"fig-12", "fig-17"}
    assert len(found) == 20  # all that are not hidden are open
    assert seen(report, tmp_path, WINDOW, [folds]) == [list(range(20))]


def test_a_figure_is_enlarged_by_a_click_and_reduced_by_escape(report, tmp_path):
    click = "(d) => d.querySelector('.zoom summary').click()"
    unfold = "(d) => { d.querySelector('.fold').open = true; }"
    escape = "(d, w) => d.body.dispatchEvent(new w.KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))"
    wide = "(d) => d.querySelector('.zoom img').getBoundingClientRect().width"
    _, before, _, after, _, again = seen(report, tmp_path, PHONE, [unfold, wide, click, wide, escape, wide])
    assert before == again < PHONE[0] < 2 * PHONE[0] <= after


def test_without_scripts_all_can_be_read(report, tmp_path):
    count = "(d) => [...d.querySelectorAll('.claim, #filters')].filter((it) => it.checkVisibility()).length"
    click = "(d) => d.querySelector('#claim-fig-3-5 summary').click()"
    read = "(d) => d.querySelector('#claim-fig-3-5 .behind').checkVisibility()"
    steps = [count, read, click, read]
    claims, before, _, after = seen(report, tmp_path, WINDOW, steps, sandbox='sandbox="allow-same-origin"')
    assert claims == 120  # and no filters
    assert [before, after] == [False, True]


def test_no_other_script_is_run(report, tmp_path):
    page = tmp_path / "changed.html"
    other = "<script>document.title = 'other'</script><img src='x' onerror=\"document.title = 'other'\">"
    page.write_text(report.read_text("utf-8").replace("<main>", f"<main>{other}"), "utf-8")
    document = dumped(page.as_uri(), tmp_path)
    assert "<title>Generalization" in document
    assert "120 of 120 claims" in document  # its own is
