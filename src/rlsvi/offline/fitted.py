"""Fitted Q evaluation: the value of a policy by regressions of Q(s, a) on r + gamma V(s') of the rows of a log.

There are two kinds of posterior, and so two fits. With a table (`fit_table`) the posterior of the model itself is
known, and value iteration is carried out in many draws of it. With features (`fit_features`) there are only
regressions, and the posterior of the value is linearised. In both, the episodes of a fold are judged by a model
of the others.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete
from scipy import stats
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from scipy.sparse import bsr_matrix, csr_matrix, identity, kron
from scipy.sparse.linalg import splu

from rlsvi.bases.basis import bound
from rlsvi.bases.layout import ranges_of
from rlsvi.bases.observed import Observed, rows_of
from rlsvi.core.compile import Bools, Floats, Longs, compiled
from rlsvi.envs.actions import numbering
from rlsvi.offline.log import LoggedEpisodes
from rlsvi.offline.off_policy import OffPolicyProblem

MOST_UNTRIED = 0.5  # the share of untried actions above which a value is not to be trusted
FOLDS = 5  # parts of a log, each judged by a model of the others
UNSEEN = 0.1  # times that an outcome was seen which may follow, but is not in the log
STATES = 10.0  # times that an outcome of the whole log was seen in each state
MEAN = 50  # draws for a mean alone
NUMBERS = 2_000_000  # of transition probabilities at once
CERTAIN = 1e-9  # the least value of 1 - leverage
AT_ONCE = 4096  # observations whose features are computed together
GAMMAS = 0.999, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.5  # that are tried where values diverge


class Fitted(NamedTuple):
    """A fitted value function, averaged over its posterior."""

    value: float
    low: float
    high: float
    first: Floats  # (E,) the value of the first observation of each episode, by a model of other episodes
    error: Floats  # (N,) r + gamma V(s') - Q(s, a) of every row, in its own period, by a model of other episodes
    untried: float  # the share of the policy's actions, at logged observations, never tried: there, or at all
    instead: str = ""  # arguments with which the value is possible, if it is not


def fit_folds(log: LoggedEpisodes, rows: Longs, first: Floats, error: Floats, refit: Callable[..., Any]) -> None:
    """Replace first values (E,) and errors of rows by those of models of other episodes.

    `refit` takes the rows to leave out, as flags of `rows`, and their episodes, (E,), and returns the first values
    of these episodes and the errors of these rows.
    """
    numbers, folds = np.arange(log.episodes), min(FOLDS, log.episodes)
    episode = log.episode[rows]
    for k in range(folds if folds > 1 else 0):
        left_out = numbers % folds == k
        mine = left_out[episode]
        first[left_out], error[rows[mine]] = refit(mine, left_out)


# ---- A table: value iteration in many draws of the posterior of a finite model -----------------------------
#
# What follows an action in a state has an unknown distribution. Its posterior is that of a Dirichlet process: in
# a draw, each outcome that the log contains has a weight of Gamma(number of times), and one more outcome has a
# weight of Gamma(UNSEEN). That one is taken from the outcomes of all actions in the same state, or, as if these
# were STATES more, from the whole log (of the same period). It decides where an action was never tried. Outcomes
# are ordered by the return that followed, and in one draw all states are equally lucky: otherwise the errors of
# many untried actions would average out.


def fit_table(problem: OffPolicyProblem, draws: int, level: float, rng: Any, robust: bool) -> Fitted:
    """Return the value, the quantiles of its draws, and what the doubly robust estimate needs if asked for."""
    log, model, rows = problem.log, table_of(problem), np.flatnonzero(problem.used)
    begin = model.state[np.searchsorted(rows, log.start[:-1])]
    values, V, Q = _posterior(model, begin, problem, draws, rng)
    first, error = V[0, begin], np.zeros(log.steps)
    error[rows] = _table_errors(model, V, Q, problem, rows)
    silent = problem._replace(advance=lambda n: None)  # that was all of the progress

    def refit(mine: Bools, left_out: Bools) -> tuple[Floats, Floats]:
        _, V, Q = _posterior(model.without(mine), begin[~left_out], silent, MEAN, rng)
        return V[0, begin[left_out]], _table_errors(model, V, Q, problem, rows)[mine]

    if robust:
        fit_folds(log, rows, first, error, refit)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    missing = np.bincount(model.cell[model.cell >= 0], minlength=len(model.cell_state)) == 0
    visits = np.bincount(model.state, minlength=model.states + 1)[model.cell_state]
    taken = np.mean(model.chances, axis=0) * visits
    untried = float((missing * taken).sum() / max(taken.sum(), 1e-300))
    return Fitted(float(values.mean()), float(low), float(high), first, error, untried)


class LoggedModel(NamedTuple):
    """The log as a table. State S is the end. Cells are the states with actions that the policy can take."""

    states: int
    state: Longs  # (N,) of used rows
    following: Longs  # (N,)
    cell: Longs  # (N,) -1: the policy never takes this action
    reward: Floats
    group: Longs  # (N,) rows of the same period, or all
    rank: Floats  # (N,) the return that followed
    cell_state: Longs  # (C,)
    cell_group: Longs  # (C,)
    chances: list[Floats]  # (C,) of each cell, for every period or once

    def without(self, rows: Bools) -> "LoggedModel":
        """Return the model of the other rows."""
        names = "state", "following", "cell", "reward", "group", "rank"
        return self._replace(**{name: getattr(self, name)[~rows] for name in names})


def _posterior(
    model: LoggedModel, begin: Longs, problem: OffPolicyProblem, draws: int, rng: Any
) -> tuple[Floats, Floats, Floats]:
    """Return draws of the mean value of first states, and means over draws of V (H + 1, S + 1) and Q (H, C)."""
    periods = max(problem.horizon, 1)
    V, Q = np.zeros((periods + 1, model.states + 1)), np.zeros((periods, len(model.cell_state)))
    values, done = np.empty(draws), 0
    chunk = max(1, NUMBERS // (len(model.state) + len(model.cell_state)))
    while done < draws:
        B = min(chunk, draws - done)
        transition, reward = draw_model(model, B, rng)
        for h, v, q in evaluate_draws(model, transition, reward, problem.gamma, problem.horizon):
            V[h] += v.sum(axis=1)
            Q[h] += q.sum(axis=1)
        weight = rng.standard_exponential((len(begin), B))
        values[done : done + B] = (v[begin] * weight).sum(axis=0) / weight.sum(axis=0)
        done += B
        problem.advance(B)
    return values, V / draws, Q / draws


def _table_errors(model: LoggedModel, V: Floats, Q: Floats, problem: OffPolicyProblem, rows: Longs) -> Floats:
    """Return r + gamma V(s') - Q(s, a) of the used rows, each in its own period."""
    step = np.minimum(problem.step[rows], len(Q) - 1)
    after = V[step + 1 if problem.horizon else step, model.following]
    found: Floats = model.reward + problem.gamma * after - np.where(model.cell < 0, 0.0, Q[step, model.cell])
    return found


def evaluate_draws(model: LoggedModel, transition: Any, reward: Floats, gamma: float, horizon: int) -> Any:
    """Yield h, V_h (S + 1, B) and Q_h (C, B) of all draws, from the last period to the first; once if endless."""
    C, B = reward.shape
    acting = [
        csr_matrix((chances, (model.cell_state, np.arange(C))), shape=(model.states + 1, C))
        for chances in model.chances
    ]
    if not horizon:
        policy = kron(acting[0], identity(B), format="csr")
        matrix = identity((model.states + 1) * B, format="csc") - gamma * (policy @ transition).tocsc()
        V = splu(matrix).solve(policy @ reward.ravel())
        yield 0, V.reshape(-1, B), reward + gamma * (transition @ V).reshape(C, B)
        return
    V = np.zeros((model.states + 1, B))
    for h in reversed(range(horizon)):
        Q = reward + gamma * (transition @ V.ravel()).reshape(C, B)
        V = acting[h % len(acting)] @ Q
        yield h, V, Q


def draw_model(model: LoggedModel, draws: int, rng: Any) -> tuple[Any, Floats]:
    """Draw models: transitions (C B, (S + 1) B), draw b in rows and columns b, b + B, .., and rewards (C, B)."""
    taken = model.cell >= 0
    seen, times = np.unique(
        np.stack([model.cell[taken], model.following[taken], model.reward[taken]]), axis=1, return_counts=True
    )
    cell, following, reward = seen[0].astype(np.int64), seen[1].astype(np.int64), seen[2]
    C, each = len(model.cell_state), np.arange(draws)
    luck = rng.random(draws)
    in_state, many = _quantile(model.state, model.rank, model.cell_state, luck)
    in_group, _ = _quantile(model.group, model.rank, model.cell_group, luck)
    elsewhere = rng.random(in_state.shape) * (many + STATES)[:, None] < STATES
    other = np.where(elsewhere, in_group, in_state)  # a row whose outcome may follow as well
    weight = rng.standard_gamma(times[:, None], size=(len(times), draws))
    unseen = rng.standard_gamma(UNSEEN, size=(C, draws))
    unseen[np.bincount(cell, minlength=C) == 0] = 1.0
    sums = csr_matrix((np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(C, len(cell)))
    total = sums @ weight + unseen
    weight, unseen = weight / total[cell], unseen / total
    rows = np.concatenate([cell, np.arange(C)])[:, None] * draws + each
    columns = np.concatenate([np.broadcast_to(following[:, None], weight.shape), model.following[other]]) * draws
    entries = np.concatenate([weight, unseen]).ravel()
    shape = (C * draws, (model.states + 1) * draws)
    transition = csr_matrix((entries, (rows.ravel(), (columns + each).ravel())), shape=shape)
    return transition, sums @ (weight * reward[:, None]) + unseen * model.reward[other]


def _quantile(key: Longs, rank: Floats, wanted: Longs, luck: Floats) -> tuple[Longs, Longs]:
    """Return the row of each wanted key at the quantile `luck` of the rank, (C, draws), and how many it has."""
    order = np.lexsort((rank, key))
    begin, end = (np.searchsorted(key[order], wanted, side) for side in ("left", "right"))
    many = end - begin
    at = np.minimum(begin[:, None] + (luck * many[:, None]).astype(np.int64), len(order) - 1)
    return order[at], many


@compiled
def discounted_sums(reward: Floats, last: Bools, gamma: float, out: Floats) -> None:
    """Sum the rewards from each step to the end of its episode."""
    following = 0.0
    for i in range(reward.size - 1, -1, -1):
        following = out[i] = reward[i] + (0.0 if last[i] else gamma * following)


def table_of(problem: OffPolicyProblem) -> LoggedModel:
    """Return the log as a table, after asking for the policy in every state that occurs."""
    log, step, over, used = problem.log, problem.step, problem.over, problem.used
    rows, n, rest = np.flatnonzero(used), log.steps, np.empty(log.steps)
    discounted_sums(log.reward, log.last, float(problem.gamma), rest)
    goes_on = used & ~over
    seen = [log.observation.values[rows], log.following.values[goes_on]]
    _, number = np.unique(np.concatenate(seen), return_inverse=True)
    period = np.concatenate([step[rows], step[goes_on] + 1]) if problem.per_period else np.zeros(len(number), int)
    keys, state = np.unique(period * (number.max() + 1) + number, return_inverse=True)
    S = len(keys)
    before, after = state[: len(rows)], np.full(n, S)
    after[goes_on] = state[len(rows) :]
    chances = _policies(problem, state, rows, np.flatnonzero(goes_on), period, S)
    cells = np.flatnonzero(np.any(chances, axis=0).ravel())
    A = problem.target.n
    place = np.full(S * A, -1)
    place[cells] = np.arange(len(cells))
    periods = np.zeros(S, np.int64)
    periods[state] = period
    group = period[: len(rows)]
    known = np.isin(periods, group)  # the last period of a log that is cut off has no rows
    groups = np.where(known, periods, group.max())
    return LoggedModel(
        S,
        before,
        after[rows],
        place[before * A + log.action[rows]],
        log.reward[rows],
        group,
        rest[rows],
        cells // A,
        groups[cells // A],
        [policy.ravel()[cells] for policy in chances],
    )


def _policies(
    problem: OffPolicyProblem, state: Longs, rows: Longs, goes_on: Longs, period: Longs, states: int
) -> list[Floats]:
    """Return the policy in all states, (S, A), for every period if it depends on it, otherwise once."""
    found, log = [], problem.log
    last = np.zeros(states, np.int64)
    last[state[::-1]] = np.arange(len(state))[::-1]  # where each state is met first
    masks = _masks(log, state, rows, goes_on)
    for h in range(problem.horizon if problem.periodic else 1):
        policy = np.zeros((states, problem.target.n))
        for s, k in enumerate(last.tolist()):
            source, i = (log.observation, rows[k]) if k < len(rows) else (log.following, goes_on[k - len(rows)])
            at = h if problem.periodic else int(period[k])
            policy[s] = problem.target.at(at, source, i, masks.get(s), int(log.row[i]))
        found.append(policy)
    return found


def _masks(log: Any, state: Longs, rows: Longs, goes_on: Longs) -> dict[int, Bools]:
    """Return the legal actions of states, where the log has them, which must be the same in all rows."""
    found: dict[int, tuple[Bools, int]] = {}
    given = [*((log.mask.at(i), i) for i in rows), *((log.next_mask.at(i), i) for i in goes_on)]
    for s, (mask, i) in zip(state.tolist(), given, strict=True):
        if mask is None:
            continue
        known, row = found.setdefault(s, (mask, int(log.row[i])))
        if not np.array_equal(known, mask):
            raise ValueError(
                f"the log has other legal actions in row {row} than in row {int(log.row[i])} for the same "
                "observation: a table needs one mask for each. Put what decides the legal actions into the "
                "observation, or give per_period=True if it is the period"
            )
    return {s: mask for s, (mask, _) in found.items()}


# ---- Features: Q(s, a) = phi(s, a) . theta, by regularised least squares ------------------------------------
#
# The estimate solves (Phi'Phi + ridge I) theta_h = Phi'(r + gamma Phi_pi theta_{h+1}) for each period, or with
# one theta if there is no horizon. Its posterior is that of the Bayesian bootstrap over episodes, linearised:
# the estimate changes with the weight of a row by its error r + gamma V(s') - Q(s, a), times how often the
# policy comes there, which follows from the same equations transposed. So the errors of all regressions are
# carried to the first period, and noise may differ between states. An error is divided by 1 - leverage, as in
# the jackknife, since each row has attracted the fit. To this comes the uncertainty of the prior, which decides
# where there are no rows. The precision is factored block by block; no covariance is formed.


def fit_features(problem: OffPolicyProblem, basis: Any, ridge: float, level: float, robust: bool) -> Fitted:
    """Return the value, its interval, and what the doubly robust estimate needs if that is asked for."""
    log, rows = problem.log, np.flatnonzero(problem.used)
    design, reward = design_of(problem, basis, rows), log.reward[rows]
    regression = regress(design, ridge, reward)
    theta = solve_weights(problem, regression)
    first, error = design.first @ theta[0], np.zeros(log.steps)
    value = float(first.mean())
    untried = float(np.delete(design.asked, list(regression.factors.blocks)).sum() / design.asked.sum())
    if not problem.allows(value):
        instead = _alternatives(problem, design, regression, theta)
        return Fitted(value, -np.inf, np.inf, first, error, untried, instead)
    influence, prior = influences(problem, design, regression, reward, theta)
    leverage, prior = leverages(design, regression.factors), prior * weight_scales(problem, design.taken)
    half = half_width(influence, leverage, log.episode[rows], first, prior, level, untried)

    def refit(mine: Bools, left_out: Bools) -> tuple[Floats, Floats]:
        theta = solve_weights(problem, regress(design.rows(~mine), ridge, reward[~mine]))
        steps = problem.step[rows[mine]]
        return design.first[left_out] @ theta[0], _errors(problem, design.rows(mine), theta, reward[mine], steps)

    if robust:
        error[rows] = _errors(problem, design, theta, reward, problem.step[rows])
        fit_folds(log, rows, first, error, refit)
    return Fitted(value, value - half, value + half, first, error, untried)


def half_width(
    influence: Floats, leverage: Floats, episode: Longs, first: Floats, prior: Floats, level: float, untried: float
) -> float:
    """Return half the width of the interval of the mean of `first` (E,), by the jackknife over episodes.

    Each row has an influence, a leverage and an episode, (N,). The prior adds standard deviations, (H,).
    """
    E, sure = len(first), np.maximum(1 - leverage, CERTAIN)
    if E < 2 or untried > MOST_UNTRIED:
        return np.inf
    parts = np.bincount(episode, weights=influence / sure, minlength=E) + (first - float(first.mean())) / E
    variance = np.square(parts).sum() * E / (E - 1) + np.square(prior).sum()
    return float(stats.t.ppf((1 + level) / 2, E - 1) * np.sqrt(variance))


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


def regress(design: Design, ridge: float, reward: Floats) -> Regression:
    """Return the regression on the rows of a design."""
    factors = factor_blocks(design, ridge)
    after = [_transitions(design, each, factors) for each in design.after]
    return Regression(factors, factors.solve(design.taken.T @ reward), after)


def _transitions(design: Design, after: Any, factors: Factors) -> Any:
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


def solve_weights(problem: OffPolicyProblem, regression: Regression) -> Floats:
    """Return theta_h of every period and zeros after the last, (H + 1, D); without a horizon one theta, twice."""
    if not problem.horizon:
        theta = lu_solve(_endless(problem, regression), regression.rewards)
        both: Floats = np.stack([theta, theta])
        return both
    weights: Floats = np.zeros((problem.horizon + 1, len(regression.rewards)))
    after = regression.after
    for h in reversed(range(problem.horizon)):
        weights[h] = regression.rewards + problem.gamma * (after[h % len(after)] @ weights[h + 1])
    return weights


def _alternatives(problem: OffPolicyProblem, design: Design, regression: Regression, theta: Floats) -> str:
    """Return the longest horizon and the largest gamma with values that the rewards allow, in words."""
    if problem.periodic or problem.per_period:
        return ""  # other horizons are other regressions
    found, first, H = [], np.asarray(design.first.mean(axis=0)).ravel(), problem.horizon

    def longest(gamma: float, weights: Floats) -> int:
        """Return how many steps may count before a value is impossible."""
        values = (weights[:-1] @ first)[::-1]  # of 1, 2, .. steps
        allowed = [problem._replace(gamma=gamma, horizon=h + 1).allows(float(v)) for h, v in enumerate(values)]
        return allowed.index(False) if False in allowed else len(allowed)

    if H and (steps := longest(problem.gamma, theta)):
        found.append(f"horizon={steps}")
    for gamma in GAMMAS:
        if gamma >= problem.gamma:
            continue
        other = problem._replace(gamma=gamma)
        weights = solve_weights(other, regression)
        if longest(gamma, weights) == H if H else other.allows(float(first @ weights[0])):
            found.append(f"gamma={gamma:g}")
            break
    return " or ".join(found)


def influences(
    problem: OffPolicyProblem, design: Design, regression: Regression, reward: Floats, theta: Floats
) -> tuple[Floats, Floats]:
    """Return how the mean first value changes with the weight of each row, (N,), and with the prior.

    The latter is given for every period, (H,), or once, and multiplies the scale of a weight.
    """
    factors, gamma, d = regression.factors, problem.gamma, design.dim
    visits = np.zeros((max(problem.horizon, 1), len(regression.rewards)))  # (H, D)
    visits[0] = np.asarray(design.first.mean(axis=0)).ravel()
    if not problem.horizon:
        visits[0] = lu_solve(_endless(problem, regression), visits[0], trans=1)
    back = [after.T for after in regression.after]
    for h in range(1, len(visits)):
        visits[h] = gamma * (back[(h - 1) % len(back)] @ visits[h - 1])
    weight = factors.solve(visits.T).T  # (H, D) the weight of a row in period h is its features times this
    prior = np.zeros(len(visits))
    prior[0] = prior_uncertainty(design.first, factors).mean()
    unknown = [design.taken.T @ prior_uncertainty(after, factors) for after in design.after]
    if not problem.horizon:
        prior[0] += gamma * (weight[0] @ unknown[0])
    for h in range(len(visits) - 1):
        prior[h + 1] = gamma * (weight[h] @ unknown[h % len(unknown)])
    influence: Floats = reward * (design.taken @ weight.sum(axis=0))
    for b, _, x, y, row in _pairs(design, design.taken):
        part = slice(b * d, (b + 1) * d)
        influence[row] -= _products(x, weight[:, part], theta[:-1, part], y)
    for j, after in enumerate(design.after):
        mine = slice(j, None, len(design.after))
        for b, c, x, y, row in _pairs(design, after):
            one, other = slice(b * d, (b + 1) * d), slice(c * d, (c + 1) * d)
            np.add.at(influence, row, gamma * _products(x, weight[mine, one], theta[1:][mine, other], y))
    return influence, prior


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


def _errors(problem: OffPolicyProblem, design: Design, theta: Floats, reward: Floats, step: Longs) -> Floats:
    """Return r + gamma V(s') - Q(s, a) of rows, each in its own period; 0 beyond the horizon."""
    weights, found = theta.reshape(len(theta), -1, design.dim), reward.copy()
    step = np.minimum(step, len(theta) - 1) if problem.horizon else np.zeros_like(step)
    _, block, x = _entries(design.taken, design.dim)
    found -= np.einsum("nd,nd->n", x, weights[step, block])
    for j, after in enumerate(design.after):
        row, block, y = _entries(after, design.dim)
        mine = (step[row] % len(design.after) == j) & (step[row] < len(theta) - 1)
        row, block, y = row[mine], block[mine], y[mine]
        np.add.at(found, row, problem.gamma * np.einsum("nd,nd->n", y, weights[step[row] + 1, block]))
    return np.where(step < len(theta) - 1, found, 0.0)


def _endless(problem: OffPolicyProblem, regression: Regression) -> Any:
    """Return the factors of the equations of one theta for all periods, (I - gamma P^-1 Phi'Phi_pi)."""
    matrix = -problem.gamma * regression.after[0].toarray()
    matrix[np.diag_indices_from(matrix)] += 1.0
    return lu_factor(matrix)


def factor_blocks(design: Design, ridge: float) -> Factors:
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


# The ridge stands for rows that were not seen, whose outcomes could have been any. At features x, such rows move
# Q(s, a) by ridge x' P^-1 theta, where theta is a draw from the prior. So Q is uncertain by ridge |P^-1 x| times
# the scale of a weight: nothing where there are many rows, and the whole scale where there are none. The scale
# is such that an action without rows is as uncertain as the largest return of the log. In one period all
# observations are equally lucky, as in a table: otherwise the errors of many of them would average out. Periods
# are independent.


def prior_uncertainty(features: Any, factors: Factors) -> Floats:
    """Return ridge |P^-1 x| of every row of a sparse matrix of features, (N,)."""
    row, block, x = _entries(features, factors.dim)
    squares = np.zeros(len(block))
    for b in np.unique(block).tolist():
        mine, factor = np.flatnonzero(block == b), factors.blocks.get(b)
        solved = x[mine] if factor is None else factors.ridge * cho_solve(factor, x[mine].T).T
        squares[mine] = np.square(solved).sum(axis=1)
    found: Floats = np.sqrt(np.bincount(row, weights=squares, minlength=features.shape[0]))
    return found


def weight_scales(problem: OffPolicyProblem, features: Any) -> Floats:
    """Return the scale of a weight in each period, (H,), or once: the largest return over the norm of features."""
    log, gamma, periods = problem.log, problem.gamma, max(problem.horizon, 1)
    largest, rest, goes_on = np.zeros(periods), np.zeros(log.steps), np.where(log.last, 0.0, 1.0)
    longest = int(np.diff(log.start).max())
    for steps in range(1, (min(periods, longest) if problem.horizon else longest) + 1):
        rest = log.reward + gamma * goes_on * np.roll(rest, -1)  # of the next `steps` rewards
        largest[: max(periods - steps + 1, 1)] = np.abs(rest).max()
    size = np.square(features.data).sum() / features.shape[0]
    found: Floats = largest / np.sqrt(size if size > 0 else 1.0)
    return found


def design_of(problem: OffPolicyProblem, basis: Any, rows: Longs) -> Design:
    """Return all features, after asking for the policy wherever it is needed."""
    log, step, over = problem.log, problem.step, problem.over
    features = LogFeatures(problem, basis)
    taken, goes_on, after = [], [], []
    for r, i in enumerate(rows.tolist()):
        block, x = features.at(log.observation, i, int(step[i]))
        taken.append((r, int(block[log.action[i]]), x[log.action[i]]))
        if not over[i]:
            goes_on.append((r, i, features.at(log.following, i, int(step[i]) + 1)))
    periods: Any = range(problem.horizon - 1) if problem.periodic else [None]
    for h in periods:
        met = []
        for r, i, place in goes_on:
            met.append((r, *place, problem.policy_after(i, int(step[i]) + 1 if h is None else h + 1)))
            problem.advance(1)
        after.append(features.mix(met, len(rows)))
    if problem.periodic:
        after.append(csr_matrix((len(rows), features.columns)))  # nothing follows the last period
    begin = enumerate(log.start[:-1].tolist())
    met = [(e, *features.at(log.observation, i, 0), problem.policy_at(i, 0)) for e, i in begin]
    first = features.mix(met, log.episodes)
    matrix = _matrix(taken, (len(rows), features.columns), features.dim)
    return Design(matrix, after, first, features.dim, features.asked)


class LogFeatures:
    """The features of observations of a log."""

    def __init__(self, problem: OffPolicyProblem, basis: Any) -> None:
        space, (_, actions, _) = problem.env.observation_space, numbering(problem.env.action_space)
        states = int(space.n) if isinstance(space, Discrete) else None
        self.start = int(space.start) if isinstance(space, Discrete) else None
        self.actions = np.arange(actions)
        self.per_period, periods = problem.per_period, max(problem.horizon, 1)
        example = self._from_zero(problem.log.observation.at(0))
        self.features = bound(basis, states, actions, periods, example, factors=False)
        self.dim = self.features.dim
        self.columns = self.features.blocks * self.dim * (periods if self.per_period else 1)
        self.asked = np.zeros(self.columns // self.dim)  # how often the policy takes an action of each block
        self._known: dict[tuple[int, Any], tuple[Longs, Floats]] = {}
        self._rows: dict[int, Floats] = {}  # the features of all observations, if they can be computed at once
        if isinstance(basis, Observed) and states is None:
            log, layout, ranges = problem.log, basis.layout, ranges_of(basis.low, basis.high)
            everywhere = np.ones(log.steps, np.bool_)
            for source, needed in ((log.observation, everywhere), (log.following, ~problem.over)):
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
            block, x = self.features.at(h, self._from_zero(source.at(i)))
            self._known[key] = block.astype(np.int64) + h * self.features.blocks, x
        return self._known[key]

    def _from_zero(self, observation: Any) -> Any:
        """Return a state counted from 0, and any other observation as it is."""
        return observation if self.start is None else observation - self.start

    def mix(self, places: list[tuple[int, Longs, Floats, Floats]], rows: int) -> Any:
        """Return a matrix of the features of (row, blocks, features, probabilities)."""
        parts = [
            (row, int(block[a]), chances[a] * x[a])
            for row, block, x, chances in places
            for a in np.flatnonzero(chances)
        ]
        for _, block, _, chances in places:
            np.add.at(self.asked, block, chances)
        return _matrix(parts, (rows, self.columns), self.dim)


def _matrix(entries: list[tuple[int, Any, Floats]], shape: tuple[int, int], dim: int) -> Any:
    """Return a sparse matrix from (row, block, features), rows in order; a row may have several blocks."""
    if not entries:
        return csr_matrix(shape)
    rows, blocks, x = (np.array(part) for part in zip(*entries, strict=True))
    indices = (blocks[:, None] * dim + np.arange(dim)).ravel()
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]) * dim)])
    return csr_matrix((x.ravel(), indices, indptr), shape=shape)
