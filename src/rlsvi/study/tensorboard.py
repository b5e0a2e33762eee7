"""Learning curves for TensorBoard, if it is installed: `pip install tensorboard`."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rlsvi.agents.agent import OnEpisode


@contextmanager
def tensorboard(folder: str | os.PathLike[str]) -> Iterator[OnEpisode]:
    """Write the return of every episode to `folder`, against episodes and against steps.

    with rlsvi.tensorboard("runs/first") as log:
        agent.learn(env, episodes=50, on_episode=log)
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise ImportError("TensorBoard is not installed: pip install tensorboard") from error
    writer = EventFileWriter(os.fspath(folder))

    def note(agent: Any, episode_return: float) -> None:
        for axis in ("episodes", "steps"):
            value = Summary.Value(tag=f"return/by {axis}", simple_value=episode_return)
            event = Event(wall_time=time.time(), step=getattr(agent, axis), summary=Summary(value=[value]))
            writer.add_event(event)

    try:
        yield note
    finally:
        writer.close()
