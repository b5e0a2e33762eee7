"""The agents of this package with problems for a graphics card; see tests/on_card.py."""

from rlsvi import problems
from rlsvi_paper.agents import BoundedTargetRLSVI, GaussianPSRL, HomogeneousRLSVI, WorstCaseRLSVI

KINDS = {
    "homogeneous": (HomogeneousRLSVI(), problems.dirichlet(3, 2, 3, homogeneous=True)),
    "Gaussian PSRL": (GaussianPSRL(reward_range=(-1, 0)), problems.dirichlet(3, 2, 3)),
    "worst case": (
        lambda seed: WorstCaseRLSVI(scale=0.004 * (1 + seed), clip=True, reward_range=(-1, 0)),
        problems.dirichlet(3, 2, 3),
    ),
    "bounded targets": (BoundedTargetRLSVI(bounds=(0, 0.3)), lambda seed: problems.chain(5, 3, seed=seed)),
}
