"""Tetris, compiled: pieces, the game, features of placements, and exact values of small games.

The functions exported here check their arguments. The compiled functions in the modules do not: an invalid
placement would be read from outside of their tables.
"""

from rlsvi.tetris.exact import Exact, solve
from rlsvi.tetris.game import LETTERS, Rules, rules
from rlsvi.tetris.play import Level, Scores, level, play
from rlsvi.tetris.policy_iteration import Policies, policy_iteration, scoring_weights
