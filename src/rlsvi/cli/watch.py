"""`rlsvi watch`: an agent playing Tetris, in the terminal or as a moving picture."""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.errors import told

if TYPE_CHECKING:
    from rlsvi.agents.stationary import StationaryAgent
    from rlsvi.bases import Tetris
    from rlsvi.envs.tetris import TetrisEnv

CLEAR, HOME, BELOW = "\x1b[2J", "\x1b[H", "\x1b[J"
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def watch(
    what: Annotated[str, typer.Argument(help="tetris: train an agent first. Or the file of a saved one.")],
    games: Annotated[int, typer.Option(min=1, help="tetris: games to learn from.")] = 150,
    seed: Annotated[int, typer.Option(min=0, help="Of the training, and of the pieces shown.")] = 0,
    height: Annotated[int | None, typer.Option(help="Rows of the board.", show_default="20, or a file's")] = None,
    width: Annotated[int | None, typer.Option(help="Columns.", show_default="10, or a file's")] = None,
    pieces: Annotated[
        str | None, typer.Option(help="The pieces that come, letters.", show_default="IOTSZJL, or a file's")
    ] = None,
    game_over: Annotated[
        str | None,
        typer.Option(help="What ends a game: 'top row' or overflow.", show_default="top row, or a file's"),
    ] = None,
    speed: Annotated[float, typer.Option(min=0, help="Pieces a second; 0: as fast as it goes.")] = 8.0,
    pieces_limit: Annotated[int, typer.Option(min=1, help="Stop after so many pieces.")] = 300,
    gif: Annotated[
        Path | None, typer.Option(help="Write this moving picture, instead of showing the game.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="tetris: save the trained agent to this file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Watch an agent play Tetris; Ctrl-C ends it.

    `tetris` trains stationary RLSVI on games of its own and then shows how it plays on its posterior mean, without
    exploring. On the usual board 50 games teach it to remove some 50 rows a game, 100 games about 1000, and after
    150 it is several thousand. The first time, compiling takes a minute more. Keep an agent with --save, and watch
    it again by the name of the file. A file must hold a StationaryRLSVI or StationaryLSVI that has learned Tetris.
    It plays by the rules it has learned, which the file tells; other ones are refused. What an older file does not
    tell, say by --height, --width, --pieces and --game-over.

    Example: rlsvi watch tetris --games 150 --save player.rlsvi

    Example: rlsvi watch player.rlsvi --speed 20 --gif game.gif
    """
    with told(lambda: "the game was not finished"):
        for path in (gif, save):
            if path is not None and not path.parent.is_dir():
                raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
        asked = {"height": height, "width": width, "pieces": pieces, "game_over": game_over}
        given = {name: value for name, value in asked.items() if value is not None}
        if what == "tetris":
            player, board = _trained(games, seed, given, not quiet)
            if save is not None:
                player.save(save)
                print(f"agent: {save}", file=sys.stderr)
        else:
            if save is not None:
                raise ValueError("--save goes with tetris, which trains an agent; this one has its file")
            player, board = _loaded(Path(what), given)
        if gif is not None:
            end = _film(player, board, seed, speed, pieces_limit, gif, not quiet)
        else:
            end = _show(player, board, seed, speed, pieces_limit)
        print(end)


def _trained(
    games: int, seed: int, given: dict[str, Any], progress: bool
) -> tuple["StationaryAgent", dict[str, Any]]:
    """An agent that has learned so many games, and its rules."""
    from rlsvi.tetris import level, rules

    by = rules(**rules(**given).setting)  # checked before more is loaded
    from rlsvi import StationaryRLSVI
    from rlsvi.bases import Tetris
    from rlsvi.core.progress import bar
    from rlsvi.simulate_tetris import simulate_tetris

    agent = StationaryRLSVI(basis=Tetris(), form="afterstate", gamma=0.99, seed=seed)
    with bar(games, "games", progress) as advance:
        learned = simulate_tetris(agent, by, games, advance=advance)
    last = min(games, 10)
    if progress:
        reached = level(learned.rows[-last:], by.game_over)
        print(f"rows a game, in the last {last} of {games} games: {reached}", file=sys.stderr)
    return agent, by.setting


def _loaded(path: Path, given: dict[str, Any]) -> tuple["StationaryAgent", dict[str, Any]]:
    """A saved agent, and the rules it has learned by."""
    from rlsvi import load
    from rlsvi.agents.stationary import StationaryAgent
    from rlsvi.bases import Tetris
    from rlsvi.simulate_tetris import adopted
    from rlsvi.tetris import rules

    if not path.exists():
        raise FileNotFoundError(
            f"there is no file {path}: give the file of a saved agent, or train one by: rlsvi watch tetris"
        )
    agent = load(path)
    if not isinstance(agent, StationaryAgent) or not isinstance(agent.basis, Tetris):
        raise ValueError(
            f"{path} holds {type(agent).__name__} with the basis {agent.basis!r}, which does not play Tetris: "
            "that takes StationaryRLSVI or StationaryLSVI with rlsvi.bases.Tetris()"
        )
    if agent._learner is None or agent.episodes == 0:
        raise ValueError(f"{path} holds an agent that has learned nothing: train it first")
    known = agent.setting or _guessed(agent._learner.ring.units, agent.basis)
    board = rules(**{**known, **given}).setting
    other = [name for name in known if known[name] != board[name]]
    if other:
        learned = ", ".join(f"{name} {known[name]!r}" for name in other)
        options = ", ".join(f"--{name.replace('_', '-')}" for name in other)
        raise ValueError(f"{path} has learned with {learned}: leave {options} out")
    missing = [f"--{name.replace('_', '-')}" for name in board if name not in known and name not in given]
    if "--height" in missing or "--width" in missing:
        raise ValueError(f"{path} does not tell on which board it has learned: say it by {' and '.join(missing)}")
    if missing:
        assumed = f"pieces {board['pieces']}, game over {board['game_over']!r}"
        warnings.warn(
            f"{path} does not tell all rules it has learned by; taken are {assumed}, to be set by "
            f"{' and '.join(missing)}",
            stacklevel=2,
        )
    try:
        adopted(agent, rules(**board))
    except ValueError as error:
        raise ValueError(
            f"{path} has learned by other rules ({error}): say them by --height, --width and --pieces"
        ) from None
    return agent, board


def _guessed(units: Any, basis: "Tetris") -> dict[str, Any]:
    """The board of an older file, as far as its features tell it."""
    if basis.features != "bertsekas":
        return {}
    width = {"width": (len(units) - 2) // 2}
    scaled = isinstance(basis.units, str) and basis.units == "scaled"
    return {"height": round(1 / units[0]), **width} if scaled else width


def _play(player: "StationaryAgent", env: "TetrisEnv", seed: int, limit: int, show: Callable[[], None]) -> str:
    """Play one game, and show every position; how it went."""
    observation, info = env.reset(seed=seed)
    rows, placed, over = 0, 0, False
    show()
    while not over and placed < limit:
        action, _ = player.predict(observation, deterministic=True, action_mask=info["action_mask"])
        observation, removed, over, _, info = env.step(action)
        rows, placed = rows + int(removed), placed + 1
        show()
    end = "is over" if over else "goes on"
    return f"{rows} rows removed with {placed} pieces; the game {end} (game over: {info['game_over']})"


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _show(player: "StationaryAgent", board: dict[str, Any], seed: int, speed: float, limit: int) -> str:
    """Play in the terminal; into a file or a pipe one position after the other, without waiting."""
    from rlsvi.envs.tetris import TetrisEnv

    env, terminal = TetrisEnv(**board, render_mode="ansi"), _is_terminal()
    due = time.monotonic()

    def show() -> None:
        nonlocal due
        sys.stdout.write(HOME + env.render() + BELOW + "\n" if terminal else env.render() + "\n")
        sys.stdout.flush()
        if terminal and speed > 0:
            due += 1 / speed
            time.sleep(max(due - time.monotonic(), 0))

    try:
        if terminal:
            sys.stdout.write(HIDE + CLEAR)
        return _play(player, env, seed, limit, show)
    finally:
        if terminal:
            sys.stdout.write(SHOW)
            sys.stdout.flush()


def _film(
    player: "StationaryAgent",
    board: dict[str, Any],
    seed: int,
    speed: float,
    limit: int,
    path: Path,
    progress: bool,
) -> str:
    """Play into a moving picture."""
    from PIL import Image

    from rlsvi.core.files import whole_file
    from rlsvi.core.progress import bar
    from rlsvi.envs.tetris import TetrisEnv

    env, frames = TetrisEnv(**board, render_mode="rgb_array"), []
    with bar(limit + 1, "pieces", progress) as advance:

        def show() -> None:
            frames.append(Image.fromarray(env.render()).quantize(64, Image.Quantize.MAXCOVERAGE))
            advance(1)

        end = _play(player, env, seed, limit, show)
    first, *rest = frames
    pause = 1000 / speed if speed > 0 else 20
    with whole_file(path) as file:
        first.save(file, format="GIF", save_all=True, append_images=rest, duration=max(round(pause), 20), loop=0)
    print(f"picture: {path}", file=sys.stderr)
    return end
