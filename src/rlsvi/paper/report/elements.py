"""Small pieces of the web page: texts, verdicts, tables, pictures and the number of each claim."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from io import BytesIO

from PIL import Image

from rlsvi.paper.report.files import OUTCOMES, ClaimRecord, FigureRecord, remedy
from rlsvi.paper.report.words import tidy

# A shape for each outcome, so that it is not told by colour alone: a tick, a wave, a cross.
SHAPES = {
    "reproduced": "M3 8.5l3.2 3.2L13 4.8",
    "inconclusive": "M2.5 9.5c1.8-3.5 3.6-3.5 5.5-1.5s3.7 2 5.5-1.5",
    "not reproduced": "M4 4l8 8M12 4l-8 8",
}
THUMBNAIL = (440, 280)  # pixels, twice the size at which it is shown


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


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table of HTML texts whose first row has the headings; nothing if there are no rows."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in rows[0])
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows[1:])
    return f"""<div class="table"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>"""


def pairs(entries: Iterable[tuple[str, str]]) -> str:
    """Names and what they stand for, both in HTML."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{what}</dd>' for name, what in entries if what)}</dl>"


def drawing(figure: FigureRecord) -> str:
    """The picture as an image, in which browsers run nothing and for which they load nothing."""
    source, path = figure.read("svg"), figure.file("svg")
    if b"<svg" not in source[:2000]:
        raise ValueError(f"{path} cannot be drawn, it is no SVG: {remedy(path, figure.command)}")
    return f'<img alt="{text(figure.title)}" src="data:image/svg+xml;base64,{b64encode(source).decode()}">'


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
