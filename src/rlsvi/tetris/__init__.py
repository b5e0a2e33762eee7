"""Tetris, compiled: pieces, the game, features of placements, and exact values of small games.

What is named here checks what it is given. The compiled functions in the modules do not: a placement that a piece
does not have would be read from outside of their tables.
"""

from rlsvi.tetris.exact import Exact, solve
from rlsvi.tetris.game import Rules, rules
from rlsvi.tetris.pieces import LETTERS
from rlsvi.tetris.play import Level, Scores, level, play
from rlsvi.tetris.policy_iteration import Policies, policy_iteration, scoring_weights
