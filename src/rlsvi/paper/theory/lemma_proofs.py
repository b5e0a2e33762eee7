"""Steps of the proofs of section 5 that can be computed: those that do not hold as claims, all others in STEPS."""

import math
from functools import partial
from itertools import pairwise

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.core.regression import Posterior
from rlsvi.paper.claim import Verdict, computed, exactly
from rlsvi.theory import theorem_parameters

of_section = partial(computed, where="section 5", kind="proof")
LOW, HIGH = 1.0, 1.0  # prior weights of the rewards -1 and 0
S, H = 5, 5


def _parameters(states: int = S, horizon: int = H) -> tuple[float, float]:
    """The theorem's σ and λσ²."""
    lam, sigma = theorem_parameters(states, horizon)
    return sigma, lam * sigma**2


def closed_form() -> bool:
    """A regression gives the posterior of a table: variance σ² / (n + λσ²), and its mean by the same n + λσ²."""
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
    return off < 1e-12


def _counts(most: int) -> tuple[Floats, Floats]:
    """All numbers of visits up to `most`, and of the rewards -1 among them."""
    pairs = np.array([(n, k) for n in range(1, most + 1) for k in range(n + 1)], dtype=np.float64)
    return pairs[:, 0], pairs[:, 1]


@of_section("The empirical mean reward is at least the posterior mean")
def empirical_above_posterior() -> Verdict:
    """For all data of at most 30 visits."""
    n, lows = _counts(30)
    posterior = -(lows + LOW) / (n + LOW + HIGH)
    below = int((-lows / n < posterior - 1e-15).sum())
    needed = bool((-lows / (n + _parameters()[1]) >= posterior).all())
    return exactly(
        below == 0,
        f"it is below for {below} of {len(n)} data, wherever the share of −1 is above the prior's; RLSVI's mean, "
        f"which the proof needs above it, {'is so for all' if needed else 'fails too'}",
    )


def _biases(n: Floats, lows: Floats, V: float, states: int, horizon: int) -> tuple[Floats, Floats]:
    """bᴿ and bᴾ, for a next value V whatever the next state, a prior weight of 1 a state."""
    ridge = _parameters(states, horizon)[1]
    rewards = -lows / (n + ridge) + (lows + LOW) / (n + LOW + HIGH)
    return rewards, n * V / (n + ridge) - V


@of_section("The bias terms bᴿ and bᴾ are optimistic")
def biases_are_optimistic() -> Verdict:
    """Not negative for all data of at most 30 visits and next values of either sign."""
    n, lows = _counts(30)
    rewards, below = _biases(n, lows, -1.0, S, H)
    _, above = _biases(n, lows, 0.5, S, H)
    return exactly(
        bool((rewards >= 0).all() and (below >= 0).all() and (above >= 0).all()),
        f"for a next value of −1 they are at least {rewards.min():.3f} and {below.min():.3f}; for one of .5, as "
        f"samples may have, bᴾ goes down to {above.min():.3f}",
    )


@of_section("Up to Õ the biases are α₁ᴿ / (n + 1ᵀαᴾ) and H 1ᵀαᴾ / (n + 1ᵀαᴾ)")
def biases_are_small() -> Verdict:
    """The largest ratio for any n does not double from H = 5 to 20."""
    ratios = {}
    n = np.logspace(0, 8, 801)
    for horizon in (5, 10, 20):
        rewards, transitions = _biases(n, n, -float(horizon), S, horizon)
        first, second = rewards * (n + S) / LOW, transitions * (n + S) / (horizon * S)
        ratios[horizon] = float(first.max()), float(second.max())
    few, many = ratios[5][0], ratios[20][0]
    words = f"bᴿ is up to {few:,.0f} times as large at H = 5 and {many:,.0f} times at H = 20"
    table = [(f"{h}", f"{first:,.0f}", f"{second:,.0f}") for h, (first, second) in ratios.items()]
    found = exactly(many <= 2 * few, f"{words}: of the order λσ² / (n + λσ²)")
    return found._replace(table=(("H (S = 5, all rewards −1)", "bᴿ, times", "bᴾ, times"), *table))


def noise_is_small() -> bool:
    """The standard deviation of w is at most √2 times H / √(n + H² 1ᵀαᴿ + 1ᵀαᴾ), for any n, at three sizes."""
    n = np.append(0.0, np.logspace(0, 8, 801))
    largest = 0.0
    for states, horizon in ((5, 5), (5, 20), (50, 20)):
        sigma, ridge = _parameters(states, horizon)
        ours = sigma / np.sqrt(n + ridge)
        ratio = ours / (horizon / np.sqrt(n + horizon**2 * (LOW + HIGH) + states))
        largest = max(largest, float(ratio.max()))
    return largest <= 2**0.5


def violated_twice() -> bool:
    """The posterior's sum of weights is below 2 before at most two visits, whatever the prior's."""
    return all(sum(total + n < 2 for n in range(10)) <= 2 for total in np.logspace(-6, 1, 701))


def inductive_step() -> bool:
    """For random data and next values V* ≤ 0, as the prior has them, R̄ + P̄V* ≤ n (R̂ + P̂V*) / (n + λσ²)."""
    rng = np.random.default_rng(0)
    ridge, least = _parameters()[1], math.inf
    for _ in range(2000):
        into = rng.poisson(np.exp(rng.uniform(-2, 4)), size=S).astype(np.float64)
        n = into.sum()
        lows, V = rng.binomial(int(n), rng.uniform()), -rng.uniform(0, H - 1, size=S)
        gap = (into @ V - lows) / (n + ridge) + (lows + LOW) / (n + LOW + HIGH) - (into + 1) @ V / (n + S)
        least = min(least, float(gap))
    return least >= 0


def vanishing() -> bool:
    """The concentration error vanishes: a hundred times as many data of one MDP leave at most a fifth of it,
    twice.
    """
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
    return all(later <= 0.2 * sooner for sooner, later in pairwise(found))


def concentration() -> bool:
    """The concentration error is the sum of biases and noise over the way, to 1e-12; and a policy's mean value
    is its value in the mean MDP, within 4.5 standard errors of sampled MDPs.
    """
    rng = np.random.default_rng(0)
    states, actions, horizon, draws = 3, 2, 4, 20_000
    into = rng.poisson(2.0, size=(horizon, states, actions, states)).astype(np.float64)
    n = into.sum(axis=3)
    lows = rng.binomial(n.astype(np.int64), 0.5)
    sigma, ridge = _parameters(states, horizon)
    reward, onward = -(lows + LOW) / (n + LOW + HIGH), (into + 1) / (n + states)[..., None]
    V, value, drawn = np.zeros(states), np.zeros(states), np.zeros((draws, states))
    parts, at = np.zeros(states), np.arange(states)  # the sum of biases and noise from a state on
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
    return off < 1e-12 and errors < 4.5


STEPS = {
    "the posterior of a table in closed form": closed_form,
    "the size of the noise": noise_is_small,
    "sums of weights below 2 at most twice": violated_twice,
    "the inductive step": inductive_step,
    "the concentration error vanishes": vanishing,
    "the parts of the concentration error": concentration,
}
