"""Scores between 0 and 1, as the suite defines them: of experiments, and of the abilities that they test."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from rlsvi.axes import COLOURS, INK, LINES, PALE
from rlsvi.core.files import write_file
from rlsvi_paper.bsuite.package import (
    EXPERIMENTS,
    LEFT_OUT,
    TAGS,
    arguments_of,
    bsuite_module,
    episodes_of,
    ids_of,
    tags_of,
)

# The package's own function for these needs pandas 1, which does not go with NumPy 2. By experiment: the share of
# bad episodes below which a size is solved, and the first episode that counts.
DEEP_SEA = {"deep_sea": (0.9, 1), "deep_sea_stochastic": (0.8, 100)}
FORGIVEN = 100  # episodes more than 2^size in which a size may be solved


class Score(NamedTuple):
    """The score of an agent in an experiment, and what it is based on.

    Parameters
    ----------
    settings, episodes
        How many were played, and how many the suite asks for.
    seconds
        The computing time of all settings.
    """

    agent: str
    experiment: str
    score: float
    tags: list[str]
    settings: tuple[int, int]
    episodes: tuple[int, int]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether all was played that the suite asks for."""
        return self.settings[0] == self.settings[1] and self.episodes[0] == self.episodes[1]


def score_run(agent: str, experiment: str, tables: Sequence[tuple[pl.DataFrame, float]]) -> Score:
    """Return the score of an agent, of the tables of its settings and the seconds that each took."""
    frame = pl.concat([table for table, _ in tables], how="diagonal_relaxed")
    episodes, asked = int(frame["episode"].max()), episodes_of(experiment)  # type: ignore[arg-type]
    return Score(
        agent,
        experiment,
        score_of(experiment, frame),
        tags_of(experiment),
        (len(tables), len(ids_of(experiment))),
        (episodes, asked),
        sum(seconds for _, seconds in tables),
    )


def score_of(experiment: str, frame: pl.DataFrame) -> float:
    """Return the score of the logged rows of an experiment, which have a column `bsuite_id`."""
    if experiment in DEEP_SEA:
        return deep_sea_score(frame, *DEEP_SEA[experiment])
    import pandas

    logged = frame.drop("agent", "seed", "bsuite", "sources", "episodes", strict=False)
    rows: Any = [row | arguments_of(row["bsuite_id"]) for row in logged.to_dicts()]
    score = bsuite_module(f"experiments.{experiment}.analysis").score(pandas.DataFrame(rows))
    return float(score)


def deep_sea_score(frame: pl.DataFrame, bad: float, first: int) -> float:
    """Return the share of sizes that are solved sooner than by dithering, which needs 2^size episodes.

    A size is solved at the first logged episode at which less than a share `bad` of all episodes so far left the
    way to the treasure by a choice of the agent.
    """
    beaten = []
    for (bsuite_id,), rows in frame.group_by("bsuite_id", maintain_order=True):
        size, episode = arguments_of(str(bsuite_id))["size"], rows["episode"].to_numpy()
        solved = (episode >= first) & (rows["total_bad_episodes"].to_numpy() / episode < bad)
        beaten.append(bool(solved.any()) and bool(episode[solved].min() < 2.0**size + FORGIVEN))
    return float(np.mean(beaten))


def by_tag(scores: Sequence[Score]) -> dict[str, float]:
    """Return the mean score of the experiments with each tag, for tags that any experiment has."""
    found = {tag: [it.score for it in scores if tag in it.tags] for tag in TAGS}
    return {tag: float(np.mean(values)) for tag, values in found.items() if values}


# ---- What is written about a run: tables, a page in Markdown, the scores as JSON and a radar plot --------------


BRIEF = "fewer experiments, settings or episodes than the suite asks for"
PARTIAL = f"* of {BRIEF}: not a score of the suite itself"
UNASKED = "not asked for, or no setting of it finished"


def agents_of(scores: Sequence[Score]) -> list[str]:
    """Return the agents in the order of their scores."""
    return list(dict.fromkeys(it.agent for it in scores))


def not_run(scores: Sequence[Score]) -> dict[str, list[str]]:
    """Return the experiments that no agent has played, by the reason why."""
    played, found = {it.experiment for it in scores}, dict[str, list[str]]()
    for name in EXPERIMENTS:
        if name not in played:
            found.setdefault(LEFT_OUT.get(name, UNASKED), []).append(name)
    return found


def table(scores: Sequence[Score]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table of experiments: scores, and how much was played."""
    agents, rows = agents_of(scores), []
    for experiment in EXPERIMENTS:
        its = {it.agent: it for it in scores if it.experiment == experiment}
        if its:
            cells = [_shown(its[agent].score, its[agent].complete) if agent in its else "" for agent in agents]
            amounts = [_amounts(it.settings for it in its.values()), _amounts(it.episodes for it in its.values())]
            rows.append([experiment, *cells, *amounts])
    return ["experiment", *agents, "settings", "episodes"], rows


def tag_table(scores: Sequence[Score]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table of abilities: means over the experiments that test each.

    A mean is marked unless all experiments of the suite that test the ability were played as it asks.
    """
    agents, rows = agents_of(scores), []
    means = {agent: by_tag([it for it in scores if it.agent == agent]) for agent in agents}
    for tag, asked in TAGS.items():
        its = [it for it in scores if tag in it.tags]
        if its:
            whole = {agent: sum(it.complete for it in its if it.agent == agent) == asked for agent in agents}
            cells = [_shown(means[agent][tag], whole[agent]) if tag in means[agent] else "" for agent in agents]
            rows.append([tag.replace("_", " "), *cells, f"{len({it.experiment for it in its})}/{asked}"])
    return ["ability", *agents, "experiments"], rows


def _shown(score: float, complete: bool) -> str:
    return f"{score:.2f}" if complete else f"{score:.2f}*"


def _amounts(pairs: Iterable[tuple[int, int]]) -> str:
    """Return how much was played of how much; several if it differs between agents."""
    return "; ".join(dict.fromkeys(f"{done:,}/{asked:,}" for done, asked in pairs))


def markdown(scores: Sequence[Score], command: str) -> str:
    """Return the page: tables, picture, computing time, and what was not run."""
    lines = ["# Behaviour suite", "", f"`{command}`", "", "![Mean score in each ability](radar.svg)", ""]
    for head, rows in (tag_table(scores), table(scores)):
        lines += [_row(head), _row(["---", *["---:"] * (len(head) - 1)]), *map(_row, rows), ""]
    lines += [f"\\{PARTIAL}.", ""] if is_partial(scores) else []
    for agent in agents_of(scores):
        seconds = sum(it.seconds for it in scores if it.agent == agent)
        lines.append(f"- computing time of {agent}: {seconds:,.0f} s")
    lines += [f"- not run: {', '.join(names)} ({why})" for why, names in not_run(scores).items()]
    return "\n".join(lines) + "\n"


def is_partial(scores: Sequence[Score]) -> bool:
    """Return whether any score is marked; an ability is, if an experiment that tests it is."""
    return any("*" in cell for row in tag_table(scores)[1] for cell in row)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def as_dict(scores: Sequence[Score], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all scores as plain values."""
    tags = {agent: by_tag([it for it in scores if it.agent == agent]) for agent in agents_of(scores)}
    return {
        "settings": dict(settings),
        "experiments": [it._asdict() for it in scores],
        "tags": tags,
        "not_run": not_run(scores),
    }


def write(scores: Sequence[Score], folder: Path, settings: Mapping[str, Any]) -> None:
    """Write summary.md, scores.json, radar.svg and radar.png, each as a whole."""
    found = as_dict(scores, settings)
    picture = radar(found["tags"], BRIEF if is_partial(scores) else "")
    for kind in ("svg", "png"):
        drawn = io.BytesIO()
        picture.savefig(drawn, format=kind, dpi=200)
        write_file(folder / f"radar.{kind}", drawn.getvalue())
    write_file(folder / "scores.json", (json.dumps(found, indent=1) + "\n").encode())
    write_file(folder / "summary.md", markdown(scores, str(settings["command"])).encode())


def radar(scores: Mapping[str, Mapping[str, float]], title: str = "") -> Figure:
    """Return the picture of the scores of agents by tag, one colour an agent: 0 at the centre, 1 at the rim.

    A tag without a score is a gap.
    """
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.add_subplot(projection="polar")
    assert isinstance(axes, PolarAxes)
    angles = np.linspace(0, 2 * np.pi, len(TAGS), endpoint=False)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1)
    axes.set_yticks((0.25, 0.5, 0.75, 1.0), ["¼", "½", "¾", "1"], fontsize=8, color=INK)
    axes.set_rlabel_position(180 / len(TAGS))
    axes.set_xticks(angles, [tag.replace("_", " ") for tag in TAGS], fontsize=10, color=INK)
    for angle, label in zip(angles, axes.get_xticklabels(), strict=True):
        label.set_horizontalalignment("center" if angle == 0 else "left" if angle < np.pi else "right")
    axes.tick_params(axis="x", pad=4)
    axes.grid(color=PALE, linewidth=0.6)
    axes.spines["polar"].set_color(PALE)
    figure.suptitle(title, fontsize=9, color=INK)
    for i, (agent, by_tag) in enumerate(scores.items()):
        values = np.array([by_tag.get(tag, np.nan) for tag in TAGS])
        colour, line = COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]
        round_, closed = np.append(angles, angles[0]), np.append(values, values[0])
        axes.plot(round_, closed, color=colour, linestyle=line, linewidth=2, label=agent, clip_on=False, zorder=3)
        axes.plot(angles, values, "o", color=colour, markersize=4.5, clip_on=False, zorder=4)
        if np.isfinite(values).all():
            axes.fill(angles, values, color=colour, alpha=0.12, linewidth=0)
    figure.legend(frameon=False, fontsize=9, labelcolor=INK, loc="outside lower center", ncols=4)
    return figure
