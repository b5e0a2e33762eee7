"""The arguments of an agent: to look at, to copy and to change, with the methods that scikit-learn expects."""

import inspect
from typing import Any, Self

from rlsvi.core.reprs import html_table, short


class Parameters:
    """The part of an agent that knows its arguments."""

    episodes: Any
    steps: Any

    def arguments(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by name, as in scikit-learn.

        deep : accepted because scikit-learn passes it. No argument has parameters of its own.
        """
        return self.arguments()

    def set_params(self, **params: Any) -> Self:
        """Change arguments of an agent that has learned nothing, all of them or, if one is invalid, none.

        An agent that has learned is not changed, because what it has learned depends on its arguments:
        `agent.clone(**params)` returns a new agent, as does `sklearn.base.clone(agent).set_params(**params)`.
        """
        known = self.arguments()
        if unknown := sorted(set(params) - set(known)):
            raise ValueError(
                f"{type(self).__name__} has no parameter {', '.join(unknown)}: there are {', '.join(known)}"
            )
        if params and self.steps > 0:
            raise RuntimeError(
                f"this agent has learned from {self.steps} steps with its parameters, they cannot be changed any "
                f"more: agent.clone({', '.join(f'{name}=...' for name in params)}) is a new agent with others"
            )
        if params:
            self.__dict__ = self.clone(**params).__dict__
        return self

    def clone(self, **changes: Any) -> Self:
        """Return a new agent with the same arguments, except for `changes`, that has learned nothing."""
        return type(self)(**{**self.arguments(), **changes})

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={short(value)}" for name, value in self.arguments().items())
        return f"{type(self).__name__}({given})"

    def _repr_html_(self) -> str:
        rows = [(name, short(value)) for name, value in self.arguments().items()]
        note = f"has learned from {self.episodes} episodes, {self.steps} steps"
        return html_table(type(self).__name__, rows, note=note)
