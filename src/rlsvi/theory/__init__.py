"""The theory of section 5 and appendix G, made to run: lemmas as numbers, the theorem as an agent."""

from rlsvi.theory.crossing import Crossings, crossings, density_crossings, failing_sums
from rlsvi.theory.dithering import dithering_chance, dithering_regret
from rlsvi.theory.excess import Excess, beta_excess, dirichlet_excess, normal_excess
from rlsvi.theory.least import Gap, least_gap
from rlsvi.theory.optimism import beta_gap, lemma_gap, matched_beta, matched_gap
from rlsvi.theory.q_values import QGap, last_period_gap, q_gap
from rlsvi.theory.theorem import proof_bound, regret_shape, theorem_agent, theorem_parameters

__all__ = [
    "Crossings",
    "Excess",
    "Gap",
    "QGap",
    "beta_excess",
    "beta_gap",
    "crossings",
    "density_crossings",
    "dirichlet_excess",
    "dithering_chance",
    "dithering_regret",
    "failing_sums",
    "last_period_gap",
    "least_gap",
    "lemma_gap",
    "matched_beta",
    "matched_gap",
    "normal_excess",
    "proof_bound",
    "q_gap",
    "regret_shape",
    "theorem_agent",
    "theorem_parameters",
]
