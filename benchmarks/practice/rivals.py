"""DQN and PPO of stable-baselines3, with its default settings or the published tuned ones, on one thread.

Numbered observations become zeros and ones, which stable-baselines3 does itself; those of Blackjack, a tuple of
numbers, which it does not take, become so here. Episodes are those that have ended: some tuned settings play up to
16 environments side by side.
"""

import gymnasium as gym
import numpy as np

from benchmarks.practice.q_learning import points_of

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


# ---- Published tuned settings of DQN and PPO: rl-baselines3-zoo, hyperparams/dqn.yml and ppo.yml, as of 2023 ----
#
# https://github.com/DLR-RM/rl-baselines3-zoo (version 2). `published` is the number of steps they were published
# with, which the schedules of exploration and learning rate refer to. There are none for toy-text tasks. Those of
# LunarLander were published for version 2 of it. Those of PPO on Pendulum are for continuous torque, and are taken
# here without generalised state-dependent exploration, which needs that.


def linear(first):
    """A schedule that falls from `first` to 0."""
    return lambda remaining: remaining * first


WIDE = {"policy_kwargs": {"net_arch": [256, 256]}}

TUNED = {
    ("CartPole-v1", "dqn"): {
        "published": 50_000,
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        **WIDE,
    },
    ("MountainCar-v0", "dqn"): {
        "published": 120_000,
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "learning_starts": 1000,
        "gamma": 0.98,
        "target_update_interval": 600,
        "train_freq": 16,
        "gradient_steps": 8,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.07,
        **WIDE,
    },
    ("Acrobot-v1", "dqn"): {
        "published": 100_000,
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
        **WIDE,
    },
    ("LunarLander-v3", "dqn"): {
        "published": 100_000,
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
        **WIDE,
    },
    ("CartPole-v1", "ppo"): {
        "published": 100_000,
        "n_envs": 8,
        "n_steps": 32,
        "batch_size": 256,
        "gae_lambda": 0.8,
        "gamma": 0.98,
        "n_epochs": 20,
        "ent_coef": 0.0,
        "learning_rate": linear(0.001),
        "clip_range": linear(0.2),
    },
    ("MountainCar-v0", "ppo"): {
        "published": 1_000_000,
        "normalize": True,
        "n_envs": 16,
        "n_steps": 16,
        "gae_lambda": 0.98,
        "gamma": 0.99,
        "n_epochs": 4,
        "ent_coef": 0.0,
    },
    ("Acrobot-v1", "ppo"): {
        "published": 1_000_000,
        "normalize": True,
        "n_envs": 16,
        "n_steps": 256,
        "gae_lambda": 0.94,
        "gamma": 0.99,
        "n_epochs": 4,
        "ent_coef": 0.0,
    },
    ("LunarLander-v3", "ppo"): {
        "published": 1_000_000,
        "n_envs": 16,
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
    ("Pendulum-v1", "ppo"): {
        "published": 100_000,
        "n_envs": 4,
        "n_steps": 1024,
        "gae_lambda": 0.95,
        "gamma": 0.9,
        "n_epochs": 10,
        "ent_coef": 0.0,
        "learning_rate": 1e-3,
        "clip_range": 0.2,
    },
}
