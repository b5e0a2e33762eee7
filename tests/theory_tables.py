"""Tables in the shape of the results of the figures on theory, and what claims are to make of them."""

import math

from rlsvi.paper.claim import Outcome
from rlsvi.paper.prior_drawn import SCALES, THEOREM, marks
from rlsvi.theory import proof_bound, regret_shape
from tetris_tables import noise

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE


def optimism(**changes):
    """Random cases that are all as the lemmas say, except for `changes`; every fifth has a sum below 2."""
    fine = {"weights": 3, "gap": 1e-3, "error": 1e-12, "beta_gap": 1e-4, "cdfs": 1, "densities": 2}

    def brought(s):
        return [{**fine, "total": 0.5 if i % 5 == 4 else 3.0, **changes} for i in range(s["cases"])]

    return {"optimism_cases": brought}


def posterior(least=lambda seed: 5.0, last=0.1):
    return {
        "posterior_cases": lambda s: {"least": least(s["seed"]), "least_tuned": -9.0, "last": last, "pairs": 8},
    }


def shape(s, e):
    size = s["states"], s["actions"], s["horizon"]
    return float(regret_shape(*size, e * s["horizon"]))


def proof(s, e):
    size = s["states"], s["actions"], s["horizon"]
    return float(proof_bound(*size, e * s["horizon"]))


def usual(s, e):
    """The theorem's regret; UCRL2's by its bound; of the others a tenth, at their second scale."""
    if s["agent"] == THEOREM:
        return 0.5 * shape(s, e)
    if s["agent"] == "UCRL2" and s["scale"] == 1:
        return 0.5 * shape(s, e) * s["states"] ** 0.5
    return shape(s, e) * (0.1 if s["scale"] in (SCALES[s["agent"]][0], 0.03) else 0.3)


def learned(width=0.03, **agents):
    """Regret by agent: a function of settings and episode; `_` in a name stands for a blank."""
    named = {THEOREM if name == "theorem" else name.replace("_", " "): made for name, made in agents.items()}

    def brought(s):
        made, factor = named.get(s["agent"], usual), noise(s | {"agent_": len(s["agent"])}, width)
        return [{"episode": int(e), "regret": factor * made(s, float(e))} for e in marks(s["episodes"])]

    return {"prior_regret": brought}


def times(formula, width=0.02):
    return {"learning_time": lambda s: {"time": formula(s["length"], s["features"]) * noise(s, width)}}


def found():
    return {**optimism(), **posterior(), **learned()}


def never(s, e):
    return 0.4 * s["horizon"] * e


def slowly(s, e):
    """A fifth of the first losses goes on, more or less."""
    return min(e, 10) + 0.2 * noise(s, 0.5) * max(e - 10, 0)


def one_in_ten(seed):
    return -20.0 if seed % 10 == 0 else 3.0


CASES = {
    ("lemma", "Lemma 1"): {
        YES: [{}, optimism(gap=-1e-13)],
        NO: [optimism(gap=-1e-3), optimism(error=1e-7)],
    },
    ("lemma", "Lemma 2: given any data"): {
        YES: [{}, posterior(lambda seed: -3.0)],
        NO: [posterior(lambda seed: -9.0)],
        OPEN: [posterior(one_in_ten)],
    },
    ("lemma", "Lemma 2 holds in the last period"): {YES: [{}], NO: [posterior(last=-0.01)]},
    ("lemma", "on the ends of v"): {YES: [{}], NO: [optimism(beta_gap=-1e-3)]},
    ("lemma", "It does for all"): {YES: [{}], NO: [optimism(cdfs=3)]},
    ("lemma", "cross at most twice"): {YES: [{}], NO: [optimism(densities=3)]},
    ("theorem", "Theorem 1"): {
        YES: [{}],
        NO: [learned(theorem=lambda s, e: 4 * shape(s, e)), learned(theorem=lambda s, e: e * s["horizon"] ** 2)],
        OPEN: [learned(theorem=lambda s, e: 2 * shape(s, e), width=0.3)],
    },
    ("theorem", "The proof"): {
        YES: [{}],
        NO: [learned(theorem=lambda s, e: 2 * proof(s, e))],
        OPEN: [learned(theorem=proof, width=0.3)],
    },
    ("theorem", "better those of optimistic"): {
        YES: [{}],
        NO: [learned(UCRL2=lambda s, e: shape(s, e) / s["states"])],
        OPEN: [learned(UCRL2=shape, width=0.5)],
    },
    ("theorem", "close connection to PSRL"): {
        YES: [{}, learned(PSRL=lambda s, e: 0.12 * shape(s, e))],
        NO: [
            learned(PSRL=lambda s, e: 0.5 * shape(s, e)),
            learned(RLSVI=lambda s, e: (0.3 if s["scale"] == 0.1 else 9.0) * shape(s, e)),
        ],
        OPEN: [learned(PSRL=lambda s, e: 0.2 * shape(s, e), width=0.3)],
    },
    ("theorem", "provably efficient"): {
        YES: [{}],
        NO: [learned(UCBVI=never), learned(PSRL=never)],
        OPEN: [learned(UCRL2=slowly)],
    },
    ("conjecture", "far beyond"): {
        YES: [times(lambda N, K: 10.0 * N)],
        NO: [times(lambda N, K: 2.0 ** (N - 1) / 10), times(lambda N, K: math.inf)],
        OPEN: [times(lambda N, K: 2.0 ** (N - 1) / 1000, width=1.0)],
    },
}
for words in ("consistent with the conjecture", "The conjecture: if"):
    CASES["conjecture", words] = {
        YES: [times(lambda N, K: 3.0 * (N - 1) ** 2 * K)],
        NO: [times(lambda N, K: 10 * math.exp(0.1 * N + 0.1 * K)), times(lambda N, K: 1e-3 * N**5 * K)],
        OPEN: [times(lambda N, K: 100.0, width=1.0), times(lambda N, K: 1.0 * N**3 * K, width=0.5)],
    }
EXACT = [
    ("lemma", "posterior of a table", YES, "agree to"),
    ("lemma", "empirical mean reward", NO, "RLSVI's mean above the posterior's, holds for all"),
    ("lemma", "optimistic bias terms", NO, "b^P goes down to -0.497"),
    ("lemma", "Up to O~", NO, "H = 5: 181 and 36"),
    ("lemma", "independent Gammas", YES, "for four pairs of shapes"),
    ("lemma", "coupling of Gammas", NO, "E[y~ | y] is y, not E[y]"),
    ("lemma", "For any alpha, beta > 0", NO, "cross 3 times below alpha + beta = 0.205"),
    ("lemma", "For alpha > 1, beta <= 1", NO, "g reaches 0.91 at alpha = 1.001, beta = 1"),
    ("lemma", ">= 1/9", YES, "where alpha = beta = 4/3"),
    ("lemma", "final region", YES, "the bounds at 1/3 are 0.0284 and 0.0355"),
    ("conjecture", "meet the conditions", NO, "the reward is 1, sigma 0.1"),
]
