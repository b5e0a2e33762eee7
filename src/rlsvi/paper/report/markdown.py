"""The same in Markdown and shorter, for a page among a project's documents: images lie beside it."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from rlsvi.paper.report.records import (
    LINK,
    PAPER,
    TOTALS,
    ClaimRecord,
    FigureRecord,
    alone,
    duration,
    headlines,
    how_to_read,
    interval,
    origin,
    tidy,
    totals,
)

SIGNS = {"reproduced": "✓", "inconclusive": "?", "not reproduced": "✗"}


def plain(text: str) -> str:
    """A text on one line that Markdown leaves as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|~$&])", r"\\\1", tidy(text))


def verdict(claim: ClaimRecord) -> str:
    """An outcome with its sign and, unless it is "reproduced", the reason."""
    return f"**{SIGNS[claim.outcome]} {claim.outcome}**" + (f", {claim.why}" if claim.why else "")


def measured(claim: ClaimRecord) -> str:
    """What was measured, with its interval, and the caveat."""
    found = interval(claim)
    told = plain(claim.measured).rstrip(".") + (f"; the interval that decides is {found}" if found else "")
    return f"{told}. *But* {plain(claim.caveat).rstrip('.')}" if claim.caveat else told


def image_folder(beside: Path, images: Path) -> str:
    """The folder of images in links of a page that lies in the folder `beside`."""
    return quote(Path(os.path.relpath(images, beside)).as_posix())


def markdown_page(figures: Sequence[FigureRecord], beside: Path, images: Path) -> str:
    """The page that lies in the folder `beside`: totals, the headline claims, then each figure with its image."""
    folder = image_folder(beside, images)
    counts = "\n".join(f"- {TOTALS[kind]}: {_counts(found)}" for kind, found in totals(figures).items())
    leading = "\n".join(
        f"- {verdict(claim)}: [{plain(claim.words)}](#{figure.name})" for figure, _, claim in headlines(figures)
    )
    sections = "\n".join(_section(figure, folder) for figure in figures)
    return f"""<!-- Written by rlsvi.paper.report from the results of `rlsvi paper`; do not edit by hand. -->

# What was reproduced

The experiments of *{PAPER}* by Osband, Van Roy and Wen
([arXiv:1402.0635]({LINK})), run again. {how_to_read("**{}**")}
{plain(origin(figures))}

{counts}

## Headline claims

{leading or "None."}

{sections}"""


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in found.items() if count)


def _section(figure: FigureRecord, folder: str) -> str:
    title = plain(figure.title)
    claims = "\n".join(map(_claim, figure.claims)) or "No claim was checked on this figure."
    return f"""<a id="{figure.name}"></a>

## {title}

![{title}]({folder}/{figure.name}.png)

*{plain(figure.where)}.* {plain(figure.caption)}

{claims}
{_readings(figure)}
It took {duration(figure.seconds)} of computing. This figure alone is made by

    {alone(figure)}
"""


def _claim(claim: ClaimRecord) -> str:
    """A claim with its criterion, what was measured, and its outcome in every reading."""
    words = plain(claim.words).rstrip(".")
    where = f"our claim; {plain(claim.where)}" if claim.kind == "ours" else plain(claim.where)
    criterion = plain(claim.criterion).rstrip(".")
    return f"- {verdict(claim)}: {words} ({where}). *Criterion:* {criterion}. *Measured:* {measured(claim)}."


def _readings(figure: FigureRecord) -> str:
    """All claims of a figure by the readings of the paper's text, and the numbers of each; empty if there is one.

    Claims that have other readings than most are in the tables below alone; those without any are not among them.
    """
    read = [claim for claim in figure.claims if claim.readings]
    if not read:
        return ""
    names, _ = Counter(tuple(name for name, _ in claim.readings) for claim in read).most_common(1)[0]
    rows: list[Sequence[str]] = [("claim", *names)]
    for claim in figure.claims:
        outcomes = dict(claim.readings)
        if set(outcomes) == set(names):
            rows.append((claim.words, *(f"{SIGNS.get(outcomes[name], '–')} {outcomes[name]}" for name in names)))
    tables = "\n".join(f"{plain(claim.words)}:\n\n{_table(claim.table)}" for claim in read if claim.table)
    return f"""
Claims by the readings of the paper's text; the first reading decides.

{_table(rows)}
{tables}"""


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *others = ["| " + " | ".join(map(plain, row)) + " |" for row in rows]
    return "\n".join([head, "|" + " --- |" * len(rows[0]), *others]) + "\n"
