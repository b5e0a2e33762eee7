"""What there is to say about figures as a whole; the same on every kind of page."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlsvi.paper.report.files import KINDS, OUTCOMES, ClaimRecord, FigureRecord
from rlsvi.paper.report.words import date, duration, setting, tidy

PAPER = "Generalization and Exploration via Randomized Value Functions"
LINK = "https://arxiv.org/abs/1402.0635"
REASONS = {
    "scale": "the runs, or their length, do not decide it",
    "misprint": "the paper has a misprint there",
    "reading": "the paper can be read in more than one way, and this reading does not give its result",
    "finding": "the results differ from the paper's, and not by chance",
}
TOTALS = {"experiment": "Claims about results", "proof": "Steps of proofs", "ours": "Our own claims"}


def how_to_read(stress: str) -> str:
    """What the verdicts mean; `stress` has the marks that stress a word, as in "*{}*"."""
    reproduced, contrary, open_ = map(stress.format, ("reproduced", "not reproduced", "inconclusive"))
    reasons = "; ".join(f"{stress.format(why)}: {meaning}" for why, meaning in REASONS.items())
    return f"""What the paper says about each figure became a claim with a criterion that a program checks on the
results. A claim is {reproduced} if the measurements meet the criterion, {contrary} if they contradict it, and
{open_} if they do neither. Unless it is reproduced, a word says why: {reasons}."""


def origin(figures: Sequence[FigureRecord]) -> str:
    """When figures were made, at what scale, and how long that took."""
    days = sorted(figures, key=lambda figure: figure.made.timestamp())
    first, last = date(days[0].made), date(days[-1].made)
    made = f"on {first}" if first == last else f"from {first} to {last}"
    scales = Counter(figure.scale for figure in figures)
    listed = ", ".join(f"{count} at scale {tidy(scale)}" for scale, count in scales.items())
    smaller = "Scales other than the paper's are smaller, so that fewer claims can be decided."
    jobs, seconds = (sum(getattr(figure, key) or 0 for figure in figures) for key in ("jobs", "seconds"))
    return f"""Figures made {made}: {listed}. {smaller if set(scales) != {"paper"} else ""}
Computing took {duration(seconds)} for {jobs:,.0f} jobs; those that figures share are counted for each."""


def machine(parts: Mapping[str, Any]) -> str:
    """A machine: Neoverse-N1, 2 cores, Linux-6.1-aarch64."""
    known = {"processor": "{}", "cores": "{} cores", "system": "{}"}
    texts = [form.format(setting(parts[key])) for key, form in known.items() if parts.get(key)]
    return ", ".join([*texts, *(f"{key} {setting(part)}" for key, part in parts.items() if key not in known)])


def totals(figures: Sequence[FigureRecord]) -> dict[str, dict[str, int]]:
    """For each kind of claim that there is, how many of its claims came out how."""
    claims = [claim for figure in figures for claim in figure.claims]
    found = {kind: Counter(claim.outcome for claim in claims if claim.kind == kind) for kind in KINDS}
    return {kind: {outcome: counts[outcome] for outcome in OUTCOMES} for kind, counts in found.items() if counts}


def headlines(figures: Sequence[FigureRecord]) -> list[tuple[FigureRecord, int, ClaimRecord]]:
    """The claims that matter most, each with its figure and its number there, which begins with 1."""
    return [(figure, i, claim) for figure in figures for i, claim in enumerate(figure.claims, 1) if claim.headline]


def part_of_paper(where: str) -> str:
    """Section 6.1 of "section 6.1.1, footnote"; empty if no section or appendix is named."""
    found = re.search(r"(section|appendix) (\d+(?:\.\d+)?|[A-Z]\b)", where, re.IGNORECASE)
    return f"{found[1].capitalize()} {found[2]}" if found else ""


def facts(figure: FigureRecord) -> dict[str, str]:
    """How a figure was made."""
    return {
        "Scale": tidy(figure.scale),
        "Seeds": setting(figure.seeds),
        "Jobs": setting(figure.jobs),
        "Compute time": duration(figure.seconds),
        "Made": f"{date(figure.made)}, {figure.made:%H:%M %Z}".strip(),
        "Machine": machine(figure.machine),
        "Versions": ", ".join(f"{key} {setting(value)}" for key, value in figure.versions.items()),
    }
