"""The contract of everything that learns: what a family of agents defines, so that `Agent` can do the rest.

A learner looks at observations, plans, evaluates actions under a plan, and learns from whole episodes:

    place = learner.look(0, observation, mask)
    plan = learner.plan(sampled, stream, learning=True)
    Q = learner.values(plan, place)                               (act, observe, look at what follows)
    learner = learner.remember(steps, plan, ended=True)

`counters` contains the episodes and steps learned from. It changes last and together with everything else: either
in the same compiled call, which no signal can interrupt, or as `remember` returns a new learner and leaves this
one unchanged. After an error or interrupt, the counters thus show whether an episode was learned from.
An agent that learns within an episode (`update_every`) keeps the learner of the last complete episode until the
end: a learner returned with ended=False belongs to the episode, and the next call may change it.

An agent can use others, as TableOrFeatures does: each makes learners of its kind by `new_learner` and
`restored_learner`, and `other._on_behalf_of(agent, learner, remedy)` is the other one with the agent's task and
returns. What it then tells of the learner (`held`, `diagnostics`, `_facts`, `_advise`) or warns of (`_notice`) is
about the agent. An episode is handed on as steps whose places the new learner has looked at.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from rlsvi.bases import Features, Tabular
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, finite, optional, read_only, shown
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled, generic, unsigned
from rlsvi.core.random import only_maximum
from rlsvi.core.regression import FactorError
from rlsvi.envs.task import Task
from rlsvi.mdp.finite import Table

POSTERIOR, ACTION, EPISODE, PREDICT = range(4)  # the random streams of an agent
EPISODES, STEPS = range(2)  # the counters of a learner


class NothingLearned(RuntimeError):
    """An agent was asked to act on what it has learned, and has learned nothing yet."""


class Place(NamedTuple):
    """An observation in its period, as a learner sees it.

    Attributes
    ----------
    h
        The period, or the number of steps since the episode began.
    observation
        The observation, checked; states count from 0.
    legal
        Which actions are legal, (A,).
    row
        The number of a state that the learner knows, or -1.
    block
        The blocks of weights of all actions, (A,), if there are features.
    x
        The features of all actions, (A, d), or any other description of the observation.

    Examples
    --------
    >>> import numpy as np
    >>> from rlsvi.agents.contract import Place
    >>> Place(h=0, observation=3, legal=np.array([True, False])).legal.sum()
    np.int64(1)
    """

    h: int  # the period, or the number of steps since the episode began
    observation: Any  # checked; states count from 0
    legal: Bools  # (A,)
    row: int = -1  # of a state known to the learner
    block: Any = None  # (A,) the blocks of weights of all actions
    x: Any = None  # their features, (A, d), or any other description of the observation

    def narrowed(self, known: Bools, learning: bool) -> "Place":
        """Return the place with the actions legal here before; only a prediction may restrict them further."""
        if learning and (known != self.legal).any():
            raise ValueError(
                f"the action mask of state {self.observation} in period {self.h} has changed: legal actions must "
                "depend on the period and the observation alone, so put into the observation what they depend on"
            )
        if not (self.legal & known).any():
            raise ValueError("action_mask allows only actions that were not legal in this state before")
        return self._replace(legal=self.legal & known)


class Step(NamedTuple):
    """An action at a place, its reward, and the place that followed, or None if the episode terminated.

    Attributes
    ----------
    place
        Where the action was taken.
    action
        The action.
    reward
        The reward.
    following
        The place that followed, or None if the episode terminated.

    Examples
    --------
    >>> import numpy as np
    >>> from rlsvi.agents.contract import Place, Step
    >>> legal = np.ones(2, bool)
    >>> Step(Place(0, 3, legal), action=1, reward=0.5, following=None).reward
    0.5
    """

    place: Place
    action: int
    reward: float
    following: Place | None


class Learner(Protocol):
    """What was learned, and how to learn more.

    Examples
    --------
    An agent makes its learner when it begins its first episode:

    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.RLSVI(seed=0).learn(gymnasium.make("rlsvi/Chain-v0", length=5), 3)
    >>> learner = agent._learner
    >>> learner.counters[:2].tolist()
    [3, 12]
    """

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, and any other counters."""

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Check an observation and its action mask, and find its features. Nothing is changed.

        Parameters
        ----------
        h
            The period.
        observation
            The observation.
        mask
            Which actions are legal, or None if all are.
        learning
            Whether the place will be learned from. If legal actions must not change, another mask is then refused;
            a prediction may restrict them.

        Returns
        -------
        Place
            The place.
        """

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Any:
        """Return what to act on: a sample of the posterior, or its mean.

        Parameters
        ----------
        sampled
            Whether it is a sample.
        stream
            The random stream to draw it from.
        learning
            Whether the episode will be remembered.

        Returns
        -------
        Any
            The plan, which only the learner looks into.
        """

    def values(self, plan: Any, place: Place) -> Floats:
        """Return Q(s, .) under a plan, (A,).

        Parameters
        ----------
        plan
            A plan.
        place
            Where to act.

        Returns
        -------
        Floats
            One value per action, (A,).
        """

    def remember(self, steps: list[Step], plan: Any, ended: bool) -> Self:
        """Learn from steps played with `plan`, all of them or none, and return the learner to continue with.

        Parameters
        ----------
        steps
            The steps.
        plan
            The plan they were played with.
        ended
            Whether the episode is over.

        Returns
        -------
        Self
            The learner to continue with.
        """

    def state(self) -> dict[str, Any]:
        """Return all arrays that a file must contain.

        Returns
        -------
        dict
            Arrays by name.
        """


def checked_values(Q: Floats, place: Place) -> Floats:
    """Return the values of a learner in the form that compiled code uses: one number per action."""
    given = np.ascontiguousarray(Q, dtype=np.float64)
    if given.shape != place.legal.shape:
        raise ValueError(f"a learner's values must have shape {place.legal.shape}, got {given.shape}")
    return given


REGISTRY: dict[str, Any] = {}  # all classes of agents, by their names in files


def register(cls: type) -> None:
    """Make a class of agents known to `rlsvi.load`. Classes of other packages are named with their module."""
    ours = cls.__module__.startswith("rlsvi.")
    REGISTRY[cls.__name__ if ours else f"{cls.__module__}:{cls.__qualname__}"] = cls


Broken = Callable[[], FactorError]


def broken() -> FactorError:
    """Return the error for compiled code that reports numbers that are not finite."""
    return FactorError(
        "a posterior factor or value stopped being finite: features, rewards, 1/lam or sigma are too large "
        "for float64; scale them down"
    )


def diverged() -> FactorError:
    """Return the error for values of a discounted problem that are not finite."""
    return FactorError(
        "the values diverged: a weight or value is no longer a finite number; use a smaller gamma, features and "
        "rewards of a smaller scale, or a larger lam"
    )


class DivergenceWarning(UserWarning):
    """Targets have grown beyond what rewards and discount can explain.

    Examples
    --------
    To stop instead of going on:

    >>> import warnings, rlsvi
    >>> warnings.simplefilter("error", rlsvi.DivergenceWarning)
    """


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, however deep inside of it this call is."""
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "rlsvi" and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# ---- Minds: the knowledge and plans of agents in compiled code, and the functions that every kind of mind has
#
# A mind is a named tuple of arrays, small named tuples and numbers, with its own class for each kind of agent. The
# file of the kind registers its implementations of the functions below, which are called by the fused loop
# (simulate/finite.py) and the agents. If arrays have to grow, a new mind is created and replaces the old one in a
# single assignment, so that an interrupt comes either before or after it.
#
# Every mind counts the episodes and the steps that it has learned from. `learn` and `remember` advance these
# counters last, so that they show whether an episode was learned from, whatever happens afterwards.


ANY = -1  # in place of the number of an agent


class Workspace(NamedTuple):
    """The episode that the fused loop has just played, and work arrays for compiled code."""

    states: Longs  # (H,) of the episode
    actions: Longs  # (H,)
    rewards: Floats  # (H,)
    chances: Floats  # (H, A) the probabilities of its actions
    visited: Longs  # (H,) rows of the states in memory
    Q: Floats  # (A,)
    nature: Words  # the MDP's random stream
    scratch: Words
    kept: Words  # the agent's random streams before the episode
    mass: Floats  # (2, S)
    front: Longs  # (2, S + 1)


class Episode(NamedTuple):
    """An episode of T steps played outside compiled code; n is T + 1 if it was truncated, T otherwise."""

    rows: Longs  # (n,) rows of known states, or -1
    states: Longs  # (n,) their numbers, or -1 if observations are not numbered
    block: Ints  # (n, A) from the basis, for unknown states
    phi: Floats  # (n, A, d)
    legal: Bools  # (n, A)
    actions: Longs  # (T,)
    rewards: Floats  # (T,)
    goes_on: bool


@generic
def plan(mind: Any, sampled: bool, stream: Words) -> bool:
    """Draw a plan from the posterior, or use its mean if not `sampled`. Return False if a number is not finite."""
    raise NotImplementedError


@generic
def plan_as(mind: Any, k: int, sampled: bool, stream: Words) -> bool:
    """The same for number k of several agents that share this mind, or with k = ANY for all of them.

    In an ensemble, agent k has member k.
    """
    raise NotImplementedError


@plan_as.register(tuple)
def plan_as_any(mind: Any, k: int, sampled: bool, stream: Words) -> bool:
    """The default: every agent has a sample of its own in every episode."""
    return plan(mind, sampled, stream)


@generic
def values(mind: Any, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Set Q to the value of every action in period h and state s under the last plan."""
    raise NotImplementedError


@generic
def only_best(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """Return the unique legal action of the highest value in period h and state s, or -1 to use `values`.

    `Q` may be overwritten. Registering an own implementation is optional; it saves copying the values.
    """
    raise NotImplementedError


@only_best.register(object)
def only_best_of_values(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """The default implementation for all kinds."""
    values(mind, h, s, Q, scratch)
    return only_maximum(Q, unsigned(0), legal)


@generic
def learn(mind: Any, table: Table, T: int, work: Workspace) -> bool:
    """Learn from the episode of T steps in `work`.

    Returns False if a reward is outside the range that the agent can learn from, in which case nothing changes, or
    if a factor is no longer finite.
    """
    raise NotImplementedError


@generic
def remember(mind: Any, episode: Episode, work: Workspace) -> bool:
    """Learn from an episode that was played outside compiled code, like `learn`."""
    raise NotImplementedError


@generic
def is_full(mind: Any, episodes: int) -> bool:
    """Return whether there may be no room for so many more episodes."""
    raise NotImplementedError


@is_full.register(tuple)
def never_full(mind: Any, episodes: int) -> bool:
    """The default, since most minds do not grow."""
    return False


@compiled
def count(counters: Longs, steps: int) -> bool:
    """Count one more episode, and return True."""
    counters[EPISODES] += 1
    counters[STEPS] += steps
    return True


def new_counters() -> Longs:
    """Return counters at zero."""
    return np.zeros(2, np.int64)


def new_workspace(H: int, S: int, A: int) -> Workspace:
    """Return work arrays for a task of this size."""
    return Workspace(
        states=np.empty(H, np.int64),
        actions=np.empty(H, np.int64),
        rewards=np.full(H, np.nan),
        chances=np.empty((H, A)),
        visited=np.empty(H, np.int64),
        Q=np.empty(A),
        nature=np.empty(4, np.uint64),
        scratch=np.empty(4, np.uint64),
        kept=np.empty((4, 4), np.uint64),
        mass=np.zeros((2, S)),
        front=np.empty((2, S + 1), np.int64),
    )


def copy_of(mind: Any) -> Any:
    """Return a mind with copies of all arrays that can be written to."""
    if isinstance(mind, tuple):
        return type(mind)(*map(copy_of, mind))
    return mind.copy() if isinstance(mind, np.ndarray) and mind.flags.writeable else mind


def copy_into(arrays: Any, others: Any) -> Any:
    """Return named arrays after copying others of the same names into them, as far as both reach."""
    for new, old in zip(arrays, others, strict=True):
        both = tuple(slice(min(n, m)) for n, m in zip(new.shape, old.shape, strict=True))
        new[both] = old[both]
    return arrays


def flat(**parts: Any) -> dict[str, Any]:
    """Return arrays by their names in files: those in a named tuple have its name before their own."""
    arrays: dict[str, Any] = {}
    for name, part in parts.items():
        if isinstance(part, np.ndarray):
            arrays[name] = part
        else:
            arrays |= {f"{name}.{field}": array for field, array in part._asdict().items()}
    return arrays


def no_features(d: int) -> FeatureTable:
    """Return the empty table of a basis whose observations are not numbered."""
    return FeatureTable(read_only(np.zeros((1, 0, 0, d))), read_only(np.zeros((0, 0), np.int32)))


# ---- A learner whose mind compiled code uses to plan, evaluate and learn; most families add only what differs


Failure = Callable[[Floats], Exception]  # returns the error for an episode with these rewards


class MindLearner:
    """Everything that changes in learning is in `mind`; compiled code updates its arrays episode by episode."""

    saved: ClassVar[tuple[str, ...]] = ()  # the fields of the mind that a file contains as they are

    def __init__(
        self, task: Task, mind: Any, features: Any = None, failure: Failure = lambda rewards: broken()
    ) -> None:
        self.task, self.mind, self.features, self.failure = task, mind, features, failure

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, (2,)."""
        counters: Longs = self.mind.counters
        return counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return an observation and its legal actions, checked."""
        return Place(h, self.task.checked(observation), self.task.legal(mask))

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Any:
        """Return the mind with a sample of its posterior, or with the mean."""
        mind = self.mind if learning else self.another_plan()
        if not plan(mind, sampled, stream):
            raise broken()
        return mind

    def another_plan(self) -> Any:
        """Return the mind with arrays for one more plan."""
        return self.mind

    def values(self, plan: Any, place: Place) -> Floats:
        """Return the value of every action in a numbered state."""
        Q = np.empty(self.task.actions)
        values(plan, place.h, place.observation, Q, np.empty(4, np.uint64))
        return Q

    def remember(self, steps: list[Step], plan: Any, ended: bool) -> Self:
        """Learn from an episode, in one compiled call."""
        episode, work = self.stacked(steps), new_workspace(len(steps) + 1, 0, self.task.actions)
        if not remember(self.mind_for(1), episode, work):
            raise self.failure(episode.rewards)
        return self

    def kept(self) -> dict[str, Any]:
        """Return the arrays that a file contains as they are, by their names there."""
        return flat(**{name: getattr(self.mind, name) for name in self.saved})

    def state(self) -> dict[str, Any]:
        """Return all arrays that a file must contain."""
        return self.kept()

    def refill(self, file: Archive) -> None:
        """Read the arrays that a file contains as they are; each must have the shape and type that it has here."""
        for name, array in self.kept().items():
            array[...] = file.take(name, array.shape, array.dtype)

    def mind_for(self, episodes: int) -> Any:
        """Return the mind for the next episodes; there is room for at least one."""
        return self.mind

    def enlarged(self) -> Any:
        """Return the mind after making more room for all runs on a graphics card; most minds do not grow."""
        return self.mind

    def stacked(self, steps: list[Step]) -> Episode:
        """Return an episode in the form that compiled code uses."""
        last, d = steps[-1].following, self.features.dim if self.features else 0
        places = [step.place for step in steps] + ([] if last is None else [last])
        n, A, numbered = len(places), self.task.actions, self.task.states is not None
        block, phi = np.zeros((n, A), np.int32), np.zeros((n, A, d))
        for i, place in enumerate(places):
            if place.block is not None:
                block[i], phi[i] = place.block, place.x
        return Episode(
            rows=np.array([place.row for place in places], np.int64),
            states=np.array([place.observation if numbered else -1 for place in places], np.int64),
            block=block,
            phi=phi,
            legal=np.array([place.legal for place in places]),
            actions=np.array([step.action for step in steps], np.int64),
            rewards=np.array([step.reward for step in steps], np.float64),
            goes_on=last is not None,
        )


# ---- Validation of arguments that several families of agents share -----------------------------------------


def check_basis(name: str, basis: Any, methods: tuple[str, ...] = ("bind",)) -> None:
    """Raise an error if this is not a basis, which has one of these methods."""
    if isinstance(basis, type) or not any(hasattr(basis, method) for method in methods):
        raise TypeError(f"{name} must be a basis such as rlsvi.bases.Fourier(), got {shown(basis)}")


LINEAR: Constraints = {"prior_mean": finite, "basis": optional(check_basis)}  # arguments of all linear agents


def weights_shaped(prior_mean: float | Floats, shape: tuple[int, int, int]) -> Floats:
    """Return the prior mean of H x B x d weights, given a number, (weights,) or (H, weights)."""
    weights = shape[1] * shape[2]
    given = np.asarray(prior_mean, dtype=np.float64)
    try:
        return np.array(np.broadcast_to(given, (shape[0], weights))).reshape(shape)
    except ValueError:
        one = f"or of shape ({weights},)" + (f" or {(shape[0], weights)}" if shape[0] > 1 else "")
        raise ValueError(
            f"prior_mean must be a number, {one}: one mean per weight; got shape {given.shape}"
        ) from None


# ---- The features of a loaded agent, which must be those it has learned with -------------------------------


MOST_STATES = 2**20  # states of a file whose arrays do not show how many there are


def restored_features(agent: Any, task: Task, blocks: int, dim: int, *, counted: bool = True) -> Features:
    """Return the agent's features and check their size; unless states are numbered, on the first observation.

    Parameters
    ----------
    counted
        Whether the arrays of the file show that there are so many states.
    """
    if task.states is not None:
        if not counted and task.states > MOST_STATES:
            raise ArchiveError(f"is damaged: it declares {task.states} states, at most {MOST_STATES} are read")
        table = isinstance(agent.basis or agent._problem_basis or Tabular(), Tabular)
        if table and (task.states * task.actions, 1) != (blocks, dim):  # before it is made
            raise ArchiveError(f"is damaged: {blocks} blocks of {dim} weights are not the table of {task}")
        features: Features = agent._features(task, 0)
        if (features.blocks, features.dim) != (blocks, dim):
            raise ArchiveError(
                f"was learned with {blocks} blocks of {dim} features, not {features.blocks} of {features.dim}"
            )
        return features
    bound: list[Features] = []

    def at(h: int, observation: Any) -> Any:
        if not bound:
            features = agent._features(task, observation)
            if (features.blocks, features.dim) != (blocks, dim):
                raise ValueError(
                    f"basis must give {blocks} blocks of {dim} features, as the agent learned with; it gives "
                    f"{features.blocks} of {features.dim}"
                )
            bound.append(features)
        return bound[0].at(h, observation)

    return Features(blocks, dim, at, None)
