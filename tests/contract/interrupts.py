"""Ctrl-C at a chosen line of the library, or at a chosen time inside its compiled loops."""

import contextlib
import signal
import sys
from pathlib import Path

import rlsvi

ROOT = Path(rlsvi.__file__).parent
PROBLEMS = tuple(str(ROOT / name) for name in ("envs", "mdp", "bases"))  # those fail as the user's own would


class Lines:
    """Counts the lines of the library that run, and raises KeyboardInterrupt at the `at`-th of them."""

    def __init__(self, at=None):
        self.at, self.count = at, 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)

    def _call(self, frame, event, argument):
        file = frame.f_code.co_filename
        ours = file.startswith(str(ROOT)) and not file.startswith(PROBLEMS)
        return self._line if ours else None

    def _line(self, frame, event, argument):
        if event == "line":
            if self.count == self.at:
                self.count += 1
                raise KeyboardInterrupt
            self.count += 1
        return self._line


def lines_of(work):
    """How many lines of the library `work` runs."""
    with Lines() as lines:
        work()
    return lines.count


def interrupted(work, at):
    """Run `work` until its `at`-th line; whether it was interrupted there."""
    try:
        with Lines(at):
            work()
    except KeyboardInterrupt:
        return True
    return False


def some(count, most):
    """All of the numbers below `count`, or at most `most` of them, spread evenly."""
    return (
        list(range(count)) if count <= most else sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})
    )


@contextlib.contextmanager
def alarm(seconds, of_processor=False):
    """Ctrl-C after so many seconds, unless it is over before; the time goes on inside compiled code."""
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
