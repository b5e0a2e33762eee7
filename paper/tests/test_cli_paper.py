"""`rlsvi paper` and `rlsvi report`: verdicts on stdout, clear errors, and going on after Ctrl-C."""

import os
import re
import signal
import socket
from dataclasses import replace

import polars as pl
import pytest

import rlsvi_paper
from rlsvi.study import executors
from rlsvi.study.executors import serial
from rlsvi.study.job import Failed, Job
from rlsvi.study.statistics import bootstrap, bootstrap_summaries, power_law, power_laws
from rlsvi_paper import FIGURES, progress, reproduce
from rlsvi_paper import figure_called as figure
from test_cli import run, strict_json
from test_sweep import needs_ray
from watch import marked, started, until

TINY = {
    "dithering": {"lengths": [3, 4], "seeds": 5},
    "chain-length": {"lengths": [4, 5, 6], "seeds": 2, "limit": 100},
    "chain-scaling": {"lengths": [4, 5, 6], "features": [2, 4], "seeds": 2, "limit": 100},
}


def tiny(name):
    return replace(figure(name), sizes={"quick": TINY[name]}) if name in TINY else figure(name)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Tiny figures in a folder of the test; and the folder for results."""
    monkeypatch.setattr(rlsvi_paper, "figure_called", tiny)
    monkeypatch.setattr(reproduce, "figure_called", tiny)
    for function in (bootstrap, bootstrap_summaries, power_law, power_laws):
        monkeypatch.setitem(function.__kwdefaults__, "resamples", 100)
    monkeypatch.setattr("sys.argv", ["rlsvi", "paper", "as typed"])
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def paper(out, *arguments, names=("dithering",)):
    return run("paper", *names, "--out", out, "--executor", "serial", *arguments)


def written(out):
    """The files of the store, with when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "store").glob("*.parquet")}


def flat(text):
    """Without the line breaks of a table."""
    return " ".join(text.split())


# ---- what it prints -----------------------------------------------------------------------------------------


def test_list_shows_the_figures():
    shown = run("list").stdout
    assert all(name in shown for name in FIGURES)
    assert strict_json(run("list", "--json").stdout)["figures"] == FIGURES


def test_verdicts_are_printed_and_files_written(small):
    result = paper(small, "--quiet", "--seeds", 6)
    assert result.exit_code == 0, result.stderr
    title = f"dithering: {figure('dithering').title}"
    assert title in flat(result.stdout)
    assert result.stdout.count("reproduced") >= 2
    assert "V* is p*" in result.stdout
    assert re.search(r"and results: \d reproduced, \d not reproduced, \d inconclusive", result.stdout)
    assert "steps of its proofs" not in result.stdout
    assert result.stderr.strip() == f"pictures and data: {small}; as a web page: rlsvi report {small}"
    kinds = sorted(path.name for path in small.iterdir())
    assert kinds == [f"dithering.{kind}" for kind in ("json", "parquet", "png", "svg")] + ["store"]
    assert pl.read_parquet(small / "dithering.parquet")["seed"].n_unique() == 32


def test_json_is_what_is_in_the_files(small):
    result = paper(small, "--json", "-q", names=("chain-length", "dithering", "chain-length"))
    assert result.exit_code == 0, result.stderr
    entries = strict_json(result.stdout)
    assert [entry["name"] for entry in entries] == ["chain-length", "dithering"]
    for entry in entries:
        assert entry == strict_json((small / f"{entry['name']}.json").read_text())
        assert entry["command"] == "rlsvi paper 'as typed'"
        assert entry["scale"] == "quick"
    assert [entry["seeds"] for entry in entries] == [2, 10]


def test_without_names_all_figures_are_meant(small, monkeypatch):
    asked = []
    monkeypatch.setattr(reproduce, "reproduce", lambda names, *_, **__: asked.extend(names) or 1 / 0)
    assert run("paper", "--out", small, "-q", "--executor", "serial").exit_code == 2
    assert asked == list(FIGURES)


# ---- figures of the user ------------------------------------------------------------------------------------


def test_a_figure_of_the_user_is_computed_judged_and_reported_with_its_title(small):
    result = paper(small, "-q", names=("own_figure:walks", "dithering"))
    assert result.exit_code == 0, result.stderr
    assert "walks: Walks of a user" in flat(result.stdout)
    entry = strict_json((small / "walks.json").read_text())
    assert [claim["outcome"] for claim in entry["claims"]] == ["reproduced"]
    assert [claim["kind"] for claim in entry["claims"]] == ["ours"]  # none of the paper's
    assert "checks of our own: 1 reproduced" in flat(result.stdout)
    page = run("report", small, "-q")
    assert page.exit_code == 0, page.stderr
    assert "Walks of a user" in (small / "report.html").read_text()
    (small / "walks.svg").unlink()
    assert f"walks.svg is missing: make it again with `{entry['command']}`" in run("report", small, "-q").stderr
    (small / "walks.json").write_text("{}")
    assert "make it again with `rlsvi paper MODULE:NAME --out" in run("report", small, "-q").stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own_figure:nothing", ("FIGURES names own_figure:nothing", "defines no nothing")),
        ("own_figure:draw", ("own_figure:draw must be a rlsvi_paper.figure.Figure",)),
        ("own_figure:taken", ("own_figure:taken is named 'dithering': give it a name of its own",)),
        ("own_figure:odd", ("own_figure:odd is named 'a/b'",)),
        ("nowhere:figure", ("there is no module nowhere",)),
        ("not-a-module:figure", ("unknown figure 'not-a-module:figure'", "module:name")),
    ],
)
def test_a_figure_that_cannot_be_used_is_named(small, name, words):
    result = paper(small, names=(name,))
    assert result.exit_code == 2
    assert all(word in result.stderr for word in words)
    assert not small.exists()


def test_a_scale_that_a_figure_does_not_have_is_named(small):
    result = paper(small, "--scale", "paper", names=("own_figure:walks",))
    assert result.exit_code == 2
    assert "walks has no sizes for the scale 'paper': it has quick" in result.stderr


# ---- finished jobs ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_finished_jobs_are_kept_unless_told_otherwise(small):
    first = paper(small, "-q", "--json")
    before = written(small)
    assert len(before) == len(tiny("dithering").plan())
    again = paper(small, "-q", "--json")
    assert written(small) == before
    more = paper(small, "-q", "--json", "--seeds", 6)
    after = written(small)
    assert len(after) == len(tiny("dithering").plan(seeds=6))
    assert before.items() < after.items()
    anew = paper(small, "-q", "--json", "--no-resume")
    assert all(written(small)[name] > before[name] for name in before)
    assert all(result.exit_code == 0 for result in (first, again, more, anew))
    claims = [strict_json(result.stdout)[0]["claims"] for result in (first, again, anew)]
    assert claims[0] == claims[1] == claims[2]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_damaged_file_is_told_and_computed_again(small):
    first = paper(small, "-q", "--json")
    path = sorted((small / "store").glob("*.parquet"))[3]
    whole = pl.read_parquet(path)
    path.write_bytes(path.read_bytes()[:-10])
    again = paper(small, "-q", "--json")
    assert again.exit_code == 0
    assert f"warning: {path} is damaged; set aside as {path.name}.damaged-" in again.stderr
    assert "Traceback" not in again.stderr
    assert strict_json(again.stdout)[0]["claims"] == strict_json(first.stdout)[0]["claims"]
    assert pl.read_parquet(path).equals(whole)
    assert "warning" not in paper(small, "-q").stderr


def test_a_report_is_made_of_it(small):
    paper(small, "-q", names=("chain-length", "dithering"))
    result = run("report", small, "--markdown", small / "page.md")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [str(small / "report.html"), str(small / "page.md")]
    page = (small / "report.html").read_text()
    assert page.index(figure("dithering").title) < page.index(figure("chain-length").title)
    assert (small / "images" / "dithering.png").exists()


# ---- what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dithering", "chian-regret"), ("unknown figure 'chian-regret'", "did you mean chain-regret?")),
        (("nonsense",), ("unknown figure 'nonsense'", "`rlsvi list` shows all")),
        (("dithering", "--scale", "huge"), ("scale must be one of quick, paper, got 'huge'",)),
        (("dithering", "--seeds", 0), ("--seeds",)),
        (("dithering", "--seeds", "many"), ("--seeds",)),
        (("dithering", "--seeds", -3), ("--seeds",)),
        (("dithering", "--workers", 0), ("--workers",)),
        (
            ("dithering", "--executor", "threads"),
            ("must be one of processes, serial, ray, gpu, got 'threads'",),
        ),
        (("dithering", "--address", "auto"), ("goes with the executor 'ray', not 'processes'",)),
        (("dithering", "--resume=yes"), ("--resume",)),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_before_anything_is_written(small, arguments, words):
    refused(run("paper", *arguments, "--out", small, "-q"), *words)
    assert not small.exists()


def refused(result, *words):
    """Exit code 2, the words on stderr, nothing else and no traceback."""
    assert result.exit_code == 2, result.stderr
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in flat(result.stderr)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (
            '{"store": "rlsvi", "format": 99}',
            ("is a store of format 99", "writes format 1: choose another"),
        ),
        ('{"store": "rlsvi"}', ("store.json cannot be read", "elsewhere")),
        ('{"store": "other"}', ("store.json cannot be read",)),
        ("half a", ("store.json cannot be read",)),
    ],
)
def test_a_store_of_another_version_is_refused(small, label, words):
    (small / "store").mkdir(parents=True)
    (small / "store" / "store.json").write_text(label)
    refused(paper(small, "-q"), *words)
    assert [path.name for path in small.rglob("*.*")] == ["store.json"]


def test_a_folder_that_cannot_be_made_is_named(small):
    small.write_text("a file")
    refused(paper(small, "-q"), f"cannot write to {small / 'store'}", "choose another folder")


def test_a_report_of_nothing_says_what_to_run_first(small):
    small.mkdir()
    refused(run("report", small), f"there is no figure in {small}", f"rlsvi paper --out {small}")
    refused(run("report", small / "nowhere"), f"there is no folder {small / 'nowhere'}", "rlsvi paper --out")


def test_jobs_that_fail_are_told_and_the_others_kept(small, monkeypatch):
    def half(jobs):
        for i, (job, done) in enumerate(serial(jobs)):
            yield job, done if i % 2 else Failed("ArithmeticError: it did not like it")

    monkeypatch.setattr(executors, "executor", lambda *_: half)
    refused(paper(small, "-q"), "27 of 54 jobs failed, the others are kept", "did not like it")
    assert len(written(small)) == 27
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("--resume", "the same command goes on from there"),
        ("--no-resume", "the same command without --no-resume goes on from there"),
    ],
)
def test_after_ctrl_c_one_is_told_how_to_go_on(small, monkeypatch, option, remedy):
    def interrupted(jobs):
        yield from list(serial(jobs[:3]))
        raise KeyboardInterrupt

    monkeypatch.setattr(executors, "executor", lambda *_: interrupted)
    result = paper(small, "-q", option)
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr == f"stopped; finished jobs are kept in {small / 'store'}: {remedy}\n"
    assert len(written(small)) == 3


PROGRAM = "from rlsvi.cli.app import app; app()"


@needs_ray
@pytest.mark.slow
def test_a_ray_cluster_that_does_not_answer_is_an_error(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        options = ("--executor", "ray", "--address", address, "--out", tmp_path, "-q")
        with started("-c", PROGRAM, "paper", "dithering", *options) as process:
            out, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert out == ""
    assert f"error: no Ray cluster answers at '{address}'" in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_and_the_same_command_goes_on(tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    command = ("-c", PROGRAM, "paper", "dithering", "--seeds", "10", "--workers", "2", "--out", part)
    with started(*command) as process:
        assert until(lambda: len(list(part.glob("store/*.parquet"))) >= 5, 120, process), process.communicate()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 130, err
        assert until(lambda: not marked(process.mark), 60), "processes are left"
    assert out == ""
    assert f"stopped; finished jobs are kept in {part / 'store'}: the same command goes on from there" in flat(err)
    assert "Traceback" not in err
    before = written(part)
    assert 5 <= len(before) < len(figure("dithering").plan("quick", 10))
    assert not list(part.glob("*.*"))
    with started(*command, "--json") as process:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    assert "208/208 jobs" in err
    assert before.items() < written(part).items()
    uninterrupted = paper(whole, "--seeds", 10, "--json", "-q")
    assert set(written(part)) == set(written(whole))
    assert strict_json(out)[0]["claims"] == strict_json(uninterrupted.stdout)[0]["claims"]
    for kind in ("parquet", "svg"):
        assert (part / f"dithering.{kind}").read_bytes() == (whole / f"dithering.{kind}").read_bytes()


# ---- progress -----------------------------------------------------------------------------------------------


@pytest.fixture
def bars(monkeypatch):
    """The displays that were shown."""
    import rich.progress

    shown = []

    class Kept(rich.progress.Progress):
        def __init__(self, *columns, **options):
            super().__init__(*columns, **options)
            shown.append(self)

    monkeypatch.setattr(rich.progress, "Progress", Kept)
    return shown


def state(display):
    return {task.description: (task.completed, task.total) for task in display.tasks}


def test_a_shared_job_moves_the_bars_of_all_its_figures(bars, capsys):
    plans = {name: tiny(name).plan("quick") for name in ("chain-length", "chain-scaling", "dithering")}
    shared = {job.name for job in plans["chain-length"]} & {job.name for job in plans["chain-scaling"]}
    unique = {job.name: job for jobs in plans.values() for job in jobs}
    assert len(shared) == len(plans["chain-length"]) == 6
    with progress.figure_bars(plans, True) as advance:
        (display,) = bars
        assert state(display) == {
            "chain-length": (0, 6),
            "chain-scaling": (0, 10),
            "dithering": (0, 54),
            "total": (0, 70 - len(shared)),
        }
        advance(plans["chain-length"][0], True)
        assert [done for done, _ in state(display).values()] == [1, 1, 0, 1]
        advance(plans["dithering"][0], False)
        assert [done for done, _ in state(display).values()] == [1, 1, 1, 2]
        for name, job in unique.items():
            if name not in (plans["chain-length"][0].name, plans["dithering"][0].name):
                advance(job, True)
        assert all(done == total for done, total in state(display).values())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "64/64 jobs" in captured.err


def test_quiet_shows_nothing(bars, capsys):
    with progress.figure_bars({"a": [Job.of(figure)]}, False) as advance:
        advance(Job.of(figure), True)
    assert not bars
    assert capsys.readouterr() == ("", "")


def test_bars_go_to_stderr_while_verdicts_go_to_stdout(small, bars):
    result = paper(small, "--json")
    assert result.exit_code == 0, result.stderr
    assert strict_json(result.stdout)[0]["name"] == "dithering"
    assert "54/54 jobs" in result.stderr
    assert state(bars[0]) == {"dithering": (54, 54), "total": (54, 54)}


class TestClock:
    """The time left."""

    @pytest.fixture(autouse=True)
    def time(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)

    def after(self, clock, seconds, cost, fresh=True):
        self.now += seconds
        return clock.left(cost, fresh)

    def test_it_is_in_proportion_to_the_cost_left(self):
        clock = progress._Clock(100.0)
        assert self.after(clock, 10, 20.0) == "about 0:00:40 left"
        assert self.after(clock, 10, 5.0) == "about 0:01:00 left"
        assert self.after(clock, 5, 75.0) == "0:00:25"

    def test_jobs_that_were_finished_before_tell_nothing_about_speed(self):
        clock = progress._Clock(100.0)
        assert self.after(clock, 0.5, 30.0, fresh=False) == ""
        assert self.after(clock, 0.5, 20.0, fresh=False) == ""
        assert self.after(clock, 10, 10.0) == "about 0:00:40 left"
        assert self.after(clock, 40, 40.0) == "0:00:50"

    def test_a_few_cheap_jobs_do_not_tell(self):
        clock = progress._Clock(100.0)
        assert self.after(clock, 60, 9.0) == ""
        assert self.after(clock, 10, 1.0) == "about 0:10:30 left"

    def test_rounding_and_jobs_without_cost_do_no_harm(self):
        clock = progress._Clock(0.3)
        assert self.after(clock, 1, 0.0) == ""  # too soon to tell
        assert self.after(clock, 9, 0.1) == "about 0:00:20 left"
        assert self.after(clock, 10, 0.1 - 1e-12) == "about 0:00:10 left"
        assert self.after(clock, 10, 0.1 + 1e-12) == "0:00:30"
        assert progress._Clock(0.0).left(0.0, False) == ""

    def test_a_line_is_due_every_half_minute(self):
        clock = progress._Clock(1.0)
        assert not clock.due()
        self.now += 30
        assert clock.due()
        assert not clock.due()
        self.now += 29
        assert not clock.due()
