"""Gymnasium's Blackjack-v1, exactly: the best policy and the value of any.

Cards are drawn with replacement; the dealer sticks on 17 or more. By the rules that `make` gives it (sab=True), a
player who sticks on a natural, an ace and a ten at once, wins unless the dealer has one too. Observations do not
tell a natural from another soft 21; the deal does.
"""

from functools import cache

import numpy as np

CARDS = {card: (4 if card == 10 else 1) / 13 for card in range(1, 11)}
STICK, HIT = 0, 1
# Every observation of the player: the sum, the dealer's card, whether an ace counts 11.
HANDS = [(total, up, ace) for ace in (0, 1) for total in range(12 if ace else 4, 22) for up in range(1, 11)]
# The same, those first that hitting leads to: from hard hands to larger ones, from soft ones to larger or to hard
# ones; the hard ones of 10 and less lead to soft ones.
ORDER = sorted(HANDS, key=lambda hand: (hand[0] > 10 and not hand[2], hand[2], hand[0]), reverse=True)


def add(total, ace, card):
    """A hand and one more card: the sum, above 21 if lost, and whether an ace counts 11."""
    total, ace = (total + 11, 1) if card == 1 and total + 11 <= 21 else (total + card, ace)
    return (total - 10, 0) if total > 21 and ace else (total, ace)


@cache
def dealer(total, ace):
    """Probabilities of what the dealer ends with, 17 to 21, or 22 for a bust."""
    end = np.zeros(23)
    if total >= 17:
        end[min(total, 22)] = 1
        return end
    for card, p in CARDS.items():
        end += p * dealer(*add(total, ace, card))
    return end


@cache
def sticking(total, up, natural):
    """What sticking is worth."""
    value, first = 0.0, add(0, 0, up)
    for card, p in CARDS.items():
        other_natural = {up, card} == {1, 10}
        end = dealer(*add(*first, card))
        won = end[:total].sum() + end[22] - end[total + 1 : 22].sum()
        value += p * (float(not other_natural) if natural else won)
    return value


def hitting(V, total, up, ace):
    """What hitting is worth, of the values V of hands."""
    value = 0.0
    for card, p in CARDS.items():
        reached, soft = add(total, ace, card)
        value += p * (-1.0 if reached > 21 else V[reached, up, soft])
    return value


def solve(policy=None):
    """The value of a policy, {hand: action}, from the deal; None: of the best one, and that policy."""
    V, best = {}, {}
    for total, up, ace in ORDER:
        values = sticking(total, up, False), hitting(V, total, up, ace)
        best[total, up, ace] = int(np.argmax(values)) if policy is None else int(policy[total, up, ace])
        V[total, up, ace] = values[best[total, up, ace]]
    value = 0.0
    for one, p in CARDS.items():
        for two, q in CARDS.items():
            for up, r in CARDS.items():
                hand = add(*add(0, 0, one), two)
                natural = {one, two} == {1, 10} and best[hand[0], up, hand[1]] == STICK
                value += p * q * r * (sticking(21, up, True) if natural else V[hand[0], up, hand[1]])
    return float(value), best
