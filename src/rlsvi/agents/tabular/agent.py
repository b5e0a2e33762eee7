"""What the tabula rasa agents share: counts of a finite problem, a plan made from them, and the user's verbs."""

from typing import Any, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.batches import batched
from rlsvi.agents.explore import GREEDY, choose
from rlsvi.agents.finite.learner import broken
from rlsvi.agents.tabular.counts import Known, Plan, count_episode, linear_of, no_counts, no_linear, no_plan, see
from rlsvi.agents.task import Task, checked_observation, checked_reward, task_of
from rlsvi.agents.verbs import (
    ACTION,
    EPISODE,
    POSTERIOR,
    PREDICT,
    OnEpisode,
    Verbs,
    amount_of,
    learn_for,
    new_streams,
)
from rlsvi.bases import Basis, Tabular
from rlsvi.core.checks import finite, shaped, whole
from rlsvi.core.compile import Bools, Floats, Words
from rlsvi.core.random import Seed, bits


class TabulaRasaAgent(Verbs):
    """Learns a finite problem from nothing. PSRL, UCRL2 and the others say how to plan."""

    horizon: int | None
    seed: Seed
    reward_range: tuple[float, float]
    basis: Basis | None = None
    samples: bool  # draws a new plan for every episode
    kind: int  # which planner, in the fused loop

    def _start(self) -> None:
        """Check the arguments a constructor has stored; nothing is learned yet."""
        if self.horizon is not None:
            whole("horizon", self.horizon, 1)
        if self.basis is not None and not hasattr(self.basis, "bind"):
            raise TypeError(f"basis must be a basis such as rlsvi.bases.Tabular(), got {self.basis!r}")
        self._numbers(1, 1, 1, 1)
        self._alpha(np.size(getattr(self, "alpha_P", 1.0)))
        self._streams = new_streams(self.seed)
        self._task: Task | None = None
        self._problem_basis: Basis | None = None
        self._known: Known | None = None
        self._drawn: dict[bool, Plan] = {}
        self._overshoot = 0

    def _numbers(self, horizon: int, states: int, actions: int, weights: int) -> Floats:
        """What the planner takes, after checking it."""
        raise NotImplementedError

    def _alpha(self, states: int) -> Floats:
        """Prior weights of the next state."""
        return np.zeros(states)

    def _ridge(self) -> float | None:
        """The ridge, for agents that learn through features."""
        return None

    def _any_reward(self) -> bool:
        """Whether rewards may lie outside of `reward_range`."""
        return False

    @staticmethod
    def _planner(known: Known, mean: bool, stream: Words) -> Any:
        """Fill in `known.plan`; False where a value is not finite."""
        raise NotImplementedError

    @property
    def episodes(self) -> int:
        """Episodes learned from."""
        return int(self._known.counts.episodes[0]) if self._known else 0

    @property
    def steps(self) -> int:
        """Steps learned from."""
        return int(self._known.counts.steps[0]) if self._known else 0

    def learn(
        self,
        env: Env[Any, Any],
        *,
        episodes: int | None = None,
        steps: int | None = None,
        progress: bool = False,
        on_episode: OnEpisode | None = None,
    ) -> Self:
        """Play and learn for `episodes` more episodes, or for at least `steps` more steps, as RLSVI does."""
        unit, amount = amount_of(episodes, steps)
        self.adopt(task_of(env, self.horizon), None)
        learn_for(self, env, unit, amount, progress, on_episode)
        return self

    def adopt(self, task: Task, basis: Basis | None) -> Known:
        """Take on a task, with `basis` for an agent of features that has none of its own."""
        if self.horizon not in (None, task.horizon):
            raise ValueError(f"horizon is {self.horizon}, the problem has {task.horizon} periods: leave it out")
        if task.states is None:
            raise ValueError(
                f"{type(self).__name__} needs observations that are numbered 0..S-1 (a Discrete space): "
                "use RLSVI with bases.StateFeatures"
            )
        if self._known is None or self.episodes == 0:
            self._problem_basis = basis if self._ridge() is not None and self.basis is None else None
            self._known, self._task = self.blank(task), task
        elif self._task != task:
            raise ValueError(
                f"this agent has learned {self._task}, it cannot go on with {task}: use agent.clone()"
            )
        elif basis not in (None, self._problem_basis) and self._ridge() is not None and self.basis is None:
            table, linear = basis.bind(task.states, task.actions, task.horizon, 0).table, self._known.linear
            if not (table and np.array_equal(table.phi, linear.phi) and np.array_equal(table.block, linear.block)):
                raise ValueError("this agent has learned through another basis: use agent.clone()")
        self._drawn = {}
        return self._known

    def blank(self, task: Task) -> Known:
        """Nothing seen, nothing planned."""
        assert task.states is not None
        H, S, A, ridge = task.horizon, task.states, task.actions, self._ridge()
        linear, weights = no_linear(), 0
        if ridge is not None:
            basis = self.basis or self._problem_basis or Tabular()
            features = basis.bind(S, A, H, 0)
            assert features.table is not None
            linear = linear_of(H, *features.table, features.blocks, ridge)
            weights = features.blocks * features.dim
        alpha = np.append(self._alpha(S), 0.0)
        return Known(no_counts(H, S, A), no_plan(H, S, A), linear, self._numbers(H, S, A, weights), alpha)

    def _episode(self, env: Env[Any, Any]) -> None:
        """One episode: plan, act, learn. If anything fails, the agent is as it was before."""
        assert self._known is not None
        known, kept = self._known, self._streams.copy()
        H, S, A = known.plan.Q.shape
        try:
            observation, info = env.reset(seed=int(bits(self._streams[EPISODE]) >> np.uint64(32)))
            if not self._planner(known, False, self._streams[POSTERIOR]):
                raise broken()
            places = [self._look(0, observation, info.get("action_mask"))]
            actions: list[int] = []
            rewards: list[float] = []
            terminated = truncated = False
            while len(actions) < H and not (terminated or truncated):
                s, legal = places[-1]
                a = choose(GREEDY, 0.0, known.plan.Q[len(actions), s], legal, np.empty(A), self._streams[ACTION])
                if a < 0:
                    raise broken()
                observation, reward, terminated, truncated, info = env.step(self._first_action + a)
                actions.append(a)
                rewards.append(self._reward(checked_reward(reward)))
                if len(actions) < H and not terminated:
                    places.append(self._look(len(actions), observation, info.get("action_mask")))
        except BaseException:
            self._streams[:] = kept
            raise
        for h, (s, legal) in enumerate(places):
            see(known.counts, h, s, legal)
        states = np.array([s for s, _ in places])
        last = int(states[-1]) if len(places) > len(actions) else S
        if not count_episode(known, states, np.array(actions), np.array(rewards), len(actions), last):
            raise broken()
        self.note(0)

    @batched
    def predict(
        self,
        observation: Any,
        state: int | None = None,
        episode_start: bool | None = None,
        deterministic: bool = False,
        action_mask: Bools | None = None,
    ) -> tuple[int, int]:
        """An action, and the state to pass to the next call: the period reached; as for RLSVI.

        deterministic : plan with the mean of the posterior where there is one; ties to the first action.
        """
        h = 0 if state is None or episode_start else int(state)
        if self._known is None:
            raise RuntimeError("this agent has learned nothing yet: call learn first")
        H, _, A = self._known.plan.Q.shape
        if not 0 <= h < H:
            raise ValueError(f"state is period {h} of {H}: start a new episode")
        s, legal = self._look(h, observation, action_mask, learning=False)
        Q = np.where(legal, self._plan(deterministic, h == 0).Q[h, s], -np.inf)
        if deterministic:
            return self._first_action + int(np.argmax(Q)), h + 1
        a = choose(GREEDY, 0.0, Q, legal, np.empty(A), self._streams[PREDICT])
        if a < 0:
            raise broken()
        return self._first_action + a, h + 1

    def _plan(self, mean: bool, first: bool) -> Plan:
        """The plan to predict with. Planning again without new data changes nothing but for a sample."""
        assert self._known is not None
        known = self._known
        if self.samples:
            if mean in self._drawn and (mean or not first):
                return self._drawn[mean]
            known = known._replace(plan=no_plan(*known.plan.Q.shape))
        if not self._planner(known, mean, self._streams[PREDICT]):
            raise broken()
        self._drawn[mean] = known.plan
        return known.plan

    def _look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> tuple[int, Bools]:
        """A state and its legal actions, which may only be narrowed down in predicting."""
        assert self._task is not None
        assert self._known is not None
        counts = self._known.counts
        s, legal = checked_observation(self._task, observation), self._task.legal(mask)
        if counts.seen[h, s]:
            if learning and (counts.legal[h, s] != legal).any():
                raise ValueError(
                    f"the action mask of state {observation} in period {h} has changed: legal actions must depend "
                    "on the period and the observation alone"
                )
            legal = legal & counts.legal[h, s]
            if not legal.any():
                raise ValueError("action_mask allows only actions that were not legal in this state before")
        return s, legal

    def _reward(self, reward: float) -> float:
        """A reward within the range given."""
        low, high = self.reward_range
        if not (self._any_reward() or low <= reward <= high):
            raise outside(reward, self.reward_range)
        return reward

    @property
    def _first_action(self) -> int:
        return self._task.first_action if self._task else 0

    def note(self, steps: int) -> None:
        """More was learned: forget the plans made to predict with."""
        self._drawn = {}


def outside(reward: float, reward_range: Any) -> ValueError:
    """What to raise for a reward outside of `reward_range`."""
    return ValueError(f"reward {reward:g} lies outside of reward_range={tuple(reward_range)}: widen it")


def range_of(reward_range: Any) -> tuple[float, float]:
    """The lowest and the highest reward, checked."""
    low, high = (float(value) for value in shaped("reward_range", finite("reward_range", reward_range), (2,)))
    if not low < high:
        raise ValueError(f"reward_range must be (low, high) with low < high, got {reward_range!r}")
    return low, high


def wide_range(rewards: tuple[float, float]) -> tuple[float, float]:
    """A range of rewards that holds 0, which an episode that is over pays."""
    return min(rewards[0], 0.0), max(rewards[1], 0.0)


def probability(name: str, value: Any) -> float:
    """`value`, if it lies strictly between 0 and 1."""
    number = shaped(name, finite(name, value), ())
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(number)
