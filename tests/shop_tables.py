"""Tables in the shape of what the figure on shops finds, and its claims."""

from functools import cache

import numpy as np
from benchmarks.recommendation_scale.runs import PARTS

from rlsvi.paper.claim import Outcome

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
LEVELS = {
    "RLSVI": 0.85,
    "linear bandit": 0.5,
    "greedy": 0.7,
    "tabular bandit": 0.0,
    "Thompson sampling": 0.0,
    "myopic policy": 0.8,
    "random": 0.0,
}
PRIOR = {1e2: 0.7, 1e3: 0.8, 1e4: 1.0, 1e5: 1.0, 1e6: 0.5}  # of what is gained


def usual(s):
    """Likes over random play, as a share of what is possible: pooling helps, all other savings cost a bit."""
    level = LEVELS[s["agent"]] * (1.0 if s["pooled"] else 0.9)
    level *= 0.95 if s["sketch"] and s["study"] == "saving" else 1.0
    level *= 0.98 if s["every"] and s["every"] > 1 else 1.0
    level *= PRIOR[s["lam"]] if s["study"] == "prior" else 1.0
    level *= 0.95 if s["study"] == "default" and s["lam"] == 1e4 else 1.0
    return level * (0.95 if s["at_once"] > 1 else 1.0)


def shop(level, width=0.01, first=1.0):
    """Runs in which an agent has `level` of what is possible, give or take; the bandit `first` times it early."""

    def rows(s):
        drift, of_agent = width * normal(s["seed"], len(s["agent"])), level(s)
        early = [first if s["agent"] == "linear bandit" and part < 2 else 1.0 for part in range(PARTS)]
        likes = [s["slots"] / 2 * (1 + times * of_agent + drift) for times in early]
        return [{"customer": end, "likes": float(x)} for end, x in zip(ends(s["customers"]), likes, strict=True)]

    return {"served": rows}


@cache
def normal(*seed):
    return np.random.default_rng(seed).standard_normal()


@cache
def ends(customers):
    """The last customer of each part of a run."""
    return np.cumsum([len(part) for part in np.array_split(np.arange(customers), PARTS)]).tolist()


def found(**options):
    """What jobs find if nothing else is said."""
    return shop(usual, **options)


def agent(name, level, spread=0.0, **form):
    """One agent has another level where the settings are those, for odd and even seeds by `spread` apart."""

    def of(s):
        mine = s["agent"] == name and all(s[key] == value for key, value in form.items())
        return level + spread * (-1) ** s["seed"] if mine else usual(s)

    return shop(of)


def saving(level, spread=0.0, **form):
    return agent("RLSVI", level, spread, study="saving", **form)


def default(level, spread=0.0, **form):
    return agent("RLSVI", level, spread, study="default", **form)


def crowd(level, spread=0.0, **form):
    return agent("RLSVI", level, spread, study="crowd", **form)


EXACT = {"pooled": False, "every": 1, "sketch": None, "remember": None}
HALF = {"pooled": False, "every": 1, "products": 16, "sketch": 8}
EIGHTH = {"pooled": True, "products": 100, "sketch": 12}
CASES = {
    ("recsys-scale", "not only benchmark bandit algorithms"): {
        YES: [found()],
        NO: [agent("linear bandit", 0.95), agent("tabular bandit", 0.95), agent("Thompson sampling", 0.95)],
        OPEN: [agent("linear bandit", 0.8, 0.3)],
    },
    ("recsys-scale", "even an optimal myopic system"): {
        YES: [found()],
        NO: [agent("myopic policy", 0.95), agent("myopic policy", 0.95, products=100)],
        OPEN: [agent("myopic policy", 0.8, 0.3)],
    },
    ("recsys-scale", "crucial that we can exploit generalization"): {
        YES: [found()],
        NO: [agent("RLSVI", 0.5), agent("tabular bandit", 0.3), agent("tabular bandit", -0.3)],
        OPEN: [agent("RLSVI", 0.6, 0.2), agent("tabular bandit", 0.1, 0.2)],
    },
    ("recsys-scale", "efficient generalization and exploration"): {
        YES: [found()],
        NO: [agent("greedy", 0.95)],
        OPEN: [agent("greedy", 0.8, 0.3)],
    },
    ("recsys-scale", "Thompson sampling does not learn"): {
        YES: [found()],
        NO: [agent("Thompson sampling", 0.3), agent("Thompson sampling", -0.3)],
        OPEN: [agent("Thompson sampling", 0.1, 0.2)],
    },
    ("recsys-scale", "outperforms RLSVI at first"): {
        YES: [found(first=1.9)],
        NO: [found()],
        OPEN: [agent("linear bandit", 0.85, 0.2)],
    },
    ("recsys-scale", "best prior of a grid"): {
        YES: [found()],
        NO: [
            agent("RLSVI", 0.95, study="prior", lam=1e6),
            agent("RLSVI", 0.95, study="prior", lam=1e2, sigma2=0.1),
            agent("linear bandit", 0.9, study="prior", lam=1e3),
        ],
        OPEN: [agent("greedy", 0.7, 0.3, study="prior", lam=1e3)],
    },
    ("recsys-scale", "is for many products"): {
        YES: [found(), default(0.1, pooled=True)],
        NO: [default(0.5, pooled=False, lam=0.2)],
        OPEN: [default(0.72, 0.2, pooled=False, lam=0.2)],
    },
    ("recsys-scale", "A Recommender as it comes"): {
        YES: [found(), default(0.1, pooled=True, lam=0.2)],
        NO: [default(0.5, pooled=True, lam=1e4), default(0.5, pooled=True, lam=1e4, products=20)],
        OPEN: [default(0.72, 0.2, pooled=True, lam=1e4)],
    },
    ("recsys-scale", "Pooling the slots"): {
        YES: [found()],
        NO: [saving(0.7, pooled=True, every=1)],
        OPEN: [saving(0.77, 0.2, pooled=True, every=1)],
    },
    ("recsys-scale", "A sample once in ten"): {
        YES: [found()],
        NO: [saving(0.5, pooled=False, every=10)],
        OPEN: [saving(0.62, 0.2, pooled=False, every=10)],
    },
    ("recsys-scale", "A sketch of half"): {
        YES: [found()],
        NO: [saving(0.5, **HALF)],
        OPEN: [saving(0.62, 0.2, **HALF)],
    },
    ("recsys-scale", "A sketch of an eighth"): {
        YES: [found(), saving(0.1, **{**EIGHTH, "sketch": 25})],
        NO: [saving(0.5, **EIGHTH)],
        OPEN: [saving(0.66, 0.2, **EIGHTH)],
    },
    ("recsys-scale", "last fifth of the customers alone"): {
        YES: [found()],
        NO: [saving(0.5, remember=40)],
        OPEN: [saving(0.62, 0.2, remember=40)],
    },
    ("recsys-scale", "Customers who overlap"): {
        YES: [found(), crowd(0.1, late=50.0)],
        NO: [crowd(0.6, at_once=50, late=0.0)],
        OPEN: [crowd(0.75, 0.2, at_once=50, late=0.0)],
    },
    ("recsys-scale", "Late and lost answers"): {
        YES: [found()],
        NO: [crowd(0.4, at_once=50, late=50.0, lost=0.1)],
        OPEN: [crowd(0.57, 0.2, at_once=50, late=50.0, lost=0.1)],
    },
}
