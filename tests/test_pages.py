"""Every block of code of the documentation runs as it is printed, in the order of its page, in an empty folder.

Only the packages that `pip install .` installs can be imported, and what else the page says to install.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pages import HOUSE, blocks
from rlsvi.core.card import NoCard, cuda
from test_gpu import simulated

NOT_RUN = {  # pages of measurements, whose commands take hours and fetch data
    "docs/behaviour-suite.md": "the suite takes most of a day, and needs bsuite",
    "docs/shop-quality.md": "the benchmark takes hours, and needs data from elsewhere",
}
ELSEWHERE = ("docs/how-to/shop-day.md",)  # in test_shop_day.py, with a server of PostgreSQL
PAGES = [
    page
    for path in [HOUSE / "README.md", *sorted((HOUSE / "docs").rglob("*.md"))]
    if "\n```" in path.read_text() and (page := path.relative_to(HOUSE).as_posix()) not in (*NOT_RUN, *ELSEWHERE)
]
QUICK = ("docs/how-to/own-agent.md",)  # a few seconds
BEFORE = {  # what a page relies on, and says so
    "docs/shop-operate.md": """
from rlsvi_shop import Recommender
from pathlib import Path
Path("shop.toml").write_text('database = "sqlite:///operated.db"\\nslots = 2\\n')
shop = Recommender("shop.toml")
shop.add("tea")
shop.feedback("visit 1", shop.recommend("visit 1"), 1.0)
shop.stop()
""",
}
AFTER = {  # what a page promises, beyond that its code runs
    "README.md": """
assert Path("cartpole.rlsvi").exists() and Path("regret.png").stat().st_size > 10_000
assert Path("out/paper/report.html").exists()
""",
    "docs/quick-start.md": """
assert returns[0] >= 200 and Path("trained.rlsvi").exists() and Path("regret.png").stat().st_size > 10_000
""",
    "docs/tutorials/first-agent.md": """
assert agent.episodes == 31 and returns[2] >= 200 and Path("cartpole.gif").exists()
""",
    "docs/tutorials/own-environment.md": """
assert len(agent.returns) == 20 and env.action_space.n == 9
assert rlsvi.evaluate(agent, gym.make("my_envs:Heating-v0"), 50).mean > -70  # by hand -42, always off -500
""",
    "docs/tutorials/own-basis.md": """
again = [rlsvi.agent_for(env, basis=basis, seed=seed).learn(env, episodes=20) for seed in (0, 2, 3)]
assert sorted(rlsvi.evaluate(agent, env, episodes=5).mean for agent in again)[1] >= 200
""",
    "docs/tutorials/last-layer.md": """
assert log["episode"].n_unique() == 20 + 3 * 50
x = np.array([0.3, -0.5])
assert np.allclose(last_layer(net)(x)[1:] @ net.coefs_[-1] + net.intercepts_[-1], net.predict(x[None])[0])
assert caught(raw) < 0.4  # random play catches a fifth
assert caught(deep) > 0.7  # with seven seeds, at least 0.92
""",
    "docs/tutorials/when-not.md": """
assert abs(blind_mean - 0.5) < 5 * 0.5 / 200**0.5  # a fair coin
assert seeing_mean == 1.0
""",
    "docs/how-to/callbacks.md": """
assert agent.episodes <= 30 and rlsvi.load("agent.rlsvi").episodes == 15
assert [row["episodes"] for row in evaluation.results] == [10, 20]
assert best.episodes in (10, 20) and len(Path("log.csv").read_text().splitlines()) == 21
""",
    "docs/how-to/own-figure.md": """
assert Path("treasure.png").stat().st_size > 5_000
assert "RLSVI finds the treasure" in Path("out/report.html").read_text()
""",
    "docs/shop.md": """
assert following != product
assert shop.products == ["kind of blue", "harvest"]  # and none of the first shop
""",
    "docs/studies.md": """
assert len(list(Path("results").glob("*.parquet"))) == 20
""",
    **{  # the picture that the page shows
        f"docs/gallery/{path.stem}.md": f'assert Path("{path.name}").stat().st_size > 5_000\n'
        for path in (HOUSE / "docs" / "images" / "gallery").glob("*.png")
        if path.stem != "compare-with-ppo"  # left out where stable-baselines3 is not installed
    },
}


def named(text):
    """The library, and what else the text of a page says to install."""
    words = [word for line in re.findall(r"pip install ([^`\n#]+)", text) for word in shlex.split(line)]
    found = ["rlsvi", "pip", "setuptools"]
    for word in words:
        if house := re.fullmatch(r"\.(?:/(paper|shop))?(\[[\w,-]+\])?", word):
            found.append(("rlsvi-" + house[1] if house[1] else "rlsvi") + (house[2] or ""))
        elif not word.startswith((".", "-", "git+")):
            found.append(word)
    return [Requirement(requirement) for requirement in found]


def installed(requirements):
    """The names of the distributions that come with these, and of those which are not here."""
    here, gone, seen, left = set(), set(), set(), [(it, "") for it in requirements]
    while left:
        requirement, extra = left.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        try:
            needs = [Requirement(text) for text in distribution(name).requires or []]
        except PackageNotFoundError:
            gone.add(name.replace("-", "_"))
            continue
        here.add(name)
        for asked in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, asked))
            left += [(it, asked) for it in needs]
    return here, gone


EDITABLE = {
    "rlsvi": ["rlsvi"],
    "rlsvi_paper": ["rlsvi-paper"],
    "rlsvi_shop": ["rlsvi-shop"],
}  # their wheels hold no code


def kept_out(here):
    """The modules that cannot be imported where only these distributions are installed."""
    return sorted(
        module
        for module, owners in (packages_distributions() | EDITABLE).items()
        if not {canonicalize_name(owner) for owner in owners} & here and module not in sys.stdlib_module_names
    )


WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in KEPT_OUT else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
"""


def read(text, folder):
    """Run the text of a page in an empty folder; its exit code, and what it prints."""
    here, gone = installed(named(text))
    hook, empty, output = folder / "hook", folder / "empty", folder / "output"
    hook.mkdir()
    empty.mkdir()
    (hook / "sitecustomize.py").write_text(f"KEPT_OUT = {kept_out(here)}\n{WITHOUT}")
    page = folder / "page.md"
    page.write_text(text)
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", (HOUSE / "tests" / "run_page.py").read_text(), str(page), ",".join(gone)],
            cwd=empty,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "PYTHONPATH": str(hook),
                "STATE": str(folder / "state"),
                "WANDB_MODE": "offline",
            },
        )
        try:
            code = process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a service that the page has started
    return code, output.read_text()


def is_taken(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def no_card():
    try:
        cuda()
    except NoCard as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "page", [page if page in QUICK else pytest.param(page, marks=pytest.mark.slow) for page in PAGES]
)
def test_the_blocks_of_a_page_run_as_they_are_printed(page, tmp_path):
    text = (HOUSE / page).read_text()
    if "rlsvi serve" in "".join(blocks(page, "bash")):
        if shutil.which("curl") is None:
            pytest.skip("the page uses curl")
        until = time.monotonic() + 20  # the service of another page ends within seconds
        while is_taken(8000):
            if time.monotonic() > until:
                pytest.skip("another program listens at port 8000")
            time.sleep(0.2)
    if ".[cuda]" in "".join(blocks(page, "bash")) and (reason := no_card()):
        pytest.skip(reason)
    before = "```python\n" + BEFORE[page] + "```\n" if page in BEFORE else ""
    after = "\n```python\nfrom pathlib import Path\n" + AFTER[page] + "```\n" if page in AFTER else ""
    code, printed = read(before + text + after, tmp_path)
    assert code == 0, printed.replace(str(tmp_path / "page.md"), page)
    assert len(re.findall("^---- ", printed, flags=re.MULTILINE)) >= text.count("\n```") // 2  # all of them
    if left_out := re.findall(r"^LEFT OUT: (.*)$", printed, flags=re.MULTILINE):
        pytest.skip("; ".join(left_out))


def test_only_what_a_page_says_to_install_can_be_imported(tmp_path):
    code = "```python\nimport numpy\nimport sqlalchemy\n```\n"
    for i, (named, expected) in enumerate({"": 1, "First `pip install . ./shop`.\n": 0}.items()):
        (tmp_path / str(i)).mkdir()
        exit_code, printed = read(named + code, tmp_path / str(i))
        assert exit_code == expected, printed
        assert expected == 0 or "No module named 'sqlalchemy'" in printed
    command = "```bash\npython -c 'import sqlalchemy'\n```\n"
    (tmp_path / "command").mkdir()
    assert read(command, tmp_path / "command")[0] == 1


PAGE = """
```python
# mine.py
x = 7
```
```bash
export GREETING="hello you"
test -f mine.py && ls > before
```
```python
from mine import x
y = x + 1
```
```bash
echo "$GREETING"
```
```python
print(y, open("before").read().split())
```
"""


def test_blocks_run_in_their_order_and_share_what_they_leave(tmp_path):
    code, printed = read(PAGE, tmp_path)
    assert code == 0, printed
    assert "hello you" in printed
    assert "8 ['before', 'mine.py']" in printed


@pytest.mark.parametrize("block", ["\nrlsvi list\n", "bash\nfalse\ntrue\n", "python\n1 / 0\n", "toml\n= 2\n"])
def test_a_block_that_fails_or_has_no_kind_is_found(block, tmp_path):
    assert read(f"```{block}```\n", tmp_path)[0] == 1


@pytest.mark.parametrize(("printed", "code"), [("1\n\n42\n", 0), ("1\n...\n", 0), ("1\n\n41\n", 1), ("42\n", 1)])
@pytest.mark.parametrize("block", ["python\nprint('1 \\n\\n42')\n", "bash\necho 1; echo; echo 42; echo 7 >&2\n"])
def test_what_a_page_says_is_printed_is_compared(block, printed, code, tmp_path):
    text = f"```{block}```\nThis prints\n```text\n{printed}```\n```python\nprint('the end')\n```\n"
    exit_code, found = read(text, tmp_path)
    assert exit_code == code, found
    assert ("the end" in found) == (code == 0)


def test_a_block_that_needs_what_is_not_installed_is_reported(tmp_path):
    text = "Say `pip install not-a-package`.\n```python\nimport not_a_package\n```\n```python\nprint(6 * 7)\n```\n"
    code, printed = read(text, tmp_path)
    assert code == 0, printed
    assert "LEFT OUT: line 3 of the page, without not_a_package" in printed
    assert "42" in printed


@pytest.mark.slow
def test_many_seeds_on_a_graphics_card(tmp_path):
    """With a simulated card, which is slow, and so with few and short runs."""
    comparison, module, script = blocks("docs/how-to/graphics-card.md")
    for many, few in (("=50", "=6"), ("=10)", "=3)"), ("=2000", "=3"), ("=10_000", "=2")):
        assert many in comparison
        comparison = comparison.replace(many, few)
    assert re.search(r"RLSVI +\d", simulated(comparison))
    (tmp_path / "treasure.py").write_text(module)
    together = "from rlsvi.study import executors; executors.FEWEST_TOGETHER = 2\n"  # else cores compute so few
    (tmp_path / "study.py").write_text(together + script.replace("=10,", "=2,").replace("1000", "2"))
    command = f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path('study.py', run_name='__main__')"
    assert "│ 0.01  ┆" in simulated(command)
    assert len(list((tmp_path / "results").glob("*.parquet"))) == 6
