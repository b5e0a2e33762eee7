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
from rlsvi.study.statistics import Interval, ratio_of_medians
from rlsvi_paper.claim import (
    Row,
    Verdict,
    all_of,
    at_least,
    at_most,
    between,
    choice,
    claim,
    computed,
    exactly,
    mean_se,
    share_of,
)
from rlsvi_paper.degrees import about_factor, far, most, much, nearly_all, significant
from rlsvi_paper.drawing import DOTTED, Picture, curves, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import having, times_as_much
from rlsvi_paper.tetris import LETTERS, levels, play, policy_iteration, rules, scoring_weights
from rlsvi_paper.tetris.features import BERTSEKAS, DELLACHERIE, names
from rlsvi_paper.tetris.game import GameOver
from rlsvi_paper.tetris.levels import (
    FOUR,
    LEARNED,
    PLAYERS,
    PRINTED,
    PUBLISHED,
    READINGS,
    SIDES,
    WAYS,
    Player,
    best_of,
    in_each_reading,
    kept,
    level,
    lsvi,
    scores,
    tried,
    tuned,
)

LAMBDAS = (0.0, 0.3)
FROM_SCORING, FROM_NOTHING = "scoring", "nothing"
# Players beside RLSVI and LSVI in each reading: unknown noise, a short memory, and no exploration.
RLSVI = {name: SIDES[name][0] for name in FOUR}
UNKNOWN_NOISE = {name: {**who, "unknown": 1.0} for name, who in RLSVI.items()}
FORGETFUL = {name: {**who, "memory": 1e4} for name, who in RLSVI.items()}
GREEDY = {name: lsvi(**READINGS[name]) for name in FOUR}
RAW = SIDES["afterstate, γ = .99"][0]
RAW_UNKNOWN = {**RAW, "unknown": 1.0}
UNDISCOUNTED, GREEDY_UNDISCOUNTED = ({**who[levels.AFTERSTATE], "gamma": 1.0} for who in (RLSVI, GREEDY))
VARIANTS = [*UNKNOWN_NOISE.values(), *FORGETFUL.values(), RAW_UNKNOWN, UNDISCOUNTED, GREEDY_UNDISCOUNTED]
DRAWN = (PRINTED, levels.PATIENT, levels.AFTERSTATE)
GAME_OVER = "top row"
MOST_PIECES = 1_000_000  # pieces, at which a game is cut off
STARTS = (FROM_SCORING, FROM_NOTHING)  # of policy iteration
Pair = tuple[Player, Player]
in_section = partial(claim, where="section 6.2", otherwise="reading")
# Pierre Dellacherie's, as Thiery and Scherrer (2009) give them: landing height (kept twice), eroded cells, row and
# column transitions, holes, wells; their own two features and the constant have none.
PUBLISHED_WEIGHTS = (-0.5, 1.0, -1.0, -1.0, -4.0, -1.0, 0.0, 0.0, 0.0)


def jobs(
    games: int, short: int, iterations: int, fresh: int, again: int, ways: int, few: int, tuned: int, seeds: int
) -> list[Job]:
    """The runs of `tetris-second` in four readings, shorter ones of other players and of the first `ways` to
    dither, and policy iteration on `fresh` games each time.
    """
    settings: dict[str, Any] = {"iterations": iterations, "games": fresh, "again": again, "game_over": GAME_OVER}
    dithering = [lsvi(**READINGS[name], **way) for name in FOUR for way in WAYS[:ways]]
    long = [who for name in FOUR for who in SIDES[name][1]]
    fewest = range(levels.FIRST_SEED, levels.FIRST_SEED + few)
    return [
        *levels.jobs_of([*RLSVI.values(), RAW], games, seeds),
        *levels.jobs_of(long, games, tuned),
        *levels.jobs_of(VARIANTS, short, tuned),
        *levels.jobs_of([who for who in dithering if who not in long], short, few),
        *(
            Job.of(policies, 0.006 * iterations * fresh, start=start, lam=lam, seed=seed, **settings)
            for start, lam, seed in product(STARTS, LAMBDAS, fewest)
        ),
        *(Job.of(published_player, 6.0, again=2, game_over=GAME_OVER, seed=seed) for seed in fewest),
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
    return frame.filter(pl.col("seed") < levels.FIRST_SEED + len(scores(frame, GREEDY[PRINTED])))


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
        more = times_as_much(theirs, level(frame, RLSVI[reading]))
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


def dithering(frame: pl.DataFrame, reading: str) -> list[Player]:
    """The ways to dither that were tried in a reading."""
    return tried(frame, RLSVI[reading])


def both(frame: pl.DataFrame, reading: str) -> tuple[Floats, Floats]:
    """The levels of RLSVI and of tuned LSVI in a reading, for each seed."""
    return level(frame, RLSVI[reading]), tuned(frame, dithering(frame, reading))


@in_section("RLSVI improves significantly on the best of all ways to dither that were tried", kind="ours")
def better_than_all_ways(frame: pl.DataFrame) -> Verdict:
    """RLSVI's level is at least 1.1 times that of the best of all ways to dither: greedily, and with a fixed, a
    falling or a decaying ε or temperature, chosen by the other seeds.
    """

    def judged(reading: str) -> tuple[Verdict, Row]:
        ours, theirs = both(frame, reading)
        best, others, more = (
            best_of(frame, dithering(frame, reading)),
            SIDES[reading][1],
            times_as_much(ours, theirs),
        )
        two, ways = best_of(frame, others), len(dithering(frame, reading))
        words = f"RLSVI gets {more} times the rows of the best of {ways} ways, {levels.schedule(best)}"
        scored = (f"{levels.schedule(it)}: {mean_se(level(frame, it))}" for it in (best, two))
        return at_least(more, significant(), words), (mean_se(ours), *scored, f"{more}")

    each = [
        (levels.schedule(ways[0]), *(mean_se(level(frame, who)) for who in ways), "")
        for ways in zip(*(dithering(frame, name) for name in FOUR), strict=True)
    ]
    return in_each_reading(
        ("RLSVI", "best way to dither", "better of the two before", "times the best"),
        judged,
        remarks=[("levels of", *FOUR, ""), *each],
    )


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
        more = [times_as_much(ours, theirs) for ours in both(frame, reading)]
        parts = [
            at_least(it, significant(), f"{name} gets {it} times as many")
            for it, name in zip(more, PLAYERS, strict=True)
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
        players = RLSVI[reading], best_of(frame, dithering(frame, reading))
        ours, parts = [levels.passed(frame, who, PUBLISHED, recent) for who in players], []
        for name, games in zip(PLAYERS, ours, strict=True):
            share = ratio_of_medians(games, theirs)
            parts.append(at_most(share, 1 / much(), f"{name}: {levels.words_of_games(games)}, {share} of that"))
        lspi_words = f"LSPI: {levels.words_of_games(theirs)}, {got} of {len(theirs)} runs"
        return all_of(lspi_words, *parts), tuple(levels.words_of_games(games) for games in ours)

    return in_each_reading(("RLSVI", "LSVI, best schedule"), judged)


@in_section("Unlike LSPI, they do not collapse after finding their peak performance")
def no_collapse(frame: pl.DataFrame) -> Verdict:
    """At least four of five long runs have in their last eighth at least half the score of their best eighth,
    which is at least 1000 rows a game, for RLSVI and for LSVI with the better of two schedules; the last player of
    LSPI at least half of its best in at most half of the runs. Eighths are of whole tens of games, so that the
    last one of 1,000 games is 841 to 960.
    """
    best, last = (lspi_anew(frame, FROM_SCORING, name) for name in ("best_anew", "last_anew"))
    share, count = share_of(last >= best / much())
    lspi_collapses = at_most(share, most(), f"{count} of LSPI keep half of their best")
    lspi_row = ("LSPI", f"{mean_se(best)}, {mean_se(last)}", count, "", "", "")

    def judged(reading: str) -> tuple[Verdict, Row]:
        parts, cells = [], []
        rlsvi, schedules = SIDES[reading]
        for name, who in zip(PLAYERS, (rlsvi, best_of(frame, schedules)), strict=True):
            best, last = kept(scores(frame, who), 8)
            share, count = share_of((last >= best / much()) & (best >= LEARNED))
            parts.append(at_least(share, nearly_all(), f"{count} runs of {name} get to 1000 rows and keep half"))
            cells += [f"{mean_se(best)}, {mean_se(last)}", count]
        return all_of(*parts, lspi_collapses), tuple(cells)

    headings = ("RLSVI, best and last", "runs that keep half", "LSVI, best and last", "runs that keep half")
    return in_each_reading(headings, judged, remarks=[lspi_row])


@in_section(
    "These improvements are mostly due to the memory of past transitions (the paper's belief)",
)
def memory_matters(frame: pl.DataFrame) -> Verdict:
    """With a memory of 10⁴ transitions, about one game, RLSVI's level is at most half of that with 10⁵."""

    def judged(reading: str) -> tuple[Verdict, Row]:
        few, many = level(frame, FORGETFUL[reading]), level(frame, RLSVI[reading])
        share = times_as_much(few, many)
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
        more = times_as_much(both(frame, reading)[1], lspi_anew(frame, FROM_NOTHING, "best_anew"))
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
        greedy, other = GREEDY[reading], best_of(frame, dithering(frame, reading))
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
    """The mean score of the second half of the shortest runs for the best of seven ε from 0 to .2 is at most half
    of that of the best way to dither.
    """
    steady, least = {"eta": 0.0, "decay": 1.0, "delay": 0.0}, choice("the least fixed ε", 0.0, 0.001, 0.01)

    def judged(reading: str) -> tuple[Verdict, Row]:
        ways = dithering(frame, reading)
        fixed = [who for who in ways if steady.items() <= who.items() and who["epsilon"] >= least]
        share = times_as_much(tuned(frame, fixed), both(frame, reading)[1])
        told = "; ".join(f"{who['epsilon']:g}: {mean_se(level(frame, who))}" for who in fixed)
        verdict = at_most(share, 1 / much(), f"the best has {share} of the best way's")
        return verdict, (told, f"{share}")

    return in_each_reading(("fixed ε", "best, times the best way to dither"), judged)


@claim("A discount of .99 is helpful for stability in both", "appendix D", otherwise="reading")
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
    compared[after] = ((RLSVI[after], UNDISCOUNTED), (GREEDY[after], GREEDY_UNDISCOUNTED))

    def judged(reading: str) -> tuple[Verdict, Row]:
        parts, cells = [], []
        for name, (who, other) in zip(PLAYERS, compared[reading], strict=True):
            varies, keeps = levels.steadiness(frame, who, other)
            words = f"{name}: {varies} times the spread at γ = {other['gamma']:g}"
            parts += [
                at_most(varies, 1.0, words),
                at_least(keeps, 1 / about_factor(), f"{keeps} times the share kept"),
            ]
            cells += [*(level_and_weights(frame, it) for it in (who, other)), f"{varies}", f"{keeps}"]
        return all_of(*parts), tuple(cells)

    each = ("with the discount", "at γ = 1", "spread, times", "kept, times")
    headings = tuple(f"{name} {words}" for name in PLAYERS for words in each)
    return in_each_reading(headings, judged, compared)


def level_and_weights(frame: pl.DataFrame, who: Player) -> str:
    """The level of a player, and the largest norm that its weights ever had."""
    return f"{mean_se(level(frame, who))} (|θ| to {having(frame, **who)['size'].to_numpy().max():.2g})"


@claim("An inverse gamma prior over the variance is slightly better", "appendix D", otherwise="reading")
def unknown_noise(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is 1 to 1.1 times that with known noise."""
    return with_unknown_noise(
        frame, UNKNOWN_NOISE, RLSVI, lambda more, words: between(more, 1.0, about_factor(), words)
    )


@claim("A wider prior over the variance is more robust (the paper's belief)", "appendix D")
def more_robust(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than with known noise, with raw features,
    which is as if λ were 400 times smaller than with scaled ones; in the literal form features are raw.
    """
    known = RLSVI | {levels.AFTERSTATE: RAW}
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
            times_as_much(level(frame, sides[0]), level(frame, sides[1])),
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
        ours = level(frame, RLSVI[reading])
        share = times_as_much(ours, theirs)
        return at_least(share, 1.0, f"RLSVI gets {mean_se(ours)}, {share} of that; {beside}"), (
            mean_se(ours),
            f"{share}",
        )

    return in_each_reading(("RLSVI", "times LSPI's best players"), judged)


def draw(frame: pl.DataFrame) -> Picture:
    """Learning curves in the readings of Q, at first and in all games; policy iteration; the level of players."""
    figure, (above, long, below, right) = panels(2, 4.6, rows=2)
    blocks = levels.shortest(frame)
    _curves(above, frame, blocks, max(blocks // 10, 1))
    _curves(long, frame, None, max(blocks // 10, 1))
    _policies(below, frame)
    _levels(right, frame)
    return figure


def _curves(axes: Axes, frame: pl.DataFrame, blocks: int | None, width: int) -> None:
    pairs = {name: (SIDES[name][0], best_of(frame, SIDES[name][1])) for name in DRAWN}
    shown = [(f"{who}, {name}", it) for name, pair in pairs.items() for who, it in zip(PLAYERS, pair, strict=True)]
    for index, (name, who) in enumerate(shown):
        curves(axes, *levels.learning_curve(scores(frame, who)[:, :blocks], width), name, index)
    axes.axhline(PUBLISHED, **DOTTED)
    title = f"Learning: means of {width * levels.BLOCK} games"
    labelled(axes, "games", "rows a game", title, key="best", ylim=(0, None))


def _policies(axes: Axes, frame: pl.DataFrame) -> None:
    for index, (start, lam) in enumerate(product(STARTS, LAMBDAS)):
        means = lspi_means(frame, start, lam)
        at = np.arange(float(means.shape[1])) * lspi_games(frame)
        curves(axes, at, means, f"from {start}, λ = {lam:g}", index)
    axes.axhline(PUBLISHED, **DOTTED)
    title = "Policy iteration on fresh games (LSPI)"
    labelled(axes, "games", "rows a game", title, key="best", ylim=(0, None))


def _levels(axes: Axes, frame: pl.DataFrame) -> None:
    """The level of RLSVI and its variants, and of ways to dither: a dot per seed and a bar at the mean."""
    named = {f"RLSVI, {name}": who for name, who in RLSVI.items()}
    for told, players in (("unknown noise", UNKNOWN_NOISE), ("memory 10⁴", FORGETFUL), ("greedy LSVI", GREEDY)):
        named |= {f"{told}, {name}": who for name, who in players.items()}
    for name in FOUR:
        best = best_of(frame, dithering(frame, name))
        named[f"{levels.schedule(best)}, {name}"] = best
    for place, who in enumerate(reversed(named.values())):
        values, colour = levels.level(frame, who), COLOURS[0 if who["sigma"] > 0 else 1]
        axes.plot(values, np.full(len(values), place), ".", color=colour, alpha=0.5, markersize=5)
        axes.plot([values.mean()], [place], "|", color=colour, markersize=9, markeredgewidth=2)
    axes.set_yticks(range(len(named)), [*reversed(named)], fontsize=6)
    axes.axvline(PUBLISHED, **DOTTED)
    games = levels.BLOCK * levels.shortest(frame)
    title = f"Levels: games {games // 2 + 1} to {games}"
    labelled(axes, "rows a game", "player", title, xlim=(0, None))


FIGURE = Figure.of(
    __name__,
    title="Learning to play Tetris",
    where="section 6.2, figure 7",
    caption=(
        "Rows removed a game on a board of 20 × 10 with the 22 features of Bertsekas and Ioffe: learning curves "
        "of RLSVI, and of LSVI with the better of ε = .1 × .95ˡ and .95ˡ, in readings of Q; least-squares policy "
        "iteration (the paper's LSPI); and levels of players, a dot for each seed, the best of all ways to "
        "dither among them. Literal: Q = θ·φ with raw features; afterstate: Q = r + γθ·φ, features divided by "
        "20. λ = σ = 1 and 10⁵ transitions unless said otherwise. The dotted line is 3183, the best published "
        "level of LSPI."
    ),
    quick={
        **{"games": 120, "short": 100, "iterations": 8, "fresh": 20, "again": 20},
        **{"ways": 9, "few": 5, "tuned": 5, "seeds": 5},
    },
    paper={
        **{"games": 1000, "short": 500, "iterations": 20, "fresh": 100, "again": 250},
        **{"ways": len(WAYS), "few": 20, "tuned": 50, "seeds": 100},
    },
)
