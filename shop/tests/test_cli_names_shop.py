"""Names on the command line of the shop: suggestions for unknown ones."""

import polars as pl
import pytest

from rlsvi_shop import Events
from test_cli_names import commands_of, suggests

MISSPELT = [  # a command with a name that is slightly wrong, and what was meant
    (("serve", "shp.toml"), "shop.toml"),
    (("learn-shop", "shp.toml"), "shop.toml"),
    (("judge-shop", "shp.toml"), "shop.toml"),
    (("simulate-shop", "shp.toml"), "shop.toml"),
    (("export-events", "shp.toml", "--out", "events.csv"), "shop.toml"),
    (("export-events", "shop.toml", "--out", "events.cvs"), ".csv"),
    (("import-events", "shp.toml", "clicks.csv"), "shop.toml"),
    (("import-events", "shop.toml", "clciks.csv"), "clicks.csv"),
    (("import-events", "shop.toml", "table.parqet"), ".parquet"),
    (("import-events", "shop.toml", "clicks.csv"), "rewrd"),
]


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A folder with a shop and tables."""
    folder = tmp_path_factory.mktemp("things")
    (folder / "shop.toml").write_text('database = "sqlite:///shop.db"\nslots = 2\n')
    pl.DataFrame({"visit": ["a"], "product": ["x"], "rewrd": [1.0]}).write_csv(folder / "clicks.csv")
    (folder / "table.parqet").write_text("")
    with Events(f"sqlite:///{folder / 'shop.db'}"):
        pass
    return folder


@pytest.mark.parametrize(("arguments", "meant"), MISSPELT, ids=[" ".join(words) for words, _ in MISSPELT])
def test_the_nearest_name_is_suggested(arguments, meant, things, monkeypatch):
    monkeypatch.chdir(things)
    suggests(meant, *arguments)


def test_every_command_is_tried_with_a_name_that_is_slightly_wrong():
    assert {words[0] for words, _ in MISSPELT} == commands_of("rlsvi_shop")
