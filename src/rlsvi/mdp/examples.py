"""Problems of the literature as finite MDPs: the chain, river swim, deep sea, and random MDPs."""

from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import finite, fits, flag, shaped, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed, sequence
from rlsvi.mdp.finite import FiniteMDP, Successors

LEFT, RIGHT = 0, 1
CHAINS: WeakValueDictionary[tuple[int, bool], FiniteMDP] = WeakValueDictionary()  # in use, by length and kind


def chain(length: int = 50, *, deterministic: bool = False) -> FiniteMDP:
    """The chain of Example 1, where dithering needs 2^(N-1) episodes to see the only reward.

    States 1..N (here 0..N-1), N - 1 steps per episode from the left end, reward 1 for ending at the right.
    Left always succeeds; right succeeds with probability 1 - 1/N and goes left otherwise. Walls block moves.

    Parameters
    ----------
    length
        N, the number of states.
    deterministic
        Right always succeeds. `Q*` is then 0 or 1, as a footnote of section 6.1.2 says.

    Examples
    --------
    >>> import rlsvi
    >>> mdp = rlsvi.mdp.chain(10)
    >>> mdp.horizon, mdp.states, mdp.actions
    (9, 10, 2)
    """
    N = whole("length", length, 2, 10**6)
    certain = flag("deterministic", deterministic)
    if (known := CHAINS.get((N, certain))) is not None:
        return known

    def successors(s: int, a: int) -> Successors:
        left, right = max(s - 1, 0), min(s + 1, N - 1)
        if a == LEFT or certain:
            return [(1.0, left if a == LEFT else right, 0.0)]
        return [(1 - 1 / N, right, 0.0), (1 / N, left, 0.0)]

    return CHAINS.setdefault(
        (N, certain),
        FiniteMDP.from_function(
            successors,
            horizon=N - 1,
            states=N,
            actions=2,
            start=np.arange(N) == 0,
            terminal_reward=(np.arange(N) == N - 1).astype(np.float64),
            name=f"{'deterministic ' if certain else ''}chain of length {N}",
        ),
    )


def river_swim(states: int = 6, horizon: int = 20) -> FiniteMDP:
    """The river of Strehl and Littman (2008), with rewards scaled to 1, starting in the first state.

    Left, with the current, always succeeds. Right, against it, advances with probability 0.35, stays with 0.6
    and goes back with 0.05; in the first state it advances with 0.6 or stays, and in the last it stays with
    0.6 or goes back. Left pays 0.005 in the first state, and right 1 in the last.

    Parameters
    ----------
    states
        The number of states.
    horizon
        The number of periods.

    Examples
    --------
    >>> import rlsvi
    >>> mdp = rlsvi.mdp.river_swim(states=6, horizon=20)
    >>> mdp.states, mdp.horizon
    (6, 20)
    """
    last = whole("states", states, 2, 10**7) - 1

    def successors(s: int, a: int) -> Successors:
        if a == LEFT:
            return [(1.0, max(s - 1, 0), 0.005 if s == 0 else 0.0)]
        if s == 0:
            return [(0.4, 0, 0.0), (0.6, 1, 0.0)]
        if s == last:
            return [(0.4, last - 1, 1.0), (0.6, last, 1.0)]
        return [(0.05, s - 1, 0.0), (0.6, s, 0.0), (0.35, s + 1, 0.0)]

    return FiniteMDP.from_function(
        successors,
        horizon=horizon,
        states=last + 1,
        actions=2,
        start=np.arange(last + 1) == 0,
        name=f"river swim of {last + 1} states",
    )


def deep_sea(
    size: int = 10,
    *,
    stochastic: bool = False,
    move_cost: float = 0.01,
    randomize_actions: bool = True,
    seed: Seed = 0,
) -> FiniteMDP:
    """The hard-exploration problem of the behaviour suite for reinforcement learning (Osband et al. 2020).

    A single path of N moves to the right, each with a small cost, leads to the treasure: without deep exploration
    it takes about 2^N episodes to find it. An N x N grid is descended row by row from (0, 0); the state is `row *
    N + column`, and `N * N` is the end.

    Right costs move_cost / N and, in the last column, finds the treasure of 1. If stochastic, right fails with
    probability 1/N and the diver sinks straight down; the two corners at the bottom add N(0, 1) noise.

    Parameters
    ----------
    size
        N, also the number of steps per episode.
    stochastic
        Whether moves fail and rewards are noisy.
    move_cost
        Total cost of the N moves to the right.
    randomize_actions
        Draw for each cell which of the two actions is right; otherwise action 1 is, everywhere.
    seed
        Seed of that draw.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.mdp.deep_sea(5).states
    26
    """
    N = whole("size", size, 1, 10**4)
    shaped("move_cost", finite("move_cost", move_cost), ())
    flag("stochastic", stochastic)
    right = np.ones((N, N), dtype=int)
    if flag("randomize_actions", randomize_actions):
        right = np.random.default_rng(sequence(seed)).integers(2, size=(N, N))

    def successors(s: int, a: int) -> Successors:
        row, column = divmod(s, N)
        if row == N:
            return []
        goes_right = a == right[row, column]
        reward = goes_right * (float(column == N - 1) - move_cost / N)
        fails = 1 / N if stochastic and goes_right else 0.0
        reached = min(column + 1, N - 1) if goes_right else max(column - 1, 0)
        odds: dict[int, float] = {}
        for p, next_column in ((1 - fails, reached), (fails, column)):
            next_state = (row + 1) * N + next_column if row + 1 < N else N * N
            odds[next_state] = odds.get(next_state, 0.0) + p
        return [(p, next_state, reward) for next_state, p in odds.items() if p > 0]

    corners = {(N - 1) * N, N * N - 1} if stochastic else set()
    std = [float(s in corners) for s in range(N * N) for a in range(2) for _ in successors(s, a)]
    return FiniteMDP.from_function(
        successors,
        horizon=N,
        states=N * N + 1,
        actions=2,
        start=np.arange(N * N + 1) == 0,
        absorbing=np.arange(N * N + 1) == N * N,
        rewards="gaussian" if stochastic else "deterministic",
        reward_std=np.array(std),
        name=f"{'stochastic ' if stochastic else ''}deep sea of size {N}",
    )


def dirichlet(
    states: int,
    actions: int,
    horizon: int,
    *,
    alpha_P: ArrayLike = 1.0,
    alpha_R: ArrayLike = 1.0,
    homogeneous: bool = False,
    start: ArrayLike | None = None,
    seed: Seed = 0,
) -> FiniteMDP:
    """Draw one MDP from the prior over which Theorem 1 takes its expectation.

    For every (s, a, h), independently, P(s, a, h) ~ Dirichlet(alpha_P) over the states, and the
    probabilities of the rewards -1 and 0 are Dirichlet(alpha_R).

    Parameters
    ----------
    states
        S, the number of states.
    actions
        A, the number of actions.
    horizon
        H, the number of periods.
    alpha_P
        A number, the weight of every state, or one weight for each state, (S,).
    alpha_R
        A number, or the two weights of the rewards -1 and 0.
    homogeneous
        Draw once for all periods instead of for each.
    start
        The first state, or its distribution, (S,). If None, state 0.
    seed
        Seed of the draw.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.mdp.dirichlet(states=5, actions=3, horizon=4, seed=1).actions
    3
    """
    for key, count in (("states", states), ("actions", actions), ("horizon", horizon)):
        whole(key, count, 1, 2**31 - 1)
    numbers = states * actions * states * (1 if flag("homogeneous", homogeneous) else horizon)
    fits("states, actions and horizon", 3 * numbers, "make them fewer")
    first = finite("start", 0 if start is None else start)
    if first.shape == () and isinstance(start, int | np.integer | np.ndarray | None):
        if not 0 <= first < states:
            raise ValueError(f"start must be a state 0..{states - 1}, got {shown(start)}")
        first = (np.arange(states) == first).astype(np.float64)
    weights_P, weights_R = weights_of("alpha_P", alpha_P, states), weights_of("alpha_R", alpha_R, 2)
    rng = np.random.default_rng(sequence(seed))
    shape = (states, actions) if homogeneous else (horizon, states, actions)
    P = rng.dirichlet(weights_P, size=shape)
    R = -rng.dirichlet(weights_R, size=shape)[..., 0]
    return FiniteMDP.from_arrays(
        P,
        R,
        horizon=horizon,
        start=first,
        rewards="bernoulli",
        reward_values=(-1.0, 0.0),
        name=f"random MDP with S = {states}, A = {actions}, H = {horizon}",
    )


def weights_of(name: str, alpha: ArrayLike, n: int) -> Floats:
    """Return `alpha` as n positive weights."""
    weights = finite(name, alpha)
    if weights.shape not in ((), (n,)):
        raise ValueError(f"{name} must be a number or have shape {(n,)}, got shape {weights.shape}")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"{name} must be positive and finite, got {shown(alpha)}")
    return np.broadcast_to(weights, (n,)).copy()
