"""Tables that people bring: their columns as values, and every row that is wrong named, counted from 1."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsvi.core.checks import shown

if TYPE_CHECKING:
    import polars as pl

NAMED = 5  # how many wrong rows an error names


def read_table(source: Any) -> "pl.DataFrame":
    """Return a polars frame as it is, or read a CSV file, all of it as text, or a Parquet file."""
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return source
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        if path.suffix == ".csv":
            return pl.read_csv(path, infer_schema=False)
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    raise ValueError(f"{path} must end in .csv or .parquet")


class Cells:
    """The columns of a table. What is wrong in them is collected, and refused at once by `refuse`."""

    def __init__(self, frame: "pl.DataFrame") -> None:
        self.frame, self._wrong = frame, list[tuple[int, str]]()

    def of(self, column: str, parse: Callable[[Any], Any], needed: bool = True) -> list[Any]:
        """Return the values of a column; None where there is none, which is wrong if values are needed."""
        if column not in self.frame.columns:
            if needed:
                raise ValueError(f"there is no column {column!r}; there are {', '.join(self.frame.columns)}")
            return [None] * self.frame.height
        return [self._parsed(row, column, value, parse, needed) for row, value in enumerate(self.frame[column])]

    def _parsed(self, row: int, column: str, value: Any, parse: Callable[[Any], Any], needed: bool) -> Any:
        try:
            if value is not None:
                return parse(value)
            if needed:
                raise ValueError("there is no value")
        except ValueError as error:
            self.wrong(row, f"column {column!r}: {error}")
        return None

    def wrong(self, row: int, what: str) -> None:
        """Remember that a row, counted from 0 here, is wrong."""
        self._wrong.append((row, what))

    def refuse(self) -> None:
        """Raise an error that names the rows that are wrong, if there are any."""
        if self._wrong:
            lines = [f"row {row + 1}, {what}" for row, what in sorted(self._wrong)[:NAMED]]
            more = len(self._wrong) - len(lines)
            raise ValueError("\n".join(["nothing was imported:", *lines, *([f"and {more} more"] if more else [])]))


# ---- what a cell holds: text in a CSV file, typed otherwise -----------------------------------------------


def number(value: Any) -> float:
    """Return a finite number."""
    try:
        found = math.nan if isinstance(value, bool) or "_" in str(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"must be a finite number, got {shown(value)}")
    return found


def whole(value: Any) -> int:
    """Return a whole number of 64 bits."""
    try:
        found = int(value) if isinstance(value, str) and "_" not in value else value
    except ValueError:
        found = None
    if isinstance(found, bool) or not isinstance(found, int) or not -(2**63) <= found < 2**63:
        raise ValueError(f"must be a whole number, got {shown(value)}")
    return found


def probability(value: Any) -> float:
    """Return a probability, which is not 0 for something that happened."""
    found = number(value)
    if not 0 < found <= 1:
        raise ValueError(f"must be more than 0 and at most 1, got {found:g}")
    return found


def flag(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value in ("true", "false")):
        raise ValueError(f"must be true or false, got {shown(value)}")
    return value in (True, "true")


def moment(value: Any) -> float:
    """Return seconds since 1970, of such a number or of a date and time, which is in UTC if it does not say."""
    try:
        return number(value)
    except ValueError:
        pass
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"must be seconds since 1970 or a date and time, got {shown(value)}") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def mapping(value: Any) -> dict[str, Any]:
    """Return an object of JSON."""
    try:
        found = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"must be an object of JSON, got {shown(value)}")
    return found
