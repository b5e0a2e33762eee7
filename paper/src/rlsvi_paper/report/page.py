"""The web page: all figures in small, the headline claims, a grid of verdicts, then each figure with its claims.

It loads nothing. A small script filters the claims; without it everything can be read all the same.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from io import BytesIO

from markdown_it import MarkdownIt
from PIL import Image

from rlsvi.html import document, style_of, table
from rlsvi_paper.report.records import (
    LINK,
    OUTCOMES,
    PAPER,
    REASONS,
    TOTALS,
    ClaimRecord,
    FigureRecord,
    alone,
    facts,
    headlines,
    how_to_read,
    interval,
    origin,
    part_of_paper,
    remedy,
    setting,
    tidy,
    totals,
)

HERE = files("rlsvi_paper.report")
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
DATA = {"parquet": "all results", "json": "settings and claims", "svg": "figure", "png": "figure"}
KIND = {"experiment": "a claim about an experiment", "proof": "a step of a proof", "ours": "our own claim"}
# A shape for each outcome, so that it is not told by colour alone: a tick, a wave, a cross.
SHAPES = {
    "reproduced": "M3 8.5l3.2 3.2L13 4.8",
    "inconclusive": "M2.5 9.5c1.8-3.5 3.6-3.5 5.5-1.5s3.7 2 5.5-1.5",
    "not reproduced": "M4 4l8 8M12 4l-8 8",
}
THUMBNAIL = (440, 280)  # pixels, twice the size at which it is shown


def html_page(figures: Sequence[FigureRecord]) -> str:
    """The whole page."""
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
    script = HERE.joinpath("page.js").read_text("utf-8")
    return document(f"{PAPER}: what was reproduced", body, style_of("rlsvi_paper.report"), script)


def _section(name: str, title: str, body: str) -> str:
    return f"""<section id="{name}" aria-labelledby="title-{name}">
<h2 id="title-{name}">{title}</h2>
{body}
</section>"""


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
    body = f'<ul class="headlines">{entries}</ul>' if entries else "<p>These figures have none.</p>"
    return _section("headlines", "Headline claims", body)


def _grid(figures: Sequence[FigureRecord]) -> str:
    head = ["Figure", "In the paper", *map(badge, OUTCOMES)]
    return _section("grid", "Figures and verdicts", wide([head, *map(_grid_row, figures)]))


def _grid_row(figure: FigureRecord) -> list[str]:
    """Its title and, for each outcome, how many claims came out so: a link to the first of them."""
    cells = [f'<a href="#figure-{figure.name}">{text(figure.title)}</a>', text(figure.where)]
    for outcome in OUTCOMES:
        numbers = [i for i, claim in enumerate(figure.claims, 1) if claim.outcome == outcome]
        cells.append(f'<a href="#{anchor(figure, numbers[0])}">{len(numbers)}</a>' if numbers else "·")
    return cells


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


def figure_section(figure: FigureRecord) -> str:
    """All about a figure."""
    smaller = "" if figure.scale == "paper" else f"; scale {text(figure.scale)}"
    claims = "\n".join(_claim(figure, i, claim) for i, claim in enumerate(figure.claims, 1))
    name = figure.name
    counts = Counter(claim.outcome for claim in figure.claims)
    verdicts = "".join(f"<span>{badge(it)} {counts[it]}</span>" for it in OUTCOMES if counts[it])
    return f"""<section class="figure" id="figure-{name}" aria-labelledby="title-{name}">
<details class="fold" open>
<summary class="heading"><h2><span id="title-{name}">{text(figure.title)}</span>
<a class="permalink" href="#figure-{name}" aria-label="Link to this figure">#</a></h2>
<span class="where">{text(figure.where)}{smaller}</span><span class="counts">{verdicts}</span></summary>
<div class="beside">
<figure>
<details class="zoom"><summary title="Enlarge or reduce">{drawing(figure)}</summary></details>
<figcaption>{text(figure.caption)}</figcaption>
</figure>
<div class="claims">
{claims or "<p>No claim was checked on this figure.</p>"}
{_making(figure)}
</div>
</div>
</details>
</section>"""


def _claim(figure: FigureRecord, number: int, claim: ClaimRecord) -> str:
    """A claim in a line, with the rest behind it; the attributes are what the filters look at."""
    section = part_of_paper(claim.where) or part_of_paper(figure.where)
    name = anchor(figure, number)
    found = interval(claim)
    behind = {
        "Verdict": f"{claim.outcome}: {REASONS[claim.why]}" if claim.why else claim.outcome,
        "Criterion": text(claim.criterion),
        "Measured": text(claim.measured) + (f' <span class="interval">[{found}]</span>' if found else ""),
        **({"But": text(claim.caveat)} if claim.caveat else {}),
        "In the paper": f'{text(claim.where)}, {KIND[claim.kind]} (<a href="#{name}">link</a>)',
    }
    attributes = f'data-verdict="{claim.outcome}" data-kind="{claim.kind}" data-section="{section}"'
    return f"""<details class="claim" id="{name}" {attributes}>
<summary>{badge(claim.outcome)} {reason(claim)} <span class="words">{text(claim.words)}</span></summary>
<div class="behind">{pairs(behind.items())}
{wide([[text(cell) for cell in row] for row in claim.table])}</div>
</details>"""


def _making(figure: FigureRecord) -> str:
    """Settings, command, time, machine and data, folded."""
    data = ", ".join(
        f'<a href="{figure.name}.{suffix}">{figure.name}.{suffix}</a> ({what})'
        for suffix, what in DATA.items()
        if figure.file(suffix).exists()
    )
    settings = ((f"<code>{text(name)}</code>", text(setting(value))) for name, value in figure.settings.items())
    return f"""<details class="making">
<summary>Settings, command and data</summary>
<div class="behind">
{pairs(settings)}
{pairs((name, text(value)) for name, value in facts(figure).items())}
<pre><code>{text(alone(figure))}</code></pre>
<p>{data}. To read all results:</p>
<pre><code>import polars as pl; results = pl.read_parquet("{figure.name}.parquet")</code></pre>
</div>
</details>"""


# ---- Findings: Markdown as HTML ----------------------------------------------------------------------------


def findings_section() -> str:
    """What the reproduction found that the paper does not say: findings.md, each finding folded."""
    _, *parts = re.split(r"^## ", HERE.joinpath("findings.md").read_text("utf-8"), flags=re.MULTILINE)
    body = "".join(
        f"""<details class="finding" id="finding-{i}">
<summary><span class="words">{MARKDOWN.renderInline(title)}</span></summary>
<div class="behind">{from_markdown(text)}</div>
</details>
"""
        for i, (title, text) in enumerate((part.split("\n", 1) for part in parts), 1)
    )
    return _section("findings", "What was found that the paper does not say", body)


def from_markdown(source: str) -> str:
    """HTML without links to other pages of the documentation, which do not come with the report."""
    html = re.sub(r'<a href="(?!https://).*?">(.*?)</a>', r"\1", MARKDOWN.render(source), flags=re.DOTALL)
    return html.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")


# ---- Small pieces ------------------------------------------------------------------------------------------


def text(words: str) -> str:
    """A text on one line that HTML leaves as it is."""
    return escape(tidy(words))


def style_name(outcome: str) -> str:
    """The outcome as the name of a style."""
    return outcome.replace(" ", "-")


def badge(outcome: str) -> str:
    """A verdict in a word and a shape; where there is little room the style sheet shows the shape alone."""
    shape = f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{SHAPES[outcome]}"/></svg>'
    return f'<span class="badge {style_name(outcome)}" title="{outcome}">{shape}<span>{outcome}</span></span>'


def reason(claim: ClaimRecord) -> str:
    """Why a claim was not reproduced, in a word."""
    return f'<span class="why">{claim.why}</span>' if claim.why else ""


def anchor(figure: FigureRecord, number: int) -> str:
    """The id of a claim of a figure."""
    return f"claim-{figure.name}-{number}"


def bar(counts: Mapping[str, int]) -> str:
    """A bar with a part for each outcome, as long as there are claims."""
    parts, start = [], 0
    for outcome in OUTCOMES:
        parts.append(f'<rect class="{style_name(outcome)}" x="{start}" width="{counts[outcome]}" height="1"/>')
        start += counts[outcome]
    size = f'viewBox="0 0 {start} 1" preserveAspectRatio="none"'
    return f'<svg class="bar" {size} aria-hidden="true">{"".join(parts)}</svg>'


def wide(rows: Sequence[Sequence[str]]) -> str:
    """A table of HTML texts whose first row has the headings, which may scroll; nothing if there are no rows."""
    return f'<div class="table">{table(rows[0], rows[1:])}</div>' if rows else ""


def pairs(entries: Iterable[tuple[str, str]]) -> str:
    """Names and what they stand for, both in HTML."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{what}</dd>' for name, what in entries if what)}</dl>"


def drawing(figure: FigureRecord) -> str:
    """The picture as an image, in which browsers run nothing and for which they load nothing.

    It is the SVG, or the PNG if that takes less room, as it does for a picture of thousands of dots.
    """
    source, path = figure.read("svg"), figure.file("svg")
    if b"<svg" not in source[:2000]:
        raise ValueError(f"{path} cannot be drawn, it is no SVG: {remedy(path, figure.command)}")
    kind, data = min(("svg+xml", source), ("png", figure.read("png")), key=lambda image: len(image[1]))
    return f'<img alt="{text(figure.title)}" src="data:image/{kind};base64,{b64encode(data).decode()}">'


def thumbnail(figure: FigureRecord) -> str:
    """The picture in small, with few colours so that it takes a few kilobytes."""
    source, path, small = figure.read("png"), figure.file("png"), BytesIO()
    try:
        with Image.open(BytesIO(source), formats=["PNG"]) as image:
            full = image.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be drawn, it is no PNG: {remedy(path, figure.command)}") from error
    full.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
    full.quantize(64).save(small, "PNG", optimize=True)
    data = b64encode(small.getvalue()).decode()
    return f'<img alt="" width="{full.width}" height="{full.height}" src="data:image/png;base64,{data}">'
