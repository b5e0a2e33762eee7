"""Tasks whose actions are real numbers, as they are, beside SAC, TD3 and PPO with published settings.

Where a task has no aim of ours, the threshold is the one that Gymnasium declares. The budgets are those that the
settings were published with where that is at most 100 thousand steps; otherwise TD3 gets 50 of 300 thousand on
MountainCarContinuous; SAC and TD3 100 thousand on LunarLander and 30 thousand of a million on InvertedPendulum and
Reacher; PPO 300, 100 and 200 of a million on these three. The packages: pip install ".[bench]".
"""

from benchmarks.practice.task import Task, budgets, by_name, made

BOX = by_name(
    Task(
        "Pendulum-v1",
        made("Pendulum-v1"),
        lambda _: (-200.0, -155.0),
        (10, 25, 50, 100),
        random=-1228.0,
        why="One torque. Published tuned learners end between -152 and -213.",
        asked=(0, 50),
        worst=(None, -250.0),
        seeds=30,
        steps=budgets(ppo_tuned=100_000, sac_tuned=20_000, td3_tuned=20_000),
    ),
    Task(
        "MountainCarContinuous-v0",
        made("MountainCarContinuous-v0"),
        lambda _: (90.0,),
        (5, 10, 20, 30, 50),
        random=-33.25,
        why="Pushing costs, and the goal is worth 100: standing still brings 0. The threshold is Gymnasium's.",
        steps=budgets(ppo_tuned=20_000, sac_tuned=50_000, td3_tuned=50_000),
    ),
    Task(
        "LunarLander-continuous",
        made("LunarLander-v3", continuous=True),
        lambda _: (200.0, 100.0),
        (50, 100, 150, 300),
        random=-214.4,
        why="Eight numbers and two thrusts. The first threshold is Gymnasium's; both are those of four actions.",
        asked=(300, 150),
        steps=budgets(ppo_tuned=300_000, sac_tuned=100_000, td3_tuned=100_000),
        shown_from=-600.0,
    ),
    Task(
        "InvertedPendulum-v5",
        made("InvertedPendulum-v5"),
        lambda _: (950.0,),
        (10, 25, 50, 100),
        random=4.71,
        why="A MuJoCo cart and pole with one force, for at most 1,000 steps. The threshold is Gymnasium's.",
        steps=budgets(ppo_tuned=100_000, sac_tuned=30_000, td3_tuned=30_000),
    ),
    Task(
        "Reacher-v5",
        made("Reacher-v5"),
        lambda _: (-3.75,),
        (25, 50, 100, 200),
        random=-43.33,
        why="Ten numbers of an arm with two joints, two torques, and a goal that moves from episode to episode. "
        "The threshold is Gymnasium's.",
        steps=budgets(ppo_tuned=200_000, sac_tuned=30_000, td3_tuned=30_000),
    ),
)
