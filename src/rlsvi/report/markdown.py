"""The same in Markdown, for a page among a project's documents: images lie beside it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from rlsvi.report.about import LINK, MEANING, PAPER, dates, facts, machines, scales, summary, total
from rlsvi.report.files import ClaimRecord, FigureRecord
from rlsvi.report.words import duration, interval, setting, tidy

SIGNS = {"reproduced": "✓", "inconclusive": "?", "not reproduced": "✗"}


def plain(text: str) -> str:
    """A text on one line that Markdown leaves as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|~$&])", r"\\\1", tidy(text))


def verdict(outcome: str) -> str:
    """An outcome with its sign."""
    return f"{SIGNS[outcome]} {outcome}"


def measured(claim: ClaimRecord) -> str:
    """What was measured, with its interval."""
    found = interval(claim)
    return plain(claim.measured) + (f" ({found})" if found else "")


def markdown_page(figures: Sequence[FigureRecord], beside: Path, images: Path) -> str:
    """The page that lies in the folder `beside`: verdicts first, then each figure with its image."""
    folder = quote(Path(os.path.relpath(images, beside)).as_posix())
    meanings = ", ".join(f"**{outcome}** {meaning}" for outcome, meaning in MEANING.items())
    where = machines(figures)
    rows = "\n".join(_row(figure, claim) for figure in figures for claim in figure.claims)
    sections = "\n".join(_section(figure, folder) for figure in figures)
    return f"""<!-- Written by rlsvi.report from the results of `rlsvi paper`; do not edit by hand. -->

# What was reproduced

The experiments of Osband, Van Roy and Wen (*{PAPER}*, ICML 2016,
[arXiv:1402.0635]({LINK})), run anew. What the paper says about each figure became a claim with a criterion that a
program checks on the results. A claim is {meanings}.
Made {dates(figures)}{f" on {plain(where)}" if where else ""}. {plain(scales(figures))}
Computing took {duration(total(figure.seconds for figure in figures))} in total,
jobs that figures share counted for each.

**{summary(figures)}**

| claim | in the paper | verdict | measured |
|---|---|---|---|
{rows}

{sections}"""


def _row(figure: FigureRecord, claim: ClaimRecord) -> str:
    words = f"[{plain(claim.words)}](#{figure.name})"
    return f"| {words} | {plain(claim.where)} | {verdict(claim.outcome)} | {measured(claim)} |"


def _section(figure: FigureRecord, folder: str) -> str:
    title, made = plain(figure.title), facts(figure)
    claims = "\n".join(map(_claim, figure.claims)) or "No claim was checked on this figure."
    settings = "; ".join(f"{plain(name)}: {plain(setting(value))}" for name, value in figure.settings.items())
    return f"""<a id="{figure.name}"></a>

## {title}

![{title}]({folder}/{figure.name}.png)

*{plain(figure.where)}.* {plain(figure.caption)}

{claims}

Settings: {settings or "none"}.
{"; ".join(f"{name}: {plain(value)}" for name, value in made.items() if value)}. The command:

    {tidy(figure.command)}
"""


def _claim(claim: ClaimRecord) -> str:
    criterion, found = plain(claim.criterion).rstrip("."), measured(claim).rstrip(".")
    return f"""- **{verdict(claim.outcome)}** ({plain(claim.where)}): {plain(claim.words).rstrip(".")}.
  *Criterion:* {criterion}. *Measured:* {found}."""
