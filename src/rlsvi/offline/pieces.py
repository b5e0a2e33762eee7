"""Logs of any kind as frames of polars: one, or several pieces that are joined."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlsvi.offline.columns import WrongRow

if TYPE_CHECKING:
    import polars as pl

KINDS = (
    "a polars frame, the path of a Parquet file or of a folder of such files, a pandas or Arrow table, a Minari "
    "data set, or an iterator of such pieces"
)


class Piece(NamedTuple):
    """A part of a log, and what errors call it; "" if it is the whole log."""

    name: str
    frame: "pl.DataFrame"


def frame_of(log: Any) -> "pl.DataFrame":
    """Return a log as one frame, with its rows in the order in which they are given."""
    return joined(pieces_of(log))


def pieces_of(log: Any) -> list[Piece]:
    """Return the pieces of a log in the order in which they are given."""
    import polars as pl

    if isinstance(log, pl.DataFrame):
        return [Piece("", log)]
    if isinstance(log, pl.LazyFrame):
        with _readable("the log cannot be read, is it of whole Parquet files?"):
            return [Piece("", log.collect())]
    if isinstance(log, str | PathLike):
        return _files(Path(log))
    if type(log).__module__.split(".")[0] == "minari":
        from rlsvi.offline.minari_data import episodes_of

        return [Piece(f"episode {i} of the data set", frame) for i, frame in enumerate(episodes_of(log))]
    if hasattr(log, "iloc") and hasattr(log, "columns"):  # pandas
        return [Piece("", _from_pandas(log))]
    if hasattr(log, "__arrow_c_stream__"):
        return [Piece("", pl.DataFrame(log))]
    if isinstance(log, Iterable) and not isinstance(log, bytes | Mapping | np.ndarray):
        return [piece for i, part in enumerate(log) for piece in _pieces_in(part, f"piece {i}")]
    raise TypeError(f"log must be {KINDS}, got {type(log).__name__}")


def _pieces_in(part: Any, name: str) -> list[Piece]:
    """Return the pieces of a part of a log, which errors call by their own names or by the name of the part."""
    try:
        return [Piece(piece.name or name, piece.frame) for piece in pieces_of(part)]
    except WrongRow as error:
        raise WrongRow(error.column, error.row, error.what, error.file or name) from error


def files_in(path: Path) -> list[Path]:
    """Return the Parquet files of a log."""
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"there is no Parquet file in the folder {path}")
    if not files[0].exists():
        raise FileNotFoundError(f"there is no log {path}: give {KINDS}")
    return files


def _files(path: Path) -> list[Piece]:
    """Return the contents of the Parquet files of a log."""
    import polars as pl

    pieces = []
    for file in files_in(path):
        with _readable(f"{file} is not a whole Parquet file:"):
            name = "" if file == path else file.relative_to(path).as_posix()
            pieces.append(Piece(name, pl.read_parquet(file, hive_partitioning=False)))
    return pieces


@contextmanager
def _readable(otherwise: str) -> Iterator[None]:
    """Context manager that turns errors of reading into ours, which begin with what is said otherwise."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"log: {otherwise} {error!s:.200}") from error


def _from_pandas(log: Any) -> "pl.DataFrame":
    """Return a table of pandas as a frame, or raise an error that names the column and row that cannot be."""
    import polars as pl

    try:
        return pl.from_pandas(log)
    except ImportError:
        raise
    except Exception as error:  # of pyarrow, which need not be installed
        for column in log.columns:
            kinds = [_kind(value) for value in log[column]]
            for row, kind in enumerate(kinds):
                if kind != kinds[0]:
                    raise WrongRow(str(column), row, f"it holds {kind}, and row 0 holds {kinds[0]}") from error
        raise ValueError(f"the log cannot be read as a table: {error!s:.200}") from error


def _kind(value: Any) -> str:
    """Return what a cell of a table holds."""
    kind = type(value).__name__
    return f"{kind} of shape {np.shape(value)}" if isinstance(value, np.ndarray) else kind


def joined(pieces: list[Piece]) -> "pl.DataFrame":
    """Return pieces one below another; they must have the same columns. Those without rows are left out."""
    import polars as pl

    if not pieces:
        raise ValueError("the log is empty: it has no pieces")
    filled = [piece for piece in pieces if piece.frame.height] or pieces[:1]
    first = filled[0]
    for name, frame in filled:
        if sorted(frame.columns) != sorted(first.frame.columns):
            raise ValueError(
                f"{name} of the log has the columns {', '.join(frame.columns)}, {first.name} has "
                f"{', '.join(first.frame.columns)}: all pieces need the same"
            )
    try:
        return pl.concat([frame.select(first.frame.columns) for _, frame in filled], how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"the pieces of the log have columns of different types: {error!s:.200}") from error


@contextmanager
def naming_pieces(pieces: list[Piece]) -> Iterator[None]:
    """Context manager that lets an error name the piece in which a row is wrong, and the row in it."""
    try:
        yield
    except WrongRow as error:
        row = error.row
        for name, frame in pieces:
            if row < frame.height and name:
                raise WrongRow(error.column, row, error.what, name) from None
            row -= frame.height
        raise
