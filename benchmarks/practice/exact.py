"""The optimum of a task and the value of a policy in it, where dynamic programming can tell."""

import numpy as np

import rlsvi
from benchmarks.practice import blackjack
from rlsvi.envs import RiverSwimEnv


class Exact:
    """What is known of an environment. optimum : or None. value(act) : of a policy of the state alone, or None.

    `act` takes a batch of observations and gives actions.
    """

    def __init__(self, env):
        self.mdp, self.blackjack = None, env.spec is not None and env.spec.id == "Blackjack-v1"
        self.optimum = None
        if self.blackjack:
            self.optimum = blackjack.solve()[0]
        elif getattr(env.unwrapped, "P", None) is not None:
            self.mdp, self.states = rlsvi.mdp.from_gymnasium(env), int(env.observation_space.n)
            self.optimum = best(self.mdp)
        elif isinstance(env.unwrapped, RiverSwimEnv) and env.unwrapped.horizon is None:
            self.states = int(env.observation_space.n)
            self.mdp = rlsvi.mdp.river_swim(self.states, env.spec.max_episode_steps)
            self.optimum = best(self.mdp)
        elif isinstance(getattr(env.unwrapped, "mdp", None), rlsvi.mdp.FiniteMDP):
            self.optimum = best(env.unwrapped.mdp)  # of policies by period: fresh episodes have to tell

    def value(self, act):
        """The expected return of a policy."""
        if self.blackjack:
            actions = act(tuple(np.array(part) for part in zip(*blackjack.HANDS, strict=True)))
            return float(blackjack.solve(dict(zip(blackjack.HANDS, actions, strict=True)))[0])
        if self.mdp is None:
            return None
        actions = np.zeros((self.mdp.horizon, self.mdp.states), dtype=np.int64)
        actions[:, : self.states] = act(np.arange(self.states))
        return float(self.mdp.start @ rlsvi.mdp.evaluate(self.mdp, actions)[0])


def best(mdp):
    """The expected return of the best policy."""
    return float(mdp.start @ rlsvi.mdp.backward_induction(mdp).V[0])
