"""What `rlsvi paper` has written: its files, with every entry checked, and words for them that all pages share."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from rlsvi_paper import FIGURES

FORMAT = 2
OUTCOMES = ("reproduced", "inconclusive", "not reproduced")
PAPER = "Generalization and Exploration via Randomized Value Functions"
LINK = "https://arxiv.org/abs/1402.0635"
REASONS = {
    "scale": "the runs do not decide it: they are too few or too short, or it lies too near to the criterion",
    "misprint": "the paper has a misprint there",
    "reading": "the paper can be read in more than one way, and what is printed does not give its result",
    "finding": "what was computed or measured contradicts the sentence, and chance does not explain it",
}
TOTALS = {"experiment": "Claims about results", "proof": "Steps of proofs", "ours": "Our own claims"}


@dataclass(frozen=True)
class ClaimRecord:
    """What the paper says, how that is checked, what came out and, unless that is "reproduced", why."""

    words: str
    where: str
    kind: str
    headline: bool
    criterion: str
    outcome: str
    why: str
    measured: str
    table: list[list[str]]  # the first row has the headings; empty if there is no table
    readings: list[list[str]]  # names and outcomes, or why there is none; empty if there is only one
    caveat: str  # what a reader must know beside the verdict
    variants: list[list[str]]  # by other choices of the criterion, the outcomes
    value: float | None
    low: float | None
    high: float | None

    @property
    def ways(self) -> dict[str, str]:
        """The outcomes in all ways to judge it: ours, with other choices of the criterion, in other readings."""
        others = [*self.variants, *self.readings[1:]]
        return {"as judged": self.outcome} | {name: it for name, it in others if it in OUTCOMES}

    @property
    def held(self) -> str:
        """In how many of these ways it is reproduced; empty if there is only one."""
        ways = [*self.ways.values()]
        return f"{ways.count('reproduced')} of {len(ways)}" if len(ways) > 1 else ""


@dataclass(frozen=True)
class FigureRecord:
    """A figure that was run: NAME.json, with its drawings and its data beside it in `folder`."""

    folder: Path
    name: str
    title: str
    where: str
    caption: str
    scale: str
    seeds: Any
    jobs: int
    seconds: float
    times: Mapping[str, float]  # by the functions of its jobs
    settings: Mapping[str, Any]
    made: datetime
    command: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    claims: tuple[ClaimRecord, ...]

    @property
    def place(self) -> str:
        """Its folder, and the folder that is in."""
        return "/".join(self.folder.parts[-2:])

    def file(self, kind: str) -> Path:
        """Its file of a kind: svg, png, parquet, json."""
        return self.folder / f"{self.name}.{kind}"

    def read(self, kind: str) -> bytes:
        """The content of that file, or an error that says how to get it."""
        try:
            return self.file(kind).read_bytes()
        except FileNotFoundError:
            raise ValueError(f"{self.file(kind)} is missing: {remedy(self.file(kind), self.command)}") from None


def remedy(path: Path, command: str = "") -> str:
    """What to do about a file that cannot be used; `command` has made it, if that is known."""
    if path.stem in FIGURES:
        return f"make it again with `rlsvi paper {path.stem} --out {path.parent}`"
    return f"make it again with `{command or f'rlsvi paper MODULE:NAME --out {path.parent}'}`"


def alone(figure: FigureRecord, whole: bool = True) -> str:
    """The command that makes a figure by itself; for one that is not of the paper, the one that has made it.

    Parameters
    ----------
    whole
        With its scale and its folder.
    """
    if figure.name not in FIGURES:
        return tidy(figure.command)
    card = " --executor gpu" if "--executor gpu" in figure.command else ""  # its time is that of a card
    where = f" --scale {tidy(figure.scale)} --out {figure.place}" if whole else ""
    return f"rlsvi paper {figure.name}{where}{card}"


def read_figures(folder: Path, order: Sequence[str] = ()) -> list[FigureRecord]:
    """All figures of a folder: those named in `order` first, then as they come in the paper."""
    figures = [read_figure(path) for path in sorted(folder.glob("*.json"))]
    if not figures:
        raise ValueError(f"there is no figure in {folder}: run `rlsvi paper --out {folder}` first")
    rank = {name: i for i, name in enumerate(order)}
    return sorted(figures, key=lambda figure: (rank.get(figure.name, len(rank)), _in_the_paper(figure)))


def read_figure(path: Path) -> FigureRecord:
    """A figure from its JSON file; a ValueError names the file and what to do if it cannot be understood."""
    try:
        text = path.read_text("utf-8")
        data = json.loads(text, parse_constant=lambda word: None if word == "NaN" else float(word))
        if not isinstance(data, dict) or "format" not in data:
            raise ValueError("it does not say its format")
        if data["format"] != FORMAT:
            raise ValueError(f"it has format {data['format']!r}, and this program reads format {FORMAT}")
        if data.get("name") != path.stem or not re.fullmatch(r"[\w-]+", path.stem, re.ASCII):
            raise ValueError(f"it is of a figure named {data.get('name')!r}")
        known = {"times": {}, **data}  # earlier versions wrote none
        parts = {field.name: _part(known, field.name) for field in fields(FigureRecord) if field.name != "folder"}
        parts["made"] = datetime.fromisoformat(parts["made"])
        parts["claims"] = tuple(_claim(claim) for claim in parts["claims"])
        return FigureRecord(path.parent, **parts)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be used, {error}: {remedy(path)}") from error


def _claim(data: Any) -> ClaimRecord:
    if not isinstance(data, dict):
        raise ValueError("a claim of it is not an object")
    known = {"readings": [], "variants": [], "caveat": "", **data}  # earlier versions wrote none
    claim = ClaimRecord(**{field.name: _part(known, field.name) for field in fields(ClaimRecord)})
    reasons = ("",) if claim.outcome == "reproduced" else tuple(REASONS)
    allowed = {"outcome": OUTCOMES, "kind": tuple(TOTALS), "why": reasons}
    for key, choices in allowed.items():
        if getattr(claim, key) not in choices:
            raise ValueError(f"a claim of it has {key!r} {getattr(claim, key)!r}, which is none of {choices}")
    for row in claim.table:
        texts = isinstance(row, list) and all(isinstance(cell, str) for cell in row)
        if not texts or len(row) != len(claim.table[0]):
            raise ValueError(
                "the 'table' of a claim of it has a row that is no list of texts, or too short or long"
            )
    for pair in (*claim.readings, *claim.variants):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            raise ValueError(f"the 'readings' of a claim of it have {pair!r}, which is no name and outcome")
    return claim


NUMBERS = ("jobs", "seconds", "value", "low", "high")
TYPES = {
    **dict.fromkeys(("settings", "versions", "machine", "times"), dict),
    "claims": list,
    "table": list,
    "readings": list,
    "variants": list,
    "headline": bool,
}


def _part(data: dict[str, Any], key: str) -> Any:
    """An entry of the type it should have: a text, unless told otherwise. Numbers that are not finite are None."""
    if key not in data:
        raise ValueError(f"it has no {key!r}")
    value = data[key]
    if key == "seeds":
        return value
    if key in NUMBERS:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"its {key!r} is no number but {value!r}")
        return value if value is None or abs(value) <= 1e308 else None
    if not isinstance(value, TYPES.get(key, str)):
        raise ValueError(f"its {key!r} is of the wrong kind")
    return value


def _in_the_paper(figure: FigureRecord) -> tuple[Any, ...]:
    """A key to sort by: sections before appendices, numbers as numbers."""

    def natural(text: str) -> list[Any]:
        return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]

    where = figure.where.lower().replace("figures", "figure")
    return where.startswith("appendix"), natural(where), natural(figure.name)


# ---- Numbers, times and settings in words ---------------------------------------------------------------------


MOST_SETTINGS = 10  # a list of more settings than this is shortened
NUMBER = re.compile(r"(\d[\d,]*)(\.\d+)?(e[+-]?\d+)?(%)?", re.IGNORECASE)


def number(x: float | None) -> str:
    """A number as a reader wants it: 196,020, 0.31, 6e+29, ∞; undefined if it is none."""
    if x is None or x != x:
        return "undefined"
    if isinstance(x, int) or (x.is_integer() and abs(x) < 1e15):
        return f"{int(x):,}" if abs(x) >= 10_000 else str(int(x))
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    return f"{x:.4g}"


def tidy(text: str) -> str:
    """A text on one line, without the names programs have for what is no number."""
    text = re.sub(r"(?<![\w-])nan(?![\w-])", "undefined", " ".join(text.split()), flags=re.IGNORECASE)
    return re.sub(r"(?<!\w)inf(?![\w-])", "∞", text)


def setting(value: Any) -> str:
    """The value of a setting, or its values; many of them as `0 .. 1 (1001 values)`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{tidy(str(key))}: {setting(part)}" for key, part in value.items())
    if isinstance(value, str) or not isinstance(value, Sequence):
        return tidy(str(value))
    if len(value) <= MOST_SETTINGS:
        return ", ".join(map(setting, value)) or "none"
    if all(isinstance(x, int | float) and not math.isnan(x) for x in value):
        return f"{number(min(value))} .. {number(max(value))} ({len(value)} values)"
    return f"{', '.join(map(setting, value[:3]))}, .. ({len(value)} values)"


def interval(claim: ClaimRecord) -> str:
    """The interval of what was measured, unless the words say it already; empty if there is none."""
    low, high = claim.low, claim.high
    if low is None and high is None:
        return ""
    if all(x is None or _said(x, claim.measured) for x in (low, high)):
        return ""
    if low is None or high is None:
        return f"{number(low)} or more" if high is None else f"{number(high)} or less"
    return f"{number(low)} to {number(high)}"


def _said(x: float, text: str) -> bool:
    """Whether a text has a number: as it is, rounded (but not by more than 5%), or as a percentage."""
    for found in NUMBER.finditer(text):
        whole, digits, power, percent = found.groups(default="")
        scale = 0.01 if percent else 1.0
        value = scale * float(f"{whole.replace(',', '')}{digits}{power}")
        most = scale * float(f"0.5{power}") / 10 ** len(digits[1:])
        if math.isclose(abs(x), value) or abs(abs(x) - value) <= most <= 0.05 * abs(x):
            return True
    return False


def duration(seconds: float | None) -> str:
    """A time as `0.4 s`, `1 min 10 s`, `2 h 5 min` or `3 days 4 h`."""
    if seconds is None:
        return "not recorded"
    if seconds < 59.5:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    if seconds < 3599.5:
        return _two_parts(round(seconds), 60, "min", "s")
    if seconds < 48 * 3600 - 30:
        return _two_parts(round(seconds / 60), 60, "h", "min")
    return _two_parts(round(seconds / 3600), 24, "days", "h")


def _two_parts(count: int, size: int, unit: str, smaller: str) -> str:
    whole, rest = divmod(count, size)
    return f"{whole} {unit} {rest} {smaller}" if rest else f"{whole} {unit}"


def date(moment: datetime) -> str:
    """15 November 2026."""
    return f"{moment.day} {moment:%B %Y}"


# ---- Figures and all of them in words -----------------------------------------------------------------------


def how_to_read() -> str:
    """What the verdicts mean, in Markdown."""
    reasons = ", ".join(f"**{why}** ({meaning})" for why, meaning in REASONS.items())
    return (
        "Each sentence of the paper that states a result is a claim, which a program checks against a\n"
        "criterion. A claim is **reproduced** if the measurements meet the criterion, **not reproduced** if they "
        "contradict it, and\n**inconclusive** if they do neither. Unless it is reproduced, a word says why: "
        f"{reasons}."
    )


def origin(figures: Sequence[FigureRecord]) -> str:
    """When figures were made, at what scale, and how long that took."""
    days = sorted(figures, key=lambda figure: figure.made.timestamp())
    first, last = date(days[0].made), date(days[-1].made)
    made = f"on {first}" if first == last else f"from {first} to {last}"
    scales = Counter(figure.scale for figure in figures)
    listed = ", ".join(f"{count} at scale {tidy(scale)}" for scale, count in scales.items())
    smaller = "Scales other than the paper's are smaller, so that fewer claims can be decided."
    jobs, seconds = (sum(getattr(figure, key) or 0 for figure in figures) for key in ("jobs", "seconds"))
    return f"""The figures were made {made}: {listed}. {smaller if set(scales) != {"paper"} else ""}
Computing took {duration(seconds)} for {jobs:,.0f} jobs; a job that figures share is counted for each of them."""


def machine(parts: Mapping[str, Any]) -> str:
    """A machine: Neoverse-N1, 2 cores, Linux-6.1-aarch64."""
    known = {"processor": "{}", "cores": "{} cores", "system": "{}"}
    texts = [form.format(setting(parts[key])) for key, form in known.items() if parts.get(key)]
    return ", ".join([*texts, *(f"{key} {setting(part)}" for key, part in parts.items() if key not in known)])


def totals(figures: Sequence[FigureRecord]) -> dict[str, dict[str, int]]:
    """For each kind of claim that there is, how many of its claims came out how."""
    claims = [claim for figure in figures for claim in figure.claims]
    found = {kind: Counter(claim.outcome for claim in claims if claim.kind == kind) for kind in TOTALS}
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
