"""What the paper says about the levels that players of Tetris reach (section 6.2), and verdicts on it.

Unless a table says otherwise Q has the afterstate form, with scaled features.
"""

from functools import partial

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, Verdicts, all_of, at_least, at_most, claim, mean_se, worst_of
from rlsvi.paper.tetris import players
from rlsvi.paper.tetris.levels import best_of, games_told, level, passed, scores, tuned, window
from rlsvi.paper.tetris.players import FORMS, FROM_SCORING, LAMBDAS, PUBLISHED, RLSVI, SCHEDULES, lspi
from rlsvi.study.means import mean, ratio, ratio_of_medians
from rlsvi.study.statistics import proportion

in_section = partial(claim, where="section 6.2")


def reaches(values: Floats, rows: float, name: str) -> Verdict:
    """Whether a level is at least so many rows."""
    return at_least(mean(values), rows, f"{name} gets {mean_se(values)} rows a game")


@in_section(
    "RLSVI reaches a final performance of about 4500 rows, LSVI with a tuned schedule about 3500",
    headline=True,
    otherwise="reading",
)
def reach_their_levels(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 4500 and 3500; of LSVI with ε = .1 or 1
    times .95 or .98 to the power of the game, chosen by the other seeds (afterstate form, scaled features).
    """
    found = {form: (level(frame, who), tuned(frame, others)) for form, (who, others) in FORMS.items()}
    ours, theirs = found["afterstate"]
    table = (
        ("reading", "RLSVI", "LSVI, tuned"),
        ("afterstate form, scaled features", mean_se(ours), mean_se(theirs)),
        ("afterstate form, raw features", mean_se(level(frame, players.RAW)), "not tried"),
        ("literal form, raw features", *(mean_se(values) for values in found["literal"])),
    )
    verdict = all_of(reaches(ours, 4500.0, "RLSVI"), reaches(theirs, 3500.0, "LSVI"), f"in {window(frame)}")
    return verdict._replace(table=table)


@in_section("Both reach a higher final performance than the best published level of LSPI, 3183", headline=True)
def above_published(frame: pl.DataFrame) -> Verdicts:
    """The mean score of the second half of the shortest runs is at least 3183, for both."""
    yield reaches(level(frame, RLSVI), PUBLISHED, "RLSVI")
    yield reaches(tuned(frame, SCHEDULES), PUBLISHED, "LSVI")


@in_section("Both make significant improvements over LSPI with the same basis functions, as computed here")
def above_lspi_here(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than that of the best players of LSPI
    in new games, for both.
    """
    found = {lam: lspi(frame, FROM_SCORING, lam)["best_anew"].to_numpy() for lam in LAMBDAS}
    theirs = max(found.values(), key=lambda values: float(values.mean()))
    rows: list[Part] = [
        (None, (f"LSPI's best players, λ = {lam:g}", mean_se(values), "")) for lam, values in found.items()
    ]
    for name, ours in (("RLSVI", level(frame, RLSVI)), ("LSVI", tuned(frame, SCHEDULES))):
        more = ratio(ours, theirs)
        rows.append((at_least(more, 1.0, f"{name} gets {more} times as many"), (name, mean_se(ours), f"{more}")))
    return worst_of(("player", "rows a game", "times the best of LSPI"), rows)


@in_section("They reach this performance after many fewer games")
def fewer_games(frame: pl.DataFrame) -> Verdicts:
    """The median of games until 3183 rows a game is at most half that of LSPI from its scoring policy, for both;
    in means of as many games as LSPI plays at a time.
    """
    recent = players.lspi_games(frame)
    theirs = np.concatenate([players.lspi_passes(frame, PUBLISHED, lam) for lam in LAMBDAS])
    got = int(np.isfinite(theirs).sum())
    yield f"LSPI: {games_told(theirs)}, {got} of {len(theirs)} runs"
    for name, who in (("RLSVI", RLSVI), ("LSVI", best_of(frame, SCHEDULES))):
        share = ratio_of_medians(ours := passed(frame, who, PUBLISHED, recent), theirs)
        yield at_most(share, 0.5, f"{name}: {games_told(ours)}, {share} of that")


@in_section("Unlike LSPI, they do not collapse after finding their peak performance")
def no_collapse(frame: pl.DataFrame) -> Verdict:
    """Most long runs have in their last eighth at least half the score of their best eighth, for both; the
    last player of LSPI at least half of its best in at most half of the runs.
    """
    rows = []
    for name, who in (("RLSVI", RLSVI), ("LSVI", players.LSVI)):
        got = scores(frame, who)
        parts = got[:, : got.shape[1] // 8 * 8].reshape(len(got), 8, -1).mean(axis=2)
        kept, best = int((parts[:, -1] >= 0.5 * parts.max(axis=1)).sum()), parts.max(axis=1)
        words = f"{kept} of {len(got)} runs of {name} keep half of their best"
        cells = (name, mean_se(best), mean_se(parts[:, -1]), f"{kept} of {len(got)}")
        rows.append((at_least(proportion(kept, len(got)), 0.5, words), cells))
    best, last = (players.lspi_anew(frame, FROM_SCORING, name) for name in ("best_anew", "last_anew"))
    kept = int((last >= 0.5 * best).sum())
    words = f"{kept} of {len(best)} runs of LSPI keep half of their best"
    cells = ("LSPI", mean_se(best), mean_se(last), f"{kept} of {len(best)}")
    rows.append((at_most(proportion(kept, len(best)), 0.5, words), cells))
    return worst_of(("player", "best rows a game", "last", "runs that keep half"), rows)


@in_section("These improvements are mostly due to the memory of past transitions (the paper's belief)")
def memory_matters(frame: pl.DataFrame) -> Verdict:
    """With a memory of 10⁴ transitions, about one game, RLSVI's level is at most half of that with 10⁵."""
    few, many = level(frame, players.FORGETFUL), level(frame, RLSVI)
    share = ratio(few, many)
    words = f"with the last 10⁴ transitions: {mean_se(few)}, {share} of that with 10⁵, {mean_se(many)}"
    return at_most(share, 0.5, words)
