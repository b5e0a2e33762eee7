"""`rlsvi.value_of`: what a policy is worth, by a log, without playing it."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box, Discrete, Text

from rlsvi.bases import Tabular
from rlsvi.bases.observed import default, of
from rlsvi.core.checks import flag, in_unit_interval, positive, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.offline.columns import refuse
from rlsvi.offline.episodes import LoggedEpisodes
from rlsvi.offline.linear import fitted_linear
from rlsvi.offline.question import FEW, MOST, ROUNDING, Fitted, Question, step_of
from rlsvi.offline.reading import replay_of
from rlsvi.offline.result import FITTED, ROBUST, WEIGHTED, OfflineValue
from rlsvi.offline.table import fitted_table
from rlsvi.offline.target import Target
from rlsvi.offline.weighting import SOME, EpisodeWeights, weighted, weights_of
from rlsvi.progress import bar
from rlsvi.study.statistics import Interval, check_bootstrap


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
) -> OfflineValue:
    """Estimate what a policy is worth from a log of episodes of other policies, without playing it.

    What is estimated is the expected sum of gamma^t r_t in an episode of the policy, over its first `horizon`
    steps or until it terminates, from first observations like those of the log. An episode that is truncated in
    the log would have gone on: only the horizon ends it.

    There are up to three estimates: fitted Q evaluation with the interval of its posterior, and, if the log has
    propensities, weighted importance sampling and the doubly robust combination of both.

    Parameters
    ----------
    policy : an agent, judged by its posterior mean; anything else with `predict`; or a function of an observation
        that returns an action or the probabilities of all actions, (A,).
    log, env, columns : as for `Agent.fit`.
    gamma : the discount, in [0, 1].
    horizon : the number of steps whose rewards count. If None, that of the environment or of the agent. If these
        have none, all steps count, which needs gamma < 1.
    per_period : whether what follows an action depends on the period, so that each period has its own regression.
        If None, this is so if the environment itself states its number of periods, as a finite MDP does, if the
        policy is an agent with periods, or if all episodes of the log terminate at the horizon and none before. A
        time limit is no reason.
    basis : features, as for agents. If None, a table for numbered observations and text; otherwise those of
        `bases.of`, over the range of the log.
    ridge : the precision of the prior of the weights of features, in rows of the log. A table does not use it.
    level : the probability of the intervals.
    draws : the number of draws from the posterior of a table.
    seed : determines these draws.
    progress : show a bar on stderr. If None, only on a terminal or in a notebook, after two seconds.

    Raises
    ------
    ValueError, TypeError : an argument, the log or what the policy returns is wrong; the message names it.
    """
    checks(gamma, level, draws, horizon)
    replay = replay_of(log, env, columns)
    target = Target(policy, replay.action_space)  # type: ignore[arg-type]
    periods, own = periods_of(horizon, replay.env, target, gamma)
    if per_period is None:
        alone = own or target.periods > 0 or ends_at(replay.log, periods)
    else:
        alone = flag("per_period", per_period)
    question = Question(replay.log, replay.env, target, float(gamma), periods, alone)
    if question.per_period and not periods:
        raise ValueError("per_period=True needs a horizon: give horizon=")
    _check_propensities(question, columns)
    ridge, seed, weights = positive("ridge", ridge), whole("seed", seed, 0), None
    estimates: dict[str, Interval] = {}
    absent: dict[str, str] = {}
    table = has_table(question, basis)
    goes_on = int((question.used & ~question.over).sum())
    asked = draws if table else goes_on * (periods - 1 if question.periodic else 1)
    work = asked + (0 if replay.log.propensity is None else replay.log.steps)
    with bar(work, "judging", progress) as advance:
        question = question._replace(advance=advance)
        if replay.log.propensity is None:
            absent |= dict.fromkeys((WEIGHTED, ROBUST), "the log has no column propensity")
        else:
            weights = weights_of(question)
            absent |= hopeless(question, weights, level)
        robust = ROBUST not in absent
        if table:
            fitted = fitted_table(question, draws, level, np.random.default_rng(seed), robust)
        else:
            chosen = _observed(question) if basis is None else basis
            fitted = fitted_linear(question, chosen, ridge, level, robust)
    if fitted.untried > MOST:
        warnings.warn(
            f"{fitted.untried:.0%} of the policy's actions were never tried in the log, which says little about "
            "what they are worth: judge a policy that is closer to the log",
            stacklevel=2,
        )
    if why := diverged(question, fitted):
        absent[FITTED] = why
        absent.setdefault(ROBUST, "it needs fitted Q evaluation")
    else:
        estimates[FITTED] = interval_of(fitted, replay.log.episodes)
    if weights is not None:
        _add_weighted(question, weights, fitted, level, estimates, absent)
    absent = {name: absent[name] for name in (FITTED, WEIGHTED, ROBUST) if name in absent}
    counts = replay.log.episodes, replay.log.steps
    effective = None if weights is None else weights.effective
    return OfflineValue(
        estimates, absent, level, float(gamma), periods or None, *counts, effective, fitted.untried
    )


def checks(gamma: Any, level: Any, draws: Any, horizon: Any) -> None:
    """Raise an error that names the first argument that is wrong."""
    in_unit_interval("gamma", gamma, closed=True)
    if isinstance(level, bool) or not isinstance(level, int | float | np.integer | np.floating):
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, got {shown(level)}")
    whole("draws", draws, 1, 10**6)
    try:
        check_bootstrap(draws, float(level))
    except ValueError as error:
        raise ValueError(str(error).replace("resamples", "draws")) from None
    if horizon is not None:
        whole("horizon", horizon, 1, 10**6)


def periods_of(horizon: int | None, env: Any, target: Target, gamma: float) -> tuple[int, bool]:
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


def ends_at(log: LoggedEpisodes, horizon: int) -> bool:
    """Return whether episodes terminate at the horizon, if they come so far, and never before: time ends them."""
    step = step_of(log)
    return bool(log.terminated.any() and np.array_equal(log.terminated, step == horizon - 1))


def _check_propensities(question: Question, columns: Mapping[str, Any] | None) -> None:
    log = question.log
    if log.propensity is not None:
        name = (columns or {}).get("propensity", "propensity")
        refuse(name, log.row, np.isnan(log.propensity), "there is no value: fill it in, or drop the column")


def has_table(question: Question, basis: Any) -> bool:
    """Return whether fitted Q evaluation has a table, or raise an error if there can be none, or no features."""
    space = question.env.observation_space
    if isinstance(basis, Tabular) and not isinstance(space, Discrete):
        raise ValueError(f"the tabular basis needs observations that are numbered, not {space}: leave basis out")
    if isinstance(space, Text) and basis is not None:
        raise ValueError("text has no features: leave basis out")
    return isinstance(basis, Tabular) or (basis is None and isinstance(space, Discrete | Text))


def _observed(question: Question) -> Any:
    """Return the default features, with the range that is observed in the log."""
    log, space = question.log, question.env.observation_space
    if not isinstance(space, Box):
        return default(space)
    x = np.concatenate([log.observation.values, log.following.values[~log.terminated]])
    low, high = x.min(axis=0).astype(np.float64), x.max(axis=0).astype(np.float64)
    return of(space, low=low, high=np.where(high > low, high, low + 1))


def interval_of(fitted: Fitted, episodes: int) -> Interval:
    """Return the value with its interval, which is unknown where it has no width for want of data."""
    little = episodes < FEW or fitted.untried > 0
    if little and fitted.high - fitted.low <= ROUNDING * abs(fitted.value):
        return Interval(fitted.value, -math.inf, math.inf)
    return Interval(fitted.value, fitted.low, fitted.high)


def diverged(question: Question, fitted: Fitted) -> str:
    """Return why fitted values cannot be right, if they lie outside of what the rewards of the log allow."""
    if question.allows(fitted.value):
        return ""
    low, high = question.possible
    instead = f"give {fitted.instead}, or " if fitted.instead else "take a shorter horizon, "
    return (
        f"the regression gives {fitted.value:.3g}, but the rewards of the log allow {low:.3g} to {high:.3g}: "
        f"{instead}other features or a larger ridge"
    )


def hopeless(question: Question, weights: EpisodeWeights, level: float) -> dict[str, str]:
    """Return why estimates that need propensities can say nothing, and what would give an answer."""
    log, reached, steps = question.log, int(weights.followed.sum()), weights.share.shape[1]
    lengths = np.diff(log.start)
    cut = ~log.terminated[log.start[1:] - 1] & (lengths < (question.horizon or math.inf))
    if cut.any():
        shortest = int(lengths[cut].min())
        why = (
            f"{int(cut.sum())} of {log.episodes} episodes are cut off before their return is known, the shortest "
            f"after {shortest} steps: {remedy(weights.up_to(shortest), log.reward, level)}"
        )
        return {WEIGHTED: why, ROBUST: why}
    if reached == steps:
        return {}
    instead = remedy(weights, log.reward, level)
    why = f"no episode does what the policy would do for more than {reached} steps: {instead}"
    if not reached:
        return {WEIGHTED: why, ROBUST: f"no episode begins with an action of the policy: {instead}"}
    if weights.effective < 2:
        return {WEIGHTED: why, ROBUST: why}
    return {WEIGHTED: why}


def remedy(weights: EpisodeWeights, reward: Floats, level: float) -> str:
    """Return the longest horizon, up to that of the weights, with which importance sampling has an answer."""
    nothing = np.zeros(len(weights.share))
    for known in (True, False):
        for steps in reversed(range(1, int(weights.followed.sum()) + 1)):
            shorter = weights.up_to(steps)
            if shorter.effective < (2 if known else SOME):
                continue
            if not known:
                return f"give horizon={steps}, for a value without an interval, or a log of more episodes"
            if np.isfinite(weighted(shorter, reward, nothing, level)).all():
                return f"give horizon={steps}"
    return "judge a policy that is closer to the log, or by a log of more episodes"


def _add_weighted(
    question: Question,
    weights: EpisodeWeights,
    fitted: Fitted,
    level: float,
    found: dict[str, Interval],
    absent: dict[str, str],
) -> None:
    """Add the estimates that need propensities, unless it is known why one is missing."""
    log = question.log
    if WEIGHTED not in absent:
        found[WEIGHTED] = Interval(*weighted(weights, log.reward, np.zeros(log.episodes), level))
    if ROBUST not in absent:
        found[ROBUST] = Interval(*weighted(weights, fitted.error, fitted.first, level))
    if {WEIGHTED, ROBUST} & set(found) and weights.effective < FEW:
        warnings.warn(
            f"importance sampling rests on {weights.effective:.1f} effective episodes of {log.episodes}: the "
            "policy differs much from the one that made the log. Trust these intervals less, or take a shorter "
            "horizon",
            stacklevel=3,
        )
