"""A policy gradient on the chain: the estimates of REINFORCE are 0 until the first reward."""

import math
from typing import NamedTuple

import numpy as np

from rlsvi import problems
from rlsvi.core.compile import Floats, Ints, Words, compiled
from rlsvi.core.random import pick, stream
from rlsvi.mdp import evaluate
from rlsvi.mdp.table import Table, first_state, transition
from rlsvi.paper.chain.experiments import phi_of, seeds_of
from rlsvi.problems import Problem


class Episode(NamedTuple):
    """Arrays that an episode is written to."""

    states: Ints  # (H,)
    actions: Ints  # (H,)
    rewards: Floats  # (H,)
    chances: Floats  # (A,), the probabilities of the actions of one state
    gradient: Floats  # (H, K), the estimate of the episode


def first_reward_of_policy_gradient(
    *, length: int, features: int | None, step_size: float, seed: int, limit: int
) -> dict[str, float]:
    """Episodes of REINFORCE until the first reward, infinite if not within `limit`.

    The policy is a softmax of phi theta, with a weight for each state and action or for each basis function. All
    weights are 0 at first; after every episode the estimate of the gradient times the step size is added.

    gradient : the largest number, in size, in the estimates before the first reward.
    regret : expected regret of these episodes, the one with the reward included.
    uneven : the difference, relative, between the value of their policy and of random play.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    phi, table = _features(problem), problem.mdp.table
    theta = np.zeros((table.horizon, phi.shape[-1]))
    played, found, largest = reinforce(table, phi, theta, step_size, limit, _blank(phi), stream(agent_seed))
    lost = problem.solution.V[0, 0] - evaluate(problem.mdp, softmax_policy(phi, theta))[0, 0]
    return {
        "time": float(played) if found else math.inf,
        "gradient": largest,
        "regret": played * lost,
        "uneven": abs(lost / problem.random_regret - 1.0),
    }


@compiled
def reinforce(
    t: Table, phi: Floats, theta: Floats, step_size: float, limit: int, episode: Episode, random: Words
) -> tuple[int, bool, float]:
    """Learn up to the first episode with a reward, but not from it.

    Returns the number of episodes, whether the last had a reward, and the largest number in the estimates before.
    """
    largest = 0.0
    for played in range(limit):
        if play(t, phi, theta, episode, random) != 0.0:
            return played + 1, True, largest
        estimate(phi, theta, episode)
        for h in range(theta.shape[0]):
            for k in range(theta.shape[1]):
                theta[h, k] += step_size * episode.gradient[h, k]
                largest = max(largest, abs(episode.gradient[h, k]))
    return limit, False, largest


@compiled
def play(t: Table, phi: Floats, theta: Floats, episode: Episode, random: Words) -> float:
    """Play an episode and return the sum of its rewards."""
    s, total = first_state(t, random), 0.0
    for h in range(t.horizon):
        softmax(phi, theta, h, s, episode.chances)
        a = pick(random, episode.chances)
        following, reward, _ = transition(t, h, h == t.horizon - 1, s, a, random)
        episode.states[h], episode.actions[h], episode.rewards[h] = s, a, reward
        s, total = following, total + reward
    return total


@compiled
def estimate(phi: Floats, theta: Floats, episode: Episode) -> None:
    """Write the estimate of the gradient: for each period the reward to go times the score of the action."""
    to_go = 0.0
    for h in range(theta.shape[0] - 1, -1, -1):
        s, chosen = episode.states[h], episode.actions[h]
        to_go += episode.rewards[h]
        softmax(phi, theta, h, s, episode.chances)
        for k in range(theta.shape[1]):
            score = phi[h, s, chosen, k]
            for a in range(phi.shape[2]):
                score -= episode.chances[a] * phi[h, s, a, k]
            episode.gradient[h, k] = to_go * score


@compiled
def softmax(phi: Floats, theta: Floats, h: int, s: int, chances: Floats) -> None:
    """Write the probabilities of the actions, proportional to exp(phi theta)."""
    largest, total = -math.inf, 0.0
    for a in range(phi.shape[2]):
        chances[a] = 0.0
        for k in range(phi.shape[3]):
            chances[a] += phi[h, s, a, k] * theta[h, k]
        largest = max(largest, chances[a])
    for a in range(phi.shape[2]):
        chances[a] = math.exp(chances[a] - largest)
        total += chances[a]
    for a in range(phi.shape[2]):
        chances[a] /= total


def softmax_policy(phi: Floats, theta: Floats) -> Floats:
    """The probabilities of all actions, (H, S, A)."""
    found = np.empty(phi.shape[:3])
    for h in range(phi.shape[0]):
        for s in range(phi.shape[1]):
            softmax(phi, theta, h, s, found[h, s])
    return found


def _features(problem: Problem) -> Floats:
    """The basis functions of a problem, (H, S, A, K); with a table one for each state and action."""
    t = problem.mdp.table
    if hasattr(problem.basis, "phi"):
        return phi_of(problem)
    each = np.eye(t.states * t.actions).reshape(t.states, t.actions, -1)
    return np.tile(each, (t.horizon, 1, 1, 1))


def _blank(phi: Floats) -> Episode:
    H, _, A, K = phi.shape
    return Episode(np.zeros(H, np.int32), np.zeros(H, np.int32), np.zeros(H), np.zeros(A), np.zeros((H, K)))
