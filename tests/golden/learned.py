"""What an agent has learned. All access to private attributes of the library is here."""

import numpy as np

import rlsvi
from rlsvi.agents.tabular.table import TabularAgent


def streams_of(agent):
    """The states of the agent's random streams."""
    return agent._streams


def episodes_of(agent):
    """Episodes learned from; 0 where life has none."""
    return 0 if isinstance(agent, rlsvi.ContinualRLSVI | rlsvi.ContinualLSVI) else getattr(agent, "episodes", 0)


def weights_of(agent):
    """What the agent has learned, by name, as arrays."""
    learner, plans = agent._learner, {"mean": agent._mean, "drawn": agent._drawn.get(-1)}
    plans = {name: plan for name, plan in plans.items() if plan is not None}
    if isinstance(agent, rlsvi.GradientRLSVI):
        kept = {name: getattr(learner, name) for name in ("theta", "start", "mass", "keys", "touching")}
        return kept | {name: plan.theta for name, plan in plans.items()}
    if isinstance(agent, rlsvi.BoundedRLSVI):
        kept = {"theta": learner.theta, "Q": learner._values(), "sums": learner.regression.sums}
        transitions = (*learner.history.transitions, np.ones(len(learner.history.last)))  # each happened once
        kept |= {"observations": np.asarray(learner.history.x), "transitions": transitions}
        return kept | {name: plan.theta for name, plan in plans.items()}
    if isinstance(agent, rlsvi.StationaryRLSVI | rlsvi.StationaryLSVI):
        ring = learner.mind.ring
        kept = {"theta": learner.mind.theta, "gram": (ring.gram, ring.low), "size": ring.size}
        return kept | {name: plan.w for name, plan in plans.items()}
    if isinstance(agent, rlsvi.ContextualBandit):
        samples = {name: plan.sample for name, plan in plans.items()}
        made = {name: np.where((p.made == p.number[0])[..., None], p.theta, 0.0) for name, p in samples.items()}
        mind = learner.mind
        return made | {"factor": tuple(mind.factor), "reward": (mind.reward, mind.error)}
    if isinstance(agent, rlsvi.ThompsonSampling):
        return {"counts": learner.mind.counts} | {name: plan.p for name, plan in plans.items()}
    if isinstance(agent, rlsvi.OptimalPolicy):
        return {"values": learner.mind.Q}
    if isinstance(agent, TabularAgent):
        return tabular_weights(agent, learner.mind, plans)
    mind = learner.mind
    memory, alive = mind.memory, mind.memory.alive[..., None]
    kept = {name: getattr(memory, name) for name in ("states", "sums", "counts", "squares")}
    kept |= {"factor": tuple(mind.factor), "reward": (memory.reward, memory.reward_error)}
    kept |= {"theta": np.where(alive, mind.values.theta, 0.0), "episodes": memory.counters[:1]}
    if isinstance(agent, rlsvi.ContinualRLSVI | rlsvi.ContinualLSVI):
        return kept | {"noise": learner.walk.w, "mean": learner.walk.mean, "reach": learner.walk.reach}
    if isinstance(agent, rlsvi.EnsembleRLSVI):
        state = learner.state()
        kept |= {name: state[name] for name in ("keys", "noise", "weights") if name in state}
    return kept | {name: np.where(alive, plan.theta, 0.0) for name, plan in plans.items()}


def tabular_weights(agent, mind, plans):
    """Counts, factors and plans. An agent that does not sample predicts with one plan, which is its latest."""
    kept = {name: getattr(mind.counts, name) for name in ("visits", "reward", "into", "ends", "legal")}
    latest = mind.plan if agent._samples or not plans else plans["mean"].plan
    if plans:
        kept |= {"mean": plans["mean"].plan.Q, "drawn": plans.get("drawn", plans["mean"]).plan.Q}
    factor = getattr(mind.rule, "factor", (np.zeros((1, 0, 0, 0)), np.zeros((1, 0, 0))))  # no features: no weights
    return kept | {"Q": latest.Q, "V": latest.V, "factor": tuple(factor)}
