"""Algorithm "Stationary RLSVI" (appendix D), and stationary LSVI, which omits its noise.

Known noise: b_i = x_i . theta + N(0, sigma^2), theta ~ N(mean, I / lam), and ridge = lam sigma^2.
Unknown noise: sigma^2 ~ InverseGamma(shape, scale), theta | sigma^2 ~ N(mean, sigma^2 I / lam), and ridge = lam;
with n transitions and posterior mean m, sigma^2 is drawn from
InverseGamma(shape + n / 2, scale + (|A m - b|^2 + ridge |m - mean|^2) / 2), one sigma^2 for all blocks, and then
theta from N(m, sigma^2 P^-1).
In both cases P = ridge I + A'A, block by block, and a sample is m + sigma L^-T z for the Cholesky factor L of P.
Within an episode z, and the gamma variate that determines sigma^2, are drawn once and kept through all sweeps. The
iteration then has a fixed point, a value function that is consistently optimistic or pessimistic.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.agents.finite.rlsvi import all_finite
from rlsvi.agents.noise import Model
from rlsvi.agents.stationary.ring import Ring
from rlsvi.agents.stationary.targets import Weights, new_weights, set_weights, targets
from rlsvi.core.cholesky import solve_upper
from rlsvi.core.compile import Floats, Words, compiled, unsigned
from rlsvi.core.elementary import factorise, pair_product, pair_sum, two_product
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal
from rlsvi.core.regression import Factor, add, solve

FINE, NO_FACTOR, NOT_FINITE = range(3)


class Work(NamedTuple):
    """Work arrays for a regression."""

    factor: Factor  # (B, d, d), (B, d)
    low: Floats  # (d, d)
    z: Floats  # (B, d) L^-T z
    b: Floats  # (N,) targets, oldest transition first
    error: Floats  # (B, d) rounding error of A'b
    weights: Weights
    largest: Floats  # (1,) |b|
    sigma: Floats  # (1,) of the last sample


def new_work(ring: Ring, actions: int) -> Work:
    """Return work arrays for the regressions of a ring."""
    B, d = len(ring.gram), len(ring.units)
    return Work(
        Factor(np.zeros((B, d, d)), np.zeros((B, d))),
        np.zeros((d, d)),
        np.zeros((B, d)),
        np.zeros(len(ring.x)),
        np.zeros((B, d)),
        new_weights(ring, actions),
        np.zeros(1),
        np.zeros(1),
    )


@compiled
def plan(ring: Ring, model: Model, work: Work, theta: Floats, sampled: bool, sweeps: int, stream: Words) -> int:
    """Replace theta (B, d), which is theta^-, by a sample of the posterior, or by its mean if not `sampled`."""
    if not precision_factors(ring, model.ridge, work):
        return NO_FACTOR
    variate = draw(ring, model, work, stream) if sampled else 1.0
    for _ in range(sweeps):
        set_weights(work.weights, ring.units, theta, model.gamma)
        work.largest[0] = targets(ring, work.weights, model.gamma, work.b)
        regress(ring, model, work, theta)
        if sampled:
            disturb(ring, model, work, theta, variate)
        for b in range(theta.shape[0]):
            if not all_finite(theta[b]):
                return NOT_FINITE
    return FINE


@compiled
def precision_factors(ring: Ring, ridge: float, work: Work) -> bool:
    """Factor P = ridge I + A'A from the exact sums of the ring. Return False if it is not positive definite."""
    U, units, d = work.factor.U, ring.units, ring.units.size
    for b in range(ring.gram.shape[0]):
        for i in range(d):
            for j in range(i, d):
                high = float(ring.gram[b, i, j])
                low = ring.low[b, i, j] if ring.low.size > 0 else float(ring.gram[b, i, j] - np.int64(high))
                unit, rest = two_product(units[i], units[j])
                U[b, i, j], work.low[i, j] = pair_product(high, low, unit, rest)
            U[b, i, i], work.low[i, i] = pair_sum(U[b, i, i], work.low[i, i], ridge, 0.0)
        if not factorise(U[b], work.factor.inv[b], work.low):
            return False
    return True


@compiled
def draw(ring: Ring, model: Model, work: Work, stream: Words) -> float:
    """Draw the noise of an episode: z <- L^-T z for every block, and a gamma variate if sigma is unknown."""
    variate = 1.0
    if model.shape > 0.0:
        variate = gamma_variate(stream, model.shape + 0.5 * ring.size[0])
    for b in range(work.z.shape[0]):
        for k in range(work.z.shape[1]):
            work.z[b, k] = normal(stream)
        solve_upper(work.factor.U[b], work.factor.inv[b], work.z[b])
    return variate


@compiled
def regress(ring: Ring, model: Model, work: Work, theta: Floats) -> None:
    """theta <- P^-1 (A'b + ridge mean), the posterior mean."""
    d = ring.units.size
    for b in range(theta.shape[0]):
        for k in range(d):
            theta[b, k] = work.error[b, k] = 0.0
    if theta.shape[0] == 1:
        add_dense(ring, work, theta[0])
    else:
        for t in range(ring.size[0]):
            i = (ring.first[0] + t) % ring.x.shape[0]
            add(theta[ring.block[i]], work.error[ring.block[i]], ring.x[i], work.b[t])
    for b in range(theta.shape[0]):
        for k in range(d):
            theta[b, k] = ring.units[k] * theta[b, k] + model.ridge * model.mean[b, k]
        solve(work.factor.U[b], work.factor.inv[b], theta[b])


@compiled
def add_dense(ring: Ring, work: Work, theta: Floats) -> None:
    """theta += A'b for one block: sums of eight transitions in float64, added with compensation for rounding."""
    x, b, part, first, room, size = ring.x, work.b, work.low[0], ring.first[0], ring.x.shape[0], ring.size[0]
    d = unsigned(theta.size)
    eights = size - size % 8
    for t in range(0, eights, 4):
        i, j = unsigned((first + t) % room), unsigned((first + t + 1) % room)
        m, n = unsigned((first + t + 2) % room), unsigned((first + t + 3) % room)
        b0, b1, b2, b3 = b[t], b[t + 1], b[t + 2], b[t + 3]
        if t % 8 == 0:
            for k in range(d):
                part[k] = ((x[i, k] * b0 + x[j, k] * b1) + x[m, k] * b2) + x[n, k] * b3
        else:
            for k in range(d):
                part[k] = (((part[k] + x[i, k] * b0) + x[j, k] * b1) + x[m, k] * b2) + x[n, k] * b3
            add(theta, work.error[0], part, 1.0)
    for t in range(eights, size):
        add(theta, work.error[0], x[(first + t) % room], b[t])


@compiled
def disturb(ring: Ring, model: Model, work: Work, theta: Floats, variate: float) -> None:
    """theta <- theta + sigma L^-T z, a sample; sigma is known or drawn."""
    sigma = model.sigma
    if model.shape > 0.0:
        sigma = math.sqrt((model.scale + 0.5 * misfit(ring, model, work, theta)) / variate)
    work.sigma[0] = sigma
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[b, k] += sigma * work.z[b, k]


@compiled
def misfit(ring: Ring, model: Model, work: Work, theta: Floats) -> float:
    """Return |A theta - b|^2 + ridge |theta - mean|^2, computed as a sum of squares to avoid cancellation."""
    total = 0.0
    i = ring.first[0]
    for t in range(ring.size[0]):
        block = ring.block[i]
        residual = -work.b[t]
        for k in range(ring.units.size):
            residual += ring.x[i, k] * (ring.units[k] * theta[block, k])
        total += residual * residual
        i = i + 1 if i + 1 < ring.x.shape[0] else 0
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            away = theta[b, k] - model.mean[b, k]
            total += model.ridge * (away * away)
    return total
