"""What every agent does: learn, fit, predict, save, export and clone. Each family only defines its learner."""

import inspect
import math
import os
import warnings
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from gymnasium import Env, Wrapper
from gymnasium.spaces import Box
from gymnasium.wrappers import TimeLimit

from rlsvi.agents import contract, files
from rlsvi.agents.calls import divided, explain_calls, period_of
from rlsvi.agents.contract import (
    ACTION,
    EPISODE,
    EPISODES,
    POSTERIOR,
    PREDICT,
    STEPS,
    Broken,
    Learner,
    NothingLearned,
    Place,
    Step,
    broken,
    checked_values,
    warn,
)
from rlsvi.agents.diagnosis import UNREWARDED, Diagnosis, NoProgressWarning, advice, diagnosis_of
from rlsvi.agents.explore import Explore, Greedy, choose, exploration
from rlsvi.agents.on_episode import OnEpisode, callbacks_of, open_callbacks
from rlsvi.bases import ActionFeatures, Basis, Features, Observed, StateFeatures, Tabular, Transformer
from rlsvi.bases.basis import bound, same_table
from rlsvi.bases.functions import check_like
from rlsvi.core.archive import Archive
from rlsvi.core.checks import (
    Constraints,
    check_arguments,
    flag,
    number,
    optional,
    shown,
    whole,
)
from rlsvi.core.compile import Bools, Floats, Words, compiled
from rlsvi.core.random import Seed, bits, sequence, stream
from rlsvi.envs.actions import Parts, too_many
from rlsvi.envs.description import Made
from rlsvi.envs.task import Task, checked_reward, endless_task_of, one_observation, reset_env, step_env, task_of
from rlsvi.html import html_table, short
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.offline.replay import Replay, replay_of
from rlsvi.progress import bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONG_EPISODE = 10_000  # steps of one episode that call for a warning
SHARED = "_task", "_problem_basis", "_earned", "_coming", "_found_reward", "_told"  # with agents that it uses
SINGLE_KEY = -1  # the key of the sample for a single environment


class Agent:
    """What all agents have in common. You use one of its subclasses, or write your own.

    A subclass is a dataclass with keyword arguments, or has an `__init__` that stores them and calls `_start`.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Chain-v0", length=5)
    >>> agent = rlsvi.RLSVI(seed=0).learn(env, 50)
    >>> observation, info = env.reset(seed=0)
    >>> action, state = agent.predict(observation, deterministic=True)
    >>> int(action)
    1
    """

    seed: Seed = None
    horizon: int | None = None
    lam: Any = 1.0
    sigma: Any = 1.0
    reward_offset: float = 0.0
    explore: Explore = Greedy()
    basis: Any = None
    _samples: bool = True  # whether it acts on a sample of the posterior, not on its mean
    _samples_first: bool = False  # from the first episode on, not only once there are data
    _broken: Broken = staticmethod(broken)
    _keeps_factors: bool = True  # whether it keeps a matrix for each block of weights
    _takes_basis: bool = True  # whether it uses the problem's basis
    needs_horizon: bool | None = True  # True: needs a fixed number of periods; False: any length; None: either
    needs_states: bool = False  # whether observations must be numbered
    _fused: bool = False  # whether its learner has a mind that the fused loop can use
    _concurrent: bool = False  # whether episodes of several agents can be learned after all have been played
    _takes_parts: bool = False  # whether it can learn values of the parts of actions, where these are many
    update_every: int | None = None  # number of steps after which to learn and plan within an episode
    _remedy: str = "try another agent, such as rlsvi.agent_for(env)"  # if there is no progress
    _former: ClassVar[dict[str, Any]] = {}  # arguments that files of earlier versions have, with their defaults
    _constraints: ClassVar[Constraints] = {  # of each argument; those of a subclass are added
        "reward_offset": number,
        "horizon": optional(partial(whole, least=1)),
    }

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        contract.register(cls)

    def __post_init__(self) -> None:
        self._start()

    # To be defined by a family.

    def _check(self) -> None:
        """Validate what `_constraints` cannot say; an error names the argument and the remedy."""

    def new_learner(self, task: Task, example: Any) -> Learner:
        """Return a learner without experience of a task; `example` is one of its observations, already checked."""
        raise NotImplementedError(f"{type(self).__name__} must say what its learner is: define new_learner")

    def restored_learner(self, task: Task, file: Archive) -> Learner:
        """Return the learner stored in a file, after checking all its arrays."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded: define restored_learner")

    def _task_of(self, env: Any) -> Task:
        """Return the task that an environment poses."""
        return endless_task_of(env) if self.needs_horizon is False else task_of(env, self.horizon)

    def _task_in(self, mdp: FiniteMDP) -> Task:
        """Return the task that an MDP poses."""
        return Task(mdp.table.horizon, mdp.table.actions, mdp.table.states)

    def reward(self, paid: float) -> float:
        """Return the reward to learn from, given the reward paid."""
        return paid + self.reward_offset if self.reward_offset else paid

    def _notice(self) -> None:
        """Called after each episode, to warn if something looks wrong."""
        if len(self._earned) >= UNREWARDED:
            self._miss_reward(explored=False)

    def _what_to_try(self) -> str:
        """Return what to try if there is no progress, in the words of this kind of agent."""
        return self._remedy

    @property
    def _search_has_ended(self) -> bool:
        """Whether exploration finds nothing new any more, as far as agents of this kind can tell."""
        return False

    def _how_to_find_more(self) -> str:
        """Return what to try if more can be earned than was found, in the words of this kind of agent."""
        return self._what_to_try()

    def _facts(self) -> dict[str, str]:
        """Return what `diagnose` shows of agents of this kind: what was looked at, and what was found."""
        return {}

    def _returns(self) -> Floats:
        """Return the returns of all episodes, or of the last ones if others are not known."""
        known = self.returns
        return known[~np.isnan(known)]

    def _advise(self) -> str:
        """Return one sentence on what to do next."""
        return advice(self)

    # Common to all agents.

    def _start(self) -> None:
        """Validate the arguments that a constructor has stored, and reset what was learned."""
        check_arguments(self)
        for name, parameter in parameters_of(type(self)).items():  # type: ignore[arg-type]
            if parameter.annotation in (bool, "bool"):
                flag(name, getattr(self, name))
        if not isinstance(self.explore, Explore):
            raise TypeError(f"explore must be Greedy, EpsilonGreedy or Boltzmann, got {shown(self.explore)}")
        exploration(self.explore, 0, 1)
        self._check()
        self._streams: Words = new_streams(self.seed)
        self._task: Task | None = None
        self._problem_basis: Any = None  # of the problem or environment, if the agent has none
        self._learner: Any = None
        self._setting: dict[str, Any] = {}  # other properties of the task, such as the size of a board
        self._surplus = 0, 0
        self._told: set[str] = set()  # warnings of a lack of progress so far, of which there is one at most
        self._earned = array("d")  # the returns of the episodes learned from, NaN where one is not known
        self._coming: tuple[int, Any] = 0, ()  # episodes so far, and the returns of the next ones
        self._found_reward = False  # whether a step that it has played was rewarded
        self.environment: Made | None = None  # where it last learned, if known
        self._forget_plans()

    def _check_task(self, task: Task) -> None:
        """Raise an error if agents of this kind cannot learn the task."""
        if self.needs_states and task.states is None:
            raise ValueError(
                f"{type(self).__name__} needs observations that are numbered 0..S-1 (a Discrete space): "
                "use RLSVI with bases.StateFeatures"
            )
        if isinstance(task.choices, Parts) and not self._takes_parts:
            raise ValueError(f"actions have {too_many(task.choices)}")
        if self.needs_horizon is not None and self.needs_horizon != (task.horizon > 0):
            needs = "a known number of periods" if self.needs_horizon else "episodes of any length"
            raise ValueError(f"{type(self).__name__} needs {needs}, this is {task}")
        if self.horizon not in (None, task.horizon):
            raise ValueError(f"horizon is {self.horizon}, the problem has {task.horizon} periods: leave it out")

    def _take_on(self, task: Task, env: Any = None) -> None:
        """Start a task, or check that it is the one learned so far."""
        self._check_task(task)
        if self.steps == 0:
            self._task, self._learner = task, None
        elif self._task != task:
            raise ValueError(f"this agent has learned {self._task}, it cannot go on with {task}: {self._advice}")
        if env is not None:
            self.environment = Made.of(env)

    @property
    def _advice(self) -> str:
        """How to learn another task than the one learned so far."""
        log = "; or, if it was fitted to a log without env, fit a new one with fit(log, env)"
        return "use agent.clone()" + (log if self.environment is None else "")

    def _episode(self, env: Env[Any, Any]) -> float:
        """Play and learn one episode, and return its return. If anything fails, the agent is unchanged."""
        assert self._task is not None
        total, played, rewarded = 0.0, 0, self._found_reward
        with self._restore_streams():
            observation, info = reset_env(env, int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            self._settle()
            learner = self._learner
            if learner is None:
                learner = self.new_learner(self._task, self._first(env, observation))
            place, going_on = learner.look(0, observation, info.get("action_mask")), True
            while going_on:
                plan = learner.plan(self._uses_sample(learner), self._streams[POSTERIOR], learning=True)
                steps, paid, place, going_on = self._play(env, learner, plan, place)
                total += paid
                if not going_on:
                    self._expect([total])
                learner = learner.remember(steps, plan, not going_on)
                played, rewarded = played + len(steps), rewarded or any(step.reward for step in steps)
                if going_on and played >= LONG_EPISODE > played - len(steps):
                    warn_of_endless(env, played)
            self._learner = learner
        self._found_reward = rewarded
        self._expect()
        self._notice()
        return total

    def _first(self, env: Env[Any, Any], observation: Any) -> Any:
        """Return the first observation of a task, checked before a function of the user looks at it."""
        assert self._task is not None
        space: Any = env.observation_space
        if isinstance(self.basis, StateFeatures | ActionFeatures | Transformer) and isinstance(space, Box):
            check_like(np.zeros(space.shape, space.dtype), observation)
        return self._task.checked(observation)

    @contextmanager
    def _restore_streams(self) -> Iterator[None]:
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
            a = self._choose(Q, place.legal, rule, parameter[0], self._streams[ACTION])
            if isinstance(env, Replay):
                a = env.next_action
            observation, reward, terminated, truncated, info = step_env(env, self._task.action(a))
            paid = checked_reward(reward)
            over = terminated or place.h + 1 == self._task.horizon
            following = None if over else learner.look(place.h + 1, observation, info.get("action_mask"))
            steps.append(Step(place, a, self.reward(paid), following))
            total += paid
            if over or truncated or following is None:
                return steps, total, place, False
            place = following
        return steps, total, place, True

    def _choose(self, Q: Floats, legal: Bools, rule: int = 0, parameter: float = 0.0, stream: Any = None) -> Any:
        """Return the number of an action, chosen by the values Q: without a stream, the first one that is best."""
        if stream is None:
            a = first_best(Q, legal)
        else:
            a = choose(rule, parameter, Q, legal, np.empty_like(Q), stream)
        if a < 0:
            raise self._broken()
        return a

    def _miss_reward(self, explored: bool = True, played: str = "") -> None:
        """Warn, once, that no reward was found. Sums of rewards may be 0 though rewards were not."""
        if not self._found_reward:
            self._miss_progress(
                f"there was no reward in any of {played or f'{self.episodes} episodes'}"
                f"{', and exploration finds nothing new any more' * explored}",
                "make sure that a reward can be reached before an episode ends, reward steps on the way to it, or "
                + self._what_to_try(),
            )

    def _miss_progress(self, wrong: str, remedy: str = "") -> None:
        """Warn, once, of what is wrong, if anything is, with what to try."""
        if wrong and not self._told:
            self._told.add(wrong)
            warn(f"{wrong}: {remedy or self._what_to_try()}; agent.diagnose() tells more", NoProgressWarning)

    def _state(self) -> dict[str, Any]:
        """Return all arrays of what was learned that a file must contain."""
        return dict(self._learner.state())

    def _on_behalf_of(self, other: "Agent", learner: Any, remedy: str) -> Self:
        """Return this agent with the task and returns of another that uses it, and with a learner of its own kind.

        What it tells and warns of is then about the other agent, with `remedy` if there is no progress.
        """
        self.__dict__ |= {name: other.__dict__[name] for name in SHARED}
        self._learner, self._remedy = learner, remedy
        return self

    def _adopt(self, mdp: FiniteMDP, basis: Basis) -> None:
        """Start an MDP, to be learned in the fused loop, with `basis` unless the agent has its own."""
        task = self._task_in(mdp)
        if not self._fused:
            raise TypeError(
                f"{type(self).__name__} has no fused loop: let it learn(env) from rlsvi.envs.FiniteMDPEnv(mdp)"
            )
        self._take_on(task)
        if self._learner is None:
            self._problem_basis = basis if self._takes_basis and self.basis is None else None
            self._learner = self.new_learner(task, 0)
        elif self._takes_basis and self.basis is None and basis is not self._problem_basis:
            offered = bound(basis, task.states, task.actions, task.horizon, 0)
            if not same_table(self._learner.mind.features, offered.table):
                raise ValueError("this agent has learned through another basis: use agent.clone()")

    def _mind_for(self, episodes: int) -> tuple[Any, int]:
        """Return the mind for the fused loop, and for how many of the next `episodes` it has room."""
        self._settle()
        return self._learner.mind_for(episodes), episodes

    def _episodes_on_the_mean(self, episodes: int) -> int:
        """Return how many of the next `episodes` use the posterior mean rather than a sample."""
        if not self._samples:
            return episodes
        return 0 if self._uses_sample(self._learner) else 1

    def _failure(self, rewards: Floats) -> Exception:
        """Return the error to raise if an episode with these rewards could not be learned from."""
        return self._broken()

    def _features(self, task: Task, example: Any) -> Features:
        """Return the agent's basis, the problem's, or a table, bound to a task and checked."""
        basis: Basis = self.basis or self._problem_basis or Tabular()
        size = task.states, task.actions, task.horizon or 1
        return bound(basis, *size, example, factors=self._keeps_factors)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to a file, completely or not at all; `rlsvi.load` reads it.

        Parameters
        ----------
        path
            The file. It may have any name; `.npz` is usual.
        """
        self._check_can_be_saved()
        self._settle()
        files.save(self, path)

    def _check_can_be_saved(self) -> None:
        """Raise an error if a file cannot contain this agent."""
        if type(self).restored_learner is Agent.restored_learner:
            raise TypeError(f"{type(self).__name__} cannot be saved: define restored_learner, to load it again")
        files.header_of(self)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the policy of the posterior mean to a file that needs only NumPy; see docs/interoperability.md.

        Parameters
        ----------
        path
            The file.
        """
        files.export(self, path)

    # Learning by playing.

    @property
    def _overshoot(self) -> int:
        """The number of steps by which the last `learn(steps=)` exceeded its goal; 0 after further learning."""
        at, steps = self._surplus
        return steps if at == self.steps else 0

    @_overshoot.setter
    def _overshoot(self, steps: int) -> None:
        self._surplus = self.steps, steps

    def diagnostics(self) -> dict[str, float]:
        """Return numbers about the last plan, by name, for callbacks that log them; an agent may have none.

        Returns
        -------
        dict
            The numbers by name.
        """
        return {}

    def explain(self) -> str:
        """Return how it learns and, if it has decided something by itself, why.

        Returns
        -------
        str
            One or two sentences.
        """
        name, given = type(self).__name__, self.get_params()
        if self.steps == 0:
            left = [f"its {each}" for each in ("basis", "horizon") if given.get(each, 0) is None]
            follow = f"; {' and '.join(left)} follow{'s' * (len(left) == 1)} from the first environment"
            return f"{name} learns as its arguments say{follow if left else ''}."
        basis = type(self.basis or self._problem_basis or Tabular()).__name__
        through = f", with the basis {basis}" if "basis" in given and self._takes_basis else ""
        return f"{name} has learned {self._task}{through}."

    def diagnose(self) -> Diagnosis:
        """Print what to look at if it does not learn, with one sentence of advice, and return it.

        It tells the returns so far and, as far as the agent has them, the sweeps of its last plan and whether they
        converged, the part of values at their bounds, features against data, and how much recurs.
        docs/how-to/when-it-does-not-learn.md explains each line.

        Returns
        -------
        Diagnosis
            What was printed.
        """
        found = diagnosis_of(self)
        print(found)
        return found

    @explain_calls
    def learn(
        self,
        env: Env[Any, Any],
        episodes: int | None = None,
        *,
        steps: int | None = None,
        progress: bool | None = None,
        on_episode: OnEpisode | None = None,
        evaluate_every: int | None = None,
        evaluation_env: Env[Any, Any] | None = None,
        keep_best: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Play and learn for `episodes` more episodes, or for at least `steps` more steps.

        `learn(env, 20)` means 20 episodes.
        The agent's seed determines everything, since it also seeds the environment at the start of every episode.
        Episodes are always completed; surplus steps count towards the next call with `steps`, so learning
        a and then b equals learning a + b. After an error or interrupt, the agent is as after its last episode.
        Callbacks do not change what is learned.

        Parameters
        ----------
        env
            The environment.
        episodes
            The number of episodes. Give either this or `steps`.
        steps
            The number of steps. The last episode is played to its end.
        progress
            Show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.
        on_episode
            A function that is called after each episode with the agent and the return, a
            `rlsvi.callbacks.Callback`, or a list of these. Learning ends if one returns False.
        evaluate_every
            Play fresh episodes on the posterior mean, without learning, whenever the number of episodes learned
            from is a multiple of this: short for `callbacks.Evaluate`.
        evaluation_env
            The environment to evaluate in. If None, one like `env` is made from `env.spec`, or `env` is copied.
        keep_best
            A file that the agent is saved to whenever an evaluation is better than all before.
        checkpoint_every, checkpoint
            Save the agent to the file `checkpoint` whenever the number of episodes is a multiple of
            `checkpoint_every`: short for `callbacks.Checkpoint`.

        Returns
        -------
        Self
            The agent itself.
        """
        if (episodes is None) == (steps is None):
            raise ValueError(
                "give either episodes= or steps=, and only one of them: learn(env, 20) means 20 episodes"
            )
        unit = "episodes" if steps is None else "steps"
        amount = whole(unit, episodes if steps is None else steps, 0)
        callbacks = callbacks_of(
            on_episode, evaluate_every, evaluation_env, keep_best, checkpoint_every, checkpoint
        )
        self._take_on(self._task_of(env), env)
        begin, goal = getattr(self, unit), amount - (self._overshoot if unit == "steps" else 0)
        with open_callbacks(callbacks, self, env) as tell, bar(max(goal, 0), unit, progress) as advance:
            while getattr(self, unit) < begin + goal:
                counted, before, clock, processor = getattr(self, unit), self.steps, perf_counter(), process_time()
                total = self._episode(env)
                advance(getattr(self, unit) - counted)
                described: dict[str, float] = {
                    "episodes": self.episodes,
                    "steps": self.steps,
                    "return": total,
                    "length": self.steps - before,
                    "seconds": perf_counter() - clock,
                    "cpu_seconds": process_time() - processor,
                }
                if callbacks and tell(described | self.diagnostics()):
                    return self
        if unit == "steps":
            self._overshoot = self.steps - begin - goal
        return self

    # Learning from logs.

    def fit(
        self,
        log: Any,
        env: Env[Any, Any] | None = None,
        *,
        columns: Mapping[str, Any] | None = None,
        progress: bool | None = None,
        chunk: int | None = None,
        executor: str | None = None,
    ) -> Self:
        """Learn from a log of transitions, as if the agent had lived through it.

        The log is learned from episode by episode, as in `learn`, except that it says which actions were taken.
        An agent that has the same arguments and seed as the one whose learning was recorded is equal to it
        afterwards, bit for bit, its random streams included. With another seed, what is kept of the data is still
        the same; what depends on earlier samples, such as the values where the next plan starts, is not.
        All of the log is checked first, and it fits into memory. After an error the agent is as before; after an
        interrupt, it is as after the last complete episode.

        Parameters
        ----------
        log
            A polars frame, the path of a Parquet or CSV file or of a folder of them, a pandas or Arrow table, a
            Minari data set, or an iterator of such pieces. Its columns are episode, step, observation, action,
            reward, next_observation and terminated, and optionally truncated (an episode that just stops counts as
            truncated), mask and next_mask (which actions are legal) and propensity. The order of its rows does not
            matter: episodes are learned from in the order of their numbers. An observation of several numbers is a
            list, or has a column for each: observation_0, observation_1, ..; one of several parts may be a Struct,
            or have a column for each part: observation_KEY. Numbers are those that the environment gives. So are
            actions: if they are not Discrete, lists of numbers, or columns action_0, action_1, ..
        env
            The environment that the log comes from, which is not played, or envs.Spaces(..). If None, the spaces
            are those of the log: states and actions up to the largest number met, or vectors without bounds.
        columns
            Other names of columns: {"reward": "r", "observation": ["position", "speed"]}.
        progress
            As for `learn`.
        chunk, executor
            For logs that do not fit into memory; see `BoundedRLSVI.fit`. Others do not take them.

        Returns
        -------
        Self
            The agent itself.
        """
        if chunk is not None or executor is not None:
            raise ValueError(
                f"{type(self).__name__} reads a log as a whole: for chunk= and executor=, use rlsvi.BoundedRLSVI"
            )
        replay = replay_of(log, env, columns)
        replay.check_length(self._task_of(replay).horizon)
        with self._unchanged_by_errors():
            self._replay(replay, progress)
        return self

    def _replay(self, replay: Replay, progress: bool | None) -> None:
        """Learn from all episodes of a log, which need not show progress."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoProgressWarning)
            self.learn(replay, episodes=replay.log.episodes, progress=progress)
        self._told.clear()  # nobody has heard of it

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """Context manager that restores everything learned before on an error, but not on an interrupt.

        What cannot be copied is kept as it is: a learner whose `remember` returns a new one does not change.
        """
        shared = [self, self.__dict__.get("_env"), *self.get_params().values()]
        known, before = {id(thing): thing for thing in shared}, {}
        for name, value in self.__dict__.items():
            copies = dict(known)
            try:
                before[name], known = deepcopy(value, copies), copies
            except Exception:  # of any kind: it is what the class of the user raises
                before[name] = value
        steps = self.steps
        try:
            yield
        except Exception as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if self.steps != steps:
                error.add_note(
                    "the agent keeps what it had learned from the log by then: its learner cannot be copied, and "
                    "its remember changes it instead of returning a new one"
                )
            raise

    # The learning curve.

    def _expect(self, returns: Any = ()) -> None:
        """Keep the returns of the episodes learned from since the last call; those of the next are `returns`.

        They are told before these episodes are learned from, so that an interrupt loses none.
        """
        before, came = self._coming
        if kept := array("d", came[: max(self.episodes - before, 0)]):
            unknown = before - len(self._earned)
            self._found_reward = self._found_reward or unknown > 0 or any(kept)
            self._earned.extend([math.nan] * unknown)
            self._earned[before:] = kept
        self._coming = self.episodes, returns

    @property
    def returns(self) -> Floats:
        """The return of every episode learned from, in their order: the learning curve, (episodes,).

        It is kept in files. An episode whose return is not known is NaN; if none is known, the array is empty.
        """
        self._expect()
        unknown = self.episodes - len(self._earned) if self._earned else 0
        return np.concatenate([np.array(self._earned), np.full(unknown, np.nan)])

    def plot(self, path: str | os.PathLike[str] | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the learning curve: the return of every episode, and the mean of the last ones.

        Parameters
        ----------
        path
            A file to save the figure to, if any; its suffix determines the format.
        ax
            Matplotlib axes to draw on. If None, those of a new figure, which a notebook shows.

        Returns
        -------
        Axes
            The axes; their figure is `axes.figure`.

        Examples
        --------
        >>> import gymnasium, rlsvi
        >>> agent = rlsvi.RLSVI(seed=0).learn(gymnasium.make("rlsvi/Chain-v0", length=5), 50)
        >>> axes = agent.plot("curve.png")
        """
        from rlsvi.axes import axes_for, draw_learning_curve

        returns = self.returns
        if not len(returns):
            raise NothingLearned(
                "the returns of episodes are not known here: those of rlsvi.compare are in its runs, and a log "
                "that is read in chunks keeps none"
                if self.steps
                else "this agent has learned nothing yet: call learn first"
            )
        with axes_for(path, ax) as axes:
            draw_learning_curve(returns, axes)
        return axes

    # Acting on what was learned.

    @property
    def episodes(self) -> int:
        """The number of episodes learned from."""
        return int(self._learner.counters[EPISODES]) if self._learner is not None else 0

    @property
    def steps(self) -> int:
        """The number of steps learned from."""
        return int(self._learner.counters[STEPS]) if self._learner is not None else 0

    def _uses_sample(self, learner: Learner) -> bool:
        """Return whether to act on a sample of the learner's posterior rather than on the mean."""
        return self._samples and (self._samples_first or bool(learner.counters[STEPS] > 0))

    def _settle(self) -> None:
        """Called before each episode, before saving and before predicting, to update what was learned."""

    @contextmanager
    def _keep_streams(self) -> Iterator[None]:
        """Context manager after which the random streams are as before, whatever was predicted."""
        kept = self._streams.copy()
        try:
            yield
        finally:
            self._streams[:] = kept

    def _forget_plans(self) -> None:
        self._version = b""
        self._mean: Any = None
        self._drawn: dict[int, Any] = {}

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_mask: Any = None,
    ) -> tuple[Any, Any]:
        """Return an action of the space, and the state to pass to the next call, which is the period reached.

        Values may differ between periods, and each new episode uses a new sample of the value function, so pass
        the state on. Without it, every call acts as in period 0.

        Observations of several environments, one in each row, return arrays, as in stable-baselines3. Each
        environment then plays its episode with its own sample, and `episode_start` says for each whether a new
        episode begins. With a single observation, `state` and `episode_start` may be arrays of size one.

        Parameters
        ----------
        observation
            An observation, or an array with one in each row.
        state
            What the call before returned. If None, an episode begins.
        episode_start
            Whether an episode begins, whatever `state` is.
        deterministic
            Act greedily on the posterior mean. Otherwise act as in learning: on a value function sampled at the
            start of the episode, or with the exploration given.
        action_mask
            Which actions are legal. By default all, or those that were legal in learning. If actions are not
            Discrete, one flag for each of those to choose among; if there are more than 1,000 combinations, one
            for each value of the first part, then of the second, and so on.

        Returns
        -------
        tuple
            The action and the next state.
        """
        flag("deterministic", deterministic)
        if self._task is None or not self._can_predict():
            raise NothingLearned("this agent has learned nothing yet: call learn first")
        basis = self._problem_basis if isinstance(self._problem_basis, Observed) else self.basis
        layout = basis.layout if isinstance(basis, Observed) else None
        given = state, episode_start, action_mask
        batch, count, states, starts, masks = divided(self._task, layout, observation, *given)
        choices = self._task.choices
        if not batch:
            number, after = self._predict(SINGLE_KEY, observation, states[0], starts[0], deterministic, masks[0])
            return number if choices is None else choices.action(number), after
        found = [
            self._predict(i, one_observation(observation, i), states[i], starts[i], deterministic, masks[i])
            for i in range(count)
        ]
        states = np.array([after for _, after in found], np.int64)
        if choices is None:
            return np.array([number for number, _ in found], np.int64), states
        actions = np.array([choices.action(number) for number, _ in found], choices.dtype)
        return actions.reshape(count, *choices.shape), states

    def _can_predict(self) -> bool:
        return self.steps > 0

    def _predict(
        self, key: int, observation: Any, state: Any, start: Any, deterministic: bool, mask: Any
    ) -> tuple[Any, int]:
        """Return the number of the action of one environment, and its next state."""
        assert self._task is not None
        h = 0 if state is None or start else period_of(state)
        if self._task.horizon and h >= self._task.horizon:
            raise ValueError(f"state is period {shown(h)} of {self._task.horizon}: start a new episode")
        self._settle()
        place = self._learner.look(h, observation, mask, learning=False)
        Q = checked_values(self._learner.values(self._plan(deterministic, key, h == 0), place), place)
        if deterministic:
            a = self._choose(Q, place.legal)
        else:
            rule, parameter = exploration(self.explore, self.episodes, 1)
            a = self._choose(Q, place.legal, rule, parameter[0], self._streams[PREDICT])
        if not math.isfinite(Q[a].sum()):
            raise self._broken()
        return self._task.first_action + a, h + 1

    def _plan(self, mean: bool, key: int = SINGLE_KEY, first: bool = False) -> Any:
        """Return the posterior mean, kept until more is learned, or a sample, drawn at the start of an episode."""
        version = np.asarray(self._learner.counters).tobytes()
        if version != self._version:
            self._version, self._mean, self._drawn = version, None, {}
        noise = self._streams[PREDICT]
        if mean or not self._samples:
            if self._mean is None:
                self._mean = self._learner.plan(False, noise)
            return self._mean
        if first or key not in self._drawn:
            self._drawn[key] = self._learner.plan(self._uses_sample(self._learner), noise)
        return self._drawn[key]

    # Arguments, with the methods that scikit-learn expects.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by name, as in scikit-learn.

        Parameters
        ----------
        deep
            Accepted because scikit-learn passes it. No argument has parameters of its own.

        Returns
        -------
        dict
            The arguments by name.
        """
        return {name: getattr(self, name) for name in parameters_of(type(self))}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change arguments of an agent that has learned nothing, all of them or, if one is invalid, none.

        An agent that has learned is not changed, because what it has learned depends on its arguments:
        `agent.clone(**params)` returns a new agent, as does `sklearn.base.clone(agent).set_params(**params)`.

        Parameters
        ----------
        **params
            The new arguments, by name.

        Returns
        -------
        Self
            The agent itself.
        """
        known = self.get_params()
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
        """Return a new agent with the same arguments, except for `changes`, that has learned nothing.

        Parameters
        ----------
        **changes
            Arguments to change, by name.

        Returns
        -------
        Self
            The new agent.
        """
        return type(self)(**{**self.get_params(), **changes})

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={short(value)}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def _repr_html_(self) -> str:
        rows = [(name, short(value)) for name, value in self.get_params().items()]
        note = f"has learned from {self.episodes} episodes, {self.steps} steps"
        return html_table(type(self).__name__, rows, note=note)


@compiled
def first_best(Q: Floats, legal: Bools) -> int:
    """Return the first legal action of the highest value, or -1 if a value cannot be compared."""
    best, action = -np.inf, -1
    for a in range(Q.size):
        if legal[a]:
            if Q[a] != Q[a]:
                return -1
            if action < 0 or Q[a] > best:
                best, action = Q[a], a
    return action


def warn_of_endless(env: Any, played: int) -> None:
    """Warn unless a wrapper ends the episodes of an environment: `learn` returns after complete episodes only."""
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit | Replay):
            return
        env = env.env
    warn(
        f"the episode has not ended after {played} steps and the environment has no time limit: learn returns "
        "after complete episodes only, so wrap it by gymnasium.wrappers.TimeLimit(env, max_episode_steps)",
    )


@cache
def parameters_of(kind: Any) -> Mapping[str, inspect.Parameter]:
    """Return the arguments of a class of agents."""
    return inspect.signature(kind).parameters


def new_streams(seed: Seed) -> Words:
    """Return the random streams of an agent, (4, 4)."""
    root = sequence(seed)
    children = [np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i)) for i in range(4)]
    return np.stack([stream(child) for child in children])
