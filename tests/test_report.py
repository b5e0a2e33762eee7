"""The report: one HTML page that loads and runs nothing, and the same as Markdown."""

import json
import os
import re
from base64 import b64encode
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from rlsvi.report import write_html, write_markdown
from rlsvi.report.words import duration, number, setting, tidy

NASTY = """a claim with <b>&"quotes"</b>, | _stars_ and `ticks`"""
SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 518 302" onload="alert(1)"><script>alert(1)</script>
<image href="https://example.org/x.png"/><path d="M 2 2" style="fill: url(https://example.org/x)"/></svg>"""


def claim(**changes):
    usual = {
        "words": "RLSVI outperforms both bounds",
        "where": "section 6.1.1",
        "criterion": "the median is below both bounds",
        "outcome": "reproduced",
        "measured": "at N = 100: 630 episodes",
        "value": 630.0,
        "low": 480.0,
        "high": 810.0,
    }
    return usual | changes


def figure(name, **changes):
    usual = {
        "format": 1,
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


def put(folder, name, svg=SVG, **changes):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(figure(name, **changes)))
    (folder / f"{name}.svg").write_text(svg)
    (folder / f"{name}.png").write_bytes(b"picture of " + name.encode())
    (folder / f"{name}.parquet").write_bytes(b"data")


@pytest.fixture
def folder(tmp_path):
    """Three figures, named so that the order of the paper is not that of the alphabet."""
    out = tmp_path / "out"
    put(out, "appendix", where="appendix C, figure 11", scale="quick", claims=[claim(outcome="inconclusive")])
    claims = [
        claim(words=NASTY),
        claim(words="another", outcome="not reproduced", value=None, low=None, high=None),
    ]
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
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
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
    assert len([link for link in inside if link.startswith("#figure-")]) == 3 + 3  # contents and verdicts
    assert {link[1:] for link in inside} <= set(ids)
    assert {a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a} <= set(ids)
    beside = [a["href"] for a in page.all("a") if not a["href"].startswith(("#", "https:"))]
    assert len(beside) == 3 * 4
    assert all((folder / link).exists() for link in beside)


def test_nothing_is_loaded_or_run(folder):
    text = html(folder)
    page = Page(text)
    assert not page.all("script", "iframe", "object", "embed", "base", "form", "foreignobject", "set", "animate")
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    sources = [attrs["src"] for _, attrs in page.tags if "src" in attrs]
    assert sources == 3 * [f"data:image/svg+xml;base64,{b64encode(SVG.encode()).decode()}"]
    assert [a["href"] for a in page.all("link")] == ["data:,"]
    assert [a["href"] for a in page.all("a") if ":" in a["href"]] == ["https://arxiv.org/abs/1402.0635"]
    assert "javascript" not in text
    assert "@import" not in text
    assert "url(" not in text
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy


def test_all_claims_are_there_and_escaped(folder):
    text = html(folder)
    page = Page(text)
    assert "<b>" not in text
    assert page.text.count(NASTY) == 2  # in the table and beside the figure
    assert page.text.count("at N = 100: 630 episodes [480 to 810]") == 2 * 2
    assert "1 reproduced, 1 inconclusive, 1 not reproduced of 3 claims" in page.text
    badges = [a["class"] for a in page.all("span") if a.get("class", "").startswith("badge")]
    assert sorted(badges) == sorted(2 * ["badge reproduced", "badge inconclusive", "badge not-reproduced"])
    assert "No claim was checked" in page.text


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
        "3 figures, 285 jobs, 6 min 10 s of computing in total",
        "1 of 3 figures, at scale quick",
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
    assert [a["alt"] for a in page.all("img")] == ["The figure regret", "The figure length", "The figure appendix"]
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
    text = Page(html(tmp_path)).text
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
    assert ("[" not in Page(html(tmp_path)).text) == said


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


def test_a_damaged_drawing_is_named(tmp_path):
    put(tmp_path, "one", svg="<html/>")
    with pytest.raises(ValueError, match=r"one\.svg cannot be drawn, it is no SVG: .*`rlsvi paper one --out"):
        write_html(tmp_path)
    assert not (tmp_path / "report.html").exists()


# ---- light and dark ---------------------------------------------------------------------------------------


def themes():
    style = files("rlsvi.report").joinpath("style.css").read_text("utf-8")
    light, dark, _in_print = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert style.index(dark) > style.index("@media screen and (prefers-color-scheme: dark)") > style.index(light)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part)) for part in (light, dark)]


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


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


# ---- Markdown ---------------------------------------------------------------------------------------------


def test_markdown_links_to_its_images(folder, tmp_path):
    page = write_markdown(folder, tmp_path / "docs" / "results.md", tmp_path / "docs" / "images of it")
    text = page.read_text("utf-8")
    links = re.findall(r"!\[(.*?)\]\((.*?)\)", text)
    assert [name for name, _ in links] == ["The figure regret", "The figure length", "The figure appendix"]
    for name, (_, link) in zip(["regret", "length", "appendix"], links, strict=True):
        assert link == f"images%20of%20it/{name}.png"
        assert (page.parent / link.replace("%20", " ")).read_bytes() == b"picture of " + name.encode()


def test_markdown_may_lie_elsewhere_than_its_images(folder, tmp_path):
    page = write_markdown(folder, tmp_path / "a" / "b.md", tmp_path / "c", order=["length"])
    assert re.search(r"!\[.*?\]\((.*?)\)", page.read_text("utf-8"))[1] == "../c/length.png"


def test_markdown_has_verdicts_first_then_each_figure(folder, tmp_path):
    text = write_markdown(folder, tmp_path / "results.md", tmp_path).read_text("utf-8")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 3
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in table)
    assert "| ✗ not reproduced |" in table[3]
    assert r"a claim with \<b\>\&" in table[2]
    assert "630 episodes (480 to 810)" in table[2]
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= set(re.findall(r'<a id="([\w-]+)"></a>', text))
    place = 0
    for part in (
        "1 reproduced, 1 inconclusive, 1 not reproduced of 3 claims",
        "| claim | in the paper | verdict | measured |",
        "## The figure regret",
        "No claim was checked",
        "## The figure length",
        "*Criterion:* the median is below",
        "rho: 0 .. 1 (1001 values)",
        "2 min 3 s",
        "\n\n    rlsvi paper length --scale paper\n",
    ):
        place = text.index(part, place)


def test_markdown_names_a_missing_picture(folder, tmp_path):
    (folder / "length.png").unlink()
    with pytest.raises(ValueError, match=r"length\.png is missing: .*`rlsvi paper length --out"):
        write_markdown(folder, tmp_path / "docs" / "results.md", tmp_path / "docs")
    assert not (tmp_path / "docs").exists()


# ---- files ------------------------------------------------------------------------------------------------


def test_a_folder_without_figures_says_what_to_do(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=rf"no figure in {re.escape(str(folder))}: run `rlsvi paper --out"):
            write_html(folder)


def test_a_missing_drawing_is_named(folder):
    (folder / "length.svg").unlink()
    with pytest.raises(ValueError, match=r"length\.svg is missing: .*`rlsvi paper length --out"):
        write_html(folder)


def without(key):
    return {k: v for k, v in figure("one").items() if k != key}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "Expecting"),
        ("[]", "does not say its format"),
        ("\udcff", "codec can't decode"),
        (figure("one", format=2), "has format 2, and this program reads format 1"),
        (figure("two"), "is of a figure named 'two'"),
        (without("title"), "has no 'title'"),
        (figure("one", title=3), "its 'title' is of the wrong kind"),
        (figure("one", settings=[]), "its 'settings' is of the wrong kind"),
        (figure("one", jobs="many"), "its 'jobs' is no number but 'many'"),
        (figure("one", made="yesterday"), "Invalid isoformat"),
        (figure("one", claims=["a"]), "a claim of it is not an object"),
        (figure("one", claims=[{}]), "has no 'words'"),
        (figure("one", claims=[claim(outcome="proved")]), "has the outcome 'proved'"),
    ],
)
def test_a_damaged_file_is_named_with_its_remedy(tmp_path, content, words):
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "one.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=words) as caught:
        write_html(tmp_path)
    assert str(tmp_path / "one.json") in str(caught.value)
    assert f"`rlsvi paper one --out {tmp_path}`" in str(caught.value)


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
