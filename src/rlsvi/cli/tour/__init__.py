"""The tour of `rlsvi demo`: some things the library does, each learned while one watches, and a page of them.

Other packages add stops of their own: an entry point of the group rlsvi.demo is a dictionary like STOPS.
"""

import io
import math
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import date
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from PIL import Image, ImageDraw
from rich.console import Console

import rlsvi
from rlsvi.cli.names import offered
from rlsvi.cli.train import chart
from rlsvi.core.cache import is_kept
from rlsvi.core.files import write_file
from rlsvi.envs.task import play
from rlsvi.html import document, style_of
from rlsvi.progress import display_in_use
from rlsvi.simulate.finite import run
from rlsvi.study.compare import warm_up

DOUBT = 8.0  # seconds that went as expected, before the first stop
SECONDS_BETWEEN_UPDATES = 1.0  # of the line that moves
EPISODES, SEEDS, STEPS = 20, 5, 400  # of CartPole; steps are those that are filmed
PALE, CART, POLE = "#d9d9d9", "#0072B2", "#D55E00"
WIDTH, HEIGHT = 300, 150  # of the picture of a cart


class Stop(NamedTuple):
    """A stop of the tour.

    Parameters
    ----------
    show
        What happens there. It takes the guide and what `begin` gave, and returns the HTML below the
        title.
    seconds
        How long it is likely to take, given the folder of the page.
    begin
        Opened with the folder before the first stop, and closed after the last, for what runs meanwhile.
    """

    title: str
    show: Callable[["Guide", Any], str]
    seconds: Callable[[Path], float]
    begin: Callable[[Path], AbstractContextManager[Any]] = nullcontext


def show_all(out: Path) -> Path:
    """Make all stops, and write the page out/index.html; its path."""
    stops, index, sections = dict(STOPS), out / "index.html", []
    for more in offered("rlsvi.demo", dict).values():
        stops |= more
    expected = {name: stop.seconds(out) for name, stop in stops.items()}
    guide = Guide(Console(), {"ready": 1.0 if is_kept(run) else 26.0} | expected)
    with ExitStack() as stack:
        begun = {name: stack.enter_context(stop.begin(out)) for name, stop in stops.items()}
        with guide.stop("ready", "Getting ready"):
            warm_up()
        for number, (name, stop) in enumerate(stops.items(), 1):
            with guide.stop(name, f"{number}. {stop.title}"):
                body = stop.show(guide, begun[name])
            sections.append(f'<section id="{name}">\n<h2>{escape(stop.title)}</h2>\n{body}\n</section>')
    write_file(index, page(sections).encode())
    guide.say(f"The tour took {time.monotonic() - guide.began:.0f} seconds. Open this page in a browser:")
    return index


class Guide:
    """Says what is done and how long it will take: a line that moves, or where none can one for each stop.

    Parameters
    ----------
    expected
        Seconds that each stop takes once everything is compiled, by its name, in order.
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

    def exhibit(self, sentence: str, code: str, picture: bytes) -> str:
        """Say what was seen; for the page, the same in HTML, with a picture, GIF or SVG, and the lines to type."""
        self.say(sentence)
        moving = picture.startswith(b"GIF")
        source = f"data:image/{'gif' if moving else 'svg+xml'};base64,{b64encode(picture).decode()}"
        caption = "<figcaption>Left: before learning. Right: after it.</figcaption>" if moving else ""
        return f"""<figure><img src="{source}" alt="{escape(sentence)}">{caption}</figure>
<p>{escape(sentence)}</p>
<pre><code>{escape(code)}</code></pre>"""

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


# ---- The stops of the library --------------------------------------------------------------------------------

# The lines that the page shows. The last one prints or plots.
CODE = {
    "cart-pole": """import gymnasium as gym, rlsvi
env = gym.make("CartPole-v1")
agents = [rlsvi.agent_for(env, seed=seed).learn(env, episodes=20) for seed in range(5)]
returns = sorted(rlsvi.evaluate(agent, env, episodes=10).mean for agent in agents)
print("median", returns[2], "worst", returns[0])""",
    "chain": """import rlsvi
problem = rlsvi.problems.chain(length=50, features=10, seed=0)
agents = {"RLSVI": rlsvi.RLSVI(sigma=0.1), "epsilon-greedy": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(0.1))}
runs = rlsvi.compare(agents, problem, episodes=2000, seeds=20)
runs.plot("chain.png")""",
    "recommendation": """import rlsvi
problem = rlsvi.problems.recommendation(seed=0)
agents = {"RLSVI": rlsvi.RLSVI(lam=0.2, sigma=0.03), "linear bandit": rlsvi.ContextualBandit(lam=0.2, sigma=0.03)}
runs = rlsvi.compare(agents | {"Thompson sampling": rlsvi.ThompsonSampling()}, problem, episodes=3000, seeds=10)
runs.plot("recommendation.png")""",
}


def show_cart_pole(guide: Guide, folder: Path) -> str:
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
    return guide.exhibit(sentence, CODE["cart-pole"], side_by_side(*frames, pause=40))


def show_chain(guide: Guide, folder: Path) -> str:
    """Compare RLSVI with dithering on a chain, and plot their regret."""
    runs = all_but_last_line(CODE["chain"])["runs"]
    learned = runs.summary()["learned"].to_list()
    sentence = (
        f"The only reward is at the far end of the chain: RLSVI learned to fetch it in {learned[0]} of "
        f"{len(runs.seeds)} runs, epsilon-greedy exploration in {learned[1]}."
    )
    return guide.exhibit(sentence, CODE["chain"], plot(runs))


def show_recommendation(guide: Guide, folder: Path) -> str:
    """Compare RLSVI with two bandits, and plot their regret."""
    runs = all_but_last_line(CODE["recommendation"])["runs"]
    left = runs.summary()["regret_left"].to_list()
    sentence = (
        "What a customer likes depends on what was shown before: per customer, over the last tenth of the run, "
        f"RLSVI loses {left[0]:.0%} of what random recommendations lose, a linear bandit {left[1]:.0%}, and "
        f"Thompson sampling, which ignores what was shown, {left[2]:.0%}."
    )
    return guide.exhibit(sentence, CODE["recommendation"], plot(runs))


STOPS = {
    "cart-pole": Stop("Learn CartPole in 20 episodes", show_cart_pole, lambda _: 20.0 if is_kept(run) else 22.0),
    "chain": Stop("Explore deeply: a reward 49 steps away", show_chain, lambda _: 4.0 if is_kept(run) else 6.0),
    "recommendation": Stop(
        "Recommend five products in a row", show_recommendation, lambda _: 3.0 if is_kept(run) else 10.0
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


# ---- The page: one file, which needs no network --------------------------------------------------------------


def page(sections: Sequence[str]) -> str:
    """The whole page."""
    body = f"""<header>
<h1>Deep exploration with few episodes</h1>
<p>What these examples show was learned on this machine on {date.today():%d %B %Y}, by
<a href="https://arxiv.org/abs/1402.0635">randomized least-squares value iteration</a>: the agent draws one
plausible value function at the start of each episode, and acts greedily on it.</p>
</header>
<main>
{chr(10).join(sections)}
</main>
<footer><p>Written by <code>make demo</code>, rlsvi {rlsvi.__version__}. Next:
<code>rlsvi train CartPole-v1</code>, <code>rlsvi --help</code>, or the tutorials in <code>docs/</code>.</p>
</footer>"""
    return document("rlsvi: a tour", body, style_of("rlsvi.cli.tour", "tour.css"))
