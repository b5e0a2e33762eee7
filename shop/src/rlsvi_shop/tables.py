"""Tables that people bring: their columns as values, and every row that is wrong named, counted from 1."""

import json
import math
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.core.checks import fits, hint, shown
from rlsvi.core.files import file_instead
from rlsvi_shop.features import Encoder, NumberFeature
from rlsvi_shop.requests import Ids, text_of
from rlsvi_shop.settings import RewardSettings

if TYPE_CHECKING:
    import polars as pl

ENDINGS = (".csv", ".parquet")
NAMED = 5  # how many wrong rows an error names
LONGEST_LINE = 2**20  # bytes of a line in a CSV file
LONGEST_TEXT = 2**19  # characters of a text of JSON
MOST_SLOTS = 1000
LATEST = 7_258_118_400  # the beginning of the year 2200, in seconds since 1970
UNREADABLE = {  # by words of polars, in small letters
    "not properly escaped": 'it has a quotation mark (") that is not closed, or one inside of a text that has '
    "none around it: put the whole text in quotation marks, and write those inside of it twice",
    "more fields": "a row has more cells than the first line has names: name every column, and put texts with "
    "commas in quotation marks",
    "empty csv": "it is empty: the first line must have the names of the columns",
    "utf-8": "it is no text in UTF-8: save it in this encoding",
}
NUMBERS_PER_ROW = 60  # the memory that a row takes until it is stored, in numbers of 8 bytes


def _read(source: Any) -> "pl.DataFrame":
    """Return a polars frame as it is, or read a CSV file, all of it as text, or a Parquet file."""
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return source
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source must be a polars frame, or a CSV or Parquet file, got {shown(source)}")
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: {file_instead(path, 'name a CSV or Parquet file')}")
    try:
        if path.suffix == ".csv":
            _check_size(path, _lines(path))
            return pl.read_csv(path, infer_schema=False)
        if path.suffix == ".parquet":
            _check_size(path, pl.scan_parquet(path).select(pl.len()).collect().item())
            return pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        words = str(error)  # with advice about polars' own arguments in later lines
        first = words.partition("\n")[0]
        why = next((reason for part, reason in UNREADABLE.items() if part in words.lower()), first)
        raise ValueError(f"{path} cannot be read: {why}") from None
    raise ValueError(f"{path} must end in .csv or .parquet{hint(path.suffix, ENDINGS)}")


def _lines(path: Path) -> int:
    """Return the number of lines of a file; one that is too long is refused before it is in memory."""
    lines = length = 0
    with path.open("rb") as file:
        while piece := file.readline(LONGEST_LINE):
            length += len(piece)
            if length > LONGEST_LINE:
                raise ValueError(f"line {lines + 1} of {path} has more than {LONGEST_LINE} bytes: it is no row")
            if piece.endswith(b"\n"):
                lines, length = lines + 1, 0
    return lines + (length > 0)


def _check_size(path: Path, rows: int) -> None:
    fits(f"the {rows} rows of {path}", NUMBERS_PER_ROW * rows, "import a part of them, or use a larger machine")


class TableReader:
    """The columns of a polars frame, CSV file or Parquet file: all rows, or one piece of them after another.

    What is wrong in them is collected, and refused at once by `refuse_errors`, which names lines of a CSV file.
    """

    def __init__(self, source: Any) -> None:
        self.frame = _read(source)
        self.csv = Path(source) if isinstance(source, str | Path) and Path(source).suffix == ".csv" else None
        self.height, self._rows = self.frame.height, np.arange(self.frame.height)
        self._errors, self._count = list[tuple[int, str]](), 0  # the first rows that are wrong, and how many are

    def pieces(self, ends: Any, order: Any = None) -> Iterator["pl.DataFrame"]:
        """Let `frame`, which is also yielded, be one piece of the rows after another, perhaps in another order."""
        if order is not None:
            self.frame, self._rows = self.frame[order], order
        whole, rows = self.frame, self._rows
        for start, end in zip([0, *ends[:-1]], ends, strict=False):
            self.frame, self._rows = whole[int(start) : int(end)], rows[int(start) : int(end)]
            yield self.frame

    def check_column(self, name: str) -> None:
        """Raise an error if there is no such column."""
        there = self.frame.columns
        if name not in there:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(there)}{hint(name, there)}")

    def column(self, name: str, parse: Callable[[Any], Any], needed: bool = True) -> list[Any]:
        """Return the values of a column; None where there is none, which is wrong if values are needed."""
        if needed:
            self.check_column(name)
        if name not in self.frame.columns:
            return [None] * self.frame.height
        values: list[Any] = []
        for row, value in enumerate(self.frame[name]):
            try:
                if value is None and needed:
                    raise ValueError("there is no value")
                values.append(None if value is None else parse(value))
            except ValueError as error:
                self.add_error(row, f"column {name!r}: {error}")
                values.append(None)
        return values

    def features(self, encoder: Encoder, whose: str, others: tuple[str, ...]) -> list[dict[str, Any]]:
        """Return the features in each row: of all columns but the others, which have a meaning of their own."""
        names = [column for column in self.frame.columns if column not in others]
        for name in names:
            if name not in encoder.root:
                raise ValueError(
                    f"column {name!r} is no feature of a {whose}: declare it in [{whose}], or drop it"
                    f"{hint(name, [*others, *encoder.root])}"
                )
        columns = [self.column(name, partial(_feature, encoder, name), needed=False) for name in names]
        rows = zip(*columns, strict=True) if columns else [()] * self.frame.height
        return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]

    def add_error(self, row: int, what: str) -> None:
        """Remember that a row of the piece, counted from 0 here, is wrong."""
        found = int(self._rows[row]), what
        self._errors, self._count = sorted([*self._errors, found])[:NAMED], self._count + 1

    @property
    def is_right(self) -> bool:
        """Whether nothing wrong was found so far."""
        return not self._errors

    def refuse_errors(self) -> None:
        """Raise an error that names the rows that are wrong, if there are any."""
        if self._errors:
            has_lines = self.csv is not None and _lines(self.csv) == self.height + 1  # every row is one
            place = " (line {} of the file)" if has_lines else ""
            lines = [f"row {row + 1}, {what}{place.format(row + 2)}" for row, what in self._errors]
            more = self._count - len(lines)
            raise ValueError("\n".join(["nothing was imported:", *lines, *([f"and {more} more"] if more else [])]))


def _feature(encoder: Encoder, name: str, value: Any) -> float | str:
    feature = encoder.root[name]
    return feature.check(name, number(value) if isinstance(feature, NumberFeature) else value)


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


def reward_parser(settings: RewardSettings) -> Callable[[Any], float]:
    """Return the function that makes a reward, which the settings allow, of what a cell holds."""
    return lambda value: settings.check(number(value))


def slot(value: Any) -> int:
    """Return the number of a slot."""
    found = whole(value)
    if not 0 <= found < MOST_SLOTS:
        raise ValueError(f"must be a slot, from 0 to {MOST_SLOTS - 1}, got {found}")
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
        found = number(value)
    except ValueError:
        try:
            when = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise ValueError(f"must be seconds since 1970 or a date and time, got {shown(value)}") from None
        found = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if found >= LATEST:
        raise ValueError(
            f"must be before the year 2200, got {shown(value)}: give seconds since 1970, not milliseconds"
        )
    return found


def json_object(value: Any) -> dict[str, Any]:
    """Return an object of JSON."""
    found = _json(value)
    if not isinstance(found, dict):
        raise ValueError(f"must be an object of JSON, got {shown(value)}")
    return found


def json_list(value: Any) -> list[Any]:
    """Return a list of JSON that is not empty."""
    found = _json(value)
    if not isinstance(found, list) or not found:
        raise ValueError(f"must be a list of JSON that is not empty, got {shown(value)}")
    return found


def name_parser(what: str, ids: Ids) -> Callable[[Any], str]:
    """Return the function that makes a name of what a cell holds: in a CSV file, integers are texts too."""
    return lambda value: text_of(what, whole(value) if ids == "integer" else value, ids)


def names_parser(what: str, ids: Ids) -> Callable[[Any], list[str]]:
    """Return the function that makes names of a list of JSON that is not empty."""
    name = name_parser(what, ids)
    return lambda value: [name(each) for each in json_list(value)]


def _json(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ValueError(f"must have at most {LONGEST_TEXT} characters, got {len(value)}")
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return None
