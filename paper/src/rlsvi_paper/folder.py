"""A folder of results: for every figure its table, what is known about it with its verdicts, and its pictures.

Figures are judged and drawn from their tables alone, so that this can be done again, without computing anything,
wherever the tables are.
"""

import hashlib
import io
import json
import math
import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.files import write_file
from rlsvi.study.job import sources_of
from rlsvi_paper import FIGURES, figure_called
from rlsvi_paper.claim import Claim, Outcome, Verdict, place_of
from rlsvi_paper.figure import Figure

LARGE_TABLE = 20_000  # rows, beyond which single precision is kept: such tables are of curves
PICTURES = ("svg", "png")
DPI, COLOURS = 160, 64  # of PNGs
FEW_FIGURES = 4  # figures that are not worth starting other processes for
Entry = dict[str, Any]


class KeptVerdicts(UserWarning):
    """A table cannot be judged, perhaps as another version has written it, and its old verdicts were kept."""


def write_table(path: Path, frame: pl.DataFrame, settings: Collection[str] = ()) -> None:
    """Write a table in little room; of a large one the numbers have single precision, except for settings."""
    if frame.height > LARGE_TABLE:
        doubles = [name for name, kind in frame.schema.items() if kind == pl.Float64 and name not in settings]
        whole = [frame[name].shrink_dtype() for name, kind in frame.schema.items() if kind == pl.Int64]
        frame = frame.with_columns(pl.col(doubles).cast(pl.Float32), *whole)
    file = io.BytesIO()
    frame.write_parquet(file, compression="zstd", compression_level=19)
    write_file(path, file.getvalue())


def read_table(path: Path) -> pl.DataFrame:
    """The table in a file, with all numbers in 64 bits again."""
    frame = pl.read_parquet(io.BytesIO(path.read_bytes()))
    whole = pl.col(pl.Int8, pl.Int16, pl.Int32).cast(pl.Int64)
    return frame.with_columns(pl.col(pl.Float32).cast(pl.Float64), whole)


def settle(figure: Figure, folder: Path, entry: Entry) -> list[Verdict]:
    """Judge and draw a figure from its table in a folder, and write what came out beside it.

    Parameters
    ----------
    entry
        What else is known about it: how it was made.
    """
    frame = read_table(_table(figure.name, folder))
    verdicts = figure.judge(frame, entry["scale"])
    draw(figure, frame, folder)
    told = {
        **entry,
        **{name: getattr(figure, name) for name in ("name", "title", "where", "caption")},
        "seeds": figure.seeds(frame),
        "claims": [
            _record_of(figure, claim, verdict) for claim, verdict in zip(figure.claims, verdicts, strict=True)
        ],
        "digest": digest(figure, folder),
    }
    write_file(folder / f"{figure.name}.json", json.dumps(told, indent=1, allow_nan=False).encode())
    return verdicts


def draw(figure: Figure, frame: pl.DataFrame, folder: Path) -> None:
    """Write the pictures of a figure."""
    for kind, data in pictures(figure, frame).items():
        write_file(folder / f"{figure.name}.{kind}", data)


def settle_again(
    figures: Sequence[Figure],
    folder: Path,
    judging: Callable[[str], None] = lambda name: None,
    workers: int = 1,
    anew: bool = False,
) -> list[str]:
    """Judge and draw those figures of a folder whose verdicts or pictures are missing or out of date; their names.

    They are out of date if the table is another one, or the claims or the drawing have changed since. If only
    pictures are missing, the verdicts stay. Figures without a table are left as they are, and so are those whose
    table cannot be judged, with a warning.

    Parameters
    ----------
    workers
        Processes. Where there are few figures, or one is not of the paper, all is done in this one.
    anew
        Judge and draw all figures that have a table.
    """
    todo = [figure for figure in figures if _is_out_of_date(figure, folder, anew)]
    if workers == 1 or len(todo) <= FEW_FIGURES or not all(figure.name in FIGURES for figure in todo):
        return [it.name for it in todo if _is_settled(it.name, folder, judging, partial(_again, it, folder, anew))]
    todo.sort(key=lambda figure: -_table(figure.name, folder).stat().st_size)  # the slowest first
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = {it.name: pool.submit(_again_called, it.name, folder, anew) for it in todo}
        return [name for name, it in futures.items() if _is_settled(name, folder, judging, it.result)]


def _is_out_of_date(figure: Figure, folder: Path, anew: bool) -> bool:
    entry = _entry(folder / f"{figure.name}.json")
    if entry is None or not _table(figure.name, folder).exists():
        return False
    drawn = all((folder / f"{figure.name}.{kind}").exists() for kind in PICTURES)
    return anew or not (drawn and _is_judged(figure, folder, entry))


def _is_judged(figure: Figure, folder: Path, entry: Entry) -> bool:
    return bool(entry.get("claims")) and entry.get("digest") == digest(figure, folder)


def _is_settled(name: str, folder: Path, judging: Callable[[str], None], again: Callable[[], str]) -> bool:
    """Whether a figure could be settled again; else it keeps its old verdicts, or there is an error."""
    judging(name)
    if not (error := again()):
        return True
    if not (_entry(folder / f"{name}.json") or {}).get("claims"):
        raise ValueError(f"{_table(name, folder)} cannot be judged: {error}")
    told = f"the table of {name} cannot be judged, and its old verdicts are kept: {error}"
    warnings.warn(told, KeptVerdicts, stacklevel=4)
    return False


def _again(figure: Figure, folder: Path, anew: bool) -> str:
    """Judge, if that is needed, and draw a figure; what is wrong with its table, or nothing."""
    entry = json.loads((folder / f"{figure.name}.json").read_bytes())
    try:
        if _is_judged(figure, folder, entry) and not anew:
            draw(figure, read_table(_table(figure.name, folder)), folder)
        else:
            settle(figure, folder, entry)
    except (pl.exceptions.PolarsError, LookupError, ValueError, TypeError) as error:
        return str(error) or repr(error)
    return ""


def _again_called(name: str, folder: Path, anew: bool) -> str:
    return _again(figure_called(name), folder, anew)


def _table(name: str, folder: Path) -> Path:
    return folder / f"{name}.parquet"


def _entry(path: Path) -> Entry | None:
    """What is known about a figure; None if there is no such file, or it is no entry, which the report tells."""
    try:
        entry = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("scale"), str) else None


def digest(figure: Figure, folder: Path) -> str:
    """A digest of all that verdicts and pictures are made of: the table, and the sources of claims and drawing.

    Of the library it has the studies, with their statistics and the style of plots, and not what made the table.
    """
    told = [figure.title, figure.where, figure.caption, *(it.criterion for it in figure.claims)]
    sources = {
        (found.partition(":")[2], source)
        for place in {place_of(figure.draw), *(it.place for it in figure.claims)}
        if not place.startswith("__main__:")
        for found, source in sources_of(place).items()
        if not found.startswith("rlsvi.") or found.startswith("rlsvi.study.")
    }
    found = hashlib.sha256(_table(figure.name, folder).read_bytes())
    found.update(repr((told, sorted(sources))).encode())
    return found.hexdigest()[:16]


def _record_of(figure: Figure, claim: Claim, verdict: Verdict) -> dict[str, Any]:
    """A claim and its verdict; claims of a figure that is not of the paper are none of the paper's."""
    why = {Outcome.REPRODUCED: "", Outcome.INCONCLUSIVE: "scale"}.get(verdict.outcome, claim.otherwise)
    ends = verdict.interval or (math.nan, math.nan, math.nan)
    return {
        "words": claim.words,
        "where": claim.where,
        "criterion": claim.criterion,
        "kind": claim.kind if figure.name in FIGURES else "ours",
        "headline": claim.headline,
        "outcome": str(verdict.outcome),
        "why": why,
        "measured": verdict.measured,
        **{name: x if math.isfinite(x) else None for name, x in zip(("value", "low", "high"), ends, strict=True)},
        "table": [list(row) for row in verdict.table],
        "readings": [[name, str(outcome)] for name, outcome in verdict.readings],
        "caveat": verdict.caveat,
        "variants": [list(pair) for pair in verdict.variants],
    }


def pictures(figure: Figure, frame: pl.DataFrame) -> dict[str, bytes]:
    """The picture as SVG, with text as text, and as PNG with few colours. It is laid out once, for both."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from PIL import Image

    files = {kind: io.BytesIO() for kind in PICTURES}
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": figure.name}):
        picture = figure.draw(frame)
        picture.dpi = DPI
        canvas: Any = FigureCanvasAgg(picture)
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        image.quantize(COLOURS).save(files["png"], "PNG", dpi=(DPI, DPI))
        picture.set_layout_engine("none")
        for patch in (picture.patch, *(axes.patch for axes in picture.axes)):
            patch.set_visible(False)
        canvas = FigureCanvasSVG(picture)
        canvas.print_svg(files["svg"], metadata={"Date": None})
    return {kind: file.getvalue() for kind, file in files.items()}
