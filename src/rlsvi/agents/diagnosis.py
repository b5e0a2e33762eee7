"""Whether an agent learns: warnings of a run that earns no more than random play, and `diagnose`.

The first episodes are played almost at random. After 32, 64, 128, .. episodes the returns of the last quarter of
all episodes are compared with the worst quarter of the first eight. Less than these is said at once. From 64 on it
is also said that recent ones earn no more, if exploration has come to an end. With features, it is said if the
last quarter has lost half of what the best one before had gained, and three standard errors. Plans often end
before values have converged to the last digit; they are only spoken of if they end far from it, again and again.

Where every reward was a cost, an agent that does nothing earns 0 and seems to have learned. Sixteen or more
returns of exactly 0 after costs, with no reward above 0 in all steps, are therefore said too: nothing more can be
earned, or a prize was not found. Other equal returns may be the best there are, such as -13 on CliffWalking. A
table does not say it, because it tries all actions.

As long as exploration finds something new, a reward may yet be found, however long there was none. With a table,
Turing's estimate is that the next step shows something new with probability (outcomes met once) / (steps), so that
the next episode shows (outcomes met once) / (episodes) new outcomes. Below 1/16 of one, the search has ended.
Where outcomes are random, new ones come for ever. If the first returns differ, so that something is earned at
random, the mean of recent returns is then compared with that of the first from 128 episodes on, whatever is new.
With features, the search has ended if the later half of the episodes did not widen the range of any observed
number by a tenth.
Agents that do not keep what this needs say it after 1,024 episodes, or 10,000 steps without end, with no reward.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.html import html_table

FIRST_EPISODES = 8  # episodes that count as random
CHECKED_FROM, STUCK_FROM, RANDOM_FROM = 32, 64, 128  # episodes; the last where outcomes are random
IDLE_EPISODES = 16  # episodes with a return of 0, at least, of an agent that does nothing
UNREWARDED, UNREWARDED_STEPS = 1024, 10_000  # that call for a warning, if it is not known what was explored
STEPS_PER_ACTION = 10  # steps for each action, on average, before returns tell anything
UNSETTLED = 32  # plans in a row that ended far from convergence
UNSETTLED_CHANGE = 0.1  # change of values in the last sweep, relative to their size
SELDOM_NEW = 1 / 16  # new outcomes in an episode
WIDER_RANGE = 0.1  # of the range of an observed number


class NoProgressWarning(UserWarning):
    """Recent episodes earn no more than the first ones, or much less than earlier ones, or there is no reward.

    Examples
    --------
    If you know that rewards are rare, and do not want to be told:

    >>> import warnings, rlsvi
    >>> warnings.simplefilter("ignore", rlsvi.NoProgressWarning)
    """


def is_checked(episodes: int) -> bool:
    """Return whether progress is checked after this many episodes."""
    return episodes >= CHECKED_FROM and episodes & (episodes - 1) == 0


def nothing_earned() -> Floats:
    """Return what `earned` begins with: the returns of the first episodes, and the sum of recent ones."""
    return np.zeros(FIRST_EPISODES + 1)


def earned(before: Floats, episodes: int, total: float) -> Floats:
    """Return the summary with one more return. The sum is that of the last quarter when progress is checked."""
    after = before.copy()
    if episodes <= FIRST_EPISODES:
        after[episodes - 1] = total
    begins = episodes % 3 == 0 and is_checked(episodes // 3 * 4)
    after[FIRST_EPISODES] = 0.0 if begins else after[FIRST_EPISODES] + total
    return after


def lack_of_progress(first: Floats, recent: Floats | float, episodes: int, explored: bool) -> str:
    """Return what is wrong with the returns of recent episodes, or nothing.

    Parameters
    ----------
    first
        The returns of the first episodes.
    recent
        Those of recent ones, or their mean.
    """
    usual, typical, mean = float(np.quantile(first, 0.25)), float(np.median(recent)), float(np.mean(recent))
    begin = f"after {episodes} episodes, the recent ones earn"
    if typical < usual - 1e-9 * abs(usual):
        return (
            f"{begin} {typical:.4g}, where most of the first {FIRST_EPISODES}, played almost at random, earned "
            f"more than {usual:.4g}"
        )
    if explored and episodes >= STUCK_FROM and mean <= usual + 1e-9 * abs(usual):
        return (
            f"{begin} {mean:.4g}, no more than most of the first {FIRST_EPISODES}, played almost at random, and "
            "exploration finds nothing new any more"
        )
    return ""


def lack_of_progress_at_random(first: Floats, recent: float, episodes: int) -> str:
    """Return what is wrong with the mean return of recent episodes where outcomes are random, or nothing.

    If all of the first returns are equal, such as 0, a reward has to be found before anything can be earned.
    """
    usual = float(np.mean(first))
    if episodes < RANDOM_FROM or np.ptp(first) == 0 or recent > usual + 1e-9 * abs(usual):
        return ""
    return (
        f"after {episodes} episodes, the recent ones earn {recent:.4g} on average, no more than the {usual:.4g} "
        f"of the first {FIRST_EPISODES}, played almost at random"
    )


def fallen(returns: Floats) -> str:
    """Return that most of what an earlier quarter of the episodes had gained is lost beyond noise, or nothing."""
    *earlier, last = np.array_split(returns, 4)
    best = max(earlier, key=np.mean)
    said = f"after {len(returns)} episodes, the recent ones earn {last.mean():.4g} on average, where earlier ones "
    return f"{said}earned {best.mean():.4g}" if is_lost(returns[:FIRST_EPISODES], best, last, 3.0) else ""


def is_lost(first: Floats, before: Floats, after: Floats, errors: float) -> bool:
    """Return whether returns fell by half of the gain over the first ones, and by so many standard errors."""
    error = np.sqrt(before.var(ddof=1) / len(before) + after.var(ddof=1) / len(after))
    usual = before.mean()
    least = max(errors * error, (usual - first.mean()) / 2, 1e-9 * abs(usual))
    return bool(usual - after.mean() > least)


def avoids_costs(returns: Floats) -> bool:
    """Return whether the last returns are all 0 and earlier ones were costs, so that the agent may do nothing."""
    recent = returns[-max(IDLE_EPISODES, len(returns) // 4) :]
    return bool(len(returns) > IDLE_EPISODES and not recent.any() and returns.min() < 0 and returns.max() <= 0)


def is_explored(times: Floats, episodes: int) -> bool:
    """Return whether hardly any new outcome is to be expected, given how many times each was met."""
    return bool(np.count_nonzero(times == 1.0) < SELDOM_NEW * episodes)


def is_no_wider(x: Floats, before: int) -> bool:
    """Return whether the rows of `x` from `before` on have hardly widened the range of any number."""
    low, high = x[:before].min(axis=0), x[:before].max(axis=0)
    margin = WIDER_RANGE * (high - low)
    return bool((x.min(axis=0) >= low - margin).all() and (x.max(axis=0) <= high + margin).all())


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The state of an agent in words: `print` shows all of it, and notebooks show a table."""

    title: str
    facts: dict[str, str]  # what was looked at, and what was found
    advice: str

    def __str__(self) -> str:
        width = max(map(len, self.facts), default=0)
        lines = [f"  {name:<{width}}  {text}" for name, text in self.facts.items()]
        return "\n".join([self.title, *lines, f"Advice: {self.advice}"])

    def __repr__(self) -> str:
        return f"Diagnosis({self.advice!r})"

    def _repr_html_(self) -> str:
        return html_table(self.title, [*self.facts.items(), ("advice", self.advice)])


def diagnosis_of(agent: Any) -> Diagnosis:
    """Return what to look at if an agent does not learn, with one sentence of advice."""
    facts, returns = {}, agent._returns()
    if known := len(returns):
        first, last = returns[:FIRST_EPISODES], recent(returns)
        since = "" if known == agent.episodes else f", in the last {known} episodes, the only ones known here"
        facts["returns"] = (
            f"{first.mean():.4g} in the first {len(first)}, {last.mean():.4g} in the last {len(last)}, at best "
            f"{returns.max():.4g}{since}"
        )
    title = f"{type(agent).__name__} after {agent.episodes} episodes, {agent.steps} steps"
    return Diagnosis(title, facts | (agent._facts() if agent.steps else {}), agent._advise())


def advice(agent: Any) -> str:
    """Return one sentence on what to do next."""
    returns = agent._returns()
    if agent.steps == 0:
        return "it has learned nothing yet: call agent.learn(env, 20)."
    if len(returns) == 0:
        return "its returns are not known here: rlsvi.evaluate(agent, env) tells you what its policy earns."
    if len(returns) < 2 * FIRST_EPISODES:
        return "it is too early to tell: let it learn for more episodes."
    if not np.any(returns) and not agent._found_reward:
        return f"no reward was found: make sure that one can be reached, or {agent._what_to_try()}."
    if avoids_costs(returns):
        return (
            "recent episodes earn 0, and none has earned more: it has learned to avoid costs; if there is a "
            f"prize, it was not found: {agent._what_to_try()}."
        )
    first, last = returns[:FIRST_EPISODES], recent(returns)
    if not rise(first, last):
        more = "hardly" if last.mean() > first.mean() else "no"
        return f"recent episodes earn {more} more than the first: {agent._what_to_try()}."
    if agent._search_has_ended and not rise(recent(returns[: -len(last)]), last):
        return (
            f"returns have risen, but not lately, and exploration finds nothing better any more: if more than "
            f"{returns.max():.4g} can be earned, {agent._how_to_find_more()}; rlsvi.evaluate(agent, env) tells "
            "you what its policy earns."
        )
    return (
        "returns have risen: let it learn for more episodes; rlsvi.evaluate(agent, env) tells you what its "
        "policy earns."
    )


def recent(returns: Floats) -> Floats:
    """Return the last quarter of all returns, at least one."""
    return returns[-max(1, len(returns) // 4) :]


def rise(before: Floats, after: Floats) -> bool:
    """Return whether returns are larger after than before, beyond their noise."""
    noise = np.sqrt(before.var() / len(before) + after.var() / len(after))
    return bool(after.mean() > before.mean() + noise)
