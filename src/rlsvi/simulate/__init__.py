"""The fused loops: an agent and a problem in one compiled function.

`simulate` plays finite-horizon problems, `simulate_concurrent` with several agents that share their data,
`simulate_continual` problems that never end, `simulate_tetris` Tetris.
Each calls the same functions as the Gymnasium loop of an agent, with the same random streams, so that both produce
the same episodes bit for bit.
"""

from rlsvi.simulate.concurrent import simulate_concurrent
from rlsvi.simulate.endless import simulate_continual
from rlsvi.simulate.finite import History, Trace, simulate
from rlsvi.simulate.tetris import play_mean, simulate_tetris

__all__ = [
    "History",
    "Trace",
    "play_mean",
    "simulate",
    "simulate_concurrent",
    "simulate_continual",
    "simulate_tetris",
]
