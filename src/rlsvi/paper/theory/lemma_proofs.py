"""Steps of the proofs of section 5 that can be computed: each as a verdict, whatever the runs."""

import math
from itertools import pairwise

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.core.posterior import Posterior
from rlsvi.paper.claim import Verdict, computed, exactly
from rlsvi.theory import theorem_parameters

LOW, HIGH = 1.0, 1.0  # prior weights of the rewards -1 and 0
S, H = 5, 5


def _parameters(states: int = S, horizon: int = H) -> tuple[float, float]:
    """The theorem's sigma and lambda sigma^2."""
    lam, sigma = theorem_parameters(states, horizon)
    return sigma, lam * sigma**2


@computed(
    "The posterior of a table is diagonal, sigma^2 / (n + lambda sigma^2), its mean n (..) / (n + lambda sigma^2)",
    "section 5",
)
def closed_form() -> Verdict:
    """A regression agrees to 1e-12."""
    rng = np.random.default_rng(0)
    lam, sigma = theorem_parameters(S, H)
    posterior, n, total = Posterior(1, S, lam, sigma), np.zeros(S), np.zeros(S)
    for s, target in zip(rng.integers(S, size=40), -rng.uniform(0, H, 40), strict=True):
        posterior.observe(0, np.eye(S)[s], float(target))
        n[s], total[s] = n[s] + 1, total[s] + target
    ridge = lam * sigma**2
    variance = np.array([posterior.variance(0, np.eye(S)[s]) for s in range(S)])
    off = max(
        float(np.abs(posterior.mean()[0] - total / (n + ridge)).max()),
        float(np.abs(variance - sigma**2 / (n + ridge)).max()),
    )
    return exactly(off < 1e-12, f"mean and variance of {S} weights after 40 targets agree to {off:.0e}")


def _counts(most: int) -> tuple[Floats, Floats]:
    """All numbers of visits up to `most`, and of the rewards -1 among them."""
    pairs = np.array([(n, k) for n in range(1, most + 1) for k in range(n + 1)], dtype=np.float64)
    return pairs[:, 0], pairs[:, 1]


@computed("The empirical mean reward is at least the posterior mean", "section 5")
def empirical_above_posterior() -> Verdict:
    """For all data of at most 30 visits."""
    n, lows = _counts(30)
    posterior = -(lows + LOW) / (n + LOW + HIGH)
    below = int((-lows / n < posterior - 1e-15).sum())
    needed = bool((-lows / (n + _parameters()[1]) >= posterior).all())
    return exactly(
        below == 0,
        f"the empirical mean is below the posterior's for {below} of {len(n)} data of at most 30 visits: wherever "
        f"the share of -1 is above the prior's; what the proof needs, RLSVI's mean above the posterior's, "
        f"{'holds for all' if needed else 'fails too'}",
    )


def _biases(n: Floats, lows: Floats, V: float, states: int, horizon: int) -> tuple[Floats, Floats]:
    """b^R and b^P, for a next value V whatever the next state, a prior weight of 1 a state."""
    ridge = _parameters(states, horizon)[1]
    rewards = -lows / (n + ridge) + (lows + LOW) / (n + LOW + HIGH)
    return rewards, n * V / (n + ridge) - V


@computed("b^R and b^P are optimistic bias terms", "section 5")
def biases_are_optimistic() -> Verdict:
    """Not negative for all data of at most 30 visits and next values of either sign."""
    n, lows = _counts(30)
    rewards, below = _biases(n, lows, -1.0, S, H)
    _, above = _biases(n, lows, 0.5, S, H)
    return exactly(
        bool((rewards >= 0).all() and (below >= 0).all() and (above >= 0).all()),
        f"b^R is at least {rewards.min():.3f} and b^P at least {below.min():.3f} for a next value of -1; for one "
        f"of .5, as samples may have, b^P goes down to {above.min():.3f}: shrinking towards 0 is then pessimistic",
    )


@computed("Up to O~ b^R is alpha_1^R / (n + 1'alpha^P) and b^P is H 1'alpha^P / (n + 1'alpha^P)", "section 5")
def biases_are_small() -> Verdict:
    """The largest ratio for any n does not double from H = 5 to 20."""
    ratios = {}
    n = np.logspace(0, 8, 801)
    for horizon in (5, 10, 20):
        rewards, transitions = _biases(n, n, -float(horizon), S, horizon)
        first, second = rewards * (n + S) / LOW, transitions * (n + S) / (horizon * S)
        ratios[horizon] = float(first.max()), float(second.max())
    told = "; ".join(f"H = {h}: {first:,.0f} and {second:,.0f}" for h, (first, second) in ratios.items())
    return exactly(
        ratios[20][0] <= 2 * ratios[5][0],
        f"S = {S}, always -1: b^R and b^P are up to so many times as large, {told}; they are of the order "
        f"lambda sigma^2 / (n + lambda sigma^2), which takes S A lambda sigma^2 episodes to fade",
    )


@computed("Up to O~ the noise w is H / sqrt(n + H^2 1'alpha^R + 1'alpha^P)", "section 5")
def noise_is_small() -> Verdict:
    """Its standard deviation is at most sqrt(2) times that, for any n, at three sizes."""
    n = np.append(0.0, np.logspace(0, 8, 801))
    ratios = {}
    for states, horizon in ((5, 5), (5, 20), (50, 20)):
        sigma, ridge = _parameters(states, horizon)
        ours = sigma / np.sqrt(n + ridge)
        ratio = ours / (horizon / np.sqrt(n + horizon**2 * (LOW + HIGH) + states))
        ratios[states, horizon] = float(ratio.min()), float(ratio.max())
    told = "; ".join(f"S = {s}, H = {h}: {low:.2f} to {high:.2f}" for (s, h), (low, high) in ratios.items())
    words = f"it is so many times as large: {told}; the H^2 missing before 1'alpha^P only makes it smaller"
    return exactly(max(high for _, high in ratios.values()) <= 2**0.5, words)


@computed("alpha'1 >= 2 can only be violated twice for each (s, a, h)", "section 5")
def violated_twice() -> Verdict:
    """The posterior's sum is below 2 before at most two visits, whatever the prior's."""
    sums = np.logspace(-6, 1, 701)
    most = max(sum(total + n < 2 for n in range(10)) for total in sums)
    return exactly(most <= 2, f"before {most} visits at most, for prior weights of sums from 1e-6 to 10")


@computed("E[Q* | data] = R-bar + P-bar'V* <= n (R-hat + P-hat'V*) / (n + lambda sigma^2)", "section 5")
def inductive_step() -> Verdict:
    """For random data and next values V* <= 0, as the prior has them."""
    rng = np.random.default_rng(0)
    ridge, cases, least, above = _parameters()[1], 2000, math.inf, 0
    for _ in range(cases):
        into = rng.poisson(np.exp(rng.uniform(-2, 4)), size=S).astype(np.float64)
        n = into.sum()
        lows, V = rng.binomial(int(n), rng.uniform()), -rng.uniform(0, H - 1, size=S)
        gaps = [
            (into @ W - lows) / (n + ridge) + (lows + LOW) / (n + LOW + HIGH) - (into + 1) @ W / (n + S)
            for W in (V, -V)
        ]
        least, above = min(least, gaps[0]), above + (gaps[1] < 0)
    words = f"in {cases} random cases the right side is larger by at least {least:.1e}; for next values above 0"
    return exactly(least >= 0, f"{words}, which V* never has and samples may have, it is smaller in {above}")


@computed("Delta_conc vanishes as the estimates of RLSVI concentrate", "section 5")
def vanishing() -> Verdict:
    """For data of one MDP, a hundred times as many leave at most a fifth of its mean size, twice."""
    rng = np.random.default_rng(0)
    states, actions, horizon, samples = 3, 2, 4, 400
    (sigma, ridge), at = _parameters(states, horizon), np.arange(states)
    P = rng.dirichlet(np.ones(states), size=(horizon, states, actions))
    low = rng.beta(LOW, HIGH, (horizon, states, actions))
    found = []
    for n in (100, 10_000, 1_000_000):
        into, lows = rng.multinomial(n, P).astype(np.float64), rng.binomial(n, low)
        reward, onward = -(lows + LOW) / (n + LOW + HIGH), (into + 1) / (n + states)
        V, value = np.zeros((samples, states)), np.zeros((samples, states))
        for h in reversed(range(horizon)):
            noise = rng.standard_normal((samples, states, actions)) * sigma / np.sqrt(n + ridge)
            Q = (np.einsum("say,ny->nsa", into[h], V) - lows[h]) / (n + ridge) + noise
            mu, V = Q.argmax(axis=2), Q.max(axis=2)
            value = reward[h, at, mu] + np.einsum("nsy,ny->ns", onward[h, at, mu], value)
        found.append(float(np.abs(V - value).mean()))
    return exactly(
        all(later <= 0.2 * sooner for sooner, later in pairwise(found)),
        f"at S = {states}, A = {actions}, H = {horizon}, with 100, 10,000 and 1,000,000 visits to every pair, "
        f"over {samples} samples: {found[0]:.3f}, {found[1]:.3f} and {found[2]:.4f}",
    )


@computed(
    "The concentration error is the sum of b^R, b^P and w over the way, and E[V^mu | data] = R-bar + P-bar'V^mu",
    "section 5",
)
def concentration() -> Verdict:
    """The first agrees to 1e-12 in means, the second with sampled MDPs within 4.5 standard errors."""
    rng = np.random.default_rng(0)
    states, actions, horizon, draws = 3, 2, 4, 20_000
    into = rng.poisson(2.0, size=(horizon, states, actions, states)).astype(np.float64)
    n = into.sum(axis=3)
    lows = rng.binomial(n.astype(np.int64), 0.5)
    sigma, ridge = _parameters(states, horizon)
    reward, onward = -(lows + LOW) / (n + LOW + HIGH), (into + 1) / (n + states)[..., None]
    V, value, drawn = np.zeros(states), np.zeros(states), np.zeros((draws, states))
    parts, at = np.zeros(states), np.arange(states)  # the sum of b^R, b^P and w from a state on
    for h in reversed(range(horizon)):
        noise = rng.standard_normal((states, actions)) * sigma / np.sqrt(n[h] + ridge)
        Q = (into[h] @ V - lows[h]) / (n[h] + ridge) + noise
        bias = (into[h] @ V - lows[h]) / (n[h] + ridge) - reward[h] - onward[h] @ V
        mu = Q.argmax(axis=1)
        P = rng.standard_gamma(into[h, at, mu] + 1, size=(draws, states, states))
        R = -rng.beta(lows[h, at, mu] + LOW, (n - lows)[h, at, mu] + HIGH, size=(draws, states))
        drawn = R + np.einsum("nsy,ny->ns", P / P.sum(axis=2, keepdims=True), drawn)
        value = reward[h, at, mu] + onward[h, at, mu] @ value
        parts = (bias + noise)[at, mu] + onward[h, at, mu] @ parts
        V = Q[at, mu]
    off = float(np.abs(V - value - parts).max())
    errors = float((np.abs(drawn.mean(axis=0) - value) / (drawn.std(axis=0) / draws**0.5)).max())
    return exactly(
        off < 1e-12 and errors < 4.5,
        f"for a sample at S = {states}, A = {actions}, H = {horizon} both sides agree to {off:.0e}; the mean "
        f"of V^mu over {draws:,} MDPs of the posterior is its value in the mean MDP, within {errors:.1f} "
        "standard errors",
    )
