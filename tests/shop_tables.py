"""Tables in the shape of what the figure on shops finds, and its claims."""

import numpy as np

from rlsvi.paper.claim import Outcome
from rlsvi.paper.shops import PARTS

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
LEVELS = {
    "RLSVI": 0.85,
    "linear bandit": 0.5,
    "pooled bandit": 0.4,
    "Thompson sampling": 0.0,
    "myopic policy": 0.95,
    "random": 0.0,
}


def usual(s):
    """Likes over random play, as a share of what is possible: pooling helps, sketching and waiting cost a bit."""
    level = LEVELS[s["agent"]] if s["pooled"] else 0.8
    return level * (0.95 if s["sketch"] else 1.0) * (0.98 if s["every"] == 10 else 1.0)


def shop(level, width=0.01):
    """Runs in which an agent has `level` of what is possible from the first customer on, give or take."""

    def rows(s):
        drift = width * np.random.default_rng(s["seed"]).standard_normal()
        likes = s["slots"] / 2 * (1 + level(s) + drift)
        ends = np.cumsum([len(part) for part in np.array_split(np.arange(s["customers"]), PARTS)])
        return [{"customer": int(end), "likes": float(likes)} for end in ends]

    return {"served": rows}


def found():
    """What jobs find if nothing else is said."""
    return shop(usual)


def agent(name, level, width=0.01):
    """One agent has another level."""
    return shop(lambda s: level if s["agent"] == name else usual(s), width)


def wavering(name, level, spread):
    """One agent has another level, that depends on the seed."""
    return shop(lambda s: level + spread * (-1) ** s["seed"] if s["agent"] == name else usual(s))


def saving(level, spread=0.0, **form):
    """One form of RLSVI has another level."""

    def of(s):
        mine = s["agent"] == "RLSVI" and all(s[key] == value for key, value in form.items())
        return level + spread * (-1) ** s["seed"] if mine else usual(s)

    return shop(of)


CASES = {
    ("recsys-scale", "outperform bandits"): {
        YES: [found()],
        NO: [agent("linear bandit", 0.95)],
        OPEN: [wavering("linear bandit", 0.8, 0.3)],
    },
    ("recsys-scale", "most of what there is to know"): {
        YES: [found()],
        NO: [agent("RLSVI", 0.6)],
        OPEN: [wavering("RLSVI", 0.72, 0.2)],
    },
    ("recsys-scale", "Thompson sampling does not learn"): {
        YES: [found()],
        NO: [agent("Thompson sampling", 0.3), agent("Thompson sampling", -0.3)],
        OPEN: [wavering("Thompson sampling", 0.1, 0.2)],
    },
    ("recsys-scale", "Pooling the slots"): {
        YES: [found()],
        NO: [saving(0.7, pooled=True, every=1)],
        OPEN: [saving(0.8, 0.2, pooled=True, every=1)],
    },
    ("recsys-scale", "A sample once in ten"): {
        YES: [found()],
        NO: [saving(0.5, pooled=False, every=10)],
        OPEN: [saving(0.64, 0.2, pooled=False, every=10)],
    },
    ("recsys-scale", "A sketch of half"): {
        YES: [found()],
        NO: [saving(0.5, pooled=False, sketch=10)],
        OPEN: [saving(0.64, 0.2, pooled=False, sketch=10)],
    },
}
