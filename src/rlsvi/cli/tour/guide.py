"""Where the tour stands: a line that moves on a terminal, and elsewhere a line every few seconds."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console

from rlsvi.progress import display_in_use

DOUBT = 8.0  # seconds that went as expected, before the first stop
EVERY = 4.0  # seconds between two lines, where nothing can move


class Guide:
    """Says what is done and how long it will take.

    expected : seconds that each stop takes once everything is compiled, by its name, in order.
    """

    def __init__(self, console: Console, expected: Mapping[str, float]) -> None:
        self.console, self.expected = console, dict(expected)
        self.began = time.monotonic()
        self._pace, self._done, self._now = 1.0, 0.0, ""
        self._since, self._spent = self.began, 0.0
        self._moves = console.is_terminal and not console.is_dumb_terminal

    def left(self) -> float:
        """Seconds until the end, judged by what the stops so far have taken."""
        names = list(self.expected)
        later = sum(self.expected[name] for name in names[names.index(self._now) + 1 :]) if self._now else 0.0
        here = self.expected.get(self._now, 0.0) * self._pace - (time.monotonic() - self._since)
        return max(here, 2.0) + later * self._pace

    def say(self, text: str = "") -> None:
        """Print a line, or several."""
        self.console.print(text, highlight=False, markup=False)

    @contextmanager
    def stop(self, name: str, title: str) -> Iterator[None]:
        """A stop of the tour; while it lasts, someone who waits is told for how long."""
        self._now, self._since = name, time.monotonic()
        self.console.rule(f"[bold]{title}[/]", align="left", characters="-")
        over = threading.Event()
        with display_in_use, self.console.status(self._line()) as status:  # no other bar beside it

            def tick() -> None:
                while not over.wait(1.0 if self._moves else EVERY):
                    if self._moves:
                        status.update(self._line())
                    else:
                        self.say(self._line())

            clock = threading.Thread(target=tick, daemon=True)
            clock.start()
            try:
                yield
            finally:
                over.set()
                clock.join()
        self._done += self.expected[name]
        self._spent += time.monotonic() - self._since
        self._pace = (self._spent + DOUBT) / (self._done + DOUBT)

    def _line(self) -> str:
        return f"... about {self.left():.0f} seconds left"
