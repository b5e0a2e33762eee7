"""The paper's figures: their sizes, and each of them end to end at a tiny size."""

import html
import json
import math
import os
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tables import ALL, LONG, figure_called, published, unlearned

from rlsvi.study.job import Done, sources_of
from rlsvi.study.statistics import (
    bootstrap,
    bootstrap_summaries,
    power_law,
    power_laws,
    probability_of_improvement,
)
from rlsvi.study.store import Store
from rlsvi.study.sweep import sweep
from rlsvi_paper import FIGURES, TOPICS, reproduce
from rlsvi_paper.claim import Outcome
from rlsvi_paper.figure import SCALES
from rlsvi_paper.folder import read_table
from rlsvi_paper.report import write_html, write_markdown
from rlsvi_paper.tetris import tetris
from test_cli import strict_json

TINY = {
    "exploration-depth": {"depths": [2, 12], "seeds": 2},
    "dithering": {"lengths": [3, 4], "seeds": 5},
    "chain-regret": {"episodes": 40, "long": 1, "seeds": 1},
    "chain-length": {"lengths": [4, 6, 8], "seeds": 5, "limit": 300},
    "chain-features": {"features": [2, 4, 6, 50, 60, 70], "seeds": 1, "limit": 20},
    "chain-scaling": {"lengths": [4, 6, 8], "features": [2, 4, 10], "seeds": 2, "limit": 60},
    "chain-features-many": {"lengths": [8, 10], "seeds": 1, "limit": 100},
    "chain-quadratic": {"lengths": [4, 5, 6, 7], "features": [2, 4], "seeds": 2, "limit": 200},
    "chain-agnostic": {"steps": 100, "limit": 10, "seeds": 1},
    "chain-lambda": {"powers": [-1.0, 0.0, 1.0], "episodes": 30, "seeds": 2},
    "chain-sigma": {"powers": [-2.0, -1.0, 0.0], "episodes": 30, "seeds": 2, "noisy": 3},
    "tetris": {
        **{"games": 40, "short": 20, "iterations": 2, "fresh": 3, "again": 2},
        **{"ways": 9, "few": 2, "tuned": 2, "seeds": 2},
    },
    "mini-tetris": {"games": 40, "ways": 2, "large": 40, "tuned": 2, "large_seeds": 2, "few": 2, "seeds": 2},
    "recsys-boltzmann": {"episodes": 24, "runs": 1, "seeds": 2},
    "recsys-myopic": {"episodes": 24, "runs": 1, "seeds": 2},
    "incremental": {"episodes": 40, "runs": 1, "chain": 20, "few": 1, "more": 1, "seeds": 2},
    "continual": {"states": [3, 4], "steps": 200, "few": 100, "watched": 20, "more": 1, "seeds": 2},
    "bootstrap": {"lengths": [10, 12], "short": [10, 20], "limit": 300, "seeds": 2},
    "homogeneous": {"sizes": [(2, 2, 2), (2, 2, 3)], "episodes": 20, "seeds": 2},
    "worst-case": {"episodes": 4, "seeds": 2},
    "deep-sea": {"sizes": [3, 4], "stochastic": [3], "short": [3, 20], "limit": 60, "seeds": 2},
    "concurrent": {"agents": [1, 3], "rounds": 3, "seeds": 2},
    "seed-sampling": {"agents": [2, 3], "rounds": 2, "seeds": 2},
    "ensemble-size": {"members": [1, 3, 10, 100], "episodes": 20, "seeds": 2, "noisy": 3},
    "swing-up": {"heights": [0.0, 0.95], "episodes": 2, "seeds": 2},
    "lemma": {"cases": 10, "draws": 100, "seeds": 2},
    "theorem": {
        "sizes": [(2, 2, 3), (3, 3, 3)],
        "states": [2, 3],
        "compared": [(2, 2, 2), (3, 2, 2)],
        "episodes": 40,
        "long": 60,
        "chains": [3, 4],
        "longer": [5],
        "more": 1,
        "seeds": 2,
    },
    "tetris-readings": {"games": 4, "tuned": 2, "seeds": 2},
    "tetris-second": {"games": 20, "tuned": 2, "seeds": 2},
    "conjecture": {
        "lengths": [4, 5, 6],
        "features": [2, 4],
        "wide": [4, 5, 6],
        "few": [2, 4],
        "sigmas": [1.0, 2.0, 4.0],
        "lams": [0.1, 1.0, 10.0],
        "copies": [1, 2],
        "more": 1,
        "seeds": 2,
        "limit": 200,
    },
}


def shorten(patch):
    """Few resamples, and games of Tetris that end: good players' games last a million pieces."""
    for function in (bootstrap, bootstrap_summaries, power_laws, power_law, probability_of_improvement):
        patch.setitem(function.__kwdefaults__, "resamples", 100)
    patch.setattr(tetris, "MOST_PIECES", 5000)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    shorten(monkeypatch)


def tiny(name):
    return replace(figure_called(name), sizes={"quick": TINY[name]})


# ---- what is there ------------------------------------------------------------------------------------------


def test_figures_come_in_the_order_of_the_paper():
    places = [figure_called(name).where for name in FIGURES]
    numbers = [int(found[1]) for where in places if (found := re.search(r"figure (\d+)", where))]
    assert len(numbers) == 13
    assert set(numbers) == set(range(2, 15))
    for figures in TOPICS.values():
        of_topic = [figure_called(name).where for name in figures]
        assert of_topic == sorted(of_topic, key=lambda where: where.startswith("appendix"))
        numbers = [int(found[1]) for where in of_topic if (found := re.search(r"figure (\d+)", where))]
        assert numbers == sorted(numbers)


def test_a_file_with_a_figure_is_all_that_a_figure_needs(tmp_path, monkeypatch):
    """Nothing else names it: it is listed, in its place and with its first line, and is not imported for that."""
    import rlsvi_paper as paper

    copy = tmp_path / "chain"
    shutil.copytree(Path(paper.__file__).parent / "chain", copy)
    own = '"""Walks of a user."""\n\n1 / 0\n\nFIGURE = Figure.of(__name__, where="{}")\n'
    (copy / "own_figure.py").write_text(own.format("section 6.1.1, figure 3, and ours"))
    (copy / "last.py").write_text(own.format("appendix Z"))
    monkeypatch.setattr(paper, "__file__", str(tmp_path / "__init__.py"))
    found = list(paper._find("chain"))
    assert set(found) == {*TOPICS["chain"], "own-figure", "last"}
    assert found.index("own-figure") == found.index("chain-length") + 1
    assert found[-1] == "last"
    assert paper._find("chain")["own-figure"] == "Walks of a user"


def test_figures_are_found_by_name_whatever_was_imported_before():
    import rlsvi_paper as paper
    import rlsvi_paper.figure  # a module of a similar name

    assert paper.figure_called("dithering") is paper.figure_called("dithering")
    assert isinstance(rlsvi_paper.figure.SCALES, tuple)


def test_an_unknown_figure_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="unknown figure 'Lemmas': did you mean lemma"):
        figure_called("Lemmas")


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ALL)
def test_jobs_have_names_of_their_own_and_a_cost(name, scale):
    jobs = figure_called(name).plan(scale)
    assert len({job.name for job in jobs}) == len(jobs)
    assert all(job.cost > 0 for job in jobs)
    assert all(job.function.startswith("rlsvi_paper.") for job in jobs)


@pytest.mark.parametrize("name", ALL)
def test_another_claim_or_plot_computes_nothing_anew(name):
    """A name of a run that hides one of the file would make a plot a part of the run: give it another."""
    above = {"rlsvi_paper.claim", "rlsvi_paper.drawing", "rlsvi_paper.figure", "rlsvi.study.plot"}
    for function in {job.function for job in figure_called(name).plan()}:
        assert not {place.partition(":")[0] for place in sources_of(function)} & above


@pytest.mark.parametrize("name", ALL)
def test_seeds_can_be_raised_and_what_is_computed_is_not_lost(name):
    it = figure_called(name)
    few, many = ({job.name for job in it.plan("quick", seeds)} for seeds in (5, 7))
    assert few < many
    usual = {job.name for job in it.plan("quick")}
    assert usual == {job.name for job in it.plan("quick", it.sizes["quick"]["seeds"])}


@pytest.mark.parametrize("seeds", [0, -1, 1.5])
def test_seeds_are_a_whole_number(seeds):
    with pytest.raises(ValueError, match="seeds must be a whole number of at least 1"):
        figure_called("dithering").plan("quick", seeds)


def test_an_unknown_scale_is_named():
    with pytest.raises(ValueError, match="scale must be one of quick, paper, got 'huge'"):
        figure_called("dithering").plan("huge")


# ---- jobs that figures share --------------------------------------------------------------------------------


def test_logarithmic_scales_need_no_new_jobs():
    for scale in SCALES:
        both = {job.name for name in ("chain-length", "chain-features") for job in figure_called(name).plan(scale)}
        assert {job.name for job in figure_called("chain-scaling").plan(scale)} == both


def test_the_conjecture_takes_the_jobs_of_the_quadratic_fits():
    for scale in SCALES:
        theirs = {job.name for job in figure_called("chain-quadratic").plan(scale)}
        mine = figure_called("conjecture").plan(scale)
        assert theirs == {job.name for job in mine if "sigma" not in job.settings}
        assert min(job.settings["sigma"] for job in mine if "sigma" in job.settings) == 1.0


# ---- end to end ---------------------------------------------------------------------------------------------

ABOUT = {"scale": "quick", "command": "a test"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All figures at a tiny size: the folder and the verdicts."""
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        patch.setattr(os, "fsync", lambda descriptor: None)  # for more than a thousand small files
        store, found = Store(folder / "store"), {}
        for name in ALL:
            jobs = tiny(name).plan()
            sweep(jobs, store, "serial")
            found[name] = reproduce.finish(tiny(name), jobs, store, folder, ABOUT)
    return folder, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_figure_leaves_its_files(made, name):
    folder, verdicts = made
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / f"{name}.svg").read_bytes()[:2000]
    entry = strict_json((folder / f"{name}.json").read_text())
    assert entry["format"] == 2
    assert {key: entry[key] for key in ("name", "scale", "command")} == {"name": name, **ABOUT}
    own = {"chain-agnostic": 101, "dithering": 2 * TINY["dithering"]["seeds"]}  # seeds of each rho, of each agent
    assert entry["seeds"] == own.get(name, TINY[name]["seeds"])
    assert entry["jobs"] == len(tiny(name).plan())
    assert entry["seconds"] > 0
    assert {"rlsvi", "python", "numpy", "numba", "polars", "scipy"} == set(entry["versions"])
    for claim, told, verdict in zip(figure_called(name).claims, entry["claims"], verdicts[name], strict=True):
        assert told["words"] == claim.words
        assert told["criterion"] == claim.criterion
        assert told["outcome"] == verdict.outcome
        assert told["measured"] == verdict.measured
        assert (told["kind"], told["headline"]) == (claim.kind, claim.headline)
        assert told["why"] == {"reproduced": "", "inconclusive": "scale"}.get(verdict.outcome, claim.otherwise)
        assert told["table"] == [list(row) for row in verdict.table]
        assert (told["value"] is None) or told["value"] == verdict.interval.value
    for setting, found in entry["settings"].items():
        assert set(found) == {job.settings[setting] for job in tiny(name).plan() if setting in job.settings}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_data_of_a_figure_are_its_jobs_results(made, name):
    frame = pl.read_parquet(made[0] / f"{name}.parquet")
    jobs = tiny(name).plan()
    assert frame.equals(Store(made[0] / "store").frame(jobs))
    settings = {setting for job in jobs for setting in job.settings}
    assert frame.select(sorted(settings)).unique().height == len(jobs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_published_tables_have_the_columns_of_those_that_are_made_today(made, name):
    assert published(name).schema == read_table(made[0] / f"{name}.parquet").schema


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dithering", "chain-lambda", "tetris", "recsys-boltzmann", "continual", "lemma"])
def test_running_it_again_gives_the_same_bytes(made, name, tmp_path):
    folder, verdicts = made
    jobs, store = tiny(name).plan(), Store(tmp_path / "store")
    sweep(jobs, store, "serial")
    assert reproduce.finish(tiny(name), jobs, store, tmp_path, ABOUT) == verdicts[name]
    for kind in ("svg", "parquet"):
        assert (tmp_path / f"{name}.{kind}").read_bytes() == (folder / f"{name}.{kind}").read_bytes()


FIRST = [next(iter(it for it in figures if it not in LONG)) for figures in TOPICS.values()]  # of each topic


def drawn(name, frame):
    picture = figure_called(name).draw(frame)
    picture.draw_without_rendering()
    return picture


@pytest.mark.parametrize("failed", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", [it if it in FIRST else pytest.param(it, marks=pytest.mark.slow) for it in ALL])
def test_few_runs_can_be_drawn_and_runs_that_never_learned(name, failed):
    frame = published(name, 2)
    for axes in drawn(name, unlearned(frame) if failed else frame).axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()


@pytest.mark.parametrize("name", ["chain-length", "chain-features", "chain-features-many", "chain-quadratic"])
def test_runs_that_never_finished_are_inside_the_picture(name):
    never = pl.when(pl.col("seed") == 0).then(math.inf).otherwise("time")
    (axes,) = drawn(name, published(name, 3).with_columns(time=never)).axes
    triangles = [line for line in axes.lines if line.get_marker() == "^"]
    assert triangles
    for line in triangles:
        assert axes.get_ylim()[0] <= line.get_ydata()[0] <= axes.get_ylim()[1]


def test_regret_is_drawn_beside_its_first_2000_episodes():
    titles = [axes.get_title(loc="left") for axes in drawn("chain-regret", published("chain-regret", 2)).axes]
    assert titles == ["first 2,000 episodes", "first 1,000,000 episodes"]


@pytest.mark.slow
def test_all_of_them_make_a_report(made, tmp_path):
    folder, _ = made
    page = write_html(folder, order=ALL).read_text()
    places = [page.index(html.escape(figure_called(name).title)) for name in ALL]
    assert places == sorted(places)
    text = write_markdown(folder, tmp_path / "page.md", tmp_path / "images", order=ALL).read_text()
    for name in ALL:
        assert f"{name}.png" in text
        assert (tmp_path / "images" / f"{name}.png").exists()


# ---- reproduce ----------------------------------------------------------------------------------------------


@pytest.fixture
def shrunk(monkeypatch):
    """Figures by name are tiny."""
    monkeypatch.setattr(reproduce, "figure_called", tiny)


@pytest.mark.slow
def test_reproduce_computes_shared_jobs_once_and_the_largest_first(tmp_path, shrunk):
    order = []

    def executor(jobs):
        order.extend(jobs)
        for job in jobs:
            yield job, Done({"time": 30.0 + job.settings["seed"]}, 1.0)

    told, judged = [], []
    verdicts = reproduce.reproduce(
        ["chain-scaling", "chain-length", "chain-length"],
        tmp_path,
        executor=executor,
        seeds=2,
        progress=lambda plans: nullcontext(lambda job, fresh: told.append((job.name, fresh))),
        judging=judged.append,
    )
    assert judged == ["chain-scaling", "chain-length"]
    assert list(verdicts) == ["chain-scaling", "chain-length"]
    assert all(isinstance(verdict.outcome, Outcome) for found in verdicts.values() for verdict in found)
    names = [job.name for job in order]
    wanted = {job.name for name in ("chain-scaling", "chain-length") for job in tiny(name).plan("quick", 2)}
    assert len(names) == len(set(names))
    assert set(names) == wanted
    first = [job.cost for job in order[: len(tiny("chain-scaling").plan("quick", 2))]]
    assert first == sorted(first, reverse=True)
    assert sorted(told) == sorted((name, True) for name in names)
    entry = json.loads((tmp_path / "chain-length.json").read_text())
    assert entry["command"] == "rlsvi paper chain-scaling chain-length --scale quick --seeds 2"
    assert entry["seconds"] == entry["jobs"] == 6
    assert entry["seeds"] == 2


def test_reproduce_needs_a_figure(tmp_path):
    with pytest.raises(ValueError, match="figures must be at least one figure"):
        reproduce.reproduce([], tmp_path)
