"""Fresh episodes of a policy, in lockstep: one batch of observations a step.

A policy here is a function of a batch of observations, its own state (None at first) and their masks of legal
actions, and gives a batch of actions and its new state.
"""

import numpy as np

FRESH = 10**6  # the first seed of evaluation; training draws its own, far larger ones, or from the learner's seed


def play(envs, policy, first=FRESH):
    """The return of one episode in each of the environments."""
    started = [env.reset(seed=first + i) for i, env in enumerate(envs)]
    observations, infos = [list(part) for part in zip(*started, strict=True)]
    returns, running, state = np.zeros(len(envs)), list(range(len(envs))), None
    while running:
        actions, state = policy(stacked(observations), state, masks(infos))
        observations, infos, stays = [], [], []
        for row, i in enumerate(running):
            observation, reward, terminated, truncated, info = envs[i].step(int(actions[row]))
            returns[i] += float(reward)
            if not (terminated or truncated):
                stays.append(row)
                observations.append(observation)
                infos.append(info)
        running = [running[row] for row in stays]
        state = None if state is None else np.asarray(state)[stays]
    return returns


def stacked(observations):
    """Observations as one batch: an array, or a tuple or dictionary of batches."""
    if isinstance(observations[0], tuple):
        return tuple(stacked(part) for part in zip(*observations, strict=True))
    if isinstance(observations[0], dict):
        return {key: stacked([each[key] for each in observations]) for key in observations[0]}
    return np.array(observations)


def masks(infos):
    """What the environments say of legal actions, (environments, actions), or None."""
    found = [info.get("action_mask") for info in infos]
    return None if any(mask is None for mask in found) else np.array(found)
