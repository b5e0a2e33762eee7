"""Published tuned settings of DQN and PPO: rl-baselines3-zoo, hyperparams/dqn.yml and ppo.yml, as of 2023.

https://github.com/DLR-RM/rl-baselines3-zoo (version 2). `published` is the number of steps they were published
with, which the schedules of exploration and learning rate refer to. There are none for toy-text tasks. Those of
LunarLander were published for version 2 of it. Those of PPO on Pendulum are for continuous torque, and are taken
here without generalised state-dependent exploration, which needs that.
"""


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
