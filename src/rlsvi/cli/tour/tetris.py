"""Last stop: Tetris, learned on a small board."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from rlsvi.cli.tour.exhibit import Exhibit
from rlsvi.cli.tour.films import BESIDE, AtRandom, side_by_side
from rlsvi.cli.tour.guide import Guide
from rlsvi.cli.train import chart

TITLE = "Play Tetris after 200 games"
CODE = """import rlsvi
from rlsvi.simulate import simulate_tetris
board = rlsvi.tetris.rules(height=10, width=6)
agent = rlsvi.StationaryRLSVI(basis=rlsvi.bases.Tetris(), form="afterstate", gamma=0.99, seed=0)
print(simulate_tetris(agent, board, 200).rows)"""
GAMES, FRAMES = 200, 120


def show(guide: Guide) -> Exhibit:
    """Learn, draw the curve, and film the agent beside one that places at random."""
    names: dict[str, Any] = {}
    exec(CODE.rpartition("\n")[0], names)
    rows = names["simulate_tetris"](names["agent"], names["board"], GAMES).rows
    guide.say(chart([float(n) for n in rows], width=min(50, guide.console.width - 12), what="rows of games"))
    first, last = (float(np.mean(part)) for part in (rows[:20], rows[-20:]))
    sentence = (
        f"On a board of 10 rows and 6 columns the agent removes {first:.0f} rows a game in its first 20 games and "
        f"{last:.0f} in the last 20 of {GAMES}; it is given features of the board, but no strategy."
    )
    guide.say(sentence)
    films = zip(_boards(None), _boards(names["agent"]), strict=True)
    return Exhibit("tetris", TITLE, sentence, CODE, side_by_side(films, 120), "image/gif", BESIDE)


def _boards(player: Any) -> Iterator[Image.Image]:
    """Pictures of every placement of as many games as it takes; None: by a player that places at random."""
    from rlsvi.agents.playing import play
    from rlsvi.envs.tetris import TetrisEnv

    env = TetrisEnv(height=10, width=6, render_mode="rgb_array")
    seen: list[Image.Image] = []
    seed = 100
    while len(seen) < FRAMES:
        by = AtRandom(env.rules.actions) if player is None else player
        play(by, env, seed, limit=FRAMES, show=lambda: seen.append(Image.fromarray(env.render())))
        seed += 1
    yield from seen[:FRAMES]
