"""Tables in the shape of the results of the figures on the extensions, and what the claims are to make of them."""

import agent_tables
import numpy as np
from tetris_tables import noise

from rlsvi_paper.claim import Outcome

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE


BATCH = {
    "batch": 1.0,
    "batch, sigma = .1": 1.1,
    "batch, sigma = 1": 2.0,
    "evidence from sigma = .1": 1.2,
    "evidence from sigma = 1": 1.7,
}


def regrets(more=lambda s: 2.0, width=0.03, growth=lambda s: 1.0, evidence=1.2):
    """Incremental agents have so many times the regret of the batch agent, and their cost grows so many times."""

    def brought(s):
        batch = s["agent"] in BATCH
        factor = (BATCH | {"evidence from sigma = .1": evidence})[s["agent"]] if batch else more(s)
        factor *= noise(s | {"length": len(s["agent"])}, width)
        at = np.unique(np.ceil(np.linspace(0, s["episodes"], 41)[1:]).astype(int))
        early, late = (50.0, 500.0) if batch else (100.0, 100.0 * growth(s))
        work = {"work_early": early, "work_late": late, "done_early": 0.5 * early, "done_late": 0.9 * late}
        return [{"episode": int(t), "regret": float(factor * t), **work} for t in at]

    return {"learning_regret": brought}


def lives(shares, width=0.01, features=None, diverged=(), unnoticed=(), spanning="coherent"):
    """The share of the best average reward, all life long, by the agent; and the seeds of lives that diverge."""

    def brought(s):
        known = features if features is not None and s["basis"] == "coherent" else shares
        share = known.get(s["agent"], 0.98) * noise(s | {"length": len(s["agent"])}, width)
        never = np.inf
        ended = 50.0 if s["basis"] == spanning and s["seed"] in diverged else never
        noticed = 40.0 if ended < never and s["seed"] not in unnoticed else never
        return [{"part": part, "share": float(share), "noticed": noticed, "ended": ended} for part in range(1, 11)]

    return {"continual_reward": brought}


def walks(correlations=None, width=0.002, change=0.01):
    """The correlation of consecutive perturbations, by their kind, and how much Sigma changes in a step."""
    theory = {"paper": 0.141, "whitened": 0.99, "independent": 0.0}

    def brought(s):
        rho = (correlations or theory)[s["noise"]] + noise(s | {"length": len(s["noise"])}, width) - 1.0
        return {
            "correlation": float(rho),
            "variance": 1.0,
            "change": change * float(noise(s, 0.05)),
            "largest": 0.5,
        }

    return {"perturbations": brought}


DITHERING = ("epsilon = .01", "epsilon = .1", "epsilon = .5", "epsilon from 1 to 0")
LOW = dict.fromkeys(DITHERING, 0.01)


def found():
    slow = {"paper": 0.99, "whitened": 0.99, "independent": 0.9, **LOW}
    return regrets() | lives(slow, diverged=(0,)) | walks() | agent_tables.found()


CASES = {
    ("incremental", "incurs lower regret"): {
        YES: [regrets()],
        NO: [
            regrets(lambda s: 0.5),
            regrets(lambda s: 0.5 if s["nu"] == 0.1 else 2.0),
            regrets(lambda s: 0.5 if s["agent"] == "gradient" else 2.0),
        ],
        OPEN: [regrets(lambda s: 1.0, width=0.3)],
    },
    ("incremental", "does not depend on the episode"): {
        YES: [regrets()],
        NO: [
            regrets(growth=lambda s: 2.0),
            regrets(growth=lambda s: 1.2 if s["agent"] == "gradient" else 1.0),
            regrets(growth=lambda s: 1.2 if s["nu"] == 0.1 else 1.0),
        ],
        OPEN: [regrets(growth=lambda s: 1.0 + 0.1 * (s["seed"] % 2))],
    },
    ("incremental", "need not be guessed"): {
        YES: [regrets()],
        NO: [regrets(evidence=3.0)],
        OPEN: [regrets(evidence=1.5, width=0.3)],
    },
    ("continual", "incentivises exploration"): {
        YES: [lives({"paper": 0.99, **LOW})],
        NO: [lives({"paper": 0.5, **LOW}), lives({"paper": 0.99, **LOW, "epsilon = .1": 0.5})],
        OPEN: [lives({"paper": 0.95, **LOW}, width=0.2)],
    },
    ("continual", "Dithering in its place"): {
        YES: [lives(LOW)],
        NO: [lives(LOW | {agent: 0.5}) for agent in DITHERING],
        OPEN: [lives(LOW | {"epsilon = .5": 0.1}, width=0.3)],
    },
    ("continual", "ensure autocorrelation"): {
        YES: [walks({"paper": 0.9, "whitened": 0.99, "independent": 0.0})],
        NO: [walks(), walks({"paper": 0.0, "whitened": 0.99, "independent": 0.0})],
        OPEN: [walks({"paper": 0.5, "whitened": 0.99, "independent": 0.0}, width=0.1)],
    },
    ("continual", "differ only slightly"): {YES: [walks()], NO: [walks(change=0.5)], OPEN: [walks(change=0.1)]},
    ("continual", "plans of several steps"): {
        YES: [lives({"whitened": 0.99, "independent": 0.5})],
        NO: [
            lives({"whitened": 0.5, "independent": 0.99}, features={"independent": 0.5}),
            lives({"independent": 0.5}, features={"whitened": 0.5, "independent": 0.99}),
        ],
        OPEN: [lives({"whitened": 1.1, "independent": 0.9}, width=0.3)],
    },
    ("continual", "the span of any Φ"): {
        YES: [lives({}), lives({}, diverged=(1,), spanning="random")],  # only functions that span Q* count
        NO: [lives({}, diverged=(1,)), lives({}, diverged=(1, 2), unnoticed=(2,))],
    },
}
CASES |= agent_tables.CASES
EXACT: list = []
