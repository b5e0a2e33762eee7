"""Agents that learn from every step of one another: the function that the jobs of the figure call, its schemes.

How they act and learn is in `rlsvi.simulate.staggered`.
"""

from collections.abc import Callable

from rlsvi import problems
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.solve import backward_induction
from rlsvi.paper.chain.experiments import seeds_of
from rlsvi.simulate.staggered import Scheme, SharedTable, layers_of

SEEDS, PLANNED_ONCE = (
    "a seed for each agent, planning at every step",
    "a seed for each agent, planning once an episode",
)
ONE_SEED, REDRAWN = "one seed for all, planning at every step", "a draw at every step"
SHARED, EPISODES = "one shared draw at every step", "a draw for every episode"
SCHEMES = {
    SEEDS: Scheme(seeds=True, replan=True),
    PLANNED_ONCE: Scheme(seeds=True, replan=False),
    ONE_SEED: Scheme(seeds=True, replan=True, shared=True),
    REDRAWN: Scheme(seeds=False, replan=True),
    SHARED: Scheme(seeds=False, replan=True, shared=True),
    EPISODES: Scheme(seeds=False, replan=False),
}
# By the name of a problem: how a seed draws it, lambda and sigma: those of the figure `concurrent`.
PROBLEMS: dict[str, tuple[Callable[[int], FiniteMDP], float, float]] = {
    "DeepSea, N = 20": (lambda seed: problems.deep_sea(20, seed=seed).mdp, 10.0, 0.001),
    "RiverSwim": (lambda seed: problems.river_swim(6, 20).mdp, 1.0, 0.3),
}


def staggered_regret(*, task: str, scheme: str, agents: int, rounds: int, seed: int) -> dict[str, float]:
    """The regret per agent of so many episodes of each."""
    problem_seed, agent_seed = seeds_of(seed)
    draw, lam, sigma = PROBLEMS[task]
    mdp = draw(problem_seed)
    best = float(mdp.start @ backward_induction(mdp).V[0])
    shared = SharedTable(layers_of(mdp), agents, SCHEMES[scheme], lam, sigma, agent_seed)
    return {"regret": rounds * best - shared.play(rounds) / agents}
