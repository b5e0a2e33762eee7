"""The contents of the page and the filters, which stay in sight: beside the figures, or in a bar on a phone."""

from collections.abc import Mapping, Sequence

from rlsvi.paper.report.about import TOTALS, part_of_paper
from rlsvi.paper.report.elements import text
from rlsvi.paper.report.files import OUTCOMES, FigureRecord


def contents(figures: Sequence[FigureRecord]) -> str:
    """Filters, which the script shows as they need it, and links to all parts of the page."""
    parts = {
        "figures": "All figures",
        "headlines": "Headline claims",
        "grid": "Figures and verdicts",
        **{f"figure-{figure.name}": text(figure.title) for figure in figures},
        "findings": "Findings",
    }
    entries = "\n".join(f'<li><a href="#{part}">{title}</a></li>' for part, title in parts.items())
    return f"""<nav aria-label="Contents">
<input type="checkbox" id="menu"><label for="menu">Contents<span hidden> and filters</span></label>
<div class="panel">
{_filters(figures)}
<ol>
{entries}
</ol>
</div>
</nav>"""


def _filters(figures: Sequence[FigureRecord]) -> str:
    wheres = {part_of_paper(claim.where) or part_of_paper(it.where) for it in figures for claim in it.claims}
    sections = sorted(wheres - {""}, key=lambda part: (part.startswith("Appendix"), part))
    return f"""<div id="filters" role="search" hidden>
<input type="search" name="search" placeholder="Search" aria-label="Search the claims and findings">
{_choice("verdict", "Every verdict", {outcome: outcome.capitalize() for outcome in OUTCOMES})}
{_choice("section", "The whole paper", {section: section for section in sections})}
{_choice("kind", "Every kind of claim", TOTALS)}
<p><output></output> <button type="button">Show all</button></p>
</div>"""


def _choice(name: str, all_of_them: str, options: Mapping[str, str]) -> str:
    entries = "".join(f'<option value="{value}">{title}</option>' for value, title in options.items())
    return f"""<select name="{name}" aria-label="{name.capitalize()}">
<option value="">{all_of_them}</option>{entries}</select>"""
