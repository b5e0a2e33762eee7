"""The recommendation engine: RLSVI against bandits and against the optimal myopic policy."""

from typing import Any

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.core.compile import Floats
from rlsvi.simulate import simulate
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import Interval, bootstrap
from rlsvi_paper.claim import (
    Part,
    Parts,
    Verdict,
    Verdicts,
    at_least,
    at_most,
    choice,
    claim,
    computed,
    exactly,
    mean_se,
    share_of,
    worst_of,
)
from rlsvi_paper.degrees import much, significant
from rlsvi_paper.drawing import Picture, averaged, from_zero, labelled, legend, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.recommendation import engine
from rlsvi_paper.recommendation.engine import LIKES, of_agents, of_instances, of_play
from rlsvi_paper.results import paired_times, rows_with, total

AGENTS = ("RLSVI", "linear bandit", "linear bandit, pooled", "Thompson", "myopic")
BANDITS = ("linear bandit", "linear bandit, pooled", "Thompson")
SAID = {
    "myopic": "the myopic policy",
    "linear bandit": "the linear bandit",
    "linear bandit, pooled": "the pooled linear bandit",
    "Thompson": "Thompson sampling",
}
of_bandits_alone = rows_with("bandit")


def jobs(episodes: int, runs: int, seeds: int, bandit_runs: int | None = None) -> list[Job]:
    """Every agent, and Bernoulli Thompson sampling where it does not matter what customers have seen."""
    size = {"episodes": episodes, "runs": runs}
    alone = [
        Job.of(engine.without_context, 5e-5 * episodes * runs, bandit="Thompson", **size, seed=seed)
        for seed in range(seeds)
    ]
    return engine.jobs_of(AGENTS, episodes, runs, seeds, bandit_runs) + alone


def less_at_the_end(frame: pl.DataFrame, others: tuple[str, ...], coding: str = LIKES) -> Verdict:
    """RLSVI's regret an episode at the end as a share of that of others; beside it the regret of all episodes.

    Where RLSVI's is not significantly less in all episodes, that is a caveat.
    """
    ours, rows = engine.at_the_end(frame, "RLSVI", coding), list[Part]()
    so_far, remarks = total(frame, agent="RLSVI", coding=coding), list[str]()
    for name in others:
        own = coding if name != "myopic" else LIKES
        theirs, all_theirs = engine.at_the_end(frame, name, own), total(frame, agent=name, coding=own)
        share, who, regret = paired_times(ours, theirs), SAID.get(name, name), mean_se(theirs, 3)
        words = f"{who}: {regret} an episode, RLSVI: {mean_se(ours, 3)}, {share} of it"
        share = paired_times(so_far, all_theirs) if choice("regret", "in the end", "in all") == "in all" else share
        lower = share_of(so_far < all_theirs)[1]
        if all_theirs.mean() < significant() * so_far.mean():
            remarks.append(f"{who} {all_theirs.mean():.1f} (RLSVI's is lower on {lower} instances)")
        rows.append((at_most(share, 1.0, words), (name, regret, f"{share}", f"{all_theirs.mean():.1f}", lower)))
    headings = "agent", "regret an episode in the end", "RLSVI's share of it", "regret of all episodes"
    found = worst_of((*headings, "instances on which RLSVI's is lower"), rows)
    caveat = f"RLSVI's regret over all episodes is {so_far.mean():.1f}, and that of {', of '.join(remarks)}"
    return found._replace(caveat=caveat if remarks else "")


@of_play("RLSVI is able to outperform even the optimal myopic policy", where="sections 6 and 6.3")
def outperforms_the_myopic_policy(frame: pl.DataFrame) -> Verdict:
    """Its regret an episode over the last 100 is lower."""
    return less_at_the_end(frame, ("myopic",))


@of_play("RLSVI is able to outperform benchmark bandit algorithms")
def outperforms_bandits(frame: pl.DataFrame) -> Verdict:
    """Its regret an episode over the last 100 is lower than that of each."""
    return less_at_the_end(frame, BANDITS)


@of_play("RLSVI outperforms bandits and the optimal myopic policy also if rewards are −1 and 0", kind="ours")
def outperforms_with_other_rewards(frame: pl.DataFrame) -> Verdict:
    """Its regret an episode over the last 100 is lower than that of each."""
    return less_at_the_end(frame, (*BANDITS, "myopic"), engine.DISLIKES)


@claim(
    "Bernoulli Thompson sampling does not learn much, since it does not take context into account", "section 6.3"
)
def thompson_learns_little(frame: pl.DataFrame) -> Verdicts:
    """Its regret an episode over the last 100 is more than half of that over the first 100; and no fixed order of
    products earns more than random play, exactly.
    """
    share, problems = engine.remaining(of_agents(frame), "Thompson"), of_instances(frame)
    yield at_least(share, 1 / much(), f"its regret an episode ends at {share} of what it was")
    worth, random = problems["fixed_order"].to_numpy(), engine.SLOTS / 2
    off = float(np.abs(worth - random).max())
    words = f"each of {engine.ORDERS} fixed orders earns {random:g} likes, to {off:.0e}"
    yield exactly(off < 1e-9, f"{words}, the optimum {problems['best'].to_numpy().mean():.2f}")


@of_play("The linear contextual bandit outperforms RLSVI at first")
def bandit_is_better_at_first(frame: pl.DataFrame) -> Verdicts:
    """Its regret over the first twelfth of the episodes is lower, in both its forms."""
    ours = engine.at_first(frame, "RLSVI")
    yield f"RLSVI: {mean_se(ours, 2)} a customer"
    for name in BANDITS[:2]:
        theirs = engine.at_first(frame, name)
        share = paired_times(theirs, ours)
        yield at_most(share, 1.0, f"{name}: {mean_se(theirs, 2)}, {share} of that")


@of_play("Learning a myopic policy is simpler than a multi-period policy")
def myopic_is_simpler(frame: pl.DataFrame) -> Verdicts:
    """Both are halved, and what the linear bandit forgoes against the myopic choice sooner than RLSVI's regret."""
    middle, regret = engine.rates(frame, "RLSVI")
    instances = np.arange(float(len(regret)))
    yield f"RLSVI's regret is halved at customer {_halved(middle, regret, instances):.0f}"
    names = ("the bandit's loss", "if pooled")
    for name, words in zip(BANDITS[:2], names, strict=True):
        forgone = engine.rates(frame, name, loss="forgone")[1]

        def share(drawn: Floats, forgone: Floats = forgone) -> float:
            when, later = _halved(middle, forgone, drawn), _halved(middle, regret, drawn)
            return when / later if max(when, later) < np.inf else np.inf

        sooner, when = bootstrap(share, instances), _halved(middle, forgone, instances)
        yield at_most(sooner, 1.0, f"{words} at {when:.0f}, {sooner} of that")


def _halved(middle: Floats, rate: Floats, drawn: Floats) -> float:
    """The first customer at which the mean rate of some instances is half of what it was at first."""
    mean = rate[drawn.astype(np.int64)].mean(axis=0)
    lead = mean[: engine.early(len(mean))].mean() / much() - mean
    ahead = np.flatnonzero(lead > 0)
    return _reached(middle, lead, int(ahead[0]) if len(ahead) else len(lead))


@claim(
    "The linear and the Bernoulli bandit algorithm aim to learn the myopic policy",
    "appendix E",
    table=("agent", "likes forgone a customer in the end", "share of those at first"),
)
def bandits_aim_to_be_myopic(frame: pl.DataFrame) -> Parts:
    """The likes that each forgoes against the myopic choice are over the last 100 customers at most half of those
    over the first 100: the linear bandit on the paper's problem, the Bernoulli bandit where it does not matter
    what a customer has seen, as its model assumes.
    """
    played, alone = of_agents(frame), of_bandits_alone(frame).sort("seed")
    both = engine.at_the_end, engine.at_first
    losses = {name: [measure(played, name, loss="forgone") for measure in both] for name in BANDITS[:2]}
    losses[SAID["Thompson"]] = [alone[column].to_numpy() for column in ("last", "first")]
    for name, (late, early) in losses.items():
        share, likes = paired_times(late, early), mean_se(late, 3)
        verdict = at_most(share, 1 / much(), f"in the end {name} forgoes {likes} likes, {share} of those at first")
        yield verdict, (name, likes, f"{share}")


@computed(
    "The linear contextual bandit can be implemented incrementally, hence it is computationally efficient",
    "appendix E",
)
def bandit_is_incremental() -> Verdict:
    """Learned customer by customer, in memory that does not grow with their number, its posterior means are those
    of regressions on all data at once, to 10⁻⁹.
    """
    problem = problems.recommendation(6, 3, scale=engine.SCALE, seed=0)
    agent = engine.MAKERS["linear bandit"](0, 0.0)
    sizes, parts = [], []
    for customers in (100, 900):
        parts.append(simulate(agent, problem, customers, regret=False, trace=True).trace)
        sizes.append(sum(values.size for values in agent._learner.state().values()))
    mind, ridge = agent._learner.mind, engine.LAM * engine.SIGMA**2
    x, a, r = (np.concatenate([part[i] for part in parts]) for i in range(3))
    largest = 0.0
    for h, product in np.ndindex(x.shape[1], problem.mdp.table.actions):
        rows = a[:, h] == product
        block, A = mind.features.block[x[rows, h], product], mind.features.phi[0, x[rows, h], product]
        at_once = np.linalg.solve(A.T @ A + ridge * np.eye(A.shape[1]), A.T @ r[rows, h])
        U = mind.factor.U[h, block[0]]
        step_by_step = np.linalg.solve(U.T @ U, mind.reward[h, block[0]])
        largest = max(largest, float(np.abs(step_by_step - at_once).max()))
    words = f"after 100 and after 1000 customers it keeps {sizes[0]} and {sizes[1]} numbers"
    return exactly(largest < 1e-9 and sizes[0] == sizes[1], f"{words}; its means differ by {largest:.0e}")


@of_play(
    "As more data is gathered RLSVI eventually learns a richer policy, which outperforms the myopic policy",
    table=("agent", "first customer from which on RLSVI's regret is lower"),
)
def overtakes(frame: pl.DataFrame) -> Parts:
    """From some episode on, with an interval that ends before the last, its regret an episode is lower."""
    at, _ = engine.curves_of(frame, "RLSVI")
    for name in ("myopic", *BANDITS[:2]):
        when = crossing(frame, name)
        since = f"from customer {when} on" if np.isfinite(when.value) else "not in the end"
        words = f"RLSVI's regret is below that of {SAID.get(name, name)} {since}"
        yield at_most(when, float(at[-1]), words), (name, f"{when}")


def crossing(frame: pl.DataFrame, other: str) -> Interval:
    """The episode from which on RLSVI's regret an episode is lower in the mean over instances.

    Each point of a curve is the mean of five (100 of 1200 episodes), with lines between the points.
    """
    middle, ours = engine.rates(frame, "RLSVI")
    _, theirs = engine.rates(frame, other)
    width = min(choice("smoothed over points,", 5, 3, 10), len(middle))
    kernel = np.ones(width) / width
    at = np.convolve(middle, kernel, "valid")

    def when(drawn: Floats) -> float:
        i = drawn.astype(np.int64)
        lead = np.convolve(theirs[i].mean(axis=0) - ours[i].mean(axis=0), kernel, "valid")
        behind = np.flatnonzero(lead <= 0)
        return _reached(at, lead, int(behind[-1]) + 1 if len(behind) else 0)

    return bootstrap(when, np.arange(float(len(ours))))


def _reached(at: Floats, lead: Floats, first: int) -> float:
    """Where the line through the points before and at `first`, from which on `lead` is positive, meets 0."""
    if first == len(lead):
        return np.inf
    if first == 0:
        return float(at[0])
    return float(np.interp(0.0, lead[first - 1 : first + 1], at[first - 1 : first + 1]))


def draw(frame: pl.DataFrame) -> Picture:
    """Regret a customer and cumulative regret, mean and standard error over instances, in both codings."""
    figure, axes = panels(2, 4.0, rows=2)
    for row, coding in enumerate(engine.CODINGS):
        left, right = axes[2 * row : 2 * row + 2]
        for index, name in enumerate(AGENTS):
            line: Any = LINES[index % len(LINES)]
            own = coding if name != "myopic" else LIKES
            averaged(left, *engine.rates(of_agents(frame), name, own), name, COLOURS[index], line)
            averaged(right, *engine.curves_of(of_agents(frame), name, own), name, COLOURS[index], line)
        labelled(left, "customers", "regret a customer", f"rewards {{{coding}}}")
        labelled(right, "customers", "cumulative regret")
    legend(axes[1], loc="upper left")
    from_zero(axes)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Recommendations: RLSVI, bandits and the optimal myopic policy",
    where="section 6.3, figure 9",
    caption=(
        "Regret of RLSVI, of linear contextual bandits (a regression for each slot as in the paper, or one for "
        "all), of Bernoulli Thompson sampling, and of the optimal myopic policy, which knows the truth but looks "
        "one step ahead. Means and standard errors over instances (N = 10, J = 5, c = 2, λ = .2, σ² = .001), of "
        "10 runs on each, and 100 of the paper's two bandits."
    ),
    quick={"episodes": 300, "runs": 1, "seeds": 5},
    paper={"episodes": 1200, "runs": 10, "seeds": 100, "bandit_runs": 100},
)
