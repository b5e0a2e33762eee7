"""Ctrl-C at a chosen line of the library, or at a chosen time inside its compiled loops."""

import contextlib
import functools
import signal
import sys
from dis import opmap
from pathlib import Path

import rlsvi

ROOT = Path(rlsvi.__file__).parent
PROBLEMS = tuple(str(ROOT / name) for name in ("envs", "mdp", "bases"))  # those fail as the user's own would
SHARED = tuple(ROOT / name for name in ("agents", "callbacks", "core", "simulate"))  # by all agents


@functools.cache
def leaves_a_context(code, at):
    """Whether a block of `with` is about to call __exit__(None, None, None).

    A tracer may raise there, and the context would never be left. Ctrl-C cannot: Python looks for signals after
    the call.
    """
    following = code.co_code[at : at + 6]
    return len(following) == 6 and all(
        following[i] == opmap["LOAD_CONST"] and code.co_consts[following[i + 1]] is None for i in (0, 2, 4)
    )


@functools.cache
def is_ours(file):
    """Whether a file belongs to the library, and not to a problem."""
    return file.startswith(str(ROOT)) and not file.startswith(PROBLEMS)


class Lines:
    """Notes the lines of the library that run, and interrupts at the `at`-th of them."""

    def __init__(self, at=None):
        self.at, self.seen = at, []

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)

    def _call(self, frame, event, argument):
        return self._line if is_ours(frame.f_code.co_filename) else None

    def _line(self, frame, event, argument):
        if event == "line" and not leaves_a_context(frame.f_code, frame.f_lasti):
            self.seen.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.seen) - 1 == self.at:
                signal.raise_signal(signal.SIGINT)
        return self._line


def every_line(work, of_shared=list):
    """The moments, for `interrupted`, at which `work` first and last runs each line of the library.

    Of those at lines that all agents share, only the ones that `of_shared` leaves.
    """
    with Lines() as lines:
        work()
    last = {line: at for at, line in enumerate(lines.seen)}
    first = {line: at for at, line in reversed(list(enumerate(lines.seen)))}
    moments = sorted({*first.values(), *last.values()})
    shared = [at for at in moments if Path(lines.seen[at][0]).parent in SHARED]
    return sorted({*moments}.difference(shared).union(of_shared(shared)))


def interrupted(work, at):
    """Run `work` until its `at`-th line; whether it was interrupted there."""
    try:
        with Lines(at):
            work()
    except KeyboardInterrupt:
        return True
    return False


def some(moments, most):
    """All of the moments, or at most `most` of them, spread evenly."""
    return (
        moments if len(moments) <= most else [moments[i * (len(moments) - 1) // (most - 1)] for i in range(most)]
    )


@contextlib.contextmanager
def alarm(seconds, of_processor=False):
    """Send Ctrl-C after `seconds`, unless the block ends earlier; the clock also runs inside compiled code."""
    clock, number = (signal.ITIMER_PROF, signal.SIGPROF) if of_processor else (signal.ITIMER_REAL, signal.SIGALRM)

    def ring(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(number, ring)
    try:
        signal.setitimer(clock, seconds)
        yield
    finally:
        signal.setitimer(clock, 0)
        signal.signal(number, before)


def interrupted_after(seconds, work, of_processor=False):
    """Run `work` for so long; whether it was interrupted."""
    try:
        with alarm(seconds, of_processor):
            work()
    except KeyboardInterrupt:
        return True
    return False
