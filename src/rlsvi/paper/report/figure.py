"""A figure of the web page: the drawing beside its claims, each folded to a line, and how it was made."""

from rlsvi.paper.report.about import REASONS, facts, part_of_paper
from rlsvi.paper.report.elements import anchor, badge, drawing, pairs, reason, table, text
from rlsvi.paper.report.files import ClaimRecord, FigureRecord
from rlsvi.paper.report.words import interval, setting

DATA = {"parquet": "all results", "json": "settings and claims", "svg": "figure", "png": "figure"}
KIND = {"experiment": "a claim about an experiment", "proof": "a step of a proof", "ours": "our own claim"}


def figure_section(figure: FigureRecord) -> str:
    """All about a figure."""
    smaller = "" if figure.scale == "paper" else f"; scale {text(figure.scale)}"
    claims = "\n".join(_claim(figure, i, claim) for i, claim in enumerate(figure.claims, 1))
    name = figure.name
    return f"""<section class="figure" id="figure-{name}" aria-labelledby="title-{name}">
<div class="heading"><h2><span id="title-{name}">{text(figure.title)}</span>
<a class="permalink" href="#figure-{name}" aria-label="Link to this figure">#</a></h2>
<p>{text(figure.where)}{smaller}</p></div>
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
        "In the paper": f'{text(claim.where)}, {KIND[claim.kind]} (<a href="#{name}">link</a>)',
    }
    attributes = f'data-verdict="{claim.outcome}" data-kind="{claim.kind}" data-section="{section}"'
    return f"""<details class="claim" id="{name}" {attributes}>
<summary>{badge(claim.outcome)} {reason(claim)} <span class="words">{text(claim.words)}</span></summary>
<div class="behind">{pairs(behind.items())}
{table([[text(cell) for cell in row] for row in claim.table])}</div>
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
<pre><code>{text(figure.command)}</code></pre>
<p>{data}. To read all results:</p>
<pre><code>import polars as pl; results = pl.read_parquet("{figure.name}.parquet")</code></pre>
</div>
</details>"""
