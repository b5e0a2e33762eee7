"""Theorem 1 put to the test: regret against √(H³SAT), and tabula rasa algorithms beside RLSVI."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.core.compile import Floats
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK, LINES
from rlsvi.study.statistics import Interval, bootstrap, mean, paired_ratio, percentiles, power_laws
from rlsvi_paper.chain.learning import dithering_bound, expected_first_reward, power_over_exponential
from rlsvi_paper.claim import (
    Outcome,
    Part,
    Parts,
    Verdict,
    all_of,
    at_least,
    at_most,
    between,
    choice,
    claim,
    exactly,
    mean_se,
    worst_of,
)
from rlsvi_paper.degrees import about_factor, much
from rlsvi_paper.drawing import LOGARITHMIC, Picture, labelled, legend, panels, style, ticks_at
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, having, paired_times, rows_with, seeds_of
from rlsvi_paper.theory import prior_regret as prior
from rlsvi_paper.theory.bounds import proof_bound, regret_shape, theorem_parameters
from rlsvi_paper.theory.conjecture import beyond, copied_chain, left_out
from rlsvi_paper.theory.prior_regret import MAKERS, THEOREM, Size

SMALL_SIZE = 2, 2  # actions and horizon of the sizes that differ in S alone: a burn-in that ends
DRAWS = 2000  # of the bootstrap
SCALED = (THEOREM, "UCRL2", "UCBVI", "PSRL")


def far(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the long runs."""
    return frame.filter(pl.col("episodes") == pl.col("episodes").max())


in_section = partial(claim, where="section 5", rows=far)


def named(size: Size) -> str:
    """A size in words."""
    return "S{}A{}H{}".format(*size)


def shares(frame: pl.DataFrame, size: Size, agent: str = THEOREM, scale: float = 1.0) -> tuple[Floats, Floats]:
    """Episodes from 10 on, and regret on every MDP as a share of the theorem's shape."""
    at, regret = prior.curves_of(frame, agent, size, scale)
    later = at >= 10
    return at[later], regret[:, later] / regret_shape(*size, at[later] * size[2])


CAVEAT = (
    "runs are consistent with a theorem and do not prove it, and the printed proof is incomplete (errata.md); "
    "theorem.md has a complete one, of the same order"
)


@in_section("Theorem 1: the expected regret is at most Õ(√(H³SAT))", where="abstract and section 5")
def bounded(frame: pl.DataFrame) -> Verdict:
    """Regret / √(H³SAT), of means over MDPs, does not grow over the last factor of four of T, at any size: it is
    past its peak.
    """
    rows = []
    for size in prior.sizes_of(frame, THEOREM):
        at, share = shares(frame, size)
        rise, worst = prior.growth(frame, THEOREM, size), int(share.mean(axis=0).argmax())
        cells = (named(size), f"{share[:, worst].mean():.2f}", f"{at[worst]:,.0f}", f"{rise}")
        words = f"at {named(size)} the ratio is multiplied by {rise} over the last factor of four"
        rows.append((at_most(rise, 1.0, words), cells))
    found = worst_of(("size", "largest ratio", "at episode", "times, over the last factor of four"), rows)
    rivals = prior.sizes_of(frame, prior.FALLING)
    met = sum(prior.growth(frame, prior.FALLING, size, prior.HALVED).inside(-np.inf, 1.0) for size in rivals)
    rival = f"LSVI with ε falling to 0, which dithers, meets the criterion at {met} of {len(rivals)} sizes"
    return found._replace(caveat=f"{CAVEAT}; {rival}, so that it tells RLSVI from linear regret only")


def can_show(frame: pl.DataFrame, size: Size, *agents: str) -> bool:
    """Whether regret grows about as √T at a size, as bounds do: elsewhere their powers of S, A and H cannot show.

    That is if regret / √T is multiplied by 1 over the last factor of four of T, within a factor of 1.1.
    """
    return all(1 / about_factor() <= prior.growth(frame, agent, size).value <= about_factor() for agent in agents)


@in_section("The shape of that bound in S, A and H is √(H³SA)")
def over_sizes(frame: pl.DataFrame) -> Verdict:
    """Regret / √T does not grow over the last factor of four of T at any size, as for Theorem 1; and over the
    sizes at which it neither grows nor falls, within a factor of 1.1, regret / √(H³SAT) grows with none of S, A
    and H: its exponents are at most 0. It is open if these sizes do not tell S, A and H apart: the data cannot
    show the shape.
    """
    sizes = prior.sizes_of(frame, THEOREM)
    fastest = max(sizes, key=lambda size: prior.growth(frame, THEOREM, size).low)
    rise = prior.growth(frame, THEOREM, fastest)
    bounded = at_most(rise, 1.0, f"at {named(fastest)} regret / √T is multiplied by {rise}")
    some = [size for size in sizes if can_show(frame, size, THEOREM)]
    known = np.linalg.matrix_rank(np.log(np.array([(np.e, *size) for size in some or sizes[:1]]))) == 4
    told, times = exponents(frame, sizes, THEOREM)
    judged = exponents(frame, some, THEOREM)[0] if known else told
    words = ", ".join(f"{name} {power}" for name, power in judged.items())
    shape = [at_most(power, 0.0, "") for power in judged.values()]
    parts: list[Verdict | str]
    if known:
        parts = [bounded, *shape, f"the exponents are {words}"]
    else:
        many = f"{len(some)} of {len(sizes)} sizes can show a shape; over all of them, after {times:.0f} burn-ins"
        parts = [bounded, *(it._replace(outcome=Outcome.INCONCLUSIVE) for it in shape), f"{many}, {words}"]
    table = [
        (agent, *map(str, exponents(frame, prior.sizes_of(frame, agent), agent, scale)[0].values()))
        for agent, scale in {THEOREM: 1.0, **prior.CONTROLS}.items()
    ]
    headings = "exponents in regret / √(H³SAT), of all sizes after the same number of burn-ins", *"SAH"
    return all_of(*parts)._replace(table=(headings, *table))


def burn_in(size: Size) -> float:
    """The episodes that it takes until the data outweigh the prior: SAλσ², at the theorem's parameters."""
    lam, sigma = theorem_parameters(size[0], size[2])
    return size[0] * size[1] * lam * sigma**2


def exponents(
    frame: pl.DataFrame, sizes: list[Size], agent: str, scale: float = 1.0
) -> tuple[dict[str, Interval], float]:
    """Exponents of S, A and H in regret / √(H³SAT), after as many burn-ins at all sizes; and that number.

    Their intervals are of means over MDPs that are drawn again; of one MDP they say nothing.
    """
    rng = np.random.default_rng(0)
    times = min(float(shares(frame, size, agent, scale)[0][-1]) / burn_in(size) for size in sizes)
    means, drawn = [], []
    for size in sizes:
        at, share = shares(frame, size, agent, scale)
        there = np.array([np.interp(np.log(times * burn_in(size)), np.log(at), values) for values in share])
        runs = len(there)
        again = rng.multinomial(runs, np.full(runs, 1 / runs), size=DRAWS)
        means.append(there.mean())
        drawn.append(again @ there / runs if runs > 1 else np.full(DRAWS, np.nan))
    X = np.column_stack([np.ones(len(sizes)), np.log(np.array(sizes, dtype=np.float64))])
    slopes, spread = (np.linalg.pinv(X)[1:] @ np.log(part) for part in (np.array(means), np.stack(drawn)))
    known = bool(np.isfinite(spread).all())
    found = {
        name: percentiles(float(slope), draws, draws, 0.95) if known else Interval(float(slope), -np.inf, np.inf)
        for name, slope, draws in zip("SAH", slopes, spread, strict=True)
    }
    return found, times


def over_proof(
    frame: pl.DataFrame, size: Size, agent: str = THEOREM, scale: float = 1.0
) -> tuple[Interval, Interval]:
    """Regret over the proof's bound with a constant of 1, of means over MDPs: the largest, and how it grows.

    The second is what it is multiplied by over the last factor of four of T.
    """
    at, regret = prior.curves_of(frame, agent, size, scale)
    bound = proof_bound(*size, at * size[2])
    share = (regret / bound)[:, at >= 10]
    largest = bootstrap(lambda drawn: float(drawn.mean()), share[:, int(share.mean(axis=0).argmax())])
    rise = bound[-1] / bound[prior.quarter(at)]
    grown = paired_ratio(regret[:, -1], regret[:, prior.quarter(at)])
    return largest, Interval(*(float(x / rise) for x in grown))


@in_section(
    "The rule for Theorem 1 can say no",
    kind="ours",
    table=("agent", "size", "times, over the last factor of four", "of RLSVI's regret"),
)
def controls(frame: pl.DataFrame) -> Parts:
    """It says so to two regrets that are linear in T by construction, random play's and that of LSVI with ε =
    .1: the ratio grows over the last factor of four of T, at every size.
    """
    for agent, scale in (*prior.CONTROLS.items(), (prior.FALLING, prior.HALVED), ("UCBVI", 1.0)):
        for size in prior.sizes_of(frame, agent):
            rise = prior.growth(frame, agent, size, scale)
            S, A, H = size
            met = having(frame, agent=agent, states=S, actions=A, horizon=H)["seed"].unique()
            ours = prior.final(frame.filter(pl.col("seed").is_in(met.implode())), THEOREM, size)
            share = paired_ratio(prior.final(frame, agent, size, scale), ours)
            verdict = at_least(rise, 1.0, f"{agent} at {named(size)}: the ratio is multiplied by {rise}")
            row = agent, named(size), f"{rise.value:.2f}", f"{share}"
            yield verdict if agent in prior.CONTROLS else None, row


@in_section(
    "The proof arrives at 2SAH + Σ K log(T + K) + H√(SAHT log T), up to a constant",
    kind="proof",
    table=("agent", "size", "SAλσ²", "largest share of the bound", "times, over the last factor of four"),
)
def as_the_proof_says(frame: pl.DataFrame) -> Parts:
    """With the constant 1, at every size and every T from 10 episodes on, regret is at most this; and over the
    last factor of four of T its share of this does not grow at any size.
    """
    for size in prior.sizes_of(frame, THEOREM):
        largest, rise = over_proof(frame, size)
        below = at_most(largest, 1.0, f"at {named(size)} regret is up to {largest} of it")
        grows = at_most(rise, 1.0, f"the share is multiplied by {rise} over the last factor of four")
        yield all_of(below, grows), (THEOREM, named(size), f"{burn_in(size):,.0f}", f"{largest}", f"{rise}")
    for agent, scale in prior.CONTROLS.items():
        for size in prior.sizes_of(frame, agent):
            largest, rise = over_proof(frame, size, agent, scale)
            yield None, (agent, named(size), "", f"{largest}", f"{rise}")


@claim(
    "This bound matches the worst-case lower bound up to logarithmic factors",
    "abstract and section 1, Jaksch et al. (2010)",
)
def matches_the_lower_bound(frame: pl.DataFrame) -> Verdict:
    """The two have the same powers of S, A, H and T: the paper's √(H³SAT), and Ω(√(DSAT)) with a diameter D of at
    most H, or Ω(√(H²SAT)) if periods differ, as in Theorem 1 (Domingues et al., 2021, have √(H³SAL), T = LH).
    """
    lower = {"a diameter of H": 0.5, "periods that differ": 1.0}  # the powers of H
    meant = choice("the lower bound for", "both", *lower)
    larger = [f"H to the power {1.5 - lower[name]:g} for {name}" for name in lower if meant in ("both", name)]
    return exactly(not larger, f"S, A and T match; the bound is larger by {' and '.join(larger)}")


def in_states(frame: pl.DataFrame, agent: str) -> tuple[Floats, list[Floats]]:
    """The numbers of states at few actions and periods, and the regret on every MDP of each."""
    sizes = [size for size in prior.sizes_of(frame, agent) if size[1:] == SMALL_SIZE]
    return np.array([float(size[0]) for size in sizes]), [prior.final(frame, agent, size) for size in sizes]


def exponent(states: Floats, regrets: list[Floats], others: list[Floats] | None = None) -> Interval:
    """The exponent of S in the mean regret over MDPs, or in its ratio to another's on the same MDPs.

    By least squares on logarithms, with the interval of a bootstrap over MDPs; no regret at all has no exponent.
    """
    x = np.log(states) - np.log(states).mean()
    rng = np.random.default_rng(0)
    every = [np.arange(len(values))[None] for values in regrets]
    drawn = [rng.integers(len(values), size=(DRAWS, len(values))) for values in regrets]

    def slopes(at: list[Any]) -> Floats:
        cells = [np.stack([v[i].mean(axis=1) for v, i in zip(c, at, strict=True)]) for c in (regrets, others) if c]
        known = np.min([part.min(axis=0) for part in cells], axis=0) > 0
        logs = [np.log(np.where(known, part, 1.0)) for part in cells]
        return np.where(known, x @ (logs[0] - (logs[1] if others else 0.0)) / (x @ x), np.inf)

    value, found = float(slopes(every)[0]), slopes(drawn)
    if min(len(values) for values in regrets) < 2 or not np.isfinite(value):
        return Interval(value, -np.inf, np.inf)
    return percentiles(value, np.where(np.isfinite(found), found, -np.inf), found, 0.95)


@in_section("These scalings better those of optimistic algorithms, Õ(√(H³S²AT))")
def better_scaling(frame: pl.DataFrame) -> Verdict:
    """Over UCRL2's, both at their theory's parameters, RLSVI's regret falls with S to a power of at most −1/4,
    nearer to the −1/2 of the bounds than to the 0 of equal scalings, over sizes at which both grow about as √T, as
    the bounds do: regret / √T is multiplied by 1 over the last factor of four, within a factor of 1.1. With fewer
    than three such sizes it is open. UCBVI is told beside it.
    """
    S, ours = in_states(frame, THEOREM)
    theirs = in_states(frame, "UCRL2")[1]
    some = [i for i, n in enumerate(S) if can_show(frame, (int(n), *SMALL_SIZE), THEOREM, "UCRL2")]
    at = some if len(some) > 2 else range(len(S))
    found = exponent(S[[*at]], [ours[i] for i in at], [theirs[i] for i in at])
    words = f"RLSVI's regret over UCRL2's grows as S to the power {found}; the bounds say −1/2"
    last = int(S[-1]), *SMALL_SIZE
    table = [
        (agent, f"{exponent(*in_states(frame, agent))}", f"{prior.growth(frame, agent, last).value:.2f}")
        for agent in SCALED
    ] + [
        (f"RLSVI over UCRL2, from S = {S[i]:.0f} on", f"{exponent(S[i:], ours[i:], theirs[i:])}", "")
        for i in range(len(S) - 2)
    ]
    headings = ("agent", "regret grows as S to the power", "regret / √T, over the last factor of four (2: linear)")
    most = choice("an exponent of", -0.25, -0.375, -0.125)
    verdict = at_most(found, most, words)._replace(table=(headings, *table))
    if len(some) > 2:
        return verdict
    few = f"{len(some)} of {len(S)} sizes can show it: at the others regret / √T falls or rises"
    return verdict._replace(outcome=Outcome.INCONCLUSIVE, measured=f"{words}; {few}")


# ---- Dithering: what it loses on the chain of Example 1 and on copies, where RLSVI learns -----------------------


OURS = "RLSVI", 0.01  # at the scale σ² of the paper's chain, λ = 1
DITHERERS = {prior.FALLING: prior.HALVED, prior.DITHERING: 0.1}  # the episode in which ε is 1/2, and ε
NAMES = {prior.FALLING: "LSVI, falling ε", prior.DITHERING: "LSVI, ε = .1"}
COPIES = (1, 2)
EXPECTED = 10  # times the episodes that random play takes to the first reward, on average
LONG_EPISODES = 10_000  # episodes of RLSVI on chains that dithering cannot learn
DRAWN = 10  # times as many seeds: the time to a first reward is geometric
on_chains = rows_with("copies")


@experiment
def copied_regret(*, agent: str, scale: float, length: int, copies: int, limit: int, seed: int) -> Playing:
    """What an agent with a table loses in `limit` episodes of the chain, along its path.

    Parameters
    ----------
    agent, scale
        One of MAKERS, at its scale.
    copies
        Of every state, and of every action.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = copied_chain(length, copies, copies, None, seed=problem_seed)
    history = yield Play(MAKERS[agent](scale, limit, agent_seed), problem, limit, regret=False)
    return {"lost": float(history.path_regret.sum())}


def chain_jobs(lengths: list[int], longer: list[int], seeds: int) -> list[Job]:
    """Dithering and RLSVI on the chain and its copies, and RLSVI alone on longer chains."""
    found = []
    for copies, N in product(COPIES, [*lengths, *longer]):
        limit = LONG_EPISODES if N in longer else math.ceil(EXPECTED * expected_first_reward(N))
        agents = {OURS[0]: OURS[1], **({} if N in longer else DITHERERS)}
        for agent, scale in agents.items():
            size = {"length": N, "copies": copies, "limit": limit}
            cost, count = 1e-6 * limit * N * copies**2, seeds if agent == OURS[0] else DRAWN * seeds
            run = partial(Job.of, copied_regret, cost, agent=agent, scale=scale, **size)
            found += [run(seed=seed) for seed in range(count)]
    return found


def losses(frame: pl.DataFrame, agent: str, copies: int) -> dict[int, Floats]:
    """What an agent loses on chains of each length, in every run."""
    return cells(having(frame, agent=agent, copies=copies), "length", value="lost")


@claim(
    "There is a clear distinction between RLSVI and dithering approaches, which are provably inefficient",
    "sections 6 and 5",
    on_chains,
)
def dithering(frame: pl.DataFrame) -> Verdict:
    """On the chain of Example 1, and with two copies of its states and actions, LSVI with ε = .1 and with ε = 100
    / (100 + l) in episode l loses at least the 2ᴺ⁻¹ − 1 that is proved, on average, at every length N; a power of
    N predicts what RLSVI with a table loses at lengths left out better than an exponential does.
    """
    rows: list[Part] = []
    powers: list[float] = []
    for copies in COPIES:
        times = ", doubled" if copies > 1 else ""
        for agent in DITHERERS:
            for N, lost in reversed(losses(frame, agent, copies).items()):
                share = mean(lost / (dithering_bound(N) - 1))
                words = f"{NAMES[agent]} loses {share} times 2ᴺ⁻¹ − 1 at N = {N}{times}"
                rows.append((at_least(share, 1.0, words), (NAMES[agent], f"{copies}", f"{N}", mean_se(lost))))
        ours = losses(frame, OURS[0], copies)
        error = {"lengths left out": left_out, "all lengths": power_over_exponential, "longer chains": beyond}
        (power,), less = power_laws([[N] for N in ours], [*ours.values()]), error[choice("error at", *error)](ours)
        words = f"for RLSVI a power of N has an error lower by {less}{times}"
        powers.append(power.value)
        rows.append((at_least(less, 0.0, words), ("RLSVI: power of N", f"{copies}", "", f"{power}")))
        rows.extend((None, ("RLSVI", f"{copies}", f"{N}", mean_se(lost))) for N, lost in ours.items())
    found = worst_of(("agent", "copies", "N", "loses"), rows)
    return found._replace(
        measured=f"{found.measured}; RLSVI loses N to the power {powers[0]:.1f}",
        caveat="that dithering loses this much is proved, and that RLSVI loses a power of N is only measured: no "
        "number of runs shows that it is provably efficient, as section 5 says; theorem.md proves a bound on its "
        "regret on average over a prior, which says nothing of the chain",
    )


def draw_chains(axes: Axes, frame: pl.DataFrame) -> None:
    """What agents lose on the chain, over its length, with the bound for dithering."""
    for i, agent in enumerate((OURS[0], *DITHERERS)):
        for copies, dashes in zip(COPIES, LINES, strict=False):
            found = losses(frame, agent, copies)
            label = NAMES.get(agent, agent) if copies == 1 else None
            lost = [values.mean() for values in found.values()]
            axes.plot(list(found), lost, color=COLOURS[i], linestyle=dashes, linewidth=2, label=label)
    at = sorted(losses(frame, prior.DITHERING, 1))
    axes.plot(at, [dithering_bound(N) - 1 for N in at], "--", color=INK, linewidth=1, label="$2^{N-1} - 1$")
    title = "the chain, and with two copies of all"
    labelled(axes, "chain length N", "regret", title, **LOGARITHMIC)
    ticks_at(axes, sorted(losses(frame, OURS[0], 1)))
    axes.set_ylim(top=20 * axes.get_ylim()[1])
    legend(axes, loc="upper left")


SIZES = [(3, 2, 3), (5, 2, 3), (3, 3, 3), (3, 8, 3), (10, 3, 3), (3, 2, 5), (3, 3, 5), (5, 3, 5), (5, 2, 8)]
STATES = [2, 3, 4, 6, 8, 12]
COMPARED = [(3, 3, 5), (5, 3, 5), (10, 3, 5)]


def jobs(
    sizes: list[Size],
    states: list[int],
    compared: list[Size],
    episodes: int,
    long: int,
    chains: list[int],
    longer: list[int],
    more: int,
    seeds: int,
) -> list[Job]:
    """Long runs of RLSVI as the theorem has it and of controls, and of optimists over states; others at some.

    Parameters
    ----------
    more
        Times as many seeds for RLSVI and UCRL2 over states, whose ratio is judged.
    chains, longer
        Lengths of chains, and those of RLSVI alone: see `chain_jobs`.
    """
    found = prior.prior_jobs(prior.THEOREM, 1.0, sizes, long, seeds)
    for agent, scale in prior.CONTROLS.items():
        found += prior.prior_jobs(agent, scale, sizes, long, seeds)
    found += prior.prior_jobs(prior.FALLING, prior.HALVED, sizes[:3], long, seeds)
    for agent in SCALED:
        many = more * seeds if agent in (prior.THEOREM, "UCRL2") else seeds
        found += prior.prior_jobs(agent, 1.0, [(S, *SMALL_SIZE) for S in states], long, many)
    found += chain_jobs(chains, longer, seeds)
    for agent, scales in {prior.THEOREM: (1.0,), **prior.SCALES}.items():
        for scale in scales:
            found += prior.prior_jobs(agent, scale, compared, episodes, seeds)
    return found


def near(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the shorter runs, of all agents at all scales."""
    return frame.filter(pl.col("episodes") == pl.col("episodes").min())


@claim(
    "RLSVI bears a close connection to PSRL: with a table it acts as an effective Gaussian approximation to it",
    "sections 6 and 4",
    near,
    table=("size", "best σ², λ = 1", "RLSVI's regret over PSRL's", "with Theorem 1's λ and σ"),
)
def near_psrl(frame: pl.DataFrame) -> Parts:
    """At its best σ, of some, its regret is within a factor of two of PSRL's at every size."""
    for size in prior.sizes_of(frame, "PSRL"):
        (ours, best), theirs = prior.tuned(frame, "RLSVI", size), prior.final(frame, "PSRL", size)
        share, there = paired_times(ours, theirs), size in prior.sizes_of(frame, THEOREM)
        untuned = paired_times(prior.final(frame, THEOREM, size), theirs) if there else None
        caveat = f"with the λ and σ of Theorem 1 it is {untuned} times PSRL's at {named(size)}" if there else ""
        words = f"at {named(size)} RLSVI's regret is {share} times PSRL's"
        yield (
            between(share, 1 / much(), much(), words)._replace(caveat=caveat),
            (named(size), prior.told_scale("RLSVI", best), f"{share}", f"{untuned or ''}"),
        )


@claim(
    "There are intelligent exploration schemes for tabula rasa learning that are provably efficient",
    "section 3",
    near,
    table=("agent", "best scale", "regret there", "regret as its theory has it", "share lost in the end"),
)
def efficient(frame: pl.DataFrame) -> Parts:
    """Each of PSRL, Gaussian PSRL, UCRL2 and UCBVI loses an episode, at the best of some scales, over the
    second half at most a fifth of what it loses over the first ten.
    """
    size, first = _middle_size(frame), choice("the first episodes,", 10, 5, 20)
    for agent in ("PSRL", "Gaussian PSRL", "UCRL2", "UCBVI"):
        regret, best = prior.tuned(frame, agent, size)
        at, curve = prior.curves_of(frame, agent, size, best)
        middle, early = (int(np.searchsorted(at, x)) for x in (at[-1] / 2, first))
        late = (curve[:, -1] - curve[:, middle]) / (at[-1] - at[middle])
        share = paired_times(late, curve[:, early] / at[early])
        at_best, at_one = (f"{values.mean():,.0f}" for values in (regret, prior.final(frame, agent, size)))
        cells = (agent, prior.told_scale(agent, best), at_best, at_one, f"{share}")
        words = f"at {named(size)} {agent} loses in the end {share} of that"
        yield at_most(share, choice("a share left of", 0.2, 0.1, 0.4), words), cells
    ours, best = prior.tuned(frame, "RLSVI", size)
    theirs = f"{prior.final(frame, prior.THEOREM, size).mean():,.0f}"
    yield None, ("RLSVI", prior.told_scale("RLSVI", best), f"{ours.mean():,.0f}", theirs, "")


def _middle_size(frame: pl.DataFrame) -> Size:
    sizes = prior.sizes_of(frame, "PSRL")
    return sizes[len(sizes) // 2]


def draw(frame: pl.DataFrame) -> Picture:
    """Regret over its bound with the controls, over states, of all agents at one size, and on the chain."""
    figure, (first, second, third, fourth) = panels(2, 4.4, rows=2)
    _ratios(first, far(frame))
    _states(second, far(frame))
    _agents(third, near(frame))
    draw_chains(fourth, on_chains(frame))
    return figure


def _ratios(axes: Axes, frame: pl.DataFrame) -> None:
    for i, size in enumerate(prior.sizes_of(frame, prior.RANDOM)):
        at, share = shares(frame, size)
        colour, dashes = COLOURS[i % len(COLOURS)], LINES[i // len(COLOURS)]
        axes.plot(at, share.mean(axis=0), color=colour, linestyle=dashes, linewidth=2, label=named(size))
    thin = {**prior.CONTROLS, prior.FALLING: prior.HALVED}
    for (agent, scale), dashes in zip(thin.items(), LINES[1:], strict=True):
        for i, size in enumerate(prior.sizes_of(frame, agent)):
            at, share = shares(frame, size, agent, scale)
            label = agent if i == 0 else None
            axes.plot(at, share.mean(axis=0), color=INK, linestyle=dashes, linewidth=0.7, label=label)
    labelled(axes, "episodes", "regret / √(H³SAT)", "RLSVI, the theorem's parameters", **LOGARITHMIC)
    axes.set_ylim(top=10 * axes.get_ylim()[1])
    legend(axes, ncols=2)


def _states(axes: Axes, frame: pl.DataFrame) -> None:
    for i, agent in enumerate(SCALED):
        S, regrets = in_states(frame, agent)
        mean = np.array([values.mean() for values in regrets])
        error = np.array([values.std() / max(len(values) - 1, 1) ** 0.5 for values in regrets])
        axes.errorbar(S, mean, error, **style(i), label=agent)
    regret, title = (
        f"regret of {frame['episodes'][0]:,} episodes",
        "A = {}, H = {}".format(*SMALL_SIZE),
    )
    labelled(axes, "states S", regret, title, **LOGARITHMIC)
    ticks_at(axes, S)
    axes.set_ylim(top=10 * axes.get_ylim()[1])
    legend(axes)


def _agents(axes: Axes, frame: pl.DataFrame) -> None:
    size = _middle_size(frame)
    at, regret = prior.curves_of(frame, prior.THEOREM, size)
    axes.plot(at, regret.mean(axis=0), color=INK, linewidth=2, label=prior.THEOREM)
    for i, agent in enumerate(prior.SCALES):
        _, best = prior.tuned(frame, agent, size)
        for scale, dashes in {best: "-", 1.0: (0, (1, 1.5))}.items():
            if scale in prior.SCALES[agent]:
                at, regret = prior.curves_of(frame, agent, size, scale)
                label = f"{agent}, {scale:g}" if agent != "PSRL" else agent
                axes.plot(at, regret.mean(axis=0), color=COLOURS[i], linestyle=dashes, linewidth=2, label=label)
    title = f"{named(size)}: best scales, and 1 (dotted)"
    labelled(axes, "episodes", "regret", title, "upper left", **LOGARITHMIC)


FIGURE = Figure.of(
    __name__,
    title="Theorem 1: regret on MDPs of its prior",
    where="section 5",
    caption=(
        "Mean regret on MDPs drawn from the prior of Theorem 1. At the theorem's λ and σ, regret over √(H³SAT) "
        "rises while the prior outweighs the data and then falls; that of random play and of LSVI with a "
        "constant ε rises for ever. Beside it, regret against S at each theory's parameters; below, RLSVI (its "
        "scale is σ²) and tabular algorithms at their best scale and at 1 (dotted), and what RLSVI and dithering "
        "lose on the chain of Example 1."
    ),
    quick={
        "sizes": SIZES[:4],
        "states": STATES[:5],
        "compared": COMPARED[:2],
        "episodes": 5_000,
        "long": 100_000,
        "chains": [3, 5, 7],
        "longer": [12, 16],
        "more": 2,
        "seeds": 5,
    },
    paper={
        "sizes": SIZES,
        "states": STATES,
        "compared": COMPARED,
        "episodes": 100_000,
        "long": 400_000,
        "chains": [3, 5, 7, 9, 11],
        "longer": [16, 24, 32, 48],
        "more": 20,
        "seeds": 10,
    },
)
