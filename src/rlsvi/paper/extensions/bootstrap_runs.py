"""The experiments on the bootstrap: the function that the jobs of its figure call."""

from rlsvi import problems
from rlsvi.agents import RLSVI, BootstrapRLSVI
from rlsvi.agents.finite.rlsvi import FiniteHorizonAgent
from rlsvi.paper.chain.experiments import seeds_of, until_learned
from rlsvi.study.experiment import Playing, experiment

NORMAL, BOOTSTRAP, DATA_ALONE = "RLSVI", "bootstrap", "bootstrap of the data alone"


@experiment
def bootstrap_time(*, agent: str, length: int, features: int, limit: int, seed: int) -> Playing:
    """Episodes until ten rewards on the chain, infinite if not within `limit`."""
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    return {"time": (yield from until_learned(agent_called(agent, agent_seed), problem, limit))}


def agent_called(name: str, seed: int) -> FiniteHorizonAgent:
    """RLSVI as in section 6.1.1, or the bootstrap, whose artificial data are random unless of the data alone."""
    if name == NORMAL:
        return RLSVI(lam=1.0, sigma=0.1, seed=seed)
    return BootstrapRLSVI(lam=1.0, prior_weight=1.0, random_prior=name == BOOTSTRAP, seed=seed)
