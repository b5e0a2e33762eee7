"""The web page: verdicts on top, then each figure beside its claims. Nothing in it runs or is loaded."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from rlsvi.report.about import LINK, MEANING, PAPER, dates, machines, scales, summary, tally, total
from rlsvi.report.files import ClaimRecord, FigureRecord
from rlsvi.report.section import badge, kind, measured, section
from rlsvi.report.words import duration, tidy

# The browser is told, too, to load and run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html_page(figures: Sequence[FigureRecord]) -> str:
    """The whole page."""
    style = files("rlsvi.report").joinpath("style.css").read_text("utf-8")
    sections = "\n".join(map(section, figures))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{PAPER}: what was reproduced</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#verdicts">Skip to the verdicts</a>
{_header(figures)}
<main>
{_verdicts(figures)}
{sections}
</main>
{_footer(figures)}
</body>
</html>
"""


def _header(figures: Sequence[FigureRecord]) -> str:
    meanings = ", ".join(f"<strong>{outcome}</strong> {meaning}" for outcome, meaning in MEANING.items())
    where = machines(figures)
    return f"""<header>
<h1>{PAPER}: <span>what was reproduced</span></h1>
<div class="opening">
<div>
<p>The experiments of Osband, Van Roy and Wen (<cite>{PAPER}</cite>, ICML 2016,
<a href="{LINK}">arXiv:1402.0635</a>) were run anew. What the paper says about each figure became a claim with a
criterion that a program checks on the results. A claim is {meanings}.
Made {dates(figures)}{f" on {escape(where)}" if where else ""}. {escape(scales(figures))}</p>
{_summary(figures)}
</div>
{_contents(figures)}
</div>
</header>"""


def _summary(figures: Sequence[FigureRecord]) -> str:
    bar = "".join(
        f'<span class="{kind(outcome)}" style="flex-grow: {count}"></span>'
        for outcome, count in tally(figures).items()
        if count
    )
    return f"""<p class="summary">{summary(figures)}</p>
<div class="bar" aria-hidden="true">{bar}</div>"""


def _contents(figures: Sequence[FigureRecord]) -> str:
    entries = "\n".join(
        f'<li><a href="#figure-{f.name}">{escape(tidy(f.title))}</a> <small>{escape(tidy(f.where))}</small></li>'
        for f in figures
    )
    return f"""<nav aria-labelledby="contents">
<h2 id="contents">Figures</h2>
<ol>
{entries}
</ol>
</nav>"""


def _verdicts(figures: Sequence[FigureRecord]) -> str:
    rows = "\n".join(_row(figure, claim) for figure in figures for claim in figure.claims)
    heads = "".join(
        f'<th role="columnheader" scope="col">{head}</th>'
        for head in ("Claim", "In the paper", "Verdict", "Measured")
    )
    return f"""<section aria-labelledby="verdicts">
<h2 id="verdicts">Verdicts</h2>
<table role="table" aria-labelledby="verdicts">
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>
</section>"""


def _row(figure: FigureRecord, claim: ClaimRecord) -> str:
    """A row of the table; roles are given, for a table that turns into cards is else no table to some readers."""
    return f"""<tr role="row">
<th role="rowheader" scope="row"><a href="#figure-{figure.name}">{escape(tidy(claim.words))}</a></th>
<td role="cell" class="where">{escape(tidy(claim.where))}</td>
<td role="cell">{badge(claim.outcome)}</td>
<td role="cell">{measured(claim)}</td>
</tr>"""


def _footer(figures: Sequence[FigureRecord]) -> str:
    seconds = total(figure.seconds for figure in figures)
    jobs = total(figure.jobs for figure in figures)
    return f"""<footer>
<p>{len(figures)} figures, {jobs:,.0f} jobs, {duration(seconds)} of computing in total, jobs that figures share
counted for each. Written by
<code>rlsvi report</code>.</p>
</footer>"""
