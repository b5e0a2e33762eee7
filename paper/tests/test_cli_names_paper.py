"""Names on the command line of the reproduction: suggestions for unknown ones, its agents, and their old files."""

import subprocess
import sys

import pytest

import rlsvi
from rlsvi.cli.names import agent_class, agent_named
from rlsvi_paper import agents
from saved import read, write
from test_cli_names import commands_of, install, suggests

MISSPELT = [  # a command with a name that is slightly wrong, and what was meant
    (("tetris", "plaer.rlsvi"), "player.rlsvi"),
    (("tetris", "--game-over", "overflw"), "overflow"),
    (("bsuite", "--experiments", "deep_see"), "deep_sea"),
    (("bsuite", "--agents", "defualt"), "default"),
    (("paper", "chain-lenght"), "chain-length"),
    (("paper", "my_figures:figre"), "figure"),
    (("paper", "chain-length", "--scale", "quik"), "quick"),
    (("paper", "chain-length", "--executor", "proceses"), "processes"),
    (("report", "resutls"), "results"),
]


@pytest.mark.parametrize(("arguments", "meant"), MISSPELT, ids=[" ".join(words) for words, _ in MISSPELT])
def test_the_nearest_name_is_suggested(arguments, meant, tmp_path, monkeypatch):
    monkeypatch.setattr("rlsvi_paper.bsuite.runs.package_version", lambda: "0.3.6")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_figures.py").write_text("figure = 2\n")
    (tmp_path / "results").mkdir()
    (tmp_path / "player.rlsvi").write_text("")
    suggests(meant, *arguments)


def test_every_command_is_tried_with_a_name_that_is_slightly_wrong():
    assert {words[0] for words, _ in MISSPELT} == commands_of("rlsvi_paper")


def test_every_agent_can_be_named():
    offered = {"bounded-target-rlsvi", "gaussian-psrl", "homogeneous-rlsvi", "worst-case-rlsvi"}
    found = {agent_class(name).__name__ for name in offered}
    assert found == {name for name in vars(agents) if name.endswith(("RLSVI", "PSRL"))}
    made = agent_named("gaussian-psrl", {"scale": 0.1, "reward_range": (-1.0, 1.0), "lam": 0.3, "episodes": 70})
    assert repr(made) == repr(agents.GaussianPSRL(scale=0.1, reward_range=(-1.0, 1.0)))


def test_an_agent_of_another_package_in_the_behaviour_suite(tmp_path, monkeypatch):
    from rlsvi_paper.cli.bsuite import _in_module

    (tmp_path / "fake_agents.py").write_text("import rlsvi\nclass MyAgent(rlsvi.PSRL): ...\nnumber = 7\n")
    install(tmp_path, "fake-agents", "[rlsvi.agents]\nmine = fake_agents:MyAgent\nnumber = fake_agents:number\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert _in_module("mine") == "fake_agents:MyAgent"
    assert _in_module("default") == "default"
    with pytest.raises(ValueError, match="that is no agent"):
        _in_module("number")


@pytest.mark.parametrize("kind", ["GaussianPSRL", "WorstCaseRLSVI"])
def test_files_of_the_time_when_an_agent_was_one_of_the_library_are_read(kind, tmp_path):
    getattr(agents, kind)(seed=3).learn(rlsvi.envs.ChainEnv(4), 5).save(tmp_path / "agent")
    header, arrays = read(tmp_path / "agent")
    write(tmp_path / "old", {**header, "agent": kind}, arrays)
    code = "import rlsvi, sys\nfor it in map(rlsvi.load, sys.argv[1:]): print(type(it).__name__, it.episodes)"
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "agent"), str(tmp_path / "old")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out == 2 * f"{kind} 5\n"
