"""The behaviour suite with the package bsuite: its environments, its scores, and the command line."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from gymnasium.utils.env_checker import check_env

from rlsvi.study.executors import serial
from rlsvi_paper.bsuite import runs
from rlsvi_paper.bsuite.package import (
    EXPERIMENTS,
    TAGS,
    BehaviourEnv,
    arguments_of,
    bsuite_module,
    episodes_of,
    ids_of,
    is_logged,
    tags_of,
)
from rlsvi_paper.bsuite.scores import score_of
from test_cli import run, strict_json

pytest.importorskip("bsuite", reason='needs pip install . "./paper[bsuite]"')
pytestmark = pytest.mark.slow
PLAYED = [name for name in EXPERIMENTS if not name.startswith("mnist")]


# ---- environments -------------------------------------------------------------------------------------------


def test_the_list_of_experiments_is_that_of_the_package():
    sweep = bsuite_module("sweep")
    assert sorted(EXPERIMENTS) == sorted({each.partition("/")[0] for each in sweep.SWEEP})
    assert sorted(TAGS) == sorted(sweep.TAGS)
    assert TAGS == {tag: sum(tag in tags_of(name) for name in EXPERIMENTS) for tag in TAGS}
    assert sum(len(ids_of(name)) for name in EXPERIMENTS) == len(sweep.SWEEP)
    assert tags_of("deep_sea_stochastic") == ["noise", "exploration"]
    assert episodes_of("cartpole") == 1000


def test_some_settings_are_spread_over_all():
    assert ids_of("bandit_noise", 5) == [f"bandit_noise/{i}" for i in (0, 5, 10, 14, 19)]
    assert len({arguments_of(each)["noise_scale"] for each in ids_of("bandit_noise", 5)}) == 5
    assert ids_of("catch", 1) == ["catch/0"]


@pytest.mark.filterwarnings("ignore:.*infinity")
@pytest.mark.parametrize("experiment", PLAYED)
def test_environments_are_those_of_gymnasium(experiment):
    check_env(BehaviourEnv(ids_of(experiment)[-1]), skip_render_check=True)


def trace(bsuite_id, seed, steps=150):
    """All that is seen in some steps of random actions."""
    env, rng, seen = BehaviourEnv(bsuite_id), np.random.default_rng(0), []
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        seen.append(observation)
        observation, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        seen.append(np.array(reward))
        if terminated or truncated:
            observation, _ = env.reset()
    return np.concatenate([np.ravel(each) for each in seen])


@pytest.mark.parametrize("experiment", PLAYED)
def test_a_seed_determines_all(experiment):
    fixed = experiment in ("bandit", "bandit_scale", "deep_sea", "discounting_chain")  # nothing is random
    last = ids_of(experiment)[-1]
    assert np.array_equal(trace(last, 1), trace(last, 1))
    assert np.array_equal(trace(last, 1), trace(last, 2)) == fixed


def test_noise_and_nature_have_generators_of_their_own():
    env = BehaviourEnv("catch_noise/0")
    env.reset(seed=0)
    noise, nature = env.inner._rng, env.inner._env._rng
    assert noise.randint(2**31) != nature.randint(2**31)


def test_what_is_logged_is_what_the_package_logs():
    wrappers = bsuite_module("utils.wrappers")
    assert all(is_logged(i) == wrappers._logarithmic_logging(i) for i in range(1, 20_001))
    env, rows = BehaviourEnv("deep_sea/0"), []
    twin = wrappers.Logging(
        bsuite_module().load("deep_sea", arguments_of("deep_sea/0")), SimpleNamespace(write=rows.append)
    )
    for i in range(14):
        env.reset(seed=i)
        twin.reset()
        for j in range(10):
            env.step(i * j % 2)
            twin.step(i * j % 2)
    assert [row["episode"] for row in env.rows] == [*range(1, 11), 12, 14]
    assert env.rows == [{name: row[name] for name in env.rows[0]} for row in rows]
    env.log()  # there is a row already
    assert len(env.rows) == 12


# ---- scores -------------------------------------------------------------------------------------------------


PERFECT = {  # what each kind of environment has logged after an episode of perfect play, and of useless play
    "bandit": ({"total_regret": 0}, {"total_regret": 0.5}),
    "mountain_car": ({"raw_return": -100}, {"raw_return": -1100}),
    "catch": ({"total_regret": 0}, {"total_regret": 1.6}),
    "cartpole": ({"raw_return": 1000, "best_episode": 1000}, {"raw_return": 0, "best_episode": 400}),
    "cartpole_swingup": ({"total_return": 700, "best_episode": 700}, {"total_return": 0, "best_episode": 0}),
    "deep_sea": ({"total_bad_episodes": 0}, {"total_bad_episodes": 1}),
    "umbrella_length": ({"total_regret": 0}, {"total_regret": 1}),
    "umbrella_distract": ({"total_regret": 0}, {"total_regret": 1}),
    "discounting_chain": ({"total_return": 1.1}, {"total_return": 1.0}),
    "memory_len": ({"total_perfect": 1}, {"total_perfect": 0.5}),
    "memory_size": ({"total_perfect": 1}, {"total_perfect": 0.5}),
}


def logs(experiment, each_episode, at=(100, 500)):
    """Logs of all settings in which every episode is like the others."""
    grows = {name: value for name, value in each_episode.items() if name != "best_episode"}
    rows = [
        {"bsuite_id": id_, "seed": 7, "episode": episode, **each_episode}
        | {name: value * episode for name, value in grows.items()}
        for id_ in ids_of(experiment)
        for episode in at
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize("experiment", PLAYED)
def test_perfect_play_scores_1_and_useless_play_0(experiment):
    kind = experiment.removesuffix("_noise").removesuffix("_scale").removesuffix("_stochastic")
    perfect, useless = PERFECT[kind]
    assert score_of(experiment, logs(experiment, perfect)) == pytest.approx(1)
    assert score_of(experiment, logs(experiment, useless)) == pytest.approx(0)


@pytest.mark.filterwarnings("ignore")  # what it does otherwise is deprecated too
@pytest.mark.parametrize("experiment", ["deep_sea", "deep_sea_stochastic"])
def test_our_score_of_deep_sea_is_the_packages(experiment, monkeypatch):
    """Its function works with the pandas of its time, of which it needs one method more."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(pandas.Series, "append", lambda a, b: pandas.concat([a, b]), raising=False)
    theirs = bsuite_module(f"experiments.{experiment}.analysis").score
    rng, found = np.random.default_rng(0), set()
    for _ in range(5):
        rows = []
        for id_ in ids_of(experiment):
            learned = rng.choice([50, 200, 1500, 9900])  # episodes after which three in four are good
            for episode in (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000):
                bad = min(episode, learned) + 0.25 * max(episode - learned, 0)
                rows.append({"bsuite_id": id_, "episode": episode, "total_bad_episodes": bad})
        score = score_of(experiment, pl.DataFrame(rows))
        whole = [row | {"size": arguments_of(row["bsuite_id"])["size"]} for row in rows]
        assert score == pytest.approx(theirs(pandas.DataFrame(whole)))
        found.add(score)
    assert len(found) > 1
    assert max(found) < 1


# ---- the command line ---------------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A folder of the test, and no other processes."""
    monkeypatch.setattr(runs, "executor", lambda name, workers: serial)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def suite(out, *arguments):
    return run("bsuite", "--settings", 2, "--episodes-share", 0.001, "--out", out, "--quiet", *arguments)


def finished(out):
    """The files of the store, with when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "store").glob("*.parquet")}


def test_experiments_are_run_scored_and_written(here):
    result = suite(here, "--experiments", "bandit,deep_sea", "--agents", "random,q-learning")
    assert result.exit_code == 0, result.stderr
    assert len(finished(here)) == 8
    assert "2/20" in result.stdout
    assert "10/10,000" in result.stdout
    assert "not run: mnist" in result.stdout
    found = strict_json((here / "scores.json").read_text())
    assert {it["experiment"]: it["episodes"] for it in found["experiments"]} == {
        "bandit": [10, 10_000],
        "deep_sea": [10, 10_000],
    }
    assert set(found["tags"]["random"]) == {"basic", "exploration"}
    assert (here / "radar.svg").exists()


def test_the_default_agent_learns_a_bandit(here):
    result = run(
        "bsuite", "--experiments", "bandit", "--settings", 1, "--episodes-share", 0.01, "--out", here, "-q"
    )
    assert result.exit_code == 0, result.stderr
    (found,) = strict_json((here / "scores.json").read_text())["experiments"]
    assert found["score"] > 0.5  # of random play, 0


def test_a_killed_suite_goes_on_where_it_stopped(here, monkeypatch):
    def killed(jobs):
        for i, outcome in enumerate(serial(jobs)):
            if i == 2:
                raise KeyboardInterrupt
            yield outcome

    command = ("--experiments", "bandit,catch", "--agents", "random")
    monkeypatch.setattr(runs, "executor", lambda name, workers: killed)
    result = suite(here, *command)
    assert result.exit_code == 130
    assert "the same command goes on from there" in result.stderr
    kept = finished(here)
    assert len(kept) == 2
    monkeypatch.setattr(runs, "executor", lambda name, workers: serial)
    assert suite(here, *command).exit_code == 0
    after = finished(here)
    assert len(after) == 4
    assert kept.items() <= after.items()  # they were not computed again
    whole = (here / "summary.md").read_text()
    assert suite(here, *command).exit_code == 0  # nothing is left to compute
    assert finished(here) == after
    assert suite(here, *command, "--seed", 1).exit_code == 0
    assert len(finished(here)) == 8
    assert "| bandit |" in whole


OWN = """
class Fails:
    def __init__(self, env, seed):
        pass

    def learn(self, env, episodes):
        if env.action_space.n == 3:
            raise ValueError("three actions are too many")
        for _ in range(episodes):
            env.reset()
            while not env.step(0)[2]:
                pass
"""


def test_if_settings_fail_the_others_are_scored(here):
    (here.parent / "an_agent_of_mine.py").write_text(OWN)
    result = suite(here, "--experiments", "bandit,catch", "--agents", "an_agent_of_mine:Fails")
    assert result.exit_code == 2
    assert "2 of 4 jobs failed, the others are kept" in result.stderr
    assert "three actions are too many" in result.stderr
    (found,) = strict_json((here / "scores.json").read_text())["experiments"]
    assert found["experiment"] == "bandit"
