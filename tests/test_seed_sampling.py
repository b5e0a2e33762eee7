"""Agents that share every step: their values, and whole runs, against slow and obvious twins."""

import numpy as np
import pytest

from rlsvi import RLSVI, problems
from rlsvi.mdp.solve import backward_induction
from rlsvi.paper.descendants.seed_sampling_runs import SCHEMES, Scheme, SharedTable, layers_of, play
from rlsvi.simulate import simulate

LAM, SIGMA = 2.0, 0.5


def lived(layers, episodes, rng):
    """Learned transitions of random play, as a list of (h, s, a, following)."""
    found = []
    for _ in range(episodes):
        s = 0
        for h, layer in enumerate(layers):
            a = rng.integers(2)
            following = rng.choice(layer.P.shape[2], p=layer.P[s, a])
            found.append((h, s, a, following))
            s = following
    return found


def test_layers_are_the_problem():
    mdp = problems.river_swim(4, 5).mdp
    layers, V = layers_of(mdp), np.zeros(4)
    for layer in reversed(layers):
        V = (layer.r + layer.P @ V[: layer.P.shape[2]]).max(axis=1)
    assert V == pytest.approx(backward_induction(mdp).V[0][:1], abs=1e-12)


def test_a_member_is_a_regression_on_its_perturbed_targets():
    layers, rng, K = layers_of(problems.river_swim(4, 5).mdp), np.random.default_rng(0), 3
    learned = SharedTable(layers, K, LAM, SIGMA, np.random.default_rng(1))
    prior = [noise / learned.ridge for noise in learned.noise]
    noise = [[] for _ in layers]
    for h, s, a, following in lived(layers, 20, rng):
        before = learned.noise[h].copy()
        learned.add(h, np.array([s]), np.array([a]), np.array([following]))
        noise[h].append((s, a, following, (learned.noise[h] - before)[:, s, a]))
    Q = [np.zeros((K, *layer.r.shape)) for layer in layers]
    learned.plan(Q, np.arange(K), np.zeros(K, int))
    for k in range(K):
        V = np.zeros(layers[-1].P.shape[2])
        for h in reversed(range(len(layers))):
            n, A = layers[h].r.shape
            X = np.zeros((len(noise[h]), n * A))
            y = np.zeros(len(noise[h]))
            for row, (s, a, following, w) in enumerate(noise[h]):
                X[row, s * A + a], y[row] = 1.0, layers[h].r[s, a] + V[following] + w[k]
            P = X.T @ X / SIGMA**2 + LAM * np.eye(n * A)
            theta = np.linalg.solve(P, X.T @ y / SIGMA**2 + LAM * prior[h][k].ravel())
            assert Q[h][k].ravel() == pytest.approx(theta, abs=1e-9)
            V = Q[h][k].max(axis=1)


def test_a_draw_has_the_mean_and_the_variance_of_the_posterior():
    layers, K = layers_of(problems.river_swim(4, 5).mdp), 20_000
    learned = SharedTable(layers, 0, LAM, SIGMA, np.random.default_rng(2))
    for h, s, a, following in lived(layers, 20, np.random.default_rng(3)):
        learned.add(h, np.array([s]), np.array([a]), np.array([following]))
    Q = [np.zeros((K, *layer.r.shape)) for layer in layers]
    learned.plan(Q, np.arange(K), np.full(K, 4))
    assert all(not values.any() for values in Q[:4])  # only the last period was asked for
    n = learned.moves[4].sum(axis=2)
    std = 1 / np.sqrt(n / SIGMA**2 + LAM)
    mean = n * layers[4].r / (n + LAM * SIGMA**2)
    assert (abs(Q[4].mean(axis=0) - mean) < 5 * std / np.sqrt(K)).all()
    assert (abs(Q[4].std(axis=0) / std - 1) < 5 / np.sqrt(2 * K)).all()


def test_one_agent_with_a_draw_for_every_episode_is_rlsvi():
    problem, rounds, seeds = problems.deep_sea(5), 30, 60
    layers, best = layers_of(problem.mdp), 0.99
    options = {"lam": 10.0, "sigma": 0.01}
    scheme = Scheme(seeds=False, replan=False)
    found = [
        rounds * best - play(layers, scheme, 1, rounds, *options.values(), np.random.default_rng([5, i]))
        for i in range(seeds)
    ]
    exact = [simulate(RLSVI(**options, seed=i), problem, rounds).regret.sum() for i in range(seeds)]
    error = np.sqrt((np.var(found) + np.var(exact)) / seeds)
    assert abs(np.mean(found) - np.mean(exact)) < 4 * error
    assert np.mean(exact) < 25  # it learns something


@pytest.mark.parametrize("scheme", SCHEMES.values())
def test_every_step_of_every_agent_is_learned(scheme, monkeypatch):
    layers, added = layers_of(problems.river_swim(4, 5).mdp), []
    add = SharedTable.add
    monkeypatch.setattr(
        SharedTable, "add", lambda self, h, s, a, following: (added.append(len(s)), add(self, h, s, a, following))
    )
    play(layers, scheme, 3, 4, LAM, SIGMA, np.random.default_rng(6))
    assert sum(added) == 3 * 4 * 5
