"""Tasks on which the default agent is only reported: no default was, or may be, chosen on them.

They come from packages that were not used in development, and were fixed, with their thresholds and evaluation
points, before any agent of this library had been run on any of them. Whatever comes out is printed. Do not remove
a task because its result is bad, and do not tune on them: a task that was tuned on belongs into chosen.py.

A threshold is the optimum where dynamic programming or a plan written by hand gives it, the level that the package
itself declares, or else a level that random play does not reach. FourRooms of gym-classics 1.0.0 was looked at and
left out because its map has no goal, so that nothing is ever rewarded; Atari and highway-fast-v0 were left out
because 100 fresh episodes of them take minutes. Their packages: pip install ".[bench]". The problems from
operations and those in unseen.py are our own, and were fixed in the same way.

The last five of other packages came later, and were fixed in the same way: only random actions and rules
written by hand were played before. Looked at and left out: kaist-or-gym 0.1.15, whose environment shows and pays
nothing, and dm_control 1.0.50, which does not run with MuJoCo 4.0.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.practice.operations import OPERATIONS
from benchmarks.practice.task import Task, by_name
from benchmarks.practice.unseen import UNSEEN
from rlsvi.envs import Discretized


def minigrid(id: str) -> Callable[[], Any]:
    """A Minigrid environment without the text of its mission, which never changes."""

    def make() -> Any:
        import minigrid  # noqa: F401

        return gym.wrappers.FilterObservation(gym.make(id), ["direction", "image"])

    return make


def minatar(id: str) -> Callable[[], Any]:
    """A MinAtar game, cut off after 1,000 steps: a good player would never end it."""

    def make() -> Any:
        from minatar.gym import register_envs

        if id not in gym.registry:
            register_envs()
        return gym.make(id, max_episode_steps=1000)

    return make


def classic(id: str, limit: int) -> Callable[[], Any]:
    """An environment of gym-classics, cut off after `limit` steps."""

    def make() -> Any:
        import gym_classics

        if id not in gym.registry:
            gym_classics.register("gymnasium")
        return gym.make(id, max_episode_steps=limit)

    return make


def summed(id: str) -> Callable[[], Any]:
    """An environment of MO-Gymnasium, rewarded with the sum of its objectives."""

    def make() -> Any:
        import mo_gymnasium

        return mo_gymnasium.wrappers.LinearReward(mo_gymnasium.make(id))

    return make


def bottles() -> Any:
    """BreakableBottles, with a flag where bottles were dropped, as its documentation and its space say.

    The environment itself (MO-Gymnasium 1.3) counts the bottles there, and with the second leaves its own space.
    """

    def flagged(observation: Any) -> Any:
        dropped = np.minimum(observation["bottles_dropped"], 1).astype(np.int8)
        return {**observation, "bottles_dropped": dropped}

    env = summed("breakable-bottles-v0")()
    return gym.wrappers.TransformObservation(env, flagged, env.observation_space)


def imported(module: str, id: str, **arguments: Any) -> Callable[[], Any]:
    """An environment that is registered when its package is imported."""

    def make() -> Any:
        import_module(module)
        return gym.make(id, **arguments)

    return make


REPORTED = by_name(
    Task(
        "MiniGrid-DoorKey-5x5",
        minigrid("MiniGrid-DoorKey-5x5-v0"),
        lambda _: (0.9,),
        (50, 100, 200),
        random=0.04467,
        why="A key, a door and a goal that move from episode to episode, and only a part is seen: a picture that "
        "recurs, and three things to do in order. 0.9 means the goal within 28 of 250 steps on average.",
    ),
    Task(
        "MiniGrid-LavaGapS7",
        minigrid("MiniGrid-LavaGapS7-v0"),
        lambda _: (0.9,),
        (50, 100, 200),
        random=0.0141,
        why="Stepping into lava ends the episode with nothing, so trying everything does not help. 0.9 means the "
        "goal within 22 of 196 steps on average.",
    ),
    Task(
        "MinAtar-Breakout",
        minatar("MinAtar/Breakout-v1"),
        lambda _: (5.0,),
        (100, 300, 1000),
        random=0.39,
        why="A picture of 10 x 10 x 4 that hardly recurs, in a game made to compare deep learners on. 5 is ten "
        "times random play.",
    ),
    Task(
        "MinAtar-Asterix",
        minatar("MinAtar/Asterix-v1"),
        lambda _: (5.0,),
        (50, 150, 300),
        random=0.46,
        why="A picture with moving friends and enemies: what matters is what is near, wherever it is. 5 is ten "
        "times random play.",
    ),
    Task(
        "DynaMaze",
        classic("DynaMaze-v0", 50),
        lambda _: (0.95,),
        (5, 10, 25, 50),
        random=0.01,
        why="The maze of Sutton and Barto's chapter 8, here with 50 steps for a path of 14. The optimum is 1.",
    ),
    Task(
        "WindyGridworldKingsStochastic",
        classic("WindyGridworldKingsStochastic-v0", 500),
        lambda _: (-26.2,),
        (10, 25, 50, 100, 200),
        random=-488.2,
        why="Exercise 6.10 of Sutton and Barto: costs only, eight actions, random wind. The optimum, by dynamic "
        "programming, is -23.8; the threshold is within a tenth of it.",
    ),
    Task(
        "JacksCarRental",
        classic("JacksCarRental-v0", 100),
        lambda _: (4998.0,),
        (5, 20, 50, 100),
        random=4339.0,
        why="Example 4.2 of Sutton and Barto: 441 states, eleven actions, large rewards in every step. The "
        "optimum of 100 days, by dynamic programming, is 5068; the threshold is nine tenths of the way from "
        "random play.",
    ),
    Task(
        "ResourceGathering",
        summed("resource-gathering-v0"),
        lambda _: (1.9,),
        (25, 100, 300),
        random=0.07,
        why="Numbers in a Box that are a table, a reward only back home, and enemies beside the short way. A safe "
        "path brings 2, the most there is.",
    ),
    Task(
        "BreakableBottles",
        bottles,
        lambda _: (30.0,),
        (10, 25, 50, 100),
        random=-53.81,
        why="A Dict of counted values. Carrying one bottle at a time brings 32; carrying two is faster, and drops "
        "one at times. The environment returns observations outside of its own space; they are corrected to the "
        "flags that it documents.",
    ),
    Task(
        "Minecart",
        summed("minecart-v0"),
        lambda _: (0.0,),
        (10, 25, 50),
        random=-9.883,
        why="Seven real numbers, costs for fuel in every step and ore far away. 0 means that the ore sold is "
        "worth the fuel; standing still costs 20.",
    ),
    Task(
        "InvertedDoublePendulum",
        lambda: Discretized(gym.make("InvertedDoublePendulum-v5"), 7),
        lambda _: (9100.0,),
        (25, 50, 100),
        random=42.79,
        why="Nine numbers of a MuJoCo body that falls within six steps of random play, with its force as seven "
        "choices. 9100 is what Gymnasium declares as solved.",
    ),
    Task(
        "Roundabout",
        imported("highway_env", "roundabout-v0"),
        lambda _: (9.3,),
        (50, 150),
        random=7.537,
        why="Traffic seen as 25 numbers, five vehicles in a list, with no order among them that lasts. Always "
        "braking brings 9.2 of at most 11.",
    ),
    Task(
        "FlappyBird",
        imported("flappy_bird_gymnasium", "FlappyBird-v0", use_lidar=False, max_episode_steps=1000),
        lambda _: (30.0,),
        (50, 100, 200),
        random=-7.524,
        why="Twelve numbers, and two actions of which one is right most of the time. A step brings 0.1 and a pipe "
        "1: 30 is a flight of more than 200 steps. Random play does not get through the first pipe.",
    ),
    Task(
        "NASim-Tiny",
        imported("nasim", "Tiny-v0"),
        lambda _: (190.0,),
        (10, 25, 50, 100),
        random=93.98,
        why="An attack on a network of three hosts, seen as 56 numbers that are a table, with 18 actions that "
        "cost and fail at times. No score is above 197.",
    ),
    Task(
        "MobileSmallCentral",
        imported("mobile_env", "mobile-small-central-v0"),
        lambda _: (-9.0,),
        (25, 50, 100),
        random=-40.01,
        why="Which of three cells each of five telephones should connect to: 35 numbers, actions of five parts. "
        "Following the best signal brings -8.9 (ten episodes), always the same cell -73 to -85 (two each).",
    ),
    Task(
        "SerialInventory",
        imported("gym_invmgmt", "GymInvMgmt/Serial-v0"),
        lambda _: (0.0,),
        (25, 50, 100, 200),
        random=-30400.0,
        why="A supply chain of three links with lead times: 15 numbers, and three orders of up to 3,200 units a "
        "day, where customers ask for 20. Ordering nothing brings -589, ordering 20 everywhere 761 (20 episodes).",
    ),
    Task(
        "TwentyFortyEight",
        imported("gymnasium_2048", "gymnasium_2048/TwentyFortyEight-v0", max_episode_steps=1000),
        lambda _: (2500.0,),
        (50, 150, 300),
        random=1073.0,
        why="The game of 2048 as a picture of 4 x 4 x 16 that does not recur, and luck in every step. The first "
        "legal one of down, left, right and up brings 2,560 (50 episodes).",
    ),
    *OPERATIONS.values(),
    *UNSEEN.values(),
)
