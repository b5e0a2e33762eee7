"""The page that the tour ends with: one file, which needs no network."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import date
from html import escape
from importlib.resources import files

import rlsvi
from rlsvi.cli.tour.exhibit import Exhibit
from rlsvi.html import document
from rlsvi.paper.report.page import style_name
from rlsvi.paper.report.records import ClaimRecord


def page(exhibits: Sequence[Exhibit], claims: Sequence[ClaimRecord], trouble: str) -> str:
    """The whole page."""
    style = files("rlsvi.cli.tour").joinpath("style.css").read_text("utf-8")
    body = f"""<header>
<h1>Deep exploration with few episodes</h1>
<p>What these four examples show was learned on this machine on {date.today():%d %B %Y}, by
<a href="https://arxiv.org/abs/1402.0635">randomized least-squares value iteration</a>: the agent draws one
plausible value function at the start of each episode, and acts greedily on it.</p>
</header>
<main>
{"".join(map(_exhibit, exhibits))}
{_claims(claims, trouble)}
</main>
<footer><p>Written by <code>make demo</code>, rlsvi {rlsvi.__version__}. Next:
<code>rlsvi train CartPole-v1</code>, <code>rlsvi --help</code>, or the tutorials in <code>docs/</code>.</p>
</footer>"""
    return document("rlsvi: a tour", body, style)


def _exhibit(it: Exhibit) -> str:
    source = f"data:{it.kind};base64,{b64encode(it.picture).decode()}"
    caption = f"<figcaption>{escape(it.caption)}</figcaption>" if it.caption else ""
    return f"""<section id="{it.name}">
<h2>{escape(it.title)}</h2>
<figure><img src="{source}" alt="{escape(it.sentence)}">{caption}</figure>
<p>{escape(it.sentence)}</p>
<pre><code>{escape(it.code)}</code></pre>
</section>
"""


def _claims(claims: Sequence[ClaimRecord], trouble: str) -> str:
    if trouble:
        return (
            f"<section><h2>What the paper claims</h2><p>Not judged in this run: {escape(trouble)}.</p></section>"
        )
    rows = "\n".join(
        f'<li><span class="{style_name(claim.outcome)}">{claim.outcome}{_why(claim)}</span> '
        f"{escape(claim.words)} <small>({escape(claim.where)})</small></li>"
        for claim in claims
    )
    return f"""<section id="claims">
<h2>What the paper claims, as judged in this run</h2>
<p>These headline claims were judged on small runs, computed beside the tour. <code>make paper</code> computes
all figures and judges every claim.</p>
<ul>
{rows}
</ul>
</section>"""


def _why(claim: ClaimRecord) -> str:
    return {"": "", "scale": " (too few runs here)"}.get(claim.why, f" ({claim.why})")
