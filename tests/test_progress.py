"""What stderr shows while something takes long, and where it shows nothing."""

import io
import sys
import threading
import time
from contextlib import nullcontext

import gymnasium as gym
import numba
import pytest

import rlsvi
from rlsvi import progress
from rlsvi.core import compile as callee
from rlsvi.core import machine
from rlsvi.core.compile import COMPILING, OPTIONS, announce_compiling
from rlsvi.progress import bar
from watch import python


class Terminal(io.StringIO):
    """A terminal, as far as anybody can tell."""

    def isatty(self):
        return True


class Notebook(io.StringIO):
    """What Jupyter puts in the place of stderr."""

    __module__ = "ipykernel.iostream"


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress.time, "monotonic", made)
    return made


def shown(monkeypatch, stream, clock, show, seconds):
    """What a bar of ten steps writes that takes so many seconds in all."""
    monkeypatch.setattr(sys, "stderr", stream)
    with bar(10, "steps", show) as advance:
        for _ in range(10):
            clock.now += seconds / 10
            advance(1, "all is well")
    return stream.getvalue()


@pytest.mark.parametrize("stream", [Terminal, Notebook])
def test_a_bar_comes_where_somebody_sees_it_once_two_seconds_have_passed(stream, monkeypatch, clock):
    assert shown(monkeypatch, stream(), clock, None, 1.9) == ""
    assert shown(monkeypatch, stream(), clock, False, 10.0) == ""
    for show, seconds in ((None, 10.0), (True, 0.1)):
        text = shown(monkeypatch, stream(), clock, show, seconds)
        assert "steps" in text
        assert "10/10" in text
        assert "all is well" in text


def test_nothing_is_shown_in_a_pipe_unless_it_is_asked_for(monkeypatch, clock):
    assert shown(monkeypatch, io.StringIO(), clock, None, 10.0) == ""
    assert "10/10" in shown(monkeypatch, io.StringIO(), clock, True, 10.0)


def test_nobody_watches_a_closed_stderr_or_a_worker_process(monkeypatch):
    closed = Terminal()
    for stream, watched in ((Terminal(), True), (Notebook(), True), (io.StringIO(), False), (None, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert machine.is_watched() == watched
    closed.isatty = io.StringIO().isatty
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert not machine.is_watched()
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(machine, "parent_process", lambda: "a process")
    assert not machine.is_watched()


def test_a_notebook_gets_one_line_that_says_how_long_it_still_takes(monkeypatch, clock):
    text = shown(monkeypatch, Notebook(), clock, None, 20.0)
    assert text.count("\n") == 1
    lines = [line.strip() for line in text.strip().split("\r")]
    assert lines[0] == "steps 2/10, 0:00:16 left all is well"
    assert lines[-1] == "steps 10/10, 0:00:00 left all is well"
    assert "\x1b" not in text


def test_there_is_one_bar_at_a_time(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Notebook())
    with bar(1, "episodes", True), bar(1, "steps", True) as advance:
        advance(1)
    assert "steps" not in sys.stderr.getvalue()
    assert "steps" in shown(monkeypatch, Notebook(), clock, True, 1.0)


def test_threads_share_a_bar(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Notebook())
    with bar(4000, "steps", True) as advance:
        threads = [threading.Thread(target=lambda: [advance(1) for _ in range(1000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert "4000/4000" in sys.stderr.getvalue()


class Slow(gym.Env):
    """Every step takes a second of the clock."""

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def __init__(self, clock):
        self.clock = clock

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        self.clock.now += 1.0
        return 1, 1.0, True, False, {}


@pytest.mark.parametrize("seconds", [1, 5])
def test_learning_and_evaluating_show_a_bar_by_themselves(seconds, monkeypatch, clock):
    env, agent, lives = Slow(clock), rlsvi.StationaryRLSVI(seed=0), rlsvi.ContinualRLSVI(seed=0)
    for call, unit in (
        (lambda: agent.learn(env, episodes=seconds), "episodes"),
        (lambda: agent.learn(env, steps=seconds), "steps"),
        (lambda: lives.learn(env, steps=seconds), "steps"),
        (lambda: rlsvi.evaluate(agent, env, seconds), "fresh episodes"),
    ):
        monkeypatch.setattr(sys, "stderr", Notebook())
        call()
        assert (f"{unit} {seconds}/{seconds}" in sys.stderr.getvalue()) == (seconds > 2)


def test_rich_is_not_loaded_unless_a_bar_is_drawn():
    code = """
import sys, rlsvi
rlsvi.RLSVI(seed=0).learn(rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(3)), episodes=2)
assert "rich" not in sys.modules
"""
    python(code, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")


# ---- compiling --------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch):
    """Announcements come at once, as if nothing had been compiled yet."""
    monkeypatch.setattr(callee, "_seconds_before_announcing", 1e-3)


def waited_for(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(1e-3)
    return condition()


@pytest.mark.parametrize("stream", [Terminal, Notebook])
def test_compiling_that_takes_long_is_announced_once(stream, monkeypatch, impatient):
    monkeypatch.setattr(sys, "stderr", stream())
    with announce_compiling(), announce_compiling():  # Numba compiles a function while it compiles its caller
        assert waited_for(sys.stderr.getvalue)
    with announce_compiling():
        time.sleep(0.01)
    assert sys.stderr.getvalue() == COMPILING + "\n"


def test_compiling_is_not_announced_in_a_pipe(monkeypatch, impatient):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with announce_compiling():
        time.sleep(0.01)
    assert sys.stderr.getvalue() == ""


def test_the_time_of_all_that_is_compiled_counts(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(callee, "_seconds_before_announcing", 600.0)
    for left in (400.0, 200.0):
        with announce_compiling(), announce_compiling():
            clock.now += 200.0
        assert callee._seconds_before_announcing == left
    assert sys.stderr.getvalue() == ""


@pytest.mark.skipif(numba.config.DISABLE_JIT or not callee.AVAILABLE, reason="nothing is compiled our way")
def test_whatever_is_compiled_may_be_announced(monkeypatch):
    entered = []
    monkeypatch.setattr(callee, "announce_compiling", lambda: entered.append(1) or nullcontext())
    assert numba.njit(**OPTIONS, **callee.ENTRY)(lambda x: x + 1)(1) == 2
    assert entered == [1]
