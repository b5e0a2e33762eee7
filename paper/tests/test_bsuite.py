"""The behaviour suite: scores of logs, tables and pictures, and, where the package is there, all of it."""

import sys

import gymnasium
import numpy as np
import polars as pl
import pytest

from rlsvi_paper.bsuite import package, scores
from rlsvi_paper.bsuite.package import EXPERIMENTS, LEFT_OUT, TAGS, is_logged
from rlsvi_paper.bsuite.runs import QLearning, RandomPlay, player
from rlsvi_paper.bsuite.scores import DEEP_SEA, Score, by_tag, deep_sea_score, radar
from test_cli import run, strict_json

MADE_UP = [
    Score("default", "bandit", 0.9, ["basic"], (20, 20), (10_000, 10_000), 3.0),
    Score("default", "catch", 0.5, ["basic", "credit_assignment"], (3, 20), (10_000, 10_000), 3.0),
    Score("random", "bandit", 0.0, ["basic"], (20, 20), (10_000, 10_000), 1.0),
]


# ---- without the package ------------------------------------------------------------------------------------


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "bsuite", None)
    result = run("bsuite", "--out", tmp_path / "new")
    assert result.exit_code == 2
    assert 'the behaviour suite needs bsuite: pip install . "./paper[bsuite]"' in result.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--experiments", "deep_see"), "unknown experiment 'deep_see' in --experiments: did you mean deep_sea?"),
        (("--quick", "--settings", "2"), "--quick stands for --settings and --episodes-share"),
        (("--episodes-share", "0"), "share must be a positive, finite number"),
        (("--episodes-share", "1.5"), "share must be at most 1"),
        (("--agents", "no-such"), "unknown agent 'no-such' in --agents: there are default, random, q-learning"),
        (
            ("--agents", "discountedpsrl"),
            "unknown agent 'discountedpsrl' in --agents: did you mean Disc",
        ),
        (("--agents", "Posterior"), "unknown agent 'Posterior'"),
        (("--agents", "no_module_here:Agent"), "there is no module no_module_here"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(arguments, says, tmp_path):
    result = run("bsuite", *arguments, "--out", tmp_path / "new")
    assert result.exit_code == 2
    assert says in result.stderr
    assert not (tmp_path / "new").exists()


def test_the_episodes_that_are_logged():
    first = [*range(1, 11), 12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100, 120, 140, 170, 200]
    assert [episode for episode in range(1, 201) if is_logged(episode)] == first


def deep_sea_log(bad):
    """The log of a size whose number of bad episodes after some episodes is as given, by id and episode."""
    rows = [(id_, episode, count) for id_, its in bad.items() for episode, count in its.items()]
    return pl.DataFrame(rows, schema=["bsuite_id", "episode", "total_bad_episodes"], orient="row")


@pytest.mark.parametrize(
    ("bad", "score", "stochastic"),
    [
        ({100: 0, 10_000: 0}, 1, 1),  # perfect play
        ({100: 100, 10_000: 9_990}, 0, 0),  # random play: one episode in 2^10 is good
        ({100: 100, 1_000: 890}, 1, 0),  # 89% are bad
        ({100: 100, 1_000: 900}, 0, 0),
        ({100: 100, 1_000: 1_000, 1_200: 0}, 0, 0),  # by then dithering has seen it: 2^10 + 100 episodes
        ({20: 0, 100: 95}, 1, 0),  # what noise brings about in the first 100 episodes does not count
    ],
)
def test_scores_of_deep_sea(bad, score, stochastic, monkeypatch):
    monkeypatch.setattr(scores, "arguments_of", {"deep_sea/0": {"size": 10}}.get)
    log = deep_sea_log({"deep_sea/0": bad})
    assert deep_sea_score(log, *DEEP_SEA["deep_sea"]) == score
    assert deep_sea_score(log, *DEEP_SEA["deep_sea_stochastic"]) == stochastic


def test_sizes_count_alike(monkeypatch):
    monkeypatch.setattr(scores, "arguments_of", {"deep_sea/0": {"size": 10}, "deep_sea/1": {"size": 12}}.get)
    log = deep_sea_log({"deep_sea/0": {100: 0}, "deep_sea/1": {100: 100}})
    assert deep_sea_score(log, 0.9, 1) == 0.5


def test_abilities_are_means_over_experiments():
    assert by_tag(MADE_UP[:2]) == {"basic": pytest.approx(0.7), "credit_assignment": 0.5}


def test_tables_mark_what_is_incomplete_and_name_what_was_not_run(tmp_path):
    head, rows = scores.table(MADE_UP)
    assert head == ["experiment", "default", "random", "settings", "episodes"]
    assert rows == [
        ["bandit", "0.90", "0.00", "20/20", "10,000/10,000"],
        ["catch", "0.50*", "", "3/20", "10,000/10,000"],
    ]
    _, rows = scores.tag_table(MADE_UP)
    assert rows == [["basic", "0.70*", "0.00*", "2/5"], ["credit assignment", "0.50*", "", "1/7"]]
    scores.write(MADE_UP, tmp_path, {"command": "rlsvi bsuite"})
    text = (tmp_path / "summary.md").read_text()
    assert all(name in text for name in EXPERIMENTS)
    assert LEFT_OUT["mnist"] in text
    assert scores.PARTIAL in text
    remembered = [MADE_UP[0]._replace(experiment=name, tags=["memory"]) for name in ("memory_len", "memory_size")]
    assert "0.90*" in scores.markdown(remembered[:1], "rlsvi bsuite")
    assert "*" not in scores.markdown(remembered, "rlsvi bsuite")
    assert strict_json((tmp_path / "scores.json").read_text())["tags"]["random"] == {"basic": 0.0}
    assert (tmp_path / "radar.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "radar.png").read_bytes().startswith(b"\x89PNG")


def test_a_radar_has_a_line_for_each_agent_and_a_gap_where_nothing_was_run():
    (axes,) = radar({"one": dict.fromkeys(TAGS, 0.5), "two": {"basic": 1.0}}).axes
    one, _, two, _ = (line.get_ydata() for line in axes.lines)
    assert np.array_equal(one, [0.5] * 8)
    assert np.array_equal(np.isfinite(two), [True, *[False] * 6, True])
    assert [tick.get_text() for tick in axes.get_xticklabels()][4] == "credit assignment"


class TwoSteps(gymnasium.Env):
    """1 is paid for action 1 in both steps of an episode, -1 for a wrong first action, which ends it."""

    observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,)), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.paid = 0, getattr(self, "paid", [])
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action):
        self.time += 1
        self.paid.append([-1.0, 1.0][action])
        return np.ones(1, dtype=np.float32), self.paid[-1], self.time == 2 or action == 0, False, {}


def test_players_to_compare_with():
    learned, random = TwoSteps(), TwoSteps()
    q = player("q-learning")(seed=0)
    assert isinstance(q, QLearning)
    q.learn(learned, 500)
    assert np.mean(learned.paid[-100:]) > 0.8  # 1 - 2 * 0.025 is expected
    values = {key: Q for key, (Q, _) in q.tables.items()}
    assert values[np.zeros(1, dtype=np.float32).tobytes()][1] == pytest.approx(1.99, abs=0.1)
    RandomPlay(seed=0).learn(random, 500)
    assert abs(np.mean(random.paid)) < 0.15  # 5 standard deviations of 750 steps are 0.18


def test_agents_of_the_library_have_their_names():
    import rlsvi

    assert player("default") is rlsvi.agent_for
    assert player("BoundedRLSVI") is rlsvi.BoundedRLSVI


def test_experiments_are_named_or_all_that_need_no_download():
    assert package.experiments_named(None) == [name for name in EXPERIMENTS if not name.startswith("mnist")]
    assert package.experiments_named("catch, mnist,catch") == ["catch", "mnist"]
