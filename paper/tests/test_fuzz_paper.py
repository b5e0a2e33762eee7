"""The public functions of the reproduction with one wrong argument; see tests/fuzzing.py."""

import pytest
from agent_cases import CASES

import rlsvi
from fuzzing import Budget, Call, Fuzz, Try, agent_calls, env, own_folder, plays
from rlsvi import problems
from rlsvi_paper import tetris


def _rules():
    return tetris.rules(4, 4, "SZ")  # no game is long


def _in_game():
    env = tetris.TetrisEnv(4, 4, "O")
    env.reset(seed=0)
    return env


CALLS = {
    "rlsvi_paper.agents.learn_concurrently": Call(
        lambda: {"agent": rlsvi.RLSVI(seed=0), "envs": [env(), env()], "rounds": 1, "progress": False}
    ),
    "rlsvi_paper.tetris.Tetris": Call(
        dict,
        lambda x: rlsvi.StationaryRLSVI(basis=x, seed=0).learn(
            tetris.TetrisEnv(4, 4, "O", max_pieces=3), episodes=1
        ),
    ),
    "rlsvi_paper.tetris.TetrisEnv": Call(lambda: {"height": 4, "width": 4, "pieces": "O"}, plays),
    "rlsvi_paper.loops.concurrent.simulate_concurrent": Call(
        lambda: {
            "agent": rlsvi.RLSVI(seed=0),
            "problem": problems.chain(3),
            "rounds": 1,
            "agents": 2,
            "advance": Budget(),
        }
    ),
    "rlsvi_paper.tetris.simulate_tetris": Call(
        lambda: {
            "agent": rlsvi.StationaryRLSVI(basis=tetris.Tetris(), seed=0),
            "rules": _rules(),
            "games": 1,
            "max_pieces": 3,
            "advance": Budget(),
        }
    ),
    "rlsvi_paper.tetris.solve": Call(lambda: {"rules": tetris.rules(4, 4, "SZ")}),
    "rlsvi_paper.tetris.rules": Call(lambda: {"height": 4, "width": 4, "pieces": "O"}),
    "rlsvi_paper.tetris.play": Call(
        lambda: {
            "rules": _rules(),
            "kind": 0,
            "weights": tetris.scoring_weights(_rules()),
            "games": 1,
            "max_pieces": 3,
        }
    ),
    "rlsvi_paper.tetris.policy_iteration": Call(
        lambda: {
            "rules": _rules(),
            "weights": tetris.scoring_weights(_rules()),
            "iterations": 1,
            "games": 2,
            "max_pieces": 3,
        }
    ),
    "rlsvi_paper.tetris.scoring_weights": Call(lambda: {"rules": _rules()}),
    "rlsvi_paper.figure_called": Call(lambda: {"name": "dithering"}),
    "rlsvi_paper.tetris.TetrisEnv.step": Call(lambda: {"self": _in_game(), "action": 0}),
    "rlsvi_paper.tetris.TetrisEnv.reset": Call(lambda: {"self": _in_game(), "seed": 0, "options": None}),
}
FUZZ = Fuzz(
    CALLS | agent_calls(CASES, "rlsvi_paper.agents"),
    ("rlsvi_paper", "rlsvi_paper.agents", "rlsvi_paper.loops.concurrent", "rlsvi_paper.tetris"),
    {"agents": (40, r".* "), "functions": (60, r"")},
    never={f"rlsvi_paper.loops.concurrent.{it}" for it in ("run_rounds", "set_aside", "take_back")},  # compiled
)
RAW_ONCE = [  # each raised an error of Python or NumPy once
    Try("rlsvi_paper.tetris.simulate_tetris", "advance", "function of nothing"),
    Try("rlsvi_paper.tetris.policy_iteration", "progress", "class of numbers"),
]
pytestmark = pytest.mark.usefixtures("quick_disk")


def test_every_public_function_has_a_valid_call():
    FUZZ.check_table()


@pytest.mark.parametrize("part", FUZZ.parts)
def test_wrong_arguments_are_named(part, tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    FUZZ.check(part)


@pytest.mark.slow
@pytest.mark.parametrize("part", FUZZ.parts)
def test_thousands_of_wrong_arguments_are_named(part, tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    FUZZ.check(part, times=20)


@pytest.mark.parametrize("one", RAW_ONCE, ids=str)
def test_what_was_raw_once_is_named(one, tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch)
    assert not FUZZ.fault(one)
