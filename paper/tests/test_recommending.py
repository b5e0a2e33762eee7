"""The jobs of the figures on recommendations against obvious twins."""

import itertools

import numpy as np
import polars as pl
import pytest

from rlsvi import (
    LSVI,
    RLSVI,
    Boltzmann,
    ContextualBandit,
    EpsilonGreedy,
    OptimalPolicy,
    ThompsonSampling,
    problems,
)
from rlsvi.bases import Tabular
from rlsvi.mdp.recommendation import draw_taste, histories
from rlsvi.simulate.finite import simulate
from rlsvi_paper.claim import Outcome
from rlsvi_paper.recommendation import engine as losses
from rlsvi_paper.recommendation import engine as paper
from rlsvi_paper.recommendation import recsys_boltzmann
from rlsvi_paper.recommendation.recsys_myopic import crossing
from rlsvi_paper.schedules import PRINTED, SCHEDULES, best_of

SETTINGS = {"episodes": 130, "runs": 2, "seed": 3}


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("RLSVI", lambda seed: RLSVI(lam=0.2, sigma=1e-3**0.5, seed=seed)),
        ("Boltzmann 0.01", lambda seed: LSVI(lam=0.2, explore=Boltzmann(0.01), seed=seed)),
        (
            "epsilon 10/(10 + l)",
            lambda seed: LSVI(lam=0.2, explore=EpsilonGreedy(lambda it: 10 / (10 + it)), seed=seed),
        ),
        (
            "Boltzmann 30/(1 + l)",
            lambda seed: LSVI(lam=0.2, explore=Boltzmann(lambda it: 30 / (1 + it)), seed=seed),
        ),
        ("linear bandit", lambda seed: ContextualBandit(lam=0.2, sigma=1e-3**0.5, seed=seed)),
        ("myopic", lambda seed: OptimalPolicy(myopic=True, seed=seed)),
        ("Thompson", lambda seed: ThompsonSampling(seed=seed)),
        ("RLSVI, table", lambda seed: RLSVI(lam=0.2, sigma=1e-3**0.5, basis=Tabular(), seed=seed)),
    ],
)
def test_a_job_is_the_mean_of_its_runs(name, make):
    found = paper.recommending(agent=name, coding=paper.LIKES, **SETTINGS)
    problem = paper.instance(3, paper.LIKES)
    runs = [np.cumsum(simulate(make(3000 + run), problem, 130).path_regret) for run in range(2)]
    np.testing.assert_array_equal(found["regret"], np.mean(runs, axis=0)[found["episode"] - 1])
    assert found["episode"][-1] == 130
    likes = [likes_forgone(simulate(make(3000 + run), problem, 130, trace=True).trace) for run in range(2)]
    np.testing.assert_allclose(
        found["forgone"], np.cumsum(np.mean(likes, axis=0))[found["episode"] - 1], atol=1e-9
    )
    assert (found["forgone"][-1] < 1e-9) == (name == "myopic")
    assert (np.diff(found["episode"]) > 0).all()


def likes_forgone(trace):
    """The best chance of a like over the chosen product's, customer by customer."""
    taste, x = draw_taste(10, scale=2.0, seed=3), histories(10, 5)
    lost = np.zeros(len(trace.states))
    for i, h in np.ndindex(*trace.states.shape):
        seen = x[trace.states[i, h]]
        chances = [like_probability(taste, seen, a) for a in range(10)]
        best = max(p for p, shown in zip(chances, seen, strict=True) if shown == 0)
        lost[i] += best - chances[trace.actions[i, h]]
    return lost


def test_the_coding_changes_rewards_and_nothing_else():
    likes, dislikes = (paper.instance(5, coding) for coding in (paper.LIKES, paper.DISLIKES))
    np.testing.assert_array_equal(likes.mdp.table.probability, dislikes.mdp.table.probability)
    assert dislikes.solution.V[0, 0] == pytest.approx(likes.solution.V[0, 0] - 5)
    codings = (paper.LIKES, paper.DISLIKES)
    found = [paper.recommending(agent="Thompson", coding=coding, **SETTINGS)["regret"] for coding in codings]
    np.testing.assert_allclose(*found, atol=1e-9)


def test_facts_of_an_instance():
    problem = paper.instance(1, paper.LIKES)
    found = paper.instance_facts(seed=1)
    assert found["states"] == 4521 == len(histories(10, 5))
    assert found["best"] == problem.solution.V[0, 0]
    assert found["fixed_order"] == pytest.approx(2.5, abs=1e-12)
    assert 0.05 < found["misfit"] < 0.3
    taste, order = draw_taste(10, scale=2.0, seed=1), np.random.default_rng(1).permutation(10)[:5]
    total = 0.0
    for answers in itertools.product((1, -1), repeat=5):
        x, chance, likes = np.zeros(10), 1.0, 0
        for a, answer in zip(order, answers, strict=True):
            p = like_probability(taste, x, a)
            chance *= p if answer == 1 else 1 - p
            likes += answer == 1
            x[a] = answer
        total += chance * likes
    assert found["fixed_order"] == pytest.approx(total, abs=1e-12)


def test_of_many_fixed_orders_the_one_farthest_from_random_play_is_told(monkeypatch):
    orders, worths = [], iter([2.5, 2.7, 2.2, *17 * [2.6]])
    monkeypatch.setattr(paper, "_worth_of_order", lambda _, order: orders.append(tuple(order)) or next(worths))
    assert paper.instance_facts(seed=1)["fixed_order"] == 2.2
    assert len(set(orders)) == paper.ORDERS == 20


def like_probability(taste, x, a):
    return 1 / (1 + np.exp(-(taste.beta[a] + taste.gamma[a] @ x)))


def frame(curves):
    """A table of made-up curves: {agent: (instances, points)}, at the episodes 10, 20, .."""
    rows = [
        {"agent": agent, "coding": paper.LIKES, "seed": i, "episode": 10 * (t + 1), "regret": float(value)}
        for agent, values in curves.items()
        for i, curve in enumerate(values)
        for t, value in enumerate(curve)
    ]
    return pl.DataFrame(rows)


def test_rates_and_the_end_of_a_curve():
    steps = np.array([[1.0] * 30 + [0.1] * 30, [2.0] * 30 + [0.3] * 30])
    table = frame({"RLSVI": 10 * np.cumsum(steps, axis=1)})
    middle, rate = losses.rates(table, "RLSVI")
    np.testing.assert_allclose(rate, steps)
    np.testing.assert_allclose(middle[:3], [5, 15, 25])
    np.testing.assert_allclose(losses.at_the_end(table, "RLSVI"), [0.1, 0.3])


def test_the_crossing_is_where_the_lead_begins_for_good():
    ours = np.tile(np.concatenate([np.full(30, 1.0), np.full(30, 0.1)]), (6, 1))
    theirs = np.full((6, 60), 0.5)
    table = frame({"RLSVI": 10 * np.cumsum(ours, axis=1), "myopic": 10 * np.cumsum(theirs, axis=1)})
    found = crossing(table, "myopic")
    assert found.low == found.value == found.high
    assert found.value == pytest.approx(295 + 10 * 14 / 18)  # three of five points are late there, all but a part
    behind = frame({"RLSVI": 10 * np.cumsum(ours + 1, axis=1), "myopic": 10 * np.cumsum(theirs, axis=1)})
    assert crossing(behind, "myopic").value == np.inf


@pytest.mark.parametrize(
    ("count", "outcome"),
    [
        (lambda N, J: 3**J, Outcome.REPRODUCED),
        (lambda N, J: N**9, Outcome.NOT_REPRODUCED),  # a power of J
        (lambda N, J: 10**9, Outcome.NOT_REPRODUCED),
    ],
)
def test_exponentially_smaller_is_judged_by_growth(monkeypatch, count, outcome):
    monkeypatch.setattr(recsys_boltzmann, "count_histories", count)
    assert recsys_boltzmann.smaller.judge(pl.DataFrame({"states": [4521]})).outcome is outcome


def test_without_context_thompson_sampling_learns_the_myopic_policy():
    found = [paper.without_context(bandit="Thompson", episodes=600, runs=2, seed=seed) for seed in range(3)]
    for one in found:
        assert 0 <= one["last"] < 0.5 * one["first"]
    seed, total = 1, np.zeros(600)
    beta = np.random.default_rng(seed).normal(0.0, 2.0, 10)
    chances = 1 / (1 + np.exp(-beta))
    problem = problems.recommendation(10, 5, beta=beta, gamma=np.zeros((10, 10)))
    for run in range(2):
        history = simulate(ThompsonSampling(seed=1000 * seed + run), problem, 600, trace=True, regret=False)
        for i, actions in enumerate(history.trace.actions):
            left = list(range(10))
            for a in actions:
                total[i] += chances[left].max() - chances[a]
                left.remove(a)
    assert found[seed]["first"] == pytest.approx(total[:50].sum() / 100)
    assert found[seed]["last"] == pytest.approx(total[-50:].sum() / 100)


# ---- the grid of ways to dither -----------------------------------------------------------------------------


def test_the_grid_has_what_its_names_say():
    at, found = np.arange(200), {name: way.parameters(0, 200)[1] for name, way in SCHEDULES.items()}
    np.testing.assert_array_equal(found["Boltzmann 0.01"], np.full(200, 0.01))
    np.testing.assert_array_equal(found["epsilon 0.05"], np.full(200, 0.05))
    np.testing.assert_allclose(found["Boltzmann 100/(10 + l)"], 100 / (10 + at))
    for c in (3, 10, 30, 100, 300):
        np.testing.assert_allclose(found[f"epsilon {c}/({c} + l)"], c / (c + at))
    kinds = {name: way.parameters(0, 1)[0] for name, way in SCHEDULES.items()}
    assert len({(kinds[name], *values) for name, values in found.items()}) == len(SCHEDULES) == 25


def test_trials_are_runs_on_instances_that_judge_nothing():
    size = {"coding": paper.DISLIKES, "episodes": 130, "runs": 2}
    for name in ("epsilon 0.1", "Boltzmann 30/(1 + l)"):
        tried = paper.trial(schedule=name, seed=3, **size)
        curve = paper.recommending(agent=name, seed=10_003, **size)
        assert tried["tried"] == curve["regret"][-1]
        before = curve["regret"][curve["episode"] == 120]
        assert tried["tried_late"] == pytest.approx(float(tried["tried"] - before[0]) / 10)
    jobs = [job for job in recsys_boltzmann.jobs(1200, 10, 100) if "agent" in job.settings]
    assert max(job.settings["seed"] for job in jobs) < paper.ELSEWHERE


def played(late, tried):
    """A table of what agents lose of an optimum of 1 in every episode, on 30 instances, and lost in trials."""
    share = np.linspace(0.9, 1.1, 30)
    judged = frame({name: 10 * np.outer(share, np.arange(1, 61)) * loss for name, loss in late.items()})
    best = pl.DataFrame({"best": np.ones(30), "seed": range(30)})
    trial = {"coding": paper.LIKES, "seed": 0}
    rows = [{"schedule": name, **trial, "tried": x, "tried_late": x} for name, x in tried.items()]
    return pl.concat([judged, best, pl.DataFrame(rows)], how="diagonal_relaxed")


USUAL = dict.fromkeys(SCHEDULES, 0.3)


@pytest.mark.parametrize(
    ("late", "tried", "outcome"),
    [
        ({}, {}, Outcome.REPRODUCED),
        ({"RLSVI": 0.2}, {}, Outcome.NOT_REPRODUCED),
        ({"epsilon 30/(30 + l)": 0.05}, {"epsilon 30/(30 + l)": 0.05}, Outcome.NOT_REPRODUCED),
        ({"epsilon 30/(30 + l)": 0.05}, {}, Outcome.REPRODUCED),  # luck on the instances that judge is not chosen
        ({"epsilon 30/(30 + l)": 0.05}, {"epsilon 0.1": 0.05}, Outcome.REPRODUCED),
    ],
)
def test_dithering_learns_if_the_way_that_was_best_elsewhere_does(late, tried, outcome):
    table = played({"RLSVI": 0.02, **USUAL, **late}, {**USUAL, "epsilon 0.02": 0.29, **tried})
    assert recsys_boltzmann.learns_the_optimum.judge(table).outcome is outcome


def test_the_caveat_is_about_the_way_that_was_best_elsewhere():
    lucky, chosen = "epsilon 10/(10 + l)", "Boltzmann 30/(10 + l)"
    table = played({"RLSVI": 0.02, **USUAL, "greedy": 0.3, lucky: 0.01, chosen: 0.05}, {**USUAL, chosen: 0.29})
    assert best_of(table, "tried")[0] == chosen
    found = recsys_boltzmann.explores_more_efficiently.judge(table)
    assert found.outcome is Outcome.REPRODUCED  # it speaks of the temperatures of section 6.3
    assert f"{chosen}, has 2.5" in found.caveat
    worse = played({"RLSVI": 0.2, **USUAL, "greedy": 0.3}, USUAL)
    assert recsys_boltzmann.explores_more_efficiently.judge(worse).outcome is Outcome.NOT_REPRODUCED
    assert len(PRINTED) == 6
