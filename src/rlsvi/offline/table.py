"""Fitted Q evaluation with a table: value iteration in many draws of the posterior of a finite model.

What follows an action in a state has an unknown distribution. Its posterior is that of a Dirichlet process: in a
draw, each outcome that the log contains has a weight of Gamma(number of times), and one more outcome has a weight
of Gamma(UNSEEN). That one is taken from the outcomes of all actions in the same state, or, as if these were STATES
more, from the whole log (of the same period). It decides where an action was never tried. Outcomes are ordered
by the return that followed, and in one draw all states are equally lucky: otherwise the errors of many untried
actions would average out.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, identity, kron
from scipy.sparse.linalg import splu

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.offline.question import Fitted, Question, folds_of

UNSEEN = 0.1  # times that an outcome was seen which may follow, but is not in the log
STATES = 10.0  # times that an outcome of the whole log was seen in each state
MEAN = 50  # draws for a mean alone
NUMBERS = 2_000_000  # of transition probabilities at once


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
        return self._replace(**{name: getattr(self, name)[~rows] for name in OF_ROWS})


OF_ROWS = "state", "following", "cell", "reward", "group", "rank"


def fitted_table(question: Question, draws: int, level: float, rng: Any, robust: bool) -> Fitted:
    """Return the value, the quantiles of its draws, and what the doubly robust estimate needs if asked for."""
    log, model, rows = question.log, tabled(question), np.flatnonzero(question.used)
    begin = model.state[np.searchsorted(rows, log.start[:-1])]
    values, V, Q = posterior(model, begin, question, draws, rng)
    first, error = V[0, begin], np.zeros(log.steps)
    error[rows] = errors(model, V, Q, question, rows)
    episode = np.repeat(np.arange(log.episodes), np.diff(log.start))[rows]
    question = question._replace(advance=lambda n: None)  # that was all of the progress
    for left_out in folds_of(log) if robust else []:
        mine = left_out[episode]
        _, V, Q = posterior(model.without(mine), begin[~left_out], question, MEAN, rng)
        first[left_out] = V[0, begin[left_out]]
        error[rows[mine]] = errors(model, V, Q, question, rows)[mine]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Fitted(float(values.mean()), float(low), float(high), first, error, untried(model))


def posterior(
    model: LoggedModel, begin: Longs, question: Question, draws: int, rng: Any
) -> tuple[Floats, Floats, Floats]:
    """Return draws of the mean value of first states, and means over draws of V (H + 1, S + 1) and Q (H, C)."""
    periods = max(question.horizon, 1)
    V, Q = np.zeros((periods + 1, model.states + 1)), np.zeros((periods, len(model.cell_state)))
    values, done = np.empty(draws), 0
    chunk = max(1, NUMBERS // (len(model.state) + len(model.cell_state)))
    while done < draws:
        B = min(chunk, draws - done)
        transition, reward = drawn_model(model, B, rng)
        for h, v, q in swept(model, transition, reward, question.gamma, question.horizon):
            V[h] += v.sum(axis=1)
            Q[h] += q.sum(axis=1)
        weight = rng.standard_exponential((len(begin), B))
        values[done : done + B] = (v[begin] * weight).sum(axis=0) / weight.sum(axis=0)
        done += B
        question.advance(B)
    return values, V / draws, Q / draws


def errors(model: LoggedModel, V: Floats, Q: Floats, question: Question, rows: Longs) -> Floats:
    """Return r + gamma V(s') - Q(s, a) of the used rows, each in its own period."""
    step = np.minimum(question.step[rows], len(Q) - 1)
    after = V[step + 1 if question.horizon else step, model.following]
    found: Floats = model.reward + question.gamma * after - np.where(model.cell < 0, 0.0, Q[step, model.cell])
    return found


def untried(model: LoggedModel) -> float:
    """Return the share of the policy's actions at the observations of the log that are never tried there."""
    missing = np.bincount(model.cell[model.cell >= 0], minlength=len(model.cell_state)) == 0
    visits = np.bincount(model.state, minlength=model.states + 1)[model.cell_state]
    chances = np.mean(model.chances, axis=0)
    return float((missing * chances * visits).sum() / max((chances * visits).sum(), 1e-300))


def swept(model: LoggedModel, transition: Any, reward: Floats, gamma: float, horizon: int) -> Any:
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


def drawn_model(model: LoggedModel, draws: int, rng: Any) -> tuple[Any, Floats]:
    """Draw models: transitions (C B, (S + 1) B), draw b in rows and columns b, b + B, .., and rewards (C, B)."""
    taken = model.cell >= 0
    seen, times = np.unique(
        np.stack([model.cell[taken], model.following[taken], model.reward[taken]]), axis=1, return_counts=True
    )
    cell, following, reward = seen[0].astype(np.int64), seen[1].astype(np.int64), seen[2]
    C, each = len(model.cell_state), np.arange(draws)
    other = other_outcomes(model, draws, rng)
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


def other_outcomes(model: LoggedModel, draws: int, rng: Any) -> Longs:
    """Return for each cell and draw a row whose outcome may follow as well, (C, draws)."""
    luck = rng.random(draws)
    in_state, many = _quantile(model.state, model.rank, model.cell_state, luck)
    in_group, _ = _quantile(model.group, model.rank, model.cell_group, luck)
    elsewhere = rng.random(in_state.shape) * (many + STATES)[:, None] < STATES
    return np.where(elsewhere, in_group, in_state)


def _quantile(key: Longs, rank: Floats, wanted: Longs, luck: Floats) -> tuple[Longs, Longs]:
    """Return the row of each wanted key at the quantile `luck` of the rank, (C, draws), and how many it has."""
    order = np.lexsort((rank, key))
    begin, end = (np.searchsorted(key[order], wanted, side) for side in ("left", "right"))
    many = end - begin
    at = np.minimum(begin[:, None] + (luck * many[:, None]).astype(np.int64), len(order) - 1)
    return order[at], many


def tabled(question: Question) -> LoggedModel:
    """Return the log as a table, after asking for the policy in every state that occurs."""
    log, step, over, used = question.log, question.step, question.over, question.used
    rows, n = np.flatnonzero(used), log.steps
    goes_on = used & ~over
    seen = [log.observation.values[rows], log.following.values[goes_on]]
    _, number = np.unique(np.concatenate(seen), return_inverse=True)
    period = np.concatenate([step[rows], step[goes_on] + 1]) if question.per_period else np.zeros(len(number), int)
    keys, state = np.unique(period * (number.max() + 1) + number, return_inverse=True)
    S = len(keys)
    before, after = state[: len(rows)], np.full(n, S)
    after[goes_on] = state[len(rows) :]
    chances = _policies(question, state, rows, np.flatnonzero(goes_on), period, S)
    cells = np.flatnonzero(np.any(chances, axis=0).ravel())
    A = question.target.n
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
        returns_of(log, question.gamma)[rows],
        cells // A,
        groups[cells // A],
        [policy.ravel()[cells] for policy in chances],
    )


def _policies(
    question: Question, state: Longs, rows: Longs, goes_on: Longs, period: Longs, states: int
) -> list[Floats]:
    """Return the policy in all states, (S, A), for every period if it depends on it, otherwise once."""
    found, log = [], question.log
    last = np.zeros(states, np.int64)
    last[state[::-1]] = np.arange(len(state))[::-1]  # where each state is met first
    masks = _masks(log, state, rows, goes_on)
    for h in range(question.horizon if question.periodic else 1):
        policy = np.zeros((states, question.target.n))
        for s, k in enumerate(last.tolist()):
            source, i = (log.observation, rows[k]) if k < len(rows) else (log.following, goes_on[k - len(rows)])
            at = h if question.periodic else int(period[k])
            policy[s] = question.target.at(at, source, i, masks.get(s), int(log.row[i]))
        found.append(policy)
    return found


def _masks(log: Any, state: Longs, rows: Longs, goes_on: Longs) -> dict[int, Bools]:
    """Return the legal actions of states, where the log has them, which must be the same in all rows."""
    found: dict[int, tuple[Bools, int]] = {}
    given = [*((log.mask[i], i) for i in rows), *((log.next_mask[i], i) for i in goes_on)]
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


def returns_of(log: Any, gamma: float) -> Floats:
    """Return the rest of the return of each row's episode, as far as the log goes."""
    total, rest = np.zeros(log.steps), 0.0
    last = np.zeros(log.steps, np.bool_)
    last[log.start[1:] - 1] = True
    for i in reversed(range(log.steps)):
        rest = log.reward[i] + gamma * (0.0 if last[i] else rest)
        total[i] = rest
    return total
