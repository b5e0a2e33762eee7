"""DQN, PPO, SAC and TD3 of stable-baselines3, with its default settings or the published ones, on one thread.

Numbered observations become zeros and ones, which stable-baselines3 does itself; those of Blackjack, a tuple of
numbers, which it does not take, become so here. Episodes are those that have ended: some tuned settings play up to
16 environments side by side.
"""

import gymnasium as gym
import numpy as np

from benchmarks.practice.q_learning import points_of

NAMES = ("dqn", "ppo", "sac", "td3")
MISSING = 'DQN, PPO, SAC and TD3 need stable-baselines3: pip install ".[bench]"; the rest is measured without them'


def available():
    """Whether stable-baselines3 can be imported."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        return False
    return True


def learn(task, learner, seed, record):
    """Learn for the task's budget of steps; stop when the record says so.

    One call of stable-baselines3's `learn`, so that its schedules run as they were meant to.
    """
    import torch
    from stable_baselines3 import DQN, PPO, SAC, TD3
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
    if "action_noise" in settings:
        settings["action_noise"] = noise(*settings["action_noise"], env.action_space.shape)
    kind = dict(zip(NAMES, (DQN, PPO, SAC, TD3), strict=True))[name]
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **settings)

    def policy(observations, state, masks):
        batch = one_hot(observations, task) if isinstance(observations, tuple) else observations
        return model.predict(env.normalize_obs(batch) if normalize else batch, deterministic=True)[0], None

    callback = stopping(policy, points_of(budget), record)
    record.start()
    model.learn(total, callback=callback)


def stopping(policy, points, record):
    """A callback that evaluates at points, and ends training after the last or when the record says so."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Stopping(BaseCallback):
        def _on_step(self):
            for info in self.locals["infos"]:
                if "episode" in info:  # from the monitor around every environment, before rewards are normalized
                    record.ended(info["episode"]["r"])
            if self.num_timesteps < points[0]:
                return True
            while points and self.num_timesteps >= points[0]:
                points.pop(0)
            return not record.at(policy, self.num_timesteps) and bool(points)

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


def noise(kind, scale, shape):
    """The noise that TD3 adds to its actions."""
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    made = {"normal": NormalActionNoise, "ornstein-uhlenbeck": OrnsteinUhlenbeckActionNoise}[kind]
    return made(np.zeros(shape), np.full(shape, scale))


# ---- Published tuned settings: rl-baselines3-zoo, hyperparams/dqn.yml, ppo.yml, sac.yml, td3.yml, as of 2023 ----
#
# https://github.com/DLR-RM/rl-baselines3-zoo (version 2). `published` is the number of steps they were published
# with, which the schedules of exploration and learning rate refer to. There are none for toy-text tasks. Those of
# LunarLander were published for version 2 of it, those of PPO on InvertedPendulum and Reacher for version 2 or 3.
# SAC and TD3 have none of their own for these two: they get what the zoo has for MuJoCo tasks in general. Those of
# PPO on Pendulum are for continuous torque; with five torques they are taken without generalised state-dependent
# exploration, which needs that.


def linear(first):
    """A schedule that falls from `first` to 0."""
    return lambda remaining: remaining * first


WIDE = {"policy_kwargs": {"net_arch": [256, 256]}}
PPO_ON_PENDULUM = {
    "published": 100_000,
    "n_envs": 4,
    "n_steps": 1024,
    "gae_lambda": 0.95,
    "gamma": 0.9,
    "n_epochs": 10,
    "ent_coef": 0.0,
    "learning_rate": 1e-3,
    "clip_range": 0.2,
}
TD3_OF_CONTROL = {
    "gamma": 0.98,
    "buffer_size": 200_000,
    "learning_starts": 10_000,
    "action_noise": ("normal", 0.1),
    "gradient_steps": -1,
    "train_freq": (1, "episode"),
    "learning_rate": 1e-3,
    "policy_kwargs": {"net_arch": [400, 300]},
}
TD3_OF_MUJOCO = {"published": 1_000_000, "learning_starts": 10_000, "action_noise": ("normal", 0.1)}

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
    ("Pendulum-five-torques", "ppo"): PPO_ON_PENDULUM,
    ("Pendulum-v1", "ppo"): PPO_ON_PENDULUM | {"use_sde": True, "sde_sample_freq": 4},
    ("MountainCarContinuous-v0", "ppo"): {
        "published": 20_000,
        "normalize": True,
        "batch_size": 256,
        "n_steps": 8,
        "gamma": 0.9999,
        "learning_rate": 7.77e-5,
        "ent_coef": 0.00429,
        "clip_range": 0.1,
        "n_epochs": 10,
        "gae_lambda": 0.9,
        "max_grad_norm": 5,
        "vf_coef": 0.19,
        "use_sde": True,
        "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False},
    },
    ("LunarLander-continuous", "ppo"): {
        "published": 1_000_000,
        "n_envs": 16,
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
    ("InvertedPendulum-v5", "ppo"): {
        "published": 1_000_000,
        "normalize": True,
        "batch_size": 64,
        "n_steps": 32,
        "gamma": 0.999,
        "learning_rate": 0.000222425,
        "ent_coef": 1.37976e-07,
        "clip_range": 0.4,
        "n_epochs": 5,
        "gae_lambda": 0.9,
        "max_grad_norm": 0.3,
        "vf_coef": 0.19816,
    },
    ("Reacher-v5", "ppo"): {
        "published": 1_000_000,
        "normalize": True,
        "batch_size": 32,
        "n_steps": 512,
        "gamma": 0.9,
        "learning_rate": 0.000104019,
        "ent_coef": 7.52585e-08,
        "clip_range": 0.3,
        "n_epochs": 5,
        "gae_lambda": 1.0,
        "max_grad_norm": 0.9,
        "vf_coef": 0.950368,
    },
    ("Pendulum-v1", "sac"): {"published": 20_000, "learning_rate": 1e-3},
    ("MountainCarContinuous-v0", "sac"): {
        "published": 50_000,
        "learning_rate": 3e-4,
        "buffer_size": 50_000,
        "batch_size": 512,
        "ent_coef": 0.1,
        "train_freq": 32,
        "gradient_steps": 32,
        "gamma": 0.9999,
        "tau": 0.01,
        "learning_starts": 0,
        "use_sde": True,
        "policy_kwargs": {"log_std_init": -3.67, "net_arch": [64, 64]},
    },
    ("LunarLander-continuous", "sac"): {
        "published": 500_000,
        "batch_size": 256,
        "learning_rate": linear(7.3e-4),
        "buffer_size": 1_000_000,
        "ent_coef": "auto",
        "gamma": 0.99,
        "tau": 0.01,
        "train_freq": 1,
        "gradient_steps": 1,
        "learning_starts": 10_000,
        "policy_kwargs": {"net_arch": [400, 300]},
    },
    ("InvertedPendulum-v5", "sac"): {"published": 1_000_000, "learning_starts": 10_000},
    ("Reacher-v5", "sac"): {"published": 1_000_000, "learning_starts": 10_000},
    ("Pendulum-v1", "td3"): {"published": 20_000} | TD3_OF_CONTROL,
    ("MountainCarContinuous-v0", "td3"): {"published": 300_000, "action_noise": ("ornstein-uhlenbeck", 0.5)},
    ("LunarLander-continuous", "td3"): {"published": 300_000} | TD3_OF_CONTROL,
    ("InvertedPendulum-v5", "td3"): TD3_OF_MUJOCO,
    ("Reacher-v5", "td3"): TD3_OF_MUJOCO,
}
