"""Tetris, compiled: pieces, the game, features of placements, and exact values of small games."""

from rlsvi.tetris.exact import Exact, solve
from rlsvi.tetris.features import Room, afterstates, evaluate, new_room, values
from rlsvi.tetris.game import Game, Rules, new_game, rules, start, step
from rlsvi.tetris.pieces import LETTERS
from rlsvi.tetris.play import Level, Scores, level, play
from rlsvi.tetris.policy_iteration import Policies, policy_iteration, scoring_weights

__all__ = [
    "LETTERS",
    "Exact",
    "Game",
    "Level",
    "Policies",
    "Room",
    "Rules",
    "Scores",
    "afterstates",
    "evaluate",
    "level",
    "new_game",
    "new_room",
    "play",
    "policy_iteration",
    "rules",
    "scoring_weights",
    "solve",
    "start",
    "step",
    "values",
]
