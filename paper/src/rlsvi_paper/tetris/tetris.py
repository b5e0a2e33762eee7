"""Learning to play Tetris, 20 x 10, with the features of Bertsekas and Ioffe.

Every sentence is judged in the reading of Q that is printed, literal Q with raw features at a discount of .99, and
in all other readings beside it.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.core.compile import Bools, Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import Interval, ratio, ratio_of_medians
from rlsvi_paper.claim import (
    Row,
    Verdict,
    all_of,
    at_least,
    at_most,
    claim,
    computed,
    exactly,
    mean_se,
    share_of,
)
from rlsvi_paper.degrees import about_factor, far, most, much, nearly_all, significant, slightly_more
from rlsvi_paper.drawing import DOTTED, Picture, curves, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import having
from rlsvi_paper.tetris import LETTERS, levels, play, policy_iteration, rules, scoring_weights
from rlsvi_paper.tetris.features import BERTSEKAS, DELLACHERIE, names
from rlsvi_paper.tetris.game import GameOver
from rlsvi_paper.tetris.levels import (
    LEARNED,
    PRINTED,
    PUBLISHED,
    READINGS,
    SIDES,
    Player,
    best_of,
    in_each_reading,
    kept,
    level,
    player,
    tuned,
)

LAMBDAS = (0.0, 0.3)
FROM_SCORING, FROM_NOTHING = "scoring", "nothing"
RLSVI = SIDES[levels.AFTERSTATE][0]  # whom the picture compares the others with
# Players beside RLSVI and tuned LSVI in each reading: unknown noise, a short memory, and a fixed epsilon.
UNKNOWN_NOISE = {name: player("RLSVI, unknown noise", **reading) for name, reading in READINGS.items()}
FORGETFUL = {name: player("RLSVI", **reading, memory=10_000) for name, reading in READINGS.items()}
FIXED = {
    name: [player("LSVI", **reading, epsilon=epsilon) for epsilon in (0.0, 0.001, 0.01, 0.1)]
    for name, reading in READINGS.items()
}
RAW, RAW_UNKNOWN = player("RLSVI", units="raw"), player("RLSVI, unknown noise", units="raw")
UNDISCOUNTED, GREEDY_UNDISCOUNTED = player("RLSVI", gamma=1.0), player("LSVI", gamma=1.0)

LONG_RUNS = {
    name: (rlsvi, schedules[1]) for name, (rlsvi, schedules) in SIDES.items()
}  # whose long runs are compared
DRAWN = (PRINTED, levels.PATIENT, levels.AFTERSTATE)
IN_RUNS = [who for rlsvi, schedules in SIDES.values() for who in (rlsvi, *schedules)]
IN_MANY_RUNS = [RAW, RAW_UNKNOWN]
IN_FEW_RUNS = [who for name in READINGS for who in (UNKNOWN_NOISE[name], FORGETFUL[name], *FIXED[name])]
IN_FEW_RUNS += [UNDISCOUNTED, GREEDY_UNDISCOUNTED]
ALL_PLAYERS = [*IN_RUNS, *IN_MANY_RUNS, *IN_FEW_RUNS]
GAME_OVER = "top row"
MOST_PIECES = 1_000_000  # pieces, at which a game is cut off
STARTS = (FROM_SCORING, FROM_NOTHING)  # of policy iteration
Pair = tuple[Player, Player]
in_section = partial(claim, where="section 6.2", otherwise="reading")
# Pierre Dellacherie's, as Thiery and Scherrer (2009) give them: landing height (kept twice), eroded cells, row and
# column transitions, holes, wells; their own two features and the constant have none.
PUBLISHED_WEIGHTS = (-0.5, 1.0, -1.0, -1.0, -4.0, -1.0, 0.0, 0.0, 0.0)


def jobs(
    games: int, long: int, iterations: int, fresh: int, again: int, few: int, more: int, seeds: int
) -> list[Job]:
    """Learning for `games` and for `long` games, and policy iteration on `fresh` games each time.

    Where `few` seeds decide a claim no more are taken, and `more` times as many where runs differ most.
    """
    many = more * seeds
    settings: dict[str, Any] = {"iterations": iterations, "games": fresh, "again": again, "game_over": GAME_OVER}
    return [
        *(
            job
            for name, (rlsvi, lsvi) in LONG_RUNS.items()
            for who, runs in ((rlsvi, many if name == PRINTED else seeds), (lsvi, seeds))
            for job in levels.jobs_of([who], long, runs if name in (PRINTED, levels.PATIENT) else min(few, seeds))
        ),
        *levels.jobs_of(IN_FEW_RUNS, games, min(few, seeds)),
        *levels.jobs_of(IN_RUNS, games, seeds),
        *levels.jobs_of(IN_MANY_RUNS, games, many),
        *(
            Job.of(policies, 0.006 * iterations * fresh, start=start, lam=lam, seed=seed, **settings)
            for start, lam, seed in product(STARTS, LAMBDAS, range(seeds))
        ),
        *(Job.of(published_player, 6.0, again=2, game_over=GAME_OVER, seed=seed) for seed in range(seeds)),
    ]


def policies(
    *, start: str, lam: float, iterations: int, games: int, again: int, game_over: GameOver, seed: int
) -> dict[str, Any]:
    """Mean rows of every player of approximate policy iteration, and of the best and the last in new games.

    Where the weights stop being finite numbers there is no next player: its mean is 0, and so is the last one's.

    Parameters
    ----------
    start
        "scoring", the first player of Bertsekas and Ioffe, or "nothing", weights of zero.
    games
        An iteration.
    again
        Games that the best and the last player play anew: the greatest of several means is too great.
    """
    board = rules(game_over=game_over)
    first = scoring_weights(board) if start == "scoring" else np.zeros(2 * board.width + 2)
    found = policy_iteration(
        board, first, iterations=iterations, games=games, lam=lam, max_pieces=MOST_PIECES, seed=seed
    )
    best = int(found.mean.argmax())
    common: dict[str, Any] = {"games": again, "max_pieces": MOST_PIECES, "seed": 10_000 + seed}
    anew = [play(board, BERTSEKAS, found.weights[i], **common).rows.mean() for i in (best, -1)]
    means = np.zeros(iterations + 1)
    means[: len(found.mean)] = found.mean
    return {
        "iteration": np.arange(iterations + 1),
        "mean": means,
        "best": best,
        "best_anew": anew[0],
        "last_anew": 0.0 if found.diverged else anew[1],
        "diverged": found.diverged,
    }


def published_player(*, again: int, game_over: GameOver, seed: int) -> dict[str, Any]:
    """Rows of a player with other features and Dellacherie's weights, in games cut off after a million pieces."""
    board, weights = rules(game_over=game_over), np.array(PUBLISHED_WEIGHTS)
    found = play(board, DELLACHERIE, weights, again, MOST_PIECES, seed=seed)
    return {"published": found.rows.mean(), "cut_off": int((found.over == 0).sum())}


def few_runs(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the seeds that every player has."""
    return frame.filter(pl.col("seed").is_in(having(frame, **FORGETFUL[PRINTED])["seed"].unique().to_list()))


def lspi(frame: pl.DataFrame, start: str, lam: float) -> pl.DataFrame:
    """The rows of policy iteration, one per seed."""
    return having(frame, start=start, lam=lam, iteration=0).sort("seed")


def lspi_anew(frame: pl.DataFrame, start: str, name: str) -> Floats:
    """What players of policy iteration have in new games (`name`: "best_anew", "last_anew"), with every lambda."""
    return np.concatenate([lspi(frame, start, lam)[name].to_numpy() for lam in LAMBDAS])


def lspi_means(frame: pl.DataFrame, start: str, lam: float) -> Floats:
    """Mean rows of each player of policy iteration, (seeds, players)."""
    rows = having(frame, start=start, lam=lam).sort("seed", "iteration")
    return np.asarray(rows["mean"].to_numpy().reshape(rows["seed"].n_unique(), -1))


def lspi_games(frame: pl.DataFrame) -> int:
    """Games that a player of policy iteration plays."""
    return int(frame.filter(pl.col("start").is_not_null())["games"][0])


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
    """A player with published features and weights gets at least ten times RLSVI's level."""
    theirs: Floats = frame["published"].drop_nulls().to_numpy()
    cut = int(frame["cut_off"].drop_nulls().sum())
    words = f"Dellacherie's six features with his weights get {mean_se(theirs)} rows a game"

    def judged(reading: str) -> tuple[Verdict, Row]:
        more = ratio(theirs, level(frame, SIDES[reading][0]))
        return at_least(more, far(), f"{words} ({cut} cut off), {more} times RLSVI's level"), (f"{more}",)

    return in_each_reading(("times RLSVI's level",), judged)


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


def levels_of(frame: pl.DataFrame, reading: str) -> tuple[Floats, Floats]:
    """The levels of RLSVI and of tuned LSVI in a reading, for each seed."""
    rlsvi, schedules = SIDES[reading]
    return level(frame, rlsvi), tuned(frame, schedules)


def in_words(values: Floats, name: str) -> str:
    """A level in words."""
    return f"{name} gets {mean_se(values)} rows a game"


@in_section(
    "Both make significant improvements over LSPI with the same basis functions, as computed here", kind="ours"
)
def above_lspi_here(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 1.1 times that of LSPI's best players in
    new games, for both.
    """
    found = {lam: lspi(frame, FROM_SCORING, lam)["best_anew"].to_numpy() for lam in LAMBDAS}
    theirs = max(found.values(), key=lambda values: float(values.mean()))

    def judged(reading: str) -> tuple[Verdict, Row]:
        more = [ratio(ours, theirs) for ours in levels_of(frame, reading)]
        parts = [
            at_least(it, significant(), f"{name} gets {it} times as many")
            for it, name in zip(more, ("RLSVI", "LSVI"), strict=True)
        ]
        return all_of(f"LSPI's best players get {mean_se(theirs)}", *parts), tuple(str(it) for it in more)

    best = [(f"LSPI's best players, λ = {lam:g}: {mean_se(it)} rows", "", "", "") for lam, it in found.items()]
    return in_each_reading(("RLSVI, times", "LSVI, times"), judged, remarks=best)


@in_section("They reach this performance after many fewer games")
def fewer_games(frame: pl.DataFrame) -> Verdict:
    """The median of games until 3183 rows a game is at most half that of LSPI from its scoring policy, for both;
    in means of as many games as LSPI plays at a time.
    """
    recent = lspi_games(frame)
    above = np.concatenate([lspi_means(frame, FROM_SCORING, lam) > PUBLISHED for lam in LAMBDAS])
    theirs = np.where(above.any(axis=1), (above.argmax(axis=1) + 1.0) * recent, np.inf)
    got = int(np.isfinite(theirs).sum())

    def judged(reading: str) -> tuple[Verdict, Row]:
        rlsvi, schedules = SIDES[reading]
        ours = [levels.passed(frame, who, PUBLISHED, recent) for who in (rlsvi, best_of(frame, schedules))]
        parts = []
        for name, games in zip(("RLSVI", "LSVI"), ours, strict=True):
            share = ratio_of_medians(games, theirs)
            parts.append(at_most(share, 1 / much(), f"{name}: {levels.words_of_games(games)}, {share} of that"))
        lspi_words = f"LSPI: {levels.words_of_games(theirs)}, {got} of {len(theirs)} runs"
        return all_of(lspi_words, *parts), tuple(levels.words_of_games(games) for games in ours)

    return in_each_reading(("RLSVI", "LSVI, best schedule"), judged)


@in_section("Unlike LSPI, they do not collapse after finding their peak performance")
def no_collapse(frame: pl.DataFrame) -> Verdict:
    """At least four of five long runs have in their last eighth at least half the score of their best eighth,
    which is at least 1000 rows a game, for both; the last player of LSPI at least half of its best in at most half
    of the runs.
    """
    best, last = (lspi_anew(frame, FROM_SCORING, name) for name in ("best_anew", "last_anew"))
    share, count = share_of(last >= best / much())
    lspi_collapses = at_most(share, most(), f"{count} of LSPI keep half of their best")
    lspi_row = ("LSPI", f"{mean_se(best)}, {mean_se(last)}", count, "", "", "")

    def judged(reading: str) -> tuple[Verdict, Row]:
        parts, cells = [], []
        for name, who in zip(("RLSVI", "LSVI"), LONG_RUNS[reading], strict=True):
            best, last = kept(frame, who, 8, levels.longest(frame))
            share, count = share_of((last >= best / much()) & (best >= LEARNED))
            parts.append(at_least(share, nearly_all(), f"{count} runs of {name} get to 1000 rows and keep half"))
            cells += [f"{mean_se(best)}, {mean_se(last)}", count]
        return all_of(*parts, lspi_collapses), tuple(cells)

    headings = ("RLSVI, best and last", "runs that keep half", "LSVI, best and last", "runs that keep half")
    return in_each_reading(headings, judged, remarks=[lspi_row])


@in_section(
    "These improvements are mostly due to the memory of past transitions (the paper's belief)",
    rows=few_runs,
)
def memory_matters(frame: pl.DataFrame) -> Verdict:
    """With a memory of 10⁴ transitions, about one game, RLSVI's level is at most half of that with 10⁵."""

    def judged(reading: str) -> tuple[Verdict, Row]:
        few, many = level(frame, FORGETFUL[reading]), level(frame, SIDES[reading][0])
        share = ratio(few, many)
        words = f"with the last 10⁴ transitions: {mean_se(few)}, {share} of that with 10⁵, {mean_se(many)}"
        return at_most(share, 1 / much(), words), (mean_se(few), mean_se(many), f"{share}")

    return in_each_reading(("with 10⁴", "with 10⁵", "times"), judged)


def learned(frame: pl.DataFrame, who: Player) -> Bools:
    """Whether a player gets to 1000 rows a game, for each seed."""
    return np.isfinite(levels.passed(frame, who, LEARNED, lspi_games(frame)))


@claim(
    "LSPI required a scoring initial policy to begin learning; tuned LSVI is much better",
    "section 6.2",
    otherwise="reading",
)
def lspi_needs_scoring(frame: pl.DataFrame) -> Verdict:
    """LSPI from weights of zero gets to 1000 rows a game in at most half of the runs; LSVI's level is at least
    twice that of its best players.
    """
    means = [lspi_means(frame, FROM_NOTHING, lam) for lam in LAMBDAS]
    share, runs = share_of(np.concatenate([it.max(axis=1) > LEARNED for it in means]))
    lspi = at_most(share, most(), f"{runs} of LSPI get to 1000 rows")

    def judged(reading: str) -> tuple[Verdict, Row]:
        more = ratio(tuned(frame, SIDES[reading][1]), lspi_anew(frame, FROM_NOTHING, "best_anew"))
        return all_of(lspi, at_least(more, much(), f"LSVI's level is {more} times LSPI's")), (f"{more}",)

    return in_each_reading(("LSVI, times LSPI",), judged)


@claim(
    "LSPI struggles from scratch because it is completely greedy (the paper's belief)",
    "section 6.2",
    rows=few_runs,
)
def greed_is_why(frame: pl.DataFrame) -> Verdict:
    """LSVI that never explores gets to 1000 rows a game in at most half of the runs, and with its best schedule in
    more than half.
    """

    def judged(reading: str) -> tuple[Verdict, Row]:
        greedy, other = FIXED[reading][0], best_of(frame, SIDES[reading][1])
        (share, runs), (tuned, many) = (share_of(learned(frame, who)) for who in (greedy, other))
        score = mean_se(level(frame, greedy))
        words = f"greedy LSVI: {runs} runs get to 1000 rows a game; its level is {score}"
        parts = (
            at_most(share, most(), words),
            at_least(tuned, most(), f"{many} runs of tuned LSVI get there"),
        )
        return all_of(*parts), (runs, many, score)

    headings = ("greedy runs that learn", "tuned runs that learn", "greedy LSVI")
    return in_each_reading(headings, judged)


@claim("No fixed ε gives good performance", "section 6.2, footnote", rows=few_runs)
def fixed_epsilon(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs for the best of ε = 0, .001, .01, .1 is at most
    half of that of the tuned schedule.
    """

    def judged(reading: str) -> tuple[Verdict, Row]:
        share = ratio(tuned(frame, FIXED[reading]), tuned(frame, SIDES[reading][1]))
        rows = tuple(mean_se(level(frame, who)) for who in FIXED[reading])
        verdict = at_most(share, 1 / much(), f"the best has {share} of the tuned schedule's")
        return verdict, (*rows, f"{share}")

    headings = *(f"ε = {who['epsilon']:g}" for who in FIXED[PRINTED]), "best, times the tuned schedule"
    return in_each_reading(headings, judged)


@claim("A discount of .99 is helpful for stability in both", "appendix D")
def discounted(frame: pl.DataFrame) -> Verdict:
    """The level varies less between runs than at γ = 1 (standard deviation over mean), and the last fifth of a run
    has at least the share of the score of its best fifth that it has at γ = 1, over 1.1; for RLSVI, and for LSVI
    with ε = .1 × .95 to the power of the game, in the afterstate form without any ε. In other readings their
    discount is compared with 1.
    """
    (endless, (dithering, *_)), after = SIDES[levels.ENDLESS], levels.AFTERSTATE
    compared = {
        name: ((SIDES[name][0], endless), (SIDES[name][1][0], dithering)) for name in (PRINTED, levels.PATIENT)
    }
    compared[after] = ((SIDES[after][0], UNDISCOUNTED), (FIXED[after][0], GREEDY_UNDISCOUNTED))

    def judged(reading: str) -> tuple[Verdict, Row]:
        parts, cells = [], []
        for who, other in compared[reading]:
            varies, keeps = levels.steadiness(frame, who, other)
            words = f"{who['agent']}: {varies} times the spread at γ = {other['gamma']:g}"
            parts += [
                at_most(varies, 1.0, words),
                at_least(keeps, 1 / about_factor(), f"{keeps} times the share kept"),
            ]
            cells += [*(level_and_weights(frame, it) for it in (who, other)), f"{varies}", f"{keeps}"]
        return all_of(*parts), tuple(cells)

    each = ("with the discount", "at γ = 1", "spread, times", "kept, times")
    headings = tuple(f"{name} {words}" for name in ("RLSVI", "LSVI") for words in each)
    return in_each_reading(headings, judged, compared, why="has no discount")


def level_and_weights(frame: pl.DataFrame, who: Player) -> str:
    """The level of a player, and the largest norm that its weights ever had."""
    return f"{mean_se(level(frame, who))} (|θ| to {having(frame, **who)['size'].to_numpy().max():.2g})"


@claim("An inverse gamma prior over the variance is slightly better", "appendix D", rows=few_runs)
def unknown_noise(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is 1 to 1.1 times that with known noise."""
    return with_unknown_noise(
        frame, UNKNOWN_NOISE, {name: rlsvi for name, (rlsvi, _) in SIDES.items()}, slightly_more
    )


@claim("A wider prior over the variance is more robust (the paper's belief)", "appendix D")
def more_robust(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than with known noise, with raw features,
    which is as if λ were 400 times smaller than with scaled ones; in the literal form features are raw.
    """
    known = {name: rlsvi for name, (rlsvi, _) in SIDES.items()} | {levels.AFTERSTATE: RAW}
    unknown = UNKNOWN_NOISE | {levels.AFTERSTATE: RAW_UNKNOWN}
    return with_unknown_noise(frame, unknown, known, lambda more, words: at_least(more, 1.0, words))


def with_unknown_noise(
    frame: pl.DataFrame,
    unknown: dict[str, Player],
    known: dict[str, Player],
    decide: Callable[[Interval, str], Verdict],
) -> Verdict:
    """The level with unknown noise over that with known noise, in each reading."""

    def judged(reading: str) -> tuple[Verdict, Row]:
        sides = unknown[reading], known[reading]
        more, cells = (
            ratio(*(level(frame, who) for who in sides)),
            [level_and_weights(frame, who) for who in sides],
        )
        verdict = decide(more, f"unknown noise: {cells[0]}, known: {cells[1]}; {more} times")
        return verdict, (*cells, f"{more}")

    return in_each_reading(("unknown noise", "known noise", "times"), judged)


@claim(
    "RLSVI can achieve state of the art results in more practical problems with agnostic features",
    "section 6.1.2",
    otherwise="reading",
)
def state_of_the_art(frame: pl.DataFrame) -> Verdict:
    """On Tetris, which others have studied, RLSVI's level is at least that of LSPI's best players in new games,
    with the same features. The recommendation engine is the paper's own, and has no other results to compare with.
    """
    theirs = max(
        (lspi(frame, FROM_SCORING, lam)["best_anew"].to_numpy() for lam in LAMBDAS), key=lambda it: it.mean()
    )
    others: Floats = frame["published"].drop_nulls().to_numpy()
    beside = f"LSPI's best players get {mean_se(theirs)}, and other features {mean_se(others)}"

    def judged(reading: str) -> tuple[Verdict, Row]:
        ours = level(frame, SIDES[reading][0])
        share = ratio(ours, theirs)
        return at_least(share, 1.0, f"RLSVI gets {mean_se(ours)}, {share} of that; {beside}"), (
            mean_se(ours),
            f"{share}",
        )

    return in_each_reading(("RLSVI", "times LSPI's best players"), judged)


def draw(frame: pl.DataFrame) -> Picture:
    """Learning curves in the readings of Q, short and long; policy iteration; the level of every player."""
    figure, (above, long, below, right) = panels(2, 4.6, rows=2)
    short, longest = levels.shortest(frame), levels.longest(frame)
    tuned = {name: (SIDES[name][0], levels.best_of(frame, SIDES[name][1])) for name in DRAWN}
    _curves(above, frame, tuned, short, max(short // 10, 1))
    _curves(long, frame, {name: LONG_RUNS[name] for name in DRAWN}, longest, max(longest // 20, 1))
    _policies(below, frame)
    _levels(right, frame)
    return figure


def _curves(axes: Axes, frame: pl.DataFrame, pairs: dict[str, Pair], games: int, width: int) -> None:
    shown = [(f"{who['agent']}, {name}", who) for name, pair in pairs.items() for who in pair]
    for index, (name, who) in enumerate(shown):
        curves(axes, *levels.learning_curve(levels.scores(frame, who, games), width), name, index)
    axes.axhline(PUBLISHED, **DOTTED)
    labelled(axes, "games", "rows a game", f"Learning: means of {width} games", key="best", ylim=(0, None))


def _policies(axes: Axes, frame: pl.DataFrame) -> None:
    for index, (start, lam) in enumerate(product(STARTS, LAMBDAS)):
        means = lspi_means(frame, start, lam)
        at = np.arange(float(means.shape[1])) * lspi_games(frame)
        curves(axes, at, means, f"from {start}, λ = {lam:g}", index)
    axes.axhline(PUBLISHED, **DOTTED)
    title = "Policy iteration on fresh games (LSPI)"
    labelled(axes, "games", "rows a game", title, key="best", ylim=(0, None))


def _levels(axes: Axes, frame: pl.DataFrame) -> None:
    """The level of players of headline claims, and of all at γ = .99: a dot per seed and a bar at the mean."""
    everyone = [who for who in ALL_PLAYERS if who in IN_RUNS or who["gamma"] == RLSVI["gamma"]][::-1]
    for place, who in enumerate(everyone):
        values = levels.level(frame, who)
        colour = COLOURS[0 if who["agent"] != "LSVI" else 1]
        axes.plot(values, np.full(len(values), place), ".", color=colour, alpha=0.5, markersize=5)
        axes.plot([values.mean()], [place], "|", color=colour, markersize=9, markeredgewidth=2)
    axes.set_yticks(range(len(everyone)), [_name(who) for who in everyone], fontsize=6)
    axes.axvline(PUBLISHED, **DOTTED)
    labelled(axes, "rows a game", "player", f"Levels: {levels.window(frame)}", xlim=(0, None))


def _name(who: Player) -> str:
    """What tells a player from RLSVI as it is by default."""
    special = [
        *([levels.schedule(who).removeprefix("ε = ")] if who["agent"] == "LSVI" else []),
        *([who["form"]] if who["form"] == "literal" else ["raw"] if who["units"] == "raw" else []),
        *([f"γ = {who['gamma']:g}"] if who["gamma"] != RLSVI["gamma"] else []),
        *(["10⁴"] if who["memory"] != RLSVI["memory"] else []),
    ]
    return ", ".join([who["agent"], *special])


FIGURE = Figure.of(
    __name__,
    title="Learning to play Tetris",
    where="section 6.2, figure 7",
    caption=(
        "Rows removed a game on a board of 20 × 10 with the 22 features of Bertsekas and Ioffe: learning curves "
        "in the readings of Q in short and long runs, least-squares policy iteration (the paper's LSPI), and "
        "levels of players, a dot for each seed. There Q = r + γθ·φ with features divided by 20, unless a name "
        "says literal (Q = θ·φ, raw features) or raw; λ = σ = 1, γ = .99 and 10⁵ transitions unless said "
        "otherwise. The dotted line is 3183, the best published level of LSPI."
    ),
    quick={"games": 100, "long": 120, "iterations": 8, "fresh": 20, "again": 20, "few": 5, "more": 1, "seeds": 5},
    paper={
        "games": 500,
        "long": 1000,
        "iterations": 20,
        "fresh": 100,
        "again": 250,
        "few": 5,
        "more": 4,
        "seeds": 20,
    },
)
