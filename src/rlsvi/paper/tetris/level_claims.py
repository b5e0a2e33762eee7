"""What the paper says about the levels that players of Tetris reach (section 6.2), and verdicts on it."""

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, Verdicts, all_of, at_least, at_most, claim, claim_for_each, mean_se
from rlsvi.paper.tetris import players
from rlsvi.paper.tetris.levels import best_of, largest, level, passed, schedule, scores, tuned, window
from rlsvi.paper.tetris.players import FORMS, FROM_SCORING, HERE, LAMBDAS, PUBLISHED, RLSVI, SCHEDULES, lspi
from rlsvi.study.means import mean, ratio, ratio_of_medians
from rlsvi.study.statistics import median, proportion


def reaches(values: Floats, rows: float, name: str, frame: pl.DataFrame) -> Verdict:
    """Whether a level is at least so many rows."""
    return at_least(mean(values), rows, f"{name}: {mean_se(values)} rows a game in {window(frame)}")


def lsvi_level(frame: pl.DataFrame, form: str, rows: float) -> Verdict:
    """Whether the level of LSVI with a tuned schedule is at least so many rows."""
    schedules = FORMS[form][1]
    return reaches(tuned(frame, schedules), rows, f"LSVI (best: {schedule(best_of(frame, schedules))})", frame)


@claim_for_each(HERE, "RLSVI reaches a final performance of about 4500 rows: {}", "section 6.2")
def rlsvi_reaches(frame: pl.DataFrame, form: str) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 4500."""
    return reaches(level(frame, FORMS[form][0]), 4500.0, "RLSVI", frame)


@claim_for_each(
    HERE, "LSVI with a tuned schedule reaches a final performance of about 3500 rows: {}", "section 6.2"
)
def lsvi_reaches(frame: pl.DataFrame, form: str) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 3500, with epsilon = .1 or 1 x .95^l or
    .98^l, chosen by the other seeds.
    """
    return lsvi_level(frame, form, 3500.0)


@claim_for_each(HERE, "Both reach a higher final performance than the best level of LSPI, 3183: {}", "section 6.2")
def both_reach(frame: pl.DataFrame, form: str) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 3183, for both."""
    ours = reaches(level(frame, FORMS[form][0]), PUBLISHED, "RLSVI", frame)
    return all_of(ours, lsvi_level(frame, form, PUBLISHED))


@claim(
    "RLSVI reaches a final performance of about 4500 rows: with raw features in the afterstate form", "section 6.2"
)
def raw_reaches(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 4500."""
    verdict = reaches(level(frame, players.RAW), 4500.0, "RLSVI with raw features", frame)
    return verdict.told("", f"; {largest(frame, players.RAW)}")


@claim(
    "Both make significant improvements over LSPI with the same basis functions: as computed here", "section 6.2"
)
def above_lspi_here(frame: pl.DataFrame) -> Verdicts:
    """The mean score of the second half of the shortest runs is larger than that of the best players of LSPI
    in new games, for both (afterstate form).
    """
    found = {lam: lspi(frame, FROM_SCORING, lam)["best_anew"].to_numpy() for lam in LAMBDAS}
    theirs = max(found.values(), key=lambda values: float(values.mean()))
    each = "; ".join(f"lambda = {lam:g}: {mean_se(values)}" for lam, values in found.items())
    yield f"LSPI's best players, {each}"
    for name, ours in (("RLSVI", level(frame, RLSVI)), ("LSVI", tuned(frame, SCHEDULES))):
        more = ratio(ours, theirs)
        yield at_least(more, 1.0, f"{name}: {mean_se(ours)}, {more} times the best of these")


@claim("They reach this performance after many fewer games", "section 6.2")
def fewer_games(frame: pl.DataFrame) -> Verdicts:
    """3183 rows a game after at most half as many games as LSPI from its scoring policy, for both; in means of
    as many games as LSPI plays at a time (afterstate form).
    """
    recent = players.lspi_games(frame)
    theirs = np.concatenate([players.lspi_passes(frame, PUBLISHED, lam) for lam in LAMBDAS])
    got = int(np.isfinite(theirs).sum())
    yield f"LSPI after a median of {median(theirs):g} games ({got} of {len(theirs)} runs get there)"
    for name, who in (("RLSVI", RLSVI), ("LSVI", best_of(frame, SCHEDULES))):
        share = ratio_of_medians(ours := passed(frame, who, PUBLISHED, recent), theirs)
        yield at_most(share, 0.5, f"{name} after a median of {median(ours):g} games, {share} of LSPI's")
    yield f"means of {recent} games"


@claim("Unlike LSPI, they do not collapse after finding their peak performance", "section 6.2")
def no_collapse(frame: pl.DataFrame) -> Verdicts:
    """Most long runs have in their last eighth at least half the score of their best eighth, for both; the
    last player of LSPI at least half of its best in at most half of the runs (afterstate form).
    """
    for name, who in (("RLSVI", RLSVI), (f"LSVI ({schedule(players.LSVI)})", players.LSVI)):
        rows = scores(frame, who)
        parts = rows[:, : rows.shape[1] // 8 * 8].reshape(len(rows), 8, -1).mean(axis=2)
        kept = int((parts[:, -1] >= 0.5 * parts.max(axis=1)).sum())
        games = f"in the last {rows.shape[1] // 8} of {rows.shape[1]} games {mean_se(parts[:, -1])} rows"
        words = f"{name}: {games}, {kept} of {len(rows)} runs keep half of their best eighth"
        yield at_least(proportion(kept, len(rows)), 0.5, words)
    best, last = (players.lspi_anew(frame, FROM_SCORING, name) for name in ("best_anew", "last_anew"))
    kept = int((last >= 0.5 * best).sum())
    words = f"LSPI: the last players {mean_se(last)}, the best {mean_se(best)}"
    yield at_most(proportion(kept, len(best)), 0.5, f"{words}, {kept} of {len(best)} runs keep half")


@claim("These improvements are mostly due to the memory of past transitions (the paper's belief)", "section 6.2")
def memory_matters(frame: pl.DataFrame) -> Verdict:
    """With a memory of 10^4 transitions, about one game, RLSVI's level is at most half of that with 10^5."""
    few, many = level(frame, players.FORGETFUL), level(frame, RLSVI)
    share = ratio(few, many)
    words = f"with the last 10^4 transitions: {mean_se(few)}, {share} of that with 10^5, {mean_se(many)}"
    return at_most(share, 0.5, words)
