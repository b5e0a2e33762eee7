"""Experiments: functions of jobs that let agents play, computed one by one or, on a graphics card, many at once.

An experiment is written once, as a generator. It yields what is to be played, and is sent the history::

    @experiment
    def total_regret(*, length: int, seed: int) -> Playing:
        history = yield Play(RLSVI(seed=seed), problems.chain(length), 1000)
        return {"regret": history.regret.sum()}

`total_regret(length=10, seed=0)` plays on this processor; `played_together` plays many on a card.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

from rlsvi.agents.agent import Agent
from rlsvi.core.card import NoCard
from rlsvi.problems import Problem
from rlsvi.simulate.finite import History, simulate
from rlsvi.simulate.gpu import Batch

HISTORY = (
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8
)  # bytes that the histories of a batch may take


class Play(NamedTuple):
    """What an experiment asks for: `episodes` more episodes of an agent that nobody else uses."""

    agent: Agent
    problem: Problem
    episodes: int
    regret: bool = True


Playing = Generator[Play, History, Mapping[str, Any]]
Outcome = Mapping[str, Any] | Exception


def experiment(steps: Callable[..., Playing]) -> Callable[..., Mapping[str, Any]]:
    """Return the function that computes an experiment on this processor."""

    @wraps(steps)
    def alone(**settings: Any) -> Mapping[str, Any]:
        playing = steps(**settings)
        try:
            wanted = next(playing)
            while True:
                agent, problem, episodes, regret = wanted
                wanted = playing.send(simulate(agent, problem, episodes, regret=regret))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    alone.steps = steps  # type: ignore[attr-defined]
    return alone


def played_together(function: Any, settings: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """Return the results, or errors, of one experiment with several settings, of runs of the same kind and size.

    Raises NoCard if the card has too little memory for them.
    """
    playing = [function.steps(**each) for each in settings]
    outcomes: dict[int, Outcome] = {}
    wanted = {i: play for i, each in enumerate(playing) if (play := _next(each, None, i, outcomes))}
    batch, lanes = None, {i: lane for lane, i in enumerate(wanted)}
    while wanted:
        first = next(iter(wanted.values()))
        if first.episodes * len(wanted) * 32 > HISTORY:
            raise NoCard(f"{len(wanted)} histories of {first.episodes} episodes need too much memory")
        if batch is None:
            agents, problems = [play.agent for play in wanted.values()], [play.problem for play in wanted.values()]
            batch = Batch(agents, problems)
        begun = batch.played[lanes[next(iter(wanted))]]
        now = {i: it for i, it in wanted.items() if it[2:] == first[2:] and batch.played[lanes[i]] == begun}
        wanted = {i: play for i, play in wanted.items() if i not in now}
        histories = batch.play([lanes[i] for i in now], first.episodes, regret=first.regret)
        for i, history in zip(now, histories, strict=True):
            if play := _next(playing[i], history, i, outcomes):
                wanted[i] = play
    return [outcomes[i] for i in range(len(settings))]


def _next(
    playing: Playing, history: History | Exception | None, i: int, outcomes: dict[int, Outcome]
) -> Play | None:
    """Return what an experiment wants next; if it has ended, add its outcome instead."""
    try:
        if isinstance(history, Exception):
            return playing.throw(history)
        return next(playing) if history is None else playing.send(history)
    except StopIteration as end:
        outcomes[i] = end.value
    except Exception as error:
        outcomes[i] = error
    return None
