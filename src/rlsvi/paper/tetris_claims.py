"""What the paper says about Tetris (section 6.2 and appendix D), and verdicts on it."""

import math
from functools import partial

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Claim, Verdict, all_of, at_least, at_most, between, exactly, spoken
from rlsvi.paper.levels import (
    Player,
    best_of,
    largest,
    level,
    passed,
    schedule,
    scores,
    tuned,
    window,
)
from rlsvi.paper.tetris_players import (
    FIXED,
    FORGETFUL,
    FROM_NOTHING,
    FROM_SCORING,
    GREEDY,
    GREEDY_UNDISCOUNTED,
    LAMBDAS,
    LEARNED,
    LITERAL,
    LITERAL_PATIENT,
    LITERAL_SCHEDULES,
    LSVI,
    PUBLISHED,
    RAW,
    RAW_UNKNOWN,
    RLSVI,
    SCHEDULES,
    UNDISCOUNTED,
    UNKNOWN_NOISE,
    lspi,
    lspi_games,
    lspi_means,
    lspi_passes,
)
from rlsvi.study.means import mean, ratio, times
from rlsvi.study.statistics import Interval, bootstrap, median, proportion
from rlsvi.tetris import LETTERS, rules
from rlsvi.tetris.features import BERTSEKAS, names

FORMS = {"afterstate": (RLSVI, SCHEDULES), "literal": (LITERAL, LITERAL_SCHEDULES)}


# ---- the problem --------------------------------------------------------------------------------------------


def states(frame: pl.DataFrame) -> Verdict:
    """Boards without a full row, and a piece."""
    board = rules()
    count, live = (len(LETTERS) * (2**board.width - 1) ** rows for rows in (board.height, board.usable))
    return exactly(
        count > 2**200,
        f"boards without full rows, times pieces: 2^{math.log2(count):.1f}, of which in 2^{math.log2(live):.1f} "
        "the game is not over; not all of them can be reached",
    )


def features(frame: pl.DataFrame) -> Verdict:
    """What the basis consists of."""
    found = names(BERTSEKAS, rules().width)
    return exactly(len(found) == 22, f"{len(found)}: 10 heights, 9 differences, {', '.join(found[-3:])}")


def ranges(frame: pl.DataFrame) -> Verdict:
    """The largest numbers that the board allows."""
    board = rules()
    tallest, holes = board.usable, board.width * (board.usable - 1)
    return exactly(
        tallest <= 20 and holes <= 199,
        f"while the game goes on heights are at most {tallest}, rows removed at most 4, and no board has more "
        f"than {holes} holes; a placement that ends the game may stand 3 rows out of the board",
    )


def memory_size(frame: pl.DataFrame) -> Verdict:
    """Bytes of the features of every placement after 10^5 transitions."""
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


def better_features(frame: pl.DataFrame) -> Verdict:
    """A player with Dellacherie's features and weights, against RLSVI."""
    theirs: Floats = frame["published"].drop_nulls().to_numpy()
    cut = int(frame["cut_off"].drop_nulls().sum())
    more = ratio(theirs, level(frame, RLSVI))
    return at_least(
        more,
        10.0,
        f"Dellacherie's six features with his weights: {spoken(theirs)} rows a game ({cut} games were cut off "
        f"after a million pieces), {more} times RLSVI's level",
    )


# ---- levels -------------------------------------------------------------------------------------------------


def reaches(values: Floats, rows: float, name: str, frame: pl.DataFrame) -> Verdict:
    """A level of so many rows."""
    return at_least(mean(values), rows, f"{name}: {spoken(values)} rows a game in {window(frame)}")


def rlsvi_reaches(frame: pl.DataFrame, form: str, rows: float) -> Verdict:
    """RLSVI's level."""
    return reaches(level(frame, FORMS[form][0]), rows, "RLSVI", frame)


def lsvi_reaches(frame: pl.DataFrame, form: str, rows: float) -> Verdict:
    """The level of LSVI with a tuned schedule."""
    players = FORMS[form][1]
    best = best_of(frame, players)
    return reaches(tuned(frame, players), rows, f"LSVI (best: {schedule(best)})", frame)


def both_reach(frame: pl.DataFrame, form: str) -> Verdict:
    """Both levels against the published one."""
    return all_of(rlsvi_reaches(frame, form, PUBLISHED), lsvi_reaches(frame, form, PUBLISHED))


def raw_reaches(frame: pl.DataFrame) -> Verdict:
    """RLSVI's level with raw features."""
    verdict = reaches(level(frame, RAW), 4500.0, "RLSVI with raw features", frame)
    return verdict._replace(measured=f"{verdict.measured}; {largest(frame, RAW)}")


def above_lspi_here(frame: pl.DataFrame) -> Verdict:
    """Both levels against those of the best players of policy iteration, played anew."""
    found = {lam: lspi(frame, FROM_SCORING, lam)["best_anew"].to_numpy() for lam in LAMBDAS}
    theirs = max(found.values(), key=lambda values: float(values.mean()))
    verdicts = []
    for name, ours in (("RLSVI", level(frame, RLSVI)), ("LSVI", tuned(frame, SCHEDULES))):
        more = ratio(ours, theirs)
        verdicts.append(at_least(more, 1.0, f"{name}: {spoken(ours)}, {more} times the best of these"))
    decided = all_of(*verdicts)
    words = "; ".join(f"lambda = {lam:g}: {spoken(values)}" for lam, values in found.items())
    return decided._replace(measured=f"LSPI's best players, {words}; {decided.measured}")


def fewer_games(frame: pl.DataFrame) -> Verdict:
    """Games until the published level is passed, by means of as many games as LSPI plays at a time."""
    recent = lspi_games(frame)
    theirs = np.concatenate([lspi_passes(frame, PUBLISHED, lam) for lam in LAMBDAS])
    verdicts = []
    for name, who in (("RLSVI", RLSVI), ("LSVI", best_of(frame, SCHEDULES))):
        share = _shorter(ours := passed(frame, who, PUBLISHED, recent), theirs)
        verdicts.append(at_most(share, 0.5, f"{name} after a median of {median(ours):g} games, {share} of LSPI's"))
    decided = all_of(*verdicts)
    got = int(np.isfinite(theirs).sum())
    words = f"LSPI after a median of {median(theirs):g} games ({got} of {len(theirs)} runs get there)"
    return decided._replace(measured=f"{words}; {decided.measured}; means of {recent} games")


def _shorter(ours: Floats, theirs: Floats) -> Interval:
    return bootstrap(lambda drawn: times(median(drawn[0]), median(drawn[1])), [ours, theirs])


def no_collapse(frame: pl.DataFrame) -> Verdict:
    """Runs whose last eighth is at least half as good as their best; and the last players of LSPI."""
    verdicts = []
    for name, who in (("RLSVI", RLSVI), (f"LSVI ({schedule(LSVI)})", LSVI)):
        rows = scores(frame, who)
        parts = rows[:, : rows.shape[1] // 8 * 8].reshape(len(rows), 8, -1).mean(axis=2)
        kept = int((parts[:, -1] >= 0.5 * parts.max(axis=1)).sum())
        games = f"in the last {rows.shape[1] // 8} of {rows.shape[1]} games {spoken(parts[:, -1])} rows"
        words = f"{name}: {games}, {kept} of {len(rows)} runs keep half of their best eighth"
        verdicts.append(at_least(proportion(kept, len(rows)), 0.5, words))
    best, last = (
        np.concatenate([lspi(frame, FROM_SCORING, lam)[name].to_numpy() for lam in LAMBDAS])
        for name in ("best_anew", "last_anew")
    )
    kept = int((last >= 0.5 * best).sum())
    words = f"LSPI: the last players {spoken(last)}, the best {spoken(best)}, {kept} of {len(best)} runs keep half"
    return all_of(*verdicts, at_most(proportion(kept, len(best)), 0.5, words))


def memory_matters(frame: pl.DataFrame) -> Verdict:
    """The level with a tenth of the memory."""
    few, many = level(frame, FORGETFUL), level(frame, RLSVI)
    share = ratio(few, many)
    return at_most(
        share,
        0.5,
        f"with the last 10^4 transitions: {spoken(few)}, {share} of that with 10^5, {spoken(many)}",
    )


# ---- exploration --------------------------------------------------------------------------------------------


def learns(frame: pl.DataFrame, who: Player, name: str, recent: int) -> Verdict:
    """Most runs get to 1000 rows a game."""
    got = np.isfinite(passed(frame, who, LEARNED, recent))
    share = proportion(int(got.sum()), len(got))
    return at_least(share, 0.5, f"{name}: {got.sum()} of {len(got)} runs get to 1000 rows a game")


def from_scratch(frame: pl.DataFrame, form: str) -> Verdict:
    """Runs that get to 1000 rows a game without a first policy."""
    recent = lspi_games(frame)
    who, players = FORMS[form]
    verdicts = [
        learns(frame, who, "RLSVI", recent),
        learns(frame, best_of(frame, players), "LSVI", recent),
    ]
    got = np.concatenate([lspi_means(frame, FROM_NOTHING, lam).max(axis=1) > LEARNED for lam in LAMBDAS])
    share = proportion(int(got.sum()), len(got))
    return all_of(*verdicts, at_most(share, 0.5, f"LSPI: {got.sum()} of {len(got)}"))


def greed_is_why(frame: pl.DataFrame) -> Verdict:
    """Whether LSVI, which has a memory, fails from scratch too when it never explores."""
    verdict = learns(frame, GREEDY, "greedy LSVI", lspi_games(frame))
    got = np.isfinite(passed(frame, GREEDY, LEARNED, lspi_games(frame)))
    share = proportion(int(got.sum()), len(got))
    return at_most(share, 0.5, f"{verdict.measured}; its level is {spoken(level(frame, GREEDY))}")


def better_than_greedy(frame: pl.DataFrame) -> Verdict:
    """Tuned LSVI against LSPI, both from scratch."""
    ours = tuned(frame, SCHEDULES)
    theirs = np.concatenate([lspi(frame, FROM_NOTHING, lam)["best_anew"].to_numpy() for lam in LAMBDAS])
    more = ratio(ours, theirs)
    return at_least(
        more, 2.0, f"LSVI: {spoken(ours)}; LSPI's best players from scratch: {spoken(theirs)}; {more} times"
    )


def better_than_tuned(frame: pl.DataFrame, form: str) -> Verdict:
    """RLSVI against tuned LSVI."""
    who, players = FORMS[form]
    ours, theirs, best = level(frame, who), tuned(frame, players), best_of(frame, players)
    more = ratio(ours, theirs)
    words = f"LSVI, the best of {len(players)} schedules ({schedule(best)}): {spoken(theirs)}"
    return at_least(more, 1.0, f"RLSVI: {spoken(ours)}; {words}; {more} times")


def learns_faster(frame: pl.DataFrame) -> Verdict:
    """Games until 1000 rows a game, against the quickest of all that LSVI was tried with."""
    recent = max(lspi_games(frame) // 5, 1)
    found = {schedule(who): passed(frame, who, LEARNED, recent) for who in (*SCHEDULES, *FIXED)}
    best = min(found, key=lambda name: median(found[name]))
    ours = passed(frame, RLSVI, LEARNED, recent)
    share = _shorter(ours, found[best])
    return at_most(
        share,
        1.0,
        f"RLSVI after a median of {median(ours):g} games, LSVI at best ({best}) after {median(found[best]):g}: "
        f"{share} of it; RLSVI with raw features after {median(passed(frame, RAW, LEARNED, recent)):g}",
    )


def fixed_epsilon(frame: pl.DataFrame) -> Verdict:
    """The best fixed epsilon against the tuned schedule."""
    share = ratio(tuned(frame, FIXED), tuned(frame, SCHEDULES))
    found = ", ".join(f"{who['epsilon']:g}: {spoken(level(frame, who))}" for who in FIXED)
    return at_most(share, 0.5, f"levels for epsilon = {found}; the best has {share} of the tuned schedule's")


# ---- parameters ---------------------------------------------------------------------------------------------


def discount(frame: pl.DataFrame, pairs: list[tuple[Player, Player]]) -> Verdict:
    """The level at gamma = .99 as a multiple of that of a player who looks further."""
    verdicts = []
    for who, other in pairs:
        ours, theirs = level(frame, who), level(frame, other)
        more = ratio(ours, theirs)
        words = f"{who['agent']}: {spoken(ours)} at .99, {spoken(theirs)} at {other['gamma']:g}, {more} times"
        verdicts.append(at_least(more, 1.0, f"{words} ({largest(frame, who)}; {largest(frame, other)})"))
    return all_of(*verdicts)


def unknown_noise(frame: pl.DataFrame) -> Verdict:
    """The level with an inverse gamma prior as a multiple of that with known noise."""
    ours, theirs = level(frame, UNKNOWN_NOISE), level(frame, RLSVI)
    more = ratio(ours, theirs)
    return between(more, 1.0, 1.25, f"unknown noise: {spoken(ours)}, known: {spoken(theirs)}; {more} times")


def more_robust(frame: pl.DataFrame) -> Verdict:
    """The same with raw features."""
    ours, theirs = level(frame, RAW_UNKNOWN), level(frame, RAW)
    more = ratio(ours, theirs)
    words = f"raw features, unknown noise: {spoken(ours)} ({largest(frame, RAW_UNKNOWN)})"
    return at_least(more, 1.0, f"{words}, known: {spoken(theirs)} ({largest(frame, RAW)}); {more} times")


# ---- the sentences ------------------------------------------------------------------------------------------

SECTION, APPENDIX = "section 6.2", "appendix D"
LEVEL = "the mean score of the second half of the shortest runs"
HERE = {"afterstate": "afterstate form, scaled features", "literal": "literal form, raw features"}


def _in_form(form: str) -> list[Claim]:
    """Claims about one form of Q."""
    where = HERE[form]
    return [
        Claim(
            f"RLSVI reaches a final performance of about 4500 rows: {where}",
            SECTION,
            f"{LEVEL} is at least 4500",
            partial(rlsvi_reaches, form=form, rows=4500.0),
        ),
        Claim(
            f"LSVI with a tuned schedule reaches a final performance of about 3500 rows: {where}",
            SECTION,
            f"{LEVEL} is at least 3500, with epsilon = .1 or 1 x .95^l or .98^l, chosen by the other seeds",
            partial(lsvi_reaches, form=form, rows=3500.0),
        ),
        Claim(
            f"Both reach a higher final performance than the best level of LSPI, 3183: {where}",
            SECTION,
            f"{LEVEL} is at least 3183, for both",
            partial(both_reach, form=form),
        ),
        Claim(
            f"Both learn from scratch, where LSPI required a scoring initial policy: {where}",
            SECTION,
            "RLSVI and LSVI get to 1000 rows a game in most runs, LSPI from weights of zero in at most half",
            partial(from_scratch, form=form),
        ),
        Claim(
            f"RLSVI improves significantly on the tuned schedule, in final performance: {where}",
            SECTION,
            f"{LEVEL} is larger",
            partial(better_than_tuned, form=form),
        ),
    ]


CLAIMS = [
    Claim(
        "Tetris has more than 2^200 states",
        SECTION,
        "boards without full rows, those included on which the game is over, times pieces",
        states,
    ),
    Claim("22 features: heights, differences, maximum, holes and a constant", SECTION, "counted", features),
    Claim(
        "It is well known that you can find far superior linear basis functions",
        SECTION,
        "a player with published features and weights gets at least ten times RLSVI's level",
        better_features,
    ),
    *_in_form("afterstate"),
    *_in_form("literal"),
    Claim(
        "RLSVI reaches a final performance of about 4500 rows: with raw features in the afterstate form",
        SECTION,
        f"{LEVEL} is at least 4500",
        raw_reaches,
    ),
    Claim(
        "Both make significant improvements over LSPI with the same basis functions: as computed here",
        SECTION,
        f"{LEVEL} is larger than that of the best players of LSPI in new games, for both (afterstate form)",
        above_lspi_here,
    ),
    Claim(
        "They reach this performance after many fewer games",
        SECTION,
        "3183 rows a game after at most half as many games as LSPI from its scoring policy, for both; in means "
        "of as many games as LSPI plays at a time (afterstate form)",
        fewer_games,
    ),
    Claim(
        "Unlike LSPI, they do not collapse after finding their peak performance",
        SECTION,
        "most long runs have in their last eighth at least half the score of their best eighth, for both; the "
        "last player of LSPI at least half of its best in at most half of the runs (afterstate form)",
        no_collapse,
    ),
    Claim(
        "These improvements are mostly due to the memory of past transitions (the paper's belief)",
        SECTION,
        "with a memory of 10^4 transitions, about one game, RLSVI's level is at most half of that with 10^5",
        memory_matters,
    ),
    Claim(
        "LSPI struggles from scratch because it is completely greedy (the paper's belief)",
        SECTION,
        "LSVI that never explores gets to 1000 rows a game in at most half of the runs (afterstate form)",
        greed_is_why,
    ),
    Claim(
        "LSVI with a tuned schedule is much better than LSPI, from scratch",
        SECTION,
        f"{LEVEL} is at least twice that of the best players of LSPI from weights of zero (afterstate form)",
        better_than_greedy,
    ),
    Claim(
        "RLSVI improves significantly on the tuned schedule, in games until it plays well",
        SECTION,
        "1000 rows a game (mean of a fifth of the games LSPI plays at a time) after fewer games than the "
        "quickest of all schedules and fixed epsilons (afterstate form)",
        learns_faster,
    ),
    Claim(
        "No fixed epsilon gives good performance",
        f"{SECTION}, footnote",
        f"{LEVEL} for the best of epsilon = 0, .001, .01, .1 is at most half of that of the tuned schedule "
        "(afterstate form)",
        fixed_epsilon,
    ),
    Claim(
        "A discount of .99 is helpful for stability in both: afterstate form",
        APPENDIX,
        f"{LEVEL} is larger than at gamma = 1, for RLSVI and for greedy LSVI",
        partial(discount, pairs=[(RLSVI, UNDISCOUNTED), (GREEDY, GREEDY_UNDISCOUNTED)]),
    ),
    Claim(
        "A discount of .99 is helpful for stability in both: literal form",
        APPENDIX,
        f"{LEVEL} is larger than at gamma = .999, for RLSVI and for LSVI with epsilon = .1 x .95^l",
        partial(discount, pairs=[(LITERAL, LITERAL_PATIENT[0]), (LITERAL_SCHEDULES[0], LITERAL_PATIENT[1])]),
    ),
    Claim(
        "Every feature and reward is a whole number from 0 to 20, holes from 0 to 199",
        APPENDIX,
        "counted, on boards on which the game is not over",
        ranges,
    ),
    Claim(
        "10^5 transitions with every possible action fit into less than 10 MB",
        APPENDIX,
        "features of every next placement, each number in as many bits as its range needs",
        memory_size,
    ),
    Claim(
        "An inverse gamma prior over the variance is slightly better",
        APPENDIX,
        f"{LEVEL} is 1 to 1.25 times that with known noise (afterstate form, scaled features)",
        unknown_noise,
    ),
    Claim(
        "A wider prior over the variance is more robust (the paper's belief): raw features",
        APPENDIX,
        f"{LEVEL} is larger than with known noise, with raw features: as if lambda were 400 times smaller",
        more_robust,
    ),
]
