"""The decision problems from operations: they are environments, and their rules earn what is stated."""

import numpy as np
import pytest
from benchmarks.practice.evaluation import Run, random_return
from benchmarks.practice.operations import OPERATIONS, RULES, Inventory, Pricing, Storage, poisson, solve
from benchmarks.practice.reported import REPORTED
from benchmarks.practice.shares import lines
from gymnasium.utils.env_checker import check_env


def returns_of(env, policy, episodes):
    """The returns of fresh episodes of a policy of the state."""
    totals = np.zeros(episodes)
    for i in range(episodes):
        env.reset(seed=i)
        over = False
        while not over:
            seen, reward, terminated, truncated, _ = env.step(policy(env.state))
            totals[i], over = totals[i] + reward, terminated or truncated
            assert env.observation_space.contains(seen)
    return totals


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_problem_is_an_environment_and_its_levels_are_as_stated(name):
    task = OPERATIONS[name]
    env = task.make()
    check_env(env, skip_render_check=True)
    assert random_return(task) == pytest.approx(task.random, rel=1e-3)
    rule = solve(env)
    assert rule.value == pytest.approx(RULES[name], rel=1e-4)
    assert task.random < task.thresholds(None)[0] < rule.value <= rule.optimum + 1e-9
    played = returns_of(env, rule, 60)
    assert abs(played.mean() - rule.value) < 4 * played.std() / 60**0.5
    assert REPORTED[name] is task


def test_chances_sum_to_one_and_the_last_number_stands_for_all_larger_ones():
    numbers = poisson(2.0, 8)
    assert [n for n, _ in numbers] == list(range(9))
    assert sum(p for _, p in numbers) == pytest.approx(1)
    assert numbers[3][1] == pytest.approx(np.exp(-2) * 8 / 6)
    assert numbers[8][1] == pytest.approx(0.0011, abs=1e-4)


def test_the_best_level_to_order_up_to_is_close_to_the_optimum_of_inventory():
    env = Inventory()
    rule = solve(env)
    levels = {
        level: returns_of(env, lambda state, level=level: int(np.clip(level - sum(state), 0, 5)), 40)
        for level in (6, 10, 14)
    }
    means = {level: returns.mean() for level, returns in levels.items()}
    best = max(means, key=means.get)
    error = 4 * levels[best].std() / 40**0.5
    assert best == 10
    assert 0.9 * rule.value - error < means[best] < rule.optimum + error


def test_a_seat_costs_more_the_fewer_are_left():
    rule = solve(Pricing())
    few = [rule((15, seats)) for seats in (1, 4, 9, 20)]
    assert few == sorted(few, reverse=True)
    assert few[0] > few[-1]


def test_power_is_bought_at_night_and_sold_in_the_evening():
    rule = solve(Storage())
    assert rule((0, 4, -10.0)) == 2
    assert rule((4, 16, 10.0)) == 0
    assert rule((0, 4, -10.0)) == rule((0, 4, -10.01)), "between the points of the grid, that of the nearest"


def test_shares_are_0_for_random_play_and_1_for_the_rule():
    task = OPERATIONS["Maintenance"]
    best = RULES["Maintenance"]
    levels = [(best, task.random), (best, task.random), (task.random, task.random)]  # greedy, and while learning
    runs = [
        Run([{"mean": mean, "exact": None, "episodes": n} for n in task.points], [earned] * 200)
        for mean, earned in levels
    ]
    first, _, last = lines(task, "ours", runs)
    assert first == "| Maintenance | ours | 3 | 20 | 1.00 (0.00) | 0.00 (0.00) |"
    assert list(lines(task, "dqn", runs)) == [last.replace("ours", "dqn")]
