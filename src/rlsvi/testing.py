"""Whether an agent keeps the promises of this library: for agents what `check_estimator` is for estimators."""

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium

from rlsvi.agents.agent import Agent
from rlsvi.agents.files import load
from rlsvi.core.checks import shown
from rlsvi.envs.finite import FiniteMDPEnv
from rlsvi.problems import recommendation

MADE = "a class of agents, or a function of `seed` that makes one"


def check_agent(
    make: Callable[..., Agent],
    env: Callable[[], gymnasium.Env[Any, Any]] | None = None,
    *,
    basis: Any = None,
) -> None:
    """Check that agents of a class keep the promises of this library.

    - The same seed gives the same bits.
    - Learning in parts is learning at once, also if the agent is saved and loaded in between.
    - Predicting changes nothing of what is learned, and on the posterior mean draws no random numbers.
    - A clone has the same arguments and has learned nothing.
    - Only legal actions are taken.
    - If the environment fails or tells nonsense, or Ctrl-C comes, the agent is as it was after its last whole
      episode.

    What an agent is, is what the file that it saves holds.

    Parameters
    ----------
    make
        The class, or a function of `seed` that makes an agent.
    env
        A function that makes an environment which suits the agents, with Discrete actions and episodes of
        at most a few steps. By default, three of four products are recommended, one after the other, so that legal
        actions change.
    basis
        The basis, if it is Python code, which files do not hold and `rlsvi.load` takes.

    Raises
    ------
    AssertionError
        If a promise is broken. It says which one, and how.

    Examples
    --------
    >>> import rlsvi
    >>> from rlsvi.testing import check_agent
    >>> check_agent(rlsvi.RLSVI)
    """
    if not callable(make) or not isinstance(agent := make(seed=0), Agent):
        raise TypeError(f"make must be {MADE}, derived from rlsvi.agents.agent.Agent, got {shown(make)}")
    with TemporaryDirectory() as folder:
        world = env or (lambda: FiniteMDPEnv(recommendation(4, 3, seed=1).mdp))
        it = _Subject(make, world, basis, Path(folder), "episodes" in signature(agent.learn).parameters)
        _same(it.state(it.learned(3)), it.state(it.learned(3)), "the same seed must give the same bits")
        for check in (_in_parts, _predicting, _cloning, _failing):
            check(it)


class _Subject:
    """How to make an agent and what it learns in."""

    def __init__(
        self, make: Callable[..., Agent], env: Callable[[], Any], basis: Any, folder: Path, episodic: bool
    ) -> None:
        self.make, self.world, self.basis = make, env, basis
        self.path, self.unit = folder / "agent.rlsvi", "episodes" if episodic else "steps"

    def env(self) -> "_Legal":
        return _Legal(self.world())

    def learned(self, amount: int, agent: Any = None, env: Any = None, **options: Any) -> Any:
        """Return an agent that has learned so much more."""
        agent, env = agent or self.make(seed=7), env or self.env()
        return agent.learn(env, **{self.unit: amount}, **options, progress=False)

    def reloaded(self, agent: Any) -> Any:
        agent.save(self.path)
        return load(self.path) if self.basis is None else load(self.path, basis=self.basis)

    def state(self, agent: Any) -> dict[str, Any]:
        """Return what the file of an agent holds."""
        agent.save(self.path)
        with zipfile.ZipFile(io.BytesIO(self.path.read_bytes())) as file:
            found: dict[str, Any] = {name: file.read(name) for name in file.namelist()}
        header = json.loads(found.pop("header.json"))
        return found | {f"header: {name}": it for name, it in header.items() if name != "arrays"}


class _Legal(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment in which only legal actions may be taken; it writes them down, with their rewards."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.seen: list[tuple[int, float]] = []

    def reset(self, **options: Any) -> Any:
        begun = self.env.reset(**options)
        self.legal = begun[1].get("action_mask") if isinstance(begun[1], dict) else None
        return begun

    def step(self, action: Any) -> Any:
        assert self.legal is None or self.legal[action], f"the agent took action {action}, which was not legal"
        taken = self.env.step(action)
        self.seen.append((int(action), float(taken[1])))
        self.legal = taken[4].get("action_mask") if isinstance(taken[4], dict) else None
        return taken


class _Failing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that fails in one step: it raises an error, or, for a ValueError, its reward is no number."""

    def __init__(self, env: Any, at: int, error: type[BaseException]) -> None:
        super().__init__(env)
        self.left, self.error = at, error

    def step(self, action: Any) -> Any:
        self.left -= 1
        observation, reward, *others = self.env.step(action)
        if self.left == 0 and self.error is not ValueError:
            raise self.error("the environment has failed")
        return observation, reward if self.left else math.nan, *others


def _same(found: dict[str, Any], expected: dict[str, Any], promise: str, but: tuple[str, ...] = ()) -> None:
    """Raise an error if two states differ in more than what is named."""
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    if names := [name for name in names if name not in but]:
        raise AssertionError(f"{promise}, but these differ: {', '.join(names)}")


def _in_parts(it: _Subject) -> None:
    at_once, in_parts, with_files = it.env(), it.env(), it.env()
    whole, parts = it.learned(6, env=at_once), it.learned(2, env=in_parts)
    it.learned(4, parts, in_parts)
    assert in_parts.seen == at_once.seen, "learn(2) and learn(4) must take the actions of learn(6)"
    _same(it.state(parts), it.state(whole), "learn(2) and learn(4) must be learn(6)")
    parts = it.reloaded(it.learned(2, it.reloaded(it.make(seed=7)), with_files))
    it.learned(4, parts, with_files, **({} if it.unit == "episodes" else {"reset": False}))
    assert with_files.seen == at_once.seen, "a loaded agent must go on with the same actions"
    _same(it.state(parts), it.state(whole), "a loaded agent must go on as before")


def _predicting(it: _Subject) -> None:
    observation, _ = it.env().reset(seed=1)
    with _raises(RuntimeError, "an agent that has learned nothing must refuse to predict"):
        it.make(seed=7).predict(observation)
    agent, env = it.learned(3), it.env()
    before = it.state(agent)
    said = [int(agent.predict(observation, deterministic=True)[0]) for _ in range(3)]
    assert len(set(said)) == 1, f"predict(deterministic=True) must say the same each time, it said {said}"
    assert isinstance(repr(agent), str)
    assert agent.explain().endswith("."), "explain() must return sentences"
    _same(it.state(agent), before, "predict(deterministic=True), repr and explain must change nothing")
    agent = it.learned(3, env=env)
    for _ in range(3):
        agent.predict(observation, deterministic=False)
    agent, but = it.learned(3, agent, env), ("streams.npy",)
    _same(it.state(agent), it.state(it.learned(6)), "predict(deterministic=False) must not change learning", but)


def _cloning(it: _Subject) -> None:
    agent = it.learned(2)
    clone = agent.clone()
    assert type(clone) is type(agent), "a clone must be of the same class"
    assert clone.steps == 0, "a clone must have learned nothing"
    assert repr(clone.get_params()) == repr(agent.get_params()), "a clone must have the same arguments"
    _same(it.state(it.learned(2, clone)), it.state(agent), "a clone must learn as the agent did")


def _failing(it: _Subject) -> None:
    for error in (OSError, ValueError, KeyboardInterrupt):
        for at in (1, 2, 3, 7, 12):
            agent = it.make(seed=7)
            promise = f"after {error.__name__} in step {at} the agent must be as after its last whole episode"
            with _raises(error, f"{error.__name__} in step {at} must reach the caller"):
                it.learned(100, agent, _Failing(it.env(), at, error))
            if done := int(getattr(agent, it.unit)):
                _same(it.state(agent), it.state(it.learned(done)), promise)
            else:
                _same(it.state(it.learned(1, agent)), it.state(it.learned(1)), promise)


@contextmanager
def _raises(error: type[BaseException], promise: str) -> Iterator[None]:
    try:
        yield
    except error:
        return
    raise AssertionError(promise)
