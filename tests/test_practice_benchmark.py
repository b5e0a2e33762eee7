"""The benchmark of practice: what it computes, how it plays, and what its tables say."""

import dataclasses
import re
import shutil

import gymnasium as gym
import numpy as np
import pytest
from benchmarks.practice import __main__ as command
from benchmarks.practice import blackjack, results
from benchmarks.practice.box import BOX
from benchmarks.practice.evaluation import Exact, Record, Run, play, random_return
from benchmarks.practice.results import TASKS
from benchmarks.practice.summary import cells, line

from pages import HOUSE


def sticks_on(total):
    return {hand: int(hand[0] < total) for hand in blackjack.HANDS}


def test_a_dealer_who_stands_on_all_17_busts_as_often_as_tables_say():
    published = [0.1153, 0.3536, 0.3739, 0.3945, 0.4164, 0.4232, 0.2623, 0.2447, 0.2284, 0.2121]
    found = []
    for up in range(1, 11):
        hands = [(p, blackjack.add(*blackjack.add(0, 0, up), card)) for card, p in blackjack.CARDS.items()]
        found.append(sum(p * blackjack.dealer(*hand)[22] for p, hand in hands))
    np.testing.assert_allclose(found, published, atol=1e-4)


def test_the_best_play_of_blackjack_is_the_textbooks():
    value, best = blackjack.solve()
    assert blackjack.solve(best)[0] == value > max(blackjack.solve(sticks_on(t))[0] for t in range(12, 22))
    for up in range(2, 11):  # Sutton and Barto (2018), figure 5.2
        hard = min(t for t in range(12, 22) if best[t, up, 0] == blackjack.STICK)
        soft = min(t for t in range(12, 22) if best[t, up, 1] == blackjack.STICK)
        assert hard == (17 if up > 6 else 12 if up in (4, 5, 6) else 13)
        assert soft == (19 if up in (9, 10) else 18)


def test_the_value_of_a_blackjack_policy_is_what_playing_it_gives():
    envs = [gym.make("Blackjack-v1") for _ in range(200)]
    policy = sticks_on(15)

    def act(hands, state, masks):
        return [policy[tuple(int(part) for part in hand)] for hand in zip(*hands, strict=True)], None

    returns = np.concatenate([play(envs, act, first=200 * i) for i in range(15)])
    exact = Exact(envs[0]).value(lambda hands: act(hands, None, None)[0])
    assert exact == blackjack.solve(policy)[0]
    assert abs(returns.mean() - exact) < 4 * returns.std() / len(returns) ** 0.5


@pytest.mark.parametrize("name", ["CartPole-v1", "Taxi-v4", "Blackjack-v1"])
def test_lockstep_is_one_by_one(name):
    """Episodes of different lengths, a policy with a state, and masks."""

    def choose(number, state, mask):
        action = int(number * 7 + state * state) % 2
        return action if mask is None or mask[action] else int(np.flatnonzero(mask)[-1])

    def number(observation):
        return float(np.sum(np.abs(observation)))

    def policy(batch, state, masks):
        rows = list(zip(*batch, strict=True)) if isinstance(batch, tuple) else batch
        state = np.arange(len(rows)) if state is None else state  # each its own
        each = [None] * len(rows) if masks is None else masks
        actions = [choose(number(o), s, m) for o, s, m in zip(rows, state, each, strict=True)]
        return actions, state + 1

    envs, alone = [gym.make(name) for _ in range(12)], []
    for i, env in enumerate(envs):
        (observation, info), total, state, done = env.reset(seed=5 + i), 0.0, i, False
        while not done:
            action = choose(number(observation), state, info.get("action_mask"))
            observation, reward, terminated, truncated, info = env.step(action)
            total, state, done = total + reward, state + 1, terminated or truncated
        alone.append(total)
    np.testing.assert_array_equal(play(envs, policy, first=5), alone)


def test_the_optimum_is_met_by_the_best_path_and_by_no_other():
    exact = Exact(TASKS["CliffWalking-v1"].make())
    path = np.where(np.arange(48) == 36, 0, np.where(np.arange(48) % 12 == 11, 2, 1))  # up, right, down at the end
    assert exact.value(lambda states: path[states]) == exact.optimum == -13
    assert exact.value(lambda states: np.zeros(len(states))) == -200


def made_up(seed, scores, exact=None, training=None):
    rows = [
        {"seed": seed, "mean": x, "exact": exact, "optimum": None}
        | {"episodes": 10 * i, "steps": 100 * i, "wall_s": 2.0 * i, "cpu_s": 1.0 * i}
        for i, x in enumerate(scores, 1)
    ]
    return Run(rows, training)


def asking(name="CartPole-v1", levels=(5.0, 8.0), **changes):
    return dataclasses.replace(TASKS[name], thresholds=lambda _: levels, **changes)


def test_a_line_of_the_table():
    seeds = {0: made_up(0, [1, 6, 2]), 1: made_up(1, [5, 5, 9]), 2: made_up(2, [0, 0, 3])}
    found = line(seeds, 5.0, by=0, compared=10)
    assert (found["reached"], found["seeds"]) == (2, 3)
    assert (found["episodes"], found["steps"], found["wall_s"], found["cpu_s"]) == (20, 200, 4.0, 2.0)
    assert (found["then"], found["met"], found["earned"]) == ([2, 9, 3], 1, [])
    assert line(seeds, 5.0, by=15, compared=10)["then"] == [6, 5, 0], "the first evaluation after 15 episodes"
    assert line(seeds, 8.0, 0, 10)["reached"] == 1
    assert line(seeds, 8.0, 0, 10)["steps"] == np.inf
    del seeds[1]
    assert line(seeds, 5.0, 0, 10)["steps"] == np.inf, "one of two has not met it"
    exact = line({0: made_up(0, [6], exact=4.0)}, 5.0, 0, 10)
    assert exact["reached"] == 0, "the expected return counts where it is known"


def test_the_table_says_what_was_asked_and_what_came_out():
    task = asking("MountainCar-v0", asked=(0, 20), worst=(None, 9.0))
    earning = [1.0] * 10 + [2.0] * 20
    seeds = {0: made_up(0, [1, 9, 2], training=earning), 1: made_up(1, [1, 7, 0], training=[0.0] * 30)}
    (row,) = cells(task, {(task.name, "ours"): seeds}, {})
    assert row[:5] == ["MountainCar-v0", "-200.0", "rlsvi", "8.000", "20"]
    assert row[5:] == ["**8.000** (7.000), 1/2", "0.750 (0.000)", "1/2", "-", "-"]
    (row,) = cells(task, {(task.name, "ours"): {0: seeds[0], 1: seeds[0]}}, {})
    assert row[5] == "**9.000** (**9.000**), 2/2", "the worst seed is at what is asked of it, too"
    rival = {(task.name, "ppo-tuned"): {0: made_up(0, [1, 6], training=[4.0] * 20)}}
    missing, row = cells(task, rival, {})
    assert missing[3] == "not measured"
    assert row[2:6] == ["PPO, tuned", "5.000", "end", "**6.000**, 1/1"]
    assert row[6:] == ["4.000", "1/1", "20", "2"]
    (row,) = cells(dataclasses.replace(task, asked=()), {(task.name, "ours"): {0: seeds[0]}}, {})
    assert row[3:6] == ["5.000", "(100)", "2.000, 0/1"], "without an aim, the first threshold at the end"
    assert row[6] == "-", "thirty episodes are not the hundred of the task"


def test_the_page_of_evidence_and_the_plots_of_practice_can_be_written_again(tmp_path):
    docs = tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    shutil.copy(HOUSE / "docs" / "practice-evidence.md", docs)
    results = {("CartPole-v1", "ours"): {0: made_up(0, [500.0, 500.0])}}
    command.write(results, {"Catch": {"warned with 1 of 1 seeds: slow; try this"}}, tmp_path, docs)
    page = (docs / "practice-evidence.md").read_text()
    assert "\n- warned with 1 of 1 seeds: slow (Catch)\n" in page
    shown = set(re.findall(r'src="(images/[^"]+)"', (HOUSE / "docs" / "practice.md").read_text()))
    assert shown == {path.relative_to(docs).as_posix() for path in (docs / "images").iterdir()}
    assert all((HOUSE / "docs" / image).exists() for image in shown)


def test_a_rival_goes_on_until_it_has_played_what_ours_is_asked_for():
    task = asking(levels=(5.0,), asked=(3,))
    record = Record(task, "PPO", "tuned", 0, episodes=2)
    record.start()

    def policy(observations, state, masks):
        return np.zeros(len(observations), int), None

    record.ended(1.0)
    assert not record.at(policy, 10), "the threshold is met, with one of three episodes"
    record.ended(1.0)
    record.ended(4.0)
    assert record.at(policy, 30)
    assert [row["episodes"] for row in record.rows] == [1, 3]
    assert record.training == [1.0, 1.0, 4.0]
    above = Record(asking(levels=(50.0,), asked=(1,)), "PPO", "tuned", 0, episodes=2)
    above.start()
    above.ended(1.0)
    assert not above.at(policy, 10), "the threshold is not met"


def test_actions_that_are_real_numbers_are_played_as_they_are():
    envs = [gym.make("Pendulum-v1") for _ in range(3)]
    torque = np.array([[-2.0], [0.5], [1.5]], np.float32)
    alone = []
    for i, env in enumerate(envs):
        env.reset(seed=5 + i)
        alone.append(sum(env.step(torque[i])[1] for _ in range(200)))
    np.testing.assert_array_equal(play(envs, lambda batch, *_: (torque, None), first=5), alone)
    task = dataclasses.replace(BOX["Pendulum-v1"], make=lambda: gym.make("Pendulum-v1", max_episode_steps=5))
    assert random_return(task, 3) == random_return(task, 3)


def test_a_result_is_a_file_and_a_rival_stops_when_it_has_met_the_threshold(tmp_path, monkeypatch):
    task = TASKS["CliffWalking-v1"]
    monkeypatch.setattr(results, "TASKS", {task.name: dataclasses.replace(task, steps={"q-learning": 20_000})})
    measured = results.measure(tmp_path, task.name, "q-learning", 3)
    rows, training = measured["rows"], measured["training"]
    assert results.path_of(tmp_path, task.name, "q-learning", 3).exists()
    assert results.read(tmp_path) == {(task.name, "q-learning"): {3: Run(rows, training)}}
    assert rows[-1]["episodes"] == len(training)
    assert -200 * 100 <= min(training) <= max(training) <= -13
    assert [row["steps"] for row in rows] == [2000 * (i + 1) for i in range(len(rows))]
    assert [row["exact"] == -13 for row in rows] == [False] * (len(rows) - 1) + [True]
    assert rows[-1]["mean"] == rows[-1]["worst"] == -13


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-8x8", "FiftyActions", "SwingUp", "RiverSwim-12"])
def test_random_play_is_as_bad_as_stated(name):
    task = TASKS[name]
    assert random_return(task) == pytest.approx(task.random, rel=1e-2, abs=1e-3)
    assert task.random < min(task.thresholds(Exact(task.make()).optimum))


@pytest.mark.parametrize("name", ["MountainCar-v0", "Taxi-v4", "DeepSea-20", "Rooms-20", "Headings-8", "Catch"])
def test_tasks_can_be_made(name):
    env = TASKS[name].make()
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)


def test_a_failure_is_noted_and_tried_again(tmp_path, monkeypatch):
    broken = dataclasses.replace(TASKS["CartPole-v1"], make=lambda: gym.make("CartPole-v1"), points=(1, 2))
    monkeypatch.setattr(results, "TASKS", {"CartPole-v1": broken})
    monkeypatch.setattr(results.ours, "learn", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        results.measure(tmp_path, "CartPole-v1", "ours", 0)
    assert results.notes(tmp_path) == {"CartPole-v1": {"failed: ZeroDivisionError: division by zero"}}
    assert results.read(tmp_path) == {}
    monkeypatch.undo()
    results.measure(tmp_path, "CartPole-v1", "ours", 0, quick=True)
    assert results.notes(tmp_path) == {"CartPole-v1": {"TableOrFeatures"}}
    (run,) = results.read(tmp_path)["CartPole-v1", "ours"].values()
    assert [row["episodes"] for row in run.rows] == [1, 2]
    assert len(run.training) == 2
    assert min(run.training) >= 8, "a pole falls within so many steps at the soonest"
