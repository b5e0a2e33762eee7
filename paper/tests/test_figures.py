"""The paper's figures: their sizes, and each of them end to end at a tiny size."""

import html
import json
import math
import os
import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
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
from rlsvi_paper.figure import SCALES, Figure
from rlsvi_paper.folder import read_table
from rlsvi_paper.report import write_html, write_markdown
from rlsvi_paper.tetris import tetris
from test_cli import strict_json

TINY = {
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
    "tetris": {"games": 8, "long": 16, "iterations": 2, "fresh": 3, "again": 2, "few": 2, "more": 1, "seeds": 2},
    "mini-tetris": {"games": 8, "large": 8, "large_seeds": 2, "seeds": 2},
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


@pytest.mark.parametrize("name", ALL)
def test_a_figure_says_what_it_is(name):
    it = figure_called(name)
    assert isinstance(it, Figure)
    assert it.name == name
    assert re.fullmatch(
        r"section 3, Example 1|section 5(, appendix G)?|appendix B|"
        r"(section 6\.(1\.[12]|[23])|appendix (C\.[234]|D)), figure \d+|appendix F\.[12]|"
        r"section ([47]|6\.2, appendix D)",
        it.where,
    )
    assert it.title
    assert it.caption.endswith(".")
    assert it.claims
    assert set(it.sizes) == set(SCALES)


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


# ---- the paper's sizes --------------------------------------------------------------------------------------


def values(name, setting, scale="paper", **chosen):
    jobs = [job.settings for job in figure_called(name).plan(scale)]
    return {job.get(setting) for job in jobs if all(job.get(key) == value for key, value in chosen.items())}


def test_regret_over_a_million_episodes_and_five_seeds_and_over_2000_with_both_bases():
    for agent in ("RLSVI", "epsilon-greedy"):
        assert values("chain-regret", "seed", agent=agent, episodes=10**6) == set(range(5))
    for per_period in (False, True):
        assert values("chain-regret", "seed", agent="RLSVI", episodes=2000, per_period=per_period) == set(
            range(200)
        )
    assert values("chain-regret", "episodes", agent="RLSVI") == {2000, 10**6}
    assert values("chain-regret", "lam", agent="RLSVI") == {1.0}
    assert values("chain-regret", "sigma", agent="RLSVI") == {0.1}
    assert values("chain-regret", "length") == {50}
    assert values("chain-regret", "features", agent="RLSVI") == {10}
    assert values("chain-regret", "episodes", "quick", agent="RLSVI") == {2000}


def test_lengths_to_100_and_basis_functions_to_100():
    assert max(values("chain-length", "length")) == 100
    assert values("chain-length", "features") == {10}
    assert max(values("chain-features", "features")) == 100
    assert values("chain-features", "length") == {50}
    assert max(values("chain-quadratic", "features")) == max(values("chain-quadratic", "length")) == 100
    for name in ("chain-length", "chain-features", "chain-scaling", "chain-features-many", "chain-quadratic"):
        assert len(values(name, "seed")) == 100
        assert len(values(name, "seed", features=100)) >= (20 if name != "chain-length" else 0)
        assert "lam" not in figure_called(name).plan("paper")[0].settings  # the paper's are the defaults


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


def test_theory_is_tried_in_a_thousand_cases_and_at_eight_sizes():
    for scale in SCALES:
        cases = [job.settings["cases"] for job in figure_called("lemma").plan(scale) if "cases" in job.settings]
        assert sum(4 * count // 5 for count in cases) >= 1000
        jobs = [job.settings for job in figure_called("theorem").plan(scale)]
        sizes = {(job["states"], job["actions"], job["horizon"]) for job in jobs if "theorem" in job["agent"]}
        assert len(sizes) >= 8
        assert {job["copies"] for job in jobs if "copies" in job} == {1, 2}
        assert {job["agent"] for job in jobs} >= {"random play", "epsilon-greedy", "falling epsilon"}
        for agent in ("RLSVI, theorem", "UCRL2", "UCBVI", "PSRL"):
            states = {job["states"] for job in jobs if job["agent"] == agent and job.get("horizon") == 2}
            assert len(states) >= 5
    assert values("theorem", "episodes", copies=None) == {10**5, 4 * 10**5}


def test_several_lengths_have_basis_functions_beyond_all_pairs():
    for N in (10, 20, 30, 40, 50):
        found = values("chain-features-many", "features", length=N)
        assert 2 * N in found
        assert max(found) == 3 * N


def test_rho_goes_to_one_in_thousandths_in_four_readings():
    for reading in product(("variance", "std"), (False, True)):
        jobs = [job.settings for job in figure_called("chain-agnostic").plan("paper", 3)]
        jobs = [job for job in jobs if (job["rho_is"], job["deterministic"]) == reading]
        once, more = [job for job in jobs if job["seed"] < 10_000], [job for job in jobs if job["seed"] >= 10_000]
        assert [job["rho"] for job in once] == [i / 1000 for i in range(1001)]
        assert sorted(job["rho"] for job in more) == sorted(2 * [i / 1000 for i in range(51)])
        assert len({job["seed"] for job in jobs}) == len(jobs)
        assert {(job["length"], job["features"], job["limit"]) for job in jobs} == {(20, 20, 10_000)}


@pytest.mark.parametrize(
    ("name", "swept", "fixed"), [("chain-lambda", "lam", "sigma"), ("chain-sigma", "sigma", "lam")]
)
def test_sweeps_of_several_orders_of_magnitude_over_10000_episodes(name, swept, fixed):
    chain = {"length": 50, "features": 10, "stretch": 1.0}
    found = values(name, swept, **chain)
    assert max(found) / min(found) >= 1e6
    assert {0.1, 1.0} <= found
    assert values(name, fixed, **chain) == ({0.1} if fixed == "sigma" else {100.0})
    assert values(name, "episodes", **chain) == {10_000}
    assert values(name, "seed", **chain) == set(range(60))


def test_dithering_is_given_forty_times_what_is_expected():
    for job in figure_called("dithering").plan("paper"):
        N = job.settings["length"]
        assert job.settings["limit"] == int(40 * 2 ** (N - 1) / (1 - 1 / N) ** (N - 1))


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


def drawn(name, frame):
    picture = figure_called(name).draw(frame)
    picture.draw_without_rendering()
    return picture


@pytest.mark.parametrize("failed", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", [pytest.param(it, marks=pytest.mark.slow) if it in LONG else it for it in ALL])
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
    assert entry["command"] == "rlsvi paper chain-scaling chain-length chain-length --scale quick --seeds 2"
    assert entry["seconds"] == entry["jobs"] == 6
    assert entry["seeds"] == 2


def test_reproduce_needs_a_figure(tmp_path):
    with pytest.raises(ValueError, match="figures must be at least one figure"):
        reproduce.reproduce([], tmp_path)
