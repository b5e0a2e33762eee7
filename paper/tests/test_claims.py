"""Verdicts: every claim of every figure on tables where it must hold, must fail, and where nobody can tell."""

import math
import re
from dataclasses import replace

import extension_tables
import numpy as np
import polars as pl
import pytest
import recsys_tables
import tetris_tables
import theory_tables
from tables import ALL, censored, curve, figure, noise, table

from rlsvi.study.statistics import (
    Interval,
    bootstrap,
    bootstrap_summaries,
    line,
    power_law,
    power_laws,
    probability_of_improvement,
)
from rlsvi_paper import FIGURES
from rlsvi_paper.chain.learning import dithering_bound, expected_first_reward, tabular_bound
from rlsvi_paper.claim import (
    Claim,
    Outcome,
    Verdict,
    all_of,
    at_least,
    at_most,
    between,
    computed,
    exactly,
    worst_of,
)
from rlsvi_paper.claim import claim as declared
from rlsvi_paper.figure import FEWEST_SEEDS


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Enough of them for tables that leave no doubt."""
    for function in (bootstrap, bootstrap_summaries, power_laws, power_law, probability_of_improvement):
        monkeypatch.setitem(function.__kwdefaults__, "resamples", 100)


YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE


# ---- from an interval to an outcome -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (1.2, 1.8, YES),
        (1.0, 2.0, YES),
        (0.5, 1.5, OPEN),
        (1.5, 2.5, OPEN),
        (0.5, 2.5, OPEN),
        (0.5, 1.0, OPEN),
        (0.2, 0.9, NO),
        (2.1, 3.0, NO),
        (2.1, math.inf, NO),
        (math.inf, math.inf, NO),
        (-math.inf, math.inf, OPEN),
    ],
)
def test_between_needs_all_or_nothing_of_the_interval(low, high, outcome):
    interval = Interval(1.5, low, high)
    assert between(interval, 1.0, 2.0, "words") == Verdict(outcome, "words", interval)


@pytest.mark.parametrize(
    ("low", "high", "least", "most"),
    [(1.0, 3.0, YES, OPEN), (0.5, 1.0, OPEN, YES), (0.0, 0.9, NO, YES), (1.1, math.inf, YES, NO)],
)
def test_at_least_and_at_most_look_at_one_end(low, high, least, most):
    interval = Interval(1.0, low, high)
    assert at_least(interval, 1.0, "words") == Verdict(least, "words", interval)
    assert at_most(interval, 1.0, "words") == Verdict(most, "words", interval)


def test_exactly_knows_no_doubt():
    assert exactly(True, "words") == Verdict(YES, "words", None)
    assert exactly(False, "words") == Verdict(NO, "words", None)


def test_all_of_is_the_worst_with_the_figure_that_decided():
    good, open_, bad = (
        Verdict(outcome, str(outcome), Interval(i, i, i)) for i, outcome in enumerate((YES, OPEN, NO))
    )
    assert all_of(good) == good
    assert all_of(good, open_) == Verdict(OPEN, "reproduced; inconclusive", open_.interval)
    assert all_of(open_, bad, good) == Verdict(NO, "inconclusive; not reproduced; reproduced", bad.interval)
    assert all_of(good, Verdict(YES, "", None)) == Verdict(YES, "reproduced", good.interval)
    assert all_of(good, exactly(False, "never")) == Verdict(NO, "reproduced; never", None)


def test_worst_of_has_the_words_of_one_and_a_table_of_all():
    good, bad = exactly(True, "the first holds"), Verdict(NO, "the second fails", Interval(2.0, 2.0, 2.0))
    rows = [(good, ("1", "yes")), (bad, ("2", "no")), (None, ("3", "not judged"))]
    table = (("case", "holds"), ("1", "yes"), ("2", "no"), ("3", "not judged"))
    found = worst_of(("case", "holds"), rows)
    assert found == Verdict(NO, "holds in 1 of 2 cases; the second fails", bad.interval, table)
    assert worst_of(("case", "holds"), rows[:1]) == Verdict(YES, "the first holds", None, table[:2])


# ---- every claim --------------------------------------------------------------------------------------------


def times(formula, width=0.02):
    """Learning times by a formula of N and K, with a little noise."""
    return {"learning_time": lambda s: {"time": formula(s["length"], s["features"]) * noise(s, width)}}


def first(time=1.0, regret=1.0, uneven=1e-15, width=0.05, gradient=0.0):
    """First rewards in units of what is expected; a function of N, or a number."""

    def brought(s):
        N, factor = s["length"], noise(s, width)
        unit = time(N) if callable(time) else time * expected_first_reward(N)
        return {"time": unit * factor, "regret": regret * (dithering_bound(N) - 1) * factor, "uneven": uneven}

    return {
        "first_reward": brought,
        "first_reward_of_policy_gradient": lambda s: {**brought(s), "gradient": gradient},
    }


def curves(rlsvi=None, dither=None, tabular=4000.0):
    """Runs of RLSVI and of dithering, each a function of the settings to keywords of `curve`; and with a table."""

    def brought(s):
        make = rlsvi if s["agent"] == "RLSVI" else dither
        flat = {} if s["agent"] == "RLSVI" else {"regret": lambda e: 0.37 * e, "time": math.inf}
        return curve(s, **{**flat, **(make(s) if make else {})})

    made = tabular if callable(tabular) else lambda s: tabular
    return {"regret_curve": brought, "learning_time": lambda s: {"time": made(s)}}


def paid(until, time=400.0):
    """A run whose regret is all paid by some episode, by the seed."""
    return curves(rlsvi=lambda s: {"regret": lambda e: 0.37 * min(e, until(s["seed"])), "time": time})


def later(share):
    """A run that loses a share of the attainable reward after its tenth reward, at episode 400; by the seed."""

    def brought(s):
        lost = share(s["seed"])
        return {"regret": lambda e: 0.3716 * (min(e, 500) + lost * max(e - 500, 0)), "time": 400.0}

    return curves(rlsvi=brought)


def sweep(parameter, regret, width=0.02):
    """Regret of all episodes by a formula of the decimal logarithm of a parameter."""

    def brought(s):
        total = regret(math.log10(s[parameter])) * noise(s, width)
        return curve(s, lambda e: total * min(e, 400) / 400)

    return {"regret_curve": brought}


def stuck(least, other):
    """A share of runs on DeepSea that are stuck, at the smallest sigma and at all others."""
    return {
        "noisy_deep_sea": lambda s: {
            "total": 50.0,
            "stuck": float(s["seed"] % 20 < 20 * (least if s["sigma"] < 1e-3 else other)),
        }
    }


def agnostic(learns, misfit=lambda rho: rho, time=lambda s: 50.0):
    return {
        "learning_time": lambda s: {"time": time(s) if learns(s) else math.inf, "misfit": misfit(s["rho"])},
    }


def bumpy(N, K):
    """Times that go up and down from one length to the next."""
    return 100.0 + 50.0 * (-1) ** (N // 10)


def plateaus(N, K):
    """Linear up to K = SA, then flat."""
    return 50.0 + 10.0 * min(K, 2 * N)


def late(N, K):
    """Slow up to SA/4, steep up to SA/2, and in between from there on."""
    return 50.0 + 1.0 * min(K, N / 2) + 20.0 * max(min(K, N) - N / 2, 0) + 3.0 * max(K - N, 0)


def halfway(s):
    return 2000.0 if s["seed"] % 2 else 100.0


# figure, words of the claim: {outcome: [what the jobs find]}; a number in front: so many seeds
CASES = {
    ("dithering", "actions are uniformly random"): {YES: [first()], NO: [first(uneven=1e-3)]},
    ("dithering", "first reward comes after"): {
        YES: [first()],
        NO: [first(time=1.3), first(time=0.5), first(time=0.3), first(regret=1.3), first(regret=0.7)],
        OPEN: [(5, first(time=0.65, regret=0.65, width=1.0)), first(time=1.1), first(regret=0.909)],
    },
    ("dithering", "is exponential in the length"): {
        YES: [first(), first(time=lambda N: 5 * 2.0**N)],
        NO: [first(time=lambda N: 10.0 * N**2), first(time=lambda N: 3.0**N)],
        OPEN: [(5, first(width=2.0))],
    },
    ("dithering", "policy gradient algorithms"): {
        YES: [first()],
        NO: [
            first(gradient=1e-300),
            first(uneven=1e-3),
            first(time=1.3),
            first(time=lambda N: 10.0 * N**2),
            first(time=lambda N: 3.0**N),
        ],
        OPEN: [first(time=1.1)],
    },
    ("chain-regret", "consistently learns the optimal policy"): {
        YES: [(50, paid(lambda seed: 490.0 + 2 * seed))],
        NO: [
            paid(lambda seed: 100.0 + seed),
            paid(lambda seed: 525.0, time=math.inf),
            (50, paid(lambda seed: 800.0 + 10 * seed)),
        ],
        OPEN: [
            paid(lambda seed: 525.0),  # all of five seeds may be four of five
            (50, paid(lambda seed: 300.0 + 10 * seed)),
        ],
    },
    ("chain-regret", "is equivalent"): {
        YES: [curves()],
        NO: [curves(dither=lambda s: {"regret": lambda e: (0.37 if "epsilon" in s else 0.36) * e})],
    },
    ("chain-regret", "maintains the optimal policy"): {
        YES: [(50, later(lambda seed: 0.0)), (50, later(lambda seed: 0.0005 * seed))],
        NO: [later(lambda seed: 0.2), curves(rlsvi=lambda s: {"time": math.inf})],
        OPEN: [later(lambda seed: 0.0), (50, later(lambda seed: 0.2 * (seed % 10 == 0)))],
    },
    ("chain-regret", "exploits the generalisation"): {
        YES: [curves(), curves(tabular=math.inf)],
        NO: [
            curves(tabular=500.0),
            curves(rlsvi=lambda s: {"time": math.inf}),
            curves(rlsvi=lambda s: {"time": math.inf}, tabular=math.inf),
        ],
        OPEN: [curves(tabular=halfway)],
    },
    ("chain-regret", "any dithering strategy at least"): {
        YES: [curves()],
        NO: [curves(rlsvi=lambda s: {"time": 1e10}), curves(rlsvi=lambda s: {"time": math.inf})],
        OPEN: [curves(rlsvi=lambda s: {"time": 1e10 if s["seed"] % 2 else 1e9})],
    },
    ("chain-length", "outperforms the bounds"): {
        YES: [times(lambda N, K: 6.0 * N)],
        NO: [times(lambda N, K: 1000.0 * N), times(lambda N, K: 1.1 * min(2.0 ** (N - 1), tabular_bound(N) / 10))],
        OPEN: [times(lambda N, K: tabular_bound(N) / 14, width=0.5)],
    },
    ("chain-features", "scales gracefully"): {
        YES: [times(lambda N, K: 50.0 * K**0.8)],
        NO: [times(lambda N, K: 5.0 * K**1.5)],
        OPEN: [times(lambda N, K: 50.0 * K, width=0.5)],
    },
    ("chain-features", "marginal effect of K decreases"): {
        YES: [times(lambda N, K: 100.0 * K**0.5), times(lambda N, K: 50.0 + 10.0 * min(K, N))],
        NO: [times(lambda N, K: 0.5 * K**2)],
        OPEN: [times(lambda N, K: 20.0 * K, width=1.0)],
    },
    ("chain-features", "far superior"): {
        YES: [times(lambda N, K: 20.0 * K)],
        NO: [times(lambda N, K: 1000.0 * K)],
        OPEN: [times(lambda N, K: 240.0 * K, width=0.5)],
    },
    ("chain-scaling", "consistent with polynomial"): {
        YES: [times(lambda N, K: N * K**0.5)],
        NO: [times(lambda N, K: 10 * math.exp(0.08 * N)), times(lambda N, K: N * math.exp(0.08 * K))],
        OPEN: [times(lambda N, K: N * K**0.5, width=1.5)],
    },
    ("chain-features-many", "about linearly"): {
        YES: [times(lambda N, K: 20.0 * K, width=0.001)],
        NO: [times(lambda N, K: 1.0 * K**3), times(late, width=0.001)],
        OPEN: [times(lambda N, K: 20.0 * K, width=1.0)],
    },
    ("chain-features-many", "almost plateaus"): {
        YES: [times(plateaus, width=0.005)],
        NO: [times(lambda N, K: 20.0 * K), times(late, width=0.001)],
        OPEN: [times(lambda N, K: 20.0 * K, width=1.0)],
    },
    ("chain-quadratic", "polynomial in both N and K"): {
        YES: [times(lambda N, K: N**2 * K)],
        NO: [times(lambda N, K: 10 * math.exp(0.08 * N + 0.1 * K))],
        OPEN: [times(lambda N, K: 100.0, width=1.0)],
    },
    ("chain-quadratic", "seems to fit the data pretty well"): {
        YES: [times(lambda N, K: 100.0 + K * N + N**2)],
        NO: [times(bumpy), times(lambda N, K: 100.0 + N**2 if K < 10 else bumpy(N, K))],
        OPEN: [times(lambda N, K: 100.0 + K * N + N**2, width=1.0)],
    },
    ("chain-agnostic", "For ρ = 0 the basis is coherent"): {
        YES: [agnostic(lambda s: True)],
        NO: [agnostic(lambda s: True, lambda rho: 0.0), agnostic(lambda s: True, lambda rho: 0.1)],
    },
    ("chain-agnostic", "For large ρ"): {
        YES: [agnostic(lambda s: s["rho"] < 0.5), agnostic(lambda s: s["rho_is"] == "variance")],
        NO: [agnostic(lambda s: True)],
        OPEN: [agnostic(lambda s: s["seed"] % 3 == 0)],
    },
    ("chain-agnostic", "There is some region"): {
        YES: [(60, agnostic(lambda s: s["rho"] < 0.5)), (60, agnostic(lambda s: s["rho"] <= 0.01))],
        NO: [
            agnostic(lambda s: False),
            agnostic(lambda s: s["rho_is"] == "variance"),
            agnostic(lambda s: s["deterministic"]),
            agnostic(lambda s: s["rho"] == 0),
            (60, agnostic(lambda s: True, time=lambda s: 50.0 if s["rho"] == 0 else 150.0)),
        ],
        OPEN: [agnostic(lambda s: True), (60, agnostic(lambda s: (s["seed"] // 10_000) % 5))],
    },
    ("chain-agnostic", "agnostic value functions what is intractable"): {
        YES: [agnostic(lambda s: True)],
        NO: [agnostic(lambda s: False), agnostic(lambda s: True, time=lambda s: 2e5)],
        OPEN: [agnostic(lambda s: s["seed"] % 2)],
    },
    ("chain-lambda", "remarkably robust over several orders"): {
        YES: [sweep("lam", lambda x: 150.0), sweep("lam", lambda x: 150.0 if x < 2.5 else 740.0)],
        NO: [
            sweep("lam", lambda x: 150.0 * (1 + 2 * abs(x))),
            sweep("lam", lambda x: 150.0 if abs(x) < 1.5 else 740.0),
            sweep("lam", lambda x: 740.0 if x else 150.0),
        ],
        OPEN: [sweep("lam", lambda x: 290.0 if x else 150.0, width=0.2)],
    },
    ("chain-lambda", "Any scaling of the basis"): {
        YES: [{}],
        NO: [{"regret_curve": lambda s: curve(s, lambda e: e / s["stretch"])}],
    },
    ("chain-sigma", "remarkably robust over several orders"): {
        YES: [sweep("sigma", lambda x: 150.0), sweep("sigma", lambda x: 150.0 if x < -0.5 else 740.0)],
        NO: [sweep("sigma", lambda x: 740.0 if x < -2.5 or x > 0.5 else 150.0)],
        OPEN: [sweep("sigma", lambda x: 290.0 if x < -1.5 else 150.0, width=0.2)],
    },
    ("chain-sigma", "Large values of σ"): {
        YES: [sweep("sigma", lambda x: 150.0 if x < -0.5 else 500.0)],
        NO: [sweep("sigma", lambda x: 150.0 if x < -0.5 else 100.0)],
        OPEN: [sweep("sigma", lambda x: 150.0, width=0.3)],
    },
    ("chain-sigma", "Too small a σ"): {
        YES: [stuck(0.5, 0.0)],
        NO: [stuck(0.0, 0.5), (25, stuck(0.0, 0.0))],
        OPEN: [stuck(0.15, 0.05)],
    },
}

CASES |= tetris_tables.CASES | recsys_tables.CASES
CASES |= extension_tables.CASES | theory_tables.CASES

# claims that are computed, not sampled: figure, words, outcome, what is measured
EXACT = [
    ("dithering", "earns p*", YES, "one step to the left leaves 0"),
    ("chain-regret", "only kick in after more than 10¹⁰", YES, "5.5e+12 episodes with two successors"),
    ("chain-agnostic", "Q*ₕ(s, a) is 0 or 1", NO, "never 1: elsewhere it is from 0.38 to 0.95"),
    ("chain-lambda", "similar scale to Q*", NO, "times the scale of Q*"),
    *tetris_tables.EXACT,
    *recsys_tables.EXACT,
    *extension_tables.EXACT,
    *theory_tables.EXACT,
]


def number_of(name, words):
    """The place of the one claim with these words."""
    (found,) = [i for i, claim in enumerate(figure(name).claims) if words in claim.words]
    return found


def judged(name, words, frame):
    """The verdict on one claim alone."""
    it = figure(name)
    (verdict,) = replace(it, claims=[it.claims[number_of(name, words)]]).judge(frame)
    return verdict


def readable(verdict):
    """Whether it has no mathematics in ASCII, and a table of rows that are all as long."""
    texts = (verdict.measured, *(cell for row in verdict.table for cell in row))
    return not any("^" in text for text in texts) and len({len(row) for row in verdict.table}) <= 1


def cases():
    for (name, words), outcomes in CASES.items():
        for outcome, tables in outcomes.items():
            for i, found in enumerate(tables):
                seeds, found = found if isinstance(found, tuple) else (None, found)
                yield pytest.param(name, words, outcome, seeds, found, id=f"{name}: {words}: {outcome} {i}")


@pytest.mark.parametrize(("name", "words", "outcome", "seeds", "found"), list(cases()))
def test_a_claim_comes_out_as_its_table_says(name, words, outcome, seeds, found):
    frame = table(figure(name), seeds=seeds, **found)
    verdict = judged(name, words, frame)
    assert verdict.outcome is outcome, verdict
    assert "nan" not in verdict.measured
    assert readable(verdict)
    if outcome is OPEN:
        assert verdict.interval is not None
    if verdict.interval is not None:
        assert verdict.interval.low <= verdict.interval.high


@pytest.mark.parametrize(("name", "words", "outcome", "measured"), EXACT)
def test_a_claim_that_is_computed_has_one_outcome(name, words, outcome, measured):
    for frame in (table(figure(name), seeds=2), censored(figure(name), seeds=2)):
        verdict = judged(name, words, frame)
        assert verdict.outcome is outcome
        assert verdict.interval is None
        assert readable(verdict)
        assert measured in verdict.measured


def test_every_claim_of_every_figure_is_tested_both_ways():
    known = {(name, number_of(name, words)) for name, words in CASES} | {
        (name, number_of(name, words)) for name, words, *_ in EXACT
    }
    assert known == {(name, i) for name in ALL for i in range(len(figure(name).claims))}
    assert all({YES, NO} <= set(outcomes) for outcomes in CASES.values())


def test_a_claim_is_its_function_with_words_and_place():
    @declared("It grows", "section 6", lambda frame: frame.head(1))
    def grows(frame):
        """The slope is
        positive.
        """
        return exactly(frame.height == 1, "counted")

    assert (grows.name, grows.words, grows.where) == ("grows", "It grows", "section 6")
    assert grows.criterion == "The slope is positive."
    frame = pl.DataFrame({"seed": [1, 2]})
    assert grows.judge(frame).outcome is NO
    assert grows.judge(grows.rows(frame)).outcome is YES


def test_a_claim_may_yield_verdicts_and_remarks_of_which_the_worst_decides():
    @declared("It grows", "section 6")
    def grows(frame):
        """It does."""
        yield "of two runs"
        yield exactly(True, "the first grows")
        yield exactly(frame.height == 1, "the second")
        yield "and that is all"

    words = "of two runs; the first grows; the second; and that is all"
    assert grows.judge(pl.DataFrame({"seed": [1]})) == Verdict(YES, words)
    assert grows.judge(pl.DataFrame({"seed": [1, 2]})) == Verdict(NO, words)


def test_a_claim_that_is_computed_is_computed_once():
    calls = []

    @computed("It is", "section 5")
    def known():
        """By arithmetic."""
        calls.append(1)
        return exactly(True, "so it is")

    assert [known.judge(frame) for frame in (None, None)] == [Verdict(YES, "so it is")] * 2
    assert len(calls) == 1


def test_every_function_has_one_claim_of_a_figure():
    for name in ALL:
        names = [claim.name for claim in figure(name).claims]
        assert len(set(names)) == len(names)


def test_every_claim_says_what_where_and_how():
    claims = [claim for name in ALL for claim in figure(name).claims]
    assert len({claim.words for claim in claims}) == len(claims)
    for claim in claims:
        assert isinstance(claim, Claim)
        assert re.match(r"sections? [13-7]|appendix [B-G]", claim.where)
        assert re.fullmatch(r"[A-Z0-9].*\.", claim.criterion)
        assert not claim.words.endswith(".")


def test_claims_are_of_three_kinds_and_headlines_are_of_the_experiments():
    claims = [claim for name in FIGURES for claim in figure(name).claims]
    assert {claim.kind for claim in claims} == {"experiment", "proof", "ours"}
    assert {claim.otherwise for claim in claims} == {"misprint", "reading", "finding"}
    headlines = [claim for claim in claims if claim.headline]
    assert headlines
    assert all(claim.kind == "experiment" for claim in headlines)
    assert all(re.match(r"sections? (3|5|6)", claim.where) for claim in headlines)


def test_mathematics_is_set_in_signs():
    ascii = r"\^|\b(lambda|sigma|epsilon(?!-greedy)|rho|theta|sqrt)\b|(?<!inverse )gamma|<=|>="
    for name in ALL:
        it = figure(name)
        for text in (
            it.caption,
            it.title,
            *(text for claim in it.claims for text in (claim.words, claim.criterion)),
        ):
            assert not re.search(ascii, text), text


# ---- whatever the table -------------------------------------------------------------------------------------


def equal(it, **options):
    """Every run the same, whatever the settings."""
    flat = {"learning_time": lambda s: {"time": 100.0, "misfit": 0.0}}
    return table(it, **flat, regret_curve=lambda s: curve(s, lambda e: 0.1 * e), **options)


def one_in_a_hundred(it, **options):
    """Now and then a run that learns."""
    return table(
        it,
        learning_time=lambda s: {"time": math.inf if s["seed"] % 3 else 70.0, "misfit": 0.1},
        **dict.fromkeys(
            ("first_reward", "first_reward_of_policy_gradient"),
            lambda s: {
                "time": math.inf if s["seed"] % 3 else 70.0,
                "regret": 70.0,
                "uneven": 0.1,
                "gradient": 0.1,
            },
        ),
        **options,
    )


LEARNED = {name for name in ALL if name.startswith(("dithering", "chain", "conjecture"))}
WHATEVER = [
    (name, made)
    for name in ALL
    for made in (censored, *((equal, one_in_a_hundred) if name in LEARNED else ()), table)
]


def test_for_other_figures_these_tables_are_all_the_same():
    functions = {job.function.partition(":")[2] for name in set(ALL) - LEARNED for job in figure(name).plan()}
    assert not functions & {"learning_time", "first_reward", "regret_curve"}


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2, 5])
@pytest.mark.parametrize(("name", "made"), WHATEVER, ids=lambda it: getattr(it, "__name__", it))
def test_verdicts_never_raise(name, seeds, made):
    verdicts = figure(name).judge(made(figure(name), seeds=seeds))
    assert len(verdicts) == len(figure(name).claims)
    for verdict in verdicts:
        assert verdict.outcome in Outcome
        assert verdict.measured
        assert "nan" not in verdict.measured
        assert readable(verdict)


POOLED = {"chain-agnostic"}  # a seed for each rho: shares of many runs


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALL if name not in POOLED])
def test_fewer_than_five_seeds_decide_nothing(name):
    assert FEWEST_SEEDS == 5
    it = figure(name)
    frame = table(it, seeds=4)
    verdicts = it.judge(frame)
    assert any(verdict.interval is not None for verdict in verdicts)
    for claim, verdict in zip(it.claims, verdicts, strict=True):
        rows = claim.rows(frame)
        if verdict.interval is not None and rows["seed"].n_unique() < 5:
            assert verdict.outcome is OPEN
            assert verdict == claim.judge(rows)._replace(outcome=OPEN)
    assert all(verdict.measured for verdict in it.judge(table(it, seeds=5)))


def test_small_runs_leave_open_what_larger_ones_could_reproduce():
    def verdict(outcome):
        it = figure("chain-length")

        @declared("It is so", "section 6")
        def so(frame):
            """It is."""
            return outcome

        (quick,), (paper,) = (replace(it, claims=[so]).judge(table(it), scale) for scale in ("quick", "paper"))
        assert paper == outcome
        return quick

    estimate = Interval(1.0, 0.5, 1.5)
    assert verdict(Verdict(NO, "words", estimate)) == Verdict(OPEN, "words", estimate)
    assert verdict(Verdict(YES, "words", estimate)) == Verdict(YES, "words", estimate)
    assert verdict(exactly(False, "no run can change it")).outcome is NO


def test_seeds_are_counted_for_the_rows_of_each_claim():
    it = figure("chain-sigma")
    frame = table(it, seeds=2, **sweep("sigma", lambda x: 150.0 if x < -0.5 else 740.0), **stuck(0.9, 0.0))
    verdicts = it.judge(frame)
    assert frame["seed"].n_unique() == 100
    assert [verdict.outcome for verdict in verdicts] == [OPEN, OPEN, YES]
    assert it.seeds(frame) == 2


def test_exponents_are_those_of_the_table():
    verdict = figure("chain-scaling").judge(table(figure("chain-scaling"), **times(lambda N, K: N**2 * K, 0.0)))[0]
    assert re.match(r"N to the power 2\.0+ \(.*; K to the power 1\.0+ \(", verdict.measured)


def test_the_edge_of_the_stable_region_is_found_for_all_readings():
    it = figure("chain-agnostic")
    limit = {("std", False): 0.2, ("variance", False): 0.35, ("std", True): 0.03, ("variance", True): 1.0}
    frame = table(it, seeds=60, **agnostic(lambda s: s["rho"] <= limit[s["rho_is"], s["deterministic"]]))
    verdict = it.judge(frame)[number_of(it.name, "There is some region")]
    assert verdict.measured.endswith("up to ρ* = 0.2")
    assert [row[-2:] for row in verdict.table[1:]] == [(f"{rho:g}", "reproduced") for rho in limit.values()]
    nowhere = table(it, **agnostic(lambda s: s["rho"] == 0 or s["rho"] > 0.05))
    assert it.judge(nowhere)[number_of(it.name, "There is some region")].measured.endswith("ρ* = 0")


def test_the_stable_range_is_unbroken_around_the_reference():
    from rlsvi_paper.chain.chain_lambda import decades, stable

    values = 10.0 ** np.arange(-3, 4)
    fine = np.array([True, False, True, True, True, True, False])
    assert decades(values, fine, 3) == pytest.approx(3)
    assert decades(values, np.ones(7, bool), 3) == pytest.approx(6)
    assert decades(values, np.eye(7, dtype=bool)[3], 3) == 0
    assert stable(np.array([1.0, 2.0, 2.1, 4.0]), 0).tolist() == [True, True, False, False]


def test_slopes_are_those_of_the_four_parts():
    from rlsvi_paper.chain.chain_features_many import slopes

    K = np.array([2.0, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30])
    of_times = slopes(10, K)
    assert of_times(3 * K) == pytest.approx([1, 1, 1, 1])
    assert of_times(np.minimum(K, 20)) == pytest.approx([1, 1, 1, 0])
    bent = np.maximum(K, 5)
    assert of_times(bent) == pytest.approx([0, 1, line(K[K <= 10], bent[K <= 10])[0], 1])
