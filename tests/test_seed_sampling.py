"""Agents that share every step: their values, and whole runs, against slow and obvious twins."""

import numpy as np
import pytest

from rlsvi import RLSVI, problems
from rlsvi.mdp.solve import backward_induction
from rlsvi.paper.descendants.seed_sampling_runs import SCHEMES, Scheme, SharedTable, layers_of
from rlsvi.simulate import simulate

LAM, SIGMA = 2.0, 0.5
RIVER = layers_of(problems.river_swim(4, 5).mdp)


def lived(layers, episodes, seed):
    """Transitions of random play, as a list of (h, s, a, following)."""
    found, rng = [], np.random.default_rng(seed)
    for _ in range(episodes):
        s = 0
        for h in range(len(layers.r)):
            a = int(rng.integers(2))
            following = int(rng.choice(len(layers.P[h, s, a]), p=layers.P[h, s, a]))
            found.append((h, s, a, following))
            s = following
    return found


def test_layers_are_the_problem():
    assert list(RIVER.size) == [1, 2, 3, 4, 4, 4]
    V = np.zeros(4)
    for h in reversed(range(5)):
        V = (RIVER.r[h] + RIVER.P[h] @ V).max(axis=1)
    assert V[0] == pytest.approx(backward_induction(problems.river_swim(4, 5).mdp).V[0][0], abs=1e-12)


def test_a_member_is_a_regression_on_its_perturbed_targets():
    K = 3
    shared = SharedTable(RIVER, K, Scheme(seeds=True, replan=True), LAM, SIGMA, seed=1)
    prior = shared.learned.noise / shared.ridge
    noise = [[] for _ in RIVER.r]
    for h, s, a, following in lived(RIVER, 20, 0):
        before = shared.learned.noise.copy()
        shared.add(h, s, a, following)
        noise[h].append((s, a, following, (shared.learned.noise - before)[:, h, s, a]))
    for k in range(K):
        shared.plan(k, 0)
        V = np.zeros(4)
        for h in reversed(range(5)):
            X, y = np.zeros((len(noise[h]), 8)), np.zeros(len(noise[h]))
            for row, (s, a, following, w) in enumerate(noise[h]):
                X[row, 2 * s + a], y[row] = 1.0, RIVER.r[h, s, a] + V[following] + w[k]
            P = X.T @ X / SIGMA**2 + LAM * np.eye(8)
            theta = np.linalg.solve(P, X.T @ y / SIGMA**2 + LAM * prior[k, h].ravel()).reshape(4, 2)
            n = RIVER.size[h]
            assert shared.Q[k, h, :n] == pytest.approx(theta[:n], abs=1e-9)
            V[:n] = shared.Q[k, h, :n].max(axis=1)


def test_a_draw_has_the_mean_and_the_variance_of_the_posterior():
    K = 20_000
    shared = SharedTable(RIVER, K, Scheme(seeds=False, replan=True), LAM, SIGMA, seed=2)
    for transition in lived(RIVER, 20, 3):
        shared.add(*transition)
    for k in range(K):
        shared.plan(k, 4)
    assert not shared.Q[:, :4].any()  # only the last period was asked for
    n = shared.learned.n[4]
    std, mean = 1 / np.sqrt(n / SIGMA**2 + LAM), n * RIVER.r[4] / (n + LAM * SIGMA**2)
    assert (abs(shared.Q[:, 4].mean(axis=0) - mean) < 5 * std / np.sqrt(K)).all()
    assert (abs(shared.Q[:, 4].std(axis=0) / std - 1) < 5 / np.sqrt(2 * K)).all()


def test_one_agent_with_a_draw_for_every_episode_is_rlsvi():
    problem, rounds, seeds = problems.deep_sea(5), 30, 60
    layers, options = layers_of(problem.mdp), {"lam": 10.0, "sigma": 0.01}
    scheme = Scheme(seeds=False, replan=False)
    found = [rounds * 0.99 - SharedTable(layers, 1, scheme, **options, seed=i).play(rounds) for i in range(seeds)]
    exact = [simulate(RLSVI(**options, seed=i), problem, rounds).regret.sum() for i in range(seeds)]
    error = np.sqrt((np.var(found) + np.var(exact)) / seeds)
    assert abs(np.mean(found) - np.mean(exact)) < 4 * error
    assert np.mean(exact) < 25  # it learns something


@pytest.mark.parametrize("scheme", SCHEMES.values())
def test_every_step_of_every_agent_is_learned(scheme):
    shared = SharedTable(RIVER, 3, scheme, LAM, SIGMA, seed=6)
    earned = shared.play(4)
    learned = shared.learned
    assert learned.n.sum(axis=(1, 2)) == pytest.approx(3 * 4)  # in each period
    assert (learned.moves.sum(axis=3) == learned.n).all()
    assert (learned.moves[RIVER.P == 0] == 0).all()
    assert earned == pytest.approx((learned.n * RIVER.r).sum())
