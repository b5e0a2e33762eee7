"""The columns of a log, and the checks of their numbers. An error names the column and the row, counted from 0."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.core.checks import LARGEST, instead, shown
from rlsvi.core.compile import Bools, Longs

if TYPE_CHECKING:
    import polars as pl

REQUIRED = "episode", "step", "observation", "action", "reward", "next_observation", "terminated"
OPTIONAL = "truncated", "mask", "next_mask", "propensity"
ROW = "row in the log"  # the name of a column that is added


class WrongRow(ValueError):
    """A row of a log is wrong. `file` is the file or piece in which it is that row, if there are several."""

    def __init__(self, column: str, row: int, what: str, file: str = "") -> None:
        super().__init__(column, row, what, file)
        self.column, self.row, self.what, self.file = column, row, what, file

    def __str__(self) -> str:
        where = f"row {self.row} of {self.file}" if self.file else f"row {self.row}"
        return f"the log is wrong in column {self.column!r}, {where}: {self.what}"


def refuse(column: str, rows: Longs, wrong: Any, what: str) -> None:
    """Raise an error that names the first row that is wrong, if any is."""
    if wrong.any():
        raise WrongRow(column, int(rows[wrong].min()), what)


class Columns:
    """The columns of a frame by what they mean, whatever they are called; its rows are counted from `start`."""

    def __init__(self, frame: "pl.DataFrame", names: Mapping[str, Any] | None, start: int = 0) -> None:
        if not isinstance(names, Mapping | None):
            raise TypeError(f'columns must be a dictionary, such as {{"reward": "r"}}, got {shown(names)}')
        if ROW in frame.columns:
            raise ValueError(f"the log must not have a column called {ROW!r}: rename it")
        self.frame, self.names = frame.with_row_index(ROW, start), dict(names or {})
        unknown = [name for name in self.names if name not in (*REQUIRED, *OPTIONAL)]
        if unknown:
            what = unknown[0] if isinstance(unknown[0], str) else shown(unknown[0])
            raise ValueError(f"columns has {what!r:.80}: {instead(what, (*REQUIRED, *OPTIONAL))}")
        for name, given in self.names.items():
            several = isinstance(given, list | tuple) and given and all(isinstance(each, str) for each in given)
            if not (isinstance(given, str) or several):
                raise TypeError(
                    f"columns[{name!r}] must be the name of a column, or a list of them, got {shown(given)}"
                )
        self._check_there({name: self.of(name) for name in (*REQUIRED, *self.names)})
        for column, dtype in self.frame.schema.items():
            if "Int128" in str(dtype) and any(column in self.of(name) for name in (*REQUIRED, *OPTIONAL)):
                raise ValueError(f"the log is wrong in column {column!r}: it holds {dtype}, cast it to Int64")

    def of(self, name: str) -> list[str]:
        """Return the columns of a name: one, or one for each number, such as observation_0, observation_1, .."""
        given = self.names.get(name, name)
        wanted = [given] if isinstance(given, str) else list(given)
        if wanted == [name] and name not in self.frame.columns:
            wanted = self._numbered(name) or self._named(name) or wanted
        return wanted

    def column(self, column: str, name: str = "observation") -> "pl.Series":
        """Return a column of the frame, or raise an error if there is none; `name` is what it means."""
        self._check_there({name: [column]})
        return self.frame[column]

    def _check_there(self, wanted: dict[str, list[str]]) -> None:
        """Raise an error that names all columns that the frame does not have, by what they mean."""
        there = self.frame.columns
        missing = {name: [each for each in columns if each not in there] for name, columns in wanted.items()}
        missing = {name: columns for name, columns in missing.items() if columns}
        if not missing:
            return
        absent = [column for columns in missing.values() for column in columns]
        given = ", ".join(f"{name!r}: .." for name in missing)
        raise ValueError(
            f"the log has no column{'s' if absent[1:] else ''} {', '.join(map(repr, absent))}, it has "
            f"{', '.join(there[1:]) or 'none'}: say which {'ones are' if absent[1:] else 'one is'} meant by "
            f"columns={{{given}}}"
        )

    def _numbered(self, name: str) -> list[str]:
        """Return the columns observation_0, observation_1, .., of which none may be missing."""
        ends = [column.removeprefix(f"{name}_") for column in self.frame.columns if column.startswith(f"{name}_")]
        numbers = [int(end) for end in ends if end.isdecimal() and end == str(int(end))]
        columns = [f"{name}_{i}" for i in range(len(numbers))]
        for column in columns:
            if column not in self.frame.columns:
                raise ValueError(f"the log has no column {column!r}, but it has {name}_{max(numbers)}: add it")
        return columns

    def _named(self, name: str) -> list[str]:
        """Return the columns observation_KEY of an observation that is a dictionary."""
        keyed = name in ("observation", "next_observation")
        return [column for column in self.frame.columns if keyed and column.startswith(f"{name}_")]

    def is_named(self, name: str) -> bool:
        """Return whether the columns of a name are told apart by keys, which do not say their order."""
        found = self.frame.columns
        return name not in (*self.names, *found) and f"{name}_0" not in found and bool(self._named(name))

    def has(self, name: str) -> bool:
        """Return whether an optional column is there."""
        return name in self.names or name in self.frame.columns or f"{name}_0" in self.frame.columns

    def name(self, name: str) -> str:
        """Return the column of a name that must be one column."""
        column, *more = self.of(name)
        if self.is_named(name):
            self.column(name, name)
        if more:
            raise ValueError(f"the log must have one column for {name}, got {', '.join((column, *more))}")
        return column

    def one(self, name: str) -> "pl.Series":
        """Return a column of single values without gaps."""
        series = self.frame[self.name(name)]
        self.refuse(series.name, series.is_null().to_numpy(), "there is no value")
        return series

    def refuse(self, column: str, wrong: Bools, what: str) -> None:
        """Raise an error that names the first row that is wrong, if any is."""
        refuse(column, self.rows, wrong, what)

    @property
    def rows(self) -> Longs:
        """The numbers of the rows in the log as it was given."""
        rows: Longs = self.frame[ROW].to_numpy()
        return rows

    def whole(self, name: str) -> Longs:
        """Return a column of whole numbers."""
        series = self.one(name)
        if not series.dtype.is_integer():
            raise ValueError(f"the log is wrong in column {series.name!r}: it holds {series.dtype}, not integers")
        numbers: Longs = series.to_numpy().astype(np.int64)
        return numbers

    def real(self, name: str) -> Any:
        """Return a column of finite numbers."""
        series = self.one(name)
        if not (series.dtype.is_numeric() or str(series.dtype) == "Boolean"):
            raise ValueError(f"the log is wrong in column {series.name!r}: it holds {series.dtype}, not numbers")
        numbers = series.to_numpy().astype(np.float64)
        self.refuse(series.name, ~(np.abs(numbers) <= LARGEST), "NaN, infinity or a number that is too large")
        return numbers

    def flags(self, name: str) -> Bools:
        """Return a column of True and False, or of 1 and 0; False everywhere if an optional column is missing."""
        if name in OPTIONAL and not self.has(name):
            return np.zeros(self.frame.height, np.bool_)
        series = self.one(name)
        if not (series.dtype.is_integer() or str(series.dtype) == "Boolean"):
            raise ValueError(
                f"the log is wrong in column {series.name!r}: it holds {series.dtype}, not True and False"
            )
        numbers = series.to_numpy()
        self.refuse(series.name, (numbers != 0) & (numbers != 1), "neither True nor False")
        return numbers.astype(np.bool_)

    def vectors(self, name: str, size: int, needed: Bools) -> Any:
        """Return lists of `size` numbers, or one column for each number, (rows, size); 0 where not needed."""
        return self.joined(self.equal_parts(name, size), needed)

    def equal_parts(self, name: str, size: int) -> "list[tuple[pl.Series, int]]":
        """Return the columns of `size` numbers in all, and how many numbers each of them has in a row."""
        names = self.of(name)
        if self.is_named(name):
            raise ValueError(
                f"the order of the columns {', '.join(names)} is not known: say it by columns={{{name!r}: [..]}}"
            )
        if size % len(names):
            raise ValueError(
                f"the log has {len(names)} columns for {name} ({', '.join(names)}), there must be {size} numbers"
            )
        return [(self.frame[column], size // len(names)) for column in names]

    def joined(self, parts: "list[tuple[pl.Series, int]]", needed: Bools) -> Any:
        """Return the numbers of several columns side by side, (rows, numbers); 0 where not needed."""
        each = [self._flat(series, size, needed) for series, size in parts]
        found = np.zeros((len(needed), sum(size for _, size in parts)), np.result_type(*each))
        found[needed] = np.concatenate(each, axis=1)
        return found

    def _flat(self, series: "pl.Series", size: int, needed: Bools) -> Any:
        """Return the numbers of one column where needed, (needed rows, size)."""
        import polars as pl

        column, series, rows = series.name, series.filter(pl.Series(needed)), self.rows[needed]
        refuse(column, rows, series.is_null().to_numpy(), "there is no value")
        nested, owner = depth(series.dtype), rows  # the row of each element
        for _ in range(nested):
            if isinstance(series.dtype, pl.List):
                lengths = series.list.len().to_numpy()
                expected = size if nested == 1 else lengths[:1]
                wrong = (lengths != expected) | (lengths == 0)
                refuse(column, owner, wrong, f"there must be {size} numbers")
            series, before = series.explode(), len(series)
            owner = np.repeat(owner, len(series) // max(before, 1))
        if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
            raise ValueError(f"the log is wrong in column {column!r}: it holds {series.dtype}, not numbers")
        if len(series) != size * len(rows):
            raise ValueError(f"the log is wrong in column {column!r}: there must be {size} numbers in each row")
        refuse(column, owner, series.is_null().to_numpy(), "a number is missing")
        numbers = series.to_numpy()
        wrong = ~(np.abs(numbers.astype(np.float64)) <= LARGEST)
        refuse(column, owner, wrong, "NaN, infinity or a number that is too large")
        return numbers.reshape(len(rows), size)


def depth(dtype: Any) -> int:
    """Return how deep lists are nested."""
    import polars as pl

    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    return 0 if inner is None else 1 + depth(inner)
