"""The same in Markdown and much shorter, for a page among a project's documents: images lie beside it.

Criteria, and most numbers by readings of the text, are in the web page alone.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from rlsvi_paper.report.printed import PRINTED
from rlsvi_paper.report.records import (
    LINK,
    PAPER,
    TOTALS,
    ClaimRecord,
    FigureRecord,
    alone,
    duration,
    how_to_read,
    interval,
    origin,
    tidy,
    totals,
)

MOST_READINGS = 5  # readings of a claim, beyond which their numbers are told
NUMBER = r"[\d.][\d.,]*(?:e[+-]\d+)?"
RANGE = re.compile(rf"\(({NUMBER}) to ({NUMBER}|∞|infinity)\)")
SIGNS = {"reproduced": "✓", "inconclusive": "?", "not reproduced": "✗"}


def plain(text: str) -> str:
    """A text on one line that Markdown leaves as it is, with intervals as 1.2–3.4, unless an end is negative."""
    return re.sub(r"([\\`*_{}\[\]<>|~$&])", r"\\\1", RANGE.sub(r"(\1–\2)", tidy(text)))


def verdict(claim: ClaimRecord) -> str:
    """A sign for what is reproduced; else the outcome in words, and the reason."""
    sign, held = SIGNS[claim.outcome], f" ({claim.held})" * bool(claim.held)
    return f"**{sign} {claim.outcome}**, {claim.why}{held}" if claim.why else f"{sign}{held}"


def measured(claim: ClaimRecord) -> str:
    """What was measured, with the interval that decides, if it is not said, and the caveat."""
    found = interval(claim)
    told = plain(claim.measured).rstrip(".") + (rf" \[{found}\]" if found else "")
    other = [name for name, outcome in claim.variants if outcome != claim.outcome]
    told += f". *Other with* {plain('; '.join(other))}" if other else ""
    return f"{told}. *But* {plain(claim.caveat).rstrip('.')}" if claim.caveat else told


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are Markdown; a word if it has no rows."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) if rows else "None."


def markdown_page(figures: Sequence[FigureRecord], beside: Path, images: Path) -> str:
    """The page that lies in the folder `beside`: totals, then each figure with its image and its claims."""
    folder, folder_name = quote(Path(os.path.relpath(images, beside)).as_posix()), figures[0].place
    counts = "\n".join(f"- {TOTALS[kind]}: {_counts(found)}" for kind, found in totals(figures).items())
    sections = "\n".join(_section(figure, folder) for figure in figures)
    return f"""<!-- Written by rlsvi_paper.report from the results of `rlsvi paper`; do not edit by hand. -->

# What was reproduced

We ran the experiments of *{PAPER}* by Osband, Van Roy and Wen
([arXiv:1402.0635]({LINK})) again. {how_to_read()}

{counts}

A tick stands for "reproduced". The numbers beside a verdict, such as 4 of 5, say under how many of the criteria
that were tried the claim holds: with other thresholds, windows and statistics that are as reasonable, each
changed alone, and in other readings of the text. Round brackets hold 95% intervals; square brackets hold the
interval that decides, where the words do not give it. Of several cases, the worst is told.
`rlsvi report {folder_name}` writes a web page with the criterion of every claim and more numbers. Each caption
ends with the command that makes the figure, to which you add `--scale paper --out {folder_name}`, and
its computing time. {plain(origin(figures))}

{sections}"""


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in found.items() if count)


def _section(figure: FigureRecord, folder: str) -> str:
    title, printed = plain(figure.title), PRINTED.get(figure.name)
    beside = f" *In the paper:* {plain(printed.drawn)}" if printed else ""
    made = f"`{alone(figure, whole=False)}`, {duration(figure.seconds)}"
    return f"""<a id="{figure.name}"></a>

## {title}

![{title}]({folder}/{figure.name}.png)

*{plain(figure.where)}.* {plain(figure.caption)}{beside} ({made})

{_claims(figure)}
"""


def _claims(figure: FigureRecord) -> str:
    """A table of all claims, with signs for other readings, and numbers where a headline claim has many."""
    if not figure.claims:
        return "No claim was checked on this figure."
    ways = Counter(tuple(name for name, _ in it.readings[1:]) for it in figure.claims if len(it.readings) > 1)
    names = ways.most_common(1)[0][0] if ways else ()
    head = ["verdict", "claim", "measured", *(["other readings"] if names else [])]
    rows = [
        [verdict(it), _said(figure, it), measured(it), *([_others(it, names)] if names else [])]
        for it in figure.claims
    ]
    if not names:
        return table(head, rows)
    firsts = {it.words: it.readings[0][0] for it in figure.claims if it.readings}
    decides = Counter(firsts.values()).most_common(1)[0][0]
    but = "".join(f"; for “{words}” {first}" for words, first in firsts.items() if first != decides)
    told = f"The reading that decides: {plain(decides + but)}. Others: {plain('; '.join(names))}."
    leading = [it for it in figure.claims if it.headline and len(it.readings) > MOST_READINGS and it.table]
    numbers = [(it.words, [[plain(cell) for cell in row] for row in it.table]) for it in leading]
    tables = [f"{plain(words)}:\n\n{table(rows[0], rows[1:])}" for words, rows in numbers]
    return "\n\n".join([table(head, rows), told, *tables])


def _said(figure: FigureRecord, claim: ClaimRecord) -> str:
    """What is claimed, and by us or, if not where the figure is, where."""
    where = "" if figure.where.startswith(claim.where) else plain(claim.where)
    about = "ours" if claim.kind == "ours" else where
    return plain(claim.words).rstrip(".") + (f" ({about})" if about else "")


def _others(claim: ClaimRecord, names: Sequence[str]) -> str:
    """The outcomes in all readings but the first, as signs; with their names, where most claims have others."""
    outcomes = dict(claim.readings[1:])
    if set(outcomes) == set(names):
        return " ".join(SIGNS.get(outcomes[name], "–") for name in names)
    return plain("; ".join(f"{name}: {SIGNS.get(outcome, '–')}" for name, outcome in outcomes.items()))
