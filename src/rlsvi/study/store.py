"""A store: a folder with one sealed Parquet file for every finished job.

A file is written under a temporary name, synced to disk and renamed, so it exists completely or not at all. It
contains the job's settings as columns, what computed it as metadata, and a digest of its own bytes. Each file can
be read with polars alone, and all of them together if their settings have the same names and types:
`pl.read_parquet("store/*.parquet")`.
"""

import hashlib
import io
import json
import os
import platform
import uuid
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from rlsvi.core.archive import path_of
from rlsvi.core.checks import shown
from rlsvi.core.files import write_file
from rlsvi.study.job import Done, Job

FORMAT = 1
LABEL = "store.json"
SEAL = b"sha256:"
UNSEALED = b"0" * 64


class DamagedFile(UserWarning):
    """A file of the store had unexpected contents and was renamed."""


class Store:
    """The results of finished jobs, in `folder`, which is created if necessary.

    Parameters
    ----------
    folder
        The folder.

    Examples
    --------
    >>> import pathlib, rlsvi
    >>> _ = pathlib.Path("mine.py").write_text("def area(side): return {'area': side**2}")
    >>> job = rlsvi.Job("mine:area", {"side": 2})
    >>> store = rlsvi.Store("results")
    >>> len(store.missing([job]))
    1
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike):
            raise TypeError(f"store must be a Store or the path of a folder, got {shown(folder)}")
        self.folder = path_of(folder, "store")
        label = self.folder / LABEL
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            filled = any(self.folder.glob("*.parquet"))  # checked first, since another process may be using it
            if not label.exists():
                if filled:
                    raise ValueError(f"{self.folder} holds Parquet files but is no store: choose another folder")
                write_file(label, json.dumps({"store": "rlsvi", "format": FORMAT}).encode())
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        _check_label(label)

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    def path(self, job: Job) -> Path:
        """Return the path of the results of `job`."""
        return self.folder / f"{_name(job)}.parquet"

    def write(self, job: Job, done: Done) -> None:
        """Store the results of `job` and sync them to disk."""
        settings = {name: pl.lit(value, _type(value)) for name, value in job.settings.items()}
        frame = pl.DataFrame(done.columns).select(**settings, **{name: pl.col(name) for name in done.columns})
        try:
            write_file(self.path(job), _sealed(frame, job, done.seconds))
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def read(self, job: Job) -> tuple[pl.DataFrame, float] | None:
        """Return the table of `job` and the seconds it took, or None if there is none.

        A file with unexpected contents is renamed, with a warning, and counts as missing.

        Parameters
        ----------
        job
            The job.
        """
        path = self.path(job)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        metadata = _unsealed(data)
        if metadata is None or metadata["name"] != job.name:
            return self._set_aside(job, path)
        return pl.read_parquet(io.BytesIO(data)), float(metadata["seconds"])

    def _set_aside(self, job: Job, path: Path) -> tuple[pl.DataFrame, float] | None:
        """Rename a damaged file, unless another process has just replaced it by a valid one."""
        aside = path.with_name(f"{path.name}.damaged-{uuid.uuid4().hex[:8]}")
        try:
            os.replace(path, aside)
        except FileNotFoundError:
            return None
        metadata = _unsealed(aside.read_bytes())
        if metadata is not None and metadata["name"] == job.name:
            os.replace(aside, path)
            return self.read(job)
        warnings.warn(f"{path} is damaged; set aside as {aside.name}", DamagedFile, stacklevel=3)
        return None

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Return those of `jobs` that have no results.

        Parameters
        ----------
        jobs
            The jobs.
        """
        if not isinstance(jobs, Iterable):
            raise TypeError(f"jobs must be a list of Job, as Job.of makes them, got {shown(jobs)}")
        return [job for job in jobs if self.read(job) is None]

    def frame(self, jobs: Sequence[Job]) -> pl.DataFrame:
        """Return all results of `jobs` in one table, in order: columns of settings, then of results.

        Parameters
        ----------
        jobs
            The jobs.
        """
        return self.gather(jobs)[0]

    def gather(self, jobs: Sequence[Job]) -> tuple[pl.DataFrame, list[float]]:
        """Return all results of `jobs` in one table, in order, and the seconds that each of them took."""
        tables = [self.read(job) for job in jobs]
        if lost := [job for job, table in zip(jobs, tables, strict=True) if table is None]:
            many = f"{len(lost)} of {len(jobs)} jobs"
            raise LookupError(f"{many} have no results in {self.folder}, such as {lost[0]}")
        found = [table for table in tables if table is not None]
        table = pl.concat([frame for frame, _ in found], how="diagonal_relaxed")
        settings = list(dict.fromkeys(name for job in jobs for name in job.settings))
        return table.select(*settings, pl.exclude(settings)), [took for _, took in found]


def _name(job: Job) -> str:
    if not isinstance(job, Job):
        raise TypeError(f"job must be a Job, as Job.of makes them, got {shown(job)}: jobs are a list of these")
    return job.name


def _type(value: object) -> type[pl.DataType] | None:
    return pl.Int64 if isinstance(value, int) and not isinstance(value, bool) else None


def _sealed(frame: pl.DataFrame, job: Job, seconds: float) -> bytes:
    """Return the bytes of a Parquet file that contains its own digest."""
    what = {name: getattr(job, name) for name in ("name", "function", "version")}
    what |= {"seconds": seconds, "machine": platform.machine(), "polars": pl.__version__}
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"rlsvi": json.dumps(what), "seal": (SEAL + UNSEALED).decode()})
    data = buffer.getvalue()
    before, after = _around_seal(data)
    return before + hashlib.sha256(data).hexdigest().encode() + after


def _around_seal(data: bytes) -> tuple[bytes, bytes]:
    """Return the parts before and after the digest; the metadata is at the end of the file."""
    place = data.rfind(SEAL) + len(SEAL)
    return data[:place], data[place + len(UNSEALED) :]


def _unsealed(data: bytes) -> dict[str, str] | None:
    """Return the metadata of a sealed file, or None if its digest, which is checked first, is wrong."""
    before, after = _around_seal(data)
    digest = hashlib.sha256(before + UNSEALED + after).hexdigest().encode()
    if data != before + digest + after:
        return None
    what: dict[str, str] = json.loads(pl.read_parquet_metadata(io.BytesIO(data))["rlsvi"])
    return what


def _check_label(label: Path) -> None:
    try:
        found = json.loads(label.read_bytes())
        known = (found["store"], found["format"]) == ("rlsvi", FORMAT)
    except (ValueError, LookupError, TypeError):
        raise ValueError(f"{label} cannot be read: if its folder is a store, write it anew elsewhere") from None
    if not known:
        raise ValueError(
            f"{label.parent} is a store of format {found['format']}, and this version of rlsvi reads and writes "
            f"format {FORMAT}: choose another folder, or the version of rlsvi that wrote it"
        )


def _unwritable(folder: Path, error: OSError) -> OSError:
    why = f"cannot write to {folder} ({error.strerror or error}); what is finished is kept"
    return OSError(error.errno, f"{why}: make room or choose another folder")
