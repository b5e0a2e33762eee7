"""Tables shaped like the results of the figures on agents: the bootstrap, worst cases, DeepSea, ensembles, ..."""

import math

from tetris_tables import noise

from rlsvi_paper.claim import Outcome
from rlsvi_paper.theory.prior_regret import marks

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
TIMES = {"RLSVI": 1.0, "bootstrap": 1.2, "bootstrap of the data alone": math.inf}


def learning(width=0.05, **changes):
    """Learning times per state of the chain, by the agent; `alone` learns in runs of even seeds."""
    alone = changes.pop("alone", None)

    def brought(s):
        time = 4.0 * s["length"] * (TIMES | changes)[s["agent"]] * noise(s | {"agents": len(s["agent"])}, width)
        return {"time": 900.0 if alone and s["agent"] not in ("RLSVI", "bootstrap") and alone(s) else time}

    return {"bootstrap_time": brought}


def pooling(width=0.05, psrl=1.0, factor=lambda s: 0.3):
    """Regret as the root of the episodes, best at a scale of .1; that of PSRL as a multiple of RLSVI's, pooled."""

    def brought(s):
        level = 1.0 if s["agent"] == "PSRL" else 1.0 + abs(math.log10(s["scale"]) + 1)
        level *= psrl if s["agent"] == "PSRL" and s["pooled"] else 1.0
        level *= factor(s) if s["pooled"] else 1.0
        level *= noise(s | {"agents": len(s["agent"])}, width)
        return [{"episode": int(e), "regret": level * math.sqrt(e)} for e in marks(s["episodes"])]

    return {"homogeneous_regret": brought}


# The best scale of an agent, its share of the regret of random play there, and what a factor of ten makes of it.
NOISES = {
    "Russo": (0.01, 0.3, 1.7),
    "clipped": (0.003, 0.1, 2.6),
    "RLSVI": (0.1, 0.05, 2.0),
    "bounded targets": (0.1, 0.05, 2.0),
    "UCBVI": (0.001, 0.05, 2.0),
    "PSRL": (1.0, 0.1, 1.0),
    "RLSVI, Theorem 1": (1.0, 0.9, 1.0),
    "random play": (1.0, 1.0, 1.0),
}


def noisy(width=0.05, moved=10.0, worst=1.0, **shares):
    """Shares of the regret of random play by the scale; elsewhere than on random MDPs the best are `moved` down.

    worst : the largest share. shares : other shares at the best scale, by the agent, without "targets".
    """

    def brought(s):
        best, share, factor = NOISES[s["agent"]]
        share = shares.get(s["agent"].split()[0], share)
        if s["agent"] in ("Russo", "clipped") and s["task"] != "random MDPs":
            best /= moved
        if s["agent"] != "random play":
            share = min(share * factor ** (2 * abs(math.log10(s["scale"] / best))), worst)
            share *= noise(s | {"agents": len(s["agent"]), "tasks": len(s["task"])}, width)
        return [{"episode": int(e), "regret": share * float(e)} for e in marks(s["episodes"])]

    return {"worst_case_regret": brought}


def diving(width=0.05, power=1.6, found=lambda s: s["size"] < 20, **factors):
    """Learning times as a power of the size, multiplied by a factor of the agent; `found`: if dithering learns."""

    def brought(s):
        if s["agent"].startswith("ε"):
            return {"time": 900.0 if found(s) else math.inf}
        by = [factor for name, factor in factors.items() if name in s["agent"]]
        return {"time": s["size"] ** power * math.prod(by) * noise(s | {"agents": len(s["agent"])}, width)}

    return {"treasure_time": brought}


def gathering(width=0.05, power=-0.5, seed=1.0, shared=2.0):
    """Regret per agent as a power of their number, multiplied by a factor of the scheme."""

    def brought(s):
        factor = {"a seed for each agent": seed, "one shared draw": shared}.get(s["scheme"], 1.0)
        others = {"schemes": len(s["scheme"]), "tasks": len(s["task"])}
        return {"regret": 50.0 * s["agents"] ** power * factor * noise(s | others, width), "late": 0.0}

    return {"concurrent_regret": brought}


def stepping(width=0.05, draw=2.0, episode=2.0, one=2.0):
    """Regret per agent as a multiple of that with seeds, by words of the scheme."""

    def brought(s):
        factors = {"draw at every": draw, "planning once": episode, "one seed": one}
        factor = math.prod(factor for words, factor in factors.items() if words in s["scheme"])
        return {"regret": factor * noise(s | {"schemes": len(s["scheme"]), "tasks": len(s["task"])}, width)}

    return {"staggered_regret": brought}


def members(width=0.05, alone=lambda s: False, **factors):
    """Regret and learning time by the number of members, as multiples of RLSVI's: 10, 5, 1 and 1 unless told.

    alone : whether a run without a prior draw learns. factors : by words of the agent and the number of members.
    """

    def brought(s):
        M = s.get("members")
        if "no prior" in s["agent"]:
            return {"time": 90.0 if alone(s) else math.inf, "regret": 1.0}
        factor = {None: 1.0, 1: 10.0, 3: 5.0, 10: 1.0}.get(M, 1.0)
        factor = factors.get(f"{s['agent'].split()[0]}_{M}", factor)
        factor *= noise(s | {"agents": len(s["agent"]) + 100 * (M or 0), "tasks": len(s["task"])}, width)
        return {"time": 100.0 * factor, "regret": min(0.05 * factor, 1.0)}

    return {"ensemble_regret": brought}


def swinging(width=0.05, idle=lambda s: False, free=lambda s: True, top=lambda s: True, late=5.0, **shares):
    """Shares of rewarded episodes: .3 with noise, .1 dithering, .05 greedy, or as in `shares`.

    idle, free : whether the default agent finds the reward, with costs and without. top : whether noise finds it
    at the greatest height. late : the return at the end.
    """

    def brought(s):
        kind = {"def": "default", "RLS": "noise", "ε-g": "dithering", "gre": "greedy"}[s["agent"][:3]]
        share = ({"noise": 0.3, "dithering": 0.1, "greedy": 0.05, "default": 0.2} | shares)[kind]
        if kind == "default":
            share *= (idle if s["push_cost"] else free)(s)
        elif kind == "noise" and s["height"] > 0.9:
            share *= top(s)
        lucky = noise(s | {"agents": len(s["agent"])}, width)
        return {"rewarded": share * lucky, "up": 10 * share, "score": late, "late": late + 10 * (lucky - 1)}

    return {"swung": brought}


def found():
    return learning() | pooling() | noisy() | diving() | gathering() | stepping() | members() | swinging()


CASES = {
    ("deep-sea", "polynomial in N"): {
        YES: [diving()],
        NO: [diving(power=4.0), diving(table=300.0, power=1.0)],
        OPEN: [diving(power=3.0, width=0.3)],
    },
    ("deep-sea", "approximates posterior sampling"): {
        YES: [diving(), diving(ensemble=1.5)],
        NO: [diving(ensemble=3.0), diving(ensemble=math.inf)],
        OPEN: [diving(ensemble=2.0, width=0.3)],
    },
    ("deep-sea", "faster than a table"): {
        YES: [diving(coherent=0.5)],
        NO: [diving(coherent=2.0)],
        OPEN: [diving(width=0.3)],
    },
    ("deep-sea", "Dithering does not find"): {
        YES: [(40, diving())],
        NO: [
            (40, diving(found=lambda s: s["size"] < 20 or s["seed"] % 2)),
            (40, diving(found=lambda s: False)),
        ],
        OPEN: [
            (40, diving(found=lambda s: s["size"] < 20 or s["seed"] % 10 == 0)),
            (40, diving(found=lambda s: s["size"] < 20 and s["seed"] % 2)),
        ],
    },
    ("concurrent", "every agent gains from more"): {
        YES: [gathering()],
        NO: [gathering(power=0.5)],
        OPEN: [gathering(power=0.0, width=0.3)],
    },
    ("concurrent", "gain less from one another"): {
        YES: [gathering()],
        NO: [gathering(shared=0.5)],
        OPEN: [gathering(shared=1.0, width=0.3)],
    },
    ("concurrent", "as well as independent draws"): {
        YES: [gathering(), gathering(seed=0.5)],
        NO: [gathering(seed=2.0)],
        OPEN: [gathering(seed=1.25, width=0.3)],
    },
    ("seed-sampling", "must commit"): {
        YES: [stepping()],
        NO: [stepping(draw=0.5)],
        OPEN: [stepping(draw=1.0, width=0.3)],
    },
    ("seed-sampling", "must adapt"): {
        YES: [stepping()],
        NO: [stepping(episode=0.5)],
        OPEN: [stepping(episode=1.0, width=0.3)],
    },
    ("seed-sampling", "must differ"): {
        YES: [stepping()],
        NO: [stepping(one=0.5)],
        OPEN: [stepping(one=1.0, width=0.3)],
    },
    ("ensemble-size", "Three members are too few"): {
        YES: [members()],
        NO: [members(noise_3=1.1), members(random_1=0.9)],
        OPEN: [members(random_3=2.0, width=0.3)],
    },
    ("ensemble-size", "Ten members are enough"): {
        YES: [members(), members(noise_100=2.0)],
        NO: [members(noise_10=2.0), members(random_10=math.inf)],
        OPEN: [members(noise_10=1.1, width=0.3)],
    },
    ("ensemble-size", "an ensemble approaches RLSVI"): {
        YES: [members(), members(random_100=2.0)],
        NO: [members(noise_100=2.0), members(noise_100=0.4)],
        OPEN: [members(noise_100=1.25, width=0.3)],
    },
    ("ensemble-size", "without a prior draw"): {
        YES: [(40, members())],
        NO: [(40, members(alone=lambda s: s["seed"] % 2)), (40, members(noise_10=math.inf, random_100=math.inf))],
        OPEN: [(40, members(alone=lambda s: s["seed"] % 10 == 0))],
    },
    ("swing-up", "does not find the reward"): {
        YES: [(40, swinging())],
        NO: [(40, swinging(idle=lambda s: s["seed"] % 2))],
        OPEN: [swinging(), (40, swinging(idle=lambda s: s["seed"] % 10 == 0))],
    },
    ("swing-up", "Where pushing is free"): {
        YES: [(40, swinging())],
        NO: [(40, swinging(free=lambda s: s["height"] > 0.9))],
        OPEN: [(40, swinging(free=lambda s: s["seed"] % 2))],
    },
    ("swing-up", "Noise of a suitable size"): {
        YES: [(10, swinging())],
        NO: [(10, swinging(dithering=0.6)), (10, swinging(greedy=0.6))],
        OPEN: [(10, swinging(dithering=0.3, width=0.3))],
    },
    ("swing-up", "finds the sparsest"): {
        YES: [(40, swinging())],
        NO: [(40, swinging(top=lambda s: False))],
        OPEN: [(40, swinging(top=lambda s: s["seed"] % 2))],
    },
    ("swing-up", "worth its pushes"): {
        YES: [(10, swinging())],
        NO: [(10, swinging(late=-5.0))],
        OPEN: [(10, swinging(late=0.0, width=0.3))],
    },
    ("worst-case", "hardly learns in the time"): {
        YES: [noisy()],
        NO: [noisy(worst=0.7), noisy(RLSVI=0.7)],
        OPEN: [noisy(RLSVI=0.5, width=0.3)],
    },
    ("worst-case", "worse on another than RLSVI's"): {
        YES: [noisy()],
        NO: [noisy(moved=1.0, clipped=0.05), noisy(RLSVI=0.9)],
        OPEN: [noisy(moved=1.0, clipped=0.12, width=0.3)],
    },
    ("worst-case", "Clipping lowers the regret"): {
        YES: [noisy()],
        NO: [noisy(clipped=0.5)],
        OPEN: [noisy(clipped=0.3, width=0.3)],
    },
    ("worst-case", "Bounded targets change little"): {
        YES: [noisy()],
        NO: [noisy(bounded=0.1), noisy(bounded=0.02)],
        OPEN: [noisy(bounded=0.075, width=0.3)],
    },
    ("bootstrap", "beyond the specific implementation"): {
        YES: [learning()],
        NO: [learning(bootstrap=20.0), learning(bootstrap=math.inf)],
        OPEN: [learning(bootstrap=4.0, width=0.3)],
    },
    ("bootstrap", "via a nonparametric bootstrap"): {
        YES: [learning(), learning(bootstrap=0.3)],
        NO: [learning(bootstrap=3.0), learning(bootstrap=math.inf)],
        OPEN: [learning(bootstrap=1.6, width=0.3)],
    },
    ("bootstrap", "artificial data are needed"): {
        YES: [(40, learning())],
        NO: [(40, learning(alone=lambda s: s["seed"] % 2))],
        OPEN: [learning(), (40, learning(alone=lambda s: s["seed"] % 10 == 0))],
    },
    ("homogeneous", "close connection to PSRL"): {
        YES: [pooling(), pooling(psrl=0.8)],
        NO: [pooling(psrl=4.0), pooling(psrl=0.2)],
        OPEN: [pooling(psrl=0.5, width=0.3)],
    },
    ("homogeneous", "a lower regret"): {
        YES: [pooling()],
        NO: [
            pooling(factor=lambda s: 2.0),
            pooling(factor=lambda s: 2.0 if s["agent"] == "UCRL2" else 0.3),
            pooling(factor=lambda s: 2.0 if s["horizon"] == 10 else 0.3),
        ],
        OPEN: [pooling(factor=lambda s: 1.0, width=0.3)],
    },
}
