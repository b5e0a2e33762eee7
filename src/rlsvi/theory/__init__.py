"""The theory of section 5 and appendix G as code: lemmas as numbers, the theorem as an agent."""

from rlsvi.theory.crossing import Crossings, crossings, density_crossings, failing_sums
from rlsvi.theory.dithering import dithering_chance, dithering_regret
from rlsvi.theory.excess import Excess, beta_excess, dirichlet_excess, normal_excess
from rlsvi.theory.least import Gap, least_gap
from rlsvi.theory.optimism import beta_gap, lemma_gap, matched_beta, matched_gap
from rlsvi.theory.q_values import QGap, last_period_gap, q_gap
from rlsvi.theory.theorem import proof_bound, regret_shape, theorem_agent, theorem_parameters
