"""The jobs of the chain's figures against obvious twins, and the arithmetic they share."""

import math

import numpy as np
import polars as pl
import pytest
from tables import published

from rlsvi import LSVI, RLSVI, Boltzmann, EpsilonGreedy, problems
from rlsvi.bases.dense import Dense
from rlsvi.mdp import backward_induction, chain, evaluate
from rlsvi.problems import Problem
from rlsvi.simulate.finite import simulate
from rlsvi_paper import results
from rlsvi_paper.chain import chain_sigma, dithering, learning
from rlsvi_paper.claim import Outcome
from rlsvi_paper.results import seeds_of
from rlsvi_paper.schedules import SCHEDULES


def seeds(seed):
    """How a job makes two seeds of one: of the problem and of the agent."""
    return [int(x) for x in np.random.SeedSequence(seed).generate_state(2, np.uint64)]


def test_problem_and_agent_have_seeds_of_their_own():
    assert seeds_of(3) == tuple(seeds(3))
    found = [x for seed in range(50) for x in seeds_of(seed)]
    assert len(set(found)) == 100


# ---- episodes until ten rewards -----------------------------------------------------------------------------


def tenth_reward(length, features, seed, episodes=3000, lam=1.0, sigma=0.1, **basis):
    """All episodes in one go, counted one by one."""
    problem_seed, agent_seed = seeds(seed)
    problem = problems.chain(length, features, seed=problem_seed, **basis)
    rewards = 0
    for i, reward in enumerate(simulate(RLSVI(lam=lam, sigma=sigma, seed=agent_seed), problem, episodes).reward):
        rewards += reward
        if rewards >= 10:
            return i + 1
    return math.inf


@pytest.mark.parametrize(
    "settings",
    [
        {"length": 12, "features": 6, "seed": 0},
        {"length": 20, "features": 10, "seed": 5, "lam": 100.0, "sigma": 0.05},
        {"length": 8, "features": None, "seed": 2},
        {"length": 8, "features": 5, "seed": 1, "rho": 0.05},
        {"length": 8, "features": 5, "seed": 1, "rho": 0.05, "rho_is": "std"},
        {"length": 8, "features": 5, "seed": 1, "rho": 0.2, "deterministic": True},
    ],
    ids=str,
)
def test_the_learning_time_is_that_of_episodes_in_one_go(settings):
    expected = tenth_reward(**settings)
    assert math.isfinite(expected)
    assert learning.learning_time(**settings, limit=3000)["time"] == expected
    assert learning.learning_time(**settings, limit=expected)["time"] == expected
    assert learning.learning_time(**settings, limit=expected - 1)["time"] == math.inf


def test_learning_times_before_and_after_the_first_look_are_exact():
    times = [learning.learning_time(length=20, features=6, seed=seed, limit=3000)["time"] for seed in range(6)]
    assert min(times) < learning.CHUNK < max(times)
    assert times == [tenth_reward(20, 6, seed) for seed in range(6)]


def test_seeds_and_readings_of_rho_give_other_runs():
    base = {"length": 12, "features": 6, "limit": 3000}
    assert len({learning.learning_time(**base, seed=seed)["time"] for seed in range(6)}) > 3
    both = [
        learning.learning_time(**base, rho=0.05, rho_is=kind, seed=0)["misfit"] for kind in ("variance", "std")
    ]
    assert both[0] > 2 * both[1]


def test_the_misfit_is_what_least_squares_leave_of_all_values():
    length, features, rho, seed = 7, 4, 0.3, 11
    problem = problems.chain(length, features, rho=rho, seed=seeds(seed)[0])
    Q = problem.solution.Q
    blocks = np.zeros((Q.size, features * len(Q)))  # one least-squares problem of all periods
    for h in range(len(Q)):
        rows = slice(h * Q[0].size, (h + 1) * Q[0].size)
        blocks[rows, h * features : (h + 1) * features] = problem.basis.phi[h].reshape(Q[0].size, features)
    theta, *_ = np.linalg.lstsq(blocks, Q.ravel(), rcond=None)
    expected = np.linalg.norm(blocks @ theta - Q.ravel()) / np.linalg.norm(Q)
    found = learning.learning_time(length=length, features=features, rho=rho, seed=seed, limit=1)
    assert found["misfit"] == pytest.approx(expected, rel=1e-9)
    assert 0.01 < expected < 1
    assert "misfit" not in learning.learning_time(length=length, features=features, seed=seed, limit=1)


def test_nothing_is_left_out_at_rho_zero():
    assert learning.learning_time(length=20, features=20, rho=0.0, seed=4, limit=1)["misfit"] < 1e-9


# ---- regret -------------------------------------------------------------------------------------------------

AGENTS = {
    "RLSVI": ({"lam": 4.0, "sigma": 0.2}, lambda seed: RLSVI(lam=4.0, sigma=0.2, seed=seed)),
    "epsilon 0.2": ({}, lambda seed: LSVI(lam=1.0, explore=EpsilonGreedy(0.2), seed=seed)),
    "Boltzmann 0.1": ({}, lambda seed: LSVI(lam=1.0, explore=Boltzmann(0.1), seed=seed)),
}


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("episodes", [50, 2600])
def test_regret_curves_are_sums_of_the_episodes(name, episodes):
    settings, make = AGENTS[name]
    problem_seed, agent_seed = seeds(3)
    problem = problems.chain(6, 4, seed=problem_seed)
    history = simulate(make(agent_seed), problem, episodes)
    size = {"length": 6, "features": 4, "episodes": episodes, "points": 60}
    found = learning.regret_curve(agent=name, seed=3, **size, **settings)
    at = found["episode"]
    assert at[0] == 1
    assert at[-1] == episodes
    assert (np.diff(at) > 0).all()
    for column in ("regret", "reward"):
        each = getattr(history, column)
        np.testing.assert_allclose(found[column], [each[:end].sum() for end in at], rtol=1e-12, atol=1e-10)
    assert found["best"] == pytest.approx(learning.success(6), rel=1e-12)
    ten = [i + 1 for i in range(episodes) if history.reward[: i + 1].sum() >= 10]
    assert found["time"] == (ten[0] if ten else math.inf)
    wrong = [i + 1 for i in range(episodes) if history.regret[i] > 1e-6]
    assert found["last_mistake"] == wrong[-1]


def test_marks_are_dense_at_first_and_end_each_part():
    curve = {"agent": "RLSVI", "length": 4, "features": 3, "seed": 0, "lam": 1.0, "sigma": 0.1}
    short = learning.regret_curve(**curve, episodes=300, points=300)["episode"]
    assert short.tolist() == list(range(1, 301))
    long = learning.regret_curve(**curve, episodes=5000, points=100)["episode"]
    assert {1, 2000, 5000} <= set(long.tolist())
    assert 150 < len(long) <= 200
    assert np.diff(long[long <= 2000]).max() <= 21
    assert np.diff(long).max() <= 51


def test_what_became_of_a_run_that_learns_and_of_one_that_does_not():
    few = {"points": 50, "seed": 1}
    learns = learning.regret_curve(agent="RLSVI", length=20, features=10, episodes=500, lam=1.0, sigma=0.1, **few)
    assert 10 <= learns["time"] < 500
    assert 0 < learns["last_mistake"] < 500
    lost = learning.regret_curve(agent="epsilon 0.1", length=30, features=5, episodes=200, **few)
    assert lost["time"] == math.inf
    assert lost["last_mistake"] == 200
    assert lost["reward"][-1] == 0
    np.testing.assert_allclose(lost["regret"], lost["episode"] * learning.success(30), rtol=1e-6)


def test_stretch_is_a_factor_of_the_basis():
    problem_seed, agent_seed = seeds(2)
    problem = problems.chain(15, 4, seed=problem_seed)
    stretched = Problem(problem.mdp, Dense(9.0 * problem.basis.phi))
    history = simulate(RLSVI(lam=200.0, sigma=0.1, seed=agent_seed), stretched, 200)
    curve = {"agent": "RLSVI", "length": 15, "features": 4, "episodes": 200, "points": 200}
    curve |= {"seed": 2, "sigma": 0.1}
    found = learning.regret_curve(**curve, lam=200.0, stretch=9.0)
    np.testing.assert_allclose(found["regret"], np.cumsum(history.regret), rtol=1e-12)
    assert not np.array_equal(found["regret"], learning.regret_curve(**curve, lam=200.0)["regret"])


def test_a_curve_with_a_basis_for_each_period_is_that_of_such_a_problem():
    problem_seed, agent_seed = seeds(4)
    problem = problems.chain(10, 4, per_period=True, seed=problem_seed)
    history = simulate(RLSVI(lam=1.0, sigma=0.1, seed=agent_seed), problem, 150)
    size = {"length": 10, "features": 4, "episodes": 150, "points": 150, "seed": 4, "lam": 1.0, "sigma": 0.1}
    found = learning.regret_curve(agent="RLSVI", per_period=True, **size)
    np.testing.assert_allclose(found["regret"], np.cumsum(history.regret), rtol=1e-12)
    assert not np.array_equal(found["regret"], learning.regret_curve(agent="RLSVI", **size)["regret"])


def test_a_stretched_basis_and_a_larger_lambda_are_the_same_episodes():
    curve = {"agent": "RLSVI", "length": 8, "features": 4, "episodes": 300, "points": 50}
    curve |= {"seed": 2, "sigma": 0.1}
    plain, stretched = (
        learning.regret_curve(**curve, lam=lam, stretch=by) for lam, by in ((1.0, 1.0), (16.0, 4.0))
    )
    for column in ("regret", "reward"):
        assert plain[column].tobytes() == stretched[column].tobytes()


def test_an_unknown_agent_is_named():
    with pytest.raises(ValueError, match="unknown agent 'Q-learning'"):
        learning.agent_called("Q-learning", 0)


# ---- the first reward ---------------------------------------------------------------------------------------

DITHER = [
    {"agent": "epsilon 0.1", "length": 4, "features": None},
    {"agent": "Boltzmann 1", "length": 5, "features": 3},
]


@pytest.mark.parametrize("settings", DITHER, ids=str)
def test_the_first_reward_comes_as_a_geometric_law_says(settings):
    runs = 300
    found = pl.DataFrame([dithering.first_reward(**settings, seed=seed, limit=10**6) for seed in range(runs)])
    N = settings["length"]
    chance = (1 - 1 / N) ** (N - 1) / 2 ** (N - 1)
    sd_of_mean = math.sqrt(1 - chance) / chance / math.sqrt(runs)
    assert abs(found["time"].mean() - 1 / chance) < 4 * sd_of_mean
    assert abs((found["time"] == 1).mean() - chance) < 4 * math.sqrt(chance / runs)
    assert found["time"].min() >= 1
    assert found["uneven"].max() < 1e-12
    each = learning.success(N) - chance  # what an episode of random play loses
    np.testing.assert_allclose(found["regret"], found["time"] * each, rtol=1e-9)


def test_the_first_reward_is_that_of_episodes_in_one_go():
    for seed in range(8):
        problem_seed, agent_seed = seeds(seed)
        problem = problems.chain(5, 3, seed=problem_seed)
        history = simulate(LSVI(lam=1.0, explore=EpsilonGreedy(0.2), seed=agent_seed), problem, 1000)
        first = np.flatnonzero(history.reward)[0] + 1
        job = {"agent": "epsilon 0.2", "length": 5, "features": 3, "seed": seed}
        assert dithering.first_reward(**job, limit=1000)["time"] == first
        assert dithering.first_reward(**job, limit=first)["time"] == first
        if first > 1:
            short = dithering.first_reward(**job, limit=first - 1)
            assert short["time"] == math.inf
            assert short["regret"] == pytest.approx((first - 1) * problem.random_regret)


def test_an_agent_that_explores_is_uneven():
    job = {"agent": "RLSVI", "length": 5, "features": 3, "lam": 1.0, "sigma": 0.1}
    assert max(dithering.first_reward(**job, seed=seed, limit=1000)["uneven"] for seed in range(5)) > 0.5


def test_all_ways_to_dither_are_tried_in_one_job():
    found = dithering.all_ways(chooses=True, length=5, seed=7, limit=3000)
    assert list(found["schedule"]) == list(SCHEDULES)
    assert len(set(found["first"])) == 1
    problem_seed, agent_seed = seeds(7)
    problem = problems.chain(5, dithering.FEW, seed=problem_seed)
    for name in ("epsilon 0.01", "Boltzmann 10", "epsilon 300/(300 + l)"):
        way = LSVI(lam=1.0, explore=SCHEDULES[name], seed=agent_seed)
        rewards = np.cumsum(simulate(way, problem, 3000).reward)
        for column, count in (("first", 1), ("tenth", 10)):
            assert found[column][list(SCHEDULES).index(name)] == np.flatnonzero(rewards >= count)[0] + 1


def ways_table(change=None):
    """A published table in which a way to dither was changed."""
    frame = published("dithering")
    name, chooses, column, value = change or ("", True, "tenth", 0.0)
    here = (pl.col("schedule") == name) & (pl.col("chooses") == chooses)
    return frame.with_columns(pl.when(here).then(value).otherwise(column).alias(column))


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (None, Outcome.REPRODUCED),
        (("epsilon 0.2", False, "tenth", 1.0), Outcome.REPRODUCED),  # luck where it is judged is not chosen
        (("epsilon 0.2", False, "first", 1.0), Outcome.NOT_REPRODUCED),
    ],
)
def test_dithering_is_judged_by_the_way_that_was_best_with_other_seeds(change, outcome):
    assert dithering.exponential.judge(ways_table(change)).outcome is outcome


def test_a_way_to_dither_that_is_fast_with_all_seeds_is_found():
    fast = ways_table(("epsilon 0.2", True, "tenth", 1.0)).with_columns(
        tenth=pl.when(pl.col("schedule") == "epsilon 0.2").then(1.0).otherwise("tenth")
    )
    found = dithering.exponential.judge(fast)
    assert found.outcome is Outcome.NOT_REPRODUCED
    assert "epsilon 0.2, which has ten rewards soonest" in found.measured


# ---- noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "episodes"), [(1.0, 400), (1e-4, 5), (0.1, 1)])
def test_noisy_deep_sea_is_a_plain_simulation(sigma, episodes):
    found = [
        chain_sigma.noisy_deep_sea(size=4, lam=1.0, sigma=sigma, episodes=episodes, seed=seed) for seed in range(4)
    ]
    for seed, one in enumerate(found):
        problem_seed, agent_seed = seeds(seed)
        problem = problems.deep_sea(4, stochastic=True, seed=problem_seed)
        history = simulate(RLSVI(lam=1.0, sigma=sigma, seed=agent_seed), problem, episodes)
        last = history.regret[episodes - max(episodes // 10, 1) :]
        assert one == {
            "total": pytest.approx(history.regret.sum()),
            "stuck": float(last.mean() > problem.random_regret / 2),
        }
    if episodes == 400:
        assert not all(one["stuck"] for one in found)


# ---- arithmetic ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("N", [2, 3, 5, 20, 50])
def test_p_star_is_the_value_of_the_optimal_policy(N):
    assert backward_induction(chain(N)).V[0, 0] == pytest.approx(learning.success(N), rel=1e-12)
    uniform = np.full((N - 1, N, 2), 0.5)
    random = evaluate(chain(N), uniform)[0, 0]
    assert random == pytest.approx(learning.success(N) / 2 ** (N - 1), rel=1e-9)


def test_the_bounds_by_arithmetic():
    assert learning.success(2) == 0.5
    assert learning.success(3) == pytest.approx(4 / 9)
    assert learning.success(50) == pytest.approx(0.37160, abs=1e-5)
    assert learning.dithering_bound(5) == 16
    assert learning.dithering_bound(100) == 2**99
    assert learning.tabular_bound(50) == 49 * 49 * 50 * 2
    assert learning.tabular_bound(100) == 99 * 99 * 100 * 2


def test_learning_jobs_leave_out_bases_that_cannot_be():
    jobs = learning.learning_jobs([3, 4], [2, 12, 13, None], 2, 500)
    found = [(job.settings["length"], job.settings["features"], job.settings["seed"]) for job in jobs]
    assert found == [
        (N, K, seed)
        for N in (3, 4)
        for K in (2, 12, 13, None)
        if K is None or K <= (N - 1) * 2 * N
        for seed in (0, 1)
    ]
    assert (3, 12, 0) in found
    assert (3, 13, 0) not in found
    assert all(job.settings["limit"] == 500 and job.cost > 0 for job in jobs)


def test_cells_are_the_runs_of_each_setting():
    frame = pl.DataFrame({"b": [2, 1, 2, 1], "a": ["x", "x", "y", "x"], "time": [1.0, 2.0, math.inf, 3.0]})
    one = results.cells(frame, "b")
    assert {key: values.tolist() for key, values in one.items()} == {1: [2.0, 3.0], 2: [1.0, math.inf]}
    assert list(one) == [1, 2]
    assert {key: values.tolist() for key, values in results.cells(frame, "a", "b").items()} == {
        ("x", 1): [2.0, 3.0],
        ("x", 2): [1.0],
        ("y", 2): [math.inf],
    }


def test_costs_grow_with_everything():
    assert learning.seconds(50, 10, 2e6) > learning.seconds(50, 10, 1e6) > learning.seconds(20, 10, 1e6) > 0
    assert learning.seconds(50, 100, 1e6) > learning.seconds(50, 10, 1e6) == learning.seconds(50, None, 1e6)


def test_rows_are_selected_by_settings_and_by_the_columns_they_have():
    frame = pl.DataFrame({"agent": ["a", "b", "b"], "scale": [1.0, 1.0, 2.0], "best": [None, 3.0, None]})
    assert results.having(frame, agent="b", scale=2.0).rows() == [("b", 2.0, None)]
    assert results.rows_where(agent="a")(frame).rows() == [("a", 1.0, None)]
    assert results.rows_with("best")(frame).rows() == [("b", 1.0, 3.0)]


def test_curves_come_seed_by_seed_whatever_the_order_of_the_rows():
    rows = [{"agent": "a", "seed": s, "episode": e, "regret": 10.0 * s + e} for e in (5, 1) for s in (1, 0)]
    at, values = results.learning_curves(pl.DataFrame([*rows, {**rows[0], "agent": "b"}]), agent="a")
    assert at.tolist() == [1, 5]
    assert values.tolist() == [[1, 5], [11, 15]]


def test_an_option_is_chosen_without_the_seed_it_is_judged_by():
    found = np.array([[9.0, 0.0, 0.0], [1.0, 2.0, 2.0]])
    assert results.chosen_by_the_others(found).tolist() == [1, 0, 0]  # seeds 1 and 2 see the luck of seed 0
    assert results.chosen_by_the_others(found[:, :1]).tolist() == [9]


def test_thousands_of_runs_of_dithering_do_not_play_the_same_games():
    found = dithering.jobs([4], 2500)
    assert len({job.settings["seed"] for job in found}) == len(found)
