"""The fused loops: an agent and a problem in one compiled function.

`simulate` plays finite-horizon problems, and `simulate_continual` problems that never end.
Each calls the same functions as the Gymnasium loop of an agent, with the same random streams, so that both produce
the same episodes bit for bit.
"""

from rlsvi.simulate.endless import simulate_continual
from rlsvi.simulate.finite import History, Trace, simulate

__all__ = [
    "History",
    "Trace",
    "simulate",
    "simulate_continual",
]
