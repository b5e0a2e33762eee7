"""Continual RLSVI (appendix F): for discounted problems that never end, a new value function in every step.

theta_0 = prior mean, w_0 = 0
for t = 0, 1, ..
    sample a_t from argmax_a (Phi theta_t)(x_t, a)                               (ties broken uniformly)
    observe r_t and x_t+1, and add the transition to the sums of finite/memory.py, here with a single period
    b_i = r_i + gamma max_a (Phi theta_t)(x_i+1, a), or r_i if x_i+1 is terminal                       (targets)
    theta-bar_t+1 = P^-1 (A'b + ridge prior_mean), Sigma_t+1 = sigma^2 P^-1, where P = ridge I + A'A = L L'
    theta_t+1 = theta-bar_t+1 + w_t+1                                                                  (disturb)

A step costs one regression over all data, which depends on the number of distinct states, and not on t. The noise
w changes slowly, so that the agent can follow a plan of several steps. With e ~ N(0, I), drawn in each step,
    paper:        w_t+1 = sqrt(1 - gamma^2) w_t + gamma sigma L^-T e
    whitened:     z_t+1 = gamma z_t + sqrt(1 - gamma^2) e, w_t+1 = sigma L^-T z_t+1
    independent:  w_t+1 = sigma L^-T e
All have covariance Sigma once it changes slowly; consecutive w have correlation sqrt(1 - gamma^2), gamma and 0.
With dithering instead of noise, this is ContinualLSVI. If an environment ends nevertheless, it is reset and
learning continues.
"""

import math
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.calls import explain_calls
from rlsvi.agents.contract import EPISODE, POSTERIOR, Episode, Place, Step, count, diverged, flat, weights_shaped
from rlsvi.agents.diagnosis import UNREWARDED_STEPS
from rlsvi.agents.discounted import DiscountedAgent
from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.finite.memory import Memory, add_state, add_transitions
from rlsvi.agents.finite.rlsvi import (
    FiniteLearner,
    FiniteMind,
    Prior,
    Values,
    all_finite,
    known_values,
    new_mind,
    read_features,
)
from rlsvi.bases import Basis, Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, flag, in_unit_interval, one_of, positive, ridge_of, whole
from rlsvi.core.compile import Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import Seed, bits, normal
from rlsvi.core.regression import solve, solve_upper
from rlsvi.envs.task import Task, reset_env
from rlsvi.offline.replay import Replay
from rlsvi.progress import bar

PAPER, WHITENED, INDEPENDENT, NONE = range(4)
KINDS = {"paper": PAPER, "whitened": WHITENED, "independent": INDEPENDENT, "none": NONE}
NoiseRecursion = Literal["paper", "whitened", "independent"]


@dataclass(kw_only=True, repr=False, eq=False)
class ContinualAgent(DiscountedAgent):
    """One value function, regressed anew in every step, the base of ContinualRLSVI and ContinualLSVI."""

    lam: float = 1.0
    gamma: float = 0.99
    basis: Basis | None = None
    prior_mean: float | Floats = 0.0
    diverged_above: float = 1000.0
    seed: Seed = None

    _samples_first = True
    noise = "none"
    update_every = 1
    _env = None  # the environment in which the agent acted last
    _remedy = "try a smaller lam= or a larger sigma="

    _constraints: ClassVar[Constraints] = {"gamma": in_unit_interval, "sigma": positive}

    @explain_calls
    def learn(  # type: ignore[override]
        self, env: Env[Any, Any], *, steps: int, reset: bool | None = None, progress: bool | None = None
    ) -> Self:
        """Act and learn for `steps` more steps.

        Parameters
        ----------
        reset
            True resets the environment, with a seed derived from the agent's. None does so unless the
            agent was the last to act in it. False never does: the environment must then be in the
            state that the agent's last step led to, as when both come from a checkpoint.
        progress
            As for other agents.
        """
        whole("steps", steps, 0)
        if reset is not None:
            flag("reset", reset)
        self._take_on(self._task_of(env), env)
        anew = env is not self._env if reset is None else reset
        if not anew and self.steps == 0:
            raise ValueError("reset=False needs an agent that has learned: it does not know where env stands")
        other = reset is False and env is not self._env
        with bar(steps, "steps", progress) as advance:
            for _ in range(steps):
                try:
                    self._step(env, anew)
                except Exception as error:
                    if not other:
                        raise
                    raise ValueError(
                        "reset=False needs the env of the agent's last step, in the state that this step led to; "
                        f"the first step failed ({type(error).__name__}: {error}): leave reset out"
                    ) from error
                anew = other = False
                advance(1)
        return self

    def _replay(self, replay: Replay, progress: bool | None) -> None:
        """Learn from all steps of a log, after which life goes on unless the log says otherwise."""
        replay.open_end = True
        self.learn(replay, steps=replay.log.steps, progress=progress)

    def _step(self, env: Env[Any, Any], anew: bool) -> None:
        """Act once and learn from it. If it fails before learning, nothing has been learned."""
        assert self._task is not None
        self._env = None
        with self._restore_streams():
            learner = self._learner
            place = None if anew or learner is None else learner.here()
            if place is None:
                observation, info = reset_env(env, int(bits(self._streams[EPISODE]) >> np.uint64(32)))
                learner = learner or self.new_learner(self._task, self._task.checked(observation))
                place = learner.look(0, observation, info.get("action_mask"))
            stream = self._streams[POSTERIOR]
            (step,), _, _, goes_on = self._play(env, learner, learner.plan(True, stream), place)
            self._learner = learner.live(step, not goes_on, stream)
        self._env = env
        self._notice()

    def _notice(self) -> None:
        """Warn about values that diverge, and if there was never a reward in a long time."""
        super()._notice()
        if self.steps >= UNREWARDED_STEPS and self._learner.walk.reach[0] == 0.0:
            self._miss_reward(explored=False, played=f"{self.steps} steps")

    def _predict(self, *given: Any) -> tuple[int, int]:
        """Return an action, and a state that is always 0, since there is one value function for all steps."""
        action, _ = super()._predict(*given)
        return action, 0

    def _plan(self, mean: bool, key: int = -1, first: bool = False) -> Any:
        """Return the values of theta-bar_t, or of theta_t, with which it learns."""
        return super()._plan(mean, key, first=True) if mean else self._learner.plan(True, self._streams[POSTERIOR])

    def new_learner(self, task: Task, example: Any) -> "ContinualLearner":
        """Return a learner without experience."""
        self._check_room(task)
        return self._learner_of(task, self._features(task, example))

    def restored_learner(self, task: Task, file: Archive) -> "ContinualLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        learner = self._learner_of(task, read_features(self, task, file))
        learner.restore(file)
        return learner

    def _learner_of(self, task: Task, features: Features) -> "ContinualLearner":
        mean = weights_shaped(self.prior_mean, (1, features.blocks, features.dim))
        prior = Prior(mean, float(self.lam), ridge_of(self.lam, self.sigma), float(self.sigma), 0.0, 0.0)
        spread = 0.0 if self.noise == "none" else 1 / math.sqrt(self.lam)
        explained = float(np.abs(mean).max()) + spread
        rule = Rule(float(self.gamma), KINDS[self.noise], explained, float(self.diverged_above))
        return ContinualLearner(task, new_mind(task._replace(horizon=1), features, prior), features, rule)


@dataclass(kw_only=True, repr=False, eq=False)
class ContinualRLSVI(ContinualAgent):
    """Randomized least-squares value iteration for discounted problems that never end.

    Parameters
    ----------
    lam
        Prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma
        Standard deviation of the noise of a target, > 0. Larger values explore longer.
    gamma
        Discount, in [0, 1).
    noise
        How w evolves. "paper": N(sqrt(1 - gamma^2) w, gamma^2 Sigma), as printed, which has a correlation of only
        .14 at gamma = .99; "whitened": an autoregression with correlation gamma in units of Sigma; "independent":
        drawn anew in every step. All have covariance Sigma.
    basis
        How states and actions map to weights. If None, a table. Observations that are not numbered states are all
        stored, and the cost of a step is proportional to their number.
    prior_mean, diverged_above, seed
        As for StationaryRLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.ContinualRLSVI(gamma=0.9, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/RiverSwim-v0", horizon=None), steps=200).steps
    200
    """

    sigma: float = 1.0
    noise: NoiseRecursion = "paper"

    _constraints: ClassVar[Constraints] = {"noise": partial(one_of, names=("paper", "whitened", "independent"))}


@dataclass(kw_only=True, repr=False, eq=False)
class ContinualLSVI(ContinualAgent):
    """Least-squares value iteration for discounted problems that never end: ContinualRLSVI without noise.

    Parameters
    ----------
    lam
        The ridge, > 0. It corresponds to ContinualRLSVI's lam sigma^2.
    explore
        Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the step.
    gamma, basis, prior_mean, diverged_above, seed
        As for ContinualRLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.ContinualLSVI(gamma=0.9, explore=rlsvi.EpsilonGreedy(0.2), seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/RiverSwim-v0", horizon=None), steps=200).steps
    200
    """

    explore: Explore = Greedy()

    _remedy = "try rlsvi.ContinualRLSVI, which explores"


# ---- How it learns: one step of the recursion, and the state it needs ---------------------------------------


EXCESS, DIVERGED = range(2)  # indices of Walk.watch


class Walk(NamedTuple):
    """The state that is carried from step to step, besides memory, factor and values."""

    w: Floats  # (B, d) the paper's w_t, or the whitened z_t
    begun: Longs  # (1,) number of live blocks that have such noise
    mean: Floats  # (1, B, d) theta-bar_t
    e: Floats  # (d,) work array
    reach: Floats  # (3,) the largest |r| and |phi| so far, and a bound on |b| in the next step
    watch: Floats  # (2,) that |b| as a multiple of what is explained, and whether it was ever too large
    row: Longs  # (1,) the row in memory where the agent is; -1 at the beginning of a life
    world: Words  # (4,) the random stream of an MDP in the fused loop


class Rule(NamedTuple):
    """The parameters of a learning step."""

    gamma: float
    kind: int  # of the noise
    spread: float  # the largest absolute weight that the prior explains
    diverged_above: float


def new_walk(B: int, d: int) -> Walk:
    """Return the initial state, with w_0 = 0."""
    return Walk(
        w=np.zeros((B, d)),
        begun=np.zeros(1, np.int64),
        mean=np.zeros((1, B, d)),
        e=np.zeros(d),
        reach=np.zeros(3),
        watch=np.zeros(2),
        row=np.full(1, -1),
        world=np.zeros(4, np.uint64),
    )


@compiled
def live(
    mind: FiniteMind, walk: Walk, rule: Rule, episode: Episode, over: bool, visited: Longs, stream: Words
) -> bool:
    """Learn from one step: add its states if they are new, update theta_t to theta_t+1, and move on.

    `over`: a new life begins after it. Returns False if a number is not finite. `visited` (2,) is overwritten.
    """
    for i in range(episode.rows.size):
        visited[i] = episode.rows[i]
        if visited[i] < 0 and mind.rows.shape[1] > 0:
            visited[i] = mind.rows[0, episode.states[i]]  # a step may lead back to its own state
        if visited[i] < 0:
            visited[i] = add_state(mind.memory, 0, episode.phi[i], episode.block[i], episode.legal[i])
            if mind.rows.shape[1] > 0:
                mind.rows[0, episode.states[i]] = visited[i]
            row_values(mind.memory, mind.values, visited[i])
    if not advance(mind, walk, rule, visited, episode.actions, episode.rewards, episode.goes_on, stream):
        return False
    walk.row[0] = -1 if over else visited[1]
    for k in range(walk.world.size):
        walk.world[k] = np.uint64(0)  # the environment is outside compiled code
    return True


@compiled
def advance(
    mind: FiniteMind,
    walk: Walk,
    rule: Rule,
    visited: Longs,
    actions: Longs,
    rewards: Floats,
    goes_on: bool,
    stream: Words,
) -> bool:
    """Learn from the transition from row visited[0] to visited[1], or to the end; theta_t becomes theta_t+1.

    Returns False if a factor or weight is not finite.
    """
    memory, factor, prior, values = mind.memory, mind.factor, mind.prior, mind.values
    if not add_transitions(mind, visited, actions, rewards, 1, goes_on):
        return False
    theta = values.theta[0]
    targets(memory, prior, values, rule.gamma)
    for i in range(memory.lives[0]):
        b = memory.live[0, i]
        solve(factor.U[0, b], factor.inv[0, b], theta[b])
        for k in range(mind.x.size):
            walk.mean[0, b, k] = theta[b, k]
        if rule.kind != NONE:
            disturb(factor.U[0, b], factor.inv[0, b], theta[b], walk.w[b], walk, i, prior.sigma, rule, stream)
        if not all_finite(theta[b]):
            return False
    walk.begun[0] = memory.lives[0]
    known_values(memory, values, 0)
    A = memory.block.shape[1] // memory.sum_head.shape[1]
    watch(memory, values, walk, rule, rewards[0], visited[0] * A + actions[0])
    return all_finite(values.V[0, : memory.states[0]]) and count(memory.counters, 1)


@compiled
def targets(memory: Memory, prior: Prior, values: Values, gamma: float) -> None:
    """theta <- A'b + ridge prior_mean; unlike in finite/rlsvi.py, V is of the same period, and discounted."""
    theta, V = values.theta[0], values.V[0]
    for i in range(memory.lives[0]):
        b = memory.live[0, i]
        for k in range(theta.shape[1]):
            theta[b, k] = memory.reward[0, b, k] + prior.ridge * prior.mean[0, b, k]
    for e in range(memory.sums[0]):
        b, v = memory.sum_block[0, e], gamma * V[memory.sum_next[0, e]]
        for k in range(theta.shape[1]):
            theta[b, k] += memory.into[0, e, k] * v


@compiled
def disturb(
    U: Floats, inv: Floats, theta: Floats, w: Floats, walk: Walk, i: int, sigma: float, rule: Rule, stream: Words
) -> None:
    """theta <- theta + w_t+1 for the i-th live block; `w` contains w_t or z_t and is updated to t + 1.

    The whitened noise of a block starts from its stationary distribution, the paper's noise from 0.
    """
    e, gamma, kind = walk.e, rule.gamma, rule.kind
    other = math.sqrt(1.0 - gamma * gamma)
    for k in range(e.size):
        e[k] = normal(stream)
        if kind == WHITENED:
            w[k] = gamma * w[k] + other * e[k] if i < walk.begun[0] else e[k]
            e[k] = w[k]
    solve_upper(U, inv, e)
    for k in range(e.size):
        if kind == PAPER:
            w[k] = other * w[k] + gamma * sigma * e[k]
            theta[k] += w[k]
        else:
            theta[k] += sigma * e[k]


@compiled
def watch(memory: Memory, values: Values, walk: Walk, rule: Rule, reward: float, pair: int) -> None:
    """Record the largest reward, feature and target, and whether rewards, prior and discount explain it."""
    walk.reach[0] = max(walk.reach[0], abs(reward))
    for k in range(memory.phi.shape[1]):
        walk.reach[1] = max(walk.reach[1], abs(memory.phi[0, k, pair]))
    largest = 0.0
    for j in range(memory.states[0]):
        largest = max(largest, abs(values.V[0, j]))
    walk.reach[2] = walk.reach[0] + rule.gamma * largest
    explained = explained_target(walk, rule)
    walk.watch[EXCESS] = walk.reach[2] / explained if explained > 0.0 else 0.0
    if walk.watch[EXCESS] > rule.diverged_above:
        walk.watch[DIVERGED] = 1.0


@compiled
def explained_target(walk: Walk, rule: Rule) -> float:
    """Return the largest target that rewards, prior and discount explain."""
    return float((walk.reach[0] + walk.reach[1] * rule.spread) / (1.0 - rule.gamma))


@compiled
def row_values(memory: Memory, values: Values, row: int) -> None:
    """Compute Q and V under theta_t at one known state, for instance when it was just added."""
    Q, V, theta = values.Q[0], values.V[0], values.theta[0]
    A = Q.size // V.size
    best = -np.inf
    for pair in range(row * A, row * A + A):
        Q[pair] = memory.barred[0, pair]
        for k in range(theta.shape[1]):
            Q[pair] += memory.phi[0, k, pair] * theta[memory.block[0, pair], k]
        best = max(best, Q[pair])
    V[row] = best


@compiled
def place_values(theta: Floats, block: Ints, phi: Floats, Q: Floats) -> None:
    """Compute Q under theta (B, d) at an observation that is not known yet, equal to a later `row_values`."""
    for a in range(Q.size):
        Q[a] = 0.0
        for k in range(theta.shape[1]):
            Q[a] += phi[a, k] * theta[block[a], k]


# ---- The learner of continual agents: a memory with a single period, its posterior, and theta_t ------------


class ContinualLearner(FiniteLearner):
    """The regression of one value function, repeated in every step; an episode of the contract is one step."""

    keeps_data = False  # its targets are discounted, which `evidence` does not support

    def __init__(self, task: Task, mind: FiniteMind, features: Features, rule: Rule) -> None:
        super().__init__(task, mind, features)
        self.rule, self.walk = rule, new_walk(features.blocks, features.dim)
        self.mind.values.theta[:] = self.walk.mean[:] = self.mind.prior.mean

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the row of an observation, and its features if it is not known; there is a single period."""
        return super().look(0, observation, mask, learning)

    def here(self) -> Place | None:
        """Where the agent is; None at the beginning of a life."""
        row = int(self.walk.row[0])
        if row < 0:
            return None
        state = np.flatnonzero(self.mind.rows[0] == row)  # empty if observations are not numbered
        legal = self.mind.memory.barred[0, self.pairs(row)] == 0.0
        return Place(0, int(state[0]) if len(state) else -1, legal, row)

    def watched(self) -> tuple[float, bool, float]:
        """The largest target over the explained one, whether it was ever too large, and the explained one."""
        excess, diverged = self.walk.watch
        return excess, diverged > 0.0, explained_target(self.walk, self.rule)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Values:
        """Return the values of theta_t from the last step, or of theta-bar_t."""
        if sampled:
            return self.mind.values
        mean = self.blank_values()
        mean.theta[:] = self.walk.mean
        known_values(self.mind.memory, mean, 0)
        return mean

    def values(self, plan: Values, place: Place) -> Floats:
        """Return Q under a plan, for seen and unseen states."""
        if place.block is None:
            return plan.Q[0, self.pairs(place.row)].copy()
        Q = np.empty(self.task.actions)
        place_values(plan.theta[0], place.block, place.x, Q)
        return Q

    def live(self, step: Step, over: bool, stream: Words) -> Self:
        """Learn from one step, in one compiled call; `over`: a new life begins after it."""
        self.make_room(2)
        episode = self.stacked([step])
        mind, walk = self.copies() if self._may_break(episode.phi) else (self.mind, self.walk)
        if not live(mind, walk, self.rule, episode, over, np.empty(2, np.int64), stream):
            raise diverged()
        self.mind, self.walk = mind, walk
        return self

    def copies(self) -> tuple[FiniteMind, Walk]:
        """Return copies of all that a step changes, to try steps on that may break."""
        mind, walk = self.mind, deepcopy(self.walk)
        rows, memory, factor, values = deepcopy((mind.rows, mind.memory, mind.factor, mind.values))
        return mind._replace(rows=rows, memory=memory, factor=factor, values=values), walk

    def _may_break(self, phi: Floats) -> bool:
        """Return whether numbers are so large that the next step could overflow float64."""
        theta, ridge = self.mind.values.theta, self.mind.prior.ridge
        largest = max(np.abs(theta).max(initial=0.0), np.abs(phi).max(initial=0.0) ** 2)
        return not max(largest, self.rule.spread, 1.0 / ridge) < 1e40

    def remember(self, steps: list[Step], plan: Values, ended: bool) -> Self:
        """Raise an error: this learner learns step by step, not from episodes."""
        raise NotImplementedError("a continual learner learns from one step at a time: call live")

    def kept(self) -> dict[str, Any]:
        """Return the factor, theta, its noise, and where the agent is."""
        arrays = super().kept() | flat(walk=self.walk) | {"theta": self.mind.values.theta}
        del arrays["walk.e"]  # a work array
        return arrays

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        super().restore(file)
        memory, walk = self.mind.memory, self.walk
        if not -1 <= walk.row[0] < memory.states[0] or not 0 <= walk.begun[0] <= memory.lives[0]:
            raise ArchiveError("is damaged: an index in it points outside its tables")
        known_values(memory, self.mind.values, 0)
