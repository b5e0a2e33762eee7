"""The tour of `rlsvi demo`: four things the library does, each learned while one watches, and a page of them."""

import io
import math
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from PIL import Image, ImageDraw
from rich.console import Console

import rlsvi
from rlsvi.cli.train import chart
from rlsvi.core.cache import is_kept
from rlsvi.core.files import write_file
from rlsvi.envs.task import play
from rlsvi.html import document, style_of
from rlsvi.progress import display_in_use
from rlsvi.simulate.finite import run
from rlsvi.study.compare import warm_up
from rlsvi_paper.report.page import style_name
from rlsvi_paper.report.records import ClaimRecord, read_figure

SECONDS = {"ready": 1.0, "cart-pole": 20.0, "chain": 4.0, "recommendation": 3.0, "tetris": 5.0, "claims": 4.0}
FIRST_SECONDS = {
    "ready": 26.0,
    "cart-pole": 22.0,
    "chain": 6.0,
    "recommendation": 10.0,
    "tetris": 22.0,
    "claims": 7.0,
}
CLAIMS = 35.0  # of the last stop, if no claim has been judged there before
DOUBT = 8.0  # seconds that went as expected, before the first stop
SECONDS_BETWEEN_UPDATES = 1.0  # of the line that moves
EPISODES, SEEDS, STEPS = 20, 5, 400  # of CartPole; steps are those that are filmed
GAMES, PLACEMENTS = 200, 120  # of Tetris
FIGURES = ("chain-regret", "chain-length", "recsys-boltzmann", "chain-lambda", "dithering")
PALE, CART, POLE = "#d9d9d9", "#0072B2", "#D55E00"
WIDTH, HEIGHT = 300, 150  # of the picture of a cart


def show_all(out: Path) -> Path:
    """Make all stops, and write the page out/index.html; its path."""
    expected = SECONDS if is_kept(run) else FIRST_SECONDS
    if not (out / "paper").exists():
        expected = expected | {"claims": CLAIMS}
    guide, index, exhibits = Guide(Console(), expected), out / "index.html", []
    with judge_claims(out / "paper") as process:
        with guide.stop("ready", "Getting ready"):
            warm_up()
        for number, (name, stop) in enumerate(STOPS.items(), 1):
            with guide.stop(name, f"{number}. {stop.title}"):
                sentence, picture = stop.show(stop.code, guide)
                guide.say(sentence)
            exhibits.append(Exhibit(name, stop.title, sentence, stop.code, picture))
        with guide.stop("claims", "5. What the paper claims"):
            claims, trouble = headline_claims(process, out / "paper")
    write_file(index, page(exhibits, claims, trouble).encode())
    held = sum(claim.outcome == "reproduced" for claim in claims)
    if trouble:
        guide.say(f"The claims could not be judged: {trouble}")
    else:
        guide.say(f"{held} of the {len(claims)} headline claims judged here are reproduced; the others need")
        guide.say("larger runs (make paper).")
    guide.say(f"The tour took {time.monotonic() - guide.began:.0f} seconds. Open this page in a browser:")
    return index


class Guide:
    """Says what is done and how long it will take: a line that moves, or where none can one for each stop.

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
        if not self._moves:
            self.say(self._line())
        over = threading.Event()
        with display_in_use, self.console.status(self._line()) as status:  # no other bar beside it

            def tick() -> None:
                while not over.wait(SECONDS_BETWEEN_UPDATES):
                    status.update(self._line())

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


# ---- The stops: each returns a sentence on what was seen, and its picture, a GIF or an SVG --------------------


def show_cart_pole(code: str, guide: Guide) -> tuple[str, bytes]:
    """Learn with several seeds, draw the curve of the first, and film the median one beside one at random."""
    env: Any = gym.make("CartPole-v1")
    curve: list[float] = []

    def say(_: Any, value: float) -> None:
        curve.append(value)
        guide.say(f"episode {len(curve):2}: the pole stood for {value:.0f} of 500 steps")

    found = []
    for seed in range(SEEDS):
        agent = rlsvi.agent_for(env, seed=seed)
        agent.learn(env, episodes=EPISODES, on_episode=None if seed else say)
        found.append((rlsvi.evaluate(agent, env, episodes=10).mean, seed, agent))
        if seed == 0:
            guide.say(chart(curve, width=min(EPISODES, guide.console.width - 12)))
        guide.say(f"Seed {seed}, ten fresh episodes without exploring: {found[-1][0]:.0f} steps on average.")
    worst, *_, (median, _, agent) = sorted(found, key=lambda it: it[:2])[: SEEDS // 2 + 1]
    positions = (film(player, env, lambda: tuple(env.unwrapped.state), STEPS) for player in (AtRandom(2), agent))
    frames = ([cart(x, angle) for x, _, angle, _ in states[::2]] for states in positions)
    sentence = (
        f"After {EPISODES} episodes the agent that agent_for chose balances the pole for {median:.0f} of 500 "
        f"steps, with its default settings: the median of {SEEDS} seeds, of which the worst has {worst[0]:.0f}."
    )
    return sentence, side_by_side(*frames, pause=40)


def show_chain(code: str, guide: Guide) -> tuple[str, bytes]:
    """Compare RLSVI with dithering on a chain, and plot their regret."""
    runs = all_but_last_line(code)["runs"]
    learned = runs.summary()["learned"].to_list()
    sentence = (
        f"The only reward is at the far end of the chain: RLSVI learned to fetch it in {learned[0]} of "
        f"{len(runs.seeds)} runs, epsilon-greedy exploration in {learned[1]}."
    )
    return sentence, plot(runs)


def show_recommendation(code: str, guide: Guide) -> tuple[str, bytes]:
    """Compare RLSVI with two bandits, and plot their regret."""
    runs = all_but_last_line(code)["runs"]
    left = runs.summary()["regret_left"].to_list()
    sentence = (
        "What a customer likes depends on what was shown before: per customer, over the last tenth of the run, "
        f"RLSVI loses {left[0]:.0%} of what random recommendations lose, a linear bandit {left[1]:.0%}, and "
        f"Thompson sampling, which ignores what was shown, {left[2]:.0%}."
    )
    return sentence, plot(runs)


def show_tetris(code: str, guide: Guide) -> tuple[str, bytes]:
    """Learn, draw the curve, and film the agent beside one that places at random."""
    names = all_but_last_line(code)
    rows = names["simulate_tetris"](names["agent"], names["board"], GAMES).rows
    guide.say(chart([float(n) for n in rows], width=min(50, guide.console.width - 12), what="rows of games"))
    first, last = (float(np.mean(part)) for part in (rows[:20], rows[-20:]))
    env = rlsvi_paper.tetris.TetrisEnv(height=10, width=6, render_mode="rgb_array")
    players = AtRandom(env.rules.actions), names["agent"]
    frames = (film(player, env, lambda: Image.fromarray(env.render()), PLACEMENTS) for player in players)
    sentence = (
        f"On a board of 10 rows and 6 columns the agent removes {first:.0f} rows a game in its first 20 games and "
        f"{last:.0f} in the last 20 of {GAMES}; it is given features of the board, but no strategy."
    )
    return sentence, side_by_side(*frames, pause=120)


class Stop(NamedTuple):
    """A stop of the tour, with the lines that the page shows; the last one prints or plots."""

    title: str
    code: str
    show: Callable[[str, Guide], tuple[str, bytes]]


STOPS = {
    "cart-pole": Stop(
        "Learn CartPole in 20 episodes",
        """import gymnasium as gym, rlsvi
env = gym.make("CartPole-v1")
agents = [rlsvi.agent_for(env, seed=seed).learn(env, episodes=20) for seed in range(5)]
returns = sorted(rlsvi.evaluate(agent, env, episodes=10).mean for agent in agents)
print("median", returns[2], "worst", returns[0])""",
        show_cart_pole,
    ),
    "chain": Stop(
        "Explore deeply: a reward 49 steps away",
        """import rlsvi
problem = rlsvi.problems.chain(length=50, features=10, seed=0)
agents = {"RLSVI": rlsvi.RLSVI(sigma=0.1), "epsilon-greedy": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(0.1))}
runs = rlsvi.compare(agents, problem, episodes=2000, seeds=20)
runs.plot("chain.png")""",
        show_chain,
    ),
    "recommendation": Stop(
        "Recommend five products in a row",
        """import rlsvi
problem = rlsvi.problems.recommendation(seed=0)
agents = {"RLSVI": rlsvi.RLSVI(lam=0.2, sigma=0.03), "linear bandit": rlsvi.ContextualBandit(lam=0.2, sigma=0.03)}
runs = rlsvi.compare(agents | {"Thompson sampling": rlsvi.ThompsonSampling()}, problem, episodes=3000, seeds=10)
runs.plot("recommendation.png")""",
        show_recommendation,
    ),
    "tetris": Stop(
        "Play Tetris after 200 games",
        """import rlsvi
from rlsvi_paper.tetris import simulate_tetris
board = rlsvi_paper.tetris.rules(height=10, width=6)
agent = rlsvi.StationaryRLSVI(basis=rlsvi_paper.tetris.Tetris(), form="afterstate", gamma=0.99, seed=0)
print(simulate_tetris(agent, board, 200).rows)""",
        show_tetris,
    ),
}


def all_but_last_line(code: str) -> dict[str, Any]:
    """Run the very lines that the page shows, but the last; the names they define."""
    names: dict[str, Any] = {}
    exec(code.rpartition("\n")[0], names)
    return names


def plot(runs: Any) -> bytes:
    """The plot of a comparison as SVG."""
    file = io.BytesIO()
    runs.plot().figure.canvas.print_figure(file, format="svg")
    return file.getvalue()


# ---- Films of two players side by side -----------------------------------------------------------------------


class AtRandom:
    """A player that takes any legal action."""

    def __init__(self, actions: int, seed: int = 0) -> None:
        self.actions, self.rng = actions, np.random.default_rng(seed)

    def predict(self, observation: Any, state: Any = None, *, action_mask: Any = None, **_: Any) -> Any:
        """An action, and no state."""
        legal = np.arange(self.actions) if action_mask is None else np.flatnonzero(action_mask)
        return int(self.rng.choice(legal)), None


def film(player: Any, env: Any, position: Callable[[], Any], count: int) -> list[Any]:
    """The first `count` positions of as many episodes as it takes."""
    seen: list[Any] = []
    seed = 100
    while len(seen) < count:
        play(player, env, seed, limit=count, show=lambda: seen.append(position()))
        seed += 1
    return seen[:count]


def cart(x: float, angle: float) -> Image.Image:
    """A cart on its track, and its pole."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), "white")
    pen, ground = ImageDraw.Draw(picture), HEIGHT - 35
    middle = WIDTH / 2 + x / 2.4 * (WIDTH / 2 - 30)
    pen.line((0, ground, WIDTH, ground), fill=PALE, width=2)
    pen.rectangle((middle - 22, ground - 16, middle + 22, ground), fill=CART)
    end = middle + 80 * math.sin(angle), ground - 16 - 80 * math.cos(angle)
    pen.line((middle, ground - 16, *end), fill=POLE, width=6)
    return picture


def side_by_side(left: Sequence[Image.Image], right: Sequence[Image.Image], *, pause: int) -> bytes:
    """A GIF of two films beside each other; `pause` milliseconds a frame."""
    pictures = []
    for one, other in zip(left, right, strict=True):
        both = Image.new("RGB", (one.width + 12 + other.width, one.height), "white")
        both.paste(one, (0, 0))
        both.paste(other, (one.width + 12, 0))
        pictures.append(both.quantize(16))
    first, *rest = pictures
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=rest, duration=pause, loop=0)
    return file.getvalue()


# ---- The paper's headline claims, judged in a second process while the tour goes on --------------------------


@contextmanager
def judge_claims(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Compute some figures at quick scale in a process of their own, which ends with the tour at the latest."""
    options = ["--executor", "serial", "--quiet", "--out", str(folder)]
    command = [sys.executable, "-P", "-m", "rlsvi", "paper", *FIGURES, *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def headline_claims(process: "subprocess.Popen[str]", folder: Path) -> tuple[list[ClaimRecord], str]:
    """The headline claims of the figures computed, once they are; and what went wrong, if anything did."""
    _, errors = process.communicate()
    if process.returncode != 0:
        last = errors.strip().rpartition("\n")[2].removeprefix("error: ")
        return [], last or f"exit code {process.returncode}"
    try:
        figures = [read_figure(folder / f"{name}.json") for name in FIGURES]
    except (ValueError, OSError) as error:
        return [], str(error)
    return [claim for figure in figures for claim in figure.claims if claim.headline], ""


# ---- The page: one file, which needs no network --------------------------------------------------------------


class Exhibit(NamedTuple):
    """What a stop leaves for the page: a sentence, the lines that anyone can type, and a picture, GIF or SVG."""

    name: str
    title: str
    sentence: str
    code: str
    picture: bytes


def page(exhibits: Sequence[Exhibit], claims: Sequence[ClaimRecord], trouble: str) -> str:
    """The whole page."""
    body = f"""<header>
<h1>Deep exploration with few episodes</h1>
<p>What these four examples show was learned on this machine on {date.today():%d %B %Y}, by
<a href="https://arxiv.org/abs/1402.0635">randomized least-squares value iteration</a>: the agent draws one
plausible value function at the start of each episode, and acts greedily on it.</p>
</header>
<main>
{"".join(map(_exhibit, exhibits))}
{_claims(claims, trouble)}
</main>
<footer><p>Written by <code>make demo</code>, rlsvi {rlsvi.__version__}. Next:
<code>rlsvi train CartPole-v1</code>, <code>rlsvi --help</code>, or the tutorials in <code>docs/</code>.</p>
</footer>"""
    return document("rlsvi: a tour", body, style_of("rlsvi.cli.tour", "tour.css"))


def _exhibit(it: Exhibit) -> str:
    moving = it.picture.startswith(b"GIF")
    source = f"data:image/{'gif' if moving else 'svg+xml'};base64,{b64encode(it.picture).decode()}"
    caption = "<figcaption>Left: before learning. Right: after it.</figcaption>" if moving else ""
    return f"""<section id="{it.name}">
<h2>{escape(it.title)}</h2>
<figure><img src="{source}" alt="{escape(it.sentence)}">{caption}</figure>
<p>{escape(it.sentence)}</p>
<pre><code>{escape(it.code)}</code></pre>
</section>
"""


def _claims(claims: Sequence[ClaimRecord], trouble: str) -> str:
    if trouble:
        why = f"<p>Not judged in this run: {escape(trouble)}.</p>"
        return f"<section><h2>What the paper claims</h2>{why}</section>"
    rows = "\n".join(
        f'<li><span class="{style_name(claim.outcome)}">{claim.outcome}{_why(claim)}</span> '
        f"{escape(claim.words)} <small>({escape(claim.where)})</small></li>"
        for claim in claims
    )
    return f"""<section id="claims">
<h2>What the paper claims, as judged in this run</h2>
<p>These headline claims were judged on small runs, computed beside the tour. <code>make paper</code> computes
all figures and judges every claim.</p>
<ul>
{rows}
</ul>
</section>"""


def _why(claim: ClaimRecord) -> str:
    return {"": "", "scale": " (too few runs here)"}.get(claim.why, f" ({claim.why})")
