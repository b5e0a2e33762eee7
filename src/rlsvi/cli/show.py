"""A saved agent in its environment: in a window, in the terminal, or as a moving picture."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsvi.cli.screen import frame, screen, write_film

if TYPE_CHECKING:
    from rlsvi.envs.making import Made


def show(
    agent: Any, made: "Made", seed: int, episodes: int, limit: int, speed: float | None, gif: Path | None
) -> str:
    """Play episodes on the posterior mean; how they went."""
    from gymnasium.error import Error

    mode, own_speed = _mode(made, gif)
    pace = own_speed if speed is None else speed
    world = made.make(mode)
    try:
        if gif is not None:
            frames: list[Any] = []
            end = _play(agent, world, seed, episodes, limit, lambda: frames.append(frame(world.render())))
            write_film(frames, pace, gif)
            return end
        if mode == "human":
            return _play(agent, world, seed, episodes, limit, lambda: None)
        with screen(pace) as put:
            return _play(agent, world, seed, episodes, limit, lambda: put(str(world.render())))
    except (RuntimeError, Error) as error:
        advice = "; where no window can be opened, write a picture: --gif game.gif" if mode == "human" else ""
        raise RuntimeError(f"{error}{advice}") from error
    finally:
        world.close()


def _mode(made: "Made", gif: Path | None) -> tuple[str, float]:
    """How it can be rendered, and how many frames a second."""
    world = made.make()
    modes, speed = world.metadata.get("render_modes") or [], float(world.metadata.get("render_fps") or 8)
    world.close()
    wanted = ("rgb_array",) if gif is not None else ("human", "ansi") if _has_display() else ("ansi",)
    for mode in wanted:
        if mode in modes:
            return mode, speed
    advice = "; write a picture of it: --gif game.gif" if "rgb_array" in modes and gif is None else ""
    offered = ", ".join(modes) or "nothing"
    raise ValueError(f"{made.id} cannot be shown here as {' or '.join(wanted)}, it offers {offered}{advice}")


def _has_display() -> bool:
    """Whether a window can be opened, as far as that can be known before."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    return sys.platform != "linux" or any(os.environ.get(name) for name in names)


def _play(agent: Any, world: Any, seed: int, episodes: int, limit: int, each: Any) -> str:
    """Play, and call `each` for every position shown."""
    from rlsvi.study.evaluation import play

    told, left = [], limit
    for i in range(episodes):
        total, steps, over = play(agent, world, seed + i, limit=left, show=each)
        left -= steps
        told.append(f"return {total:.6g} in {steps} steps; the episode {'is over' if over else 'goes on'}")
        if left == 0:
            break
    return "\n".join(told)
