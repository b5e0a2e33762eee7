"""Tetris as a Gymnasium environment: an action is a placement of the piece."""

from typing import Any

import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary

from rlsvi.core.checks import whole
from rlsvi.envs.environment import Environment, Info
from rlsvi.envs.tetris_view import View, picture, text
from rlsvi.tetris.game import GameOver, get_board, landing, legal, new_game, rules, start, step
from rlsvi.tetris.pieces import LETTERS


class PlacementSpace(Discrete):
    """The numbers of placements; samples are legal placements of the current piece."""

    legal = 1

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Return a random legal placement, or a sample under the mask or probabilities given."""
        if probability is not None:
            return super().sample(mask, probability)
        return super().sample((np.arange(self.n) < self.legal).astype(np.int8) if mask is None else mask)


class TetrisEnv(Environment):
    """Pieces are placed one after the other: choose a rotation and a column, and the piece falls straight down.

    The observation is the board, {"board": (height, width) of 0 and 1, top row first; "piece": its index in
    IOTSZJL}. Action a is the a-th placement of the piece: one rotation after the other, clockwise, each from left
    to right. Most pieces have fewer placements than there are actions: info["action_mask"] contains the legal
    ones, and samples of the action space are legal. The reward is the number of rows removed, and
    info["game_over"] is the rule that ends a game. Pieces come from a stream that the seed of `reset` starts: one
    number for the first and, unless the game is over, one after each placement.

    Parameters
    ----------
    height, width, pieces, game_over : see `rlsvi.tetris.rules`.
    max_pieces : a game is `truncated` after this many placements. If None, never.
    render_mode : "ansi" for coloured text, "rgb_array" for pictures, or None.
    """

    def __init__(
        self,
        height: int = 20,
        width: int = 10,
        pieces: str = LETTERS,
        game_over: GameOver = "top row",
        max_pieces: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(render_mode)
        self.rules = rules(height, width, pieces, game_over)
        self.game_over = game_over
        self.max_pieces = None if max_pieces is None else whole("max_pieces", max_pieces, 1)
        board = MultiBinary((self.rules.height, self.rules.width))
        self.observation_space = Dict({"board": board, "piece": Discrete(len(LETTERS))})
        self.action_space = self._placements = PlacementSpace(self.rules.actions)
        self._game = new_game(self.rules)
        self._view = View(np.zeros((len(self._game.rows), self.rules.width), dtype=np.int8))

    @property
    def horizon(self) -> int | None:
        """The maximum number of placements per game, if games are truncated."""
        return self.max_pieces

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Info, Info]:
        """Empty the board; a seed restarts the stream of pieces."""
        super().reset(seed=seed)
        start(self.rules, self._game, self._stream)
        self._view = View(np.zeros_like(self._view.cells), piece=int(self._game.piece[0]))
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Place the piece; an invalid placement is refused and changes nothing."""
        a, count = self._checked(action, self.rules.actions), self._placements.legal
        if a >= count:
            raise ValueError(
                f"action {a} is not legal: piece {LETTERS[self._game.piece[0]]} has the placements "
                f"0..{count - 1}, choose one that info['action_mask'] allows"
            )
        self._show(a)
        removed, over = step(self.rules, self._game, a, self._stream)
        self._view.rows += removed
        self._view.pieces += 1
        self._view.piece = -1 if over else int(self._game.piece[0])
        truncated = not over and self._view.pieces == self.max_pieces
        self._running = not (over or truncated)
        return self._observation(), float(removed), bool(over), truncated, self._info()

    def _text(self) -> str:
        return text(self._view, self.rules.height)

    def _picture(self) -> Any:
        return picture(self._view, self.rules.height)

    def _observation(self) -> dict[str, Any]:
        board = np.empty((self.rules.height, self.rules.width), dtype=np.int8)
        get_board(self._game, board)
        return {"board": board, "piece": np.int64(self._game.piece[0])}

    def _info(self) -> dict[str, Any]:
        count = self._placements.legal = int(legal(self.rules, self._game))
        mask = (np.arange(self.rules.actions) < count).astype(np.int8)
        return {"action_mask": mask, "game_over": self.game_over}

    def _show(self, action: int) -> None:
        """Update the colours: write the letter of the piece where it lands, and remove full rows."""
        table, cells = self.rules.placements, self._view.cells
        p = table.first[self._game.piece[0]] + action
        y = landing(table, self._game.heights, p)
        for i in range(table.tall[p]):
            own = table.bits[p, i] >> np.arange(self.rules.width) & 1
            cells[y + i][own == 1] = self._game.piece[0] + 1
        kept = cells[~(cells > 0).all(axis=1)]
        cells[:] = 0
        cells[: len(kept)] = kept
