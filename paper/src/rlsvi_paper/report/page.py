"""The web page: all figures in small, the headline claims, a grid of verdicts, then each figure with its claims.

Its frame is page.html. It loads nothing. A small script filters the claims; without it everything can be read all
the same.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from io import BytesIO
from string import Template

from markdown_it import MarkdownIt
from PIL import Image

from rlsvi.html import document, style_of, table
from rlsvi_paper.report.markdown import plain
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
    titles = {"figures": "All figures", "headlines": "Headline claims", "grid": "Figures and verdicts"}
    titles |= {f"figure-{it.name}": text(it.title) for it in figures}
    wheres = {part_of_paper(claim.where) or part_of_paper(it.where) for it in figures for claim in it.claims}
    parts = sorted(wheres - {""}, key=lambda part: (part.startswith("Appendix"), part))
    leading = [
        f'{badge(claim.outcome)} {reason(claim)} <a class="words" href="#{anchor(it, i)}">{text(claim.words)}</a>'
        for it, i, claim in headlines(figures)
    ]
    body = Template(HERE.joinpath("page.html").read_text("utf-8")).substitute(
        paper=PAPER,
        link=LINK,
        totals="\n".join(
            f'<div class="total"><h2>{TOTALS[kind]}</h2>{bar(counts)}'
            f"<ul>{items(f'{badge(it)} {count}' for it, count in counts.items())}</ul></div>"
            for kind, counts in totals(figures).items()
        ),
        about=MarkdownIt("commonmark", {"html": False}).render(f"{how_to_read()}\n\n{plain(origin(figures))}"),
        verdicts=options({outcome: outcome.capitalize() for outcome in OUTCOMES}),
        parts=options({part: part for part in parts}),
        kinds=options(TOTALS),
        contents=items(f'<a href="#{part}">{title}</a>' for part, title in titles.items()),
        gallery=items(
            f'<a href="#figure-{it.name}">{thumbnail(it)}<span>{text(it.title)}</span></a>' for it in figures
        ),
        headlines=items(leading) or "<li>These figures have none.</li>",
        grid=wide([["Figure", "In the paper", *map(badge, OUTCOMES)], *map(verdicts, figures)]),
        sections="\n".join(map(figure_section, figures)),
    )
    script = HERE.joinpath("page.js").read_text("utf-8")
    return document(f"{PAPER}: what was reproduced", body, style_of("rlsvi_paper.report"), script)


def verdicts(figure: FigureRecord) -> list[str]:
    """A row of the grid: for each outcome, how many claims came out so, with a link to the first of them."""
    cells = [f'<a href="#figure-{figure.name}">{text(figure.title)}</a>', text(figure.where)]
    for outcome in OUTCOMES:
        numbers = [i for i, claim in enumerate(figure.claims, 1) if claim.outcome == outcome]
        cells.append(f'<a href="#{anchor(figure, numbers[0])}">{len(numbers)}</a>' if numbers else "·")
    return cells


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
        **({"Holds in": f"{claim.held} ways"} if claim.held else {}),
        "Other ways": "; ".join(f"{text(way)}: {outcome}" for way, outcome in [*claim.ways.items()][1:]),
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


# ---- Small pieces ------------------------------------------------------------------------------------------


def text(words: str) -> str:
    """A text on one line that HTML leaves as it is."""
    return escape(tidy(words))


def items(entries: Iterable[str]) -> str:
    """Items of a list, of HTML texts."""
    return "\n".join(f"<li>{it}</li>" for it in entries)


def options(values: Mapping[str, str]) -> str:
    """Options of a menu, by what the script calls them."""
    return "".join(f'<option value="{value}">{title}</option>' for value, title in values.items())


def badge(outcome: str) -> str:
    """A verdict in a word and a shape; where there is little room the style sheet shows the shape alone."""
    shape = f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{SHAPES[outcome]}"/></svg>'
    return (
        f'<span class="badge {outcome.replace(" ", "-")}" title="{outcome}">{shape}<span>{outcome}</span></span>'
    )


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
        style = outcome.replace(" ", "-")
        parts.append(f'<rect class="{style}" x="{start}" width="{counts[outcome]}" height="1"/>')
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
