"""The command line: results on stdout, the rest on stderr, clear errors and exit codes."""

import inspect
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import gymnasium
import polars as pl
import pytest
from packaging.requirements import Requirement

import rlsvi
from command_line import run, strict_json
from contract.cases import exported_agents
from rlsvi.cli.app import agents
from rlsvi.cli.names import AGENTS, PROBLEMS, agent_class
from rlsvi.core.card import NoCard
from rlsvi.study.runs import Runs

COMPARED = ("default", "rlsvi", "lsvi-greedy", "lsvi-epsilon", "lsvi-boltzmann", "incremental", "ensemble", "psrl")
COMPARED += ("ucrl2", "ucbvi", "lsvi-ucb", "bandit", "optimal", "myopic", "thompson-sampling")
SMALL_RUN = ("--episodes", "30", "--seeds", "2", "--quiet")
CHAIN = ("compare", "chain", "-p", "length=4", "--problem-arg", "features=3", *SMALL_RUN)


def panels(*arguments):
    """The title of the panel that each option is described in."""
    found, title = {}, ""
    for line in run(*arguments, "--help").stdout.splitlines():
        title = line.strip("╭─╮ ") if line.startswith("╭─") else title
        if line.startswith("│ --"):
            found[line.split()[1].partition(",")[0]] = title
    return found


def test_help_groups_options():
    found = panels("compare")
    assert found["--problem-arg"] == found["--episodes"] == "Options"
    assert found["--sigma"] == "Agents"
    assert panels("train")["--choices"] == "Environment"


def test_the_version_is_shown_and_described():
    assert run("--version").stdout == f"{rlsvi.__version__}\n"
    assert "Show the version and exit." in run("--help").stdout


def test_the_version_is_the_same_everywhere():
    root = Path(rlsvi.__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert (root / project["tool"]["hatch"]["version"]["path"]).samefile(rlsvi.__file__)
    assert f"\nversion: {rlsvi.__version__}\n" in (root / "CITATION.cff").read_text()
    assert f"## [Unreleased] ({rlsvi.__version__})\n" in (root / "CHANGELOG.md").read_text()
    for house in ("paper", "shop"):
        project = tomllib.loads((root / house / "pyproject.toml").read_text())["project"]
        assert project["version"] == rlsvi.__version__
        assert f"rlsvi=={rlsvi.__version__}" in project["dependencies"]


def test_conda_can_satisfy_what_is_needed():
    """It has no extras of packages and no addresses, and an exact version is often not there."""
    project = tomllib.loads((Path(rlsvi.__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for needed in map(Requirement, project["dependencies"]):
        assert not needed.extras
        assert not needed.url
        assert {each.operator for each in needed.specifier} <= {">=", "<"}


def test_help_is_whole_on_a_narrow_terminal():
    out = command("compare", "--help", COLUMNS="40").stdout
    assert "--reward-range" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_list_names_agents_and_problems():
    result = run("list")
    assert result.exit_code == 0
    for name in (*agents(), *PROBLEMS):
        assert name in result.stdout


def test_list_as_json():
    listed = strict_json(run("list", "--json").stdout)
    assert list(listed["agents"]) == list(agents())
    assert set(PROBLEMS) < set(listed["problems"])


def test_compare_prints_a_row_an_agent():
    result = run("compare", "chain", "-p", "length=4", *SMALL_RUN, "--agents", ",".join(COMPARED))
    assert result.exit_code == 0, result.stderr
    for name in COMPARED:
        assert name in result.stdout
    assert "30 episodes, 2 seeds" in result.stdout
    assert result.stderr == ""


def test_comparators_are_those_of_the_library_with_the_options_given():
    from rlsvi.cli.names import agent_named

    rewards = {"reward_range": (-1.0, 1.0)}
    settings = {"lam": 0.3, "sigma": 0.2, "nu": 0.05, "members": 7, "scale": 0.1, "episodes": 70, **rewards}
    wanted = {
        "incremental": rlsvi.IncrementalRLSVI(lam=0.3, sigma=0.2, nu=0.05),
        "ensemble": rlsvi.EnsembleRLSVI(lam=0.3, sigma=0.2, members=7),
        "psrl": rlsvi.PSRL(**rewards),
        "ucrl2": rlsvi.UCRL2(scale=0.1, **rewards),
        "ucbvi": rlsvi.UCBVI(scale=0.1, planned=70, **rewards),
        "lsvi-ucb": rlsvi.LSVIUCB(lam=0.3, scale=0.1, planned=70, **rewards),
    }
    assert {name: repr(agent_named(name, settings)) for name in wanted} == {n: repr(a) for n, a in wanted.items()}
    assert "scale=0.1" in repr(wanted["ucbvi"])


def test_every_exported_agent_can_be_named():
    """By its short name, by the name of its class, and by that in lower case with hyphens."""
    found = {agent_class(name) for name in AGENTS} - {rlsvi.agent_for}
    assert sorted(kind.__name__ for kind in found) == sorted(exported_agents())
    assert {agent_class(kind.__name__) for kind in found} == found
    assert agent_class("incremental-rlsvi") is agent_class("incremental") is rlsvi.IncrementalRLSVI


def test_every_function_of_problems_is_a_problem():
    public = set(rlsvi.problems.__all__) - {"Problem", "gymnasium"}
    assert {name.replace("-", "_") for name in PROBLEMS} == public
    for name, (_, takes) in PROBLEMS.items():
        known = inspect.signature(getattr(rlsvi.problems, name.replace("-", "_"))).parameters.values()
        assert takes.split(", ") == [it.name for it in known if it.name != "seed" and it.default is not it.empty]


def test_agents_and_problems_are_listed_without_importing_them():
    code = "import sys; from rlsvi.cli.names import agents; agents(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert not {"numba", "polars", "rlsvi.problems"} & set(done.stdout.split())


def test_other_arguments_of_agents_are_those_that_one_of_them_takes():
    psrl = ("compare", "chain", "-p", "length=4", *SMALL_RUN, "--agents", "psrl,ucrl2", "--json")
    result = run(*psrl, "--agent-arg", "alpha_P=0.1", "--agent-arg", "delta=0.2")
    assert result.exit_code == 0, result.stderr
    given = {"psrl": rlsvi.PSRL(alpha_P=0.1), "ucrl2": rlsvi.UCRL2(delta=0.2)}
    runs = rlsvi.compare(given, lambda seed: rlsvi.problems.chain(4), 30, 2, progress=False)
    found = strict_json(result.stdout)
    assert found["summary"] == runs.summary().to_dicts()
    assert found["settings"]["agent_args"] == {"alpha_P": 0.1, "delta": 0.2}
    result = run(*psrl, "--agent-arg", "delte=0.1")
    assert result.stderr == "error: --agent-arg delte is taken by none of the agents: did you mean delta?\n"


def test_an_agent_keeps_its_own_default_of_an_option_that_is_not_given():
    stationary = ("compare", "chain", "-p", "length=4", *SMALL_RUN, "--agents", "stationary-rlsvi", "--json")
    for options, sigma in (((), 1.0), (("--sigma", 0.1), 0.1)):
        agent = rlsvi.StationaryRLSVI(sigma=sigma)
        runs = rlsvi.compare(
            {"stationary-rlsvi": agent}, lambda seed: rlsvi.problems.chain(4), 30, 2, progress=False
        )
        assert strict_json(run(*stationary, *options).stdout)["summary"] == runs.summary().to_dicts()


def test_the_table_shows_the_interval_of_the_regret():
    result = run(*CHAIN, "--agents", "rlsvi")
    agents = {"rlsvi": rlsvi.RLSVI()}
    runs = rlsvi.compare(agents, lambda seed: rlsvi.problems.chain(4, 3, seed=seed), 30, 2, progress=False)
    row = runs.summary().row(0, named=True)
    assert row["regret_low"] < row["regret_high"]
    assert f"{row['regret_low']:.1f} to {row['regret_high']:.1f}" in result.stdout
    assert "95% interval" in result.stdout
    assert result.stdout == f"{runs}\n"


def test_one_seed_has_a_dash_for_an_interval_and_null_in_json():
    one = ("compare", "chain", "-p", "length=4", "--episodes", 30, "--seeds", 1, "--quiet", "--agents", "rlsvi")
    table = run(*one)
    assert table.exit_code == 0, table.stderr
    assert "30 episodes, 1 seed\n" in table.stdout
    (row,) = [line.split() for line in table.stdout.splitlines() if line.strip().startswith("rlsvi")]
    assert row[2] == "-"
    (found,) = strict_json(run(*one, "--json").stdout)["summary"]
    assert found["regret_low"] is None
    assert found["regret_high"] is None
    assert found["regret_iqm"] == found["regret"]


def test_compare_as_json_is_what_the_library_says():
    result = run(*CHAIN, "--agents", "rlsvi, lsvi-epsilon", "--json", "--sigma", "0.2", "--epsilon", "0.3")
    assert result.exit_code == 0, result.stderr
    found = strict_json(result.stdout)
    agents = {
        "rlsvi": rlsvi.RLSVI(sigma=0.2),
        "lsvi-epsilon": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(0.3)),
    }
    runs = rlsvi.compare(agents, lambda seed: rlsvi.problems.chain(4, 3, seed=seed), 30, 2, progress=False)
    assert found["summary"] == runs.summary().to_dicts()
    usual = {"scale": "HSA", "rho_is": "variance", "per_period": False, "deterministic": False}
    assert found["settings"]["problem_args"] == {"length": 4, "features": 3, "rho": None, **usual}
    assert found["settings"]["sigma"] == 0.2


def test_compare_writes_readable_files(tmp_path):
    out = tmp_path / "deep" / "folder"
    result = run(*CHAIN, "--json", "--out", out)
    assert result.exit_code == 0, result.stderr
    frame = pl.read_parquet(out / "runs.parquet")
    assert frame.height == 2 * 2 * 30
    assert {"agent", "seed", "episode", "reward", "regret"} <= set(frame.columns)
    assert strict_json((out / "summary.json").read_text()) == strict_json(result.stdout)
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert "regret.png" in result.stderr


def test_files_are_written_before_a_table_that_cannot_be_printed(tmp_path, monkeypatch):
    def full(runs):
        raise OSError("no space left")

    monkeypatch.setattr(Runs, "__str__", full)
    result = run(*CHAIN, "--out", tmp_path)
    assert (result.exit_code, result.stderr) == (2, "error: no space left\n")
    assert {path.name for path in tmp_path.iterdir()} == {"runs.parquet", "summary.json", "regret.png"}


@pytest.mark.parametrize(
    "problem",
    [
        ("deep-sea", "size=3"),
        ("deep-sea", "size=3", "stochastic=true"),
        ("river-swim", "states=4", "horizon=5"),
        ("dirichlet", "states=3", "actions=2", "horizon=3"),
        ("recommendation", "products=4", "slots=2"),
        ("chain", "length=4", "features=3", "rho=0.1"),
        ("FrozenLake-v1", "horizon=10"),
        ("FrozenLake-v1", "max_episode_steps=10", "is_slippery=false"),
        ("own_things:two_rooms", "doors=2"),
    ],
    ids=str,
)
def test_compare_knows_every_problem(problem):
    name, *arguments = problem
    result = run("compare", name, *(word for pair in arguments for word in ("-p", pair)), *SMALL_RUN, "--json")
    assert result.exit_code == 0, result.stderr
    assert [row["agent"] for row in strict_json(result.stdout)["summary"]] == ["rlsvi", "lsvi-epsilon"]


def test_an_unknown_command_is_answered_with_the_nearest():
    result = run("trian", "CartPole-v1")
    assert result.exit_code == 2
    assert "there is no command trian: did you mean train?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("chain", "--agents", "rlsvi,dqn"), ("'dqn'", "--agents", "rlsvi list")),
        (("chain", "--agents", ""), ("unknown agent ''", "rlsvi list")),
        (("chain", "--agents", "rlsiv"), ("unknown agent 'rlsiv'", "did you mean rlsvi?")),
        (("rivr-swim",), ("unknown problem 'rivr-swim'", "did you mean river-swim?")),
        (("cartpole",), ("unknown problem 'cartpole'", "did you mean CartPole-v1?")),
        (("chain", "-p", "lenght=5"), ("--problem-arg lenght does not go with chain", "did you mean length?")),
        (("nowhere",), ("unknown problem 'nowhere'", *PROBLEMS)),
        (("Nowhere-v0",), ("unknown problem 'Nowhere-v0'", *PROBLEMS)),
        (("CartPole-v1", "--agents", "rlsvi"), ("needs observations that are numbered",)),
        (("chain", "-p", "size=5"), ("--problem-arg size does not go with chain", "length, features, rho")),
        (("chain", "-p", "size"), ("--problem-arg takes NAME=VALUE, such as length=50, got 'size'",)),
        (("river-swim", "-p", "stochastic=true"), ("--problem-arg stochastic does not go with river-swim",)),
        (("FrozenLake-v1", "-p", "length=4"), ("length",)),
        (("nowhere:thing",), ("PROBLEM names nowhere:thing, but there is no module nowhere",)),
        (("own_things:nothing",), ("own_things:nothing", "defines no nothing")),
        (("own_things:two_room",), ("defines no two_room", "did you mean two_rooms?")),
        (("own_things:two_rooms", "-p", "size=2"), ("--problem-arg size does not go with own_things:two_rooms",)),
        (("own_things:QLearning",), ("env",)),
        (
            ("chain", "--executor", "many"),
            ("""--executor must be "threads" or "processes" or "serial" or "ray", got 'many'""",),
        ),
        (
            ("chain", "--agents", "rlsvi,own_things:nobody"),
            ("--agents names own_things:nobody", "defines no nobody"),
        ),
        (("chain", "--agents", "own_things:two_rooms"), ("called with env and seed by these names",)),
        (("chain", "--lam", -1), ("lam must be a positive, finite number, got -1.0",)),
        (("chain", "--lambda", "nan"), ("lam must be a positive, finite number, got nan",)),
        (("chain", "--sigma", 0), ("sigma must be a positive, finite number, got 0.0",)),
        (("chain", "--agents", "incremental", "--nu", 1), ("nu must lie in [0, 1), got 1.0",)),
        (("chain", "--agents", "ucbvi", "--scale", -1), ("scale must be a positive, finite number, got -1.0",)),
        (("dirichlet", "--agents", "psrl"), ("reward -1 lies outside of reward_range=(0.0, 1.0): widen it",)),
        (("chain", "--epsilon", 2), ("epsilon must lie in [0, 1], got 2.0",)),
        (("chain", "--agents", "lsvi-boltzmann", "--eta", 0), ("eta must be positive and finite, got 0.0",)),
        (("chain", "-p", "length=1"), ("length must be a whole number of at least 2, got 1",)),
        (("chain", "-p", "length=5", "-p", "features=1"), ("features must be a whole number of at least 2",)),
        (("chain", "-p", "rho=0.1"), ("rho needs features",)),
        (("chain", "--episodes", 0), ("--episodes",)),
        (("chain", "--seeds", 0), ("--seeds",)),
        (("chain", "--workers", 0), ("--workers",)),
        (("chain", "--device", "tpu"), ("""--device must be "cpu" or "cuda", got 'tpu'""",)),
        (("chain", "-p", "length=five"), ("length must be a whole number",)),
        (("chain", "--colour", "red"), ("--colour",)),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_without_a_traceback(arguments, words):
    result = run("compare", *arguments, "--quiet")
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


def test_the_device_is_that_of_compare(monkeypatch):
    asked = []
    monkeypatch.setattr("rlsvi.core.card.cuda", lambda: None)
    monkeypatch.setattr(rlsvi, "compare", lambda *_, device, **__: asked.append(device) or 1 / 0)
    for options in ((), ("--device", "cpu"), ("--device", "cuda")):
        assert run("compare", "chain", "--quiet", *options).exit_code == 2
    assert asked == ["cpu", "cpu", "cuda"]


def test_a_missing_card_is_told_before_anything_is_written(monkeypatch, tmp_path):
    def none():
        raise NoCard("no CUDA device can be used")

    monkeypatch.setattr("rlsvi.core.card.cuda", none)
    result = run("compare", "chain", "--quiet", "--device", "cuda", "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: no CUDA device can be used\n"
    assert not (tmp_path / "out").exists()


def test_an_environment_of_a_missing_module_is_an_unknown_problem():
    result = run("compare", "missing:Env-v0", "--quiet")
    assert result.exit_code == 2
    assert "missing" in result.stderr


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    result = run(*CHAIN, "--out", tmp_path / "file" / "folder")
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr


def command(*arguments, **environment):
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from rlsvi.cli.app import app; app()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


def test_the_table_has_only_characters_that_stdout_can_encode():
    table = command(*map(str, CHAIN), PYTHONIOENCODING="ascii")
    assert table.returncode == 0, table.stderr
    assert "-" * 20 in table.stdout
    assert "lsvi-epsilon" in table.stdout


def test_the_program_keeps_results_and_progress_apart():
    done = command("compare", "chain", "-p", "length=4", "--episodes", "30", "--seeds", "2", "--json")
    assert done.returncode == 0
    assert len(strict_json(done.stdout)["summary"]) == 2
    assert "episodes" in done.stderr


def test_the_program_fails_with_one_line():
    done = command("compare", "chain", "--agents", "dqn")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.strip().count("\n") == 0
    assert done.stderr.startswith("error: unknown agent 'dqn'")


# ---- agents and problems of the user ------------------------------------------------------------------------

TINY_RUN = ("--episodes", 4, "--seeds", 2, "--quiet", "--json")


@pytest.mark.parametrize("problem", ["CartPole-v1", "FrozenLake-v1", "chain", "own_things:corridor"])
def test_an_agent_of_the_user_competes(problem):
    result = run("compare", problem, "--agents", "default,own_things:QLearning", *TINY_RUN)
    assert result.exit_code == 0, result.stderr
    rows = strict_json(result.stdout)["summary"]
    assert [row["agent"] for row in rows] == ["default", "own_things:QLearning"]
    assert rows[1]["loop"] == "stepped"
    assert (rows[0]["regret"] is None) == (problem not in ("FrozenLake-v1", "chain"))


def test_what_the_user_names_is_found_in_the_current_folder_and_nothing_else_is_imported(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import rlsvi\nagent, lake = rlsvi.RLSVI(sigma=1.0), rlsvi.problems.chain(3)\n"
    )
    (tmp_path / "other.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    result = run("compare", "mine:lake", "--agents", "mine:agent,rlsvi", *TINY_RUN)
    assert result.exit_code == 0, result.stderr
    assert [row["loop"] for row in strict_json(result.stdout)["summary"]] == ["fused", "fused"]
    assert "mine:lake is a problem already" in run("compare", "mine:lake", "-p", "length=3", *TINY_RUN).stderr


@pytest.mark.slow
def test_a_file_of_the_current_folder_does_not_replace_a_package(tmp_path, monkeypatch):
    for name in ("rich", "polars", "matplotlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "mine_too.py").write_text("import rlsvi\nlake = rlsvi.problems.chain(3)\n")
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}  # else -m puts the folder first
    for executor in ("threads", "processes"):
        command = [sys.executable, "-m", "rlsvi", "compare", "mine_too:lake", *map(str, TINY_RUN[:-1])]
        command += ["--agents", "rlsvi", "--executor", executor]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "rlsvi" in done.stdout


def test_fewer_episodes_and_seeds_are_usual_where_no_loop_is_compiled(monkeypatch):
    asked = []
    monkeypatch.setattr(
        rlsvi, "compare", lambda _, __, episodes, seeds, **___: asked.append((episodes, seeds)) or 1 / 0
    )
    for words in (
        ("chain",),
        ("CartPole-v1",),
        ("chain", "--agents", "own_things:QLearning"),
        ("chain", "--seeds", 3),
    ):
        assert run("compare", *words, "-q").exit_code == 2
    assert asked == [(2000, 20), (50, 10), (50, 10), (2000, 3)]
    out = " ".join(command("compare", "--help").stdout.replace("│", " ").split())
    assert "2000; or 50, if no agent has a compiled loop there" in out


def test_an_error_names_agent_and_seed():
    result = run(
        "compare", "recommendation", "--agents", "own_things:QLearning", "--seeds", 1, "--episodes", 50, "-q"
    )
    assert result.exit_code == 2
    assert "is not legal" in result.stderr
    assert "an agent that does not heed it cannot play this problem" in result.stderr
    assert "in the run of agents['own_things:QLearning'] with seed 0" in result.stderr


def test_a_module_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("import os\n1 / 0\n")
    (tmp_path / "needy_module.py").write_text("import not_installed_anywhere\n")
    monkeypatch.chdir(tmp_path)
    for name, words in {
        "broken_module": "cannot be imported: division by zero (ZeroDivisionError in broken_module.py, line 2)",
        "needy_module": "which imports not_installed_anywhere: install it first",
    }.items():
        result = run("compare", "chain", "--agents", f"{name}:agent", *TINY_RUN)
        assert (result.exit_code, result.stdout) == (2, "")
        assert words in result.stderr


def test_an_environment_that_a_module_registers_is_a_problem(tmp_path, monkeypatch):
    text = "import gymnasium\nfrom own_things import Corridor\n"
    text += "gymnasium.register('Registered-v0', Corridor, max_episode_steps=10)\n"
    (tmp_path / "registering.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    try:
        result = run("compare", "registering:Registered-v0", *TINY_RUN)
        assert result.exit_code == 0, result.stderr
    finally:
        gymnasium.registry.pop("Registered-v0", None)


def test_returns_are_shown_and_drawn_where_there_is_no_regret(tmp_path):
    result = run("compare", "CartPole-v1", *TINY_RUN[:-1], "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "last tenth" in result.stdout
    assert "There is no regret" in " ".join(result.stdout.split())
    assert {path.name for path in tmp_path.iterdir()} == {"returns.png", "runs.parquet", "summary.json"}
    (row,) = strict_json((tmp_path / "summary.json").read_text())["summary"]
    assert (row["agent"], row["regret"]) == ("default", None)


# ---- pipes ------------------------------------------------------------------------------------------------

PIPED = {
    "list": ("list",),
    "help of a command": ("train", "--help"),
    "compare": ("compare", "chain", "-p", "length=4", "--episodes", "5", "--seeds", "1", "--quiet", "--json"),
}


@pytest.mark.parametrize("arguments", PIPED.values(), ids=PIPED.keys())
def test_a_reader_that_leaves_ends_a_command_quietly(arguments):
    """As in `rlsvi list | head -0`, with a pipe that is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "rlsvi", *arguments]
    try:
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_error_is_told_and_numbered_as_ever_when_nobody_reads_what_comes_out():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "rlsvi", "compare", "nowhere"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    os.close(writing)
    assert done.returncode == 2
    assert "unknown problem 'nowhere'" in done.stderr
