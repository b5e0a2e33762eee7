"""Games on the screen: text that replaces itself in a terminal, and moving pictures."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CLEAR, HOME, BELOW = "\x1b[2J", "\x1b[H", "\x1b[J"
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def is_terminal() -> bool:
    """Whether someone is looking."""
    return sys.stdout.isatty()


@contextmanager
def screen(speed: float) -> Iterator[Callable[[str], None]]:
    """Yields `put(text)`, at most `speed` a second; into a file or a pipe one after the other, without waiting."""
    terminal, due = is_terminal(), time.monotonic()

    def put(text: str) -> None:
        nonlocal due
        sys.stdout.write(HOME + text + BELOW + "\n" if terminal else text + "\n")
        sys.stdout.flush()
        if terminal and speed > 0:
            due += 1 / speed
            time.sleep(max(due - time.monotonic(), 0))

    try:
        if terminal:
            sys.stdout.write(HIDE + CLEAR)
        yield put
    finally:
        if terminal:
            sys.stdout.write(SHOW)
            sys.stdout.flush()


def frame(pixels: Any) -> Any:
    """A picture of a film, of few colours."""
    from PIL import Image

    return Image.fromarray(pixels).quantize(64, Image.Quantize.MAXCOVERAGE)


def write_film(frames: list[Any], speed: float, path: Path) -> None:
    """A moving picture, the file whole or not at all."""
    from rlsvi.core.files import whole_file

    first, *rest = frames
    pause = max(round(1000 / speed) if speed > 0 else 20, 20)
    with whole_file(path) as file:
        first.save(file, format="GIF", save_all=True, append_images=rest, duration=pause, loop=0)
    print(f"picture: {path}", file=sys.stderr)
