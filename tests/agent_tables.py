"""Tables in the shape of the results of the figures on the bootstrap and on periods that are alike."""

import math

from rlsvi.paper.claim import Outcome
from rlsvi.paper.theory.prior_regret import marks
from tetris_tables import noise

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


def found():
    return learning() | pooling()


CASES = {
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
