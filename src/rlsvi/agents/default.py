"""The default agent for an environment."""

import warnings
from inspect import signature
from typing import Any

from gymnasium import Env
from gymnasium.spaces import Discrete

from rlsvi.agents.finite.rlsvi import RLSVI
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.table_or_features import TableOrFeatures
from rlsvi.agents.tabular.discounted_psrl import DiscountedPSRL
from rlsvi.agents.task import checked_env
from rlsvi.agents.trial import tried
from rlsvi.bases.layout import TableOnlyError, layout_of
from rlsvi.core.checks import instead

Default = RLSVI | DiscountedPSRL | TableOrFeatures | BoundedRLSVI


def agent_for(env: Env[Any, Any], **arguments: Any) -> Default:
    """Return an agent that suits an environment and has learned nothing yet.

    If observations are numbered and the environment itself defines the number of periods of an episode
    (`env.unwrapped.horizon`), values differ between periods and the agent is RLSVI with a table. A time limit on
    an environment does not define periods. Other numbered observations, and text, are learned by DiscountedPSRL,
    which samples a model. All others get TableOrFeatures, which learns likewise as long as observations recur, and
    otherwise continues with BoundedRLSVI and features. If features cannot be made of so many or so large
    numbers, a warning says so and the agent is DiscountedPSRL.

    `arguments`, such as `seed`, are passed to the agent. If that agent does not take them, it is BoundedRLSVI.
    What the agent could not learn is refused here, with a remedy.
    """
    checked_env(env)
    return tried(_chosen(env, **arguments), env)


def _chosen(env: Env[Any, Any], **arguments: Any) -> Default:
    """Return the agent for the observations of an environment and for the arguments."""
    numbered = isinstance(env.observation_space, Discrete)
    if numbered and getattr(env.unwrapped, "horizon", None) is not None:
        return RLSVI(**_known(RLSVI, arguments))
    kind = DiscountedPSRL if numbered else TableOrFeatures
    if not set(arguments) <= set(signature(kind).parameters):
        if arguments.get("basis") is None:
            layout_of(env.observation_space)  # raises an error if the environment needs a basis
        return BoundedRLSVI(**_known(BoundedRLSVI, arguments, kind))
    if numbered or not _holds_numbers(env.observation_space):
        return DiscountedPSRL(**arguments)
    try:
        tried(BoundedRLSVI(), env)  # the agent may continue with features
    except TableOnlyError as error:
        warnings.warn(
            "this agent learns a table only, and nothing from observations that never recur. To learn from these "
            f"too: {error}",
            stacklevel=3,
        )
        return DiscountedPSRL(**arguments)
    return TableOrFeatures(**arguments)


def _known(kind: Any, arguments: dict[str, Any], other: Any = None) -> dict[str, Any]:
    """Return the arguments if an agent takes them; the error speaks of `agent_for`, which the user called.

    other : another kind of agent, which would have been made of other arguments.
    """
    takes = signature(kind).parameters
    for name in arguments:
        if name not in takes:
            others = signature(other).parameters if other else {}
            made = f", where it makes a {kind.__name__}" if name in others or not other else ""
            near = instead(name, [*takes, *others])
            raise TypeError(f"agent_for has no argument {name} for this environment{made}: {near}")
    return arguments


def _holds_numbers(space: Any) -> bool:
    """Return whether the observations of a space consist of numbers, of any number and size."""
    try:
        layout_of(space)
    except TableOnlyError:
        return True
    except ValueError:
        return False
    return True
