"""`rlsvi train`, `rlsvi evaluate` and `rlsvi watch` for any environment."""

import json
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from PIL import Image

import rlsvi
from command_line import run
from rlsvi.cli.environment import arguments_of
from rlsvi.cli.train import chart
from rlsvi.envs.description import Made

LAKE = ("train", "FrozenLake-v1", "--episodes", 12, "--evaluate", 4)
MODULE = """
import gymnasium as gym
import numpy as np


class Walk(gym.Env):
    \"\"\"Three steps; fails in episode `fails`, by Ctrl-C if `how` says so.\"\"\"

    observation_space = gym.spaces.Box(-5.0, 5.0, (1,))
    action_space = gym.spaces.Discrete(2)
    metadata = {"render_modes": ["ansi"]}

    def __init__(self, fails=None, how="raise", render_mode=None):
        self.fails, self.how, self.episode, self.render_mode = fails, how, 0, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t, self.episode = 0.0, 0, self.episode + 1
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action):
        if self.episode == self.fails and self.t == 1:
            raise KeyboardInterrupt if self.how == "stop" else ZeroDivisionError("the motor is off")
        self.x, self.t = self.x + (1.0 if action else -1.0), self.t + 1
        x = np.array([float("nan") if self.how == "nan" else self.x], dtype=np.float32)
        return x, self.x, self.t == 3, False, {}

    def render(self):
        return f"at {self.x:.0f}"


gym.register("Walk-v0", entry_point="walks:Walk")
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    """A folder of its own, with a module in it that nothing else finds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "walks.py").write_text(MODULE)
    yield
    gym.registry.pop("Walk-v0", None)
    sys.modules.pop("walks", None)


# ---- train ------------------------------------------------------------------------------------------------


def test_train_learns_evaluates_and_saves(tmp_path):
    result = run(*LAKE, "--env-arg", "is_slippery=false", "--max-episode-steps", 20, "--out", "lake.rlsvi")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("mean return ")
    assert "of 4 fresh episodes (standard error" in result.stdout
    for word in (
        "12/12",
        "mean of the last 10",
        "return of episodes 1 to 12",
        "█",
        "agent: lake.rlsvi",
        "lake.png",
    ):
        assert word in result.stderr
    with Image.open("lake.png") as curve:
        assert curve.format == "PNG"
    agent = rlsvi.load("lake.rlsvi")
    made = Made("FrozenLake-v1", {"is_slippery": False}, 20)
    assert agent.environment == made
    twin = rlsvi.agent_for(made.make(), seed=0).learn(made.make(), episodes=12)
    assert twin.steps == agent.steps
    assert str(rlsvi.evaluate(twin, made.make(), 4)) == result.stdout.strip()
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".rlsvi", ".png", ".tmp")) == [
        "lake.png",
        "lake.rlsvi",
    ]


def test_train_as_json_with_arguments_of_the_agent():
    given = "--gamma", 0.9, "--sigma", 0.5, "--lam", 2, "--basis", "table"
    result = run(*LAKE, "--json", "--quiet", "--agent", "StationaryRLSVI", *given)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["environment"]["id"] == "FrozenLake-v1"
    assert found["file"] == "FrozenLake-v1.rlsvi"
    assert len(found["returns"]) == found["episodes"] == 12
    assert found["evaluation"]["episodes"] == 4
    agent = rlsvi.load("FrozenLake-v1.rlsvi")
    assert (agent.gamma, agent.sigma, agent.lam) == (0.9, 0.5, 2.0)
    assert agent.basis == rlsvi.bases.Tabular()


def test_the_file_names_the_version_that_was_trained():
    made = run(
        "train", "rlsvi/Chain", "--env-arg", "length=4", "--episodes", 2, "--evaluate", 0, "--out", "a.rlsvi"
    )
    assert made.exit_code == 0, made.stderr
    assert rlsvi.load("a.rlsvi").environment == Made("rlsvi/Chain-v0", {"length": 4})
    for again in (
        ("evaluate", "a.rlsvi", "--episodes", 1),
        ("evaluate", "a.rlsvi", "--episodes", 1, "--env", "rlsvi/Chain"),
        ("train", "rlsvi/Chain", "--resume", "a.rlsvi", "--episodes", 1, "--evaluate", 0, "--out", "b.rlsvi"),
        ("watch", "a.rlsvi", "--gif", "a.gif"),
    ):
        found = run(*again)
        assert found.exit_code == 0, found.stderr
    assert rlsvi.load("b.rlsvi").environment.arguments == {"length": 4}


def test_a_class_or_a_function_of_a_module_is_an_environment():
    module = MODULE.partition("gym.register")[0].replace('["ansi"]', '["ansi"], "render_fps": 8')
    Path("walks.py").write_text(f"{module}def seven(): return gym.wrappers.TimeLimit(Walk(), 7)\nnumber = 3\n")
    for name in ("walks:Walker", "walks:number"):
        assert "names walks:" in run("train", name).stderr
    args = ("--episodes", 3, "--evaluate", 2, "--evaluate-every", 1, "--max-episode-steps", 2)
    for name, file in (("walks:Walk", "walks-Walk.rlsvi"), ("walks:seven", "walks-seven.rlsvi")):
        result = run("train", name, *args)
        assert result.exit_code == 0, result.stderr
        assert rlsvi.load(file).environment == Made(name, {}, 2)
        assert "name it with --env" in run("evaluate", file).stderr
        again = run("evaluate", file, "--env", name, "--episodes", 2)
        assert again.exit_code == 0, again.stderr
        assert result.stdout in again.stdout, "in the same environment, of two steps"
    assert run("watch", "walks-Walk.rlsvi", "--env", "walks:Walk").exit_code == 0
    assert "did you mean fails" in run("train", "walks:Walk", "--env-arg", "fail=3", "--out", "x.rlsvi").stderr


def test_a_horizon_shorter_than_the_episodes_is_evaluated():
    args = ("--agent", "psrl", "--agent-arg", "horizon=3", "--episodes", 2, "--evaluate", 2, "--json")
    result = run("train", "rlsvi/Chain-v0", *args)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["evaluation"]["steps"] == 6


def test_training_goes_on():
    whole = run("train", "walks:Walk-v0", "--episodes", 5, "--evaluate", 0, "--out", "whole", "--quiet")
    half = run("train", "walks:Walk-v0", "--episodes", 2, "--evaluate", 0, "--out", "half", "--quiet")
    rest = run(
        *("train", "walks:Walk-v0", "--episodes", 3, "--evaluate", 0),
        *("--resume", "half", "--out", "half", "--quiet"),
    )
    assert (whole.exit_code, half.exit_code, rest.exit_code) == (0, 0, 0), rest.stderr
    one, two = rlsvi.load("whole"), rlsvi.load("half")
    assert one.episodes == two.episodes == 5
    assert {name: array.tobytes() for name, array in one._state().items()} == {
        name: array.tobytes() for name, array in two._state().items()
    }


def test_training_goes_on_in_the_environment_that_the_file_remembers():
    dry = ("--env-arg", "is_slippery=false", "--max-episode-steps", 30)
    assert run(*LAKE, *dry, "--out", "dry", "--quiet").exit_code == 0
    assert run(*LAKE, "--resume", "dry", "--out", "more", "--quiet").exit_code == 0
    first, more = rlsvi.load("dry"), rlsvi.load("more")
    assert more.episodes == 2 * first.episodes
    assert more.environment == first.environment
    assert more.environment.arguments == {"is_slippery": False}
    assert run(*LAKE, "--env-arg", "is_slippery=true", "--resume", "dry", "--out", "wet", "--quiet").exit_code == 0
    assert rlsvi.load("wet").environment.arguments == {"is_slippery": True}


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("raise", 2, ("error: the motor is off (ZeroDivisionError in walks.py, line ",)),
        ("stop", 130, ("stopped",)),
    ],
)
def test_what_was_learned_before_a_failure_is_saved(how, code, words):
    fails = ("--env-arg", "fails=4", "--env-arg", f"how={how}")
    result = run("train", "walks:Walk-v0", "--episodes", 9, *fails, "--out", "walk.rlsvi")
    assert result.exit_code == code
    assert result.stdout == ""
    for word in (*words, "what was learned in 3 episodes (9 steps) is in walk.rlsvi"):
        assert word in result.stderr
    agent, twin = rlsvi.load("walk.rlsvi"), rlsvi.load("walk.rlsvi")
    assert agent.episodes == 3
    assert agent.environment.arguments == {"fails": 4, "how": how}
    good = gym.make("Walk-v0")
    assert (agent.learn(good, episodes=1)._streams == twin.learn(good, episodes=1)._streams).all()


@pytest.mark.filterwarnings("default")  # Gymnasium warns of NaN too
def test_nothing_is_written_where_nothing_was_learned(tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    for arguments, words in [
        (("--env-arg", "fails=1"), ("the motor is off", "nothing was learned")),
        (("--env-arg", "how=nan"), ("NaN, infinity", "nothing was learned")),
        (("--env-arg", "how"), ("--env-arg takes NAME=VALUE", "'how'")),
        (("--env-arg", "who=1"), ("Walk-v0 has no argument who: did you mean how?",)),
        (("--gamma", 2), ("gamma",)),
        (("--out", "no/walk.rlsvi"), ("cannot write", "there is no folder")),
        (("--out", "."), ("it is a folder",)),
        (("--resume", "nothing"), ("there is no file nothing",)),
        (("--choices", 3), ("cannot be offered as a finite choice",)),
        (("--basis", "wavelets"), ("wavelets", "fourier")),
        (("--episodes", 0), ("--episodes",)),
    ]:
        result = run("train", "walks:Walk-v0", *arguments)
        assert result.exit_code == 2, arguments
        assert "Traceback" not in result.stderr
        for word in words:
            assert word in result.stderr, (arguments, result.stderr)
    for environment, word in [
        ("Nowhere-v0", "there is no environment Nowhere-v0: Environment `Nowhere` doesn't exist"),
        ("nowhere:Walk-v0", "ENV names nowhere:Walk-v0, but there is no module nowhere"),
    ]:
        result = run("train", environment)
        assert result.exit_code == 2
        assert word in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == before


def test_the_default_name_is_not_written_over():
    quick = ("train", "rlsvi/Chain-v0", "--env-arg", "length=4", "--episodes", 2, "--evaluate", 0, "--quiet")
    assert run(*quick).exit_code == 0
    again = run(*quick)
    assert again.exit_code == 2
    assert "rlsvi-Chain-v0.rlsvi exists already" in again.stderr
    Path("cartpole.rlsvi").touch()
    assert "there is no environment cartpole: did you mean CartPole-v1?" in run("train", "cartpole").stderr
    assert "leave --gamma out" in run(*quick, "--gamma", 0.9, "--out", "other").stderr
    assert rlsvi.load("rlsvi-Chain-v0.rlsvi").episodes == 2


def test_evaluations_checkpoints_and_logs(tmp_path):
    """All of it, and a second run that goes on; the agent is the one that learned without."""
    walk = ("train", "walks:Walk-v0", "--evaluate", 0, "--quiet", "--json", "--out", "walk")
    logs = ("--evaluate-every", 2, "--keep-best", "best", "--checkpoint-every", 2, "--csv", "log.csv")
    assert run(*walk, *logs, "--episodes", 3).exit_code == 0
    result = run(*walk, *logs, "--episodes", 3, "--resume", "walk")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [row["episodes"] for row in found["evaluations"]] == [4, 6]
    assert [line.split(",")[0] for line in (tmp_path / "log.csv").read_text().splitlines()] == [
        "episodes",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
    ]
    plain = run("train", "walks:Walk-v0", "--evaluate", 0, "--quiet", "--episodes", 6, "--out", "plain")
    assert plain.exit_code == 0
    one, two, best = (rlsvi.load(name) for name in ("walk", "plain", "best"))
    assert {name: array.tobytes() for name, array in one._state().items()} == {
        name: array.tobytes() for name, array in two._state().items()
    }
    assert best.episodes in (2, 4, 6)


def test_a_checkpoint_names_the_environment_as_the_user_does(monkeypatch):
    saved = []
    monkeypatch.setattr(
        rlsvi.DiscountedPSRL, "save", lambda self, path: saved.append((path.name, self.environment))
    )
    monkeypatch.setattr(rlsvi.TableOrFeatures, "save", rlsvi.DiscountedPSRL.save)
    options = ("--episodes", 3, "--evaluate", 0, "--quiet", "--out", "walk", "--checkpoint-every", 2)
    assert run("train", "walks:Walk-v0", *options).exit_code == 0
    assert saved == [("walk", Made("walks:Walk-v0", {}))] * 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--keep-best", "best"), "give --evaluate-every"),
        (("--evaluate-every", 1, "--keep-best", "walk", "--out", "walk"), "name two files"),
        (("--evaluate-every", 0), "--evaluate-every"),
        (("--checkpoint-every", 0), "--checkpoint-every"),
        (("--evaluate-every", 1, "--keep-best", "no/best"), "there is no folder no"),
        (("--csv", "no/log.csv"), "there is no folder no"),
        (("--csv", "walks.py"), "walks.py is not a log with the columns"),
        (("--tensorboard", "walks.py/run"), ""),
    ],
)
def test_what_cannot_be_done_while_learning_is_refused_at_once(arguments, words, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    result = run("train", "walks:Walk-v0", "--episodes", 2, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == before


def test_continuous_actions_as_they_are():
    short = ("--max-episode-steps", 9, "--episodes", 2, "--evaluate", 1)
    result = run("train", "Pendulum-v1", *short)
    assert result.exit_code == 0, result.stderr
    assert rlsvi.load("Pendulum-v1.rlsvi").environment == Made("Pendulum-v1", {}, 9)
    assert run("train", "Pendulum-v1", "--resume", "Pendulum-v1.rlsvi", *short).exit_code == 0
    again = run("evaluate", "Pendulum-v1.rlsvi", "--episodes", 2, "--quiet")
    assert again.stdout.startswith("Pendulum-v1 (max_episode_steps=9): mean return -")


def test_continuous_actions_by_choices():
    result = run(
        "train", "Pendulum-v1", "--choices", 3, "--max-episode-steps", 9, "--episodes", 2, "--evaluate", 1
    )
    assert result.exit_code == 0, result.stderr
    assert rlsvi.load("Pendulum-v1.rlsvi").environment == Made("Pendulum-v1", {}, 9, 3)
    again = run("evaluate", "Pendulum-v1.rlsvi", "--episodes", 2, "--quiet")
    assert again.stdout.startswith("Pendulum-v1 (max_episode_steps=9, choices=3): mean return -")


def test_values_on_the_command_line():
    pairs = ["map_name=8x8", "is_slippery=false", "n=3", "x=-0.5", "rows=['SF','FG']", "none=null", "e=a=b"]
    assert arguments_of(pairs) == {
        "map_name": "8x8",
        "is_slippery": False,
        "n": 3,
        "x": -0.5,
        "rows": ["SF", "FG"],
        "none": None,
        "e": "a=b",
    }


def test_the_chart():
    lines = chart([0.0, 1.0, 2.0, 4.0], height=2).splitlines()
    assert [line[10:] for line in lines] == ["┤   █", "┤▁▄██", "└ return of episodes 1 to 4"]
    assert lines[0].split()[0] == "4"
    long = chart([float(i) for i in range(300)], width=60)
    assert "a column is the mean of about 5" in long
    assert len(long.splitlines()[0]) == 11 + 60
    assert "┤███" in chart([7.0, 7.0, 7.0])


def test_help_teaches():
    for command, words in [
        ("train", ("Example: rlsvi train", "Ctrl-C", "--resume", "module:MyEnv", "--choices", "posterior")),
        (
            "train",
            ("--evaluate-every", "--keep-best", "--checkpoint-every", "--csv", "--tensorboard", "is killed"),
        ),
        ("evaluate", ("Example: rlsvi evaluate", "standard error", "--env")),
        ("watch", ("Example: rlsvi watch cartpole.rlsvi", "--gif", "imports its code")),
    ]:
        result = run(command, "--help")
        assert result.exit_code == 0
        for word in words:
            assert word in " ".join(result.stdout.split()), (command, word)


# ---- evaluate and watch -----------------------------------------------------------------------------------


def test_evaluate_is_what_the_library_says():
    run(*LAKE, "--quiet", "--out", "lake")
    result = run("evaluate", "lake", "--episodes", 6, "--seed", 3, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    found, env = json.loads(result.stdout), gym.make("FrozenLake-v1")
    expected = rlsvi.evaluate(rlsvi.load("lake"), env, 6, seed=3)
    assert found["returns"] == expected.returns.tolist()
    assert found["mean"] == pytest.approx(sum(found["returns"]) / 6)
    assert found["steps"] == expected.steps
    sampled = run("evaluate", "lake", "--episodes", 6, "--sample", "--quiet")
    assert sampled.exit_code == 0
    one = json.loads(run("evaluate", "lake", "--episodes", 1, "--json", "--quiet").stdout)
    assert one["low"] is None
    assert one["standard_error"] is None


def test_a_file_does_not_decide_which_module_is_imported(tmp_path):
    """It says walks:Walk-v0; only the user may have that imported."""
    assert (
        run("train", "walks:Walk-v0", "--episodes", 2, "--evaluate", 0, "--out", "walk", "--quiet").exit_code == 0
    )
    for forget in (True, False):
        if forget:
            gym.registry.pop("Walk-v0")
            sys.modules.pop("walks")
        for command in ("evaluate", "watch"):
            refused = run(command, "walk")
            assert refused.exit_code == 2
            assert "--env walks:Walk-v0" in refused.stderr
            assert ("walks" in sys.modules) is not forget
        allowed = run("evaluate", "walk", "--env", "walks:Walk-v0", "--episodes", 2, "--quiet")
        assert allowed.exit_code == 0, allowed.stderr
    agent = rlsvi.load("walk")
    agent.environment = Made("Walk-v0", {})  # registered by now, but of a third party
    agent.save("walk")
    assert "--env Walk-v0" in run("evaluate", "walk").stderr


def test_files_that_cannot_be_evaluated_are_refused():
    agent = rlsvi.DiscountedPSRL(seed=0)
    agent.save("new")
    env = gym.wrappers.TransformReward(gym.make("FrozenLake-v1"), float)
    agent.learn(env, episodes=1).save("wrapped")
    for arguments, words in [
        (("nothing",), ("there is no file nothing", "rlsvi train")),
        (("new",), ("has learned nothing", "train it first")),
        (("wrapped",), ("does not tell in which environment", "--env ID")),
        (("wrapped", "--env", "Nowhere-v0"), ("there is no environment Nowhere-v0",)),
        (("wrapped", "--env", "CartPole-v1"), ("observation",)),
    ]:
        result = run("evaluate", *arguments, "--quiet")
        assert result.exit_code == 2, arguments
        for word in words:
            assert word in result.stderr, (arguments, result.stderr)
    assert run("evaluate", "wrapped", "--env", "FrozenLake-v1", "--episodes", 2, "--quiet").exit_code == 0


def test_watch_in_the_terminal_and_as_a_moving_picture(tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    chain = ("train", "rlsvi/Chain-v0", "--env-arg", "length=5", "--episodes", 40, "--evaluate", 0)
    assert run(*chain, "--out", "chain", "--quiet").exit_code == 0
    shown = run("watch", "chain", "--episodes", 2)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("period 0 of 4") == 2
    assert shown.stdout.count("in 4 steps; the episode is over") == 2
    film = run("watch", "chain", "--gif", "chain.gif", "--steps", 2, "--speed", 5)
    assert film.exit_code == 0, film.stderr
    assert film.stdout == "return 0 in 2 steps; the episode goes on\n"
    with Image.open("chain.gif") as picture:
        assert picture.n_frames == 3
        assert picture.info["duration"] == 200
    run("train", "walks:Walk-v0", "--episodes", 1, "--evaluate", 0, "--out", "walk", "--quiet")
    words = run("watch", "walk", "--env", "walks:Walk-v0", "--gif", "walk.gif").stderr
    assert "cannot be shown here as rgb_array; its render modes are ansi" in words
    assert not (tmp_path / "walk.gif").exists()


def test_watch_in_a_window(monkeypatch):
    pytest.importorskip("pygame")
    run("train", "CartPole-v1", "--episodes", 1, "--evaluate", 0, "--out", "cart", "--quiet")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = run("watch", "cart", "--steps", 3)
    assert shown.exit_code == 0, shown.stderr
    assert "in 3 steps" in shown.stdout
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pygame", None)
        for more in ((), ("--gif", "cart.gif")):
            missing = run("watch", "cart", "--steps", 3, *more)
            assert missing.exit_code == 2
            assert "pip install" in missing.stderr
    monkeypatch.delenv("SDL_VIDEODRIVER")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform == "linux":
        nowhere = run("watch", "cart", "--steps", 3)
        assert nowhere.exit_code == 2
        assert "--gif game.gif" in nowhere.stderr
