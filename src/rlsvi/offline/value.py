"""`rlsvi.value_of`: what a policy is worth, by a log, without playing it."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box, Discrete, Text
from scipy import stats

from rlsvi.bases import Tabular
from rlsvi.bases.observed import default, of
from rlsvi.core.checks import flag, in_unit_interval, positive, whole
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.core.interval import Interval, check_level
from rlsvi.html import html_table
from rlsvi.offline.fitted import MOST_UNTRIED, Fitted, fit_features, fit_table
from rlsvi.offline.log import refuse
from rlsvi.offline.off_policy import OffPolicyProblem, TargetPolicy
from rlsvi.offline.replay import replay_of
from rlsvi.progress import bar

FITTED, WEIGHTED, ROBUST = "fitted Q evaluation", "weighted importance sampling", "doubly robust"
ROUNDING = 1e-9  # differences that are none, as a share of the numbers
FEW_EPISODES = 100  # episodes below which no spread is no certainty, and importance sampling is not to be trusted
FEWEST_EFFECTIVE = 10.0  # effective episodes that a horizon without an interval should have


def value_of(
    policy: Any,
    log: Any,
    env: Env[Any, Any] | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    gamma: float = 1.0,
    horizon: int | None = None,
    per_period: bool | None = None,
    basis: Any = None,
    ridge: float = 0.1,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> "OfflineValue":
    """Estimate what a policy is worth from a log of episodes of other policies, without playing it.

    What is estimated is the expected sum of gamma^t r_t in an episode of the policy, over its first `horizon`
    steps or until it terminates, from first observations like those of the log. An episode that is truncated in
    the log would have gone on: only the horizon ends it.

    There are up to three estimates: fitted Q evaluation with the interval of its posterior, and, if the log has
    propensities, weighted importance sampling and the doubly robust combination of both. The interval of fitted Q
    evaluation is cut to the returns that are possible: those of up to `horizon` rewards, each between the smallest
    and the largest reward of the log.

    Parameters
    ----------
    policy
        An agent, judged by its posterior mean; anything else with `predict`; or a function of an observation that
        returns an action or the probabilities of all actions, (A,).
    log, env, columns
        As for `Agent.fit`.
    gamma
        The discount, in [0, 1].
    horizon
        The number of steps whose rewards count. If None, that of the environment or of the agent. If these have
        none, all steps count, which needs gamma < 1.
    per_period
        Whether what follows an action depends on the period, so that each period has its own regression. If None,
        this is so if the environment itself states its number of periods, as a finite MDP does, if the policy is
        an agent with periods, or if all episodes of the log terminate at the horizon and none before. A time limit
        is no reason.
    basis
        Features, as for agents. If None, a table for numbered observations and text; otherwise those of
        `bases.of`, over the range of the log.
    ridge
        The precision of the prior of the weights of features, in rows of the log. A table does not use it.
    level
        The probability of the intervals.
    draws
        The number of draws from the posterior of a table.
    seed
        Determines these draws.
    progress
        Show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.

    Raises
    ------
    ValueError, TypeError
        An argument, the log or what the policy returns is wrong; the message names it.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Chain-v0", length=3)
    >>> log = rlsvi.record(env, episodes=1000)  # at random
    >>> value = rlsvi.value_of(lambda observation: 1, log, env)  # always to the right, which is worth 4/9
    >>> value.fitted.low < 4 / 9 < value.fitted.high
    True
    """
    in_unit_interval("gamma", gamma, closed=True)
    check_level(level, "draws", draws, 10**6)
    if horizon is not None:
        whole("horizon", horizon, 1, 10**6)
    replay = replay_of(log, env, columns)
    target = TargetPolicy(policy, replay.action_space)
    periods, own = _periods_of(horizon, replay.env, target, gamma)
    if per_period is None:
        log = replay.log  # time ends episodes that terminate at the horizon, if they come so far, and never before
        timed = log.terminated.any() and np.array_equal(log.terminated, log.period == periods - 1)
        alone = own or target.periods > 0 or bool(timed)
    else:
        alone = flag("per_period", per_period)
    problem = OffPolicyProblem(replay.log, replay.env, target, float(gamma), periods, alone)
    if problem.per_period and not periods:
        raise ValueError("per_period=True needs a horizon: give horizon=")
    if replay.log.propensity is not None:
        name, unknown = (columns or {}).get("propensity", "propensity"), np.isnan(replay.log.propensity)
        refuse(name, replay.log.row, unknown, "there is no value: fill it in, or drop the column")
    ridge, seed, weights = positive("ridge", ridge), whole("seed", seed, 0), None
    estimates: dict[str, Interval] = {}
    absent: dict[str, str] = {}
    table = _has_table(problem, basis)
    goes_on = int((problem.used & ~problem.over).sum())
    asked = draws if table else goes_on * (periods - 1 if problem.periodic else 1)
    work = asked + (0 if replay.log.propensity is None else replay.log.steps)
    with bar(work, "judging", progress) as advance:
        problem = problem._replace(advance=advance)
        if replay.log.propensity is None:
            absent |= dict.fromkeys((WEIGHTED, ROBUST), "the log has no column propensity")
        else:
            weights = episode_weights(problem)
            absent |= _missing_estimates(problem, weights, level)
        robust = ROBUST not in absent
        if table:
            fitted = fit_table(problem, draws, level, np.random.default_rng(seed), robust)
        else:
            chosen = _default_basis(problem) if basis is None else basis
            fitted = fit_features(problem, chosen, ridge, level, robust)
    if fitted.untried > MOST_UNTRIED:
        warnings.warn(
            f"{fitted.untried:.0%} of the policy's actions were never tried in the log, which says little about "
            "what they are worth: judge a policy that is closer to the log",
            stacklevel=2,
        )
    if why := divergence(problem, fitted):
        absent[FITTED] = why
        absent.setdefault(ROBUST, "it needs fitted Q evaluation")
    else:
        estimates[FITTED] = interval_of(problem, fitted)
    if weights is not None:
        if WEIGHTED not in absent:
            nothing = np.zeros(replay.log.episodes)
            estimates[WEIGHTED] = weighted_estimate(weights, replay.log.reward, nothing, level)
        if ROBUST not in absent:
            estimates[ROBUST] = weighted_estimate(weights, fitted.error, fitted.first, level)
        if {WEIGHTED, ROBUST} & set(estimates) and weights.effective < FEW_EPISODES:
            warnings.warn(
                f"importance sampling rests on {weights.effective:.1f} effective episodes of "
                f"{replay.log.episodes}: the policy differs much from the one that made the log. Trust these "
                "intervals less, or take a shorter horizon",
                stacklevel=2,
            )
    absent = {name: absent[name] for name in (FITTED, WEIGHTED, ROBUST) if name in absent}
    counts = replay.log.episodes, replay.log.steps
    effective = None if weights is None else weights.effective
    return OfflineValue(
        estimates, absent, level, float(gamma), periods or None, *counts, effective, fitted.untried
    )


class OfflineValue(NamedTuple):
    """Estimates of the value of a policy, each with its interval, from a log of other policies.

    Attributes
    ----------
    estimates
        The estimates by name.
    absent
        Why an estimate is missing, by name.
    level
        The probability of the intervals.
    gamma
        The discount.
    horizon
        The number of steps whose rewards count; None: all.
    episodes, steps
        What the log consists of.
    effective
        The effective number of episodes of importance sampling; None without propensities.
    untried
        The share of the policy's actions never tried in the same state; with features, never at all.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Chain-v0", length=3)
    >>> value = rlsvi.value_of(lambda observation: 1, rlsvi.record(env, episodes=1000), env)
    >>> list(value.estimates)
    ['fitted Q evaluation', 'weighted importance sampling', 'doubly robust']
    """

    estimates: dict[str, Interval]
    absent: dict[str, str]  # why an estimate is missing
    level: float  # of the intervals
    gamma: float
    horizon: int | None  # the number of steps whose rewards count; None: all
    episodes: int
    steps: int
    effective: float | None  # the effective number of episodes of importance sampling; None without propensities
    untried: float  # the share of the policy's actions never tried in the same state; with features, never at all

    @property
    def fitted(self) -> Interval | None:
        """The value by fitted Q evaluation; None if it has diverged, which only features can."""
        return self.estimates.get(FITTED)

    @property
    def weighted(self) -> Interval | None:
        """The value by weighted importance sampling, if there is one."""
        return self.estimates.get(WEIGHTED)

    @property
    def robust(self) -> Interval | None:
        """The doubly robust value, if there is one."""
        return self.estimates.get(ROBUST)

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values, with None for an end that is not known."""
        estimates = {
            name.replace(" ", "_"): {end: v if np.isfinite(v) else None for end, v in found._asdict().items()}
            for name, found in self.estimates.items()
        }
        absent = {name.replace(" ", "_"): why for name, why in self.absent.items()}
        others = {name: v for name, v in self._asdict().items() if name not in ("estimates", "absent")}
        return {"estimates": estimates, "absent": absent, **others}

    @property
    def meaning(self) -> str:
        """What is estimated, in words."""
        rewards = "rewards" if self.gamma == 1 else f"rewards discounted by {self.gamma:g}"
        steps = "all steps" if self.horizon is None else f"at most {self.horizon} steps"
        return f"expected sum of {rewards} in {steps} of an episode that begins as those of the log"

    @property
    def notes(self) -> list[str]:
        """What is to be kept in mind."""
        found = [f"log: {self.episodes} episodes, {self.steps} steps"]
        if self.effective is not None:
            found.append(f"effective number of episodes: {self.effective:.1f}")
        if self.untried > 0:
            found.append(f"{self.untried:.1%} of the policy's actions were never tried")
        return found

    def rows(self) -> list[tuple[str, str, str]]:
        """Return a line for each estimator: its name, the value, and the interval, or why there is none."""
        found = []
        for name, interval in self.estimates.items():
            value, _, ends = str(interval).partition(" (")
            found.append((name, value, ends.rstrip(")")))
        return found + [(name, "", f"none: {why}") for name, why in self.absent.items()]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}: {interval}" for name, interval in self.estimates.items())
        return f"OfflineValue({values})"

    def __str__(self) -> str:
        header = "", "value", f"{100 * self.level:.4g}% interval"
        lines = [header, *self.rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(2)]
        table = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}".rstrip() for a, b, c in lines]
        return "\n".join([self.meaning, *table, *self.notes])

    def _repr_html_(self) -> str:
        header = "", "value", f"{100 * self.level:.4g}% interval"
        return html_table("Value", self.rows(), header, f"{self.meaning}; {'; '.join(self.notes)}")


def _periods_of(horizon: int | None, env: Any, target: TargetPolicy, gamma: float) -> tuple[int, bool]:
    """Return the number of steps that count, 0 if all do, and whether it is the environment's own."""
    own = getattr(env.unwrapped, "horizon", None)
    limit = getattr(env.spec, "max_episode_steps", None)
    known = [int(n) for n in (horizon, own, limit, target.periods) if n]
    if target.periods and horizon and horizon > target.periods:
        raise ValueError(
            f"horizon is {horizon}, but policy is an agent for {target.periods} periods: leave horizon out"
        )
    if known:
        return min(known[0], target.periods or known[0]), own is not None
    if gamma == 1:
        raise ValueError(
            "the value of episodes without a limit may be infinite: give horizon=, the number of steps that "
            "count, an environment with max_episode_steps, or gamma < 1"
        )
    return 0, False


def _has_table(problem: OffPolicyProblem, basis: Any) -> bool:
    """Return whether fitted Q evaluation has a table, or raise an error if there can be none, or no features."""
    space = problem.env.observation_space
    if isinstance(basis, Tabular) and not isinstance(space, Discrete):
        raise ValueError(f"the tabular basis needs observations that are numbered, not {space}: leave basis out")
    if isinstance(space, Text) and basis is not None:
        raise ValueError("text has no features: leave basis out")
    return isinstance(basis, Tabular) or (basis is None and isinstance(space, Discrete | Text))


def _default_basis(problem: OffPolicyProblem) -> Any:
    """Return the default features, with the range that is observed in the log."""
    log, space = problem.log, problem.env.observation_space
    if not isinstance(space, Box):
        return default(space)
    x = np.concatenate([log.observation.values, log.following.values[~log.terminated]])
    low, high = x.min(axis=0).astype(np.float64), x.max(axis=0).astype(np.float64)
    return of(space, low=low, high=np.where(high > low, high, low + 1))


def interval_of(problem: OffPolicyProblem, fitted: Fitted) -> Interval:
    """Return the value with its interval, cut to what is possible; unknown if it has no width for want of data."""
    little = problem.log.episodes < FEW_EPISODES or fitted.untried > 0
    width = fitted.high - fitted.low
    if width == math.inf or (little and width <= ROUNDING * abs(fitted.value)):
        return Interval(fitted.value, -math.inf, math.inf)
    return Interval(*np.clip(fitted[:3], *problem.possible).tolist())


def divergence(problem: OffPolicyProblem, fitted: Fitted) -> str:
    """Return why fitted values cannot be right, if they lie outside of what the rewards of the log allow."""
    if problem.allows(fitted.value):
        return ""
    low, high = problem.possible
    instead = f"give {fitted.instead}, or " if fitted.instead else "take a shorter horizon, "
    return (
        f"the regression gives {fitted.value:.3g}, but the rewards of the log allow {low:.3g} to {high:.3g}: "
        f"{instead}other features or a larger ridge"
    )


# ---- Importance sampling: the episodes of a log, weighted by how likely the policy makes them ---------------
#
# The weight of an episode after t steps is the product of pi(a|s) / propensity up to there. Weights are divided by
# their sum over all episodes, for each t. An episode that has ended keeps its weight, and receives nothing more.


class EpisodeWeights(NamedTuple):
    """Episodes by steps, up to the horizon."""

    share: Floats  # (E, T) adding up to one for each step; 0 where no episode follows the policy that far
    row: Longs  # (E, T) -1 after the end of an episode
    discount: Floats  # (T,)

    @property
    def effective(self) -> float:
        """The effective number of episodes at the last step that is followed; 0 if none is."""
        last = int(self.followed.sum()) - 1
        return float(1 / np.square(self.share[:, last]).sum()) if last >= 0 else 0.0

    @property
    def followed(self) -> Bools:
        """The steps up to which some episode does what the policy would do."""
        followed: Bools = np.asarray(self.share.any(axis=0))
        return followed

    def up_to(self, steps: int) -> "EpisodeWeights":
        """Return the weights of a shorter horizon."""
        return EpisodeWeights(self.share[:, :steps], self.row[:, :steps], self.discount[:steps])


def rows_by_step(start: Longs, most: int = 0) -> Longs:
    """Return the row of every episode and step, (E, T), -1 after the end of an episode.

    `start` (E + 1,) has the first row of every episode and the number of rows; at most `most` steps count, or all.
    """
    lengths = np.diff(start)
    steps = np.arange(min(lengths.max(), most or lengths.max()))
    return np.where(steps < lengths[:, None], start[:-1, None] + steps, -1)


def by_step(row: Longs, numbers: Floats) -> Floats:
    """Return numbers of rows, (N, ..), by episode and step, (E, T, ..), 0 after the end."""
    over = np.expand_dims(row < 0, tuple(range(2, numbers.ndim + 1)))
    return np.where(over, 0.0, numbers[row])


def episode_weights(problem: OffPolicyProblem) -> EpisodeWeights:
    """Return the weights of all episodes, after asking for the policy in every row up to the horizon."""
    log = problem.log
    assert log.propensity is not None
    row = rows_by_step(log.start, problem.horizon)
    T, ratio = row.shape[1], np.ones(log.steps)
    for first, last in zip(log.start[:-1].tolist(), log.start[1:].tolist(), strict=True):
        for i in range(first, min(last, first + T)):
            ratio[i] = problem.policy_at(i, i - first)[log.action[i]] / log.propensity[i]
            if not ratio[i]:  # all later steps of the episode have no weight either
                break
        problem.advance(last - first)
    with np.errstate(divide="ignore"):
        logs = np.cumsum(by_step(row, np.log(ratio)), axis=1)
    top = logs.max(axis=0)
    share = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = share.sum(axis=0)
    return EpisodeWeights(
        share / np.where(total > 0, total, 1.0), row, np.power(problem.gamma, np.arange(T), dtype=np.float64)
    )


def weighted_estimate(weights: EpisodeWeights, numbers: Floats, first: Floats, level: float) -> Interval:
    """Return the mean of `first` (E,) plus the weighted sum of numbers of rows (N,), with an interval.

    The interval is unknown for fewer than two effective episodes, and for a few that are all alike.
    """
    table = by_step(weights.row, numbers) * weights.discount
    value, parts = weighted_sum(weights.share, weights.share * table, first)
    size = float(np.abs(first).max() + np.abs(table).max(axis=0).sum())
    freedom = weights.effective - 1
    if freedom < 1 or (freedom < FEW_EPISODES and np.abs(parts).max() <= ROUNDING * size):
        return Interval(value, -np.inf, np.inf)
    return student_interval(value, parts, weights.effective, level)


def weighted_sum(share: Floats, terms: Floats, first: Floats) -> tuple[float, Floats]:
    """Return the mean of `first` (E,) plus the sum of weighted terms, and what each episode adds to its error.

    The estimate is linearised in the episodes: the sum of the squares of what they add is its variance.
    `share` (E, T) are weights that add up to one for each step; `terms` (E, T) are numbers times these weights.
    """
    means = terms.sum(axis=0)
    parts = (first - first.mean()) / len(first) + (terms - share * means).sum(axis=1)
    return float(first.mean() + means.sum()), parts


def student_interval(value: float, parts: Floats, effective: float, level: float) -> Interval:
    """Return a value with Student's interval, by what episodes add to its error and their effective number."""
    if effective <= 1:
        return Interval(value, -np.inf, np.inf)
    spread = np.sqrt(np.square(parts).sum() * effective / (effective - 1))
    half = float(stats.t.ppf((1 + level) / 2, effective - 1) * spread)
    return Interval(value, value - half, value + half)


def _missing_estimates(problem: OffPolicyProblem, weights: EpisodeWeights, level: float) -> dict[str, str]:
    """Return why estimates that need propensities can say nothing, and what would give an answer."""
    log, reached, steps = problem.log, int(weights.followed.sum()), weights.share.shape[1]
    lengths = np.diff(log.start)
    cut = ~log.terminated[log.start[1:] - 1] & (lengths < (problem.horizon or math.inf))
    if cut.any():
        shortest = int(lengths[cut].min())
        why = (
            f"{int(cut.sum())} of {log.episodes} episodes are cut off before their return is known, the shortest "
            f"after {shortest} steps: {_remedy(weights.up_to(shortest), log.reward, level)}"
        )
        return {WEIGHTED: why, ROBUST: why}
    if reached == steps:
        return {}
    instead = _remedy(weights, log.reward, level)
    why = f"no episode does what the policy would do for more than {reached} steps: {instead}"
    if not reached:
        return {WEIGHTED: why, ROBUST: f"no episode begins with an action of the policy: {instead}"}
    if weights.effective < 2:
        return {WEIGHTED: why, ROBUST: why}
    return {WEIGHTED: why}


def _remedy(weights: EpisodeWeights, reward: Floats, level: float) -> str:
    """Return the longest horizon, up to that of the weights, with which importance sampling has an answer."""
    nothing = np.zeros(len(weights.share))
    for known in (True, False):
        for steps in reversed(range(1, int(weights.followed.sum()) + 1)):
            shorter = weights.up_to(steps)
            if shorter.effective < (2 if known else FEWEST_EFFECTIVE):
                continue
            if not known:
                return f"give horizon={steps}, for a value without an interval, or a log of more episodes"
            if np.isfinite(weighted_estimate(shorter, reward, nothing, level)).all():
                return f"give horizon={steps}"
    return "judge a policy that is closer to the log, or by a log of more episodes"
