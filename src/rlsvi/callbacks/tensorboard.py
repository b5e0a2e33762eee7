"""Learning curves for TensorBoard, if it is installed: `pip install tensorboard`."""

import os
import socket
import time
from typing import Any, Literal

from gymnasium import Env

from rlsvi.callbacks.appending import AppendedFile, cannot_write
from rlsvi.callbacks.calling import Callback, Numbers
from rlsvi.core.archive import path_of
from rlsvi.core.checks import one_of

VERSION = "brain.Event:2"  # of the format of such files, in which restarts are marked


class TensorBoard(Callback):
    """Write the numbers of every episode to a folder that TensorBoard reads.

    The curves are called episode/return, episode/length, episode/seconds, episode/cpu_seconds and, where an agent
    has them, episode/sweeps, episode/noise and episode/bounds_hit, and after evaluations evaluation/return and
    evaluation/error. Other numbers of `agent.diagnostics()` are written too. If a run continues from a checkpoint,
    TensorBoard hides what the folder contains of later episodes.

    Parameters
    ----------
    folder : the folder, one for each run; it is created if necessary.
    against : "episodes" or "steps", the horizontal axis.
    """

    def __init__(self, folder: str | os.PathLike[str], against: Literal["episodes", "steps"] = "episodes") -> None:
        self.folder, self.against = path_of(folder, "folder"), one_of("against", against, ("episodes", "steps"))
        self._file: AppendedFile | None = None

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
            raise cannot_write(self.folder, error) from error
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = AppendedFile(self.folder / name)
        self._records, self._event, self._summary = RecordWriter(self._file), Event, Summary
        self._add(file_version=VERSION)
        self._add(step=getattr(agent, self.against) + 1, session_log=SessionLog(status=SessionLog.START))

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Write the numbers."""
        values = [
            self._summary.Value(tag=tag_of(name), simple_value=value)
            for name, value in numbers.items()
            if name != self.against
        ]
        self._add(step=getattr(agent, self.against), summary=self._summary(value=values))

    def end(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _add(self, **what: Any) -> None:
        self._records.write(self._event(wall_time=time.time(), **what).SerializeToString())


def tag_of(name: str) -> str:
    """Return the name of a curve."""
    group = "evaluation" if name.startswith("evaluation_") else "episode"
    return f"{group}/{name.removeprefix('evaluation_')}"
