"""The benchmark of practice: what it computes, how it plays, and what its tables say."""

import dataclasses
import json

import gymnasium as gym
import numpy as np
import pytest
from benchmarks.practice import __main__ as command
from benchmarks.practice import blackjack, blackjack_floor, q_learning, results, rivals
from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.drawing import curve
from benchmarks.practice.evaluation import Exact, play, random_return
from benchmarks.practice.overview import BEGIN, END, cells, details, put_into, tables
from benchmarks.practice.reported import REPORTED
from benchmarks.practice.results import TASKS
from benchmarks.practice.summary import line, markdown, summary, text
from benchmarks.practice.worlds import FiftyActions
from gymnasium.utils.env_checker import check_env


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


def test_what_a_table_can_know_of_blackjack_grows_with_episodes():
    best, seen = blackjack.solve()[0], blackjack_floor.counts(2000, seed=0)
    assert sum(following is None for outcomes in seen.values() for _, following in outcomes) == 2000
    found = blackjack.solve(blackjack_floor.planned(seen))[0]
    assert -0.2 < found < blackjack_floor.bound(2000) < blackjack_floor.bound(20_000) < best - 0.005
    assert blackjack_floor.bound(10**9) == pytest.approx(best, abs=1e-5)


def test_hands_occur_as_often_as_in_play():
    env, often = gym.make("Blackjack-v1").unwrapped, dict.fromkeys(blackjack.HANDS, 0)
    for episode in range(5000):
        hand, over = env.reset(seed=0 if episode == 0 else None)[0], False
        while not over:
            often[hand] += 1
            hand, _, over, _, _ = env.step(blackjack.HIT)
    expected = blackjack_floor.reached(dict.fromkeys(blackjack.HANDS, 1))
    for total in range(4, 22):
        hands = [hand for hand in blackjack.HANDS if hand[0] == total]
        share = sum(expected[hand] for hand in hands)
        assert sum(often[hand] for hand in hands) / 5000 == pytest.approx(share, abs=4 * np.sqrt(share / 5000))


def test_a_natural_loses_to_nothing_and_draws_with_a_natural():
    for up in range(1, 11):
        draw = {1: 4 / 13, 10: 1 / 13}.get(up, 0.0)
        assert blackjack.sticking(21, up, True) == pytest.approx(1 - draw)
        assert blackjack.sticking(21, up, False) < 1 - draw


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


def made_up(seed, scores, thresholds=(5.0, 8.0), exact=None):
    return [
        {
            "seed": seed,
            "episodes": 10 * (i + 1),
            "steps": 100 * (i + 1),
            "mean": x,
            "exact": exact,
            "optimum": None,
        }
        | {"thresholds": list(thresholds), "wall_s": 2.0 * (i + 1), "cpu_s": 1.0 * (i + 1)}
        for i, x in enumerate(scores)
    ]


def test_a_line_of_the_table():
    seeds = {0: made_up(0, [1, 6, 2]), 1: made_up(1, [5, 5, 9]), 2: made_up(2, [0, 0, 3])}
    found = line(seeds, 5.0)
    assert (found["reached"], found["seeds"]) == (2, 3)
    assert (found["episodes"], found["steps"], found["wall_s"], found["cpu_s"]) == (20, 200, 4.0, 2.0)
    assert (found["last"], found["worst"]) == (3, 2)
    assert line(seeds, 8.0)["reached"] == 1
    assert line(seeds, 8.0)["steps"] == np.inf
    del seeds[1]
    assert line(seeds, 5.0)["steps"] == np.inf, "one of two has not met it"
    assert line({0: made_up(0, [6], exact=4.0)}, 5.0)["reached"] == 0, (
        "the expected return counts where it is known"
    )


def test_only_ours_is_asked_for_more_than_the_threshold_at_which_rivals_stop():
    found = {("CartPole-v1", name): {0: made_up(0, [1, 9])} for name in ("ours", "dqn-tuned")}
    assert [(row[1], row[3]) for row in summary(found)] == [(5.0, "ours"), (8.0, "ours"), (5.0, "dqn-tuned")]
    assert "| DQN | tuned | 1 of 1 | 20 | 200 | 4 | 2 | 9.000 | 9.000 |" in markdown(found)
    assert text(found).count("RLSVI (ours)") == 2


def test_curves_keep_the_last_return_of_a_seed_that_has_stopped():
    at, (low, middle, high) = curve({0: made_up(0, [1, 6, 2]), 1: made_up(1, [5])}, "steps")
    assert list(at) == [100, 200, 300]
    np.testing.assert_array_equal(middle, [3, 5.5, 3.5])
    np.testing.assert_array_equal((low[0], high[0]), (2, 4))


def test_a_result_is_a_file_and_a_rival_stops_when_it_has_met_the_threshold(tmp_path, monkeypatch):
    task = TASKS["CliffWalking-v1"]
    monkeypatch.setattr(results, "TASKS", {task.name: dataclasses.replace(task, steps={"q-learning": 20_000})})
    rows = results.measure(tmp_path, task.name, "q-learning", 3)["rows"]
    assert results.path_of(tmp_path, task.name, "q-learning", 3).exists()
    assert results.read(tmp_path) == {(task.name, "q-learning"): {3: rows}}
    assert [row["steps"] for row in rows] == [2000 * (i + 1) for i in range(len(rows))]
    assert [row["exact"] == -13 for row in rows] == [False] * (len(rows) - 1) + [True]
    assert rows[-1]["mean"] == rows[-1]["worst"] == -13


def test_cells_of_a_grid_are_numbered_each_once():
    task = TASKS["MountainCar-v0"]
    number, states = q_learning.numbering(task.make().observation_space, ((0.0, 3.0, 3), (0.0, 2.0, 2)))
    middles = [(x + 0.5, y + 0.5) for x in range(3) for y in range(2)]
    assert list(number(middles)) == list(range(6)) == list(range(states))
    assert list(number([(-9.0, -9.0), (9.0, 9.0)])) == [0, 5]


def test_without_stable_baselines3_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rivals, "available", lambda: False)
    assert command.main(["choose", "--learners", "dqn", "ppo", "--seeds", "1", "--out", str(tmp_path)]) == 1
    assert 'pip install ".[bench]"' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["choose", "--tasks", "Pong", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        command.main(["choose", "--tasks", "MinAtar-Asterix", "--out", str(tmp_path)])  # only reported


def test_a_task_is_chosen_on_or_only_reported_and_says_why():
    assert not set(CHOSEN) & set(REPORTED)
    assert len(REPORTED) >= 8
    for task in TASKS.values():
        assert task.why.endswith(".")
        assert list(task.points) == sorted(set(task.points))
        assert all(not by or by in task.points for by in task.asked), task.name
        assert not task.steps or task.name in CHOSEN, "rivals were tuned on what they are measured on"


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


def test_the_optimum_of_river_swim_is_that_of_its_time_limit():
    env = TASKS["RiverSwim-12"].make()
    exact = Exact(env)
    swim = exact.value(lambda states: np.ones(len(states), dtype=int))
    assert 0.9 * exact.optimum < swim <= exact.optimum
    assert exact.value(lambda states: np.zeros(len(states), dtype=int)) < 5


def test_our_variant_is_a_gymnasium_environment():
    check_env(FiftyActions(), skip_render_check=True)


def test_the_nearest_of_fifty_places_is_the_best_action():
    env = FiftyActions()
    observation, _ = env.reset(seed=3)
    total, best = 0.0, 0.0
    for _ in range(300):
        reward = env.rewards(observation[None])[0]
        assert reward.argmax() == np.linalg.norm(env.places - observation, axis=1).argmin()
        observation, paid, *_ = env.step(int(reward.argmax()))
        total, best = total + paid, best + reward.max()
    assert total == best
    assert 10 * total / 300 == pytest.approx(env.optimum(), rel=0.03)


def test_the_overview_says_what_was_asked_and_what_came_out():
    task = dataclasses.replace(TASKS["MountainCar-v0"], asked=(0, 20))
    (row,) = cells(task, {0: made_up(0, [1, 9, 2]), 1: made_up(1, [1, 9, 0])})
    assert row == ["MountainCar-v0", "-200.0", "8.000", "20", "**9.000** (9.000)", "2 of 2", "20", "2"]
    (row,) = cells(dataclasses.replace(task, asked=()), {0: made_up(0, [1, 9, 2])})
    assert row[2:5] == ["5.000", "(30)", "2.000 (2.000)"], "without an aim, the first threshold at the end"
    notes = {"Catch": {"failed: KeyError"}}
    page = tables({("MountainCar-v0", "ours"): {0: made_up(0, [1])}}, notes)
    assert page.count("not measured") == len(TASKS) - 2
    assert page.count("failed") == 1
    assert "A picture that recurs. failed: KeyError." in details(notes)


def test_tables_go_between_the_marks_of_a_page():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = put_into(page, "new\n")
    assert once == put_into(once, "new\n")
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    with pytest.raises(ValueError, match="benchmark begins"):
        put_into("no marks", "new")


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
    assert [row["episodes"] for row in results.read(tmp_path)["CartPole-v1", "ours"][0]] == [1, 2]


def test_warnings_that_differ_in_numbers_alone_are_told_once(tmp_path):
    for seed, texts in enumerate((["after 32 episodes, -0.5"], ["after 64 episodes, 1.25", "it is slow"])):
        held = {"agent": "RLSVI", "warnings": texts}
        (tmp_path / f"CartPole-v1.ours.{seed}.json").write_text(json.dumps(held))
    first = "warned with 2 of 2 seeds: after 32 episodes, -0.5"
    assert results.notes(tmp_path) == {"CartPole-v1": {"RLSVI", first, "warned with 1 of 2 seeds: it is slow"}}
