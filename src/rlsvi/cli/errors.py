"""How a command ends when something went wrong: with a word to the user, instead of a traceback.

When the reader of a pipe has left, as in `rlsvi list | head -1`, it ends without a word.
"""

import os
import select
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

GONE = 128 + int(getattr(signal, "SIGPIPE", 13))  # what a shell reports of other tools that write to nobody


@contextmanager
def report_errors(stopped: Callable[[], str]) -> Iterator[None]:
    """Errors one can do something about on stderr, with exit code 2; after Ctrl-C `stopped()`, and 130."""

    def say(message: Warning | str, *_: object, **__: object) -> None:
        print(f"warning: {message}", file=sys.stderr)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = say
            yield
            print(end="", flush=True)  # what cannot be written is found out here
    except typer.Exit:  # which is a RuntimeError
        raise
    except (ValueError, TypeError, ArithmeticError, LookupError, OSError, RuntimeError) as error:
        if isinstance(error, BrokenPipeError) and left():
            raise  # not an error of ours: see `quiet_pipes`
        print(f"error: {'; '.join([str(error), *getattr(error, '__notes__', [])])}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print(f"stopped; {stopped()}", file=sys.stderr)
        raise typer.Exit(130) from None


@contextmanager
def quiet_pipes() -> Iterator[None]:
    """End with the exit code `GONE` where a write to a pipe failed because its reader has left."""
    try:
        yield
    except SystemExit as end:  # always: typer ends so, and hides a broken pipe behind the exit code 1
        if isinstance(end.__context__, BrokenPipeError):
            _leave(GONE)
        try:
            print(end="", flush=True)
        except BrokenPipeError:
            _leave(GONE)
        except OSError:  # the disk is full, which `report_errors` has said
            _leave(2)
        raise


def left() -> bool:
    """Whether stdout or stderr is a pipe whose reader has left, as far as the system tells."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):  # no such stream, or it is no file, or closed
            poll.register(stream.fileno(), 0)  # type: ignore[union-attr]
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _leave(code: int) -> None:
    """Exit; what is still to be written goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):
            os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
    os.close(nowhere)
    raise SystemExit(code)
