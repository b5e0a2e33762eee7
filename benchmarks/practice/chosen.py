"""Tasks on which defaults are chosen. That the default agent does well on them says little by itself.

What the tuned settings of DQN and PPO were published with (rl-baselines3-zoo) is their budget here too, except
for DQN on Acrobot (40 of 100 thousand steps) and PPO on MountainCar and Acrobot (a tenth of a million),
LunarLander (300 thousand of a million) and Pendulum (40 of 100 thousand). The default settings get less, 10 to 50
thousand steps: all of it has to fit into hours on one core. That is several times what ours needs on CartPole,
MountainCar and Acrobot; on toy-text tasks it is not.
"""

from collections.abc import Callable
from typing import Any

import gymnasium as gym

import rlsvi
from benchmarks.practice.task import Task, budgets, by_name, made
from benchmarks.practice.worlds import Catch, DeepSeaPicture, FiftyActions, Headings, Rooms, Valves, scaled_rewards
from rlsvi.envs import Discretized

TAXI = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"
ROUNDING = 1e-6
CART_GRID = ((-2.4, 2.4, 3), (-3.0, 3.0, 5), (-0.21, 0.21, 10), (-3.0, 3.0, 10))


def cart_pole(factor: float) -> Callable[[], Any]:
    """CartPole in another currency."""
    return lambda: scaled_rewards(gym.make("CartPole-v1"), factor)


CHOSEN = by_name(
    Task(
        "CartPole-v1",
        made("CartPole-v1"),
        lambda _: (475.0, 475.0),
        (5, 10, 15, 20, 30, 50),
        random=22.52,
        why="The threshold is Gymnasium's. After 30 episodes one of 30 seeds may be below it, after 50 none.",
        asked=(30, 50),
        worst=(None, 475.0),
        seeds=30,
        steps=budgets(150_000, dqn=30_000, ppo=50_000, dqn_tuned=50_000, ppo_tuned=100_000),
        grid=CART_GRID,
    ),
    Task(
        "MountainCar-v0",
        made("MountainCar-v0"),
        lambda _: (-115.0, -105.0),
        (10, 20, 30, 50, 100),
        random=-200.0,
        why="-110 is Gymnasium's threshold; dynamic programming on a fine grid finds -98.4.",
        asked=(0, 30),
        worst=(None, -120.0),
        seeds=30,
        steps=budgets(200_000, dqn=20_000, ppo=20_000, dqn_tuned=120_000, ppo_tuned=100_000),
        grid=((-1.2, 0.6, 24), (-0.07, 0.07, 24)),
    ),
    Task(
        "Acrobot-v1",
        made("Acrobot-v1"),
        lambda _: (-110.0, -88.0),
        (10, 25, 50, 100),
        random=-497.3,
        why="-100 is Gymnasium's threshold; published tuned learners end between -69 and -83.",
        asked=(0, 50),
        worst=(None, -110.0),
        seeds=30,
        steps=budgets(80_000, dqn=20_000, ppo=30_000, dqn_tuned=40_000, ppo_tuned=100_000),
        grid=((-1, 1, 5), (-1, 1, 5), (-1, 1, 5), (-1, 1, 5), (-6.3, 6.3, 7), (-12.6, 12.6, 7)),
    ),
    Task(
        "Pendulum-five-torques",
        lambda: Discretized(gym.make("Pendulum-v1"), 5),
        lambda _: (-200.0, -155.0),
        (10, 25, 50, 100),
        random=-1202.0,
        why="For learners of finite choices. With its torque as it is, it is a task of real actions.",
        asked=(0, 50),
        worst=(None, -250.0),
        steps=budgets(150_000, dqn=20_000, ppo=20_000, ppo_tuned=40_000),
        grid=((-1, 1, 15), (-1, 1, 15), (-8, 8, 15)),
    ),
    Task(
        "LunarLander-v3",
        made("LunarLander-v3"),
        lambda _: (200.0, 100.0),
        (50, 100, 150, 300),
        random=-202.4,
        why="Eight numbers, four actions. Published: DQN 154 after 100 thousand steps, PPO 242 after a million.",
        asked=(300, 150),
        worst=(100.0, None),
        steps=budgets(dqn=50_000, ppo=50_000, dqn_tuned=100_000, ppo_tuned=300_000),
        shown_from=-600.0,
    ),
    Task(
        "DeepSea-20",
        made("rlsvi/DeepSea-v0", size=20),
        lambda optimum: (optimum - ROUNDING,),
        (50, 100, 200, 400),
        random=-0.005,
        why="Uniform play needs about a million episodes for a treasure, dithering at least as many.",
        asked=(200,),
        steps=budgets(100_000, dqn=10_000, ppo=10_000),
    ),
    Task(
        "Rooms-20",
        lambda: Rooms(size=20),
        lambda _: (0.95,),
        (5, 10, 25, 50),
        random=0.01,
        why="Four rooms of a 20 x 20 maze, a reward only at the far corner.",
        asked=(25,),
        steps=budgets(100_000),
    ),
    Task(
        "Headings-8",
        lambda: Headings(size=8),
        lambda _: (0.94,),
        (5, 10, 25, 50),
        random=0.004,
        why="A room seen with a heading, and four of seven actions do nothing. The optimum is 0.947.",
        asked=(25,),
    ),
    Task(
        TAXI,
        made(TAXI),
        lambda optimum: (optimum - ROUNDING,),
        (10, 25, 60, 100, 200, 500),
        random=-191.0,
        why="500 states, and masks of legal actions.",
        asked=(60,),
        steps=budgets(200_000, dqn=10_000, ppo=10_000),
        shown_from=-250.0,
    ),
    Task(
        "CliffWalking-v1",
        made("CliffWalking-v1", max_episode_steps=200),
        lambda optimum: (optimum - ROUNDING,),
        (5, 10, 20, 50, 100),
        random=-2030.0,
        why="Costs only, and a cliff beside the shortest path.",
        asked=(10,),
        steps=budgets(30_000, dqn=10_000, ppo=10_000),
        shown_from=-250.0,
    ),
    Task(
        "FrozenLake-4x4",
        made("FrozenLake-v1", map_name="4x4"),
        lambda optimum: (0.95 * optimum,),
        (100, 250, 500, 1000),
        random=0.01,
        why="Very random moves, a reward at the end.",
        steps=budgets(100_000, dqn=10_000, ppo=10_000),
    ),
    Task(
        "FrozenLake-8x8",
        made("FrozenLake-v1", map_name="8x8"),
        lambda optimum: (0.95 * optimum,),
        (100, 250, 500, 1000, 2000),
        random=0.01,
        why="The same on 64 cells: random play hardly ever reaches the goal.",
        asked=(500,),
        steps=budgets(200_000, dqn=10_000, ppo=10_000),
    ),
    Task(
        "RiverSwim-12",
        made("rlsvi/RiverSwim-v0", states=12, horizon=None, max_episode_steps=200),
        lambda optimum: (0.95 * optimum,),
        (10, 25, 50, 100),
        random=0.272,
        why="A small reward at hand, a large one upstream.",
        asked=(50,),
        steps=budgets(100_000),
    ),
    Task(
        "Blackjack-v1",
        made("Blackjack-v1"),
        lambda optimum: (optimum - 0.012,),
        (500, 2000, 5000, 20000),
        random=-0.58,
        why="Short episodes and large noise: exploration is not the difficulty.",
        asked=(20000,),
        steps=budgets(100_000, dqn=10_000, ppo=10_000),
    ),
    Task(
        "Catch",
        lambda: Catch(rows=10, columns=5),
        lambda _: (1.0,),
        (25, 50, 100, 200),
        random=-0.62,
        why="A picture that recurs.",
        asked=(100,),
    ),
    Task(
        "DeepSea-picture-20",
        lambda: DeepSeaPicture(size=20),
        lambda _: (0.99 - ROUNDING,),
        (100, 200, 400, 800),
        random=-0.005,
        why="DeepSea as the behaviour suite shows it, and the horizon is not told.",
    ),
    Task(
        "DeepSea-picture-30",
        lambda: DeepSeaPicture(size=30),
        lambda _: (0.99 - ROUNDING,),
        (200, 400, 800, 1600),
        random=-0.005,
        why="The same with 900 numbers.",
    ),
    Task(
        "FiftyActions",
        FiftyActions,
        lambda _: (0.9 * FiftyActions().optimum(),),
        (50, 100, 300),
        random=0.819,
        why="Fifty actions on two numbers; 90% of the exact optimum, in episodes of ten steps.",
        asked=(300,),
    ),
    Task(
        "Valves",
        Valves,
        lambda _: (25.0,),
        (20, 60),
        random=9.801,
        why="27 settings of three valves on four numbers; at 25 of 30, levels are away by a twelfth.",
    ),
    Task(
        "CartPole-thousandth",
        cart_pole(0.001),
        lambda _: (0.475,),
        (20, 30, 50),
        random=0.02252,
        why="Rewards of .001: as CartPole, if the size of rewards is not assumed.",
        asked=(30,),
    ),
    Task(
        "CartPole-thousandfold",
        cart_pole(1000.0),
        lambda _: (475_000.0,),
        (20, 30, 50),
        random=22520.0,
        why="Rewards of 1000: the same.",
        asked=(30,),
    ),
    Task(
        "SwingUp",
        rlsvi.envs.SwingUpEnv,
        lambda _: (100.0,),
        (25, 50, 100),
        random=-14.48,
        why="A sparse reward behind costs. 100 is the pole held up for a fifth of the episode, at the least.",
    ),
)

rlsvi.envs.register()
