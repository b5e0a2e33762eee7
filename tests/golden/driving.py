"""How agents are driven, and what of it is compared."""

import numpy as np

from rlsvi import problems
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate import simulate, simulate_continual

from .environments import Traced
from .learned import episodes_of, streams_of, weights_of

SEED = 11


def predictions(agent, env, steps=7):
    """The actions and states of some episodes, by the posterior mean and as in learning."""
    found = []
    for deterministic in (True, False):
        for seed in range(3):
            observation, info = env.reset(seed=seed)
            state, over = None, False
            for _ in range(steps):
                mask = info.get("action_mask")
                action, state = agent.predict(
                    observation, state, deterministic=deterministic, action_mask=None if mask is None else mask > 0
                )
                found.append((int(action), int(state)))
                observation, _, terminated, truncated, info = env.step(int(action))
                over = terminated or truncated
                if over or state == getattr(agent, "horizon", None):
                    break
    return np.array(found)


def known(agent, env):
    """What there is to compare of an agent that has learned."""
    before = streams_of(agent).copy()
    found = {"counts": (agent.steps, episodes_of(agent)), "predictions": predictions(agent, env)}
    found |= {"streams": before, "streams after predicting": streams_of(agent)}
    return found | {f"learned: {name}": value for name, value in weights_of(agent).items()}


def learned(make, env, **amount):
    """A case: an agent learns from an environment, in two parts."""

    def case():
        agent, traced = make(seed=SEED), Traced(env())
        agent.learn(traced, **amount)
        agent.learn(traced, **amount)
        return {"trace": tuple(traced.rows)} | known(agent, env())

    return case


def fused(make, problem, episodes=12):
    """A case: an agent learns in the compiled loop, in two parts."""

    def case():
        agent, task, found = make(seed=SEED), problem(), {}
        for part in ("first", "second"):
            history = simulate(agent, task, episodes, trace=True)
            found |= {f"{part} trace": tuple(history.trace), f"{part} regret": history.regret}
            found |= {f"{part} rewards": (history.reward, history.realised, history.path_regret)}
        return found | known(agent, FiniteMDPEnv(task.mdp))

    return case


def continual(make, steps=60):
    """A case: a continual agent lives in the compiled loop, and one alike through Gymnasium."""

    def case():
        mdp = problems.river_swim(4, 10).mdp
        agent = make(seed=SEED)
        rewards = [simulate_continual(agent, mdp, steps), simulate_continual(agent, mdp, steps)]
        return {"rewards": tuple(rewards)} | known(agent, FiniteMDPEnv(mdp, endless=True))

    return case
