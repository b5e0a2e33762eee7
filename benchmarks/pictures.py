"""The drawings of the pages on concepts: why RLSVI explores deeply, and what a plan is.

    python -m benchmarks.pictures docs/images

writes deep-exploration.svg, an animation of one run of RLSVI and of epsilon-greedy on a chain, and plan.svg.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import rlsvi
from rlsvi.agents.contract import Step
from rlsvi.core.random import stream
from rlsvi.envs import FiniteMDPEnv
from rlsvi.envs.task import task_of

LENGTH, SAMPLES, EPSILON = 12, 15, 0.1
SHOWN = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 45, 50, 55, 60)  # episodes
SECONDS = 1.3  # of each
BLUE, ORANGE, INK, GREY, PALE = "#0072B2", "#D55E00", "#222222", "#8c8c8c", "#e4e4e4"
STYLE = f"text{{font:15px sans-serif;fill:{INK}}}.t{{font-weight:bold}}.m{{text-anchor:middle}}"


@dataclass
class Episode:
    """What is shown of one episode: the value that was followed, others that might have been, and where it led."""

    number: int
    followed: list[float]
    others: list[list[float]] = field(default_factory=list)
    visited: set[int] = field(default_factory=set)
    ends: int = 0  # how often the end of the chain has been reached so far


def along(learner, plan):
    """The values of the states of the chain, each in the period in which going right all the time leads there."""
    return [float(learner.values(plan, learner.look(h, h, None)).max()) for h in range(LENGTH - 1)]


def episodes_of(agent, epsilon, seed=0):
    """Let an agent learn by the contract of agents (plan, values, remember), and keep what is shown."""
    env, rng, words, idle = (
        FiniteMDPEnv(rlsvi.mdp.chain(LENGTH, deterministic=True)),
        np.random.default_rng(seed),
        stream(seed),
        stream(seed + 1),
    )
    learner, sampled, ends = agent.new_learner(task_of(env, None), 0), epsilon == 0, 0
    for number in range(1, SHOWN[-1] + 1):
        plan = learner.plan(sampled, words)
        episode = Episode(number, along(learner, plan), visited={0})
        if sampled and number in SHOWN:
            episode.others = [along(learner, learner.plan(True, idle)) for _ in range(SAMPLES)]
        place, steps, over = learner.look(0, env.reset()[0], None), [], False
        while not over:
            values = learner.values(plan, place)
            best = np.flatnonzero(values == values.max())
            action = int(rng.integers(2) if rng.random() < epsilon else rng.choice(best))
            state, reward, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            following = None if over else learner.look(len(steps) + 1, state, None)
            steps.append(Step(place, action, reward, following))
            episode.visited.add(int(state))
            place = following
        ends += int(state) == LENGTH - 1
        episode.ends = ends
        learner = learner.remember(steps, plan, True)
        if number in SHOWN:
            yield episode


def x_of(state):
    return 30 + 38 * state


def curve(values, top, colour, width, opacity=1.0):
    """A line through the values of the states; -1.5 to 3 are 130 high."""
    points = " ".join(
        f"{x_of(s)},{top + 130 - (np.clip(v, -1.5, 3) + 1.5) / 4.5 * 130:.0f}" for s, v in enumerate(values)
    )
    fade = f' opacity="{opacity}"' if opacity < 1 else ""
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"{fade}/>'


def panel(episode, top, colour):
    """The part that changes from frame to frame."""
    parts = [curve(values, top, colour, 1, 0.35) for values in episode.others]
    parts.append(curve(episode.followed, top, colour, 3))
    for s in range(LENGTH):
        fill = colour if s in episode.visited else "none"
        parts.append(f'<circle cx="{x_of(s)}" cy="{top + 150}" r="10" fill="{fill}" stroke="{GREY}"/>')
    parts.append(f'<text x="448" y="{top + 187}" text-anchor="end">episodes at the goal: {episode.ends}</text>')
    return "".join(parts)


def deep_exploration():
    """The animation: a group for each frame, one of which is visible; the last one where nothing moves."""
    panels = [  # name, its episodes, where, colour
        ("RLSVI: values sampled before the episode", rlsvi.RLSVI(sigma=0.1, lam=1.0), 0.0, 60, BLUE),
        (f"Epsilon-greedy ({EPSILON:.0%} random): estimated values", rlsvi.LSVI(), EPSILON, 285, ORANGE),
    ]
    runs = [(list(episodes_of(agent, epsilon)), top, colour) for _, agent, epsilon, top, colour in panels]
    total = SECONDS * len(SHOWN)
    frames = []
    for i, number in enumerate(SHOWN):
        shown = "".join(panel(episodes[i], top, colour) for episodes, top, colour in runs)
        last = " last" if i == len(SHOWN) - 1 else ""
        label = f'<text x="448" y="22" text-anchor="end" class="t">episode {number}</text>'
        delay = SECONDS * i - total
        frames.append(f'<g class="f{last}" style="animation-delay:{delay:.1f}s">{label}{shown}</g>')
    still = []
    for name, _, _, top, _ in panels:
        still.append(f'<text x="20" y="{top - 8}">{name}</text>')
        still.append(f'<rect x="20" y="{top}" width="440" height="130" fill="none" stroke="{PALE}"/>')
        still.append(f'<line x1="20" x2="460" y1="{top + 87}" y2="{top + 87}" stroke="{PALE}"/>')
        still.append(f'<text x="20" y="{top + 187}">start</text><text x="6" y="{top + 92}">0</text>')
    style = (
        f"{STYLE}.f{{opacity:0;animation:show {total:.1f}s step-end infinite}}.last{{opacity:1}}"
        f"@keyframes show{{0%{{opacity:1}}{100 / len(SHOWN):.3f}%{{opacity:0}}100%{{opacity:0}}}}"
        "@media(prefers-reduced-motion:reduce){.f{animation:none}}"
    )
    return svg(480, 490, style, "".join(still + frames))


def plan():
    """What a plan is, in four steps; the numbers are made up."""
    rng = np.random.default_rng(3)
    mean, deviation = np.array([[0.9, -1.6], [-0.7, 1.5]]), np.array([[0.5, 0.6], [0.5, 0.6]])
    drawn = mean + deviation * rng.normal(size=(2, 2)) * 0.8
    states = np.linspace(0, 1, 7)
    values = drawn[:, :1] + drawn[:, 1:] * states  # (action, state)
    parts = [row(i, *words) for i, words in enumerate(ROWS)]
    grid = np.linspace(-1.6, 1.6, 41)
    for k, (a, j) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        middle, colour = 225 + 75 * k, (BLUE, ORANGE)[a]
        density = np.exp(-0.5 * (grid / deviation[a, j]) ** 2)
        for top, filled in ((10, 0.5), (120, 0.12)):
            points = " ".join(
                f"{middle + 20 * g:.1f},{top + 70 - 50 * d:.1f}" for g, d in zip(grid, density, strict=True)
            )
            parts.append(f'<polygon points="{points}" fill="{colour}" fill-opacity="{filled}"/>')
        offset = 20 * (drawn[a, j] - mean[a, j])
        parts.append(f'<circle cx="{middle + offset:.1f}" cy="190" r="6" fill="{colour}"/>')
    for a, colour in enumerate((BLUE, ORANGE)):
        points = " ".join(f"{205 + 41 * s},{275 - 22 * v:.1f}" for s, v in enumerate(values[a]))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="3"/>')
    for s in range(len(states)):
        best = int(values[:, s].argmax())
        middle, way = 205 + 41 * s, (-1, 1)[best]
        parts.append(f'<circle cx="{middle}" cy="375" r="17" fill="none" stroke="{GREY}"/>')
        tip, back = middle + 8 * way, middle + 2 * way
        arrow = f"{middle - 9 * way},375 {tip},375 {back},369 {tip},375 {back},381"
        parts.append(f'<polyline points="{arrow}" fill="none" stroke="{(BLUE, ORANGE)[best]}" stroke-width="3"/>')
    parts.append(f'<text x="462" y="{278 - 22 * values[0, -1]:.0f}" style="fill:{BLUE}">left</text>')
    parts.append(f'<text x="462" y="{278 - 22 * values[1, -1]:.0f}" style="fill:{ORANGE}">right</text>')
    return svg(510, 428, STYLE, "".join(parts))


ROWS = (
    ("1 Posterior", "what the data say", "about each weight"),
    ("2 Sample", "one value of each", "weight is drawn"),
    ("3 Values", "features times weights,", "for every state"),
    ("4 Actions", "the best one in each", "state, all episode long"),
)


def row(i, title, *lines):
    """The words beside one step, and an arrow to the next."""
    top = 110 * i
    texts = [f'<text x="15" y="{top + 40}" class="t">{title}</text>']
    texts += [f'<text x="15" y="{top + 62 + 20 * k}">{line}</text>' for k, line in enumerate(lines)]
    arrow = f'<path d="M345 {top + 98}v16m-6 -7l6 7l6 -7" fill="none" stroke="{GREY}" stroke-width="2"/>'
    return "".join(texts) + (arrow if i < len(ROWS) - 1 else "")


def svg(width, height, style, content):
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        f'<style>{style}</style><rect width="{width}" height="{height}" rx="6" fill="#fff"/>{content}</svg>\n'
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "deep-exploration.svg").write_text(deep_exploration())
    (folder / "plan.svg").write_text(plan())
