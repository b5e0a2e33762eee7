"""What the paper says about Tetris itself and its features (section 6.2 and appendix D), and verdicts on it."""

import math

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, at_least, claim, computed, exactly, mean_se
from rlsvi.paper.tetris.levels import level
from rlsvi.paper.tetris.players import RLSVI
from rlsvi.study.means import ratio
from rlsvi.tetris import LETTERS, rules
from rlsvi.tetris.features import BERTSEKAS, names


@computed("Tetris has more than 2^200 states", "section 6.2")
def states() -> Verdict:
    """Boards without full rows, those included on which the game is over, times pieces."""
    board = rules()
    count, live = (len(LETTERS) * (2**board.width - 1) ** rows for rows in (board.height, board.usable))
    words = f"boards without full rows, times pieces: 2^{math.log2(count):.1f}"
    going_on = f"of which in 2^{math.log2(live):.1f} the game is not over; not all of them can be reached"
    return exactly(count > 2**200, f"{words}, {going_on}")


@computed("22 features: heights, differences, maximum, holes and a constant", "section 6.2")
def features() -> Verdict:
    """Counted."""
    found = names(BERTSEKAS, rules().width)
    return exactly(len(found) == 22, f"{len(found)}: 10 heights, 9 differences, {', '.join(found[-3:])}")


@claim("It is well known that you can find far superior linear basis functions", "section 6.2")
def better_features(frame: pl.DataFrame) -> Verdict:
    """A player with published features and weights gets at least ten times RLSVI's level."""
    theirs: Floats = frame["published"].drop_nulls().to_numpy()
    cut = int(frame["cut_off"].drop_nulls().sum())
    more = ratio(theirs, level(frame, RLSVI))
    words = f"Dellacherie's six features with his weights: {mean_se(theirs)} rows a game"
    ends = f"{cut} games were cut off after a million pieces"
    return at_least(more, 10.0, f"{words} ({ends}), {more} times RLSVI's level")


@computed("Every feature and reward is a whole number from 0 to 20, holes from 0 to 199", "appendix D")
def ranges() -> Verdict:
    """Counted, on boards on which the game is not over."""
    board = rules()
    tallest, holes = board.usable, board.width * (board.usable - 1)
    words = f"while the game goes on heights are at most {tallest}, rows removed at most 4"
    ending = "a placement that ends the game may stand 3 rows out of the board"
    return exactly(tallest <= 20 and holes <= 199, f"{words}, and no board has more than {holes} holes; {ending}")


@computed("10^5 transitions with every possible action fit into less than 10 MB", "appendix D")
def memory_size() -> Verdict:
    """Features of every next placement, each number in as many bits as its range needs."""
    board = rules()
    placements = float(np.diff(board.placements.first).mean())
    small, holes, rows = math.log2(21), math.log2(200), math.log2(5)
    bits = placements * (20 * small + holes + rows)
    whole, packed = 1e5 * placements * 22 / 1e6, 1e5 * bits / 8e6
    return exactly(
        packed < 10,
        f"{placements:.1f} placements a piece: {whole:.0f} MB at a byte a feature, {packed:.0f} MB if every "
        "number took only the bits its range needs (the board and the piece themselves would fit into 3 MB)",
    )
