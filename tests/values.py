"""What an agent believes of a state, for tests."""


def action_values(agent, plan, h, observation):
    """Q_h(s, .) under a plan, also where nothing has been seen; -inf for what is illegal."""
    learner = getattr(agent, "_learner", agent)
    return learner.values(plan, learner.look(h, observation, None, learning=False))
