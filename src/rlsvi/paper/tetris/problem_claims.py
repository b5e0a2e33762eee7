"""What the paper says about Tetris itself and its features (section 6.2 and appendix D), and verdicts on it."""

import math

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, at_least, claim, computed, exactly, mean_se
from rlsvi.paper.tetris.levels import level
from rlsvi.paper.tetris.players import RLSVI
from rlsvi.study.statistics import ratio
from rlsvi.tetris import LETTERS, rules
from rlsvi.tetris.features import BERTSEKAS, names


@computed(
    "Tetris has more than 2²⁰⁰ states; each of its 22 features and rewards is from 0 to 20, holes from 0 to 199",
    "section 6.2 and appendix D",
)
def sizes() -> Verdict:
    """Counted: boards without full rows, those included on which the game is over, times pieces; features on
    boards on which the game is not over.
    """
    board = rules()
    states = math.log2(len(LETTERS)) + board.height * math.log2(2**board.width - 1)
    features, holes = len(names(BERTSEKAS, board.width)), board.width * (board.usable - 1)
    words = (
        f"the binary logarithm of the states is {states:.1f}; {features} features, heights up to {board.usable}"
    )
    holds = states > 200 and features == 22 and board.usable <= 20 and holes <= 199
    return exactly(holds, f"{words}, rows removed up to 4, holes up to {holes}")


@claim("It is well known that you can find far superior linear basis functions", "section 6.2")
def better_features(frame: pl.DataFrame) -> Verdict:
    """A player with published features and weights gets at least ten times RLSVI's level (afterstate form, scaled
    features).
    """
    theirs: Floats = frame["published"].drop_nulls().to_numpy()
    cut = int(frame["cut_off"].drop_nulls().sum())
    more = ratio(theirs, level(frame, RLSVI))
    words = f"Dellacherie's six features with his weights get {mean_se(theirs)} rows a game"
    return at_least(more, 10.0, f"{words} ({cut} cut off), {more} times RLSVI's level")


@computed("10⁵ transitions with every possible action fit into less than 10 MB", "appendix D")
def memory_size() -> Verdict:
    """Features of every next placement, each number in as many bits as its range needs."""
    board = rules()
    placements = float(np.diff(board.placements.first).mean())
    small, holes, rows = math.log2(21), math.log2(200), math.log2(5)
    bits = placements * (20 * small + holes + rows)
    whole, packed = 1e5 * placements * 22 / 1e6, 1e5 * bits / 8e6
    return exactly(
        packed < 10,
        f"{placements:.1f} placements a piece take {whole:.0f} MB at a byte a feature, {packed:.0f} MB in bits; "
        "the boards and pieces themselves would fit into 3 MB",
    )
