"""What was reproduced, as a page to read: one self-contained HTML file, or Markdown beside its images.

Both are made of the files that `rlsvi paper --out FOLDER` leaves for each figure: NAME.json, NAME.svg, NAME.png.
"""

from collections.abc import Sequence
from pathlib import Path

from rlsvi.core.files import write_file
from rlsvi_paper import FIGURES
from rlsvi_paper.report.answer import answer_page
from rlsvi_paper.report.markdown import markdown_page
from rlsvi_paper.report.page import html_page
from rlsvi_paper.report.records import read_figures


def write_html(folder: Path, order: Sequence[str] = ()) -> Path:
    """Write folder/report.html, figures in the order of the paper, or those named in `order` first; its path."""
    target = folder / "report.html"
    write_file(target, html_page(read_figures(folder, order)).encode())
    return target


def write_markdown(folder: Path, page: Path, images: Path, order: Sequence[str] = ()) -> Path:
    """Write a Markdown page, and each figure's PNG into the folder `images` that it links to; the page's path.

    If there are figures of the paper, reproduce.md beside the page answers whether it reproduces.
    """
    figures = read_figures(folder, order)
    pictures = {images / f"{figure.name}.png": figure.read("png") for figure in figures}
    for folder_of in {images, page.parent}:
        folder_of.mkdir(parents=True, exist_ok=True)
    for path, picture in pictures.items():
        write_file(path, picture)
    write_file(page, markdown_page(figures, page.parent, images).encode())
    if of_paper := [figure for figure in figures if figure.name in FIGURES]:
        write_file(page.parent / "reproduce.md", answer_page(of_paper, page.name).encode())
    return page


__all__ = ["write_html", "write_markdown"]
