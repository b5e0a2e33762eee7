"""The theory of section 5 and appendix G as code: lemmas as numbers, the theorem as an agent."""

# ruff: noqa: F401  (what it imports is what it offers)
from rlsvi.paper.theory.bounds import (
    dithering_chance,
    dithering_regret,
    optimistic_parameters,
    proof_bound,
    regret_shape,
    theorem_agent,
    theorem_parameters,
)
from rlsvi.paper.theory.expected_excess import Excess, beta_excess, dirichlet_excess, normal_excess
from rlsvi.paper.theory.optimism import (
    Crossings,
    Gap,
    QGap,
    beta_gap,
    crossings,
    density_crossings,
    failing_sums,
    last_period_gap,
    least_gap,
    lemma_gap,
    matched_beta,
    matched_gap,
    optimistic_variance,
    q_gap,
)
