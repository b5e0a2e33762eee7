"""The published tables of results: as they are, of few seeds, and as they would be if nobody had learned."""

import math
from functools import cache

import polars as pl

from pages import HOUSE
from rlsvi_paper import FIGURES, figure_called
from rlsvi_paper.folder import read_table

RESULTS = HOUSE / "paper" / "results"
ALL = tuple(FIGURES)
LONG = (  # take seconds to judge
    *("tetris", "tetris-second", "mini-tetris", "conjecture", "theorem"),
    *("recsys-myopic", "worst-case"),
)
N = pl.col("length")
FIRST_REWARD = pl.lit(2.0).pow(N - 1) / (1 - 1 / N).pow(N - 1)  # episodes that random play takes on a chain
FAILED = {
    "regret": 1.8 * pl.col("episode"),
    "forgone": 1.4 * pl.col("episode"),
    "lost": 1.5 * pl.lit(2.0).pow(N - 1),
    "share": pl.lit(0.01),
    "late": pl.lit(-5.0),
    **dict.fromkeys(("rows", "level", "mean_level", "rewarded", "correlation"), pl.lit(0.0)),
    **dict.fromkeys(("stuck", "first", "last"), pl.lit(1.0)),
}


@cache
def published(name, seeds=None):
    """All of a table, or its first seeds: of every setting, where each run has a seed of its own."""
    frame = read_table(RESULTS / f"{name}.parquet")
    rank = pl.col("seed").rank("dense")
    if name in ("dithering", "chain-agnostic"):
        rank = rank.over(sorted({key for job in figure_called(name).plan() for key in job.settings} - {"seed"}))
    return frame if seeds is None else frame.filter(rank <= seeds)


def unlearned(frame, who=True):
    """A table of the same runs in which nobody has learned anything: random play, linear regret, no rows.

    who : which rows are changed, if not all.
    """
    known = set(frame.columns)
    failed = {name: made for name, made in FAILED.items() if known >= {name, *made.meta.root_names()}}
    if "time" in known:
        lucky = 10 * FIRST_REWARD  # as many rewards count as learning
        on_chain = pl.when(lucky <= pl.col("limit")).then(lucky).otherwise(math.inf)
        failed["time"] = on_chain if known >= {"length", "limit"} else pl.lit(math.inf)
    return frame.with_columns(
        pl.when(pl.col(name).is_not_null() & who).then(it.cast(frame[name].dtype)).otherwise(name).alias(name)
        for name, it in failed.items()
    )


def judged(name, frame):
    """The verdicts of a figure on a table, by the words of the claims."""
    figure = figure_called(name)
    return dict(zip([it.words for it in figure.claims], figure.judge(frame), strict=True))
