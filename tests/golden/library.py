"""What is used of the library, imported in one place for the cases, so that a move is followed here alone."""

import rlsvi
from rlsvi import bases, problems
from rlsvi.core import random
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate import simulate, simulate_continual
from rlsvi_paper import tetris
from rlsvi_paper.tetris import TetrisEnv, simulate_tetris

__all__ = [
    "FiniteMDPEnv",
    "TetrisEnv",
    "bases",
    "problems",
    "random",
    "rlsvi",
    "simulate",
    "simulate_continual",
    "simulate_tetris",
    "tetris",
]
