"""Tables in the shape of the results of the figures on the extensions, and what the claims are to make of them."""

import numpy as np

from rlsvi.paper.claim import Outcome
from tetris_tables import noise

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE


def regrets(more=lambda s: 2.0, width=0.03, kept=0.0):
    """Incremental agents have so many times the regret of the batch agent, and keep so much of the past."""

    def brought(s):
        factor = (1.0 if s["agent"] == "batch" else more(s)) * noise(s | {"length": len(s["agent"])}, width)
        at = np.unique(np.ceil(np.linspace(0, s["episodes"], 41)[1:]).astype(int))
        early, late = (50.0, 500.0) if s["agent"] == "batch" else (0.0, kept)
        return [
            {"episode": int(t), "regret": float(factor * t), "kept_early": early, "kept_late": late} for t in at
        ]

    return {"learning_regret": brought}


def lives(shares, width=0.01):
    """The share of the best average reward, all life long, by the agent."""

    def brought(s):
        share = shares.get(s["agent"], 0.98) * noise(s | {"length": len(s["agent"])}, width)
        return [{"part": part, "share": float(share)} for part in range(1, 11)]

    return {"living": brought}


def found():
    return regrets() | lives({"paper": 0.99, "whitened": 0.99, "independent": 0.9, "epsilon-greedy": 0.01})


CASES = {
    ("incremental", "incurs lower regret"): {
        YES: [regrets()],
        NO: [regrets(lambda s: 0.5), regrets(lambda s: 0.5 if s["nu"] == 0.1 else 2.0)],
        OPEN: [regrets(lambda s: 1.0, width=0.3)],
    },
    ("incremental", "does not depend on the episode"): {YES: [regrets()], NO: [regrets(kept=10.0)]},
    ("continual", "incentivises exploration"): {
        YES: [lives({"paper": 0.99, "epsilon-greedy": 0.01})],
        NO: [lives({"paper": 0.5, "epsilon-greedy": 0.01}), lives({"paper": 0.99, "epsilon-greedy": 0.5})],
        OPEN: [lives({"paper": 0.95, "epsilon-greedy": 0.01}, width=0.2)],
    },
    ("continual", "allows plans of several steps"): {
        YES: [lives({"whitened": 0.99, "independent": 0.5})],
        NO: [lives({"whitened": 0.5, "independent": 0.99})],
        OPEN: [lives({"whitened": 0.9, "independent": 0.9}, width=0.3)],
    },
}
EXACT = [("continual", "sampled to ensure autocorrelation", NO, "= 0.14 at gamma = 0.99")]
