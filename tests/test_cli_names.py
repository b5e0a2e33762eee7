"""Names on the command line: agents of other packages, suggestions for unknown names, and examples."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable

import gymnasium as gym
import pytest
import typer

import rlsvi
from command_line import run
from rlsvi.cli.app import app, commands
from rlsvi.cli.names import offered
from saved import read, write

MODULE = '''
import rlsvi

class MyAgent(rlsvi.PSRL):
    """PSRL by another name."""

class Stranger:
    """An agent that knows nothing of this library."""

    def __init__(self, env, seed, bonus=0.0):
        self.bonus, self.action = bonus, seed % 2

    def learn(self, env, episodes):
        for _ in range(episodes):
            env.reset()
            over = False
            while not over:
                *_, terminated, truncated, _ = env.step(self.action)
                over = terminated or truncated
        print("bonus", self.bonus)

def made(env, seed):
    return MyAgent(seed=seed)

one = MyAgent(alpha_P=0.5)
number = 7
'''
ENTRIES = """
[rlsvi.agents]
my-agent = fake_agents:MyAgent
stranger = fake_agents:Stranger
made = fake_agents:made
one = fake_agents:one
number = fake_agents:number
gone = fake_agents:Gone
broken = fake_broken:Agent
missing = fake_missing:Agent
psrl = fake_agents:Stranger
"""


def install(folder, name, entries):
    """Write the metadata that an installed package has."""
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """A package with agents, as pip would have installed it."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "fake_agents.py").write_text(MODULE)
    (folder / "fake_broken.py").write_text("import os\n1 / 0\n")
    install(folder, "fake-agents", ENTRIES)
    sys.path.insert(0, str(folder))
    yield folder
    sys.modules.pop("fake_agents", None)


def test_agents_of_other_packages_are_listed_without_importing_them(plugins):
    code = f"import sys; sys.path.insert(0, {str(plugins)!r})\nfrom rlsvi.cli.app import main\n"
    code += "try:\n main()\nfinally:\n print('fake_agents' in sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, "list"], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "False\n")
    assert re.search(r"^  my-agent +Of the package fake-agents: fake_agents:MyAgent$", done.stdout, re.MULTILINE)
    listed = json.loads(run("list", "--json").stdout)["agents"]
    assert listed["stranger"] == "Of the package fake-agents: fake_agents:Stranger"
    assert listed["psrl"].startswith("Posterior sampling")  # the name of this library comes first


def test_agents_of_other_packages_are_compared(plugins):
    chain = ("compare", "chain", "-p", "length=4", "--episodes", 5, "--seeds", 2, "--quiet")
    result = run(*chain, "--agents", "my-agent,stranger,made", "--agent", "one,psrl", "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout[result.stdout.index("{") :])["summary"]
    assert [row["agent"] for row in rows] == ["my-agent", "stranger", "made", "one", "psrl"]
    assert {row["agent"]: row["loop"] for row in rows}["stranger"] == "stepped"
    assert rows[0]["regret"] == rows[4]["regret"]  # the agent is PSRL by another name


def test_arguments_reach_agents_of_other_packages(plugins):
    chain = ("compare", "chain", "-p", "length=4", "--episodes", 5, "--seeds", 1, "--quiet", "--workers", 1)
    result = run(*chain, "--agents", "stranger", "--agent-arg", "bonus=2.5", "--executor", "serial")
    assert result.exit_code == 0, result.stderr
    assert "bonus 2.5" in result.stdout
    result = run(*chain, "--agents", "stranger,my-agent", "--agent-arg", "bonsu=2.5")
    assert "--agent-arg bonsu is taken by none of the agents: did you mean bonus?" in result.stderr


def test_an_agent_of_another_package_is_trained_and_loaded(plugins, tmp_path):
    lake = ("train", "FrozenLake-v1", "--episodes", 5, "--evaluate", 2, "--quiet", "--out", "lake.rlsvi")
    lake += ("--max-episode-steps", 20)
    result = run(*lake, "--agent", "my-agent", "--agent-arg", "horizon=20", "--seed", 3)
    assert result.exit_code == 0, result.stderr
    found = rlsvi.load("lake.rlsvi")
    assert (type(found).__name__, found.horizon, found.seed, found.episodes) == ("MyAgent", 20, 3, 5)
    assert run("evaluate", "lake.rlsvi", "--episodes", 2, "--import", "fake_agents").exit_code == 0
    result = run(*lake, "--agent", "stranger")
    assert result.exit_code == 2
    assert "--agent stranger makes a Stranger, which cannot be saved: derive its class from" in result.stderr


def test_an_agent_of_another_package_learns_from_a_log(plugins):
    rlsvi.record(gym.make("FrozenLake-v1"), None, 5, path="log.parquet")
    result = run("fit", "log.parquet", "--agent", "my-agent", "--agent-arg", "horizon=20")
    assert result.exit_code == 0, result.stderr
    assert type(rlsvi.load("policy.rlsvi")).__name__ == "MyAgent"
    result = run("fit", "log.parquet", "--agent", "stranger")
    assert "--agent stranger cannot learn from a log: it has no method fit" in result.stderr


def test_a_file_finds_the_class_that_a_package_offers(plugins):
    """Also by the name that it had as one of the library's; nothing is imported that is not offered."""
    import fake_agents

    fake_agents.MyAgent(alpha_P=0.3).save("agent.rlsvi")
    header, arrays = read("agent.rlsvi")
    code = f"import sys; sys.path.insert(0, {str(plugins)!r})\nimport rlsvi\n"
    for k, name in enumerate(("fake_agents:MyAgent", "fake_agents.moved:MyAgent", "MyAgent")):
        write(f"found{k}.rlsvi", {**header, "agent": name}, arrays)
    for k, name in enumerate(("other:MyAgent", "fake_agents:Own")):
        write(f"unknown{k}.rlsvi", {**header, "agent": name}, arrays)
    code += """
for k in range(2):
    try: rlsvi.load(f"unknown{k}.rlsvi")
    except ValueError as error: print("import the module that defines it first" in str(error))
for k in range(3):
    print(type(it := rlsvi.load(f"found{k}.rlsvi")).__name__, it.alpha_P)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.splitlines() == ["True"] * 2 + ["MyAgent 0.3"] * 3, done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("number", "offers as fake_agents:number, but that is no agent: it has no method learn; update or"),
        ("gone", "offers as fake_agents:Gone, but it cannot be imported: module 'fake_agents' has no"),
        ("broken", "cannot be imported: division by zero (ZeroDivisionError in fake_broken.py, line 2); update"),
        ("missing", "cannot be imported: No module named 'fake_missing'"),
        ("my-agnt", "unknown agent 'my-agnt' in --agents: did you mean my-agent?"),
    ],
)
def test_an_agent_of_another_package_that_fails_is_named(plugins, name, words):
    result = run("compare", "chain", "--agents", f"rlsvi,{name}", "--quiet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    if name != "my-agnt":
        assert f"--agents names {name}, which the package fake-agents offers" in result.stderr


def test_two_packages_with_one_name(plugins):
    install(plugins, "other-agents", "[rlsvi.agents]\nmy-agent = other:Thing\n")
    result = run("compare", "chain", "--agents", "my-agent", "--quiet")
    assert result.exit_code == 2
    assert (
        "names my-agent, which fake-agents and other-agents offer: write one of fake_agents:MyAgent"
        in result.stderr
    )


def test_the_doctor_looks_at_agents_of_other_packages(tmp_path, plugins):
    from rlsvi.cli.doctor import CHECKS, checked

    found = checked(*CHECKS["other agents"])
    assert not found["works"]
    assert "broken" in found["result"]
    entries = plugins / "fake-agents-1.2.dist-info" / "entry_points.txt"
    entries.write_text("[rlsvi.agents]\nmy-agent = fake_agents:MyAgent\n")
    assert "my-agent (fake_agents:MyAgent)" in checked(*CHECKS["other agents"])["result"]
    entries.write_text("[rlsvi.agents]\npsrl = fake_agents:MyAgent\n")
    assert (
        "psrl of fake-agents is hidden by an agent of this library" in checked(*CHECKS["other agents"])["result"]
    )


# ---- A suggestion for every unknown name -------------------------------------------------------------------

FITTED = ("fit", "log.parquet", "--env", "FrozenLake-v1")
MISSPELT = [  # a command with a name that is slightly wrong, and what was meant
    (("evalute", "policy.rlsvi"), "evaluate"),
    (("docter",), "doctor"),
    (("train", "CartPole-v1", "--epsiodes", "3"), "--episodes"),
    (("list", "--jsn"), "--json"),
    (("doctor", "--jsn"), "--json"),
    (("demo", "--ot", "x"), "--out"),
    (("train", "CartPol-v1"), "CartPole-v1"),
    (("train", "my_env:Mine-v0"), "my_envs"),
    (("train", "CartPole-v1", "--basis", "furier"), "fourier"),
    (("train", "CartPole-v1", "--agent", "pslr"), "psrl"),
    (("train", "CartPole-v1", "--agent", "my_env:Agent"), "my_envs"),
    (("train", "FrozenLake-v1", "--agent", "psrl", "--agent-arg", "horizn=3"), "horizon"),
    (("train", "FrozenLake-v1", "--env-arg", "map_nam=8x8"), "map_name"),
    (("train", "FrozenLake-v1", "--resume", "polcy.rlsvi"), "policy.rlsvi"),
    (("fit", "lgo.parquet"), "log.parquet"),
    (("fit", "log.parquet", "--agent", "pslr"), "psrl"),
    (("fit", "log.parquet", "--agent", "my_envs:Agnet"), "Agent"),
    (("fit", "log.parquet", "--agent", "psrl", "--agent-arg", "horizn=3"), "horizon"),
    (("fit", "log.parquet", "--column", "rewrd=reward"), "reward"),
    (("fit", "log.parquet", "--column", "reward=rewrd"), "reward"),
    (("fit", "log.parquet", "--env", "FrozenLak-v1"), "FrozenLake-v1"),
    ((*FITTED, "--executor", "rya"), "ray"),
    ((*FITTED, "--chunk", "10", "--agent", "BoundedRLSI"), "bounded-rlsvi"),
    (("judge", "polcy.rlsvi", "log.parquet"), "policy.rlsvi"),
    (("judge", "policy.rlsvi", "lgo.parquet"), "log.parquet"),
    (("judge", "policy.rlsvi", "log.parquet", "--column", "rewrd=reward"), "reward"),
    (("judge", "policy.rlsvi", "log.parquet", "--env", "FrozenLak-v1"), "FrozenLake-v1"),
    (("evaluate", "polcy.rlsvi"), "policy.rlsvi"),
    (("evaluate", "policy.rlsvi", "--env", "FrozenLak-v1"), "FrozenLake-v1"),
    (("evaluate", "policy.rlsvi", "--import", "my_env"), "my_envs"),
    (("watch", "polcy.rlsvi"), "policy.rlsvi"),
    (("compare", "chian"), "chain"),
    (("compare", "my_envs:problm"), "problem"),
    (("compare", "chain", "-p", "lenght=4"), "length"),
    (("compare", "chain", "--agents", "rlsiv"), "rlsvi"),
    (("compare", "chain", "--agent-arg", "sgima=1"), "sigma"),
    (("compare", "chain", "--executor", "proceses"), "processes"),
    (("compare", "chain", "--device", "cdua"), "cuda"),
]


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A folder with a log, a saved agent and a module."""
    folder = tmp_path_factory.mktemp("things")
    log = rlsvi.record(gym.make("FrozenLake-v1"), None, 5, path=folder / "log.parquet")
    rlsvi.PSRL(horizon=20).fit(log, gym.make("FrozenLake-v1")).save(folder / "policy.rlsvi")
    (folder / "my_envs.py").write_text("Agent, problem = object, 1\n")
    return folder


def suggests(meant, *arguments):
    """The nearest name is suggested for one of the arguments."""
    result = run(*arguments)
    assert result.exit_code == 2, result.stdout
    said = " ".join(result.stderr.replace("│", " ").split())
    assert re.search(rf"(did you mean|Possible options:|Did you mean) [^?)]*{re.escape(meant)}\b", said), said


def commands_of(package):
    """The names of the commands that a package offers."""
    return {name for name, command in commands().items() if command.__module__.startswith(f"{package}.")}


@pytest.mark.parametrize(("arguments", "meant"), MISSPELT, ids=[" ".join(words) for words, _ in MISSPELT])
def test_the_nearest_name_is_suggested(arguments, meant, things, monkeypatch):
    monkeypatch.chdir(things)
    suggests(meant, *arguments)


def test_every_command_is_tried_with_a_name_that_is_slightly_wrong():
    assert {words[0] for words, _ in MISSPELT} >= commands_of("rlsvi") | {"list"}


# ---- Commands of other packages ----------------------------------------------------------------------------


WRONG = (
    "broken = fake_broken:run",
    "gone = fake_agents:gone",
    "leaves = fake_leaving:run",
    "text = fake_agents:number",
)


@pytest.mark.parametrize(("group", "works"), [("commands", "made"), ("lists", "__dict__"), ("demo", "__dict__")])
def test_what_a_package_offers_and_cannot_be_used_is_named_and_left_out(group, works, plugins, capsys):
    (plugins / "fake_leaving.py").write_text("raise SystemExit('it leaves')\n")
    install(plugins, "fake", "\n".join([f"[rlsvi.{group}]", *WRONG, f"works = fake_agents:{works}", ""]))
    found = offered(f"rlsvi.{group}", Callable if group == "commands" else dict)
    assert "works" in found
    assert not {"broken", "gone", "leaves", "text"} & found.keys()
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(", which")[0] for line in said] == [
        f"warning: fake offers {name} in rlsvi.{group}" for name in ("broken", "gone", "leaves", "text")
    ]
    assert said[0].endswith("is skipped: division by zero")


def test_a_command_of_a_package_does_not_replace_another(plugins, capsys):
    install(plugins, "fake", "[rlsvi.commands]\ntrain = fake_agents:made\nworks = fake_agents:made\n")
    found = commands()
    assert "works" in found
    assert found["train"].__module__ == "rlsvi.cli.train"
    assert "there is a command train already" in capsys.readouterr().err


def test_a_list_that_cannot_be_imported_does_not_end_the_list(plugins):
    install(plugins, "fake", "[rlsvi.lists]\nbroken = fake_broken:run\n")
    listed = run("list", "--json")
    assert listed.exit_code == 0
    assert "agents" in json.loads(listed.stdout)


@pytest.mark.parametrize(("command", "house"), [("paper", "paper"), ("import-events", "shop")])
def test_a_command_of_a_package_that_is_missing_says_what_to_install(command, house):
    code = """
import importlib.metadata, sys
importlib.metadata.entry_points = lambda **named: ()
from rlsvi.cli.app import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--quick"], capture_output=True, text=True, check=False, timeout=300
    )
    needed = f"the package rlsvi-{house}: pip install ./{house} in a clone of rlsvi"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: rlsvi {command} needs {needed}\n"


# ---- Examples ----------------------------------------------------------------------------------------------


def all_commands():
    return sorted(typer.main.get_command(app).commands)


def test_the_commands_are_known():
    named = {name.replace("_", "-") for name in commands()} | {"list"}
    assert set(all_commands()) == named
    assert "doctor" in named


@pytest.mark.parametrize("name", all_commands())
def test_every_help_has_an_example_that_can_be_parsed(name):
    command = typer.main.get_command(app).commands[name]
    examples = re.findall(r"Example:(.*)", command.help)
    assert examples
    assert "Example:" in " ".join(run(name, "--help").stdout.split())
    for example in examples:
        program, called, *arguments = shlex.split(example)
        assert (program, called) == ("rlsvi", name)
        command.make_context(name, arguments)  # an error if it cannot be parsed
