"""Fitted Q evaluation with features: Q(s, a) = phi(s, a) . theta, by regularised least squares.

The estimate solves (Phi'Phi + ridge I) theta_h = Phi'(r + gamma Phi_pi theta_{h+1}) for each period, or with one
theta if there is no horizon. Its posterior is that of the Bayesian bootstrap over episodes, linearised: the
estimate changes with the weight of a row by its error r + gamma V(s') - Q(s, a), times how often the policy comes
there, which follows from the same equations transposed. So the errors of all regressions are carried to the first
period, and noise may differ between states. An error is divided by 1 - leverage, as in the jackknife, since each
row has attracted the fit. To this comes the uncertainty of the prior, which decides where there are no rows
(`doubt`). The precision is factored block by block; no covariance is formed.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete
from scipy import stats
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from scipy.sparse import bsr_matrix, csr_matrix

from rlsvi.bases.basis import bound
from rlsvi.bases.layout import ranges_of
from rlsvi.bases.observed import Observed, rows_of
from rlsvi.core.compile import Floats, Longs
from rlsvi.offline.doubt import doubts, scales
from rlsvi.offline.question import MOST, Fitted, Question, folds_of

CERTAIN = 1e-9  # the least value of 1 - leverage
AT_ONCE = 4096  # observations whose features are computed together
GAMMAS = 0.999, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.5  # that are tried where values diverge


class Design(NamedTuple):
    """The features of all rows, as sparse matrices with a column for each weight."""

    taken: Any  # (N, D) of the actions taken
    after: list[Any]  # (N, D) of the policy at the next observation, for every period or once
    first: Any  # (E, D) of the policy at the first observation of each episode
    dim: int  # of a block of columns
    asked: Floats  # (B,) how often the policy takes an action of each block

    def rows(self, chosen: Any) -> "Design":
        """Return the design of some rows."""
        return self._replace(taken=self.taken[chosen], after=[after[chosen] for after in self.after])


class Factors(NamedTuple):
    """The Cholesky factors of the precision P = Phi'Phi + ridge I, for each block of columns in the log."""

    dim: int
    blocks: dict[int, Any]
    ridge: float

    def solve(self, y: Floats) -> Floats:
        """Return P^-1 y of a vector, or of each column of a matrix."""
        found = y / self.ridge
        for block, factor in self.blocks.items():
            part = slice(block * self.dim, (block + 1) * self.dim)
            found[part] = cho_solve(factor, y[part])
        return found


class Regression(NamedTuple):
    """What the weights of all periods follow from."""

    factors: Factors
    rewards: Floats  # (D,) P^-1 Phi'r
    after: list[Any]  # (D, D) P^-1 Phi'Phi_pi, for every period or once


def fitted_linear(question: Question, basis: Any, ridge: float, level: float, robust: bool) -> Fitted:
    """Return the value, its interval, and what the doubly robust estimate needs if that is asked for."""
    log, rows = question.log, np.flatnonzero(question.used)
    design, reward = designed(question, basis, rows), log.reward[rows]
    regression = regressed(design, ridge, reward)
    theta, E = weights_of(question, regression), log.episodes
    first, error = design.first @ theta[0], np.zeros(log.steps)
    value = float(first.mean())
    untried = float(np.delete(design.asked, list(regression.factors.blocks)).sum() / design.asked.sum())
    if not question.allows(value):
        instead = alternatives(question, design, regression, theta)
        return Fitted(value, -np.inf, np.inf, first, error, untried, instead)
    influence, doubt = influences(question, design, regression, reward, theta)
    episode = np.repeat(np.arange(E), np.diff(log.start))[rows]
    sure = np.maximum(1 - leverages(design, regression.factors), CERTAIN)
    parts = np.bincount(episode, weights=influence / sure, minlength=E)
    variance = np.square(parts + (first - value) / E).sum() * E / max(E - 1, 1)
    variance += np.square(doubt * scales(question, design.taken)).sum()
    half = float(stats.t.ppf((1 + level) / 2, E - 1) * np.sqrt(variance)) if E > 1 and untried <= MOST else np.inf
    if robust:
        error[rows] = errors(question, design, theta, reward, question.step[rows])
    for left_out in folds_of(log) if robust else []:
        mine = left_out[episode]
        theta = weights_of(question, regressed(design.rows(~mine), ridge, reward[~mine]))
        first[left_out] = design.first[left_out] @ theta[0]
        steps = question.step[rows[mine]]
        error[rows[mine]] = errors(question, design.rows(mine), theta, reward[mine], steps)
    return Fitted(value, value - half, value + half, first, error, untried)


def regressed(design: Design, ridge: float, reward: Floats) -> Regression:
    """Return the regression on the rows of a design."""
    factors = factored(design, ridge)
    after = [_crossed(design, each, factors) for each in design.after]
    return Regression(factors, factors.solve(design.taken.T @ reward), after)


def _crossed(design: Design, after: Any, factors: Factors) -> Any:
    """Return P^-1 Phi'Phi_pi, block by block."""
    size, d = design.taken.shape[1], design.dim
    blocks, columns, lines = [], [], np.zeros(size // d, np.int64)
    for b, c, x, y, _ in _pairs(design, after):
        blocks.append(cho_solve(factors.blocks[b], x.T @ y))
        columns.append(c)
        lines[b] += 1
    if not blocks:
        return csr_matrix((size, size))
    return bsr_matrix((np.array(blocks), columns, np.append(0, np.cumsum(lines))), shape=(size, size))


def _pairs(design: Design, after: Any) -> Iterator[tuple[int, int, Floats, Floats, Longs]]:
    """Yield each pair of a block of actions taken and one of `after`, the features of both, and their rows."""
    (_, own, x), (row, other, y) = _entries(design.taken, design.dim), _entries(after, design.dim)
    key = own[row] * (after.shape[1] // design.dim) + other
    order = np.argsort(key, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        if len(part):
            yield int(own[row[part[0]]]), int(other[part[0]]), x[row[part]], y[part], row[part]


def _entries(matrix: Any, dim: int) -> tuple[Longs, Longs, Floats]:
    """Return the row, the block and the features of everything in a matrix; in `taken`, each row has one."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr) // dim)
    return row, matrix.indices[::dim].astype(np.int64) // dim, matrix.data.reshape(-1, dim)


def weights_of(question: Question, regression: Regression) -> Floats:
    """Return theta_h of every period and zeros after the last, (H + 1, D); without a horizon one theta, twice."""
    if not question.horizon:
        theta = lu_solve(_endless(question, regression), regression.rewards)
        both: Floats = np.stack([theta, theta])
        return both
    weights: Floats = np.zeros((question.horizon + 1, len(regression.rewards)))
    after = regression.after
    for h in reversed(range(question.horizon)):
        weights[h] = regression.rewards + question.gamma * (after[h % len(after)] @ weights[h + 1])
    return weights


def alternatives(question: Question, design: Design, regression: Regression, theta: Floats) -> str:
    """Return the longest horizon and the largest gamma with values that the rewards allow, in words."""
    if question.periodic or question.per_period:
        return ""  # other horizons are other regressions
    found, first, H = [], np.asarray(design.first.mean(axis=0)).ravel(), question.horizon

    def longest(gamma: float, weights: Floats) -> int:
        """Return how many steps may count before a value is impossible."""
        values = (weights[:-1] @ first)[::-1]  # of 1, 2, .. steps
        allowed = [question._replace(gamma=gamma, horizon=h + 1).allows(float(v)) for h, v in enumerate(values)]
        return allowed.index(False) if False in allowed else len(allowed)

    if H and (steps := longest(question.gamma, theta)):
        found.append(f"horizon={steps}")
    for gamma in GAMMAS:
        if gamma >= question.gamma:
            continue
        other = question._replace(gamma=gamma)
        weights = weights_of(other, regression)
        if longest(gamma, weights) == H if H else other.allows(float(first @ weights[0])):
            found.append(f"gamma={gamma:g}")
            break
    return " or ".join(found)


def influences(
    question: Question, design: Design, regression: Regression, reward: Floats, theta: Floats
) -> tuple[Floats, Floats]:
    """Return how the mean first value changes with the weight of each row, (N,), and with the prior.

    The latter is given for every period, (H,), or once, and multiplies the scale of a weight.
    """
    factors, gamma, d = regression.factors, question.gamma, design.dim
    visits = np.zeros((max(question.horizon, 1), len(regression.rewards)))  # (H, D)
    visits[0] = np.asarray(design.first.mean(axis=0)).ravel()
    if not question.horizon:
        visits[0] = lu_solve(_endless(question, regression), visits[0], trans=1)
    back = [after.T for after in regression.after]
    for h in range(1, len(visits)):
        visits[h] = gamma * (back[(h - 1) % len(back)] @ visits[h - 1])
    weight = factors.solve(visits.T).T  # (H, D) the weight of a row in period h is its features times this
    doubt = np.zeros(len(visits))
    doubt[0] = doubts(design.first, factors).mean()
    unknown = [design.taken.T @ doubts(after, factors) for after in design.after]
    for h in range(len(visits)):
        if not question.horizon:
            doubt[0] += gamma * (weight[0] @ unknown[0])
        elif h + 1 < len(visits):
            doubt[h + 1] = gamma * (weight[h] @ unknown[h % len(unknown)])
    influence: Floats = reward * (design.taken @ weight.sum(axis=0))
    for b, _, x, y, row in _pairs(design, design.taken):
        part = slice(b * d, (b + 1) * d)
        influence[row] -= _products(x, weight[:, part], theta[:-1, part], y)
    for j, after in enumerate(design.after):
        mine = slice(j, None, len(design.after))
        for b, c, x, y, row in _pairs(design, after):
            one, other = slice(b * d, (b + 1) * d), slice(c * d, (c + 1) * d)
            np.add.at(influence, row, gamma * _products(x, weight[mine, one], theta[1:][mine, other], y))
    return influence, doubt


def _products(x: Floats, left: Floats, right: Floats, y: Floats) -> Floats:
    """Return the sum over periods of (x . left)(y . right) for each row of x and y, (n,)."""
    used = left.any(axis=1) & right.any(axis=1)
    left, right = left[used], right[used]
    (n, d), periods = x.shape, len(left)
    if 2 * n * periods < (n + periods) * d:
        x, y = x @ left.T, y @ right.T
    else:
        x = x @ (left.T @ right)
    found: Floats = np.einsum("nk,nk->n", x, y)
    return found


def errors(question: Question, design: Design, theta: Floats, reward: Floats, step: Longs) -> Floats:
    """Return r + gamma V(s') - Q(s, a) of rows, each in its own period; 0 beyond the horizon."""
    weights, found = theta.reshape(len(theta), -1, design.dim), reward.copy()
    step = np.minimum(step, len(theta) - 1) if question.horizon else np.zeros_like(step)
    _, block, x = _entries(design.taken, design.dim)
    found -= np.einsum("nd,nd->n", x, weights[step, block])
    for j, after in enumerate(design.after):
        row, block, y = _entries(after, design.dim)
        mine = (step[row] % len(design.after) == j) & (step[row] < len(theta) - 1)
        row, block, y = row[mine], block[mine], y[mine]
        np.add.at(found, row, question.gamma * np.einsum("nd,nd->n", y, weights[step[row] + 1, block]))
    return np.where(step < len(theta) - 1, found, 0.0)


def _endless(question: Question, regression: Regression) -> Any:
    """Return the factors of the equations of one theta for all periods, (I - gamma P^-1 Phi'Phi_pi)."""
    matrix = -question.gamma * regression.after[0].toarray()
    matrix[np.diag_indices_from(matrix)] += 1.0
    return lu_factor(matrix)


def factored(design: Design, ridge: float) -> Factors:
    """Return the factors of Phi'Phi + ridge I."""
    found, d = {}, design.dim
    for b, _, x, _, _ in _pairs(design, design.taken):
        found[b] = cho_factor(x.T @ x + ridge * np.eye(d), lower=True)
    return Factors(d, found, ridge)


def leverages(design: Design, factors: Factors) -> Floats:
    """Return the leverage of every row, (N,)."""
    found = np.zeros(design.taken.shape[0])
    for b, _, x, _, row in _pairs(design, design.taken):
        found[row] = np.einsum("nd,dn->n", x, cho_solve(factors.blocks[b], x.T))
    return found


def designed(question: Question, basis: Any, rows: Longs) -> Design:
    """Return all features, after asking for the policy wherever it is needed."""
    log, step, over = question.log, question.step, question.over
    places = Places(question, basis)
    taken, goes_on, after = [], [], []
    for r, i in enumerate(rows.tolist()):
        taken.append((r, *places.of(log.observation, i, int(step[i]), log.action[i])))
        if not over[i]:
            goes_on.append((r, i, places.at(log.following, i, int(step[i]) + 1)))
    periods: Any = range(question.horizon - 1) if question.periodic else [None]
    for h in periods:
        met = []
        for r, i, place in goes_on:
            met.append((r, *place, question.after(i, int(step[i]) + 1 if h is None else h + 1)))
            question.advance(1)
        after.append(places.mixed(met, len(rows)))
    if question.periodic:
        after.append(csr_matrix((len(rows), places.columns)))  # nothing follows the last period
    begin = enumerate(log.start[:-1].tolist())
    first = places.mixed(
        [(e, *places.at(log.observation, i, 0), question.at(i, 0)) for e, i in begin], log.episodes
    )
    matrix = _matrix(taken, (len(rows), places.columns), places.dim)
    return Design(matrix, after, first, places.dim, places.asked)


class Places:
    """The features of observations of a log."""

    def __init__(self, question: Question, basis: Any) -> None:
        space, actions = question.env.observation_space, int(question.env.action_space.n)
        self.states = int(space.n) if isinstance(space, Discrete) else None
        self.start = int(getattr(space, "start", 0)) if self.states is not None else 0
        self.actions = np.arange(actions)
        self.per_period, periods = question.per_period, max(question.horizon, 1)
        example = question.log.observation.at(0)
        example = example - self.start if self.states is not None else example
        self.features = bound(basis, self.states, actions, periods, example, factors=False)
        self.dim = self.features.dim
        self.columns = self.features.blocks * self.dim * (periods if self.per_period else 1)
        self.asked = np.zeros(self.columns // self.dim)  # how often the policy takes an action of each block
        self._known: dict[tuple[int, Any], tuple[Longs, Floats]] = {}
        self._rows: dict[int, Floats] = {}  # the features of all observations, if they can be computed at once
        if isinstance(basis, Observed) and self.states is None:
            log, layout, ranges = question.log, basis.layout, ranges_of(basis.low, basis.high)
            for source, needed in (
                (log.observation, np.ones(log.steps, np.bool_)),
                (log.following, ~question.over),
            ):
                rows = self._rows[id(source)] = np.zeros((log.steps, self.dim))
                x = source.vectors()
                for part in np.array_split(np.flatnonzero(needed), 1 + log.steps // AT_ONCE):
                    rows[part] = rows_of(layout, basis.basis, ranges, x[part])

    def at(self, source: Any, i: int, h: int) -> tuple[Longs, Floats]:
        """Return the blocks (A,) and features (A, d) of the observation of a row in a period."""
        h = h if self.per_period else 0
        if id(source) in self._rows:
            x = self._rows[id(source)][i]
            return self.actions + h * self.features.blocks, np.broadcast_to(x, (len(self.actions), self.dim))
        key = h, source.key(i)
        if key not in self._known:
            observation = source.at(i)
            self._known[key] = self._at(h, observation if self.states is None else observation - self.start)
        return self._known[key]

    def of(self, source: Any, i: int, h: int, action: int) -> tuple[int, Floats]:
        """Return the same of one action."""
        block, x = self.at(source, i, h)
        return int(block[action]), x[action]

    def mixed(self, places: list[tuple[int, Longs, Floats, Floats]], rows: int) -> Any:
        """Return a matrix of the features of (row, blocks, features, probabilities)."""
        parts = [
            (row, int(block[a]), chances[a] * x[a])
            for row, block, x, chances in places
            for a in np.flatnonzero(chances)
        ]
        for _, block, _, chances in places:
            np.add.at(self.asked, block, chances)
        return _matrix(parts, (rows, self.columns), self.dim)

    def _at(self, h: int, observation: Any) -> tuple[Longs, Floats]:
        block, x = self.features.at(h, observation)
        return block.astype(np.int64) + h * self.features.blocks, x


def _matrix(entries: list[tuple[int, Any, Floats]], shape: tuple[int, int], dim: int) -> Any:
    """Return a sparse matrix from (row, block, features), rows in order; a row may have several blocks."""
    if not entries:
        return csr_matrix(shape)
    rows, blocks, x = (np.array(part) for part in zip(*entries, strict=True))
    indices = (blocks[:, None] * dim + np.arange(dim)).ravel()
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]) * dim)])
    return csr_matrix((x.ravel(), indices, indptr), shape=shape)
