"""`rlsvi watch`: a saved agent in its environment; Tetris in the terminal or as a moving picture."""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.environment import EnvArgs, EnvOption, StepsOption, check_folder, loaded, remembered
from rlsvi.cli.errors import told
from rlsvi.cli.screen import frame, screen, write_film

if TYPE_CHECKING:
    from rlsvi.agents.stationary.agent import StationaryAgent
    from rlsvi.bases import Tetris
    from rlsvi.envs.tetris import TetrisEnv

SPEED = 8.0  # pieces a second


def watch(
    what: Annotated[str, typer.Argument(help="The file of a saved agent. Or tetris: train one first.")],
    gif: Annotated[
        Path | None, typer.Option(help="Write this moving picture, instead of showing the game.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to show; of Tetris it is one.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Stop after so many steps.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes shown, and of the training.")] = 0,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Steps or pieces a second, in the terminal or the picture; 0: as fast as it goes.",
            show_default="the environment's; of Tetris 8",
        ),
    ] = None,
    env: EnvOption = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    games: Annotated[int, typer.Option(min=1, help="tetris: games to learn from.")] = 150,
    height: Annotated[int | None, typer.Option(help="Tetris: rows.", show_default="20, or a file's")] = None,
    width: Annotated[int | None, typer.Option(help="Tetris: columns.", show_default="10, or a file's")] = None,
    pieces: Annotated[
        str | None, typer.Option(help="Tetris: the pieces that come.", show_default="IOTSZJL, or a file's")
    ] = None,
    game_over: Annotated[
        str | None,
        typer.Option(help="Tetris: what ends a game, 'top row' or overflow.", show_default="top row, or a file's"),
    ] = None,
    pieces_limit: Annotated[int, typer.Option(min=1, help="Tetris: stop after so many pieces.")] = 300,
    save: Annotated[Path | None, typer.Option(help="tetris: save the trained agent to this file.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Watch a saved agent, playing on its posterior mean, without exploring; Ctrl-C ends it.

    It plays in a window where the environment can open one, else in the terminal, or into a file (--gif). The file
    remembers the environment; one of a third party is made only if you name it again by --env, because that
    imports its code.

    `tetris` trains stationary RLSVI on games of its own and then shows how it plays. On the usual board 50 games
    teach it to remove some 50 rows a game, 100 games about 1000, and after 150 it is several thousand. The first
    time, compiling takes a minute more. Keep an agent with --save. It plays by the rules it has learned, which the
    file tells; other ones are refused. What an older file does not tell, say by --height, --width, --pieces and
    --game-over.

    Example: rlsvi watch cartpole.rlsvi --gif cartpole.gif

    Example: rlsvi watch tetris --games 150 --save player.rlsvi

    Example: rlsvi watch player.rlsvi --speed 20 --gif game.gif
    """
    with told(lambda: "the game was not finished"):
        check_folder(gif, save)
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
            agent, path = loaded(Path(what)), Path(what)
            if not _plays_tetris(agent):
                if given:
                    options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
                    raise ValueError(f"{path} does not play Tetris: leave {options} out")
                from rlsvi.cli.show import show

                made = remembered(path, agent, env, env_arg, max_episode_steps)
                print(show(agent, made, seed, episodes, steps, speed, gif))
                return
            player, board = _ready(path, agent, given)
        pace = SPEED if speed is None else speed
        if gif is not None:
            end = _film(player, board, seed, pace, pieces_limit, gif, not quiet)
        else:
            end = _show(player, board, seed, pace, pieces_limit)
        print(end)


def _plays_tetris(agent: Any) -> bool:
    """Whether it is one of the agents that learn Tetris by its own features."""
    from rlsvi.agents.stationary.agent import StationaryAgent
    from rlsvi.bases import Tetris

    return isinstance(agent, StationaryAgent) and isinstance(agent.basis, Tetris)


def _trained(
    games: int, seed: int, given: dict[str, Any], progress: bool
) -> tuple["StationaryAgent", dict[str, Any]]:
    """An agent that has learned so many games, and its rules."""
    from rlsvi.tetris import level, rules

    by = rules(**rules(**given).setting)  # checked before more is loaded
    from rlsvi import StationaryRLSVI
    from rlsvi.bases import Tetris
    from rlsvi.core.progress import bar
    from rlsvi.simulate.tetris import simulate_tetris

    agent = StationaryRLSVI(basis=Tetris(), form="afterstate", gamma=0.99, seed=seed)
    with bar(games, "games", progress) as advance:
        learned = simulate_tetris(agent, by, games, advance=advance)
    last = min(games, 10)
    if progress:
        reached = level(learned.rows[-last:], by.game_over)
        print(f"rows a game, in the last {last} of {games} games: {reached}", file=sys.stderr)
    return agent, by.setting


def _ready(path: Path, agent: Any, given: dict[str, Any]) -> tuple["StationaryAgent", dict[str, Any]]:
    """A saved agent, and the rules it has learned by."""
    from rlsvi.simulate.tetris import adopted
    from rlsvi.tetris import rules

    known = agent.setting or _guessed(agent._learner.mind.ring.units, agent.basis)
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


def _show(player: "StationaryAgent", board: dict[str, Any], seed: int, speed: float, limit: int) -> str:
    """Play in the terminal."""
    from rlsvi.envs.tetris import TetrisEnv

    env = TetrisEnv(**board, render_mode="ansi")
    with screen(speed) as put:
        return _play(player, env, seed, limit, lambda: put(env.render()))


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
    from rlsvi.core.progress import bar
    from rlsvi.envs.tetris import TetrisEnv

    env = TetrisEnv(**board, render_mode="rgb_array")
    frames: list[Any] = []
    with bar(limit + 1, "pieces", progress) as advance:

        def show() -> None:
            frames.append(frame(env.render()))
            advance(1)

        end = _play(player, env, seed, limit, show)
    write_film(frames, speed, path)
    return end
