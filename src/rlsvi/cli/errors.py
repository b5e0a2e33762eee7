"""What the user is told when something went wrong, instead of a traceback."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from rlsvi.cli.pipes import left


@contextmanager
def told(stopped: Callable[[], str]) -> Iterator[None]:
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
            raise  # not an error of ours: see `pipes`
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print(f"stopped; {stopped()}", file=sys.stderr)
        raise typer.Exit(130) from None
