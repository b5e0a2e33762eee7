"""What is measured: fresh episodes of a policy in lockstep, the exact value where it can be computed, what is
earned while learning, and clocks.

A policy here is a function of a batch of observations, its own state (None at first) and their masks of legal
actions, and gives a batch of actions and its new state.
"""

import time
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete

import rlsvi
from benchmarks.practice import blackjack
from rlsvi.envs import RiverSwimEnv

EPISODES = 100
FRESH = 10**6  # the first seed of evaluation; training draws its own, far larger ones, or from the learner's seed


class Run(NamedTuple):
    """One learner with one seed on one task.

    rows : its evaluations, one after the other.
    training : the return of every episode that it learned from; None in results that do not have it.
    """

    rows: list[dict[str, Any]]
    training: list[float] | None

    def earned(self, episodes):
        """The mean return of the first episodes of training; None if it is not known."""
        enough = self.training is not None and len(self.training) >= episodes > 0
        return float(np.mean(self.training[:episodes])) if enough else None

    def earned_between(self):
        """The mean return of the episodes of training before each row and after the one before it; NaN: none."""
        means, first = [], 0
        for row in self.rows:
            part = (self.training or [])[first : row["episodes"]]
            means.append(float(np.mean(part)) if part else np.nan)
            first = row["episodes"]
        return means


class Record:
    """Rows of one learner with one seed on one task, and the returns of the episodes it learns from.

    Call `start` when training begins, so that imports and compiling are not counted, `ended` with the return of
    every episode of training, and `at` at every point.
    """

    def __init__(self, task, learner, setting, seed, episodes=EPISODES):
        self.task, self.learner, self.setting, self.seed = task, learner, setting, seed
        self.envs = [task.make() for _ in range(episodes)]
        self.exact = Exact(self.envs[0])
        self.thresholds = task.thresholds(self.exact.optimum)
        self.rows, self.training = [], []
        self.wall = self.cpu = 0.0

    def start(self):
        """Let the clocks run."""
        self.begun = time.perf_counter(), time.process_time()

    def ended(self, total):
        """Note the return of an episode of training."""
        self.training.append(float(total))

    def at(self, policy, steps):
        """Evaluate a policy that was learned from so much, and tell whether a rival may stop.

        It may when the first threshold is met and ours would have been asked by now.
        """
        self.wall += time.perf_counter() - self.begun[0]
        self.cpu += time.process_time() - self.begun[1]
        returns = play(self.envs, policy)
        row = {"task": self.task.name, "learner": self.learner, "setting": self.setting, "seed": self.seed}
        row |= {"episodes": len(self.training), "steps": int(steps)}
        row |= {"mean": float(returns.mean()), "worst": float(returns.min())}
        row |= {"exact": self.exact.value(lambda batch: policy(batch, None, None)[0])}
        row |= {"optimum": self.exact.optimum, "thresholds": list(self.thresholds)}
        self.rows.append(row | {"wall_s": self.wall, "cpu_s": self.cpu})
        self.start()
        met = any(score(each) >= self.thresholds[0] for each in self.rows)
        return met and len(self.training) >= self.task.compared


def score(row):
    """The return that counts: the expected one where it can be computed, else the mean of the fresh episodes."""
    return row["mean"] if row["exact"] is None else row["exact"]


def play(envs, policy, first=FRESH):
    """The return of one episode in each of the environments."""
    started = [env.reset(seed=first + i) for i, env in enumerate(envs)]
    observations, infos = [list(part) for part in zip(*started, strict=True)]
    returns, running, state = np.zeros(len(envs)), list(range(len(envs))), None
    while running:
        actions, state = policy(stacked(observations), state, masks(infos))
        observations, infos, stays = [], [], []
        for row, i in enumerate(running):
            observation, reward, terminated, truncated, info = envs[i].step(own_action(envs[i], actions[row]))
            returns[i] += float(reward)
            if not (terminated or truncated):
                stays.append(row)
                observations.append(observation)
                infos.append(info)
        running = [running[row] for row in stays]
        state = None if state is None else np.asarray(state)[stays]
    return returns


def own_action(env, action):
    """An action as the environment has it: a number where actions are numbered."""
    return int(action) if isinstance(env.action_space, Discrete) else action


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


class Exact:
    """What is known of an environment. optimum : or None. value(act) : of a policy of the state alone, or None.

    `act` takes a batch of observations and gives actions.
    """

    def __init__(self, env):
        self.mdp, self.blackjack = None, env.spec is not None and env.spec.id == "Blackjack-v1"
        self.optimum = None
        if self.blackjack:
            self.optimum = blackjack.solve()[0]
        elif isinstance(getattr(env.unwrapped, "P", None), dict):  # transitions, as in Gymnasium's toy text
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


def random_return(task, episodes=100):
    """The mean return of random actions, legal ones where the environment tells which."""
    env, rng, total = task.make(), np.random.default_rng(0), 0.0
    env.action_space.seed(0)
    for episode in range(episodes):
        (_, info), done = env.reset(seed=FRESH + episode), False
        while not done:
            _, reward, terminated, truncated, info = env.step(random_action(env, info, rng))
            total, done = total + float(reward), terminated or truncated
    return total / episodes


def random_action(env, info, rng):
    """Any action, or any legal one."""
    if not isinstance(env.action_space, Discrete):
        return env.action_space.sample()
    legal = info.get("action_mask")
    offered = np.arange(env.action_space.n) if legal is None else np.flatnonzero(legal)
    return int(env.action_space.start) + int(rng.choice(offered))


def levels(task):
    """A line on the levels of a task."""
    optimum = Exact(task.make()).optimum
    known = "" if optimum is None else f", optimum {optimum:.4g}"
    thresholds = ", ".join(f"{level:.4g}" for level in task.thresholds(optimum))
    return f"{task.name}: random play {random_return(task):.4g}{known}, thresholds {thresholds}"
