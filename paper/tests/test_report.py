"""The report: one HTML page that loads nothing and runs its own script alone, and the same as Markdown."""

import json
import os
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from io import BytesIO

import pytest
from PIL import Image

from colours import contrast
from rlsvi.html import style_of
from rlsvi_paper.report import write_html, write_markdown
from rlsvi_paper.report.records import duration, number, part_of_paper, setting, tidy

NASTY = """a claim with <b>&"quotes"</b>, | _stars_ and `ticks`"""
SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 518 302" onload="alert(1)"><script>alert(1)</script>
<image href="https://example.org/x.png"/><path d="M 2 2" style="fill: url(https://example.org/x)"/></svg>"""


def claim(**changes):
    usual = {
        "words": "RLSVI outperforms both bounds",
        "where": "section 6.1.1",
        "kind": "experiment",
        "headline": False,
        "criterion": "the median is below both bounds",
        "outcome": "reproduced",
        "why": "",
        "measured": "at N = 100: 630 episodes",
        "table": [],
        "value": 630.0,
        "low": 480.0,
        "high": 810.0,
    }
    return usual | changes


def figure(name, **changes):
    usual = {
        "format": 2,
        "name": name,
        "title": f"The figure {name}",
        "where": "section 6.1.1, figure 4",
        "caption": "Episodes until ten rewards.",
        "scale": "paper",
        "seeds": 5,
        "jobs": 95,
        "seconds": 123.4,
        "wall": 70.1,
        "settings": {"length": [10, 15, 20], "rho": [i / 1000 for i in range(1001)], "agent": ["rlsvi"]},
        "made": "2026-11-15T05:00:00+00:00",
        "command": f"rlsvi paper {name} --scale paper",
        "versions": {"rlsvi": "0.1.0", "numpy": "2.4.0"},
        "machine": {"system": "Linux", "processor": "Neoverse-N1", "cores": 2},
        "claims": [claim()],
    }
    return usual | changes


def picture(name):
    file = BytesIO()
    Image.new("RGB", (518, 302), f"#{len(name):02x}9e73").save(file, "PNG")
    return file.getvalue()


def put(folder, name, svg=SVG, **changes):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(figure(name, **changes)))
    (folder / f"{name}.svg").write_text(svg)
    (folder / f"{name}.png").write_bytes(picture(name))
    (folder / f"{name}.parquet").write_bytes(b"data")


@pytest.fixture
def folder(tmp_path):
    """Three figures, named so that the order of the paper is not that of the alphabet."""
    out = tmp_path / "out"
    put(
        out,
        "appendix",
        where="appendix C, figure 11",
        scale="quick",
        claims=[claim(outcome="inconclusive", why="scale")],
    )
    lost = {"outcome": "not reproduced", "why": "misprint", "value": None, "low": None, "high": None}
    claims = [claim(words=NASTY, headline=True), claim(words="another", kind="proof", headline=True, **lost)]
    put(out, "length", where="section 6.1.1, figure 4", claims=claims)
    put(out, "regret", where="section 6.1.1, figures 2 and 3", claims=[])
    return out


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    def all(self, *names):
        return [attrs for tag, attrs in self.tags if tag in names]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def html(folder, **options):
    path = write_html(folder, **options)
    assert path == folder / "report.html"
    return path.read_text("utf-8")


# ---- the HTML page ----------------------------------------------------------------------------------------


def test_ids_are_unique_and_links_lead_somewhere(folder):
    page = Page(html(folder))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    inside = [a["href"] for a in page.all("a") if a["href"].startswith("#")]
    assert {link[1:] for link in inside} <= set(ids)
    for name in ("regret", "length", "appendix"):
        assert inside.count(f"#figure-{name}") == 4  # contents, gallery, grid and the permalink
    assert inside.count("#claim-length-2") == 3  # headlines, grid and the permalink
    assert {a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a} <= set(ids)
    beside = [a["href"] for a in page.all("a") if not a["href"].startswith(("#", "https:"))]
    assert len(beside) == 3 * 4
    assert all((folder / link).exists() for link in beside)


def test_nothing_is_loaded_and_only_its_own_script_is_run(folder):
    text = html(folder)
    page = Page(text)
    assert not page.all("iframe", "object", "embed", "base", "form", "foreignobject", "set", "animate")
    assert page.all("script") == page.all("style") == [{}]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on") or name == "style"]
    sources = [attrs["src"] for _, attrs in page.tags if "src" in attrs]
    assert sources[3:] == 3 * [f"data:image/svg+xml;base64,{b64encode(SVG.encode()).decode()}"]
    assert all(source.startswith("data:image/png;base64,") for source in sources[:3])
    assert [a["href"] for a in page.all("link")] == ["data:,"]
    assert [a["href"] for a in page.all("a") if ":" in a["href"]] == ["https://arxiv.org/abs/1402.0635"]
    assert "javascript" not in text
    assert "@import" not in text
    assert "url(" not in text
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"{tag}-src 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}';" in policy


def test_thumbnails_are_small_pictures_of_the_figures(folder):
    gallery = [a for a in Page(html(folder)).all("img") if a["src"].startswith("data:image/png")]
    for attrs, name in zip(gallery, ("regret", "length", "appendix"), strict=True):
        with Image.open(BytesIO(b64decode(attrs["src"].split(",")[1]))) as image:
            assert image.size == (int(attrs["width"]), int(attrs["height"])) == (440, 257)
            assert image.convert("RGB").getpixel((200, 100)) == (len(name), 0x9E, 0x73)


def details(text):
    """The claims of a page: their ids, and their words and all that is behind them."""
    return re.findall(r'<details class="claim" id="([\w-]+)".*?>\n(.*?)</details>', text, re.DOTALL)


def test_claims_are_there_once_and_escaped(folder):
    text = html(folder)
    page = Page(text)
    assert "<b>" not in text
    assert page.text.count(NASTY) == 2  # among the headlines and beside the figure
    assert page.text.count("at N = 100: 630 episodes [480 to 810]") == 2
    assert [name for name, _ in details(text)] == ["claim-length-1", "claim-length-2", "claim-appendix-1"]
    folded = [Page(claim.split("</summary>")[0] + "</summary>").text for _, claim in details(text)]
    ours = "RLSVI outperforms both bounds"
    assert folded == [f"reproduced {NASTY}", "not reproduced misprint another", f"inconclusive scale {ours}"]
    assert "No claim was checked" in page.text


def test_what_is_behind_a_claim(tmp_path):
    table = [["N", "median <b>"], ["10", "48"], ["100", "688 (531 to 822)"]]
    put(tmp_path, "one", claims=[claim(outcome="not reproduced", why="finding", kind="proof", table=table)])
    ((_, found),) = details(html(tmp_path))
    page = Page(found)
    assert not page.all("b")
    for words in (
        "Verdict not reproduced: what was computed",
        "Criterion the median is below both bounds",
        "Measured at N = 100: 630 episodes [480 to 810]",
        "In the paper section 6.1.1, a step of a proof",
        "N median <b> 10 48 100 688 (531 to 822)",
    ):
        assert words in page.text
    assert len(page.all("th")) == 2
    assert len(page.all("td")) == 4


def test_there_are_three_totals_and_never_one(tmp_path):
    lost = {"outcome": "inconclusive", "why": "scale"}
    put(tmp_path, "one", claims=[claim(), claim(), claim(**lost), claim(kind="proof")])
    put(tmp_path, "two", claims=[claim(), claim(kind="ours", **lost)])
    text = Page(html(tmp_path)).text
    for words in (
        "Claims about results reproduced 3 inconclusive 1 not reproduced 0",
        "Steps of proofs reproduced 1 inconclusive 0 not reproduced 0",
        "Our own claims reproduced 0 inconclusive 1 not reproduced 0",
    ):
        assert words in text
    assert "of 6 claims" not in text


def test_figures_come_first_then_headlines_then_the_grid_then_each_figure(folder):
    text = html(folder)
    order = re.findall(r'<section (?:class="figure" )?id="([\w-]+)"', text)
    assert order == [
        "figures",
        "headlines",
        "grid",
        "figure-regret",
        "figure-length",
        "figure-appendix",
    ]
    headlines = text[text.index('<section id="headlines"') : text.index('<section id="grid"')]
    assert re.findall(r'href="#([\w-]+)"', headlines) == ["claim-length-1", "claim-length-2"]


def test_the_grid_counts_verdicts_and_leads_to_the_first_of_each(folder):
    text = html(folder)
    rows = re.findall(r"<tr><td>(.*?)</tr>", text[text.index('<section id="grid"') :])[:3]
    cells = [re.findall(r'(?:href="#claim-([\w-]+)">)?([\d·]+)(?:</a>)?</td>', row)[-3:] for row in rows]
    assert cells == [
        [("", "·"), ("", "·"), ("", "·")],
        [("length-1", "1"), ("", "·"), ("length-2", "1")],
        [("", "·"), ("appendix-1", "1"), ("", "·")],
    ]


@pytest.mark.parametrize(
    ("where", "part"),
    [
        ("section 6.1.1, footnote", "Section 6.1"),
        ("section 3, appendix F.2", "Section 3"),
        ("appendix C.4, figure 13", "Appendix C"),
        ("Section 6 and its footnote", "Section 6"),
        ("appendix to section 5", "Section 5"),
        ("in a letter", ""),
    ],
)
def test_parts_of_the_paper(where, part):
    assert part_of_paper(where) == part


def test_claims_can_be_filtered_by_what_they_are(folder):
    text = html(folder)
    page = Page(text)
    claims = [a for a in page.all("details") if a.get("class") == "claim"]
    found = [[a[f"data-{key}"] for key in ("verdict", "kind", "section")] for a in claims]
    assert found == [
        ["reproduced", "experiment", "Section 6.1"],
        ["not reproduced", "proof", "Section 6.1"],
        ["inconclusive", "experiment", "Section 6.1"],
    ]
    options = {a["value"] for a in page.all("option")}
    assert {value for claim in found for value in claim} < options
    (filters,) = (a for a in page.all("div") if a.get("id") == "filters")
    assert "hidden" in filters  # until the script, which may not run, shows them


TEXTS = ("title", "where", "caption", "scale", "command")
CLAIM_TEXTS = ("words", "where", "criterion", "measured")
TABLES = ("settings", "versions", "machine")


@pytest.mark.parametrize("field", [*TEXTS, *TABLES, *(f"claim's {field}" for field in CLAIM_TEXTS)])
def test_every_text_is_escaped_wherever_it_stands(tmp_path, field):
    if field in TEXTS:
        put(tmp_path, "one", **{field: NASTY})
    elif field in TABLES:
        put(tmp_path, "one", **{field: {NASTY: [NASTY]}})
    else:
        put(tmp_path, "one", claims=[claim(**{field.split()[1]: NASTY})])
    page = Page(html(tmp_path))
    assert NASTY in page.text
    assert not page.all("b")


def test_it_says_how_a_figure_was_made(folder):
    text = Page(html(folder)).text
    for words in (
        "length 10, 15, 20 rho 0 .. 1 (1001 values) agent rlsvi",
        "2 min 3 s",
        "15 November 2026, 05:00 UTC",
        "Neoverse-N1, 2 cores, Linux",
        "rlsvi 0.1.0, numpy 2.4.0",
        "rlsvi paper length --scale paper",
        'pl.read_parquet("length.parquet")',
        "The figures were made on 15 November 2026: 2 at scale paper, 1 at scale quick. Scales other than",
        "Computing took 6 min 10 s for 285 jobs",
    ):
        assert words in text


def order_of(text):
    return re.findall(r'<section class="figure" id="figure-(\w+)"', text)


def test_figures_come_as_in_the_paper_or_as_asked(folder):
    assert order_of(html(folder)) == ["regret", "length", "appendix"]
    assert order_of(html(folder, order=["appendix", "unknown", "length"])) == ["appendix", "length", "regret"]


def test_the_page_is_for_people(folder):
    text = html(folder)
    page = Page(text)
    assert page.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")
    assert len(page.all("h1")) == len(page.all("main")) == 1
    names = ["The figure regret", "The figure length", "The figure appendix"]
    assert [a["alt"] for a in page.all("img")] == ["", "", "", *names]  # thumbnails stand beside their titles
    assert all(a.get("aria-hidden") == "true" for a in page.all("svg"))


def test_numbers_that_are_none_are_not_called_nan(tmp_path):
    nan, inf = float("nan"), float("inf")
    claims = [
        claim(measured="nan of NaN, between -inf and inf", value=nan, low=nan, high=inf),
        claim(measured="a half", low=None, high=0.5),
        claim(measured="all", low=2, high=inf),
    ]
    put(
        tmp_path, "one", claims=claims, seconds=nan, wall=None, settings={"a": [nan, inf, -inf], "nan": [nan] * 20}
    )
    text = Page(html(tmp_path)).text.split("What was found")[0]
    assert not re.search(r"\b(nan|inf|none of)\b", text, re.IGNORECASE)
    assert "undefined of undefined, between -∞ and ∞" in text
    assert "[0.5 or less]" in text
    assert "all [2 or more]" in text
    assert "a none, ∞, -∞" in text
    assert "not recorded" in text


@pytest.mark.parametrize(
    ("measured", "low", "high", "said"),
    [
        ("630 (480 to 1,810.5)", 480.0, 1810.5, True),
        ("630 (480 to 811)", 480.26, 810.9, True),  # rounded
        ("31% (22% to 41.3%)", 0.2214, 0.413, True),
        ("-2 (-3 to -1)", -3.0, -1.0, True),
        ("1e20 (2.1E+19 to inf)", 2.1e19, None, True),
        ("at least 480", 480.0, None, True),
        ("beyond 1e999", 480.0, 10**400, False),  # what no float holds
        ("630 (480 to 810)", 480.0, 812.0, False),
        ("0 of 1 seeds", 0.0, 0.6, False),  # 0.6 is 1, but too much is lost
        ("22 to 41", 0.22, 0.41, False),
    ],
)
def test_an_interval_is_not_said_twice(tmp_path, measured, low, high, said):
    put(tmp_path, "one", claims=[claim(measured=measured, low=low, high=high)])
    assert ("[" not in details(html(tmp_path))[0][1]) == said


# ---- words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([10], "10"),
        ([0.1, 1.0, 100000], "0.1, 1, 100,000"),
        (list(range(11)), "0 .. 10 (11 values)"),
        ([f"agent-{i}" for i in range(12)], "agent-0, agent-1, agent-2, .. (12 values)"),
        ([True, None], "yes, none"),
        ([], "none"),
        ({"a": [1, 2], "b": "c"}, "a: 1, 2; b: c"),
        ([10**400], f"{10**400:,}"),
    ],
)
def test_settings_in_words(value, words):
    assert setting(value) == words


def test_durations_in_words():
    found = [duration(s) for s in (0.04, 7.25, 59.4, 59.6, 70.1, 3599.6, 7500, 172800, 273600)]
    expected = ["0.04 s", "7.2 s", "59 s", "1 min", "1 min 10 s", "1 h", "2 h 5 min", "2 days", "3 days 4 h"]
    assert found == expected


def test_numbers_in_words():
    found = [number(x) for x in (196020.0, 630.0, 0.31415926, 6e29, -0.5)]
    assert found == ["196,020", "630", "0.3142", "6e+29", "-0.5"]


def test_tidy_leaves_words_alone():
    assert tidy("finance of  Nancy,\n infinity, nan-like") == "finance of Nancy, infinity, nan-like"


# ---- drawings ---------------------------------------------------------------------------------------------


DAMAGED = {
    "other": b"<html/>",
    "empty": b"",
    "cut": picture("one")[:90],
    "torn": picture("one").replace(b"IDAT", b"IDOT"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_damaged_drawing_is_named(tmp_path, kind, content):
    put(tmp_path, "one")
    (tmp_path / f"one.{kind}").write_bytes(content)
    remedy = f"it is no {kind.upper()}: .*`rlsvi paper one --scale paper`"
    with pytest.raises(ValueError, match=rf"one\.{kind} cannot be drawn, {remedy}"):
        write_html(tmp_path)
    assert not (tmp_path / "report.html").exists()


# ---- light and dark ---------------------------------------------------------------------------------------


def themes():
    style = style_of("rlsvi_paper.report")
    light, dark, _in_print = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert style.index(dark) > style.index("@media screen and (prefers-color-scheme: dark)") > style.index(light)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part)) for part in (light, dark)]


def test_light_and_dark_have_the_same_variables_and_every_one_used_is_there(folder):
    light, dark = themes()
    assert len(light) >= 10
    assert set(light) == set(dark)
    text = html(folder)
    assert set(re.findall(r"var\(--([\w-]+)\)", text)) <= set(re.findall(r"--([\w-]+):", text))


@pytest.mark.parametrize("theme", themes(), ids=["light", "dark"])
def test_text_has_the_contrast_that_people_need(theme):
    """WCAG's level AA: 4.5 to 1 for text."""
    for paper in ("paper", "raised"):
        for ink in ("ink", "muted", "link", "good", "unsure", "bad"):
            assert contrast(theme[ink], theme[paper]) >= 4.5, (ink, paper)
    for outcome in ("good", "unsure", "bad"):
        assert contrast(theme[outcome], theme[f"{outcome}-paper"]) >= 4.5


def test_a_picture_is_shown_in_the_form_that_takes_less_room(folder):
    dots = "".join(f'<use x="{i}" y="{i}"/>' for i in range(500))
    (folder / "length.svg").write_text(SVG.replace("</svg>", f"{dots}</svg>"))
    images = [a["src"].partition(";")[0] for a in Page(html(folder)).all("img") if a["alt"]]
    assert sorted(images) == ["data:image/png", "data:image/svg+xml", "data:image/svg+xml"]


# ---- Markdown ---------------------------------------------------------------------------------------------


def test_markdown_links_to_its_images(folder, tmp_path):
    page = write_markdown(folder, tmp_path / "docs" / "results.md", tmp_path / "docs" / "images of it")
    text = page.read_text("utf-8")
    links = re.findall(r"!\[(.*?)\]\((.*?)\)", text)
    assert [name for name, _ in links] == ["The figure regret", "The figure length", "The figure appendix"]
    for name, (_, link) in zip(["regret", "length", "appendix"], links, strict=True):
        assert link == f"images%20of%20it/{name}.png"
        assert (page.parent / link.replace("%20", " ")).read_bytes() == picture(name)


def test_markdown_may_lie_elsewhere_than_its_images(folder, tmp_path):
    page = write_markdown(folder, tmp_path / "a" / "b.md", tmp_path / "c", order=["length"])
    assert re.search(r"!\[.*?\]\((.*?)\)", page.read_text("utf-8"))[1] == "../c/length.png"


def test_markdown_has_totals_then_each_figure(folder, tmp_path):
    text = write_markdown(folder, tmp_path / "results.md", tmp_path).read_text("utf-8")
    place = 0
    for part in (
        "- Claims about results: 1 reproduced, 1 inconclusive\n- Steps of proofs: 1 not reproduced\n",
        f"`rlsvi report {folder.parent.name}/out` writes",
        "## The figure regret",
        "No claim was checked",
        "## The figure length",
        "*section 6.1.1, figure 4.* Episodes until ten rewards. (`rlsvi paper length --scale paper`, 2 min 3 s)\n",
        "| verdict | claim | measured |\n",
        r"| ✓ | a claim with \<b\>\&",
        "| **✗ not reproduced**, misprint | another | at N = 100: 630 episodes |\n",
        "| **? inconclusive**, scale | RLSVI outperforms both bounds (section 6.1.1) | at N = 100: 630 episodes "
        r"\[480 to 810\] |",
    ):
        place = text.index(part, place)


def test_markdown_has_all_readings_as_signs_and_the_numbers_of_headlines(tmp_path):
    readings = [["as printed", "not reproduced"], ["of *us*", "reproduced"], ["later", "not run"]]
    many = [["as printed", "not reproduced"], *([name, "inconclusive"] for name in "abcde")]
    claims = [
        claim(words="it learns", headline=True, readings=readings, table=[["folded"], ["as well"]]),
        claim(words="it varies", headline=True, readings=many, table=[["way", "rows"], ["b", "3 | 4"]]),
        claim(words="it is small", kind="ours"),
        claim(words="it lasts", readings=[readings[0], ["another", "inconclusive"]], table=[["folded"], ["no"]]),
        claim(words="it wins", readings=readings),
    ]
    put(tmp_path / "out", "chain-length", claims=claims, command="rlsvi paper")
    text = write_markdown(tmp_path / "out", tmp_path / "results.md", tmp_path).read_text("utf-8")
    place = 0
    for part in (
        "| verdict | claim | measured | other readings |",
        r"| ✓ (2 of 2) | it learns | at N = 100: 630 episodes \[480 to 810\] | ✓ – |",
        r"| ✓ (1 of 6) | it varies | at N = 100: 630 episodes \[480 to 810\] | a: ?; b: ?; c: ?; d: ?; e: ? |",
        r"| ✓ | it is small (ours) | at N = 100: 630 episodes \[480 to 810\] |  |",
        r"| ✓ (1 of 2) | it lasts | at N = 100: 630 episodes \[480 to 810\] | another: ? |",
        "| ✓ (2 of 2) | it wins ",
        r"The reading that decides: as printed. Others: of \*us\*; later.",
        "it varies:\n\n| way | rows |",
        r"| b | 3 \| 4 |",
    ):
        place = text.index(part, place)
    assert "(`rlsvi paper chain-length`, " in text
    assert "folded" not in text


@pytest.mark.parametrize("readings", [["as printed"], [["as printed"]], [[1, "reproduced"]], [["x", None]]])
def test_readings_that_are_none_are_refused(tmp_path, readings):
    put(tmp_path, "one", claims=[claim(readings=readings)])
    with pytest.raises(ValueError, match=r"one\.json cannot be used, .*readings"):
        html(tmp_path)


def test_markdown_names_a_missing_picture(folder, tmp_path):
    (folder / "length.png").unlink()
    with pytest.raises(ValueError, match=r"length\.png is missing: .*`rlsvi paper length --scale paper`"):
        write_markdown(folder, tmp_path / "docs" / "results.md", tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


# ---- files ------------------------------------------------------------------------------------------------


def test_a_folder_without_figures_says_what_to_do(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=rf"no figure in {re.escape(str(folder))}: run `rlsvi paper --out"):
            write_html(folder)


def test_a_missing_drawing_is_named(folder):
    (folder / "length.svg").unlink()
    with pytest.raises(ValueError, match=r"length\.svg is missing: .*`rlsvi paper length --scale paper`"):
        write_html(folder)


def without(key):
    return {k: v for k, v in figure("one").items() if k != key}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "Expecting"),
        ("[]", "does not say its format"),
        ("\udcff", "codec can't decode"),
        (figure("one", format=1), "has format 1, and this program reads format 2"),
        (figure("two"), "is of a figure named 'two'"),
        (without("title"), "has no 'title'"),
        (figure("one", title=3), "its 'title' is of the wrong kind"),
        (figure("one", settings=[]), "its 'settings' is of the wrong kind"),
        (figure("one", jobs="many"), "its 'jobs' is no number but 'many'"),
        (figure("one", made="yesterday"), "Invalid isoformat"),
        (figure("one", claims=["a"]), "a claim of it is not an object"),
        (figure("one", claims=[{}]), "has no 'words'"),
        (figure("one", claims=[claim(outcome="proved")]), "has 'outcome' 'proved', which is none of"),
        (figure("one", claims=[claim(kind="rumour")]), "has 'kind' 'rumour', which is none of"),
        (figure("one", claims=[claim(why="scale")]), "has 'why' 'scale', which is none of"),
        (figure("one", claims=[claim(outcome="inconclusive")]), "has 'why' '', which is none of"),
        (figure("one", claims=[claim(headline="yes")]), "its 'headline' is of the wrong kind"),
        (figure("one", claims=[claim(table=["a"])]), "'table' of a claim of it has a row that is no list"),
        (figure("one", claims=[claim(table=[["a", "b"], ["1"]])]), "'table' of a claim of it has a row"),
        (figure("one", claims=[claim(table=[["a"], [1]])]), "'table' of a claim of it has a row"),
    ],
)
def test_a_damaged_file_is_named_with_its_remedy(tmp_path, content, words):
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "one.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=words) as caught:
        write_html(tmp_path)
    assert str(tmp_path / "one.json") in str(caught.value)
    assert f"`rlsvi paper MODULE:NAME --out {tmp_path}`" in str(caught.value)


def test_a_name_that_could_do_harm_in_a_link_is_refused(tmp_path):
    put(tmp_path, 'a"b')
    with pytest.raises(ValueError, match="is of a figure named"):
        write_html(tmp_path)


def not_synced(descriptor):
    raise OSError("no space left")


def not_moved(source, target):
    raise OSError("no space left")


@pytest.mark.parametrize("broken", [(os, "fsync", not_synced), (os, "replace", not_moved)])
def test_writing_is_all_or_nothing(folder, monkeypatch, broken):
    (folder / "report.html").write_text("the old page")
    before = set(os.listdir(folder))
    monkeypatch.setattr(*broken)
    with pytest.raises(OSError, match="no space left"):
        write_html(folder)
    assert (folder / "report.html").read_text() == "the old page"
    assert set(os.listdir(folder)) == before
