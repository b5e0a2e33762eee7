"""Problems: a finite MDP with the basis to learn it through and its exact solution."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlsvi import bases, mdp
from rlsvi.bases import Basis, Features, Tabular
from rlsvi.mdp import FiniteMDP, Solution


@dataclass(frozen=True)
class Problem:
    """A finite MDP, the basis that agents learn it through, and its exact solution."""

    mdp: FiniteMDP
    basis: Basis = field(default_factory=Tabular)

    @cached_property
    def solution(self) -> Solution:
        """V* and Q*."""
        return mdp.backward_induction(self.mdp)

    @property
    def name(self) -> str:
        """What it is called in tables and figures."""
        return self.mdp.name

    def bind(self, basis: Basis | None) -> Features:
        """`basis`, or the problem's own, bound to its states."""
        table = self.mdp.table
        return (basis or self.basis).bind(table.states, table.actions, table.horizon, 0)


def chain(
    length: int = 50,
    features: int | None = None,
    *,
    rho: float | None = None,
    scale: Any = "HSA",
    rho_is: Any = "variance",
    seed: int = 0,
) -> Problem:
    """The chain of Example 1.

    features : None learns a table. K learns through a random coherent basis of K functions (section
        6.1.1), or with `rho` through an agnostic one (section 6.1.2); `seed` draws it.
    """
    task = mdp.chain(length)
    if features is None:
        if rho is not None:
            raise ValueError("rho needs features: say how many basis functions to draw")
        return Problem(task)
    Q = mdp.backward_induction(task).Q
    if rho is not None:
        return Problem(task, bases.agnostic(Q, features, rho, rho_is=rho_is, seed=seed))
    return Problem(task, bases.coherent(Q, features, scale=scale, seed=seed))


def deep_sea(size: int = 10, *, stochastic: bool = False, seed: int = 0) -> Problem:
    """DeepSea as bsuite defines it, learned through a table; `seed` draws which action goes right."""
    return Problem(mdp.deep_sea(size, stochastic=stochastic, seed=seed))


def river_swim(states: int = 6, horizon: int = 20) -> Problem:
    """RiverSwim, learned through a table."""
    return Problem(mdp.river_swim(states, horizon))


def dirichlet(states: int = 5, actions: int = 3, horizon: int = 5, *, seed: int = 0, **options: Any) -> Problem:
    """An MDP drawn from the prior of Theorem 1, learned through a table."""
    return Problem(mdp.dirichlet(states, actions, horizon, seed=seed, **options))


def gymnasium(env_id: str, horizon: int | None = None, **options: Any) -> Problem:
    """A toy-text environment of Gymnasium, such as FrozenLake-v1, learned through a table."""
    import gymnasium as gym

    return Problem(mdp.from_gymnasium(gym.make(env_id, **options), horizon))
