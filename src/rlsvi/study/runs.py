"""The results of a comparison: a table of episodes, a summary, and a figure."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlsvi.core.checks import number, shown
from rlsvi.core.compile import Floats
from rlsvi.html import html_table
from rlsvi.simulate.finite import History

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from rlsvi.study.statistics import Interval


COLUMNS = "agent", "regret", "95% interval", "left", "learned", "after"
CAPTION = (
    "Expected regret of all episodes, median over the seeds and its 95% bootstrap interval; the share of random "
    "play's regret that is left in the last tenth of the episodes; how many seeds got that below 5% for good, and "
    "after how many episodes."
)
RETURN_COLUMNS = "agent", "return", "95% interval", "last tenth"
RETURN_CAPTION = (
    "Mean return of all episodes, median over the seeds and its 95% bootstrap interval; the mean return of the "
    "last tenth of the episodes. There is no regret, as the solution of the problem is not known."
)
REGRET = "regret", "regret_low", "regret_high", "regret_iqm", "regret_left"
MAYBE = (*REGRET, "after", "return_low", "return_high")  # columns of the summary that may be null
FUSED, STEPPED = "fused", "stepped"


class Run(NamedTuple):
    """One run.

    Parameters
    ----------
    history
        The results of each episode.
    random_regret
        The regret per episode of random play; NaN if the solution of the problem is not known.
    loop
        "fused" if a compiled loop computed it, "stepped" if the agent was stepped through an environment.
    """

    history: History
    random_regret: float
    loop: str = FUSED

    def learned(self, share: float = 0.05, window: int = 100) -> float:
        """Return the episodes until the regret stays at most `share` of random play's; infinite if it never does.

        The regret is that of `window` consecutive episodes, or of a tenth of the run if it is short, and it must
        stay low in every later window.
        """
        regret = self.history.regret
        width = max(min(window, len(regret) // 10), 1)
        sums = np.cumsum(np.concatenate([[0.0], regret]))
        worse = np.flatnonzero((sums[width:] - sums[:-width]) / width > share * self.random_regret)
        after = worse[-1] + 1 if len(worse) else 0
        return float(after) if after <= len(regret) - width else np.inf


@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """The runs of several agents on one problem, one per seed, as `rlsvi.compare` returns them.

    Parameters
    ----------
    problem
        The name of the problem.
    agents
        The names of the agents.
    seeds
        The seeds.
    runs
        The runs by agent and seed.

    Examples
    --------
    >>> import rlsvi
    >>> runs = rlsvi.compare({"RLSVI": rlsvi.RLSVI()}, rlsvi.problems.chain(5), episodes=50, seeds=3)
    >>> runs
    Runs(chain of length 5, 50 episodes, 3 seeds: RLSVI)
    >>> runs.frame.shape
    (150, 6)
    """

    problem: str
    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: Mapping[tuple[str, int], Run]

    @property
    def episodes(self) -> int:
        """The number of episodes per run."""
        return len(next(iter(self.runs.values())).history.reward)

    @property
    def exact(self) -> bool:
        """Whether regret is known, since the solution of the problem is."""
        return not any(np.isnan(run.random_regret) for run in self.runs.values())

    @property
    def loops(self) -> dict[str, str]:
        """The loop that computed the runs of each agent: "fused", "stepped" or, for different problems, both.

        The regret of an episode is that of its policy in the fused loop, `V*_0(s_0) - V^mu_0(s_0)`, and that of
        its actions if the agent was stepped, the sum of `V*_h(s_h) - Q*_h(s_h, a_h)`. The expectations are the
        same.
        """
        return {agent: " and ".join(sorted({run.loop for run in self.of(agent)})) for agent in self.agents}

    def __repr__(self) -> str:
        return f"Runs({self.title}: {', '.join(self.agents)})"

    def __str__(self) -> str:
        """The table that `rlsvi compare` prints."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", box=SIMPLE_HEAD)
        table.caption, table.caption_justify = self.caption, "left"
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="right" if i else "left", no_wrap=True)
        for cells in self.cells():
            table.add_row(*cells)
        width = max(Console().width, Console(width=10_000).measure(table).maximum)  # no column is left out
        console = Console(color_system=None, width=width)  # with lines that stdout can encode
        with console.capture() as text:
            console.print(table)
        return "\n".join(line.rstrip() for line in text.get().splitlines()).strip("\n")

    def _repr_html_(self) -> str:
        return html_table(self.title, self.cells(), self.columns, self.caption)

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of `cells`."""
        return COLUMNS if self.exact else RETURN_COLUMNS

    @property
    def caption(self) -> str:
        """What the columns mean, and which agents were stepped."""
        slow = [agent for agent, loop in self.loops.items() if loop != FUSED]
        regret = ", so that regret is that of the actions taken" if self.exact else ""
        stepped = f" Stepped through the environment{regret}: {', '.join(slow)}." if slow else ""
        return (CAPTION if self.exact else RETURN_CAPTION) + stepped

    @property
    def title(self) -> str:
        """The problem, the number of episodes and the number of seeds."""
        many = len(self.seeds)
        return f"{self.problem}, {self.episodes} episodes, {many} seed{'s' * (many > 1)}"

    def of(self, agent: str) -> list[Run]:
        """Return the runs of an agent, in the order of the seeds.

        Parameters
        ----------
        agent
            The name of the agent.
        """
        if not isinstance(agent, str) or agent not in self.agents:
            raise ValueError(f"there is no agent {shown(agent)}: there are {', '.join(self.agents)}")
        return [self.runs[agent, seed] for seed in self.seeds]

    @cached_property
    def frame(self) -> "pl.DataFrame":
        """Return one row per episode: agent, seed, episode, reward, regret (expected), realised (regret).

        If the solution of the problem is not known, both regrets are null.
        """
        import polars as pl

        episode = np.arange(self.episodes)
        return pl.concat(
            pl.DataFrame(
                {
                    "agent": pl.repeat(agent, self.episodes, eager=True),
                    "seed": pl.repeat(seed, self.episodes, dtype=pl.Int64, eager=True),
                    "episode": episode,
                    "reward": run.history.reward,
                    "regret": pl.Series(run.history.regret, nan_to_null=not self.exact),
                    "realised": pl.Series(run.history.realised, nan_to_null=not self.exact),
                }
            )
            for (agent, seed), run in self.runs.items()
        )

    def cumulative(self, agent: str) -> Floats:
        """Return the expected regret up to each episode, (seeds, episodes).

        Parameters
        ----------
        agent
            The name of the agent.
        """
        self._check_exact()
        return np.stack([np.cumsum(run.history.regret) for run in self.of(agent)])

    def total_regret(self, agent: str) -> Floats:
        """Return the total expected regret of all episodes, (seeds,).

        Parameters
        ----------
        agent
            The name of the agent.
        """
        self._check_exact()
        return np.array([run.history.regret.sum() for run in self.of(agent)])

    def _check_exact(self) -> None:
        if not self.exact:
            raise ValueError(f"regret is not known, as {self.problem} is not solved: use total_return or frame")

    def total_return(self, agent: str) -> Floats:
        """Return the sum of the returns of all episodes, (seeds,).

        Parameters
        ----------
        agent
            The name of the agent.
        """
        return np.array([run.history.reward.sum() for run in self.of(agent)])

    def improvement(self, agent: str, over: str) -> "Interval":
        """Return the probability that a run of `agent` has less regret than one of `over`; ties count half.

        If regret is not known: that it has a higher return.

        Parameters
        ----------
        agent, over
            The names of the two agents.
        """
        from rlsvi.study.statistics import probability_of_improvement

        if not isinstance(over, str) or over not in self.agents:
            raise ValueError(f"over must be one of the agents {', '.join(self.agents)}, got {shown(over)}")
        if self.exact:
            return probability_of_improvement(self.total_regret(agent), self.total_regret(over))
        return probability_of_improvement(-self.total_return(agent), -self.total_return(over))

    def learning_times(self, agent: str, rewards: float = 10.0) -> Floats:
        """Return the episodes until the rewards sum to `rewards`, (seeds,); infinite if they never do.

        On the chain, whose rewards are 0 or 1, this is the paper's proxy of the learning time.

        Parameters
        ----------
        agent
            The name of the agent.
        rewards
            The sum of rewards to wait for.
        """
        totals = np.stack([np.cumsum(run.history.reward) for run in self.of(agent)])
        reached = totals >= number("rewards", rewards)
        return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)

    def summary(self) -> "pl.DataFrame":
        """Return one row per agent, with medians over the seeds.

        The columns are

        - `regret`, `regret_low`, `regret_high`: total expected regret of all episodes, and the 95% bootstrap
          interval of its median; null with a single seed, which gives no bounds.
        - `regret_iqm`: the mean of the middle half of the seeds.
        - `regret_left`: expected regret per episode over the last tenth, as a fraction of that of random play.
        - `reward`: total reward of all episodes.
        - `learned`: number of seeds that learned, meaning that the regret from some episode on stays on average at
          most 5% of that of random play.
        - `after`: the episodes this took, null if half of them or more did not.
        - `mean_return`, `return_low`, `return_high`: the mean return of all episodes, and the interval of its
          median.
        - `return_last`: the mean return of the last tenth.
        - `loop`: the loop that computed its runs, see `loops`.

        If the solution of the problem is not known, all columns about regret and learning are null.
        """
        import polars as pl

        maybe: dict[str, Any] = dict.fromkeys(MAYBE, pl.Float64) | {"learned": pl.Int64}
        return pl.DataFrame([self._row(agent) for agent in self.agents], schema_overrides=maybe)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the summary as text, one row per agent, with the columns `columns`."""

        def interval(low: float | None, high: float | None, form: str) -> str:
            return "-" if low is None else f"{low:{form}} to {high:{form}}"

        rows = self.summary().to_dicts()
        if not self.exact:
            return [
                (
                    row["agent"],
                    f"{row['mean_return']:.4g}",
                    interval(row["return_low"], row["return_high"], ".4g"),
                    f"{row['return_last']:.4g}",
                )
                for row in rows
            ]
        return [
            (
                row["agent"],
                f"{row['regret']:.1f}",
                interval(row["regret_low"], row["regret_high"], ".1f"),
                f"{row['regret_left']:.1%}",
                f"{row['learned']}/{row['seeds']}",
                "never" if row["after"] is None else f"{row['after']:.0f}",
            )
            for row in rows
        ]

    def _row(self, agent: str) -> dict[str, Any]:
        from rlsvi.study.statistics import bootstrap, iqm, median

        runs, last = self.of(agent), max(self.episodes // 10, 1)
        rewards = np.stack([run.history.reward for run in runs])
        returns = bootstrap(median, rewards.mean(axis=1))
        row: dict[str, Any] = {"agent": agent, "seeds": len(self.seeds), **dict.fromkeys(REGRET)}
        row |= {"reward": median(rewards.sum(axis=1)), "learned": None, "after": None}
        if self.exact:
            total, times = self.total_regret(agent), [run.learned() for run in runs]
            regret, after = bootstrap(median, total), median(times)
            left = [run.history.regret[-last:].mean() / (run.random_regret or 1.0) for run in runs]
            ends = (regret.low, regret.high) if regret.bounded else (None, None)
            row |= zip(REGRET, (regret.value, *ends, iqm(total), median(left)), strict=True)
            row |= {"learned": int(np.isfinite(times).sum()), "after": after if np.isfinite(after) else None}
        low, high = (returns.low, returns.high) if returns.bounded else (None, None)
        row |= {"mean_return": returns.value, "return_low": low, "return_high": high}
        return row | {"return_last": median(rewards[:, -last:].mean(axis=1)), "loop": self.loops[agent]}

    def plot(self, path: str | os.PathLike[str] | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the cumulative expected regret of every run, with the median and its bootstrap band.

        If regret is not known, the mean returns of each tenth of the episodes are drawn instead. The run of the
        seed that has the most regret, or the least return, of all episodes is dotted, and the legend names it.

        Parameters
        ----------
        path
            A file to save the figure to, if any; its suffix determines the format.
        ax
            Matplotlib axes to draw on. If None, those of a new figure, which a notebook shows.

        Returns
        -------
        Axes
            The axes; their figure is `axes.figure`.
        """
        from rlsvi.axes import axes_for
        from rlsvi.study.plot import draw_regret, draw_returns

        with axes_for(path, ax) as axes:
            (draw_regret if self.exact else draw_returns)(self, axes)
        return axes
