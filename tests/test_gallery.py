"""The gallery: eight pages, with a card for each. Their programs are run in test_pages.py.

`PYTHONPATH=src python tests/test_gallery.py docs/gallery/NAME.md` runs the program of a page, stores its picture
with a palette of 256 colours, and prints what it prints.
"""

import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

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
