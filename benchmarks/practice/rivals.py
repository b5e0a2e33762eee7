"""DQN and PPO of stable-baselines3, with its default settings or the published tuned ones, on one thread.

Numbered observations become zeros and ones, which stable-baselines3 does itself; those of Blackjack, a tuple of
numbers, which it does not take, become so here. Episodes are those that have ended: some tuned settings play up to
16 environments side by side.
"""

import gymnasium as gym
import numpy as np

from benchmarks.practice.q_learning import points_of
from benchmarks.practice.zoo import TUNED

MISSING = 'DQN and PPO need stable-baselines3: pip install ".[bench]"; the rest is measured without them'


def available():
    """Whether stable-baselines3 can be imported."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        return False
    return True


def learn(task, learner, seed, record):
    """Learn for the task's budget of steps; stop when the record says that the threshold is met.

    One call of stable-baselines3's `learn`, so that its schedules run as they were meant to.
    """
    import torch
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(1)
    name, _, tuned = learner.partition("-")
    settings = dict(TUNED[task.name, name]) if tuned else {}
    budget = task.steps[learner]
    total = max(settings.pop("published", budget), budget)
    normalize, count = settings.pop("normalize", False), settings.pop("n_envs", 1)
    env = make_vec_env(lambda: flat(task.make()), n_envs=count, seed=seed)
    if normalize:
        env = VecNormalize(env, gamma=settings["gamma"])
    model = {"dqn": DQN, "ppo": PPO}[name]("MlpPolicy", env, seed=seed, device="cpu", **settings)

    def policy(observations, state, masks):
        batch = one_hot(observations, task) if isinstance(observations, tuple) else observations
        return model.predict(env.normalize_obs(batch) if normalize else batch, deterministic=True)[0], None

    callback = stopping(policy, points_of(budget), record)
    record.start()
    model.learn(total, callback=callback)


def stopping(policy, points, record):
    """A callback that evaluates at points, and ends training after the last or when the threshold is met."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Stopping(BaseCallback):
        ended = 0

        def _on_step(self):
            self.ended += int(np.sum(self.locals["dones"]))
            if self.num_timesteps < points[0]:
                return True
            while points and self.num_timesteps >= points[0]:
                points.pop(0)
            return not record.at(policy, self.ended, self.num_timesteps) and bool(points)

    return Stopping()


def flat(env):
    """An environment whose observations stable-baselines3 takes."""
    if isinstance(env.observation_space, gym.spaces.Tuple):
        return gym.wrappers.FlattenObservation(env)
    return env


def one_hot(observations, task):
    """A batch of tuples of numbers, as FlattenObservation has them."""
    space = task.make().observation_space
    return np.array([gym.spaces.flatten(space, row) for row in zip(*observations, strict=True)])
