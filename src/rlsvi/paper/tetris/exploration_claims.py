"""What the paper says about exploration, discount and noise in Tetris (section 6.2, appendix D), and verdicts.

Unless a table says otherwise Q has the afterstate form, with scaled features.
"""

import numpy as np
import polars as pl

from rlsvi.core.compile import Bools
from rlsvi.paper.claim import Verdict, Verdicts, at_least, at_most, between, claim, mean_se, worst_of
from rlsvi.paper.tetris import players
from rlsvi.paper.tetris.levels import Player, best_of, games_told, largest, level, passed, schedule, tuned
from rlsvi.paper.tetris.players import FIXED, FROM_NOTHING, GREEDY, LEARNED, SCHEDULES
from rlsvi.study.means import ratio, ratio_of_medians
from rlsvi.study.statistics import Interval, median, proportion


def learned(frame: pl.DataFrame, who: Player) -> Bools:
    """Whether a player gets to 1000 rows a game, for each seed."""
    return np.isfinite(passed(frame, who, LEARNED, players.lspi_games(frame)))


def share_of(got: Bools) -> tuple[Interval, str]:
    """The share of runs that got there, and their number in words."""
    return proportion(int(got.sum()), len(got)), f"{got.sum()} of {len(got)}"


@claim("Both learn from scratch, where LSPI required a scoring initial policy", "section 6.2", headline=True)
def from_scratch(frame: pl.DataFrame) -> Verdicts:
    """RLSVI and LSVI get to 1000 rows a game in most runs, LSPI from weights of zero in at most half; LSVI's level
    is at least twice that of the best players of LSPI from there.
    """
    for name, who in (("RLSVI", players.RLSVI), ("LSVI", best_of(frame, SCHEDULES))):
        share, runs = share_of(learned(frame, who))
        yield at_least(share, 0.5, f"{runs} runs of {name}")
    means = [players.lspi_means(frame, FROM_NOTHING, lam) for lam in players.LAMBDAS]
    share, runs = share_of(np.concatenate([mean.max(axis=1) > LEARNED for mean in means]))
    yield at_most(share, 0.5, f"{runs} of LSPI get to 1000 rows")
    more = ratio(tuned(frame, SCHEDULES), players.lspi_anew(frame, FROM_NOTHING, "best_anew"))
    yield at_least(more, 2.0, f"LSVI's level is {more} times LSPI's")


@claim("LSPI struggles from scratch because it is completely greedy (the paper's belief)", "section 6.2")
def greed_is_why(frame: pl.DataFrame) -> Verdict:
    """LSVI that never explores gets to 1000 rows a game in at most half of the runs."""
    share, runs = share_of(learned(frame, GREEDY))
    words = f"greedy LSVI: {runs} runs get to 1000 rows a game"
    return at_most(share, 0.5, f"{words}; its level is {mean_se(level(frame, GREEDY))}")


@claim(
    "RLSVI improves significantly on the tuned schedule, in final performance",
    "section 6.2",
    headline=True,
    otherwise="reading",
)
def better_than_tuned(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger."""
    more, literal = (ratio(level(frame, who), tuned(frame, others)) for who, others in players.FORMS.values())
    best = schedule(best_of(frame, SCHEDULES))
    words = f"RLSVI gets {more} times the rows of LSVI (best: {best})"
    return at_least(more, 1.0, f"{words}; in the literal form with raw features {literal} times")


@claim("RLSVI improves significantly on the tuned schedule, in games until it plays well", "section 6.2")
def learns_faster(frame: pl.DataFrame) -> Verdict:
    """RLSVI gets 1000 rows a game (mean of a fifth of the games LSPI plays at a time) after fewer games than the
    quickest of all schedules and fixed ε.
    """
    recent = max(players.lspi_games(frame) // 5, 1)
    found = {schedule(who): passed(frame, who, LEARNED, recent) for who in (*SCHEDULES, *FIXED)}
    best = min(found, key=lambda name: median(found[name]))
    ours, raw = (passed(frame, who, LEARNED, recent) for who in (players.RLSVI, players.RAW))
    share = ratio_of_medians(ours, found[best])
    words = f"RLSVI: {games_told(ours)}, LSVI at best ({best}): {games_told(found[best])}"
    return at_most(share, 1.0, f"{words}; {share} of it; RLSVI with raw features: {games_told(raw)}")


@claim("No fixed ε gives good performance", "section 6.2, footnote")
def fixed_epsilon(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs for the best of ε = 0, .001, .01, .1 is at most
    half of that of the tuned schedule.
    """
    share = ratio(tuned(frame, FIXED), tuned(frame, SCHEDULES))
    table = (("ε", "rows a game"), *((f"{who['epsilon']:g}", mean_se(level(frame, who))) for who in FIXED))
    return at_most(share, 0.5, f"the best has {share} of the tuned schedule's")._replace(table=table)


@claim("A discount of .99 is helpful for stability in both", "appendix D")
def discounted(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than at γ = 1, for RLSVI and for greedy
    LSVI, and in the literal form larger than at γ = .999, for RLSVI and for LSVI with ε = .1 × .95 to the power
    of the game.
    """
    literal = zip((players.LITERAL, players.LITERAL_SCHEDULES[0]), players.LITERAL_PATIENT, strict=True)
    pairs = [(players.RLSVI, players.UNDISCOUNTED), (GREEDY, players.GREEDY_UNDISCOUNTED), *literal]
    rows = []
    for who, other in pairs:
        ours, theirs = level(frame, who), level(frame, other)
        more, name = ratio(ours, theirs), f"{who['agent']}, {who['form']} form"
        sizes = " and ".join(f"{largest(frame, it):.3g}" for it in (who, other))
        cells = (name, mean_se(ours), f"{mean_se(theirs)} at γ = {other['gamma']:g}", f"{more}", sizes)
        rows.append((at_least(more, 1.0, f"{name}: {more} times the rows at γ = {other['gamma']:g}"), cells))
    return worst_of(("player", "rows at γ = .99", "rows at another γ", "times", "largest |θ|"), rows)


@claim("An inverse gamma prior over the variance is slightly better", "appendix D")
def unknown_noise(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is 1 to 1.25 times that with known noise."""
    ours, theirs = level(frame, players.UNKNOWN_NOISE), level(frame, players.RLSVI)
    more = ratio(ours, theirs)
    return between(more, 1.0, 1.25, f"unknown noise: {mean_se(ours)}, known: {mean_se(theirs)}; {more} times")


@claim("A wider prior over the variance is more robust (the paper's belief)", "appendix D")
def more_robust(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than with known noise, with raw
    features: as if λ were 400 times smaller.
    """
    sides = players.RAW_UNKNOWN, players.RAW
    more = ratio(*(level(frame, who) for who in sides))
    found = [f"{mean_se(level(frame, who))} (|θ| to {largest(frame, who):.2g})" for who in sides]
    return at_least(more, 1.0, f"unknown noise: {found[0]}, known: {found[1]}; {more} times")
