"""The files that `rlsvi paper` has written: every entry is checked before it is used."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from rlsvi.paper import FIGURES

FORMAT = 2
OUTCOMES = ("reproduced", "inconclusive", "not reproduced")
KINDS = ("experiment", "proof", "ours")
REASONS = ("scale", "misprint", "reading", "finding")


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
    value: float | None
    low: float | None
    high: float | None


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
    settings: Mapping[str, Any]
    made: datetime
    command: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    claims: tuple[ClaimRecord, ...]

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
        parts = {field.name: _part(data, field.name) for field in fields(FigureRecord) if field.name != "folder"}
        parts["made"] = datetime.fromisoformat(parts["made"])
        parts["claims"] = tuple(_claim(claim) for claim in parts["claims"])
        return FigureRecord(path.parent, **parts)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be used, {error}: {remedy(path)}") from error


def _claim(data: Any) -> ClaimRecord:
    if not isinstance(data, dict):
        raise ValueError("a claim of it is not an object")
    claim = ClaimRecord(**{field.name: _part(data, field.name) for field in fields(ClaimRecord)})
    reasons = ("",) if claim.outcome == "reproduced" else REASONS
    allowed = {"outcome": OUTCOMES, "kind": KINDS, "why": reasons}
    for key, choices in allowed.items():
        if getattr(claim, key) not in choices:
            raise ValueError(f"a claim of it has {key!r} {getattr(claim, key)!r}, which is none of {choices}")
    for row in claim.table:
        if (
            not isinstance(row, list)
            or len(row) != len(claim.table[0])
            or not all(isinstance(x, str) for x in row)
        ):
            raise ValueError(
                "the 'table' of a claim of it has a row that is no list of texts, or too short or long"
            )
    return claim


NUMBERS = ("jobs", "seconds", "value", "low", "high")
TYPES = {
    **dict.fromkeys(("settings", "versions", "machine"), dict),
    "claims": list,
    "table": list,
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
