"""Problems: a finite MDP with the basis for learning it and its exact solution."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from rlsvi import bases, mdp
from rlsvi.bases import Basis, Tabular
from rlsvi.bases.dense import Dense
from rlsvi.core.checks import in_unit_interval, shown, whole
from rlsvi.core.random import sequence
from rlsvi.html import html_table
from rlsvi.mdp import FiniteMDP, Solution
from rlsvi.mdp.solve import check_mdp


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A finite MDP, the basis that agents use to learn it, and its exact solution.

    Parameters
    ----------
    mdp
        The MDP.
    basis
        The basis of agents that have none of their own.

    Examples
    --------
    >>> import rlsvi
    >>> problem = rlsvi.Problem(rlsvi.mdp.deep_sea(10))
    >>> round(float(problem.solution.V[0, 0]), 2)
    0.99
    """

    mdp: FiniteMDP
    basis: Basis = field(default_factory=Tabular)

    def __post_init__(self) -> None:
        check_mdp(self.mdp)
        if isinstance(self.basis, type) or not hasattr(self.basis, "bind"):
            raise TypeError(f"basis must be one of rlsvi.bases, such as Tabular(), got {shown(self.basis)}")

    @cached_property
    def solution(self) -> Solution:
        """The optimal values `V*` and `Q*`, computed once for all problems of an MDP."""
        return _solution_of(self.mdp)

    @cached_property
    def random_regret(self) -> float:
        """Expected regret per episode of random play, the reference for learning."""
        if (known := REGRETS.get(self.mdp)) is not None:
            return known
        table = self.mdp.table
        legal = np.broadcast_to(table.legal, (table.horizon, table.states, table.actions))
        uniform = legal / np.maximum(legal.sum(axis=2, keepdims=True), 1)
        lost = self.solution.V[0] - mdp.evaluate(self.mdp, uniform)[0]
        regret = math.fsum(table.start * lost)  # not a product of BLAS, which differs between processors
        return REGRETS.setdefault(self.mdp, regret)

    @property
    def name(self) -> str:
        """The name in tables and figures."""
        return self.mdp.name

    def __repr__(self) -> str:
        return f"Problem({self.mdp!r}, {type(self.basis).__name__})"

    def _repr_html_(self) -> str:
        return html_table(self.name, [*self.mdp.sizes.items(), ("basis", type(self.basis).__name__)])


SOLUTIONS: WeakKeyDictionary[FiniteMDP, Solution] = WeakKeyDictionary()  # of MDPs in use
REGRETS: WeakKeyDictionary[FiniteMDP, float] = WeakKeyDictionary()  # of random play


def _solution_of(task: FiniteMDP) -> Solution:
    if (known := SOLUTIONS.get(task)) is not None:
        return known
    return SOLUTIONS.setdefault(task, mdp.backward_induction(task))


def chain(
    length: int = 50,
    features: int | None = None,
    *,
    rho: float | None = None,
    scale: Literal["HSA", "sqrt(HSA)"] = "HSA",
    rho_is: Literal["variance", "std"] = "variance",
    per_period: bool = False,
    deterministic: bool = False,
    seed: int = 0,
) -> Problem:
    """The paper's chain with a basis of features, or a table.

    Parameters
    ----------
    length, deterministic
        As for `rlsvi.mdp.chain`.
    features
        None uses a table. K uses a random coherent basis of K functions (section 6.1.1), or with `rho` an agnostic
        one (section 6.1.2).
    rho
        The noise of an agnostic basis.
    scale, per_period
        As for `rlsvi.bases.coherent`.
    rho_is
        As for `rlsvi.bases.agnostic`.
    seed
        Draws the basis.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.problems.chain(10, features=5).name
    'chain of length 10'
    """
    task = mdp.chain(length, deterministic=deterministic)
    if features is None:
        return _with_table(task, rho)
    Q = _solution_of(task).Q
    if rho is not None:
        return Problem(task, bases.agnostic(Q, features, rho, rho_is=rho_is, seed=seed))
    return Problem(task, bases.coherent(Q, features, scale=scale, per_period=per_period, seed=seed))


def deep_sea(
    size: int = 10,
    features: int | None = None,
    *,
    rho: float | None = None,
    stochastic: bool = False,
    seed: int = 0,
) -> Problem:
    """The DeepSea of bsuite with a basis of features, or a table.

    Parameters
    ----------
    size, stochastic
        As for `rlsvi.mdp.deep_sea`.
    features, rho
        As for `chain`. A state belongs to one period, its row, and all periods share the functions.
    seed
        Draws which action moves right, and the basis.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.problems.deep_sea(10).mdp.horizon
    10
    """
    task = mdp.deep_sea(size, stochastic=stochastic, seed=seed)
    if features is None:
        return _with_table(task, rho)
    Q, cells, drawn = mdp.backward_induction(task).Q, np.arange(task.table.states), sequence(seed).spawn(1)[0]
    own = Q[np.minimum(cells // size, size - 1), cells][None]  # the values of each state in its own period
    basis = (
        bases.coherent(own, features, seed=drawn)
        if rho is None
        else bases.agnostic(own, features, rho, seed=drawn)
    )
    return Problem(task, Dense(basis.phi[0]))


def _with_table(task: FiniteMDP, rho: float | None) -> Problem:
    """Return a problem that is learned with a table."""
    if rho is not None:
        raise ValueError("rho needs features: say how many basis functions to draw")
    return Problem(task)


def river_swim(states: int = 6, horizon: int = 20) -> Problem:
    """The river of `rlsvi.mdp.river_swim` with a table (PSRL is better at it than RLSVI).

    Parameters
    ----------
    states, horizon
        As for `rlsvi.mdp.river_swim`.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.problems.river_swim(states=6).mdp.states
    6
    """
    return Problem(mdp.river_swim(states, horizon))


def dirichlet(states: int = 5, actions: int = 3, horizon: int = 5, *, seed: int = 0, **options: Any) -> Problem:
    """An MDP drawn from the prior of Theorem 1, with a table.

    Parameters
    ----------
    states, actions, horizon, seed
        As for `rlsvi.mdp.dirichlet`.
    **options
        Other arguments of `rlsvi.mdp.dirichlet`.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.problems.dirichlet(states=5, actions=3, seed=1).mdp.actions
    3
    """
    return Problem(mdp.dirichlet(states, actions, horizon, seed=seed, **options))


def recommendation(products: int = 10, slots: int = 5, *, seed: int = 0, **options: Any) -> Problem:
    """The paper's recommendation engine with its own basis.

    Parameters
    ----------
    products, slots, seed
        As for `rlsvi.mdp.recommendation`.
    **options
        Other arguments of `rlsvi.mdp.recommendation`.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.problems.recommendation(products=4, slots=2).mdp.states
    10
    """
    return Problem(mdp.recommendation(products, slots, seed=seed, **options), bases.Recommendation())


def grid(size: int = 6, slip: float = 0.1, horizon: int | None = None) -> Problem:
    """A grid of N x N cells, with a table: one reward, in the corner opposite to the start.

    Moves are up, right, down and left; walls block them. With probability `slip` a move goes in one of the four
    directions at random instead. The reward of 1 is for reaching the corner, where the episode ends.

    Parameters
    ----------
    size
        N, the number of rows and of columns.
    slip
        The probability of a move in a random direction.
    horizon
        The number of steps; None for 4 (N - 1), twice what the shortest path takes.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.problems.grid(4).mdp.states
    16
    """
    N, slips = whole("size", size, 2, 1000), in_unit_interval("slip", slip, closed=True)

    def successors(s: int, a: int) -> list[tuple[float, int, float]]:
        odds = dict.fromkeys(range(4), slips / 4)
        odds[a] += 1 - slips
        found: dict[int, float] = {}
        for direction, p in odds.items():
            row, column = divmod(s, N)
            row += (-1, 0, 1, 0)[direction]
            column += (0, 1, 0, -1)[direction]
            cell = min(max(row, 0), N - 1) * N + min(max(column, 0), N - 1)
            found[cell] = found.get(cell, 0.0) + p
        return [(p, cell, float(cell == N * N - 1)) for cell, p in found.items() if p > 0]

    cells = np.arange(N * N)
    task = FiniteMDP.from_function(
        successors,
        horizon=4 * (N - 1) if horizon is None else horizon,
        states=N * N,
        actions=4,
        start=cells == 0,
        absorbing=cells == N * N - 1,
        name=f"grid of size {N}",
    )
    return Problem(task)


def gymnasium(env_id: str, horizon: int | None = None, **options: Any) -> Problem:
    """A toy-text environment of Gymnasium, such as FrozenLake-v1, with a table.

    Parameters
    ----------
    env_id
        The name of the environment.
    horizon
        The number of steps per episode. If None, the environment's own time limit.
    **options
        Arguments of `gymnasium.make`.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.problems.gymnasium("FrozenLake-v1", horizon=20).mdp.states
    16
    """
    import gymnasium as gym

    if not isinstance(env_id, str):
        raise TypeError(f"env_id must be the name of an environment, such as 'FrozenLake-v1', got {shown(env_id)}")
    env = gym.make(env_id, **options)
    table = getattr(env.unwrapped, "mdp", None)
    return Problem(table if isinstance(table, FiniteMDP) and horizon is None else mdp.from_gymnasium(env, horizon))


__all__ = [name for name, it in vars().items() if name[0] != "_" and getattr(it, "__module__", "") == __name__]
