"""`rlsvi watch`: a saved agent in its environment; Tetris in the terminal or as a moving picture."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsvi.cli.environment import EnvArgs, EnvOption, StepsOption, check_folder, loaded, remembered
from rlsvi.cli.errors import told
from rlsvi.cli.show import show
from rlsvi.envs.making import Made

if TYPE_CHECKING:
    from rlsvi.agents.stationary.agent import StationaryAgent


def watch(
    what: Annotated[str, typer.Argument(help="The file of a saved agent. Or tetris: train one first.")],
    gif: Annotated[Path | None, typer.Option(help="Write this moving picture, instead of showing it.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to show; of Tetris it is one.")] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Stop after so many steps.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes shown, and of the training.")] = 0,
    speed: Annotated[float | None, typer.Option(min=0, help="Steps a second; 0: as fast as it goes.")] = None,
    env: EnvOption = None,
    env_arg: EnvArgs = None,
    max_episode_steps: StepsOption = None,
    games: Annotated[int, typer.Option(min=1, help="tetris: games to learn from.")] = 150,
    height: Annotated[int | None, typer.Option(help="Tetris: rows.", show_default="20, or a file's")] = None,
    width: Annotated[int | None, typer.Option(help="Tetris: columns.", show_default="10, or a file's")] = None,
    pieces: Annotated[str | None, typer.Option(help="Tetris: pieces", show_default="IOTSZJL, or a file's")] = None,
    game_over: Annotated[str | None, typer.Option(help="Tetris: 'top row', the default, or overflow.")] = None,
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
    file tells; other ones are refused.

    Example: rlsvi watch cartpole.rlsvi --gif cartpole.gif

    Example: rlsvi watch tetris --games 150 --save player.rlsvi

    Example: rlsvi watch player.rlsvi --speed 20 --gif game.gif
    """
    with told(lambda: "the game was not finished"):
        check_folder(gif, save)
        asked = {"height": height, "width": width, "pieces": pieces, "game_over": game_over}
        given = {name: value for name, value in asked.items() if value is not None}
        agent: Any
        board: dict[str, Any] | None
        if what == "tetris":
            agent, board = _trained(games, seed, given, not quiet)
            if save is not None:
                agent.save(save)
                print(f"agent: {save}", file=sys.stderr)
        elif save is not None:
            raise ValueError("--save goes with tetris, which trains an agent; this one has its file")
        else:
            agent = loaded(Path(what))
            board = _rules_learned(what, agent, given) if _plays_tetris(agent) else None
        if board is None:
            if given:
                raise ValueError(f"{what} does not play Tetris: leave {_options(given)} out")
            made = remembered(Path(what), agent, env, env_arg, max_episode_steps)
        else:
            made, episodes, steps = Made("rlsvi/Tetris-v0", board), 1, pieces_limit

        def words(total: float, count: int, state: str) -> str:
            if board is None:
                return f"return {total:.6g} in {count} steps; the episode {state}"
            rule = board["game_over"]
            return f"{total:.0f} rows removed with {count} pieces; the game {state} (game over: {rule})"

        print(show(agent, made, seed, episodes, steps, speed, gif, not quiet, words))


def _plays_tetris(agent: Any) -> bool:
    """Whether it is one of the agents that learn Tetris by its own features."""
    from rlsvi.agents.stationary.agent import StationaryAgent
    from rlsvi.bases import Tetris

    return isinstance(agent, StationaryAgent) and isinstance(agent.basis, Tetris)


def _trained(games: int, seed: int, given: dict[str, Any], progress: bool) -> tuple[Any, dict[str, Any]]:
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


def _rules_learned(path: str, agent: "StationaryAgent", given: dict[str, Any]) -> dict[str, Any]:
    """The rules that a saved agent has learned by, if they are those given on the command line."""
    from rlsvi.simulate.tetris import adopted
    from rlsvi.tetris import rules

    known = agent.setting
    board = rules(**{**known, **given}).setting
    if other := [name for name in known if known[name] != board[name]]:
        learned = ", ".join(f"{name} {known[name]!r}" for name in other)
        raise ValueError(f"{path} has learned with {learned}: leave {_options(other)} out")
    if missing := [name for name in board if name not in known and name not in given]:
        raise ValueError(f"{path} does not tell all the rules it has learned by: give {_options(missing)}")
    try:
        adopted(agent, rules(**board))
    except ValueError as error:
        raise ValueError(f"{path} has learned by other rules ({error}): give {_options(board)}") from None
    return board


def _options(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
