"""Our agent, at the one default that `rlsvi.agent_for` gives every environment."""

import rlsvi

SETTING = "default"


def learn(task, seed, record):
    """Learn for so many episodes, evaluated at the task's points; return the agent that was chosen.

    It goes on after the threshold is met.

    Where an environment tells in `info` which actions are legal (Taxi does), our agent makes use of it.
    """
    env = task.make()
    warm = rlsvi.agent_for(env, seed=seed).learn(env, episodes=2)  # compiles what is not yet in the cache
    warm.predict(env.reset(seed=0)[0], deterministic=True)
    agent = rlsvi.agent_for(env, seed=seed)

    def policy(observations, state, masks):
        return agent.predict(observations, state, deterministic=True, action_mask=masks)

    record.start()
    for point in task.points:
        agent.learn(env, episodes=point - agent.episodes, on_episode=lambda _, total: record.ended(total))
        record.at(policy, agent.steps)
    return agent
