"""Fitted Q evaluation of S samples at once, from steps of past visits.

Each sample s is a policy that shows chosen[:, s]. Its values Q_h(i, a) = phi(i) . theta[h, a] solve

    (Phi_a' Phi_a + ridge I) theta[h, a] = Phi_a' (r + Q_{h+1} of what follows, with the choice of s)

for every product a, where Phi_a has the features of the steps in which a was shown. A visit draws a sample at
random, so the value is the mean over samples. The interval is that of `offline.fitted`: errors are carried to
the first slot, divided by 1 - leverage, summed over each visit, and the prior adds its own uncertainty. The
solver is another one because there are many policies at once, and many products with sparse features: products are
solved one after another, and no matrix of products by products is formed, so that memory grows with the answers.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.offline.fitted import Fitted, fit_folds, half_width, weight_scales
from rlsvi.offline.off_policy import OffPolicyProblem
from rlsvi.shop.judging.visits import JudgedSteps

RIDGE = 0.1  # the precision of the prior of a weight, in steps


class FittedSamples(NamedTuple):
    """The mean over samples, and what the doubly robust estimate needs of each."""

    fitted: Fitted
    error: Floats  # (R, S) r + V(next) - Q of every step, by a model of other visits


class _Model(NamedTuple):
    """The features of steps by product shown, and by what each sample shows next, and factors of the precision."""

    taken: Any  # (R, N d)
    after: list[Any]  # S of (R, N d)
    factors: dict[int, Any]  # of the products that were shown
    size: int  # d

    def solve(self, y: Floats) -> Floats:
        """Return P^-1 y for right-hand sides (N d, S)."""
        found = y / RIDGE
        for a, factor in self.factors.items():
            part = slice(a * self.size, (a + 1) * self.size)
            found[part] = cho_solve(factor, y[part], check_finite=False)
        return found

    def following(self, theta: Floats) -> Floats:
        """Return the value of what follows each step under each sample, (R, S)."""
        return np.stack([after @ theta[:, s] for s, after in enumerate(self.after)], axis=1)

    def weights(self, reward: Floats, horizon: int) -> Floats:
        """Return theta_h of every slot and zeros after the last, (H + 1, N d, S)."""
        theta = np.zeros((horizon + 1, self.taken.shape[1], len(self.after)))
        for h in reversed(range(horizon)):
            theta[h] = self.solve(self.taken.T @ (reward[:, None] + self.following(theta[h + 1])))
        return theta

    def errors(self, reward: Floats, theta: Floats, h: int) -> Floats:
        """Return r + V(next) - Q of every step, as if all were in slot h, (R, S)."""
        found: Floats = reward[:, None] + self.following(theta[h + 1]) - self.taken @ theta[h]
        return found


def fitted_samples(steps: JudgedSteps, problem: OffPolicyProblem, level: float) -> FittedSamples:
    """Return the value, its interval, and what the doubly robust estimate needs."""
    model, E, R = _model(steps, np.ones(len(steps.shown), np.bool_)), steps.visits, len(steps.shown)
    theta = model.weights(steps.reward, problem.horizon)
    first = _first(steps, theta[0]).mean(axis=1)
    value, visit = float(first.mean()), np.repeat(np.arange(E), np.diff(steps.start))
    influence, prior = _influences(steps, model, theta, problem.horizon)
    untried = float(np.isin(steps.chosen, list(model.factors), invert=True).mean())
    prior, leverage = prior * weight_scales(problem, steps.features), _leverages(steps, model)
    half = half_width(influence, leverage, visit, first, prior, level, untried)
    error = _own_errors(steps, model, theta, problem)

    def refit(mine: Bools, left_out: Bools) -> tuple[Floats, Floats]:
        theta = _model(steps, ~mine).weights(np.where(mine, 0.0, steps.reward), problem.horizon)
        found = _first(steps, theta[0])[left_out].mean(axis=1)
        return found, _own_errors(steps, model, theta, problem)[mine]

    if steps.propensity is not None:
        fit_folds(problem.log, np.arange(R), first, error, refit)
    return FittedSamples(Fitted(value, value - half, value + half, first, np.zeros(R), untried), error)


def placed(features: Any, products: Longs, rows: Bools, count: int) -> Any:
    """Return features at the columns of the product of each row, (R, count d); nothing in the other rows."""
    R, d = features.shape
    lengths = np.where(rows, np.diff(features.indptr), 0)
    kept = np.repeat(rows, np.diff(features.indptr))
    columns = features.indices[kept] + d * np.repeat(products, lengths)
    return csr_matrix((features.data[kept], columns, np.append(0, np.cumsum(lengths))), shape=(R, count * d))


def _model(steps: JudgedSteps, used: Bools) -> _Model:
    """Return the model of some steps; the others have no features, and what follows them does not matter."""
    d, N, goes_on = steps.features.shape[1], steps.products, used & ~steps.last
    following = np.append(np.arange(1, len(used)), 0)
    next_features = steps.features[following]
    after = [placed(next_features, chosen[following], goes_on, N) for chosen in steps.chosen.T]
    factors = {}
    for a in np.unique(steps.shown[used]).tolist():
        x = steps.features[np.flatnonzero(used & (steps.shown == a))]
        factors[a] = cho_factor((x.T @ x).toarray() + RIDGE * np.eye(d), lower=True)
    return _Model(placed(steps.features, steps.shown, used, N), after, factors, d)


def _first(steps: JudgedSteps, theta: Floats) -> Floats:
    """Return the value of the first step of each visit under each sample, (E, S)."""
    rows, first = np.zeros(len(steps.shown), np.bool_), steps.start[:-1]
    rows[first] = True
    return np.stack(
        [
            (placed(steps.features, chosen, rows, steps.products) @ theta[:, s])[first]
            for s, chosen in enumerate(steps.chosen.T)
        ],
        axis=1,
    )


def _influences(steps: JudgedSteps, model: _Model, theta: Floats, horizon: int) -> tuple[Floats, Floats]:
    """Return how the value changes with the weight of each step, (R,), and with the prior in each slot, (H,)."""
    R, S = steps.chosen.shape
    unknown, first = _prior_uncertainty(steps, model), np.zeros(R)
    first[steps.start[:-1]] = 1.0 / steps.visits
    rows = first > 0
    at_first = [placed(steps.features, chosen, rows, steps.products) for chosen in steps.chosen.T]
    visits = np.stack([features.T @ first for features in at_first], axis=1)
    influence, prior = np.zeros(R), np.zeros(horizon)
    prior[0] = (first @ unknown).mean()
    following = np.where(steps.last[:, None], 0.0, np.roll(unknown, -1, axis=0))
    for h in range(horizon):
        weight = model.taken @ model.solve(visits)
        influence += (weight * model.errors(steps.reward, theta, h)).mean(axis=1)
        visits = np.stack([after.T @ weight[:, s] for s, after in enumerate(model.after)], axis=1)
        if h + 1 < horizon:
            prior[h + 1] = (weight * following).sum() / S
    return influence, prior


def _own_errors(steps: JudgedSteps, model: _Model, theta: Floats, problem: OffPolicyProblem) -> Floats:
    """Return r + V(next) - Q of every step in its own slot, (R, S)."""
    number, found = problem.step, np.zeros(steps.chosen.shape)
    for h in range(min(problem.horizon, int(number.max()) + 1)):
        at = number == h
        found[at] = model.errors(steps.reward, theta, h)[at]
    return found


def _leverages(steps: JudgedSteps, model: _Model) -> Floats:
    found = np.zeros(len(steps.shown))
    for a, factor in model.factors.items():
        mine = np.flatnonzero(steps.shown == a)
        x = steps.features[mine].toarray()
        found[mine] = np.einsum("id,di->i", x, cho_solve(factor, x.T, check_finite=False))
    return found


def _prior_uncertainty(steps: JudgedSteps, model: _Model) -> Floats:
    """Return ridge |P^-1 phi| of every step at the product that each sample would show there, (R, S)."""
    found = np.zeros(steps.chosen.shape)
    for a in np.unique(steps.chosen).tolist():
        chosen = steps.chosen == a
        mine = np.flatnonzero(chosen.any(axis=1))
        x, factor = steps.features[mine].toarray(), model.factors.get(a)
        solved = x if factor is None else RIDGE * cho_solve(factor, x.T, check_finite=False).T
        found[mine] += chosen[mine] * np.sqrt(np.square(solved).sum(axis=1))[:, None]
    return found
