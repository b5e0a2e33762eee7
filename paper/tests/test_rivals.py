"""Rivals that should fail: linear regret, random play and the prior meet no criterion of growth or of a level."""

import math
from functools import cache

import extension_tables
import pytest
import recsys_tables
import tetris_tables
import theory_tables
from tables import curve, figure, table
from test_claims import EXACT, few_draws, judged, number_of  # noqa: F401

from rlsvi_paper import FIGURES
from rlsvi_paper.chain.learning import dithering_bound, expected_first_reward
from rlsvi_paper.claim import Outcome

REWARDS = 10  # as many as count as learning


def random_chain(settings):
    """Random play takes so many episodes to ten rewards on a chain, on average, whatever K, λ and σ are."""
    time = REWARDS * expected_first_reward(settings["length"])
    return {"time": time if time <= settings["limit"] else math.inf, "misfit": settings.get("rho") or 0.0}


def linear_curve(settings):
    """Random play gets nothing on the chain of 50 states, and loses as much in every episode."""
    return curve(settings, lambda e: 0.3716 * e, time=math.inf, last_mistake=settings["episodes"])


CHAIN = {
    "learning_time": random_chain,
    "copied_time": random_chain,
    "regret_curve": linear_curve,
    "copied_regret": lambda s: {"lost": 1.5 * dithering_bound(s["length"])},  # by everybody, RLSVI too
}
LINEAR = dict.fromkeys(
    ["theorem", "RLSVI", "PSRL", "UCRL2", "UCBVI"], lambda s, e: 0.02 * theory_tables.never(s, e)
)
PRIOR = CHAIN | theory_tables.learned(**LINEAR)
NO_ROWS = tetris_tables.found(lambda s: 0.0)  # nobody removes a row, LSPI but for a few
RANDOM_TASTE = recsys_tables.found(recsys_tables.changed(RLSVI=(1.8, 1.8)))
UNLEARNED = recsys_tables.found(forgone=recsys_tables.slowly, alone=0.9)
DITHERING_LIFE = extension_tables.lives(dict.fromkeys(("paper", "whitened", *extension_tables.DITHERING), 0.01))
ANEW = extension_tables.walks({"paper": 0.0, "whitened": 0.99, "independent": 0.0})
RIVALS = {
    "chain-regret": (
        CHAIN,
        ["roughly 500", "maintains the optimal", "exploits the generalisation", "at least 10¹⁵"],
    ),
    "chain-length": (CHAIN, ["outperforms the bounds"]),
    "chain-features": (CHAIN, ["scales gracefully", "marginal effect", "far superior"]),
    "chain-scaling": (CHAIN, ["consistent with polynomial"]),
    "chain-agnostic": (CHAIN, ["There is some region", "what is intractable"]),
    "chain-lambda": (CHAIN, ["remarkably robust"]),
    "chain-sigma": (CHAIN, ["remarkably robust"]),
    "chain-features-many": (CHAIN, ["about linearly", "almost plateaus"]),
    "chain-quadratic": (CHAIN, ["polynomial in both", "seems to fit"]),
    "conjecture": (
        CHAIN,
        ["consistent with the conjecture", "The conjecture: if", "σ and 1/λ", "does not depend on"],
    ),
    "theorem": (
        PRIOR,
        ["Theorem 1: the", "The shape", "The proof arrives", "in contrast to dithering", "There are intelligent"],
    ),
    "tetris-readings": ({"reading_run": tetris_tables.reading(0.0, 0.0)}, ["about 4500"]),
    "tetris": (
        NO_ROWS,
        [
            "about 4500",
            "best published level",
            "as computed here",
            "many fewer games",
            "do not collapse",
            "learn from scratch",
            "completely greedy",
            "state of the art",
        ],
    ),
    "recsys-boltzmann": (
        RANDOM_TASTE,
        ["over a wide range", "when dithering", "To learn in time", "can be crucial"],
    ),
    "recsys-myopic": (
        RANDOM_TASTE,
        ["even the optimal myopic", "benchmark bandit", "simpler than", "eventually learns"],
    ),
    "continual": (DITHERING_LIFE | ANEW, ["incentivises exploration", "ensure autocorrelation"]),
}
# Sentences that no learner can meet or fail to meet by itself, and why.
FAILURE = "it says that something does not work"
COMPARED = "it compares two learners with each other, or two settings of one"
NO_LEARNING = "it is about problems, features or costs"
OTHERS = {
    "dithering": {
        "actions are uniformly": FAILURE,
        "first reward comes": FAILURE,
        "is exponential": FAILURE,
        "policy gradient": FAILURE,
    },
    "chain-agnostic": {"For large ρ": FAILURE, "For ρ = 0": NO_LEARNING},
    "chain-regret": {"is equivalent": COMPARED},
    "chain-lambda": {"Any scaling": COMPARED},
    "chain-sigma": {"Large values": COMPARED, "Too small": FAILURE},
    "theorem": {"close connection": COMPARED, "better those of optimistic": COMPARED},
    "tetris": {
        "far superior linear": COMPARED,
        "memory of past": COMPARED,
        "improves significantly": COMPARED,
        "faster learning": COMPARED,
        "No fixed ε": FAILURE,
        "helpful for stability": COMPARED,
        "inverse gamma": COMPARED,
        "wider prior": COMPARED,
    },
    "mini-tetris": {"greatly": COMPARED, "learns faster": COMPARED, "more extreme": COMPARED},
    "recsys-boltzmann": {"agnostic learning problem": NO_LEARNING},
    "recsys-myopic": {"does not learn much": FAILURE, "at first": COMPARED, "aim to learn": COMPARED},
    "incremental": {"incurs lower regret": COMPARED, "does not depend on the episode": NO_LEARNING},
    "continual": {"differ only slightly": NO_LEARNING, "plans of several steps": COMPARED},
    "lemma": {"Lemma 1: N": NO_LEARNING, "Lemma 2: given": NO_LEARNING, "proof of Lemma 1 holds": NO_LEARNING},
}


@cache
def results_of_rival(name):
    return table(figure(name), seeds=10, **RIVALS[name][0])


@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name, (_, claims) in RIVALS.items() for words in claims]
)
def test_a_rival_that_should_fail_does(name, words):
    verdict = judged(name, words, results_of_rival(name))
    assert verdict.outcome is Outcome.NOT_REPRODUCED, verdict


def test_bandits_that_learn_nothing_do_not_aim_at_the_myopic_policy():
    frame = table(figure("recsys-myopic"), seeds=10, **UNLEARNED)
    assert judged("recsys-myopic", "aim to learn", frame).outcome is Outcome.NOT_REPRODUCED


def test_every_sentence_of_the_paper_has_a_rival_or_a_reason_for_none():
    told = {
        (name, number_of(name, words))
        for name in FIGURES
        for words in (*RIVALS.get(name, ({}, []))[1], *OTHERS.get(name, {}))
    }
    computed = {(name, number_of(name, words)) for name, words, *_ in EXACT}
    assert not told & computed
    ours = {(name, i) for name in FIGURES for i, it in enumerate(figure(name).claims) if it.kind == "ours"}
    every = {(name, i) for name in FIGURES for i in range(len(figure(name).claims))}
    missing = every - told - computed - ours
    assert not missing, [figure(name).claims[i].words for name, i in missing]
