"""A policy gradient on the chain: the estimates of REINFORCE are 0 until the first reward."""

import math

import numpy as np

from rlsvi import problems
from rlsvi.core.compile import Floats
from rlsvi.core.random import stream
from rlsvi.mdp import evaluate
from rlsvi.paper.chain.experiments import phi_of, seeds_of
from rlsvi.problems import Problem
from rlsvi.simulate.policy_gradient import new_rollout, reinforce, softmax_policy


def first_reward_of_policy_gradient(
    *, length: int, features: int | None, step_size: float, seed: int, limit: int
) -> dict[str, float]:
    """Episodes of REINFORCE until the first reward, infinite if not within `limit`.

    The policy is a softmax of phi theta, with a weight for each state and action or for each basis function. All
    weights are 0 at first; after every episode the estimate of the gradient times the step size is added.

    gradient : the largest number, in size, in the estimates before the first reward.
    regret : expected regret of these episodes, the one with the reward included.
    uneven : the difference, relative, between the value of their policy and of random play.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    phi, table = features_of(problem), problem.mdp.table
    theta = np.zeros((table.horizon, phi.shape[-1]))
    played, found, largest = reinforce(table, phi, theta, step_size, limit, new_rollout(phi), stream(agent_seed))
    lost = problem.solution.V[0, 0] - evaluate(problem.mdp, softmax_policy(phi, theta))[0, 0]
    return {
        "time": float(played) if found else math.inf,
        "gradient": largest,
        "regret": played * lost,
        "uneven": abs(lost / problem.random_regret - 1.0),
    }


def features_of(problem: Problem) -> Floats:
    """The basis functions of a problem, (H, S, A, K); with a table one for each state and action."""
    t = problem.mdp.table
    if hasattr(problem.basis, "phi"):
        return phi_of(problem)
    each = np.eye(t.states * t.actions).reshape(t.states, t.actions, -1)
    return np.tile(each, (t.horizon, 1, 1, 1))
