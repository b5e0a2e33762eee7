"""Which verdicts changed since version 0.1.0, and why: a page made of the old verdicts, new results and reasons.

before.csv has the verdicts of version 0.1.0, each with the name of the claim of today that judges the same; it may
be one for several. reasons.toml says, for claims of today, what changed: `criterion` is what the claim was judged
by before if it is judged by something else now, `why` is the reason.
"""

import csv
import tomllib
from collections import Counter
from importlib.resources import files
from typing import NamedTuple

from rlsvi.paper import FIGURES, figure_called
from rlsvi.paper.report.markdown import SIGNS, plain, verdict
from rlsvi.paper.report.records import ClaimRecord, FigureRecord

ORDER = ("not reproduced", "inconclusive", "reproduced")  # the worst first
DECIDED = "There are more runs, which decide it."


class Old(NamedTuple):
    """A verdict of version 0.1.0; `claim` is the name of the claim of today, empty if there is none."""

    figure: str
    claim: str
    verdict: str
    words: str


class Change(NamedTuple):
    """A claim of today, the verdicts of the old claims that it stands for, and what changed about it."""

    figure: str
    name: str
    now: ClaimRecord
    before: list[str]
    criterion: str  # the old one; empty if it is the same
    why: str

    @property
    def changed(self) -> bool:
        """Whether the verdict is another one; of several old ones the worst counts."""
        return min(self.before, key=ORDER.index) != self.now.outcome


def old_verdicts() -> list[Old]:
    """Return the verdicts of version 0.1.0."""
    text = files(__name__).joinpath("before.csv").read_text("utf-8")
    return [Old(*row) for row in list(csv.reader(text.splitlines()))[1:]]


def reasons() -> dict[str, dict[str, dict[str, str]]]:
    """Return what changed about claims, by figure and name; `gone` has claims of old that are no longer there."""
    return tomllib.loads(files(__name__).joinpath("reasons.toml").read_text("utf-8"))


def changes(figures: list[FigureRecord]) -> list[Change]:
    """Return all claims that have an old verdict, in the order of the figures."""
    known, found = reasons(), []
    for figure in figures:
        names = {claim.words: claim.name for claim in figure_called(figure.name).claims}
        for now in figure.claims:
            name = names[now.words]
            before = [old.verdict for old in old_verdicts() if (old.figure, old.claim) == (figure.name, name)]
            reason = known.get(figure.name, {}).get(name, {})
            why = reason.get("why", DECIDED if before == ["inconclusive"] else "")
            if before:
                found.append(Change(figure.name, name, now, before, reason.get("criterion", ""), why))
    return found


def new_claims(figures: list[FigureRecord]) -> list[tuple[FigureRecord, ClaimRecord]]:
    """Return the claims that version 0.1.0 did not have."""
    old = {(it.figure, it.claim) for it in old_verdicts()}
    names = {(name, claim.words): claim.name for name in FIGURES for claim in figure_called(name).claims}
    claims = [(it, claim) for it in figures for claim in it.claims]
    return [(it, claim) for it, claim in claims if (it.name, names[it.name, claim.words]) not in old]


def page(figures: list[FigureRecord]) -> str:
    """Return the page, in Markdown."""
    found = changes(figures)
    verdicts = [it for it in found if it.changed]
    criteria = [it for it in found if it.criterion]
    fresh = [f"- {verdict(claim)}: {_linked(claim, it.name)}" for it, claim in new_claims(figures)]
    lost = [old.words for old in old_verdicts() if not old.claim]
    gone = [f"- {plain(words)}. {plain(reasons()['gone'][words]['why'])}" for words in lost]
    rows = "\n".join(f"| {_words(it)} | {_before(it)} | {verdict(it.now)} | {plain(it.why)} |" for it in verdicts)
    return f"""<!-- Written by `python -m benchmarks.verdicts_changed`; do not edit by hand. -->

# Verdicts that changed since version 0.1.0

Version 0.1.0 judged {len(old_verdicts())} claims. They have since been merged into fewer, and some are judged by
another criterion, which is closer to what the paper says. Of {len(found)} claims of [today](results.md) that were
judged then, {len(verdicts)} have another verdict; where several claims became one, the worst of theirs counts.

| claim | 0.1.0 | now | why |
|---|---|---|---|
{rows}

## Criteria that changed

Each follows the sentence of the paper more closely than the one before, for the reason given.

{chr(10).join(map(_criterion, criteria)) or "None."}

## Claims that are new

{chr(10).join(fresh) or "None."}

## Claims that are no longer judged by themselves

{chr(10).join(gone) or "None."}
"""


def _linked(claim: ClaimRecord, figure: str) -> str:
    return f"[{plain(claim.words)}](results.md#{figure})"


def _words(it: Change) -> str:
    return _linked(it.now, it.figure)


def _before(it: Change) -> str:
    counts = Counter(it.before)
    signs = {outcome: f"{SIGNS[outcome]} {outcome}" for outcome in ORDER[::-1]}
    many = len(it.before) > 1
    return ", ".join(f"{counts[it]} {sign}" if many else sign for it, sign in signs.items() if counts[it])


def _criterion(it: Change) -> str:
    return (
        f"- {_words(it)}: {_before(it)}, now {verdict(it.now)}.\n"
        f"  *Before:* {plain(it.criterion)} *Now:* {plain(it.now.criterion)} *Why:* {plain(it.why)}"
    )
