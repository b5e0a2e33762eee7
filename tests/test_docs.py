"""The documentation: every page can be reached, every public name is described, and the site can be built."""

import importlib
import json
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from urllib.parse import quote

import pytest

import rlsvi
from pages import HOUSE
from test_report_browser import BROWSER, dumped

DOCS = HOUSE / "docs"
PAGES = sorted(path.relative_to(HOUSE).as_posix() for path in DOCS.rglob("*.md"))
USE, REPRODUCTION = (HOUSE / "mkdocs.yml").read_text().partition("\nnav:\n")[2].split("\n  - Reproduction:")


def entries(navigation):
    """The pages that a part of the navigation lists."""
    return sorted(
        f"docs/{page}" for page in re.findall(r"(?:- |: )([\w/-]+\.md)$", navigation, flags=re.MULTILINE)
    )


RESEARCH = {*entries(REPRODUCTION)}
_spec = spec_from_file_location("hooks", DOCS / "_mkdocs" / "hooks.py")
hooks = module_from_spec(_spec)
_spec.loader.exec_module(hooks)
REFERENCE = "".join(
    hooks.with_all_exports(path.read_text(), path.relative_to(DOCS).as_posix())
    for path in (DOCS / "reference").glob("*.md")
)
ENTRIES = re.findall(r"^::: (\S+)$", REFERENCE, flags=re.MULTILINE)
# A function with the name of its module, such as rlsvi.bases.default, is found as rlsvi.bases.default.default.
DESCRIBED = {*ENTRIES, *(re.sub(r"\.(\w+)\.\1$", r".\1", entry) for entry in ENTRIES)}
MODULES = ("bases", "callbacks", "envs", "mdp", "paper", "problems", "shop", "simulate", "tetris", "theory")


def public_names(module):
    """What a module offers: its `__all__`, or what it defines or imports from its own package."""
    found = importlib.import_module(f"rlsvi.{module}")
    if names := getattr(found, "__all__", None):
        return names
    return [
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "").startswith((f"rlsvi.{module}", f"rlsvi.paper.{module}."))
    ]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_a_module_is_described(module):
    names = public_names(module)
    assert names
    missing = [name for name in names if not {f"rlsvi.{module}.{name}", f"rlsvi.{name}"} & DESCRIBED]
    assert not missing, f"docs/reference lacks {missing} of rlsvi.{module}"


def test_every_public_name_of_the_package_is_described():
    missing = [name for name in rlsvi.__all__ if name not in MODULES and f"rlsvi.{name}" not in DESCRIBED]
    assert not missing


def test_what_is_exported_and_has_no_place_is_described_at_the_end():
    page = (DOCS / "reference" / "agents.md").read_text()
    without = page.replace("::: rlsvi.PSRL\n", "")
    assert hooks.with_all_exports(without, "reference/agents.md") == without + "\n## More\n\n::: rlsvi.PSRL\n"


def described(name):
    """What an entry of the reference describes."""
    parts = name.split(".")
    for last in range(len(parts) - 1, 0, -1):
        if find_spec(".".join(parts[:last])):
            break
    value = importlib.import_module(".".join(parts[:last]))
    for part in parts[last:]:
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", ENTRIES)
def test_what_is_described_exists(name):
    value = described(name)
    shown = re.search(
        rf"^::: {re.escape(name)}\n    options:\n      members: \[(.*)\]$", REFERENCE, flags=re.MULTILINE
    )
    for member in shown[1].split(", ") if shown else ():
        assert hasattr(value, member), f"{name} has no {member}"


def test_every_page_is_in_the_navigation_and_every_entry_exists():
    assert sorted(entries(USE) + entries(REPRODUCTION)) == PAGES


def anchors(page):
    """The anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    written = re.findall(r'<a (?:id|name)="([^"]+)"', text)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", it).strip().lower()) for it in headings} | set(written)


@pytest.mark.parametrize("page", [*PAGES, "README.md", "CHANGELOG.md"])
def test_relative_links_resolve(page):
    text = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", (HOUSE / page).read_text(), flags=re.S | re.M))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (HOUSE / page).parent / path if path else HOUSE / page
        assert target.exists(), f"{page} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page} links to {link}, which has no such heading"


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ("docs/results.md", "docs/findings.md")])
def test_files_and_what_they_are_said_to_hold_exist(page):
    text = (HOUSE / page).read_text()
    for file, after in re.findall(r"`([\w/]+/\w+\.py)`((?::? (?:`\w[\w.]*`,? ?)+)?)", text):
        found = next((root / file for root in (HOUSE / "src" / "rlsvi", HOUSE) if (root / file).exists()), None)
        assert found, f"{page} names {file}"
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", after if after.startswith(":") else ""):
            assert re.search(rf"\b{name}\b", found.read_text()), f"{page} says that {file} has {name}"


def test_keywords_belong_to_pages_that_the_search_finds():
    assert {f"docs/{page}" for page in hooks.KEYWORDS} <= {*PAGES} - RESEARCH


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as `make docs` builds it."""
    if any(find_spec(name) is None for name in ("material", "mkdocstrings", "latex2mathml")):
        pytest.skip("the site is built where its tools are installed: make docs")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=HOUSE, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_needs_no_network(site):
    html = [path.read_text() for path in site.rglob("*.html")]
    assert len(html) >= len(PAGES)
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]*"https?:[^>]*>', "".join(html))
    assert any("<math" in text for text in html)
    assert not [text for text in html if "$$" in text]


@pytest.mark.slow
def test_the_search_knows_all_pages_but_those_of_research(site):
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    found = {entry["location"].partition("#")[0].replace(".html", ".md") for entry in index}
    assert {f"docs/{page}" for page in found} == {*PAGES} - RESEARCH


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser: neither Chromium nor Chrome is installed")
@pytest.mark.parametrize(
    ("words", "page"),
    {
        "own environment": "tutorials/own-environment",
        "save": "tutorials/first-agent",
        "continuous actions": "practice",
        "seed": "tutorials/first-agent",
        "callback": "how-to/callbacks",
        "GPU": "how-to/graphics-card",
        "log": "how-to/logged-data",
        "recommend": "shop",
        "custom features": "tutorials/own-basis",
        "why is it slow": "quick-start",
    }.items(),
)
def test_what_people_look_for_is_found_first(words, page, site, tmp_path):
    """The search runs in the browser, on pages opened from disk."""
    document = dumped(f"{(site / 'index.html').as_uri()}?q={quote(words)}", tmp_path)
    hits = re.findall(r'href="([^"?]+)\?h=[^"]*" class="md-search-result__link"', document)
    if not hits and "Type to start searching" in document:
        pytest.skip(f"{BROWSER} cannot run the search of a page in {site}")
    assert hits[0] == (site / f"{page}.html").as_uri()
