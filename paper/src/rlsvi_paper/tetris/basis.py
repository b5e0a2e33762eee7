"""Tetris: features of the board after a placement, one block of weights for all placements."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.bases.basis import Features
from rlsvi.core.archive import storable
from rlsvi.core.checks import finite, shaped, shown
from rlsvi.core.compile import Floats, Ints
from rlsvi_paper.tetris.features import (
    Kind,
    Room,
    afterstates,
    kind_of,
    names,
    natural_units,
    new_room,
    smallest_dtype,
)
from rlsvi_paper.tetris.game import LETTERS, Game, Rules, board_rules, new_game, set_board


@storable
@dataclass(frozen=True, eq=False)
class Tetris:
    """Features of the board after the placement and the removal of rows.

    Parameters
    ----------
    features
        "bertsekas", the 22 of the paper, or "dellacherie", those of the best linear players.
    units
        Factors of the integer features. "scaled" divides all but the constant by the height of the board; "raw"
        leaves them unchanged; or a vector with one number per feature.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> from rlsvi_paper import tetris
    >>> agent = rlsvi.StationaryRLSVI(basis=tetris.Tetris("dellacherie"), seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/MiniTetris-v0"), 2).episodes
    2
    """

    features: Kind = "bertsekas"
    units: Any = "scaled"

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block of d weights. Placements that a piece does not have are zero."""
        desk = _desk(self.features, example)
        units = self._units(desk)
        block = np.zeros(actions, dtype=np.int32)

        def numbers(observation: Any) -> NDArray[Any]:
            n, whole = _look(desk, observation, actions), np.zeros((actions, len(units)), desk.room.planes.dtype)
            whole[:n] = desk.room.planes[:, :n].T
            return whole

        def at(h: int, observation: Any) -> tuple[Ints, Floats]:
            return block, numbers(observation) * units

        def rewards(observation: Any) -> NDArray[np.uint8]:
            n, r = _look(desk, observation, actions), np.zeros(actions, dtype=np.uint8)
            r[:n] = desk.room.removed[:n]
            return r

        board = {"height": desk.rules.height, "width": desk.rules.width}
        return Features(1, len(units), at, None, rewards, units, numbers, board)

    def _units(self, desk: "BoardRoom") -> Floats:
        if isinstance(self.units, str):
            if self.units not in ("scaled", "raw"):
                raise ValueError(f'units must be "scaled", "raw" or a vector of numbers, got {shown(self.units)}')
            return natural_units(desk.kind, desk.rules, self.units == "scaled")
        units = shaped("units", finite("units", self.units), (len(names(desk.kind, desk.rules.width)),))
        if not (units > 0).all():
            raise ValueError(f"units must be positive, got {shown(self.units)}")
        return units


class BoardRoom(NamedTuple):
    """Work arrays for computing the features of an observation."""

    rules: Rules
    kind: int
    game: Game
    room: Room


def _desk(features: Kind, example: Any) -> BoardRoom:
    kind = kind_of(features)
    board, _ = _parts(example)
    height, width = board.shape
    rules = board_rules(height, width, height)
    return BoardRoom(rules, kind, new_game(rules), new_room(rules, kind, smallest_dtype(kind, rules)))


def _parts(observation: Any) -> tuple[NDArray[Any], int]:
    """Return the board and the piece of an observation."""
    try:
        board, piece = np.asarray(observation["board"]), int(observation["piece"])
        fits = board.ndim == 2 and piece == observation["piece"]
    except (TypeError, KeyError, IndexError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise ValueError(
            'the Tetris basis needs observations {"board": (height, width) zeros and ones, "piece": number} as of '
            f"rlsvi/Tetris-v0, got {shown(observation)}"
        )
    return board, piece


def _look(desk: BoardRoom, observation: Any, actions: int) -> int:
    """Compute the placements of an observation, and return their number."""
    board, piece = _parts(observation)
    shaped("board", board, (desk.rules.height, desk.rules.width))
    filled = board == 1
    if not (filled | (board == 0)).all():
        raise ValueError(f"board must hold zeros and ones only, 1 for a filled cell, got {shown(board)}")
    if not 0 <= piece < len(LETTERS):
        raise ValueError(f"piece must be a number from 0 to {len(LETTERS) - 1}, a place in {LETTERS}, got {piece}")
    set_board(desk.game, filled, piece)
    room = desk.room
    n: int = afterstates(desk.rules, desk.kind, desk.game, room.planes, 0, room.removed, room.fatal)
    if n > actions:
        raise ValueError(f"piece {LETTERS[piece]} has {n} placements, but there are {actions} actions only")
    return n
