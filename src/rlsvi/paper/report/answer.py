"""The page that answers whether the paper reproduces, in Markdown: a sentence for each part, then tables.

All of it is made of the verdicts as they were told; only what the paper prints is written by hand, in `printed`.
"""

from collections.abc import Sequence
from pathlib import Path

from rlsvi.paper import TOPICS
from rlsvi.paper.report.markdown import image_folder, measured, plain, verdict
from rlsvi.paper.report.printed import COLUMNS, PRINTED, ours
from rlsvi.paper.report.records import LINK, OUTCOMES, PAPER, ClaimRecord, FigureRecord, origin

PARTS = {  # of the paper, by the topics of its figures
    "chain": ("the chain", "sections 3 and 6.1, appendix C"),
    "recommendation": ("recommendations", "section 6.3, appendix E"),
    "tetris": ("Tetris", "section 6.2, appendix D"),
    "theory": ("the theory", "section 5, appendices B and G"),
    "extensions": ("extensions", "sections 4 and 7, appendix F"),
}
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

    Yes, if all of them are reproduced, perhaps with caveats. No, if none is.
    """
    leading = [it for it in claims if it.headline] or claims
    reproduced = sum(it.outcome == "reproduced" for it in leading)
    if reproduced == len(leading):
        caveats = len(caveats_of(leading))
        return "yes" + (f", with {caveats} caveat{'s' * (caveats > 1)}" if caveats else "")
    if reproduced:
        return "in part"
    return "no" if any(it.outcome == "not reproduced" for it in leading) else "open"


def caveats_of(claims: Sequence[ClaimRecord]) -> list[str]:
    """What a reader must know beside reproduced claims."""
    return [it.caveat for it in claims if it.outcome == "reproduced" and it.caveat]


def reading(claim: ClaimRecord) -> str:
    """The reading of the paper's text that decides, and in which others the claim is reproduced."""
    if not claim.readings:
        return "the only one"
    (first, _), *others = claim.readings
    judged = [(name, outcome) for name, outcome in others if outcome in OUTCOMES]
    met = [name for name, outcome in judged if outcome == "reproduced"]
    if not judged:
        return first
    return f"{first}; reproduced in {len(met)} of {len(judged)} others{': ' * bool(met)}{'; '.join(met)}"


def by_readings(claims: Claims) -> list[str]:
    """For each figure whose headline claims can be read in several ways: how many hold in each, in a sentence.

    A figure that is added to a part, with other readings, is told beside the others.
    """
    found = []
    for name in dict.fromkeys(figure.name for figure, _ in claims):
        leading = [it for figure, it in claims if figure.name == name and it.headline and it.readings]
        outcomes: dict[str, list[str]] = {}
        for claim in leading:
            for way, outcome in claim.readings:
                outcomes.setdefault(way, []).append(outcome)
        met = {way: sum(it == "reproduced" for it in listed) for way, listed in outcomes.items()}
        judged = {way: sum(it in OUTCOMES for it in listed) for way, listed in outcomes.items()}
        each = ", ".join(f"{met[way]} of {judged[way]} ({plain(way)})" for way in outcomes if judged[way])
        full = [way for way in outcomes if met[way] == judged[way] == len(leading)]
        if not each:
            continue
        if len(leading) == 1:
            ways = "; ".join(full)
            held = f"in {len(full)} of its {sum(judged.values())} readings{': ' * bool(full)}{plain(ways)}"
            found.append(f"The headline claim of `{name}` holds {held}.")
            continue
        whole = f"These readings give all: {plain('; '.join(full))}." if full else "No reading gives all."
        found.append(f"By the reading of the text, headline claims of `{name}` hold as follows: {each}. {whole}")
    return found


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
            measured(claim),
            verdict(claim),
        )
        for _, figure, claim in claims
        if claim.headline
    ]
    rest = [
        (PARTS[part][0], _link(figure, claim, results), measured(claim), verdict(claim))
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
section 6, and Theorem 1. Caveats are what a reader must know beside them. Every claim is in
[the results]({results}).

{sentences}

## The headline claims

Each claim is judged in one reading of the paper's text. Intervals are of 95%.

{_table(("where", "claim", "criterion", "reading", "measured", "verdict"), leading)}

## What else is not reproduced

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
{_again(figures, folder, results)}
## All of it again

    rlsvi paper --scale {figures[0].scale} --out {figures[0].folder.name}

computes every figure and judges every claim; it goes on where it was interrupted. With `--executor gpu` the runs
that a graphics card can compute are computed there, all others on the cores. {plain(origin(figures))}
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
    title, found = f"{name[0].upper()}{name[1:]} ({where})", answer([it for _, it in claims])
    sentences = [f"- **{title}: {found}.** Reproduced are {listed}."]
    sentences += [] if found.startswith("yes") else by_readings(claims)
    caveats = [f"    - But {plain(it)}." for it in caveats_of(groups["headline claims"])]
    return "\n".join([" ".join(sentences), *caveats])


def _link(figure: FigureRecord, claim: ClaimRecord, results: str) -> str:
    return f"[{plain(claim.words)}]({results}#{figure.name})"


def _settings(figure: FigureRecord) -> list[tuple[str, ...]]:
    printed, here = PRINTED[figure.name], ours(figure.name, figure.scale)
    return [
        (f"{printed.number}", "the paper", *(printed.settings.get(column, "–") for column in COLUMNS)),
        ("", "here", *(plain(here.get(column, "–")) for column in COLUMNS)),
    ]


def _beside(figure: FigureRecord, folder: str, results: str) -> tuple[str, str]:
    said = f"**Figure {PRINTED[figure.name].number}.** {plain(PRINTED[figure.name].drawn)}"
    return _picture(figure, folder, results), said


def _picture(figure: FigureRecord, folder: str, results: str) -> str:
    return f"[![{plain(figure.title)}]({folder}/{figure.name}.png)]({results}#{figure.name})"


def _again(figures: Sequence[FigureRecord], folder: str, results: str) -> str:
    """Pictures of what was computed again, by a plan that was fixed before its runs."""
    pictures = [_picture(it, folder, results) for it in figures if it.name == "tetris-readings"]
    about = "Figure 7 again, in every reading that was [fixed before its runs](preregistration.md):"
    return "".join(f"\n{about}\n\n{it}\n" for it in pictures)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are Markdown; a word if it has no rows."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) if rows else "None."
