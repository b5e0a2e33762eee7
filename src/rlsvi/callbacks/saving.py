"""Checkpoints: an agent is saved while it learns, so that a killed run can go on."""

import os
from pathlib import Path
from typing import Any

from gymnasium import Env

from rlsvi.callbacks.calling import Callback, Numbers
from rlsvi.core.archive import checked_target
from rlsvi.core.checks import whole


class Checkpoint(Callback):
    """Save the agent whenever the number of episodes it has learned from is a multiple of `every`.

    The file is replaced as a whole, so that it always contains the last complete checkpoint, even if the process
    is killed or the disk is full. `rlsvi.load(path).learn(env, ...)` continues as if learning had never stopped,
    bit for bit. In a list of callbacks it should be the last, so that logs are not behind the checkpoint.

    Parameters
    ----------
    every : the number of episodes between checkpoints.
    path : the file. If its name contains `{episodes}`, the number of episodes takes its place, and all are kept.
    """

    def __init__(self, every: int, path: str | os.PathLike[str]) -> None:
        self.every, self.path = whole("every", every, 1), checked_target(path)

    def begin(self, agent: Any, env: Env[Any, Any]) -> None:
        """Check that the agent can be saved."""
        checked_target(self.path)
        agent._check_can_be_saved()

    def episode(self, agent: Any, numbers: Numbers) -> None:
        """Save the agent if it is time."""
        if agent.episodes % self.every == 0:
            agent.save(Path(str(self.path).replace("{episodes}", str(agent.episodes))))
