"""Agents to and from files: every argument, array and random stream, so that learning goes on bit for bit."""

import os
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np

import rlsvi
from rlsvi.agents import archive
from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.bandits.agent import OneStepAgent
from rlsvi.agents.bandits.contextual import ContextualBandit
from rlsvi.agents.bandits.optimal_policy import OptimalPolicy
from rlsvi.agents.bandits.thompson import ThompsonSampling
from rlsvi.agents.bounded_saving import bounded_parts, restore_bounded
from rlsvi.agents.continual.agent import ContinualAgent, ContinualLSVI, ContinualRLSVI
from rlsvi.agents.continual_saving import position_of, restore_position
from rlsvi.agents.explore import Boltzmann, EpsilonGreedy, Exponential, Greedy, Linear
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.finite.gradient import GradientRLSVI
from rlsvi.agents.finite.incremental import IncrementalRLSVI
from rlsvi.agents.finite.learner import Learner
from rlsvi.agents.finite.lsvi import LSVI
from rlsvi.agents.finite.memory import Memory, empty, resized
from rlsvi.agents.finite.rlsvi import RLSVI
from rlsvi.agents.gradient_saving import gradient_parts, restore_gradient
from rlsvi.agents.noise import ByEvidence, InverseGamma
from rlsvi.agents.one_step_saving import known_parts, restore_known
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.stationary.agent import StationaryAgent
from rlsvi.agents.stationary.lsvi import StationaryLSVI
from rlsvi.agents.stationary.rlsvi import StationaryRLSVI
from rlsvi.agents.stationary_saving import learned_parts, restore
from rlsvi.agents.tabula_rasa_saving import counted_parts, restore_counts
from rlsvi.agents.tabular.agent import TabulaRasaAgent
from rlsvi.agents.tabular.gaussian_psrl import GaussianPSRL
from rlsvi.agents.tabular.lsvi_ucb import LSVIUCB
from rlsvi.agents.tabular.psrl import PSRL
from rlsvi.agents.tabular.ucbvi import UCBVI
from rlsvi.agents.tabular.ucrl2 import UCRL2
from rlsvi.agents.task import Task
from rlsvi.bases import (
    Basis,
    Dense,
    Features,
    Fourier,
    Observed,
    Polynomial,
    Radial,
    Recommendation,
    Tabular,
    Tetris,
    Tiles,
)
from rlsvi.core.checks import ridge_of
from rlsvi.envs.making import Made
from rlsvi.mdp.finite import FiniteMDP

Agent = FiniteHorizonAgent | StationaryAgent | OneStepAgent | TabulaRasaAgent | ContinualAgent | BoundedRLSVI
KINDS = (
    *(RLSVI, LSVI, IncrementalRLSVI, GradientRLSVI, ContinualRLSVI, ContinualLSVI),
    *(StationaryRLSVI, StationaryLSVI, ContextualBandit, ThompsonSampling, OptimalPolicy),
    *(PSRL, GaussianPSRL, UCRL2, UCBVI, LSVIUCB, BoundedRLSVI),
)
AGENTS: dict[str, Any] = {kind.__name__: kind for kind in KINDS}
PARTS = (
    *(Greedy, EpsilonGreedy, Boltzmann, Linear, Exponential, InverseGamma, ByEvidence),
    *(Tabular, Dense, Tetris, Recommendation, FiniteMDP),
    *(Observed, Fourier, Polynomial, Radial, Tiles),
)
PLAIN: dict[str, Any] = {kind.__name__: kind for kind in PARTS}
ELSEWHERE = {"type": "given on loading"}  # stands for a basis that is code, which no file holds


def save(agent: Agent, path: str | os.PathLike[str]) -> None:
    """Write an agent to a file, all of it or nothing."""
    if AGENTS.get(type(agent).__name__) is not type(agent):
        raise TypeError(f"only {', '.join(AGENTS)} can be saved, not {type(agent).__name__}")
    arrays: dict[str, Any] = {"streams": agent._streams}
    header = {
        "rlsvi": rlsvi.__version__,
        "agent": type(agent).__name__,
        "arguments": {name: _plain(name, value, arrays) for name, value in agent.arguments().items()},
        "problem_basis": _plain("problem_basis", agent._problem_basis, arrays),
        "task": agent._task,
        "steps": agent.steps,
        "overshoot": agent._overshoot,
        "found": agent.found if isinstance(agent, RLSVI) else None,
        "environment": agent.environment,
    }
    if isinstance(agent, StationaryAgent | BoundedRLSVI):
        learned, more = learned_parts(agent) if isinstance(agent, StationaryAgent) else bounded_parts(agent)
        archive.write(path, header | learned, arrays | more)
        return
    if isinstance(agent, OneStepAgent):
        learned, more = known_parts(agent)
        if isinstance(agent, OptimalPolicy) and agent.mdp is None:
            learned["mdp"] = _plain("problem_mdp", agent._known, arrays)
        archive.write(path, header | learned, arrays | more)
        return
    if isinstance(agent, TabulaRasaAgent):
        archive.write(path, header, arrays | counted_parts(agent))
        return
    if isinstance(agent, GradientRLSVI):
        archive.write(path, header | gradient_parts(agent, arrays), arrays)
        return
    learner = agent._learner
    if learner is not None:
        memory = resized(learner.memory, max(learner.memory.states.max(), 1), max(learner.memory.sums.max(), 1))
        arrays |= {f"memory.{name}": array for name, array in memory._asdict().items()}
        arrays |= {"factor.U": learner.factor.U, "factor.inv": learner.factor.inv, "index": learner.index}
        header["features"] = [learner.features.blocks, learner.features.dim]
    if isinstance(agent, ContinualAgent):
        header |= position_of(agent, arrays)
    archive.write(path, header, arrays)


def load(path: str | os.PathLike[str], basis: Basis | None = None) -> Agent:
    """Read an agent from a file. `basis` is needed if it was a Python function, which no file holds."""
    header, arrays = archive.read(path)
    try:
        agent = _agent(header, arrays, basis)
        if isinstance(agent, StationaryAgent):
            restore(agent, header, arrays)
        elif isinstance(agent, OneStepAgent):
            if isinstance(agent, OptimalPolicy) and header.get("mdp") is not None:
                agent.adopt(_value(header["mdp"], arrays))
            restore_known(agent, header, arrays)
        elif isinstance(agent, TabulaRasaAgent):
            restore_counts(agent, arrays)
        elif isinstance(agent, GradientRLSVI):
            if "features" in header and agent._task is not None:
                features = _features(agent, agent._task, *header["features"])
                restore_gradient(agent, agent._new(agent._task, features), header, arrays)
        elif isinstance(agent, BoundedRLSVI):
            restore_bounded(agent, header, arrays)
        elif "features" in header:
            learner = _learner(agent, header["features"], arrays)
            if isinstance(agent, ContinualAgent):
                restore_position(agent, learner, header, arrays)
            else:
                agent._learner = learner
    except ArchiveError as error:
        raise ArchiveError(f"{path} {error}") from None
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ArchiveError(f"{path} is not a saved agent that this program knows: {error!r}") from error
    return agent


def _agent(header: dict[str, Any], arrays: dict[str, Any], basis: Basis | None) -> Agent:
    kind, arguments, problem_basis = AGENTS[header["agent"]], header["arguments"], header["problem_basis"]
    missing = sorted(set(signature(kind).parameters) - set(arguments))
    if missing:
        raise ArchiveError(f"is not a saved agent that this program knows: it lacks {', '.join(missing)}")
    if ELSEWHERE in (arguments.get("basis"), problem_basis):
        if basis is None:
            raise ArchiveError("holds no basis, for it was a Python function: pass it as load(path, basis=...)")
        arguments["basis"], problem_basis = basis, None if problem_basis == ELSEWHERE else problem_basis
    elif basis is not None:
        raise ArchiveError("holds its basis: leave basis= out")
    agent: Agent = kind(**{k: _value(v, arrays) for k, v in arguments.items()})
    agent._problem_basis = _value(problem_basis, arrays)
    agent._streams[:] = _array(arrays, "streams", (4, 4), np.uint64)
    agent._task = None if header["task"] is None else Task(*header["task"])
    agent._overshoot = int(header["overshoot"])
    if isinstance(agent, RLSVI) and header.get("found") is not None:
        lam, sigma, at = header["found"]
        ridge_of(lam, sigma)
        agent.found = lam, sigma, int(at)
    agent.environment = Made.read(header.get("environment"))
    if not isinstance(agent, TabulaRasaAgent):  # which counts its steps with all else
        agent.steps = int(header["steps"])
    return agent


def _learner(agent: FiniteHorizonAgent | ContinualAgent, shape: list[int], arrays: dict[str, Any]) -> Learner:
    """The learner, after checking that its arrays fit together and point nowhere outside."""
    (blocks, dim), task = shape, agent._task
    if task is None:
        raise ArchiveError("is damaged: it holds what was learned, but not of which task")
    memory = Memory(**{name: arrays[f"memory.{name}"] for name in Memory._fields})
    room, sums, periods = memory.sum_head.shape[1], memory.into.shape[1], task.horizon or 1
    for name, array in resized(empty(periods, task.actions, blocks, dim), room, sums)._asdict().items():
        _array(arrays, f"memory.{name}", array.shape, array.dtype)
    index = _array(arrays, "index", (periods, task.states or 0), np.int32)
    for array, least, most in (
        (memory.episodes, 0, np.inf),
        (memory.states, 0, room),
        (memory.sums, 0, sums),
        (memory.lives, 0, blocks),
        (memory.block, 0, blocks - 1),
        (memory.live, 0, blocks - 1),
        (memory.sum_block, 0, blocks - 1),
        (memory.sum_next, 0, room - 1),
        (memory.sum_link, -1, sums - 1),
        (memory.sum_head, -1, sums - 1),
        (index, -1, room - 1),
    ):
        if array.size and (array.min() < least or array.max() > most):
            raise ArchiveError("is damaged: an index in it points outside its tables")
    if task.horizon and memory.sums[-1] != 0:
        raise ArchiveError("is damaged: it has states after the last period")
    numbers = [array for array in memory if array.dtype == np.float64 and array is not memory.barred]
    for array in (*numbers, arrays["factor.U"], arrays["factor.inv"]):
        if not np.isfinite(array).all():
            raise ArchiveError("is damaged: it holds numbers that are not finite")
    if (memory.sum_link >= np.arange(sums)).any():
        raise ArchiveError("is damaged: its sums are linked in a circle")
    features = _features(agent, task, blocks, dim)
    learner = agent._new(task, features)
    learner.memory, learner.index = memory, index
    learner.values = learner.blank_values()
    learner.factor.U[:] = _array(arrays, "factor.U", learner.factor.U.shape, np.float64)
    learner.factor.inv[:] = _array(arrays, "factor.inv", learner.factor.inv.shape, np.float64)
    return learner


def _features(agent: FiniteHorizonAgent | ContinualAgent, task: Task, blocks: int, dim: int) -> Features:
    """The features learned with."""
    features = agent.features(0) if task.states is not None else _later(agent, task, blocks, dim)
    if (features.blocks, features.dim) != (blocks, dim):
        raise ArchiveError(
            f"was learned with {blocks} blocks of {dim} features, not {features.blocks} of {features.dim}"
        )
    return features


def _later(agent: FiniteHorizonAgent | ContinualAgent, task: Task, blocks: int, dim: int) -> Features:
    """Features of observations of any kind, bound when the first one comes."""
    bound: list[Features] = []

    def at(h: int, observation: Any) -> Any:
        if not bound:
            features = agent.features(observation)
            if (features.blocks, features.dim) != (blocks, dim):
                raise ValueError(f"basis must give {blocks} blocks of {dim} features, as the agent learned with")
            bound.append(features)
        return bound[0].at(h, observation)

    return Features(blocks, dim, at, None)


def _plain(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """`value` as JSON, with its arrays put aside."""
    if isinstance(value, np.ndarray):
        arrays[f"argument.{name}"] = value
        return {"array": f"argument.{name}"}
    if isinstance(value, np.random.SeedSequence):
        entropy = np.asarray(value.entropy, dtype=object).tolist()
        return {"type": "SeedSequence", "entropy": entropy, "spawn_key": [int(key) for key in value.spawn_key]}
    if PLAIN.get(type(value).__name__) is type(value):
        parts = {f.name: _plain(f"{name}.{f.name}", getattr(value, f.name), arrays) for f in fields(value)}
        return {"type": type(value).__name__, **parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(name, part, arrays) for part in value]
    if isinstance(value, np.number):
        return value.item()
    if name in ("basis", "problem_basis"):
        return ELSEWHERE
    raise ValueError(
        f"{name} is {value!r}, which a file cannot hold: use rlsvi.Linear or rlsvi.Exponential instead"
    )


def _value(plain: Any, arrays: dict[str, Any]) -> Any:
    """What `_plain` was given."""
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return arrays[plain["array"]]
    parts = {name: _value(part, arrays) for name, part in plain.items() if name != "type"}
    if plain["type"] == "SeedSequence":
        return np.random.SeedSequence(parts["entropy"], spawn_key=tuple(parts["spawn_key"]))
    return PLAIN[plain["type"]](**parts)


def _array(arrays: dict[str, Any], name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of the file, if it is what it must be."""
    array = arrays[name]
    if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
        raise ArchiveError(f"is damaged: {name} is {array.dtype}{array.shape}, expected {np.dtype(dtype)}{shape}")
    return array
