"""The benchmark of practice: what it computes, how it plays, and what its tables say."""

import dataclasses
import json
import re
import shutil

import gymnasium as gym
import numpy as np
import pytest
from benchmarks.practice import __main__ as command
from benchmarks.practice import blackjack, blackjack_floor, q_learning, results, rivals
from benchmarks.practice.box import BOX
from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.drawing import SHOWN, curve, figures
from benchmarks.practice.evaluation import Exact, Record, Run, own_action, play, random_return
from benchmarks.practice.headline import LEARNERS as DRAWN
from benchmarks.practice.headline import TASKS as HEADLINE
from benchmarks.practice.headline import episodes_in
from benchmarks.practice.reported import REPORTED
from benchmarks.practice.results import LEARNERS, TASKS
from benchmarks.practice.summary import BEGIN, END, cells, details, line, lines, put_into, table, text
from benchmarks.practice.worlds import FiftyActions
from gymnasium.utils.env_checker import check_env

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


def test_what_is_earned_while_learning_is_the_mean_of_the_episodes_asked_for():
    run = made_up(0, [1, 9], training=[0.0] * 10 + [3.0] * 10 + [100.0])
    assert (run.earned(10), run.earned(20)) == (0.0, 1.5)
    assert run.earned(22) is None, "it has not played so many"
    assert run.earned_between() == [0.0, 3.0], "what follows the last evaluation belongs to none"
    old = made_up(0, [1, 9])
    assert old.earned(10) is None, "results from before it was recorded"
    assert np.isnan(old.earned_between()).all()
    found = line({0: run, 1: made_up(1, [1], training=[1.0] * 20), 2: old}, 5.0, 0, 20)
    assert found["earned"] == [1.5, 1.0]


def test_ours_is_asked_for_more_than_the_threshold_at_which_rivals_stop():
    both = {("CartPole-v1", name): {0: made_up(0, [1, 9])} for name in ("ours", "dqn-tuned")}
    task = asking(asked=(0, 20), worst=(None, 9.5))
    assert [row[:4] for row in lines(task, both)] == [
        ("ours", 5.0, 0, None),
        ("ours", 8.0, 20, 9.5),
        ("dqn-tuned", 5.0, 0, None),
    ]
    alone = {("CartPole-v1", "ours"): both["CartPole-v1", "ours"]}
    assert [row[:3] for row in lines(task, alone)] == [("ours", 8.0, 20)], "no one to be compared with"
    assert [row[:3] for row in lines(asking(asked=()), alone)] == [("ours", 5.0, 0)]
    twice = lines(asking(levels=(5.0, 5.0), asked=(10, 20)), alone)
    assert [(by, row["then"]) for _, _, by, _, row in twice] == [(10, [1]), (20, [9])], "the same level twice"


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


def test_a_task_without_results_is_not_left_out():
    notes = {"Catch": {"failed: KeyError"}, "Taxi-v4": {"DiscountedPSRL", "failed: KeyError"}}
    results = {("MountainCar-v0", "ours"): {0: made_up(0, [-90.0])}}
    page = table(results, notes)
    assert page.count("not measured") == len(TASKS) - 3
    assert page.count("failed") == 2
    assert details(notes) == "- DiscountedPSRL (Taxi-v4)\n- failed: KeyError (Taxi-v4, Catch)\n"
    shown = text(results, notes)
    assert shown.count("  rlsvi  ") == 3, "a terminal shows what there is: MountainCar, and the failures"
    assert "**" not in shown


def test_the_picture_of_the_readme_finds_its_numbers_in_the_table():
    results = {
        ("CartPole-v1", "ours"): {0: made_up(0, [500.0, 500.0])},
        ("CartPole-v1", "ppo-tuned"): {0: made_up(0, [1.0, 480.0]), 1: made_up(1, [1.0, 1.0])},
    }
    found = episodes_in(table(results, {}))["CartPole-v1"]
    assert found == {"rlsvi, one default for all tasks": ("1/1", "10"), "PPO, tuned": ("1/2", "-")}
    old = "| task | threshold | learner | reached | episodes |\n|---|\n| Pong | 1 | rlsvi | 2/3 | 7 |"
    assert episodes_in(old) == {"Pong": {"rlsvi, one default for all tasks": ("2/3", "7")}}
    page = episodes_in((HOUSE / "docs" / "practice-evidence.md").read_text())
    assert all(set(page[task]) == set(DRAWN.values()) for task in HEADLINE)
    assert page["Acrobot-v1"]["rlsvi, one default for all tasks"] == ("10/10", "25")


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


def test_curves_keep_the_last_return_of_a_seed_that_has_stopped():
    seeds = {0: made_up(0, [1, 6, 2], training=[0.0] * 10 + [4.0] * 20), 1: made_up(1, [5], training=[2.0] * 10)}
    at, (worst, low, middle, high), learning = curve(seeds)
    assert list(at) == [10, 20, 30]
    np.testing.assert_array_equal(worst, [1, 5, 2])
    np.testing.assert_array_equal(middle, [3, 5.5, 3.5])
    np.testing.assert_array_equal((low[0], high[0]), (2, 4))
    np.testing.assert_array_equal(learning, [1, 3, 3])
    assert np.isnan(curve({0: made_up(0, [1])})[2]).all(), "old results do not have it"


def test_six_tasks_have_a_plot_with_greedy_worst_and_training_returns():
    seeds = {s: made_up(s, [100.0, 400.0 + s], training=[20.0] * 20) for s in range(3)}
    panels = {task: drawing.axes[0] for task, drawing in figures({("CartPole-v1", "ours"): seeds}).items()}
    assert [axes.get_title(loc="left") for axes in panels.values()] == list(panels) == list(SHOWN)
    assert len(SHOWN) == 6
    curves = [list(drawn.get_ydata()) for drawn in panels["CartPole-v1"].lines]
    assert curves == [[100, 400], [100, 401], [20, 20], [475, 475]]
    assert [each.get_text() for each in panels["MountainCar-v0"].texts] == ["not measured"]
    assert all(learner in LEARNERS for others in SHOWN.values() for learner in others)
    assert all(learner in TASKS[task].steps for task, others in SHOWN.items() for learner in others)


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


def test_settings_are_there_for_every_rival_that_is_measured_with_published_ones():
    for task in TASKS.values():
        for learner in task.steps:
            assert learner in LEARNERS
            name, _, tuned = learner.partition("-")
            assert not tuned or name == "q" or (task.name, name) in rivals.TUNED
        if task.name in BOX:
            assert {"ppo-tuned", "sac-tuned", "td3-tuned"} <= set(task.steps)
        assert len(task.worst) <= len(task.asked) <= len(task.thresholds(1.0))


def test_seeds_are_thirty_for_classic_control_ten_elsewhere_and_five_for_rivals(tmp_path):
    classic = {"CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Pendulum-v1"}
    assert {name for name in TASKS if len(results.seeds_of(name, "ours")) == 30} == classic
    assert {len(results.seeds_of(name, "ours")) for name in TASKS} == {10, 30}
    assert results.seeds_of("CartPole-v1", "ppo-tuned") == range(5)
    options = command.options_of(["choose", "--tasks", "CartPole-v1", "Catch", "--out", str(tmp_path)])
    options.learners = ["ours", "q-learning"]
    asked = command.asked_for(options)
    assert len(asked) == 30 + 10 + 5
    assert [seed for *_, seed in asked] == sorted(seed for *_, seed in asked)
    options = command.options_of(["box", "--seeds", "100-101", "--learners", "ours", "--out", str(tmp_path)])
    assert {seed for *_, seed in command.asked_for(options)} == {100, 101}


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
    assert len(CHOSEN) + len(BOX) + len(REPORTED) == len(TASKS)
    assert len(REPORTED) >= 17
    for task in TASKS.values():
        assert task.why.endswith(".")
        assert list(task.points) == sorted(set(task.points))
        assert all(not by or by in task.points for by in task.asked), task.name
        assert not task.steps or task.name not in REPORTED, "rivals were tuned on what they are measured on"


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


PACKAGES = {  # of some tasks that are only reported
    "BreakableBottles": "mo_gymnasium",
    "FlappyBird": "flappy_bird_gymnasium",
    "NASim-Tiny": "nasim",
    "SerialInventory": "gym_invmgmt",
    "TwentyFortyEight": "gymnasium_2048",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PACKAGES)
def test_observations_of_reported_tasks_lie_in_their_spaces(name):
    pytest.importorskip(PACKAGES[name], exc_type=ImportError)
    env = REPORTED[name].make()
    env.action_space.seed(0)
    for episode in range(5):
        (observation, _), done = env.reset(seed=episode), False
        while not done:
            assert env.observation_space.contains(observation)
            observation, _, terminated, truncated, _ = env.step(own_action(env, env.action_space.sample()))
            done = terminated or truncated


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
    (run,) = results.read(tmp_path)["CartPole-v1", "ours"].values()
    assert [row["episodes"] for row in run.rows] == [1, 2]
    assert len(run.training) == 2
    assert min(run.training) >= 8, "a pole falls within so many steps at the soonest"


def test_results_from_before_training_was_recorded_are_shown_without_it(tmp_path):
    rows = made_up(0, [480.0] * 5).rows
    (tmp_path / "CartPole-v1.ours.0.json").write_text(json.dumps({"rows": rows, "agent": "TableOrFeatures"}))
    found = results.read(tmp_path)
    assert found["CartPole-v1", "ours"][0] == Run(rows, None)
    assert [row[6] for row in cells(TASKS["CartPole-v1"], found, {})] == ["-", "-"]
    figures(found)


def test_warnings_that_differ_in_numbers_alone_are_told_once(tmp_path):
    for seed, texts in enumerate((["after 32 episodes, -0.5"], ["after 64 episodes, 1.25", "it is slow"])):
        held = {"agent": "RLSVI", "warnings": texts}
        (tmp_path / f"CartPole-v1.ours.{seed}.json").write_text(json.dumps(held))
    first = "warned with 2 of 2 seeds: after 32 episodes, -0.5"
    assert results.notes(tmp_path) == {"CartPole-v1": {"RLSVI", first, "warned with 1 of 2 seeds: it is slow"}}
