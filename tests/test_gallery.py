"""The gallery: eight pages of one form, with a card for each. Their programs are run in test_pages.py.

`PYTHONPATH=src python tests/test_gallery.py docs/gallery/NAME.md` runs the program of a page, stores its picture
with a palette of 256 colours, and prints what it prints.
"""

import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from PIL import Image

from pages import HOUSE, blocks

GALLERY, PICTURES = HOUSE / "docs" / "gallery", HOUSE / "docs" / "images" / "gallery"
INDEX = (GALLERY / "index.md").read_text()
PAGES = sorted(path for path in GALLERY.glob("*.md") if path.name != "index.md")


def test_the_index_shows_every_page_and_every_notebook():
    assert len(PAGES) == 8
    for path in PAGES:
        assert f"](../images/gallery/{path.stem}.png)" in INDEX
        assert len(re.findall(rf"\]\({path.name}\)", INDEX)) == 2  # on the picture and on the title
    for path in (HOUSE / "examples").glob("*.ipynb"):
        assert f"](../../examples/{path.name})" in INDEX
    assert {path.stem for path in PICTURES.iterdir()} == {path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_one_short_program_that_ends_with_the_picture_shown(path):
    (program,), (printed,), text = blocks(path), blocks(path, "text"), path.read_text()
    assert len([line for line in program.splitlines() if line]) <= 40
    assert max(map(len, program.splitlines())) <= 116  # what fits: see docs/assets/site.css
    assert printed
    assert program.splitlines()[-1] == f'figure.savefig("{path.stem}.png", dpi=120)'
    shown = rf"^!\[.{{40,}}\]\(\.\./images/gallery/{path.stem}\.png\)$"
    assert len(re.findall(shown, text, flags=re.MULTILINE)) == 1


@pytest.mark.parametrize("path", sorted(PICTURES.iterdir()), ids=lambda path: path.stem)
def test_pictures_are_small_and_of_one_shape(path):
    assert path.stat().st_size < 60_000
    with Image.open(path) as picture:
        assert picture.size == (960, 504)


def store(page):
    """Run the program of a page; store its picture, and return what it prints."""
    (program,) = blocks(page)
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        with Image.open(Path(folder) / f"{page.stem}.png") as picture:
            few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    file = BytesIO()
    few.save(file, "PNG", optimize=True)
    (PICTURES / f"{page.stem}.png").write_bytes(file.getvalue())
    return done.stdout


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(store(Path(name).resolve()), end="")
