"""One contract for all agents: the cases, environments, bases and files that its tests are made of."""
