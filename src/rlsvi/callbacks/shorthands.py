"""The arguments of `learn` that stand for callbacks."""

from pathlib import Path
from typing import Any

from rlsvi.callbacks.calling import Callback
from rlsvi.callbacks.evaluation import Evaluate
from rlsvi.callbacks.saving import Checkpoint
from rlsvi.core.archive import checked_target
from rlsvi.core.checks import whole


def evaluating(evaluate_every: Any, evaluation_env: Any, keep_best: Any) -> list[Callback]:
    """Return the callback that evaluates, if one is wanted."""
    if evaluate_every is None:
        for name, value in (("keep_best", keep_best), ("evaluation_env", evaluation_env)):
            if value is not None:
                raise ValueError(
                    f"{name} needs evaluations: give evaluate_every= too, such as evaluate_every=50, or use "
                    f"on_episode=rlsvi.callbacks.Evaluate(50, ...)"
                )
        return []
    return [Evaluate(whole("evaluate_every", evaluate_every, 1), evaluation_env, keep_best=keep_best)]


def saving(checkpoint_every: Any, checkpoint: Any, keep_best: Any) -> list[Callback]:
    """Return the callback that saves checkpoints, if one is wanted, to another file than the best agent."""
    if (checkpoint_every is None) != (checkpoint is None):
        raise ValueError(
            "checkpoint_every and checkpoint belong together: give the number of episodes and the file, such as "
            'checkpoint_every=50, checkpoint="agent.rlsvi"'
        )
    if checkpoint is None:
        return []
    target = checked_target(checkpoint, name="checkpoint")
    saved = Checkpoint(whole("checkpoint_every", checkpoint_every, 1), target)
    if keep_best is not None and saved.path == Path(keep_best):
        raise ValueError(f"checkpoint and keep_best are both {keep_best}: name two files")
    return [saved]
