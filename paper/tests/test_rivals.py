"""Rivals that should fail: linear regret, random play and no rows meet no criterion of growth or of a level."""

import polars as pl
import pytest
from tables import LONG, judged, published, unlearned
from test_claims import few_draws  # noqa: F401

from rlsvi_paper.claim import Outcome

RLSVI = pl.col("agent").str.starts_with("RLSVI")
RIVALS = {  # by the figure: who fails, and the beginnings of the sentences that are then not reproduced
    "chain-regret": (
        True,
        ["roughly 500", "maintains the optimal", "exploits the generalisation", "at least 10¹⁵"],
    ),
    "chain-length": (True, ["outperforms the bounds"]),
    "chain-features": (True, ["scales gracefully", "marginal effect", "far superior"]),
    "chain-scaling": (True, ["consistent with polynomial"]),
    "chain-agnostic": (True, ["There is some region", "what is intractable"]),
    "chain-lambda": (True, ["remarkably robust"]),
    "chain-sigma": (True, ["remarkably robust"]),
    "chain-features-many": (True, ["about linearly", "almost plateaus"]),
    "chain-quadratic": (True, ["polynomial in both", "seems to fit"]),
    "conjecture": (
        True,
        ["consistent with the conjecture", "The conjecture: if", "σ and 1/λ", "does not depend on"],
    ),
    "theorem": (
        True,
        ["Theorem 1: the", "The shape", "The proof arrives", "a clear distinction", "There are intelligent"],
    ),
    "tetris": (
        True,
        [
            "as computed here",
            "many fewer games",
            "do not collapse",
            "completely greedy",
            "state of the art",
        ],
    ),
    "tetris-readings": (True, ["within 1.1 of 4500"]),
    "tetris-second": (True, ["about 4500", "about 3500 and 4500", "best published level", "learn from scratch"]),
    "recsys-boltzmann": (RLSVI, ["over a wide range", "when dithering", "To learn in time", "can be crucial"]),
    "recsys-myopic": (RLSVI, ["even the optimal myopic", "benchmark bandit", "simpler than", "eventually learns"]),
    "continual": (True, ["incentivises exploration", "ensure autocorrelation"]),
    "bootstrap": (pl.col("agent") == "bootstrap", ["beyond the specific", "via a nonparametric"]),
    "exploration-depth": (RLSVI, ["costs little", "do not suffice", "reaches every depth"]),
    "deep-sea": (RLSVI, ["polynomial in N"]),
    "homogeneous": (RLSVI, ["close connection"]),
    "swing-up": (RLSVI, ["Noise of a suitable", "finds the sparsest", "worth its pushes"]),
    "worst-case": (RLSVI, ["hardly learns", "worse on another", "Bounded targets"]),
}


@pytest.mark.parametrize(
    "figure", [pytest.param(it, marks=pytest.mark.slow) if it in LONG else it for it in RIVALS]
)
def test_a_rival_that_should_fail_does(figure):
    who, words = RIVALS[figure]
    verdicts = judged(figure, unlearned(published(figure, 10), who))
    for some in words:
        (verdict,) = [verdict for claim, verdict in verdicts.items() if some in claim]
        assert verdict.outcome is Outcome.NOT_REPRODUCED, verdict
