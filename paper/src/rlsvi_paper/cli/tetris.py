"""`rlsvi tetris`: an agent that learns Tetris and shows how it plays, in the terminal or as an animation."""

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from rlsvi.cli.environment import loaded
from rlsvi.cli.errors import report_errors
from rlsvi.cli.watch import show
from rlsvi.core.files import check_folder
from rlsvi.envs.description import Made
from rlsvi.progress import bar

_rule = partial(typer.Option, rich_help_panel="Rules")


def tetris(
    file: Annotated[
        Path | None, typer.Argument(help="The file of a saved agent; by default, one is trained.")
    ] = None,
    games: Annotated[int, typer.Option(min=1, help="Games to learn from, if an agent is trained first.")] = 150,
    save: Annotated[Path | None, typer.Option(help="Save the agent that was trained to this file.")] = None,
    gif: Annotated[Path | None, typer.Option(help="Save an animation to this file instead of showing it.")] = None,
    pieces_limit: Annotated[int, typer.Option(min=1, help="Stop after this many pieces.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that is random.")] = 0,
    speed: Annotated[float | None, typer.Option(min=0, help="Steps per second; 0: as fast as possible.")] = None,
    height: Annotated[int | None, _rule(help="Rows.", show_default="20, or the file's")] = None,
    width: Annotated[int | None, _rule(help="Columns.", show_default="10, or the file's")] = None,
    pieces: Annotated[str | None, _rule(help="Pieces.", show_default="IOTSZJL, or the file's")] = None,
    game_over: Annotated[str | None, _rule(help="When a game ends: 'top row' (default) or overflow.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bars.")] = False,
) -> None:
    """Train stationary RLSVI on Tetris, or take a saved agent, and watch it play one game. Ctrl-C ends it.

    On the usual board it removes about 50 rows a game after learning from 50 games, about 1000 after 100 games,
    and several thousand after 150. Keep the agent with --save. A saved agent plays by the rules it has learned
    with, which are in its file; other rules are refused.

    Example: rlsvi tetris --games 150 --save player.rlsvi

    Example: rlsvi tetris player.rlsvi --speed 20 --gif game.gif
    """
    with report_errors(lambda: "the game was not finished"):
        check_folder(gif, save)
        asked = {"height": height, "width": width, "pieces": pieces, "game_over": game_over}
        given = {name: value for name, value in asked.items() if value is not None}
        if file is None:
            agent, board = _trained(games, seed, given, not quiet)
            if save is not None:
                agent.save(save)
                print(f"agent: {save}", file=sys.stderr)
        elif save is not None:
            raise ValueError("--save goes with an agent that is trained; this agent is in a file already")
        else:
            agent = loaded(file, ["rlsvi_paper.tetris"])
            board = _rules_learned(file, agent, given)

        def words(total: float, count: int, state: str) -> str:
            rule = board["game_over"]
            return f"{total:.0f} rows removed with {count} pieces; the game {state} (game over: {rule})"

        print(show(agent, Made("rlsvi/Tetris-v0", board), seed, 1, pieces_limit, speed, gif, not quiet, words))


def _trained(games: int, seed: int, given: dict[str, Any], progress: bool) -> tuple[Any, dict[str, Any]]:
    """An agent that has learned so many games, and its rules."""
    from rlsvi_paper.tetris import rules

    by = rules(**rules(**given).setting)  # checked before more is loaded
    from rlsvi import StationaryRLSVI
    from rlsvi_paper.claim import mean_se
    from rlsvi_paper.tetris import Tetris
    from rlsvi_paper.tetris.loop import simulate_tetris

    agent = StationaryRLSVI(basis=Tetris(), form="afterstate", gamma=0.99, seed=seed)
    with bar(games, "games", progress) as advance:
        learned = simulate_tetris(agent, by, games, advance=advance)
    last = min(games, 10)
    if progress:
        reached = f"{mean_se(learned.rows[-last:].astype(float))} (game over: {by.game_over})"
        print(f"rows removed per game in the last {last} of {games} games: {reached}", file=sys.stderr)
    return agent, by.setting


def _rules_learned(path: Path, agent: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The rules that a saved agent has learned by, if they are those given on the command line."""
    from rlsvi.agents.stationary import StationaryAgent
    from rlsvi_paper.tetris import Tetris, rules
    from rlsvi_paper.tetris.loop import learner_for

    if not (isinstance(agent, StationaryAgent) and isinstance(agent.basis, Tetris)):
        raise ValueError(f"{path} does not play Tetris: show it with rlsvi watch")
    known = agent.setting
    board = rules(**{**known, **given}).setting
    if other := [name for name in known if known[name] != board[name]]:
        learned = ", ".join(f"{name} {known[name]!r}" for name in other)
        raise ValueError(f"{path} has learned with {learned}: leave {_options(other)} out")
    if missing := [name for name in board if name not in known and name not in given]:
        raise ValueError(f"{path} does not tell all the rules that it has learned with: give {_options(missing)}")
    try:
        learner_for(agent, rules(**board))
    except ValueError as error:
        raise ValueError(f"{path} has learned with other rules ({error}): give {_options(board)}") from None
    return board


def _options(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
