"""Incremental RLSVI: what is saved by summary statistics, and what it costs in regret."""

from typing import Any

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import LSVIUCB, RLSVI, ByEvidence, GradientRLSVI, IncrementalRLSVI
from rlsvi.core.compile import Floats
from rlsvi.envs import FiniteMDPEnv
from rlsvi.problems import Problem
from rlsvi.simulate import simulate
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import Interval
from rlsvi_paper.claim import Parts, Row, Verdict, at_least, at_most, choice, claim, mean_se
from rlsvi_paper.drawing import Picture, averaged, from_zero, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.recommendation.engine import LAM, LIKES, SIGMA, instance
from rlsvi_paper.results import having, learning_curves, paired_times, rows_where, total

CHAIN = 8  # states
GUESSED = {"batch, sigma = .1": 0.1, "batch, sigma = 1": 1.0}
EVIDENCE = {"evidence from sigma = .1": 0.1, "evidence from sigma = 1": 1.0}
BONUSES = {"LSVI-UCB, scale 1": 1.0, "LSVI-UCB, scale .0003": 0.0003}
STEPS = (0.0, 0.001, 0.01, 0.1)
INCREMENTAL = [*(("incremental", nu) for nu in STEPS), ("incremental, literal", 0.01), ("gradient", 0.0)]
DRAWN = [("batch", 0.0), *INCREMENTAL]
AGENTS = [*DRAWN, *((agent, 0.0) for agent in (*GUESSED, *EVIDENCE))]
on_engine = rows_where(task="engine")
HEADINGS = ("agent", "regret", "times the batch agent's")
WORK = {
    "work_early": "after a tenth of the episodes",
    "work_late": "after all",
    "done_early": "carried out after a tenth",
    "done_late": "carried out after all",
}
MORE_SEEDS = ("batch", next(iter(EVIDENCE)))
SPARE = (1, 5)  # colours of agents that are not on the chain
ON_CHAIN = [("batch", 0.0), ("incremental", 0.01), ("gradient", 0.0), *((agent, 0.0) for agent in BONUSES)]


def jobs(episodes: int, runs: int, chain: int, few: int, more: int, seeds: int) -> list[Job]:
    """All agents on `seeds` instances of the recommendation engine, and on a chain for `chain` episodes.

    Parameters
    ----------
    few
        The gradient agent has no compiled loop: it plays one run of a part of the instances, 1 of `few`.
    more
        Times as many instances for the two agents whose ratio is near the limit that it is judged by.
    """
    found = []
    plan = [
        *(("engine", agent, nu, episodes, runs) for agent, nu in AGENTS),
        *(("chain", agent, nu, chain, 1) for agent, nu in ON_CHAIN),
    ]
    for task, agent, nu, count, times in plan:
        slow = agent == "gradient"
        cost = (2e-2 if slow else 1e-4) * count * times
        size = {"episodes": count, "runs": 1 if slow else times}
        many = more * seeds if task == "engine" and agent in MORE_SEEDS else seeds
        found += [
            Job.of(learning_regret, cost, task=task, agent=agent, nu=nu, **size, seed=seed)
            for seed in range(0, many, few if slow else 1)
        ]
    return found


def learning_regret(*, task: str, agent: str, nu: float, episodes: int, runs: int, seed: int) -> dict[str, Any]:
    """Regret along the path of an agent, the mean of several runs, at some episodes.

    Also how many multiplications an episode takes after a tenth of the episodes, and after all: `work`, all blocks
    of weights counted, and `done`, without those that were skipped as nothing had touched them yet.

    Parameters
    ----------
    task
        "engine", the instance number `seed` of the recommendation engine; or "chain", 8 states with a
        table.
    agent
        "batch", with tuned lam and sigma; one of GUESSED, with lam = 1 and this sigma; one of EVIDENCE,
        which begins with these; "incremental", "incremental, literal", which forgets its prior too,
        "gradient"; or on the chain one of BONUSES.
    nu
        The step size of the incremental agents.
    """
    problem = instance(seed, LIKES) if task == "engine" else problems.chain(CHAIN)
    total, work, done = np.zeros(episodes), np.zeros(2), np.zeros(2)
    for run in range(runs):
        learner, lost = _learner(task, agent, nu, episodes, 1000 * seed + run), []
        for part, count in enumerate((episodes // 10, episodes - episodes // 10)):
            lost.append(_regret(learner, problem, count))
            work[part] += multiplications(learner, skips=False)
            done[part] += multiplications(learner)
        total += np.cumsum(np.concatenate(lost))
    at = np.unique(np.ceil(np.linspace(0, episodes, 41)[1:]).astype(np.int64))
    counts = {"work_early": work[0], "work_late": work[1], "done_early": done[0], "done_late": done[1]}
    return {"episode": at, "regret": total[at - 1] / runs, **{name: x / runs for name, x in counts.items()}}


def _learner(task: str, agent: str, nu: float, episodes: int, seed: int) -> Any:
    usual: dict[str, Any] = {"lam": LAM, "sigma": SIGMA} if task == "engine" else {"lam": 1.0, "sigma": 0.1}
    if agent in BONUSES:
        return LSVIUCB(scale=BONUSES[agent], planned=episodes, seed=seed)
    if agent in GUESSED:
        return RLSVI(sigma=GUESSED[agent], seed=seed)
    if agent in EVIDENCE:
        return RLSVI(sigma=ByEvidence(EVIDENCE[agent]), seed=seed)
    if agent == "batch":
        return RLSVI(**usual, seed=seed)
    if agent == "gradient":
        return GradientRLSVI(**usual, seed=seed)
    return IncrementalRLSVI(**usual, nu=nu, keep_prior=agent == "incremental", seed=seed)


def _regret(agent: Any, problem: Problem, episodes: int) -> Floats:
    """What each of some more episodes loses along its path."""
    if not isinstance(agent, GradientRLSVI):
        return simulate(agent, problem, episodes, regret=False).path_regret
    agent.basis = agent.basis or problem.basis
    env = _Losing(problem)
    agent.learn(env, episodes=episodes)
    return np.array(env.lost)


class _Losing(FiniteMDPEnv):
    """A problem as an environment, that writes down what every action loses."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.mdp)
        self.lost: list[float] = []
        self._solution = problem.solution

    def reset(self, **options: Any) -> Any:
        self.lost.append(0.0)
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        found = super().step(action)
        h, s = len(self._actions) - 1, self._path[-2]
        self.lost[-1] += float(self._solution.V[h, s] - self._solution.Q[h, s, int(action)])
        return found


def multiplications(agent: Any, skips: bool = True) -> float:
    """How many the next episode of an agent takes, to leading order, by the sizes of what it has in memory.

    Parameters
    ----------
    skips
        Blocks of weights that no state has touched yet are left out, as they are. False: as if they were
        not.
    """
    learner: Any = agent._learner
    if isinstance(agent, LSVIUCB):
        return float((learner.mind.counts.into > 0).sum())  # probabilities times values
    d, H, A = learner.features.dim, learner.task.horizon, learner.task.actions
    if isinstance(agent, GradientRLSVI):
        # Eight per feature of the transition replayed, one per feature of what follows; a mean over transitions.
        kept = [learner.transitions(h) for h in range(H)]
        touched = [[8 * len(seen.phi.value) + len(seen.following.value) for seen in past] for past in kept]
        return float(agent.updates * sum(np.mean(period) for period in touched if period))
    memory = learner.mind.memory
    blocks = float(memory.lives.sum() if skips else memory.alive.size)
    # Of a plan: two triangles a block, the sums over next states, and the values of known states.
    planning = blocks * d**2 + (float(memory.sums.sum()) + float(memory.states.sum()) * A) * d
    learning = float(2 * H * d**2)  # a rank-one update a step
    if isinstance(agent, IncrementalRLSVI):
        learning += H * A * d  # the values of its states
        if agent.step_sizes(agent.episodes, 1)[0] > 0:  # it forgets: all factors
            learning += blocks * (d**3 / 3 if agent.keep_prior else d**2 / 2)
    return float(planning + learning)


def name_of(agent: str, nu: float) -> str:
    """An agent in a legend."""
    return f"{agent}, ν = {nu:g}" if agent.startswith("incremental") else agent.replace("sigma", "σ")


def times_batch(frame: pl.DataFrame, agent: str, nu: float = 0.0) -> tuple[Interval, Row]:
    """The regret of an agent as a multiple of the batch agent's on the same instances, and a row of a table."""
    theirs, mine = total(frame, agent=agent, nu=nu), having(frame, agent=agent)["seed"].unique()
    more = paired_times(theirs, total(frame.filter(pl.col("seed").is_in(mine.implode())), agent="batch"))
    return more, (name_of(agent, nu), mean_se(theirs), f"{more}")


@claim(
    "The batch version of RLSVI is more data efficient and thus incurs lower regret",
    "appendix F.1",
    on_engine,
    table=HEADINGS,
)
def lower_regret(frame: pl.DataFrame) -> Parts:
    """On the recommendation engine the regret of every incremental version is larger."""
    yield None, ("batch", mean_se(total(frame, agent="batch")), "")
    for agent, nu in INCREMENTAL:
        more, row = times_batch(frame, agent, nu)
        yield at_least(more, 1.0, f"{row[0]} has {row[1]}, {more} times the regret of batch"), row


@claim(
    "The cost an episode of incremental algorithms does not depend on the episode",
    "appendix F.1",
    on_engine,
    table=("multiplications an episode", *WORK.values(), "times"),
)
def same_cost(frame: pl.DataFrame) -> Parts:
    """On the recommendation engine an episode of every incremental version takes at most 1.05 times the
    multiplications after all episodes that it takes after a tenth of them, counted by sizes in memory; fewer are
    carried out while some blocks of weights are untouched.
    """
    for agent, nu in DRAWN:
        mine = having(frame, agent=agent, nu=nu).filter(pl.col("episode") == pl.col("episodes")).sort("seed")
        more = paired_times(mine["work_late"].to_numpy(), mine["work_early"].to_numpy())
        words = f"an episode of {name_of(agent, nu)} takes {more} times the multiplications in the end"
        numbers = (f"{mine[name].to_numpy().mean():.0f}" for name in WORK)
        limit = choice("the same, to a factor of", 1.05, 1.025, 1.1)
        yield at_most(more, limit, words) if agent != "batch" else None, (name_of(agent, nu), *numbers, f"{more}")


@claim(
    "The evidence finds λ and σ from the data, so that they need not be guessed",
    "appendix D",
    on_engine,
    kind="ours",
)
def found_by_evidence(frame: pl.DataFrame) -> Verdict:
    """On the recommendation engine RLSVI with ByEvidence, which begins with λ = 1 and σ = .1, has at most
    1.5 times the regret of tuned λ and σ.
    """
    near, far = EVIDENCE
    more, row = times_batch(frame, near)
    others = [times_batch(frame, agent)[1] for agent in (far, *GUESSED)]
    words = f"it has {row[1]}, {more} times the regret of tuned ones"
    return at_most(more, choice("times the regret,", 1.5, 1.25, 2.0), words)._replace(
        table=(HEADINGS, row, *others)
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative regret, mean and standard error over instances or seeds."""
    figure, (left, right) = panels(2, 4.4)
    for axes, task, agents in ((left, "engine", DRAWN), (right, "chain", ON_CHAIN)):
        for agent, nu in agents:
            index = DRAWN.index((agent, nu)) if (agent, nu) in DRAWN else SPARE[[*BONUSES].index(agent)]
            at, values = learning_curves(frame, task=task, agent=agent, nu=nu)
            line: Any = LINES[index % len(LINES)]
            averaged(axes, at, values, name_of(agent, nu), COLOURS[index % len(COLOURS)], line)
    from_zero([left, right])
    labelled(left, "customers", "cumulative regret", "recommendation engine", key="upper left")
    labelled(right, "episodes", "cumulative regret", f"chain of {CHAIN} states", key="upper left")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Incremental RLSVI",
    where="appendix F.1",
    caption=(
        "Cumulative regret of RLSVI, of its incremental version with step sizes ν (literal: as printed, the "
        "prior is forgotten too) and of stochastic gradients, on the recommendation engine (N = 10, J = 5, λ = "
        ".2, σ² = .001) and on a chain with a table (λ = 1, σ = .1), where LSVI-UCB is shown too. Means and "
        "standard errors over instances or seeds."
    ),
    quick={"episodes": 300, "runs": 1, "chain": 200, "few": 1, "more": 2, "seeds": 5},
    paper={"episodes": 1200, "runs": 3, "chain": 1000, "few": 5, "more": 16, "seeds": 30},
)
