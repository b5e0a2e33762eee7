"""Experiments: functions of jobs that let an agent play, computed one by one or, on a graphics card, many at once.

An experiment is written once, as a generator. It yields what is to be played, and is sent the history::

    @experiment
    def total_regret(*, length: int, seed: int) -> Playing:
        history = yield Play(RLSVI(seed=seed), problems.chain(length), 1000)
        return {"regret": history.regret.sum()}

`total_regret(length=10, seed=0)` plays on this processor; `play_together` plays many on a card. An experiment
may play again, with the same agent and problem, and goes on where it stopped. The agent itself is a template that
is never changed, and an error of playing is raised where the experiment yields.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

from rlsvi.agents.agent import Agent
from rlsvi.core.card import TooLittleMemory
from rlsvi.core.machine import memory
from rlsvi.problems import Problem
from rlsvi.simulate.finite import History, simulate
from rlsvi.simulate.gpu import Batch

BYTES = 32  # of the history of an episode


class Play(NamedTuple):
    """What an experiment asks for: `episodes` more episodes of an agent on a problem.

    Attributes
    ----------
    agent
        The agent, a template that is not changed.
    problem
        The problem.
    episodes
        The number of episodes.
    regret
        Whether to compute the regret of every episode.

    Examples
    --------
    >>> import rlsvi
    >>> from rlsvi.study.experiment import Play
    >>> Play(rlsvi.RLSVI(seed=0), rlsvi.problems.chain(5), episodes=100).episodes
    100
    """

    agent: Agent
    problem: Problem
    episodes: int
    regret: bool = True


Playing = Generator[Play, History, Mapping[str, Any]]
Outcome = Mapping[str, Any] | Exception


class Course:
    """One run of an experiment: what it wants to play next, or its outcome once it has ended."""

    def __init__(self, steps: Callable[..., Playing], settings: Mapping[str, Any]) -> None:
        self.playing = steps(**settings)
        self.first: Play | None = None
        self.wanted: Play | None = None
        self.outcome: Outcome | None = None
        self.go_on(None)

    def go_on(self, history: History | Exception | None) -> None:
        """Let the experiment go on with what was played, or with the error of playing; None lets it begin."""
        try:
            if isinstance(history, Exception):
                self.wanted = self.playing.throw(history)
            else:
                self.wanted = next(self.playing) if history is None else self.playing.send(history)
            self.first = self.first or self.wanted
            if self.wanted.agent is not self.first.agent or self.wanted.problem is not self.first.problem:
                raise TypeError("an experiment lets one agent play one problem: write another for another agent")
        except StopIteration as end:
            self.wanted, self.outcome = None, end.value
        except Exception as error:
            self.wanted, self.outcome = None, error


def experiment(steps: Callable[..., Playing]) -> Callable[..., Mapping[str, Any]]:
    """Return the function that computes an experiment, on this processor or, in a sweep, on a graphics card.

    Parameters
    ----------
    steps
        A generator that yields what is to be played, is sent the history, and returns the results by name. Use
        `experiment` as its decorator.

    Returns
    -------
    Callable
        The function, which takes the settings by name.

    Examples
    --------
    >>> import rlsvi
    >>> from rlsvi.study.experiment import Play, experiment
    >>> @experiment
    ... def total_reward(*, length, seed):
    ...     history = yield Play(rlsvi.RLSVI(seed=seed), rlsvi.problems.chain(length), 100)
    ...     return {"reward": history.reward.sum()}
    >>> list(total_reward(length=5, seed=0))
    ['reward']
    """

    @wraps(steps)
    def computed(**settings: Any) -> Mapping[str, Any]:
        course = Course(steps, settings)
        agent = course.wanted.agent.clone() if course.wanted else None
        while course.wanted:
            _, problem, episodes, regret = course.wanted
            try:
                played: Any = simulate(agent, problem, episodes, regret=regret)  # type: ignore[arg-type]
            except Exception as error:
                played = error
            course.go_on(played)
        if isinstance(course.outcome, Exception):
            raise course.outcome
        return course.outcome  # type: ignore[return-value]

    computed.steps = steps  # type: ignore[attr-defined]
    computed.play_together = partial(play_together, computed)  # type: ignore[attr-defined]
    return computed


def play_together(function: Any, settings: Sequence[Mapping[str, Any]], fewest: int = 1) -> list[Outcome | None]:
    """Return the outcomes of an experiment with several settings, of runs of the same kind and size, on a card.

    When fewer than `fewest` want to go on, which takes as long on a card as for many, they are ended, and their
    outcome is None. Raises TooLittleMemory if there are too many.
    """
    courses = [Course(function.steps, each) for each in settings]
    going = [course for course in courses if course.wanted]
    first = [course.wanted for course in going if course.wanted]
    batch = Batch([play.agent for play in first], [play.problem for play in first]) if first else None
    lane = {course: i for i, course in enumerate(going)}
    while batch is not None and len(going) >= fewest and going:
        _, _, episodes, regret = going[0].wanted  # type: ignore[misc]
        played = {it: (batch.played[lane[it]], it.wanted[2:]) for it in going}  # type: ignore[index]
        now = [it for it in going if played[it] == played[going[0]]]  # these can play together
        if episodes * len(now) * BYTES > memory() // 8:
            raise TooLittleMemory(f"{len(now)} histories of {episodes} episodes need too much memory")
        for course, history in zip(
            now, batch.play([lane[it] for it in now], episodes, regret=regret), strict=True
        ):
            course.go_on(history)
        going = [course for course in going if course.wanted]
    return [course.outcome for course in courses]
