"""Tables in the shape of the results of the figures on theory, and what claims are to make of them."""

import math
from functools import cache

from tetris_tables import noise

from rlsvi_paper.claim import Outcome
from rlsvi_paper.theory.bounds import proof_bound, regret_shape
from rlsvi_paper.theory.prior_regret import CONTROLS, FALLING, SCALES, THEOREM, marks

YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE


def optimism(**changes):
    """Random cases that are all as the lemmas say, except for `changes`; every fifth has a sum below 2."""
    fine = {
        "weights": 3,
        "smallest": 0.5,
        "gap": 1e-3,
        "error": 1e-12,
        "beta_gap": 1e-4,
        "beta_error": 1e-7,
        "normal_gap": 1e-3,
        "normal_error": 1e-12,
        "cdfs": 1,
        "densities": 2,
    }

    def brought(s):
        return [{**fine, "total": 0.5 if i % 5 == 4 else 3.0, **changes} for i in range(s["cases"])]

    return {"optimism_cases": brought}


def posterior(least=lambda seed: 5.0, name="least", last=0.1, error=1e-13):
    """The data of small MDPs; `name` is the column that `least` makes."""
    fine = {"least": 5.0, "mean": 5.0, "value": 5.0, "least_tuned": -9.0, "pairs": 8}
    return {
        "posterior_cases": lambda s: {**fine, name: least(s["seed"]), "last": last, "last_error": error},
    }


def shape(s, e):
    return at_size(regret_shape, s["states"], s["actions"], s["horizon"], e * s["horizon"])


def proof(s, e):
    return at_size(proof_bound, s["states"], s["actions"], s["horizon"], e * s["horizon"])


@cache
def at_size(bound, *arguments):
    return float(bound(*arguments))


def usual(s, e):
    """The theorem's regret, past its peak; UCRL2's by its bound; of the others a tenth, at their second scale."""
    if s["agent"] == THEOREM:
        return 0.5 * shape(s, e) * e**-0.1
    if s["agent"] == FALLING:
        return never(s, e)
    if s["agent"] in CONTROLS:
        return CONTROLS[s["agent"]] * never(s, e)
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


def noisy(formula, width=0.02):
    """Learning times by sigma and lambda."""
    return {
        "learning_time": lambda s: {
            "time": 1.0 * formula(s.get("sigma", 0.1), s.get("lam", 1.0)) * noise(s, width),
        },
    }


def copies(formula, width=0.02):
    """Learning times by copies of states and actions."""
    return {"copied_time": lambda s: {"time": 1.0 * formula(s["states"], s["actions"]) * noise(s, width)}}


def chains(rlsvi=lambda N: 3.0 * N**2, dithering=lambda N: 1.5 * 2 ** (N - 1), width=0.05):
    """What RLSVI and dithering lose on chains of each length."""

    def brought(s):
        made = rlsvi if s["agent"] == "RLSVI" else dithering
        return {"lost": float(made(s["length"]) * noise(s | {"agent_": len(s["agent"])}, width))}

    return {"copied_regret": brought}


def found():
    return {**optimism(), **posterior(), **learned(), **copies(lambda S, A: 300), **chains()}


def never(s, e):
    return 0.4 * s["horizon"] * e


def slowly(s, e):
    """A fifth of the first losses goes on, more or less."""
    return min(e, 10) + 0.2 * noise(s, 0.5) * max(e - 10, 0)


def flat(s, e):
    """Regret that grows about as √T."""
    return 0.5 * shape(s, e) * e**-0.02


def one_in_ten(seed):
    return -20.0 if seed % 10 == 0 else 3.0


def straddling(s, e):
    """Some rise faster than sqrt(T), some slower."""
    return shape(s, e) * e ** (0.1 if s["seed"] % 5 == 1 else -0.1)


CASES = {
    ("lemma", "Lemma 1: N"): {
        YES: [{}, optimism(gap=-1e-13)],
        NO: [optimism(gap=-1e-3), optimism(error=1e-7)],
    },
    ("lemma", "Lemma 2: given any data"): {
        YES: [{}, *(posterior(lambda seed: -3.0, name) for name in ("least", "mean", "value"))],
        NO: [
            *(posterior(lambda seed: -9.0, name) for name in ("least", "mean", "value")),
            posterior(one_in_ten),
            posterior(last=-0.01),
            posterior(error=1e-7),
        ],
    },
    ("lemma", "the proof of Lemma 1 holds"): {
        YES: [{}],
        NO: [
            optimism(**broken)
            for broken in (
                {"normal_gap": -1e-3},
                {"normal_error": 1e-7},
                {"beta_gap": -1e-3},
                {"beta_error": 1e-4},
                {"cdfs": 3},
                {"densities": 3},
            )
        ],
    },
    ("theorem", "Theorem 1: the expected"): {
        YES: [{}],
        NO: [learned(theorem=never), learned(theorem=lambda s, e: 0.1 * shape(s, e) * e**0.1)],
        OPEN: [learned(theorem=straddling)],
    },
    ("theorem", "The shape of that bound"): {
        YES: [learned(theorem=lambda s, e: flat(s, e) * (s["states"] * s["actions"] * s["horizon"]) ** -0.3)],
        NO: [
            learned(theorem=lambda s, e: 1e-3 * never(s, e)),
            *(learned(theorem=lambda s, e, n=n: flat(s, e) * s[n]) for n in ("states", "actions", "horizon")),
        ],
        OPEN: [{}, learned(theorem=straddling)],
    },
    ("theorem", "in contrast to dithering"): {
        YES: [{}, chains(lambda N: 0.1 * N**4)],
        NO: [
            chains(dithering=lambda N: 0.5 * (2 ** (N - 1) - 1)),
            chains(dithering=lambda N: 0.1 * N**2),
            chains(lambda N: 0.1 * 2**N),
        ],
        OPEN: [chains(dithering=lambda N: 2 ** (N - 1) - 1, width=0.5)],
    },
    ("theorem", "can say no"): {
        YES: [{}],
        NO: [
            learned(random_play=lambda s, e: shape(s, e) * e**-0.1),
            learned(**{"epsilon-greedy": lambda s, e: shape(s, e) * e**-0.1}),
        ],
        OPEN: [learned(**{"epsilon-greedy": straddling})],
    },
    ("theorem", "The proof arrives"): {
        YES: [learned(theorem=lambda s, e: proof(s, e) * e**-0.1)],
        NO: [
            learned(theorem=lambda s, e: 2 * proof(s, e)),
            learned(theorem=lambda s, e: 0.1 * proof(s, e) * e**0.1),
            learned(theorem=lambda s, e: 1e-3 * never(s, e)),
        ],
        OPEN: [learned(theorem=lambda s, e: 0.85 * proof(s, e) * e**-0.01, width=0.3)],
    },
    ("theorem", "better those of optimistic"): {
        YES: [learned(theorem=flat)],
        NO: [
            learned(theorem=flat, UCRL2=flat),
            learned(theorem=flat, UCRL2=lambda s, e: shape(s, e) / s["states"]),
        ],
        OPEN: [{}, learned(theorem=never, UCRL2=never)],  # where bounds of √T cannot show
    },
    ("theorem", "close connection to PSRL"): {
        YES: [{}, learned(PSRL=lambda s, e: 0.12 * shape(s, e))],
        NO: [
            learned(PSRL=lambda s, e: 0.5 * shape(s, e)),
            learned(RLSVI=lambda s, e: (0.3 if s["scale"] == 0.1 else 9.0) * shape(s, e)),
        ],
        OPEN: [learned(PSRL=lambda s, e: 0.2 * shape(s, e), width=0.3)],
    },
    ("theorem", "There are intelligent"): {
        YES: [{}],
        NO: [learned(UCBVI=never), learned(PSRL=never)],
        OPEN: [learned(UCRL2=slowly)],
    },
    ("conjecture", "one of σ and 1/λ"): {
        YES: [noisy(lambda sigma, lam: 100 * sigma**2), noisy(lambda sigma, lam: 100 * sigma / lam**0.5)],
        NO: [noisy(lambda sigma, lam: 10 * math.exp(0.3 * sigma)), noisy(lambda sigma, lam: sigma / lam**2)],
        OPEN: [noisy(lambda sigma, lam: 100, width=1.0)],
    },
    ("conjecture", "does not depend on the number"): {
        YES: [{}, copies(lambda S, A: 300 / S**0.5)],
        NO: [copies(lambda S, A: 10 * S), copies(lambda S, A: 10 * A)],
        OPEN: [copies(lambda S, A: 10 * (S * A) ** 0.5, width=1.0)],
    },
}
for words in ("consistent with the conjecture", "The conjecture: if"):
    CASES["conjecture", words] = {
        YES: [times(lambda N, K: 3.0 * (N - 1) ** 2 * K), times(lambda N, K: 1e-3 * (N - 1) ** 5 * K)],
        NO: [
            times(lambda N, K: 10 * math.exp(0.1 * N + 0.1 * K)),
            times(lambda N, K: 20 * math.exp(0.05 * N) * K),
            times(lambda N, K: 20 * N * math.exp(0.1 * K)),
        ],
        OPEN: [times(lambda N, K: 100.0, width=1.0)],
    }
EXACT = [
    ("lemma", "proofs of Lemma 2 and Theorem 1 holds", YES, "6 of 6 steps hold in all cases tried"),
    ("lemma", "empirical mean reward", NO, "which the proof needs above it, is so for all"),
    ("lemma", "are optimistic", NO, "bᴾ goes down to -0.497"),
    ("lemma", "Up to Õ the biases", NO, "bᴿ is up to 181 times as large at H = 5"),
    ("lemma", "coupling of Gammas", NO, "E[ỹ | y] is y, not E[y]"),
    ("lemma", "For any α, β > 0", NO, "cross 3 times below α + β = 0.205"),
    ("lemma", "it is enough that", NO, "up to 3 times for weights below 1 and up to 1 times"),
    ("lemma", "piece together", NO, "no case has α ≤ 1 and β ≤ 1"),
    ("lemma", "For α > 1, β ≤ 1", NO, "g reaches 0.91, and g(x_K) 0.71"),
    ("lemma", "df₁/dB", NO, "number 2 fails"),
    ("lemma", "largest possible B", NO, "for A < 1/3 the largest B is A"),
    ("theorem", "matches the worst-case lower bound", NO, "S, A and T match; the bound is larger by H"),
    ("conjecture", "meet the conditions", NO, "the reward is 1, σ is 0.1"),
]
