"""Tables in the shape of the results of the figures on recommendations, and what claims are to make of them."""

import numpy as np
from tetris_tables import noise

from rlsvi_paper.claim import Outcome

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE
RATES = {
    "RLSVI": (1.5, 0.1),
    "linear bandit": (1.2, 0.4),
    "linear bandit, pooled": (1.2, 0.4),
    "myopic": (0.3, 0.3),
}
FORGONE = {"linear bandit": (1.0, 0.2), "linear bandit, pooled": (1.0, 0.2)}


def rate(agent):
    """Regret a customer at first and in the end, as the paper has it."""
    return RATES.get(agent, (1.8, 1.8))


def instance_facts(s, best=4.3, misfit=0.13, fixed_order=2.5):
    return {"best": best, "states": 4521, "fixed_order": fixed_order, "misfit": misfit * noise(s, 0.02)}


def forgone(agent):
    """Likes forgone a customer against the myopic choice."""
    return FORGONE.get(agent, (1.4, 1.4))


def found(rates=rate, width=0.03, coded=lambda s: 1.0, forgone=forgone, falls=0.5, alone=0.1, **facts):
    """What all jobs find: losses a customer fall from one number to another, by the agent.

    falls : after which share of all customers what is forgone falls; regret does in the middle.
    alone : likes forgone in the end by Thompson sampling where context does not matter.
    """

    def brought(s):
        size = noise(s | {"agent_": len(s["agent"])}, width) * coded(s)
        at = np.unique(np.ceil(np.linspace(0, s["episodes"], 61)[1:]))

        def total(early, late, until):
            return size * (early * np.minimum(at, until) + late * np.maximum(at - until, 0.0))

        regret = total(*rates(s["agent"]), s["episodes"] / 2)
        lost = total(*forgone(s["agent"]), s["episodes"] * falls)
        return [
            {"episode": int(t), "regret": float(r), "forgone": float(f)}
            for t, r, f in zip(at, regret, lost, strict=True)
        ]

    return {
        "recommending": brought,
        "instance_facts": lambda s: instance_facts(s, **facts),
        "without_context": lambda s: {"first": 1.0, "last": alone * noise(s, width)},
    }


def changed(**rates):
    """Some agents have other rates; `_` in a name stands for a blank."""
    named = {name.replace("_", " "): values for name, values in rates.items()}
    return lambda agent: named.get(agent.partition(",")[0].partition(" 0")[0], rate(agent))


def dislikes(factor):
    """With rewards -1 and 0 the others have so many times the regret."""
    return lambda s: factor if s["coding"] == "-1, 0" and s["agent"] != "RLSVI" else 1.0


def slowly(agent):
    """The bandits forgo as much for ever."""
    return (1.4, 1.3)


CASES = {
    ("recsys-boltzmann", "when dithering strategies do not"): {
        YES: [found()],
        NO: [found(changed(RLSVI=(1.5, 0.5))), found(changed(Boltzmann=(1.8, 0.05)))],
        OPEN: [found(changed(RLSVI=(1.5, 0.39)), width=0.3)],
    },
    ("recsys-boltzmann", "To learn in time less than"): {
        YES: [found()],
        NO: [
            found(changed(RLSVI=(1.5, 1.2))),
            found(lambda agent: (1.8, 0.5) if agent == "RLSVI, table" else rate(agent)),
        ],
    },
    ("recsys-boltzmann", "can be crucial"): {
        YES: [found()],
        NO: [found(changed(greedy=(1.8, 0.1))), found(changed(RLSVI=(1.5, 1.5)))],
        OPEN: [found(changed(greedy=(1.8, 0.17)), width=0.3)],
    },
    ("recsys-myopic", "simpler than a multi-period"): {
        YES: [found(falls=0.2)],
        NO: [found(falls=0.8), found(forgone=slowly), found(changed(RLSVI=(1.8, 1.8)), falls=0.2)],
    },
    ("recsys-myopic", "aim to learn the myopic policy"): {
        YES: [found()],
        NO: [found(forgone=slowly), found(alone=0.9)],
        OPEN: [found(alone=0.5, width=0.3)],
    },
    ("recsys-boltzmann", "over a wide range of temperatures"): {
        YES: [(50, found())],
        NO: [
            found(coded=lambda s: 0.3 if s["agent"] == "Boltzmann 0.1" else 1.0),
            found(changed(RLSVI=(3.0, 3.0))),
        ],
        OPEN: [found(changed(RLSVI=(0.9, 0.9)), width=0.3), found()],
    },
    ("recsys-boltzmann", "if rewards are −1 and 0"): {
        YES: [found()],
        NO: [found(coded=dislikes(0.2))],
        OPEN: [found(coded=dislikes(0.45), width=0.3)],
    },
    ("recsys-boltzmann", "agnostic learning problem"): {YES: [found()], NO: [found(misfit=1e-9)]},
    ("recsys-myopic", "outperform even the optimal myopic policy"): {
        YES: [found()],
        NO: [found(changed(RLSVI=(1.5, 0.5)))],
        OPEN: [found(changed(RLSVI=(1.5, 0.38)), width=0.3)],
    },
    ("recsys-myopic", "outperform benchmark bandit algorithms"): {
        YES: [found()],
        NO: [found(changed(RLSVI=(1.5, 0.6))), found(changed(linear_bandit=(1.0, 0.05)))],
        OPEN: [found(changed(RLSVI=(1.5, 0.4)), width=0.3)],
    },
    ("recsys-myopic", "if rewards are −1 and 0"): {
        YES: [found()],
        NO: [found(changed(RLSVI=(1.5, 0.6))), found(coded=dislikes(0.05))],
        OPEN: [found(changed(RLSVI=(1.5, 0.38)), width=0.3)],
    },
    ("recsys-myopic", "does not learn much"): {
        YES: [found()],
        NO: [found(changed(Thompson=(1.8, 0.5))), found(fixed_order=2.6)],
    },
    ("recsys-myopic", "outperforms RLSVI at first"): {
        YES: [found()],
        NO: [found(changed(linear_bandit=(1.9, 0.4)))],
        OPEN: [found(changed(linear_bandit=(1.5, 0.4)), width=0.3)],
    },
    ("recsys-myopic", "eventually learns a richer policy"): {
        YES: [found()],
        NO: [found(changed(RLSVI=(1.5, 1.4)))],
        OPEN: [found(changed(RLSVI=(1.5, 0.3)), width=0.3)],
    },
}
EXACT = [
    ("recsys-boltzmann", "is 3ᴶ", NO, "3ᴶ = 243"),
    ("recsys-myopic", "implemented incrementally", YES, "after 100 and after 1000 customers"),
    ("recsys-boltzmann", "exponentially smaller", YES, "K = 110, 4521 states"),
]
