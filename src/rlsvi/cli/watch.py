"""`rlsvi watch`: a saved agent in its environment, in a window, in the terminal or as an animation."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from rlsvi.cli.environment import EnvArgs, EnvOption, ImportOption, StepsOption, loaded, remembered
from rlsvi.cli.errors import report_errors
from rlsvi.core.files import check_folder, whole_file
from rlsvi.envs.description import Made
from rlsvi.progress import bar

# ---- A saved agent in its environment: in a window, in the terminal, or as an animation in a file ----------


CLEAR, HOME, BELOW = "\x1b[2J", "\x1b[H", "\x1b[J"
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def show(
    agent: Any,
    made: Made,
    seed: int,
    episodes: int,
    limit: int,
    speed: float | None,
    gif: Path | None,
    progress: bool,
    words: Callable[[float, int, str], str],
) -> str:
    """Play episodes on the posterior mean, of `limit` steps together at most; how they went.

    Parameters
    ----------
    words
        A line about one episode, from its return, its steps and whether it "is over" or "goes on".
    """
    from gymnasium.error import DependencyNotInstalled, Error

    from rlsvi.envs.task import play

    mode, own_speed = _mode(made, gif)
    pace = own_speed if speed is None else speed
    world = made.make(mode)

    def played(each: Callable[[], object]) -> str:
        lines, left = [], limit
        for i in range(episodes):
            total, steps, over = play(agent, world, seed + i, limit=left, show=each)
            lines.append(words(total, steps, "is over" if over else "goes on"))
            left -= steps
            if left == 0:
                break
        return "\n".join(lines)

    try:
        if gif is not None:
            frames: list[Any] = []
            with bar(limit + episodes, "steps", progress) as advance:

                def film() -> None:
                    frames.append(frame(world.render()))
                    advance(1)

                end = played(film)
            write_film(frames, pace, gif)
            return end
        if mode == "human":
            return played(lambda: None)
        with screen(pace) as put:
            return played(lambda: put(str(world.render())))
    except (RuntimeError, Error) as error:
        no_window = mode == "human" and not isinstance(error, DependencyNotInstalled)  # which says what to install
        advice = "; if no window can be opened, save an animation: --gif game.gif" if no_window else ""
        raise RuntimeError(f"{error}{advice}") from error
    finally:
        world.close()


def _mode(made: Made, gif: Path | None) -> tuple[str, float]:
    """How it can be rendered, and how many frames a second."""
    world = made.make()
    modes, speed = world.metadata.get("render_modes") or [], float(world.metadata.get("render_fps") or 8)
    world.close()
    wanted = ("rgb_array",) if gif is not None else ("human", "ansi") if _has_display() else ("ansi",)
    for mode in wanted:
        if mode in modes:
            return mode, speed
    advice = "; save an animation: --gif game.gif" if "rgb_array" in modes and gif is None else ""
    offered = f"its render modes are {', '.join(modes)}" if modes else "it has no render modes"
    raise ValueError(f"{made.id} cannot be shown here as {' or '.join(wanted)}; {offered}{advice}")


def _has_display() -> bool:
    """Whether a window can be opened, as far as that can be known before."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    return sys.platform != "linux" or any(os.environ.get(name) for name in names)


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
    """One picture of an animation, with few colours."""
    from PIL import Image

    return Image.fromarray(pixels).quantize(64, Image.Quantize.MAXCOVERAGE)


def write_film(frames: list[Any], speed: float, path: Path) -> None:
    """Write an animation, the whole file or nothing."""
    first, *rest = frames
    pause = max(round(1000 / speed) if speed > 0 else 20, 20)
    with whole_file(path) as file:
        first.save(file, format="GIF", save_all=True, append_images=rest, duration=pause, loop=0)
    print(f"animation: {path}", file=sys.stderr)


def watch(
    what: Annotated[str, typer.Argument(help="The file of a saved agent.")],
    gif: Annotated[Path | None, typer.Option(help="Save an animation to this file instead of showing it.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to show.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Stop after this many steps.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that is random.")] = 0,
    speed: Annotated[float | None, typer.Option(min=0, help="Steps per second; 0: as fast as possible.")] = None,
    env: EnvOption = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    modules: ImportOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bars.")] = False,
) -> None:
    """Watch a saved agent play on its posterior mean, without exploring. Ctrl-C ends it.

    The agent plays in a window where the environment can open one, otherwise in the terminal, or into a file with
    --gif. Its file remembers the environment. An environment of a third party is made only if you name it again
    with --env, because that imports its code. Most environments of Gymnasium draw with pygame, which `pip install
    "gymnasium[classic-control]"` installs.

    Example: rlsvi watch cartpole.rlsvi --gif cartpole.gif
    """
    with report_errors(lambda: "the episode was not finished"):
        check_folder(gif)
        agent = loaded(Path(what), modules)
        made = remembered(Path(what), agent, env, env_arg, max_episode_steps)

        def words(total: float, count: int, state: str) -> str:
            return f"return {total:.6g} in {count} steps; the episode {state}"

        print(show(agent, made, seed, episodes, steps, speed, gif, not quiet, words))
