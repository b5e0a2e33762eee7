"""A figure of the web page: the drawing beside its claims, and how it was made."""

from base64 import b64encode
from html import escape

from rlsvi.report.about import facts
from rlsvi.report.files import ClaimRecord, FigureRecord, remedy
from rlsvi.report.words import interval, setting, tidy

# A shape for each outcome, so that it is not told by colour alone: a tick, a wave, a cross.
SHAPES = {
    "reproduced": "M3 8.5l3.2 3.2L13 4.8",
    "inconclusive": "M2.5 9.5c1.8-3.5 3.6-3.5 5.5-1.5s3.7 2 5.5-1.5",
    "not reproduced": "M4 4l8 8M12 4l-8 8",
}
DATA = {"parquet": "all results", "json": "settings and claims", "svg": "figure", "png": "figure"}


def badge(outcome: str) -> str:
    """A verdict in a word and a shape."""
    shape = f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{SHAPES[outcome]}"/></svg>'
    return f'<span class="badge {kind(outcome)}">{shape}{outcome}</span>'


def kind(outcome: str) -> str:
    """The outcome as the name of a style."""
    return outcome.replace(" ", "-")


def measured(claim: ClaimRecord) -> str:
    """What was measured, with its interval."""
    found = interval(claim)
    return escape(tidy(claim.measured)) + (f' <span class="interval">[{found}]</span>' if found else "")


def section(figure: FigureRecord) -> str:
    """All about a figure."""
    title, scale = escape(tidy(figure.title)), escape(tidy(figure.scale))
    smaller = "" if figure.scale == "paper" else f"; at scale {scale}, smaller than the paper's"
    claims = "\n".join(map(_claim, figure.claims)) or "<li>No claim was checked on this figure.</li>"
    return f"""<section class="figure" id="figure-{figure.name}" aria-labelledby="title-{figure.name}">
<div class="heading"><h2 id="title-{figure.name}">{title}</h2>
<p>{escape(tidy(figure.where))}{smaller}</p></div>
<div class="beside">
<figure>
<div class="plot">{_drawing(figure)}</div>
<figcaption>{escape(tidy(figure.caption))}</figcaption>
</figure>
<ol class="claims">
{claims}
</ol>
</div>
{_details(figure)}
<p class="back"><a href="#verdicts">Back to the verdicts</a></p>
</section>"""


def _drawing(figure: FigureRecord) -> str:
    """The picture as an image, in which browsers run nothing and for which they load nothing."""
    source, path = figure.read("svg"), figure.file("svg")
    if b"<svg" not in source[:2000]:
        raise ValueError(f"{path} cannot be drawn, it is no SVG: {remedy(path)}")
    return f'<img alt="{escape(tidy(figure.title))}" src="data:image/svg+xml;base64,{b64encode(source).decode()}">'


def _claim(claim: ClaimRecord) -> str:
    return f"""<li>
{badge(claim.outcome)} <span class="where">{escape(tidy(claim.where))}</span>
<p>{escape(tidy(claim.words))}</p>
<dl><dt>Criterion</dt><dd>{escape(tidy(claim.criterion))}</dd>
<dt>Measured</dt><dd>{measured(claim)}</dd></dl>
</li>"""


def _details(figure: FigureRecord) -> str:
    settings = {name: setting(value) for name, value in figure.settings.items()}
    data = ", ".join(
        f'<a href="{figure.name}.{suffix}">{figure.name}.{suffix}</a> ({what})'
        for suffix, what in DATA.items()
        if figure.file(suffix).exists()
    )
    return f"""<details>
<summary>Settings, compute time and data</summary>
<div class="made">
<div><h3>Settings</h3>{_list(settings, code=True)}</div>
<div><h3>Made with</h3>{_list(facts(figure))}</div>
<div class="wide"><h3>Command</h3>
<pre><code>{escape(tidy(figure.command))}</code></pre>
<h3>Data</h3>
<p>{data}. To read all results:</p>
<pre><code>import polars as pl; results = pl.read_parquet("{figure.name}.parquet")</code></pre></div>
</div>
</details>"""


def _list(entries: dict[str, str], code: bool = False) -> str:
    """Names and what they stand for."""
    form = "<code>{}</code>" if code else "{}"
    pairs = (f"<dt>{form.format(escape(tidy(k)))}</dt><dd>{escape(v)}</dd>" for k, v in entries.items())
    return f"<dl>{''.join(pairs)}</dl>"
