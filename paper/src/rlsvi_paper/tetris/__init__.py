"""Tetris, compiled: pieces, the game, features of placements, and exact values of small games.

The functions exported here check their arguments. The compiled functions in the modules do not: an invalid
placement would be read from outside of their tables.
"""

from rlsvi_paper.tetris.basis import Tetris
from rlsvi_paper.tetris.environment import TetrisEnv
from rlsvi_paper.tetris.exact import Exact, solve
from rlsvi_paper.tetris.game import LETTERS, Rules, rules
from rlsvi_paper.tetris.loop import Games, simulate_tetris
from rlsvi_paper.tetris.play import Scores, play
from rlsvi_paper.tetris.policy_iteration import Policies, policy_iteration, scoring_weights
