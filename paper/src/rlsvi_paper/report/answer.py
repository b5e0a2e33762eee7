"""The page that answers whether the paper reproduces, in Markdown: a sentence for each part, then tables.

All of it is made of the verdicts as they were told; only what the paper prints is written by hand, in `printed`.
"""

from collections.abc import Sequence

from rlsvi_paper import TOPICS
from rlsvi_paper.report.markdown import plain, table, verdict
from rlsvi_paper.report.printed import COLUMNS, PRINTED, ours
from rlsvi_paper.report.records import LINK, OUTCOMES, PAPER, ClaimRecord, FigureRecord, origin

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
            found.append(f"the headline claim of `{name}` holds {held}.")
            continue
        whole = f"All hold as read in: {plain('; '.join(full))}." if full else "No reading gives all of them."
        found.append(f"headline claims of `{name}` that hold, by the reading of the text: {each}. {whole}")
    return found


def answer_page(figures: Sequence[FigureRecord], results: str) -> str:
    """The page that lies beside the page of results, whose name is `results`."""
    parts = claims_of(figures)
    claims = [(part, figure, claim) for part, found in parts.items() for figure, claim in found]
    leading = [
        (_link(figure, claim, results), plain(claim.criterion), verdict(claim))
        for _, figure, claim in claims
        if claim.headline
    ]
    rest = "\n".join(filter(None, (_lost(part, found, results) for part, found in parts.items())))
    drawn = sorted((it for it in figures if it.name in PRINTED), key=lambda it: PRINTED[it.name].number)
    head = ("part", "does it reproduce?", "headline claims", "other claims", "steps of proofs")
    notes = "".join(f"\n- {note}" for part, found in parts.items() for note in _notes(part, found)) or "nothing."
    if any(figure.name == "tetris-readings" for figure in figures):
        notes += (
            "\n\nThe readings of `tetris-readings` and `tetris-second` were [fixed before](preregistration.md)."
        )
    return f"""<!-- Written by rlsvi_paper.report from the results of `rlsvi paper`; do not edit by hand. -->

# Does the paper reproduce?

{first_sentence(figures)}

The paper is *{PAPER}* by Osband, Van Roy and Wen
([arXiv:1402.0635]({LINK})). Its headline claims are those of the abstract and of section 6, and
Theorem 1. A part of it reproduces if all its headline claims do. Every claim, with the figures, is in
[the results]({results}).

{table(head, list(map(_part, parts.items())))}

What you should know beside these answers:
{notes}

## The headline claims

The criteria are ours, and words such as "about" and "much"
[mean the same in all of them](paper.md#claims-and-verdicts).
Follow a claim to see what was measured, and the verdicts in other readings of the text.

{table(("claim", "reproduced if", "verdict"), leading)}

## What else is not reproduced, or open

{rest.strip() or "None."}

## The settings of its figures

Where ours differ from the paper's, an arrow leads from its value to ours. A dash is what the paper does not
state, or what a figure does not have. N is the length of the chain, the number of products, or that of the
transitions that are kept. Seeds are the runs of each setting. Learning times are cut off after the episodes
given here.

{table(("figure", *COLUMNS), [_settings(figure) for figure in drawn])}

## How to run all of it again

    rlsvi paper --scale {figures[0].scale} --out {figures[0].folder.name}

computes every figure and judges every claim, and continues where it was interrupted. With `--executor gpu` it
uses a graphics card for the runs that one can compute. {plain(origin(figures))}
"""


def _part(entry: tuple[str, Claims]) -> tuple[str, ...]:
    """What became of a part of the paper: a row of the table."""
    part, claims = entry
    found = [it for _, it in claims]
    groups = (
        [it for it in found if it.headline],
        [it for it in found if not it.headline and it.kind == "experiment"],
        [it for it in found if not it.headline and it.kind == "proof"],
    )
    title = f"{_title(part)} ({PARTS[part][1]})"
    return title, f"**{answer(found)}**", *(_share(group) if group else "–" for group in groups)


def _notes(part: str, claims: Claims) -> list[str]:
    """What a reader must know beside the verdicts on a part: caveats, or what other readings give."""
    leading = [it for _, it in claims if it.headline]
    told = [] if answer([it for _, it in claims]).startswith("yes") else by_readings(claims)
    told += [f"but {plain(it)}." for it in caveats_of(leading)]
    return [f"{_title(part)}: {it}" for it in told]


def _lost(part: str, claims: Claims, results: str) -> str:
    """The claims of a part that are not reproduced, or open, but for its headline claims."""
    found = [(it, claim) for it, claim in claims if not claim.headline and claim.outcome != "reproduced"]
    listed = "".join(f"\n- {verdict(it)}: {_link(figure, it, results)}" for figure, it in found)
    return f"{_title(part)}:\n{listed}\n" if found else ""


def _title(part: str) -> str:
    name = PARTS[part][0]
    return f"{name[0].upper()}{name[1:]}"


def _link(figure: FigureRecord, claim: ClaimRecord, results: str) -> str:
    return f"[{plain(claim.words)}]({results}#{figure.name})"


def _settings(figure: FigureRecord) -> tuple[str, ...]:
    printed, here = PRINTED[figure.name], ours(figure.name, figure.scale)
    cells = ((printed.settings.get(it, "–"), plain(here.get(it, "–"))) for it in COLUMNS)
    alike = (paper if paper.lstrip("0") == us.lstrip("0") else f"{paper} → {us}" for paper, us in cells)
    return f"{printed.number}", *alike
