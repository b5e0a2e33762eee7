"""The fused loops: an agent, a problem and the world between them in one compiled function.

`simulate` plays finite-horizon problems, `simulate_continual` problems that never end, `simulate_tetris` Tetris.
Each calls the functions that the Gymnasium loop of an agent calls, with the same random streams, so that both give
the same episodes bit for bit.
"""

from rlsvi.simulate.endless import simulate_continual
from rlsvi.simulate.finite import History, Trace, simulate
from rlsvi.simulate.tetris import play_mean, simulate_tetris

__all__ = ["History", "Trace", "play_mean", "simulate", "simulate_continual", "simulate_tetris"]
