"""Logs of episodes: CSV and TensorBoard, whole lines, runs that go on after a kill, and full disks."""

import csv
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest

import rlsvi
from contract.state import assert_equal, everything
from rlsvi.callbacks import COLUMNS, CSV, HEADER, TensorBoard

TIMES = ("seconds", "cpu_seconds")
RUN = """
import sys, gymnasium as gym, rlsvi
from rlsvi.callbacks import CSV, Checkpoint
env = gym.make("FrozenLake-v1")
rlsvi.DiscountedPSRL(seed=5).learn(
    env, episodes=10**6, on_episode=CSV("log.csv"), evaluate_every=4, checkpoint_every=7, checkpoint="kept"
)
"""


def lake():
    return gym.make("FrozenLake-v1")


def agent(seed=5):
    return rlsvi.DiscountedPSRL(seed=seed)


def rows(path):
    """The lines of a log, without what differs from run to run."""
    with open(path, newline="") as file:
        return [{name: text for name, text in row.items() if name not in TIMES} for row in csv.DictReader(file)]


# ---- CSV --------------------------------------------------------------------------------------------------


def test_a_line_for_every_episode(tmp_path):
    path, returns = tmp_path / "log.csv", []
    found = agent().learn(
        lake(), episodes=5, evaluate_every=2, on_episode=[CSV(path), lambda _, value: returns.append(value)]
    )
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
    lines = rows(path)
    assert [int(line["episodes"]) for line in lines] == [1, 2, 3, 4, 5]
    assert [float(line["return"]) for line in lines] == returns
    assert int(lines[-1]["steps"]) == found.steps == sum(int(line["length"]) for line in lines)
    assert [line["evaluation_return"] != "" for line in lines] == [False, True, False, True, False]
    assert {line["sweeps"] for line in lines} == {""}
    with open(path) as file:
        assert all(float(line["seconds"]) > 0 for line in csv.DictReader(file))


def test_numbers_of_the_practice_agent_are_written_in_full(tmp_path):
    found = rlsvi.BoundedRLSVI(seed=0).learn(
        gym.make("CartPole-v1"), episodes=3, on_episode=CSV(tmp_path / "log.csv")
    )
    last = rows(tmp_path / "log.csv")[-1]
    assert float(last["noise"]) == found.planned.sigma
    assert int(last["sweeps"]) == found.planned.sweeps
    assert float(last["bounds_hit"]) == found.planned.at_bounds


def test_a_log_is_continued(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    agent().learn(lake(), episodes=6, on_episode=CSV(one))
    found = agent().learn(lake(), episodes=2, on_episode=CSV(two))
    found.save(tmp_path / "kept")
    found.learn(lake(), episodes=2, on_episode=CSV(two))
    with open(two, "a") as file:
        file.write("5,17,0.")  # half a line, as a machine without power leaves it
    rlsvi.load(tmp_path / "kept").learn(lake(), episodes=4, on_episode=CSV(two))  # episodes 3 and 4 once more
    assert rows(one) == rows(two)
    two.write_text(HEADER[:10])
    agent().learn(lake(), episodes=6, on_episode=CSV(two))
    assert rows(one) == rows(two)
    agent().learn(lake(), episodes=1, on_episode=CSV(two))  # a new agent
    assert rows(one)[:1] == rows(two)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("episode,return\n1,2.0\n", "is not a log with the columns episodes,steps"),
        ("\x00\xff", "is not a log"),
        (HEADER + "1,2,3\nsix,2,3\n", "line 3 of .* begins with no number of episodes"),
        (HEADER + "\n", "line 2 of"),
    ],
)
def test_a_file_that_is_something_else_is_left_alone(text, words, tmp_path):
    path, found = tmp_path / "log.csv", agent()
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=words):
        found.learn(lake(), episodes=1, on_episode=CSV(path))
    assert path.read_bytes() == text.encode("latin-1")
    assert found.episodes == 0


def test_paths_that_no_log_can_be_written_to(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write to .* there is no folder"):
        CSV(tmp_path / "gone" / "log.csv")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        CSV(tmp_path)
    with pytest.raises(TypeError, match="name of a file"):
        CSV(None)
    if Path("/dev/null").exists():
        with pytest.raises(ValueError, match="device or a pipe"):
            agent().learn(lake(), episodes=1, on_episode=CSV("/dev/null"))


class FullDisk:
    """A file on a disk with room for a few more bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.file.write(data[: self.room])
        self.room -= written
        return written

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 1, 50, 100])
def test_a_full_disk_leaves_whole_lines_and_a_complete_agent(room, tmp_path):
    path, found = tmp_path / "log.csv", agent()
    log = CSV(path)

    def fill(agent, value):
        if agent.episodes == 2:
            log._file._file = FullDisk(log._file._file, room)

    with pytest.raises(OSError, match=r"cannot write to .*log\.csv: No space left"):
        found.learn(lake(), episodes=9, on_episode=[log, fill])
    lines = rows(path)
    assert [int(line["episodes"]) for line in lines] == list(range(1, len(lines) + 1))
    assert len(lines) == found.episodes - 1 < 9
    assert path.read_bytes().endswith(b"\n")
    assert_equal(everything(found, tmp_path), everything(agent().learn(lake(), episodes=found.episodes), tmp_path))
    found.learn(lake(), episodes=1, on_episode=CSV(path))
    assert int(rows(path)[-1]["episodes"]) == found.episodes


def test_a_disk_that_is_full_from_the_start(tmp_path, monkeypatch):
    def sync(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    found = agent()
    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OSError, match=r"cannot write to .*log\.csv: No space left"):
        found.learn(lake(), episodes=1, on_episode=CSV(tmp_path / "log.csv"))
    assert found.episodes == 0
    assert not list(tmp_path.iterdir())


# ---- after a kill -----------------------------------------------------------------------------------------


def killed(folder, lines):
    """Let a process learn until its log has so many lines and there is a checkpoint; then kill it."""
    process = subprocess.Popen([sys.executable, "-c", RUN], cwd=folder)
    try:
        while not (folder / "kept").exists() or (folder / "log.csv").read_bytes().count(b"\n") < lines:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_it_had_not_been_killed(tmp_path):
    killed(tmp_path, 25)
    path = tmp_path / "log.csv"
    assert path.read_bytes().endswith(b"\n")
    assert [len(line.split(",")) for line in path.read_text().splitlines()] == [len(COLUMNS)] * (
        len(rows(path)) + 1
    )
    resumed = rlsvi.load(tmp_path / "kept")
    before = resumed.episodes
    assert before % 7 == 0
    assert before <= len(rows(path))
    resumed.learn(lake(), episodes=5, evaluate_every=4, on_episode=CSV(path))
    whole = agent().learn(lake(), episodes=before + 5, evaluate_every=4, on_episode=CSV(tmp_path / "whole.csv"))
    assert_equal(everything(resumed, tmp_path), everything(whole, tmp_path))
    assert rows(path) == rows(tmp_path / "whole.csv")


# ---- TensorBoard ------------------------------------------------------------------------------------------


def curves(folder):
    """All curves in a folder as TensorBoard shows them: (step, value) by name."""
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", exc_type=ImportError)
    events = loading.EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(one.step, one.value) for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.mark.slow
def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", exc_type=ImportError)
    returns, cart = [], gym.make("CartPole-v1")
    note = [TensorBoard(tmp_path / "new" / "run"), lambda _, value: returns.append(value)]
    found = rlsvi.BoundedRLSVI(seed=0).learn(cart, episodes=4, evaluate_every=2, on_episode=note)
    read = curves(tmp_path / "new" / "run")
    own = {"return", "length", "steps", "seconds", "cpu_seconds", "sweeps", "noise", "bounds_hit"}
    assert set(read) == {f"episode/{name}" for name in own} | {"evaluation/return", "evaluation/error"}
    assert read["episode/return"] == [(i + 1, value) for i, value in enumerate(returns)]
    assert read["episode/steps"][-1] == (4, found.steps)
    assert [step for step, _ in read["evaluation/return"]] == [2, 4]
    assert [step for step, _ in read["episode/sweeps"]] == [2, 3, 4]
    agent().learn(lake(), episodes=3, on_episode=TensorBoard(tmp_path / "lake", against="steps"))
    read = curves(tmp_path / "lake")
    assert [value for _, value in read["episode/episodes"]] == [1, 2, 3]
    assert "episode/noise" not in read


@pytest.mark.slow
def test_tensorboard_hides_episodes_that_are_lived_again(tmp_path):
    pytest.importorskip("tensorboard", exc_type=ImportError)
    found, folder = agent().learn(lake(), episodes=2, on_episode=TensorBoard(tmp_path / "run")), tmp_path / "run"
    found.save(tmp_path / "kept")
    found.learn(lake(), episodes=3, on_episode=TensorBoard(folder))
    rlsvi.load(tmp_path / "kept").learn(lake(), episodes=1, on_episode=TensorBoard(folder))
    assert [step for step, _ in curves(folder)["episode/return"]] == [1, 2, 3]


@pytest.mark.slow
def test_a_full_disk_leaves_whole_records(tmp_path):
    pytest.importorskip("tensorboard", exc_type=ImportError)
    board, found = TensorBoard(tmp_path / "run"), agent()

    def fill(agent, value):
        if agent.episodes == 2:
            board._file._file = FullDisk(board._file._file, 30)

    with pytest.raises(OSError, match=r"cannot write to .*tfevents.* No space left"):
        found.learn(lake(), episodes=9, on_episode=[board, fill])
    assert found.episodes == 3
    assert [step for step, _ in curves(tmp_path / "run")["episode/return"]] == [1, 2]


@pytest.mark.slow
def test_tensorboard_says_what_is_wrong(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="against"):
        TensorBoard(tmp_path, against="time")
    found = agent()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
        with pytest.raises(ImportError, match="pip install tensorboard"):
            found.learn(lake(), episodes=1, on_episode=TensorBoard(tmp_path))
    pytest.importorskip("tensorboard", exc_type=ImportError)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write to"):
        found.learn(lake(), episodes=1, on_episode=TensorBoard(tmp_path / "file" / "run"))
    assert found.episodes == 0
