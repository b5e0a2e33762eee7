"""How to make the agents of the reproduction, as tests/contract/cases.py says of the library's."""

import rlsvi
from contract.cases import CODE, Case
from rlsvi_paper import agents

CASES = [
    Case("BoundedTargetRLSVI", "table", {"bounds": (-0.5, 0.5)}, home=agents),
    Case(
        "BoundedTargetRLSVI",
        "vector",
        {"basis": CODE, "sigma": rlsvi.InverseGamma(2.0, 1.0), "bounds": (-0.5, 0.5)},
        fused=False,
        code=CODE,
        home=agents,
    ),
    Case("GaussianPSRL", "table", home=agents),
    Case("HomogeneousRLSVI", "table", {"prior_mean": 0.5}, home=agents),
    Case("WorstCaseRLSVI", "table", {"scale": 0.003, "clip": True}, home=agents),
]
