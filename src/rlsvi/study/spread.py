"""A comparison by an executor of sweeps: each run is a job, in another process or on another machine."""

import base64
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from rlsvi.core.checks import shown
from rlsvi.simulate.history import blank_history
from rlsvi.study.executors import Executor, serial
from rlsvi.study.executors import executor as executor_called
from rlsvi.study.job import Columns, Failed, Job
from rlsvi.study.runs import Run

HISTORY = "reward", "regret", "realised", "path_regret"


class Playable(Protocol):
    """What is compared; it must survive being sent to another process."""

    agents: Mapping[str, Any]
    episodes: int

    def run(self, name: str, seed: int) -> Run:
        """Let a new agent learn."""


def spread(
    field: Any, seeds: Sequence[int], executor: str | Executor, workers: int | None, show: Callable[[int], None]
) -> dict[tuple[str, int], Run]:
    """Compute the runs of all agents with all seeds."""
    chosen = executor_called(executor, workers) if isinstance(executor, str) else executor
    if not callable(chosen):
        raise TypeError(f"executor must be a name or what executors.executor returns, got {shown(executor)}")
    elsewhere = chosen is not serial
    sent = packed(field, getattr(chosen, "dumps", None), elsewhere)
    jobs = [Job.of(played, field=sent, name=name, number=seed) for name in field.agents for seed in seeds]
    found = {}
    outcomes = chosen(jobs)
    if not isinstance(outcomes, Iterable):
        raise TypeError(f"executor must return jobs and what came of them, got {shown(outcomes)}")
    try:
        for job, outcome in outcomes:
            name, seed = str(job.settings["name"]), int(job.settings["number"])  # type: ignore[arg-type]
            if isinstance(outcome, Failed):
                raise RuntimeError(
                    f"the run of agents[{name!r}] with seed {seed} failed: {outcome.reason}\n{outcome.details}"
                )
            found[name, seed] = _run(outcome.columns)
            show(field.episodes)
    finally:
        if hasattr(outcomes, "close"):
            outcomes.close()
    return {(name, seed): found[name, seed] for name in field.agents for seed in seeds}


def packed(field: Any, dumps: Callable[[Any], bytes] | None = None, elsewhere: bool = False) -> str:
    """Return everything as text, or raise an error that names what other processes could not import.

    dumps : like pickle.dumps, but including the code of what is defined in a script or a notebook.
    elsewhere : whether the runs are in other processes.
    """
    named = {f"agents[{name!r}]": agent for name, agent in field.agents.items()}
    for what, value in {**named, "problem": field.problem}.items():
        remedy = "define it by name at the top level of a module, or leave executor out"
        try:
            data = (dumps or pickle.dumps)(value)
        except Exception as error:
            raise TypeError(f"{what} cannot be sent to other processes ({error}): {remedy}") from error
        if (
            elsewhere
            and dumps is None
            and b"__main__" in data
            and not hasattr(sys.modules["__main__"], "__file__")
        ):
            raise TypeError(
                f"{what} is defined in a notebook or on a command line, where other processes cannot find it: "
                f"{remedy}"
            )
    return base64.b64encode((dumps or pickle.dumps)(field._replace(first=None))).decode()


def played(*, field: str, name: str, number: int) -> dict[str, Any]:
    """Return the columns of one run; `field` comes from `packed` in the process that compares."""
    here: Playable = pickle.loads(base64.b64decode(field))
    run = here.run(name, number)
    columns = {name: getattr(run.history, name) for name in HISTORY}
    return {**columns, "random_regret": run.random_regret, "loop": run.loop}


def _run(columns: Columns) -> Run:
    parts: dict[str, Any] = {name: columns[name] for name in HISTORY}
    history = blank_history(0, 0)._replace(**parts)
    return Run(history, float(columns["random_regret"][0]), str(columns["loop"][0]))
