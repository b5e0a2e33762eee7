"""As many seeds as decide the claims of a figure: made-up figures, whose intervals are known."""

import json
import math
from contextlib import nullcontext

import polars as pl
import pytest
from matplotlib.figure import Figure as Picture

from jobs import picky
from rlsvi.study.job import Done, Job
from rlsvi.study.statistics import Interval
from rlsvi_paper import FIGURES, figure_called
from rlsvi_paper import reproduce as module
from rlsvi_paper.claim import Outcome, Verdict, at_least, claim
from rlsvi_paper.figure import Figure
from rlsvi_paper.reproduce import narrower, reproduce


def spread(frame, one):
    """An interval around 1 that becomes narrower with the root of the runs; that of one run reaches `one` far."""
    half = one / math.sqrt(frame.height)
    return Interval(1.0, 1.0 - half, 1.0 + half)


@claim("decided by fifteen runs", "here")
def soon(frame):
    """The number is at least 0."""
    return at_least(spread(frame, math.sqrt(15)), 0.0, "a number")


@claim("on the edge", "here")
def edge(frame):
    """The number, which is 1, is at least 1."""
    return at_least(spread(frame, 1.0), 1.0, "a number")


@claim("as wide as ever", "here")
def wide(frame):
    """It is at least 0."""
    return at_least(Interval(0.0, -1.0, 1.0), 0.0, "a number")


@claim("unbounded", "here")
def unbounded(frame):
    """It is at least 0."""
    return at_least(Interval(math.inf, -math.inf, math.inf), 0.0, "a number")


@claim("a few runs", "here", lambda frame: frame.filter(pl.col("seed") < 5))
def few(frame):
    """At least 0, in the first five runs."""
    return at_least(spread(frame, 5.0), 0.0, "a number")


@claim("no interval", "here")
def nothing(frame):
    """Never."""
    return Verdict(Outcome.INCONCLUSIVE, "nothing")


@claim("wrong", "here")
def wrong(frame):
    """The number is at least 9."""
    return at_least(spread(frame, 1.0), 9.0, "a number")


def jobs(seeds):
    return [Job.of(picky, 2.0, bad=-1, i=0, seed=seed) for seed in range(seeds)]


def draw(frame):
    return Picture()


def made_up(*claims, seeds=5, name="made-up"):
    sizes = {"quick": {"seeds": seeds}, "paper": {"seeds": seeds}}
    return Figure(name, "made up", "nowhere", "nothing", sizes, jobs, claims, draw)


class Clerk:
    """An executor that notes the seeds of the jobs it computes, of a minute each."""

    def __init__(self, seconds=60.0):
        self.seeds, self.seconds = [], seconds

    def __call__(self, jobs):
        for job in jobs:
            self.seeds.append(job.settings["seed"])
            yield job, Done({"half": 0.0}, self.seconds)


def decided(folder, *claims, seeds=5, clerk=None, **options):
    """What the file of a made-up figure says about the search, and the outcomes."""
    options = {"scale": "paper", "seeds": "auto", "budget": 1000.0, **options}
    found = reproduce([made_up(*claims, seeds=seeds)], folder, executor=clerk or Clerk(0.0), **options)
    entry = json.loads((folder / "made-up.json").read_bytes())
    assert entry["seeds"] == min(each.rows(table(folder))["seed"].n_unique() for each in claims)
    assert entry["jobs"] == entry["deciding"]["seeds"] == table(folder).height
    return entry["deciding"], [str(verdict.outcome) for verdict in found["made-up"]]


def table(folder):
    return pl.read_parquet(folder / "made-up.parquet")


def why(search):
    return {each["words"]: each["why"] for each in search["open"]}


def test_seeds_are_doubled_until_the_claim_is_decided(tmp_path):
    clerk, titles = Clerk(), []

    def progress(plans):
        titles.append({title: len(plan) for title, plan in plans.items()})
        return nullcontext(lambda job, fresh: None)

    search, outcomes = decided(tmp_path, soon, clerk=clerk, progress=progress)
    assert search == {"seeds": 20, "budget": 1000.0, "open": []}
    assert outcomes == ["reproduced"]
    assert clerk.seeds == list(range(20))  # each once
    assert titles == [{"made-up, 5 seeds": 5}, {"made-up, 10 seeds": 5}, {"made-up, 20 seeds": 10}]


def test_what_is_decided_at_once_takes_the_seeds_of_the_scale(tmp_path):
    search, outcomes = decided(tmp_path, wrong)
    assert (search["seeds"], search["open"], outcomes) == (5, [], ["not reproduced"])


def test_the_budget_ends_it(tmp_path):
    """Ten jobs of a minute each are within it, twenty are not."""
    search, outcomes = decided(tmp_path, soon, clerk=Clerk(), budget=19.0)
    assert search["seeds"] == 10
    assert search["open"][0]["where"] == "here"
    needed = "20 seeds need about 20.0 minutes of computing"
    assert why(search) == {"decided by fifteen runs": f"budget: {needed}, more than the 19 allowed"}
    assert outcomes == ["inconclusive"]


def test_the_same_call_with_a_larger_budget_goes_on(tmp_path):
    decided(tmp_path, soon, clerk=Clerk(), budget=19.0)
    clerk = Clerk()
    search, _ = decided(tmp_path, soon, clerk=clerk, budget=20.0)
    assert (search["seeds"], clerk.seeds) == (20, list(range(10, 20)))
    clerk = Clerk()
    decided(tmp_path, soon, clerk=clerk, redo=True)
    assert clerk.seeds == list(range(20))


def test_the_number_of_jobs_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_JOBS", 40)
    search, _ = decided(tmp_path, edge)
    assert search["seeds"] == 40
    assert why(search) == {"on the edge": "budget: 80 seeds are 80 jobs, and 40 is the most"}


@pytest.mark.parametrize("never", [wide, unbounded], ids=lambda it: it.name)
def test_an_interval_that_does_not_narrow_ends_it(tmp_path, never):
    search, outcomes = decided(tmp_path, never)
    assert (search["seeds"], outcomes) == (20, ["inconclusive"])
    assert "more seeds do not settle it: four times as many did not narrow" in why(search)[never.words]


@pytest.mark.parametrize(
    ("hopeless", "seeds", "words"),
    [(few, 10, "the number of its runs does not depend on the seeds"), (nothing, 5, "no number of runs decides")],
    ids=["few", "nothing"],
)
def test_claims_that_seeds_do_not_touch_end_it(tmp_path, hopeless, seeds, words):
    search, outcomes = decided(tmp_path, hopeless)
    assert (search["seeds"], outcomes) == (seeds, ["inconclusive"])
    assert words in why(search)[hopeless.words]


def test_one_claim_goes_on_without_the_others(tmp_path):
    search, outcomes = decided(tmp_path, nothing, soon, few, wrong)
    assert search["seeds"] == 20
    assert list(why(search)) == ["no interval", "a few runs"]
    assert outcomes == ["inconclusive", "reproduced", "inconclusive", "not reproduced"]


def test_small_runs_cannot_say_not_reproduced_with_any_number_of_seeds(tmp_path):
    search, outcomes = decided(tmp_path, wrong, scale="quick")
    assert (search["seeds"], outcomes) == (5, ["inconclusive"])
    assert "use --scale paper" in why(search)["wrong"]


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_fewer_than_five_seeds_are_too_few_to_give_up(tmp_path, scale):
    search, outcomes = decided(tmp_path, wide, wrong, seeds=1, scale=scale)
    assert search["seeds"] == 32  # 8, 16, 32: the same interval
    assert outcomes == ["inconclusive", "not reproduced" if scale == "paper" else "inconclusive"]


def test_each_figure_has_its_own_seeds_and_they_share_jobs(tmp_path):
    clerk = Clerk(0.0)
    both = [made_up(soon, name="first"), made_up(wrong, name="second")]
    reproduce(both, tmp_path, scale="paper", seeds="auto", executor=clerk)
    found = [json.loads((tmp_path / f"{it.name}.json").read_bytes())["deciding"] for it in both]
    assert [it["seeds"] for it in found] == [20, 5]
    assert found[0]["budget"] == module.MINUTES
    assert clerk.seeds == list(range(20))


def test_a_number_of_seeds_is_not_searched_for(tmp_path):
    reproduce([made_up(soon)], tmp_path, scale="paper", seeds=7, executor=Clerk())
    entry = json.loads((tmp_path / "made-up.json").read_bytes())
    assert (entry["seeds"], "deciding" in entry) == (7, False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": "many"}, "seeds must be a whole number of at least 1, or 'auto', got 'many'"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1"),
        ({"seeds": "auto", "budget": 0}, "budget must be a positive, finite number, got 0"),
        ({"seeds": "auto", "budget": math.inf}, "budget must be a positive, finite number"),
        ({"seeds": 5, "budget": 3.0}, "budget goes with seeds='auto'.*got seeds=5"),
        ({"budget": 3.0}, "budget goes with seeds='auto'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        reproduce([made_up(soon)], tmp_path / "out", executor=Clerk(), **options)
    assert not (tmp_path / "out").exists()


def test_narrower():
    inf = math.inf
    assert narrower(Interval(0, -1, 1), Interval(0, -2, 1))
    assert not narrower(Interval(0, -1, 1), Interval(0, 0, 2))
    assert narrower(Interval(0, -9, 9), Interval(0, -1, inf))
    assert not narrower(Interval(0, -1, inf), Interval(0, -9, 9))
    assert narrower(Interval(0, 1, inf), Interval(0, 0, inf))
    assert not narrower(Interval(0, 0, inf), Interval(0, 0, inf))


@pytest.mark.parametrize("scale", ["quick", pytest.param("paper", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FIGURES)
def test_more_runs_contain_fewer(name, scale):
    """For every figure, so that what is computed is not computed again."""

    def plan(**runs):
        found = figure_called(name).plan(scale, **runs)
        return {(job.function, tuple(sorted(job.settings.items()))) for job in found}

    once, twice = plan(), plan(times=2)
    assert once < twice
    assert plan(seeds=figure_called(name).sizes[scale]["seeds"]) == once


def test_thousands_of_runs_of_dithering_do_not_play_the_same_games():
    found = figure_called("dithering").jobs([4], 2500)
    assert len({job.settings["seed"] for job in found}) == len(found)
