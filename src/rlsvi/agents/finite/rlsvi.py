"""RLSVI: sample a statistically plausible value function, act greedily on it for an episode, learn.

Algorithm 2 of the paper, with Algorithm 1 below:

    for l = 0, 1, ..
        compute theta_l0, .., theta_l,H-1 by Algorithm 1            (plan)
        observe s_l0
        for h = 0, .., H-1
            sample a_lh from argmax_a (Phi_h theta_lh)(s_lh, a)     (act, ties broken uniformly)
            observe r_lh and s_l,h+1
        observe r_lH                                                (paid with the last step)
"""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    LINEAR,
    Episode,
    MindLearner,
    Place,
    Workspace,
    broken,
    count,
    flat,
    is_full,
    learn,
    no_features,
    only_best,
    plan,
    plan_as,
    remember,
    restored_features,
    values,
    weights_shaped,
)
from rlsvi.agents.diagnosis import is_checked, is_explored
from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.finite.evidence import estimate_noise
from rlsvi.agents.finite.memory import Memory, add_state, add_transitions, empty, read_memory, resized
from rlsvi.bases import Basis, Features
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, ridge_of
from rlsvi.core.compile import (
    FOUR,
    ONE,
    THREE,
    TWO,
    Bools,
    Floats,
    Ints,
    Longs,
    Words,
    compiled,
    generic,
    kernel,
    unsigned,
)
from rlsvi.core.random import Seed, bits, normal, only_maximum, reseed
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.regression import ByEvidence, Factor, Noise, noise_of, prior_factor, solve_lower, solve_upper
from rlsvi.envs.task import Task
from rlsvi.mdp.finite import Table, mask_of

# ---- The common part of agents with a known number of periods: value iteration by regression on all episodes ----


@dataclass(kw_only=True, repr=False, eq=False)
class FiniteHorizonAgent(Agent):
    """Value iteration by regression over a known number of periods, the base of RLSVI and LSVI."""

    lam: float = 1.0
    basis: Basis | None = None
    horizon: int | None = None
    prior_mean: float | Floats = 0.0
    reward_offset: float = 0.0
    seed: Seed = None

    _fused = True
    _concurrent = True
    _remedy = "try a smaller lam= or a larger sigma="

    _constraints: ClassVar[Constraints] = LINEAR

    def _check(self) -> None:
        noise_of(*self._parameters())

    def _notice(self) -> None:
        """Warn if there was never a reward and hardly anything new is found any more."""
        if not getattr(self._learner, "keeps_data", False):
            super()._notice()
            return
        if not is_checked(self.episodes):
            return
        memory = self._learner.mind.memory
        if memory.squares.any():
            return
        met = np.arange(memory.into_count.shape[1]) < memory.sums[:, None]
        if is_explored(memory.into_count[met], self.episodes):
            self._miss_reward()

    def _parameters(self) -> tuple[float, Noise]:
        return self.lam, self.sigma

    def _prior(self, task: Task, features: Features) -> "Prior":
        mean = weights_shaped(self.prior_mean, (task.horizon, features.blocks, features.dim))
        lam, sigma = self._parameters()
        ridge, known, shape, scale = noise_of(lam, sigma)
        return (PriorOfNoise if shape > 0.0 else Prior)(mean, float(lam), ridge, known, shape, scale)

    def new_learner(self, task: Task, example: Any) -> Any:
        """Return a learner without experience."""
        return self._learner_of(task, self._features(task, example))

    def restored_learner(self, task: Task, file: Archive) -> Any:
        """Return the learner stored in a file, after checking all its arrays."""
        learner = self._learner_of(task, read_features(self, task, file))
        learner.restore(file)
        return learner

    def _learner_of(self, task: Task, features: Features) -> Any:
        """Return a learner with these features and without experience."""
        return FiniteLearner(task, new_mind(task, features, self._prior(task, features)), features)


# ---- RLSVI -------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, repr=False, eq=False)
class RLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration: an episode acts greedily on a sampled value function.

    In the first episode there are no data and the weights are the prior mean (the paper's footnote 1).

    Parameters
    ----------
    lam
        Prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma
        Standard deviation of the noise of a target r + V, > 0; larger values explore longer. InverseGamma(shape,
        scale) is a prior over its square, one for each period; the prior of the weights is then N(prior_mean,
        sigma^2 I / lam). ByEvidence() estimates lam and sigma from the data during learning.
    basis
        How states and actions map to weights. If None, the problem's own, or a table.
    horizon
        Number of periods H. If None, that of the environment.
    prior_mean
        Prior mean of the weights: a number, (weights,) or (H, weights).
    reward_offset
        Added to every reward before learning; -1 turns rewards {0, 1} into {-1, 0}.
    seed
        Determines all randomness, including the environment's.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.RLSVI(sigma=0.1, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=10), 100)
    RLSVI(lam=1.0, basis=None, horizon=None, prior_mean=0.0, reward_offset=0.0, seed=0, sigma=0.1)
    >>> agent.predict(0, deterministic=True)
    (1, 1)
    """

    sigma: Noise | ByEvidence = 0.1

    _found: Any = field(default=None, init=False)  # lam, sigma and the number of episodes at that time

    def _parameters(self) -> tuple[float, Noise]:
        if not isinstance(self.sigma, ByEvidence):
            return self.lam, self.sigma
        return self._found[:2] if self._found else (self.lam, float(self.sigma.sigma))

    def diagnostics(self) -> dict[str, float]:
        """Return the noise: the sigma of the last plan, as the mean over periods."""
        return {"noise": float(self._learner.mind.values.sigma.mean())}

    def _settle(self) -> None:
        """Update lam and sigma if they are due; calling it again has no effect."""
        due = isinstance(self.sigma, ByEvidence) and self.sigma.due(self.episodes)
        if due and (self._found is None or self._found[2] != self.episodes):
            lam, sigma, mind = estimate_noise(self._learner, *self._parameters())  # type: ignore[arg-type]
            self._learner.mind, self._found = mind, (lam, sigma, self.episodes)

    def _mind_for(self, episodes: int) -> tuple[Any, int]:
        """Return the mind for the fused loop, and for how many `episodes` its lam and sigma are valid."""
        if isinstance(self.sigma, ByEvidence):
            following = int(self.sigma.first)
            while following <= self.episodes:
                following *= 2
            episodes = min(episodes, following - self.episodes)
        return super()._mind_for(episodes)

    def _state(self) -> dict[str, Any]:
        return super()._state() | ({} if self._found is None else {"found": np.array(self._found, np.float64)})

    def restored_learner(self, task: Task, file: Archive) -> Any:
        """Return the learner stored in a file, after checking all its arrays."""
        if isinstance(self.sigma, ByEvidence) and "found" in file:
            lam, sigma, at = (float(number) for number in file.take("found", (3,)))
            ridge_of(lam, sigma)
            self._found = lam, sigma, int(min(at, 2.0**61))
        return super().restored_learner(task, file)


# ---- LSVI with dithering: the algorithms of appendix A that RLSVI is compared with -------------------------
#
# for l = 0, 1, ..
#     compute theta_l0, .., theta_l,H-1 by least squares          (Algorithm 3: Algorithm 1 without noise)
#     observe s_l0
#     for h = 0, .., H-1
#         a_lh ~ exp((Phi_h theta_lh)(s_lh, .) / eta)             (Algorithm 4, Boltzmann), or
#         a_lh uniform with probability epsilon, else greedy      (Algorithm 5, epsilon-greedy)
#         observe r_lh and s_l,h+1


@dataclass(kw_only=True, repr=False, eq=False)
class LSVI(FiniteHorizonAgent):
    """Least-squares value iteration with greedy, epsilon-greedy or Boltzmann exploration.

    Parameters
    ----------
    lam
        The ridge, > 0: theta minimises |A theta - b|^2 + lam |theta - prior_mean|^2. It corresponds to RLSVI's lam
        sigma^2.
    explore
        Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the episode.
    basis, horizon, prior_mean, reward_offset, seed
        As for RLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.LSVI(lam=0.01, explore=rlsvi.EpsilonGreedy(0.3), seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=4), 100).predict(0, deterministic=True)
    (1, 1)
    """

    explore: Explore = Greedy()

    _samples = False
    _remedy = "try rlsvi.RLSVI, which explores"


# ---- Algorithm 1, Randomized Least-Squares Value Iteration, and LSVI, which omits its noise ----------------
#
# Known noise: theta_h ~ N(mean, I / lam), targets b_i = x_i . theta_h + N(0, sigma^2), and ridge = lam sigma^2.
# Unknown noise, one sigma_h^2 per period: sigma_h^2 ~ InverseGamma(shape, scale), theta_h | sigma_h^2 ~ N(mean,
# sigma_h^2 I / lam), and ridge = lam. With n transitions sigma_h^2 is then drawn from
# InverseGamma(shape + n / 2, scale + (|b|^2 + ridge |mean|^2 - |L^-1 y|^2) / 2), where P = ridge I + A'A = L L'
# and y = A'b + ridge mean, and theta_h from N(P^-1 y, sigma_h^2 P^-1).


WIDTH = 64  # minimum number of pairs whose values are computed together


class Prior(NamedTuple):
    """The prior of the weights, and of the noise of a target."""

    mean: Floats  # (H, B, d)
    lam: float
    ridge: float
    sigma: float  # if the noise is known
    shape: float  # if the noise is unknown; 0 if it is known
    scale: float


class PriorOfNoise(Prior):
    """The same for unknown noise; a separate class, so that known noise compiles no sampling of sigma."""

    __slots__ = ()


class Values(NamedTuple):
    """One value function: the weights theta_h, and Q_h and V_h at the known states."""

    theta: Floats  # (H, B, d); undefined for blocks that are not live
    Q: Floats  # (H, C A)
    V: Floats  # (H, C)
    key: Words  # (1,) identifies the noise of the blocks that are not live
    spread: Floats  # (H,) and its scale
    sigma: Floats  # (H,) of the targets, known or drawn
    ordered: Longs  # (H,) number of leading known states with one block per action, in order
    tile: Floats  # (d, a multiple of A) work array: copies of theta_h, if B = A


def no_values(H: int, A: int, B: int, d: int, room: int) -> Values:
    """Return arrays for a value function."""
    return Values(
        np.zeros((H, B, d)),
        np.zeros((H, room * A)),
        np.zeros((H, room)),
        np.zeros(1, np.uint64),
        np.zeros(H),
        np.zeros(H),
        np.zeros(H, np.int64),
        np.zeros((d, -(-WIDTH // A) * A if A == B else 0)),
    )


@compiled
def value_iteration(mind: Any, sampled: bool, stream: Words) -> bool:
    """Algorithm 1: for h = H-1, .., 0 regress r + V_{h+1} on the features, and sample theta_h.

    If not `sampled`, theta_h is the posterior mean, which is LSVI with the same ridge.
    Returns False if a weight is not finite.
    """
    memory, factor, prior, values = mind.memory, mind.factor, mind.prior, mind.values
    values.key[0] = bits(stream) if sampled else np.uint64(0)
    for h in range(memory.states.size - 1, -1, -1):
        regression_targets(memory, prior, values, h)
        solved = draw_sigma(prior, mind, h, sampled, stream)
        sigma = values.sigma[h]
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            U, inv, theta = factor.U[h, b], factor.inv[h, b], values.theta[h, b]
            if not solved:
                solve_lower(U, inv, theta)
            if sampled:
                for k in range(theta.size):
                    theta[k] += sigma * normal(stream)
            solve_upper(U, inv, theta)
            if not all_finite(theta):
                return False
        known_values(memory, values, h)
        clip_values(prior, memory, values, h)
    return True


@generic
def clip_values(prior: Any, memory: Memory, values: Values, h: int) -> None:
    """Clip V_h at the known states to the bounds of the prior."""
    raise NotImplementedError


@clip_values.register(Prior)
def no_bounds(prior: Any, memory: Memory, values: Values, h: int) -> None:
    """Values have no bounds in Algorithm 1."""


@generic
def draw_sigma(prior: Any, mind: Any, h: int, sampled: bool, stream: Words) -> bool:
    """Set sigma_h and the prior's spread. Return True if this turned the live theta_h from y into L^-1 y.

    A prior with noise that is not drawn anew, such as a member of an ensemble, adds it to the live theta_h = y.
    """
    raise NotImplementedError


@draw_sigma.register(Prior)
def known_sigma(prior: Any, mind: Any, h: int, sampled: bool, stream: Words) -> bool:
    """Set the known sigma_h."""
    mind.values.sigma[h] = prior.sigma
    mind.values.spread[h] = 1.0 / math.sqrt(prior.lam) if sampled else 0.0
    return False


@draw_sigma.register(PriorOfNoise)
def sampled_sigma(prior: Any, mind: Any, h: int, sampled: bool, stream: Words) -> bool:
    """Draw sigma_h, unless only the posterior mean is needed, which does not depend on it."""
    if not sampled:
        return known_sigma(prior, mind, h, sampled, stream)
    memory, factor, values = mind.memory, mind.factor, mind.values
    misfit = squared_targets(memory, values, h)
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        theta, mean = values.theta[h, b], prior.mean[h, b]
        solve_lower(factor.U[h, b], factor.inv[h, b], theta)
        for k in range(theta.size):
            misfit += prior.ridge * mean[k] * mean[k] - theta[k] * theta[k]
    variate = gamma_variate(stream, prior.shape + 0.5 * memory.counts[h])
    values.sigma[h] = math.sqrt((prior.scale + 0.5 * max(misfit, 0.0)) / variate)
    values.spread[h] = 1.0 / math.sqrt(prior.lam) * values.sigma[h]
    return True


@compiled
def squared_targets(memory: Memory, values: Values, h: int) -> float:
    """Return |b|^2 in period h."""
    total: float = memory.squares[h]
    for e in range(memory.sums[h]):
        v = values.V[h + 1, memory.sum_next[h, e]]
        total += v * (2.0 * memory.into_reward[h, e] + memory.into_count[h, e] * v)
    return total


@compiled
def all_finite(theta: Floats) -> bool:
    """Return whether all numbers are finite, without an early exit, so that the loop can be vectorised."""
    broken = 0
    for k in range(theta.size):
        broken += 0 if abs(theta[k]) < np.inf else 1
    return broken == 0


@compiled
def regression_targets(memory: Memory, prior: Prior, values: Values, h: int) -> None:
    """theta_h <- A'b + ridge prior_mean, where b_i = r_i + V_{h+1}(s_i')."""
    d, sums = unsigned(values.theta.shape[2]), unsigned(memory.sums[h])
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        theta, reward, mean = values.theta[h, b], memory.reward[h, b], prior.mean[h, b]
        for k in range(d):
            theta[k] = reward[k] + prior.ridge * mean[k]
    if sums == 0:  # as in the last period, which has no next V
        return
    V, following, into = values.V[h + 1], memory.sum_next[h], memory.into[h]
    if values.theta.shape[1] == 1:
        add_in_order(values.theta[h, 0], into, following, V, sums)
    else:
        for e in range(sums):
            theta, v = values.theta[h, memory.sum_block[h, e]], V[following[e]]
            for k in range(d):
                theta[k] += into[e, k] * v


@kernel
def add_in_order(theta: Floats, into: Floats, following: Ints, V: Floats, count: unsigned) -> None:
    """theta += sum_e into[e] V[following[e]] for e < count, in this order, with few passes over theta."""
    d = unsigned(theta.size)
    fours = count - count % FOUR
    for e in range(unsigned(0), fours, FOUR):
        f, g, i = e + ONE, e + TWO, e + THREE
        v0, v1, v2, v3 = V[following[e]], V[following[f]], V[following[g]], V[following[i]]
        for k in range(d):
            theta[k] = (((theta[k] + into[e, k] * v0) + into[f, k] * v1) + into[g, k] * v2) + into[i, k] * v3
    for e in range(fours, count):
        v = V[following[e]]
        for k in range(d):
            theta[k] += into[e, k] * v


@compiled
def known_values(memory: Memory, values: Values, h: int) -> None:
    """Compute Q_h = phi . theta_h, -inf if illegal, and V_h = max_a Q_h at the states known in period h."""
    Q, V, theta, phi = values.Q[h], values.V[h], values.theta[h], memory.phi[h]
    n, A = unsigned(memory.states[h]), unsigned(Q.size // V.size)
    if theta.shape[0] == 1:
        dense_values(Q, memory.barred[h], phi, theta[0], n * A)
    elif in_order(memory, values, h):
        ordered_values(Q, memory.barred[h], phi, theta, values.tile, n * A)
    else:
        for pair in range(n * A):
            Q[pair] = memory.barred[h, pair]
        for k in range(theta.shape[1]):
            for pair in range(n * A):
                Q[pair] += phi[k, pair] * theta[memory.block[h, pair], k]
    for j in range(n):  # the first and the last action, which is all if there are two
        V[j] = max(Q[j * A], Q[j * A + (A - ONE)])
    for a in range(ONE, A - ONE):
        for j in range(n):
            V[j] = max(V[j], Q[j * A + a])


@kernel
def dense_values(Q: Floats, barred: Floats, phi: Floats, theta: Floats, pairs: unsigned) -> None:
    """Q = barred + theta . phi for one block; features are added in order, four per pass over Q."""
    d = unsigned(theta.size)
    head = (d - ONE) % FOUR + ONE  # 1 to 4 features, then fours
    w0 = theta[0]
    if head == ONE:
        for pair in range(pairs):
            Q[pair] = barred[pair] + phi[0, pair] * w0
    else:
        w1 = theta[1]
        for pair in range(pairs):
            Q[pair] = (barred[pair] + phi[0, pair] * w0) + phi[1, pair] * w1
    for k in range(TWO, head):
        w0 = theta[k]
        for pair in range(pairs):
            Q[pair] += phi[k, pair] * w0
    for k in range(head, d, FOUR):
        i, j, m = k + ONE, k + TWO, k + THREE
        w0, w1, w2, w3 = theta[k], theta[i], theta[j], theta[m]
        for pair in range(pairs):
            Q[pair] = (((Q[pair] + phi[k, pair] * w0) + phi[i, pair] * w1) + phi[j, pair] * w2) + phi[m, pair] * w3


@compiled
def in_order(memory: Memory, values: Values, h: int) -> bool:
    """Return whether every known state has one block per action, in order; checks only new states."""
    B = values.theta.shape[1]
    if values.tile.shape[1] == 0:
        return False
    while values.ordered[h] < memory.states[h]:
        j = values.ordered[h]
        for a in range(B):
            if memory.block[h, j * B + a] != a:
                return False
        values.ordered[h] = j + 1
    return True


@kernel
def ordered_values(Q: Floats, barred: Floats, phi: Floats, theta: Floats, tile: Floats, pairs: unsigned) -> None:
    """Q = barred + theta . phi for one block per action; features are added in order, theta laid out like phi."""
    B, d, width = unsigned(theta.shape[0]), unsigned(theta.shape[1]), unsigned(tile.shape[1])
    for k in range(d):
        for b in range(B):
            tile[k, b] = theta[b, k]
        for p in range(B, min(width, pairs)):
            tile[k, p] = tile[k, p - B]
    head = d % FOUR
    for c in range(unsigned(0), pairs, width):
        m = min(width, pairs - c)
        for p in range(m):
            Q[c + p] = barred[c + p]
        for k in range(head):
            for p in range(m):
                Q[c + p] += phi[k, c + p] * tile[k, p]
        for k in range(head, d, FOUR):
            i, j, z = k + ONE, k + TWO, k + THREE
            for p in range(m):
                e = c + p
                q = (Q[e] + phi[k, e] * tile[k, p]) + phi[i, e] * tile[i, p]
                Q[e] = (q + phi[j, e] * tile[j, p]) + phi[z, e] * tile[z, p]


@compiled
def new_values(
    alive: Bools, prior: Prior, values: Values, h: int, block: Ints, phi: Floats, Q: Floats, scratch: Words
) -> None:
    """Q_h = phi . theta_h at a state that is not known yet, given the blocks and features of its actions.

    A block that is not live has no data: its weights come from the prior, and are the same throughout an episode.
    """
    for a in range(block.size):
        b, q, x = block[a], 0.0, phi[a]
        if alive[h, b]:
            theta = values.theta[h, b]
            for k in range(unsigned(x.size)):
                q += x[k] * theta[k]
        else:
            mean = prior.mean[h, b]
            reseed(scratch, key_of_block(values.key[0], alive, h, b))
            for k in range(unsigned(x.size)):
                q += x[k] * (mean[k] + values.spread[h] * normal(scratch))
        Q[a] = q


@compiled
def key_of_block(key: np.uint64, alive: Bools, h: int, b: int) -> np.uint64:
    """Return the key of the weights that the prior gives to a block in period h."""
    return key ^ (np.uint64(h * alive.shape[1] + b + 1) * np.uint64(0x9E3779B97F4A7C15))


# ---- The mind of RLSVI and LSVI: all past episodes as sums, the posterior, and the value function acted on ----


class FiniteMind(NamedTuple):
    """A regression in every period, for finitely many states or for observations of any kind."""

    features: FeatureTable  # of finitely many states, otherwise empty
    rows: Ints  # (H, S) the row of a state in memory, or -1; (H, 0) for observations of any kind
    memory: Memory
    factor: Factor
    prior: Prior
    values: Values
    x: Floats  # (d,) work array
    own: Any = 0  # what another algorithm adds, whose mind derives from this one


plan.register(FiniteMind)(value_iteration)


@values.register(FiniteMind)
def finite_values(mind: Any, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Compute Q_h(s, .) for one of finitely many states, seen or unseen."""
    row = mind.rows[h, s]
    if row >= 0:
        for a in range(Q.size):
            Q[a] = mind.values.Q[h, row * Q.size + a]
    else:
        phi, block = mind.features.phi, mind.features.block
        features = phi[h if phi.shape[0] > 1 else 0, s]
        new_values(mind.memory.alive, mind.prior, mind.values, h, block[s], features, Q, scratch)


@only_best.register(FiniteMind)
def finite_only_best(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """Return the unique best action, read directly from the values of a known state."""
    row = mind.rows[h, s]
    return only_maximum(mind.values.Q[h], unsigned(row) * unsigned(Q.size), legal) if row >= 0 else -1


@learn.register(FiniteMind)
def finite_learn(mind: Any, table: Table, T: int, work: Workspace) -> bool:
    """Add the states of the episode that are new, then add the episode to the sums."""
    for h in range(T):
        s, legal = work.states[h], table.legal[mask_of(table, h)]
        work.visited[h] = known_row(mind, h, s, legal[s])
    added = add_episode(mind, work.visited, work.actions, work.rewards, T, False, work.scratch)
    return added and count(mind.memory.counters, T)


@remember.register(FiniteMind)
def finite_remember(mind: Any, episode: Episode, work: Workspace) -> bool:
    """Add an episode that was not played in the compiled loop, and its new states."""
    for h in range(episode.rows.size):
        row = episode.rows[h]
        if row < 0:
            row = add_state(mind.memory, h, episode.phi[h], episode.block[h], episode.legal[h])
            if mind.rows.shape[1] > 0:
                mind.rows[h, episode.states[h]] = row
        work.visited[h] = row
    T = episode.actions.size
    goes_on, scratch = episode.goes_on, work.scratch
    added = add_episode(mind, work.visited, episode.actions, episode.rewards, T, goes_on, scratch)
    return added and count(mind.memory.counters, T)


@generic
def add_episode(
    mind: Any, visited: Longs, actions: Longs, rewards: Floats, T: int, goes_on: bool, scratch: Words
) -> bool:
    """Learn from T steps through the known states `visited`, which may be overwritten. False if a factor failed.

    `goes_on`: the episode was truncated in state visited[T]; otherwise it terminated.
    """
    raise NotImplementedError


@add_episode.register(FiniteMind)
def finite_add(
    mind: Any, visited: Longs, actions: Longs, rewards: Floats, T: int, goes_on: bool, scratch: Words
) -> bool:
    """Add the transitions to the sums and the factors."""
    return add_transitions(mind, visited, actions, rewards, T, goes_on)


@is_full.register(FiniteMind)
def finite_is_full(mind: Any, episodes: int) -> bool:
    """Return whether room may be short; an episode adds at most a state and a sum per period."""
    memory, n = mind.memory, episodes
    for h in range(memory.states.size):
        if memory.states[h] + n > memory.sum_head.shape[1] or memory.sums[h] + n > memory.into.shape[1]:
            return True
    return False


@compiled
def known_row(mind: Any, h: int, s: int, legal: Bools) -> int:
    """Return the row of one of finitely many states, adding it if it is new."""
    if mind.rows[h, s] < 0:
        phi, block = mind.features.phi, mind.features.block
        mind.rows[h, s] = add_state(mind.memory, h, phi[h if phi.shape[0] > 1 else 0, s], block[s], legal)
    row: int = mind.rows[h, s]
    return row


def new_mind(task: Task, features: Features, prior: Prior, kind: Any = FiniteMind, own: Any = 0) -> Any:
    """Return the mind of a learner without experience: a FiniteMind, or of a kind that derives from it."""
    shape = task.horizon, task.actions, features.blocks, features.dim
    memory = empty(*shape)
    try:
        factor = prior_factor((task.horizon, features.blocks), features.dim, prior.ridge)
    except MemoryError:
        raise MemoryError(
            f"{task.horizon} periods x {features.blocks} blocks of {features.dim} features need "
            f"{8e-9 * task.horizon * features.blocks * features.dim**2:.0f} GB for their factors: use fewer "
            "features, or more and smaller blocks"
        ) from None
    return kind(
        features.table or no_features(features.dim),
        np.full((task.horizon, task.states or 0), -1, dtype=np.int32),
        memory,
        factor,
        prior,
        no_values(*shape, memory.sum_head.shape[1]),
        np.empty(features.dim),
        own,
    )


# ---- The learner of finite-horizon agents: a regression in every period, over all past episodes ------------


class FiniteLearner(MindLearner):
    """Regressions for finitely many states, or for observations of any kind.

    A state has one row in the tables of a period (see `mind.rows`); other observations get a new row each time.
    All that changes in learning is in `mind`: compiled code updates its arrays one episode at a time, and if
    arrays have to grow, the whole mind is replaced.
    """

    saved: ClassVar[tuple[str, ...]] = ("factor",)
    keeps_data = True  # as sums, from which everything can be recomputed

    mind: FiniteMind
    features: Features

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, (2,)."""
        return self.mind.memory.counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the row of an observation in period h, and its features if it is not known."""
        observation, legal = self.task.checked(observation), self.task.legal(mask)
        row = int(self.mind.rows[h, observation]) if self.task.states is not None else -1
        if row < 0:
            block, phi = self.features.at(h, observation)
            return Place(h, observation, legal, row, block, np.array(phi, dtype=np.float64))
        known = self.mind.memory.barred[h, self.pairs(row)] == 0.0
        return Place(h, observation, legal, row).narrowed(known, learning)

    def looked_at_again(self, place: Place) -> Place:
        """Return a place as it is now, since other agents may have learned of the same state in the meantime."""
        row = int(self.mind.rows[place.h, place.observation]) if self.task.states is not None else -1
        if row == place.row:
            return place
        known = self.mind.memory.barred[place.h, self.pairs(row)] == 0.0
        return Place(place.h, place.observation, place.legal, row).narrowed(known, learning=True)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Values:
        """Return a value function sampled from the posterior, or its mean, by Algorithm 1."""
        mind = self.mind if learning else self.mind._replace(values=self.blank_values())
        if not plan(mind, sampled, stream):
            raise broken()
        return mind.values

    def plan_as(self, k: int, sampled: bool, stream: Words) -> Values:
        """Return the next plan of number k of several agents that share what they learn; ANY: of all of them."""
        if not plan_as(self.mind, k, sampled, stream):
            raise broken()
        return self.mind.values

    def values(self, plan: Values, place: Place) -> Floats:
        """Return Q_h(s, .) under a plan, also for unseen states; -inf for actions that were not legal."""
        if place.block is None:
            return plan.Q[place.h, self.pairs(place.row)].copy()
        Q, scratch = np.empty(self.task.actions), np.empty(4, dtype=np.uint64)
        alive, prior = self.mind.memory.alive, self.mind.prior
        new_values(alive, prior, plan, place.h, place.block, place.x, Q, scratch)
        return Q

    def set_targets(self, prior: Prior, values: Values, h: int) -> float:
        """Set theta_h of live blocks to A'b + ridge mean, for targets with V_{h+1}, and return |b|^2."""
        regression_targets(self.mind.memory, prior, values, h)
        return squared_targets(self.mind.memory, values, h)

    def set_values(self, prior: Prior, values: Values, h: int) -> None:
        """Set Q_h and V_h of the known states, given theta_h."""
        known_values(self.mind.memory, values, h)
        clip_values(prior, self.mind.memory, values, h)

    def mind_for(self, episodes: int) -> Any:
        """Return the mind for the next episodes; there is room for at least one."""
        self.make_room()
        return self.mind

    def pairs(self, row: int) -> slice:
        """Return the positions of the actions of a known state."""
        return slice(row * self.task.actions, (row + 1) * self.task.actions)

    def blank_values(self, room: int | None = None) -> Values:
        """Return arrays for another value function, with room for `room` states, or for those known."""
        memory = self.mind.memory
        H, d, _ = memory.phi.shape
        room = memory.sum_head.shape[1] if room is None else room
        return no_values(H, self.task.actions, memory.alive.shape[1], d, room)

    def enlarged(self) -> Any:
        """Return the mind after making twice as much room, or as much as finitely many states can need."""
        states, sums = self.mind.memory.sum_head.shape[1], self.mind.memory.into.shape[1]
        S = self.mind.rows.shape[1]
        self.resize(max(states, min(2 * states, S + 1)), max(sums, min(2 * sums, S * self.features.blocks + 1)))
        return self.mind

    def make_room(self, spare: int = 0) -> None:
        """Make sure that there is room for another episode and `spare` more states."""
        memory = self.mind.memory
        used = memory.states.max(initial=0) + spare, memory.sums.max(initial=0) + spare
        rooms = memory.sum_head.shape[1], memory.into.shape[1]
        if used[0] < rooms[0] and used[1] < rooms[1]:
            return
        # a quarter more, since unused room slows down planning
        self.resize(*(r if n < r else max(n + 1, r + max(r // 4, 4)) for n, r in zip(used, rooms, strict=True)))

    def resize(self, states: int, sums: int) -> None:
        """Make room for so many states and sums per period."""
        memory, old = self.mind.memory, self.mind.values
        values = self.blank_values(states)
        for name in ("theta", "key", "spread", "sigma"):
            getattr(values, name)[:] = getattr(old, name)
        values.Q[:, : old.Q.shape[1]], values.V[:, : old.V.shape[1]] = old.Q, old.V
        self.mind = self.mind._replace(memory=resized(memory, states, sums), values=values)

    def state(self) -> dict[str, Any]:
        """Return the memory without unused room, and the factors."""
        mind = self.mind
        states, sums = (max(int(used.max()), 1) for used in (mind.memory.states, mind.memory.sums))
        memory = resized(mind.memory, states, sums)
        return flat(memory=memory) | self.kept() | {"rows": mind.rows}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        mind, H = self.mind, len(self.mind.memory.states)
        memory = read_memory(file, H, self.task.actions, self.features.blocks, self.features.dim)
        room = memory.sum_head.shape[1]
        if self.task.horizon and memory.sums[-1] != 0:
            raise ArchiveError("is damaged: it has states after the last period")
        rows = file.take_within("rows", mind.rows.shape, np.int32, -1, room - 1)
        if (rows.max(axis=1, initial=-1) >= memory.states).any():
            raise ArchiveError("is damaged: a state in it has a row that holds nothing")
        if self.features.table is not None and not _same_features(self.features.table, memory, rows):
            raise ArchiveError("was learned through another basis: give the one that it was learned with")
        self.mind = mind._replace(memory=memory, rows=rows, values=self.blank_values(room))
        self.refill(file)


def _same_features(table: FeatureTable, memory: Memory, rows: Ints) -> bool:
    """Return whether the states in memory have the features of a table, up to rounding on another machine."""
    A = table.block.shape[1]
    for h in range(len(rows)):
        s = np.flatnonzero(rows[h] >= 0)
        pairs = rows[h, s][:, None] * A + np.arange(A)
        kept, now = memory.phi[h].T[pairs], table.phi[h % len(table.phi), s]
        if (memory.block[h][pairs] != table.block[s]).any() or not np.allclose(kept, now, rtol=1e-9, atol=1e-12):
            return False
    return True


def read_features(agent: Agent, task: Task, file: Archive) -> Features:
    """Return the features that the agent in a file was trained with, after checking the shapes of its arrays."""
    of, dimensions = ("factor.U", 4) if "factor.U" in file else ("memory.reward", 3)
    H, B, d, *square = file.shape(of, dimensions)
    if H != max(task.horizon, 1) or min(B, d) < 1 or square not in ([], [d]):
        raise ArchiveError(f"is damaged: {of} with {H} x {B} blocks of {d} weights is not that of {task}")
    if file.shape("rows", 2) != (H, task.states or 0):
        raise ArchiveError(f"is damaged: its rows are not those of {task}")
    if file.shape("memory.block", 2) != (H, file.shape("memory.sum_head", 2)[1] * task.actions):
        raise ArchiveError(f"is damaged: its memory is not that of {task}")
    return restored_features(agent, task, B, d)
