"""How well a table can know Blackjack-v1 after a number of episodes, whoever chooses the actions.

`python -m benchmarks.practice.blackjack_floor [EPISODES]` prints the exact values of

    best    the best policy
    even    policies that are best under the counts of play at random, which tries both actions equally often
            (median and mean of ten runs)
    bound   policies that judge every hand by as many visits as any way to play can give to this hand, divided
            between its two actions in the best way, and know exactly what the hands reached next are worth. No way
            to play gives all hands so many visits at once. Estimates are taken as normal.
"""

import sys
from math import erfc, sqrt

import gymnasium as gym
import numpy as np

from benchmarks.practice.blackjack import CARDS, HANDS, HIT, ORDER, STICK, add, dealer, hitting, solve, sticking

RUNS = 10


def counts(episodes, seed):
    """What followed hands and actions in play at random: {(hand, action): [(reward, next hand or None), ..]}."""
    env, rng = gym.make("Blackjack-v1").unwrapped, np.random.default_rng(seed)
    seen = {(hand, action): [] for hand in HANDS for action in (STICK, HIT)}
    for episode in range(episodes):
        hand, over = env.reset(seed=seed if episode == 0 else None)[0], False
        while not over:
            action = int(rng.integers(2))
            following, reward, over, _, _ = env.step(action)
            seen[hand, action].append((reward, None if over else following))
            hand = following
    return seen


def planned(seen):
    """The best policy under counts; what was never tried is worth -1."""
    V, policy = {None: 0.0}, {}
    for hand in ORDER:
        outcomes = seen[hand, STICK], seen[hand, HIT]
        Q = [np.mean([reward + V[following] for reward, following in each]) if each else -1.0 for each in outcomes]
        policy[hand], V[hand] = int(np.argmax(Q)), max(Q)
    return policy


def reached(choice):
    """How often hands occur in an episode if `choice` says how often a hand hits."""
    often = dict.fromkeys(HANDS, 0.0)
    for one, p in CARDS.items():
        for two, q in CARDS.items():
            for up, r in CARDS.items():
                total, ace = add(*add(0, 0, one), two)
                often[total, up, ace] += p * q * r
    for total, up, ace in reversed(ORDER):
        for card, p in CARDS.items():
            larger, soft = add(total, ace, card)
            if larger <= 21:
                often[larger, up, soft] += p * often[total, up, ace] * choice[total, up, ace]
    return often


def bound(episodes):
    """What the policies of `bound` are worth."""
    value, best = solve()
    often, most = reached(best), reached(dict.fromkeys(HANDS, 1.0))  # those who always hit see most
    V = {}
    for total, up, ace in ORDER:
        Q = sticking(total, up, False), hitting(V, total, up, ace)
        V[total, up, ace] = max(Q)
        deviations = sqrt(drawn(total, up) - Q[STICK] ** 2), deviation(V, (total, up, ace), Q[HIT])
        gap, noise = abs(Q[HIT] - Q[STICK]), sum(deviations) / sqrt(episodes * most[total, up, ace])
        value -= often[total, up, ace] * gap * erfc(gap / noise / sqrt(2)) / 2
    return value


def drawn(total, up):
    """The mean of the squared reward of sticking: the chance not to draw."""
    return 1 - sum(p * dealer(*add(*add(0, 0, up), card))[total] for card, p in CARDS.items() if total > 16)


def deviation(V, hand, mean):
    """The standard deviation of what follows a hit."""
    total, up, ace = hand
    after = [(p, add(total, ace, card)) for card, p in CARDS.items()]
    square = sum(p * (1.0 if larger > 21 else V[larger, up, soft] ** 2) for p, (larger, soft) in after)
    return sqrt(max(square - mean**2, 0.0))


if __name__ == "__main__":
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    even = [solve(planned(counts(episodes, seed)))[0] for seed in range(RUNS)]
    print(f"best {solve()[0]:.4f}, bound {bound(episodes):.4f}", end=", ")
    print(f"even {np.median(even):.4f} (mean {np.mean(even):.4f})")
