"""compare() and what it returns: the same for any number of workers, summarised as plain NumPy would."""

import re

import gymnasium
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import rlsvi
from rlsvi import bases, compare, problems
from rlsvi.mdp import evaluate
from rlsvi.simulate.finite import History, simulate
from rlsvi.study.runs import Run, Runs
from rlsvi.study.statistics import band

EPISODES = 200
AGENTS = {"RLSVI": rlsvi.RLSVI(), "dithering": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(0.3))}


def own(seed):
    """A chain whose basis depends on the seed."""
    return problems.chain(4, 3, seed=seed)


@pytest.fixture(scope="module")
def runs():
    return compare(AGENTS, own, EPISODES, seeds=[4, 1, 7], workers=1, progress=False)


def made(rewards):
    """Runs of one agent with given rewards, (seeds, episodes), and a regret of 1 - reward."""
    histories = {
        ("a", s): Run(History(np.array(r), 1 - np.array(r), 1 - np.array(r), None, None), 1.0)
        for s, r in enumerate(rewards)
    }
    return Runs("made up", ("a",), tuple(range(len(rewards))), histories)


# ---- runs -------------------------------------------------------------------------------------------------


def test_the_frame_has_a_row_an_episode(runs):
    assert runs.frame.schema == {
        "agent": pl.String,
        "seed": pl.Int64,
        "episode": pl.Int64,
        "reward": pl.Float64,
        "regret": pl.Float64,
        "realised": pl.Float64,
    }
    assert runs.frame.height == 2 * 3 * EPISODES
    assert runs.frame.null_count().sum_horizontal().item() == 0
    for agent in AGENTS:
        for seed in (4, 1, 7):
            one = runs.frame.filter(agent=agent, seed=seed)
            assert one["episode"].to_list() == list(range(EPISODES))


def test_every_run_is_a_simulation_with_a_fresh_clone(runs):
    for name, agent in AGENTS.items():
        for seed in (4, 1, 7):
            alone = simulate(agent.clone(seed=seed), own(seed), EPISODES)
            found = runs.frame.filter(agent=name, seed=seed)
            for column in ("reward", "regret", "realised"):
                assert np.array_equal(found[column].to_numpy(), getattr(alone, column))
    assert all(agent.episodes == 0 for agent in AGENTS.values())


def test_results_do_not_depend_on_the_workers(runs):
    for workers in (2, 5):
        again = compare(AGENTS, own, EPISODES, seeds=[4, 1, 7], workers=workers, progress=False)
        assert again.frame.equals(runs.frame)


def test_a_number_of_seeds_is_those_from_zero_on():
    few = compare({"a": rlsvi.RLSVI()}, problems.chain(3), 5, seeds=3, progress=False)
    assert few.seeds == (0, 1, 2)
    assert few.frame["seed"].unique(maintain_order=True).to_list() == [0, 1, 2]


def test_seeds_differ_and_so_do_problems_drawn_from_them(runs):
    regret = [runs.frame.filter(agent="RLSVI", seed=seed)["regret"].to_numpy() for seed in (4, 1, 7)]
    assert not np.array_equal(regret[0], regret[1])
    drawn = []
    compare(
        {"RLSVI": rlsvi.RLSVI()}, lambda seed: drawn.append(seed) or own(seed), 1, seeds=[5, 3], progress=False
    )
    assert set(drawn) == {5, 3}


def test_random_regret_is_what_random_play_loses():
    """On the chain random play gets (p* / 2^(N-1)) of the optimum p*."""
    best = problems.chain(5).solution.V[0, 0]
    assert problems.chain(5).random_regret == pytest.approx(best * (1 - 2.0**-4))


def test_a_run_has_learned_once_what_is_left_is_a_small_share_of_random_play():
    def learned(regret, random=1.0):
        return Run(History(None, np.array(regret), None, None, None), random).learned()

    assert learned([1.0] * 5 + [0.0] * 15) == 5
    assert learned([0.04] * 20) == 0
    assert learned([0.04] * 20, random=0.5) == np.inf
    assert learned([0.0] * 19 + [1.0]) == np.inf  # it forgot in the end
    assert learned([1.0] * 19 + [0.0]) == np.inf  # one good episode of twenty is luck


def test_regret_is_what_the_policy_played_loses_in_expectation():
    """A uniform policy in every episode; and an agent that knows Q* from the start."""
    problem = problems.chain(5)
    H, S, A = problem.solution.Q.shape
    knowing = rlsvi.LSVI(prior_mean=problem.solution.Q.reshape(H, S * A), lam=1e12)
    agents = {"uniform": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(1.0)), "optimal": knowing}
    found = compare(agents, problem, 50, seeds=2, progress=False).frame
    best, uniform = problem.solution.V[0, 0], evaluate(problem.mdp, np.full((H, S, A), 1 / A))[0, 0]
    np.testing.assert_allclose(found.filter(agent="uniform")["regret"], best - uniform, rtol=1e-12)
    np.testing.assert_allclose(found.filter(agent="optimal")["regret"], 0, atol=1e-15)
    np.testing.assert_allclose(found["realised"], best - found["reward"], rtol=1e-14)


def test_the_first_episode_of_every_agent_is_played_at_random(runs):
    """No data and a prior mean of zero: all actions tie."""
    mdp = own(0).mdp
    V = evaluate(mdp, np.full((mdp.horizon, mdp.states, mdp.actions), 1 / mdp.actions))
    first = runs.frame.filter(pl.col("episode") == 0)["regret"]
    np.testing.assert_allclose(first, own(0).solution.V[0, 0] - V[0, 0], rtol=1e-12)


def when_learned(regret, random):
    """The first episode from which on every mean of a tenth of the run is at most 5% of random play's."""
    width = len(regret) // 10
    starts = range(len(regret) - width + 1)
    fine = [regret[i : i + width].mean() <= 0.05 * random for i in starts]
    return next((i for i in starts if all(fine[i:])), np.inf)


def test_summary_is_what_plain_numpy_says(runs):
    rows = runs.summary().to_dicts()
    assert [row["agent"] for row in rows] == list(AGENTS)
    for row in rows:
        one = runs.frame.filter(agent=row["agent"])
        regret = one["regret"].to_numpy().reshape(3, EPISODES)
        reward = one["reward"].to_numpy().reshape(3, EPISODES)
        assert row["seeds"] == 3
        assert row["regret"] == pytest.approx(np.median(regret.sum(axis=1)))
        # of three seeds drawn again a median is the least in 7 of 27 cases: the interval is their range
        assert row["regret_low"] == pytest.approx(regret.sum(axis=1).min())
        assert row["regret_high"] == pytest.approx(regret.sum(axis=1).max())
        assert row["regret_iqm"] == pytest.approx(regret.sum(axis=1).mean())
        random = np.array([run.random_regret for run in runs.of(row["agent"])])
        assert row["regret_left"] == pytest.approx(np.median(regret[:, -20:].mean(axis=1) / random))
        assert row["reward"] == np.median(reward.sum(axis=1))
        times = [next((i + 1 for i in range(EPISODES) if r[: i + 1].sum() >= 10), np.inf) for r in reward]
        after = [when_learned(one, limit) for one, limit in zip(regret, random, strict=True)]
        assert row["learned"] == np.isfinite(after).sum()
        assert row["after"] == (np.median(after) if np.isfinite(np.median(after)) else None)
        np.testing.assert_allclose(runs.cumulative(row["agent"])[:, -1], regret.sum(axis=1))
        assert runs.learning_times(row["agent"]).tolist() == times


@pytest.mark.parametrize("columns", ["20", "80", "300"])
def test_the_text_shows_every_column_on_any_terminal(runs, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    lines = [line.strip() for line in str(runs).splitlines()]
    assert " ".join(lines).startswith(runs.title)
    heading = next(line for line in lines if line.startswith("agent"))
    assert re.split(r"  +", heading) == list(runs.columns)
    shown = [tuple(re.split(r"  +", line)) for line in lines]
    assert [row for row in shown if row[0] in runs.agents] == runs.cells()
    assert " ".join(lines).endswith(runs.caption)
    assert repr(runs).startswith("Runs(")


def test_learning_times_of_seeds_that_never_learned_are_infinite():
    few = made([[0, 1, 1, 0, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 1]])
    assert few.learning_times("a", 2).tolist() == [3, np.inf, 2]
    assert few.learning_times("a", 1).tolist() == [2, 5, 1]
    assert few.learning_times("a").tolist() == [np.inf] * 3


@pytest.mark.parametrize(
    ("learned", "expected"),
    [([1, 1, 1], 0), ([1, 1, 0], 0), ([1, 0, 0], None), ([1, 1, 0, 0], None), ([0], None)],
)
def test_the_median_time_is_null_when_half_of_the_seeds_never_learned(learned, expected):
    row = made([[float(seed)] * 12 for seed in learned]).summary().row(0, named=True)
    assert row["after"] == expected
    assert row["learned"] == sum(learned)


def test_the_interval_of_the_regret_is_narrower_than_the_seeds_and_the_iqm_is_of_their_middle():
    regret = np.random.default_rng(0).permutation(np.arange(20.0)) ** 2
    row = made([[1.0 - r] for r in regret]).summary().row(0, named=True)
    found = np.sort(np.median(np.random.default_rng(1).choice(regret, (20_000, 20)), axis=1))
    assert np.mean(found < row["regret_low"]) <= 0.03  # 2.5% and, for 2,000 draws, a little
    assert np.mean(found > row["regret_high"]) <= 0.03
    assert np.mean((found >= row["regret_low"]) & (found <= row["regret_high"])) < 0.98
    assert row["regret"] == np.median(regret)
    assert row["regret_iqm"] == pytest.approx(np.sort(regret)[5:15].mean())


def test_one_seed_has_no_interval():
    summary = made([[1.0, 0.0]]).summary()
    assert summary.schema["regret_low"] == summary.schema["regret_high"] == pl.Float64
    row = summary.row(0, named=True)
    assert (row["regret"], row["regret_low"], row["regret_high"], row["regret_iqm"]) == (1.0, None, None, 1.0)


def test_improvement_is_the_share_of_pairs_of_runs_with_less_regret(runs):
    ours, theirs = (runs.cumulative(agent)[:, -1] for agent in AGENTS)
    found = runs.improvement("RLSVI", over="dithering")
    assert found.value == np.mean([(a < b) + (a == b) / 2 for a in ours for b in theirs])
    assert found.low <= found.value <= found.high
    assert found.high - found.low > 0.3  # three seeds say little
    assert runs.improvement("dithering", over="RLSVI").value == pytest.approx(1 - found.value)
    with pytest.raises(ValueError, match="over must be one of the agents RLSVI, dithering, got 'nobody'"):
        runs.improvement("RLSVI", over="nobody")


def drawn(runs):
    """The lines of a figure, and the corners of its bands."""
    axes = runs.plot()
    lines = [line.get_ydata() for line in axes.lines]
    return axes, lines, [patch.get_paths()[0].vertices for patch in axes.collections]


def test_the_figure_shows_every_run_the_median_and_its_band():
    rewards = 1 - np.random.default_rng(1).exponential(size=(9, 6))
    made_up = made(rewards)
    axes, lines, bands = drawn(made_up)
    curves = np.cumsum(1 - rewards, axis=1)
    np.testing.assert_allclose(lines[:9], curves)
    np.testing.assert_allclose(lines[9], np.median(curves, axis=0))
    middle, low, high = band(curves)
    assert len(bands) == 1
    last = bands[0][bands[0][:, 0] == 6, 1]
    assert (last.min(), last.max()) == pytest.approx((low[-1], high[-1]))
    assert low[-1] < middle[-1] < high[-1]
    assert axes.get_title(loc="left") == "made up: median, 95% band, all of 9 seeds"
    worst = int(np.argmax(curves[:, -1]))
    np.testing.assert_allclose(lines[10], curves[worst])
    assert axes.get_legend_handles_labels()[1] == ["a", f"a, worst seed: {worst}"]
    axes.figure.draw_without_rendering()
    assert all(tick == round(tick) for tick in axes.get_xticks()), "there is no half of an episode"


def test_the_worst_seed_has_the_least_return_where_regret_is_not_known():
    class Luck(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(1)

        def __init__(self, seed):
            self.pays = float(seed % 3)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return 0, {}

        def step(self, action):
            return 0, self.pays, True, False, {}

    runs = compare({"agent": rlsvi.DiscountedPSRL()}, Luck, episodes=3, seeds=[1, 3, 5])
    assert runs.plot().get_legend_handles_labels()[1] == ["agent", "agent, worst seed: 3"]


def test_the_figure_of_one_seed_has_no_band():
    axes, lines, bands = drawn(made([[1.0, 0.0, 0.0]]))
    assert len(lines) == 2
    assert not bands
    assert axes.get_title(loc="left") == "made up: one seed"


def test_plot_writes_a_picture(runs, tmp_path):
    runs.plot(tmp_path / "regret.png")
    data = (tmp_path / "regret.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n")
    width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    assert width > 1000
    assert height > 600


def test_one_episode_can_be_plotted(tmp_path):
    made([[1.0]]).plot(tmp_path / "one.png")


def test_plot_draws_on_the_axes_given_and_saves_their_whole_figure(tmp_path):
    figure = Figure()
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    right.subplots()
    assert made([[1.0, 0.0]]).plot(tmp_path / "both.svg", ax=axes) is axes
    assert axes.get_ylabel() == "cumulative expected regret"
    assert (tmp_path / "both.svg").read_text().count('id="axes_') == 2


def test_plot_leaves_pyplot_alone_but_in_a_notebook(monkeypatch):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    made([[1.0, 0.0]]).plot()
    assert pyplot.get_fignums() == before
    monkeypatch.setattr("rlsvi.axes.in_notebook", lambda: True)
    axes = made([[1.0, 0.0]]).plot()
    assert axes.figure is pyplot.gcf()  # which a notebook shows
    pyplot.close(axes.figure)
    assert pyplot.get_fignums() == before


def test_progress_goes_to_stderr(capsys):
    compare({"a": rlsvi.RLSVI()}, problems.chain(3), 5, seeds=1, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "episodes" in shown.err


def test_no_progress_shows_nothing(capsys):
    compare({"a": rlsvi.RLSVI()}, problems.chain(3), 5, seeds=1, progress=False)
    assert capsys.readouterr() == ("", "")


# ---- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"agents": {}}, ValueError, "agents must be a dictionary of at least one agent"),
        ({"agents": [rlsvi.RLSVI()]}, ValueError, "agents must be a dictionary"),
        ({"agents": {"a": "RLSVI"}}, TypeError, r"agents\['a'\] must be an agent"),
        ({"agents": {3: rlsvi.RLSVI()}}, TypeError, "agents must have names as keys, got 3"),
        ({"episodes": 0}, ValueError, "episodes must be a whole number of at least 1, got 0"),
        ({"episodes": -3}, ValueError, "episodes must be a whole number of at least 1"),
        ({"episodes": 2.0}, ValueError, "episodes must be a whole number of at least 1"),
        ({"episodes": True}, ValueError, "episodes must be a whole number of at least 1"),
        ({"seeds": 0}, ValueError, "seeds must be a whole number of at least 1, got 0"),
        ({"seeds": []}, ValueError, "seeds must be at least one"),
        ({"seeds": [1, 2, 1]}, ValueError, "each only once"),
        ({"seeds": 2.5}, ValueError, "seeds must be a number of seeds or a list"),
        ({"seeds": [-1]}, ValueError, "seeds must be a whole number of at least 0, got -1"),
        ({"workers": 0}, ValueError, "workers must be a whole number of at least 1"),
        ({"problem": None}, TypeError, "problem must be a Problem"),
        ({"problem": problems.chain(3).mdp}, TypeError, "problem must be a Problem"),
        ({"problem": lambda seed: seed}, TypeError, "function of the seed that returns one, got 0"),
    ],
)
def test_a_bad_argument_is_named(change, error, message):
    good = {"agents": {"a": rlsvi.RLSVI()}, "problem": problems.chain(3), "episodes": 5, "seeds": 1}
    with pytest.raises(error, match=message):
        compare(**{**good, **change}, progress=False)


@pytest.mark.parametrize("seeds", [[1.5], "12"])
def test_seeds_that_are_not_integers_are_refused(seeds):
    with pytest.raises(ValueError, match="seeds"):
        compare({"a": rlsvi.RLSVI()}, problems.chain(3), 5, seeds, progress=False)


def test_a_numpy_integer_is_a_number_of_seeds():
    assert compare({"a": rlsvi.RLSVI()}, problems.chain(3), 5, np.int64(2), progress=False).seeds == (0, 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_failing_run_is_the_one_raised(workers):
    """The agent that comes first is still at work when the second fails."""
    failing = rlsvi.RLSVI(lam=1e-240, sigma=1.0, basis=bases.Dense(np.full((50, 2, 2), 1e99)))
    agents = {"slow": rlsvi.RLSVI(), "failing": failing}
    with pytest.raises(ArithmeticError, match="scale them down"):
        compare(agents, problems.chain(50), 300 if workers == 1 else 300_000, 1, workers=workers, progress=False)
