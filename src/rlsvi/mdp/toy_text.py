"""Gymnasium's toy-text environments as finite MDPs: FrozenLake, Taxi, CliffWalking and similar ones."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import finite, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.mdp.finite import FiniteMDP, Successors

if TYPE_CHECKING:
    import gymnasium

    Env = gymnasium.Env[Any, Any]

Rows = list[list[list[tuple[float, int, float, bool]]]]


def from_gymnasium(env: "Env", horizon: int | None = None, *, start: ArrayLike | None = None) -> FiniteMDP:
    """Return the exact table of an environment that publishes one as `env.unwrapped.P`.

    Wrappers are ignored, except for the time limit, which becomes the horizon. A state that is only ever
    entered with `terminated` becomes absorbing. If a state is entered both ways, or is a first state, its
    terminated transitions lead to an additional state instead, the end, numbered S.

    Parameters
    ----------
    env
        The environment; `P[s][a]` lists (probability, next state, reward, terminated).
    horizon
        Number of steps per episode. If None, the environment's own time limit.
    start
        Distribution of the first state, (S,). If None, the environment's `initial_state_distrib`.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> mdp = rlsvi.mdp.from_gymnasium(gymnasium.make("FrozenLake-v1"))
    >>> mdp.horizon, mdp.states
    (100, 16)
    """
    if not hasattr(env, "unwrapped") or not hasattr(env, "spec"):
        raise TypeError(f"env must be a Gymnasium environment, got {shown(env)}")
    rows = _rows(env.unwrapped)
    S, A = len(rows), len(rows[0])
    first = _start(env.unwrapped, S, start)
    if horizon is not None:
        whole("horizon", horizon, 1, 2**31 - 1)
    limit = env.spec.max_episode_steps if env.spec is not None else None
    if horizon is None and limit is None:
        raise ValueError("the environment has no time limit (max_episode_steps): give horizon")
    entered = np.zeros((2, S), dtype=bool)  # whether a state is entered without ending the episode, and with it
    for _, s, _, done in (entry for row in rows for entries in row for entry in entries):
        entered[int(done), s] = True
    ends = entered[1] & ~entered[0] & (first == 0)
    outside = any(done and not ends[s] for row in rows for entries in row for _, s, _, done in entries)

    def successors(s: int, a: int) -> Successors:
        merged: dict[tuple[int, float], float] = {}
        for p, next_state, reward, done in rows[s][a] if s < S else []:
            key = (S if done and not ends[next_state] else next_state, reward)
            merged[key] = merged.get(key, 0.0) + p
        return [(p, next_state, reward) for (next_state, reward), p in merged.items()]

    return FiniteMDP.from_function(
        successors,
        horizon=limit if horizon is None else horizon,  # type: ignore[arg-type]
        states=S + outside,
        actions=A,
        start=np.append(first, np.zeros(int(outside))),
        absorbing=np.append(ends, np.ones(int(outside), dtype=bool)),
        name=env.spec.id if env.spec is not None else type(env.unwrapped).__name__,
    )


def _rows(env: Any) -> Rows:
    """Return P as nested lists of its possible transitions, after checking its shape."""
    P = getattr(env, "P", None)
    if P is None:
        raise ValueError(f"{type(env).__name__} has no table P of its transitions: build a FiniteMDP instead")
    if getattr(env, "fickle_passenger", False):
        raise ValueError("the table P leaves out fickle_passenger=True: make the environment without it")
    A = len(P[0])
    if set(P) != set(range(len(P))) or any(set(P[s]) != set(range(A)) for s in P):
        raise ValueError(f"P must list states 0..{len(P) - 1}, and actions 0..{A - 1} for each of them")
    return [
        [[(float(p), int(n), float(r), bool(d)) for p, n, r, d in P[s][a] if p != 0] for a in range(A)]
        for s in range(len(P))
    ]


def _start(env: Any, states: int, start: ArrayLike | None) -> Floats:
    given = getattr(env, "initial_state_distrib", None) if start is None else start
    if given is None:
        raise ValueError(f"{type(env).__name__} has no initial_state_distrib: give `start`, shape {(states,)}")
    first = finite("start", given)
    if first.shape != (states,):
        raise ValueError(f"start must have shape {(states,)}, got {first.shape}")
    return first
