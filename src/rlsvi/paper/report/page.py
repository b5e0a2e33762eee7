"""The web page: all figures in small, the headline claims, a grid of verdicts, then each figure with its claims.

It loads nothing. A small script filters the claims; without it everything can be read all the same.
"""

from collections.abc import Sequence
from importlib.resources import files

from rlsvi.paper.report.about import LINK, PAPER, TOTALS, headlines, how_to_read, origin, totals
from rlsvi.paper.report.contents import contents
from rlsvi.paper.report.document import document, style_of
from rlsvi.paper.report.elements import anchor, badge, bar, reason, table, text, thumbnail
from rlsvi.paper.report.figure import figure_section
from rlsvi.paper.report.files import OUTCOMES, FigureRecord
from rlsvi.paper.report.findings import findings_section


def html_page(figures: Sequence[FigureRecord]) -> str:
    """The whole page."""
    style, script = (
        style_of("rlsvi.paper.report"),
        files("rlsvi.paper.report").joinpath("page.js").read_text("utf-8"),
    )
    sections = "\n".join(map(figure_section, figures))
    body = f"""<a class="skip" href="#headlines">Skip to the headline claims</a>
{_header(figures)}
<div class="frame">
{contents(figures)}
<main>
{_gallery(figures)}
{_headlines(figures)}
{_grid(figures)}
{sections}
{findings_section()}
</main>
</div>
<footer><p>Written by <code>rlsvi report</code>.</p></footer>"""
    return document(f"{PAPER}: what was reproduced", body, style, script)


def _header(figures: Sequence[FigureRecord]) -> str:
    cards = "\n".join(_total(TOTALS[kind], counts) for kind, counts in totals(figures).items())
    return f"""<header>
<h1>What was reproduced</h1>
<p>The experiments of <cite>{PAPER}</cite> by Osband, Van Roy and Wen
(<a href="{LINK}">arXiv:1402.0635</a>), run again.</p>
<div class="totals">
{cards}
</div>
<details class="about"><summary>How to read this page</summary>
<div class="behind">
<p>{how_to_read("<strong>{}</strong>")}</p>
<p>{text(origin(figures))}</p>
</div></details>
</header>"""


def _total(title: str, counts: dict[str, int]) -> str:
    parts = "".join(f"<li>{badge(outcome)} {count}</li>" for outcome, count in counts.items())
    return f'<div class="total"><h2>{title}</h2>{bar(counts)}<ul>{parts}</ul></div>'


def _gallery(figures: Sequence[FigureRecord]) -> str:
    entries = "\n".join(
        f'<li><a href="#figure-{figure.name}">{thumbnail(figure)}<span>{text(figure.title)}</span></a></li>'
        for figure in figures
    )
    return f"""<section id="figures" aria-label="All figures">
<ul class="gallery">
{entries}
</ul>
</section>"""


def _headlines(figures: Sequence[FigureRecord]) -> str:
    entries = "\n".join(
        f"<li>{badge(claim.outcome)} {reason(claim)} "
        f'<a class="words" href="#{anchor(figure, i)}">{text(claim.words)}</a></li>'
        for figure, i, claim in headlines(figures)
    )
    return f"""<section id="headlines" aria-labelledby="title-headlines">
<h2 id="title-headlines">Headline claims</h2>
{f'<ul class="headlines">{entries}</ul>' if entries else "<p>These figures have none.</p>"}
</section>"""


def _grid(figures: Sequence[FigureRecord]) -> str:
    head = ["Figure", "In the paper", *map(badge, OUTCOMES)]
    return f"""<section id="grid" aria-labelledby="title-grid">
<h2 id="title-grid">Figures and verdicts</h2>
{table([head, *map(_grid_row, figures)])}
</section>"""


def _grid_row(figure: FigureRecord) -> list[str]:
    """Its title and, for each outcome, how many claims came out so: a link to the first of them."""
    cells = [f'<a href="#figure-{figure.name}">{text(figure.title)}</a>', text(figure.where)]
    for outcome in OUTCOMES:
        numbers = [i for i, claim in enumerate(figure.claims, 1) if claim.outcome == outcome]
        cells.append(f'<a href="#{anchor(figure, numbers[0])}">{len(numbers)}</a>' if numbers else "·")
    return cells
