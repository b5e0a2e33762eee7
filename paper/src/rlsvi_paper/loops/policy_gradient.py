"""REINFORCE, a policy gradient, on a finite MDP: a softmax policy that learns after every episode."""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Floats, Ints, Words, compiled
from rlsvi.core.elementary import exp
from rlsvi.core.random import pick
from rlsvi.mdp.finite import Table, first_state, transition


class Rollout(NamedTuple):
    """Arrays that an episode is written to."""

    states: Ints  # (H,)
    actions: Ints  # (H,)
    rewards: Floats  # (H,)
    chances: Floats  # (A,), the probabilities of the actions of one state
    gradient: Floats  # (H, K), the estimate of the episode


def new_rollout(phi: Floats) -> Rollout:
    """Return arrays for episodes with the features phi, (H, S, A, K)."""
    H, _, A, K = phi.shape
    return Rollout(np.zeros(H, np.int32), np.zeros(H, np.int32), np.zeros(H), np.zeros(A), np.zeros((H, K)))


@compiled
def reinforce(
    t: Table, phi: Floats, theta: Floats, step_size: float, limit: int, episode: Rollout, random: Words
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
def play(t: Table, phi: Floats, theta: Floats, episode: Rollout, random: Words) -> float:
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
def estimate(phi: Floats, theta: Floats, episode: Rollout) -> None:
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
        chances[a] = exp(chances[a] - largest)
        total += chances[a]
    for a in range(phi.shape[2]):
        chances[a] /= total


def softmax_policy(phi: Floats, theta: Floats) -> Floats:
    """Return the probabilities of all actions, (H, S, A)."""
    found = np.empty(phi.shape[:3])
    for h, s in np.ndindex(phi.shape[:2]):
        softmax(phi, theta, h, s, found[h, s])
    return found
