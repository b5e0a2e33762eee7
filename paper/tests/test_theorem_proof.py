"""The proof of docs/theorem.md: every step of it computed, in the numbering of the page, and the bound in runs."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate, special, stats

from rlsvi import RLSVI, problems
from rlsvi.bases import Tabular
from rlsvi.simulate import simulate
from rlsvi_paper.theory import bounds

S, A, H, L, MDPS = 3, 2, 3, 250, 400
LAM, SIGMA = bounds.optimistic_parameters(S, H)
KAPPA = LAM * SIGMA**2
ERRORS = 4.5  # standard errors over MDPs


class Played(NamedTuple):
    """What was played on MDPs of the prior, (MDPs, L) or, for every period, (MDPs, L, H)."""

    regret: np.ndarray  # V* - V^mu
    optimism: np.ndarray  # V~ - V*
    error: np.ndarray  # V~ - V^mu
    noise: np.ndarray  # w of the pairs on the way
    bias: np.ndarray  # b of the pairs on the way
    share: np.ndarray  # 1 / (n + kappa) of the pairs on the way
    largest: np.ndarray  # the largest standard normal of a period, at least 0
    depth: np.ndarray  # the largest -V~ of the next period, at least 0
    lowest: np.ndarray  # the largest of -xi(s, 0) over s of a period, at least 0


@pytest.fixture(scope="module")
def played():
    """RLSVI with a table by the formulas of the page, on many MDPs at once."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(S), size=(MDPS, H, S, A))
    R = -rng.beta(1.0, 1.0, size=(MDPS, H, S, A))
    best, every = np.zeros((MDPS, S)), np.arange(MDPS)
    for h in reversed(range(H)):
        best = (R[:, h] + np.einsum("msay,my->msa", P[:, h], best)).max(axis=2)
    into, lows = np.zeros((MDPS, H, S, A, S)), np.zeros((MDPS, H, S, A))
    found = Played(*(np.zeros((MDPS, L)) for _ in range(3)), *(np.zeros((MDPS, L, H)) for _ in range(6)))
    for episode in range(L):
        n = into.sum(axis=4)
        xi, mu = rng.standard_normal((MDPS, H, S, A)), np.zeros((MDPS, H, S), dtype=int)
        noise, bias = xi * SIGMA / np.sqrt(n + KAPPA), np.zeros((MDPS, H, S, A))
        V, value = np.zeros((MDPS, S)), np.zeros((MDPS, S))
        for h in reversed(range(H)):
            found.depth[:, episode, h] = np.maximum(-V, 0.0).max(axis=1)
            mean = (np.einsum("msay,my->msa", into[:, h], V) - lows[:, h]) / (n[:, h] + KAPPA)
            onward = (into[:, h] + 1) / (n[:, h] + S)[..., None]
            bias[:, h] = mean + (lows[:, h] + 1) / (n[:, h] + 2) - np.einsum("msay,my->msa", onward, V)
            Q = mean + noise[:, h]
            mu[:, h], V = Q.argmax(axis=2), Q.max(axis=2)
            taken = every[:, None], h, np.arange(S), mu[:, h]
            value = R[taken] + np.einsum("msy,my->ms", P[taken], value)
        found.regret[:, episode] = best[:, 0] - value[:, 0]
        found.optimism[:, episode] = V[:, 0] - best[:, 0]
        found.error[:, episode] = V[:, 0] - value[:, 0]
        found.largest[:, episode] = np.maximum(xi.max(axis=(2, 3)), 0.0)
        found.lowest[:, episode] = np.maximum(-xi[..., 0].min(axis=2), 0.0)
        s = np.zeros(MDPS, dtype=int)
        for h in range(H):
            pair = every, h, s, mu[every, h, s]
            found.noise[:, episode, h], found.bias[:, episode, h] = noise[pair], bias[pair]
            found.share[:, episode, h] = 1 / (n[pair] + KAPPA)
            lows[pair] += rng.random(MDPS) < -R[pair]
            s = np.minimum((P[pair].cumsum(axis=1) < rng.random(MDPS)[:, None]).sum(axis=1), S - 1)
            into[(*pair, s)] += 1
    return found


def mean_and_error(values):
    """Of the sums over episodes and periods, one for each MDP."""
    sums = values.reshape(MDPS, -1).sum(axis=1)
    return sums.mean(), sums.std(ddof=1) / math.sqrt(MDPS)


# ---- the setting: cells are independent given what was seen ----------------------------------------------------


def posterior(prior, history):
    """Of two cells' chances of a 1, on a grid: the chances of the choices do not depend on them and cancel."""
    grid = np.linspace(0.1, 0.9, 5)
    chance = prior.copy()
    for cell, outcome in history:
        likelihood = grid if outcome else 1 - grid
        chance *= likelihood[:, None] if cell == 0 else likelihood[None, :]
    return chance / chance.sum()


def test_cells_are_independent_given_adaptive_data_if_they_are_in_the_prior():
    rng = np.random.default_rng(1)
    apart = np.outer(rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)))
    tied = np.eye(5) / 5
    off = {"apart": 0.0, "tied": 0.0}
    for outcomes in product((0, 1), repeat=5):
        history, cell = [], 0
        for outcome in outcomes:  # win: stay, lose: shift
            history.append((cell, outcome))
            cell = cell if outcome else 1 - cell
        for name, prior in (("apart", apart), ("tied", tied)):
            found = posterior(prior, history)
            gap = np.abs(found - np.outer(found.sum(axis=1), found.sum(axis=0))).max()
            off[name] = max(off[name], float(gap))
    assert off["apart"] < 1e-12
    assert off["tied"] > 0.1


# ---- step 1: optimism; step 2: the error is the sum of biases and noise on the way -----------------------------


def test_values_are_optimistic_on_average_in_every_part_of_the_run(played):
    """E[V* - V~ | data] <= 0, so that the sum over any episodes is; regret is then at most the error."""
    for part in np.split(played.optimism, 5, axis=1):
        mean, error = mean_and_error(part)
        assert mean > -ERRORS * error
    assert played.regret == pytest.approx(played.error - played.optimism, abs=1e-12)


def test_the_error_is_bias_and_noise_along_the_played_way(played):
    mean, error = mean_and_error(played.error - played.bias.sum(axis=2) - played.noise.sum(axis=2))
    assert abs(mean) < ERRORS * error
    for part in (played.bias, played.noise):  # neither can be left out
        mean, error = mean_and_error(played.error - part.sum(axis=2))
        assert mean > ERRORS * error


def test_it_needs_transitions_of_their_own_in_every_period():
    """Two visits to one cell: the mean of a product is not the product of means, it is for two cells."""
    p = stats.beta(2.0, 3.0)
    assert p.moment(2) - p.mean() ** 2 == pytest.approx(p.var())
    assert p.var() > 0.03


# ---- step 3: the bias -----------------------------------------------------------------------------------------


def test_the_bias_is_an_average_of_what_is_lost_of_weight_kappa():
    """Weights of rewards, and of next values, are not negative and sum to kappa / (n + kappa), for all data."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        counts, alpha = rng.poisson(rng.exponential(5.0), size=4), rng.gamma(0.7, size=4)
        n, total = counts.sum(), alpha.sum()
        kappa = total * (1 + rng.exponential() * rng.integers(2))
        weights = (counts + alpha) / (n + total) - counts / (n + kappa)
        assert weights.min() >= -1e-15
        assert weights.sum() == pytest.approx(kappa / (n + kappa))
    assert (5 + 0.01) / (5 + 0.2) < 5 / (5 + 0.1)  # with a smaller kappa than 1'alpha one can be negative


def test_the_bias_on_the_way_is_at_most_that(played):
    most = KAPPA * played.share * (1 + played.depth)
    assert (played.bias <= most + 1e-12).all()
    assert (played.bias > KAPPA * played.share).any()  # the next value matters


def test_samples_are_not_far_below_minus_H(played):
    """-V~ of a period is at most H - h and what the noise of one action in all later periods adds, on any path."""
    later = np.cumsum(played.lowest[..., ::-1], axis=2)[..., ::-1] - played.lowest
    left = H - 1 - np.arange(H)
    assert (played.depth <= left + later / math.sqrt(LAM) + 1e-12).all()
    assert (played.depth > left).any()  # samples are not bounded as values are


@pytest.mark.parametrize("n", [1, 2, 5, 50, 1000])
def test_how_far_the_least_of_normals_is_beyond_a_quantile(n):
    """E(Z - z)+ <= n phi(z), which is 1 / (sqrt(2 pi) L) for z^2 = 2 log(n L), for Z the largest of n."""
    for episodes in (1, 10, 10_000):
        z = math.sqrt(2 * math.log(n * episodes))
        excess, _ = integrate.quad(lambda t: -math.expm1(n * special.log_ndtr(t)), z, z + 12)
        assert excess <= n * stats.norm.pdf(z)
        assert n * stats.norm.pdf(z) == pytest.approx(1 / (math.sqrt(2 * math.pi) * episodes))
        assert 1 / math.sqrt(2 * math.pi) < 0.4


# ---- step 4: the noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 6, 50, 10_000])
def test_the_square_of_the_largest_normal(n):
    square, _ = integrate.quad(lambda t: -2 * t * math.expm1(n * special.log_ndtr(t)), 0, 15, limit=200)
    assert square <= bounds.square_bound(n)
    assert bounds.square_bound(n) < 3 * square


def test_the_noise_on_the_way_is_at_most_the_largest_of_its_period(played):
    """And so its sum is at most sigma times the root of both sums of squares; the selection makes it positive."""
    assert (played.noise <= SIGMA * np.sqrt(played.share) * played.largest + 1e-12).all()
    shares, squares = mean_and_error(played.share)[0], mean_and_error(played.largest**2)
    mean, error = mean_and_error(played.noise)
    assert ERRORS * error < mean < SIGMA * math.sqrt(shares * squares[0])
    assert squares[0] - ERRORS * squares[1] < H * L * bounds.square_bound(S * A)


# ---- step 5: the pigeonhole -----------------------------------------------------------------------------------


def test_visits_share_out_at_most_so_much():
    """The sum of 1 / (n + kappa), however visits are spread; it is nearly reached if they are even."""
    for pairs, visits, kappa in ((3, 9, 0.3), (3, 9, 5.0), (2, 12, 1.0)):
        sums = [
            sum(1 / (k + kappa) for count in split for k in range(count))
            for split in product(range(visits + 1), repeat=pairs)
            if sum(split) == visits
        ]
        bound = bounds.visits_bound(pairs, visits, kappa)
        assert max(sums) <= bound
        assert sums[0] < max(sums)
    even = sum(1 / (k + 2.0) for k in range(10_000))
    assert even <= bounds.visits_bound(1, 10_000, 2.0) < 1.03 * even


def test_so_they_do_in_every_period_of_every_run(played):
    assert (played.share.sum(axis=1) <= bounds.visits_bound(S * A, L, KAPPA)).all()


# ---- the theorem ----------------------------------------------------------------------------------------------


def test_both_parts_are_within_the_bound(played):
    noise, prior = bounds.regret_bound(S, A, H, L, lam=LAM, sigma=SIGMA)
    for part, bound in ((played.noise, noise), (played.bias, prior), (played.regret, noise + prior)):
        mean, error = mean_and_error(part)
        assert mean + ERRORS * error < bound


def test_the_order_of_the_bound():
    """The first part is sqrt(H^3 S A T) times a root of logarithms, and the second hardly grows with T."""
    for s, a, h in ((2, 2, 1), (3, 2, 2), (10, 3, 5), (50, 10, 20)):
        lam, sigma = bounds.optimistic_parameters(s, h)
        episodes = np.logspace(0, 12, 25)
        noise, prior = bounds.regret_bound(s, a, h, episodes, lam=lam, sigma=sigma)
        logs = (1 + math.log(s * a / 2)) * (1 + np.log1p(episodes))
        assert (noise <= np.sqrt(bounds.STEP * 2 * logs) * bounds.regret_shape(s, a, h, episodes * h)).all()
        assert (prior[11:] / prior[10:-1] < 10**0.25).all()  # slower than the root of T
        assert prior[-1] < 0.1 * noise[-1]


@pytest.mark.parametrize("parameters", [bounds.optimistic_parameters, bounds.theorem_parameters])
def test_the_bound_in_runs_of_the_library(parameters):
    """It holds for Theorem 1's parameters too; it is loose, and says something: less than random play loses."""
    lam, sigma = parameters(3, 2)
    paid, random = [], []
    for seed in range(100, 105):
        problem = problems.dirichlet(3, 2, 2, seed=seed)
        agent = RLSVI(lam=lam, sigma=sigma, basis=Tabular(), seed=seed)
        paid.append(simulate(agent, problem, 20_000).regret.sum())
        random.append(1_000_000 * problem.random_regret)
    bound = sum(bounds.regret_bound(3, 2, 2, 20_000, lam=lam, sigma=sigma))
    assert 5 * np.mean(paid) < bound
    assert sum(bounds.regret_bound(3, 2, 2, 1_000_000, lam=lam, sigma=sigma)) < np.mean(random)
