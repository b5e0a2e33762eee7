"""The page that answers whether the paper reproduces, in Markdown: a sentence for each part, then tables.

All of it is made of the verdicts as they were told; only what the paper prints is written by hand, in `printed`.
"""

from collections.abc import Sequence
from pathlib import Path

from rlsvi.paper import TOPICS
from rlsvi.paper.report.markdown import image_folder, plain, verdict
from rlsvi.paper.report.printed import COLUMNS, PRINTED, ours
from rlsvi.paper.report.records import LINK, OUTCOMES, PAPER, ClaimRecord, FigureRecord, interval

PARTS = {  # of the paper, by the topics of its figures
    "chain": ("the chain", "sections 3 and 6.1, appendix C"),
    "recommendation": ("recommendations", "section 6.3, appendix E"),
    "tetris": ("Tetris", "section 6.2, appendix D"),
    "theory": ("the theory", "section 5, appendices B and G"),
    "extensions": ("extensions", "sections 4 and 7, appendix F"),
}
MET = {"reproduced", "yes"}  # what tables of readings call it
LAST_HEADINGS = {"verdict", "met"}  # of these tables
Claims = list[tuple[FigureRecord, ClaimRecord]]


def claims_of(figures: Sequence[FigureRecord]) -> dict[str, Claims]:
    """The claims of the paper, not ours, in each of its parts that has some."""
    found = {
        part: [
            (it, claim) for it in figures if it.name in TOPICS[part] for claim in it.claims if claim.kind != "ours"
        ]
        for part in PARTS
    }
    return {part: claims for part, claims in found.items() if claims}


def first_sentence(figures: Sequence[FigureRecord]) -> str:
    """The answer in a sentence: how many of the headline claims are reproduced, in all and in each part."""
    parts = {part: [it for _, it in claims if it.headline] for part, claims in claims_of(figures).items()}
    leading = [claim for claims in parts.values() for claim in claims]
    each = [f"{PARTS[part][0]} {_share(claims)}" for part, claims in parts.items() if claims]
    scale = " at its own scale" if all(it.scale == "paper" for it in figures) else " in runs smaller than its own"
    reproduced, undecided, lost = (sum(it.outcome == outcome for it in leading) for outcome in OUTCOMES)
    return (
        f"Of the {len(leading)} headline claims of the paper, {reproduced} {_are(reproduced)} reproduced{scale} "
        f"({'; '.join(each)}), {lost} {_are(lost)} not, and {undecided} {_are(undecided)} open."
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _share(claims: Sequence[ClaimRecord]) -> str:
    return f"{sum(it.outcome == 'reproduced' for it in claims)} of {len(claims)}"


def answer(claims: Sequence[ClaimRecord]) -> str:
    """Whether a part of the paper reproduces, in a word or a few: its headline claims decide, or all without any.

    Yes, if all of them are reproduced; other claims that are not are caveats. No, if none is.
    """
    leading = [it for it in claims if it.headline] or claims
    reproduced = sum(it.outcome == "reproduced" for it in leading)
    if reproduced == len(leading):
        caveats = sum(it.outcome != "reproduced" for it in claims)
        return "yes" + (f", with {caveats} caveat{'s' * (caveats > 1)}" if caveats else "")
    if reproduced:
        return "in part"
    return "no" if any(it.outcome == "not reproduced" for it in leading) else "open"


def reading(claim: ClaimRecord) -> str:
    """The reading of the paper's text that is judged, and how many others meet the criterion, from its table."""
    if not claim.table or claim.table[0][-1] not in LAST_HEADINGS:
        return "the only one"
    (judged, *_), *others = [row for row in claim.table[1:] if row[-1]]
    met = sum(row[-1] in MET for row in others)
    return (
        f"{judged}; {met} of {len(others)} other rows of its table meet{'s' * (met == 1)} it" if others else judged
    )


def answer_page(figures: Sequence[FigureRecord], beside: Path, images: Path, results: str) -> str:
    """The page that lies in the folder `beside`, as the page of results does, whose name is `results`."""
    parts = claims_of(figures)
    sentences = "\n".join(_sentence(part, found) for part, found in parts.items())
    claims = [(part, figure, claim) for part, found in parts.items() for figure, claim in found]
    leading = [
        (
            plain(claim.where),
            _link(figure, claim, results),
            plain(claim.criterion),
            plain(reading(claim)),
            _measured(claim),
            verdict(claim),
        )
        for _, figure, claim in claims
        if claim.headline
    ]
    rest = [
        (PARTS[part][0], _link(figure, claim, results), _measured(claim), verdict(claim))
        for part, figure, claim in claims
        if not claim.headline and claim.outcome != "reproduced"
    ]
    drawn = sorted((it for it in figures if it.name in PRINTED), key=lambda it: PRINTED[it.name].number)
    folder = image_folder(beside, images)
    return f"""<!-- Written by rlsvi.paper.report from the results of `rlsvi paper`; do not edit by hand. -->

# Does the paper reproduce?

{first_sentence(figures)}

The paper is *{PAPER}* by Osband, Van Roy and Wen
([arXiv:1402.0635]({LINK})). A part of it reproduces if all its headline claims do: those of the abstract, of
section 6, and Theorem 1. Other claims of that part that do not are caveats. Every claim is in
[the results]({results}).

{sentences}

## The headline claims

Each claim is judged in one reading of the paper's text. Intervals, in parentheses, are of 95%.

{_table(("where", "claim", "criterion", "reading", "measured", "verdict"), leading)}

## The caveats: what else is not reproduced

{_table(("part", "claim", "measured", "verdict"), rest)}

## The settings of its figures

For each figure of the paper, first what the paper states and then what RLSVI has here. Where its runs differ in a
setting, the table has all values; seeds are the runs of each setting. N is the length of the chain, the number of
products, or that of the transitions that are kept. A dash is what the paper does not state, or what a figure does
not have. Learning times are cut off after the episodes given here.

{_table(("figure", "", *COLUMNS), [row for figure in drawn for row in _settings(figure)])}

## Our figures beside the paper's

The pictures of the paper are not in its text. On the right is what its text and captions say about them.

{_table(("here", "in the paper"), [_beside(figure, folder, results) for figure in drawn])}
"""


def _sentence(part: str, claims: Claims) -> str:
    """What became of a part of the paper."""
    name, where = PARTS[part]
    groups = {
        "headline claims": [it for _, it in claims if it.headline],
        "other claims about results": [it for _, it in claims if not it.headline and it.kind == "experiment"],
        "steps of proofs": [it for _, it in claims if not it.headline and it.kind == "proof"],
    }
    counts = [f"{_share(found)} {words}" for words, found in groups.items() if found]
    listed = " and ".join([", ".join(counts[:-1]), counts[-1]] if len(counts) > 1 else counts)
    title = f"{name[0].upper()}{name[1:]} ({where})"
    return f"- **{title}: {answer([it for _, it in claims])}.** Reproduced are {listed}."


def _link(figure: FigureRecord, claim: ClaimRecord, results: str) -> str:
    return f"[{plain(claim.words)}]({results}#{figure.name})"


def _measured(claim: ClaimRecord) -> str:
    found = interval(claim)
    return plain(claim.measured) + (f" ({found})" if found else "")


def _settings(figure: FigureRecord) -> list[tuple[str, ...]]:
    printed, here = PRINTED[figure.name], ours(figure.name, figure.scale)
    return [
        (f"{printed.number}", "the paper", *(printed.settings.get(column, "–") for column in COLUMNS)),
        ("", "here", *(plain(here.get(column, "–")) for column in COLUMNS)),
    ]


def _beside(figure: FigureRecord, folder: str, results: str) -> tuple[str, str]:
    title = plain(figure.title)
    picture = f"[![{title}]({folder}/{figure.name}.png)]({results}#{figure.name})"
    return picture, f"**Figure {PRINTED[figure.name].number}.** {plain(PRINTED[figure.name].drawn)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are Markdown; a word if it has no rows."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) if rows else "None."
