"""Saving and loading of agents: all arguments, arrays and random streams, so that learning continues bit for bit.

A file contains a header and arrays (core/archive.py): the arguments of the agent, the task, its random streams,
and the `state()` of its learner. Loading checks everything, and runs no code from the file.
"""

import json
import os
from array import array
from contextlib import suppress
from importlib.metadata import entry_points
from inspect import signature
from typing import Any

import numpy as np

from rlsvi import __version__
from rlsvi.agents import contract
from rlsvi.bases.layout import Layout
from rlsvi.core import archive
from rlsvi.core.archive import Archive, ArchiveError, checked_target, from_plain, to_plain
from rlsvi.core.checks import whole
from rlsvi.core.files import whole_file
from rlsvi.envs.description import Made
from rlsvi.envs.task import Task

ELSEWHERE = {"type": "given on loading"}  # stands for a basis that is code, which is not stored
WRONG = (KeyError, TypeError, IndexError, AttributeError, ValueError, ArithmeticError, AssertionError)


def save(agent: Any, path: str | os.PathLike[str]) -> None:
    """Write an agent to a file, completely or not at all."""
    header, arrays = header_of(agent)
    archive.write(path, header, arrays | (agent._state() if agent.steps > 0 else {}))


def header_of(agent: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header of a file, and the arrays of arguments and streams, or raise an error."""
    learned = agent.steps > 0
    kind = next((name for name, known in contract.REGISTRY.items() if known is type(agent)), None)
    if kind is None:
        raise TypeError(
            f"{type(agent).__name__} cannot be saved: its class was defined again since the agent was made, and "
            "a file would be loaded as the new one; make the agent anew with agent.clone() of the new class"
        )
    arrays: dict[str, Any] = {"streams": agent._streams}
    if len(returns := agent.returns):
        arrays["returns"] = returns
    header = {
        "rlsvi": __version__,
        "agent": kind,
        "arguments": {name: _plain(name, value, arrays) for name, value in agent.get_params().items()},
        "problem_basis": _plain("problem_basis", agent._problem_basis, arrays) if learned else None,
        "task": agent._task.plain if learned else None,
        "setting": agent._setting if learned else {},
        "overshoot": agent._overshoot,
        "environment": agent.environment if learned else None,
    }
    return header, arrays


def load(path: str | os.PathLike[str], basis: Any = None) -> Any:
    """Read an agent from a file that `agent.save` has written.

    Parameters
    ----------
    path
        The file.
    basis
        The basis, which is required if it was a Python function: files do not contain functions.

    Returns
    -------
    Agent
        The agent, which continues as if it had never been saved.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = gymnasium.make("rlsvi/Chain-v0", length=5)
    >>> rlsvi.RLSVI(seed=0).learn(env, 20).save("agent.npz")
    >>> rlsvi.load("agent.npz").episodes
    20
    """
    with archive.opened(path) as file:
        return _checked_agent(file, basis)


def load_like(agent: Any, path: str | os.PathLike[str]) -> Any:
    """Read an agent of the same kind and task as `agent`, and with the same basis if that is a Python function."""
    with archive.opened(path) as file:
        header = file.header
        is_code = ELSEWHERE in ((header.get("arguments") or {}).get("basis"), header.get("problem_basis"))
        found = _checked_agent(file, (agent.basis or agent._problem_basis) if is_code else None)
    if type(found) is not type(agent) or (found.steps > 0 and found._task != agent._task):
        raise ValueError(f"{path} holds another kind of agent, or one of another task: name another file")
    return found


def _checked_agent(file: Archive, basis: Any) -> Any:
    """Return the agent in a file; whatever is wrong with the file is an ArchiveError."""
    try:
        return _agent(file, basis)
    except (ArchiveError, OSError):
        raise
    except WRONG as error:
        raise ArchiveError(f"is not a saved agent that this program knows: {error!r}") from error


def _class_of(name: str) -> Any:
    """Return the class that files call so, also of an installed package; None if there is none."""
    if (known := contract.REGISTRY.get(name)) is not None:
        return known
    module, _, kind = name.rpartition(":")
    for entry in entry_points(group="rlsvi.agents"):
        # Without its module, a name is of a class that was one of this library's when the file was written.
        if entry.attr == kind and (not module or module.partition(".")[0] == entry.module.partition(".")[0]):
            with suppress(Exception):  # then the file cannot be read, and the error says what to do
                if (found := entry.load()) in contract.REGISTRY.values():
                    return found
    return None


def _agent(file: Archive, basis: Any) -> Any:
    header = file.header
    kind = _class_of(str(header.get("agent")))
    if kind is None:
        raise ArchiveError(
            f"holds {header.get('agent')!r:.100}, which is no agent known here: import the module that defines it "
            "first, on the command line with --import MODULE"
        )
    for name, usual in kind._former.items():
        if name in signature(kind).parameters:
            continue  # of a subclass
        if (former := header["arguments"].pop(name, usual)) != usual:
            raise ArchiveError(
                f"was made with {name}={former!r:.100}, which is no argument any more: load it with the version "
                f"that saved it, rlsvi {header.get('rlsvi')!s:.20}, or learn anew without {name}="
            )
    lacks = sorted({*signature(kind).parameters} ^ {*header["arguments"]})
    if lacks:
        raise ArchiveError(f"is not a saved {kind.__name__} of this version: its {', '.join(lacks)} differ")
    arguments, problem_basis = header["arguments"], header["problem_basis"]
    if ELSEWHERE in (arguments.get("basis"), problem_basis):
        if basis is None:
            raise ArchiveError("holds no basis, for it was a Python function: pass it as load(path, basis=...)")
        if problem_basis == ELSEWHERE:
            problem_basis = basis
        else:
            arguments["basis"] = basis
    elif basis is not None:
        raise ArchiveError("holds its basis: leave basis= out")
    given = {k: v if v is basis else from_plain(v, file.take_any) for k, v in arguments.items()}
    agent = kind(**given)
    agent._problem_basis = basis if problem_basis is basis else from_plain(problem_basis, file.take_any)
    if not (agent._problem_basis is None or hasattr(agent._problem_basis, "bind")):
        raise ArchiveError("is damaged: the basis of its problem is none")
    agent._streams[:] = file.take("streams", (4, 4), np.uint64)
    agent.environment = Made.read(header["environment"])
    if not isinstance(header["setting"], dict):
        raise ArchiveError("is damaged: its setting must be names and values")
    if header["task"] is not None:
        agent._setting = header["setting"]
        agent._task = Task.read(header["task"])
        agent._check_task(agent._task)
        agent._learner = agent.restored_learner(agent._task, file)
        episodes, steps = agent.episodes, agent.steps
        if not 0 <= episodes <= steps <= 2**61 or steps < 1:
            raise ArchiveError(f"is damaged: it cannot have learned {episodes} episodes and {steps} steps")
        # older files have no returns
        known = file.take("returns", (episodes,), finite=False) if "returns" in file else np.empty(0)
        if np.isinf(known).any():
            raise ArchiveError("is damaged: it holds returns that are not finite")
        agent._earned, agent._found_reward = array("d", known), not len(known) or bool(np.any(known))
    agent._overshoot = whole("overshoot", header["overshoot"], 0, 2**62)
    return agent


def _plain(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """Return an argument as JSON; a basis that is code must be passed again on loading."""
    aside: dict[str, Any] = {}
    try:
        plain = to_plain(name, value, aside)
    except TypeError as error:
        if name in ("basis", "problem_basis"):
            return ELSEWHERE
        raise ValueError(f"{error}: use rlsvi.Linear or rlsvi.Exponential instead") from None
    arrays |= aside
    return plain


# ---- Export of the policy of the posterior mean as a file of plain arrays that needs only NumPy ------------
#
# `layout` is JSON and says where the numbers of an observation are (bases/layout.py); `counts` is the number of
# values of each discrete one. Then follows either a table: `actions` (H, S), where H is 1 if all periods are
# alike, and S runs over the values of all discrete numbers, the last one fastest; or features: `low` and `high`
# (m,) of the measured numbers, and what the method `arrays` of their basis returns: `waves` (m, f) and `scale`
# (f,) of cosines, or a 1 followed by radial functions with `centres` (f - 1, m) and `width`, or a 1, the numbers,
# and cosines with `waves`, `scale` and a `phase`, or of a picture a 1, the squares of pixels times `single`, and
# sums of products of their pairs, `first` and `second` (P,), each in the sum that `bin` (P,) says, times `scale`;
# `weights` (A, d), `first_action`, and whether the features are `crossed` with the discrete numbers. The practice
# agent adds `held`, for how many steps each action is held, `relevant`, the indices of those measured numbers that
# have features, unless all have, and `category_j`, the values of the counted number j that have a category of
# their own, 1, 2, .., where all others have category 0; the value of a text is the first 52 bits of its BLAKE2b
# digest of 8 bytes. If actions are not Discrete, the file has `choices` (A, ..), actions of the space, of which
# everything else gives the number. docs/interoperability.md has a reader.


MOST_CELLS = 1_000_000  # the largest number of table cells


def export(agent: Any, path: str | os.PathLike[str]) -> None:
    """Write the policy, completely or not at all."""
    target, task = checked_target(path, "write"), agent._task
    if task is None or agent.steps == 0:
        raise RuntimeError("this agent has learned nothing yet: call learn first")
    if task.parts:
        raise ValueError(
            "values that are sums over the parts of actions cannot be exported: save the agent instead, and load "
            "it by rlsvi.load"
        )
    if task.states is None and hasattr(agent._learner, "exported"):
        layout, arrays = agent._learner.exported(agent._plan(True))
    elif task.states is not None:
        layout = Layout(["counted", [task.first_state], []], [], [], [task.states])
        arrays = {"actions": _numbered(agent, max(task.horizon, 1), task.first_state, task.states)}
    else:
        raise ValueError(
            f"{type(agent).__name__} can be exported where observations are numbered (Discrete), BoundedRLSVI "
            "with most bases of measured numbers, such as bases.Fourier(): save the agent "
            "instead, and load it by rlsvi.load"
        )
    whole = {"layout": json.dumps(layout.tree), "counts": np.array(layout.counts, dtype=np.int64), **arrays}
    if task.choices is not None:
        whole["choices"] = task.choices.table
    with whole_file(target) as file:
        np.savez(file, **whole)


def _numbered(agent: Any, periods: int, first: int, states: int) -> Any:
    """Return the agent's action in every period and state."""
    if periods * states > MOST_CELLS:
        raise ValueError(
            f"a table of {periods} x {states} actions is too large to export: more than {MOST_CELLS:,}"
        )
    actions = [[agent.predict(first + s, h, deterministic=True)[0] for s in range(states)] for h in range(periods)]
    task = agent._task
    return np.array([[task.first_action + task.number(a) for a in row] for row in actions], dtype=np.int64)
