"""What the paper says about the levels that players of Tetris reach (section 6.2), and verdicts on it."""

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, all_of, at_least, at_most, claim, claim_for_each, mean_se
from rlsvi.paper.tetris.levels import best_of, largest, level, passed, schedule, scores, tuned, window
from rlsvi.paper.tetris.players import (
    FORGETFUL,
    FORMS,
    FROM_SCORING,
    HERE,
    LAMBDAS,
    LSVI,
    PUBLISHED,
    RAW,
    RLSVI,
    SCHEDULES,
    lspi,
    lspi_games,
    lspi_passes,
)
from rlsvi.study.means import mean, ratio, ratio_of_medians
from rlsvi.study.statistics import median, proportion


def reaches(values: Floats, rows: float, name: str, frame: pl.DataFrame) -> Verdict:
    """Whether a level is at least so many rows."""
    return at_least(mean(values), rows, f"{name}: {mean_se(values)} rows a game in {window(frame)}")


def rlsvi_level(frame: pl.DataFrame, form: str, rows: float) -> Verdict:
    """Whether RLSVI's level is at least so many rows."""
    return reaches(level(frame, FORMS[form][0]), rows, "RLSVI", frame)


def lsvi_level(frame: pl.DataFrame, form: str, rows: float) -> Verdict:
    """Whether the level of LSVI with a tuned schedule is at least so many rows."""
    players = FORMS[form][1]
    return reaches(tuned(frame, players), rows, f"LSVI (best: {schedule(best_of(frame, players))})", frame)


@claim_for_each(HERE, "RLSVI reaches a final performance of about 4500 rows: {}", "section 6.2")
def rlsvi_reaches(frame: pl.DataFrame, form: str) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 4500."""
    return rlsvi_level(frame, form, 4500.0)


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
    return all_of(rlsvi_level(frame, form, PUBLISHED), lsvi_level(frame, form, PUBLISHED))


@claim(
    "RLSVI reaches a final performance of about 4500 rows: with raw features in the afterstate form", "section 6.2"
)
def raw_reaches(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 4500."""
    verdict = reaches(level(frame, RAW), 4500.0, "RLSVI with raw features", frame)
    return verdict.told("", f"; {largest(frame, RAW)}")


@claim(
    "Both make significant improvements over LSPI with the same basis functions: as computed here", "section 6.2"
)
def above_lspi_here(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than that of the best players of LSPI
    in new games, for both (afterstate form).
    """
    found = {lam: lspi(frame, FROM_SCORING, lam)["best_anew"].to_numpy() for lam in LAMBDAS}
    theirs = max(found.values(), key=lambda values: float(values.mean()))
    verdicts = []
    for name, ours in (("RLSVI", level(frame, RLSVI)), ("LSVI", tuned(frame, SCHEDULES))):
        more = ratio(ours, theirs)
        verdicts.append(at_least(more, 1.0, f"{name}: {mean_se(ours)}, {more} times the best of these"))
    words = "; ".join(f"lambda = {lam:g}: {mean_se(values)}" for lam, values in found.items())
    return all_of(*verdicts).told(f"LSPI's best players, {words}; ")


@claim("They reach this performance after many fewer games", "section 6.2")
def fewer_games(frame: pl.DataFrame) -> Verdict:
    """3183 rows a game after at most half as many games as LSPI from its scoring policy, for both; in means of
    as many games as LSPI plays at a time (afterstate form).
    """
    recent = lspi_games(frame)
    theirs = np.concatenate([lspi_passes(frame, PUBLISHED, lam) for lam in LAMBDAS])
    verdicts = []
    for name, who in (("RLSVI", RLSVI), ("LSVI", best_of(frame, SCHEDULES))):
        share = ratio_of_medians(ours := passed(frame, who, PUBLISHED, recent), theirs)
        verdicts.append(at_most(share, 0.5, f"{name} after a median of {median(ours):g} games, {share} of LSPI's"))
    got = int(np.isfinite(theirs).sum())
    words = f"LSPI after a median of {median(theirs):g} games ({got} of {len(theirs)} runs get there)"
    return all_of(*verdicts).told(f"{words}; ", f"; means of {recent} games")


@claim("Unlike LSPI, they do not collapse after finding their peak performance", "section 6.2")
def no_collapse(frame: pl.DataFrame) -> Verdict:
    """Most long runs have in their last eighth at least half the score of their best eighth, for both; the
    last player of LSPI at least half of its best in at most half of the runs (afterstate form).
    """
    verdicts = []
    for name, who in (("RLSVI", RLSVI), (f"LSVI ({schedule(LSVI)})", LSVI)):
        rows = scores(frame, who)
        parts = rows[:, : rows.shape[1] // 8 * 8].reshape(len(rows), 8, -1).mean(axis=2)
        kept = int((parts[:, -1] >= 0.5 * parts.max(axis=1)).sum())
        games = f"in the last {rows.shape[1] // 8} of {rows.shape[1]} games {mean_se(parts[:, -1])} rows"
        words = f"{name}: {games}, {kept} of {len(rows)} runs keep half of their best eighth"
        verdicts.append(at_least(proportion(kept, len(rows)), 0.5, words))
    best, last = (
        np.concatenate([lspi(frame, FROM_SCORING, lam)[name].to_numpy() for lam in LAMBDAS])
        for name in ("best_anew", "last_anew")
    )
    kept = int((last >= 0.5 * best).sum())
    words = (
        f"LSPI: the last players {mean_se(last)}, the best {mean_se(best)}, {kept} of {len(best)} runs keep half"
    )
    return all_of(*verdicts, at_most(proportion(kept, len(best)), 0.5, words))


@claim("These improvements are mostly due to the memory of past transitions (the paper's belief)", "section 6.2")
def memory_matters(frame: pl.DataFrame) -> Verdict:
    """With a memory of 10^4 transitions, about one game, RLSVI's level is at most half of that with 10^5."""
    few, many = level(frame, FORGETFUL), level(frame, RLSVI)
    share = ratio(few, many)
    return at_most(
        share,
        0.5,
        f"with the last 10^4 transitions: {mean_se(few)}, {share} of that with 10^5, {mean_se(many)}",
    )
