"""A log of transitions, read from tables of any kind and checked.

`pieces_of` turns files, frames, tables and Minari data sets into frames of Polars, `ordered_columns` finds their
columns by what they mean, and `episodes_of` checks all of them. An error names the column and the row, counted
from 0, and the file if there are several.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from math import prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete, Text

from rlsvi.bases.layout import Layout, code_of, layout_of, leaves_of, observation_of, vector_of
from rlsvi.core.checks import LARGEST_NUMBER, hint, instead, shown
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.core.files import file_instead
from rlsvi.envs.actions import numbering_of_parts
from rlsvi.envs.spaces import Spaces
from rlsvi.envs.task import one_observation

if TYPE_CHECKING:
    import polars as pl

REQUIRED = "episode", "step", "observation", "action", "reward", "next_observation", "terminated"
OPTIONAL = "truncated", "mask", "next_mask", "propensity"
ROW = "row in the log"  # the name of a column that is added
ACTIONS, STATES = 10_000, 1_000_000  # the most that a log alone may number
NEAR_ACTION = 1e-3  # of its range, by which a number of an action may differ without a warning
CSV = ".csv", ".csv.gz"  # ends of the names of CSV files, in lower case
LISTED = re.compile(r"\s*[\[(][-+\d.,\seE]*[\])]\s*")  # a list of numbers, written as text
KINDS = (
    "a polars frame, the path of a Parquet or CSV file or of a folder of such files, a pandas or Arrow table, a "
    "Minari data set, or an iterator of such pieces"
)
SORT = (
    "rows that are read in chunks must be in the order of episodes and steps: sort the log once, such as by "
    "polars.scan_parquet(log).sort('episode', 'step').sink_parquet('sorted.parquet')"
)


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


def wrong_type(series: "pl.Series", what: str) -> ValueError:
    """Return the error for a column that holds values of another type."""
    return ValueError(
        f"the log is wrong in column {series.name!r}: it holds {series.dtype}, {what}{apart(series)}"
    )


def apart(series: "pl.Series") -> str:
    """Return the remedy for a column of lists that are written as text, as in a CSV file; "" for another one."""
    found = series.drop_nulls().head(1).to_list() if str(series.dtype) == "String" else []
    if not found or not LISTED.fullmatch(found[0]):
        return ""
    name = series.name
    return f" ({found[0]!r:.40} is text): give each number a column of its own, {name}_0, {name}_1, .."


# ---- Episodes ----------------------------------------------------------------------------------------------


class LoggedEpisodes(NamedTuple):
    """All steps, one after another; episode e consists of the steps start[e] .. start[e + 1] - 1."""

    start: Longs  # (E + 1,)
    observation: "Observations"
    following: "Observations"  # of terminated steps without meaning
    action: Longs  # counted from 0; (rows, k) with the numbers of values, if actions have parts
    reward: Floats
    terminated: Bools
    truncated: Bools
    mask: "Masks"
    next_mask: "Masks"  # at the next observation, which is that of the next step unless it is the last
    propensity: Floats | None  # the probability of each action under the policy that took it; NaN: not known
    row: Longs  # the number of the row in the log as it was given

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return len(self.start) - 1

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.action)

    @property
    def episode(self) -> Longs:
        """The episode of every step."""
        return np.repeat(np.arange(self.episodes), np.diff(self.start))

    @property
    def period(self) -> Longs:
        """The number of steps of its episode before every step."""
        return np.arange(self.steps) - self.start[self.episode]

    @property
    def last(self) -> Bools:
        """Whether a step is the last of its episode."""
        last: Bools = np.zeros(self.steps, np.bool_)
        last[self.start[1:] - 1] = True
        return last


class Masks(NamedTuple):
    """Which actions are legal."""

    legal: Bools  # (rows, A) all where the log does not say
    is_known: Bools  # (rows,) where the log says

    def at(self, i: int) -> Bools | None:
        """Return the legal actions of a row, if they are known."""
        return self.legal[i] if self.is_known[i] else None


def episodes_of(columns: "Columns", env: Any, begins: bool = True) -> LoggedEpisodes:
    """Return the episodes of a log, or raise an error that names the row.

    Of the environment only the spaces are used. Unless `begins`, the first row may continue an episode.
    """
    last, terminated, truncated = _check_order(columns, begins)
    action, n = _actions(columns, env.action_space)
    mask, next_mask = (_masks(columns, name, n) for name in ("mask", "next_mask"))
    allowed: Bools = np.take_along_axis(mask.legal, action.reshape(len(action), -1), axis=1)
    barred = np.asarray(~allowed.all(axis=1))
    columns.refuse(columns.of("action")[0], barred, "the mask does not allow this action")
    observation = read_observations(columns, "observation", env.observation_space, np.ones(len(last), np.bool_))
    following = read_observations(columns, "next_observation", env.observation_space, ~terminated)
    apart = np.append(~observation.continues(following), False) & ~last
    what = "it is not the observation of the next step of the episode: a step is missing, or out of order"
    columns.refuse(columns.of("next_observation")[0], apart, what)
    if mask.is_known.any() or next_mask.is_known.any():
        legal = np.where(last[:, None], next_mask.legal, np.roll(mask.legal, -1, axis=0))
        next_mask = Masks(legal, np.where(last, next_mask.is_known, np.roll(mask.is_known, -1)))
    return LoggedEpisodes(
        np.append(0, np.flatnonzero(last) + 1),
        *(observation, following, action, columns.real("reward"), terminated, truncated),
        *(mask, next_mask, _propensities(columns), columns.rows),
    )


def ordered_columns(frame: "pl.DataFrame", names: Mapping[str, Any] | None) -> "Columns":
    """Return the columns of a frame, whose rows are put in the order of episodes and steps."""
    columns = Columns(frame, names)
    if frame.height == 0:
        raise ValueError("the log is empty: it has no rows")
    episode, _ = _places(columns)
    columns.frame = columns.frame.sort([episode.name, columns.name("step")], maintain_order=True)
    return columns


def _places(columns: "Columns") -> "tuple[pl.Series, Longs]":
    """Return the episode and the step of every row."""
    episode = columns.one(
        "episode", lambda dtype: dtype.is_integer() or str(dtype) == "String", "not whole numbers or text"
    )
    step = columns.whole("step")
    columns.refuse(columns.name("step"), step < 0, "steps count from 0")
    return episode, step


def _check_order(columns: "Columns", begins: bool) -> tuple[Bools, Bools, Bools]:
    """Return which rows are the last of their episodes, terminated and truncated, after checking their order."""
    (episode, step), name = _places(columns), columns.name("step")
    new = np.append(begins, (episode[1:] != episode[:-1]).to_numpy())
    back = np.append(False, (episode[1:] < episode[:-1]).to_numpy())
    before = np.append(step[0] - 1, step[:-1])
    columns.refuse(episode.name, back, SORT)
    columns.refuse(name, ~new & (step == before), "this step of the episode is there twice")
    columns.refuse(name, ~new & (step < before), SORT)
    expected = np.where(new, 0, before + 1)
    if (wrong := step != expected).any():
        at = int(np.argmax(wrong))
        what = f"step {expected[at]} of episode {episode[at]} is missing: steps must be 0, 1, 2, .."
        columns.refuse(name, np.arange(len(step)) == at, what)
    last, terminated, truncated = np.append(new[1:], True), columns.flags("terminated"), columns.flags("truncated")
    ended = (terminated | truncated) & ~last
    columns.refuse(name, np.append(False, ended[:-1]), "it comes after the end of its episode")
    return last, terminated, truncated


def _actions(columns: "Columns", space: Any) -> tuple[Longs, int]:
    """Return the numbers of the actions, counted from 0, and how many there are to choose among.

    An action of a Box counts as the nearest of those that agents choose among. Many parts have numbers of values.
    """
    first, n, choices = numbering_of_parts(space)
    if choices is None:
        action = columns.whole("action") - first
        outside = (action < 0) | (action >= n)
        columns.refuse(columns.name("action"), outside, f"actions are {first} to {first + n - 1}")
        return action, n
    x = columns.vectors("action", prod(choices.shape), np.ones(columns.frame.height, np.bool_)).astype(np.float64)
    what = f"actions are of {choices}: clip them to these bounds, or give the space that they come from"
    columns.refuse(columns.of("action")[0], choices.outside(x), what)
    action, away = choices.nearest(x)
    if (away > NEAR_ACTION).any():
        warnings.warn(
            f"the log has actions that are none of the {n} that agents choose among: each is learned from as if "
            "it were the nearest of these",
            stacklevel=2,
        )
    return action, n


def _masks(columns: "Columns", name: str, actions: int) -> Masks:
    rows = columns.frame.height
    if not columns.has(name):
        return Masks(np.broadcast_to(np.True_, (rows, actions)), np.zeros(rows, np.bool_))
    column = columns.of(name)[0]
    known = columns.frame[column].is_not_null().to_numpy()
    masks = columns.vectors(name, actions, known)
    columns.refuse(column, ((masks != 0) & (masks != 1)).any(axis=1), "a mask holds True and False, or 1 and 0")
    columns.refuse(column, known & ~masks.any(axis=1), "the mask allows no action")
    return Masks(masks.astype(np.bool_) | ~known[:, None], known)


def _propensities(columns: "Columns") -> Floats | None:
    """Return the probabilities of the actions, if the log has them; NaN in rows where it has none."""
    if not columns.has("propensity"):
        return None
    series = columns.frame[columns.name("propensity")]
    known = series.is_not_null().to_numpy()
    if not known.any():
        return None
    if not series.dtype.is_numeric():
        raise wrong_type(series, "not numbers")
    chances: Floats = series.fill_null(1).to_numpy().astype(np.float64)
    columns.refuse(series.name, ~((chances > 0) & (chances <= 1)), "it must lie in (0, 1]")
    return np.where(known, chances, np.nan)


# ---- The spaces of a log without an environment ------------------------------------------------------------


def spaces_in(columns: "Columns") -> Spaces:
    """Return the spaces of a log alone: numbers up to the largest one met, or vectors without bounds."""
    import polars as pl

    named = columns.of("action")
    if len(named) > 1 or _depth(columns.frame[named[0]].dtype):
        raise ValueError(
            f"which actions there are cannot be told from column {named[0]!r}: give the environment by "
            "agent.fit(log, env), or rlsvi.envs.Spaces(observation_space, action_space)"
        )
    actions = _largest(columns, "action", "actions", ACTIONS) + 1
    if columns.has("mask"):
        actions = max(actions, _width(columns, "mask") or 0)
    names, observations = columns.of("observation"), ("observation", "next_observation")
    dtype: Any = columns.frame[names[0]].dtype
    space: Any
    if len(names) == 1 and dtype.is_integer():
        space = Discrete(max(_largest(columns, name, "states", STATES) for name in observations) + 1)
    elif len(names) == 1 and dtype == pl.String:
        if apart(columns.frame[names[0]]):
            raise wrong_type(columns.frame[names[0]], "not numbers")
        space = Text(2**20)
    elif (width := _width(columns, "observation")) is not None and _depth(dtype) <= 1:
        space = Box(-np.inf, np.inf, (width,), np.float64)
    else:
        raise ValueError(
            f"what is observed cannot be told from column {names[0]!r}, which holds {dtype}: give the "
            "environment by agent.fit(log, env), or rlsvi.envs.Spaces(observation_space, action_space)"
        )
    return Spaces(space, Discrete(actions))


def _largest(columns: "Columns", name: str, things: str, most: int) -> int:
    """Return the largest number of a column; values that are missing are found out later."""
    import polars as pl

    series = columns.frame[columns.name(name)]
    if not (series.dtype.is_integer() or series.dtype == pl.Null):
        raise wrong_type(series, f"not numbers of {things}")
    numbers: Longs = series.cast(pl.Int64, strict=False).fill_null(0).to_numpy()
    columns.refuse(series.name, numbers < 0, f"{things} count from 0")
    too_large = (
        f"without an environment, {things} are numbered 0 to at most {most - 1}: number those that there are, or "
        "give env"
    )
    columns.refuse(series.name, numbers >= most, too_large)
    return int(numbers.max(initial=0))


def _width(columns: "Columns", name: str) -> int | None:
    """Return how many numbers a row of a column has; None if that cannot be told."""
    import polars as pl

    names = columns.of(name)
    series = columns.frame[names[0]].drop_nulls()
    if isinstance(series.dtype, pl.List):
        return int(series.list.len()[0]) if len(series) else None
    if isinstance(series.dtype, pl.Array):
        return int(series.dtype.size)
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        return None
    return len(columns.equal_parts(name, len(names)))


# ---- Tables of any kind as frames of Polars ----------------------------------------------------------------


class Piece(NamedTuple):
    """A part of a log, and what errors call it; "" if it is the whole log."""

    name: str
    frame: "pl.DataFrame"


def pieces_of(log: Any) -> list[Piece]:
    """Return the pieces of a log in the order in which they are given."""
    import polars as pl

    if isinstance(log, pl.DataFrame):
        return [Piece("", log)]
    if isinstance(log, pl.LazyFrame):
        return [Piece("", collect(log))]
    if isinstance(log, str | PathLike):
        pieces = []
        for file in files_in(path := Path(log)):
            with read_errors(str(file)):
                name = "" if file == path else file.relative_to(path).as_posix()
                pieces.append(Piece(name, scan([file]).collect()))
        return pieces
    if type(log).__module__.split(".")[0] == "minari":
        return [Piece(f"episode {i} of the data set", frame) for i, frame in enumerate(_minari_episodes(log))]
    if hasattr(log, "iloc") and hasattr(log, "columns"):
        return [Piece("", _from_pandas(log))]
    if hasattr(log, "__arrow_c_stream__"):
        return [Piece("", pl.DataFrame(log))]
    if isinstance(log, Iterable) and not isinstance(log, bytes | Mapping | np.ndarray):
        return [piece for i, part in enumerate(log) for piece in _named_pieces(part, f"piece {i}")]
    raise TypeError(f"log must be {KINDS}, got {type(log).__name__}")


def _named_pieces(part: Any, name: str) -> list[Piece]:
    """Return the pieces of a part of a log, which errors call by their own names or by the name of the part."""
    try:
        return [Piece(piece.name or name, piece.frame) for piece in pieces_of(part)]
    except WrongRow as error:
        raise WrongRow(error.column, error.row, error.what, error.file or name) from error


def files_in(path: Path) -> list[Path]:
    """Return the files of a log: Parquet files or CSV files, not both."""
    files = [path]
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.name.lower().endswith((".parquet", *CSV)))
        if len({is_csv(f) for f in files}) > 1:
            raise ValueError(
                f"the folder {path} has Parquet files and CSV files: name a folder that has files of one kind only"
            )
    if not files:
        raise FileNotFoundError(f"there is no Parquet or CSV file in the folder {path}")
    if not files[0].exists():
        raise FileNotFoundError(f"there is no log {path}: {file_instead(path, f'give {KINDS}')}")
    return files


def is_csv(file: PathLike[str] | str) -> bool:
    """Return whether a file is a CSV file, by its name."""
    return str(file).lower().endswith(CSV)


def scan(files: list[Path]) -> "pl.LazyFrame":
    """Return Parquet or CSV files as one frame, which is read when it is asked for rows."""
    import polars as pl

    if not is_csv(files[0]):
        return pl.scan_parquet(files, hive_partitioning=False)
    if len(files) > 1:  # each has its own types
        return pl.concat([scan([file]) for file in files], how="vertical_relaxed")
    frame = pl.scan_csv(files, infer_schema_length=None)  # the types follow from all rows
    texts = frame.select(pl.col(pl.String).is_not_null().any()).collect()
    empty = [
        name
        for name, filled in zip(texts.columns, texts.rows()[0] if texts.width else (), strict=True)
        if not filled
    ]
    return frame.with_columns(pl.col(empty).cast(pl.Int64))  # such as next_observation where every step terminates


def collect(frame: "pl.LazyFrame") -> "pl.DataFrame":
    """Return the rows of a frame that is read when it is asked for them."""
    with read_errors("the log"):
        return frame.collect()


@contextmanager
def read_errors(what: str) -> Iterator[None]:
    """Context manager that turns errors of reading into ours."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        kind = "CSV" if is_csv(what) else "Parquet"
        log = "" if what == "the log" else "the log "
        raise ValueError(f"{log}{what} cannot be read, is it a whole {kind} file? {error!s:.200}") from error


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


def _minari_episodes(data: Any) -> "Iterator[pl.DataFrame]":
    """Yield the episodes of a Minari data set, one frame each."""
    import polars as pl

    if not hasattr(data, "iterate_episodes"):
        raise TypeError(f"log must be a Minari data set, as minari.load_dataset returns it, got {type(data)}")
    write, numbered = writer_of(data.observation_space), isinstance(data.action_space, Discrete)
    for episode in data.iterate_episodes():
        steps = len(episode.rewards)
        observed = [write(one_observation(episode.observations, i)) for i in range(steps + 1)]
        columns = {
            "episode": np.full(steps, int(episode.id), np.int64),
            "step": np.arange(steps),
            "observation": as_column(observed[:-1]),
            "action": np.asarray(episode.actions).reshape((steps,) if numbered else (steps, -1)),
            "reward": np.asarray(episode.rewards, np.float64),
            "next_observation": as_column(observed[1:]),
            "terminated": np.asarray(episode.terminations, np.bool_),
            "truncated": np.asarray(episode.truncations, np.bool_),
        }
        given = (episode.infos or {}).get("action_mask")  # of data recorded with record_infos=True
        if given is not None:
            masks = np.asarray(given).astype(np.bool_)
            if masks.ndim != 2 or len(masks) != steps + 1:
                raise ValueError(
                    f"episode {episode.id} of the data set has action masks of shape {masks.shape}, there must be "
                    f"one for each of its {steps + 1} observations"
                )
            columns |= {"mask": masks[:-1], "next_mask": masks[1:]}
        yield pl.DataFrame(columns)


def join_pieces(pieces: list[Piece]) -> "pl.DataFrame":
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
def errors_by_piece(pieces: list[Piece]) -> Iterator[None]:
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


# ---- Columns by what they mean -----------------------------------------------------------------------------


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
                raise wrong_type(self.frame[column], "cast it to Int64")

    def of(self, name: str) -> list[str]:
        """Return the columns of a name: one, or one for each number, such as observation_0, observation_1, .."""
        given = self.names.get(name, name)
        wanted = [given] if isinstance(given, str) else list(given)
        if wanted == [name] and name not in self.frame.columns:
            wanted = self._numbered(name) or self._keyed(name) or wanted
        return wanted

    def column(self, column: str, name: str = "observation") -> "pl.Series":
        """Return a column of the frame, or raise an error if there is none; `name` is what it means."""
        self._check_there({name: [column]})
        return self.frame[column]

    def _check_there(self, wanted: dict[str, list[str]]) -> None:
        """Raise an error that names all columns that the frame does not have, by what they mean."""
        there = self.frame.columns
        missing = {name: [each for each in columns if each not in there] for name, columns in wanted.items()}
        absent = [column for columns in missing.values() for column in columns]
        if absent:
            given = ", ".join(f"{name!r}: .." for name, columns in missing.items() if columns)
            raise ValueError(
                f"the log has no column{'s' if absent[1:] else ''} {', '.join(map(repr, absent))}, it has "
                f"{', '.join(there[1:]) or 'none'}: say which {'ones are' if absent[1:] else 'one is'} meant by "
                f"columns={{{given}}}{hint(absent[0], there[1:])}"
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

    def _keyed(self, name: str) -> list[str]:
        """Return the columns observation_KEY of an observation that is a dictionary."""
        possible = name in ("observation", "next_observation")
        return [column for column in self.frame.columns if possible and column.startswith(f"{name}_")]

    def has_keys(self, name: str) -> bool:
        """Return whether the columns of a name are told apart by keys, which do not say their order."""
        found = self.frame.columns
        return name not in (*self.names, *found) and f"{name}_0" not in found and bool(self._keyed(name))

    def has(self, name: str) -> bool:
        """Return whether an optional column is there."""
        return name in self.names or name in self.frame.columns or f"{name}_0" in self.frame.columns

    def name(self, name: str) -> str:
        """Return the column of a name that must be one column."""
        column, *more = self.of(name)
        if self.has_keys(name):
            self.column(name, name)
        if more:
            raise ValueError(f"the log must have one column for {name}, got {', '.join((column, *more))}")
        return column

    def one(
        self, name: str, fits: Callable[[Any], bool] = lambda dtype: True, but: str = "", needed: Any = True
    ) -> "pl.Series":
        """Return a column of single values of a type that fits, without gaps where they are needed."""
        series = self.frame[self.name(name)]
        self.refuse(series.name, series.is_null().to_numpy() & needed, "there is no value")
        if not fits(series.dtype):
            raise wrong_type(series, but)
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
        series = self.one(name, lambda dtype: dtype.is_integer(), "not integers")
        numbers: Longs = series.to_numpy().astype(np.int64)
        return numbers

    def real(self, name: str) -> Any:
        """Return a column of finite numbers."""
        series = self.one(name, lambda dtype: dtype.is_numeric() or str(dtype) == "Boolean", "not numbers")
        numbers = series.to_numpy().astype(np.float64)
        self.refuse(
            series.name, ~(np.abs(numbers) <= LARGEST_NUMBER), "NaN, infinity or a number that is too large"
        )
        return numbers

    def flags(self, name: str) -> Bools:
        """Return a column of True and False, or of 1 and 0; False everywhere if an optional column is missing."""
        if name in OPTIONAL and not self.has(name):
            return np.zeros(self.frame.height, np.bool_)
        series = self.one(name, lambda dtype: dtype.is_integer() or str(dtype) == "Boolean", "not True and False")
        numbers = series.to_numpy()
        self.refuse(series.name, (numbers != 0) & (numbers != 1), "neither True nor False")
        return numbers.astype(np.bool_)

    def vectors(self, name: str, size: int, needed: Bools) -> Any:
        """Return lists of `size` numbers, or one column for each number, (rows, size); 0 where not needed."""
        return self.join(self.equal_parts(name, size), needed)

    def equal_parts(self, name: str, size: int) -> "list[tuple[pl.Series, int]]":
        """Return the columns of `size` numbers in all, and how many numbers each of them has in a row."""
        names = self.of(name)
        if self.has_keys(name):
            raise ValueError(
                f"the order of the columns {', '.join(names)} is not known: say it by columns={{{name!r}: [..]}}"
            )
        if size % len(names):
            raise ValueError(
                f"the log has {len(names)} columns for {name} ({', '.join(names)}), there must be {size} numbers"
            )
        return [(self.frame[column], size // len(names)) for column in names]

    def join(self, parts: "list[tuple[pl.Series, int]]", needed: Bools) -> Any:
        """Return the numbers of several columns side by side, (rows, numbers); 0 where not needed."""
        each = [self._numbers(series, size, needed) for series, size in parts]
        found = np.zeros((len(needed), sum(size for _, size in parts)), np.result_type(*each))
        found[needed] = np.concatenate(each, axis=1)
        return found

    def _numbers(self, series: "pl.Series", size: int, needed: Bools) -> Any:
        """Return the numbers of one column where needed, (needed rows, size)."""
        import polars as pl

        column, series, rows = series.name, series.filter(pl.Series(needed)), self.rows[needed]
        refuse(column, rows, series.is_null().to_numpy(), "there is no value")
        nested, owner = _depth(series.dtype), rows  # the row of each element
        for _ in range(nested):
            if isinstance(series.dtype, pl.List):
                lengths = series.list.len().to_numpy()
                expected = size if nested == 1 else lengths[:1]
                wrong = (lengths != expected) | (lengths == 0)
                refuse(column, owner, wrong, f"there must be {size} numbers")
            series, before = series.explode(), len(series)
            owner = np.repeat(owner, len(series) // max(before, 1))
        if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
            raise wrong_type(series, "not numbers")
        if len(series) != size * len(rows):
            raise ValueError(f"the log is wrong in column {column!r}: there must be {size} numbers in each row")
        refuse(column, owner, series.is_null().to_numpy(), "a number is missing")
        numbers = series.to_numpy()
        wrong = ~(np.abs(numbers.astype(np.float64)) <= LARGEST_NUMBER)
        refuse(column, owner, wrong, "NaN, infinity or a number that is too large")
        return numbers.reshape(len(rows), size)


def _depth(dtype: Any) -> int:
    """Return how deep lists are nested."""
    inner = getattr(dtype, "inner", None)
    return 0 if inner is None else 1 + _depth(inner)


# ---- Observations ------------------------------------------------------------------------------------------
#
# Discrete: a whole number. Text: text. Box: a list of numbers, or one column for each. MultiDiscrete, MultiBinary,
# Dict and Tuple: the list of their numbers as the environment gives them, in the order of the space: the parts of
# a Dict or Tuple one after another, each in the order of its elements. A Dict or Tuple with a text in it: a Struct
# of its parts. Agents see a vector in the order of bases/layout.py instead, in which discrete numbers come last
# and are counted from 0.


class Observations:
    """One column of observations: `at(i)` is the observation of a row, as the environment gave it.

    States of a Discrete space count from `first`.
    """

    def __init__(self, values: Any, at: Callable[[Any], Any], first: int = 0) -> None:
        self.values, self._at, self._first = values, at, first

    def at(self, i: int) -> Any:
        """Return the observation of row i."""
        return self._at(self.values[i])

    def key(self, i: int) -> Any:
        """Return what is the same for equal observations alone, and may be kept for many of them."""
        value = self.values[i]
        return blake2b(value.tobytes(), digest_size=16).digest() if isinstance(value, np.ndarray) else value

    def vectors(self) -> Floats:
        """Return all observations as vectors, (rows, n), as `bases.layout.vector_of` does one."""
        values = self.values[:, None] - self._first if self.values.ndim == 1 else self.values
        return np.ascontiguousarray(values, dtype=np.float64)

    def continues(self, following: "Observations") -> Bools:
        """Return for all rows but the last whether the next observation is that of the next row."""
        same: Bools = np.asarray(following.values[:-1] == self.values[1:])
        return same if same.ndim == 1 else np.all(same, axis=1)


def writer_of(space: Any) -> Callable[[Any], Any]:
    """Return the function that turns an observation into what a log contains: a copy, checked."""
    if isinstance(space, Discrete):
        return _whole
    if isinstance(space, Text):
        return str
    if isinstance(space, Box):
        return lambda observation: np.array(observation).ravel()
    layout = layout_of(space)
    if layout.texts:

        def write(observation: Any) -> Any:
            vector_of(layout, observation)  # raises an error if it is none of the space
            return _struct(layout.tree, observation)

        return write
    order, firsts = _order(layout)
    kind = np.float64 if layout.measured else np.int64
    return lambda observation: (vector_of(layout, observation)[order] + firsts).astype(kind)


def _whole(value: Any) -> int:
    if np.size(value) != 1 or np.asarray(value).dtype.kind not in "iub":
        raise ValueError(
            f"an observation or action of a Discrete space must be a whole number, got {shown(value)}"
        )
    return int(np.asarray(value).item())


def _struct(tree: Any, observation: Any) -> Any:
    """Return a checked observation with texts as a dictionary of texts and lists of numbers."""
    kind, *parts = tree
    if kind in ("dict", "tuple"):
        pairs = parts[0] if kind == "dict" else enumerate(parts[0])
        return {str(key): _struct(part, observation[key]) for key, part in pairs}
    return str(observation) if kind == "text" else np.asarray(observation).ravel().tolist()


def as_column(values: Any) -> Any:
    """Return observations that are written as a column: arrays as lists of numbers, of the same type."""
    return np.stack(values) if isinstance(values[0], np.ndarray) else list(values)


def read_observations(columns: Columns, name: str, space: Any, needed: Bools) -> Observations:
    """Return a column of observations of a space, checked where they are needed."""
    if isinstance(space, Discrete):
        return Observations(_states(columns, name, space, needed), int, int(space.start))
    if isinstance(space, Text):
        return Observations(_texts(columns, name, space, needed), str)
    if isinstance(space, Box):
        shape = space.shape
        x = columns.vectors(name, int(np.prod(shape)), needed)
        return Observations(_as_type(columns, name, x, space.dtype), lambda row: row.reshape(shape))
    layout = layout_of(space)
    return Observations(_vectors(columns, name, layout, needed), lambda row: observation_of(layout, row))


def _states(columns: Columns, name: str, space: Discrete, needed: Bools) -> Longs:
    series = columns.one(name, lambda dtype: dtype.is_integer(), f"not states of {space}", needed)
    least, n = int(space.start), int(space.n)
    states = series.fill_null(0).to_numpy().astype(np.int64)
    outside = needed & ((states < least) | (states >= least + n))
    columns.refuse(series.name, outside, f"states are {least} to {least + n - 1}")
    return np.where(needed, states, 0)


def _texts(columns: Columns, name: str, space: Text, needed: Bools) -> Any:
    import polars as pl

    series = columns.one(name, lambda dtype: dtype == pl.String, "not text", needed)
    longer = series.str.len_chars().fill_null(0).to_numpy() > space.max_length
    columns.refuse(series.name, longer & needed, f"texts have at most {space.max_length} characters")
    return np.array(series.to_list(), dtype=object)


def _as_type(columns: Columns, name: str, x: Any, dtype: Any) -> Any:
    """Return numbers in the type of a space; floating-point numbers of another precision stay as they are."""
    if x.dtype == dtype or (x.dtype.kind == "f" and np.dtype(dtype).kind == "f"):
        return x
    typed = x.astype(dtype)
    other = (typed.astype(x.dtype) != x).any(axis=1)
    columns.refuse(columns.of(name)[0], other, f"numbers must be of type {np.dtype(dtype)}, as the space says")
    return typed


def _vectors(columns: Columns, name: str, layout: Layout, needed: Bools) -> Floats:
    """Return the vectors of observations of several parts, (rows, n), checked; 0 where not needed."""
    order, firsts = _order(layout)
    raw = columns.join(list(_columns_of_parts(columns, name, layout.tree)), needed).astype(np.float64)
    x: Floats = np.zeros(raw.shape)
    x[:, order] = np.where(needed[:, None], raw - firsts, 0.0)
    counted = x[:, layout.measured :]
    outside = (counted < 0) | (counted >= np.array(layout.counts)) | (counted != np.floor(counted))
    least = firsts[order >= layout.measured].astype(np.int64).tolist()[:10]
    ranges = ", ".join(f"{a} to {a + n - 1}" for a, n in zip(least, layout.counts, strict=False))
    what = f"outside of the observation space (discrete numbers are {ranges})"
    columns.refuse(columns.of(name)[0], outside.any(axis=1), what)
    return x


def _order(layout: Layout) -> tuple[Any, Floats]:
    """Return where the vector has each number of the log, and what is subtracted from it there."""
    order: list[int] = []
    firsts: list[float] = []
    at = {"box": 0, "counted": layout.measured}
    for leaf in leaves_of(layout.tree):
        kind, size = "box" if leaf[0] == "box" else "counted", _size(leaf)
        order += range(at[kind], at[kind] + size)
        firsts += leaf[1] if leaf[0] == "counted" else [0] * size
        at[kind] += size
    return np.array(order, np.int64), np.array(firsts, np.float64)


def _parts(tree: Any) -> list[tuple[str, Any]]:
    """Return the parts of a Dict or Tuple by their names; those of a Tuple are called 0, 1, .."""
    return [(str(key), part) for key, part in (tree[1] if tree[0] == "dict" else enumerate(tree[1]))]


def _size(tree: Any) -> int:
    return sum(int(np.prod(leaf[-1])) for leaf in leaves_of(tree))


def _columns_of_parts(columns: Columns, name: str, tree: Any) -> "Iterator[tuple[pl.Series, int]]":
    """Yield the columns of the parts in their order, and how many numbers each has in a row."""
    names, several = columns.of(name), tree[0] in ("dict", "tuple")
    if several and columns.has_keys(name):  # observation_KEY
        for key, part in _parts(tree):
            yield from _fields(columns.column(f"{name}_{key}"), part)
    elif len(names) == 1 and not columns.has_keys(name):
        yield from _fields(columns.frame[names[0]], tree)
    elif several and len(names) == len(tree[1]):
        for column, (_, part) in zip(names, _parts(tree), strict=True):
            yield from _fields(columns.frame[column], part)
    else:
        yield from columns.equal_parts(name, _size(tree))


def _fields(series: "pl.Series", tree: Any) -> "Iterator[tuple[pl.Series, int]]":
    """Yield the columns that a column consists of: the fields of a Struct, or itself."""
    import polars as pl

    if tree[0] == "text":
        if series.dtype != pl.String:
            raise wrong_type(series, "not text")
        codes = [None if text is None else float(code_of(text)) for text in series.to_list()]
        yield pl.Series(series.name, codes, pl.Float64), 1
        return
    if not isinstance(series.dtype, pl.Struct) or tree[0] not in ("dict", "tuple"):
        yield series, _size(tree)
        return
    fields = [field.name for field in series.dtype.fields]
    for i, (key, part) in enumerate(_parts(tree)):
        field = fields[i] if tree[0] == "tuple" and i < len(fields) else key
        if field not in fields:
            has = ", ".join(fields)
            raise ValueError(f"the log is wrong in column {series.name!r}: it has no field {key!r}, it has {has}")
        yield from _fields(series.struct.field(field).alias(f"{series.name}.{field}"), part)
