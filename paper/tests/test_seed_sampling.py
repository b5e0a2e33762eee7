"""Agents that share every step: their values, and whole runs, against slow and obvious twins."""

import numpy as np
import pytest

from rlsvi import RLSVI, problems
from rlsvi.core.random import normal, pick
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.solve import backward_induction
from rlsvi.simulate import simulate
from rlsvi_paper.descendants.seed_sampling import SCHEMES, SEEDS
from rlsvi_paper.loops.staggered import Scheme, SharedTable, add, layers_of, plan

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


def random_problem(seed=0, H=4, S=3, A=2):
    """An MDP whose periods differ, and whose first state is the last one."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(S), size=(H, S, A)) * (rng.random((H, S, A, S)) < 0.7) + 1e-3 * np.eye(S)[:, None]
    return FiniteMDP.from_arrays(P / P.sum(axis=3, keepdims=True), rng.random((H, S, A)), start=np.eye(S)[-1])


@pytest.mark.parametrize("mdp", [problems.river_swim(4, 5).mdp, problems.deep_sea(5).mdp, random_problem()])
def test_layers_are_the_problem(mdp):
    layers = layers_of(mdp)
    V = np.zeros(layers.r.shape[1])
    for r, P in zip(layers.r[::-1], layers.P[::-1], strict=True):
        V = (r + P @ V).max(axis=1)
    assert V[0] == pytest.approx(mdp.start @ backward_induction(mdp).V[0], abs=1e-12)


def test_a_problem_with_noisy_rewards_is_refused():
    with pytest.raises(ValueError, match="no random"):
        layers_of(problems.deep_sea(4, stochastic=True).mdp)


def learn(shared, transition):
    add(shared.learned, *transition, shared.sigma, shared.stream)


def plan_from(shared, agent, since):
    V = np.zeros((len(RIVER.size), RIVER.r.shape[1]))
    plan(RIVER, shared.learned, shared.Q[agent], V, agent, since, shared.ridge, shared.sigma, shared.stream)


def test_what_is_out_of_range_is_refused():
    for wrong in ((0, LAM, SIGMA), (2, 0.0, SIGMA), (2, LAM, 0.0)):
        with pytest.raises(ValueError, match=r"agents|lam|sigma"):
            SharedTable(RIVER, wrong[0], SCHEMES[SEEDS], *wrong[1:])


def test_seeds_have_a_prior_draw_and_noise_of_their_own():
    K = 20_000
    shared = SharedTable(RIVER, K, SCHEMES[SEEDS], LAM, SIGMA, seed=4)
    prior = shared.learned.noise / (LAM * SIGMA**2)  # theta_0
    assert (abs(prior.std(axis=0) * np.sqrt(LAM) - 1) < 5 / np.sqrt(2 * K)).all()
    for _ in range(2):
        before = shared.learned.noise[:, 0, 0, 1].copy()
        learn(shared, (0, 0, 1, 1))
        noise = shared.learned.noise[:, 0, 0, 1] - before
        assert abs(noise.std() / SIGMA - 1) < 5 / np.sqrt(2 * K)
        assert abs(noise.mean()) < 5 * SIGMA / np.sqrt(K)
        assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 5 / np.sqrt(K)  # of neighbours


def obvious(layers, K, scheme, rounds, lam, sigma, seed):
    """A whole run in plain Python, with the same random numbers: the counts, and what is earned."""
    H, A, ridge, earned = len(layers.r), layers.r.shape[2], lam * sigma**2, 0.0
    table = SharedTable(layers, K, scheme, lam, sigma, seed)
    noise, words = table.learned.noise.copy(), table.stream.copy()
    n, moves, Q, state = np.zeros_like(layers.r), np.zeros_like(layers.P), {}, {}

    def plan(k, since):
        V = np.zeros(layers.r.shape[1])
        for h in reversed(range(since, H)):
            value = np.zeros(layers.r.shape[1])
            for s in range(layers.size[h]):
                Q[k, h, s] = []
                for a in range(A):
                    total = n[h, s, a] * layers.r[h, s, a] + moves[h, s, a] @ V
                    drawn = (
                        noise[k, h, s, a] if scheme.seeds else np.sqrt(n[h, s, a] + ridge) * sigma * normal(words)
                    )
                    Q[k, h, s].append((total + drawn) / (n[h, s, a] + ridge))
                value[s] = max(Q[k, h, s])
            V = value

    for step in range(H + rounds * H):
        clocks = {k: step - k * H // K for k in range(K)}
        here = {k: clock % H for k, clock in clocks.items() if 0 <= clock < rounds * H}
        if scheme.shared and here:
            plan(0, 0)
        for k, h in here.items():
            if not scheme.shared and (scheme.replan or h == 0):
                plan(k, h)
        for k, h in here.items():
            s = state[k] if h else 0
            a = int(np.argmax(Q[0 if scheme.shared else k, h, s]))
            state[k] = pick(words, layers.P[h, s, a])
            n[h, s, a] += 1
            moves[h, s, a, state[k]] += 1
            for member in noise:
                member[h, s, a] += sigma * normal(words)
            earned += layers.r[h, s, a]
    return n, moves, earned


@pytest.mark.parametrize("name", SCHEMES)
def test_a_whole_run_is_that_of_plain_python(name):
    layers, K, rounds = layers_of(problems.river_swim(4, 5).mdp), 3, 6
    shared = SharedTable(layers, K, SCHEMES[name], LAM, SIGMA, seed=7)
    earned = shared.play(rounds)
    n, moves, expected = obvious(layers, K, SCHEMES[name], rounds, LAM, SIGMA, 7)
    assert (shared.learned.n == n).all()
    assert (shared.learned.moves == moves).all()
    assert earned == pytest.approx(expected, abs=1e-9)
    assert n.sum() == K * rounds * len(layers.r)


def test_a_member_is_a_regression_on_its_perturbed_targets():
    K = 3
    shared = SharedTable(RIVER, K, Scheme(seeds=True, replan=True), LAM, SIGMA, seed=1)
    prior = shared.learned.noise / shared.ridge
    noise = [[] for _ in RIVER.r]
    for h, s, a, following in lived(RIVER, 20, 0):
        before = shared.learned.noise.copy()
        learn(shared, (h, s, a, following))
        noise[h].append((s, a, following, (shared.learned.noise - before)[:, h, s, a]))
    for k in range(K):
        plan_from(shared, k, 0)
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
        learn(shared, transition)
    for k in range(K):
        plan_from(shared, k, 4)
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
