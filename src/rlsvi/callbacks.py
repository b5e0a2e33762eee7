"""Callbacks for `agent.learn`: evaluation, checkpoints, and logs of the episodes.

    from rlsvi.callbacks import CSV, Checkpoint, Evaluate

    agent.learn(env, episodes=500, on_episode=[Evaluate(50, keep_best="best.rlsvi"), CSV("log.csv")])

None of them changes what is learned. Those that arguments of `learn` stand for are in agents/on_episode.py.
"""

import errno
import os
import socket
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium import Env

from rlsvi.agents.on_episode import Callback, Checkpoint, Evaluate, Numbers
from rlsvi.core.archive import checked_target, path_of
from rlsvi.core.checks import one_of
from rlsvi.core.files import write_file

__all__ = ["CSV", "Callback", "Checkpoint", "Evaluate", "TensorBoard"]

COLUMNS = (
    *("episodes", "steps", "return", "length", "seconds", "cpu_seconds"),  # of every agent
    *("sweeps", "noise", "bounds_hit"),  # of agents that have them
    *("evaluation_return", "evaluation_error"),  # of episodes after which there was one
)
HEADER = ",".join(COLUMNS) + "\n"


class _Log(Callback):
    """A callback that appends to a file."""

    _file: "AppendedFile | None" = None

    def end(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None


class CSV(_Log):
    """Write a line for every episode to a CSV file.

    The columns are episodes, steps, return, length, seconds, cpu_seconds, sweeps, noise, bounds_hit,
    evaluation_return and evaluation_error; a cell is empty if there is no such number. A line is written as a
    whole as soon as the episode is over, so that a killed process leaves no half lines.

    If the file exists, it is continued: lines of episodes that the agent has learned from are kept, and later
    ones, which a killed process may have left after its last checkpoint, are removed. The lines of a new agent
    thus replace all others. A file with other columns is refused.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import gymnasium, polars, rlsvi
    >>> log = rlsvi.callbacks.CSV("log.csv")
    >>> agent = rlsvi.RLSVI(seed=0).learn(gymnasium.make("rlsvi/Chain-v0", length=5), 20, on_episode=log)
    >>> polars.read_csv("log.csv").height
    20
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = checked_target(path, "write")

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Open the file, after removing what the agent has not learned from."""
        checked_target(self.path, "write")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"{self.path} is a device or a pipe: name a file")
        text = self.path.read_text(errors="replace") if self.path.exists() else ""
        kept = _lines_up_to(self.path, text, agent.episodes)
        if kept != text:
            try:
                write_file(self.path, kept.encode())
            except OSError as error:
                raise _cannot_write(self.path, error) from error
        self._file = AppendedFile(self.path)

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Append a line."""
        assert self._file is not None
        line = ",".join(_cell(numbers[name]) if name in numbers else "" for name in COLUMNS)
        self._file.write(f"{line}\n".encode())


def _cell(value: float) -> str:
    """Return a number as text that gives the same number when it is read."""
    return str(int(value)) if isinstance(value, int | np.integer) else repr(float(value))


def _lines_up_to(path: Path, text: str, episodes: int) -> str:
    """Return the header and all complete lines up to a number of episodes, after checking the header."""
    lines = text.splitlines(keepends=True)
    if lines and lines[0] != HEADER and not HEADER.startswith(text):
        raise ValueError(f"{path} is not a log with the columns {HEADER.strip()}: name another file")
    kept = [HEADER]
    for number, line in enumerate(lines[1:], 2):
        counted, comma, _ = line.partition(",")
        if not line.endswith("\n"):
            break  # a machine that lost its power wrote half a line
        if not comma or not counted.isdecimal():
            raise ValueError(f"line {number} of {path} begins with no number of episodes: name another file")
        if int(counted) <= episodes:
            kept.append(line)
    return "".join(kept)


class TensorBoard(_Log):
    """Write the numbers of every episode to a folder that TensorBoard reads.

    The curves are called episode/return, episode/length, episode/seconds, episode/cpu_seconds and, where an agent
    has them, episode/sweeps, episode/noise and episode/bounds_hit, and after evaluations evaluation/return and
    evaluation/error. Other numbers of `agent.diagnostics()` are written too. If a run continues from a checkpoint,
    TensorBoard hides what the folder contains of later episodes. It must be installed: `pip install tensorboard`.

    Parameters
    ----------
    folder
        The folder, one for each run; it is created if necessary.
    against
        "episodes" or "steps", the horizontal axis.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> log = rlsvi.callbacks.TensorBoard("runs/first")
    >>> agent = rlsvi.RLSVI(seed=0).learn(gymnasium.make("rlsvi/Chain-v0", length=5), 20, on_episode=log)
    """

    def __init__(self, folder: str | os.PathLike[str], against: Literal["episodes", "steps"] = "episodes") -> None:
        self.folder, self.against = path_of(folder, "folder"), one_of("against", against, ("episodes", "steps"))

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Open a new file in the folder, and mark where the run begins."""
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ImportError as error:
            raise ImportError("TensorBoard is not installed: pip install tensorboard") from error
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_write(self.folder, error) from error
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = AppendedFile(self.folder / name)
        self._records, self._event, self._summary = RecordWriter(self._file), Event, Summary
        self._add(file_version="brain.Event:2")  # of the format, in which restarts are marked
        self._add(step=getattr(agent, self.against) + 1, session_log=SessionLog(status=SessionLog.START))

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Write the numbers."""
        values = []
        for name, value in numbers.items():
            if name != self.against:
                group = "evaluation" if name.startswith("evaluation_") else "episode"
                tag = f"{group}/{name.removeprefix('evaluation_')}"
                values.append(self._summary.Value(tag=tag, simple_value=value))
        self._add(step=getattr(agent, self.against), summary=self._summary(value=values))

    def _add(self, **what: Any) -> None:
        self._records.write(self._event(wall_time=time.time(), **what).SerializeToString())


class AppendedFile:
    """A file that grows by whole records, also if the process is killed or the disk is full."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise _cannot_write(path, error) from error

    def write(self, record: bytes) -> None:
        """Append a record. If it does not fit on the disk, what was written of it is removed."""
        try:
            written = self._file.write(record)
            if written < len(record):
                self._file.truncate(os.fstat(self._file.fileno()).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _cannot_write(path: Path, error: OSError) -> OSError:
    """Return an error of the same kind that names the file."""
    return type(error)(error.errno, f"cannot write to {path}: {error.strerror}")
