"""Continual RLSVI: a river without end, and what the autocorrelation of the noise is good for."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.polynomial.legendre import legvander

from rlsvi.agents import ContinualLSVI, ContinualRLSVI, DivergenceWarning, EpsilonGreedy, Linear
from rlsvi.agents.continual import ContinualAgent
from rlsvi.agents.explore import Schedule
from rlsvi.bases import Dense, StateFeatures, coherent
from rlsvi.core.compile import Floats
from rlsvi.core.regression import FactorError
from rlsvi.mdp import FiniteMDP, river_swim
from rlsvi.mdp.solve import average_reward
from rlsvi.simulate import simulate_continual
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, mean
from rlsvi_paper.claim import Parts, Verdict, at_least, at_most, choice, claim, exactly, mean_se
from rlsvi_paper.degrees import about_factor, hardly_any, most
from rlsvi_paper.drawing import Picture, curves, labelled, legend, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import average, having, rows_where, rows_with

GAMMA = 0.99
FUNCTIONS = 6  # of place and action
COHERENT: dict[str, Literal["HSA", "sqrt(HSA)"]] = {"coherent": "HSA", "coherent, small": "sqrt(HSA)"}
DITHERING: dict[str, Callable[[int], Schedule]] = {
    "epsilon = .01": lambda steps: 0.01,
    "epsilon = .1": lambda steps: 0.1,
    "epsilon = .5": lambda steps: 0.5,
    "epsilon from 1 to 0": lambda steps: Linear(1.0, 0.0, max(steps // 2, 1)),
}
NOISES = ("paper", "whitened", "independent")
AGENTS = (*NOISES, *DITHERING)
THEORY = {"paper": math.sqrt(1 - GAMMA**2), "whitened": GAMMA, "independent": 0.0}
USUAL_EPSILON = "epsilon = .1"  # the usual one, shown with features too
SPANNING = {"table": "a table", "coherent": f"{FUNCTIONS} functions that span Q*"}
OTHERS = {"coherent, small": "the same, scaled to √(HSA)", "places": "1, x, x² an action, which do not span Q*"}
SHARES = ("states", "agent", "share of the best average reward")
with_table = rows_where(basis="table")
of_perturbations = rows_with("noise")
in_appendix = partial(claim, where="appendix F.2")


def jobs(states: list[int], steps: int, few: int, watched: int, more: int, seeds: int) -> list[Job]:
    """All agents in rivers of several lengths: with a table, and with features for a life of `few` steps.

    Parameters
    ----------
    more
        Times as many seeds where kinds of noise are compared and where values may diverge.
    """
    lives = [
        *(("table", agent, steps, more if agent in NOISES else 1) for agent in AGENTS),
        *((basis, agent, few, more) for basis in COHERENT for agent in NOISES),
        ("coherent", USUAL_EPSILON, few, 1),
        *(("places", noise, few, 1) for noise in NOISES),
        ("random", "paper", few, more),
    ]
    return [
        Job.of(continual_reward, 2e-6 * life, basis=basis, agent=agent, states=N, steps=life, seed=seed)
        for (basis, agent, life, times), N in product(lives, states)
        for seed in range(times * seeds)
    ] + [
        Job.of(perturbations, 2e-4 * watched, noise=noise, states=states[0], steps=watched, seed=seed)
        for noise in NOISES
        for seed in range(seeds)
    ]


def continual_reward(*, agent: str, basis: str, states: int, steps: int, seed: int) -> dict[str, Any]:
    """The average reward in a river without end, as a share of the best, over ten parts of a run.

    Also the step by which divergence was noticed, and the one at which a number was no longer finite and the run
    ended; infinite if never.

    Parameters
    ----------
    agent
        The noise of continual RLSVI ("paper", "whitened" or "independent"), or a name in DITHERING.
    basis
        "table"; one of COHERENT, six random functions of place and action whose span contains Q*, drawn
        as appendix C has it; "random", six that need not span it; other ones for every seed. Or "places",
        1, x and x^2 of the place x, for each action, which do not span it either.
    """
    mdp = river_swim(states)
    best, learning = average_reward(mdp), _agent(agent, basis, states, steps, seed)
    shares, noticed, ended = np.zeros(10), np.inf, np.inf
    for part in range(10):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DivergenceWarning)
            try:
                shares[part] = simulate_continual(learning, mdp, steps // 10).mean() / best
            except FactorError:
                ended = float(learning.steps)
        if caught and not np.isfinite(noticed):
            noticed = float(learning.steps)
        if np.isfinite(ended):
            break
    return {"part": np.arange(1, 11), "share": shares, "noticed": noticed, "ended": ended}


def _agent(agent: str, basis: str, states: int, steps: int, seed: int) -> ContinualAgent:
    usual: dict[str, Any] = {"gamma": GAMMA, "seed": seed}
    if basis in COHERENT:
        Q = discounted_values(river_swim(states))
        usual["basis"] = coherent(Q[None], FUNCTIONS, scale=COHERENT[basis], seed=seed)
    elif basis == "random":
        usual["basis"] = Dense(np.random.default_rng(seed).normal(size=(states, 2, FUNCTIONS)))
    elif basis == "places":
        usual["basis"] = StateFeatures(lambda s: legvander(2.0 * s / (states - 1) - 1.0, 2).ravel())
    if agent in DITHERING:
        return ContinualLSVI(explore=EpsilonGreedy(DITHERING[agent](steps)), **usual)
    noise: Any = agent
    return ContinualRLSVI(noise=noise, **usual)


def discounted_values(mdp: FiniteMDP) -> Floats:
    """Q* of an MDP without end, (S, A), by policy iteration."""
    t = mdp.table
    P = np.zeros((t.states * t.actions, t.states))
    np.add.at(P, (np.repeat(np.arange(len(P)), np.diff(t.indptr)), t.successor), t.probability)
    policy, better = np.full(t.states, -1), np.zeros(t.states, dtype=np.int64)
    while (policy != better).any():
        policy = better
        rows = t.actions * np.arange(t.states) + policy
        V = np.linalg.solve(np.eye(t.states) - GAMMA * P[rows], t.expected[rows])
        Q = (t.expected + GAMMA * P @ V).reshape(t.states, t.actions)
        better = Q.argmax(axis=1)
    return Q


def perturbations(*, noise: str, states: int, steps: int, seed: int) -> dict[str, Any]:
    """How consecutive perturbations are correlated, in units of their own standard deviation.

    Over the second half of `steps` steps, for by then Sigma changes slowly; the mean over the weights of states
    that were met before.

    Parameters
    ----------
    change
        How much Sigma changes in a step, relative to itself: the largest change of a weight, on average
        over all steps from the first on.
    largest
        The largest of all.
    """
    mdp, half = river_swim(states), steps // 2
    learning = _agent(noise, "table", states, steps, seed)
    weights = 2 * states
    w, spread = np.zeros((steps, weights)), np.full((steps + 1, weights), learning.lam**-0.5)
    known = np.zeros(weights, dtype=np.bool_)
    for t in range(steps):
        simulate_continual(learning, mdp, 1)
        learner = learning._learner
        assert learner is not None
        if t == half:
            known = learner.mind.memory.alive[0].copy()
        spread[t + 1] = learning.sigma * learner.mind.factor.inv[0, :, 0]
        w[t] = (learner.mind.values.theta[0] - learner.walk.mean[0]).ravel() / spread[t + 1]
    change = np.abs((spread[1:] / spread[:-1]) ** 2 - 1).max(axis=1)
    w = w[half:, known]
    return {
        "correlation": float((w[1:] * w[:-1]).mean() / (w**2).mean()),
        "variance": float((w**2).mean()),
        "change": float(change.mean()),
        "largest": float(change.max()),
    }


def of_noises(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of RLSVI's lives, but for those with features that may not span Q*."""
    return frame.filter(pl.col("basis") != "random", pl.col("agent").is_in(NOISES))


def shares(frame: pl.DataFrame, agent: str, states: int, basis: str = "table") -> Floats:
    """The share of the best average reward in each part of a life, (seeds, 10)."""
    mine = having(frame, agent=agent, states=states, basis=basis)
    return np.asarray(mine.sort("seed", "part")["share"].to_numpy().reshape(-1, 10))


def late(frame: pl.DataFrame, agent: str, states: int) -> tuple[Interval, str]:
    """Its mean over the second half of a life and over seeds, and the same in words."""
    share = shares(frame, agent, states)[:, -choice("the last tenths of a life,", 5, 2, 8) :].mean(axis=1)
    return average(share), mean_se(share, 3)


@in_appendix(
    "Perturbing value estimates in directions of significant uncertainty incentivises exploration",
    rows=with_table,
    table=SHARES,
)
def explores(frame: pl.DataFrame) -> Parts:
    """In the second half of its life RLSVI with a table has at least .95 of the best average reward, where
    LSVI with ε = .1 has at most .1.
    """
    nearly = choice("the best, but for a share of", 0.05, 0.025, 0.1)
    for N in sorted(frame["states"].unique()):
        (ours, words), (theirs, others) = late(frame, "paper", N), late(frame, USUAL_EPSILON, N)
        yield at_least(ours, 1 - nearly, f"{N} states: RLSVI has {words}"), (f"{N}", "RLSVI", words)
        yield at_most(theirs, hardly_any(), f"{N} states: LSVI has {others}"), (f"{N}", "LSVI, ε = .1", others)


@claim(
    "Dithering in its place does not explore, however it is tuned",
    "section 3, appendix F.2",
    with_table,
    kind="ours",
    table=SHARES,
)
def dithering_does_not(frame: pl.DataFrame) -> Parts:
    """With every ε, constant or falling, LSVI has at most .1 of the best average reward then, in every river."""
    for N, agent in product(sorted(frame["states"].unique()), DITHERING):
        (share, words), name = late(frame, agent, N), agent.replace("epsilon", "ε")
        verdict = at_most(share, hardly_any(), f"with {N} states and {name} LSVI has {words} of the best reward")
        yield verdict, (f"{N}", name, words)


def seen(frame: pl.DataFrame, noise: str, name: str) -> Floats:
    """What was measured of a kind of noise, for each seed."""
    return np.asarray(having(frame, noise=noise).sort("seed")[name].to_numpy())


@in_appendix(
    "The perturbations are sampled to ensure autocorrelation", rows=of_perturbations, otherwise="misprint"
)
def autocorrelated(frame: pl.DataFrame) -> Verdict:
    """As printed, the correlation of consecutive perturbations is at least one half at γ = .99, over the second
    half of a life: it is to avoid abrupt changes, so that plans of several steps are carried out, and more of a
    perturbation must stay from one step to the next than is drawn anew.
    """
    found = {noise: mean_se(seen(frame, noise, "correlation"), 3) for noise in THEORY}
    words = (
        f"as printed it is {found['paper']}, in theory √(1 − γ²) = {THEORY['paper']:.3f}, which vanishes as γ → 1"
    )
    table = ("noise", "correlation", "in theory"), *((it, found[it], f"{rho:.3f}") for it, rho in THEORY.items())
    return at_least(mean(seen(frame, "paper", "correlation")), most(), words)._replace(table=table)


@in_appendix(
    "Marginal covariance matrices of consecutive perturbations differ only slightly", rows=of_perturbations
)
def differ_slightly(frame: pl.DataFrame) -> Verdict:
    """The variance Σ of a weight changes by less than a factor of 1.1 a step, on average over all steps of a life
    from its first on.
    """
    change, largest = seen(frame, "paper", "change"), seen(frame, "paper", "largest")
    usual = f"by {mean(change).value:.2%} a step, of the weight that changes most in it"
    return at_most(
        mean(change), about_factor() - 1, f"{usual}; by {largest.max():.0%} when a weight is first touched"
    )


@in_appendix(
    "Avoiding abrupt changes of the perturbation is important, for plans of several steps",
    rows=of_noises,
    table=("basis", "states", "as printed", "of correlation γ", "independent", "γ's lead"),
)
def plans_need_it(frame: pl.DataFrame) -> Parts:
    """Over its whole life RLSVI has more reward with noise of correlation γ than with independent noise, with a
    table and with six random functions that span Q*, in every river.
    """
    for (basis, name), N in product((SPANNING | OTHERS).items(), sorted(frame["states"].unique())):
        whole = {noise: np.asarray(shares(frame, noise, N, basis).mean(axis=1)) for noise in NOISES}
        more = average(whole["whitened"] - whole["independent"])
        row = (name, f"{N}", *(mean_se(values, 3) for values in whole.values()), f"{more}")
        verdict = at_least(more, 0.0, f"{name}, {N} states: {more} more of the best reward")
        yield verdict if basis in SPANNING else None, row


@in_appendix(
    "A version of RLSVI for Q* in the span of any Φ",
    rows=lambda frame: frame.filter(pl.col("basis").is_in(["coherent", "random"]), pl.col("agent") == "paper"),
    kind="ours",
)
def stays_finite(frame: pl.DataFrame) -> Verdict:
    """With six random functions that span Q*, drawn as in appendix C, no value diverges in any river."""
    rows = [_diverged(having(frame, basis=basis)) for basis in ("coherent", "random")]
    (count, lives, missed), (others, many, _) = rows
    words = f"the values diverge in {count} of {lives} lives, in {missed} of these unnoticed"
    more = f"in {others} of {many} if the functions need not span Q*"
    return exactly(count == 0, f"{words}; {more}")


def _diverged(frame: pl.DataFrame) -> tuple[int, int, int]:
    """In how many lives the values diverged, of how many, and how often that was not noticed."""
    lives = frame.filter(pl.col("part") == 1)
    diverged = lives.filter(pl.col("noticed").is_finite() | pl.col("ended").is_finite())
    return diverged.height, lives.height, int(diverged["noticed"].is_infinite().sum())


def draw(frame: pl.DataFrame) -> Picture:
    """The share of the best average reward as life goes on: with a table, and with features."""
    lengths = sorted(frame["states"].unique())
    figure, places = panels(len(lengths), 3.8, 2)
    for row, (basis, agents) in enumerate((("table", AGENTS), ("coherent", (*NOISES, USUAL_EPSILON)))):
        steps = int(having(frame, basis=basis)["steps"][0])
        for axes, N in zip(places[row * len(lengths) :], lengths, strict=False):
            for agent in agents:
                name = agent if agent in DITHERING else f"RLSVI, {agent}"
                at = (np.arange(10) + 0.5) * steps / 10_000
                curves(axes, at, shares(frame, agent, N, basis), name, AGENTS.index(agent))
            share = "share of the best average reward"
            labelled(axes, "thousand steps", share, f"{N} states, {SPANNING[basis]}", ylim=(-0.02, 1.1))
    legend(places[0], loc="center right")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Continual RLSVI",
    where="appendix F.2",
    caption=(
        "Average reward in endless RiverSwim as a share of the best, over tenths of a life, with a table (above) "
        "and with six random functions that span Q* (below): every seed, and medians with 95% bands. The noise "
        "of RLSVI (λ = σ = 1, γ = .99) is as printed, of correlation γ (whitened), or drawn anew in every step "
        "(independent). LSVI has a constant ε, or one that falls from 1 to 0."
    ),
    quick={"states": [6], "steps": 60_000, "few": 20_000, "watched": 1000, "more": 4, "seeds": 5},
    paper={"states": [6, 10, 14], "steps": 200_000, "few": 20_000, "watched": 4000, "more": 12, "seeds": 10},
)
