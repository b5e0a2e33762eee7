"""A log of episodes as a CSV file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Env

from rlsvi.callbacks.appending import AppendedFile, cannot_write
from rlsvi.callbacks.calling import DIAGNOSTICS, EVALUATIONS, FIELDS, Callback, Numbers
from rlsvi.core.archive import checked_target
from rlsvi.core.files import write_file

COLUMNS = (*FIELDS, *DIAGNOSTICS, *EVALUATIONS)
HEADER = ",".join(COLUMNS) + "\n"


class CSV(Callback):
    """Write a line for every episode to a CSV file.

    The columns are episodes, steps, return, length, seconds, cpu_seconds, sweeps, noise, bounds_hit,
    evaluation_return and evaluation_error; a cell is empty if there is no such number. A line is written as a
    whole as soon as the episode is over, so that a killed process leaves no half lines.

    If the file exists, it is continued: lines of episodes that the agent has learned from are kept, and later
    ones, which a killed process may have left after its last checkpoint, are removed. The lines of a new agent
    thus replace all others. A file with other columns is refused.

    Parameters
    ----------
    path : the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = checked_target(path, "write")
        self._file: AppendedFile | None = None

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Open the file, after removing what the agent has not learned from."""
        checked_target(self.path, "write")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"{self.path} is a device or a pipe: name a file")
        text = self.path.read_text(errors="replace") if self.path.exists() else ""
        kept = continued(self.path, text, agent.episodes)
        if kept != text:
            try:
                write_file(self.path, kept.encode())
            except OSError as error:
                raise cannot_write(self.path, error) from error
        self._file = AppendedFile(self.path)

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Append a line."""
        assert self._file is not None
        line = ",".join(cell(numbers[name]) if name in numbers else "" for name in COLUMNS)
        self._file.write(f"{line}\n".encode())

    def end(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None


def cell(value: float) -> str:
    """Return a number as text that gives the same number when it is read."""
    return str(int(value)) if isinstance(value, int | np.integer) else repr(float(value))


def continued(path: Path, text: str, episodes: int) -> str:
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
