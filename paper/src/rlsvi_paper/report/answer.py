"""The page that answers whether the paper reproduces, in Markdown: a sentence for each part, then tables.

All of it is made of the verdicts as they were told; only what the paper prints is written by hand, in `printed`.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from rlsvi.study.executors import batch_key
from rlsvi_paper import TOPICS, figure_called
from rlsvi_paper.report.markdown import plain, table, verdict
from rlsvi_paper.report.printed import COLUMNS, PRINTED, ours
from rlsvi_paper.report.records import LINK, OUTCOMES, PAPER, REASONS, ClaimRecord, FigureRecord, duration, origin

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
    size = "as large as" if all(it.scale == "paper" for it in figures) else "smaller than"
    reproduced, undecided, lost = (sum(it.outcome == outcome for it in leading) for outcome in OUTCOMES)
    return (
        f"Of the {len(leading)} headline claims of the paper, {reproduced} {_are(reproduced)} reproduced in runs "
        f"{size} its own ({'; '.join(each)}), {lost} {_are(lost)} not, and {undecided} {_are(undecided)} open."
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _share(claims: Sequence[ClaimRecord]) -> str:
    return f"{sum(it.outcome == 'reproduced' for it in claims)} of {len(claims)}"


def answer(claims: Sequence[ClaimRecord]) -> str:
    """Whether a part of the paper reproduces, in a word or a few: its headline claims decide, or all without any.

    Yes, if all of them are reproduced, perhaps with caveats. No, if none is. Where proofs were checked, what is
    reproduced are numbers that a theorem implies, and not the theorem.
    """
    leading = [it for it in claims if it.headline] or claims
    reproduced = sum(it.outcome == "reproduced" for it in leading)
    caveats = sum(it.outcome == "reproduced" and it.caveat != "" for it in leading)
    yes = "yes" + (f", with {caveats} caveat{'s' * (caveats > 1)}" if caveats else "")
    no = "no" if any(it.outcome == "not reproduced" for it in leading) else "open"
    told = yes if reproduced == len(leading) else "in part" if reproduced else no
    steps = [it.outcome for it in claims if it.kind == "proof"]
    if not steps or not reproduced:
        return told
    proof = "complete" if set(steps) == {"reproduced"} else "incomplete"
    return f"numerically consistent{', in part' * (told == 'in part')}; the printed proof is {proof}"


def lists(claims: Sequence[ClaimRecord]) -> str:
    """How many claims are reproduced by other lists of those that matter, in a sentence."""
    section = [it for it in claims if re.search(r"sections? 6", it.where)]
    found = [it for it in claims if it.kind == "experiment"]
    return f"all of section 6 {_share(section)}, and all that the paper says about results {_share(found)}"


def answer_page(figures: Sequence[FigureRecord], results: str) -> str:
    """The page that lies beside the page of results, whose name is `results`."""
    parts = claims_of(figures)
    claims = [(part, figure, claim) for part, found in parts.items() for figure, claim in found]
    leading = [
        (_link(figure, claim, results), plain(claim.where), plain(claim.criterion), verdict(claim))
        for _, figure, claim in claims
        if claim.headline
    ]
    rest = "\n".join(filter(None, (_lost(part, found, results) for part, found in parts.items())))
    drawn = sorted((it for it in figures if it.name in PRINTED), key=lambda it: PRINTED[it.name].number)
    head = ("part", "does it reproduce?", "headline claims", "other claims", "steps of proofs")
    notes = "".join(
        f"\n- {_title(part)}, “{plain(it.words)}”: but {plain(it.caveat)}."
        for part, _, it in claims
        if it.headline and it.outcome == "reproduced" and it.caveat
    )
    notes = notes or "nothing."
    if any(figure.name == "tetris-readings" for figure in figures):
        notes += (
            "\n\nThe readings of Tetris were [fixed before the runs](preregistration.md). Its figures stand in "
            "the order of the argument, 4500 rows for RLSVI and 3500 for LSVI; the paper prints them the other "
            "way round."
        )
    reasons = "; ".join(f"*{why}*, {meaning}" for why, meaning in REASONS.items())
    return f"""<!-- Written by rlsvi_paper.report from the results of `rlsvi paper`; do not edit by hand. -->

# Does the paper reproduce?

{first_sentence(figures)}

The paper is *{PAPER}* by Osband, Van Roy and Wen
([arXiv:1402.0635]({LINK})). A headline claim is a sentence that states a result in the abstract, Theorem 1
among them, or in the opening of section 6, before 6.1. Not counted are "dramatic efficiency gains", in the
abstract, which names no amount and no rival, and what is only believed, suggested or conjectured. A part of the
paper reproduces if all its headline claims do. By longer lists the counts are:
{lists([claim for _, _, claim in claims])}.
Every claim, with the figures, is in [the results]({results}).

{table(head, list(map(_part, parts.items())))}

What you should know beside these answers:
{notes}

## The headline claims

The criteria are ours, and words such as "about" and "much"
[mean the same in all of them](paper.md#claims-and-verdicts). Other choices would be as reasonable, so "4 of 5"
says under how many of the criteria that were tried a claim holds: with other thresholds, windows and statistics,
each changed alone, and in other readings of the text. The reading that is printed decides. What is not reproduced
has its reason in a word: {reasons}. Follow a claim to see what was measured, and with which choices the verdict is
another.

{table(("claim", "where", "reproduced if", "verdict"), leading)}

## What else is not reproduced, or open

{rest.strip() or "None."}

## The settings of its figures

Where ours differ from the paper's, an arrow leads from its value to ours. A dash is what the paper does not
state, or what a figure does not have. N is the length of the chain, the number of products, or that of the
transitions that are kept. Seeds are the runs of each setting. Learning times are cut off after the episodes
given here.

{table(("figure", *COLUMNS), [_settings(figure) for figure in drawn])}

## How to run all of it again

    rlsvi paper --scale {figures[0].scale} --out {figures[0].place}

computes every figure and judges every claim, and continues where it was interrupted. {plain(origin(figures))}
{time_of(figures)}

    rlsvi report {figures[0].place} --anew

checks the verdicts in a few minutes: it computes nothing, and judges and draws every figure from its table again.
"""


def time_of(figures: Sequence[FigureRecord]) -> str:
    """How long everything takes: figures share jobs, whose time counts once."""
    once: dict[str, tuple[float, float, bool]] = {}
    for figure in figures:
        cost, plan = defaultdict[str, float](float), figure_called(figure.name).plan(figure.scale)
        for job in plan:
            cost[job.function] += job.cost
        for job in plan:
            all_alike = figure.times.get(job.function, figure.seconds * cost[job.function] / sum(cost.values()))
            on_card = "--executor gpu" in figure.command and batch_key(job) is not None
            once.setdefault(job.name, (all_alike * job.cost / cost[job.function], job.cost, on_card))
    cards, instead = (sum(it[i] for it in once.values() if it[2]) for i in (0, 1))
    cores = sum(seconds for seconds, _, card in once.values() if not card)
    return (
        f"Counted once, that is {duration(cores)} of processor time, so about {duration(cores / 2)} on two idle "
        f"cores, and {duration(cards)} of a graphics card with `--executor gpu`. Without a card its jobs are "
        f"estimated to take {duration(instead / 2)} more on two cores."
    )


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
