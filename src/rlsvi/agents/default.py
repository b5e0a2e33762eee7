"""The default agent for an environment."""

import warnings
from contextlib import closing, nullcontext
from copy import deepcopy
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from gymnasium import Env, spaces

from rlsvi.agents.agent import Agent
from rlsvi.agents.finite.rlsvi import RLSVI
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.table_or_features import TableOrFeatures
from rlsvi.agents.tabular.discounted_psrl import DiscountedPSRL
from rlsvi.bases.layout import TableOnlyError, layout_of
from rlsvi.bases.observed import MOST_NUMBERS, is_table
from rlsvi.core.checks import instead
from rlsvi.envs.actions import Parts, choices_of
from rlsvi.envs.description import Made
from rlsvi.envs.task import check_env

ACTIONS = 1000  # the largest number of actions that have a block of features each
Kind = TypeVar("Kind", bound=Agent)
Default = RLSVI | DiscountedPSRL | TableOrFeatures | BoundedRLSVI


def agent_for(env: Env[Any, Any] | str, **arguments: Any) -> Default:
    """Return an agent that suits an environment and has learned nothing yet.

    The choice depends on the observations. If they are numbered and the environment itself defines the number of
    periods of an episode (`env.unwrapped.horizon`), values differ between periods and the agent is RLSVI with a
    table. A time limit on an environment does not define periods. Other numbered observations, and texts, are
    learned by DiscountedPSRL, which samples a model. All others get TableOrFeatures, which learns likewise as long
    as observations recur, and otherwise continues with BoundedRLSVI and features; a text that is a part of them is
    a category. If features cannot be made of such observations, or there are too many or too large numbers, a
    warning says so and the agent is DiscountedPSRL.

    Actions may be Discrete; MultiDiscrete or MultiBinary; or a Box of up to four bounded numbers, of which the
    agent tries a grid. If there are more than 1,000 combinations, the agent is BoundedRLSVI with features, and
    values are sums over the parts of an action. `predict` returns actions of the environment's own space.

    Parameters
    ----------
    env
        A Gymnasium environment, or the id of one. What the agent could not learn is refused here, with a remedy.
    **arguments
        Arguments of the agent, such as `seed`. If the agent chosen does not take them, it is BoundedRLSVI,
        which learns with features.

    Returns
    -------
    Agent
        A new agent.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> rlsvi.agent_for(gymnasium.make("CartPole-v1"), seed=0)
    TableOrFeatures(gamma=0.99, seed=0)
    """
    with closing(Made(env, {}).make()) if isinstance(env, str) else nullcontext(env) as made:
        check_env(made)
        return preflight(_choice(made, **arguments), made)


def _choice(env: Env[Any, Any], **arguments: Any) -> Default:
    """Return the agent for the observations of an environment and for the arguments."""
    space = env.observation_space
    numbered = isinstance(space, spaces.Discrete)
    if isinstance(choices_of(env.action_space), Parts):
        return BoundedRLSVI(**_checked(BoundedRLSVI, arguments))
    if numbered and getattr(env.unwrapped, "horizon", None) is not None:
        return RLSVI(**_checked(RLSVI, arguments))
    kind = DiscountedPSRL if numbered else TableOrFeatures
    if not set(arguments) <= set(signature(kind).parameters):
        if arguments.get("basis") is None:
            layout_of(space)  # raises an error if the environment needs a basis
        return BoundedRLSVI(**_checked(BoundedRLSVI, arguments, kind))
    if numbered or isinstance(space, spaces.Text):
        return DiscountedPSRL(**arguments)
    try:
        if not is_table(layout_of(space)):
            preflight(BoundedRLSVI(), env)  # the agent may continue with features
    except TableOnlyError as error:
        warnings.warn(
            "this agent learns with a table only, and nothing from observations that never recur. Features "
            f"would, but {error}",
            stacklevel=3,
        )
        return DiscountedPSRL(**arguments)
    return TableOrFeatures(**arguments)


def _checked(kind: Any, arguments: dict[str, Any], other: Any = None) -> dict[str, Any]:
    """Return the arguments if an agent takes them; the error speaks of `agent_for`, which the user called.

    Parameters
    ----------
    other
        Another kind of agent, which would have been made of other arguments.
    """
    takes = signature(kind).parameters
    for name in arguments:
        if name not in takes:
            others = signature(other).parameters if other else {}
            made = f", where it makes a {kind.__name__}" if name in others or not other else ""
            near = instead(name, [*takes, *others])
            raise TypeError(f"agent_for has no argument {name} for this environment{made}: {near}")
    return arguments


def preflight(agent: Kind, env: Any) -> Kind:
    """Return the agent, or raise the error that its `learn(env)` would begin with.

    A clone takes on the task and looks at one observation of the space, with all the checks of `learn`. A basis
    given by the user is left out, because its functions may only be meant for observations that occur.
    """
    task, space = agent._task_of(env), env.observation_space
    if agent.basis is not None:
        return agent
    if task.actions > ACTIONS and task.states is None and not task.parts:
        raise ValueError(
            f"env has {task.actions} actions, features can be learned for at most {ACTIONS}: list fewer as "
            "actions and offer them by gymnasium.wrappers.TransformAction(env, lambda k: actions[k], "
            "gymnasium.spaces.Discrete(len(actions)))"
        )
    if agent._takes_basis and task.states is None and (numbers := layout_of(space).measured) > MOST_NUMBERS:
        raise TableOnlyError(
            f"an observation holds {numbers} numbers, features can be learned of at most {MOST_NUMBERS}: make a "
            "picture smaller by gymnasium.wrappers.ResizeObservation and GrayscaleObservation, keep what matters "
            "by TransformObservation, or give a basis, such as bases.StateFeatures(function)"
        )
    clone, example = agent.clone(), example_of(space)
    clone._take_on(task, env)
    clone.new_learner(task, task.checked(example)).look(0, example, None)
    return agent


def example_of(space: Any) -> Any:
    """Return an observation of a space: numbers as near to 0 as its bounds allow, where there are bounds."""
    if isinstance(space, spaces.Box):
        return np.asarray(np.clip(np.zeros(space.shape, space.dtype), space.low, space.high), space.dtype)
    if isinstance(space, spaces.Discrete):
        return space.start
    if isinstance(space, spaces.MultiDiscrete):
        return space.start.copy()
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, space.dtype)
    if isinstance(space, spaces.Dict):
        return {key: example_of(part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(example_of(part) for part in space.spaces)
    drawn = deepcopy(space)  # drawing changes a space
    drawn.seed(0)
    return drawn.sample(num_nodes=1) if isinstance(space, spaces.Graph) else drawn.sample()  # without edges: None
