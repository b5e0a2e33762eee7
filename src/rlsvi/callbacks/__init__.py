"""Callbacks for `agent.learn`: evaluation, checkpoints, and logs of the episodes.

    from rlsvi.callbacks import CSV, Checkpoint, Evaluate

    agent.learn(env, episodes=500, on_episode=[Evaluate(50, keep_best="best.rlsvi"), CSV("log.csv")])

None of them changes what is learned.
"""

from rlsvi.callbacks.calling import Callback
from rlsvi.callbacks.csv_log import CSV
from rlsvi.callbacks.evaluation import Evaluate
from rlsvi.callbacks.saving import Checkpoint
from rlsvi.callbacks.tensorboard import TensorBoard

__all__ = ["CSV", "Callback", "Checkpoint", "Evaluate", "TensorBoard"]
