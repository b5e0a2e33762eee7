"""Numbers, times and settings in words; the same on every kind of page."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rlsvi.paper.report.files import ClaimRecord

LONGEST = 10  # a list of more settings than this is shortened
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
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _list(value)
    return tidy(str(value))


def _list(values: Sequence[Any]) -> str:
    if len(values) <= LONGEST:
        return ", ".join(map(setting, values)) or "none"
    if all(isinstance(x, int | float) and not math.isnan(x) for x in values):
        return f"{number(min(values))} .. {number(max(values))} ({len(values)} values)"
    return f"{', '.join(map(setting, values[:3]))}, .. ({len(values)} values)"


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
