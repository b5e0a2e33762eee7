"""Fitted Q evaluation with features: Q(s, a) = phi(s, a) . theta, by regularised least squares.

The estimate solves (Phi'Phi + ridge I) theta_h = Phi'(r + gamma Phi_pi theta_{h+1}) for each period, or with one
theta if there is no horizon. Its posterior is that of the Bayesian bootstrap over episodes, linearised: the
estimate changes with the weight of a row by its error r + gamma V(s') - Q(s, a), times how often the policy comes
there, which follows from the same equations transposed. So the errors of all regressions are carried to the first
period, and noise may differ between states. An error is divided by 1 - leverage, as in the jackknife, since each
row has attracted the fit. To this comes the uncertainty of the prior, which decides where there are no rows
(`doubt`). The precision is factored block by block; no covariance is formed.
"""

from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete
from scipy import stats
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from scipy.sparse import csr_matrix

from rlsvi.bases.binding import bound
from rlsvi.core.compile import Floats, Longs
from rlsvi.judge.doubt import doubts, scales
from rlsvi.judge.question import MOST, Fitted, Question, folds_of

CERTAIN = 1e-9  # the least value of 1 - leverage


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

    def after_in(self, h: int) -> Any:
        """Return the features that follow in period h."""
        return self.after[h % len(self.after)]


class Factors(NamedTuple):
    """The Cholesky factors of the precision, for each block of columns that occurs in the log."""

    dim: int
    size: int
    blocks: dict[int, Any]
    ridge: float

    def solve(self, y: Floats) -> Floats:
        """Return P^-1 y."""
        found = y / self.ridge
        for block, factor in self.blocks.items():
            part = slice(block * self.dim, (block + 1) * self.dim)
            found[part] = cho_solve(factor, y[part])
        return found


def fitted_linear(question: Question, basis: Any, ridge: float, level: float) -> Fitted:
    """Return the value, its interval, and what the doubly robust estimate needs."""
    log, rows = question.log, np.flatnonzero(question.used)
    design, reward = designed(question, basis, rows), log.reward[rows]
    factors, leverage = factored(design, ridge)
    theta = weights_of(question, design, factors, reward)
    influence, doubt = influences(question, design, factors, reward, theta)
    first, value = design.first @ theta[0], float((design.first @ theta[0]).mean())
    E = log.episodes
    episode = np.repeat(np.arange(E), np.diff(log.start))[rows]
    parts = np.bincount(episode, weights=influence / np.maximum(1 - leverage, CERTAIN), minlength=E)
    variance = np.square(parts + (first - value) / E).sum() * E / max(E - 1, 1)
    variance += np.square(doubt * scales(question, design.taken)).sum()
    untried = float(np.delete(design.asked, list(factors.blocks)).sum() / design.asked.sum())
    half = float(stats.t.ppf((1 + level) / 2, E - 1) * np.sqrt(variance)) if E > 1 and untried <= MOST else np.inf
    error = np.zeros(log.steps)
    error[rows] = errors(question, design, theta, reward, rows)
    for left_out in folds_of(log) if log.propensity is not None else []:
        mine = left_out[episode]
        others = design.rows(~mine)
        theta = weights_of(question, others, factored(others, ridge)[0], reward[~mine])
        first[left_out] = design.first[left_out] @ theta[0]
        error[rows[mine]] = errors(question, design.rows(mine), theta, reward[mine], rows[mine])
    return Fitted(value, value - half, value + half, first, error, untried)


def weights_of(question: Question, design: Design, factors: Factors, reward: Floats) -> Floats:
    """Return theta_h of every period and zeros after the last, (H + 1, D); without a horizon one theta, twice."""
    if not question.horizon:
        theta = lu_solve(_endless(question, design, factors), design.taken.T @ reward)
        both: Floats = np.stack([theta, theta])
        return both
    weights: Floats = np.zeros((question.horizon + 1, design.taken.shape[1]))
    rewards, cross = design.taken.T @ reward, [design.taken.T @ after for after in design.after]
    for h in reversed(range(question.horizon)):
        weights[h] = factors.solve(rewards + question.gamma * (cross[h % len(cross)] @ weights[h + 1]))
    return weights


def influences(
    question: Question, design: Design, factors: Factors, reward: Floats, theta: Floats
) -> tuple[Floats, Floats]:
    """Return how the mean first value changes with the weight of each row, (N,), and with the prior.

    The latter is given for every period, (H,), or once, and multiplies the scale of a weight.
    """
    visits, unknown = np.asarray(design.first.mean(axis=0)).ravel(), [doubts(x, factors) for x in design.after]
    doubt = np.zeros(max(question.horizon, 1))
    doubt[0] = doubts(design.first, factors).mean()
    if not question.horizon:
        weight = design.taken @ lu_solve(_endless(question, design, factors), visits, trans=1)
        doubt[0] += question.gamma * (weight @ unknown[0])
        return weight * _errors_in(0, question, design, theta, reward), doubt
    influence = np.zeros(len(reward))
    for h in range(question.horizon):
        weight = design.taken @ factors.solve(visits)
        influence += weight * _errors_in(h, question, design, theta, reward)
        visits = question.gamma * (design.after_in(h).T @ weight)
        if h + 1 < question.horizon:
            doubt[h + 1] = question.gamma * (weight @ unknown[h % len(unknown)])
    return influence, doubt


def errors(question: Question, design: Design, theta: Floats, reward: Floats, rows: Longs) -> Floats:
    """Return r + gamma V(s') - Q(s, a) of the used rows, each in its own period."""
    if not question.horizon:
        return _errors_in(0, question, design, theta, reward)
    step, found = question.step[rows], np.zeros(len(reward))
    for h in range(min(question.horizon, int(step.max()) + 1)):
        at = np.flatnonzero(step == h)
        part = design._replace(after=[design.after_in(h)]).rows(at)
        found[at] = _errors_in(h, question, part, theta, reward[at])
    return found


def _errors_in(h: int, question: Question, design: Design, theta: Floats, reward: Floats) -> Floats:
    found: Floats = reward + question.gamma * (design.after_in(h) @ theta[h + 1]) - design.taken @ theta[h]
    return found


def _endless(question: Question, design: Design, factors: Factors) -> Any:
    """Return the factors of the equations of one theta for all periods."""
    matrix = (design.taken.T @ (design.taken - question.gamma * design.after[0])).toarray()
    matrix[np.diag_indices_from(matrix)] += factors.ridge
    return lu_factor(matrix)


def factored(design: Design, ridge: float) -> tuple[Factors, Floats]:
    """Return the factors of Phi'Phi + ridge I, and the leverage of every row."""
    taken, d = design.taken, design.dim
    block = taken.indices[taken.indptr[:-1]] // d
    x = taken.data.reshape(-1, d)
    leverage, found = np.zeros(len(block)), {}
    for b in np.unique(block).tolist():
        mine = np.flatnonzero(block == b)
        found[b] = cho_factor(x[mine].T @ x[mine] + ridge * np.eye(d), lower=True)
        leverage[mine] = np.einsum("id,di->i", x[mine], cho_solve(found[b], x[mine].T))
    return Factors(d, taken.shape[1], found, ridge), leverage


def designed(question: Question, basis: Any, rows: Longs) -> Design:
    """Return all features, after asking for the policy wherever it is needed."""
    log, step, over = question.log, question.step, question.over
    places = Places(question, basis)
    taken = [(r, *places.of(log.observation, i, int(step[i]), log.action[i])) for r, i in enumerate(rows)]
    goes_on = [
        (r, int(i), places.at(log.following, i, int(step[i]) + 1)) for r, i in enumerate(rows) if not over[i]
    ]
    after = []
    for h in range(question.horizon - 1) if question.periodic else [None]:
        chances = [question.after(i, int(step[i]) + 1 if h is None else h + 1) for _, i, _ in goes_on]
        met = [(r, *place, chance) for (r, _, place), chance in zip(goes_on, chances, strict=True)]
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
        self.per_period, periods = question.per_period, max(question.horizon, 1)
        example = question.log.observation.at(0)
        example = example - self.start if self.states is not None else example
        self.features = bound(basis, self.states, actions, periods, example, factors=False)
        self.dim = self.features.dim
        self.columns = self.features.blocks * self.dim * (periods if self.per_period else 1)
        self.asked = np.zeros(self.columns // self.dim)  # how often the policy takes an action of each block
        self._known: dict[tuple[int, int], tuple[Longs, Floats]] = {}  # of numbered observations

    def at(self, source: Any, i: int, h: int) -> tuple[Longs, Floats]:
        """Return the blocks (A,) and features (A, d) of the observation of a row in a period."""
        h = h if self.per_period else 0
        observation = source.at(i)
        if self.states is None:
            return self._at(h, observation)
        key = h, observation - self.start
        if key not in self._known:
            self._known[key] = self._at(*key)
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
