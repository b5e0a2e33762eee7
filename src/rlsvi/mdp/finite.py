"""A finite-horizon MDP as a table, the representation of all finite problems.

For every period, state and action the table lists the possible successors with their probabilities and
rewards. An episode starts in s_0 ~ start, and ends after `horizon` steps or on entering an absorbing
state; the terminal reward of its last state is paid with the last step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.archive import storable
from rlsvi.core.checks import finite, fits, function_of, one_of, read_only, shown, whole
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import normal, pick, uniform
from rlsvi.html import html_table

# ---- A finite MDP in compiled code: its arrays, and how to draw from them ----------------------------------


DETERMINISTIC, BERNOULLI, GAUSSIAN = 0, 1, 2


class Table(NamedTuple):
    """The arrays of a FiniteMDP in the form that compiled code uses. A row is (period, state, action)."""

    horizon: int
    states: int
    actions: int
    per_period: bool  # otherwise all periods share the rows of period 0
    indptr: Longs  # successors of row i: indptr[i] .. indptr[i + 1]
    successor: Ints
    probability: Floats
    reward: Floats  # mean reward of each successor
    std: Floats  # its standard deviation (Gaussian rewards)
    noise: int
    low: float  # the two values of Bernoulli rewards
    high: float
    expected: Floats  # mean reward of each row
    legal: Bools  # (periods or 1, states, actions)
    absorbing: Bools
    pays_terminal: bool
    terminal: Floats
    start: Floats


@compiled
def row_of(t: Table, h: int, s: int, a: int) -> int:
    """Return the row of a period, state and action."""
    return ((h if t.per_period else 0) * t.states + s) * t.actions + a


@compiled
def mask_of(t: Table, h: int) -> int:
    """Return the index i such that `t.legal[i]` is the action mask of period h."""
    return h if t.legal.shape[0] > 1 else 0


@compiled
def _reward(t: Table, mean: float, std: float, state: Words) -> float:
    if t.noise == BERNOULLI:
        return t.high if uniform(state) * (t.high - t.low) < mean - t.low else t.low
    if t.noise == GAUSSIAN:
        return mean + std * normal(state)
    return mean


@compiled
def first_state(t: Table, state: Words) -> int:
    """Draw s_0, using one random number."""
    return pick(state, t.start)


@compiled
def step(t: Table, h: int, s: int, a: int, state: Words) -> tuple[int, float]:
    """Draw s_{h+1}, using one random number whatever the probabilities are, and then r_h."""
    row = row_of(t, h, s, a)
    begin, end = t.indptr[row], t.indptr[row + 1]
    i = begin + pick(state, t.probability[begin:end])
    return t.successor[i], _reward(t, t.reward[i], t.std[i], state)


@compiled
def terminal_reward(t: Table, s: int, state: Words) -> float:
    """Draw r_H, the reward of the last state."""
    return _reward(t, t.terminal[s], 0.0, state) if t.pays_terminal else 0.0


@compiled
def transition(t: Table, h: int, last: bool, s: int, a: int, state: Words) -> tuple[int, float, bool]:
    """Draw s_{h+1} and r_h, including r_H if the episode ends there, and return whether it does.

    It ends in an absorbing state, and in any case if this period is the `last`.
    """
    following, reward = step(t, h, s, a, state)
    ended = last or t.absorbing[following]
    if ended:
        reward += terminal_reward(t, following, state)
    return following, reward, ended


_NOISE = {"deterministic": DETERMINISTIC, "bernoulli": BERNOULLI, "gaussian": GAUSSIAN}
_VECTORS = ("indptr", "successor", "probability", "reward", "start")
_OPTIONAL = ("terminal_reward", "legal", "absorbing")  # may be None
_DTYPES: dict[str, Any] = {"indptr": np.int64, "successor": np.int32, "legal": np.bool_, "absorbing": np.bool_}
_TAKEN = {"i": ("whole numbers", "iu"), "f": ("numbers", "fiub"), "b": ("True and False", "biu")}  # NumPy's kinds
Successors = Sequence[tuple[float, int, float]]


@storable
@dataclass(frozen=True, eq=False, repr=False)
class FiniteMDP:
    """A finite-horizon MDP.

    The arrays are copied and made read-only.

    Parameters
    ----------
    horizon
        Number of periods H.
    states, actions
        S and A.
    indptr, successor, probability, reward
        The rows in compressed form. Row (h S + s) A + a, or s A + a if all periods are alike, consists of the
        entries indptr[row] .. indptr[row + 1]; rows of illegal actions are empty. `reward` is the mean reward of
        the transition.
    start
        Distribution of s_0, (S,).
    terminal_reward
        Reward of the last state, (S,), or None.
    rewards
        "deterministic"; "bernoulli": one of the two `reward_values`, with the mean given; "gaussian": with
        standard deviation `reward_std` (a number, or one for each entry).
    reward_values
        The two rewards, if `rewards` is "bernoulli".
    reward_std
        The standard deviation of rewards, if `rewards` is "gaussian".
    legal
        Action mask, (S, A) or (H, S, A). If None, all actions are legal.
    absorbing
        States that end the episode, (S,). If None, there are none.
    name
        The name in tables and figures.

    Examples
    --------
    Two states; action a leads to state a, and action 1 pays 1:

    >>> import rlsvi
    >>> def successors(s, a):
    ...     return [(1.0, a, float(a))]
    >>> mdp = rlsvi.FiniteMDP.from_function(successors, horizon=3, states=2, actions=2, start=[1.0, 0.0])
    >>> rlsvi.mdp.backward_induction(mdp).V[0].tolist()
    [3.0, 3.0]
    """

    horizon: int
    states: int
    actions: int
    indptr: Longs
    successor: Ints
    probability: Floats
    reward: Floats
    start: Floats
    terminal_reward: Floats | None = None
    rewards: str = "deterministic"
    reward_values: tuple[float, float] = (0.0, 1.0)
    reward_std: ArrayLike = 1.0
    legal: Bools | None = None
    absorbing: Bools | None = None
    name: str = field(default="finite MDP", kw_only=True)

    def __post_init__(self) -> None:
        for key in ("horizon", "states", "actions"):
            whole(key, getattr(self, key), 1, 2**31 - 1)
        one_of("rewards", self.rewards, _NOISE)
        for key in (*_VECTORS, "reward_values", "reward_std", *_OPTIONAL):
            if getattr(self, key) is not None or key not in _OPTIONAL:
                object.__setattr__(self, key, _copied(key, getattr(self, key), self.states))
        _check_rows(self)
        _check_arrays(self.table)
        _check_distributions(self.table)

    @classmethod
    def from_function(
        cls,
        successors: Callable[[int, int], Successors],
        *,
        horizon: int,
        states: int,
        actions: int,
        legal: Bools | None = None,
        **options: object,
    ) -> "FiniteMDP":
        """Build a table whose periods are all alike.

        Parameters
        ----------
        successors
            A function that lists what can happen: `successors(s, a) -> [(probability, next state, reward), ...]`.
            It is not called for illegal actions.
        horizon
            The number of periods.
        states
            S, the number of states.
        actions
            A, the number of actions.
        legal
            Action mask, (S, A). If None, all actions are legal.
        **options
            The remaining arguments of FiniteMDP.
        """
        for key, count in (("horizon", horizon), ("states", states), ("actions", actions)):
            whole(key, count, 1, 2**31 - 1)
        function_of("successors", successors, "a state", "an action")
        fits("states and actions", 4 * states * actions, "make them fewer")
        mask = np.ones((states, actions), dtype=bool) if legal is None else _copied("legal", legal, states)
        if mask.shape not in ((states, actions), (horizon, states, actions)):
            raise ValueError(f"legal must have shape {(states, actions)} or {(horizon, states, actions)}")
        allowed: Bools = np.logical_or.reduce(mask.reshape(-1, states, actions), axis=0)
        rows = [successors(s, a) if allowed[s, a] else [] for s in range(states) for a in range(actions)]
        try:
            entries = [(p, s, r) for row in rows for p, s, r in row]
        except (TypeError, ValueError):
            raise TypeError("successors must return a list of (probability, next state, reward)") from None
        return cls(
            horizon,
            states,
            actions,
            np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
            np.array([s for _, s, _ in entries]),
            np.array([p for p, _, _ in entries]),
            np.array([r for _, _, r in entries]),
            legal=legal,
            **options,  # type: ignore[arg-type]
        )

    @classmethod
    def from_arrays(cls, P: ArrayLike, R: ArrayLike, *, horizon: int | None = None, **options: Any) -> "FiniteMDP":
        """Build from dense arrays.

        Parameters
        ----------
        P
            Transition probabilities, (S, A, S) with `horizon`, or (H, S, A, S).
        R
            Mean rewards, (S, A), (S, A, S) or with a leading H.
        horizon
            The number of periods, if P does not tell.
        **options
            The remaining arguments of FiniteMDP.
        """
        p = finite("P", P)
        if p.ndim not in (3, 4) or p.shape[-3] != p.shape[-1]:
            raise ValueError(f"P must have shape (S, A, S) or (H, S, A, S), got {p.shape}")
        if p.ndim == 4 and horizon not in (None, p.shape[0]):
            raise ValueError(f"horizon is {horizon} but P has {p.shape[0]} periods: leave horizon out")
        if p.ndim == 3 and horizon is None:
            raise ValueError("horizon must be given when P has shape (S, A, S)")
        r = finite("R", R)
        if r.shape not in (p.shape, p.shape[:-1]):
            raise ValueError(f"R must have shape {p.shape[:-1]} or {p.shape}, got {r.shape}")
        r = np.broadcast_to(r if r.shape == p.shape else r[..., None], p.shape)
        used = p != 0.0
        indptr = np.concatenate([[0], np.cumsum(used.sum(axis=-1).ravel())])
        return cls(
            p.shape[0] if p.ndim == 4 else horizon,  # type: ignore[arg-type]
            p.shape[-1],
            p.shape[-2],
            indptr,
            np.broadcast_to(np.arange(p.shape[-1]), p.shape)[used].astype(np.int32),
            p[used],
            r[used],
            **options,
        )

    def __repr__(self) -> str:
        return f"FiniteMDP({self.name!r}, {', '.join(f'{what}={n}' for what, n in self.sizes.items())})"

    def _repr_html_(self) -> str:
        return html_table(self.name, self.sizes.items())

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of periods, states, actions and transitions."""
        sizes = {"horizon": self.horizon, "states": self.states, "actions": self.actions}
        return sizes | {"transitions": len(self.successor)}

    @cached_property
    def table(self) -> Table:
        """The arrays in the form that compiled code uses."""
        S, A = self.states, self.actions
        legal = np.ones((1, S, A), dtype=bool) if self.legal is None else self.legal
        absorbing = np.zeros(S, dtype=bool) if self.absorbing is None else self.absorbing
        terminal = np.zeros(S) if self.terminal_reward is None else self.terminal_reward
        return Table(
            int(self.horizon),
            int(S),
            int(A),
            len(self.indptr) - 1 != S * A,
            self.indptr,
            self.successor,
            self.probability,
            self.reward,
            read_only(np.array(np.broadcast_to(self.reward_std, self.reward.shape), dtype=np.float64)),
            _NOISE[self.rewards],
            *self.reward_values,
            read_only(_row_sums(self.indptr, self.probability * self.reward)),
            read_only(legal if legal.ndim == 3 else legal[None]),
            read_only(absorbing),
            self.terminal_reward is not None,
            read_only(terminal),
            self.start,
        )


def _copied(name: str, given: Any, states: int) -> Any:
    """Return a read-only copy of the array of this name, or the plain values of a number or a pair."""
    dtype = np.dtype(_DTYPES.get(name, np.float64))
    what, kinds = _TAKEN[dtype.kind]
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.size and array.dtype.kind not in kinds:
        raise ValueError(f"{name} must be an array of {what}, got {shown(given)}")
    if name in _VECTORS and array.ndim != 1:
        raise ValueError(f"{name} must be a vector of {what}, got {array.dtype} of shape {array.shape}")
    if name == "reward_values" and array.shape != (2,):
        raise ValueError(f"reward_values must be a pair (low, high), got {shown(given)}")
    if name == "successor" and array.size and not 0 <= array.min() <= array.max() < states:
        raise ValueError(f"successor must hold states 0..{states - 1}, got {array.min()}..{array.max()}")
    if name == "reward_values":
        return tuple(array.astype(dtype).tolist())
    if name == "reward_std" and array.ndim == 0:
        return float(array)
    return read_only(np.array(array, dtype=dtype, order="C"))


def _row_sums(indptr: Longs, entries: Floats) -> Floats:
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.bincount(rows, weights=entries, minlength=len(indptr) - 1).astype(np.float64)


def _check_rows(mdp: FiniteMDP) -> None:
    """Raise an error if the rows are inconsistent, before anything is computed from them."""
    S, A, H, entries = mdp.states, mdp.actions, mdp.horizon, len(mdp.probability)
    if len(mdp.indptr) - 1 not in (S * A, H * S * A):
        raise ValueError(
            f"indptr must have S A + 1 = {S * A + 1} or H S A + 1 = {H * S * A + 1} entries, for these states, "
            "actions and horizon"
        )
    if mdp.indptr[0] != 0 or mdp.indptr[-1] != entries or (np.diff(mdp.indptr) < 0).any():
        raise ValueError("indptr must rise from 0 to the number of successors, as many as in probability")
    for name in ("successor", "reward"):
        if getattr(mdp, name).shape != (entries,):
            raise ValueError(f"{name} must have one entry for each of the {entries} probabilities")
    if np.shape(mdp.reward_std) not in ((), (entries,)):
        raise ValueError(f"reward_std must be a number or one for each of the {entries} probabilities")


def _check_arrays(t: Table) -> None:
    S, A, H = t.states, t.actions, t.horizon
    for name, array in (("start", t.start), ("terminal_reward", t.terminal), ("absorbing", t.absorbing)):
        if array.shape != (S,):
            raise ValueError(f"{name} must have shape {(S,)}, got {array.shape}")
    if t.legal.shape not in ((1, S, A), (H, S, A)):
        raise ValueError(f"legal must have shape {(S, A)} or {(H, S, A)}, got {t.legal.shape}")
    for name, array in (("reward", t.reward), ("terminal_reward", t.terminal), ("reward_std", t.std)):
        finite(name, array)
    if (t.std < 0).any():
        raise ValueError("reward_std must not be negative")
    if t.noise == BERNOULLI:
        means = np.concatenate([t.reward, t.terminal]) if t.pays_terminal else t.reward
        if not t.low < t.high or ((means < t.low) | (means > t.high)).any():
            raise ValueError(f"Bernoulli rewards need means within reward_values, here {t.low} and {t.high}")


def _check_distributions(t: Table) -> None:
    S, A = t.states, t.actions
    if not (t.start >= 0).all() or abs(t.start.sum() - 1.0) > 1e-9:
        raise ValueError(f"start must be probabilities that sum to one, they sum to {t.start.sum():.12g}")
    if (t.start > 0)[t.absorbing].any():
        raise ValueError("start must not put probability on an absorbing state: its episode has no step")
    if not (t.probability >= 0).all():
        raise ValueError("probability must be numbers that are not negative")
    mass = _row_sums(t.indptr, t.probability).reshape(-1, S, A)
    asked = t.legal & ~t.absorbing[None, :, None]
    bad = np.argwhere((np.abs(mass - 1.0) > 1e-9) & asked)
    if len(bad):
        h, s, a = bad[0]
        raise ValueError(
            f"probability: the successors of state {s}, action {a} (period {h}) sum to "
            f"{mass[h % len(mass), s, a]:.12g}, not to one"
        )
    stuck = np.argwhere(~(asked.any(axis=2) | t.absorbing[None]))
    if len(stuck):
        raise ValueError(f"legal allows no action in state {stuck[0][1]}: every state needs at least one")
