"""The stops that this package adds to the tour of `rlsvi demo`: Tetris, and what the paper claims."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from rlsvi.cli.tour import AtRandom, Guide, Stop, all_but_last_line, film, side_by_side
from rlsvi.cli.train import chart
from rlsvi.core.cache import is_kept
from rlsvi.simulate.finite import run
from rlsvi_paper.report.records import ClaimRecord, read_figure

GAMES, PLACEMENTS = 200, 120  # of Tetris; placements are those that are filmed
FIGURES = ("chain-regret", "chain-length", "recsys-boltzmann", "chain-lambda", "dithering")
TETRIS = """import rlsvi
from rlsvi_paper.tetris import Tetris, rules, simulate_tetris
board = rules(height=10, width=6)
agent = rlsvi.StationaryRLSVI(basis=Tetris(), form="afterstate", gamma=0.99, seed=0)
print(simulate_tetris(agent, board, 200).rows)"""


def show_tetris(guide: Guide, folder: Path) -> str:
    """Learn, draw the curve, and film the agent beside one that places at random."""
    from rlsvi_paper.tetris import TetrisEnv, simulate_tetris

    names = all_but_last_line(TETRIS)
    rows = simulate_tetris(names["agent"], names["board"], GAMES).rows
    guide.say(chart([float(n) for n in rows], width=min(50, guide.console.width - 12), what="rows of games"))
    first, last = (float(np.mean(part)) for part in (rows[:20], rows[-20:]))
    env = TetrisEnv(height=10, width=6, render_mode="rgb_array")
    players = AtRandom(env.rules.actions), names["agent"]
    frames = (film(player, env, lambda: Image.fromarray(env.render()), PLACEMENTS) for player in players)
    sentence = (
        f"On a board of 10 rows and 6 columns the agent removes {first:.0f} rows a game in its first 20 games and "
        f"{last:.0f} in the last 20 of {GAMES}; it is given features of the board, but no strategy."
    )
    return guide.exhibit(sentence, TETRIS, side_by_side(*frames, pause=120))


class Judging(NamedTuple):
    """The process that computes figures at quick scale, and the folder of what it finds."""

    process: "subprocess.Popen[str]"
    folder: Path


@contextmanager
def judge_claims(out: Path) -> Iterator[Judging]:
    """Compute some figures in a process of their own, which ends with the tour at the latest."""
    options = ["--executor", "serial", "--quiet", "--out", str(out / "paper")]
    command = [sys.executable, "-P", "-m", "rlsvi", "paper", *FIGURES, *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Judging(process, out / "paper")
        finally:
            process.kill()


def show_claims(guide: Guide, judging: Judging) -> str:
    """Wait until the figures are computed, and say how many of their headline claims are reproduced."""
    claims, trouble = headline_claims(judging)
    if trouble:
        guide.say(f"The claims could not be judged: {trouble}")
        return f"<p>Not judged in this run: {escape(trouble)}.</p>"
    held = sum(claim.outcome == "reproduced" for claim in claims)
    guide.say(f"{held} of the {len(claims)} headline claims judged here are reproduced; the others need")
    guide.say("larger runs (make paper).")
    rows = "\n".join(map(_row, claims))
    return f"""<p>These headline claims were judged on small runs, computed beside the tour.
<code>make paper</code> computes all figures and judges every claim.</p>
<ul>
{rows}
</ul>"""


def headline_claims(judging: Judging) -> tuple[list[ClaimRecord], str]:
    """The headline claims of the figures computed, once they are; and what went wrong, if anything did."""
    _, errors = judging.process.communicate()
    if judging.process.returncode != 0:
        last = errors.strip().rpartition("\n")[2].removeprefix("error: ")
        return [], last or f"exit code {judging.process.returncode}"
    try:
        figures = [read_figure(judging.folder / f"{name}.json") for name in FIGURES]
    except (ValueError, OSError) as error:
        return [], str(error)
    return [claim for figure in figures for claim in figure.claims if claim.headline], ""


def _row(claim: ClaimRecord) -> str:
    why = {"": "", "scale": " (too few runs here)"}.get(claim.why, f" ({claim.why})")
    return (
        f'<li><span class="{claim.outcome.replace(" ", "-")}">{claim.outcome}{why}</span> '
        f"{escape(claim.words)} <small>({escape(claim.where)})</small></li>"
    )


STOPS = {
    "tetris": Stop("Play Tetris after 200 games", show_tetris, lambda _: 5.0 if is_kept(run) else 22.0),
    "claims": Stop(
        "What the paper claims, as judged in this run",
        show_claims,
        lambda out: 4.0 if (out / "paper").exists() else 35.0,
        judge_claims,
    ),
}
