"""The figure on when deep exploration is needed: its chains and jobs, how schedules are chosen, its claims."""

import numpy as np
import polars as pl
import pytest

from rlsvi import LSVI, RLSVI, EpsilonGreedy, bases
from rlsvi.mdp import backward_induction, chain, evaluate
from rlsvi.problems import Problem
from rlsvi.simulate.finite import simulate
from rlsvi_paper import figure_called
from rlsvi_paper.chain import exploration_depth as it
from rlsvi_paper.claim import varied
from rlsvi_paper.results import seeds_of


def test_rewards_of_0_and_minus_1_are_the_same_problem():
    """Every policy loses as much as on the paper's chain, and values begin at 0, not above or not below them."""
    ours, paid, lost = chain(6), it.task_of(it.PRIZE, 5), it.task_of(it.PENALTY, 5)
    best = [backward_induction(task) for task in (ours, paid, lost)]
    np.testing.assert_array_equal(best[1].Q, best[0].Q)
    np.testing.assert_allclose(best[2].Q, best[0].Q - 1.0, atol=1e-12)
    assert best[2].Q.max() <= 0.0 <= best[1].Q.min()
    drawn = np.random.default_rng(0).dirichlet([1.0, 1.0], size=(20, 5, 6))
    for policy in drawn:
        values = [
            found.V[0, 0] - evaluate(task, policy)[0, 0]
            for task, found in zip((paid, lost), best[1:], strict=True)
        ]
        assert values[1] == pytest.approx(values[0], abs=1e-12)


def test_costs_are_paid_for_steps_to_the_right_alone():
    plain, dear = it.task_of(it.PRIZE, 4), it.task_of(it.COSTS, 4)
    for action, cost in ((0, 0.0), (1, 0.01)):
        policy = np.eye(2)[np.full((4, 5), action)]
        assert evaluate(plain, policy)[0, 0] - evaluate(dear, policy)[0, 0] == pytest.approx(cost, abs=1e-12)


@pytest.mark.parametrize(("agent", "features"), [("RLSVI", it.COHERENT), ("ε = 0.05", it.TABLE)])
def test_a_share_is_that_of_a_plain_simulation(agent, features):
    found = it.earned(agent=agent, coding=it.PENALTY, features=features, depth=3, seed=7)
    problem_seed, agent_seed = seeds_of(7)
    task = it.task_of(it.PENALTY, 3)
    Q = backward_induction(task).Q
    basis = bases.coherent(Q, 10, seed=problem_seed) if features == it.COHERENT else bases.Tabular()
    player = RLSVI(lam=1.0, sigma=0.1, seed=agent_seed)
    if agent != "RLSVI":
        player = LSVI(lam=0.01, explore=EpsilonGreedy(0.05), seed=agent_seed)
    problem = Problem(task, basis)
    regret = simulate(player, problem, 2000).regret
    assert found["episodes"].tolist() == [125, 500, 2000]
    expected = [1 - regret[:L].mean() / problem.random_regret for L in (125, 500, 2000)]
    np.testing.assert_allclose(found["share"], expected, rtol=0, atol=1e-9)


def test_schedules_fall_as_they_are_called():
    assert len(it.DITHERING) == 10
    assert [it.DITHERING["ε = 10 / (10 + l)"].epsilon(episode) for episode in (0, 10, 90)] == [1.0, 0.5, 0.1]


def test_jobs_are_those_of_the_preregistration():
    plan = [job.settings for job in figure_called("exploration-depth").plan("paper")]
    assert len(plan) == 8 * 3 * 2 * 11 * 24
    assert {each["depth"] for each in plan} == {2, 4, 6, 8, 10, 12, 16, 20}
    assert {each["seed"] for each in plan} == set(range(2000, 2024))  # pilots had 100 to 105


def planted(ours, theirs, depths=(2, 6, 8, 12, 20), seeds=24):
    """A table where RLSVI and all dithering have these shares, functions of coding, features and depth."""
    rows = [
        {"agent": agent, "coding": c, "features": f, "depth": D, "seed": s, "episodes": L}
        | {"share": float((ours if agent == "RLSVI" else theirs)(c, f, D, s))}
        for agent in ("RLSVI", *it.DITHERING)
        for c in it.CODINGS
        for f in it.FEATURES
        for D in depths
        for L in it.BUDGETS
        for s in range(seeds)
    ]
    return pl.DataFrame(rows)


def test_the_schedule_of_a_seed_is_chosen_without_it():
    """However well a schedule does with a seed, that does not choose it for this seed, and only for others."""
    frame = planted(lambda *_: 0.9, lambda *_: 0.5, (2,), 5)
    lucky = (pl.col("agent") == "ε = 0.2") & (pl.col("seed") == 3)
    good = pl.col("agent") == "η = 0.1"
    frame = frame.with_columns(share=pl.when(lucky).then(0.99).when(good).then(0.6).otherwise(0.3))
    ((_, _, theirs),) = it.shares(frame, coding=it.PRIZE, features=it.TABLE, episodes=125)
    np.testing.assert_allclose(theirs, 0.6)


def as_predicted(coding, features, depth, seed):
    """Dithering as it is predicted, but for budgets."""
    if coding == it.PENALTY:
        return 0.95 if features == it.TABLE or seed % 2 else 0.0
    return 0.9 if depth <= 6 else 0.1


def outcomes(frame):
    figure = figure_called("exploration-depth")
    return {
        claim.name: str(verdict.outcome) for claim, verdict in zip(figure.claims, figure.judge(frame), strict=True)
    }


def test_every_claim_holds_where_all_is_as_predicted_and_fails_where_it_is_the_other_way_round():
    assert set(outcomes(planted(lambda *_: 0.95, as_predicted)).values()) == {"reproduced"}

    def turned(*where):
        return 1.0 - as_predicted(*where) if where[:2] != (it.PENALTY, it.COHERENT) else 1.0

    def little(coding, features, *_):
        return 0.95 if (coding, features) == (it.PENALTY, it.TABLE) else 0.1

    assert set(outcomes(planted(little, turned)).values()) == {"not reproduced"}


@pytest.mark.parametrize(("alike", "outcome"), [(True, "inconclusive"), (False, "reproduced")])
def test_an_interval_over_seeds_is_wider_if_a_seed_fares_alike_at_all_depths(alike, outcome):
    """16 of 24 runs succeed at each of three depths, with the same seeds or with others."""

    def theirs(coding, features, depth, seed):
        return float((seed + (0 if alike else 5 * depth)) % 24 < 16)

    frame = planted(lambda *_: 0.95, theirs, (12, 16, 20))
    found = varied(lambda: it.generalisation.judge(it.generalisation.rows(frame)))
    assert found.outcome == "reproduced"
    assert dict(found.variants)["interval over seeds"] == outcome


def test_random_play_meets_no_claim_but_that_on_many_decisions():
    found = outcomes(planted(lambda *_: 0.0, lambda *_: 0.0))
    assert [name for name, outcome in found.items() if outcome == "reproduced"] == ["deep"]


def test_a_boundary_ends_at_the_first_depth_that_fails():
    good, bad = np.full(4, 0.6), np.array([0.6, 0.4, 0.4, 0.4])
    assert it.boundary((2, 4, 6, 8), (good, good, bad, good)) == 4
    assert it.boundary((2,), (bad,)) == 0
