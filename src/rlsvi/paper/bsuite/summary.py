"""What is written about a run of the suite: a table, a page in Markdown, and the scores as JSON."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlsvi.core.files import write_file
from rlsvi.paper.bsuite.package import EXPERIMENTS, LEFT_OUT, TAGS
from rlsvi.paper.bsuite.radar import radar
from rlsvi.paper.bsuite.scores import Score, by_tag

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
