"""What the paper says about exploration in Tetris (section 6.2), and verdicts on it."""

import numpy as np
import polars as pl

from rlsvi.paper.claim import Verdict, all_of, at_least, at_most, claim, claim_for_each, mean_se
from rlsvi.paper.tetris.levels import Player, best_of, level, passed, schedule, tuned
from rlsvi.paper.tetris.players import (
    FIXED,
    FORMS,
    FROM_NOTHING,
    GREEDY,
    HERE,
    LAMBDAS,
    LEARNED,
    RAW,
    RLSVI,
    SCHEDULES,
    lspi,
    lspi_games,
    lspi_means,
)
from rlsvi.study.means import ratio, ratio_of_medians
from rlsvi.study.statistics import median, proportion


def learns(frame: pl.DataFrame, who: Player, name: str, recent: int) -> Verdict:
    """Most runs get to 1000 rows a game."""
    got = np.isfinite(passed(frame, who, LEARNED, recent))
    share = proportion(int(got.sum()), len(got))
    return at_least(share, 0.5, f"{name}: {got.sum()} of {len(got)} runs get to 1000 rows a game")


@claim_for_each(HERE, "Both learn from scratch, where LSPI required a scoring initial policy: {}", "section 6.2")
def from_scratch(frame: pl.DataFrame, form: str) -> Verdict:
    """RLSVI and LSVI get to 1000 rows a game in most runs, LSPI from weights of zero in at most half."""
    recent = lspi_games(frame)
    who, players = FORMS[form]
    verdicts = [
        learns(frame, who, "RLSVI", recent),
        learns(frame, best_of(frame, players), "LSVI", recent),
    ]
    got = np.concatenate([lspi_means(frame, FROM_NOTHING, lam).max(axis=1) > LEARNED for lam in LAMBDAS])
    share = proportion(int(got.sum()), len(got))
    return all_of(*verdicts, at_most(share, 0.5, f"LSPI: {got.sum()} of {len(got)}"))


@claim("LSPI struggles from scratch because it is completely greedy (the paper's belief)", "section 6.2")
def greed_is_why(frame: pl.DataFrame) -> Verdict:
    """LSVI that never explores gets to 1000 rows a game in at most half of the runs (afterstate form)."""
    verdict = learns(frame, GREEDY, "greedy LSVI", lspi_games(frame))
    got = np.isfinite(passed(frame, GREEDY, LEARNED, lspi_games(frame)))
    share = proportion(int(got.sum()), len(got))
    return at_most(share, 0.5, f"{verdict.measured}; its level is {mean_se(level(frame, GREEDY))}")


@claim("LSVI with a tuned schedule is much better than LSPI, from scratch", "section 6.2")
def better_than_greedy(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least twice that of the best players of
    LSPI from weights of zero (afterstate form).
    """
    ours = tuned(frame, SCHEDULES)
    theirs = np.concatenate([lspi(frame, FROM_NOTHING, lam)["best_anew"].to_numpy() for lam in LAMBDAS])
    more = ratio(ours, theirs)
    return at_least(
        more,
        2.0,
        f"LSVI: {mean_se(ours)}; LSPI's best players from scratch: {mean_se(theirs)}; {more} times",
    )


@claim_for_each(
    HERE, "RLSVI improves significantly on the tuned schedule, in final performance: {}", "section 6.2"
)
def better_than_tuned(frame: pl.DataFrame, form: str) -> Verdict:
    """The mean score of the second half of the shortest runs is larger."""
    who, players = FORMS[form]
    ours, theirs, best = level(frame, who), tuned(frame, players), best_of(frame, players)
    more = ratio(ours, theirs)
    words = f"LSVI, the best of {len(players)} schedules ({schedule(best)}): {mean_se(theirs)}"
    return at_least(more, 1.0, f"RLSVI: {mean_se(ours)}; {words}; {more} times")


@claim("RLSVI improves significantly on the tuned schedule, in games until it plays well", "section 6.2")
def learns_faster(frame: pl.DataFrame) -> Verdict:
    """1000 rows a game (mean of a fifth of the games LSPI plays at a time) after fewer games than the quickest
    of all schedules and fixed epsilons (afterstate form).
    """
    recent = max(lspi_games(frame) // 5, 1)
    found = {schedule(who): passed(frame, who, LEARNED, recent) for who in (*SCHEDULES, *FIXED)}
    best = min(found, key=lambda name: median(found[name]))
    ours = passed(frame, RLSVI, LEARNED, recent)
    share = ratio_of_medians(ours, found[best])
    return at_most(
        share,
        1.0,
        f"RLSVI after a median of {median(ours):g} games, LSVI at best ({best}) after {median(found[best]):g}: "
        f"{share} of it; RLSVI with raw features after {median(passed(frame, RAW, LEARNED, recent)):g}",
    )


@claim("No fixed epsilon gives good performance", "section 6.2, footnote")
def fixed_epsilon(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs for the best of epsilon = 0, .001, .01, .1 is at
    most half of that of the tuned schedule (afterstate form).
    """
    share = ratio(tuned(frame, FIXED), tuned(frame, SCHEDULES))
    found = ", ".join(f"{who['epsilon']:g}: {mean_se(level(frame, who))}" for who in FIXED)
    return at_most(share, 0.5, f"levels for epsilon = {found}; the best has {share} of the tuned schedule's")
