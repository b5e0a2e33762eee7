"""What every agent does: learn, fit, predict, save, export and clone. Each family only defines its learner."""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium import Env, Wrapper
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit

from rlsvi.agents import contract, export, files
from rlsvi.agents.contract import ACTION, EPISODE, EPISODES, POSTERIOR, Learner, Place, Step, checked_values, warn
from rlsvi.agents.explore import Explore, choose, exploration
from rlsvi.agents.fitting import Fitting
from rlsvi.agents.learning import Learning
from rlsvi.agents.parameters import Parameters
from rlsvi.agents.predicting import Predicting
from rlsvi.agents.progress import warn_of_no_reward
from rlsvi.agents.task import Task, begun, checked_reward, endless_task_of, taken, task_of
from rlsvi.bases import ActionFeatures, Basis, Features, StateFeatures, Tabular, Transformer
from rlsvi.bases.basis import same_table
from rlsvi.bases.binding import bound
from rlsvi.bases.functions import check_like
from rlsvi.core.archive import Archive
from rlsvi.core.checks import flag, number, shown, whole
from rlsvi.core.compile import Floats, Words
from rlsvi.core.random import Seed, bits, sequence, stream
from rlsvi.envs.making import Made
from rlsvi.logs.replay import Replay
from rlsvi.mdp.finite import FiniteMDP

LONG = 10_000  # steps of one episode that call for a warning


class Agent(Learning, Fitting, Predicting, Parameters):
    """An agent: its arguments, its random streams, and its learner once the first episode has begun.

    A subclass is a dataclass with keyword arguments, or has an `__init__` that stores them and calls `_start`.
    """

    seed: Seed = None
    horizon: int | None = None
    lam: Any = 1.0
    sigma: Any = 1.0
    reward_offset: float = 0.0
    keeps_factors: bool = True  # whether it keeps a matrix for each block of weights
    takes_basis: bool = True  # whether it uses the problem's basis
    needs_horizon: bool | None = True  # True: needs a fixed number of periods; False: any length; None: either
    needs_states: bool = False  # whether observations must be numbered
    fused: bool = False  # whether its learner has a mind that the fused loop can use
    concurrent: bool = False  # whether episodes of several agents can be learned after all have been played
    update_every: int | None = None  # number of steps after which to learn and plan within an episode
    remedy: str = ""  # what to try if there is no progress, instead of the agent's own words
    deciding: Callable[[Place], int | None] | None = None  # decides in learning instead, unless it returns None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        contract.register(cls)

    def __post_init__(self) -> None:
        self._start()

    # To be defined by a family.

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""

    def new_learner(self, task: Task, example: Any) -> Learner:
        """Return a learner without experience of a task; `example` is one of its observations, already checked."""
        raise NotImplementedError(f"{type(self).__name__} must say what its learner is: define new_learner")

    def restored_learner(self, task: Task, file: Archive) -> Learner:
        """Return the learner stored in a file, after checking all its arrays."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded: define restored_learner")

    def task_of(self, env: Any) -> Task:
        """Return the task that an environment poses."""
        return endless_task_of(env) if self.needs_horizon is False else task_of(env, self.horizon)

    def task_in(self, mdp: FiniteMDP) -> Task:
        """Return the task that an MDP poses."""
        return Task(mdp.table.horizon, mdp.table.actions, mdp.table.states)

    def reward(self, paid: float) -> float:
        """Return the reward to learn from, given the reward paid."""
        return paid + self.reward_offset if self.reward_offset else paid

    def notice(self) -> None:
        """Called after each episode, to warn if something looks wrong."""

    # Common to all agents.

    def _start(self) -> None:
        """Validate the arguments that a constructor has stored, and reset what was learned."""
        number("reward_offset", self.reward_offset)
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if parameter.annotation in (bool, "bool"):
                flag(name, getattr(self, name))
        if self.horizon is not None:
            whole("horizon", self.horizon, 1)
        if not isinstance(self.explore, Explore):
            raise TypeError(f"explore must be Greedy, EpsilonGreedy or Boltzmann, got {shown(self.explore)}")
        exploration(self.explore, 0, 1)
        self.check()
        self._streams: Words = new_streams(self.seed)
        self._task: Task | None = None
        self._problem_basis: Any = None  # of the problem or environment, if the agent has none
        self._learner: Any = None
        self._setting: dict[str, Any] = {}  # other properties of the task, such as the size of a board
        self._surplus = 0, 0
        self._missed_reward = False  # whether it has warned that there is no reward
        self._found_reward = False  # whether a step that it has played was rewarded
        self.environment: Made | None = None  # where it last learned, if known
        self._forget_plans()

    def check_task(self, task: Task) -> None:
        """Raise an error if agents of this kind cannot learn the task."""
        if self.needs_states and task.states is None:
            raise ValueError(
                f"{type(self).__name__} needs observations that are numbered 0..S-1 (a Discrete space): "
                "use RLSVI with bases.StateFeatures"
            )
        if self.needs_horizon is not None and self.needs_horizon != (task.horizon > 0):
            needs = "a known number of periods" if self.needs_horizon else "episodes of any length"
            raise ValueError(f"{type(self).__name__} needs {needs}, this is {task}")
        if self.horizon not in (None, task.horizon):
            raise ValueError(f"horizon is {self.horizon}, the problem has {task.horizon} periods: leave it out")

    def take_on(self, task: Task, env: Any = None) -> None:
        """Start a task, or check that it is the one learned so far."""
        self.check_task(task)
        if self.steps == 0:
            self._task, self._learner = task, None
        elif self._task != task:
            raise ValueError(f"this agent has learned {self._task}, it cannot go on with {task}: {self.how_else}")
        if env is not None:
            self.environment = Made.of(env)

    @property
    def how_else(self) -> str:
        """How to learn another task than the one learned so far."""
        log = "; or, if it was fitted to a log without env, fit a new one with fit(log, env)"
        return "use agent.clone()" + (log if self.environment is None else "")

    def _episode(self, env: Env[Any, Any]) -> float:
        """Play and learn one episode, and return its return. If anything fails, the agent is unchanged."""
        assert self._task is not None
        total, played, rewarded = 0.0, 0, self._found_reward
        with self.undone_unless_learned():
            observation, info = begun(env, int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            self.settle()
            learner = self._learner
            if learner is None:
                learner = self.new_learner(self._task, self._first(env, observation))
            place, going_on = learner.look(0, observation, info.get("action_mask")), True
            while going_on:
                plan = learner.plan(self.sampled(learner), self._streams[POSTERIOR], learning=True)
                steps, paid, place, going_on = self._play(env, learner, plan, place)
                learner, total = learner.remember(steps, plan, not going_on), total + paid
                played, rewarded = played + len(steps), rewarded or any(step.reward for step in steps)
                if going_on and played >= LONG > played - len(steps):
                    warn_of_endless(env, played)
            self._learner = learner
        self._found_reward = rewarded
        self.notice()
        return total

    def _first(self, env: Env[Any, Any], observation: Any) -> Any:
        """Return the first observation of a task, checked before a function of the user looks at it."""
        assert self._task is not None
        space: Any = env.observation_space
        if isinstance(self.basis, StateFeatures | ActionFeatures | Transformer) and isinstance(space, Box):
            check_like(np.zeros(space.shape, space.dtype), observation)
        return self._task.checked(observation)

    @contextmanager
    def undone_unless_learned(self) -> Iterator[None]:
        """Context manager that restores the random streams on an error before an episode was learned from."""
        kept, before = self._streams.copy(), self.episodes
        try:
            yield
        except BaseException:
            if self.episodes == before:
                self._streams[:] = kept
            raise

    def _play(
        self, env: Env[Any, Any], learner: Learner, plan: Any, place: Place
    ) -> tuple[list[Step], float, Place, bool]:
        """Act until the episode ends or an update is due: steps, return, place, and whether it continues."""
        assert self._task is not None
        rule, parameter = exploration(self.explore, int(learner.counters[EPISODES]), 1)
        steps: list[Step] = []
        total = 0.0
        while self.update_every is None or len(steps) < self.update_every:
            Q = checked_values(learner.values(plan, place), place)
            a = None if self.deciding is None else self.deciding(place)
            if a is None:
                a = choose(rule, parameter[0], Q, place.legal, np.empty_like(Q), self._streams[ACTION])
            if a < 0:
                raise self.broken()
            if isinstance(env, Replay):
                a = env.next_action
            observation, reward, terminated, truncated, info = taken(env, self._task.first_action + a)
            paid = checked_reward(reward)
            over = terminated or place.h + 1 == self._task.horizon
            following = None if over else learner.look(place.h + 1, observation, info.get("action_mask"))
            steps.append(Step(place, a, self.reward(paid), following))
            total += paid
            if over or truncated or following is None:
                return steps, total, place, False
            place = following
        return steps, total, place, True

    def _miss_reward(self, remedy: str) -> None:
        """Warn, once, that no reward was found. Sums of rewards may be 0 though rewards were not."""
        if not (self._missed_reward or self._found_reward):
            self._missed_reward = True
            warn_of_no_reward(self.episodes, remedy)

    def state(self) -> dict[str, Any]:
        """Return all arrays of what was learned that a file must contain."""
        return dict(self._learner.state())

    def adopt(self, mdp: FiniteMDP, basis: Basis) -> None:
        """Start an MDP, to be learned in the fused loop, with `basis` unless the agent has its own."""
        task = self.task_in(mdp)
        if not self.fused:
            raise TypeError(
                f"{type(self).__name__} has no fused loop: let it learn(env) from rlsvi.envs.FiniteMDPEnv(mdp)"
            )
        self.take_on(task)
        if self._learner is None:
            self._problem_basis = basis if self.takes_basis and self.basis is None else None
            self._learner = self.new_learner(task, 0)
        elif self.takes_basis and self.basis is None and basis is not self._problem_basis:
            offered = bound(basis, task.states, task.actions, task.horizon, 0)
            if not same_table(self._learner.mind.features, offered.table):
                raise ValueError("this agent has learned through another basis: use agent.clone()")

    def mind_for(self, episodes: int) -> tuple[Any, int]:
        """Return the mind for the fused loop, and for how many of the next `episodes` it has room."""
        self.settle()
        return self._learner.mind_for(episodes), episodes

    def episodes_on_the_mean(self, episodes: int) -> int:
        """Return how many of the next `episodes` use the posterior mean rather than a sample."""
        if not self.samples:
            return episodes
        return 0 if self.sampled(self._learner) else 1

    def failure(self, rewards: Floats) -> Exception:
        """Return the error to raise if an episode with these rewards could not be learned from."""
        return self.broken()

    def features(self, task: Task, example: Any) -> Features:
        """Return the agent's basis, the problem's, or a table, bound to a task and checked."""
        basis: Basis = self.basis or self._problem_basis or Tabular()
        size = task.states, task.actions, task.horizon or 1
        return bound(basis, *size, example, factors=self.keeps_factors)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to a file, completely or not at all; `rlsvi.load` reads it."""
        self.check_can_be_saved()
        self.settle()
        files.save(self, path)

    def check_can_be_saved(self) -> None:
        """Raise an error if a file cannot contain this agent."""
        if type(self).restored_learner is Agent.restored_learner:
            raise TypeError(f"{type(self).__name__} cannot be saved: define restored_learner, to load it again")
        files.header_of(self)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the policy of the posterior mean to a file that needs only NumPy; see docs/interoperability.md."""
        export.export(self, path)


def warn_of_endless(env: Env[Any, Any], played: int) -> None:
    """Warn if an environment has no time limit: `learn` returns after complete episodes only."""
    if not has_time_limit(env):
        warn(
            f"the episode has not ended after {played} steps and the environment has no time limit: learn returns "
            "after complete episodes only, so wrap it by gymnasium.wrappers.TimeLimit(env, max_episode_steps)",
        )


def has_time_limit(env: Any) -> bool:
    """Return whether a wrapper ends the episodes of an environment after some time."""
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit | Replay):
            return True
        env = env.env
    return False


def new_streams(seed: Seed) -> Words:
    """Return the random streams of an agent, (4, 4)."""
    root = sequence(seed)
    children = [np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i)) for i in range(4)]
    return np.stack([stream(child) for child in children])
