"""The documentation: every page can be reached, every public name is described, and the site can be built."""

import importlib
import json
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import pytest

import rlsvi
from browser import BROWSER, WINDOW, dumped, seen
from pages import HOUSE

DOCS = HOUSE / "docs"
PAGES = sorted(path.relative_to(HOUSE).as_posix() for path in DOCS.rglob("*.md"))
NOTEBOOKS = [f"docs/examples/{path.stem}.md" for path in (HOUSE / "examples").glob("*.ipynb")]  # while it is built
USE, REPRODUCTION = (HOUSE / "mkdocs.yml").read_text().partition("\nnav:\n")[2].split("\n  - Reproduction:")


def entries(navigation):
    """The pages that a part of the navigation lists."""
    return sorted(
        f"docs/{page}" for page in re.findall(r"(?:- |: )([\w/-]+\.md)$", navigation, flags=re.MULTILINE)
    )


RESEARCH = {page for page in entries(REPRODUCTION) if "/reference/" not in page}
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
MODULES = (
    *(f"rlsvi.{name}" for name in ("bases", "callbacks", "envs", "mdp", "problems", "simulate")),
    *("rlsvi_paper.agents", "rlsvi_paper.tetris", "rlsvi_shop"),
)


def public_names(module):
    """What a module offers: its `__all__`, or what it defines or imports from its own package."""
    found = importlib.import_module(module)
    if names := getattr(found, "__all__", None):
        return names
    return [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(module)
    ]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_a_module_is_described(module):
    names = public_names(module)
    assert names
    missing = [name for name in names if not {f"{module}.{name}", f"rlsvi.{name}"} & DESCRIBED]
    assert not missing, f"docs/reference lacks {missing} of {module}"


def test_every_public_name_of_the_package_is_described():
    missing = [name for name in rlsvi.__all__ if not {name, f"rlsvi.{name}"} & {*MODULES, *DESCRIBED}]
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
    assert sorted(entries(USE) + entries(REPRODUCTION)) == sorted(PAGES + NOTEBOOKS)


def anchors(page):
    """The anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    written = re.findall(r'<a (?:id|name)="([^"]+)"', text)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", it).strip().lower()) for it in headings} | set(written)


@pytest.mark.parametrize(
    "page", [*PAGES, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "paper/README.md", "shop/README.md"]
)
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
        roots = (HOUSE / "src" / "rlsvi", HOUSE / "paper" / "src", HOUSE)
        found = next((root / file for root in roots if (root / file).exists()), None)
        assert found, f"{page} names {file}"
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", after if after.startswith(":") else ""):
            assert re.search(rf"\b{name}\b", found.read_text()), f"{page} says that {file} has {name}"


def test_a_notebook_is_a_page_with_its_outputs_and_its_file():
    shown = [
        {"output_type": "stream", "text": ["a\n", "b\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["x"], "text/html": ["<table></table>"]}},
        {"output_type": "display_data", "data": {"text/plain": ["Figure"], "image/png": "AAAA"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Words."]},
        {"cell_type": "code", "source": ["x = 1"], "outputs": shown},
    ]
    page = hooks.notebook_page({"cells": cells}, "mine.ipynb")
    assert page.startswith("# Title\n\n[Download this notebook](mine.ipynb){ download }\n\nWords.")
    order = ["```python\nx = 1\n```", "```text\na\nb\n```", "<table></table>", "data:image/png;base64,AAAA"]
    assert [page.index(part) for part in order] == sorted(page.index(part) for part in order)


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
    assert {f"docs/{page}" for page in found} == {*PAGES, *NOTEBOOKS} - RESEARCH


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((HOUSE / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_can_be_read_and_downloaded(path, site):
    page = (site / "examples" / f"{path.stem}.html").read_text()
    outputs = [it for cell in json.loads(path.read_text())["cells"] for it in cell.get("outputs", [])]
    assert page.count("data:image/png") == sum("image/png" in it.get("data", {}) for it in outputs) > 0
    assert page.count("<table") == sum("text/html" in it.get("data", {}) for it in outputs) > 0
    assert f'href="{path.name}"' in page
    assert (site / "examples" / path.name).read_bytes() == path.read_bytes()
    assert f'href="examples/{path.stem}.html"' in (site / "index.html").read_text()


@pytest.mark.slow
def test_the_page_for_missing_pages_has_a_style_in_any_folder(site):
    """A host may keep the site in a folder, and shows this page for addresses in folders of the site."""
    page = (site / "404.html").read_text()
    assert "<style>" in page
    addresses = re.findall(r'(?:href|src)="([^"]+)"', page)
    links = [address for address in addresses if not address.startswith("$")]
    assert links
    assert all((site / link).is_file() for link in links)


in_browser = pytest.mark.skipif(BROWSER is None, reason="no browser: neither Chromium nor Chrome is installed")


@pytest.fixture(scope="module")
def opened(site, tmp_path_factory):
    """The site, in a folder whose files the browser can open."""
    if "</article>" not in dumped((site / "index.html").as_uri(), tmp_path_factory.mktemp("browser")):
        pytest.skip(f"{BROWSER} cannot open a file in {site}")
    return site


@pytest.mark.slow
@in_browser
def test_the_page_for_missing_pages_leads_home(opened, tmp_path):
    page = opened / "how-to" / "missing.html"
    page.write_bytes((opened / "404.html").read_bytes())
    home = "(d) => d.querySelector('a').href"
    assert seen(page, tmp_path, WINDOW, [home]) == [(opened / "index.html").as_uri()]
    page.unlink()


@pytest.mark.slow
@in_browser
@pytest.mark.parametrize("width", [1280, 1440])
@pytest.mark.parametrize("page", ["gallery/compare-with-ppo", "gallery/own-queue", "examples/recommendations"])
def test_the_longest_programs_are_not_clipped(page, width, opened, tmp_path):
    hidden = "(d) => [...d.querySelectorAll('pre > code')].map((it) => it.scrollWidth - it.clientWidth)"
    (found,) = seen(opened / f"{page}.html", tmp_path, (width, 900), [hidden])
    assert found
    assert max(found) == 0


@pytest.mark.slow
@in_browser
def test_a_phone_shows_the_results_of_the_table_of_practice(opened, tmp_path):
    edges = """(d) => [...d.querySelectorAll('table')]
      .filter((it) => it.textContent.includes('MountainCar-v0'))
      .map((it) => [...it.rows[0].cells].map((cell) => [cell.textContent, cell.getBoundingClientRect().right]))"""
    (tables,) = seen(opened / "practice.html", tmp_path, (390, 844), [edges])
    shown = [{name for name, right in columns if right <= 390} for columns in tables]
    assert {"median", "worst seed", "aim"} <= shown[0]
    assert {"rlsvi", "PPO, tuned", "DQN, tuned", "SAC, tuned"} <= shown[1]


SEARCHES = {  # what people look for, and the page that answers
    "own environment": "tutorials/own-environment",
    "save": "quick-start",
    "continuous actions": "practice",
    "seed": "tutorials/first-agent",
    "callback": "how-to/callbacks",
    "GPU": "how-to/graphics-card",
    "log": "how-to/logged-data",
    "recommend": "shop",
    "custom features": "tutorials/own-basis",
    "why is it slow": "quick-start",
    "hyperparameter": "how-to/wandb-and-optuna",
    "tuning": "how-to/wandb-and-optuna",
    "logging": "how-to/callbacks",
    "parallel": "studies",
    "reproducibility": "studies",
    "Atari": "how-to/coming-from",
    "video": "how-to/coming-from",
    "VecEnv": "how-to/coming-from",
    "W&B": "how-to/wandb-and-optuna",
    "vectorized environments": "interoperability",
    "checkpoint": "how-to/callbacks",
    "normalize": "how-to/coming-from",
}


@pytest.fixture(scope="module")
def first_hits(opened, tmp_path_factory):
    """The first page that the search of the site finds for each of SEARCHES, in a page opened from disk."""
    ask = """async (d, w) => {
      const query = d.querySelector("[data-md-component=search-query]"), found = {};
      const pause = (wait) => new Promise((done) => setTimeout(done, wait));
      await pause(1000);
      for (const words of WORDS) {
        query.value = words;
        query.dispatchEvent(new w.KeyboardEvent("keyup"));
        await pause(100);
        found[words] = d.querySelector(".md-search-result__link")?.href;
      }
      return found;
    }""".replace("WORDS", json.dumps(list(SEARCHES)))
    (found,) = seen(opened / "index.html", tmp_path_factory.mktemp("browser"), WINDOW, [ask], "?q=rlsvi")
    return found


@pytest.mark.slow
@in_browser
@pytest.mark.parametrize(("words", "page"), SEARCHES.items())
def test_what_people_look_for_is_found_first(words, page, first_hits, opened):
    assert words in first_hits, "nothing is found"
    assert first_hits[words].partition("?")[0] == (opened / f"{page}.html").as_uri()
