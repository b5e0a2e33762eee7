"""Agents on disk: a zip file of NumPy arrays and one JSON header. Reading it runs no code."""

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlsvi.core.files import whole_file

FORMAT, VERSION = "rlsvi agent", 1
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, MemoryError, ValueError)


class ArchiveError(ValueError):
    """A file that is not a whole, readable agent of this version."""


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write all or nothing: to a temporary name, synced to disk, then renamed."""
    target = Path(path)
    if target.is_dir() or not target.name:
        raise IsADirectoryError(f"cannot save to {target}: it is a folder, name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {target}: there is no folder {target.parent}")
    try:
        with (
            whole_file(target) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            text = json.dumps({"format": FORMAT, "version": VERSION, **header}, indent=1)
            undated = zipfile.ZipInfo("header.json")  # the same agent gives the same bytes at any time
            archive.writestr(undated, text, compress_type=zipfile.ZIP_DEFLATED)
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
    except OSError as error:
        raise type(error)(error.errno, f"cannot save to {target}: {error.strerror}") from error


def read(
    path: str | os.PathLike[str], look: Callable[[dict[str, Any]], None] = lambda header: None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a file, or a clear error; `look` may refuse the header before they are read."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "header.json" not in names:
                raise ArchiveError(f"{path} is not a saved agent: it has no header")
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise ArchiveError(f"{path} is not a saved agent: its header does not say so")
            if header.get("version") != VERSION:
                raise ArchiveError(
                    f"{path} is of version {header.get('version')} of the format, this program reads version "
                    f"{VERSION}: load it with the rlsvi that wrote it ({header.get('rlsvi', 'unknown')})"
                )
            look(header)
            arrays = {name[:-4]: _array(path, archive, name) for name in names if name.endswith(".npy")}
    except IsADirectoryError:
        raise IsADirectoryError(f"cannot load {path}: it is a folder, name the file of a saved agent") from None
    except (ArchiveError, FileNotFoundError, PermissionError):
        raise
    except DAMAGE as error:
        raise ArchiveError(f"{path} is damaged, truncated or not a saved agent: {error}") from error
    return header, arrays


def _array(path: str | os.PathLike[str], archive: zipfile.ZipFile, name: str) -> Any:
    """An array, read straight into place; the end of the entry is read for its checksum."""
    try:
        with archive.open(name) as entry:
            found = np.lib.format.read_array(entry, allow_pickle=False)
            if entry.read(1):
                raise ValueError("there is more than an array")
            return found
    except (ValueError, SyntaxError) as error:
        raise ArchiveError(f"{path} is refused: {name} is not a plain array ({error})") from error
