"""Learning curves for TensorBoard, if it is installed: `pip install tensorboard`."""

import os
import time
from typing import Any, Literal

from gymnasium import Env

from rlsvi.callbacks.calling import Callback, Numbers
from rlsvi.core.checks import one_of

FLUSH = 10  # seconds after which events are written to the file


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
        self.folder, self.against = os.fspath(folder), one_of("against", against, ("episodes", "steps"))
        self._writer: Any = None

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Open a new file in the folder."""
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise ImportError("TensorBoard is not installed: pip install tensorboard") from error
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise type(error)(error.errno, f"cannot write to {self.folder}: {error.strerror}") from error
        self._event, self._summary = Event, Summary
        self._writer = EventFileWriter(self.folder, flush_secs=FLUSH)
        start = SessionLog(status=SessionLog.START)
        self._add(getattr(agent, self.against) + 1, session_log=start)

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Hand the numbers to the writer."""
        values = [
            self._summary.Value(tag=tag_of(name), simple_value=value)
            for name, value in numbers.items()
            if name != self.against
        ]
        self._add(getattr(agent, self.against), summary=self._summary(value=values))

    def end(self) -> None:
        """Write everything, and close the file."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    def _add(self, step: int, **what: Any) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, **what))


def tag_of(name: str) -> str:
    """Return the name of a curve."""
    group = "evaluation" if name.startswith("evaluation_") else "episode"
    return f"{group}/{name.removeprefix('evaluation_')}"
